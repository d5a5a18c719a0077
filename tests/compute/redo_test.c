/* Does a write set come back as it was written, and is everything else refused? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/random.h"
#include "compute/engine/redo.h"

static void add(struct dw_redo *redo, uint32_t table, uint64_t key, uint32_t field, const char *value)
{
    struct dw_change change = {.table = table,
                               .key = key,
                               .field = field,
                               .value = (const uint8_t *)value,
                               .value_bytes = strlen(value)};
    assert_int_equal(dw_redo_add(redo, &change), DW_OK);
}

static void expect_next(struct dw_redo_reader *reader, uint32_t table, uint64_t key, uint32_t field,
                        const char *value)
{
    struct dw_change change;
    assert_int_equal(dw_redo_next(reader, &change), DW_REDO_CHANGE);
    assert_int_equal(change.table, table);
    assert_int_equal(change.key, key);
    assert_int_equal(change.field, field);
    assert_int_equal(change.value_bytes, strlen(value));
    assert_memory_equal(change.value, value, strlen(value));
}

/* The number of changes, or -1 if the bytes are damaged. Reads from a block of the exact size, so that the
 * address sanitizer sees a step past the end. */
static int count_changes(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size + (size == 0));
    assert_non_null(exact);
    if (size > 0) {
        memcpy(exact, data, size);
    }
    struct dw_redo_reader reader;
    dw_redo_reader_init(&reader, exact, size);
    struct dw_change change;
    enum dw_redo_read read;
    int count = 0;
    while ((read = dw_redo_next(&reader, &change)) == DW_REDO_CHANGE) {
        assert_true(change.value >= exact && change.value + change.value_bytes <= exact + size);
        count++;
    }
    assert_int_equal(dw_redo_next(&reader, &change), read);
    free(exact);
    return read == DW_REDO_END ? count : -1;
}

static void changes_come_back_in_order(void **state)
{
    (void)state;
    struct dw_redo redo = {0};
    add(&redo, 0, 0, 0, "");
    add(&redo, 127, 128, 16383, "x");
    add(&redo, UINT32_MAX, UINT64_MAX, UINT32_MAX, "the longest numbers");
    add(&redo, 0, 0, 0, "again");
    struct dw_redo_reader reader;
    dw_redo_reader_init(&reader, redo.data, redo.size);
    expect_next(&reader, 0, 0, 0, "");
    expect_next(&reader, 127, 128, 16383, "x");
    expect_next(&reader, UINT32_MAX, UINT64_MAX, UINT32_MAX, "the longest numbers");
    expect_next(&reader, 0, 0, 0, "again");
    struct dw_change change;
    assert_int_equal(dw_redo_next(&reader, &change), DW_REDO_END);
    dw_redo_free(&redo);
}

/* The bytes are on disk: a change of the format needs a new number. */
static void the_bytes_are_as_documented(void **state)
{
    (void)state;
    struct dw_redo redo = {0};
    assert_int_equal(count_changes(redo.data, redo.size), 0);
    add(&redo, 1, 300, 2, "ab");
    add(&redo, 0, 5, 0, "c");
    static const uint8_t expected[] = {1, 1, 0xac, 2, 2, 2, 'a', 'b', 0, 5, 0, 1, 'c'};
    assert_int_equal(redo.size, sizeof expected);
    assert_memory_equal(redo.data, expected, sizeof expected);
    dw_redo_clear(&redo);
    assert_int_equal(redo.size, 0);
    add(&redo, 0, 5, 0, "c");
    assert_int_equal(redo.data[0], DW_REDO_FORMAT);
    dw_redo_free(&redo);
    assert_null(redo.data);
}

static void what_is_not_of_the_format_is_damaged(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[16];
        size_t size;
    } bad[] = {
        {{1}, 1},                                        /* no change follows */
        {{0, 0, 0, 0, 0}, 5},                            /* another format */
        {{2, 0, 0, 0, 0}, 5},                            /* another format */
        {{1, 0x80, 0, 0, 0, 0}, 6},                      /* 0 has a shorter form */
        {{1, 0xff, 0xff, 0xff, 0xff, 0x1f, 0, 0, 0}, 9}, /* table of 33 bits */
        {{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0}, 14},    /* key of 65 bits */
        {{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0, 0}, 14}, /* endless key */
        {{1, 0, 0, 0, 1}, 5},                                  /* a value is missing */
        {{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 'x'}, 10}, /* a huge size */
        {{1, 0, 0, 0, 0, 0}, 6},                               /* half a change */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(count_changes(bad[i].bytes, bad[i].size), -1);
    }
}

static void make_random(struct dw_redo *redo, struct dw_random *random)
{
    static const uint8_t values[300] = {9, 9, 9};
    uint64_t count = dw_random_below(random, 6);
    for (uint64_t i = 0; i < count; i++) {
        struct dw_change change = {.table = (uint32_t)dw_random_below(random, 9),
                                   .key = dw_random_next(random) >> dw_random_below(random, 64),
                                   .field = (uint32_t)dw_random_below(random, 200),
                                   .value = values,
                                   .value_bytes = dw_random_below(random, sizeof values)};
        assert_int_equal(dw_redo_add(redo, &change), DW_OK);
    }
}

/* Since every number has one form, whatever is read as sound is byte for byte what writing it gives. */
static void expect_canonical(const uint8_t *data, size_t size)
{
    struct dw_redo again = {0};
    struct dw_redo_reader reader;
    dw_redo_reader_init(&reader, data, size);
    struct dw_change change;
    while (dw_redo_next(&reader, &change) == DW_REDO_CHANGE) {
        assert_int_equal(dw_redo_add(&again, &change), DW_OK);
    }
    assert_int_equal(again.size, size);
    if (size > 0) {
        assert_memory_equal(again.data, data, size);
    }
    dw_redo_free(&again);
}

static void any_bytes_are_read_safely(void **state)
{
    (void)state;
    struct dw_random random;
    dw_random_init(&random, 4);
    int sound = 0;
    for (int i = 0; i < 20000; i++) {
        struct dw_redo redo = {0};
        make_random(&redo, &random);
        uint64_t changes = redo.size == 0 ? 0 : dw_random_below(&random, 4);
        for (uint64_t c = 0; c < changes; c++) {
            redo.data[dw_random_below(&random, redo.size)] = (uint8_t)dw_random_next(&random);
        }
        size_t size = redo.size == 0
                          ? 0
                          : redo.size - dw_random_below(&random, 2) * dw_random_below(&random, redo.size);
        if (count_changes(redo.data, size) >= 0) {
            expect_canonical(redo.data, size);
            sound++;
        }
        dw_redo_free(&redo);
    }
    assert_true(sound > 1000);
}

/* Cut anywhere but between two changes, a write set is damaged; it never reads as a different one. */
static void every_cut_is_seen_or_falls_between_changes(void **state)
{
    (void)state;
    struct dw_redo redo = {0};
    add(&redo, 1, 1000, 2, "first");
    size_t first = redo.size;
    add(&redo, 1, 1001, 3, "second");
    for (size_t size = 0; size <= redo.size; size++) {
        int expected = size == 0 ? 0 : size == first ? 1 : size == redo.size ? 2 : -1;
        assert_int_equal(count_changes(redo.data, size), expected);
    }
    dw_redo_free(&redo);
}

static void a_write_set_is_bounded_and_keeps_what_it_had(void **state)
{
    (void)state;
    struct dw_redo redo = {0};
    uint8_t *value = calloc(1, DW_MAX_REDO + 1);
    assert_non_null(value);
    struct dw_change change = {.value = value, .value_bytes = DW_MAX_REDO + 1};
    assert_int_equal(dw_redo_add(&redo, &change), DW_ERR_TOO_LARGE);
    change.value_bytes = SIZE_MAX;
    assert_int_equal(dw_redo_add(&redo, &change), DW_ERR_TOO_LARGE);
    assert_int_equal(redo.size, 0);
    change.value_bytes = DW_MAX_REDO - 7; /* format, three numbers of 1 byte, one of 3 */
    assert_int_equal(dw_redo_add(&redo, &change), DW_OK);
    assert_int_equal(redo.size, DW_MAX_REDO);
    change.value_bytes = 0;
    assert_int_equal(dw_redo_add(&redo, &change), DW_ERR_TOO_LARGE);
    assert_int_equal(count_changes(redo.data, redo.size), 1);
    dw_redo_free(&redo);
    free(value);
}

static void a_transaction_reads_what_it_wrote(void **state)
{
    (void)state;
    static const struct dw_table schema = {.name = "t", .field_count = 3, .offsets = {0, 2, 5, 6}};
    struct dw_redo redo = {0};
    add(&redo, 0, 7, 1, "xyz");
    add(&redo, 0, 8, 0, "no");
    add(&redo, 1, 7, 0, "no");
    add(&redo, 0, 7, 2, "!");
    add(&redo, 0, 7, 1, "XYZ");
    uint8_t row[] = "aabbbc";
    dw_redo_overlay(&redo, 0, 7, &schema, row);
    assert_string_equal((char *)row, "aaXYZ!");
    dw_redo_overlay(&redo, 0, 9, &schema, row);
    assert_string_equal((char *)row, "aaXYZ!");
    dw_redo_free(&redo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_come_back_in_order),
        cmocka_unit_test(the_bytes_are_as_documented),
        cmocka_unit_test(what_is_not_of_the_format_is_damaged),
        cmocka_unit_test(any_bytes_are_read_safely),
        cmocka_unit_test(every_cut_is_seen_or_falls_between_changes),
        cmocka_unit_test(a_write_set_is_bounded_and_keeps_what_it_had),
        cmocka_unit_test(a_transaction_reads_what_it_wrote),
    };
    return cmocka_run_group_tests_name("compute_redo", tests, NULL, NULL);
}
