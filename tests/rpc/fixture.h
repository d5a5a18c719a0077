/* fixture.h - an endpoint that records what its callbacks hear, for tests that wait for conditions. */
#ifndef TESTS_RPC_FIXTURE_H
#define TESTS_RPC_FIXTURE_H

#include <pthread.h>

#include "rpc/rpc.h"

#define FIXTURE_RUN_ID "run-a"

enum { FIXTURE_TEXT = 256, FIXTURE_PATIENCE_S = 60 };

/* What was heard. All fields under `mutex`; `changed` is broadcast at each change. */
struct endpoint {
    struct dw_rpc *rpc;
    char address[64];
    pthread_mutex_t mutex;
    pthread_cond_t changed;

    unsigned ups;
    unsigned downs;
    unsigned messages;
    unsigned ticks;
    struct dw_conn *conn; /* of the last on_up; referenced until endpoint_stop */
    struct dw_identity peer;
    enum dw_error down_error;
    char down_text[FIXTURE_TEXT];
    uint8_t *bytes; /* all messages, one after the other */
    size_t size;
    size_t largest;                 /* message */
    bool echo;                      /* set before messages come: send each back */
    bool refuse;                    /* answer each message with DW_ERR_MALFORMED */
    bool block;                     /* hold the loop thread in on_message until cleared */
    bool hold;                      /* hold each message instead of taking it */
    unsigned holds;                 /* how often one was held */
    bool resume;                    /* resume the last connection in the next tick */
    const char *close_text;         /* close the stream at each message with this line; NULL: don't */
    bool blocked;                   /* it is held now */
    uint64_t tick_us;               /* what on_tick asks for; UINT64_MAX: nothing */
    uint64_t tick_now_us;           /* what it was told last */
    struct dw_unary_call *deferred; /* of the method "Defer" */
};

/* Options with every handler of the fixture. Change what is needed, then start. */
struct dw_rpc_options endpoint_options(enum dw_role role, uint32_t node, const char *listen);
struct endpoint *endpoint_start(const struct dw_rpc_options *options);
/* A storage node 1 that listens on a free port, and a compute node 3. */
struct endpoint *server_start(void);
struct endpoint *client_start(void);
struct dw_conn *client_connect(struct endpoint *client, const char *address);
void endpoint_stop(struct endpoint *endpoint);
/* dw_rpc_stop only: what was heard stays readable. endpoint_stop is still to be called. */
void endpoint_halt(struct endpoint *endpoint);

/* Sets one of the endpoint's flags. */
void endpoint_set(struct endpoint *endpoint, bool *flag, bool value);

extern const struct dw_identity storage_1;

/* Waits until an expression over `e`, the endpoint, is true; fails the test if it takes FIXTURE_PATIENCE_S.
 */
#define AWAIT(which, condition)                                                                              \
    do {                                                                                                     \
        struct endpoint *e = (which);                                                                        \
        struct timespec until = await_begin(e);                                                              \
        while (!(condition)) {                                                                               \
            await_step(e, &until, #condition, __FILE__, __LINE__);                                           \
        }                                                                                                    \
        pthread_mutex_unlock(&e->mutex);                                                                     \
    } while (0)

struct timespec await_begin(struct endpoint *endpoint);
void await_step(struct endpoint *endpoint, const struct timespec *until, const char *condition,
                const char *file, int line);

/* A connected pair; the client knows its connection as client->conn. */
struct pair {
    struct endpoint *server;
    struct endpoint *client;
};
int pair_set_up(void **state);
int pair_tear_down(void **state);

#endif
