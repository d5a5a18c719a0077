#include <grpc/support/log.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "rpc/internal.h"

/* gRPC reads the key only, but its type is `char *`. */
static void add(struct rpc_args *args, const char *key, int value)
{
    union {
        const char *in;
        char *out;
    } pointer = {.in = key};
    DW_ASSERT(args->list.num_args < RPC_ARGS_MAX);
    args->args[args->list.num_args++] =
        (grpc_arg){.type = GRPC_ARG_INTEGER, .key = pointer.out, .value.integer = value};
}

static void add_common(struct rpc_args *args, uint32_t keepalive_ms)
{
    *args = (struct rpc_args){.list = {.num_args = 0, .args = args->args}};
    add(args, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, DW_MAX_MESSAGE + RPC_MESSAGE_SLACK);
    add(args, GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, DW_MAX_MESSAGE + RPC_MESSAGE_SLACK);
    /* A stopped process keeps its connections; only an unanswered ping tells. Pings are never held against a
     * peer. */
    add(args, GRPC_ARG_KEEPALIVE_TIME_MS, (int)keepalive_ms);
    add(args, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, (int)keepalive_ms);
    add(args, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    add(args, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
    add(args, GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    /* A window as large as a large batch makes the bandwidth probe, which costs pings, needless. */
    add(args, GRPC_ARG_HTTP2_BDP_PROBE, 0);
    add(args, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, (int)(DW_MAX_MESSAGE / 4));
    add(args, GRPC_ARG_ENABLE_CHANNELZ, 0);
    add(args, GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0);
    add(args, GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
    add(args, GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

void rpc_args_server(struct rpc_args *args, uint32_t keepalive_ms)
{
    add_common(args, keepalive_ms);
    /* Otherwise two servers share a port silently. */
    add(args, GRPC_ARG_ALLOW_REUSEPORT, 0);
}

void rpc_args_client(struct rpc_args *args, uint32_t keepalive_ms, uint32_t reconnect_ms)
{
    add_common(args, keepalive_ms);
    add(args, GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, (int)reconnect_ms);
    add(args, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, (int)reconnect_ms);
    /* gRPC takes this one as the time that an attempt may last: long enough for a loaded machine. */
    add(args, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, RPC_CONNECT_MS);
    add(args, GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    add(args, GRPC_ARG_ENABLE_RETRIES, 0);
    add(args, GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    add(args, GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
}

/* One line matters: after it gRPC accepts no connection any more, however many are closed. */
static void drop_line(gpr_log_func_args *args)
{
    static const char deaf[] = "Failed accept4: ";
    if (strncmp(args->message, deaf, strlen(deaf)) == 0) {
        fprintf(
            stderr,
            "no new connection is accepted from now on (%s): raise the limit of open files (ulimit -n) and "
            "start this node again\n",
            args->message + strlen(deaf));
    }
}

void rpc_silence(void)
{
    if (getenv("GRPC_VERBOSITY") == NULL) {
        gpr_set_log_function(drop_line);
    }
}
