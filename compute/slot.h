/* slot.h - a worker slot: one transaction at a time, from its begin to the caller's answer. */
#ifndef DW_COMPUTE_SLOT_H
#define DW_COMPUTE_SLOT_H

#include "compute/runtime.h"

enum slot_state {
    SLOT_IDLE,      /* may take the next transaction */
    SLOT_EXECUTING, /* waits for access replies of other nodes */
    SLOT_COMMITTING,
    SLOT_ANSWERED, /* the answer is there; the caller resumes at the next tick */
    SLOT_BACKOFF,  /* the attempt was aborted: tries again at `due_us` */
};

struct slot {
    enum slot_state state;
    struct dw_random random;       /* transactions */
    struct dw_procedure original;  /* as generated, for the next attempt */
    struct dw_procedure procedure; /* of this attempt */
    struct dw_round round;
    struct dw_access_result results[DW_ROUND_MAX_ACCESSES];
    uint8_t *rows; /* bytes of the results */
    size_t rows_size;
    size_t rows_capacity;
    struct txn_context *context; /* of this attempt, until it is answered */
    struct dw_txn_id txn;
    struct dw_token tokens[DW_MAX_NODES];    /* of the executions at other nodes; requests sent so far */
    uint8_t answered[DW_ROUND_MAX_ACCESSES]; /* accesses of this round that have a result */
    uint64_t waiting;                        /* nodes whose reply is outstanding */
    uint64_t touched;                        /* nodes that were asked anything in this attempt */
    uint64_t readers;
    uint64_t writers;
    uint32_t next_access; /* one by one: the first that was not sent */
    enum dw_outcome outcome;
    bool own_abort;       /* the procedure itself chose to abort: not tried again */
    uint64_t due_us;      /* EXECUTING: the request times out; BACKOFF: the next attempt */
    uint64_t begin_us;    /* closed loop: when the slot took it; open loop: as intended */
    uint64_t taken_us;    /* when the slot took it, and its first attempt began */
    uint64_t attempt_us;  /* begin of this attempt */
    uint64_t commit_us;   /* end of execution */
    uint64_t prepared_us; /* 0: not yet */
    uint64_t answered_us; /* the caller's answer was there */
    bool in_window;       /* ... while the load was being measured */
};

/* Takes a transaction, and runs it as far as it goes. Closed loop: */
void slot_begin(struct runtime *runtime, struct slot *slot);
/* Open loop: it should have begun at `intended_us`. */
void slot_begin_due(struct runtime *runtime, struct slot *slot, uint64_t intended_us);

/* Goes on after a back-off, or gives the attempt up whose request timed out. */
void slot_due(struct runtime *runtime, struct slot *slot);

/* The caller resumes with the answer: counts it; the slot is idle, or backs off for the next attempt. */
void slot_resume(struct runtime *runtime, struct slot *slot);

/* Nobody waits for the transaction any longer. Before its commit has begun it is aborted, here and wherever
 * it holds locks; afterwards its outcome is the protocol's, which goes on without the slot, and unknown to
 * the caller. The slot is idle. */
void slot_abandon(struct runtime *runtime, struct slot *slot);

void slot_on_access_reply(struct runtime *runtime, struct slot *slot,
                          const struct dw_wire_access_reply *reply);

void slot_close(struct slot *slot);

#endif
