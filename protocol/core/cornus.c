/* Cornus one-phase commit: the votes in the listed logs are the decision (Algorithm 2). */
#include "core/handlers.h"

/* Line 2: "RPC local SN async::LogIfNotExist(VOTE-YES)". With read-only participants the own vote waits for
 * their answers, so that no commit can be reached while a read lock may be lost. */
static void vote_when_readers_hold(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (txn->reads_pending == 0 && !dw_txn_has(txn, DW_TXN_VOTE_SENT)) {
        txn->flags |= DW_TXN_VOTE_SENT;
        step_log_own(step, DW_ASK_VOTE, true);
    }
}

static void answers_changed(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    vote_when_readers_hold(step);
    if (txn->votes_pending == 0 && dw_txn_has(txn, DW_TXN_VOTE_LOGGED)) {
        /* Line 7: "on receiving all responses decision <- COMMIT". */
        decide(step, DW_OUTCOME_COMMITTED);
    }
}

/* The storage node's response, which line 5 waits for too. */
static void own_logged(struct dw_step *step)
{
    const struct dw_log_reply *reply = &step->event->reply;
    if (reply->ask != DW_ASK_VOTE) {
        return;
    }
    switch (reply->answer) {
    case DW_ANSWER_VOTE_YES:
        step->txn->position = reply->position;
        step->txn->flags |= DW_TXN_VOTE_LOGGED;
        answers_changed(step);
        return;
    case DW_ANSWER_ABORT: /* another node denied in this log */
        decide(step, DW_OUTCOME_ABORTED);
        return;
    case DW_ANSWER_FORGOTTEN:
        termination_own_forgot(step);
        return;
    case DW_ANSWER_COMMIT:
        decide(step, DW_OUTCOME_COMMITTED);
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

/* Lines 28-31: "for every node p participating txn: RPC p.SN async::LogIfNotExist(ABORT)". A coordinator
 * whose own vote has not left denies in its own log first: that alone aborts, and leaves the others' logs
 * alone. */
static void terminate(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    uint64_t ask = txn->ask_pending;
    if (txn->state != DW_TXN_TERMINATING) {
        dw_txn_set_state(txn, DW_TXN_TERMINATING);
        txn->ask_pending = step->protocol->listed(step);
        ask = dw_txn_has(txn, DW_TXN_VOTE_SENT) ? txn->ask_pending : step_self(step);
    }
    step_log(step, DW_ASK_DENY, ask, true);
    step_arm(step, DW_TIMER_RETRY);
}

/* Line 8: "on timeout decision <- TerminationProtocol(txn)". */
static void votes_timeout(struct dw_step *step)
{
    if (coordinator_is_distributed(step)) {
        terminate(step);
    } else {
        /* Only readers were asked, and nothing was logged. */
        decide(step, DW_OUTCOME_ABORTED);
    }
}

static void log_decision(struct dw_step *step)
{
    bool commit = dw_txn_outcome(step->txn) == DW_OUTCOME_COMMITTED;
    step_log_own(step, commit ? DW_ASK_DECIDE_COMMIT : DW_ASK_DECIDE_ABORT, false);
}

/* A participant that misses the decision finds it in the logs, so acknowledgements are not insisted on. */
static void finish_timeout(struct dw_step *step)
{
    step->txn->acks_pending = 0;
    if (!dw_txn_has(step->txn, DW_TXN_DECISION_LOGGED)) {
        log_decision(step);
        step_arm(step, DW_TIMER_FINISH);
    }
    decision_settle(step);
}

static void finished(struct dw_step *step)
{
    (void)step;
}

/* Nobody inquires of nodes in Cornus. */
static void inquiry(struct dw_step *step)
{
    (void)step;
}

/* Section 3.4: a restarted node follows its decision record if it has one, "otherwise, it will run the
 * termination protocol to learn the outcome"; the coordinator too. */
static void recovered(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (step->event->entry != DW_ENTRY_VOTE_YES) {
        return;
    }
    txn->role = DW_TXN_PARTICIPANT;
    txn->flags = DW_TXN_LOCKS | DW_TXN_WRITES | DW_TXN_VOTE_SENT | DW_TXN_VOTE_LOGGED;
    txn->writers = step->event->writers;
    txn->position = step->event->position;
    dw_update_add(step->update, (struct dw_out){.kind = DW_OUT_RELOCK, .position = txn->position});
    step->protocol->terminate(step);
}

const struct dw_protocol dw_cornus = {
    .name = "cornus",
    .logs_decide = true,
    .start = vote_when_readers_hold,
    .answers_changed = answers_changed,
    .refused = terminate,
    .votes_timeout = votes_timeout,
    .own_logged = own_logged,
    .log_decision = log_decision,
    .finish_timeout = finish_timeout,
    .finished = finished,
    .vote_request = participant_vote,
    .vote_request_absent = participant_deny_absent,
    .silence = participant_silence,
    .vote_logged = participant_vote_logged,
    .terminate = terminate,
    .listed = termination_listed,
    .inquiry = inquiry,
    .recovered = recovered,
};
