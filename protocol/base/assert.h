/* assert.h - assertions that stay on in Release. For the program's own mistakes, never for input. */
#ifndef DW_BASE_ASSERT_H
#define DW_BASE_ASSERT_H

/* Prints one line that names the place and the condition, then aborts the process. */
_Noreturn void dw_assert_fail(const char *condition, const char *file, int line, const char *function);

#define DW_ASSERT(condition)                                                                                 \
    ((condition) ? (void)0 : dw_assert_fail(#condition, __FILE__, __LINE__, __func__))

#endif
