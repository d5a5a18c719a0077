/* mutants.h - deliberately wrong variants of the protocols. Each changes one function of the shipped ops
 * table, or the log rule, and must be rejected by a checker under bounds in which the right code holds. */
#ifndef DW_TESTS_MUTANTS_H
#define DW_TESTS_MUTANTS_H

#include "sim/explore.h"

struct dw_mutant {
    const char *name;
    const char *wrong;                            /* what it does, in one sentence */
    const char *violates;                         /* the property that must be found violated */
    const struct dw_protocol *of;                 /* the right protocol */
    void (*mutate)(struct dw_protocol *protocol); /* on a copy; NULL: only the rule is wrong */
    dw_log_rule_fn *rule;                         /* NULL: the right one */
    /* Bounds under which the explorer finds it. */
    uint32_t crashes, restarts, duplicates, timeouts;
};

/* All of them; a NULL name ends the list. */
extern const struct dw_mutant dw_mutants[];

#endif
