#include <grpc/grpc_security.h>
#include <stdio.h>

#include "base/assert.h"
#include "rpc/internal.h"

static void on_hello(void *owner, bool ok);
static void on_status(void *owner, bool ok);

enum dw_error dw_rpc_connect(struct dw_rpc *rpc, const char *address, const struct dw_identity *expect,
                             struct dw_conn **out)
{
    struct rpc_address resolved;
    char text[RPC_TEXT];
    enum dw_error error = rpc_resolve(address, false, &resolved, text, sizeof text);
    if (error != DW_OK) {
        return error;
    }
    struct dw_conn *conn = conn_open(rpc, true);
    if (conn == NULL) {
        return DW_ERR_MEMORY;
    }
    conn->expect = *expect;
    conn->hello_tag = (struct rpc_tag){.run = on_hello, .owner = conn};
    conn->finish_tag = (struct rpc_tag){.run = on_status, .owner = conn};
    snprintf(conn->address, sizeof conn->address, "%s", resolved.text);
    struct rpc_args args;
    rpc_args_client(&args, rpc->options.keepalive_ms, rpc->options.reconnect_ms);
    grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
    conn->channel = grpc_channel_create(resolved.target, insecure, &args.list);
    grpc_channel_credentials_release(insecure);
    pthread_mutex_lock(&rpc->mutex);
    conn->next = rpc->clients;
    rpc->clients = conn;
    pthread_mutex_unlock(&rpc->mutex);
    *out = conn;
    dw_rpc_wake(rpc);
    return DW_OK;
}

static void send_hello(struct dw_conn *conn)
{
    struct rpc_hello hello;
    rpc_hello_fill(&hello, &conn->rpc->options.self);
    grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA,
                  .data.send_initial_metadata = {.count = RPC_HELLO_ITEMS, .metadata = hello.items}};
    conn->writing = true;
    conn_start(conn, &op, 1, &conn->start_tag);
    rpc_hello_release(&hello);
}

/* One attempt: a new call on the channel, which connects by itself. */
static void attempt(struct dw_conn *conn, uint64_t now_us)
{
    grpc_metadata_array_init(&conn->metadata);
    grpc_metadata_array_init(&conn->trailing);
    conn->details = grpc_empty_slice();
    conn->finished = false;
    conn->reason = DW_OK;
    conn->due_us = now_us + RPC_HANDSHAKE_MS * UINT64_C(1000);
    conn->rpc->live++;
    grpc_op hello = {.op = GRPC_OP_RECV_INITIAL_METADATA,
                     .data.recv_initial_metadata.recv_initial_metadata = &conn->metadata};
    grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                      .data.recv_status_on_client = {.trailing_metadata = &conn->trailing,
                                                     .status = &conn->status,
                                                     .status_details = &conn->details}};
    pthread_mutex_lock(&conn->mutex);
    DW_ASSERT(conn->call == NULL && conn->operations == 0);
    conn->call = grpc_channel_create_call(conn->channel, NULL, GRPC_PROPAGATE_DEFAULTS, conn->rpc->queue,
                                          grpc_slice_from_static_string(RPC_SERVICE RPC_STREAM_NAME), NULL,
                                          gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    send_hello(conn);
    conn_start(conn, &hello, 1, &conn->hello_tag);
    conn_start(conn, &status, 1, &conn->finish_tag);
    pthread_mutex_unlock(&conn->mutex);
}

/* The server's initial metadata, or none if it refused or could not be reached: then the status tells. */
static void on_hello(void *owner, bool ok)
{
    struct dw_conn *conn = owner;
    struct dw_identity peer;
    char text[RPC_TEXT];
    bool present = false;
    if (ok && conn->reason == DW_OK) {
        if (rpc_hello_check(&conn->rpc->options.self, &conn->expect, conn->address, &conn->metadata, &peer,
                            &present, text, sizeof text)) {
            conn->due_us = UINT64_MAX;
            conn->last_reported = DW_OK;
            conn_up(conn, &peer);
            conn_read(conn);
        } else if (present) {
            conn_close(conn, DW_ERR_REFUSED, text);
        }
    }
    conn_done(conn);
}

static void on_status(void *owner, bool ok)
{
    struct dw_conn *conn = owner;
    char text[RPC_TEXT];
    (void)ok;
    enum dw_error error = rpc_error_of(conn->status);
    rpc_slice_text(conn->details, text, sizeof text);
    if (error == DW_OK) {
        error = DW_ERR_CLOSED;
        snprintf(text, sizeof text, "the peer closed the stream");
    }
    grpc_slice_unref(conn->details);
    grpc_metadata_array_destroy(&conn->trailing);
    conn_finished(conn, error, text);
    conn_done(conn);
}

/* An attempt that failed like the one before is not news. */
static bool is_news(struct dw_conn *conn)
{
    bool news = conn->up || conn->reason != conn->last_reported;
    conn->last_reported = conn->reason;
    return news;
}

void client_ended(struct dw_conn *conn)
{
    struct dw_rpc *rpc = conn->rpc;
    bool news = is_news(conn) && (conn->up || !rpc->stopping);
    conn->up = false;
    conn->due_us = rpc->stopping ? UINT64_MAX : dw_rpc_now_us() + rpc->options.reconnect_ms * UINT64_C(1000);
    rpc->due_us = conn->due_us < rpc->due_us ? conn->due_us : rpc->due_us;
    if (news && rpc->options.handlers.on_down != NULL) {
        rpc->options.handlers.on_down(rpc->options.user, conn, conn->reason, conn->text);
    }
}

static void attend_one(struct dw_conn *conn, uint64_t now_us)
{
    if (conn->call == NULL) {
        attempt(conn, now_us);
    } else {
        char text[RPC_TEXT];
        conn->due_us = UINT64_MAX;
        snprintf(text, sizeof text, "%.100s did not answer the hand-shake within %d ms", conn->address,
                 RPC_HANDSHAKE_MS);
        conn_close(conn, DW_ERR_TIMEOUT, text);
    }
}

/* The list only grows, at its head, so it can be walked without the mutex once the head is known. */
static struct dw_conn *first_client(struct dw_rpc *rpc)
{
    pthread_mutex_lock(&rpc->mutex);
    struct dw_conn *first = rpc->clients;
    pthread_mutex_unlock(&rpc->mutex);
    return first;
}

void client_attend(struct dw_rpc *rpc, uint64_t now_us)
{
    rpc->due_us = UINT64_MAX;
    for (struct dw_conn *conn = first_client(rpc); conn != NULL; conn = conn->next) {
        if (conn->due_us <= now_us) {
            attend_one(conn, now_us);
        }
        rpc->due_us = conn->due_us < rpc->due_us ? conn->due_us : rpc->due_us;
    }
}

void client_stop_all(struct dw_rpc *rpc)
{
    for (struct dw_conn *conn = first_client(rpc); conn != NULL; conn = conn->next) {
        conn->due_us = UINT64_MAX;
        if (conn->call != NULL) {
            conn_close(conn, DW_ERR_SHUTDOWN, "this endpoint is shutting down");
        }
    }
}
