/* bench_log.h - what the files of dogwood-bench-log share: its flags, and one client of a storage node. */
#ifndef DW_STORAGE_BENCH_LOG_H
#define DW_STORAGE_BENCH_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "core/log_rule.h"
#include "rpc/rpc.h"
#include "wire/codec.h"

enum { BENCH_MAX_DEPTHS = 32, BENCH_MAX_IN_FLIGHT = 65536, BENCH_MAX_STREAMS = 64 };
enum { BENCH_GOOD = 0, BENCH_ASKED_WRONGLY = 2, BENCH_ENVIRONMENT = 3 };

struct bench_options {
    const char *address;
    const char *run_id;
    uint32_t node; /* the storage node that must answer */
    uint32_t log;  /* which log is written; its owner is the writer */
    uint32_t depths[BENCH_MAX_DEPTHS];
    size_t depth_count;
    uint32_t
        streams; /* over which the requests in flight are spread evenly, each a peer of its own to the node */
    double warm_up; /* seconds at each depth that aren't measured */
    double seconds; /* measured at each depth, at most */
    uint32_t count; /* measured requests at each depth, at least; 0: as many as the time allows */
    uint32_t bytes; /* of redo in a request */
    enum dw_ask ask;
    uint32_t burst;  /* requests sent at once; 0: the closed loop over the depths */
    uint32_t rounds; /* bursts that are measured */
    bool buckets;    /* print whole histograms as well */
};

/* One client: its endpoint, what it sends, and how it ends. Everything but the last three fields belongs to
 * the loop thread once the endpoint runs. */
struct bench_client {
    const struct bench_options *options;
    struct dw_rpc *rpc;
    struct dw_decoder decoder;
    struct dw_buffer requests; /* encoded, not sent yet */
    uint8_t *redo;
    uint64_t sequence;                     /* of the next transaction */
    uint64_t sent_ns[BENCH_MAX_IN_FLIGHT]; /* by slot, which is the request's id */
    uint64_t now_ns;                       /* when the batch at hand arrived, or is sent */
    uint64_t answers[DW_ANSWERS];

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int exit_code; /* -1 while running */
};

uint64_t bench_now_ns(void);

/* Prepares a client; false: no memory. Sequence numbers start at the wall clock's nanoseconds, so that every
 * run's transactions are new to the log. */
bool bench_client_open(struct bench_client *client, const struct bench_options *options);
void bench_client_close(struct bench_client *client);

/* Starts the endpoint with these handlers and opens `count` streams to the node, runs until somebody calls
 * bench_finish, stops, and returns the exit code. Errors are printed. */
int bench_client_run(struct bench_client *client, const struct dw_rpc_handlers *handlers, void *user,
                     struct dw_conn **conns, size_t count);

/* Ends the run. The first caller's exit code counts. Any thread. */
void bench_finish(struct bench_client *client, int exit_code);
bool bench_finished(struct bench_client *client);

/* Ends the run with BENCH_ENVIRONMENT, and prints one line to stderr if it was not over before. */
void bench_fail(struct bench_client *client, const char *what, const char *why);

/* Encodes one request about a new transaction, stamped client->now_ns; bench_send sends all encoded ones as
 * one message. */
void bench_add_request(struct bench_client *client, uint64_t slot, enum dw_ask ask);
void bench_send(struct bench_client *client, struct dw_conn *conn);

/* Takes one reading of the clock for the message, since its replies are processed together and the requests
 * that they cause leave together, and visits the replies. Counts are kept by the caller. */
DW_MUST_CHECK enum dw_error bench_receive(struct bench_client *client, const uint8_t *data, size_t size,
                                          void (*on_reply)(void *user, const struct dw_wire_log_reply *reply),
                                          void *user);

/* JSON members, without braces or a comma at the end: "count": .., "p50_us": .. and so on; "answers": {..}
 * with those that occurred; "buckets": [[low_us, count], ..]. */
void bench_print_times(const struct dw_histogram *histogram);
void bench_print_answers(const uint64_t answers[DW_ANSWERS]);
void bench_print_buckets(const struct dw_histogram *histogram);

/* The two things that can be measured; each returns the exit code. */
int bench_depths(const struct bench_options *options);
int bench_burst(const struct bench_options *options);

#endif
