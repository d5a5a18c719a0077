#include "tests/mutants/mutants.h"

#include <stddef.h>

#include "core/handlers.h"

/* --- Algorithm 2, line 29, read literally --- */

static uint64_t every_log_but_the_own(const struct dw_step *step)
{
    return step->txn->writers & ~step_self(step);
}

static void line_29_literally(struct dw_protocol *protocol)
{
    protocol->listed = every_log_but_the_own;
}

/* --- lines 18-19 left out --- */

static void vote_yes_whatever_the_log_says(struct dw_step *step)
{
    struct dw_txn *txn = step->txn;
    txn->flags |= DW_TXN_VOTE_LOGGED;
    step_send(step, DW_MSG_VOTE, DW_VOTE_YES, dw_node_bit(txn->id.coordinator));
    dw_txn_set_state(txn, DW_TXN_PREPARED);
    step_arm(step, DW_TIMER_DECISION);
}

static void commit_whatever_the_own_log_says(struct dw_step *step)
{
    step->txn->flags |= DW_TXN_VOTE_LOGGED;
    step->protocol->answers_changed(step);
}

static void returned_abort_ignored(struct dw_protocol *protocol)
{
    protocol->own_logged = commit_whatever_the_own_log_says;
    protocol->vote_logged = vote_yes_whatever_the_log_says;
}

/* --- taking an incarnation fences nothing --- */

static struct dw_log_verdict rule_without_fence(const struct dw_entry *entry, uint32_t log_incarnation,
                                                const struct dw_log_request *request)
{
    (void)log_incarnation;
    return dw_log_rule(entry, 0, request);
}

/* --- the coordinator aborts alone, as it may in 2PC --- */

static void abort_alone(struct dw_step *step)
{
    decide(step, DW_OUTCOME_ABORTED);
}

static void alone_abort(struct dw_protocol *protocol)
{
    protocol->votes_timeout = abort_alone;
}

/* --- a participant without execution state says no from memory --- */

static void say_no_from_memory(struct dw_step *step)
{
    step_send(step, DW_MSG_VOTE, DW_VOTE_NO, dw_node_bit(step->txn->id.coordinator));
}

static void no_without_denial(struct dw_protocol *protocol)
{
    protocol->vote_request_absent = say_no_from_memory;
}

const struct dw_mutant dw_mutants[] = {
    {.name = "line-29-literally",
     .wrong = "the termination protocol asks every listed log but the own one",
     .violates = "commit-validity",
     .of = &dw_cornus,
     .mutate = line_29_literally,
     .timeouts = 2},
    {.name = "returned-abort-ignored",
     .wrong = "a node takes its vote for logged although LogIfNotExist(VOTE_YES) returned ABORT",
     .violates = "commit-validity",
     .of = &dw_cornus,
     .mutate = returned_abort_ignored,
     .timeouts = 2},
    {.name = "no-fence",
     .wrong = "a vote of an older incarnation is appended after its owner's restart has scanned the log",
     .violates = "vote-is-held",
     .of = &dw_cornus,
     .rule = rule_without_fence,
     .crashes = 1,
     .restarts = 1},
    {.name = "alone-abort",
     .wrong = "the coordinator aborts alone on a time-out while its own vote is unacknowledged",
     .violates = "abort-validity",
     .of = &dw_cornus,
     .mutate = alone_abort,
     .timeouts = 2},
    {.name = "no-without-denial",
     .wrong = "a participant without execution state votes no without denying in its log",
     .violates = "agreement",
     .of = &dw_cornus,
     .mutate = no_without_denial,
     .duplicates = 1,
     .timeouts = 2},
    {.name = NULL},
};
