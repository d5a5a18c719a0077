/* TerminationProtocol (Cornus, Algorithm 2, lines 28-36): what the answers of logs mean to one who is in
 * doubt. In 2PC the nodes are asked in place of the logs, and only an outcome counts. */
#include "base/assert.h"
#include "core/handlers.h"

uint64_t termination_listed(const struct dw_step *step)
{
    return step->txn->writers;
}

static void inquiry_answer(struct dw_step *step)
{
    enum dw_outcome outcome = (enum dw_outcome)step->event->message.value;
    if (outcome != DW_OUTCOME_UNKNOWN) {
        decide(step, outcome);
        return;
    }
    step->txn->ask_pending &= ~dw_node_bit(step->event->message.from);
    if (step->txn->ask_pending == 0) {
        step->txn->flags |= DW_TXN_BLOCKED;
    }
}

void termination_own_forgot(struct dw_step *step)
{
    if (dw_txn_has(step->txn, DW_TXN_VOTE_LOGGED)) {
        /* The log held the vote, and an undecided vote is never swept: a violation. The transaction may have
         * committed, so what is no longer there is no ground for an abort. */
        step_stop(step, DW_ALARM_FORGOTTEN);
    } else {
        /* The own vote was never logged, and never will be, so nobody can have committed. */
        decide(step, DW_OUTCOME_ABORTED);
    }
}

static void log_forgot(struct dw_step *step, uint64_t log)
{
    struct dw_txn *txn = step->txn;
    if (log == step_self(step)) {
        termination_own_forgot(step);
        return;
    }
    /* No information. If the own log still holds VOTE_YES, somebody swept what was in doubt: a violation. */
    txn->forgotten |= log;
    if ((txn->ask_pending & step_self(step)) == 0) {
        step_stop(step, DW_ALARM_FORGOTTEN);
    }
}

static void log_says_yes(struct dw_step *step, uint64_t log)
{
    struct dw_txn *txn = step->txn;
    txn->ask_pending &= ~log;
    if (log == step_self(step)) {
        if (!dw_txn_has(txn, DW_TXN_VOTE_SENT)) {
            /* A vote that never left: the log is wrong, and what it says is no ground for a decision. */
            step_stop(step, DW_ALARM_DISAGREEMENT);
            return;
        }
        if (!dw_txn_has(txn, DW_TXN_VOTE_LOGGED)) {
            txn->flags |= DW_TXN_VOTE_LOGGED;
            txn->position = step->event->reply.position;
        }
        if (txn->forgotten != 0) {
            step_stop(step, DW_ALARM_FORGOTTEN);
            return;
        }
    }
    if (txn->ask_pending == 0) {
        /* Line 34: "on receiving all responses decision <- COMMIT": each listed log began with VOTE_YES. */
        decide(step, DW_OUTCOME_COMMITTED);
    }
}

/* 2PC: the reply to the own vote came after the time-out. The coordinator may still be waiting for it. */
static void late_vote(struct dw_step *step)
{
    const struct dw_log_reply *reply = &step->event->reply;
    if (reply->log != step->node->slot || reply->ask != DW_ASK_VOTE) {
        return;
    }
    switch (reply->answer) {
    case DW_ANSWER_VOTE_YES:
        step->txn->flags |= DW_TXN_VOTE_LOGGED;
        step->txn->position = reply->position;
        step_send(step, DW_MSG_VOTE, DW_VOTE_YES, dw_node_bit(step->txn->id.coordinator));
        return;
    case DW_ANSWER_ABORT:
        decide(step, DW_OUTCOME_ABORTED);
        return;
    case DW_ANSWER_COMMIT:
        /* Only who knows the decision logs it. */
        decide(step, DW_OUTCOME_COMMITTED);
        return;
    case DW_ANSWER_FORGOTTEN:
        termination_own_forgot(step);
        return;
    case DW_ANSWER_NONE:
    case DW_ANSWER_START:
    case DW_ANSWER_END:
    case DW_ANSWER_CONFLICT:
    case DW_ANSWER_FENCED:
    case DW_ANSWER_DAMAGED:
        return;
    }
}

void termination_answer(struct dw_step *step)
{
    if (step->event->kind == DW_EVENT_MESSAGE) {
        inquiry_answer(step);
        return;
    }
    const struct dw_log_reply *reply = &step->event->reply;
    uint64_t log = dw_node_bit(reply->log);
    if (!step->protocol->logs_decide) {
        late_vote(step);
        return;
    }
    if ((step->txn->writers & log) == 0) {
        return;
    }
    switch (reply->answer) {
    case DW_ANSWER_ABORT:
        /* Line 32: "on receiving ABORT decision <- ABORT". */
        decide(step, DW_OUTCOME_ABORTED);
        return;
    case DW_ANSWER_COMMIT:
        /* Line 33: "on receiving COMMIT decision <- COMMIT". */
        decide(step, DW_OUTCOME_COMMITTED);
        return;
    case DW_ANSWER_VOTE_YES:
        log_says_yes(step, log);
        return;
    case DW_ANSWER_FORGOTTEN:
        log_forgot(step, log);
        return;
    case DW_ANSWER_NONE:
    case DW_ANSWER_START:
    case DW_ANSWER_END:
    case DW_ANSWER_CONFLICT:
    case DW_ANSWER_FENCED:
    case DW_ANSWER_DAMAGED:
        return;
    }
}
