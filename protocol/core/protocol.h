/* protocol.h - one step of a commit protocol: an event in, an update out. Pure.
 *
 * Source: Cornus, Algorithm 2 and sections 3.1-3.6; 2PC as in its Figure 1. The functions that a protocol
 * shares with the others stand in coordinator.c, participant.c, decision.c and termination.c; what differs
 * hangs in an ops table, so that a protocol is chosen at run time, and a test can replace a single function
 * by a wrong one.
 */
#ifndef DW_CORE_PROTOCOL_H
#define DW_CORE_PROTOCOL_H

#include "core/node.h"
#include "core/txn.h"
#include "core/update.h"

enum dw_event_kind {
    DW_EVENT_COMMIT =
        1, /* the caller asks to commit: `writers`, `readers` (own slot included in each if it did) */
    DW_EVENT_CANCEL,  /* the coordinator gives up before COMMIT: `writers` | `readers` hold execution state */
    DW_EVENT_JOIN,    /* participant: the first access has created execution state and locks */
    DW_EVENT_MESSAGE, /* `message`; for VOTE_REQUEST and READ_REQUEST also `execution` */
    DW_EVENT_LOG_REPLY, /* `reply` */
    DW_EVENT_TIMEOUT,   /* `timer`, `attempt` */
    DW_EVENT_RECOVERED, /* the scan found this entry in the own log: `entry`, `writers`, `position` */
};

/* What a participant has of the execution that a VOTE_REQUEST or READ_REQUEST names. The executor tells: only
 * if the token and the number of accesses match, and none of them failed, is it whole. */
enum dw_execution {
    DW_EXECUTION_NONE = 0, /* no execution state */
    DW_EXECUTION_BROKEN,   /* some, but not what is asked for */
    DW_EXECUTION_WHOLE,
};

struct dw_event {
    enum dw_event_kind kind;
    struct dw_txn_id txn;
    uint64_t writers;
    uint64_t readers;
    enum dw_execution execution;
    enum dw_timer timer;
    uint32_t attempt;
    enum dw_entry_state entry;
    uint64_t position;
    struct dw_message message;
    struct dw_log_reply reply;
};

struct dw_protocol;

/* What the handlers of one step share. */
struct dw_step {
    const struct dw_protocol *protocol;
    struct dw_node *node;
    struct dw_txn *txn;
    const struct dw_event *event;
    struct dw_update *update;
};

/* Where protocols differ. Each function is a handler of one step; its comment stands at its definition. */
struct dw_protocol {
    const char *name; /* as in a configuration: "cornus", "2pc" */
    /* True if a participant's log can decide (Cornus): ABORT or COMMIT found in any of them is the outcome.
     */
    bool logs_decide;

    /* Coordinator. */
    void (*start)(struct dw_step *step);           /* vote requests were just written */
    void (*answers_changed)(struct dw_step *step); /* a vote or a read-only answer arrived */
    void (*refused)(struct dw_step *step);         /* a read-only participant no longer holds its locks */
    void (*votes_timeout)(struct dw_step *step);   /* not all answered in time */
    void (*own_logged)(struct dw_step *step);      /* reply to VOTE, START or COORD_COMMIT of the own log */
    void (*log_decision)(struct dw_step *step);    /* write the decision to the own log, unforced */
    void (*finish_timeout)(struct dw_step *step);  /* decided; log reply or acknowledgements are late */
    void (*finished)(struct dw_step *step);        /* decided, logged, acknowledged: about to be forgotten */

    /* Participant. */
    void (*vote_request)(struct dw_step *step);        /* VOTE_REQUEST in state EXECUTING */
    void (*vote_request_absent)(struct dw_step *step); /* VOTE_REQUEST without execution state */
    void (*silence)(struct dw_step *step);             /* no vote request came in time */
    void (*vote_logged)(struct dw_step *step);         /* reply to the own vote in state LOGGING_VOTE */

    /* Both. */
    void (*terminate)(struct dw_step *step);        /* begin, or ask again in, the termination protocol */
    uint64_t (*listed)(const struct dw_step *step); /* logs (2PC: nodes) that termination must ask */
    void (*inquiry)(struct dw_step *step);          /* INQUIRY in any state, DW_TXN_ABSENT too */
    void (*recovered)(struct dw_step *step);        /* DW_EVENT_RECOVERED */
};

/* The protocols. Immutable. */
extern const struct dw_protocol dw_cornus;
extern const struct dw_protocol dw_two_phase;

/* The protocol of that name, or NULL. */
const struct dw_protocol *dw_protocol_find(const char *name);

/* All protocols in the order in which they are listed; NULL at the end. */
const struct dw_protocol *dw_protocol_at(unsigned index);

/* Steps the machine `txn` of transaction `event->txn` at `node`, and writes what is to be done to `update`
 * (which is emptied first). An unknown transaction is given as a zeroed machine; if its state is
 * DW_TXN_ABSENT afterwards, it is to be dropped. An event that comes while the node does not serve is ignored
 * (RECOVERED needs SCANNING; log replies and time-outs of recovered transactions are taken then too). */
void dw_step(const struct dw_protocol *protocol, struct dw_node *node, struct dw_txn *txn,
             const struct dw_event *event, struct dw_update *update);

#endif
