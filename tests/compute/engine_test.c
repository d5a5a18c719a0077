/* Does an engine load, read and apply as compute/engine/engine.h says, above all in the order of redo? Run
 * for every engine that there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "compute/engine/engine.h"
#include "compute/engine/redo.h"
#include "workloads/ycsb.h"

enum { TABLE = 5, KEY = 42 };

static const struct dw_table schema = {.name = "t", .field_count = 3, .offsets = {0, 2, 5, 6}};

static struct dw_engine *open_engine(void)
{
    struct dw_engine *engine = NULL;
    assert_int_equal(dw_engine_open("memory", &engine), DW_OK);
    return engine;
}

/* An engine with one table and one row, "aabbbc". */
static int setup(void **state)
{
    struct dw_engine *engine = open_engine();
    assert_int_equal(engine->ops->create_table(engine, TABLE, &schema, 1), DW_OK);
    assert_int_equal(engine->ops->insert(engine, TABLE, KEY, (const uint8_t *)"aabbbc"), DW_OK);
    *state = engine;
    return 0;
}

static int teardown(void **state)
{
    struct dw_engine *engine = *state;
    engine->ops->close(engine);
    return 0;
}

static void expect_row(struct dw_engine *engine, const char *expected)
{
    uint8_t row[7] = {0};
    assert_int_equal(engine->ops->read(engine, TABLE, KEY, row), DW_OK);
    assert_string_equal((char *)row, expected);
}

static void add(struct dw_redo *redo, uint32_t table, uint64_t key, uint32_t field, const char *value)
{
    struct dw_change change = {.table = table,
                               .key = key,
                               .field = field,
                               .value = (const uint8_t *)value,
                               .value_bytes = strlen(value)};
    assert_int_equal(dw_redo_add(redo, &change), DW_OK);
}

static void apply(struct dw_engine *engine, uint64_t position, uint32_t field, const char *value,
                  uint32_t refused)
{
    struct dw_redo redo = {0};
    add(&redo, TABLE, KEY, field, value);
    struct dw_applied applied;
    assert_int_equal(engine->ops->apply(engine, position, redo.data, redo.size, &applied), DW_OK);
    assert_int_equal(applied.refused, refused);
    assert_int_equal(applied.changes, 1 - refused);
    dw_redo_free(&redo);
}

static void engines_are_found_by_name(void **state)
{
    (void)state;
    struct dw_engine *engine = NULL;
    assert_string_equal(dw_engine_name_at(0), "memory");
    assert_null(dw_engine_name_at(1));
    assert_int_equal(dw_engine_open("memroy", &engine), DW_ERR_MISSING);
    assert_null(engine);
}

static void what_is_not_there_is_missing(void **state)
{
    struct dw_engine *engine = *state;
    uint8_t row[6];
    assert_int_equal(engine->ops->read(engine, TABLE, KEY + 1, row), DW_ERR_MISSING);
    assert_int_equal(engine->ops->read(engine, TABLE + 1, KEY, row), DW_ERR_MISSING);
    assert_int_equal(engine->ops->read(engine, UINT32_MAX, KEY, row), DW_ERR_MISSING);
    assert_false(engine->ops->contains(engine, TABLE, KEY + 1));
    assert_false(engine->ops->contains(engine, DW_ENGINE_MAX_TABLES, KEY));
    assert_true(engine->ops->contains(engine, TABLE, KEY));
    assert_null(engine->ops->schema(engine, TABLE - 1));
    assert_int_equal(engine->ops->schema(engine, TABLE)->field_count, 3);
}

static void nothing_is_created_twice(void **state)
{
    struct dw_engine *engine = *state;
    assert_int_equal(engine->ops->create_table(engine, TABLE, &schema, 1), DW_ERR_ARGUMENT);
    assert_int_equal(engine->ops->create_table(engine, DW_ENGINE_MAX_TABLES, &schema, 1), DW_ERR_ARGUMENT);
    assert_int_equal(engine->ops->insert(engine, TABLE, KEY, (const uint8_t *)"xxxxxx"), DW_ERR_ARGUMENT);
    assert_int_equal(engine->ops->insert(engine, TABLE + 1, KEY, (const uint8_t *)"xxxxxx"), DW_ERR_ARGUMENT);
    expect_row(engine, "aabbbc");
}

static void a_table_takes_more_rows_than_were_expected(void **state)
{
    struct dw_engine *engine = *state;
    for (uint64_t key = 100; key < 2000; key++) {
        uint8_t row[6] = {(uint8_t)key, (uint8_t)(key >> 8)};
        assert_int_equal(engine->ops->insert(engine, TABLE, key, row), DW_OK);
    }
    for (uint64_t key = 100; key < 2000; key++) {
        uint8_t row[6];
        assert_int_equal(engine->ops->read(engine, TABLE, key, row), DW_OK);
        assert_int_equal(row[0] | row[1] << 8, key);
    }
    expect_row(engine, "aabbbc");
    assert_int_equal(engine->ops->create_table(engine, 0, &schema, 0), DW_OK);
    assert_int_equal(engine->ops->insert(engine, 0, 1, (const uint8_t *)"aabbbc"), DW_OK);
}

static void no_more_rows_can_be_expected_than_memory_has(void **state)
{
    struct dw_engine *engine = *state;
    assert_int_equal(engine->ops->create_table(engine, 0, &schema, UINT64_MAX / 2), DW_ERR_MEMORY);
    assert_null(engine->ops->schema(engine, 0));
    assert_int_equal(engine->ops->create_table(engine, 0, &schema, 1), DW_OK);
}

/* Trap 7: the position of the record with the write set orders redo, whatever the order of the outcomes. */
static void an_older_change_is_refused_also_when_it_resolves_late(void **state)
{
    apply(*state, 20, 1, "new", 0);
    apply(*state, 10, 1, "old", 1);
    expect_row(*state, "aanewc");
    apply(*state, 21, 1, "NEW", 0);
    expect_row(*state, "aaNEWc");
}

/* A write set holds changed fields only: refusing by row would lose the field that the later one didn't
 * change. */
static void an_older_change_of_another_field_is_made(void **state)
{
    apply(*state, 20, 1, "new", 0);
    apply(*state, 10, 0, "OO", 0);
    expect_row(*state, "OOnewc");
    apply(*state, 9, 0, "xx", 1);
    expect_row(*state, "OOnewc");
}

static void the_same_record_may_be_applied_again(void **state)
{
    struct dw_engine *engine = *state;
    struct dw_redo redo = {0};
    add(&redo, TABLE, KEY, 1, "one");
    add(&redo, TABLE, KEY, 2, "!");
    add(&redo, TABLE, KEY, 1, "two");
    for (int i = 0; i < 2; i++) {
        struct dw_applied applied;
        assert_int_equal(engine->ops->apply(engine, 7, redo.data, redo.size, &applied), DW_OK);
        assert_int_equal(applied.changes, 3);
        assert_int_equal(applied.refused, 0);
        expect_row(engine, "aatwo!");
    }
    dw_redo_free(&redo);
}

static void an_unknown_position_is_applied_and_lowers_nothing(void **state)
{
    apply(*state, 0, 1, "one", 0);
    apply(*state, 20, 1, "two", 0);
    apply(*state, 0, 1, "now", 0);
    expect_row(*state, "aanowc");
    apply(*state, 19, 1, "old", 1);
    expect_row(*state, "aanowc");
    apply(*state, UINT64_MAX, 1, "end", 0);
    expect_row(*state, "aaendc");
}

static void expect_refused(struct dw_engine *engine, const struct dw_redo *redo, enum dw_error error)
{
    struct dw_applied applied;
    assert_int_equal(engine->ops->apply(engine, 1, redo->data, redo->size, &applied), error);
    assert_int_equal(applied.changes, 0);
    expect_row(engine, "aabbbc");
}

/* The good change stands first each time: it must not have been made. */
static void a_write_set_that_does_not_fit_is_refused_as_a_whole(void **state)
{
    static const struct {
        uint32_t table;
        uint64_t key;
        uint32_t field;
        const char *value;
        enum dw_error error;
    } bad[] = {
        {TABLE, KEY, 3, "x", DW_ERR_CORRUPT},        {TABLE, KEY, UINT32_MAX, "x", DW_ERR_CORRUPT},
        {TABLE, KEY, 1, "xx", DW_ERR_CORRUPT},       {TABLE, KEY, 1, "xxxx", DW_ERR_CORRUPT},
        {TABLE, KEY + 1, 1, "xxx", DW_ERR_MISSING},  {TABLE + 1, KEY, 1, "xxx", DW_ERR_MISSING},
        {UINT32_MAX, KEY, 1, "xxx", DW_ERR_MISSING},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct dw_redo redo = {0};
        add(&redo, TABLE, KEY, 1, "xxx");
        add(&redo, bad[i].table, bad[i].key, bad[i].field, bad[i].value);
        expect_refused(*state, &redo, bad[i].error);
        dw_redo_free(&redo);
    }
    struct dw_redo redo = {0};
    add(&redo, TABLE, KEY, 1, "xxx");
    redo.size--;
    expect_refused(*state, &redo, DW_ERR_CORRUPT);
    dw_redo_free(&redo);
}

static void no_changes_are_applied_too(void **state)
{
    struct dw_engine *engine = *state;
    struct dw_applied applied;
    assert_int_equal(engine->ops->apply(engine, 5, NULL, 0, &applied), DW_OK);
    assert_int_equal(applied.changes + applied.refused, 0);
}

static void a_write_is_checked_when_it_arrives(void **state)
{
    struct dw_engine *engine = *state;
    assert_int_equal(dw_engine_check_write(engine, TABLE, KEY, 1, 3), DW_OK);
    assert_int_equal(dw_engine_check_write(engine, TABLE, KEY, 1, 2), DW_ERR_ARGUMENT);
    assert_int_equal(dw_engine_check_write(engine, TABLE, KEY, 3, 3), DW_ERR_RANGE);
    assert_int_equal(dw_engine_check_write(engine, TABLE, KEY + 1, 1, 3), DW_ERR_MISSING);
    assert_int_equal(dw_engine_check_write(engine, TABLE + 1, KEY, 1, 3), DW_ERR_MISSING);
}

static void each_node_loads_its_rows_and_no_others(void **state)
{
    (void)state;
    struct dw_ycsb_parameters parameters;
    dw_ycsb.defaults(&parameters);
    parameters.records = 500;
    const struct dw_deployment deployment = {.compute_nodes = 3, .seed = 77};
    static struct dw_ycsb ycsb;
    dw_ycsb.init(&ycsb, &parameters, &deployment);
    struct dw_engine *engine = open_engine();
    assert_int_equal(dw_engine_load(engine, &dw_ycsb, &ycsb, 1), DW_OK);
    for (uint64_t key = 0; key < 1600; key++) {
        uint8_t row[1000], expected[1000];
        bool mine = key % 3 == 1 && key < 1500;
        assert_int_equal(engine->ops->contains(engine, DW_YCSB_TABLE, key), mine);
        if (mine) {
            assert_int_equal(engine->ops->read(engine, DW_YCSB_TABLE, key, row), DW_OK);
            dw_ycsb.fill_row(&ycsb, DW_YCSB_TABLE, key, expected);
            assert_memory_equal(row, expected, sizeof row);
        }
    }
    assert_int_equal(dw_engine_load(engine, &dw_ycsb, &ycsb, 1), DW_ERR_ARGUMENT);
    engine->ops->close(engine);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_are_found_by_name),
        TEST(what_is_not_there_is_missing),
        TEST(nothing_is_created_twice),
        TEST(a_table_takes_more_rows_than_were_expected),
        TEST(no_more_rows_can_be_expected_than_memory_has),
        TEST(an_older_change_is_refused_also_when_it_resolves_late),
        TEST(an_older_change_of_another_field_is_made),
        TEST(the_same_record_may_be_applied_again),
        TEST(an_unknown_position_is_applied_and_lowers_nothing),
        TEST(a_write_set_that_does_not_fit_is_refused_as_a_whole),
        TEST(no_changes_are_applied_too),
        TEST(a_write_is_checked_when_it_arrives),
        cmocka_unit_test(each_node_loads_its_rows_and_no_others),
    };
#undef TEST
    return cmocka_run_group_tests_name("compute_engine", tests, NULL, NULL);
}
