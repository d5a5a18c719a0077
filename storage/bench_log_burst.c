/* Many appends at once, and whether others notice: one stream carries the bursts, a second one reads all the
 * while, and a thread makes unary calls. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/bench_log.h"

/* Readers keep a pace, so that the processor isn't what they measure. */
enum { CONNECT_US = 5000000, QUIET_US = 50000, READ_EVERY_US = 1000, CALL_EVERY_US = 5000 };
enum { CALL_DEADLINE_MS = 5000, CONNS = 2, READ_SLOT = BENCH_MAX_IN_FLIGHT - 1 };

/* Latency while no burst is under way, and while one is. */
struct both {
    struct dw_histogram quiet;
    struct dw_histogram burst;
};

struct burst {
    struct bench_client client;
    struct dw_conn *conns[CONNS]; /* appends, reads */
    unsigned up;
    uint64_t
        change_us;    /* when the next burst leaves, or connecting has failed; UINT64_MAX: one is under way */
    uint64_t read_us; /* when the next read leaves; UINT64_MAX: one is under way */
    bool read_in_burst;
    uint32_t missing; /* answers of this burst */
    uint32_t round;   /* the first is a warm-up and not counted */
    bool done;
    struct dw_histogram each; /* from the burst's departure to each answer */
    struct dw_histogram first;
    struct dw_histogram last;
    struct both reads;
    _Atomic bool under_way;
    struct both calls; /* the calling thread's */
};

static void finish(struct burst *burst, int exit_code)
{
    burst->done = true;
    burst->change_us = burst->read_us = UINT64_MAX;
    bench_finish(&burst->client, exit_code);
}

static void count(struct both *both, bool in_burst, uint64_t ns)
{
    dw_histogram_add(in_burst ? &both->burst : &both->quiet, ns);
}

static void send_burst(struct burst *burst)
{
    const struct bench_options *options = burst->client.options;
    burst->client.now_ns = bench_now_ns();
    for (uint32_t slot = 0; slot < options->burst; slot++) {
        bench_add_request(&burst->client, slot, options->ask);
    }
    burst->missing = options->burst;
    burst->change_us = UINT64_MAX;
    atomic_store(&burst->under_way, true);
    bench_send(&burst->client, burst->conns[0]);
}

static void send_read(struct burst *burst)
{
    burst->client.now_ns = bench_now_ns();
    burst->read_in_burst = burst->missing > 0;
    burst->read_us = UINT64_MAX;
    bench_add_request(&burst->client, READ_SLOT, DW_ASK_READ);
    bench_send(&burst->client, burst->conns[1]);
}

static uint64_t on_tick(void *user, uint64_t now_us)
{
    struct burst *burst = user;
    if (burst->up < CONNS) {
        if (now_us >= burst->change_us) {
            bench_fail(&burst->client, burst->client.options->address,
                       "no storage node answers there; start one with dogwood-storage");
            finish(burst, BENCH_ENVIRONMENT);
        }
        return burst->change_us;
    }
    if (now_us >= burst->change_us) {
        send_burst(burst);
    }
    if (now_us >= burst->read_us) {
        send_read(burst);
    }
    return burst->change_us < burst->read_us ? burst->change_us : burst->read_us;
}

static void on_append_reply(struct burst *burst, const struct dw_wire_log_reply *reply)
{
    uint64_t elapsed = burst->client.now_ns - burst->client.sent_ns[reply->id];
    if (burst->round > 0) {
        dw_histogram_add(&burst->each, elapsed);
        burst->client.answers[reply->reply.answer]++;
        if (burst->missing == burst->client.options->burst) {
            dw_histogram_add(&burst->first, elapsed);
        }
        if (burst->missing == 1) {
            dw_histogram_add(&burst->last, elapsed);
        }
    }
    if (--burst->missing > 0) {
        return;
    }
    atomic_store(&burst->under_way, false);
    burst->change_us = dw_rpc_now_us() + QUIET_US;
    if (burst->round++ == burst->client.options->rounds) {
        finish(burst, BENCH_GOOD);
    }
}

static void on_reply(void *user, const struct dw_wire_log_reply *reply)
{
    struct burst *burst = user;
    if (burst->done || reply->id >= BENCH_MAX_IN_FLIGHT) {
        return;
    }
    if (reply->id == READ_SLOT) {
        if (burst->round > 0) {
            count(&burst->reads, burst->read_in_burst,
                  burst->client.now_ns - burst->client.sent_ns[READ_SLOT]);
        }
        burst->read_us = dw_rpc_now_us() + READ_EVERY_US;
    } else if (burst->missing > 0) {
        on_append_reply(burst, reply);
    }
}

static enum dw_error on_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    struct burst *burst = user;
    (void)conn;
    return bench_receive(&burst->client, data, size, on_reply, burst);
}

static void on_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    struct burst *burst = user;
    (void)conn;
    (void)peer;
    if (++burst->up == CONNS) {
        burst->change_us = dw_rpc_now_us() + QUIET_US;
        burst->read_us = 0;
    }
}

static void on_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    struct burst *burst = user;
    (void)conn;
    if (!burst->done && (burst->up == CONNS || error == DW_ERR_REFUSED)) {
        bench_fail(&burst->client, burst->client.options->address, text);
        finish(burst, BENCH_ENVIRONMENT);
    }
}

/* Waits until the next call is due; false: the run is over. */
static bool pace(struct bench_client *client)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += CALL_EVERY_US * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&client->mutex);
    int waited = 0;
    while (client->exit_code < 0 && waited == 0) {
        waited = pthread_cond_timedwait(&client->changed, &client->mutex, &until);
    }
    bool more = client->exit_code < 0;
    pthread_mutex_unlock(&client->mutex);
    return more;
}

/* Administration, as dogwood-ctl does it: a channel of its own for each call, so connecting is included. */
static void *call_stats(void *argument)
{
    struct burst *burst = argument;
    struct dw_identity self = {.role = DW_ROLE_CLIENT};
    char text[256];
    snprintf(self.run_id, sizeof self.run_id, "%s", burst->client.options->run_id);
    while (pace(&burst->client)) {
        uint8_t *data = NULL;
        size_t size = 0;
        bool in_burst = atomic_load(&burst->under_way);
        uint64_t begin = bench_now_ns();
        enum dw_error error = dw_rpc_call(burst->client.options->address, &self, "Stats", NULL, 0,
                                          CALL_DEADLINE_MS, &data, &size, text, sizeof text);
        free(data);
        if (error != DW_OK && !bench_finished(&burst->client)) {
            bench_fail(&burst->client, "Stats", text);
        } else if (error == DW_OK) {
            count(&burst->calls, in_burst, bench_now_ns() - begin);
        }
    }
    return NULL;
}

static void print_part(const char *name, const struct dw_histogram *histogram, bool buckets)
{
    printf("\"%s\": {", name);
    bench_print_times(histogram);
    if (buckets) {
        printf(", ");
        bench_print_buckets(histogram);
    }
    printf("}");
}

static void print_both(const char *name, const struct both *both, bool buckets)
{
    printf(", \"%s\": {", name);
    print_part("quiet", &both->quiet, buckets);
    printf(", ");
    print_part("burst", &both->burst, buckets);
    printf("}");
}

static void report(const struct burst *burst)
{
    const struct bench_options *options = burst->client.options;
    printf("{\"burst\": %u, \"bytes\": %u, \"rounds\": %u, ", options->burst, options->bytes,
           options->rounds);
    print_part("first", &burst->first, false);
    printf(", ");
    print_part("last", &burst->last, false);
    printf(", ");
    print_part("each", &burst->each, options->buckets);
    print_both("reads", &burst->reads, options->buckets);
    print_both("stats", &burst->calls, options->buckets);
    printf(", ");
    bench_print_answers(burst->client.answers);
    printf("}\n");
}

static int run(struct burst *burst)
{
    static const struct dw_rpc_handlers handlers = {
        .on_up = on_up, .on_message = on_message, .on_down = on_down, .on_tick = on_tick};
    pthread_t caller;
    burst->change_us = dw_rpc_now_us() + CONNECT_US;
    burst->read_us = UINT64_MAX;
    if (pthread_create(&caller, NULL, call_stats, burst) != 0) {
        fprintf(stderr, "dogwood-bench-log: no thread for the unary calls\n");
        return BENCH_ENVIRONMENT;
    }
    int exit_code = bench_client_run(&burst->client, &handlers, burst, burst->conns, CONNS);
    bench_finish(&burst->client, exit_code);
    pthread_join(caller, NULL);
    if (exit_code == BENCH_GOOD) {
        report(burst);
    }
    return exit_code;
}

int bench_burst(const struct bench_options *options)
{
    struct burst *burst = calloc(1, sizeof *burst);
    if (burst == NULL || !bench_client_open(&burst->client, options)) {
        fprintf(stderr, "dogwood-bench-log: out of memory\n");
        free(burst);
        return BENCH_ENVIRONMENT;
    }
    int exit_code = run(burst);
    bench_client_close(&burst->client);
    free(burst);
    return exit_code;
}
