/* failpoint.h - named points of the commit at which a node can be made to fail, after Tables 1 and 2 of the
 * paper. */
#ifndef DW_COMPUTE_FAILPOINT_H
#define DW_COMPUTE_FAILPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The points. "Before" means: what is named has not been done. */
#define DW_FAILPOINTS(X)                                                                                     \
    X(COORDINATOR_BEFORE_START, "coordinator-before-start")                                                  \
    X(COORDINATOR_AFTER_SOME_VOTE_REQUESTS, "coordinator-after-some-vote-requests")                          \
    X(COORDINATOR_AFTER_VOTE_REQUESTS, "coordinator-after-vote-requests")                                    \
    X(COORDINATOR_AFTER_OWN_VOTE, "coordinator-after-own-vote")                                              \
    X(COORDINATOR_AFTER_VOTES, "coordinator-after-votes")                                                    \
    X(COORDINATOR_AFTER_SOME_DECISIONS, "coordinator-after-some-decisions")                                  \
    X(COORDINATOR_AFTER_DECISIONS, "coordinator-after-decisions")                                            \
    X(PARTICIPANT_BEFORE_VOTE_REQUEST, "participant-before-vote-request")                                    \
    X(PARTICIPANT_AFTER_VOTE_REQUEST, "participant-after-vote-request")                                      \
    X(PARTICIPANT_AFTER_VOTE_LOGGED, "participant-after-vote-logged")                                        \
    X(PARTICIPANT_AFTER_REPLY, "participant-after-reply")                                                    \
    X(PARTICIPANT_BEFORE_DECISION_LOGGED, "participant-before-decision-logged")                              \
    X(PARTICIPANT_AFTER_DECISION_LOGGED, "participant-after-decision-logged")

enum failpoint {
#define DW_FAILPOINT_ENUM(name, text) FAILPOINT_##name,
    DW_FAILPOINTS(DW_FAILPOINT_ENUM)
#undef DW_FAILPOINT_ENUM
        FAILPOINT_COUNT
};

enum failpoint_action {
    FAILPOINT_OFF = 0,
    FAILPOINT_KILL,  /* SIGKILL to itself */
    FAILPOINT_STOP,  /* SIGSTOP to itself */
    FAILPOINT_DELAY, /* the whole node pauses for `argument` milliseconds */
    FAILPOINT_ERROR, /* what would be done next at this point is left out, as if it were lost */
};

struct failpoint_setting {
    enum failpoint_action action;
    uint32_t argument;
    uint32_t nth;  /* acts at the n-th time only; 0: every time */
    uint32_t hits; /* how often the point was reached */
};

/* Zero: all off. */
struct failpoints {
    struct failpoint_setting points[FAILPOINT_COUNT];
};

/* Sets one from "NAME=ACTION[@N]", ACTION one of off, kill, stop, delay:MS, error; N-th time from now.
 * DW_ERR_ARGUMENT with one line in *text that names the part and what is allowed. */
DW_MUST_CHECK enum dw_error failpoints_set(struct failpoints *failpoints, const char *spec, char *text,
                                           size_t text_size);

/* The node is at this point. Kills, stops or delays the process if it is told to; true if what comes next is
 * to be left out. */
bool failpoints_reached(struct failpoints *failpoints, enum failpoint point);

const char *failpoint_name(enum failpoint point);

#endif
