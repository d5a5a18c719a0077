/* Is a wrong parameter of a workload refused, with one line that names it and what it may be? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "workloads/ycsb.h"

static const struct dw_deployment four_nodes = {.compute_nodes = 4, .seed = 1};

static struct dw_ycsb_parameters defaults(void)
{
    struct dw_ycsb_parameters parameters;
    dw_ycsb.defaults(&parameters);
    return parameters;
}

static void workloads_are_found_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(dw_workload_find("ycsb"), &dw_ycsb);
    assert_ptr_equal(dw_workload_at(0), &dw_ycsb);
    assert_null(dw_workload_at(1));
    assert_null(dw_workload_find("YCSB"));
    assert_null(dw_workload_find(""));
}

static void defaults_are_those_of_the_paper_and_pass(void **state)
{
    (void)state;
    struct dw_ycsb_parameters parameters = defaults();
    char text[DW_WORKLOAD_TEXT] = "";
    assert_int_equal(dw_workload_check(&dw_ycsb, &parameters, &four_nodes, text, sizeof text), DW_OK);
    assert_string_equal(text, "");
    assert_int_equal(parameters.accesses, 16);
    assert_int_equal(parameters.record_bytes, 1000);
    assert_true(parameters.read_pct == 50);
    assert_true(parameters.theta == 0);
}

static void every_parameter_can_be_set_by_name(void **state)
{
    (void)state;
    struct dw_ycsb_parameters parameters = defaults();
    char text[DW_WORKLOAD_TEXT];
    static const char *const pairs[][2] = {
        {"records", "123456"},    {"record_bytes", "250"},      {"accesses", "8"}, {"read_pct", "12.5"},
        {"distributed_pct", "0"}, {"remote_access_pct", "1e1"}, {"theta", "0.99"}};
    assert_int_equal(sizeof pairs / sizeof *pairs, dw_ycsb.parameter_count);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(dw_workload_set(&dw_ycsb, &parameters, pairs[i][0], pairs[i][1], text, sizeof text),
                         DW_OK);
    }
    assert_int_equal(parameters.records, 123456);
    assert_int_equal(parameters.record_bytes, 250);
    assert_int_equal(parameters.accesses, 8);
    assert_true(parameters.read_pct == 12.5);
    assert_true(parameters.distributed_pct == 0);
    assert_true(parameters.remote_access_pct == 10);
    assert_true(parameters.theta == 0.99);
}

struct bad_value {
    const char *name;
    const char *value;
    enum dw_error error;
    const char *text;
};

static void a_wrong_value_is_refused_with_one_line_and_not_set(void **state)
{
    (void)state;
    static const struct bad_value bad[] = {
        {"thetta", "1", DW_ERR_ARGUMENT, "ycsb has no parameter 'thetta'"},
        {"theta", "-0.1", DW_ERR_RANGE, "ycsb: theta must be between 0 and 100, not -0.1"},
        {"theta", "1e999", DW_ERR_RANGE, "ycsb: theta must be between 0 and 100, not 1e999"},
        {"theta", "nan", DW_ERR_ARGUMENT, "ycsb: theta takes a number, not 'nan'"},
        {"theta", "0x1", DW_ERR_ARGUMENT, "ycsb: theta takes a number, not '0x1'"},
        {"theta", "1.5.", DW_ERR_ARGUMENT, "ycsb: theta takes a number, not '1.5.'"},
        {"theta", "", DW_ERR_ARGUMENT, "ycsb: theta takes a number, not ''"},
        {"read_pct", "100.5", DW_ERR_RANGE, "ycsb: read_pct must be between 0 and 100, not 100.5"},
        {"accesses", "0", DW_ERR_RANGE, "ycsb: accesses must be between 1 and 128, not 0"},
        {"accesses", "129", DW_ERR_RANGE, "ycsb: accesses must be between 1 and 128, not 129"},
        {"accesses", "-1", DW_ERR_ARGUMENT, "ycsb: accesses takes a whole number, not '-1'"},
        {"accesses", "1.5", DW_ERR_ARGUMENT, "ycsb: accesses takes a whole number, not '1.5'"},
        {"records", "99999999999999999999999", DW_ERR_RANGE,
         "ycsb: records must be between 1 and 1000000000, not 99999999999999999999999"},
        {"record_bytes", "12801", DW_ERR_RANGE, "ycsb: record_bytes must be between 1 and 12800, not 12801"},
    };
    const struct dw_ycsb_parameters before = defaults();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct dw_ycsb_parameters parameters = before;
        char text[DW_WORKLOAD_TEXT] = "";
        assert_int_equal(dw_workload_set(&dw_ycsb, &parameters, bad[i].name, bad[i].value, text, sizeof text),
                         bad[i].error);
        assert_string_equal(text, bad[i].text);
        assert_memory_equal(&parameters, &before, sizeof before);
    }
}

static void a_long_value_leaves_the_text_one_short_line(void **state)
{
    (void)state;
    struct dw_ycsb_parameters parameters = defaults();
    char value[1000];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    char text[DW_WORKLOAD_TEXT];
    assert_int_equal(dw_workload_set(&dw_ycsb, &parameters, "theta", value, text, sizeof text),
                     DW_ERR_ARGUMENT);
    assert_true(strlen(text) < 100);
    assert_int_equal(dw_workload_set(&dw_ycsb, &parameters, value, "1", text, sizeof text), DW_ERR_ARGUMENT);
    assert_true(strlen(text) < 100);
}

static void expect_refused(struct dw_ycsb_parameters parameters, struct dw_deployment deployment,
                           const char *expected)
{
    char text[DW_WORKLOAD_TEXT] = "";
    assert_int_equal(dw_workload_check(&dw_ycsb, &parameters, &deployment, text, sizeof text), DW_ERR_RANGE);
    assert_string_equal(text, expected);
}

static void what_does_not_fit_together_is_refused(void **state)
{
    (void)state;
    struct dw_ycsb_parameters parameters = defaults();
    parameters.records = 15;
    expect_refused(
        parameters, four_nodes,
        "ycsb: records must be at least accesses (16), not 15: a transaction accesses different rows");
    parameters = defaults();
    parameters.theta = -1;
    expect_refused(parameters, four_nodes, "ycsb: theta must be between 0 and 100, not -1");
    parameters = defaults();
    parameters.record_bytes = 0;
    expect_refused(parameters, four_nodes, "ycsb: record_bytes must be between 1 and 12800, not 0");
    expect_refused(defaults(), (struct dw_deployment){.compute_nodes = 0},
                   "ycsb: the number of compute nodes must be between 1 and 64, not 0");
    expect_refused(defaults(), (struct dw_deployment){.compute_nodes = 65},
                   "ycsb: the number of compute nodes must be between 1 and 64, not 65");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workloads_are_found_by_name),
        cmocka_unit_test(defaults_are_those_of_the_paper_and_pass),
        cmocka_unit_test(every_parameter_can_be_set_by_name),
        cmocka_unit_test(a_wrong_value_is_refused_with_one_line_and_not_set),
        cmocka_unit_test(a_long_value_leaves_the_text_one_short_line),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
    };
    return cmocka_run_group_tests_name("workloads_parameters", tests, NULL, NULL);
}
