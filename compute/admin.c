/* Unary calls of a compute node: who it is, what it does, its load. Answers are JSON objects but for
 * Identify. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "compute/runtime.h"
#include "wire/admin.h"
#include "wire/steer.h"

static void refuse(struct dw_unary_call *call, enum dw_error error, const char *text)
{
    struct dw_unary_reply reply = {.error = error};
    snprintf(reply.text, sizeof reply.text, "%s", text);
    dw_unary_finish(call, &reply);
}

/* Answers with the buffer, which it takes, or with the error of encoding it. */
static void answer(struct dw_unary_call *call, enum dw_error error, struct dw_buffer *buffer)
{
    if (error != DW_OK) {
        dw_buffer_free(buffer);
        refuse(call, error, dw_error_text(error));
        return;
    }
    struct dw_unary_reply reply = {.data = buffer->data, .size = buffer->size};
    dw_unary_finish(call, &reply);
}

/* Sends what was printed to `file`, a memory stream on *json, and frees both. */
static void finish_json(struct dw_unary_call *call, FILE *file, char **json)
{
    struct dw_buffer buffer = {0};
    fclose(file);
    answer(call, dw_steer_encode_json(&buffer, *json), &buffer);
    free(*json);
}

static const char *load_state_name(enum load_state state)
{
    static const char *const names[] = {"idle", "warmup", "measuring", "draining", "done"};
    return names[state];
}

struct doubt {
    uint64_t in_doubt;
    uint64_t blocked;
};

static void count_doubt(void *user, struct txn_context *context)
{
    struct doubt *doubt = user;
    doubt->in_doubt += dw_txn_in_doubt(&context->machine);
    doubt->blocked += dw_txn_has(&context->machine, DW_TXN_BLOCKED);
}

static uint64_t all_alarms(const struct stats *stats)
{
    uint64_t sum = 0;
    for (unsigned alarm = 0; alarm <= DW_ALARM_DISAGREEMENT; alarm++) {
        sum += stats->alarms[alarm];
    }
    return sum;
}

static void print_refused(const struct refusals *refused, FILE *file)
{
    fprintf(file, "\"refused\":{\"accesses\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"batches\":%" PRIu64 "}",
            refused->accesses, refused->messages, refused->batches);
}

static void status(struct runtime *runtime, struct dw_unary_call *call, FILE *file, char **json)
{
    struct stats *stats = &runtime->stats;
    struct doubt doubt = {0};
    txn_table_each(runtime->txns, count_doubt, &doubt);
    fprintf(file,
            "{\"node\":%u,\"state\":\"%s\",\"incarnation\":%u,\"protocol\":\"%s\",\"committed\":%" PRIu64
            ",\"aborted\":%" PRIu64 ",\"unknown\":%" PRIu64 ",\"in_doubt\":%" PRIu64 ",\"blocked\":%" PRIu64
            ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"peers_up\":%u,\"peers\":%u,\"alarms\":%" PRIu64
            ",\"transactions\":%zu,",
            runtime->options->node, load_state_name(runtime->load.state), runtime->node.incarnation,
            runtime->options->protocol->name, stats->all_committed, stats->all_aborted, stats->all_unknown,
            doubt.in_doubt, doubt.blocked, (double)dw_histogram_percentile_ns(&stats->recent, 50) / 1000.0,
            (double)dw_histogram_percentile_ns(&stats->recent, 99) / 1000.0, links_count_up(runtime),
            runtime->cluster->compute_nodes - 1 + runtime->cluster->storage_nodes, all_alarms(stats),
            txn_table_count(runtime->txns));
    print_refused(&runtime->refused, file);
    fprintf(file, "}");
    memset(&stats->recent, 0, sizeof stats->recent);
    finish_json(call, file, json);
}

static void report(struct runtime *runtime, struct dw_unary_call *call, FILE *file, char **json)
{
    fprintf(file, "{\"node\":%u,\"state\":\"%s\",", runtime->options->node,
            load_state_name(runtime->load.state));
    stats_print_report(&runtime->stats, file);
    fprintf(file, ",");
    print_refused(&runtime->refused, file);
    fprintf(file, "}");
    finish_json(call, file, json);
}

static void begin(struct runtime *runtime, struct dw_unary_call *call, const uint8_t *data, size_t size)
{
    enum { DAY_MS = 86400000 };
    struct dw_steer_begin request;
    struct dw_buffer buffer = {0};
    uint32_t peers = runtime->cluster->compute_nodes - 1 + runtime->cluster->storage_nodes;
    if (dw_steer_decode_begin(data, size, &request) != DW_OK || request.warmup_ms > DAY_MS ||
        request.duration_ms > DAY_MS || request.duration_ms == 0) {
        refuse(call, DW_ERR_RANGE, "begin takes a warm-up of up to a day, and a duration from 1 ms to a day");
    } else if (links_count_up(runtime) < peers) {
        refuse(call, DW_ERR_CLOSED, "not all peers are connected yet; look at status, and try again");
    } else if (load_begin(runtime, request.warmup_ms * 1000, request.duration_ms * 1000) != DW_OK) {
        refuse(call, DW_ERR_ARGUMENT, "a load is running already; wait until status says done");
    } else {
        answer(call, dw_steer_encode_json(&buffer, "{\"state\":\"warmup\"}"), &buffer);
    }
}

static void identify(struct runtime *runtime, struct dw_unary_call *call)
{
    struct dw_admin_identity identity = {
        .role = "compute", .node = runtime->options->node, .version = DW_VERSION, .pid = (uint64_t)getpid()};
    struct dw_buffer buffer = {0};
    snprintf(identity.run_id, sizeof identity.run_id, "%s", runtime->options->run_id);
    answer(call, dw_admin_encode_identity(&buffer, &identity), &buffer);
}

static void print_failpoints(const struct failpoints *failpoints, FILE *file)
{
    fprintf(file, "{");
    for (unsigned point = 0; point < FAILPOINT_COUNT; point++) {
        fprintf(file, "%s\"%s\":{\"action\":%u,\"hits\":%u}", point ? "," : "",
                failpoint_name((enum failpoint)point), (unsigned)failpoints->points[point].action,
                failpoints->points[point].hits);
    }
    fprintf(file, "}");
}

/* A digest of all rows that were loaded here, as they are now: equal states have equal digests. Rows are
 * added up, so their order does not matter. */
static uint64_t digest_rows(struct runtime *runtime)
{
    const struct dw_workload *workload = runtime->options->workload;
    uint32_t node = runtime->options->node;
    uint64_t sum = 0;
    for (uint32_t table = 0; table < workload->table_count(runtime->workload_state); table++) {
        size_t row_bytes = dw_table_row_bytes(workload->table(runtime->workload_state, table));
        uint8_t *row = malloc(row_bytes);
        uint64_t rows = row != NULL ? workload->row_count(runtime->workload_state, table, node) : 0;
        for (uint64_t i = 0; i < rows; i++) {
            uint64_t key = workload->row_key(runtime->workload_state, table, node, i);
            if (runtime->engine->ops->read(runtime->engine, table, key, row) == DW_OK) {
                sum += XXH3_64bits_withSeed(row, row_bytes, key ^ ((uint64_t)table << 56));
            }
        }
        free(row);
    }
    return sum;
}

static void digest(struct runtime *runtime, struct dw_unary_call *call, FILE *file, char **json)
{
    fprintf(file, "{\"node\":%u,\"digest\":\"%016" PRIx64 "\",\"transactions\":%zu,\"locks\":%u}",
            runtime->options->node, digest_rows(runtime), txn_table_count(runtime->txns),
            dw_lock_table_used(runtime->locks));
    finish_json(call, file, json);
}

static void set_failpoint(struct runtime *runtime, struct dw_unary_call *call, const uint8_t *data,
                          size_t size, FILE *file, char **json)
{
    struct failpoints *failpoints = &runtime->failpoints;
    char spec[DW_STEER_SPEC], text[256] = "the request is malformed";
    enum dw_error error = dw_steer_decode_failpoint(data, size, spec);
    if (error == DW_OK && *spec != '\0') {
        error = failpoints_set(failpoints, spec, text, sizeof text);
    }
    if (error != DW_OK) {
        fclose(file);
        free(*json);
        refuse(call, error, text);
        return;
    }
    print_failpoints(failpoints, file);
    finish_json(call, file, json);
}

void admin_on_unary(void *user, struct dw_unary_call *call, const char *method, const uint8_t *data,
                    size_t size)
{
    struct runtime *runtime = user;
    if (strcmp(method, DW_METHOD_IDENTIFY) == 0) {
        identify(runtime, call);
        return;
    }
    if (strcmp(method, DW_METHOD_BEGIN) == 0) {
        begin(runtime, call, data, size);
        return;
    }
    if (strcmp(method, DW_METHOD_SHUTDOWN) == 0) {
        struct dw_buffer nothing = {0};
        answer(call, DW_OK, &nothing);
        kill(getpid(), SIGTERM);
        return;
    }
    char *json = NULL;
    size_t json_size = 0;
    FILE *file = open_memstream(&json, &json_size);
    if (file == NULL) {
        refuse(call, DW_ERR_MEMORY, "out of memory");
    } else if (strcmp(method, DW_METHOD_STATUS) == 0) {
        status(runtime, call, file, &json);
    } else if (strcmp(method, DW_METHOD_REPORT) == 0) {
        report(runtime, call, file, &json);
    } else if (strcmp(method, DW_METHOD_DIGEST) == 0) {
        digest(runtime, call, file, &json);
    } else if (strcmp(method, DW_METHOD_FAILPOINT) == 0) {
        set_failpoint(runtime, call, data, size, file, &json);
    } else {
        fclose(file);
        free(json);
        refuse(call, DW_ERR_MISSING,
               "a compute node answers Identify, Status, Begin, Report, Digest, Failpoint, Shutdown");
    }
}
