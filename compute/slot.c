#include "compute/slot.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

const struct dw_token *slot_token(const struct slot *slot, uint32_t node)
{
    return &slot->tokens[node];
}

bool slot_note_prepared(struct slot *slot, uint64_t now_us)
{
    if (slot->prepared_us != 0) {
        return false;
    }
    slot->prepared_us = now_us;
    return true;
}

/* --- the end of an attempt --- */

static void fail_attempt(struct runtime *runtime, struct slot *slot)
{
    struct dw_event cancel = {.kind = DW_EVENT_CANCEL, .readers = slot->touched};
    driver_step(runtime, slot->context, &cancel);
}

static void ask_commit(struct runtime *runtime, struct slot *slot)
{
    slot->state = SLOT_COMMITTING;
    slot->commit_us = dw_rpc_now_us();
    runtime->now_us = slot->commit_us;
    slot->context->distributed = (slot->touched & ~dw_node_bit(runtime->options->node)) != 0;
    if (slot->context->distributed &&
        failpoints_reached(&runtime->failpoints, FAILPOINT_COORDINATOR_BEFORE_START)) {
        return; /* as if the process had stopped here: the slot stays taken */
    }
    struct dw_event commit = {.kind = DW_EVENT_COMMIT, .writers = slot->writers, .readers = slot->readers};
    driver_step(runtime, slot->context, &commit);
}

/* --- rounds --- */

static uint8_t *rows_room(struct slot *slot, size_t size)
{
    DW_ASSERT(slot->rows_size + size <= slot->rows_capacity);
    uint8_t *room = slot->rows + slot->rows_size;
    slot->rows_size += size;
    return room;
}

/* All rows that the round can give have room, so that results never move. */
static void reserve_rows(struct runtime *runtime, struct slot *slot)
{
    size_t needed = 0;
    for (uint32_t i = 0; i < slot->round.count; i++) {
        const struct dw_access *access = &slot->round.accesses[i];
        if (access->kind == DW_ACCESS_READ) {
            needed +=
                dw_table_row_bytes(runtime->options->workload->table(runtime->workload_state, access->table));
        }
    }
    slot->rows_size = 0;
    if (slot->rows == NULL || needed > slot->rows_capacity) {
        free(slot->rows);
        slot->rows = malloc(needed + 1); /* never NULL, also for a round without reads */
        DW_ASSERT(slot->rows != NULL);
        slot->rows_capacity = needed;
    }
}

static struct dw_wire_access wire_access(const struct dw_round *round, const struct dw_access *access)
{
    return (struct dw_wire_access){.table = access->table,
                                   .key = access->key,
                                   .kind = access->kind,
                                   .field = access->field,
                                   .value =
                                       access->kind == DW_ACCESS_WRITE ? dw_round_value(round, access) : NULL,
                                   .value_size = access->value_bytes};
}

static void note_access(struct slot *slot, const struct dw_access *access)
{
    uint64_t owner = dw_node_bit(access->owner);
    slot->touched |= owner;
    if (access->kind == DW_ACCESS_READ) {
        slot->readers |= owner;
    } else {
        slot->writers |= owner;
    }
}

/* Runs the accesses of the round that this node owns, from `first` on up to `end`. */
static bool run_local(struct runtime *runtime, struct slot *slot, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const struct dw_access *access = &slot->round.accesses[i];
        if (access->owner != runtime->options->node) {
            continue;
        }
        struct dw_wire_access wire = wire_access(&slot->round, access);
        struct dw_wire_row row = {0};
        struct row_sink sink = {.rows = &row,
                                .bytes = slot->rows + slot->rows_size,
                                .capacity = slot->rows_capacity - slot->rows_size};
        note_access(slot, access);
        if (executor_run(runtime, slot->context, &wire, 1, &sink) != ACCESS_OK) {
            return false;
        }
        slot->rows_size += sink.size;
        slot->results[i] = (struct dw_access_result){.row = row.data, .bytes = row.size};
        slot->answered[i] = 1;
    }
    return true;
}

/* A request is named by who is asked and the first access of the round that it may hold; the reply brings it
 * back. */
static uint64_t request_id(uint32_t owner, uint32_t first)
{
    return (uint64_t)owner << 32 | first;
}

/* Sends the accesses of the round from `first` to `end` that `owner` has, as one message. */
static void send_remote(struct runtime *runtime, struct slot *slot, uint32_t owner, uint32_t first,
                        uint32_t end)
{
    struct dw_wire_access accesses[DW_ROUND_MAX_ACCESSES];
    size_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        if (slot->round.accesses[i].owner == owner) {
            accesses[count++] = wire_access(&slot->round, &slot->round.accesses[i]);
            note_access(slot, &slot->round.accesses[i]);
        }
    }
    slot->tokens[owner].accesses++;
    struct dw_wire_access_request request = {.id = request_id(owner, first),
                                             .txn = slot->txn,
                                             .from = runtime->options->node,
                                             .token = slot->tokens[owner],
                                             .accesses = accesses,
                                             .access_count = count};
    slot->waiting |= dw_node_bit(owner);
    links_send_access(runtime, owner, &request);
}

static void wait_for_replies(struct runtime *runtime, struct slot *slot)
{
    slot->state = SLOT_EXECUTING;
    slot->due_us = runtime->now_us + runtime->options->request_timeout_us;
    if (slot->due_us < runtime->load.slots_due_us) {
        runtime->load.slots_due_us = slot->due_us;
    }
}

/* The own accesses run first, so that nothing is sent for a transaction that fails here; then everything that
 * another owner has goes to it as one message. False if an own access failed. */
static bool start_batched(struct runtime *runtime, struct slot *slot)
{
    slot->next_access = slot->round.count;
    if (!run_local(runtime, slot, 0, slot->round.count)) {
        return false;
    }
    uint64_t others = dw_round_owners(&slot->round) & ~dw_node_bit(runtime->options->node);
    for (uint32_t owner = 0; others != 0; owner++) {
        if ((others & dw_node_bit(owner)) != 0) {
            others &= ~dw_node_bit(owner);
            send_remote(runtime, slot, owner, 0, slot->round.count);
        }
    }
    return true;
}

/* One access after the other, each awaited. False if an own access failed. */
static bool go_on_one_by_one(struct runtime *runtime, struct slot *slot)
{
    while (slot->next_access < slot->round.count && slot->waiting == 0) {
        uint32_t i = slot->next_access++;
        if (slot->round.accesses[i].owner != runtime->options->node) {
            send_remote(runtime, slot, slot->round.accesses[i].owner, i, i + 1);
        } else if (!run_local(runtime, slot, i, i + 1)) {
            return false;
        }
    }
    return true;
}

static void next_rounds(struct runtime *runtime, struct slot *slot);

/* Continues the round; when it is complete, the procedure. */
static void go_on(struct runtime *runtime, struct slot *slot, bool good)
{
    if (!good) {
        fail_attempt(runtime, slot);
    } else if (slot->waiting != 0) {
        wait_for_replies(runtime, slot);
    } else {
        next_rounds(runtime, slot);
    }
}

static void start_round(struct runtime *runtime, struct slot *slot)
{
    memset(slot->answered, 0, sizeof slot->answered);
    memset(slot->results, 0, slot->round.count * sizeof *slot->results);
    slot->next_access = 0;
    slot->waiting = 0;
    reserve_rows(runtime, slot);
    bool good =
        runtime->options->batch_accesses ? start_batched(runtime, slot) : go_on_one_by_one(runtime, slot);
    go_on(runtime, slot, good);
}

/* Resumes the procedure with the results of the round that is complete. */
static void next_rounds(struct runtime *runtime, struct slot *slot)
{
    const struct dw_workload *workload = runtime->options->workload;
    bool first = slot->state == SLOT_IDLE || slot->state == SLOT_BACKOFF;
    slot->state = SLOT_EXECUTING;
    enum dw_procedure_step step =
        workload->next(runtime->workload_state, &slot->procedure, first ? NULL : slot->results,
                       first ? 0 : slot->round.count, &slot->round);
    switch (step) {
    case DW_PROCEDURE_ACCESS:
        start_round(runtime, slot);
        return;
    case DW_PROCEDURE_COMMIT:
        ask_commit(runtime, slot);
        return;
    case DW_PROCEDURE_ABORT:
        slot->own_abort = true;
        fail_attempt(runtime, slot);
        return;
    }
}

/* --- attempts --- */

static void start_attempt(struct runtime *runtime, struct slot *slot, uint64_t now_us)
{
    slot->procedure = slot->original;
    slot->txn = dw_node_next_id(&runtime->node);
    slot->context = txn_table_add(runtime->txns, slot->txn);
    DW_ASSERT(slot->context != NULL);
    slot->context->slot = slot;
    slot->context->begin_us = slot->begin_us;
    slot->context->distributed = slot->original.distributed;
    memset(slot->tokens, 0, runtime->cluster->compute_nodes * sizeof *slot->tokens);
    slot->touched = slot->readers = slot->writers = 0;
    slot->waiting = 0;
    slot->prepared_us = 0;
    slot->own_abort = false;
    slot->attempt_us = now_us;
    runtime->now_us = now_us;
    next_rounds(runtime, slot);
}

static void take(struct runtime *runtime, struct slot *slot, uint64_t begin_us, uint64_t now_us)
{
    DW_ASSERT(slot->state == SLOT_IDLE && begin_us <= now_us);
    runtime->options->workload->generate(runtime->workload_state, &slot->random, runtime->options->node,
                                         &slot->original);
    runtime->load.begun++;
    slot->begin_us = begin_us;
    slot->taken_us = now_us;
    start_attempt(runtime, slot, now_us);
}

void slot_begin(struct runtime *runtime, struct slot *slot)
{
    /* Not the time of the tick: what other slots have done since is none of this transaction's. */
    uint64_t now_us = dw_rpc_now_us();
    take(runtime, slot, now_us, now_us);
}

void slot_begin_due(struct runtime *runtime, struct slot *slot, uint64_t intended_us)
{
    take(runtime, slot, intended_us, dw_rpc_now_us());
}

void slot_due(struct runtime *runtime, struct slot *slot)
{
    if (slot->state == SLOT_EXECUTING) {
        fail_attempt(runtime, slot);
    } else if (slot->state == SLOT_BACKOFF) {
        runtime->stats.retries += runtime->load.state == LOAD_MEASURING;
        start_attempt(runtime, slot, dw_rpc_now_us());
    }
}

/* Copies the rows of a reply to the results of the accesses that it answers: all that were sent to its owner
 * and have none. False if it doesn't fit them. */
static bool take_rows(struct runtime *runtime, struct slot *slot, uint32_t from,
                      const struct dw_wire_access_reply *reply)
{
    size_t row = 0;
    for (uint32_t i = 0; i < slot->next_access; i++) {
        const struct dw_access *access = &slot->round.accesses[i];
        if (access->owner != from || slot->answered[i]) {
            continue;
        }
        if (row == reply->row_count) {
            return false;
        }
        const struct dw_wire_row *data = &reply->rows[row++];
        if (access->kind == DW_ACCESS_READ) {
            const struct dw_table *table =
                runtime->options->workload->table(runtime->workload_state, access->table);
            if (data->size != dw_table_row_bytes(table)) {
                return false;
            }
            uint8_t *room = rows_room(slot, data->size);
            memcpy(room, data->data, data->size);
            slot->results[i] = (struct dw_access_result){.row = room, .bytes = data->size};
        }
        slot->answered[i] = 1;
    }
    return row == reply->row_count;
}

void slot_on_access_reply(struct runtime *runtime, struct slot *slot,
                          const struct dw_wire_access_reply *reply)
{
    uint64_t from64 = reply->id >> 32;
    uint32_t from = (uint32_t)from64;
    if (slot->state != SLOT_EXECUTING || from64 >= DW_MAX_NODES || !dw_txn_id_equal(slot->txn, reply->txn) ||
        (slot->waiting & dw_node_bit(from)) == 0) {
        return;
    }
    /* The answer to an earlier request, once more. */
    if (reply->token.accesses != slot->tokens[from].accesses) {
        return;
    }
    slot->waiting &= ~dw_node_bit(from);
    bool good = reply->status == ACCESS_OK && take_rows(runtime, slot, from, reply);
    if (good) {
        slot->tokens[from].incarnation = reply->token.incarnation;
        slot->tokens[from].counter = reply->token.counter;
    }
    if (good && !runtime->options->batch_accesses) {
        good = go_on_one_by_one(runtime, slot);
    }
    if (!good) {
        fail_attempt(runtime, slot);
    } else if (slot->waiting == 0) {
        next_rounds(runtime, slot);
    } else if (!runtime->options->batch_accesses) {
        wait_for_replies(runtime, slot);
    }
}

void load_answered(struct runtime *runtime, struct txn_context *context, enum dw_outcome outcome)
{
    struct slot *slot = context->slot;
    if (slot == NULL) {
        return;
    }
    slot->answered_us = dw_rpc_now_us();
    slot->in_window = runtime->load.state == LOAD_MEASURING;
    bool measured = outcome == DW_OUTCOME_COMMITTED && slot->in_window;
    context->measured = measured ? runtime->load.number : 0;
    context->slot = NULL;
    slot->context = NULL;
    slot->outcome = outcome;
    slot->state = SLOT_ANSWERED;
    runtime->load.slots_due_us = 0;
}

/* --- the answer --- */

static void count_committed(struct runtime *runtime, struct slot *slot)
{
    uint64_t latency_us = slot->answered_us - slot->begin_us;
    struct stats *stats = &runtime->stats;
    stats->all_committed++;
    bool distributed = (slot->touched & ~dw_node_bit(runtime->options->node)) != 0;
    if (distributed) {
        dw_histogram_add(&stats->recent, latency_us * 1000);
    }
    if (!slot->in_window) {
        return;
    }
    struct class_stats *class = distributed ? &stats->distributed : &stats->local;
    uint64_t prepared = slot->prepared_us != 0 ? slot->prepared_us : slot->commit_us;
    class->committed++;
    class->total_us += latency_us;
    class->execution_us += slot->commit_us - slot->attempt_us;
    class->prepare_us += prepared - slot->commit_us;
    class->commit_us += slot->answered_us - prepared;
    class->abort_us += slot->attempt_us - slot->begin_us;
    class->wait_us += slot->taken_us - slot->begin_us;
    class->occupancy_us += dw_rpc_now_us() - slot->taken_us;
    dw_histogram_add(&class->latency, latency_us * 1000);
}

static void back_off(struct runtime *runtime, struct slot *slot)
{
    /* Between a half and three halves, so that two that met do not meet again. */
    uint64_t base = runtime->options->retry_backoff_us;
    slot->state = SLOT_BACKOFF;
    slot->due_us = dw_rpc_now_us() + base / 2 + (base ? dw_random_below(&runtime->random, base + 1) : 0);
    if (slot->due_us < runtime->load.slots_due_us) {
        runtime->load.slots_due_us = slot->due_us;
    }
}

void slot_resume(struct runtime *runtime, struct slot *slot)
{
    struct stats *stats = &runtime->stats;
    slot->state = SLOT_IDLE;
    switch (slot->outcome) {
    case DW_OUTCOME_COMMITTED:
        runtime->load.finished++;
        count_committed(runtime, slot);
        return;
    case DW_OUTCOME_UNKNOWN:
        runtime->load.finished++;
        stats->all_unknown++;
        stats->unknown += slot->in_window;
        return;
    case DW_OUTCOME_ABORTED:
        stats->all_aborted++;
        stats->aborted += slot->in_window;
        runtime->load.finished += slot->own_abort;
        if (runtime->load.state != LOAD_DRAINING && !slot->own_abort) {
            back_off(runtime, slot);
        }
        return;
    }
}

void slot_abandon(struct runtime *runtime, struct slot *slot)
{
    struct txn_context *context = slot->context;
    if (context != NULL && context->machine.state == DW_TXN_ABSENT) {
        fail_attempt(runtime, slot);
    } else if (context != NULL) {
        load_answered(runtime, context, DW_OUTCOME_UNKNOWN);
    }
    if (slot->state == SLOT_ANSWERED) {
        slot_resume(runtime, slot);
    }
    slot->state = SLOT_IDLE; /* also after a back-off: there is no next attempt */
}

void slot_close(struct slot *slot)
{
    free(slot->rows);
}
