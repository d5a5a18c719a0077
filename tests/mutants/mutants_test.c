/* Does the explorer reject each wrong variant, under bounds in which the right code holds? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/mutants/mutants.h"

static struct dw_explore_result explore(const struct dw_mutant *mutant, const struct dw_protocol *protocol,
                                        dw_log_rule_fn *rule)
{
    struct dw_explore_options options = {.protocol = protocol,
                                         .rule = rule,
                                         .nodes = 2,
                                         .writers = 3,
                                         .crashes = mutant->crashes,
                                         .restarts = mutant->restarts,
                                         .duplicates = mutant->duplicates,
                                         .timeouts = mutant->timeouts};
    struct dw_explore_result result;
    assert_int_equal(dw_explore(&options, &result, stdout), DW_OK);
    return result;
}

static void the_right_code_holds_where_each_mutant_is_caught(void **state)
{
    (void)state;
    for (const struct dw_mutant *mutant = dw_mutants; mutant->name != NULL; mutant++) {
        printf("--- %s: %s\n", mutant->name, mutant->wrong);
        struct dw_explore_result right = explore(mutant, mutant->of, NULL);
        assert_int_equal(right.verdict, DW_EXPLORE_HOLDS);

        struct dw_protocol wrong = *mutant->of;
        if (mutant->mutate != NULL) {
            mutant->mutate(&wrong);
        }
        struct dw_explore_result found = explore(mutant, &wrong, mutant->rule);
        assert_int_equal(found.verdict, DW_EXPLORE_VIOLATED);
        assert_string_equal(found.violation, mutant->violates);
        printf("    right code: %llu states; wrong code: caught after %llu states by %s in %u events\n",
               (unsigned long long)right.states, (unsigned long long)found.states, found.violation,
               found.schedule_length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_right_code_holds_where_each_mutant_is_caught)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
