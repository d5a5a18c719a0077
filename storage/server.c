#include "storage/server.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/options.h"
#include "storage/server_internal.h"

void storage_wake(struct server *server)
{
    atomic_store(&server->attend, true);
    pthread_mutex_lock(&server->lock);
    if (server->rpc != NULL) {
        dw_rpc_wake(server->rpc);
    }
    pthread_mutex_unlock(&server->lock);
}

void storage_tell_stop(struct server *server)
{
    if (!atomic_exchange(&server->stop_told, true)) {
        server->options.on_stop(server->options.user);
    }
}

bool storage_serves(const struct server *server, uint32_t log, char *text, size_t text_size)
{
    char served[OPTION_LOGS_TEXT];
    if (log < DW_MAX_NODES && (server->options.logs & dw_node_bit(log)) != 0) {
        return true;
    }
    option_logs_text(server->options.logs, served, sizeof served);
    snprintf(
        text, text_size,
        "log %u is not served by storage node %u, which serves %s: ask the node that does, or start this "
        "one with --logs",
        log, server->options.self.node, served);
    return false;
}

static void on_batch_end(void *user)
{
    struct server *server = user;
    char text[8];
    stream_batch_end(server);
    if (dw_log_service_failed(server->service, text, sizeof text) != DW_OK) {
        storage_tell_stop(server);
    }
    if (atomic_exchange(&server->waiting, false)) {
        storage_wake(server);
    }
}

static uint64_t on_tick(void *user, uint64_t now_us)
{
    struct server *server = user;
    (void)now_us;
    if (atomic_exchange(&server->attend, false)) {
        stream_attend(server);
    }
    return UINT64_MAX;
}

static enum dw_error open_service(struct server *server, char *text, size_t text_size)
{
    struct dw_log_service_options options = {
        .store = server->options.store,
        .sync = server->options.sync,
        .delay = server->options.delay,
        .seed = server->options.seed,
        .max_queue_bytes = server->options.max_queue_bytes,
        .on_batch_end = on_batch_end,
        .user = server,
    };
    return dw_log_service_open(&options, &server->service, text, text_size);
}

static enum dw_error open_rpc(struct server *server, char *text, size_t text_size)
{
    struct dw_rpc *rpc;
    struct dw_rpc_options options = {
        .self = server->options.self,
        .listen = server->options.listen,
        .handlers = {.on_up = stream_up,
                     .on_message = stream_message,
                     .on_down = stream_down,
                     .on_unary = admin_call,
                     .on_tick = on_tick},
        .user = server,
    };
    enum dw_error error = dw_rpc_start(&options, &rpc, text, text_size);
    if (error == DW_OK) {
        pthread_mutex_lock(&server->lock);
        server->rpc = rpc;
        pthread_mutex_unlock(&server->lock);
        /* What the writer told meanwhile had no loop to wake. */
        storage_wake(server);
    }
    return error;
}

static void free_server(struct server *server)
{
    stream_free_all(server);
    dw_decoder_close(&server->decoder);
    free(server->submissions);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

static struct server *make_server(const struct server_options *options)
{
    struct server *server = calloc(1, sizeof *server);
    if (server != NULL) {
        server->options = *options;
        pthread_mutex_init(&server->lock, NULL);
    }
    return server;
}

enum dw_error storage_start(const struct server_options *options, struct server **out, char *text,
                            size_t text_size)
{
    struct server *server = make_server(options);
    if (server == NULL) {
        options->store->ops->close(options->store);
        snprintf(text, text_size, "out of memory: free some and start again");
        return DW_ERR_MEMORY;
    }
    enum dw_error error = open_service(server, text, text_size);
    if (error != DW_OK) {
        free_server(server);
        return error;
    }
    error = reader_open(server);
    if (error != DW_OK) {
        snprintf(text, text_size, "the reader's thread cannot be started: raise the limit of threads");
    } else {
        error = open_rpc(server, text, text_size);
        if (error != DW_OK) {
            reader_close(server);
        }
    }
    if (error != DW_OK) {
        dw_log_service_close(server->service);
        free_server(server);
        return error;
    }
    *out = server;
    return DW_OK;
}

uint16_t storage_port(const struct server *server)
{
    return dw_rpc_port(server->rpc);
}

bool storage_failed(struct server *server)
{
    char text[8];
    return dw_log_service_failed(server->service, text, sizeof text) != DW_OK;
}

void storage_stop(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    struct dw_rpc *rpc = server->rpc;
    server->rpc = NULL;
    pthread_mutex_unlock(&server->lock);
    /* The loop goes first, since it is what submits; then what it gave to others is worked off. */
    dw_rpc_stop(rpc);
    reader_close(server);
    dw_log_service_close(server->service);
    free_server(server);
}
