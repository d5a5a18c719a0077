/* The frame of a step: which handler takes which event, and the words in which handlers are written. */
#include <string.h>

#include "base/assert.h"
#include "core/handlers.h"

/* --- words --- */

uint64_t step_self(const struct dw_step *step)
{
    return dw_node_bit(step->node->slot);
}

void step_send(struct dw_step *step, enum dw_message_kind kind, uint32_t value, uint64_t to)
{
    DW_ASSERT((to & step_self(step)) == 0);
    if (to == 0) {
        return;
    }
    uint64_t writers = kind == DW_MSG_VOTE_REQUEST ? step->txn->writers : 0;
    dw_update_add(
        step->update,
        (struct dw_out){.kind = DW_OUT_SEND, .message = kind, .value = value, .to = to, .writers = writers});
}

void step_log(struct dw_step *step, enum dw_ask ask, uint64_t to, bool force)
{
    DW_ASSERT(to != 0);
    bool lists = ask == DW_ASK_VOTE || ask == DW_ASK_START || ask == DW_ASK_COORD_COMMIT;
    dw_update_add(step->update, (struct dw_out){.kind = DW_OUT_LOG,
                                                .ask = ask,
                                                .force = force,
                                                .to = to,
                                                .writers = lists ? step->txn->writers : 0});
}

void step_log_own(struct dw_step *step, enum dw_ask ask, bool force)
{
    step_log(step, ask, step_self(step), force);
}

void step_arm(struct dw_step *step, enum dw_timer timer)
{
    step->txn->timer = (uint8_t)timer;
    step->txn->attempt++;
    dw_update_add(step->update,
                  (struct dw_out){.kind = DW_OUT_ARM, .value = timer, .attempt = step->txn->attempt});
}

static void disarm(struct dw_step *step)
{
    if (step->txn->timer != DW_TIMER_NONE) {
        step->txn->timer = DW_TIMER_NONE;
        dw_update_add(step->update, (struct dw_out){.kind = DW_OUT_DISARM});
    }
}

void step_answer_caller(struct dw_step *step, enum dw_outcome outcome)
{
    if (dw_txn_has(step->txn, DW_TXN_CALLER)) {
        step->txn->flags &= ~(uint32_t)DW_TXN_CALLER;
        dw_update_add(step->update, (struct dw_out){.kind = DW_OUT_CALLER, .value = outcome});
    }
}

void step_release(struct dw_step *step, enum dw_outcome outcome)
{
    if (!dw_txn_has(step->txn, DW_TXN_LOCKS)) {
        return;
    }
    if (outcome == DW_OUTCOME_COMMITTED) {
        dw_update_add(step->update, (struct dw_out){.kind = DW_OUT_APPLY, .position = step->txn->position});
    }
    dw_update_add(step->update, (struct dw_out){.kind = DW_OUT_RELEASE});
    step->txn->flags &= ~(uint32_t)DW_TXN_LOCKS;
}

void step_alarm(struct dw_step *step, enum dw_alarm alarm)
{
    dw_update_add(step->update, (struct dw_out){.kind = DW_OUT_ALARM, .value = alarm});
}

void step_forget(struct dw_step *step)
{
    DW_ASSERT(!dw_txn_has(step->txn, DW_TXN_LOCKS) && !dw_txn_has(step->txn, DW_TXN_CALLER));
    disarm(step);
    if (step->txn->state != DW_TXN_ABSENT) {
        dw_txn_set_state(step->txn, DW_TXN_ABSENT);
    }
    memset(step->txn, 0, sizeof *step->txn);
}

void step_stop(struct dw_step *step, enum dw_alarm alarm)
{
    step_alarm(step, alarm);
    step_answer_caller(step, DW_OUTCOME_UNKNOWN);
    disarm(step);
    if (step->txn->state != DW_TXN_STOPPED) {
        dw_txn_set_state(step->txn, DW_TXN_STOPPED);
    }
}

/* --- events --- */

static void on_message(struct dw_step *step)
{
    switch (step->event->message.kind) {
    case DW_MSG_VOTE_REQUEST:
        participant_vote_request(step);
        return;
    case DW_MSG_READ_REQUEST:
        participant_read_request(step);
        return;
    case DW_MSG_VOTE:
        coordinator_vote(step);
        return;
    case DW_MSG_DECISION:
        participant_decision(step);
        return;
    case DW_MSG_ACK:
        coordinator_ack(step);
        return;
    case DW_MSG_INQUIRY:
        step->protocol->inquiry(step);
        return;
    case DW_MSG_INQUIRY_REPLY:
        /* Only one who is in doubt listens: a reply may be older than the decision, and a coordinator that
         * has forgotten an acknowledged commit presumes abort. */
        if (step->txn->state == DW_TXN_TERMINATING && !step->protocol->logs_decide) {
            termination_answer(step);
        }
        return;
    }
}

/* A node that was fenced has a successor, which owns all its transactions: the outcome is unknown here. */
static void on_fenced(struct dw_step *step)
{
    dw_node_stop(step->node);
    step_stop(step, DW_ALARM_FENCED);
}

/* What no state can go on with. True if the reply was one of these. */
static bool on_bad_reply(struct dw_step *step)
{
    const struct dw_log_reply *reply = &step->event->reply;
    switch (reply->answer) {
    case DW_ANSWER_FENCED:
        on_fenced(step);
        return true;
    case DW_ANSWER_CONFLICT:
        step_stop(step, DW_ALARM_CONFLICT);
        return true;
    case DW_ANSWER_DAMAGED:
        /* No information: the timer asks again. */
        step_alarm(step, DW_ALARM_DAMAGED);
        return true;
    case DW_ANSWER_NONE:
    case DW_ANSWER_VOTE_YES:
    case DW_ANSWER_COMMIT:
    case DW_ANSWER_ABORT:
    case DW_ANSWER_START:
    case DW_ANSWER_END:
    case DW_ANSWER_FORGOTTEN:
        return false;
    }
    return true;
}

static void on_log_reply(struct dw_step *step)
{
    const struct dw_log_reply *reply = &step->event->reply;
    struct dw_txn *txn = step->txn;
    if (txn->state == DW_TXN_ABSENT || txn->state == DW_TXN_STOPPED || on_bad_reply(step)) {
        return;
    }
    bool own = reply->log == step->node->slot;
    switch ((enum dw_txn_state)txn->state) {
    case DW_TXN_VOTING:
    case DW_TXN_LOGGING_COMMIT:
        if (own) {
            coordinator_own_logged(step);
        }
        return;
    case DW_TXN_LOGGING_VOTE:
        if (own && reply->ask == DW_ASK_VOTE) {
            step->protocol->vote_logged(step);
        }
        return;
    case DW_TXN_DENYING:
        if (own && reply->ask == DW_ASK_DENY) {
            participant_denied(step);
        }
        return;
    case DW_TXN_TERMINATING:
        /* Whatever was asked, the answer tells what that log holds; but only LogIfNotExist closes it to
         * others. */
        if (dw_ask_is_if_not_exist(reply->ask)) {
            termination_answer(step);
        }
        return;
    case DW_TXN_COMMITTED:
    case DW_TXN_ABORTED:
        if (own) {
            decision_logged(step);
        }
        return;
    case DW_TXN_PREPARED:
        /* Its vote is logged, so a reply to it can tell nothing new but this. */
        if (own && reply->answer == DW_ANSWER_FORGOTTEN) {
            termination_own_forgot(step);
        }
        return;
    case DW_TXN_ABSENT:
    case DW_TXN_EXECUTING:
    case DW_TXN_STOPPED:
        return;
    }
}

static void on_timeout(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (txn->timer != step->event->timer || txn->attempt != step->event->attempt) {
        return;
    }
    switch ((enum dw_txn_state)txn->state) {
    case DW_TXN_EXECUTING:
        step->protocol->silence(step);
        return;
    case DW_TXN_VOTING:
        step->protocol->votes_timeout(step);
        return;
    case DW_TXN_LOGGING_COMMIT:
        step_log_own(step, coordinator_is_distributed(step) ? DW_ASK_COORD_COMMIT : DW_ASK_COMMIT_LOCAL,
                     true);
        step_arm(step, DW_TIMER_RETRY);
        return;
    case DW_TXN_LOGGING_VOTE: /* Algorithm 2, line 23: "on timeout decision <- TerminationProtocol(txn)" */
    case DW_TXN_PREPARED:
    case DW_TXN_TERMINATING: /* line 35: "on timeout retry from the beginning" */
        step->protocol->terminate(step);
        return;
    case DW_TXN_DENYING:
        step_log_own(step, DW_ASK_DENY, true);
        step_arm(step, DW_TIMER_RETRY);
        return;
    case DW_TXN_COMMITTED:
    case DW_TXN_ABORTED:
        step->protocol->finish_timeout(step);
        return;
    case DW_TXN_ABSENT:
    case DW_TXN_STOPPED:
        return;
    }
}

/* Before it serves, a node hears only what concerns the transactions that it recovered. */
static bool hears(const struct dw_step *step)
{
    enum dw_event_kind kind = step->event->kind;
    if (step->node->state == DW_NODE_SERVING) {
        return kind != DW_EVENT_RECOVERED;
    }
    return step->node->state == DW_NODE_SCANNING &&
           (kind == DW_EVENT_RECOVERED || kind == DW_EVENT_LOG_REPLY || kind == DW_EVENT_TIMEOUT);
}

void dw_step(const struct dw_protocol *protocol, struct dw_node *node, struct dw_txn *txn,
             const struct dw_event *event, struct dw_update *update)
{
    DW_ASSERT(dw_txn_id_valid(event->txn));
    DW_ASSERT(txn->state == DW_TXN_ABSENT || dw_txn_id_equal(txn->id, event->txn));
    dw_txn_check(txn);
    update->count = 0;
    struct dw_step step = {.protocol = protocol, .node = node, .txn = txn, .event = event, .update = update};
    if (!hears(&step)) {
        return;
    }
    txn->id = event->txn;
    switch (event->kind) {
    case DW_EVENT_COMMIT:
        coordinator_commit(&step);
        break;
    case DW_EVENT_CANCEL:
        coordinator_cancel(&step);
        break;
    case DW_EVENT_JOIN:
        participant_join(&step);
        break;
    case DW_EVENT_MESSAGE:
        on_message(&step);
        break;
    case DW_EVENT_LOG_REPLY:
        on_log_reply(&step);
        break;
    case DW_EVENT_TIMEOUT:
        on_timeout(&step);
        break;
    case DW_EVENT_RECOVERED:
        protocol->recovered(&step);
        break;
    }
    if (txn->state == DW_TXN_ABSENT) {
        memset(txn, 0, sizeof *txn);
    }
    dw_txn_check(txn);
}

const struct dw_protocol *dw_protocol_at(unsigned index)
{
    static const struct dw_protocol *const protocols[] = {&dw_cornus, &dw_two_phase};
    return index < sizeof protocols / sizeof *protocols ? protocols[index] : NULL;
}

const struct dw_protocol *dw_protocol_find(const char *name)
{
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        if (strcmp(dw_protocol_at(i)->name, name) == 0) {
            return dw_protocol_at(i);
        }
    }
    return NULL;
}
