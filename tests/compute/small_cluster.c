#include "small_cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKS = 1 << 14, ENTRIES = 1 << 18, MINUTE_US = 60000000, START_US = 5000000 };

/* --- time --- */

static struct {
    uint64_t now_us;
    uint64_t step_us;
    uint64_t skew_us; /* of the node that runs */
} virtual_clock;

uint64_t __wrap_dw_rpc_now_us(void);
uint64_t __wrap_dw_rpc_now_us(void)
{
    virtual_clock.now_us += virtual_clock.step_us;
    return virtual_clock.now_us + virtual_clock.skew_us;
}

uint64_t small_now_us(void)
{
    return virtual_clock.now_us;
}

void small_set_step_us(uint64_t step_us)
{
    virtual_clock.step_us = step_us;
}

/* --- the log --- */

static struct dw_entry *find_entry(struct small_cluster *cluster, uint32_t log, struct dw_txn_id txn)
{
    size_t at = (dw_txn_id_hash(txn) + log) % ENTRIES;
    struct small_log_entry *entry = &cluster->entries[at];
    while (entry->txn.incarnation != 0 && !(dw_txn_id_equal(entry->txn, txn) && entry->log == log)) {
        at = (at + 1) % ENTRIES;
        entry = &cluster->entries[at];
    }
    entry->txn = txn;
    entry->log = log;
    return &entry->entry;
}

static void on_log_request(void *user, const struct dw_wire_log_request *wire)
{
    struct small_cluster *cluster = user;
    const struct dw_log_request *request = &wire->request;
    struct dw_entry *entry = find_entry(cluster, request->log, request->txn);
    struct dw_log_verdict verdict = dw_log_rule(entry, 1, request);
    entry->state = verdict.state;
    if (verdict.append != DW_RECORD_NONE) {
        cluster->position++;
        entry->first = entry->first != 0 ? entry->first : cluster->position;
        cluster->tally.log_writes += verdict.append != DW_RECORD_END;
    }
    struct dw_wire_log_reply reply = {.reply = {.txn = request->txn,
                                                .log = request->log,
                                                .ask = request->ask,
                                                .answer = verdict.answer,
                                                .position = entry->first}};
    assert_int_equal(dw_encode_log_reply(&cluster->inbox[request->writer], &reply), DW_OK);
}

/* --- nodes --- */

static void on_log_reply(void *user, const struct dw_wire_log_reply *reply)
{
    driver_on_log_reply(user, reply);
}

static void on_commit_message(void *user, const struct dw_message *message, const struct dw_token *token)
{
    driver_on_message(user, message, token);
}

static void on_access_request(void *user, const struct dw_wire_access_request *request)
{
    executor_on_request(user, request);
}

static void on_access_reply(void *user, const struct dw_wire_access_reply *reply)
{
    load_on_access_reply(user, reply);
}

static void enter(const struct small_cluster *cluster, uint32_t node)
{
    virtual_clock.skew_us = cluster->skew_us[node];
}

static void deliver(struct small_cluster *cluster, uint32_t to, const struct dw_buffer *bytes)
{
    static const struct dw_batch_visitor visitor = {.log_reply = on_log_reply,
                                                    .message = on_commit_message,
                                                    .access_request = on_access_request,
                                                    .access_reply = on_access_reply};
    struct runtime *runtime = &cluster->nodes[to];
    enter(cluster, to);
    runtime->now_us = dw_rpc_now_us();
    runtime->cancelled_count = 0;
    assert_int_equal(dw_decode_batch(&runtime->decoder, bytes->data, bytes->size, &visitor, runtime, NULL),
                     DW_OK);
}

void small_open(struct small_cluster *cluster, uint32_t nodes, const char *protocol)
{
    memset(cluster, 0, sizeof *cluster);
    virtual_clock.now_us = START_US;
    virtual_clock.step_us = virtual_clock.skew_us = 0;
    cluster->count = nodes;
    cluster->addresses = (struct cluster){.compute_nodes = nodes, .storage_nodes = 1};
    cluster->entries = calloc(ENTRIES, sizeof *cluster->entries);
    assert_non_null(cluster->entries);
    dw_ycsb.defaults(&cluster->parameters);
    cluster->parameters.records = 10000;
    cluster->parameters.record_bytes = DW_YCSB_FIELD_BYTES;
    cluster->parameters.accesses = 4;
    cluster->parameters.distributed_pct = 100;
    for (uint32_t i = 0; i < nodes; i++) {
        cluster->options[i] = (struct runtime_options){.node = i,
                                                       .protocol = dw_protocol_find(protocol),
                                                       .threads = 1,
                                                       .workload = &dw_ycsb,
                                                       .seed = 1,
                                                       .request_timeout_us = MINUTE_US,
                                                       .retry_backoff_us = 1000,
                                                       .batch_accesses = true};
        for (unsigned timer = 0; timer <= DW_TIMER_FINISH; timer++) {
            cluster->options[i].timeout_us[timer] = MINUTE_US;
        }
    }
}

static void start_node(struct small_cluster *cluster, uint32_t node)
{
    struct runtime *runtime = &cluster->nodes[node];
    struct dw_deployment deployment = {.compute_nodes = cluster->count, .seed = 1};
    enter(cluster, node);
    runtime->options = &cluster->options[node];
    runtime->cluster = &cluster->addresses;
    runtime->workload_state = calloc(1, dw_ycsb.state_bytes);
    runtime->lock_memory = aligned_alloc(64, (dw_lock_table_bytes(LOCKS) + 63) / 64 * 64);
    runtime->txns = txn_table_open();
    assert_true(runtime->workload_state != NULL && runtime->lock_memory != NULL && runtime->txns != NULL);
    runtime->locks = dw_lock_table_init(runtime->lock_memory, LOCKS);
    runtime->node = (struct dw_node){.slot = node, .incarnation = 1, .state = DW_NODE_SERVING};
    dw_ycsb.init(runtime->workload_state, &cluster->parameters, &deployment);
    assert_int_equal(dw_engine_open("memory", &runtime->engine), DW_OK);
    assert_int_equal(dw_engine_load(runtime->engine, &dw_ycsb, runtime->workload_state, node), DW_OK);
    assert_int_equal(load_open(runtime), DW_OK);
    /* Never used as connections: what is queued for a peer that has one is taken from its buffer. */
    runtime->storage[0].conn = (struct dw_conn *)(void *)cluster;
    for (uint32_t i = 0; i < cluster->count; i++) {
        runtime->compute[i].conn = i == node ? NULL : (struct dw_conn *)(void *)cluster;
    }
}

void small_start(struct small_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        start_node(cluster, i);
    }
}

void small_close(struct small_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        struct runtime *runtime = &cluster->nodes[i];
        load_close(runtime);
        links_close(runtime);
        timers_close(&runtime->timers);
        dw_decoder_close(&runtime->decoder);
        txn_table_close(runtime->txns);
        runtime->engine->ops->close(runtime->engine);
        free(runtime->lock_memory);
        free(runtime->workload_state);
        dw_buffer_free(&cluster->inbox[i]);
    }
    free(cluster->entries);
    memset(cluster, 0, sizeof *cluster);
}

/* --- hops --- */

static struct dw_buffer take(struct dw_buffer *buffer)
{
    struct dw_buffer taken = *buffer;
    *buffer = (struct dw_buffer){0};
    return taken;
}

/* Accesses and messages as one, as a flush joins them. */
static struct dw_buffer take_joined(struct peer *peer)
{
    struct dw_buffer messages = take(&peer->messages.bytes);
    struct dw_buffer joined = take(&peer->accesses.bytes);
    if (messages.size > 0) {
        uint8_t *room = dw_buffer_reserve(&joined, messages.size);
        assert_non_null(room);
        memcpy(room, messages.data, messages.size);
        joined.size += messages.size;
    }
    dw_buffer_free(&messages);
    return joined;
}

static void tally_message(void *user, const struct dw_message *message, const struct dw_token *token)
{
    struct small_cluster *cluster = user;
    (void)token;
    cluster->tally.messages += message->kind != DW_MSG_ACK;
}

static void ignore_request(void *user, const struct dw_wire_access_request *request)
{
    (void)user;
    (void)request;
}

static void ignore_reply(void *user, const struct dw_wire_access_reply *reply)
{
    (void)user;
    (void)reply;
}

static void decode(struct small_cluster *cluster, const struct dw_batch_visitor *visitor,
                   const struct dw_buffer *bytes)
{
    struct dw_decoder decoder = {0};
    assert_int_equal(dw_decode_batch(&decoder, bytes->data, bytes->size, visitor, cluster, NULL), DW_OK);
    dw_decoder_close(&decoder);
}

static void pass_on(struct small_cluster *cluster, uint32_t from, uint32_t to, struct dw_buffer *bytes)
{
    static const struct dw_batch_visitor tally = {
        .message = tally_message, .access_request = ignore_request, .access_reply = ignore_reply};
    if (bytes->size > 0 && !cluster->mute[from]) {
        decode(cluster, &tally, bytes);
        deliver(cluster, to, bytes);
    }
    dw_buffer_free(bytes);
}

static void serve_log(struct small_cluster *cluster, struct dw_buffer *bytes)
{
    static const struct dw_batch_visitor log = {.log_request = on_log_request};
    if (bytes->size > 0 && !cluster->log_is_silent) {
        decode(cluster, &log, bytes);
    }
    dw_buffer_free(bytes);
}

/* What is due now; a node asks again at once when it says so, but time stands still. */
static void tick(struct small_cluster *cluster, uint32_t node)
{
    struct runtime *runtime = &cluster->nodes[node];
    enter(cluster, node);
    for (unsigned turn = 0; turn < 3; turn++) {
        runtime->now_us = dw_rpc_now_us();
        driver_on_timers(runtime);
        if (load_tick(runtime) > runtime->now_us) {
            return;
        }
    }
}

void small_hop(struct small_cluster *cluster)
{
    struct dw_buffer sent[SMALL_MAX_NODES][SMALL_MAX_NODES], asked[SMALL_MAX_NODES], answers[SMALL_MAX_NODES];
    virtual_clock.now_us += SMALL_HOP_US;
    for (uint32_t i = 0; i < cluster->count; i++) {
        asked[i] = take(&cluster->nodes[i].storage[0].messages.bytes);
        answers[i] = take(&cluster->inbox[i]);
        for (uint32_t j = 0; j < cluster->count; j++) {
            sent[i][j] = take_joined(&cluster->nodes[i].compute[j]);
        }
    }
    for (uint32_t i = 0; i < cluster->count; i++) {
        if (answers[i].size > 0) {
            deliver(cluster, i, &answers[i]);
        }
        dw_buffer_free(&answers[i]);
        for (uint32_t j = 0; j < cluster->count; j++) {
            pass_on(cluster, j, i, &sent[j][i]);
        }
        serve_log(cluster, &asked[i]);
    }
    for (uint32_t i = 0; i < cluster->count; i++) {
        tick(cluster, i);
    }
}

void small_begin(struct small_cluster *cluster, uint64_t warmup_us, uint64_t duration_us)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        enter(cluster, i);
        assert_int_equal(load_begin(&cluster->nodes[i], warmup_us, duration_us), DW_OK);
    }
}

void small_run(struct small_cluster *cluster, enum load_state state)
{
    bool all = false;
    while (!all) {
        small_hop(cluster);
        all = true;
        for (uint32_t i = 0; i < cluster->count; i++) {
            all = all && cluster->nodes[i].load.state >= state;
        }
    }
}

uint64_t small_sum_at(const struct small_cluster *cluster, size_t offset)
{
    uint64_t sum = 0, one;
    for (uint32_t i = 0; i < cluster->count; i++) {
        memcpy(&one, (const char *)&cluster->nodes[i].stats + offset, sizeof one);
        sum += one;
    }
    return sum;
}

uint32_t small_locks(const struct small_cluster *cluster)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        sum += dw_lock_table_used(cluster->nodes[i].locks);
    }
    return sum;
}
