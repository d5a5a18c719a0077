/* cornus.h - one-phase commit. */
#ifndef DW_CORE_CORNUS_H
#define DW_CORE_CORNUS_H

#include <string.h>

#include "base/limits.h"

/* A comment may say __reserved, or #include "wire/codec.h". */
static inline void dw_clear(void *memory, unsigned long size)
{
    memset(memory, 0, size);
}

#endif
