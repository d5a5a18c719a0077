/* What does a committed transaction cost? The table at the end of docs/design.md, section 3, counted for a
 * writing coordinator and 1 to 7 other writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/scenario.h"

enum { MAX_OTHERS = DW_SCENARIO_NODES - 1 };

static struct dw_scenario_result commit_with(const struct dw_protocol *protocol, uint32_t others,
                                             struct dw_scenario *scenario)
{
    struct dw_scenario_result result;
    dw_scenario_init(scenario, protocol, others + 1);
    dw_scenario_run(scenario, &result);
    assert_null(result.violation);
    assert_int_equal(result.caller, DW_OUTCOME_COMMITTED);
    for (uint32_t i = 0; i <= others; i++) {
        assert_int_equal(result.node[i].outcome, DW_OUTCOME_COMMITTED);
        assert_int_equal(result.node[i].state, DW_TXN_ABSENT);
    }
    assert_int_equal(result.messages, 3 * others);
    assert_int_equal(result.acks, others);
    assert_int_equal(result.lost, 0);
    return result;
}

/* How long a round trip between compute nodes takes, and a log write as its writer sees it. */
static uint64_t round_trip_us(const struct dw_scenario *scenario)
{
    return 2 * scenario->times.message_us;
}

static uint64_t log_write_us(const struct dw_scenario *scenario)
{
    return 2 * scenario->times.storage_us + scenario->times.log_write_us;
}

static void cornus_writes_2n_plus_2_records_and_waits_for_one(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= MAX_OTHERS; n++) {
        struct dw_scenario scenario;
        struct dw_scenario_result result = commit_with(&dw_cornus, n, &scenario);
        assert_int_equal(result.log_writes, 2 * (n + 1));
        assert_int_equal(result.forced, n + 1);
        assert_int_equal(result.answered_us - scenario.times.commit_us,
                         round_trip_us(&scenario) + log_write_us(&scenario));
    }
}

/* START_2PC, n votes and n decisions, COMMIT; END follows off the critical path. */
static void two_phase_writes_2n_plus_2_records_and_end_and_waits_for_two(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= MAX_OTHERS; n++) {
        struct dw_scenario scenario;
        struct dw_scenario_result result = commit_with(&dw_two_phase, n, &scenario);
        assert_int_equal(result.log_writes, 2 * n + 2 + 1);
        assert_int_equal(result.forced, n + 2);
        assert_int_equal(result.answered_us - scenario.times.commit_us,
                         round_trip_us(&scenario) + 2 * log_write_us(&scenario));
        assert_int_equal(result.log[0].record_count, 3);
        assert_int_equal(result.log[0].records[2], DW_RECORD_END);
    }
}

/* A coordinator that writes nothing itself is listed all the same, and votes. */
static void cornus_costs_the_same_if_the_coordinator_only_reads(void **state)
{
    (void)state;
    struct dw_scenario scenario;
    struct dw_scenario_result result;
    dw_scenario_init(&scenario, &dw_cornus, 3);
    scenario.writers = 6;
    scenario.readers = 1;
    dw_scenario_run(&scenario, &result);
    assert_null(result.violation);
    assert_int_equal(result.caller, DW_OUTCOME_COMMITTED);
    assert_int_equal(result.log_writes, 6);
    assert_int_equal(result.log[0].records[0], DW_RECORD_VOTE_YES);
}

/* One record, and no message. */
static void a_local_transaction_writes_one_record(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct dw_scenario scenario;
        struct dw_scenario_result result;
        dw_scenario_init(&scenario, dw_protocol_at(i), 1);
        dw_scenario_run(&scenario, &result);
        assert_int_equal(result.caller, DW_OUTCOME_COMMITTED);
        assert_int_equal(result.log_writes, 1);
        assert_int_equal(result.forced, 1);
        assert_int_equal(result.messages + result.acks, 0);
        assert_int_equal(result.answered_us - scenario.times.commit_us, log_write_us(&scenario));
    }
}

/* With a reader, the coordinator's vote waits for "still held": one round trip before its log write, which is
 * as long as a participant's round trip and write. */
static void a_reader_costs_two_messages_and_no_delay(void **state)
{
    (void)state;
    struct dw_scenario scenario;
    struct dw_scenario_result result;
    dw_scenario_init(&scenario, &dw_cornus, 3);
    scenario.writers = 3;
    scenario.readers = 4;
    dw_scenario_run(&scenario, &result);
    assert_null(result.violation);
    assert_int_equal(result.caller, DW_OUTCOME_COMMITTED);
    assert_int_equal(result.messages, 3 + 2);
    assert_int_equal(result.log_writes, 4);
    assert_int_equal(result.log[2].record_count, 0);
    assert_int_equal(result.answered_us - scenario.times.commit_us,
                     round_trip_us(&scenario) + log_write_us(&scenario));
}

/* The counts hold for other latencies, too; only the delays change with them. */
static void the_delays_follow_the_latencies(void **state)
{
    (void)state;
    struct dw_scenario scenario;
    struct dw_scenario_result result;
    dw_scenario_init(&scenario, &dw_two_phase, 4);
    scenario.times.message_us = 40;
    scenario.times.storage_us = 70;
    scenario.times.log_write_us = 3000;
    dw_scenario_run(&scenario, &result);
    assert_int_equal(result.answered_us - scenario.times.commit_us, 2 * 40 + 2 * (2 * 70 + 3000));
    assert_int_equal(result.log_writes, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cornus_writes_2n_plus_2_records_and_waits_for_one),
        cmocka_unit_test(two_phase_writes_2n_plus_2_records_and_end_and_waits_for_two),
        cmocka_unit_test(cornus_costs_the_same_if_the_coordinator_only_reads),
        cmocka_unit_test(a_local_transaction_writes_one_record),
        cmocka_unit_test(a_reader_costs_two_messages_and_no_delay),
        cmocka_unit_test(the_delays_follow_the_latencies),
    };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
