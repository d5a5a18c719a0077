/* Does the histogram tell the truth about each value, to 1.6 %, and own up to what it clamped? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "base/random.h"

#define MS UINT64_C(1000000)

static const double percents[] = {0, 0.0001, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.9999, 100};
#define PERCENTS (sizeof percents / sizeof *percents)

static void buckets_meet_without_gap_over_the_whole_range(void **state)
{
    (void)state;
    assert_true(dw_histogram_low_ns(0) == DW_HISTOGRAM_MIN_NS);
    assert_true(dw_histogram_high_ns(DW_HISTOGRAM_BUCKETS - 1) == DW_HISTOGRAM_MAX_NS);
    for (size_t i = 0; i < DW_HISTOGRAM_BUCKETS; i++) {
        uint64_t low = dw_histogram_low_ns(i);
        uint64_t high = dw_histogram_high_ns(i);
        assert_true(low <= high);
        if (i > 0) {
            assert_true(low == dw_histogram_high_ns(i - 1) + 1);
        }
    }
}

static void both_edges_of_every_bucket_lie_in_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < DW_HISTOGRAM_BUCKETS; i++) {
        assert_int_equal(dw_histogram_index(dw_histogram_low_ns(i)), i);
        assert_int_equal(dw_histogram_index(dw_histogram_high_ns(i)), i);
    }
}

static void no_bucket_is_wider_than_a_64th_of_its_low_edge(void **state)
{
    (void)state;
    for (size_t i = 0; i < DW_HISTOGRAM_BUCKETS; i++) {
        uint64_t low = dw_histogram_low_ns(i);
        uint64_t width = dw_histogram_high_ns(i) - low + 1;
        assert_true(width * 64 <= low);
    }
}

/* Every nanosecond of the first octaves, where a bucket is 8 to 32 of them wide. */
static void every_small_value_lies_within_the_edges_of_its_bucket(void **state)
{
    (void)state;
    for (uint64_t value = DW_HISTOGRAM_MIN_NS; value < 200000; value++) {
        size_t index = dw_histogram_index(value);
        assert_true(dw_histogram_low_ns(index) <= value && value <= dw_histogram_high_ns(index));
    }
}

static void empty_reads_zero(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    size_t cursor = 0;
    struct dw_histogram_bucket bucket;
    assert_true(dw_histogram_check(&histogram));
    assert_true(dw_histogram_percentile_ns(&histogram, 50) == 0);
    assert_true(dw_histogram_mean_ns(&histogram) == 0.0);
    assert_false(dw_histogram_next(&histogram, &cursor, &bucket));
}

static void a_fixed_7_ms_reads_7_ms(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    for (int i = 0; i < 1000; i++) {
        dw_histogram_add(&histogram, 7 * MS);
    }
    for (size_t i = 0; i < PERCENTS; i++) {
        assert_true(dw_histogram_percentile_ns(&histogram, percents[i]) == 7 * MS);
    }
    assert_true(dw_histogram_mean_ns(&histogram) == (double)(7 * MS));
    assert_true(histogram.min_ns == 7 * MS && histogram.max_ns == 7 * MS);

    /* The exported bucket too, which knows nothing of the exact maximum. */
    size_t cursor = 0;
    struct dw_histogram_bucket bucket;
    assert_true(dw_histogram_next(&histogram, &cursor, &bucket));
    assert_true(bucket.low_ns <= 7 * MS && 7 * MS <= bucket.high_ns);
    assert_true((double)(7 * MS - bucket.low_ns) / (double)(7 * MS) < 0.016);
    assert_int_equal(bucket.count, 1000);
    assert_false(dw_histogram_next(&histogram, &cursor, &bucket));
}

static void one_outlier_does_not_move_the_median(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    for (int i = 0; i < 99; i++) {
        dw_histogram_add(&histogram, 7 * MS);
    }
    dw_histogram_add(&histogram, 900 * MS);
    uint64_t median = dw_histogram_percentile_ns(&histogram, 50);
    assert_true(median >= 7 * MS && (median - 7 * MS) * 64 < 7 * MS);
    uint64_t p99 = dw_histogram_percentile_ns(&histogram, 99);
    assert_true(p99 == median);
    assert_true(dw_histogram_percentile_ns(&histogram, 99.0001) == 900 * MS);
    assert_true(dw_histogram_percentile_ns(&histogram, 100) == 900 * MS);
}

static int compare_values(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The rank of a percentile, counted in whole millionths by another route than the histogram's. */
static size_t reference_rank(size_t count, double percent)
{
    uint64_t millionths = (uint64_t)(percent * 10000.0 + 0.5);
    size_t rank = 1;
    while (rank < count && (uint64_t)rank * 1000000 < (uint64_t)count * millionths) {
        rank++;
    }
    return rank;
}

/* Values spread evenly over the logarithm of the range, so that every octave is met. */
static uint64_t draw_in_range(struct dw_random *random)
{
    uint64_t low = DW_HISTOGRAM_MIN_NS << dw_random_below(random, 27);
    return low + dw_random_below(random, low);
}

static void percentiles_hold_against_a_sorted_reference(void **state)
{
    (void)state;
    static uint64_t values[20000];
    const size_t sizes[] = {1, 2, 3, 10, 99, 100, 101, 1000, 20000};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct dw_random random;
        dw_random_init(&random, seed);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            struct dw_histogram histogram = {0};
            for (size_t i = 0; i < sizes[s]; i++) {
                values[i] = draw_in_range(&random);
                dw_histogram_add(&histogram, values[i]);
            }
            assert_true(dw_histogram_check(&histogram));
            qsort(values, sizes[s], sizeof *values, compare_values);
            for (size_t p = 0; p < PERCENTS; p++) {
                uint64_t value = values[reference_rank(sizes[s], percents[p]) - 1];
                uint64_t reading = dw_histogram_percentile_ns(&histogram, percents[p]);
                assert_true(reading >= value);
                assert_true((reading - value) * 64 < value);
            }
        }
    }
}

/* 99.9 % of 1000 is exactly 999, though 0.999 * 1000 isn't in binary. */
static void ranks_do_not_suffer_from_binary_fractions(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    for (int i = 0; i < 999; i++) {
        dw_histogram_add(&histogram, 1 * MS);
    }
    dw_histogram_add(&histogram, 100 * MS);
    assert_true(dw_histogram_percentile_ns(&histogram, 99.9) < 2 * MS);
    assert_true(dw_histogram_percentile_ns(&histogram, 99.91) == 100 * MS);
}

/* Counts beyond what count * 10^6 could hold: merging doubles them. */
static void huge_counts_keep_their_ranks(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    dw_histogram_add(&histogram, 1 * MS);
    dw_histogram_add(&histogram, 3 * MS);
    for (int i = 0; i < 60; i++) {
        struct dw_histogram twin = histogram;
        dw_histogram_merge(&histogram, &twin);
    }
    assert_true(histogram.count == UINT64_C(1) << 61);
    assert_true(dw_histogram_check(&histogram));
    assert_true(dw_histogram_percentile_ns(&histogram, 50) < 2 * MS);
    assert_true(dw_histogram_percentile_ns(&histogram, 50.0001) == 3 * MS);
    assert_true(dw_histogram_mean_ns(&histogram) == (double)(2 * MS));
    assert_true(histogram.sum_carry > 0);
}

static void merging_equals_adding_everything(void **state)
{
    (void)state;
    struct dw_random random;
    dw_random_init(&random, 99);
    struct dw_histogram whole = {0};
    struct dw_histogram parts[3] = {{{0}, 0, 0, 0, 0, 0, 0, 0}};
    for (int i = 0; i < 30000; i++) {
        /* Some values lie outside the range, some overflow the sum. */
        uint64_t value = dw_random_next(&random) >> dw_random_below(&random, 60);
        dw_histogram_add(&whole, value);
        dw_histogram_add(&parts[dw_random_below(&random, 3)], value);
    }
    struct dw_histogram merged = {0};
    for (int i = 0; i < 3; i++) {
        assert_true(dw_histogram_check(&parts[i]));
        dw_histogram_merge(&merged, &parts[i]);
    }
    assert_true(whole.below > 0 && whole.above > 0 && whole.sum_carry > 0);
    assert_memory_equal(&merged, &whole, sizeof whole);
}

static void merging_nothing_changes_nothing(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    struct dw_histogram empty = {0};
    dw_histogram_add(&histogram, 5 * MS);
    struct dw_histogram before = histogram;
    dw_histogram_merge(&histogram, &empty);
    assert_memory_equal(&histogram, &before, sizeof before);
    dw_histogram_merge(&empty, &histogram);
    assert_memory_equal(&empty, &histogram, sizeof before);
}

static void clamped_values_are_counted(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    dw_histogram_add(&histogram, 0);
    dw_histogram_add(&histogram, DW_HISTOGRAM_MIN_NS - 1);
    dw_histogram_add(&histogram, DW_HISTOGRAM_MIN_NS);
    dw_histogram_add(&histogram, DW_HISTOGRAM_MAX_NS);
    dw_histogram_add(&histogram, DW_HISTOGRAM_MAX_NS + 1);
    dw_histogram_add(&histogram, 300 * 1000 * MS);
    assert_int_equal(histogram.count, 6);
    assert_int_equal(histogram.below, 2);
    assert_int_equal(histogram.above, 2);
    assert_int_equal(histogram.buckets[0], 3);
    assert_int_equal(histogram.buckets[DW_HISTOGRAM_BUCKETS - 1], 3);
    assert_true(histogram.min_ns == 0);
    assert_true(histogram.max_ns == 300 * 1000 * MS);
    assert_true(dw_histogram_check(&histogram));
    /* Ranks 1 to 6, each an upper bound of its value. */
    assert_true(dw_histogram_percentile_ns(&histogram, 0) == DW_HISTOGRAM_MIN_NS - 1);
    assert_true(dw_histogram_percentile_ns(&histogram, 33) == DW_HISTOGRAM_MIN_NS - 1);
    assert_true(dw_histogram_percentile_ns(&histogram, 50) == dw_histogram_high_ns(0));
    assert_true(dw_histogram_percentile_ns(&histogram, 66) == DW_HISTOGRAM_MAX_NS);
    assert_true(dw_histogram_percentile_ns(&histogram, 67) == 300 * 1000 * MS);
    assert_true(dw_histogram_percentile_ns(&histogram, 100) == 300 * 1000 * MS);
}

static void only_tiny_values_never_read_more_than_the_largest(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    dw_histogram_add(&histogram, 3);
    dw_histogram_add(&histogram, 5);
    assert_true(dw_histogram_percentile_ns(&histogram, 100) == 5);
    assert_true(dw_histogram_mean_ns(&histogram) == 4.0);
}

static void the_mean_is_exact_also_past_64_bits(void **state)
{
    (void)state;
    struct dw_histogram histogram = {0};
    for (int i = 0; i < 8; i++) {
        dw_histogram_add(&histogram, UINT64_C(1) << 63);
    }
    assert_int_equal(histogram.sum_carry, 4);
    assert_int_equal(histogram.sum_ns, 0);
    assert_true(dw_histogram_mean_ns(&histogram) == 0x1.0p63);
}

static void iteration_exports_every_count_in_order(void **state)
{
    (void)state;
    struct dw_random random;
    dw_random_init(&random, 5);
    struct dw_histogram histogram = {0};
    for (int i = 0; i < 5000; i++) {
        dw_histogram_add(&histogram, draw_in_range(&random));
    }
    uint64_t count = 0;
    uint64_t last_high = 0;
    size_t cursor = 0;
    struct dw_histogram_bucket bucket;
    while (dw_histogram_next(&histogram, &cursor, &bucket)) {
        assert_true(bucket.count > 0);
        assert_true(bucket.low_ns > last_high && bucket.high_ns >= bucket.low_ns);
        assert_true(bucket.low_us * 1000.0 > (double)bucket.low_ns - 0.01);
        assert_true(bucket.low_us * 1000.0 < (double)bucket.low_ns + 0.01);
        assert_true(histogram.buckets[dw_histogram_index(bucket.low_ns)] == bucket.count);
        last_high = bucket.high_ns;
        count += bucket.count;
    }
    assert_true(count == histogram.count);
    assert_false(dw_histogram_next(&histogram, &cursor, &bucket));
}

static void check_rejects_counts_that_disagree(void **state)
{
    (void)state;
    struct dw_histogram good = {0};
    dw_histogram_add(&good, 10);
    dw_histogram_add(&good, 5 * MS);
    assert_true(dw_histogram_check(&good));
    struct dw_histogram bad = good;
    bad.count++;
    assert_false(dw_histogram_check(&bad));
    bad = good;
    bad.below = 2;
    assert_false(dw_histogram_check(&bad));
    bad = good;
    bad.below = 0;
    assert_false(dw_histogram_check(&bad));
    bad = good;
    bad.above = 1;
    assert_false(dw_histogram_check(&bad));
    bad = good;
    bad.max_ns = 1;
    assert_false(dw_histogram_check(&bad));
    struct dw_histogram not_empty = {0};
    not_empty.sum_ns = 1;
    assert_false(dw_histogram_check(&not_empty));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_meet_without_gap_over_the_whole_range),
        cmocka_unit_test(both_edges_of_every_bucket_lie_in_it),
        cmocka_unit_test(no_bucket_is_wider_than_a_64th_of_its_low_edge),
        cmocka_unit_test(every_small_value_lies_within_the_edges_of_its_bucket),
        cmocka_unit_test(empty_reads_zero),
        cmocka_unit_test(a_fixed_7_ms_reads_7_ms),
        cmocka_unit_test(one_outlier_does_not_move_the_median),
        cmocka_unit_test(percentiles_hold_against_a_sorted_reference),
        cmocka_unit_test(ranks_do_not_suffer_from_binary_fractions),
        cmocka_unit_test(huge_counts_keep_their_ranks),
        cmocka_unit_test(merging_equals_adding_everything),
        cmocka_unit_test(merging_nothing_changes_nothing),
        cmocka_unit_test(clamped_values_are_counted),
        cmocka_unit_test(only_tiny_values_never_read_more_than_the_largest),
        cmocka_unit_test(the_mean_is_exact_also_past_64_bits),
        cmocka_unit_test(iteration_exports_every_count_in_order),
        cmocka_unit_test(check_rejects_counts_that_disagree),
    };
    return cmocka_run_group_tests_name("base_histogram", tests, NULL, NULL);
}
