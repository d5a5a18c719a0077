#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/histogram.h"
#include "rpc/bench_stream.h"
#include "rpc/rpc.h"
#include "wire/codec.h"

enum { EXIT_ENVIRONMENT = 3, WARM_UP_US = 200000, CONNECT_US = 5000000 };

/* A depth is warmed up, measured, and then its requests are awaited without new ones. */
enum phase { WAITING, WARMING, MEASURING, EMPTYING, DONE };

/* All but the last three fields belong to the loop thread. */
struct bench {
    const struct bench_options *options;
    struct dw_conn *conn;
    struct dw_decoder decoder;
    struct dw_buffer requests;
    uint8_t *redo;
    enum phase phase;
    size_t depth_index;
    uint32_t in_flight;
    uint64_t change_us; /* when the phase ends; UINT64_MAX: not by time */
    uint64_t begin_ns;
    uint64_t elapsed_ns;
    uint64_t messages;
    struct dw_histogram histogram;
    uint64_t *sent_ns; /* by slot, which is the request's id */
    uint64_t batch_ns;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int exit_code; /* -1 while running */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void finish(struct bench *bench, int exit_code)
{
    bench->phase = DONE;
    bench->change_us = UINT64_MAX;
    pthread_mutex_lock(&bench->mutex);
    bench->exit_code = exit_code;
    pthread_cond_signal(&bench->changed);
    pthread_mutex_unlock(&bench->mutex);
}

static void add_request(struct bench *bench, uint64_t slot)
{
    struct dw_wire_log_request request = {
        .id = slot,
        .request = {.txn = {.coordinator = 1, .incarnation = 1, .sequence = slot},
                    .log = 1,
                    .writer = 1,
                    .incarnation = 1,
                    .ask = DW_ASK_VOTE},
        .participants = 3,
        .redo = bench->redo,
        .redo_size = bench->options->bytes,
        .force = true,
    };
    if (dw_encode_log_request(&bench->requests, &request) != DW_OK) {
        fprintf(stderr, "dogwood-bench-stream: out of memory\n");
        finish(bench, EXIT_ENVIRONMENT);
        return;
    }
    bench->sent_ns[slot] = bench->batch_ns;
    bench->in_flight++;
}

static void send_requests(struct bench *bench)
{
    if (bench->requests.size > 0 && bench->phase != DONE) {
        enum dw_error error = dw_conn_send(bench->conn, bench->requests.data, bench->requests.size);
        if (error != DW_OK) {
            fprintf(stderr, "dogwood-bench-stream: sending failed: %s\n", dw_error_text(error));
            finish(bench, EXIT_ENVIRONMENT);
        }
    }
    bench->requests.size = 0;
}

static void begin_depth(struct bench *bench)
{
    bench->phase = WARMING;
    bench->change_us = dw_rpc_now_us() + WARM_UP_US;
    bench->batch_ns = now_ns();
    for (uint32_t slot = 0; slot < bench->options->depths[bench->depth_index]; slot++) {
        add_request(bench, slot);
    }
    send_requests(bench);
}

static void report(const struct bench *bench)
{
    const struct dw_histogram *histogram = &bench->histogram;
    double seconds = (double)bench->elapsed_ns / 1e9;
    printf(
        "{\"bench\": \"stream\", \"depth\": %u, \"bytes\": %u, \"seconds\": %.3f, \"requests\": %" PRIu64
        ", \"requests_per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"requests_per_message\": %.1f}\n",
        bench->options->depths[bench->depth_index], bench->options->bytes, seconds, histogram->count,
        (double)histogram->count / seconds, (double)dw_histogram_percentile_ns(histogram, 50) / 1e3,
        (double)dw_histogram_percentile_ns(histogram, 99) / 1e3,
        bench->messages > 0 ? (double)histogram->count / (double)bench->messages : 0);
    fflush(stdout);
}

/* The last request of a depth is back. */
static void next_depth(struct bench *bench)
{
    report(bench);
    bench->depth_index++;
    if (bench->depth_index < bench->options->depth_count) {
        begin_depth(bench);
    } else {
        finish(bench, 0);
    }
}

static uint64_t on_tick(void *user, uint64_t now_us)
{
    struct bench *bench = user;
    if (now_us < bench->change_us) {
        return bench->change_us;
    }
    if (bench->phase == WAITING) {
        fprintf(stderr, "dogwood-bench-stream: no server at %s; start one with --listen\n",
                bench->options->address);
        finish(bench, EXIT_ENVIRONMENT);
    } else if (bench->phase == WARMING) {
        bench->phase = MEASURING;
        bench->histogram = (struct dw_histogram){0};
        bench->messages = 0;
        bench->begin_ns = now_ns();
        bench->change_us = now_us + (uint64_t)(bench->options->seconds * 1e6);
    } else if (bench->phase == MEASURING) {
        bench->phase = EMPTYING;
        bench->elapsed_ns = now_ns() - bench->begin_ns;
        bench->change_us = UINT64_MAX;
    }
    return bench->change_us;
}

static void on_reply(void *user, const struct dw_wire_log_reply *reply)
{
    struct bench *bench = user;
    if (reply->id >= BENCH_MAX_DEPTH || bench->phase == DONE) {
        return;
    }
    bench->in_flight--;
    if (bench->phase == MEASURING) {
        dw_histogram_add(&bench->histogram, bench->batch_ns - bench->sent_ns[reply->id]);
    }
    if (bench->phase == WARMING || bench->phase == MEASURING) {
        add_request(bench, reply->id);
    }
}

static enum dw_error on_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    static const struct dw_batch_visitor visitor = {.log_reply = on_reply};
    struct bench *bench = user;
    (void)conn;
    /* One reading of the clock for a batch: its replies are processed together, its requests leave together.
     */
    bench->batch_ns = now_ns();
    bench->messages++;
    enum dw_error error = dw_decode_batch(&bench->decoder, data, size, &visitor, bench, NULL);
    send_requests(bench);
    if (bench->phase == EMPTYING && bench->in_flight == 0) {
        next_depth(bench);
    }
    return error;
}

static void on_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    struct bench *bench = user;
    (void)peer;
    bench->conn = conn;
    begin_depth(bench);
}

static void on_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    struct bench *bench = user;
    (void)conn;
    if (bench->phase != DONE && (bench->phase != WAITING || error == DW_ERR_REFUSED)) {
        fprintf(stderr, "dogwood-bench-stream: %s\n", text);
        finish(bench, EXIT_ENVIRONMENT);
    }
}

static int run(struct bench *bench)
{
    static const struct dw_identity server = {.role = DW_ROLE_STORAGE};
    char text[256];
    struct dw_rpc *rpc = NULL;
    struct dw_conn *conn = NULL;
    struct dw_rpc_options options = {
        .self = {.role = DW_ROLE_CLIENT, .run_id = BENCH_RUN_ID},
        .handlers = {.on_up = on_up, .on_message = on_message, .on_down = on_down, .on_tick = on_tick},
        .user = bench};
    if (dw_rpc_start(&options, &rpc, text, sizeof text) != DW_OK) {
        fprintf(stderr, "dogwood-bench-stream: %s\n", text);
        return EXIT_ENVIRONMENT;
    }
    enum dw_error error = dw_rpc_connect(rpc, bench->options->address, &server, &conn);
    if (error != DW_OK) {
        fprintf(stderr, "dogwood-bench-stream: \"%s\": %s\n", bench->options->address, dw_error_text(error));
        dw_rpc_stop(rpc);
        return EXIT_ENVIRONMENT;
    }
    pthread_mutex_lock(&bench->mutex);
    while (bench->exit_code < 0) {
        pthread_cond_wait(&bench->changed, &bench->mutex);
    }
    int exit_code = bench->exit_code;
    pthread_mutex_unlock(&bench->mutex);
    dw_rpc_stop(rpc);
    return exit_code;
}

int bench_client(const struct bench_options *options)
{
    struct bench bench = {.options = options, .change_us = dw_rpc_now_us() + CONNECT_US, .exit_code = -1};
    int exit_code = EXIT_ENVIRONMENT;
    pthread_mutex_init(&bench.mutex, NULL);
    pthread_cond_init(&bench.changed, NULL);
    bench.redo = calloc(1, options->bytes + 1);
    bench.sent_ns = calloc(BENCH_MAX_DEPTH, sizeof *bench.sent_ns);
    if (bench.redo != NULL && bench.sent_ns != NULL) {
        exit_code = run(&bench);
    }
    free(bench.redo);
    free(bench.sent_ns);
    dw_decoder_close(&bench.decoder);
    dw_buffer_free(&bench.requests);
    pthread_cond_destroy(&bench.changed);
    pthread_mutex_destroy(&bench.mutex);
    return exit_code;
}
