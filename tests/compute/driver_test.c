/* Does a node at work hold what it promises to its slots: also when peers say the wrong thing, when it is
 * fenced, and when a load ends? A runtime without network: what it sends is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "compute/slot.h"
#include "workloads/ycsb.h"

enum { LOCKS = 1024, HOUR_US = 1000000000 };

struct bench {
    struct runtime runtime;
    struct runtime_options options;
    struct cluster cluster;
    struct dw_ycsb_parameters parameters;
};

/* Node 0 of two, serving, with one slot whose transactions read and write one row of node 1 each. */
static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    struct runtime *runtime = &bench->runtime;
    bench->cluster = (struct cluster){.compute_nodes = 2, .storage_nodes = 1};
    dw_ycsb.defaults(&bench->parameters);
    bench->parameters.records = 100;
    bench->parameters.accesses = 1;
    bench->parameters.read_pct = 100;
    bench->parameters.distributed_pct = 100;
    bench->options = (struct runtime_options){.protocol = dw_protocol_find("cornus"),
                                              .threads = 1,
                                              .workload = &dw_ycsb,
                                              .request_timeout_us = HOUR_US,
                                              .retry_backoff_us = HOUR_US,
                                              .batch_accesses = true};
    for (unsigned timer = 0; timer <= DW_TIMER_FINISH; timer++) {
        bench->options.timeout_us[timer] = HOUR_US;
    }
    runtime->options = &bench->options;
    runtime->cluster = &bench->cluster;
    runtime->workload_state = calloc(1, dw_ycsb.state_bytes);
    runtime->lock_memory = aligned_alloc(64, (dw_lock_table_bytes(LOCKS) + 63) / 64 * 64);
    runtime->txns = txn_table_open();
    assert_true(runtime->workload_state != NULL && runtime->lock_memory != NULL && runtime->txns != NULL);
    runtime->locks = dw_lock_table_init(runtime->lock_memory, LOCKS);
    runtime->node = (struct dw_node){.slot = 0, .incarnation = 1, .state = DW_NODE_SERVING};
    struct dw_deployment deployment = {.compute_nodes = 2, .seed = 1};
    dw_ycsb.init(runtime->workload_state, &bench->parameters, &deployment);
    assert_int_equal(dw_engine_open("memory", &runtime->engine), DW_OK);
    assert_int_equal(dw_engine_load(runtime->engine, &dw_ycsb, runtime->workload_state, 0), DW_OK);
    assert_int_equal(load_open(runtime), DW_OK);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    struct runtime *runtime = &bench->runtime;
    load_close(runtime);
    links_close(runtime);
    timers_close(&runtime->timers);
    txn_table_close(runtime->txns);
    runtime->engine->ops->close(runtime->engine);
    free(runtime->lock_memory);
    free(runtime->workload_state);
    free(bench);
    return 0;
}

/* Starts the load: the slot asks node 1 for a row, and waits. */
static struct slot *begin(struct bench *bench)
{
    struct slot *slot = bench->runtime.load.slots;
    assert_int_equal(load_begin(&bench->runtime, 0, HOUR_US), DW_OK);
    load_tick(&bench->runtime);
    assert_int_equal(slot->state, SLOT_EXECUTING);
    assert_int_equal(slot->waiting, dw_node_bit(1));
    return slot;
}

/* What node 1 answers to the slot's request. */
static void reply(struct bench *bench, enum access_status status, size_t rows)
{
    struct slot *slot = bench->runtime.load.slots;
    static uint8_t bytes[DW_TABLE_MAX_FIELDS * DW_YCSB_FIELD_BYTES];
    struct dw_wire_row row = {.data = bytes,
                              .size = dw_table_row_bytes(dw_ycsb.table(bench->runtime.workload_state, 0))};
    struct dw_wire_access_reply reply = {.id = UINT64_C(1) << 32,
                                         .txn = slot->txn,
                                         .status = status,
                                         .token = {.incarnation = 1, .counter = 1, .accesses = 1},
                                         .rows = &row,
                                         .row_count = rows};
    load_on_access_reply(&bench->runtime, &reply);
}

static void say(struct bench *bench, enum dw_message_kind kind, uint32_t value, uint64_t writers)
{
    struct dw_message message = {.kind = kind, .from = 1, .value = value, .writers = writers};
    struct dw_token token = {0};
    message.txn = kind == DW_MSG_VOTE_REQUEST
                      ? (struct dw_txn_id){.coordinator = 1, .incarnation = 1, .sequence = 9}
                      : bench->runtime.load.slots[0].txn;
    driver_on_message(&bench->runtime, &message, &token);
}

static void a_message_about_a_transaction_that_executes_leaves_it_alone(void **state)
{
    struct bench *bench = *state;
    struct slot *slot = begin(bench);
    say(bench, DW_MSG_VOTE, DW_VOTE_NO, 0);
    say(bench, DW_MSG_ACK, 0, 0);
    assert_ptr_equal(txn_table_find(bench->runtime.txns, slot->txn), slot->context);
    reply(bench, ACCESS_OK, 1);
    assert_int_equal(slot->state, SLOT_ANSWERED);
    assert_int_equal(slot->outcome, DW_OUTCOME_COMMITTED);
    assert_int_equal(txn_table_count(bench->runtime.txns), 0);
}

static void a_reply_with_too_few_rows_aborts(void **state)
{
    struct bench *bench = *state;
    struct slot *slot = begin(bench);
    reply(bench, ACCESS_OK, 0);
    assert_int_equal(slot->state, SLOT_ANSWERED);
    assert_int_equal(slot->outcome, DW_OUTCOME_ABORTED);
}

static void a_node_that_is_fenced_begins_nothing_and_takes_nobody_in(void **state)
{
    struct bench *bench = *state;
    struct slot *slot = begin(bench);
    reply(bench, ACCESS_OK, 1);
    assert_int_equal(slot->state, SLOT_ANSWERED);
    dw_node_stop(&bench->runtime.node);
    assert_true(load_tick(&bench->runtime) == UINT64_MAX);
    struct dw_wire_access access = {.kind = DW_ACCESS_READ, .key = 0};
    struct dw_wire_access_request request = {.txn = {.coordinator = 1, .incarnation = 1, .sequence = 3},
                                             .from = 1,
                                             .token = {.accesses = 1},
                                             .accesses = &access,
                                             .access_count = 1};
    executor_on_request(&bench->runtime, &request);
    assert_int_equal(dw_lock_table_used(bench->runtime.locks), 0);
    assert_int_equal(txn_table_count(bench->runtime.txns), 0);
}

static void an_attempt_that_fails_has_no_votes(void **state)
{
    struct bench *bench = *state;
    struct slot *slot = begin(bench);
    reply(bench, ACCESS_CONFLICT, 0);
    assert_int_equal(slot->outcome, DW_OUTCOME_ABORTED);
    assert_int_equal(bench->runtime.failpoints.points[FAILPOINT_COORDINATOR_AFTER_VOTES].hits, 0);
}

static void a_slot_that_backs_off_wakes_nobody_when_the_load_is_over(void **state)
{
    struct bench *bench = *state;
    struct load *load = &bench->runtime.load;
    begin(bench);
    /* What keeps the node from being done: somebody else's transaction. */
    assert_non_null(
        txn_table_add(bench->runtime.txns, (struct dw_txn_id){.coordinator = 1, .incarnation = 1}));
    reply(bench, ACCESS_CONFLICT, 0);
    load_tick(&bench->runtime);
    assert_int_equal(load->slots[0].state, SLOT_BACKOFF);
    load->slots[0].due_us = 0;
    load->slots_due_us = 0;
    load->stop_us = 0;
    uint64_t before_us = dw_rpc_now_us();
    assert_true(load_tick(&bench->runtime) > before_us);
    assert_int_equal(load->state, LOAD_DRAINING);
}

static void alarms_outlive_the_begin_of_a_load(void **state)
{
    struct bench *bench = *state;
    bench->runtime.stats.alarms[DW_ALARM_CONFLICT] = 3;
    begin(bench);
    assert_int_equal(bench->runtime.stats.alarms[DW_ALARM_CONFLICT], 3);
}

static void a_list_with_a_log_that_the_cluster_lacks_is_not_taken(void **state)
{
    struct bench *bench = *state;
    say(bench, DW_MSG_VOTE_REQUEST, 0, dw_node_bit(0) | dw_node_bit(5));
    assert_int_equal(txn_table_count(bench->runtime.txns), 0);
    say(bench, DW_MSG_VOTE_REQUEST, 0, dw_node_bit(0) | dw_node_bit(1));
    assert_int_equal(txn_table_count(bench->runtime.txns), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_message_about_a_transaction_that_executes_leaves_it_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_reply_with_too_few_rows_aborts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_node_that_is_fenced_begins_nothing_and_takes_nobody_in, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_attempt_that_fails_has_no_votes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_slot_that_backs_off_wakes_nobody_when_the_load_is_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(alarms_outlive_the_begin_of_a_load, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_with_a_log_that_the_cluster_lacks_is_not_taken, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
