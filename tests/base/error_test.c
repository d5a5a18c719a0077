/* Does every error have a text of its own, and does an assertion name its place? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"

static const enum dw_error all[] = {
#define LISTED(name, text) DW_ERR_##name,
    DW_ERRORS(LISTED)
#undef LISTED
};
#define COUNT (sizeof all / sizeof *all)

static void every_error_has_its_own_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        const char *text = dw_error_text(all[i]);
        assert_non_null(text);
        assert_true(strlen(text) > 0);
        assert_string_not_equal(text, "unknown error");
        assert_null(strchr(text, '\n'));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(text, dw_error_text(all[j]));
        }
    }
}

static void texts_are_the_listed_ones(void **state)
{
    (void)state;
    assert_int_equal(DW_OK, 0);
    assert_string_equal(dw_error_text(DW_OK), "ok");
    assert_string_equal(dw_error_text(DW_ERR_LOCKED), "locked by another process");
    assert_string_equal(dw_error_text(DW_ERR_SHUTDOWN), "shutting down");
}

static void a_value_outside_the_list_is_unknown(void **state)
{
    (void)state;
    /* Errors also arrive as numbers, from a peer of another version. */
    volatile int outside = (int)COUNT;
    assert_string_equal(dw_error_text((enum dw_error)outside), "unknown error");
}

/* Runs a failing assertion in a child and reads what it printed. */
static int failing_child(char *output, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        volatile int two = 2;
        DW_ASSERT(two + two == 5);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while (used + 1 < size && (got = read(ends[0], output + used, size - 1 - used)) > 0) {
        used += (size_t)got;
    }
    output[used] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_failed_assertion_names_its_place_and_aborts(void **state)
{
    (void)state;
    char output[1024];
    int status = failing_child(output, sizeof output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(output, "assertion failed: two + two == 5"));
    assert_non_null(strstr(output, "error_test.c:"));
    assert_non_null(strstr(output, "failing_child"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_own_text),
        cmocka_unit_test(texts_are_the_listed_ones),
        cmocka_unit_test(a_value_outside_the_list_is_unknown),
        cmocka_unit_test(a_failed_assertion_names_its_place_and_aborts),
    };
    return cmocka_run_group_tests_name("base_error", tests, NULL, NULL);
}
