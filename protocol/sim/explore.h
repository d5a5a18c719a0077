/* explore.h - every order of events of a small cluster, unreduced, breadth first, with a check of each state.
 *
 * The events: a packet in flight is delivered, or delivered and kept (duplicate), or dropped; an armed timer
 * fires; a node crashes; a node restarts; the caller commits. Packets have no order, and one that is sent
 * again while an equal one is in flight is the same packet. Each armed timer may fire in
 * each state. Firings, crashes, restarts, duplicates and drops have budgets; progress is then tried without
 * any.
 */
#ifndef DW_SIM_EXPLORE_H
#define DW_SIM_EXPLORE_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/world.h"

/* As a budget of time-outs: any armed timer may fire any number of times. */
enum { DW_EXPLORE_UNBOUNDED = 255 };

struct dw_explore_options {
    const struct dw_protocol *protocol;
    dw_log_rule_fn *rule; /* NULL: dw_log_rule */
    uint32_t nodes;       /* 2..DW_WORLD_NODES; node 0 coordinates */
    uint64_t writers;
    uint64_t readers;
    uint32_t crashes; /* in all; each may be followed by one restart */
    uint32_t restarts;
    uint32_t duplicates;
    uint32_t drops;
    uint32_t timeouts;   /* firings of timers in all, or DW_EXPLORE_UNBOUNDED */
    uint64_t max_states; /* the verdict is inconclusive beyond; 0: 200 million */
};

enum dw_explore_verdict {
    DW_EXPLORE_HOLDS = 0,    /* every reachable state was checked */
    DW_EXPLORE_VIOLATED,     /* `violation` names the property; the schedule is a shortest one */
    DW_EXPLORE_INCONCLUSIVE, /* a limit was reached first */
};

enum { DW_EXPLORE_MAX_SCHEDULE = 256 };

struct dw_explore_result {
    enum dw_explore_verdict verdict;
    uint64_t states;
    uint64_t transitions;
    uint32_t depth;     /* of the deepest state */
    uint64_t quiescent; /* states with nothing in flight, in which progress was tried */
    uint64_t blocked;   /* of these: a live node stays in doubt until a crashed one returns */
    uint32_t packets;   /* different packets that were ever sent */
    const char *violation;
    uint32_t schedule_length;
    uint32_t schedule[DW_EXPLORE_MAX_SCHEDULE];
};

/* Explores. Besides dw_check_world, it demands of each state with nothing in flight that
 *   non-blocking   in Cornus, live nodes decide without the ones that are down (Theorem 4);
 *   progress       when all nodes are back and nothing fails any more, everybody decides and forgets (AC5).
 * The schedule, if one was found, is printed to `trace` (may be NULL), a line an event. DW_ERR_MEMORY,
 * DW_ERR_RANGE (options). */
DW_MUST_CHECK enum dw_error dw_explore(const struct dw_explore_options *options,
                                       struct dw_explore_result *result, FILE *trace);

#endif
