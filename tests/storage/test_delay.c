/* Does a delay say what was asked for: spelling, ranges, and the mean and shape of what is drawn? */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "storage/delay.h"

static void good_specs_are_read(void **state)
{
    static const struct {
        const char *spec;
        enum dw_delay_distribution distribution;
        double mean_ms, parameter;
    } cases[] = {
        {"0", DW_DELAY_CONSTANT, 0, 0},
        {"2.5", DW_DELAY_CONSTANT, 2.5, 0},
        {"60000:constant", DW_DELAY_CONSTANT, 60000, 0},
        {"8:uniform", DW_DELAY_UNIFORM, 8, 8},
        {"8:uniform:2", DW_DELAY_UNIFORM, 8, 2},
        {"8:uniform:0", DW_DELAY_UNIFORM, 8, 0},
        {"3:exponential", DW_DELAY_EXPONENTIAL, 3, 0},
        {"3:lognormal", DW_DELAY_LOGNORMAL, 3, 0.5},
        {"3:lognormal:1.25", DW_DELAY_LOGNORMAL, 3, 1.25},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dw_delay delay;
        char text[256];
        assert_int_equal(dw_delay_parse(cases[i].spec, &delay, text, sizeof text), DW_OK);
        assert_int_equal(delay.distribution, cases[i].distribution);
        assert_true(delay.mean_ms == cases[i].mean_ms);
        assert_true(delay.parameter == cases[i].parameter);
        /* What passed once passes again. */
        assert_int_equal(dw_delay_check(&delay, text, sizeof text), DW_OK);
    }
}

static void bad_specs_are_refused_by_name(void **state)
{
    static const struct {
        const char *spec, *names;
    } cases[] = {
        {"", "mean"},
        {"x", "mean"},
        {" 1", "mean"},
        {"1ms", "mean"},
        {"nan", "mean"},
        {"inf", "mean"},
        {"-1", "mean"},
        {"60001", "60000"},
        {"1:", "distribution"},
        {"1:normal", "distribution"},
        {"1:averyveryverylongname", "distribution"},
        {"1:constant:", "parameter"},
        {"1:constant:1", "constant"},
        {"1:exponential:2", "exponential"},
        {"1:uniform:2", "half width"},
        {"1:uniform:-1", "half width"},
        {"1:lognormal:-0.1", "sigma"},
        {"1:lognormal:9", "sigma"},
        {"1:uniform:1:1", "parameter"},
        {"1:uniform:nan", "parameter"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dw_delay delay = {.mean_ms = 7};
        char text[256] = "";
        assert_int_not_equal(dw_delay_parse(cases[i].spec, &delay, text, sizeof text), DW_OK);
        assert_non_null(strstr(text, cases[i].names));
        assert_null(strchr(text, '\n'));
        assert_true(delay.mean_ms == 7);
    }
}

/* The mean of so many draws lies within 2 % of what was asked for, and none is outside [low, high]. */
static void check_draws(const char *spec, double low_ms, double high_ms, double deviation_ms)
{
    enum { DRAWS = 200000 };
    struct dw_delay delay;
    struct dw_random random;
    char text[256];
    double sum = 0, squares = 0;
    assert_int_equal(dw_delay_parse(spec, &delay, text, sizeof text), DW_OK);
    dw_random_init(&random, 7);
    for (int i = 0; i < DRAWS; i++) {
        double ms = (double)dw_delay_draw(&delay, &random) / 1000;
        assert_true(ms >= low_ms && ms <= high_ms);
        sum += ms;
        squares += ms * ms;
    }
    double mean = sum / DRAWS;
    double deviation = sqrt(fmax(0, squares / DRAWS - mean * mean));
    assert_true(fabs(mean - delay.mean_ms) <= 0.02 * delay.mean_ms);
    assert_true(fabs(deviation - deviation_ms) <= 0.05 * delay.mean_ms);
}

static void draws_have_the_mean_and_the_spread(void **state)
{
    (void)state;
    check_draws("0", 0, 0, 0);
    check_draws("4", 4, 4, 0);
    check_draws("4:uniform", 0, 8, 4 / sqrt(3));
    check_draws("4:uniform:1", 3, 5, 1 / sqrt(3));
    check_draws("4:exponential", 0, 1000, 4);
    check_draws("4:lognormal", 0, 1000, 4 * sqrt(exp(0.25) - 1));
    check_draws("4:lognormal:1", 0, 10000, 4 * sqrt(exp(1) - 1));
}

static void the_same_seed_draws_the_same(void **state)
{
    struct dw_delay delay = {.distribution = DW_DELAY_LOGNORMAL, .mean_ms = 1, .parameter = 0.5};
    struct dw_random a, b;
    (void)state;
    dw_random_init(&a, 3);
    dw_random_init(&b, 3);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(dw_delay_draw(&delay, &a), dw_delay_draw(&delay, &b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_specs_are_read),
        cmocka_unit_test(bad_specs_are_refused_by_name),
        cmocka_unit_test(draws_have_the_mean_and_the_spread),
        cmocka_unit_test(the_same_seed_draws_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
