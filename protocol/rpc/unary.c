#include <grpc/byte_buffer_reader.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "rpc/internal.h"

/* Held by the queue until all its batches came back, and by whoever must still finish it: so an answer that
 * comes after the caller, or even the endpoint, is gone does no harm. */
struct dw_unary_call {
    struct dw_rpc *rpc; /* loop thread, or while `call` is there */
    struct dw_identity self;
    atomic_uint references;
    char method[RPC_TEXT];
    grpc_byte_buffer *incoming;
    grpc_byte_buffer *outgoing;
    int cancelled;
    struct rpc_tag read_tag;
    struct rpc_tag close_tag;
    struct rpc_tag sent_tag;

    pthread_mutex_t mutex;
    grpc_call *call; /* NULL once the caller is gone or answered */
    unsigned operations;
    bool closed;
    bool answered;
};

static void unref(struct dw_unary_call *call)
{
    if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) == 1) {
        DW_ASSERT(call->call == NULL);
        pthread_mutex_destroy(&call->mutex);
        free(call);
    }
}

/* The mutex is held. */
static void start(struct dw_unary_call *call, const grpc_op *ops, size_t count, struct rpc_tag *tag)
{
    grpc_call_error error = grpc_call_start_batch(call->call, ops, count, tag, NULL);
    DW_ASSERT(error == GRPC_CALL_OK);
    call->operations++;
}

/* A batch came back; after the last one gRPC's call is let go. */
static void done(struct dw_unary_call *call)
{
    struct dw_rpc *rpc = call->rpc;
    pthread_mutex_lock(&call->mutex);
    DW_ASSERT(call->operations > 0);
    bool last = --call->operations == 0 && call->closed;
    if (last) {
        grpc_call_unref(call->call);
        call->call = NULL;
    }
    pthread_mutex_unlock(&call->mutex);
    if (last) {
        rpc->live--;
        unref(call);
    }
}

/* An error travels as a status; the exact error beside it, since several share a status. */
static void send_reply(struct dw_unary_call *call, struct dw_unary_reply *reply)
{
    char number[12];
    struct rpc_hello hello;
    grpc_byte_buffer *message = NULL;
    grpc_op ops[3] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}, {.op = GRPC_OP_SEND_STATUS_FROM_SERVER}};
    grpc_slice text = grpc_slice_from_copied_string(reply->text);
    snprintf(number, sizeof number, "%d", (int)reply->error);
    grpc_metadata error = {.key = grpc_slice_from_static_string(RPC_ERROR_KEY),
                           .value = grpc_slice_from_copied_string(number)};
    rpc_hello_fill(&hello, &call->self);
    ops[0].data.send_initial_metadata.count = RPC_HELLO_ITEMS;
    ops[0].data.send_initial_metadata.metadata = hello.items;
    ops[1].data.send_status_from_server.trailing_metadata_count = 1;
    ops[1].data.send_status_from_server.trailing_metadata = &error;
    ops[1].data.send_status_from_server.status = rpc_status_of(reply->error);
    ops[1].data.send_status_from_server.status_details = &text;
    if (reply->error == DW_OK) {
        /* gRPC takes over the bytes and frees them when they are out. */
        grpc_slice slice =
            reply->size > 0 ? grpc_slice_new(reply->data, reply->size, free) : grpc_empty_slice();
        message = grpc_raw_byte_buffer_create(&slice, 1);
        grpc_slice_unref(slice);
        ops[2].op = GRPC_OP_SEND_MESSAGE;
        ops[2].data.send_message.send_message = message;
    }
    call->outgoing = message;
    start(call, ops, message != NULL ? 3 : 2, &call->sent_tag);
    rpc_hello_release(&hello);
    grpc_slice_unref(error.value);
    grpc_slice_unref(text);
}

static void set_error(struct dw_unary_reply *reply, enum dw_error error, const char *text)
{
    free(reply->data);
    *reply = (struct dw_unary_reply){.error = error};
    snprintf(reply->text, sizeof reply->text, "%s", text);
}

void dw_unary_finish(struct dw_unary_call *call, struct dw_unary_reply *reply)
{
    if (reply->error == DW_OK && reply->size > DW_MAX_MESSAGE) {
        set_error(reply, DW_ERR_TOO_LARGE, "the reply exceeds the largest message; ask for less");
    }
    pthread_mutex_lock(&call->mutex);
    DW_ASSERT(!call->answered);
    call->answered = true;
    bool taken = false;
    if (!call->closed) {
        send_reply(call, reply);
        taken = reply->error == DW_OK && reply->size > 0;
    }
    pthread_mutex_unlock(&call->mutex);
    if (!taken) {
        free(reply->data);
    }
    reply->data = NULL;
    unref(call);
}

static void finish_error(struct dw_unary_call *call, enum dw_error error, const char *text)
{
    struct dw_unary_reply reply = {0};
    set_error(&reply, error, text);
    dw_unary_finish(call, &reply);
}

static void serve(struct dw_unary_call *call)
{
    const struct dw_rpc_options *options = &call->rpc->options;
    grpc_byte_buffer_reader reader;
    if (options->handlers.on_unary == NULL) {
        char text[RPC_TEXT];
        char self[40];
        rpc_identity_text(&call->self, self, sizeof self);
        snprintf(text, sizeof text, "unknown method \"%.100s\" of %s", call->method, self);
        finish_error(call, DW_ERR_MISSING, text);
        return;
    }
    if (!grpc_byte_buffer_reader_init(&reader, call->incoming)) {
        finish_error(call, DW_ERR_MALFORMED, "the request cannot be read");
        return;
    }
    grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
    options->handlers.on_unary(options->user, call, call->method, GRPC_SLICE_START_PTR(slice),
                               GRPC_SLICE_LENGTH(slice));
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
}

static void on_read(void *owner, bool ok)
{
    struct dw_unary_call *call = owner;
    if (call->rpc->stopping) {
        finish_error(call, DW_ERR_SHUTDOWN, "this node is shutting down");
    } else if (!ok || call->incoming == NULL) {
        finish_error(call, DW_ERR_MALFORMED, "the call carries no request");
    } else {
        serve(call);
    }
    if (call->incoming != NULL) {
        grpc_byte_buffer_destroy(call->incoming);
    }
    done(call);
}

static void on_sent(void *owner, bool ok)
{
    struct dw_unary_call *call = owner;
    (void)ok;
    pthread_mutex_lock(&call->mutex);
    if (call->outgoing != NULL) {
        grpc_byte_buffer_destroy(call->outgoing);
    }
    pthread_mutex_unlock(&call->mutex);
    done(call);
}

static void on_close(void *owner, bool ok)
{
    struct dw_unary_call *call = owner;
    (void)ok;
    pthread_mutex_lock(&call->mutex);
    call->closed = true;
    pthread_mutex_unlock(&call->mutex);
    done(call);
}

void unary_begin(struct dw_rpc *rpc, grpc_call *grpc, const char *method, const char *refusal)
{
    struct dw_unary_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        grpc_call_cancel_with_status(grpc, GRPC_STATUS_RESOURCE_EXHAUSTED, "out of memory", NULL);
        grpc_call_unref(grpc);
        return;
    }
    call->rpc = rpc;
    call->self = rpc->options.self;
    call->call = grpc;
    atomic_init(&call->references, 2);
    pthread_mutex_init(&call->mutex, NULL);
    snprintf(call->method, sizeof call->method, "%s", method);
    call->read_tag = (struct rpc_tag){.run = on_read, .owner = call};
    call->close_tag = (struct rpc_tag){.run = on_close, .owner = call};
    call->sent_tag = (struct rpc_tag){.run = on_sent, .owner = call};
    rpc->live++;
    grpc_op close_op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                        .data.recv_close_on_server.cancelled = &call->cancelled};
    grpc_op read_op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &call->incoming};
    pthread_mutex_lock(&call->mutex);
    start(call, &close_op, 1, &call->close_tag);
    if (refusal == NULL) {
        start(call, &read_op, 1, &call->read_tag);
    }
    pthread_mutex_unlock(&call->mutex);
    if (refusal != NULL) {
        /* A stream that is refused sends nothing that could be waited for. */
        finish_error(call, DW_ERR_REFUSED, refusal);
    }
}
