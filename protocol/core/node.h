/* node.h - the machine of a compute node: its incarnation, and the way from start to service.
 *
 * A node serves nothing before it has fenced its log and scanned it (DW_NODE_SERVING). The order is: take an
 * incarnation, scan, lock again what is in doubt, serve. Termination of what is in doubt runs beside and
 * gates nothing.
 */
#ifndef DW_CORE_NODE_H
#define DW_CORE_NODE_H

#include <stdint.h>

#include "core/update.h"

enum dw_node_state {
    DW_NODE_DOWN = 0,
    DW_NODE_FENCING,  /* asked its log for the next incarnation */
    DW_NODE_SCANNING, /* owns the incarnation, reads its log, recovers transactions */
    DW_NODE_SERVING,
    DW_NODE_STOPPED, /* was fenced by a newer incarnation: stops without deciding */
};

struct dw_node {
    uint32_t slot;
    uint32_t incarnation;   /* 0 before the first fence */
    uint64_t next_sequence; /* of the transactions that it coordinates in this incarnation */
    uint8_t state;          /* dw_node_state */
    uint8_t padding[7];     /* zero */
};

/* A node that is down. `slot` is below DW_MAX_NODES. */
void dw_node_init(struct dw_node *node, uint32_t slot);

/* Starts, or asks again after a time-out: writes DW_OUT_FENCE. From DOWN and FENCING. */
void dw_node_start(struct dw_node *node, struct dw_update *update);

/* The log gave the incarnation: writes DW_OUT_SCAN. An older reply than the newest is ignored; a newer one,
 * of a repeated request, is adopted as long as the node does not serve, and stops it afterwards (it fenced
 * itself). */
void dw_node_fenced(struct dw_node *node, uint32_t incarnation, struct dw_update *update);

/* The whole log was scanned, and every entry was given to dw_step as DW_EVENT_RECOVERED. */
void dw_node_scanned(struct dw_node *node);

/* A write of this incarnation was answered FENCED: stops without deciding anything. */
void dw_node_stop(struct dw_node *node);

/* The id of the next transaction that this node coordinates. Only while serving. */
struct dw_txn_id dw_node_next_id(struct dw_node *node);

void dw_node_check(const struct dw_node *node);

const char *dw_node_state_name(enum dw_node_state state);

#endif
