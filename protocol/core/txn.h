/* txn.h - the state of one transaction at one node: what the commit protocols remember.
 *
 * Fixed size, no pointers, zeroed with its padding: it can be copied, hashed and replayed. All zero is "no
 * state", so a driver hands a zeroed machine to dw_step for a transaction that it does not know, and drops a
 * machine whose state is DW_TXN_ABSENT afterwards.
 */
#ifndef DW_CORE_TXN_H
#define DW_CORE_TXN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/id.h"
#include "core/message.h"

enum dw_txn_state {
    DW_TXN_ABSENT = 0,     /* nothing is remembered */
    DW_TXN_EXECUTING,      /* participant: accesses were run, no vote request yet */
    DW_TXN_VOTING,         /* coordinator: vote requests left, answers are outstanding */
    DW_TXN_LOGGING_COMMIT, /* coordinator: a COMMIT that decides is on its way to the log (2PC, local
                              transaction) */
    DW_TXN_LOGGING_VOTE,   /* participant: vote(YES) left for the log, unanswered */
    DW_TXN_PREPARED,       /* participant: its log holds VOTE_YES; waits for the decision (in doubt) */
    DW_TXN_DENYING,        /* participant: will never vote yes; ABORT is on its way to its own log */
    DW_TXN_TERMINATING,    /* in doubt, the termination protocol runs */
    DW_TXN_COMMITTED,      /* decided; the decision is being logged, told and acknowledged */
    DW_TXN_ABORTED,        /* decided; the same */
    DW_TXN_STOPPED,        /* fenced, or a violation was seen: nothing more is decided here */
};
enum { DW_TXN_STATES = DW_TXN_STOPPED + 1 };

enum dw_txn_role {
    DW_TXN_NOBODY = 0,
    DW_TXN_COORDINATOR,
    DW_TXN_PARTICIPANT, /* also a restarted Cornus coordinator: it is just another node in doubt */
};

/* Which timer is armed; at most one. Durations are the driver's configuration. */
enum dw_timer {
    DW_TIMER_NONE = 0,
    DW_TIMER_VOTE_REQUEST, /* participant waits for the vote request (Algorithm 2, line 14) */
    DW_TIMER_VOTES,        /* coordinator waits for all answers (line 8) */
    DW_TIMER_DECISION,     /* participant waits for the decision (line 23) */
    DW_TIMER_RETRY,        /* a log request or an inquiry is asked again (line 35) */
    DW_TIMER_FINISH,       /* the decision's log record and acknowledgements */
};

enum dw_txn_flag {
    DW_TXN_LOCKS = 1 << 0,           /* holds locks and, if it wrote, changes that are not applied */
    DW_TXN_WRITES = 1 << 1,          /* has redo of its own to log */
    DW_TXN_VOTE_SENT = 1 << 2,       /* own vote(YES) has left: from now on it never aborts alone */
    DW_TXN_VOTE_LOGGED = 1 << 3,     /* own log is known to hold VOTE_YES */
    DW_TXN_CALLER = 1 << 4,          /* the caller waits for an answer */
    DW_TXN_DECISION_LOGGED = 1 << 5, /* the decision is durable in the own log */
    DW_TXN_RELAY = 1 << 6,           /* the coordinator is to hear what the denial gave */
    DW_TXN_BLOCKED = 1 << 7,         /* 2PC: a whole round of inquiries told nothing */
};

struct dw_txn {
    struct dw_txn_id id;
    uint64_t writers; /* the listed logs: all that must be asked; the coordinator's is always among them */
    uint64_t readers; /* coordinator: read-only participants */
    uint64_t votes_pending; /* coordinator: writers that have not said yes */
    uint64_t reads_pending; /* coordinator: readers that have not said "still held" */
    uint64_t ask_pending;   /* termination: logs (2PC: nodes) that have not answered */
    uint64_t forgotten;     /* termination: logs that answered FORGOTTEN */
    uint64_t acks_pending;  /* coordinator: participants whose acknowledgement is outstanding */
    uint64_t inquirers;     /* DENYING, 2PC: nodes in doubt that are to hear what the denial gave */
    uint64_t position;      /* of the own record that carries redo; 0 if not known */
    uint32_t attempt;       /* number of the armed timer; a time-out of an older one is ignored */
    uint32_t flags;         /* dw_txn_flag */
    uint8_t state;          /* dw_txn_state */
    uint8_t role;           /* dw_txn_role */
    uint8_t timer;          /* dw_timer */
    uint8_t padding[5];     /* zero */
};

_Static_assert(sizeof(struct dw_txn) <= 256, "a machine holds at most 256 bytes");

static inline bool dw_txn_has(const struct dw_txn *txn, enum dw_txn_flag flag)
{
    return (txn->flags & (uint32_t)flag) != 0;
}

/* Committed or aborted, if it is decided here; else unknown. */
enum dw_outcome dw_txn_outcome(const struct dw_txn *txn);

/* In doubt: own vote(YES) may be logged and the decision is not known. Its locks must be held. */
bool dw_txn_in_doubt(const struct dw_txn *txn);

/* True if accesses may still be run for it: absent (the first one) or executing. */
bool dw_txn_may_execute(const struct dw_txn *txn);

/* Moves to a state. Asserts that the move is legal. */
void dw_txn_set_state(struct dw_txn *txn, enum dw_txn_state state);

/* Asserts the invariants of protocol/core/README.md that a machine alone can show. */
void dw_txn_check(const struct dw_txn *txn);

/* Zeroes what must not tell two states apart when they are compared: the attempt number. */
void dw_txn_mask(struct dw_txn *txn);

const char *dw_txn_state_name(enum dw_txn_state state);
const char *dw_timer_name(enum dw_timer timer);

#endif
