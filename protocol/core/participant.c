/* Participant::Start1PC (Cornus, Algorithm 2, lines 13-27); 2PC's participant differs in termination only. */
#include "base/assert.h"
#include "core/handlers.h"

static void reply_vote(struct dw_step *step, enum dw_vote vote)
{
    step_send(step, DW_MSG_VOTE, vote, dw_node_bit(step->txn->id.coordinator));
}

/* The first access of a transaction has created execution state here. */
void participant_join(struct dw_step *step)
{
    DW_ASSERT(dw_txn_may_execute(step->txn) && step->txn->id.coordinator != step->node->slot);
    if (step->txn->state == DW_TXN_EXECUTING) {
        return;
    }
    step->txn->role = DW_TXN_PARTICIPANT;
    step->txn->flags = DW_TXN_LOCKS;
    dw_txn_set_state(step->txn, DW_TXN_EXECUTING);
    step_arm(step, DW_TIMER_VOTE_REQUEST);
}

/* Line 13: "wait for VOTE-REQ from coordinator". The same request may come again in any state. */
void participant_vote_request(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (txn->role == DW_TXN_COORDINATOR || txn->id.coordinator == step->node->slot) {
        return;
    }
    switch ((enum dw_txn_state)txn->state) {
    case DW_TXN_ABSENT:
        step->protocol->vote_request_absent(step);
        return;
    case DW_TXN_EXECUTING:
        step->protocol->vote_request(step);
        return;
    case DW_TXN_DENYING:
        txn->flags |= DW_TXN_RELAY;
        return;
    case DW_TXN_PREPARED:
    case DW_TXN_TERMINATING:
        if (dw_txn_has(txn, DW_TXN_VOTE_LOGGED)) {
            reply_vote(step, DW_VOTE_YES);
        }
        return;
    case DW_TXN_COMMITTED:
        reply_vote(step, DW_VOTE_COMMITTED);
        return;
    case DW_TXN_ABORTED:
        reply_vote(step, DW_VOTE_NO);
        return;
    case DW_TXN_LOGGING_VOTE:
    case DW_TXN_STOPPED:
    case DW_TXN_VOTING:
    case DW_TXN_LOGGING_COMMIT:
        return;
    }
}

void participant_vote(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (step->event->execution != DW_EXECUTION_WHOLE) {
        /* Lines 25-27: "else RPC local SN sync::Log(ABORT); reply ABORT to coordinator". The reply waits for
         * the denial, and tells what the log really holds. */
        participant_deny(step, true);
        return;
    }
    /* Lines 16-17: "if participant votes yes for txn then resp <- RPC local SN
     * sync::LogIfNotExist(VOTE-YES)". */
    txn->writers = step->event->message.writers;
    txn->flags |= DW_TXN_VOTE_SENT | DW_TXN_WRITES;
    dw_txn_set_state(txn, DW_TXN_LOGGING_VOTE);
    step_log_own(step, DW_ASK_VOTE, true);
    step_arm(step, DW_TIMER_DECISION);
}

/* Without execution state (it was lost in a crash, or timed out, or the transaction is over) only the log
 * knows what this node did: the denial asks it, and closes it if it holds nothing. */
void participant_deny_absent(struct dw_step *step)
{
    step->txn->role = DW_TXN_PARTICIPANT;
    participant_deny(step, true);
}

void participant_deny(struct dw_step *step, bool relay)
{
    step_release(step, DW_OUTCOME_ABORTED);
    step->txn->flags = relay ? DW_TXN_RELAY : 0;
    dw_txn_set_state(step->txn, DW_TXN_DENYING);
    step_log_own(step, DW_ASK_DENY, true);
    step_arm(step, DW_TIMER_RETRY);
}

/* Lines 14-15: "on timeout RPC local SN sync::Log(ABORT); return". */
void participant_silence(struct dw_step *step)
{
    participant_deny(step, false);
}

/* What the log's answer to a denial tells of the transaction's fate. A vote tells nothing of it, nor does an
 * entry that is not there any more. */
static enum dw_outcome outcome_in(enum dw_answer answer)
{
    switch (answer) {
    case DW_ANSWER_ABORT:
        return DW_OUTCOME_ABORTED;
    case DW_ANSWER_COMMIT:
        return DW_OUTCOME_COMMITTED;
    case DW_ANSWER_VOTE_YES:
    case DW_ANSWER_FORGOTTEN:
    case DW_ANSWER_NONE:
    case DW_ANSWER_START:
    case DW_ANSWER_END:
    case DW_ANSWER_CONFLICT:
    case DW_ANSWER_FENCED:
    case DW_ANSWER_DAMAGED:
        return DW_OUTCOME_UNKNOWN;
    }
    return DW_OUTCOME_UNKNOWN;
}

/* The reply to an own denial. */
void participant_denied(struct dw_step *step)
{
    /* 2PC: those who inquired meanwhile. */
    step_send(step, DW_MSG_INQUIRY_REPLY, outcome_in(step->event->reply.answer), step->txn->inquirers);
    if (dw_txn_has(step->txn, DW_TXN_RELAY)) {
        switch (step->event->reply.answer) {
        case DW_ANSWER_ABORT:
            reply_vote(step, DW_VOTE_NO);
            break;
        case DW_ANSWER_VOTE_YES:
            reply_vote(step, DW_VOTE_YES);
            break;
        case DW_ANSWER_COMMIT:
            reply_vote(step, DW_VOTE_COMMITTED);
            break;
        case DW_ANSWER_FORGOTTEN: /* too old to say anything about: silence */
        case DW_ANSWER_NONE:
        case DW_ANSWER_START:
        case DW_ANSWER_END:
        case DW_ANSWER_CONFLICT:
        case DW_ANSWER_FENCED:
        case DW_ANSWER_DAMAGED:
            break;
        }
    }
    step_forget(step);
}

void participant_vote_logged(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    switch (step->event->reply.answer) {
    case DW_ANSWER_VOTE_YES:
        /* Lines 21-22: "reply VOTE-YES to coordinator; wait for decision from coordinator". */
        txn->position = step->event->reply.position;
        txn->flags |= DW_TXN_VOTE_LOGGED;
        reply_vote(step, DW_VOTE_YES);
        dw_txn_set_state(txn, DW_TXN_PREPARED);
        step_arm(step, DW_TIMER_DECISION);
        return;
    case DW_ANSWER_ABORT:
        /* Lines 18-19: "if resp is ABORT then reply ABORT to coordinator". The log holds the record already.
         */
        step_release(step, DW_OUTCOME_ABORTED);
        reply_vote(step, DW_VOTE_NO);
        step_forget(step);
        return;
    case DW_ANSWER_COMMIT:
        step_release(step, DW_OUTCOME_COMMITTED);
        reply_vote(step, DW_VOTE_COMMITTED);
        step_forget(step);
        return;
    case DW_ANSWER_FORGOTTEN:
        /* From the own log, of a vote that is not known to be logged: it was not, and never will be. */
        step_release(step, DW_OUTCOME_ABORTED);
        step_forget(step);
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

/* A read-only participant logs nothing (section 3.6). "Still held" is true at one moment after all accesses
 * of the transaction, as the coordinator votes only after it: from then on two-phase locking needs the lock
 * no more. */
void participant_read_request(struct dw_step *step)
{
    if (step->txn->state == DW_TXN_EXECUTING) {
        bool whole = step->event->execution == DW_EXECUTION_WHOLE;
        step_release(step, whole ? DW_OUTCOME_COMMITTED : DW_OUTCOME_ABORTED);
        reply_vote(step, whole ? DW_VOTE_HELD : DW_VOTE_REFUSED);
        step_forget(step);
    } else if (step->txn->state == DW_TXN_ABSENT && step->txn->id.coordinator != step->node->slot) {
        reply_vote(step, DW_VOTE_REFUSED);
    }
}

/* A commit that comes to a node that has no part in it any more: it committed and forgot, and its
 * acknowledgement was lost. The log is asked, not believed. */
static void confirm_commit(struct dw_step *step)
{
    step_release(step, DW_OUTCOME_ABORTED);
    step->txn->role = DW_TXN_PARTICIPANT;
    step->txn->flags = 0;
    step->txn->inquirers = 0;
    dw_txn_set_state(step->txn, DW_TXN_COMMITTED);
    step->protocol->log_decision(step);
    step_arm(step, DW_TIMER_FINISH);
}

/* Line 22: "wait for decision from coordinator". A decision is accepted in every state, also before the reply
 * to the own vote. */
void participant_decision(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    enum dw_outcome outcome = (enum dw_outcome)step->event->message.value;
    bool commit = outcome == DW_OUTCOME_COMMITTED;
    if (txn->role == DW_TXN_COORDINATOR || txn->id.coordinator == step->node->slot) {
        return;
    }
    switch ((enum dw_txn_state)txn->state) {
    case DW_TXN_LOGGING_VOTE:
    case DW_TXN_PREPARED:
    case DW_TXN_TERMINATING:
        decide(step, outcome);
        return;
    case DW_TXN_EXECUTING:
        if (commit) {
            confirm_commit(step);
        } else {
            /* No vote was sent and none will be: nothing needs to be logged. */
            step_release(step, DW_OUTCOME_ABORTED);
            step_forget(step);
        }
        return;
    case DW_TXN_ABSENT:
    case DW_TXN_DENYING:
        if (commit) {
            confirm_commit(step);
        }
        return;
    case DW_TXN_COMMITTED:
    case DW_TXN_ABORTED:
        if (dw_txn_outcome(txn) != outcome) {
            step_stop(step, DW_ALARM_DISAGREEMENT);
        }
        return;
    case DW_TXN_VOTING:
    case DW_TXN_LOGGING_COMMIT:
    case DW_TXN_STOPPED:
        return;
    }
}
