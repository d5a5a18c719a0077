/* lock_table.h - strict two-phase locking of rows, NO_WAIT: a request that conflicts is refused at once.
 *
 * Pure code over memory that the caller gives; the simulator runs the same. It knows no thread: the runtime
 * makes one table for each shard of rows (by dw_lock_hash) under a mutex of its own, and frees a
 * transaction's locks in each shard that it has touched. A table is one block without pointers: a copy of its
 * bytes is a working copy. Equal calls give equal answers on every machine.
 */
#ifndef DW_COMPUTE_LOCK_TABLE_H
#define DW_COMPUTE_LOCK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/id.h"

/* What is locked. */
struct dw_lock_name {
    uint32_t table;
    uint64_t key;
};

enum dw_lock_mode {
    DW_LOCK_NONE = 0,
    DW_LOCK_SHARED = 1,
    DW_LOCK_EXCLUSIVE = 2,
};

enum dw_lock_result {
    DW_LOCK_GRANTED = 1,
    DW_LOCK_CONFLICT, /* somebody else holds the row in a way that doesn't go with this: NO_WAIT */
    DW_LOCK_FULL,     /* the table's capacity is used up; nothing changed */
};

struct dw_lock_table;

/* A well-mixed hash, equal on all machines. The table uses its low bits; take the high ones to choose a
 * shard. */
uint64_t dw_lock_hash(struct dw_lock_name name);

/* The bytes that a table needs for `capacity` holds; a hold is one owner's lock on one row. 1 <= capacity <=
 * 2^24. A node's capacity is what its transactions may hold at once, and for recovery what is in doubt
 * besides. */
enum { DW_LOCK_MAX_CAPACITY = 1 << 24 };
size_t dw_lock_table_bytes(uint32_t capacity);

/* Makes an empty table in `memory`, which is of dw_lock_table_bytes(capacity) bytes and aligned to 8. There
 * is nothing to close: the memory is the caller's. */
struct dw_lock_table *dw_lock_table_init(void *memory, uint32_t capacity);

/* Locks a row for `owner`. Re-entrant: what it already holds in this mode or a stronger one is granted. A
 * shared lock is upgraded if its owner is the only holder; a refused upgrade leaves the shared lock. `mode`
 * is not NONE. */
enum dw_lock_result dw_lock_acquire(struct dw_lock_table *table, struct dw_txn_id owner,
                                    struct dw_lock_name name, enum dw_lock_mode mode);

/* Recovery: locks a row exclusively for a transaction in doubt, also if others that were locked this way hold
 * it. (In Cornus locks are freed before the decision is logged, so the log may show two undecided writers of
 * one row.) The row is free again when the last of them is gone. CONFLICT only if somebody holds it by
 * dw_lock_acquire. */
enum dw_lock_result dw_lock_relock(struct dw_lock_table *table, struct dw_txn_id owner,
                                   struct dw_lock_name name);

/* Frees all that the owner holds; returns how many rows that were. 0 is fine. */
uint32_t dw_lock_release(struct dw_lock_table *table, struct dw_txn_id owner);

/* Frees its shared locks only; an upgraded lock is exclusive and stays. Returns how many. */
uint32_t dw_lock_release_shared(struct dw_lock_table *table, struct dw_txn_id owner);

/* How the owner holds the row. */
enum dw_lock_mode dw_lock_held(const struct dw_lock_table *table, struct dw_txn_id owner,
                               struct dw_lock_name name);

/* How many rows the owner holds. */
uint32_t dw_lock_owner_count(const struct dw_lock_table *table, struct dw_txn_id owner);

/* Who holds the row: writes at most `max` ids, and returns how many there are. The newest first. */
uint32_t dw_lock_holders(const struct dw_lock_table *table, struct dw_lock_name name,
                         struct dw_txn_id *owners, uint32_t max);

/* Holds in use, and the most that there can be. */
uint32_t dw_lock_table_used(const struct dw_lock_table *table);
uint32_t dw_lock_table_capacity(const struct dw_lock_table *table);

/* Asserts the invariants of compute/README.md. Walks the whole table: for tests and the simulator. */
void dw_lock_table_check(const struct dw_lock_table *table);

#endif
