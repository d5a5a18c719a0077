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
    /* To other compute nodes, for its commit; without acknowledgements. The coordinator counts its readers'
     * answers too: a reader doesn't learn whether the transaction commits. */
    uint32_t messages;
    uint32_t acks;
    uint32_t ends;      /* END records of 2PC: off every path, not among log_writes */
    uint64_t log_bytes; /* redo */
    uint32_t writers;   /* coordinator: other nodes that were asked for a vote */
    uint32_t readers; /* coordinator: other nodes that were asked whether they still hold their read locks */
};

/* Sums over the committed transactions of one class whose caller was answered in the measured window. The
 * parts add up to `total`. */
struct class_stats {
    uint64_t committed;
    uint64_t total_us;
    uint64_t execution_us;
    uint64_t prepare_us;
    uint64_t commit_us;
    uint64_t abort_us; /* earlier attempts and their back-off; in the open loop the wait for a worker, too */
    uint64_t wait_us;  /* that wait, which is a part of abort_us */
    uint64_t occupancy_us;
    struct dw_histogram latency;
};

/* What committed distributed transactions cost at this node, as coordinator and as participant, since the
 * process started: a node may have served others before its own load began, and nothing is cut in half.
 * Transactions that a restart found in the log are left out: what they cost before is not known.
 *
 * With n other writers and r readers that are not writers, a transaction without failures costs what the
 * table of docs/design.md, section 3, says for n, and 2 r messages more; with n = 0 it costs one forced log
 * write if the coordinator wrote, and else none. */
struct cost_stats {
    uint64_t coordinated;  /* of them coordinated here: the sum over all nodes counts each once */
    uint64_t with_writers; /* of those: n > 0 */
    uint64_t only_own;     /* of those: n = 0, and the coordinator wrote */
    uint64_t writers;      /* sum of n */
    uint64_t readers;      /* sum of r */
    uint64_t log_writes;
    uint64_t forced_log_writes;
    uint64_t messages;
    uint64_t acks;
    uint64_t ends;
    uint64_t log_bytes;
};

/* Transactions by when they were due and when they ended. For an open loop the window's books balance:
 * carried + offered = ended in the window + waiting + unfinished. */
struct backlog_stats {
    uint64_t carried;    /* open loop: due before the window, and not ended when it began */
    uint64_t offered;    /* open loop: due in the window */
    uint64_t waiting;    /* open loop: due, and at the window's end not begun, for want of an idle worker */
    uint64_t waiting_us; /* for how long the first of them had waited */
    uint64_t unfinished; /* begun, and at the window's end not ended */
    uint64_t undrained;  /* known at this node when it gave up waiting for their ends; 0: all have ended */
};

struct stats {
    bool open_loop;
    struct class_stats distributed;
    struct class_stats local;
    uint64_t aborted; /* attempts, in the window */
    uint64_t unknown;
    uint64_t retries; /* attempts after an aborted one, begun in the window */
    struct backlog_stats backlog;
    /* Begin to the last lock freed on any node, on this node's clock, of distributed transactions that count
     * in `distributed` and whose participants have all told, also after the window's end. */
    uint64_t release_us;
    uint64_t release_count;
    struct cost_stats costs;
    uint64_t alarms[DW_ALARM_DISAGREEMENT + 1];
    /* Since the load began, and for the display since the last look. */
    uint64_t all_committed, all_aborted, all_unknown;
    struct dw_histogram recent;
    uint64_t window_start_us, cpu_start_us; /* when measuring began */
    uint64_t window_us, cpu_us;             /* of the measured window; 0 before its end */
};

/* User and system time of the process, microseconds. */
uint64_t stats_cpu_us(void);

/* The body of a report, without braces. */
void stats_print_report(const struct stats *stats, FILE *file);

#endif
