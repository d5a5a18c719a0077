#include "base/assert.h"
#include "rpc/internal.h"

static void on_wake(void *owner, bool ok)
{
    struct dw_rpc *rpc = owner;
    (void)ok;
    pthread_mutex_lock(&rpc->mutex);
    rpc->wake_pending = false;
    bool stop = rpc->stop_asked;
    pthread_mutex_unlock(&rpc->mutex);
    /* A wake-up may mean a new client connection: look at all of them. */
    rpc->due_us = 0;
    if (stop && !rpc->stopping) {
        rpc->stopping = true;
        client_stop_all(rpc);
        server_stop(rpc);
    }
}

/* The channel leads nowhere: its call exists to carry empty batches, which complete at once on our queue. */
void rpc_wake_open(struct dw_rpc *rpc)
{
    rpc->wake_tag = (struct rpc_tag){.run = on_wake, .owner = rpc};
    rpc->wake_channel = grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "wake");
    rpc->wake_call = grpc_channel_create_call(rpc->wake_channel, NULL, GRPC_PROPAGATE_DEFAULTS, rpc->queue,
                                              grpc_slice_from_static_string(RPC_SERVICE RPC_STREAM_NAME),
                                              NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
}

void dw_rpc_wake(struct dw_rpc *rpc)
{
    pthread_mutex_lock(&rpc->mutex);
    if (!rpc->wake_pending && !rpc->wake_closed) {
        rpc->wake_pending = true;
        grpc_call_error error = grpc_call_start_batch(rpc->wake_call, NULL, 0, &rpc->wake_tag, NULL);
        DW_ASSERT(error == GRPC_CALL_OK);
    }
    pthread_mutex_unlock(&rpc->mutex);
}

static void wake_close(struct dw_rpc *rpc)
{
    pthread_mutex_lock(&rpc->mutex);
    rpc->wake_closed = true;
    pthread_mutex_unlock(&rpc->mutex);
    grpc_call_unref(rpc->wake_call);
    grpc_channel_destroy(rpc->wake_channel);
}

static gpr_timespec deadline_of(uint64_t time_us)
{
    if (time_us == UINT64_MAX) {
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    }
    return (gpr_timespec){.tv_sec = (int64_t)(time_us / 1000000),
                          .tv_nsec = (int32_t)(time_us % 1000000) * 1000,
                          .clock_type = GPR_CLOCK_MONOTONIC};
}

/* What is due now is done; returns when to come back at the latest. */
static uint64_t attend(struct dw_rpc *rpc)
{
    if (rpc->stopping) {
        return UINT64_MAX;
    }
    uint64_t now = dw_rpc_now_us();
    if (now >= rpc->due_us) {
        client_attend(rpc, now);
    }
    uint64_t next = UINT64_MAX;
    if (rpc->options.handlers.on_tick != NULL) {
        next = rpc->options.handlers.on_tick(rpc->options.user, now);
    }
    return next < rpc->due_us ? next : rpc->due_us;
}

/* Only wake-ups can be left, since nothing else is alive. */
static void drain(struct dw_rpc *rpc)
{
    grpc_completion_queue_shutdown(rpc->queue);
    for (;;) {
        grpc_event event = grpc_completion_queue_next(rpc->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) {
            return;
        }
        DW_ASSERT(event.tag == &rpc->wake_tag);
    }
}

static bool is_over(const struct dw_rpc *rpc)
{
    return rpc->stopping && rpc->live == 0;
}

/* Waits for an event, and handles it and what else is there by then: one tick sends what follows from all of
 * it. */
static void handle_events(struct dw_rpc *rpc, gpr_timespec deadline)
{
    for (unsigned handled = 0; handled < RPC_EVENTS_A_TICK && !is_over(rpc); handled++) {
        grpc_event event = grpc_completion_queue_next(rpc->queue, deadline, NULL);
        DW_ASSERT(event.type != GRPC_QUEUE_SHUTDOWN);
        if (event.type != GRPC_OP_COMPLETE) {
            return;
        }
        struct rpc_tag *tag = event.tag;
        tag->run(tag->owner, event.success != 0);
        deadline = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    }
}

void rpc_hand_over(struct dw_rpc *rpc, struct rpc_tag *tag, bool ok)
{
    DW_ASSERT(tag != &rpc->wake_tag);
    pthread_mutex_lock(&rpc->mutex);
    tag->ok = ok;
    tag->next = rpc->strays;
    rpc->strays = tag;
    pthread_mutex_unlock(&rpc->mutex);
    dw_rpc_wake(rpc);
}

static void handle_strays(struct dw_rpc *rpc)
{
    pthread_mutex_lock(&rpc->mutex);
    struct rpc_tag *tag = rpc->strays;
    rpc->strays = NULL;
    pthread_mutex_unlock(&rpc->mutex);
    while (tag != NULL) {
        struct rpc_tag *next = tag->next;
        tag->run(tag->owner, tag->ok);
        tag = next;
    }
}

void *rpc_loop(void *argument)
{
    struct dw_rpc *rpc = argument;
    while (!is_over(rpc)) {
        gpr_timespec deadline = deadline_of(attend(rpc));
        conn_read_all(rpc);
        handle_events(rpc, deadline);
        handle_strays(rpc);
    }
    wake_close(rpc);
    drain(rpc);
    return NULL;
}
