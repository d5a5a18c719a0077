/* Is each access run once, and answered as often as it is asked? "A repeated access is answered, not run
 * again" (docs/design.md, trap 6). A runtime without network: what it would send is read before it is
 * flushed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "compute/slot.h"
#include "workloads/ycsb.h"

enum { LOCKS = 1024, HOUR_US = 1000000000, ROW_BYTES = DW_TABLE_MAX_FIELDS * DW_YCSB_FIELD_BYTES };

/* The last answer that was to be sent. */
struct heard {
    unsigned count;
    uint32_t status;
    struct dw_token token;
    size_t rows;
    size_t row_bytes;
    uint8_t row[ROW_BYTES]; /* the first one */
};

struct bench {
    struct runtime runtime;
    struct runtime_options options;
    struct cluster cluster;
    struct dw_ycsb_parameters parameters;
    struct heard heard;
};

/* Node 0 of two, serving. */
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
    /* Up, as far as links can tell; nothing is ever flushed. */
    runtime->compute[1].conn = (struct dw_conn *)(void *)bench;
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

static void on_answer(void *user, const struct dw_wire_access_reply *reply)
{
    struct heard *heard = user;
    heard->count++;
    heard->status = reply->status;
    heard->token = reply->token;
    heard->rows = reply->row_count;
    heard->row_bytes = reply->row_count > 0 ? reply->rows[0].size : 0;
    assert_true(heard->row_bytes <= sizeof heard->row);
    if (heard->row_bytes > 0) {
        memcpy(heard->row, reply->rows[0].data, heard->row_bytes);
    }
}

static void assert_same_token(const struct dw_token *a, const struct dw_token *b)
{
    assert_int_equal(a->incarnation, b->incarnation);
    assert_int_equal(a->counter, b->counter);
    assert_int_equal(a->accesses, b->accesses);
}

static void assert_same(const struct heard *a, const struct heard *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->row_bytes, b->row_bytes);
    assert_memory_equal(a->row, b->row, sizeof a->row);
    assert_same_token(&a->token, &b->token);
}

/* --- requests of node 1 --- */

static const struct dw_txn_id txn_1 = {.coordinator = 1, .incarnation = 1, .sequence = 1};
static const struct dw_txn_id txn_2 = {.coordinator = 1, .incarnation = 1, .sequence = 2};
static const struct dw_token first = {.accesses = 1};

/* The request's answer, if it gets one. */
static const struct heard *ask(struct bench *bench, struct dw_txn_id txn, struct dw_token token,
                               const struct dw_wire_access *accesses, size_t count)
{
    static const struct dw_batch_visitor visitor = {.access_reply = on_answer};
    struct dw_wire_access_request request = {
        .txn = txn, .from = 1, .token = token, .accesses = accesses, .access_count = count};
    struct outbox *outbox = &bench->runtime.compute[1].accesses;
    struct dw_decoder decoder = {0};
    bench->heard = (struct heard){0};
    executor_on_request(&bench->runtime, &request);
    assert_int_equal(
        dw_decode_batch(&decoder, outbox->bytes.data, outbox->bytes.size, &visitor, &bench->heard, NULL),
        DW_OK);
    dw_decoder_close(&decoder);
    outbox->bytes.size = 0;
    assert_true(bench->heard.count <= 1);
    return &bench->heard;
}

static struct dw_wire_access reading(uint64_t key)
{
    return (struct dw_wire_access){.kind = DW_ACCESS_READ, .key = key};
}

static struct dw_wire_access writing(uint64_t key)
{
    static const uint8_t value[DW_YCSB_FIELD_BYTES] = "after";
    return (struct dw_wire_access){
        .kind = DW_ACCESS_WRITE, .key = key, .value = value, .value_size = sizeof value};
}

static struct dw_token next(const struct heard *heard)
{
    struct dw_token token = heard->token;
    token.accesses++;
    return token;
}

/* The same row goes out twice, though by then the transaction would see its own write. */
static void a_request_that_comes_again_gets_the_same_answer(void **state)
{
    struct bench *bench = *state;
    uint64_t key = dw_ycsb.row_key(bench->runtime.workload_state, 0, 0, 3);
    const struct dw_wire_access both[] = {reading(key), writing(key)};
    struct heard before = *ask(bench, txn_1, first, both, 2);
    assert_int_equal(before.count, 1);
    assert_int_equal(before.status, ACCESS_OK);
    assert_int_equal(before.rows, 2);
    assert_true(before.row_bytes > 0);
    const struct txn_context *context = txn_table_find(bench->runtime.txns, txn_1);
    size_t redo = context->redo.size;
    for (int again = 0; again < 2; again++) {
        const struct heard *heard = ask(bench, txn_1, first, both, 2);
        assert_same(heard, &before);
    }
    assert_int_equal(context->redo.size, redo);
    assert_int_equal(context->token.accesses, 1);
    assert_int_equal(dw_lock_table_used(bench->runtime.locks), 1);
    /* The execution goes on, and what it has is still whole. */
    const struct dw_wire_access other = writing(dw_ycsb.row_key(bench->runtime.workload_state, 0, 0, 4));
    struct dw_token second = next(&before);
    struct heard written = *ask(bench, txn_1, second, &other, 1);
    assert_int_equal(written.status, ACCESS_OK);
    assert_int_equal(written.token.accesses, 2);
    redo = context->redo.size;
    assert_same(ask(bench, txn_1, second, &other, 1), &written);
    assert_int_equal(context->redo.size, redo);
    const struct dw_message vote = {.kind = DW_MSG_VOTE_REQUEST};
    assert_int_equal(executor_execution(context, &vote, &written.token), DW_EXECUTION_WHOLE);
}

/* Whoever sent the second request had heard the answer to the first. */
static void an_older_request_is_left_alone(void **state)
{
    struct bench *bench = *state;
    const struct dw_wire_access read = reading(dw_ycsb.row_key(bench->runtime.workload_state, 0, 0, 3));
    struct heard heard = *ask(bench, txn_1, first, &read, 1);
    heard = *ask(bench, txn_1, next(&heard), &read, 1);
    assert_int_equal(heard.token.accesses, 2);
    assert_int_equal(ask(bench, txn_1, first, &read, 1)->count, 0);
    const struct txn_context *context = txn_table_find(bench->runtime.txns, txn_1);
    assert_int_equal(context->token.accesses, 2);
    assert_false(context->failed);
}

/* Its locks are free since, but a transaction that lost them must not get them back. */
static void a_failed_request_that_comes_again_fails_again(void **state)
{
    struct bench *bench = *state;
    const struct dw_wire_access write = writing(dw_ycsb.row_key(bench->runtime.workload_state, 0, 0, 3));
    assert_int_equal(ask(bench, txn_1, first, &write, 1)->status, ACCESS_OK);
    struct heard refused = *ask(bench, txn_2, first, &write, 1);
    assert_int_equal(refused.status, ACCESS_CONFLICT);
    assert_int_equal(refused.rows, 0);
    dw_lock_release(bench->runtime.locks, txn_1);
    assert_same(ask(bench, txn_2, first, &write, 1), &refused);
    assert_int_equal(dw_lock_table_used(bench->runtime.locks), 0);
    assert_int_equal(ask(bench, txn_2, next(&refused), &write, 1)->status, ACCESS_MISMATCH);
}

/* Not the execution that this node knows: a mismatch, and nothing is run. */
static void another_execution_is_a_mismatch(void **state)
{
    struct bench *bench = *state;
    const struct dw_wire_access read = reading(dw_ycsb.row_key(bench->runtime.workload_state, 0, 0, 3));
    struct heard heard = *ask(bench, txn_1, first, &read, 1);
    struct dw_token tokens[4];
    for (size_t i = 0; i < 4; i++) {
        tokens[i] = next(&heard);
    }
    tokens[0].counter++;
    tokens[1].incarnation++;
    tokens[2].accesses++; /* one is missing before it */
    tokens[3].accesses = 1;
    tokens[3].counter++; /* a repetition, but of what another execution ran */
    for (size_t i = 0; i < 4; i++) {
        const struct heard *answer = ask(bench, txn_1, tokens[i], &read, 1);
        assert_int_equal(answer->count, 1);
        assert_int_equal(answer->status, ACCESS_MISMATCH);
        assert_same_token(&answer->token, &tokens[i]);
    }
    /* Nor does anything but the first request create one. */
    assert_int_equal(ask(bench, txn_2, next(&heard), &read, 1)->status, ACCESS_MISMATCH);
    assert_null(txn_table_find(bench->runtime.txns, txn_2));
}

/* A peer that names more accesses in the repetition than it asked for gets the rows that there are. */
static void a_repetition_is_answered_with_as_many_rows_as_there_are(void **state)
{
    struct bench *bench = *state;
    struct dw_wire_access reads[8];
    for (size_t i = 0; i < 8; i++) {
        reads[i] = reading(dw_ycsb.row_key(bench->runtime.workload_state, 0, 0, i));
    }
    assert_int_equal(ask(bench, txn_1, first, reads, 1)->rows, 1);
    assert_int_equal(ask(bench, txn_1, first, reads, 8)->rows, 1);
    assert_int_equal(dw_lock_table_used(bench->runtime.locks), 1);
}

/* --- the coordinator's side --- */

static void answer_slot(struct bench *bench, enum access_status status, uint32_t number, size_t rows)
{
    static uint8_t bytes[ROW_BYTES];
    struct dw_wire_row row = {.data = bytes,
                              .size = dw_table_row_bytes(dw_ycsb.table(bench->runtime.workload_state, 0))};
    struct dw_wire_access_reply reply = {.id = UINT64_C(1) << 32,
                                         .txn = bench->runtime.load.slots[0].txn,
                                         .status = status,
                                         .token = {.incarnation = 1, .counter = 1, .accesses = number},
                                         .rows = &row,
                                         .row_count = rows};
    load_on_access_reply(&bench->runtime, &reply);
}

/* An answer that comes again may come while the next one is awaited. */
static void the_answer_to_another_request_is_not_taken(void **state)
{
    struct bench *bench = *state;
    struct slot *slot = bench->runtime.load.slots;
    assert_int_equal(load_begin(&bench->runtime, 0, HOUR_US), DW_OK);
    load_tick(&bench->runtime);
    assert_int_equal(slot->waiting, dw_node_bit(1));
    slot->tokens[1].accesses = 2; /* as if this were the second request */
    answer_slot(bench, ACCESS_OK, 1, 1);
    answer_slot(bench, ACCESS_MISMATCH, 1, 0);
    assert_int_equal(slot->state, SLOT_EXECUTING);
    assert_int_equal(slot->waiting, dw_node_bit(1));
    answer_slot(bench, ACCESS_OK, 2, 1);
    assert_int_equal(slot->state, SLOT_ANSWERED);
    assert_int_equal(slot->outcome, DW_OUTCOME_COMMITTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_that_comes_again_gets_the_same_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_older_request_is_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_request_that_comes_again_fails_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_execution_is_a_mismatch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_repetition_is_answered_with_as_many_rows_as_there_are, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_answer_to_another_request_is_not_taken, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
