#include "compute/lock_table.h"

#include <string.h>

#include "base/assert.h"

/* All references are indices into the arrays below; NIL is none. A row that is locked by nobody, and an owner
 * that holds nothing, have no entry, so that there are never more rows or owners than holds. */
#define NIL UINT32_MAX

/* A locked row. A free entry is linked by `next`. */
struct row {
    struct dw_lock_name name;
    uint32_t next;    /* in its bucket */
    uint32_t holders; /* newest hold */
    uint32_t count;   /* of holders */
    uint32_t mode;    /* of all its holders alike */
};

/* A transaction that holds something. */
struct owner {
    struct dw_txn_id id;
    uint32_t next;  /* in its bucket */
    uint32_t holds; /* newest hold */
    uint32_t count;
    uint32_t padding;
};

/* One owner's lock on one row. A free entry is linked by `next_of_owner`. */
struct hold {
    uint32_t row; /* NIL: a free entry */
    uint32_t owner;
    uint32_t next_of_row;
    uint32_t previous_of_row;
    uint32_t next_of_owner;
    uint32_t previous_of_owner;
    uint32_t relocked; /* taken by recovery: such may share a row exclusively */
};

/* The head of the block; the arrays follow it in the order rows, owners, holds, row buckets, owner buckets.
 */
struct dw_lock_table {
    uint32_t capacity;
    uint32_t bucket_mask;
    uint32_t used;
    uint32_t free_row;
    uint32_t free_owner;
    uint32_t free_hold;
};

_Static_assert(sizeof(struct dw_lock_table) % 8 == 0 && sizeof(struct row) % 8 == 0 &&
                   sizeof(struct owner) % 8 == 0,
               "the arrays stay aligned");

/* --- where things lie --- */

static struct row *rows(const struct dw_lock_table *table)
{
    return (struct row *)(uintptr_t)(table + 1);
}

static struct owner *owners(const struct dw_lock_table *table)
{
    return (struct owner *)(void *)(rows(table) + table->capacity);
}

static struct hold *holds(const struct dw_lock_table *table)
{
    return (struct hold *)(void *)(owners(table) + table->capacity);
}

static uint32_t *row_buckets(const struct dw_lock_table *table)
{
    return (uint32_t *)(void *)(holds(table) + table->capacity);
}

static uint32_t *owner_buckets(const struct dw_lock_table *table)
{
    return row_buckets(table) + table->bucket_mask + 1;
}

/* A power of two that is not below the capacity: on average a chain has at most one entry. */
static uint32_t bucket_count(uint32_t capacity)
{
    uint32_t count = 1;
    while (count < capacity) {
        count *= 2;
    }
    return count;
}

size_t dw_lock_table_bytes(uint32_t capacity)
{
    DW_ASSERT(capacity >= 1 && capacity <= DW_LOCK_MAX_CAPACITY);
    size_t each = sizeof(struct row) + sizeof(struct owner) + sizeof(struct hold);
    return sizeof(struct dw_lock_table) + capacity * each + 2 * sizeof(uint32_t) * bucket_count(capacity);
}

struct dw_lock_table *dw_lock_table_init(void *memory, uint32_t capacity)
{
    DW_ASSERT((uintptr_t)memory % 8 == 0);
    memset(memory, 0, dw_lock_table_bytes(capacity));
    struct dw_lock_table *table = memory;
    table->capacity = capacity;
    table->bucket_mask = bucket_count(capacity) - 1;
    for (uint32_t i = 0; i < capacity; i++) {
        uint32_t next = i + 1 < capacity ? i + 1 : NIL;
        rows(table)[i].next = next;
        owners(table)[i].next = next;
        holds(table)[i].next_of_owner = next;
        holds(table)[i].row = NIL;
    }
    for (uint32_t b = 0; b <= table->bucket_mask; b++) {
        row_buckets(table)[b] = NIL;
        owner_buckets(table)[b] = NIL;
    }
    return table;
}

/* --- rows and owners by name --- */

/* The finaliser of SplitMix64 over the key, which the table number has displaced. */
uint64_t dw_lock_hash(struct dw_lock_name name)
{
    uint64_t z = name.key + (name.table + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool same_name(struct dw_lock_name a, struct dw_lock_name b)
{
    return a.table == b.table && a.key == b.key;
}

static uint32_t *row_bucket(const struct dw_lock_table *table, struct dw_lock_name name)
{
    return &row_buckets(table)[dw_lock_hash(name) & table->bucket_mask];
}

static uint32_t *owner_bucket(const struct dw_lock_table *table, struct dw_txn_id id)
{
    return &owner_buckets(table)[dw_txn_id_hash(id) & table->bucket_mask];
}

static uint32_t find_row(const struct dw_lock_table *table, struct dw_lock_name name)
{
    uint32_t row = *row_bucket(table, name);
    while (row != NIL && !same_name(rows(table)[row].name, name)) {
        row = rows(table)[row].next;
    }
    return row;
}

static uint32_t find_owner(const struct dw_lock_table *table, struct dw_txn_id id)
{
    uint32_t owner = *owner_bucket(table, id);
    while (owner != NIL && !dw_txn_id_equal(owners(table)[owner].id, id)) {
        owner = owners(table)[owner].next;
    }
    return owner;
}

/* The owner's hold on the row, or NIL. */
static uint32_t find_hold(const struct dw_lock_table *table, uint32_t row, struct dw_txn_id id)
{
    uint32_t hold = rows(table)[row].holders;
    while (hold != NIL && !dw_txn_id_equal(owners(table)[holds(table)[hold].owner].id, id)) {
        hold = holds(table)[hold].next_of_row;
    }
    return hold;
}

/* --- making entries and dropping them --- */

static uint32_t add_row(struct dw_lock_table *table, struct dw_lock_name name, enum dw_lock_mode mode)
{
    uint32_t row = table->free_row;
    DW_ASSERT(row != NIL);
    table->free_row = rows(table)[row].next;
    uint32_t *bucket = row_bucket(table, name);
    rows(table)[row] = (struct row){.name = name, .next = *bucket, .holders = NIL, .mode = mode};
    *bucket = row;
    return row;
}

static uint32_t add_owner(struct dw_lock_table *table, struct dw_txn_id id)
{
    uint32_t owner = table->free_owner;
    DW_ASSERT(owner != NIL);
    table->free_owner = owners(table)[owner].next;
    uint32_t *bucket = owner_bucket(table, id);
    owners(table)[owner] = (struct owner){.id = id, .next = *bucket, .holds = NIL};
    *bucket = owner;
    return owner;
}

static void drop_row(struct dw_lock_table *table, uint32_t row)
{
    uint32_t *link = row_bucket(table, rows(table)[row].name);
    while (*link != row) {
        DW_ASSERT(*link != NIL);
        link = &rows(table)[*link].next;
    }
    *link = rows(table)[row].next;
    rows(table)[row].next = table->free_row;
    table->free_row = row;
}

static void drop_owner(struct dw_lock_table *table, uint32_t owner)
{
    uint32_t *link = owner_bucket(table, owners(table)[owner].id);
    while (*link != owner) {
        DW_ASSERT(*link != NIL);
        link = &owners(table)[*link].next;
    }
    *link = owners(table)[owner].next;
    owners(table)[owner].next = table->free_owner;
    table->free_owner = owner;
}

static void add_hold(struct dw_lock_table *table, uint32_t row, uint32_t owner, bool relocked)
{
    uint32_t index = table->free_hold;
    DW_ASSERT(index != NIL);
    struct hold *hold = &holds(table)[index];
    table->free_hold = hold->next_of_owner;
    *hold = (struct hold){
        .row = row,
        .owner = owner,
        .next_of_row = rows(table)[row].holders,
        .previous_of_row = NIL,
        .next_of_owner = owners(table)[owner].holds,
        .previous_of_owner = NIL,
        .relocked = relocked,
    };
    if (hold->next_of_row != NIL) {
        holds(table)[hold->next_of_row].previous_of_row = index;
    }
    if (hold->next_of_owner != NIL) {
        holds(table)[hold->next_of_owner].previous_of_owner = index;
    }
    rows(table)[row].holders = index;
    rows(table)[row].count++;
    owners(table)[owner].holds = index;
    owners(table)[owner].count++;
    table->used++;
}

static void unlink_from_row(struct dw_lock_table *table, const struct hold *hold)
{
    struct row *row = &rows(table)[hold->row];
    if (hold->next_of_row != NIL) {
        holds(table)[hold->next_of_row].previous_of_row = hold->previous_of_row;
    }
    if (hold->previous_of_row != NIL) {
        holds(table)[hold->previous_of_row].next_of_row = hold->next_of_row;
    } else {
        row->holders = hold->next_of_row;
    }
    row->count--;
    if (row->count == 0) {
        drop_row(table, hold->row);
    }
}

static void unlink_from_owner(struct dw_lock_table *table, const struct hold *hold)
{
    struct owner *owner = &owners(table)[hold->owner];
    if (hold->next_of_owner != NIL) {
        holds(table)[hold->next_of_owner].previous_of_owner = hold->previous_of_owner;
    }
    if (hold->previous_of_owner != NIL) {
        holds(table)[hold->previous_of_owner].next_of_owner = hold->next_of_owner;
    } else {
        owner->holds = hold->next_of_owner;
    }
    owner->count--;
    if (owner->count == 0) {
        drop_owner(table, hold->owner);
    }
}

static void drop_hold(struct dw_lock_table *table, uint32_t index)
{
    struct hold *hold = &holds(table)[index];
    DW_ASSERT(hold->row != NIL);
    unlink_from_row(table, hold);
    unlink_from_owner(table, hold);
    hold->row = NIL;
    hold->next_of_owner = table->free_hold;
    table->free_hold = index;
    table->used--;
}

/* --- requests --- */

/* Gives the row, which may be NIL, to one more owner. */
static enum dw_lock_result grant(struct dw_lock_table *table, uint32_t row, struct dw_txn_id id,
                                 struct dw_lock_name name, enum dw_lock_mode mode, bool relocked)
{
    if (table->free_hold == NIL) {
        return DW_LOCK_FULL;
    }
    if (row == NIL) {
        row = add_row(table, name, mode);
    }
    uint32_t owner = find_owner(table, id);
    if (owner == NIL) {
        owner = add_owner(table, id);
    }
    add_hold(table, row, owner, relocked);
    return DW_LOCK_GRANTED;
}

enum dw_lock_result dw_lock_acquire(struct dw_lock_table *table, struct dw_txn_id owner,
                                    struct dw_lock_name name, enum dw_lock_mode mode)
{
    DW_ASSERT(mode == DW_LOCK_SHARED || mode == DW_LOCK_EXCLUSIVE);
    uint32_t index = find_row(table, name);
    if (index == NIL) {
        return grant(table, NIL, owner, name, mode, false);
    }
    struct row *row = &rows(table)[index];
    if (find_hold(table, index, owner) != NIL) {
        if (row->mode >= (uint32_t)mode) {
            return DW_LOCK_GRANTED;
        }
        if (row->count > 1) {
            return DW_LOCK_CONFLICT;
        }
        row->mode = mode;
        return DW_LOCK_GRANTED;
    }
    if (row->mode == DW_LOCK_EXCLUSIVE || mode == DW_LOCK_EXCLUSIVE) {
        return DW_LOCK_CONFLICT;
    }
    return grant(table, index, owner, name, mode, false);
}

enum dw_lock_result dw_lock_relock(struct dw_lock_table *table, struct dw_txn_id owner,
                                   struct dw_lock_name name)
{
    uint32_t index = find_row(table, name);
    if (index == NIL) {
        return grant(table, NIL, owner, name, DW_LOCK_EXCLUSIVE, true);
    }
    /* Holders are all of one sort: those that share a row exclusively were all locked here. */
    if (!holds(table)[rows(table)[index].holders].relocked) {
        return DW_LOCK_CONFLICT;
    }
    if (find_hold(table, index, owner) != NIL) {
        return DW_LOCK_GRANTED;
    }
    return grant(table, index, owner, name, DW_LOCK_EXCLUSIVE, true);
}

/* Frees the owner's locks, all or the shared ones. */
static uint32_t release(struct dw_lock_table *table, struct dw_txn_id id, bool shared_only)
{
    uint32_t owner = find_owner(table, id);
    uint32_t released = 0;
    uint32_t hold = owner == NIL ? NIL : owners(table)[owner].holds;
    while (hold != NIL) {
        uint32_t next = holds(table)[hold].next_of_owner;
        if (!shared_only || rows(table)[holds(table)[hold].row].mode == DW_LOCK_SHARED) {
            drop_hold(table, hold);
            released++;
        }
        hold = next;
    }
    return released;
}

uint32_t dw_lock_release(struct dw_lock_table *table, struct dw_txn_id owner)
{
    return release(table, owner, false);
}

uint32_t dw_lock_release_shared(struct dw_lock_table *table, struct dw_txn_id owner)
{
    return release(table, owner, true);
}

/* --- questions --- */

enum dw_lock_mode dw_lock_held(const struct dw_lock_table *table, struct dw_txn_id owner,
                               struct dw_lock_name name)
{
    uint32_t row = find_row(table, name);
    if (row == NIL || find_hold(table, row, owner) == NIL) {
        return DW_LOCK_NONE;
    }
    return (enum dw_lock_mode)rows(table)[row].mode;
}

uint32_t dw_lock_owner_count(const struct dw_lock_table *table, struct dw_txn_id owner)
{
    uint32_t index = find_owner(table, owner);
    return index == NIL ? 0 : owners(table)[index].count;
}

uint32_t dw_lock_holders(const struct dw_lock_table *table, struct dw_lock_name name, struct dw_txn_id *ids,
                         uint32_t max)
{
    uint32_t row = find_row(table, name);
    if (row == NIL) {
        return 0;
    }
    uint32_t written = 0;
    for (uint32_t hold = rows(table)[row].holders; hold != NIL && written < max;
         hold = holds(table)[hold].next_of_row) {
        ids[written++] = owners(table)[holds(table)[hold].owner].id;
    }
    return rows(table)[row].count;
}

uint32_t dw_lock_table_used(const struct dw_lock_table *table)
{
    return table->used;
}

uint32_t dw_lock_table_capacity(const struct dw_lock_table *table)
{
    return table->capacity;
}

/* --- invariants --- */

static void check_row(const struct dw_lock_table *table, uint32_t index)
{
    const struct row *row = &rows(table)[index];
    DW_ASSERT(row->count > 0);
    DW_ASSERT(row->mode == DW_LOCK_SHARED || row->mode == DW_LOCK_EXCLUSIVE);
    DW_ASSERT(find_row(table, row->name) == index);
    uint32_t count = 0;
    uint32_t previous = NIL;
    for (uint32_t i = row->holders; i != NIL; i = holds(table)[i].next_of_row) {
        const struct hold *hold = &holds(table)[i];
        DW_ASSERT(hold->row == index);
        DW_ASSERT(hold->previous_of_row == previous);
        DW_ASSERT(find_hold(table, index, owners(table)[hold->owner].id) == i);
        DW_ASSERT(!hold->relocked || row->mode == DW_LOCK_EXCLUSIVE);
        DW_ASSERT(hold->relocked || row->mode == DW_LOCK_SHARED || row->count == 1);
        previous = i;
        count++;
    }
    DW_ASSERT(count == row->count);
}

static void check_owner(const struct dw_lock_table *table, uint32_t index)
{
    const struct owner *owner = &owners(table)[index];
    DW_ASSERT(owner->count > 0);
    DW_ASSERT(find_owner(table, owner->id) == index);
    uint32_t count = 0;
    uint32_t previous = NIL;
    for (uint32_t i = owner->holds; i != NIL; i = holds(table)[i].next_of_owner) {
        DW_ASSERT(holds(table)[i].owner == index);
        DW_ASSERT(holds(table)[i].previous_of_owner == previous);
        previous = i;
        count++;
    }
    DW_ASSERT(count == owner->count);
}

/* Every hold is reached from its row and from its owner: the sums of both counts are the number in use. */
void dw_lock_table_check(const struct dw_lock_table *table)
{
    uint32_t of_rows = 0;
    uint32_t of_owners = 0;
    for (uint32_t b = 0; b <= table->bucket_mask; b++) {
        for (uint32_t i = row_buckets(table)[b]; i != NIL; i = rows(table)[i].next) {
            check_row(table, i);
            of_rows += rows(table)[i].count;
        }
        for (uint32_t i = owner_buckets(table)[b]; i != NIL; i = owners(table)[i].next) {
            check_owner(table, i);
            of_owners += owners(table)[i].count;
        }
    }
    DW_ASSERT(of_rows == table->used && of_owners == table->used);
    uint32_t free_holds = 0;
    for (uint32_t i = table->free_hold; i != NIL; i = holds(table)[i].next_of_owner) {
        DW_ASSERT(holds(table)[i].row == NIL);
        free_holds++;
    }
    DW_ASSERT(free_holds + table->used == table->capacity);
}
