#include "raw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <stdio.h>
#include <string.h>

static grpc_metadata item(const char *key, const char *value)
{
    return (grpc_metadata){.key = grpc_slice_from_static_string(key),
                           .value = grpc_slice_from_static_string(value)};
}

static grpc_byte_buffer *zeros(size_t size)
{
    grpc_slice slice = grpc_slice_malloc(size);
    memset(GRPC_SLICE_START_PTR(slice), 0, size);
    grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return message;
}

/* What the call brings back. */
struct outcome {
    grpc_metadata_array initial;
    grpc_metadata_array trailing;
    grpc_byte_buffer *reply;
    grpc_status_code status;
    grpc_slice details;
};

static void run(grpc_call *call, grpc_completion_queue *queue, const struct raw_call *what,
                struct outcome *outcome)
{
    grpc_metadata items[5];
    size_t count = 0;
    if (what->run_id != NULL) {
        items[count++] = item("dw-role", what->role != NULL ? what->role : "compute");
        items[count++] = item("dw-node", what->node != NULL ? what->node : "3");
        items[count++] = item("dw-run-id", what->run_id);
        items[count++] = item("dw-version", what->version);
        items[count++] = item("dw-protocol", what->protocol != NULL ? what->protocol : "");
    }
    grpc_byte_buffer *message = zeros(what->message_size);
    grpc_op ops[6] = {{.op = GRPC_OP_SEND_INITIAL_METADATA,
                       .flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY,
                       .data.send_initial_metadata = {.count = count, .metadata = items}},
                      {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
                      {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                      {.op = GRPC_OP_RECV_INITIAL_METADATA,
                       .data.recv_initial_metadata.recv_initial_metadata = &outcome->initial},
                      {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &outcome->reply},
                      {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                       .data.recv_status_on_client = {.trailing_metadata = &outcome->trailing,
                                                      .status = &outcome->status,
                                                      .status_details = &outcome->details}}};
    assert_int_equal(grpc_call_start_batch(call, ops, 6, outcome, NULL), GRPC_CALL_OK);
    (void)grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_byte_buffer_destroy(message);
}

grpc_status_code raw_run(const char *address, const struct raw_call *what, char *text, size_t text_size)
{
    struct outcome outcome = {.details = grpc_empty_slice()};
    grpc_init();
    grpc_metadata_array_init(&outcome.initial);
    grpc_metadata_array_init(&outcome.trailing);
    grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
    grpc_channel *channel = grpc_channel_create(address, insecure, NULL);
    grpc_channel_credentials_release(insecure);
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(60, GPR_TIMESPAN));
    grpc_call *call =
        grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
                                 grpc_slice_from_static_string(what->path), NULL, deadline, NULL);
    run(call, queue, what, &outcome);
    snprintf(text, text_size, "%.*s", (int)GRPC_SLICE_LENGTH(outcome.details),
             (const char *)GRPC_SLICE_START_PTR(outcome.details));
    grpc_call_unref(call);
    grpc_channel_destroy(channel);
    grpc_completion_queue_shutdown(queue);
    while (grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN) {
    }
    grpc_completion_queue_destroy(queue);
    if (outcome.reply != NULL) {
        grpc_byte_buffer_destroy(outcome.reply);
    }
    grpc_slice_unref(outcome.details);
    grpc_metadata_array_destroy(&outcome.initial);
    grpc_metadata_array_destroy(&outcome.trailing);
    grpc_shutdown_blocking();
    return outcome.status;
}
