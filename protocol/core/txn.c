#include "core/txn.h"

#include "base/assert.h"

enum dw_outcome dw_txn_outcome(const struct dw_txn *txn)
{
    if (txn->state == DW_TXN_COMMITTED) {
        return DW_OUTCOME_COMMITTED;
    }
    return txn->state == DW_TXN_ABORTED ? DW_OUTCOME_ABORTED : DW_OUTCOME_UNKNOWN;
}

bool dw_txn_in_doubt(const struct dw_txn *txn)
{
    /* One that stopped after its decision has freed its locks. */
    bool decided = txn->state == DW_TXN_COMMITTED || txn->state == DW_TXN_ABORTED ||
                   (txn->state == DW_TXN_STOPPED && !dw_txn_has(txn, DW_TXN_LOCKS));
    return dw_txn_has(txn, DW_TXN_VOTE_SENT) && !decided;
}

bool dw_txn_may_execute(const struct dw_txn *txn)
{
    return txn->state == DW_TXN_ABSENT || txn->state == DW_TXN_EXECUTING;
}

#define TO(state) (1u << DW_TXN_##state)

/* Which states each state may move to. A transaction that is decided stays decided until it is forgotten. */
static const uint32_t legal[DW_TXN_STATES] = {
    [DW_TXN_ABSENT] = TO(EXECUTING) | TO(VOTING) | TO(LOGGING_COMMIT) | TO(DENYING) | TO(TERMINATING) |
                      TO(COMMITTED) | TO(ABORTED),
    [DW_TXN_EXECUTING] = TO(ABSENT) | TO(LOGGING_VOTE) | TO(DENYING) | TO(COMMITTED) | TO(STOPPED),
    [DW_TXN_VOTING] = TO(LOGGING_COMMIT) | TO(TERMINATING) | TO(COMMITTED) | TO(ABORTED) | TO(STOPPED),
    [DW_TXN_LOGGING_COMMIT] = TO(COMMITTED) | TO(ABORTED) | TO(STOPPED),
    [DW_TXN_LOGGING_VOTE] =
        TO(ABSENT) | TO(PREPARED) | TO(TERMINATING) | TO(COMMITTED) | TO(ABORTED) | TO(STOPPED),
    [DW_TXN_PREPARED] = TO(TERMINATING) | TO(COMMITTED) | TO(ABORTED) | TO(STOPPED),
    [DW_TXN_DENYING] = TO(ABSENT) | TO(COMMITTED) | TO(STOPPED),
    [DW_TXN_TERMINATING] = TO(COMMITTED) | TO(ABORTED) | TO(STOPPED),
    [DW_TXN_COMMITTED] = TO(ABSENT) | TO(STOPPED),
    [DW_TXN_ABORTED] = TO(ABSENT) | TO(STOPPED),
    [DW_TXN_STOPPED] = 0,
};

void dw_txn_set_state(struct dw_txn *txn, enum dw_txn_state state)
{
    DW_ASSERT(txn->state < DW_TXN_STATES && (unsigned)state < DW_TXN_STATES);
    DW_ASSERT(legal[txn->state] & (1u << state));
    txn->state = (uint8_t)state;
}

void dw_txn_check(const struct dw_txn *txn)
{
    DW_ASSERT(txn->state < DW_TXN_STATES);
    if (txn->state == DW_TXN_ABSENT) {
        DW_ASSERT(txn->flags == 0 && txn->timer == DW_TIMER_NONE && txn->role == DW_TXN_NOBODY);
        return;
    }
    DW_ASSERT(dw_txn_id_valid(txn->id));
    DW_ASSERT(txn->role == DW_TXN_COORDINATOR || txn->role == DW_TXN_PARTICIPANT);
    /* Every state that waits has a timer, so that a lost message never leaves it waiting for good. */
    DW_ASSERT((txn->timer == DW_TIMER_NONE) == (txn->state == DW_TXN_STOPPED));
    DW_ASSERT((txn->votes_pending & ~txn->writers) == 0);
    DW_ASSERT((txn->reads_pending & ~txn->readers) == 0);
    DW_ASSERT(txn->inquirers == 0 || txn->state == DW_TXN_DENYING || txn->state == DW_TXN_STOPPED);
    /* No early lock release: who may have voted yes and does not know the decision holds its locks. */
    DW_ASSERT(!dw_txn_in_doubt(txn) || dw_txn_has(txn, DW_TXN_LOCKS));
    DW_ASSERT(!dw_txn_has(txn, DW_TXN_VOTE_LOGGED) || dw_txn_has(txn, DW_TXN_VOTE_SENT));
    /* A caller is answered when the decision is known, not later. */
    DW_ASSERT(!dw_txn_has(txn, DW_TXN_CALLER) || dw_txn_outcome(txn) == DW_OUTCOME_UNKNOWN);
}

void dw_txn_mask(struct dw_txn *txn)
{
    txn->attempt = 0;
}

const char *dw_txn_state_name(enum dw_txn_state state)
{
    static const char *const names[DW_TXN_STATES] = {"ABSENT",       "EXECUTING", "VOTING",  "LOGGING_COMMIT",
                                                     "LOGGING_VOTE", "PREPARED",  "DENYING", "TERMINATING",
                                                     "COMMITTED",    "ABORTED",   "STOPPED"};
    return (unsigned)state < DW_TXN_STATES ? names[state] : "?";
}

const char *dw_timer_name(enum dw_timer timer)
{
    switch (timer) {
    case DW_TIMER_NONE:
        return "NONE";
    case DW_TIMER_VOTE_REQUEST:
        return "VOTE_REQUEST";
    case DW_TIMER_VOTES:
        return "VOTES";
    case DW_TIMER_DECISION:
        return "DECISION";
    case DW_TIMER_RETRY:
        return "RETRY";
    case DW_TIMER_FINISH:
        return "FINISH";
    }
    return "?";
}
