/* Do the protocols hold in every order of events of a coordinator and a participant: a crash and a restart of
 * either, a duplicate, all time-outs? And does the explorer see what it must see? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "sim/check.h"
#include "sim/explore.h"

static struct dw_explore_result explore(struct dw_explore_options options)
{
    struct dw_explore_result result;
    options.nodes = options.nodes ? options.nodes : 2;
    options.writers = options.writers ? options.writers : 3;
    assert_int_equal(dw_explore(&options, &result, stdout), DW_OK);
    printf("%s: %llu states, %llu transitions, depth %u, %llu quiescent, %llu blocked\n",
           options.protocol->name, (unsigned long long)result.states, (unsigned long long)result.transitions,
           result.depth, (unsigned long long)result.quiescent, (unsigned long long)result.blocked);
    return result;
}

static void assert_holds(const struct dw_explore_result *result)
{
    assert_int_equal(result->verdict, DW_EXPLORE_HOLDS);
    assert_true(result->quiescent > 0);
}

static void cornus_holds_with_a_crash_a_restart_and_a_duplicate(void **state)
{
    (void)state;
    struct dw_explore_result result = explore((struct dw_explore_options){
        .protocol = &dw_cornus, .crashes = 1, .restarts = 1, .duplicates = 1, .timeouts = 2});
    assert_holds(&result);
    assert_int_equal(result.blocked, 0);
}

static void cornus_holds_with_unbounded_timeouts(void **state)
{
    (void)state;
    struct dw_explore_result result =
        explore((struct dw_explore_options){.protocol = &dw_cornus, .timeouts = DW_EXPLORE_UNBOUNDED});
    assert_holds(&result);
}

static void cornus_holds_with_a_lost_packet(void **state)
{
    (void)state;
    struct dw_explore_result result = explore((struct dw_explore_options){
        .protocol = &dw_cornus, .crashes = 1, .restarts = 1, .drops = 1, .timeouts = 2});
    assert_holds(&result);
    assert_int_equal(result.blocked, 0);
}

static void two_phase_holds_and_reaches_the_blocked_case(void **state)
{
    (void)state;
    struct dw_explore_result result = explore((struct dw_explore_options){.protocol = &dw_two_phase,
                                                                          .crashes = 1,
                                                                          .restarts = 1,
                                                                          .duplicates = 1,
                                                                          .timeouts = DW_EXPLORE_UNBOUNDED});
    assert_holds(&result);
    /* Figure 1b: a live participant in doubt, and only the coordinator's return frees it. */
    assert_true(result.blocked > 0);
}

/* Only with a second participant can one inquire of another that has decided, or never voted. */
static void two_phase_holds_with_two_participants(void **state)
{
    (void)state;
    struct dw_explore_result result = explore((struct dw_explore_options){
        .protocol = &dw_two_phase, .nodes = 3, .writers = 7, .crashes = 1, .restarts = 1, .timeouts = 1});
    assert_holds(&result);
}

/* Coordinator and reader: node 1 only read, so the coordinator's own writes are a local commit after one
 * round; and coordinator, writer, reader. */
static void readers_are_asked_before_the_own_vote(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct dw_explore_result two = explore((struct dw_explore_options){.protocol = dw_protocol_at(i),
                                                                           .writers = 1,
                                                                           .readers = 2,
                                                                           .crashes = 1,
                                                                           .restarts = 1,
                                                                           .duplicates = 1,
                                                                           .timeouts = DW_EXPLORE_UNBOUNDED});
        assert_holds(&two);
        struct dw_explore_result three = explore((struct dw_explore_options){.protocol = dw_protocol_at(i),
                                                                             .nodes = 3,
                                                                             .writers = 3,
                                                                             .readers = 4,
                                                                             .crashes = 1,
                                                                             .restarts = 1,
                                                                             .timeouts = 2});
        assert_holds(&three);
    }
}

static void a_limit_makes_the_verdict_inconclusive(void **state)
{
    (void)state;
    struct dw_explore_result result = explore((struct dw_explore_options){
        .protocol = &dw_cornus, .timeouts = DW_EXPLORE_UNBOUNDED, .max_states = 1000});
    assert_int_equal(result.verdict, DW_EXPLORE_INCONCLUSIVE);
}

static void bad_bounds_are_refused(void **state)
{
    (void)state;
    struct dw_explore_result result;
    struct dw_explore_options good = {.protocol = &dw_cornus, .nodes = 2, .writers = 3};
    assert_int_equal(dw_explore(&good, &result, NULL), DW_OK);
    struct dw_explore_options bad[] = {good, good, good, good};
    bad[0].nodes = DW_WORLD_NODES + 1;
    bad[1].writers = 4; /* a node that is not there */
    bad[2].readers = 1; /* reader and writer at once */
    bad[3].crashes = 9;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dw_explore(&bad[i], &result, NULL), DW_ERR_RANGE);
    }
}

/* --- the checkers reject what they must --- */

static void drop_packet(void *user, const struct dw_packet *packet)
{
    (void)user;
    (void)packet;
}

static struct dw_world good_world(const struct dw_protocol *protocol)
{
    struct dw_world_driver driver = {.protocol = protocol, .rule = dw_log_rule, .emit = drop_packet};
    struct dw_world world;
    dw_world_init(&world, &driver, 2, 3, 0);
    assert_null(dw_check_world(&world, protocol));
    return world;
}

static void each_property_has_a_world_that_violates_it(void **state)
{
    (void)state;
    struct dw_world world = good_world(&dw_cornus);
    world.history.reversed = 1;
    assert_string_equal(dw_check_world(&world, &dw_cornus), "irreversible");

    world = good_world(&dw_cornus);
    world.history.outcome[0] = DW_OUTCOME_COMMITTED;
    assert_string_equal(dw_check_world(&world, &dw_cornus), "commit-validity");
    world.log[0].began_yes = world.log[1].began_yes = 1;
    assert_null(dw_check_world(&world, &dw_cornus));
    world.history.caller = DW_OUTCOME_ABORTED;
    assert_string_equal(dw_check_world(&world, &dw_cornus), "agreement");

    world = good_world(&dw_cornus);
    world.history.outcome[1] = DW_OUTCOME_ABORTED;
    assert_null(dw_check_world(&world, &dw_cornus));
    world.log[0].began_yes = world.log[1].began_yes = 1;
    assert_string_equal(dw_check_world(&world, &dw_cornus), "abort-validity");

    world = good_world(&dw_two_phase);
    world.history.caller = DW_OUTCOME_COMMITTED;
    world.log[1].began_yes = 1;
    assert_string_equal(dw_check_world(&world, &dw_two_phase), "commit-validity");
    world.log[0].entry.state = DW_ENTRY_COORD_COMMIT;
    assert_null(dw_check_world(&world, &dw_two_phase));

    world = good_world(&dw_cornus);
    world.history.conflicts = 1;
    assert_string_equal(dw_check_world(&world, &dw_cornus), "no-conflict");

    world = good_world(&dw_cornus);
    world.history.alarms = 1u << DW_ALARM_FENCED;
    assert_null(dw_check_world(&world, &dw_cornus));
    world.history.alarms |= 1u << DW_ALARM_DISAGREEMENT;
    assert_string_equal(dw_check_world(&world, &dw_cornus), "no-alarm");

    /* The vote is in the log, and the node that serves it has forgotten, or has let its locks go. */
    world = good_world(&dw_cornus);
    world.log[1].entry.state = DW_ENTRY_VOTE_YES;
    assert_null(dw_check_world(&world, &dw_cornus));
    world.txn[1].flags &= ~(uint32_t)DW_TXN_LOCKS;
    assert_string_equal(dw_check_world(&world, &dw_cornus), "vote-is-held");
    memset(&world.txn[1], 0, sizeof world.txn[1]);
    assert_string_equal(dw_check_world(&world, &dw_cornus), "vote-is-held");
    world.up = 1;
    assert_null(dw_check_world(&world, &dw_cornus));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_property_has_a_world_that_violates_it),
        cmocka_unit_test(bad_bounds_are_refused),
        cmocka_unit_test(a_limit_makes_the_verdict_inconclusive),
        cmocka_unit_test(cornus_holds_with_a_crash_a_restart_and_a_duplicate),
        cmocka_unit_test(cornus_holds_with_unbounded_timeouts),
        cmocka_unit_test(cornus_holds_with_a_lost_packet),
        cmocka_unit_test(two_phase_holds_and_reaches_the_blocked_case),
        cmocka_unit_test(two_phase_holds_with_two_participants),
        cmocka_unit_test(readers_are_asked_before_the_own_vote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
