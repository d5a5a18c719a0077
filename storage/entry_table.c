#include "storage/entry_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define BUCKET_ITEMS 7u

/* A cache line: the low halves of hashes, and links to the entries. Links are one more than an index; 0 is
 * none. */
struct dw_table_bucket {
    uint32_t tags[BUCKET_ITEMS];
    uint32_t links[BUCKET_ITEMS];
    uint32_t
        overflow; /* link of a bucket in a pool, which goes on here; or the next on the list of free ones */
    uint32_t count;
};
_Static_assert(sizeof(struct dw_table_bucket) == 64, "a bucket is one cache line");

/* Memory comes in chunks that the system fills with small pages, one after another as they are first touched.
 * Asking for huge pages made look-ups no faster than prefetching does, and an insertion could stall for 10 ms
 * while the kernel compacted memory to make one. */
#define SLAB_BITS       17
#define SLAB_ENTRIES    (1u << SLAB_BITS)
#define SLAB_BYTES      (SLAB_ENTRIES * sizeof(struct dw_table_entry))
#define SEGMENT_BITS    15
#define SEGMENT_BUCKETS (1u << SEGMENT_BITS)
#define SEGMENT_BYTES   (SEGMENT_BUCKETS * sizeof(struct dw_table_bucket))
#define MAX_SLABS       (1u << (32 - SLAB_BITS))
#define MAX_SEGMENTS    (1u << (31 - SEGMENT_BITS))
#define MAX_ENTRIES     (UINT32_MAX - 1)
#define FIRST_BUCKETS   256u
/* A bucket is added when there are more entries than this for each: few overflow, and little room is lost. */
#define FILL            5u
/* How many splits ahead the cache line of a bucket is asked for. */
#define SPLIT_AHEAD     8u

static void *chunk_alloc(struct dw_entry_table *table, size_t bytes)
{
    void *chunk = aligned_alloc(sizeof(struct dw_table_bucket), bytes);
    table->bytes += chunk == NULL ? 0 : bytes;
    return chunk;
}

enum dw_error dw_entry_table_init(struct dw_entry_table *table)
{
    *table = (struct dw_entry_table){.buckets = FIRST_BUCKETS, .mask = FIRST_BUCKETS - 1};
    table->slabs = calloc(MAX_SLABS, sizeof *table->slabs);
    table->segments = calloc(MAX_SEGMENTS, sizeof *table->segments);
    table->pools = calloc(MAX_SEGMENTS, sizeof *table->pools);
    if (table->slabs != NULL && table->segments != NULL && table->pools != NULL) {
        table->segments[0] = chunk_alloc(table, SEGMENT_BYTES);
    }
    if (table->bytes == 0) {
        dw_entry_table_close(table);
        return DW_ERR_MEMORY;
    }
    /* The other buckets are written by the split that first uses them. */
    memset(table->segments[0], 0, FIRST_BUCKETS * sizeof **table->segments);
    return DW_OK;
}

void dw_entry_table_close(struct dw_entry_table *table)
{
    for (uint32_t i = 0; table->slabs != NULL && i < MAX_SLABS && table->slabs[i] != NULL; i++) {
        free(table->slabs[i]);
    }
    for (uint32_t i = 0; table->segments != NULL && i < MAX_SEGMENTS && table->segments[i] != NULL; i++) {
        free(table->segments[i]);
    }
    for (uint32_t i = 0; table->pools != NULL && i < MAX_SEGMENTS && table->pools[i] != NULL; i++) {
        free(table->pools[i]);
    }
    free(table->slabs);
    free(table->segments);
    free(table->pools);
    *table = (struct dw_entry_table){0};
}

uint64_t dw_entry_table_hash(uint32_t log, struct dw_txn_id txn)
{
    uint64_t z = dw_txn_id_hash(txn) + log * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return z ^ (z >> 32);
}

/* Buckets below the split point of this round are addressed with one bit more. */
static uint32_t number_of(const struct dw_entry_table *table, uint32_t tag)
{
    uint32_t wide = tag & (2 * table->mask + 1);
    return wide < table->buckets ? wide : tag & table->mask;
}

static struct dw_table_bucket *bucket_at(const struct dw_entry_table *table, uint32_t number)
{
    return &table->segments[number >> SEGMENT_BITS][number & (SEGMENT_BUCKETS - 1)];
}

static struct dw_table_bucket *bucket_for(const struct dw_entry_table *table, uint64_t hash)
{
    return bucket_at(table, number_of(table, (uint32_t)hash));
}

static struct dw_table_bucket *pooled_at(const struct dw_entry_table *table, uint32_t link)
{
    uint32_t index = link - 1;
    return &table->pools[index >> SEGMENT_BITS][index & (SEGMENT_BUCKETS - 1)];
}

/* The bucket that goes on where this one is full, or NULL. */
static struct dw_table_bucket *next_of(const struct dw_entry_table *table,
                                       const struct dw_table_bucket *bucket)
{
    return bucket->overflow == 0 ? NULL : pooled_at(table, bucket->overflow);
}

static struct dw_table_entry *entry_at(const struct dw_entry_table *table, uint32_t link)
{
    uint32_t index = link - 1;
    return &table->slabs[index >> SLAB_BITS][index & (SLAB_ENTRIES - 1)];
}

void dw_entry_table_prefetch_bucket(const struct dw_entry_table *table, uint64_t hash)
{
    __builtin_prefetch(bucket_for(table, hash));
}

void dw_entry_table_prefetch_entry(const struct dw_entry_table *table, uint64_t hash)
{
    const struct dw_table_bucket *bucket = bucket_for(table, hash);
    for (uint32_t i = 0; i < bucket->count; i++) {
        if (bucket->tags[i] == (uint32_t)hash) {
            const struct dw_table_entry *entry = entry_at(table, bucket->links[i]);
            __builtin_prefetch(entry);
            __builtin_prefetch((const char *)(entry + 1) - 1);
        }
    }
    if (bucket->overflow != 0) {
        __builtin_prefetch(pooled_at(table, bucket->overflow));
    }
}

struct dw_table_entry *dw_entry_table_find(const struct dw_entry_table *table, uint32_t log,
                                           struct dw_txn_id txn, uint64_t hash)
{
    const struct dw_table_bucket *bucket = bucket_for(table, hash);
    for (; bucket != NULL; bucket = next_of(table, bucket)) {
        for (uint32_t i = 0; i < bucket->count; i++) {
            if (bucket->tags[i] != (uint32_t)hash) {
                continue;
            }
            struct dw_table_entry *entry = entry_at(table, bucket->links[i]);
            if (entry->log == log && dw_txn_id_equal(entry->txn, txn)) {
                return entry;
            }
        }
    }
    return NULL;
}

/* A link to an empty bucket in a pool, or 0 if there is no memory. */
static uint32_t pool_take(struct dw_entry_table *table)
{
    uint32_t link = table->free_pooled;
    if (link != 0) {
        table->free_pooled = pooled_at(table, link)->overflow;
    } else {
        struct dw_table_bucket **pool = &table->pools[table->pooled >> SEGMENT_BITS];
        if (*pool == NULL) {
            *pool = chunk_alloc(table, SEGMENT_BYTES);
        }
        if (*pool == NULL) {
            return 0;
        }
        link = ++table->pooled;
    }
    *pooled_at(table, link) = (struct dw_table_bucket){0};
    return link;
}

static void pool_give(struct dw_entry_table *table, uint32_t link)
{
    pooled_at(table, link)->overflow = table->free_pooled;
    table->free_pooled = link;
}

/* Adds an item at the end of the bucket's chain; false if there is no memory. */
static bool add(struct dw_entry_table *table, struct dw_table_bucket *bucket, uint32_t tag, uint32_t link)
{
    while (bucket->count == BUCKET_ITEMS) {
        if (bucket->overflow == 0) {
            bucket->overflow = pool_take(table);
        }
        if (bucket->overflow == 0) {
            return false;
        }
        bucket = pooled_at(table, bucket->overflow);
    }
    bucket->tags[bucket->count] = tag;
    bucket->links[bucket->count] = link;
    bucket->count++;
    return true;
}

/* Deals the items of one bucket out to it and to a new bucket at the end. That never takes more pooled
 * buckets than the old chain gives back. */
static void split(struct dw_entry_table *table)
{
    uint32_t from = table->buckets - table->mask - 1;
    struct dw_table_bucket *low = bucket_at(table, from);
    struct dw_table_bucket *high = bucket_at(table, table->buckets);
    struct dw_table_bucket old = *low;
    uint32_t next = old.overflow;
    low->count = 0;
    low->overflow = 0;
    *high = (struct dw_table_bucket){0};
    for (;;) {
        for (uint32_t i = 0; i < old.count; i++) {
            bool added = add(table, old.tags[i] & (table->mask + 1) ? high : low, old.tags[i], old.links[i]);
            DW_ASSERT(added);
        }
        if (next == 0) {
            break;
        }
        old = *pooled_at(table, next);
        pool_give(table, next);
        next = old.overflow;
    }
    table->buckets++;
    if (table->buckets == 2 * (table->mask + 1)) {
        table->mask = 2 * table->mask + 1;
    }
}

/* Adds a bucket, if there is memory for it; a table that cannot grow only has longer chains. */
static void grow(struct dw_entry_table *table)
{
    struct dw_table_bucket **segment = &table->segments[table->buckets >> SEGMENT_BITS];
    if (*segment == NULL) {
        *segment = chunk_alloc(table, SEGMENT_BYTES);
    }
    if (*segment != NULL) {
        __builtin_prefetch(bucket_at(table, (table->buckets + SPLIT_AHEAD) & table->mask));
        split(table);
    }
}

struct dw_table_entry *dw_entry_table_insert(struct dw_entry_table *table, uint32_t log, struct dw_txn_id txn,
                                             uint64_t hash)
{
    struct dw_table_entry **slab = &table->slabs[table->count >> SLAB_BITS];
    if (table->count >= MAX_ENTRIES) {
        return NULL;
    }
    if (*slab == NULL) {
        *slab = chunk_alloc(table, SLAB_BYTES);
        if (*slab == NULL) {
            return NULL;
        }
    }
    if (table->count >= (uint64_t)table->buckets * FILL) {
        grow(table);
    }
    if (!add(table, bucket_for(table, hash), (uint32_t)hash, table->count + 1)) {
        return NULL;
    }
    table->count++;
    struct dw_table_entry *entry = entry_at(table, table->count);
    *entry = (struct dw_table_entry){.txn = txn, .log = log};
    return entry;
}

bool dw_entry_table_check(const struct dw_entry_table *table)
{
    uint64_t seen = 0;
    uint64_t sum = 0;
    for (uint32_t number = 0; number < table->buckets; number++) {
        const struct dw_table_bucket *bucket = bucket_at(table, number);
        for (; bucket != NULL; bucket = next_of(table, bucket)) {
            for (uint32_t i = 0; i < bucket->count; i++) {
                const struct dw_table_entry *entry = entry_at(table, bucket->links[i]);
                uint32_t tag = (uint32_t)dw_entry_table_hash(entry->log, entry->txn);
                if (bucket->tags[i] != tag || number_of(table, tag) != number) {
                    return false;
                }
                seen++;
                sum += bucket->links[i];
            }
        }
    }
    /* Each link once: they are 1 to count. */
    return seen == table->count && sum == seen * (seen + 1) / 2;
}
