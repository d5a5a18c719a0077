/* Does a node recover from its log what it must, in the memory that compute/recovery.h promises? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/recovery.h"
#include "workloads/ycsb.h"

enum { LOCKS = 1024, ROWS = 64, FIELDS = 10, FLIGHT = 8 };

struct bench {
    struct runtime runtime;
    struct runtime_options options;
    struct cluster cluster;
    struct dw_ycsb_parameters parameters;
    struct recovery recovery;
    struct dw_redo redo; /* of the next record */
    uint64_t position;
    char text[256];
};

static void open_bench(struct bench *bench, const char *protocol)
{
    struct runtime *runtime = &bench->runtime;
    bench->cluster = (struct cluster){.compute_nodes = 2, .storage_nodes = 1};
    dw_ycsb.defaults(&bench->parameters);
    bench->parameters.records = ROWS;
    bench->parameters.record_bytes = FIELDS * DW_YCSB_FIELD_BYTES;
    bench->options = (struct runtime_options){.protocol = dw_protocol_find(protocol), .workload = &dw_ycsb};
    runtime->options = &bench->options;
    runtime->cluster = &bench->cluster;
    runtime->workload_state = calloc(1, dw_ycsb.state_bytes);
    runtime->lock_memory = aligned_alloc(64, (dw_lock_table_bytes(LOCKS) + 63) / 64 * 64);
    runtime->txns = txn_table_open();
    assert_true(runtime->workload_state != NULL && runtime->lock_memory != NULL && runtime->txns != NULL);
    runtime->locks = dw_lock_table_init(runtime->lock_memory, LOCKS);
    runtime->node = (struct dw_node){.slot = 0, .incarnation = 2, .state = DW_NODE_SCANNING};
    struct dw_deployment deployment = {.compute_nodes = 2, .seed = 1};
    dw_ycsb.init(runtime->workload_state, &bench->parameters, &deployment);
    assert_int_equal(dw_engine_open("memory", &runtime->engine), DW_OK);
    assert_int_equal(dw_engine_load(runtime->engine, &dw_ycsb, runtime->workload_state, 0), DW_OK);
    recovery_init(&bench->recovery, runtime, bench->text, sizeof bench->text);
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    open_bench(bench, "cornus");
    *state = bench;
    return 0;
}

static int set_up_two_phase(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    open_bench(bench, "2pc");
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    struct runtime *runtime = &bench->runtime;
    recovery_close(&bench->recovery);
    dw_redo_free(&bench->redo);
    timers_close(&runtime->timers);
    txn_table_close(runtime->txns);
    runtime->engine->ops->close(runtime->engine);
    free(runtime->lock_memory);
    free(runtime->workload_state);
    free(bench);
    return 0;
}

static struct dw_txn_id of_other(uint64_t sequence)
{
    return (struct dw_txn_id){.coordinator = 1, .incarnation = 1, .sequence = sequence};
}

static struct dw_txn_id of_self(uint64_t sequence)
{
    return (struct dw_txn_id){.coordinator = 0, .incarnation = 1, .sequence = sequence};
}

/* The row's key, whose owner is node 0. */
static uint64_t key_of(uint32_t row)
{
    return (uint64_t)row * 2;
}

static void fill(uint8_t *value, uint64_t stamp)
{
    memset(value, 0, DW_YCSB_FIELD_BYTES);
    memcpy(value, &stamp, sizeof stamp);
}

static void write_field(struct bench *bench, uint32_t row, uint32_t field, uint64_t stamp)
{
    uint8_t value[DW_YCSB_FIELD_BYTES];
    fill(value, stamp);
    struct dw_change change = {
        .key = key_of(row), .field = field, .value = value, .value_bytes = sizeof value};
    assert_int_equal(dw_redo_add(&bench->redo, &change), DW_OK);
}

/* Takes a record with the redo that was prepared, which is empty afterwards; returns its position. */
static enum dw_error try_take(struct bench *bench, struct dw_txn_id txn, enum dw_record kind,
                              bool coordinator)
{
    bool lists = kind == DW_RECORD_VOTE_YES || kind == DW_RECORD_START_2PC || coordinator;
    struct dw_admin_record record = {.position = ++bench->position,
                                     .txn = txn,
                                     .record = kind,
                                     .coordinator = coordinator,
                                     .participants = lists ? 3 : 0,
                                     .redo = bench->redo.data,
                                     .redo_size = bench->redo.size};
    enum dw_error error = recovery_take(&bench->recovery, &record);
    dw_redo_clear(&bench->redo);
    return error;
}

static uint64_t take(struct bench *bench, struct dw_txn_id txn, enum dw_record kind, bool coordinator)
{
    assert_int_equal(try_take(bench, txn, kind, coordinator), DW_OK);
    return bench->position;
}

static void finish(struct bench *bench)
{
    assert_int_equal(recovery_finish(&bench->recovery), DW_OK);
    assert_int_equal(bench->recovery.open_count, 0);
    assert_int_equal(bench->recovery.redo_bytes, 0);
    dw_node_scanned(&bench->runtime.node);
}

static uint64_t stamp_at(struct bench *bench, uint32_t row, uint32_t field)
{
    uint8_t bytes[FIELDS * DW_YCSB_FIELD_BYTES];
    uint64_t stamp;
    struct dw_engine *engine = bench->runtime.engine;
    assert_int_equal(engine->ops->read(engine, 0, key_of(row), bytes), DW_OK);
    memcpy(&stamp, bytes + field * DW_YCSB_FIELD_BYTES, sizeof stamp);
    return stamp;
}

static enum dw_lock_mode lock_of(struct bench *bench, struct dw_txn_id txn, uint32_t row)
{
    return dw_lock_held(bench->runtime.locks, txn, (struct dw_lock_name){.key = key_of(row)});
}

/* --- memory --- */

/* A long log of which a few transactions are open at a time: votes, and their decisions some records later.
 */
static void what_is_held_does_not_grow_with_the_log(void **state)
{
    struct bench *bench = *state;
    enum { TRANSACTIONS = 20000 };
    uint64_t model[ROWS] = {0};
    size_t largest = 0;
    for (uint64_t i = 0; i < TRANSACTIONS + FLIGHT; i++) {
        if (i < TRANSACTIONS) {
            write_field(bench, (uint32_t)(i % ROWS), 0, i + 1);
            take(bench, of_other(i), DW_RECORD_VOTE_YES, false);
        }
        largest = bench->recovery.redo_bytes > largest ? bench->recovery.redo_bytes : largest;
        assert_true(bench->recovery.open_count <= FLIGHT + 1);
        if (i >= FLIGHT) {
            uint64_t ended = i - FLIGHT;
            bool commits = ended % 3 != 0;
            take(bench, of_other(ended), commits ? DW_RECORD_COMMIT : DW_RECORD_ABORT, false);
            model[ended % ROWS] = commits ? ended + 1 : model[ended % ROWS];
        }
    }
    assert_true(largest > 0 && largest <= (FLIGHT + 1) * (DW_YCSB_FIELD_BYTES + 16));
    assert_int_equal(bench->recovery.open_count, 0);
    for (uint32_t row = 0; row < ROWS; row++) {
        assert_int_equal(stamp_at(bench, row, 0), model[row]);
    }
    finish(bench);
    assert_int_equal(txn_table_count(bench->runtime.txns), 0);
    assert_int_equal(dw_lock_table_used(bench->runtime.locks), 0);
}

/* Denials, local commits and ended coordinators leave nothing, either. */
static void what_ends_at_once_is_not_held(void **state)
{
    struct bench *bench = *state;
    for (uint64_t i = 0; i < 5000; i++) {
        take(bench, of_other(i), DW_RECORD_ABORT, false);
        write_field(bench, 3, 1, i);
        take(bench, of_self(i), DW_RECORD_COMMIT, false);
        assert_int_equal(bench->recovery.open_count, 0);
    }
    assert_int_equal(stamp_at(bench, 3, 1), 4999);
    finish(bench);
}

static void a_two_phase_coordinator_holds_no_redo(void **state)
{
    struct bench *bench = *state;
    for (uint64_t i = 0; i < 100; i++) {
        take(bench, of_self(i), DW_RECORD_START_2PC, true);
        write_field(bench, (uint32_t)(i % ROWS), 2, i + 1);
        take(bench, of_self(i), DW_RECORD_COMMIT, true);
        assert_int_equal(bench->recovery.redo_bytes, 0);
        assert_int_equal(stamp_at(bench, (uint32_t)(i % ROWS), 2), i + 1);
        if (i % 10 != 0) {
            take(bench, of_self(i), DW_RECORD_END, true);
        }
    }
    assert_int_equal(bench->recovery.open_count, 10);
    take(bench, of_self(1000), DW_RECORD_START_2PC, true);
    finish(bench);
    /* Ten commits to tell of again, and a start that means abort. */
    assert_int_equal(txn_table_count(bench->runtime.txns), 11);
    const struct txn_context *context = txn_table_find(bench->runtime.txns, of_self(20));
    assert_non_null(context);
    assert_int_equal(context->machine.state, DW_TXN_COMMITTED);
    assert_int_equal(context->machine.acks_pending, 2);
    context = txn_table_find(bench->runtime.txns, of_self(1000));
    assert_non_null(context);
    assert_int_equal(context->machine.state, DW_TXN_ABORTED);
}

/* --- what is in doubt --- */

/* Cornus frees locks before its decision is logged: T1 may be in doubt, and T2, which wrote the row later,
 * committed. What T2 wrote stays, also when T1 resolves late. */
static void redo_is_ordered_by_the_votes(void **state)
{
    struct bench *bench = *state;
    write_field(bench, 7, 0, 100);
    write_field(bench, 7, 1, 101);
    take(bench, of_other(1), DW_RECORD_VOTE_YES, false);
    write_field(bench, 7, 0, 200);
    take(bench, of_other(2), DW_RECORD_VOTE_YES, false);
    take(bench, of_other(2), DW_RECORD_COMMIT, false);
    assert_int_equal(stamp_at(bench, 7, 0), 200);
    finish(bench);
    assert_int_equal(lock_of(bench, of_other(1), 7), DW_LOCK_EXCLUSIVE);
    assert_int_equal(lock_of(bench, of_other(2), 7), DW_LOCK_NONE);
    struct dw_message decision = {
        .kind = DW_MSG_DECISION, .from = 1, .value = DW_OUTCOME_COMMITTED, .txn = of_other(1)};
    struct dw_token token = {0};
    driver_on_message(&bench->runtime, &decision, &token);
    assert_int_equal(stamp_at(bench, 7, 0), 200);
    assert_int_equal(stamp_at(bench, 7, 1), 101);
    assert_int_equal(lock_of(bench, of_other(1), 7), DW_LOCK_NONE);
}

/* The commits of two votes may come in the other order than the votes. */
static void decisions_in_another_order_change_nothing(void **state)
{
    struct bench *bench = *state;
    write_field(bench, 7, 0, 100);
    take(bench, of_other(1), DW_RECORD_VOTE_YES, false);
    write_field(bench, 7, 0, 200);
    take(bench, of_other(2), DW_RECORD_VOTE_YES, false);
    take(bench, of_other(2), DW_RECORD_COMMIT, false);
    take(bench, of_other(1), DW_RECORD_COMMIT, false);
    assert_int_equal(stamp_at(bench, 7, 0), 200);
}

static void a_vote_in_doubt_keeps_its_locks_and_its_redo(void **state)
{
    struct bench *bench = *state;
    write_field(bench, 1, 0, 5);
    write_field(bench, 2, 0, 6);
    take(bench, of_self(1), DW_RECORD_VOTE_YES, false);
    finish(bench);
    struct txn_context *context = txn_table_find(bench->runtime.txns, of_self(1));
    assert_non_null(context);
    assert_true(dw_txn_in_doubt(&context->machine));
    assert_int_equal(dw_lock_table_used(bench->runtime.locks), 2);
    /* All listed logs say yes: it commits. It is no part of any figure, since it began before the restart. */
    for (uint32_t log = 0; log < 2; log++) {
        struct dw_wire_log_reply reply = {.reply = {.txn = of_self(1),
                                                    .log = log,
                                                    .ask = DW_ASK_DENY,
                                                    .answer = DW_ANSWER_VOTE_YES,
                                                    .position = 1}};
        driver_on_log_reply(&bench->runtime, &reply);
    }
    assert_int_equal(stamp_at(bench, 2, 0), 6);
    struct dw_wire_log_reply logged = {
        .reply = {.txn = of_self(1), .ask = DW_ASK_DECIDE_COMMIT, .answer = DW_ANSWER_COMMIT}};
    bench->runtime.load.state = LOAD_MEASURING;
    driver_on_log_reply(&bench->runtime, &logged);
    assert_int_equal(txn_table_count(bench->runtime.txns), 0);
    const struct stats *stats = &bench->runtime.stats;
    assert_int_equal(stats->costs.coordinated + stats->costs.log_writes + stats->release_count, 0);
}

/* --- what is wrong --- */

static void assert_refused(struct bench *bench, enum dw_error error, const char *part)
{
    assert_int_equal(error, DW_ERR_CORRUPT);
    assert_non_null(strstr(bench->text, part));
}

static void a_record_that_breaks_the_rule_is_refused(void **state)
{
    struct bench *bench = *state;
    take(bench, of_other(1), DW_RECORD_VOTE_YES, false);
    assert_refused(bench, try_take(bench, of_other(1), DW_RECORD_VOTE_YES, false), "1:1:1 that cannot be");
    assert_refused(bench, try_take(bench, of_other(2), DW_RECORD_NONE, false), "1:1:2 that cannot be");
    assert_refused(bench, try_take(bench, of_other(3), DW_RECORD_END, false), "1:1:3 that cannot be");
    assert_refused(bench, try_take(bench, of_self(4), DW_RECORD_COMMIT, true), "another protocol");
    write_field(bench, ROWS, 0, 1);
    assert_refused(bench, try_take(bench, of_self(5), DW_RECORD_COMMIT, false), "0:1:5 that cannot be");
}

static void a_vote_that_cannot_be_applied_later_is_refused(void **state)
{
    struct bench *bench = *state;
    write_field(bench, ROWS, 0, 1);
    take(bench, of_other(1), DW_RECORD_VOTE_YES, false);
    assert_refused(bench, recovery_finish(&bench->recovery), "1:1:1 that cannot be");
}

/* --- what is kept for the next transactions --- */

static void a_large_write_set_is_not_kept_for_small_ones(void **state)
{
    struct bench *bench = *state;
    struct txn_table *table = bench->runtime.txns;
    struct txn_context *context = txn_table_add(table, of_other(1));
    assert_non_null(context);
    static uint8_t value[256 << 10];
    struct dw_change change = {.value = value, .value_bytes = sizeof value};
    assert_int_equal(dw_redo_add(&context->redo, &change), DW_OK);
    txn_table_remove(table, context);
    context = txn_table_add(table, of_other(2));
    assert_non_null(context);
    assert_int_equal(context->redo.capacity, 0);
    change.value_bytes = 100;
    assert_int_equal(dw_redo_add(&context->redo, &change), DW_OK);
    txn_table_remove(table, context);
    context = txn_table_add(table, of_other(3));
    assert_non_null(context);
    assert_true(context->redo.capacity >= 100);
    assert_int_equal(context->redo.size, 0);
}

static void so_many_transactions_at_once_are_not_kept_for_few(void **state)
{
    struct bench *bench = *state;
    struct txn_table *table = bench->runtime.txns;
    enum { MANY = 5000, KEPT = 1024 };
    for (uint64_t i = 0; i < MANY; i++) {
        struct txn_context *context = txn_table_add(table, of_other(i));
        assert_non_null(context);
        struct dw_change change = {.value = (const uint8_t *)"v", .value_bytes = 1};
        assert_int_equal(dw_redo_add(&context->redo, &change), DW_OK);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        txn_table_remove(table, txn_table_find(table, of_other(i)));
    }
    uint32_t used_before = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        const struct txn_context *context = txn_table_add(table, of_other(i));
        assert_non_null(context);
        used_before += context->redo.capacity > 0;
    }
    assert_int_equal(used_before, KEPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_held_does_not_grow_with_the_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_ends_at_once_is_not_held, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_two_phase_coordinator_holds_no_redo, set_up_two_phase, tear_down),
        cmocka_unit_test_setup_teardown(redo_is_ordered_by_the_votes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(decisions_in_another_order_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_vote_in_doubt_keeps_its_locks_and_its_redo, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_record_that_breaks_the_rule_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_vote_that_cannot_be_applied_later_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_large_write_set_is_not_kept_for_small_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(so_many_transactions_at_once_are_not_kept_for_few, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
