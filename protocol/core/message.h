/* message.h - what compute nodes say to each other, and the log requests and replies that travel like
 * messages. */
#ifndef DW_CORE_MESSAGE_H
#define DW_CORE_MESSAGE_H

#include <stdint.h>

#include "core/id.h"
#include "core/log_rule.h"

/* Messages between compute nodes. The numbers are sent on the wire. */
enum dw_message_kind {
    DW_MSG_VOTE_REQUEST = 1,  /* coordinator to a writer: `writers` is the list of logs that must be asked */
    DW_MSG_READ_REQUEST = 2,  /* coordinator to a read-only participant: do you still hold your locks? */
    DW_MSG_VOTE = 3,          /* participant to coordinator: `value` is a dw_vote */
    DW_MSG_DECISION = 4,      /* coordinator to participant: `value` is a dw_outcome */
    DW_MSG_ACK = 5,           /* participant to coordinator: the decision is durable in my log */
    DW_MSG_INQUIRY = 6,       /* 2PC, in doubt, to the coordinator and the other participants */
    DW_MSG_INQUIRY_REPLY = 7, /* 2PC: `value` is a dw_outcome; UNKNOWN if the sender cannot tell */
};

/* A participant's answer to VOTE_REQUEST or READ_REQUEST. All but HELD and REFUSED tell what its log holds.
 */
enum dw_vote {
    DW_VOTE_YES = 1,       /* the participant's log holds VOTE_YES */
    DW_VOTE_NO = 2,        /* the participant's log holds ABORT */
    DW_VOTE_COMMITTED = 3, /* the participant's log holds COMMIT */
    DW_VOTE_HELD = 4,      /* read-only: the locks were held until now, and are now free */
    DW_VOTE_REFUSED = 5,   /* read-only: the execution is no longer whole */
};

/* What is known of a transaction's fate. */
enum dw_outcome {
    DW_OUTCOME_UNKNOWN = 0,
    DW_OUTCOME_COMMITTED = 1,
    DW_OUTCOME_ABORTED = 2,
};

/* One message between compute nodes. `sequence` numbers carry no meaning in the core: it assumes no order. */
struct dw_message {
    enum dw_message_kind kind;
    uint32_t from;
    uint32_t to;
    uint32_t value; /* dw_vote or dw_outcome, by kind; else 0 */
    struct dw_txn_id txn;
    uint64_t writers; /* VOTE_REQUEST: logs that must be asked; else 0 */
};

/* A log's answer to a request of this node. */
struct dw_log_reply {
    struct dw_txn_id txn;
    uint32_t log;
    enum dw_ask ask;
    enum dw_answer answer;
    uint32_t padding;  /* zero */
    uint64_t position; /* of the entry's first record; 0 if there is none */
};

const char *dw_message_kind_name(enum dw_message_kind kind);
const char *dw_vote_name(enum dw_vote vote);
const char *dw_outcome_name(enum dw_outcome outcome);

#endif
