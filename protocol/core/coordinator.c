/* Coordinator::Start1PC (Cornus, Algorithm 2, lines 1-12) and the frame that 2PC shares with it. */
#include "base/assert.h"
#include "core/handlers.h"

bool coordinator_is_distributed(const struct dw_step *step)
{
    return (step->txn->writers & ~step_self(step)) != 0;
}

/* A transaction that read on at most one node, and wrote nowhere, needs neither phase (section 3.6). A remote
 * reader is still asked, so that it frees its locks; nobody waits for the answer. */
static bool skips_both_phases(uint64_t writers, uint64_t readers)
{
    return writers == 0 && (readers & (readers - 1)) == 0;
}

/* "Function Coordinator::Start1PC(txn)". */
void coordinator_commit(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    const struct dw_event *event = step->event;
    DW_ASSERT(txn->state == DW_TXN_ABSENT && event->txn.coordinator == step->node->slot);
    uint64_t self = step_self(step);
    uint64_t others = event->writers & ~self;
    txn->role = DW_TXN_COORDINATOR;
    txn->flags = DW_TXN_LOCKS | DW_TXN_CALLER | (event->writers & self ? DW_TXN_WRITES : 0);
    /* The coordinator is listed even if it writes nothing itself: its vote, sent last, covers the readers. */
    txn->writers = others != 0 ? others | self : event->writers;
    txn->readers = event->readers & ~self & ~event->writers;
    txn->votes_pending = others;
    txn->reads_pending = txn->readers;
    if (skips_both_phases(event->writers, event->readers)) {
        step_send(step, DW_MSG_READ_REQUEST, 0, txn->readers);
        step_answer_caller(step, DW_OUTCOME_COMMITTED);
        step_release(step, DW_OUTCOME_COMMITTED);
        step_forget(step);
        return;
    }
    if (others == 0 && txn->readers == 0) {
        coordinator_commit_unlisted(step);
        return;
    }
    dw_txn_set_state(txn, DW_TXN_VOTING);
    /* Lines 3-4: "for p in txn.participants do send VOTE-REQ to p asynchronously". */
    step_send(step, DW_MSG_VOTE_REQUEST, 0, others);
    step_send(step, DW_MSG_READ_REQUEST, 0, txn->readers);
    if (others != 0) {
        step->protocol->start(step);
    }
    step_arm(step, DW_TIMER_VOTES);
}

void coordinator_commit_unlisted(struct dw_step *step)
{
    if (!dw_txn_has(step->txn, DW_TXN_WRITES)) {
        step_answer_caller(step, DW_OUTCOME_COMMITTED);
        step_release(step, DW_OUTCOME_COMMITTED);
        /* VOTING has no direct way back to absent: a read-only transaction is decided, and done at once. */
        dw_txn_set_state(step->txn, DW_TXN_COMMITTED);
        step_forget(step);
        return;
    }
    dw_txn_set_state(step->txn, DW_TXN_LOGGING_COMMIT);
    step_log_own(step, DW_ASK_COMMIT_LOCAL, true);
    step_arm(step, DW_TIMER_RETRY);
}

/* The execution failed, or the caller gave up, before any vote request left: nothing was logged, nothing can
 * commit. */
void coordinator_cancel(struct dw_step *step)
{
    DW_ASSERT(step->txn->state == DW_TXN_ABSENT && step->event->txn.coordinator == step->node->slot);
    step->txn->flags = DW_TXN_LOCKS | DW_TXN_CALLER;
    uint64_t joined = (step->event->writers | step->event->readers) & ~step_self(step);
    step_answer_caller(step, DW_OUTCOME_ABORTED);
    step_release(step, DW_OUTCOME_ABORTED);
    step_send(step, DW_MSG_DECISION, DW_OUTCOME_ABORTED, joined);
}

/* All that a coordinator in VOTING waits for from others has arrived. */
static bool all_answered(const struct dw_txn *txn)
{
    return txn->votes_pending == 0 && txn->reads_pending == 0;
}

static void answered(struct dw_step *step)
{
    if (coordinator_is_distributed(step)) {
        step->protocol->answers_changed(step);
    } else if (all_answered(step->txn)) {
        coordinator_commit_unlisted(step);
    }
}

static void vote_while_voting(struct dw_step *step, enum dw_vote vote, uint64_t from)
{
    struct dw_txn *txn = step->txn;
    switch (vote) {
    case DW_VOTE_YES:
        txn->votes_pending &= ~from;
        answered(step);
        return;
    case DW_VOTE_NO:
        /* Line 6: "on receiving ABORT decision <- ABORT". */
        decide(step, DW_OUTCOME_ABORTED);
        return;
    case DW_VOTE_COMMITTED:
        /* Another node terminated the transaction meanwhile: all listed logs hold VOTE_YES. */
        if (step->protocol->logs_decide) {
            decide(step, DW_OUTCOME_COMMITTED);
        }
        return;
    case DW_VOTE_HELD:
        txn->reads_pending &= ~from;
        answered(step);
        return;
    case DW_VOTE_REFUSED:
        if (coordinator_is_distributed(step)) {
            step->protocol->refused(step);
        } else {
            decide(step, DW_OUTCOME_ABORTED);
        }
        return;
    }
}

/* NO and COMMITTED tell what the sender's log holds, which decides; the other votes do not. */
static void vote_while_terminating(struct dw_step *step, enum dw_vote vote)
{
    switch (vote) {
    case DW_VOTE_NO:
        decide(step, DW_OUTCOME_ABORTED);
        return;
    case DW_VOTE_COMMITTED:
        decide(step, DW_OUTCOME_COMMITTED);
        return;
    case DW_VOTE_YES:
    case DW_VOTE_HELD:
    case DW_VOTE_REFUSED:
        return;
    }
}

/* Line 5: "wait for all responses from participants and storage node". */
void coordinator_vote(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    enum dw_vote vote = (enum dw_vote)step->event->message.value;
    uint64_t from = dw_node_bit(step->event->message.from);
    bool of_reader = vote == DW_VOTE_HELD || vote == DW_VOTE_REFUSED;
    if (txn->role != DW_TXN_COORDINATOR || (from & (of_reader ? txn->reads_pending : txn->writers)) == 0) {
        return;
    }
    if (txn->state == DW_TXN_VOTING) {
        vote_while_voting(step, vote, from);
    } else if (txn->state == DW_TXN_TERMINATING && step->protocol->logs_decide) {
        vote_while_terminating(step, vote);
    }
}

static void local_commit_logged(struct dw_step *step)
{
    const struct dw_log_reply *reply = &step->event->reply;
    if (reply->ask != DW_ASK_COMMIT_LOCAL) {
        return;
    }
    switch (reply->answer) {
    case DW_ANSWER_COMMIT:
        step->txn->position = reply->position;
        decide(step, DW_OUTCOME_COMMITTED);
        return;
    case DW_ANSWER_ABORT: /* another node denied in this log */
        decide(step, DW_OUTCOME_ABORTED);
        return;
    case DW_ANSWER_FORGOTTEN:
        /* Nobody may sweep what its coordinator has not finished. An earlier copy of this very request may
         * have been logged before that, so it cannot be told whether the transaction committed. */
        step_stop(step, DW_ALARM_FORGOTTEN);
        return;
    case DW_ANSWER_NONE:
    case DW_ANSWER_VOTE_YES:
    case DW_ANSWER_START:
    case DW_ANSWER_END:
        /* The rule gives none of these here, so the log is wrong: nothing can be read out of it. */
        step_stop(step, DW_ALARM_DISAGREEMENT);
        return;
    case DW_ANSWER_CONFLICT:
    case DW_ANSWER_FENCED:
    case DW_ANSWER_DAMAGED: /* no state can go on with these: they were taken before */
        return;
    }
}

void coordinator_own_logged(struct dw_step *step)
{
    if (coordinator_is_distributed(step)) {
        step->protocol->own_logged(step);
    } else if (step->txn->state == DW_TXN_LOGGING_COMMIT) {
        local_commit_logged(step);
    }
}

void coordinator_ack(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (txn->role == DW_TXN_COORDINATOR && txn->state == DW_TXN_COMMITTED) {
        txn->acks_pending &= ~dw_node_bit(step->event->message.from);
        decision_settle(step);
    }
}
