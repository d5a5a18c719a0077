/* entry_table.h - what the logs of one storage node hold, in memory: (log, transaction) -> entry.
 *
 * A linear hash table (Litwin, VLDB 1980): every few insertions one bucket is split, so that growth is spread
 * evenly and no insertion ever moves the whole table. A bucket is one cache line of tags and links, so that
 * an absent key, the usual case of a vote, costs one cache miss however large the table is. Entries lie in
 * slabs and never move. Not synchronised: the caller lets one thread change it, and others look only under
 * its lock.
 */
#ifndef DW_STORAGE_ENTRY_TABLE_H
#define DW_STORAGE_ENTRY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/log_rule.h"

/* One entry. `entry` is what the rule sees; `durable` is its state as of the last sync. */
struct dw_table_entry {
    struct dw_txn_id txn;
    struct dw_entry entry;
    uint32_t log;
    uint8_t durable; /* enum dw_entry_state */
    bool dirty;      /* a record of the entry awaits its sync */
    uint16_t unused;
};
_Static_assert(sizeof(struct dw_table_entry) == 48,
               "with its part of a bucket an entry takes about 64 bytes");

struct dw_table_bucket;

struct dw_entry_table {
    struct dw_table_entry **slabs;
    struct dw_table_bucket **segments; /* of buckets */
    struct dw_table_bucket **pools;    /* of buckets that take what overflows others */
    uint32_t count;
    uint32_t buckets;     /* in use: mask < buckets <= 2 * mask + 1 */
    uint32_t mask;        /* of the current round's low half */
    uint32_t pooled;      /* overflow buckets ever made */
    uint32_t free_pooled; /* list of those not in use */
    uint64_t bytes;       /* taken from the system */
};

DW_MUST_CHECK enum dw_error dw_entry_table_init(struct dw_entry_table *table);
void dw_entry_table_close(struct dw_entry_table *table);

/* The hash of a key, to be given to the functions below. */
uint64_t dw_entry_table_hash(uint32_t log, struct dw_txn_id txn);

/* Hints that the key will be looked up soon: first the bucket for a group of keys, then the entry for the
 * same group, then the look-ups; so the cache misses of a group overlap. */
void dw_entry_table_prefetch_bucket(const struct dw_entry_table *table, uint64_t hash);
void dw_entry_table_prefetch_entry(const struct dw_entry_table *table, uint64_t hash);

/* The entry, or NULL. The pointer stays valid until the table is closed. */
struct dw_table_entry *dw_entry_table_find(const struct dw_entry_table *table, uint32_t log,
                                           struct dw_txn_id txn, uint64_t hash);

/* Adds an entry for a key that is not there, in state NONE; NULL if there is no memory. */
struct dw_table_entry *dw_entry_table_insert(struct dw_entry_table *table, uint32_t log, struct dw_txn_id txn,
                                             uint64_t hash);

/* Tests: true if every entry is in the bucket that its hash says, once. */
bool dw_entry_table_check(const struct dw_entry_table *table);

#endif
