/* Does the lock table grant, refuse, upgrade, share and free as two-phase locking with NO_WAIT and recovery
 * need? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "compute/lock_table.h"

enum { CAPACITY = 8 };

static struct dw_txn_id txn(uint64_t sequence)
{
    return (struct dw_txn_id){.coordinator = 1, .incarnation = 2, .sequence = sequence};
}

static struct dw_lock_name row(uint64_t key)
{
    return (struct dw_lock_name){.table = 3, .key = key};
}

static struct dw_lock_table *make(uint32_t capacity)
{
    void *memory = malloc(dw_lock_table_bytes(capacity));
    assert_non_null(memory);
    return dw_lock_table_init(memory, capacity);
}

static int setup(void **state)
{
    *state = make(CAPACITY);
    return 0;
}

static int teardown(void **state)
{
    dw_lock_table_check(*state);
    free(*state);
    return 0;
}

static void expect(struct dw_lock_table *table, uint64_t sequence, uint64_t key, enum dw_lock_mode mode,
                   enum dw_lock_result result)
{
    assert_int_equal(dw_lock_acquire(table, txn(sequence), row(key), mode), result);
    dw_lock_table_check(table);
}

static void readers_share_and_writers_exclude(void **state)
{
    expect(*state, 1, 7, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 2, 7, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 3, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_CONFLICT);
    expect(*state, 3, 8, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    expect(*state, 1, 8, DW_LOCK_SHARED, DW_LOCK_CONFLICT);
    expect(*state, 1, 8, DW_LOCK_EXCLUSIVE, DW_LOCK_CONFLICT);
    assert_int_equal(dw_lock_table_used(*state), 3);
    struct dw_txn_id holders[4];
    assert_int_equal(dw_lock_holders(*state, row(7), holders, 4), 2);
    assert_true(dw_txn_id_equal(holders[0], txn(2)) && dw_txn_id_equal(holders[1], txn(1)));
    assert_int_equal(dw_lock_holders(*state, row(7), holders, 1), 2);
    assert_int_equal(dw_lock_holders(*state, row(9), holders, 4), 0);
}

static void table_and_key_and_whole_id_name_a_lock(void **state)
{
    struct dw_lock_table *table = *state;
    struct dw_lock_name other_table = {.table = 4, .key = 7};
    struct dw_txn_id owners[] = {{.coordinator = 1, .incarnation = 2, .sequence = 1},
                                 {.coordinator = 2, .incarnation = 2, .sequence = 1},
                                 {.coordinator = 1, .incarnation = 3, .sequence = 1}};
    expect(table, 1, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_acquire(table, txn(2), other_table, DW_LOCK_EXCLUSIVE), DW_LOCK_GRANTED);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(dw_lock_acquire(table, owners[i], row(7), DW_LOCK_SHARED), DW_LOCK_CONFLICT);
        assert_int_equal(dw_lock_release(table, owners[i]), 0);
    }
    assert_int_equal(dw_lock_held(table, owners[0], row(7)), DW_LOCK_EXCLUSIVE);
}

static void locks_are_reentrant(void **state)
{
    expect(*state, 1, 7, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 1, 7, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 2, 8, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    expect(*state, 2, 8, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    expect(*state, 2, 8, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_held(*state, txn(2), row(8)), DW_LOCK_EXCLUSIVE);
    assert_int_equal(dw_lock_table_used(*state), 2);
    assert_int_equal(dw_lock_release(*state, txn(2)), 1);
    assert_int_equal(dw_lock_held(*state, txn(2), row(8)), DW_LOCK_NONE);
}

static void a_sole_reader_upgrades(void **state)
{
    expect(*state, 1, 7, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 1, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_held(*state, txn(1), row(7)), DW_LOCK_EXCLUSIVE);
    expect(*state, 2, 7, DW_LOCK_SHARED, DW_LOCK_CONFLICT);
}

static void a_refused_upgrade_leaves_the_shared_lock(void **state)
{
    expect(*state, 1, 7, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 2, 7, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 1, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_CONFLICT);
    assert_int_equal(dw_lock_held(*state, txn(1), row(7)), DW_LOCK_SHARED);
    assert_int_equal(dw_lock_release(*state, txn(2)), 1);
    expect(*state, 1, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
}

static void release_frees_all_of_one_owner_only(void **state)
{
    for (uint64_t key = 0; key < 3; key++) {
        expect(*state, 1, key, DW_LOCK_SHARED, DW_LOCK_GRANTED);
        expect(*state, 2, key, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    }
    expect(*state, 1, 9, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_owner_count(*state, txn(1)), 4);
    assert_int_equal(dw_lock_release(*state, txn(1)), 4);
    dw_lock_table_check(*state);
    assert_int_equal(dw_lock_owner_count(*state, txn(1)), 0);
    assert_int_equal(dw_lock_owner_count(*state, txn(2)), 3);
    assert_int_equal(dw_lock_release(*state, txn(1)), 0);
    expect(*state, 3, 9, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
}

static void release_shared_keeps_what_was_written(void **state)
{
    expect(*state, 1, 0, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 1, 1, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    expect(*state, 1, 2, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    expect(*state, 1, 2, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    expect(*state, 1, 3, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_release_shared(*state, txn(1)), 2);
    dw_lock_table_check(*state);
    assert_int_equal(dw_lock_held(*state, txn(1), row(0)), DW_LOCK_NONE);
    assert_int_equal(dw_lock_held(*state, txn(1), row(1)), DW_LOCK_EXCLUSIVE);
    assert_int_equal(dw_lock_held(*state, txn(1), row(2)), DW_LOCK_EXCLUSIVE);
    assert_int_equal(dw_lock_release_shared(*state, txn(1)), 0);
    assert_int_equal(dw_lock_release(*state, txn(1)), 2);
    assert_int_equal(dw_lock_release_shared(*state, txn(1)), 0);
}

static void several_in_doubt_owners_share_a_row_until_the_last_is_gone(void **state)
{
    struct dw_lock_table *table = *state;
    for (uint64_t owner = 1; owner <= 3; owner++) {
        assert_int_equal(dw_lock_relock(table, txn(owner), row(7)), DW_LOCK_GRANTED);
        assert_int_equal(dw_lock_relock(table, txn(owner), row(7)), DW_LOCK_GRANTED);
        assert_int_equal(dw_lock_held(table, txn(owner), row(7)), DW_LOCK_EXCLUSIVE);
    }
    assert_int_equal(dw_lock_table_used(table), 3);
    static const uint64_t order[] = {2, 1, 3};
    for (int i = 0; i < 3; i++) {
        expect(table, 9, 7, DW_LOCK_SHARED, DW_LOCK_CONFLICT);
        expect(table, 9, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_CONFLICT);
        assert_int_equal(dw_lock_release_shared(table, txn(order[i])), 0);
        assert_int_equal(dw_lock_release(table, txn(order[i])), 1);
    }
    expect(table, 9, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
}

static void relock_does_not_share_with_an_ordinary_holder(void **state)
{
    expect(*state, 1, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    expect(*state, 1, 8, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_relock(*state, txn(2), row(7)), DW_LOCK_CONFLICT);
    assert_int_equal(dw_lock_relock(*state, txn(2), row(8)), DW_LOCK_CONFLICT);
    assert_int_equal(dw_lock_owner_count(*state, txn(2)), 0);
}

/* A hold that recovery took is ordinary again for whoever locks the row next, through the same entries. */
static void a_relocked_hold_is_forgotten_with_its_release(void **state)
{
    assert_int_equal(dw_lock_relock(*state, txn(1), row(7)), DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_release(*state, txn(1)), 1);
    expect(*state, 2, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_relock(*state, txn(1), row(7)), DW_LOCK_CONFLICT);
}

static void a_full_table_says_so_and_changes_nothing(void **state)
{
    struct dw_lock_table *table = *state;
    for (uint64_t key = 0; key < CAPACITY; key++) {
        expect(table, key, key, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    }
    expect(table, 99, 99, DW_LOCK_EXCLUSIVE, DW_LOCK_FULL);
    expect(table, 99, 0, DW_LOCK_SHARED, DW_LOCK_FULL);
    assert_int_equal(dw_lock_relock(table, txn(99), row(99)), DW_LOCK_FULL);
    expect(table, 99, 0, DW_LOCK_EXCLUSIVE, DW_LOCK_CONFLICT);
    expect(table, 0, 0, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_table_used(table), dw_lock_table_capacity(table));
    assert_int_equal(dw_lock_release(table, txn(5)), 1);
    expect(table, 99, 99, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
}

static void a_copy_of_the_bytes_is_a_table_of_its_own(void **state)
{
    expect(*state, 1, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    size_t bytes = dw_lock_table_bytes(CAPACITY);
    struct dw_lock_table *copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, *state, bytes);
    assert_int_equal(dw_lock_release(copy, txn(1)), 1);
    expect(copy, 2, 7, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    assert_int_equal(dw_lock_held(*state, txn(1), row(7)), DW_LOCK_EXCLUSIVE);
    free(copy);
}

static void a_capacity_of_one_works(void **state)
{
    (void)state;
    struct dw_lock_table *table = make(1);
    expect(table, 1, 1, DW_LOCK_EXCLUSIVE, DW_LOCK_GRANTED);
    expect(table, 1, 2, DW_LOCK_SHARED, DW_LOCK_FULL);
    assert_int_equal(dw_lock_release(table, txn(1)), 1);
    expect(table, 2, 2, DW_LOCK_SHARED, DW_LOCK_GRANTED);
    free(table);
}

/* Shards are chosen by the high bits and buckets by the low ones: neighbouring keys must spread in both. */
static void the_hash_spreads_neighbouring_keys(void **state)
{
    (void)state;
    unsigned high[16] = {0};
    unsigned low[16] = {0};
    for (uint64_t key = 0; key < 16000; key++) {
        uint64_t hash = dw_lock_hash(row(key * 4));
        high[hash >> 60]++;
        low[hash & 15]++;
    }
    for (int i = 0; i < 16; i++) { /* 1000 expected; six standard deviations are 184 */
        assert_in_range(high[i], 816, 1184);
        assert_in_range(low[i], 816, 1184);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(readers_share_and_writers_exclude),
        TEST(table_and_key_and_whole_id_name_a_lock),
        TEST(locks_are_reentrant),
        TEST(a_sole_reader_upgrades),
        TEST(a_refused_upgrade_leaves_the_shared_lock),
        TEST(release_frees_all_of_one_owner_only),
        TEST(release_shared_keeps_what_was_written),
        TEST(several_in_doubt_owners_share_a_row_until_the_last_is_gone),
        TEST(relock_does_not_share_with_an_ordinary_holder),
        TEST(a_relocked_hold_is_forgotten_with_its_release),
        TEST(a_full_table_says_so_and_changes_nothing),
        TEST(a_copy_of_the_bytes_is_a_table_of_its_own),
        cmocka_unit_test(a_capacity_of_one_works),
        cmocka_unit_test(the_hash_spreads_neighbouring_keys),
    };
#undef TEST
    return cmocka_run_group_tests_name("compute_lock_table", tests, NULL, NULL);
}
