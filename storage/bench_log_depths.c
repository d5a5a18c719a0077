#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/bench_log.h"

enum { CONNECT_US = 5000000 };

/* A depth is warmed up, measured, and then its requests are awaited without new ones. */
enum phase { WAITING, WARMING, MEASURING, EMPTYING, DONE };

struct depths {
    struct bench_client client;
    struct dw_conn *conns[BENCH_MAX_STREAMS]; /* a slot's requests always take the same one, in turn */
    uint32_t up;
    enum phase phase;
    size_t index;
    uint32_t in_flight;
    uint64_t change_us; /* when the phase ends; UINT64_MAX: not by time */
    uint64_t begin_ns;
    uint64_t elapsed_ns;
    uint64_t messages;
    struct dw_histogram histogram;
};

static void finish(struct depths *depths, int exit_code)
{
    depths->phase = DONE;
    depths->change_us = UINT64_MAX;
    bench_finish(&depths->client, exit_code);
}

static void add_request(struct depths *depths, uint64_t slot)
{
    bench_add_request(&depths->client, slot, depths->client.options->ask);
    depths->in_flight++;
}

static void begin_measuring(struct depths *depths)
{
    depths->change_us = dw_rpc_now_us() + (uint64_t)(depths->client.options->seconds * 1e6);
    depths->phase = MEASURING;
    memset(&depths->histogram, 0, sizeof depths->histogram);
    memset(depths->client.answers, 0, sizeof depths->client.answers);
    depths->messages = 0;
    depths->begin_ns = bench_now_ns();
}

static void end_measuring(struct depths *depths)
{
    depths->phase = EMPTYING;
    depths->elapsed_ns = bench_now_ns() - depths->begin_ns;
    depths->change_us = UINT64_MAX;
}

static void begin_depth(struct depths *depths)
{
    const struct bench_options *options = depths->client.options;
    if (options->warm_up > 0) {
        depths->phase = WARMING;
        depths->change_us = dw_rpc_now_us() + (uint64_t)(options->warm_up * 1e6);
    } else {
        begin_measuring(depths);
    }
    depths->client.now_ns = bench_now_ns();
    for (uint32_t stream = 0; stream < options->streams; stream++) {
        for (uint32_t slot = stream; slot < options->depths[depths->index]; slot += options->streams) {
            add_request(depths, slot);
        }
        bench_send(&depths->client, depths->conns[stream]);
    }
}

static void report(const struct depths *depths)
{
    const struct bench_options *options = depths->client.options;
    double seconds = (double)depths->elapsed_ns / 1e9;
    double count = (double)depths->histogram.count;
    printf("{\"depth\": %u, \"streams\": %u, \"bytes\": %u, \"seconds\": %.3f, \"per_s\": %.0f, ",
           options->depths[depths->index], options->streams, options->bytes, seconds, count / seconds);
    bench_print_times(&depths->histogram);
    printf(", \"per_message\": %.1f, ", depths->messages > 0 ? count / (double)depths->messages : 0);
    bench_print_answers(depths->client.answers);
    if (options->buckets) {
        printf(", ");
        bench_print_buckets(&depths->histogram);
    }
    printf("}\n");
    fflush(stdout);
}

/* The last request of a depth is back. */
static void next_depth(struct depths *depths)
{
    report(depths);
    depths->index++;
    if (depths->index < depths->client.options->depth_count) {
        begin_depth(depths);
    } else {
        finish(depths, BENCH_GOOD);
    }
}

static uint64_t on_tick(void *user, uint64_t now_us)
{
    struct depths *depths = user;
    if (now_us < depths->change_us) {
        return depths->change_us;
    }
    if (depths->phase == WAITING) {
        bench_fail(&depths->client, depths->client.options->address,
                   "no storage node answers there; start one with dogwood-storage");
        finish(depths, BENCH_ENVIRONMENT);
    } else if (depths->phase == WARMING) {
        begin_measuring(depths);
    } else if (depths->phase == MEASURING) {
        end_measuring(depths);
    }
    return depths->change_us;
}

static void on_reply(void *user, const struct dw_wire_log_reply *reply)
{
    struct depths *depths = user;
    if (reply->id >= BENCH_MAX_IN_FLIGHT || depths->in_flight == 0 || depths->phase == DONE) {
        return;
    }
    depths->in_flight--;
    if (depths->phase == MEASURING) {
        dw_histogram_add(&depths->histogram, depths->client.now_ns - depths->client.sent_ns[reply->id]);
        depths->client.answers[reply->reply.answer]++;
    }
    if (depths->phase == WARMING || depths->phase == MEASURING) {
        add_request(depths, reply->id);
    }
}

static enum dw_error on_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    struct depths *depths = user;
    depths->messages++;
    enum dw_error error = bench_receive(&depths->client, data, size, on_reply, depths);
    uint32_t count = depths->client.options->count;
    if (depths->phase == MEASURING && count > 0 && depths->histogram.count >= count) {
        end_measuring(depths);
    }
    if (depths->phase != DONE) {
        bench_send(&depths->client, conn);
    }
    if (depths->phase == EMPTYING && depths->in_flight == 0) {
        next_depth(depths);
    }
    return error;
}

static void on_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    struct depths *depths = user;
    (void)conn;
    (void)peer;
    if (++depths->up == depths->client.options->streams) {
        begin_depth(depths);
    }
}

static void on_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    struct depths *depths = user;
    (void)conn;
    /* While it waits, only a refusal is final: the node may still be starting. */
    if (depths->phase != DONE && (depths->phase != WAITING || error == DW_ERR_REFUSED)) {
        bench_fail(&depths->client, depths->client.options->address, text);
        finish(depths, BENCH_ENVIRONMENT);
    }
}

int bench_depths(const struct bench_options *options)
{
    static const struct dw_rpc_handlers handlers = {
        .on_up = on_up, .on_message = on_message, .on_down = on_down, .on_tick = on_tick};
    struct depths *depths = calloc(1, sizeof *depths);
    if (depths == NULL || !bench_client_open(&depths->client, options)) {
        fprintf(stderr, "dogwood-bench-log: out of memory\n");
        free(depths);
        return BENCH_ENVIRONMENT;
    }
    depths->change_us = dw_rpc_now_us() + CONNECT_US;
    int exit_code = bench_client_run(&depths->client, &handlers, depths, depths->conns, options->streams);
    bench_client_close(&depths->client);
    free(depths);
    return exit_code;
}
