#include "rpc/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/assert.h"
#include "rpc/internal.h"

enum { DEFAULT_QUEUE_BYTES = 64 << 20, DEFAULT_RECONNECT_MS = 100, DEFAULT_KEEPALIVE_MS = 2000 };

uint64_t dw_rpc_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static enum dw_error check_options(const struct dw_rpc_options *options, char *text, size_t text_size)
{
    if (!rpc_run_id_valid(options->self.run_id)) {
        snprintf(text, text_size, "the run id must be 1 to %d letters, digits, '.', '_' or '-'",
                 DW_MAX_RUN_ID);
        return DW_ERR_ARGUMENT;
    }
    if (!rpc_protocol_valid(options->self.protocol)) {
        snprintf(text, text_size, "the protocol's name must be at most %d letters, digits, '.', '_' or '-'",
                 DW_MAX_PROTOCOL);
        return DW_ERR_ARGUMENT;
    }
    if (options->self.run_id[0] == '\0' && options->self.role != DW_ROLE_CLIENT) {
        snprintf(text, text_size, "the run id is empty; give this node the run id of its deployment");
        return DW_ERR_ARGUMENT;
    }
    return DW_OK;
}

static struct dw_rpc *allocate(const struct dw_rpc_options *options)
{
    struct dw_rpc *rpc = calloc(1, sizeof *rpc);
    if (rpc == NULL) {
        return NULL;
    }
    rpc->options = *options;
    rpc->options.listen = NULL;
    rpc->options.max_queue_bytes = options->max_queue_bytes ? options->max_queue_bytes : DEFAULT_QUEUE_BYTES;
    rpc->options.reserved_bytes =
        options->reserved_bytes ? options->reserved_bytes : rpc->options.max_queue_bytes / 4;
    rpc->options.reconnect_ms = options->reconnect_ms ? options->reconnect_ms : DEFAULT_RECONNECT_MS;
    rpc->options.keepalive_ms = options->keepalive_ms ? options->keepalive_ms : DEFAULT_KEEPALIVE_MS;
    rpc->due_us = UINT64_MAX;
    pthread_mutex_init(&rpc->mutex, NULL);
    return rpc;
}

/* The queue must be shut down and drained before; the loop thread does it when it ends. */
static void destroy(struct dw_rpc *rpc)
{
    while (rpc->clients != NULL) {
        struct dw_conn *conn = rpc->clients;
        rpc->clients = conn->next;
        grpc_channel_destroy(conn->channel);
        conn->channel = NULL;
        dw_conn_unref(conn);
    }
    if (rpc->server != NULL) {
        grpc_server_destroy(rpc->server);
    }
    grpc_completion_queue_destroy(rpc->queue);
    pthread_mutex_destroy(&rpc->mutex);
    free(rpc);
    grpc_shutdown_blocking();
}

/* Each connection takes a descriptor. When none is left, gRPC stops accepting for good, and a store fails at
 * its next file; so the soft limit is no reason to run short. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void ask_stop(struct dw_rpc *rpc)
{
    pthread_mutex_lock(&rpc->mutex);
    rpc->stop_asked = true;
    pthread_mutex_unlock(&rpc->mutex);
    dw_rpc_wake(rpc);
}

enum dw_error dw_rpc_start(const struct dw_rpc_options *options, struct dw_rpc **out, char *text,
                           size_t text_size)
{
    enum dw_error error = check_options(options, text, text_size);
    if (error != DW_OK) {
        return error;
    }
    struct dw_rpc *rpc = allocate(options);
    if (rpc == NULL) {
        snprintf(text, text_size, "out of memory");
        return DW_ERR_MEMORY;
    }
    if (options->listen != NULL) {
        raise_file_limit();
    }
    rpc_silence();
    grpc_init();
    rpc->queue = grpc_completion_queue_create_for_next(NULL);
    rpc_wake_open(rpc);
    if (options->listen != NULL) {
        error = server_open(rpc, options->listen, text, text_size);
    }
    if (error == DW_OK && pthread_create(&rpc->thread, NULL, rpc_loop, rpc) != 0) {
        snprintf(text, text_size, "cannot start a thread; raise the limit on threads or memory");
        error = DW_ERR_MEMORY;
    }
    if (error != DW_OK) {
        /* The loop drains the queue here and now; the user hears nothing of it. */
        rpc->options.handlers = (struct dw_rpc_handlers){0};
        ask_stop(rpc);
        rpc_loop(rpc);
        destroy(rpc);
        return error;
    }
    *out = rpc;
    return DW_OK;
}

uint16_t dw_rpc_port(const struct dw_rpc *rpc)
{
    return rpc->port;
}

void dw_rpc_stop(struct dw_rpc *rpc)
{
    DW_ASSERT(!pthread_equal(pthread_self(), rpc->thread));
    ask_stop(rpc);
    pthread_join(rpc->thread, NULL);
    destroy(rpc);
}
