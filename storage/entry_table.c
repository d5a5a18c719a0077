#include "storage/entry_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"

/* Slabs and segments are one huge page each: with small pages most look-ups in a big table miss the TLB too.
 */
#define CHUNK_BYTES   (2u << 20)
#define SLAB_BITS     15
#define SLAB_ENTRIES  (1u << SLAB_BITS)
#define SEGMENT_BITS  19
#define SEGMENT_HEADS (1u << SEGMENT_BITS)
#define MAX_ENTRIES   (UINT32_MAX - 1)
#define MAX_SLABS     (1u << (32 - SLAB_BITS))
#define MAX_SEGMENTS  (1u << (32 - SEGMENT_BITS))
#define FIRST_BUCKETS 1024u
/* How far ahead of the split its cache lines are asked for. */
#define SPLIT_AHEAD   8u

_Static_assert(SLAB_ENTRIES * sizeof(struct dw_table_entry) == CHUNK_BYTES, "a slab is one chunk");
_Static_assert(SEGMENT_HEADS * sizeof(uint32_t) == CHUNK_BYTES, "a segment is one chunk");

static void *chunk_alloc(struct dw_entry_table *table)
{
    void *chunk = aligned_alloc(CHUNK_BYTES, CHUNK_BYTES);
    if (chunk != NULL) {
        /* A refusal only costs speed. */
        (void)madvise(chunk, CHUNK_BYTES, MADV_HUGEPAGE);
        table->bytes += CHUNK_BYTES;
    }
    return chunk;
}

enum dw_error dw_entry_table_init(struct dw_entry_table *table)
{
    *table = (struct dw_entry_table){.buckets = FIRST_BUCKETS, .mask = FIRST_BUCKETS - 1};
    table->slabs = calloc(MAX_SLABS, sizeof *table->slabs);
    table->segments = calloc(MAX_SEGMENTS, sizeof *table->segments);
    if (table->slabs == NULL || table->segments == NULL) {
        dw_entry_table_close(table);
        return DW_ERR_MEMORY;
    }
    table->segments[0] = chunk_alloc(table);
    if (table->segments[0] == NULL) {
        dw_entry_table_close(table);
        return DW_ERR_MEMORY;
    }
    /* The other heads are written by the split that first uses them. */
    memset(table->segments[0], 0, FIRST_BUCKETS * sizeof(uint32_t));
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
    free(table->slabs);
    free(table->segments);
    *table = (struct dw_entry_table){0};
}

uint64_t dw_entry_table_hash(uint32_t log, struct dw_txn_id txn)
{
    uint64_t z = dw_txn_id_hash(txn) + log * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return z ^ (z >> 32);
}

/* Buckets below the split point of this round are addressed with one bit more. */
static uint32_t bucket_of(const struct dw_entry_table *table, uint64_t hash)
{
    uint32_t wide = (uint32_t)hash & (2 * table->mask + 1);
    return wide < table->buckets ? wide : (uint32_t)hash & table->mask;
}

static uint32_t *head_of(const struct dw_entry_table *table, uint32_t bucket)
{
    return &table->segments[bucket >> SEGMENT_BITS][bucket & (SEGMENT_HEADS - 1)];
}

/* Links are one more than the index, so that zero ends a chain. */
static struct dw_table_entry *entry_at(const struct dw_entry_table *table, uint32_t link)
{
    uint32_t index = link - 1;
    return &table->slabs[index >> SLAB_BITS][index & (SLAB_ENTRIES - 1)];
}

void dw_entry_table_prefetch_bucket(const struct dw_entry_table *table, uint64_t hash)
{
    __builtin_prefetch(head_of(table, bucket_of(table, hash)));
}

void dw_entry_table_prefetch_entry(const struct dw_entry_table *table, uint64_t hash)
{
    uint32_t link = *head_of(table, bucket_of(table, hash));
    if (link != 0) {
        __builtin_prefetch(entry_at(table, link));
    }
}

struct dw_table_entry *dw_entry_table_find(const struct dw_entry_table *table, uint32_t log,
                                           struct dw_txn_id txn, uint64_t hash)
{
    uint32_t link = *head_of(table, bucket_of(table, hash));
    while (link != 0) {
        struct dw_table_entry *entry = entry_at(table, link);
        if (entry->hash == hash && entry->log == log && dw_txn_id_equal(entry->txn, txn)) {
            return entry;
        }
        link = entry->next;
    }
    return NULL;
}

/* Deals the entries of one bucket out to it and to a new bucket at the end. */
static void split(struct dw_entry_table *table)
{
    uint32_t from = table->buckets - table->mask - 1;
    uint32_t *low = head_of(table, from);
    uint32_t *high = head_of(table, table->buckets);
    uint32_t link = *low;
    *low = 0;
    *high = 0;
    while (link != 0) {
        struct dw_table_entry *entry = entry_at(table, link);
        uint32_t next = entry->next;
        uint32_t *head = (uint32_t)entry->hash & (table->mask + 1) ? high : low;
        entry->next = *head;
        *head = link;
        link = next;
    }
    table->buckets++;
    if (table->buckets == 2 * (table->mask + 1)) {
        table->mask = 2 * table->mask + 1;
    }
}

static void prefetch_splits(const struct dw_entry_table *table)
{
    uint32_t from = table->buckets - table->mask - 1;
    __builtin_prefetch(head_of(table, (from + 2 * SPLIT_AHEAD) & table->mask));
    uint32_t link = *head_of(table, (from + SPLIT_AHEAD) & table->mask);
    if (link != 0) {
        __builtin_prefetch(entry_at(table, link));
    }
}

/* Adds a bucket, if there is memory for it; a table that cannot grow only has longer chains. */
static void grow(struct dw_entry_table *table)
{
    if (table->buckets >= UINT32_MAX / 2) {
        return;
    }
    uint32_t **segment = &table->segments[table->buckets >> SEGMENT_BITS];
    if (*segment == NULL) {
        *segment = chunk_alloc(table);
    }
    if (*segment != NULL) {
        prefetch_splits(table);
        split(table);
    }
}

struct dw_table_entry *dw_entry_table_insert(struct dw_entry_table *table, uint32_t log, struct dw_txn_id txn,
                                             uint64_t hash)
{
    if (table->count >= MAX_ENTRIES) {
        return NULL;
    }
    uint32_t index = table->count;
    struct dw_table_entry **slab = &table->slabs[index >> SLAB_BITS];
    if (*slab == NULL) {
        *slab = chunk_alloc(table);
        if (*slab == NULL) {
            return NULL;
        }
    }
    if (table->count >= table->buckets) {
        grow(table);
    }
    table->count++;
    uint32_t *head = head_of(table, bucket_of(table, hash));
    struct dw_table_entry *entry = entry_at(table, index + 1);
    *entry = (struct dw_table_entry){.txn = txn, .log = log, .hash = hash, .next = *head};
    *head = index + 1;
    return entry;
}

bool dw_entry_table_check(const struct dw_entry_table *table)
{
    uint32_t seen = 0;
    for (uint32_t bucket = 0; bucket < table->buckets; bucket++) {
        for (uint32_t link = *head_of(table, bucket); link != 0; link = entry_at(table, link)->next) {
            const struct dw_table_entry *entry = entry_at(table, link);
            seen++;
            if (link > table->count || seen > table->count || bucket_of(table, entry->hash) != bucket ||
                entry->hash != dw_entry_table_hash(entry->log, entry->txn)) {
                return false;
            }
        }
    }
    return seen == table->count;
}
