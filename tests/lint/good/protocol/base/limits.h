/* limits.h - sizes. */
#ifndef DW_BASE_LIMITS_H
#define DW_BASE_LIMITS_H

#include <stdint.h>

#endif
