/* What follows when the outcome is known, in either role (Cornus, Algorithm 2, lines 9-12 and 24). */
#include "base/assert.h"
#include "core/handlers.h"

static void tell_participants(struct dw_step *step, enum dw_outcome outcome)
{
    struct dw_txn *txn = step->txn;
    uint64_t writers = txn->writers & ~step_self(step);
    /* Lines 11-12: "for p in txn.participants do send decision to p asynchronously". After an abort, readers
     * that have not answered still hold their locks. */
    bool commit = outcome == DW_OUTCOME_COMMITTED;
    step_send(step, DW_MSG_DECISION, outcome, commit ? writers : writers | txn->reads_pending);
    /* An aborted transaction is not waited for: whoever missed the message finds out by himself. */
    txn->acks_pending = commit ? writers : 0;
    txn->votes_pending = 0;
    txn->reads_pending = 0;
}

void decide(struct dw_step *step, enum dw_outcome outcome)
{
    struct dw_txn *txn = step->txn;
    DW_ASSERT(outcome != DW_OUTCOME_UNKNOWN && dw_txn_outcome(txn) == DW_OUTCOME_UNKNOWN);
    /* Line 9: "reply decision to the txn caller". */
    step_answer_caller(step, outcome);
    step_release(step, outcome);
    dw_txn_set_state(txn, outcome == DW_OUTCOME_COMMITTED ? DW_TXN_COMMITTED : DW_TXN_ABORTED);
    txn->ask_pending = 0;
    txn->forgotten = 0;
    txn->flags &= ~(uint32_t)DW_TXN_BLOCKED;
    if (txn->role == DW_TXN_COORDINATOR) {
        tell_participants(step, outcome);
    }
    if (txn->role == DW_TXN_COORDINATOR && !coordinator_is_distributed(step)) {
        /* No other log is listed: the one record is there already, or an abort needs none. */
        txn->flags |= DW_TXN_DECISION_LOGGED;
    }
    if (!dw_txn_has(txn, DW_TXN_DECISION_LOGGED)) {
        /* Lines 10 and 24: "RPC local SN async::Log(decision)". */
        step->protocol->log_decision(step);
    }
    step_arm(step, DW_TIMER_FINISH);
    decision_settle(step);
}

void decision_settle(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (!dw_txn_has(txn, DW_TXN_DECISION_LOGGED) || txn->acks_pending != 0) {
        return;
    }
    if (txn->role == DW_TXN_COORDINATOR) {
        step->protocol->finished(step);
    } else if (txn->id.coordinator != step->node->slot) {
        step_send(step, DW_MSG_ACK, 0, dw_node_bit(txn->id.coordinator));
    }
    step_forget(step);
}

static void note_logged(struct dw_step *step, enum dw_outcome logged)
{
    if (logged != dw_txn_outcome(step->txn)) {
        step_stop(step, DW_ALARM_DISAGREEMENT);
        return;
    }
    step->txn->flags |= DW_TXN_DECISION_LOGGED;
    decision_settle(step);
}

void decision_logged(struct dw_step *step)
{
    const struct dw_log_reply *reply = &step->event->reply;
    if (reply->ask != DW_ASK_DECIDE_COMMIT && reply->ask != DW_ASK_DECIDE_ABORT &&
        reply->ask != DW_ASK_COORD_ABORT) {
        return;
    }
    switch (reply->answer) {
    case DW_ANSWER_COMMIT:
        note_logged(step, DW_OUTCOME_COMMITTED);
        return;
    case DW_ANSWER_ABORT:
        note_logged(step, DW_OUTCOME_ABORTED);
        return;
    case DW_ANSWER_FORGOTTEN:
        /* The entry was swept, which needs its decision to have been durable, or it never was: then the
         * outcome is an abort, and needs no record. Either way the outcome is known here by other means. */
        note_logged(step, dw_txn_outcome(step->txn));
        return;
    case DW_ANSWER_NONE:
    case DW_ANSWER_VOTE_YES:
    case DW_ANSWER_START:
    case DW_ANSWER_END:
        /* No rule answers a decision so: what the log holds is not known, so it is not called durable. */
        step_stop(step, DW_ALARM_DISAGREEMENT);
        return;
    case DW_ANSWER_CONFLICT:
    case DW_ANSWER_FENCED:
    case DW_ANSWER_DAMAGED:
        return;
    }
}
