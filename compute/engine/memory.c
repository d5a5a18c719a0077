/* The memory engine: rows of fixed size in large blocks, found by a lock-free hash table of liburcu. Rows
 * never move and are never removed before close, so that a row once found stays valid. */
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <urcu/rculfhash.h>
#include <urcu/urcu-bp.h>

#include "base/assert.h"
#include "base/random.h"
#include "compute/engine/engine.h"
#include "compute/engine/redo.h"

/* A row is followed by the position last applied to each field, and then by its bytes. */
struct row {
    struct cds_lfht_node node;
    uint64_t key;
    uint64_t positions[];
};

_Static_assert(offsetof(struct row, node) == 0, "a node of the index is the start of its row");

/* Rows are cut from blocks: the first holds the expected rows, later ones a few more. */
struct block {
    struct block *next;
    uint64_t capacity;
    uint64_t used;
    _Alignas(alignof(max_align_t)) uint8_t rows[];
};

enum { LATER_BLOCK_ROWS = 256 };

struct table {
    struct dw_table schema;
    struct cds_lfht *index; /* NULL: no such table */
    struct block *blocks;   /* newest first */
    size_t stride;
};

struct memory_engine {
    struct dw_engine base;
    struct table tables[DW_ENGINE_MAX_TABLES];
};

static struct memory_engine *memory(struct dw_engine *engine)
{
    return (struct memory_engine *)engine;
}

static struct table *find_table(const struct dw_engine *engine, uint32_t table)
{
    if (table >= DW_ENGINE_MAX_TABLES) {
        return NULL;
    }
    struct table *found = &((struct memory_engine *)(uintptr_t)engine)->tables[table];
    return found->index == NULL ? NULL : found;
}

static uint8_t *row_bytes(const struct table *table, struct row *row)
{
    return (uint8_t *)(row->positions + table->schema.field_count);
}

/* --- the index --- */

/* One step of the generator is a good mixer: the table takes its buckets from the low bits. */
static unsigned long hash(uint64_t key)
{
    struct dw_random random;
    dw_random_init(&random, key);
    return dw_random_next(&random);
}

static struct row *row_of(struct cds_lfht_node *node)
{
    return (struct row *)(void *)node;
}

static int is_key(struct cds_lfht_node *node, const void *key)
{
    return row_of(node)->key == *(const uint64_t *)key;
}

static struct row *find_row(const struct table *table, uint64_t key)
{
    struct cds_lfht_iter iter;
    urcu_bp_read_lock();
    cds_lfht_lookup(table->index, hash(key), is_key, &key, &iter);
    struct cds_lfht_node *node = cds_lfht_iter_get_node(&iter);
    urcu_bp_read_unlock();
    return node == NULL ? NULL : row_of(node);
}

/* No automatic resizing, which would start a thread: the table is made for the rows that are expected. The
 * flavour of RCU is the one that needs no registration of threads, since the engine doesn't know them. */
static struct cds_lfht *new_index(uint64_t expected_rows)
{
    unsigned long buckets = 1;
    while (buckets < expected_rows) {
        buckets *= 2;
    }
    return cds_lfht_new_flavor(buckets, buckets, 0, 0, &urcu_bp_flavor, NULL);
}

/* --- tables and rows --- */

static bool add_block(struct table *table, uint64_t rows)
{
    size_t bytes;
    if (__builtin_mul_overflow(rows, table->stride, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct block), &bytes)) {
        return false;
    }
    struct block *block = malloc(bytes);
    if (block == NULL) {
        return false;
    }
    *block = (struct block){.next = table->blocks, .capacity = rows};
    table->blocks = block;
    return true;
}

static size_t stride_of(const struct dw_table *schema)
{
    size_t bytes = sizeof(struct row) + schema->field_count * sizeof(uint64_t) + dw_table_row_bytes(schema);
    size_t alignment = alignof(struct row);
    return (bytes + alignment - 1) / alignment * alignment;
}

static enum dw_error create_table(struct dw_engine *engine, uint32_t number, const struct dw_table *schema,
                                  uint64_t expected_rows)
{
    if (number >= DW_ENGINE_MAX_TABLES || find_table(engine, number) != NULL) {
        return DW_ERR_ARGUMENT;
    }
    DW_ASSERT(schema->field_count >= 1 && schema->field_count <= DW_TABLE_MAX_FIELDS);
    struct table *table = &memory(engine)->tables[number];
    table->schema = *schema;
    table->stride = stride_of(schema);
    if (!add_block(table, expected_rows)) {
        return DW_ERR_MEMORY;
    }
    table->index = new_index(expected_rows);
    if (table->index == NULL) {
        free(table->blocks);
        table->blocks = NULL;
        return DW_ERR_MEMORY;
    }
    return DW_OK;
}

/* Room for one more row, not taken yet; NULL if there is no memory. */
static struct row *next_row(struct table *table)
{
    if (table->blocks->used == table->blocks->capacity && !add_block(table, LATER_BLOCK_ROWS)) {
        return NULL;
    }
    return (struct row *)(void *)(table->blocks->rows + table->blocks->used * table->stride);
}

static enum dw_error insert(struct dw_engine *engine, uint32_t number, uint64_t key, const uint8_t *bytes)
{
    struct table *table = find_table(engine, number);
    if (table == NULL) {
        return DW_ERR_ARGUMENT;
    }
    struct row *row = next_row(table);
    if (row == NULL) {
        return DW_ERR_MEMORY;
    }
    cds_lfht_node_init(&row->node);
    row->key = key;
    memset(row->positions, 0, table->schema.field_count * sizeof *row->positions);
    memcpy(row_bytes(table, row), bytes, dw_table_row_bytes(&table->schema));
    urcu_bp_read_lock();
    struct cds_lfht_node *node = cds_lfht_add_unique(table->index, hash(key), is_key, &key, &row->node);
    urcu_bp_read_unlock();
    if (node != &row->node) {
        return DW_ERR_ARGUMENT;
    }
    table->blocks->used++;
    return DW_OK;
}

static const struct dw_table *schema_of(const struct dw_engine *engine, uint32_t number)
{
    const struct table *table = find_table(engine, number);
    return table == NULL ? NULL : &table->schema;
}

static bool contains(struct dw_engine *engine, uint32_t number, uint64_t key)
{
    const struct table *table = find_table(engine, number);
    return table != NULL && find_row(table, key) != NULL;
}

static enum dw_error read_row(struct dw_engine *engine, uint32_t number, uint64_t key, uint8_t *bytes)
{
    const struct table *table = find_table(engine, number);
    struct row *row = table == NULL ? NULL : find_row(table, key);
    if (row == NULL) {
        return DW_ERR_MISSING;
    }
    memcpy(bytes, row_bytes(table, row), dw_table_row_bytes(&table->schema));
    return DW_OK;
}

/* --- applying --- */

static enum dw_error check_change(struct dw_engine *engine, const struct dw_change *change)
{
    enum dw_error error =
        dw_engine_check_write(engine, change->table, change->key, change->field, change->value_bytes);
    return error == DW_OK || error == DW_ERR_MISSING ? error : DW_ERR_CORRUPT;
}

static enum dw_error check_redo(struct dw_engine *engine, const uint8_t *redo, size_t size)
{
    struct dw_redo_reader reader;
    dw_redo_reader_init(&reader, redo, size);
    struct dw_change change;
    enum dw_redo_read read;
    while ((read = dw_redo_next(&reader, &change)) == DW_REDO_CHANGE) {
        enum dw_error error = check_change(engine, &change);
        if (error != DW_OK) {
            return error;
        }
    }
    return read == DW_REDO_END ? DW_OK : DW_ERR_CORRUPT;
}

static void apply_change(struct dw_engine *engine, uint64_t position, const struct dw_change *change,
                         struct dw_applied *applied)
{
    struct table *table = find_table(engine, change->table);
    DW_ASSERT(table != NULL);
    struct row *row = find_row(table, change->key);
    DW_ASSERT(row != NULL);
    uint64_t *remembered = &row->positions[change->field];
    if (position != 0 && position < *remembered) {
        applied->refused++;
        return;
    }
    if (position != 0) {
        *remembered = position;
    }
    memcpy(row_bytes(table, row) + table->schema.offsets[change->field], change->value, change->value_bytes);
    applied->changes++;
}

static enum dw_error apply(struct dw_engine *engine, uint64_t position, const uint8_t *redo, size_t size,
                           struct dw_applied *applied)
{
    *applied = (struct dw_applied){0};
    enum dw_error error = check_redo(engine, redo, size);
    if (error != DW_OK) {
        return error;
    }
    struct dw_redo_reader reader;
    dw_redo_reader_init(&reader, redo, size);
    struct dw_change change;
    while (dw_redo_next(&reader, &change) == DW_REDO_CHANGE) {
        apply_change(engine, position, &change, applied);
    }
    return DW_OK;
}

/* --- closing --- */

/* The index can be destroyed only when it is empty. */
static void empty_index(struct cds_lfht *index)
{
    struct cds_lfht_iter iter;
    struct cds_lfht_node *node;
    urcu_bp_read_lock();
    cds_lfht_for_each(index, &iter, node)
    {
        DW_ASSERT(cds_lfht_del(index, node) == 0);
    }
    urcu_bp_read_unlock();
}

static void close_table(struct table *table)
{
    empty_index(table->index);
    DW_ASSERT(cds_lfht_destroy(table->index, NULL) == 0);
    while (table->blocks != NULL) {
        struct block *next = table->blocks->next;
        free(table->blocks);
        table->blocks = next;
    }
}

static void close_engine(struct dw_engine *engine)
{
    for (uint32_t i = 0; i < DW_ENGINE_MAX_TABLES; i++) {
        if (find_table(engine, i) != NULL) {
            close_table(&memory(engine)->tables[i]);
        }
    }
    free(memory(engine));
}

static const struct dw_engine_ops ops = {
    .name = "memory",
    .create_table = create_table,
    .insert = insert,
    .schema = schema_of,
    .contains = contains,
    .read = read_row,
    .apply = apply,
    .close = close_engine,
};

struct dw_engine *dw_memory_engine_open(void)
{
    struct memory_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) {
        return NULL;
    }
    engine->base.ops = &ops;
    return &engine->base;
}
