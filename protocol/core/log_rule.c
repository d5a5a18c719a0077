#include "core/log_rule.h"

#include "base/assert.h"

/* One cell of the table: the answer, and what is appended if anything is. */
struct cell {
    enum dw_answer answer;
    enum dw_record append;
    enum dw_entry_state state;
};

#define SAYS(a)                                                                                              \
    {                                                                                                        \
        DW_ANSWER_##a, DW_RECORD_NONE, DW_ENTRY_NONE                                                         \
    }
#define PUTS(r, s, a)                                                                                        \
    {                                                                                                        \
        DW_ANSWER_##a, DW_RECORD_##r, DW_ENTRY_##s                                                           \
    }
#define X_CONFLICT SAYS(CONFLICT)

/* The log rule. Rows are asks; columns are NONE, VOTE_YES, COMMIT, ABORT, then a 2PC coordinator's own START,
 * COMMIT, ABORT, END. A participant's ask that meets a coordinator's entry, or the other way round, is a
 * conflict. docs/log-rule.md prints the same table with its reasons, and the table test compares the two. */
static const struct cell table[DW_ASKS][DW_ENTRY_FORGOTTEN] = {
    /* Algorithm 1, lines 4-7: "return ABORT if an ABORT record exists ... otherwise log and return VOTE-YES".
     */
    [DW_ASK_VOTE] = {PUTS(VOTE_YES, VOTE_YES, VOTE_YES), SAYS(VOTE_YES), SAYS(COMMIT), SAYS(ABORT),
                     X_CONFLICT, X_CONFLICT, X_CONFLICT, X_CONFLICT},
    /* Algorithm 1, lines 9-12: "return VOTE-YES or COMMIT if such a record exists ... otherwise log ABORT".
     */
    [DW_ASK_DENY] = {PUTS(ABORT, ABORT, ABORT), SAYS(VOTE_YES), SAYS(COMMIT), SAYS(ABORT), X_CONFLICT,
                     X_CONFLICT, X_CONFLICT, X_CONFLICT},
    /* Algorithm 1, lines 1-2, "append content to the local log", where that keeps Definition 1. */
    [DW_ASK_DECIDE_COMMIT] = {X_CONFLICT, PUTS(COMMIT, COMMIT, COMMIT), SAYS(COMMIT), X_CONFLICT, X_CONFLICT,
                              X_CONFLICT, X_CONFLICT, X_CONFLICT},
    [DW_ASK_DECIDE_ABORT] = {PUTS(ABORT, ABORT, ABORT), PUTS(ABORT, ABORT, ABORT), X_CONFLICT, SAYS(ABORT),
                             X_CONFLICT, X_CONFLICT, X_CONFLICT, X_CONFLICT},
    [DW_ASK_COMMIT_LOCAL] = {PUTS(COMMIT, COMMIT, COMMIT), X_CONFLICT, SAYS(COMMIT), SAYS(ABORT), X_CONFLICT,
                             X_CONFLICT, X_CONFLICT, X_CONFLICT},
    /* A 2PC coordinator's own entry: NONE or START, then COMMIT or ABORT, then END. */
    [DW_ASK_START] = {PUTS(START_2PC, START, START), X_CONFLICT, X_CONFLICT, X_CONFLICT, SAYS(START),
                      SAYS(COMMIT), SAYS(ABORT), SAYS(END)},
    [DW_ASK_COORD_COMMIT] = {PUTS(COMMIT, COORD_COMMIT, COMMIT), X_CONFLICT, X_CONFLICT, X_CONFLICT,
                             PUTS(COMMIT, COORD_COMMIT, COMMIT), SAYS(COMMIT), X_CONFLICT, SAYS(END)},
    [DW_ASK_COORD_ABORT] = {PUTS(ABORT, COORD_ABORT, ABORT), X_CONFLICT, X_CONFLICT, X_CONFLICT,
                            PUTS(ABORT, COORD_ABORT, ABORT), X_CONFLICT, SAYS(ABORT), X_CONFLICT},
    [DW_ASK_END] = {X_CONFLICT, X_CONFLICT, X_CONFLICT, X_CONFLICT, X_CONFLICT, PUTS(END, END, END),
                    X_CONFLICT, SAYS(END)},
    [DW_ASK_READ] = {SAYS(NONE), SAYS(VOTE_YES), SAYS(COMMIT), SAYS(ABORT), SAYS(START), SAYS(COMMIT),
                     SAYS(ABORT), SAYS(END)},
};

/* A first record that carries redo must be repeated byte for byte, or two different writes would share one
 * vote. */
static bool content_differs(const struct dw_entry *entry, const struct dw_log_request *request)
{
    switch (request->ask) {
    case DW_ASK_VOTE:
        return entry->state == DW_ENTRY_VOTE_YES && entry->content != request->content;
    case DW_ASK_COMMIT_LOCAL:
        return entry->state == DW_ENTRY_COMMIT && entry->content != request->content;
    case DW_ASK_COORD_COMMIT:
    case DW_ASK_DENY:
    case DW_ASK_DECIDE_COMMIT:
    case DW_ASK_DECIDE_ABORT:
    case DW_ASK_START:
    case DW_ASK_COORD_ABORT:
    case DW_ASK_END:
    case DW_ASK_READ:
        return false;
    }
    return false;
}

static struct dw_log_verdict unchanged(const struct dw_entry *entry, enum dw_answer answer)
{
    return (struct dw_log_verdict){.answer = answer, .append = DW_RECORD_NONE, .state = entry->state};
}

struct dw_log_verdict dw_log_rule(const struct dw_entry *entry, uint32_t log_incarnation,
                                  const struct dw_log_request *request)
{
    DW_ASSERT((unsigned)request->ask < DW_ASKS);
    DW_ASSERT((unsigned)entry->state < DW_ENTRY_STATES);
    bool by_owner = request->writer == request->log;
    if (by_owner && dw_ask_is_write(request->ask) && request->incarnation < log_incarnation) {
        return unchanged(entry, DW_ANSWER_FENCED);
    }
    if (entry->state == DW_ENTRY_FORGOTTEN) {
        return unchanged(entry, DW_ANSWER_FORGOTTEN);
    }
    if (entry->state == DW_ENTRY_DAMAGED) {
        return unchanged(entry, DW_ANSWER_DAMAGED);
    }
    if (content_differs(entry, request)) {
        return unchanged(entry, DW_ANSWER_CONFLICT);
    }
    const struct cell *cell = &table[request->ask][entry->state];
    if (cell->append == DW_RECORD_NONE) {
        return unchanged(entry, cell->answer);
    }
    return (struct dw_log_verdict){.answer = cell->answer, .append = cell->append, .state = cell->state};
}

bool dw_ask_is_if_not_exist(enum dw_ask ask)
{
    return ask == DW_ASK_VOTE || ask == DW_ASK_DENY;
}

bool dw_ask_is_write(enum dw_ask ask)
{
    return ask != DW_ASK_READ;
}

bool dw_ask_is_coordinator(enum dw_ask ask)
{
    return ask >= DW_ASK_START && ask <= DW_ASK_END;
}

enum dw_entry_state dw_entry_replay(enum dw_entry_state state, enum dw_record record, bool coordinator)
{
    if (state == DW_ENTRY_DAMAGED || state == DW_ENTRY_FORGOTTEN) {
        return DW_ENTRY_DAMAGED;
    }
    for (unsigned ask = 0; ask < DW_ASKS; ask++) {
        const struct cell *cell = &table[ask][state];
        if (record != DW_RECORD_NONE && cell->append == record &&
            dw_ask_is_coordinator((enum dw_ask)ask) == coordinator) {
            return cell->state;
        }
    }
    return DW_ENTRY_DAMAGED;
}

const char *dw_record_name(enum dw_record record)
{
    static const char *const names[] = {"NONE", "VOTE_YES", "START_2PC", "COMMIT", "ABORT", "END"};
    return (unsigned)record < sizeof names / sizeof *names ? names[record] : "?";
}

const char *dw_entry_state_name(enum dw_entry_state state)
{
    static const char *const names[DW_ENTRY_STATES] = {"NONE",      "VOTE_YES",     "COMMIT",      "ABORT",
                                                       "START",     "COORD_COMMIT", "COORD_ABORT", "END",
                                                       "FORGOTTEN", "DAMAGED"};
    return (unsigned)state < DW_ENTRY_STATES ? names[state] : "?";
}

const char *dw_ask_name(enum dw_ask ask)
{
    static const char *const names[DW_ASKS] = {"VOTE",         "DENY",  "DECIDE_COMMIT", "DECIDE_ABORT",
                                               "COMMIT_LOCAL", "START", "COORD_COMMIT",  "COORD_ABORT",
                                               "END",          "READ"};
    return (unsigned)ask < DW_ASKS ? names[ask] : "?";
}

const char *dw_answer_name(enum dw_answer answer)
{
    static const char *const names[DW_ANSWERS] = {"NONE", "VOTE_YES", "COMMIT", "ABORT",     "START",
                                                  "END",  "CONFLICT", "FENCED", "FORGOTTEN", "DAMAGED"};
    return (unsigned)answer < DW_ANSWERS ? names[answer] : "?";
}
