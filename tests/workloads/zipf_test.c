/* Does the sampler follow the power law exactly, for any theta, over all ranks and over their tail? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "workloads/zipf.h"

enum { MAX_RANKS = 2000, DRAWS = 200000 };

static const double thetas[] = {0, 0.3, 0.5, 0.9, 0.99, 1 - 1e-9, 1, 1 + 1e-9, 1.2, 2, 5, 50, 100};

/* The exact law over the ranks from `first` on; each weight is relative to the first, lest a steep one
 * underflows. */
static void exact_law(double *law, uint64_t first, uint64_t count, double theta)
{
    double sum = 0;
    for (uint64_t rank = count; rank-- > first;) {
        law[rank] = pow((double)(rank + 1) / (double)(first + 1), -theta);
        sum += law[rank];
    }
    for (uint64_t rank = first; rank < count; rank++) {
        law[rank] /= sum;
    }
}

/* The sum over cells of (seen - expected)^2 / expected. Neighbouring ranks are put together until a cell
 * expects at least 20, so that the sum follows the chi-squared law; *cells tells how many there were. */
static double chi_squared(const unsigned *seen, const double *law, uint64_t first, uint64_t count,
                          unsigned *cells)
{
    double sum = 0;
    double expected = 0;
    double got = 0;
    double left = DRAWS;
    *cells = 0;
    for (uint64_t rank = first; rank < count; rank++) {
        expected += law[rank] * DRAWS;
        got += seen[rank];
        bool last = rank == count - 1;
        if (last || (expected >= 20 && left - expected >= 20)) {
            sum += expected > 0 ? (got - expected) * (got - expected) / expected : 0;
            left -= expected;
            expected = 0;
            got = 0;
            ++*cells;
        }
    }
    return sum;
}

/* Wilson and Hilferty: for chi-squared with k degrees of freedom, (x / k)^(1/3) is about normal with mean 1 -
 * 2 / 9k and variance 2 / 9k. Five standard deviations: a right sampler passes it with a chance of 1 - 3e-7.
 */
static double chi_squared_limit(unsigned degrees)
{
    double k = degrees;
    double root = 1 - 2 / (9 * k) + 5 * sqrt(2 / (9 * k));
    return k * root * root * root;
}

static void follows_the_law(uint64_t first, uint64_t count, double theta)
{
    static double law[MAX_RANKS];
    static unsigned seen[MAX_RANKS];
    memset(seen, 0, sizeof seen);
    exact_law(law, first, count, theta);
    struct dw_zipf zipf;
    dw_zipf_init(&zipf, count, theta);
    struct dw_random random;
    dw_random_init(&random, 12345 + first);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t rank = first == 0 ? dw_zipf_draw(&zipf, &random) : dw_zipf_draw_from(&zipf, &random, first);
        assert_true(rank >= first && rank < count);
        seen[rank]++;
    }
    unsigned cells;
    double sum = chi_squared(seen, law, first, count, &cells);
    if (cells > 1 && sum >= chi_squared_limit(cells - 1)) {
        fail_msg("first %u of %u, theta %g: chi-squared %.1f over %u cells", (unsigned)first, (unsigned)count,
                 theta, sum, cells);
    }
}

static void draws_follow_the_law_for_every_theta(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof thetas / sizeof *thetas; i++) {
        follows_the_law(0, 1000, thetas[i]);
        follows_the_law(0, 16, thetas[i]);
    }
}

static void draws_from_a_later_rank_follow_the_rest_of_the_law(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof thetas / sizeof *thetas; i++) {
        follows_the_law(1, 1000, thetas[i]);
        follows_the_law(15, 200, thetas[i]);
        follows_the_law(100, 110, thetas[i]);
    }
}

static void two_ranks_and_one_are_enough(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof thetas / sizeof *thetas; i++) {
        follows_the_law(0, 2, thetas[i]);
        follows_the_law(0, 1, thetas[i]);
        follows_the_law(999, 1000, thetas[i]);
    }
}

/* Over so many ranks that no table could be made: the share of the lowest thousandth, for theta = 1, is the
 * ratio of two harmonic numbers, H(n) = ln n + 0.5772... + 1 / 2n. */
static void a_huge_range_needs_no_table(void **state)
{
    (void)state;
    const uint64_t count = UINT64_C(1000000000);
    struct dw_zipf zipf;
    dw_zipf_init(&zipf, count, 1);
    struct dw_random random;
    dw_random_init(&random, 99);
    unsigned low = 0;
    for (int i = 0; i < DRAWS; i++) {
        low += dw_zipf_draw(&zipf, &random) < 1000000;
    }
    const double euler = 0.5772156649015329;
    double share = (log(1e6) + euler) / (log(1e9) + euler);
    double deviation = sqrt(share * (1 - share) / DRAWS);
    assert_true(fabs((double)low / DRAWS - share) < 5 * deviation);
}

/* A theta just beside 1 must give what 1 gives: the power law's integral changes its form there. */
static void theta_one_is_no_special_case(void **state)
{
    (void)state;
    struct dw_zipf at, beside;
    dw_zipf_init(&at, 100000, 1);
    dw_zipf_init(&beside, 100000, 1 + 1e-12);
    struct dw_random a, b;
    dw_random_init(&a, 5);
    dw_random_init(&b, 5);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(dw_zipf_draw(&at, &a), dw_zipf_draw(&beside, &b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_follow_the_law_for_every_theta),
        cmocka_unit_test(draws_from_a_later_rank_follow_the_rest_of_the_law),
        cmocka_unit_test(two_ranks_and_one_are_enough),
        cmocka_unit_test(a_huge_range_needs_no_table),
        cmocka_unit_test(theta_one_is_no_special_case),
    };
    return cmocka_run_group_tests_name("workloads_zipf", tests, NULL, NULL);
}
