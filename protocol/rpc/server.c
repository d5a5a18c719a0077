#include <grpc/grpc_security.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "rpc/internal.h"

/* A place for the next incoming call, whatever its method. */
struct accept {
    struct dw_rpc *rpc;
    grpc_call *call;
    grpc_call_details details;
    grpc_metadata_array metadata;
    struct rpc_tag tag;
};

static void on_call(void *owner, bool ok);
static void on_close(void *owner, bool ok);

static void accept_arm(struct accept *accept)
{
    struct dw_rpc *rpc = accept->rpc;
    grpc_call_details_init(&accept->details);
    grpc_metadata_array_init(&accept->metadata);
    accept->call = NULL;
    grpc_call_error error = grpc_server_request_call(rpc->server, &accept->call, &accept->details,
                                                     &accept->metadata, rpc->queue, rpc->queue, &accept->tag);
    DW_ASSERT(error == GRPC_CALL_OK);
    rpc->live++;
}

static enum dw_error accept_open(struct dw_rpc *rpc)
{
    struct accept *accept = calloc(1, sizeof *accept);
    if (accept == NULL) {
        return DW_ERR_MEMORY;
    }
    accept->rpc = rpc;
    accept->tag = (struct rpc_tag){.run = on_call, .owner = accept};
    accept_arm(accept);
    return DW_OK;
}

static enum dw_error listen_at(struct dw_rpc *rpc, const struct rpc_address *address, char *text,
                               size_t text_size)
{
    struct rpc_args args;
    rpc_args_server(&args, rpc->options.keepalive_ms);
    rpc->server = grpc_server_create(&args.list, NULL);
    grpc_server_register_completion_queue(rpc->server, rpc->queue, NULL);
    grpc_server_credentials *insecure = grpc_insecure_server_credentials_create();
    int port = grpc_server_add_http2_port(rpc->server, address->numeric, insecure);
    grpc_server_credentials_release(insecure);
    grpc_server_start(rpc->server);
    if (port <= 0) {
        rpc_explain_listen(address, text, text_size);
        return DW_ERR_ADDRESS;
    }
    rpc->port = (uint16_t)port;
    return DW_OK;
}

enum dw_error server_open(struct dw_rpc *rpc, const char *listen, char *text, size_t text_size)
{
    struct rpc_address address;
    enum dw_error error = rpc_resolve(listen, true, &address, text, text_size);
    if (error == DW_OK) {
        error = listen_at(rpc, &address, text, text_size);
    }
    for (int i = 0; i < RPC_ACCEPTS && error == DW_OK; i++) {
        error = accept_open(rpc);
        if (error != DW_OK) {
            snprintf(text, text_size, "out of memory");
        }
    }
    return error;
}

static void on_shutdown(void *owner, bool ok)
{
    struct dw_rpc *rpc = owner;
    (void)ok;
    rpc->live--;
}

void server_stop(struct dw_rpc *rpc)
{
    if (rpc->server == NULL) {
        return;
    }
    rpc->shutdown_tag = (struct rpc_tag){.run = on_shutdown, .owner = rpc};
    rpc->live++;
    grpc_server_shutdown_and_notify(rpc->server, rpc->queue, &rpc->shutdown_tag);
    grpc_server_cancel_all_calls(rpc->server);
}

/* Both batches await nothing from us: the first tells when the call is over, the second sends who we are. */
static void start_stream(struct dw_conn *conn)
{
    struct rpc_hello hello;
    rpc_hello_fill(&hello, &conn->rpc->options.self);
    grpc_op close_op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                        .data.recv_close_on_server.cancelled = &conn->cancelled};
    grpc_op hello_op = {.op = GRPC_OP_SEND_INITIAL_METADATA,
                        .data.send_initial_metadata = {.count = RPC_HELLO_ITEMS, .metadata = hello.items}};
    pthread_mutex_lock(&conn->mutex);
    conn->writing = true;
    conn_start(conn, &close_op, 1, &conn->finish_tag);
    conn_start(conn, &hello_op, 1, &conn->start_tag);
    pthread_mutex_unlock(&conn->mutex);
    rpc_hello_release(&hello);
}

static void take_stream(struct dw_rpc *rpc, grpc_call *call, const struct dw_identity *peer)
{
    struct dw_conn *conn = conn_open(rpc, false);
    if (conn == NULL) {
        grpc_call_cancel_with_status(call, GRPC_STATUS_RESOURCE_EXHAUSTED, "out of memory", NULL);
        grpc_call_unref(call);
        return;
    }
    conn->finish_tag = (struct rpc_tag){.run = on_close, .owner = conn};
    conn->call = call;
    grpc_metadata_array_init(&conn->metadata);
    rpc->live++;
    start_stream(conn);
    conn_up(conn, peer);
    conn_read(conn);
}

static void on_close(void *owner, bool ok)
{
    struct dw_conn *conn = owner;
    (void)ok;
    if (conn->rpc->stopping) {
        conn_finished(conn, DW_ERR_SHUTDOWN, "this endpoint is shutting down");
    } else {
        conn_finished(conn, DW_ERR_CLOSED, "the peer closed the stream, sent too much, or is gone");
    }
    conn_done(conn);
}

/* Who calls is judged first; a refusal goes out as a plain status, whatever was called. */
static void dispatch(struct accept *accept)
{
    struct dw_rpc *rpc = accept->rpc;
    struct dw_identity peer;
    char method[RPC_TEXT];
    char text[RPC_TEXT];
    size_t prefix = strlen(RPC_SERVICE);
    bool good = rpc_hello_accept(&rpc->options.self, &accept->metadata, &peer, text, sizeof text);
    rpc_slice_text(accept->details.method, method, sizeof method);
    if (good && strncmp(method, RPC_SERVICE, prefix) != 0) {
        good = false;
        snprintf(text, sizeof text, "method \"%.100s\" is not of service dogwood.v1.Node", method);
    }
    const char *name = good ? method + prefix : method;
    if (good && strcmp(name, RPC_STREAM_NAME) == 0) {
        take_stream(rpc, accept->call, &peer);
    } else {
        unary_begin(rpc, accept->call, name, good ? NULL : text);
    }
}

static void on_call(void *owner, bool ok)
{
    struct accept *accept = owner;
    struct dw_rpc *rpc = accept->rpc;
    rpc->live--;
    if (ok) {
        dispatch(accept);
    }
    grpc_call_details_destroy(&accept->details);
    grpc_metadata_array_destroy(&accept->metadata);
    if (ok && !rpc->stopping) {
        accept_arm(accept);
    } else {
        free(accept);
    }
}
