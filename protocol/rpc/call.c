#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc_security.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "rpc/internal.h"

enum { KEEPALIVE_MS = 2000, RECONNECT_MS = 100 };

/* One blocking call and what it brings back. */
struct exchange {
    const struct dw_identity *self;
    const char *address;
    const char *method;
    uint32_t deadline_ms;
    grpc_metadata_array initial;
    grpc_metadata_array trailing;
    grpc_byte_buffer *reply;
    grpc_status_code status;
    grpc_slice details;
};

/* Runs the call's only batch; the deadline ends it at the latest. */
static void run(struct exchange *exchange, grpc_call *call, grpc_completion_queue *queue,
                const uint8_t *request, size_t request_size)
{
    struct rpc_hello hello;
    rpc_hello_fill(&hello, exchange->self);
    grpc_slice slice = grpc_slice_from_copied_buffer((const char *)request, request_size);
    grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    grpc_op ops[6] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY | GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET,
         .data.send_initial_metadata = {.count = RPC_HELLO_ITEMS, .metadata = hello.items}},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &exchange->initial},
        {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &exchange->reply},
        {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
         .data.recv_status_on_client = {.trailing_metadata = &exchange->trailing,
                                        .status = &exchange->status,
                                        .status_details = &exchange->details}}};
    grpc_call_error error = grpc_call_start_batch(call, ops, 6, exchange, NULL);
    DW_ASSERT(error == GRPC_CALL_OK);
    grpc_event event = grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    DW_ASSERT(event.type == GRPC_OP_COMPLETE && event.tag == exchange);
    rpc_hello_release(&hello);
    grpc_byte_buffer_destroy(message);
}

static void connect_and_run(struct exchange *exchange, const char *target, const uint8_t *request,
                            size_t request_size)
{
    struct rpc_args args;
    char path[RPC_TEXT];
    snprintf(path, sizeof path, "%s%s", RPC_SERVICE, exchange->method);
    rpc_args_client(&args, KEEPALIVE_MS, RECONNECT_MS);
    grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
    grpc_channel *channel = grpc_channel_create(target, insecure, &args.list);
    grpc_channel_credentials_release(insecure);
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                         gpr_time_from_millis((int64_t)exchange->deadline_ms, GPR_TIMESPAN));
    grpc_slice method = grpc_slice_from_copied_string(path);
    grpc_call *call =
        grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue, method, NULL, deadline, NULL);
    grpc_slice_unref(method);
    run(exchange, call, queue, request, request_size);
    grpc_call_unref(call);
    grpc_channel_destroy(channel);
    grpc_completion_queue_shutdown(queue);
    while (grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN) {
    }
    grpc_completion_queue_destroy(queue);
}

static enum dw_error copy_reply(grpc_byte_buffer *reply, uint8_t **data, size_t *size)
{
    grpc_byte_buffer_reader reader;
    if (reply == NULL || !grpc_byte_buffer_reader_init(&reader, reply)) {
        return DW_ERR_MALFORMED;
    }
    grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
    enum dw_error error = DW_OK;
    *size = GRPC_SLICE_LENGTH(slice);
    *data = malloc(*size > 0 ? *size : 1);
    if (*data == NULL) {
        error = DW_ERR_MEMORY;
    } else {
        memcpy(*data, GRPC_SLICE_START_PTR(slice), *size);
    }
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
    return error;
}

/* The error that the server named, or what the status says. */
static enum dw_error error_in(const struct exchange *exchange, bool *named)
{
    for (size_t i = 0; i < exchange->trailing.count; i++) {
        const grpc_metadata *each = &exchange->trailing.metadata[i];
        if (grpc_slice_str_cmp(each->key, RPC_ERROR_KEY) == 0) {
            char number[12];
            rpc_slice_text(each->value, number, sizeof number);
            long value = strtol(number, NULL, 10);
            if (value > DW_OK && value <= DW_ERR_SHUTDOWN) {
                *named = true;
                return (enum dw_error)value;
            }
        }
    }
    *named = false;
    return rpc_error_of(exchange->status);
}

static enum dw_error explain(const struct exchange *exchange, char *text, size_t text_size)
{
    bool named;
    enum dw_error error = error_in(exchange, &named);
    if (!named && error == DW_ERR_TIMEOUT) {
        snprintf(text, text_size, "no answer from %.100s to %.60s within %u ms; is it running?",
                 exchange->address, exchange->method, exchange->deadline_ms);
    } else {
        rpc_slice_text(exchange->details, text, text_size);
    }
    return error;
}

static enum dw_error conclude(struct exchange *exchange, uint8_t **data, size_t *size, char *text,
                              size_t text_size)
{
    struct dw_identity peer;
    bool present;
    if (exchange->status != GRPC_STATUS_OK) {
        return explain(exchange, text, text_size);
    }
    if (!rpc_hello_check(exchange->self, NULL, exchange->address, &exchange->initial, &peer, &present, text,
                         text_size)) {
        return DW_ERR_REFUSED;
    }
    enum dw_error error = copy_reply(exchange->reply, data, size);
    if (error != DW_OK) {
        snprintf(text, text_size, "the reply of %.100s cannot be used (%s)", exchange->address,
                 dw_error_text(error));
    }
    return error;
}

enum dw_error dw_rpc_call(const char *address, const struct dw_identity *self, const char *method,
                          const uint8_t *request, size_t request_size, uint32_t deadline_ms, uint8_t **data,
                          size_t *size, char *text, size_t text_size)
{
    struct rpc_address resolved;
    if (!rpc_run_id_valid(self->run_id)) {
        snprintf(text, text_size, "the run id must be letters, digits, '.', '_' or '-', at most %d",
                 DW_MAX_RUN_ID);
        return DW_ERR_ARGUMENT;
    }
    if (request_size > DW_MAX_MESSAGE) {
        snprintf(text, text_size, "the request to %.60s exceeds %u bytes", method, DW_MAX_MESSAGE);
        return DW_ERR_TOO_LARGE;
    }
    enum dw_error error = rpc_resolve(address, false, &resolved, text, text_size);
    if (error != DW_OK) {
        return error;
    }
    rpc_silence();
    grpc_init();
    struct exchange exchange = {.self = self,
                                .address = address,
                                .method = method,
                                .deadline_ms = deadline_ms,
                                .details = grpc_empty_slice()};
    grpc_metadata_array_init(&exchange.initial);
    grpc_metadata_array_init(&exchange.trailing);
    connect_and_run(&exchange, resolved.target, request, request_size);
    error = conclude(&exchange, data, size, text, text_size);
    if (exchange.reply != NULL) {
        grpc_byte_buffer_destroy(exchange.reply);
    }
    grpc_slice_unref(exchange.details);
    grpc_metadata_array_destroy(&exchange.initial);
    grpc_metadata_array_destroy(&exchange.trailing);
    grpc_shutdown_blocking();
    return error;
}
