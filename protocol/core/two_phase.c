/* Two-phase commit as in Figure 1 of the Cornus paper, with cooperative termination among compute nodes: the
 * coordinator's COMMIT record is the decision, and no information at the coordinator means abort. */
#include "base/assert.h"
#include "core/handlers.h"

/* Figure 1a: START_2PC is written in parallel with the vote requests. Nobody waits for it and its loss is
 * harmless, but it is forced, as in the paper; saving that sync is what presumed abort is for. */
static void start(struct dw_step *step)
{
    step_log_own(step, DW_ASK_START, true);
}

/* "After receiving all the votes, the coordinator enters the commit phase by logging the final decision". */
static void answers_changed(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (txn->votes_pending == 0 && txn->reads_pending == 0) {
        dw_txn_set_state(txn, DW_TXN_LOGGING_COMMIT);
        step_log_own(step, DW_ASK_COORD_COMMIT, true);
        step_arm(step, DW_TIMER_RETRY);
    }
}

/* The coordinator may abort alone until its COMMIT leaves. */
static void abort_alone(struct dw_step *step)
{
    decide(step, DW_OUTCOME_ABORTED);
}

/* COMMIT is durable: only now caller and participants may hear of it. */
static void own_logged(struct dw_step *step)
{
    const struct dw_log_reply *reply = &step->event->reply;
    if (step->txn->state != DW_TXN_LOGGING_COMMIT || reply->ask != DW_ASK_COORD_COMMIT) {
        return;
    }
    switch (reply->answer) {
    case DW_ANSWER_COMMIT:
        step->txn->position = reply->position;
        step->txn->flags |= DW_TXN_DECISION_LOGGED;
        decide(step, DW_OUTCOME_COMMITTED);
        return;
    case DW_ANSWER_FORGOTTEN:
        /* Nobody may sweep what its coordinator has not finished; an earlier copy of this request may have
         * been logged before that. */
        step_stop(step, DW_ALARM_FORGOTTEN);
        return;
    case DW_ANSWER_ABORT:
    case DW_ANSWER_NONE:
    case DW_ANSWER_VOTE_YES:
    case DW_ANSWER_START:
    case DW_ANSWER_END:
        /* Only this coordinator writes its entry, and it has written nothing of the kind. */
        step_stop(step, DW_ALARM_DISAGREEMENT);
        return;
    case DW_ANSWER_CONFLICT:
    case DW_ANSWER_FENCED:
    case DW_ANSWER_DAMAGED:
        return;
    }
}

static void log_decision(struct dw_step *step)
{
    bool commit = dw_txn_outcome(step->txn) == DW_OUTCOME_COMMITTED;
    if (step->txn->role == DW_TXN_COORDINATOR) {
        DW_ASSERT(!commit); /* its COMMIT was forced before it decided */
        step_log_own(step, DW_ASK_COORD_ABORT, false);
        return;
    }
    step_log_own(step, commit ? DW_ASK_DECIDE_COMMIT : DW_ASK_DECIDE_ABORT, false);
}

/* COMMIT stays until all have acknowledged it; participants that did not are told again. */
static void finish_timeout(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (!dw_txn_has(txn, DW_TXN_DECISION_LOGGED)) {
        log_decision(step);
    }
    step_send(step, DW_MSG_DECISION, DW_OUTCOME_COMMITTED, txn->acks_pending);
    step_arm(step, DW_TIMER_FINISH);
}

static void finished(struct dw_step *step)
{
    bool commit = dw_txn_outcome(step->txn) == DW_OUTCOME_COMMITTED;
    if (commit && coordinator_is_distributed(step)) {
        step_log_own(step, DW_ASK_END, false);
    }
}

/* "It will contact all the other nodes for the outcome of the transaction ... and must block" if none has it.
 */
static void terminate(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    if (txn->state == DW_TXN_TERMINATING) {
        /* A whole round told nothing: who answered did not know, and who knows did not answer. */
        txn->flags |= DW_TXN_BLOCKED;
    } else {
        dw_txn_set_state(txn, DW_TXN_TERMINATING);
    }
    txn->ask_pending = step->protocol->listed(step);
    step_send(step, DW_MSG_INQUIRY, 0, txn->ask_pending);
    step_arm(step, DW_TIMER_RETRY);
}

/* All other nodes; the coordinator is among the listed. */
static uint64_t listed(const struct dw_step *step)
{
    return step->txn->writers & ~step_self(step);
}

/* A participant that is not in doubt itself answers from its log, by the denial's reply. It may have decided
 * and forgotten, so memory says nothing; execution state is given up, but may be what a late first access
 * left after the decision; and if the log holds nothing, the denial makes the abort durable before anybody
 * hears of it. */
static void answer_from_log(struct dw_step *step)
{
    if (step->txn->state != DW_TXN_DENYING) {
        step->txn->role = DW_TXN_PARTICIPANT;
        participant_deny(step, false);
    }
    step->txn->inquirers |= dw_node_bit(step->event->message.from);
}

static void inquiry(struct dw_step *step)
{
    uint64_t from = dw_node_bit(step->event->message.from);
    bool coordinates = step->txn->id.coordinator == step->node->slot;
    switch ((enum dw_txn_state)step->txn->state) {
    case DW_TXN_ABSENT:
        if (coordinates) {
            /* It remembers each commit until all have acknowledged it, so no information means abort. */
            step_send(step, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_ABORTED, from);
        } else {
            answer_from_log(step);
        }
        return;
    case DW_TXN_EXECUTING:
    case DW_TXN_DENYING:
        answer_from_log(step);
        return;
    case DW_TXN_VOTING:
    case DW_TXN_LOGGING_COMMIT:
    case DW_TXN_LOGGING_VOTE:
    case DW_TXN_PREPARED:
    case DW_TXN_TERMINATING:
    case DW_TXN_COMMITTED:
    case DW_TXN_ABORTED:
        step_send(step, DW_MSG_INQUIRY_REPLY, dw_txn_outcome(step->txn), from);
        return;
    case DW_TXN_STOPPED:
        return;
    }
}

static void recover_participant(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    txn->role = DW_TXN_PARTICIPANT;
    txn->flags = DW_TXN_LOCKS | DW_TXN_WRITES | DW_TXN_VOTE_SENT | DW_TXN_VOTE_LOGGED;
    dw_update_add(step->update, (struct dw_out){.kind = DW_OUT_RELOCK, .position = txn->position});
    step->protocol->terminate(step);
}

/* The fence keeps the old incarnation's COMMIT out, so START alone means abort. */
static void recover_started(struct dw_step *step)
{
    step->txn->role = DW_TXN_COORDINATOR;
    decide(step, DW_OUTCOME_ABORTED);
}

static void recover_committed(struct dw_step *step)
{
    step->txn->role = DW_TXN_COORDINATOR;
    step->txn->flags = DW_TXN_DECISION_LOGGED;
    decide(step, DW_OUTCOME_COMMITTED);
}

static void recovered(struct dw_step *step)
{
    step->txn->writers = step->event->writers;
    step->txn->position = step->event->position;
    switch (step->event->entry) {
    case DW_ENTRY_VOTE_YES:
        recover_participant(step);
        return;
    case DW_ENTRY_START:
        recover_started(step);
        return;
    case DW_ENTRY_COORD_COMMIT:
        recover_committed(step);
        return;
    case DW_ENTRY_NONE:
    case DW_ENTRY_COMMIT:
    case DW_ENTRY_ABORT:
    case DW_ENTRY_COORD_ABORT:
    case DW_ENTRY_END:
    case DW_ENTRY_FORGOTTEN:
    case DW_ENTRY_DAMAGED:
        return;
    }
}

const struct dw_protocol dw_two_phase = {
    .name = "2pc",
    .logs_decide = false,
    .start = start,
    .answers_changed = answers_changed,
    .refused = abort_alone,
    .votes_timeout = abort_alone,
    .own_logged = own_logged,
    .log_decision = log_decision,
    .finish_timeout = finish_timeout,
    .finished = finished,
    .vote_request = participant_vote,
    .vote_request_absent = participant_deny_absent,
    .silence = participant_silence,
    .vote_logged = participant_vote_logged,
    .terminate = terminate,
    .listed = listed,
    .inquiry = inquiry,
    .recovered = recovered,
};
