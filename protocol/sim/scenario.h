/* scenario.h - one transaction in virtual time: fixed latencies, real time-outs, failures at exact points.
 *
 * The nodes run the real core, the logs the real log rule. Steps take no time; only what travels does. Events
 * of one instant happen in the order in which they were caused, so a scenario has one run and its trace can
 * be kept.
 */
#ifndef DW_SIM_SCENARIO_H
#define DW_SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/world.h"

enum {
    DW_SCENARIO_NODES = 8,
    DW_SCENARIO_FAULTS = 6,
    DW_SCENARIO_RECORDS = 4, /* of one entry: no legal one is longer */
    DW_SCENARIO_TIMERS = DW_TIMER_FINISH + 1,
};

#define DW_SCENARIO_ANY UINT32_MAX /* a point's peer: whoever it is */

/* All in microseconds. Reading a log costs its two trips, writing to it log_write_us between them; whether
 * the write is forced makes no difference. */
struct dw_scenario_times {
    uint64_t commit_us;  /* when the caller asks to commit; all participants have joined at 0 */
    uint64_t message_us; /* between compute nodes, one way */
    uint64_t storage_us; /* between a compute node and a log, one way */
    uint64_t log_write_us;
    uint64_t timer_us[DW_SCENARIO_TIMERS]; /* by dw_timer */
};

/* An output or an event of a node. */
struct dw_scenario_point {
    uint32_t node;
    enum dw_out_kind out;         /* an output of this kind, for one destination; or 0 */
    enum dw_event_kind event;     /* an event of this kind; or 0 */
    enum dw_message_kind message; /* of SEND and MESSAGE */
    enum dw_ask ask;              /* of LOG and LOG_REPLY */
    uint32_t peer;                /* node or log at the other end, or DW_SCENARIO_ANY */
    uint32_t nth;                 /* the how-manieth such: 1 is the first, 0 as well */
};

enum dw_fault_kind {
    DW_FAULT_CRASH_BEFORE = 1, /* the output does not leave, nor any after it; the event is not taken */
    DW_FAULT_CRASH_AFTER,      /* the output left, none after it does; the event's outputs all left */
    DW_FAULT_LOSE,             /* the message, request or reply is lost */
    DW_FAULT_CRASH_AT,         /* point.node, at at_us */
    DW_FAULT_RESTART_AT,       /* the same; it must be down then */
};

struct dw_fault {
    enum dw_fault_kind kind;
    struct dw_scenario_point point;
    uint64_t at_us;
};

struct dw_scenario {
    const struct dw_protocol *protocol;
    uint32_t nodes; /* node 0 coordinates */
    uint64_t writers;
    uint64_t readers;
    uint64_t broken; /* participants whose execution is not whole when they are asked */
    struct dw_scenario_times times;
    uint64_t end_us; /* the run ends then, or when nothing is left to happen */
    struct dw_fault faults[DW_SCENARIO_FAULTS];
    uint32_t fault_count;
    FILE *trace; /* each step and what the logs did; may be NULL */
};

/* What one node came to. Times are 0 if it did not happen. */
struct dw_scenario_node {
    bool up;
    bool blocked;            /* 2PC: once asked everybody and heard nothing */
    enum dw_txn_state state; /* in the end */
    enum dw_outcome outcome; /* what happened to its changes */
    uint64_t decided_us;     /* when that happened first */
    uint64_t vote_logged_us; /* when it first knew its own vote to be logged */
    uint64_t blocked_us;
    uint64_t crashed_us;
    uint64_t serving_us; /* when it served again after a restart */
};

struct dw_scenario_log {
    enum dw_record records[DW_SCENARIO_RECORDS];
    uint32_t writers[DW_SCENARIO_RECORDS]; /* nodes that wrote them */
    uint32_t record_count;
    enum dw_entry_state state;
};

struct dw_scenario_result {
    enum dw_outcome caller; /* what it heard; UNKNOWN also if it heard nothing */
    bool answered;
    uint64_t answered_us; /* since the start of the run */
    struct dw_scenario_node node[DW_SCENARIO_NODES];
    struct dw_scenario_log log[DW_SCENARIO_NODES];
    uint32_t log_writes; /* requests that may append, whether or not they did */
    uint32_t forced;     /* of them */
    uint32_t messages;   /* between compute nodes, without acknowledgements */
    uint32_t acks;
    uint32_t lost;                       /* messages that a fault or a node that was down swallowed */
    uint32_t observed;                   /* mask: faults that came to pass */
    uint32_t passed[DW_SCENARIO_FAULTS]; /* how often each fault's point was passed */
    const char *violation; /* the first property that dw_check_world found broken; NULL if none, or too many
                              nodes to check */
    uint64_t end_us;       /* when the last thing happened */
};

/* Latencies of 250 us one way, 1000 us for a log write, 10 ms for each time-out; commit asked at 1 ms; the
 * run ends at 1 s. Node 0 coordinates, and all `nodes` write. */
void dw_scenario_init(struct dw_scenario *scenario, const struct dw_protocol *protocol, uint32_t nodes);

/* Adds a fault. Asserts that there is room. */
void dw_scenario_add(struct dw_scenario *scenario, struct dw_fault fault);

/* The run passes an output of `node` for the node or log `peer`, or an event that reaches it: counts it in
 * the result; returns the fault that happens there, or NULL. */
const struct dw_fault *dw_scenario_pass_output(const struct dw_scenario *scenario,
                                               struct dw_scenario_result *result, uint32_t node,
                                               const struct dw_out *out, uint32_t peer);
const struct dw_fault *dw_scenario_pass_event(const struct dw_scenario *scenario,
                                              struct dw_scenario_result *result, uint32_t node,
                                              const struct dw_event *event);

/* Plays the scenario. Deterministic. */
void dw_scenario_run(const struct dw_scenario *scenario, struct dw_scenario_result *result);

/* True if every fault came to pass: a scenario that never reached its fault has shown nothing. */
bool dw_scenario_observed(const struct dw_scenario *scenario, const struct dw_scenario_result *result);

/* The result as text: outcomes with their times, the logs, the counts. */
void dw_scenario_print(FILE *file, const struct dw_scenario *scenario,
                       const struct dw_scenario_result *result);

#endif
