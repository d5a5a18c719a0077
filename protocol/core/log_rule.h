/* log_rule.h - what one request does to one log entry, as a pure function that every log store obeys.
 *
 * Source: Cornus, Algorithm 1 (Log, LogIfNotExist), completed by the table in docs/log-rule.md.
 * `LogIfNotExist` is the pair of asks VOTE and DENY; `Log` is all the others, and it is never unconditional.
 * Check and append are one atomic step of the store, and the answer is given only when what it says is
 * durable.
 */
#ifndef DW_CORE_LOG_RULE_H
#define DW_CORE_LOG_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/id.h"

/* What a log record says. The numbers are stored on disk and sent on the wire: never renumber. */
enum dw_record {
    DW_RECORD_NONE = 0,
    DW_RECORD_VOTE_YES = 1,  /* participants that must be asked, redo */
    DW_RECORD_START_2PC = 2, /* participants; the 2PC coordinator's, its loss is harmless */
    DW_RECORD_COMMIT = 3,    /* decision; with redo: local transaction or 2PC coordinator */
    DW_RECORD_ABORT = 4,     /* decision, or a denial by the writer named in the record */
    DW_RECORD_END = 5,       /* the 2PC coordinator's, after all acknowledgements */
};

/* What a log holds for one transaction. A 2PC coordinator's own entry has states of its own. */
enum dw_entry_state {
    DW_ENTRY_NONE = 0,
    DW_ENTRY_VOTE_YES = 1,
    DW_ENTRY_COMMIT = 2,
    DW_ENTRY_ABORT = 3,
    DW_ENTRY_START = 4,        /* 2PC coordinator: START_2PC */
    DW_ENTRY_COORD_COMMIT = 5, /* 2PC coordinator: COMMIT */
    DW_ENTRY_COORD_ABORT = 6,  /* 2PC coordinator: ABORT */
    DW_ENTRY_END = 7,          /* 2PC coordinator: END */
    DW_ENTRY_FORGOTTEN = 8,    /* below the swept floor: absence says nothing any more */
    DW_ENTRY_DAMAGED = 9,      /* a record of the entry cannot be read */
};
enum { DW_ENTRY_STATES = 10 };

/* What is asked of an entry. */
enum dw_ask {
    DW_ASK_VOTE = 0,          /* LogIfNotExist(VOTE_YES) */
    DW_ASK_DENY = 1,          /* LogIfNotExist(ABORT): a no-vote, a time-out, the termination protocol */
    DW_ASK_DECIDE_COMMIT = 2, /* Log(COMMIT), by one who knows */
    DW_ASK_DECIDE_ABORT = 3,  /* Log(ABORT), by one who knows */
    DW_ASK_COMMIT_LOCAL = 4,  /* Log(COMMIT, redo) of a transaction with no other writer */
    DW_ASK_START = 5,         /* 2PC coordinator: Log(START_2PC) */
    DW_ASK_COORD_COMMIT = 6,  /* 2PC coordinator: Log(COMMIT, participants, redo) */
    DW_ASK_COORD_ABORT = 7,   /* 2PC coordinator: Log(ABORT) */
    DW_ASK_END = 8,           /* 2PC coordinator: Log(END) */
    DW_ASK_READ = 9,          /* the entry's state; appends nothing and decides nothing */
};
enum { DW_ASKS = 10 };

/* What the log says back. Only VOTE_YES, COMMIT and ABORT carry information about a vote or a decision; none
 * of the others may be read as "nothing there", save NONE, which only READ gives. */
enum dw_answer {
    DW_ANSWER_NONE = 0,      /* READ of an absent entry */
    DW_ANSWER_VOTE_YES = 1,  /* the entry holds VOTE_YES and no decision */
    DW_ANSWER_COMMIT = 2,    /* the entry holds COMMIT */
    DW_ANSWER_ABORT = 3,     /* the entry holds ABORT */
    DW_ANSWER_START = 4,     /* the entry holds START_2PC and no decision */
    DW_ANSWER_END = 5,       /* the entry is ended (its decision was COMMIT) */
    DW_ANSWER_CONFLICT = 6,  /* a violation: what was asked contradicts what is logged; nothing was written */
    DW_ANSWER_FENCED = 7,    /* the owner has a newer incarnation: the outcome is unknown to the asker */
    DW_ANSWER_FORGOTTEN = 8, /* below the swept floor */
    DW_ANSWER_DAMAGED = 9,   /* the entry cannot be read */
};
enum { DW_ANSWERS = 10 };

/* An entry as the rule sees it. Zero is the absent entry. */
struct dw_entry {
    enum dw_entry_state state;
    uint32_t padding; /* zero */
    uint64_t content; /* hash of the first record's participants and redo: a repeated vote must match it */
    uint64_t first;   /* position of the first record; 0 if absent */
};

/* One request on one entry. `writer` is the compute node that asks. A request by the log's owner is stamped
 * with the incarnation that it runs in; requests made for others are not fenced, whatever their stamp. */
struct dw_log_request {
    struct dw_txn_id txn;
    uint32_t log;
    uint32_t writer;
    uint32_t incarnation;
    enum dw_ask ask;
    uint64_t content; /* hash of participants and redo, for VOTE, COMMIT_LOCAL and COORD_COMMIT; else 0 */
};

/* What the rule decides. */
struct dw_log_verdict {
    enum dw_answer answer;
    enum dw_record append;     /* the record to append, or DW_RECORD_NONE */
    enum dw_entry_state state; /* the entry's state afterwards; equal to the old one if nothing is appended */
};

/* Applies `request` to `entry` of a log whose owner's newest incarnation is `log_incarnation`. Pure. A
 * repeated request gets the answer that its first copy got or would get now; it never appends a second
 * record. */
struct dw_log_verdict dw_log_rule(const struct dw_entry *entry, uint32_t log_incarnation,
                                  const struct dw_log_request *request);

/* The signature of the rule, so that tests can put a wrong one in its place. */
typedef struct dw_log_verdict dw_log_rule_fn(const struct dw_entry *entry, uint32_t log_incarnation,
                                             const struct dw_log_request *request);

/* True if the ask is a LogIfNotExist: it is delayed even if it appends nothing. */
bool dw_ask_is_if_not_exist(enum dw_ask ask);

/* True if the ask can append a record (all but READ): injected delay applies. */
bool dw_ask_is_write(enum dw_ask ask);

/* The state of an entry to which `record` is added when it was in `state`, as a log store computes it when it
 * rebuilds its table. `coordinator` is the record's flag "written by a 2PC coordinator into its own entry".
 * Returns DW_ENTRY_DAMAGED if no request could have appended that record there. */
enum dw_entry_state dw_entry_replay(enum dw_entry_state state, enum dw_record record, bool coordinator);

/* True if the ask's record carries the flag "2PC coordinator's own entry". */
bool dw_ask_is_coordinator(enum dw_ask ask);

/* Names as they appear in traces and in `dogwood-ctl`; static; "?" for a value outside the enum. */
const char *dw_record_name(enum dw_record record);
const char *dw_entry_state_name(enum dw_entry_state state);
const char *dw_ask_name(enum dw_ask ask);
const char *dw_answer_name(enum dw_answer answer);

#endif
