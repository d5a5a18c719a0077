#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void dw_assert_fail(const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr, "assertion failed: %s (%s:%d, %s)\n", condition, file, line, function);
    abort();
}
