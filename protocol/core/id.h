/* id.h - how nodes and transactions are named. */
#ifndef DW_CORE_ID_H
#define DW_CORE_ID_H

#include <stdbool.h>
#include <stdint.h>

/* Compute nodes are numbered by slot, 0..DW_MAX_NODES-1, and log i belongs to compute node i. Storage nodes
 * never appear in the core: a log request is addressed to a log, and the driver knows where that log lives.
 */

/* A transaction: its coordinator, the coordinator's incarnation, and a sequence number within the
 * incarnation. Ids of different coordinators have no order. An incarnation is at least 1 in a valid id. */
struct dw_txn_id {
    uint32_t coordinator;
    uint32_t incarnation;
    uint64_t sequence;
};

bool dw_txn_id_equal(struct dw_txn_id a, struct dw_txn_id b);

/* True if the id could have been issued: a coordinator in range and an incarnation of at least 1. */
bool dw_txn_id_valid(struct dw_txn_id id);

/* A well-mixed hash of the id, equal on all machines. */
uint64_t dw_txn_id_hash(struct dw_txn_id id);

/* The mask that holds only this node. */
static inline uint64_t dw_node_bit(uint32_t node)
{
    return UINT64_C(1) << node;
}

#endif
