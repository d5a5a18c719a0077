#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "storage/bench_log.h"

uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool bench_client_open(struct bench_client *client, const struct bench_options *options)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    *client = (struct bench_client){
        .options = options,
        .redo = calloc(1, options->bytes + 1),
        .sequence = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec,
        .exit_code = -1,
    };
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->changed, NULL);
    return client->redo != NULL;
}

void bench_client_close(struct bench_client *client)
{
    free(client->redo);
    dw_decoder_close(&client->decoder);
    dw_buffer_free(&client->requests);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->mutex);
}

/* True if this call ended the run. */
static bool end(struct bench_client *client, int exit_code)
{
    pthread_mutex_lock(&client->mutex);
    bool first = client->exit_code < 0;
    if (first) {
        client->exit_code = exit_code;
    }
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->mutex);
    return first;
}

void bench_finish(struct bench_client *client, int exit_code)
{
    (void)end(client, exit_code);
}

bool bench_finished(struct bench_client *client)
{
    pthread_mutex_lock(&client->mutex);
    bool finished = client->exit_code >= 0;
    pthread_mutex_unlock(&client->mutex);
    return finished;
}

void bench_fail(struct bench_client *client, const char *what, const char *why)
{
    if (end(client, BENCH_ENVIRONMENT)) {
        fprintf(stderr, "dogwood-bench-log: %s: %s\n", what, why);
    }
}

static int wait_for_end(struct bench_client *client)
{
    pthread_mutex_lock(&client->mutex);
    while (client->exit_code < 0) {
        pthread_cond_wait(&client->changed, &client->mutex);
    }
    int exit_code = client->exit_code;
    pthread_mutex_unlock(&client->mutex);
    return exit_code;
}

int bench_client_run(struct bench_client *client, const struct dw_rpc_handlers *handlers, void *user,
                     struct dw_conn **conns, size_t count)
{
    const struct dw_identity node = {.role = DW_ROLE_STORAGE, .node = client->options->node};
    struct dw_rpc_options options = {.self = {.role = DW_ROLE_CLIENT}, .handlers = *handlers, .user = user};
    char text[256];
    snprintf(options.self.run_id, sizeof options.self.run_id, "%s", client->options->run_id);
    if (dw_rpc_start(&options, &client->rpc, text, sizeof text) != DW_OK) {
        fprintf(stderr, "dogwood-bench-log: %s\n", text);
        return BENCH_ENVIRONMENT;
    }
    enum dw_error error = DW_OK;
    for (size_t i = 0; i < count && error == DW_OK; i++) {
        error = dw_rpc_connect(client->rpc, client->options->address, &node, &conns[i]);
    }
    if (error != DW_OK) {
        bench_fail(client, client->options->address, dw_error_text(error));
    }
    int exit_code = wait_for_end(client);
    dw_rpc_stop(client->rpc);
    return exit_code;
}

void bench_add_request(struct bench_client *client, uint64_t slot, enum dw_ask ask)
{
    bool carries_redo = ask == DW_ASK_VOTE || ask == DW_ASK_COMMIT_LOCAL;
    uint32_t log = client->options->log;
    struct dw_wire_log_request request = {
        .id = slot,
        .request = {.txn = {.coordinator = log, .incarnation = 1, .sequence = client->sequence++},
                    .log = log,
                    .writer = log,
                    .incarnation = 1,
                    .ask = ask},
        .participants = ask == DW_ASK_VOTE ? dw_node_bit(log) : 0,
        .redo = carries_redo ? client->redo : NULL,
        .redo_size = carries_redo ? client->options->bytes : 0,
        .force = true,
    };
    enum dw_error error = dw_encode_log_request(&client->requests, &request);
    if (error != DW_OK) {
        bench_fail(client, "encoding a request failed", dw_error_text(error));
    }
    client->sent_ns[slot] = client->now_ns;
}

void bench_send(struct bench_client *client, struct dw_conn *conn)
{
    if (client->requests.size > 0) {
        enum dw_error error = dw_conn_send(conn, client->requests.data, client->requests.size);
        if (error != DW_OK) {
            bench_fail(client, "sending failed", dw_error_text(error));
        }
    }
    client->requests.size = 0;
}

enum dw_error bench_receive(struct bench_client *client, const uint8_t *data, size_t size,
                            void (*on_reply)(void *user, const struct dw_wire_log_reply *reply), void *user)
{
    const struct dw_batch_visitor visitor = {.log_reply = on_reply};
    client->now_ns = bench_now_ns();
    return dw_decode_batch(&client->decoder, data, size, &visitor, user, NULL);
}

static double percentile_us(const struct dw_histogram *histogram, double percent)
{
    return (double)dw_histogram_percentile_ns(histogram, percent) / 1e3;
}

void bench_print_times(const struct dw_histogram *histogram)
{
    printf("\"count\": %" PRIu64 ", \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, "
           "\"p999_us\": %.1f, \"max_us\": %.1f, \"mean_us\": %.1f",
           histogram->count, percentile_us(histogram, 50), percentile_us(histogram, 90),
           percentile_us(histogram, 99), percentile_us(histogram, 99.9), (double)histogram->max_ns / 1e3,
           dw_histogram_mean_ns(histogram) / 1e3);
}

void bench_print_answers(const uint64_t answers[DW_ANSWERS])
{
    const char *comma = "";
    printf("\"answers\": {");
    for (unsigned answer = 0; answer < DW_ANSWERS; answer++) {
        if (answers[answer] > 0) {
            printf("%s\"%s\": %" PRIu64, comma, dw_answer_name((enum dw_answer)answer), answers[answer]);
            comma = ", ";
        }
    }
    printf("}");
}

void bench_print_buckets(const struct dw_histogram *histogram)
{
    struct dw_histogram_bucket bucket;
    size_t cursor = 0;
    const char *comma = "";
    printf("\"buckets\": [");
    while (dw_histogram_next(histogram, &cursor, &bucket)) {
        printf("%s[%.3f, %" PRIu64 "]", comma, bucket.low_us, bucket.count);
        comma = ", ";
    }
    printf("]");
}
