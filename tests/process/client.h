/* client.h - one stream to a storage node, for the programs that the process tests drive. */
#ifndef TESTS_PROCESS_CLIENT_H
#define TESTS_PROCESS_CLIENT_H

#include <pthread.h>
#include <stdbool.h>

#include "rpc/rpc.h"
#include "wire/codec.h"

struct client {
    struct dw_rpc *rpc;
    struct dw_conn *conn;
    struct dw_decoder decoder; /* the loop thread's */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool up;
    unsigned downs;
    /* The user's; called on the loop thread, without the mutex. May be NULL. */
    void (*on_up)(struct client *client);
    void (*on_reply)(struct client *client, const struct dw_wire_log_reply *reply);
    void (*on_message_end)(struct client *client);
    void (*on_down)(struct client *client, enum dw_error error, const char *text);
    void *user;
};

/* Connects to storage node `node`; the callbacks must be set. Exits the process with a line if it cannot. */
void client_open(struct client *client, const char *address, const char *node, const char *run_id);
void client_close(struct client *client);
void client_wait_up(struct client *client);
void client_die(const char *text);

#endif
