/* ycsb.h - the YCSB-like workload of the Cornus paper, section 4.1.3: one table, `accesses` rows in one
 * round.
 *
 * Rows are dealt round-robin: the owner of a key is key mod compute_nodes, and the row of rank r at node i
 * has key r * compute_nodes + i. Ranks are not scrambled: the hottest key of node i is key i. With hashed
 * rows and row locks the place of the hot keys changes nothing, and a trace is easier to read.
 */
#ifndef DW_WORKLOADS_YCSB_H
#define DW_WORKLOADS_YCSB_H

#include "workloads/workload.h"
#include "workloads/zipf.h"

enum { DW_YCSB_TABLE = 0, DW_YCSB_FIELD_BYTES = 100 };

struct dw_ycsb_parameters {
    uint64_t records;      /* for each compute node */
    uint64_t record_bytes; /* fields of 100 bytes; the last is shorter if that doesn't divide it */
    uint64_t accesses;     /* different rows of one transaction */
    double read_pct;       /* chance of an access to be a read */
    double
        distributed_pct; /* chance of a transaction to touch another node; without another node, none does */
    double remote_access_pct; /* chance of an access of a distributed one to be remote; one always is */
    double theta;             /* of the power law over each partition */
};

/* Read-only after init; all threads share it. */
struct dw_ycsb {
    struct dw_ycsb_parameters parameters;
    struct dw_deployment deployment;
    struct dw_zipf zipf;
    struct dw_table table;
};

/* Parameters are a struct dw_ycsb_parameters, the state is a struct dw_ycsb. A transaction that is drawn as
 * distributed, but in which no access was drawn as remote, gets one: a uniformly chosen access. So of n
 * accesses n p + (1 - p)^n are remote on average. The other node is uniform among the others, the row follows
 * the power law restricted to the rows of its partition that the transaction doesn't touch yet, and a write
 * changes one uniformly chosen field to bytes that no other write is likely to repeat. */
extern const struct dw_workload dw_ycsb;

#endif
