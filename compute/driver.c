/* The commit driver: messages, log replies and time-outs become events of the core, and its updates become
 * messages, log requests, timers, lock releases and answers. */
#include "compute/runtime.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static bool coordinates(const struct runtime *runtime, const struct txn_context *context)
{
    return context->id.coordinator == runtime->options->node;
}

static bool reached(struct runtime *runtime, enum failpoint point)
{
    return failpoints_reached(&runtime->failpoints, point);
}

/* What has been said must have left before a failpoint kills. */
static bool reached_after_sending(struct runtime *runtime, enum failpoint point)
{
    if (runtime->failpoints.points[point].action != FAILPOINT_OFF) {
        links_flush(runtime);
    }
    return reached(runtime, point);
}

/* --- outputs --- */

static bool carries_redo(enum dw_ask ask)
{
    return ask == DW_ASK_VOTE || ask == DW_ASK_COMMIT_LOCAL || ask == DW_ASK_COORD_COMMIT;
}

static void count_log(struct txn_context *context, const struct dw_out *out, size_t redo_bytes)
{
    if (out->ask == DW_ASK_END) {
        context->costs.ends++;
        return;
    }
    context->costs.log_writes++;
    context->costs.forced_log_writes += out->force;
    context->costs.log_bytes += redo_bytes;
}

static void send_log(struct runtime *runtime, struct txn_context *context, const struct dw_out *out)
{
    if (!coordinates(runtime, context) &&
        (out->ask == DW_ASK_DECIDE_COMMIT || out->ask == DW_ASK_DECIDE_ABORT) &&
        reached(runtime, FAILPOINT_PARTICIPANT_BEFORE_DECISION_LOGGED)) {
        return;
    }
    bool redo = carries_redo(out->ask);
    for (uint32_t log = 0; log < runtime->cluster->compute_nodes; log++) {
        if ((out->to & dw_node_bit(log)) == 0) {
            continue;
        }
        struct dw_wire_log_request request = {.request = {.txn = context->id,
                                                          .log = log,
                                                          .writer = runtime->options->node,
                                                          .incarnation = runtime->node.incarnation,
                                                          .ask = out->ask},
                                              .participants = out->writers,
                                              .redo = redo ? context->redo.data : NULL,
                                              .redo_size = redo ? context->redo.size : 0,
                                              .force = out->force};
        count_log(context, out, request.redo_size);
        links_send_log(runtime, &request);
    }
}

static const struct dw_token *token_for(const struct txn_context *context, const struct dw_out *out,
                                        uint32_t to, struct dw_token *scratch)
{
    if (out->message == DW_MSG_VOTE_REQUEST || out->message == DW_MSG_READ_REQUEST) {
        return context->slot != NULL ? slot_token(context->slot, to) : NULL;
    }
    bool tells = out->message == DW_MSG_ACK && context->released_us != 0;
    *scratch = (struct dw_token){.released_us = tells ? dw_rpc_now_us() - context->released_us : 0};
    return scratch;
}

/* The points between the messages of one broadcast, and after it. */
static void reach_sent(struct runtime *runtime, const struct txn_context *context, enum dw_message_kind kind,
                       bool all)
{
    if (kind == DW_MSG_VOTE_REQUEST) {
        reached_after_sending(runtime, all ? FAILPOINT_COORDINATOR_AFTER_VOTE_REQUESTS
                                           : FAILPOINT_COORDINATOR_AFTER_SOME_VOTE_REQUESTS);
    } else if (kind == DW_MSG_DECISION && coordinates(runtime, context)) {
        reached_after_sending(runtime, all ? FAILPOINT_COORDINATOR_AFTER_DECISIONS
                                           : FAILPOINT_COORDINATOR_AFTER_SOME_DECISIONS);
    } else if (kind == DW_MSG_VOTE && all) {
        reached_after_sending(runtime, FAILPOINT_PARTICIPANT_AFTER_REPLY);
    }
}

static void count_message(struct txn_context *context, const struct dw_message *message)
{
    struct txn_costs *costs = &context->costs;
    bool commit = message->kind == DW_MSG_DECISION && message->value == DW_OUTCOME_COMMITTED;
    if (commit || message->kind == DW_MSG_READ_REQUEST) {
        context->asked |= dw_node_bit(message->to);
    }
    if (message->kind == DW_MSG_ACK) {
        costs->acks++;
        return;
    }
    costs->messages++;
    if (message->kind == DW_MSG_VOTE_REQUEST) {
        costs->writers++;
    } else if (message->kind == DW_MSG_READ_REQUEST) {
        costs->readers++;
        costs->messages++; /* its answer */
    } else if (message->kind == DW_MSG_VOTE &&
               (message->value == DW_VOTE_HELD || message->value == DW_VOTE_REFUSED)) {
        context->was_reader = true;
    }
}

static void send_messages(struct runtime *runtime, struct txn_context *context, const struct dw_out *out)
{
    uint64_t left = out->to;
    for (uint32_t to = 0; left != 0; to++) {
        if ((left & dw_node_bit(to)) == 0) {
            continue;
        }
        left &= ~dw_node_bit(to);
        struct dw_message message = {.kind = out->message,
                                     .from = runtime->options->node,
                                     .to = to,
                                     .value = out->value,
                                     .txn = context->id,
                                     .writers = out->writers};
        struct dw_token scratch;
        links_send_message(runtime, &message, token_for(context, out, to, &scratch));
        count_message(context, &message);
        reach_sent(runtime, context, out->message, left == 0);
    }
}

static void apply(struct runtime *runtime, struct txn_context *context, uint64_t position)
{
    context->applied = true;
    if (context->redo.size > 0) {
        struct dw_applied applied;
        enum dw_error error = runtime->engine->ops->apply(runtime->engine, position, context->redo.data,
                                                          context->redo.size, &applied);
        DW_ASSERT(error == DW_OK); /* each change was checked when it was made, or when it was recovered */
    }
}

static void alarm(struct runtime *runtime, const struct txn_context *context, enum dw_alarm alarm)
{
    runtime->stats.alarms[alarm]++;
    fprintf(stderr, "dogwood-compute %u: alarm %s for transaction %u:%u:%llu\n", runtime->options->node,
            dw_alarm_name(alarm), context->id.coordinator, context->id.incarnation,
            (unsigned long long)context->id.sequence);
    if (alarm == DW_ALARM_FENCED) {
        runtime->stopping = true;
        runtime->exit_code = 3;
    }
}

static void carry_out(struct runtime *runtime, struct txn_context *context, const struct dw_out *out)
{
    switch (out->kind) {
    case DW_OUT_SEND:
        send_messages(runtime, context, out);
        return;
    case DW_OUT_LOG:
        send_log(runtime, context, out);
        return;
    case DW_OUT_ARM:
        timers_arm(&runtime->timers, (enum dw_timer)out->value,
                   runtime->now_us + runtime->options->timeout_us[out->value], context->id, out->attempt);
        return;
    case DW_OUT_CALLER:
        load_answered(runtime, context, (enum dw_outcome)out->value);
        return;
    case DW_OUT_APPLY:
        apply(runtime, context, out->position);
        return;
    case DW_OUT_RELEASE:
        dw_lock_release(runtime->locks, context->id);
        context->released_us = dw_rpc_now_us();
        return;
    case DW_OUT_RELOCK:
        DW_ASSERT(executor_relock(runtime, context) == DW_OK);
        return;
    case DW_OUT_ALARM:
        alarm(runtime, context, (enum dw_alarm)out->value);
        return;
    case DW_OUT_DISARM: /* a timer that is not wanted any more is known by its number when it is due */
    case DW_OUT_FENCE:
    case DW_OUT_SCAN:
        return;
    }
}

/* --- steps --- */

/* True if this update is the one that follows from the last answer: the caller's, or the log write that
 * decides. */
static bool completes_prepare(const struct dw_update *update)
{
    for (uint32_t i = 0; i < update->count; i++) {
        const struct dw_out *out = &update->outs[i];
        if (out->kind == DW_OUT_CALLER || (out->kind == DW_OUT_LOG && (out->ask == DW_ASK_COORD_COMMIT ||
                                                                       out->ask == DW_ASK_COMMIT_LOCAL))) {
            return true;
        }
    }
    return false;
}

static void add_costs(struct cost_stats *sums, const struct txn_costs *costs)
{
    sums->log_writes += costs->log_writes;
    sums->forced_log_writes += costs->forced_log_writes;
    sums->messages += costs->messages;
    sums->acks += costs->acks;
    sums->ends += costs->ends;
    sums->log_bytes += costs->log_bytes;
}

static void count_coordinated(struct stats *stats, const struct txn_context *context)
{
    stats->costs.coordinated++;
    stats->costs.with_writers += context->costs.writers > 0;
    stats->costs.only_own += context->costs.writers == 0 && context->wrote;
    stats->costs.writers += context->costs.writers;
    stats->costs.readers += context->costs.readers;
}

/* Adds up what the transaction cost here, if it committed: one that was executed here from its begin, and not
 * found in the log or in a message; `applied` is true of every reader, whatever became of the transaction. */
static void settle(struct runtime *runtime, const struct txn_context *context)
{
    struct stats *stats = &runtime->stats;
    bool coordinated = coordinates(runtime, context);
    bool executed = coordinated ? context->begin_us != 0 : context->token.counter != 0;
    if (!context->applied || !context->distributed || !executed || context->was_reader) {
        return;
    }
    add_costs(&stats->costs, &context->costs);
    if (!coordinated) {
        return;
    }
    count_coordinated(stats, context);
    if (context->measured == runtime->load.number && (context->asked & ~context->told) == 0) {
        stats->release_us += context->released_us - context->begin_us;
        stats->release_count++;
    }
}

/* A node says that it has freed its locks. A writer also says how long ago, on its own clock: the clocks of
 * two hosts have nothing in common, so the time is that of the message's arrival, less this. It is late by
 * the message's way at most, and never early. */
static void note_released(struct runtime *runtime, struct txn_context *context,
                          const struct dw_message *message, const struct dw_token *token)
{
    uint64_t from = dw_node_bit(message->from);
    bool held = message->kind == DW_MSG_VOTE && message->value == DW_VOTE_HELD;
    if ((message->kind != DW_MSG_ACK && !held) || context->begin_us == 0 || (context->told & from) != 0) {
        return;
    }
    context->told |= from;
    uint64_t since_begin_us = runtime->now_us - context->begin_us;
    uint64_t ago_us = token->released_us < since_begin_us ? token->released_us : since_begin_us;
    if (runtime->now_us - ago_us > context->released_us) {
        context->released_us = runtime->now_us - ago_us;
    }
}

void driver_step(struct runtime *runtime, struct txn_context *context, struct dw_event *event)
{
    struct dw_update update;
    event->txn = context->id;
    dw_step(runtime->options->protocol, &runtime->node, &context->machine, event, &update);
    if (event->kind != DW_EVENT_CANCEL && context->slot != NULL && completes_prepare(&update)) {
        bool first = slot_note_prepared(context->slot, runtime->now_us);
        if (first && context->distributed &&
            reached_after_sending(runtime, FAILPOINT_COORDINATOR_AFTER_VOTES)) {
            update.count = 0;
        }
    }
    for (uint32_t i = 0; i < update.count; i++) {
        carry_out(runtime, context, &update.outs[i]);
    }
    /* One whose caller waits is executing here: the core knows nothing of it yet, whatever peers say. */
    if (context->machine.state == DW_TXN_ABSENT && context->slot == NULL) {
        settle(runtime, context);
        txn_table_remove(runtime->txns, context);
    }
}

/* The context of a transaction, made if it is not known. NULL: no memory, and the event is lost. */
static struct txn_context *find_or_add(struct runtime *runtime, struct dw_txn_id id)
{
    struct txn_context *context = txn_table_find(runtime->txns, id);
    if (context == NULL) {
        context = txn_table_add(runtime->txns, id);
        if (context != NULL) {
            context->distributed = true;
        }
    }
    return context;
}

/* Nothing lies between taking a vote request and logging the vote but the step itself. */
static bool fails_before(struct runtime *runtime, const struct dw_message *message)
{
    return message->kind == DW_MSG_VOTE_REQUEST &&
           (reached(runtime, FAILPOINT_PARTICIPANT_BEFORE_VOTE_REQUEST) ||
            reached(runtime, FAILPOINT_PARTICIPANT_AFTER_VOTE_REQUEST));
}

static void note_cancelled(struct runtime *runtime, const struct dw_message *message)
{
    bool abort = message->kind == DW_MSG_DECISION && message->value == DW_OUTCOME_ABORTED;
    uint32_t room = sizeof runtime->cancelled / sizeof *runtime->cancelled;
    /* Beyond the room the access runs, and its owner gives it up at its own time-out. */
    if (abort && runtime->cancelled_count < room && txn_table_find(runtime->txns, message->txn) == NULL) {
        runtime->cancelled[runtime->cancelled_count++] = message->txn;
    }
}

bool driver_is_cancelled(const struct runtime *runtime, struct dw_txn_id id)
{
    for (uint32_t i = 0; i < runtime->cancelled_count; i++) {
        if (dw_txn_id_equal(runtime->cancelled[i], id)) {
            return true;
        }
    }
    return false;
}

/* Termination would wait forever for a log that the cluster does not have. */
static bool is_of_cluster(const struct runtime *runtime, const struct dw_message *message)
{
    uint32_t nodes = runtime->cluster->compute_nodes;
    uint64_t others = nodes < DW_MAX_NODES ? UINT64_MAX << nodes : 0;
    return message->txn.coordinator < nodes && (message->writers & others) == 0;
}

void driver_on_message(struct runtime *runtime, const struct dw_message *message,
                       const struct dw_token *token)
{
    if (message->to != runtime->options->node || message->from == message->to ||
        message->from >= runtime->cluster->compute_nodes || !is_of_cluster(runtime, message)) {
        return;
    }
    if (fails_before(runtime, message)) {
        return;
    }
    note_cancelled(runtime, message);
    struct txn_context *context = find_or_add(runtime, message->txn);
    if (context == NULL) {
        return;
    }
    note_released(runtime, context, message, token);
    struct dw_event event = {.kind = DW_EVENT_MESSAGE,
                             .message = *message,
                             .execution = executor_execution(context, message, token)};
    driver_step(runtime, context, &event);
}

static bool fails_at_reply(struct runtime *runtime, const struct txn_context *context, enum dw_ask ask)
{
    if (ask == DW_ASK_VOTE) {
        return reached(runtime, coordinates(runtime, context) ? FAILPOINT_COORDINATOR_AFTER_OWN_VOTE
                                                              : FAILPOINT_PARTICIPANT_AFTER_VOTE_LOGGED);
    }
    bool decision = ask == DW_ASK_DECIDE_COMMIT || ask == DW_ASK_DECIDE_ABORT;
    return decision && !coordinates(runtime, context) &&
           reached(runtime, FAILPOINT_PARTICIPANT_AFTER_DECISION_LOGGED);
}

void driver_on_log_reply(struct runtime *runtime, const struct dw_wire_log_reply *reply)
{
    struct txn_context *context = txn_table_find(runtime->txns, reply->reply.txn);
    if (context == NULL || fails_at_reply(runtime, context, reply->reply.ask)) {
        return;
    }
    struct dw_event event = {.kind = DW_EVENT_LOG_REPLY, .reply = reply->reply};
    driver_step(runtime, context, &event);
}

void driver_on_timers(struct runtime *runtime)
{
    struct timer_entry entry;
    while (timers_pop(&runtime->timers, runtime->now_us, &entry)) {
        struct txn_context *context = txn_table_find(runtime->txns, entry.txn);
        if (context != NULL) {
            struct dw_event event = {.kind = DW_EVENT_TIMEOUT, .timer = entry.kind, .attempt = entry.attempt};
            driver_step(runtime, context, &event);
        }
    }
}
