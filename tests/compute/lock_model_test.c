/* Does the lock table answer like a model so simple that it is plainly right, over random sequences of calls?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "compute/lock_table.h"

enum { OWNERS = 9, ROWS = 12, CAPACITY = 40, STEPS = 20000, SEEDS = 20 };

/* How each owner holds each row. */
struct model {
    enum dw_lock_mode mode[OWNERS][ROWS];
    bool relocked[OWNERS][ROWS];
};

static struct dw_txn_id owner_id(unsigned owner)
{
    return (struct dw_txn_id){.coordinator = owner % 3, .incarnation = 1, .sequence = owner / 3};
}

static struct dw_lock_name row_name(unsigned row)
{
    return (struct dw_lock_name){.table = row % 2, .key = row / 2};
}

static uint32_t model_used(const struct model *model)
{
    uint32_t used = 0;
    for (unsigned o = 0; o < OWNERS; o++) {
        for (unsigned r = 0; r < ROWS; r++) {
            used += model->mode[o][r] != DW_LOCK_NONE;
        }
    }
    return used;
}

static enum dw_lock_result model_take(struct model *model, unsigned owner, unsigned row,
                                      enum dw_lock_mode mode, bool relock)
{
    if (model_used(model) == CAPACITY) {
        return DW_LOCK_FULL;
    }
    model->mode[owner][row] = mode;
    model->relocked[owner][row] = relock;
    return DW_LOCK_GRANTED;
}

static enum dw_lock_result model_acquire(struct model *model, unsigned owner, unsigned row,
                                         enum dw_lock_mode mode)
{
    enum dw_lock_mode held = model->mode[owner][row];
    if (held >= mode) {
        return DW_LOCK_GRANTED;
    }
    for (unsigned o = 0; o < OWNERS; o++) {
        enum dw_lock_mode theirs = model->mode[o][row];
        if (o != owner &&
            (theirs == DW_LOCK_EXCLUSIVE || (theirs == DW_LOCK_SHARED && mode == DW_LOCK_EXCLUSIVE))) {
            return DW_LOCK_CONFLICT;
        }
    }
    if (held == DW_LOCK_SHARED) {
        model->mode[owner][row] = mode;
        return DW_LOCK_GRANTED;
    }
    return model_take(model, owner, row, mode, false);
}

static enum dw_lock_result model_relock(struct model *model, unsigned owner, unsigned row)
{
    for (unsigned o = 0; o < OWNERS; o++) {
        if (model->mode[o][row] != DW_LOCK_NONE && !model->relocked[o][row]) {
            return DW_LOCK_CONFLICT;
        }
    }
    if (model->mode[owner][row] != DW_LOCK_NONE) {
        return DW_LOCK_GRANTED;
    }
    return model_take(model, owner, row, DW_LOCK_EXCLUSIVE, true);
}

static uint32_t model_release(struct model *model, unsigned owner, bool shared_only)
{
    uint32_t released = 0;
    for (unsigned r = 0; r < ROWS; r++) {
        enum dw_lock_mode *mode = &model->mode[owner][r];
        if (*mode != DW_LOCK_NONE && (!shared_only || *mode == DW_LOCK_SHARED)) {
            *mode = DW_LOCK_NONE;
            released++;
        }
    }
    return released;
}

static void compare(const struct model *model, const struct dw_lock_table *table)
{
    assert_int_equal(dw_lock_table_used(table), model_used(model));
    for (unsigned o = 0; o < OWNERS; o++) {
        uint32_t count = 0;
        for (unsigned r = 0; r < ROWS; r++) {
            assert_int_equal(dw_lock_held(table, owner_id(o), row_name(r)), model->mode[o][r]);
            count += model->mode[o][r] != DW_LOCK_NONE;
        }
        assert_int_equal(dw_lock_owner_count(table, owner_id(o)), count);
    }
    for (unsigned r = 0; r < ROWS; r++) {
        struct dw_txn_id holders[OWNERS];
        uint32_t count = dw_lock_holders(table, row_name(r), holders, OWNERS);
        uint32_t expected = 0;
        for (unsigned o = 0; o < OWNERS; o++) {
            expected += model->mode[o][r] != DW_LOCK_NONE;
        }
        assert_int_equal(count, expected);
    }
}

/* Eight of ten calls lock something; most are reads, so that rows gather holders and the table fills. */
static void step(struct model *model, struct dw_lock_table *table, struct dw_random *random)
{
    unsigned owner = (unsigned)dw_random_below(random, OWNERS);
    unsigned row = (unsigned)dw_random_below(random, ROWS);
    unsigned choice = (unsigned)dw_random_below(random, 40);
    if (choice < 36) {
        enum dw_lock_mode mode = choice < 30 ? DW_LOCK_SHARED : DW_LOCK_EXCLUSIVE;
        assert_int_equal(dw_lock_acquire(table, owner_id(owner), row_name(row), mode),
                         model_acquire(model, owner, row, mode));
    } else if (choice < 38) {
        assert_int_equal(dw_lock_relock(table, owner_id(owner), row_name(row)),
                         model_relock(model, owner, row));
    } else if (choice == 38) {
        assert_int_equal(dw_lock_release_shared(table, owner_id(owner)), model_release(model, owner, true));
    } else {
        assert_int_equal(dw_lock_release(table, owner_id(owner)), model_release(model, owner, false));
    }
}

static void the_table_answers_like_the_model(void **state)
{
    (void)state;
    void *memory = malloc(dw_lock_table_bytes(CAPACITY));
    assert_non_null(memory);
    unsigned full = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct model model = {0};
        struct dw_lock_table *table = dw_lock_table_init(memory, CAPACITY);
        struct dw_random random;
        dw_random_init(&random, seed);
        for (int i = 0; i < STEPS / SEEDS; i++) {
            step(&model, table, &random);
            dw_lock_table_check(table);
            compare(&model, table);
            full += dw_lock_table_used(table) == CAPACITY;
        }
    }
    assert_true(full > 0); /* else the test has not seen a full table */
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_answers_like_the_model),
    };
    return cmocka_run_group_tests_name("compute_lock_model", tests, NULL, NULL);
}
