/* Does the table keep every entry, at its address, while it grows? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage/entry_table.h"

static void entries_stay_where_they_are(void **state)
{
    enum { ENTRIES = 200000, KEPT = 100 };
    struct dw_entry_table table;
    struct dw_table_entry *kept[KEPT];
    (void)state;
    assert_int_equal(dw_entry_table_init(&table), DW_OK);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        struct dw_txn_id txn = {.coordinator = 1, .incarnation = 1, .sequence = i};
        uint32_t log = (uint32_t)(i % 7);
        uint64_t hash = dw_entry_table_hash(log, txn);
        assert_null(dw_entry_table_find(&table, log, txn, hash));
        dw_entry_table_prefetch_bucket(&table, hash);
        dw_entry_table_prefetch_entry(&table, hash);
        struct dw_table_entry *entry = dw_entry_table_insert(&table, log, txn, hash);
        assert_non_null(entry);
        assert_int_equal(entry->entry.state, DW_ENTRY_NONE);
        entry->entry.first = i + 1;
        if (i < KEPT) {
            kept[i] = entry;
        }
        /* Around the first doublings after each hundredth, later now and then. */
        if (i % (i < 5000 ? 100 : 20011) == 0) {
            assert_true(dw_entry_table_check(&table));
        }
    }
    assert_true(dw_entry_table_check(&table));
    assert_int_equal(table.count, ENTRIES);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        struct dw_txn_id txn = {.coordinator = 1, .incarnation = 1, .sequence = i};
        uint32_t log = (uint32_t)(i % 7);
        struct dw_table_entry *entry = dw_entry_table_find(&table, log, txn, dw_entry_table_hash(log, txn));
        assert_non_null(entry);
        assert_int_equal(entry->entry.first, i + 1);
        assert_true(i >= KEPT || entry == kept[i]);
    }
    dw_entry_table_close(&table);
}

static void every_part_of_the_key_counts(void **state)
{
    struct dw_entry_table table;
    struct dw_txn_id txn = {.coordinator = 1, .incarnation = 2, .sequence = 3};
    (void)state;
    assert_int_equal(dw_entry_table_init(&table), DW_OK);
    uint64_t hash = dw_entry_table_hash(4, txn);
    assert_non_null(dw_entry_table_insert(&table, 4, txn, hash));
    /* With the same hash on purpose: only the comparison of the keys can tell them apart. */
    assert_non_null(dw_entry_table_find(&table, 4, txn, hash));
    assert_null(dw_entry_table_find(&table, 5, txn, hash));
    struct dw_txn_id other = txn;
    other.coordinator++;
    assert_null(dw_entry_table_find(&table, 4, other, hash));
    other = txn;
    other.incarnation++;
    assert_null(dw_entry_table_find(&table, 4, other, hash));
    other = txn;
    other.sequence++;
    assert_null(dw_entry_table_find(&table, 4, other, hash));
    dw_entry_table_close(&table);
}

static void an_entry_takes_at_most_80_bytes(void **state)
{
    enum { ENTRIES = 2000000 };
    struct dw_entry_table table;
    (void)state;
    assert_int_equal(dw_entry_table_init(&table), DW_OK);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        struct dw_txn_id txn = {.coordinator = 1, .incarnation = 1, .sequence = i};
        assert_non_null(dw_entry_table_insert(&table, 0, txn, dw_entry_table_hash(0, txn)));
    }
    assert_true(table.bytes / ENTRIES <= 80);
    assert_true(dw_entry_table_check(&table));
    dw_entry_table_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_stay_where_they_are),
        cmocka_unit_test(every_part_of_the_key_counts),
        cmocka_unit_test(an_entry_takes_at_most_80_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
