/* Does any event, in any state that a machine can reach, break an invariant or an assertion? Breadth first
 * over the states of one machine: whatever others send, and whatever logs answer to what they were asked, in
 * any order and any number of times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/protocol.h"

enum { NODES = 3, TABLE = 1 << 18, MAX_STATES = TABLE / 2, MAX_EVENTS = 2048 };

struct state {
    struct dw_node node;
    struct dw_txn txn;
    uint64_t begun; /* the caller has asked for the commit, or cancelled: once for an id */
    uint64_t asked; /* which requests were ever sent: a log answers no other, but these at any time */
};

struct sweep {
    const struct dw_protocol *protocol;
    uint32_t slot;
    struct dw_event events[MAX_EVENTS];
    uint32_t event_count;
    struct state *states; /* in order of discovery */
    uint32_t state_count;
    uint32_t *table;  /* number of the state + 1, by hash */
    uint32_t reached; /* mask of dw_txn_state */
    uint32_t longest; /* update */
};

/* --- the events --- */

static const struct dw_txn_id txn_id = {.coordinator = 0, .incarnation = 1, .sequence = 1};

static struct dw_event *add_event(struct sweep *sweep, enum dw_event_kind kind)
{
    assert_true(sweep->event_count < MAX_EVENTS);
    struct dw_event *event = &sweep->events[sweep->event_count++];
    memset(event, 0, sizeof *event);
    event->kind = kind;
    event->txn = txn_id;
    return event;
}

static struct dw_event *add_message(struct sweep *sweep, enum dw_message_kind kind, uint32_t from,
                                    uint32_t value)
{
    struct dw_event *event = add_event(sweep, DW_EVENT_MESSAGE);
    event->message =
        (struct dw_message){.kind = kind, .from = from, .to = sweep->slot, .value = value, .txn = txn_id};
    return event;
}

static void add_messages_from(struct sweep *sweep, uint32_t from)
{
    for (unsigned execution = DW_EXECUTION_NONE; execution <= DW_EXECUTION_WHOLE; execution++) {
        struct dw_event *event = add_message(sweep, DW_MSG_VOTE_REQUEST, from, 0);
        event->message.writers = 7;
        event->execution = (enum dw_execution)execution;
        event = add_message(sweep, DW_MSG_VOTE_REQUEST, from, 0);
        event->message.writers = 3;
        event->execution = (enum dw_execution)execution;
        add_message(sweep, DW_MSG_READ_REQUEST, from, 0)->execution = (enum dw_execution)execution;
    }
    for (uint32_t vote = DW_VOTE_YES; vote <= DW_VOTE_REFUSED; vote++) {
        add_message(sweep, DW_MSG_VOTE, from, vote);
    }
    for (uint32_t outcome = DW_OUTCOME_UNKNOWN; outcome <= DW_OUTCOME_ABORTED; outcome++) {
        add_message(sweep, DW_MSG_INQUIRY_REPLY, from, outcome);
    }
    add_message(sweep, DW_MSG_DECISION, from, DW_OUTCOME_COMMITTED);
    add_message(sweep, DW_MSG_DECISION, from, DW_OUTCOME_ABORTED);
    add_message(sweep, DW_MSG_ACK, from, 0);
    add_message(sweep, DW_MSG_INQUIRY, from, 0);
}

static void add_replies(struct sweep *sweep)
{
    for (uint32_t log = 0; log < NODES; log++) {
        for (unsigned ask = 0; ask < DW_ASKS; ask++) {
            for (unsigned answer = 0; answer < DW_ANSWERS; answer++) {
                add_event(sweep, DW_EVENT_LOG_REPLY)->reply =
                    (struct dw_log_reply){.txn = txn_id,
                                          .log = log,
                                          .ask = (enum dw_ask)ask,
                                          .answer = (enum dw_answer)answer,
                                          .position = 7};
            }
        }
    }
}

static void add_commits(struct sweep *sweep)
{
    for (uint64_t writers = 0; writers < 1u << NODES; writers++) {
        for (uint64_t readers = 0; readers < 1u << NODES; readers++) {
            struct dw_event *event = add_event(sweep, DW_EVENT_COMMIT);
            event->writers = writers;
            event->readers = readers;
            event = add_event(sweep, DW_EVENT_CANCEL);
            event->writers = writers;
            event->readers = readers;
        }
    }
}

/* What a log of this node can hold for the transaction. A 2PC coordinator's has states of its own. */
static void add_recoveries(struct sweep *sweep)
{
    bool owns = sweep->slot == 0 && !sweep->protocol->logs_decide;
    for (unsigned entry = DW_ENTRY_NONE; entry < DW_ENTRY_STATES; entry++) {
        if (owns && entry == DW_ENTRY_VOTE_YES) {
            continue;
        }
        struct dw_event *event = add_event(sweep, DW_EVENT_RECOVERED);
        event->entry = (enum dw_entry_state)entry;
        event->writers = 7;
        event->position = 7;
    }
}

static void add_events(struct sweep *sweep)
{
    for (uint32_t from = 0; from < NODES; from++) {
        if (from != sweep->slot) {
            add_messages_from(sweep, from);
        }
    }
    add_replies(sweep);
    add_recoveries(sweep);
    if (sweep->slot == 0) {
        add_commits(sweep);
    } else {
        add_event(sweep, DW_EVENT_JOIN);
    }
    for (unsigned timer = DW_TIMER_VOTE_REQUEST; timer <= DW_TIMER_FINISH; timer++) {
        add_event(sweep, DW_EVENT_TIMEOUT)->timer = (enum dw_timer)timer;
    }
}

static uint64_t request_bit(uint32_t log, enum dw_ask ask)
{
    return UINT64_C(1) << (log * DW_ASKS + ask);
}

static uint64_t requests_of(const struct dw_update *update)
{
    uint64_t requests = 0;
    for (uint32_t i = 0; i < update->count; i++) {
        for (uint32_t log = 0; log < NODES; log++) {
            bool asks = update->outs[i].kind == DW_OUT_LOG && (update->outs[i].to & dw_node_bit(log)) != 0;
            requests |= asks ? request_bit(log, update->outs[i].ask) : 0;
        }
    }
    return requests;
}

/* What a driver may not do: commit, cancel or recover what is there already, or run accesses for what has
 * begun to commit. */
static bool may_happen(const struct state *state, const struct dw_event *event)
{
    switch (event->kind) {
    case DW_EVENT_COMMIT:
    case DW_EVENT_CANCEL:
        return state->begun == 0 && state->txn.state == DW_TXN_ABSENT;
    case DW_EVENT_RECOVERED:
        return state->txn.state == DW_TXN_ABSENT;
    case DW_EVENT_JOIN:
        return dw_txn_may_execute(&state->txn);
    case DW_EVENT_LOG_REPLY:
        return (state->asked & request_bit(event->reply.log, event->reply.ask)) != 0;
    case DW_EVENT_MESSAGE:
    case DW_EVENT_TIMEOUT:
        return true;
    }
    return false;
}

/* --- the states --- */

static uint64_t hash(const struct state *state)
{
    const unsigned char *bytes = (const unsigned char *)state;
    uint64_t value = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < sizeof *state; i++) {
        value = (value ^ bytes[i]) * UINT64_C(1099511628211);
    }
    return value ^ value >> 29;
}

static void remember(struct sweep *sweep, const struct state *state)
{
    uint64_t place = hash(state) % TABLE;
    while (sweep->table[place] != 0) {
        if (memcmp(&sweep->states[sweep->table[place] - 1], state, sizeof *state) == 0) {
            return;
        }
        place = (place + 1) % TABLE;
    }
    assert_true(sweep->state_count < MAX_STATES);
    sweep->states[sweep->state_count++] = *state;
    sweep->table[place] = sweep->state_count;
    sweep->reached |= 1u << state->txn.state;
}

static uint32_t count_outputs(const struct dw_update *update, enum dw_out_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < update->count; i++) {
        count += update->outs[i].kind == kind;
    }
    return count;
}

/* What a step may not do, whatever happened. */
static void check_step(const struct state *before, const struct state *after, const struct dw_event *event,
                       const struct dw_update *update)
{
    uint32_t released = count_outputs(update, DW_OUT_RELEASE);
    bool voted = dw_txn_has(&before->txn, DW_TXN_VOTE_SENT);
    dw_txn_check(&after->txn);
    dw_node_check(&after->node);
    assert_true(update->count < DW_UPDATE_MAX);
    assert_true(count_outputs(update, DW_OUT_CALLER) <= 1);
    assert_true(count_outputs(update, DW_OUT_APPLY) <= released && released <= 1);
    /* Locks are freed once, and never while in doubt. */
    assert_true(released == 0 || event->kind == DW_EVENT_COMMIT || event->kind == DW_EVENT_CANCEL ||
                dw_txn_has(&before->txn, DW_TXN_LOCKS));
    assert_true(released == 0 || !dw_txn_in_doubt(&after->txn));
    /* Once its vote has left, a node never aborts because of a time-out. */
    assert_true(!voted || event->kind != DW_EVENT_TIMEOUT || released == 0);
    /* Nothing is decided any more by one who stopped. */
    assert_true(before->txn.state != DW_TXN_STOPPED || update->count == 0);
    assert_true(before->txn.state != DW_TXN_STOPPED || after->txn.state == DW_TXN_STOPPED);
}

static void try_event(struct sweep *sweep, uint32_t number, struct dw_event event)
{
    struct state before = sweep->states[number];
    struct state after = before;
    struct dw_update update;
    if (!may_happen(&before, &event)) {
        return;
    }
    event.attempt = event.kind == DW_EVENT_TIMEOUT ? before.txn.attempt : 0;
    dw_step(sweep->protocol, &after.node, &after.txn, &event, &update);
    check_step(&before, &after, &event, &update);
    sweep->longest = update.count > sweep->longest ? update.count : sweep->longest;
    dw_txn_mask(&after.txn);
    after.begun |= event.kind == DW_EVENT_COMMIT || event.kind == DW_EVENT_CANCEL;
    after.asked |= requests_of(&update);
    remember(sweep, &after);
}

/* A time-out of another timer than the armed one, or of an older attempt, does nothing at all. */
static void try_stale_timeouts(struct sweep *sweep, uint32_t number)
{
    for (unsigned timer = DW_TIMER_NONE; timer <= DW_TIMER_FINISH; timer++) {
        struct state state = sweep->states[number];
        struct state before = state;
        struct dw_update update;
        bool armed = timer == state.txn.timer;
        struct dw_event event = {.kind = DW_EVENT_TIMEOUT,
                                 .txn = txn_id,
                                 .timer = (enum dw_timer)timer,
                                 .attempt = state.txn.attempt + (armed ? 1 : 0)};
        dw_step(sweep->protocol, &state.node, &state.txn, &event, &update);
        if (state.txn.state != DW_TXN_ABSENT) {
            assert_memory_equal(&state, &before, sizeof state);
        }
        assert_int_equal(update.count, 0);
    }
}

static void start_from(struct sweep *sweep, bool serving)
{
    struct state state;
    struct dw_update update = {0};
    memset(&state, 0, sizeof state);
    dw_node_init(&state.node, sweep->slot);
    dw_node_start(&state.node, &update);
    dw_node_fenced(&state.node, 1, &update);
    if (serving) {
        dw_node_scanned(&state.node);
    }
    remember(sweep, &state);
}

/* A recovered node serves in the end, with what it recovered. */
static void try_serving(struct sweep *sweep, uint32_t number)
{
    struct state state = sweep->states[number];
    if (state.node.state == DW_NODE_SCANNING) {
        dw_node_scanned(&state.node);
        remember(sweep, &state);
    }
}

static void sweep_all(struct sweep *sweep, const struct dw_protocol *protocol, uint32_t slot)
{
    memset(sweep, 0, sizeof *sweep);
    sweep->protocol = protocol;
    sweep->slot = slot;
    sweep->states = calloc(MAX_STATES, sizeof *sweep->states);
    sweep->table = calloc(TABLE, sizeof *sweep->table);
    assert_non_null(sweep->states);
    assert_non_null(sweep->table);
    add_events(sweep);
    start_from(sweep, true);
    start_from(sweep, false);
    for (uint32_t number = 0; number < sweep->state_count; number++) {
        for (uint32_t i = 0; i < sweep->event_count; i++) {
            try_event(sweep, number, sweep->events[i]);
        }
        try_stale_timeouts(sweep, number);
        try_serving(sweep, number);
    }
    printf("%s, slot %u: %u states, %u events, longest update %u\n", protocol->name, slot, sweep->state_count,
           sweep->event_count, sweep->longest);
    free(sweep->states);
    free(sweep->table);
}

#define REACHED(state) (1u << DW_TXN_##state)

static void every_event_in_every_state_of_a_coordinator(void **state)
{
    (void)state;
    static struct sweep sweep;
    uint32_t common = REACHED(ABSENT) | REACHED(VOTING) | REACHED(LOGGING_COMMIT) | REACHED(COMMITTED) |
                      REACHED(ABORTED) | REACHED(STOPPED);
    sweep_all(&sweep, &dw_cornus, 0);
    assert_int_equal(sweep.reached, common | REACHED(TERMINATING));
    sweep_all(&sweep, &dw_two_phase, 0);
    assert_int_equal(sweep.reached, common);
}

static void every_event_in_every_state_of_a_participant(void **state)
{
    (void)state;
    static struct sweep sweep;
    uint32_t all = REACHED(ABSENT) | REACHED(EXECUTING) | REACHED(LOGGING_VOTE) | REACHED(PREPARED) |
                   REACHED(DENYING) | REACHED(TERMINATING) | REACHED(COMMITTED) | REACHED(ABORTED) |
                   REACHED(STOPPED);
    sweep_all(&sweep, &dw_cornus, 1);
    assert_int_equal(sweep.reached, all);
    sweep_all(&sweep, &dw_two_phase, 1);
    assert_int_equal(sweep.reached, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_in_every_state_of_a_coordinator),
        cmocka_unit_test(every_event_in_every_state_of_a_participant),
    };
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
