/* stats.h - what a compute node counts and times while it runs a load. */
#ifndef DW_COMPUTE_STATS_H
#define DW_COMPUTE_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/histogram.h"
#include "core/update.h"

/* What one transaction cost at this node. */
struct txn_costs {
    uint32_t log_writes;
    uint32_t forced_log_writes;
    uint32_t messages; /* to other compute nodes, for its commit; without acknowledgements */
    uint32_t acks;
    uint32_t ends;      /* END records of 2PC: off every path, not among log_writes */
    uint64_t log_bytes; /* redo */
};

/* Sums over the committed transactions of one class whose caller was answered in the measured window. The
 * parts add up to `total`. */
struct class_stats {
    uint64_t committed;
    uint64_t total_us;
    uint64_t execution_us;
    uint64_t prepare_us;
    uint64_t commit_us;
    uint64_t abort_us;
    uint64_t occupancy_us;
    struct dw_histogram latency;
};

/* What committed distributed transactions cost at this node, as coordinator and as participant, since the
 * process started: a node may have served others before its own load began, and nothing is cut in half. */
struct cost_stats {
    uint64_t coordinated; /* of them coordinated here: the sum over all nodes counts each once */
    uint64_t log_writes;
    uint64_t forced_log_writes;
    uint64_t messages;
    uint64_t acks;
    uint64_t ends;
    uint64_t log_bytes;
};

struct stats {
    struct class_stats distributed;
    struct class_stats local;
    uint64_t aborted; /* attempts, in the window */
    uint64_t unknown;
    uint64_t retries;
    /* Begin to the last lock freed on any node, of distributed transactions whose participants have all told.
     */
    uint64_t release_us;
    uint64_t release_count;
    struct cost_stats costs;
    uint64_t alarms[DW_ALARM_DISAGREEMENT + 1];
    /* Since the load began, and for the display since the last look. */
    uint64_t all_committed, all_aborted, all_unknown;
    struct dw_histogram recent;
    uint64_t cpu_start_us, cpu_us, window_us;
};

/* User and system time of the process, microseconds. */
uint64_t stats_cpu_us(void);

/* The body of a report, without braces. */
void stats_print_report(const struct stats *stats, FILE *file);

#endif
