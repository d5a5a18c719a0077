/* The transactions that this node knows, by id. The hash is uthash's. */
#include <stdlib.h>
#include <string.h>

#include "compute/runtime.h"

#include <uthash.h>

struct entry {
    struct txn_context context; /* first: a context is its entry */
    UT_hash_handle hh;
};

/* What is kept for the next transactions is bounded, however many there once were at a time, and however much
 * they wrote: 16 MiB. */
enum { SPARE_MAX = 1024, SPARE_REDO_BYTES = 16 << 10 };

struct txn_table {
    struct entry *entries;
    struct entry *spare; /* dropped ones, to be used again with their redo buffers; linked by hh.next */
    uint32_t spare_count;
};

struct txn_table *txn_table_open(void)
{
    return calloc(1, sizeof(struct txn_table));
}

static void free_answer(struct entry *entry)
{
    free(entry->context.answer.sink.rows);
    free(entry->context.answer.sink.bytes);
    entry->context.answer = (struct access_answer){0};
}

static void free_entry(struct entry *entry)
{
    free_answer(entry);
    dw_redo_free(&entry->context.redo);
    free(entry);
}

void txn_table_close(struct txn_table *table)
{
    struct entry *entry, *next;
    HASH_ITER(hh, table->entries, entry, next)
    {
        HASH_DEL(table->entries, entry);
        free_entry(entry);
    }
    while (table->spare != NULL) {
        entry = table->spare;
        table->spare = entry->hh.next;
        free_entry(entry);
    }
    free(table);
}

struct txn_context *txn_table_find(struct txn_table *table, struct dw_txn_id id)
{
    struct entry *entry;
    HASH_FIND(hh, table->entries, &id, sizeof id, entry);
    return entry != NULL ? &entry->context : NULL;
}

static struct entry *take_entry(struct txn_table *table)
{
    struct entry *entry = table->spare;
    if (entry == NULL) {
        return calloc(1, sizeof *entry);
    }
    table->spare = entry->hh.next;
    table->spare_count--;
    struct dw_redo redo = entry->context.redo;
    memset(entry, 0, sizeof *entry);
    entry->context.redo = redo;
    dw_redo_clear(&entry->context.redo);
    return entry;
}

struct txn_context *txn_table_add(struct txn_table *table, struct dw_txn_id id)
{
    struct entry *entry = take_entry(table);
    if (entry == NULL) {
        return NULL;
    }
    entry->context.id = id;
    HASH_ADD(hh, table->entries, context.id, sizeof id, entry);
    return &entry->context;
}

void txn_table_remove(struct txn_table *table, struct txn_context *context)
{
    struct entry *entry = (struct entry *)context;
    HASH_DEL(table->entries, entry);
    if (table->spare_count == SPARE_MAX) {
        free_entry(entry);
        return;
    }
    free_answer(entry);
    if (entry->context.redo.capacity > SPARE_REDO_BYTES) {
        dw_redo_free(&entry->context.redo);
    }
    entry->hh.next = table->spare;
    table->spare = entry;
    table->spare_count++;
}

size_t txn_table_count(const struct txn_table *table)
{
    return HASH_COUNT(table->entries);
}

void txn_table_each(struct txn_table *table, void (*visit)(void *user, struct txn_context *context),
                    void *user)
{
    struct entry *entry, *next;
    HASH_ITER(hh, table->entries, entry, next)
    {
        visit(user, &entry->context);
    }
}
