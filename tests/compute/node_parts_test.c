/* Do the small parts of a compute node do what their headers say: cluster file, failpoints, timers,
 * transaction table, command line? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compute/options.h"

/* --- cluster file --- */

static enum dw_error read_text(const char *content, struct cluster *cluster, char *text, size_t text_size)
{
    char path[] = "/tmp/dogwood-cluster-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
    enum dw_error error = cluster_read(path, cluster, text, text_size);
    unlink(path);
    return error;
}

static void a_cluster_file_lists_both_kinds(void **state)
{
    (void)state;
    struct cluster cluster;
    char text[512];
    assert_int_equal(read_text("# nodes\ncompute 1 127.0.0.1:2\n\nstorage 0 h:3 # last\ncompute 0 h:1\n",
                               &cluster, text, sizeof text),
                     DW_OK);
    assert_int_equal(cluster.compute_nodes, 2);
    assert_int_equal(cluster.storage_nodes, 1);
    assert_string_equal(cluster.compute[1], "127.0.0.1:2");
    assert_string_equal(cluster.storage[0], "h:3");
    assert_int_equal(cluster_storage_of(&cluster, 1), 0);
}

static void a_bad_cluster_file_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        const char *says;
    } cases[] = {
        {"compute 0 a:1\nnode 0 b:1\n", "line 2: unknown kind"},
        {"compute x a:1\n", "line 1: the id"},
        {"compute 64 a:1\n", "line 1: the id"},
        {"compute 0\n", "line 1: not three words"},
        {"compute 0 a:1 b\n", "line 1: not three words"},
        {"compute 0 a:1\ncompute 0 a:2\n", "line 2: the id is given twice"},
        {"compute 0 a:1\n", "missing"},
        {"compute 0 a:1\ncompute 2 a:2\nstorage 0 a:3\n", "left out"},
        {"", "missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster cluster;
        char text[512];
        assert_int_not_equal(read_text(cases[i].content, &cluster, text, sizeof text), DW_OK);
        assert_non_null(strstr(text, cases[i].says));
    }
    struct cluster cluster;
    char text[512];
    assert_int_equal(cluster_read("/nowhere/cluster", &cluster, text, sizeof text), DW_ERR_IO);
    assert_non_null(strstr(text, "/nowhere/cluster"));
}

/* --- failpoints --- */

static void a_failpoint_acts_at_its_time_only(void **state)
{
    (void)state;
    struct failpoints failpoints = {0};
    char text[256];
    assert_false(failpoints_reached(&failpoints, FAILPOINT_COORDINATOR_AFTER_VOTES));
    assert_int_equal(failpoints_set(&failpoints, "coordinator-after-votes=error@2", text, sizeof text),
                     DW_OK);
    assert_false(failpoints_reached(&failpoints, FAILPOINT_COORDINATOR_AFTER_VOTES));
    assert_false(failpoints_reached(&failpoints, FAILPOINT_PARTICIPANT_AFTER_REPLY));
    assert_true(failpoints_reached(&failpoints, FAILPOINT_COORDINATOR_AFTER_VOTES));
    assert_false(failpoints_reached(&failpoints, FAILPOINT_COORDINATOR_AFTER_VOTES));
    assert_int_equal(failpoints.points[FAILPOINT_COORDINATOR_AFTER_VOTES].hits, 3);
    assert_int_equal(failpoints_set(&failpoints, "coordinator-after-votes=error", text, sizeof text), DW_OK);
    assert_true(failpoints_reached(&failpoints, FAILPOINT_COORDINATOR_AFTER_VOTES));
    assert_int_equal(failpoints_set(&failpoints, "coordinator-after-votes=off", text, sizeof text), DW_OK);
    assert_false(failpoints_reached(&failpoints, FAILPOINT_COORDINATOR_AFTER_VOTES));
}

static void a_bad_failpoint_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "nowhere=kill",
                                      "coordinator-after-votes",
                                      "coordinator-after-votes=",
                                      "coordinator-after-votes=explode",
                                      "coordinator-after-votes=kill@0",
                                      "coordinator-after-votes=kill@x",
                                      "coordinator-after-votes=kill2",
                                      "coordinator-after-votes=delay",
                                      "coordinator-after-votes=delay:-1",
                                      "coordinator-after-vote=kill"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct failpoints failpoints = {0}, before = {0};
        char text[256];
        assert_int_equal(failpoints_set(&failpoints, bad[i], text, sizeof text), DW_ERR_ARGUMENT);
        assert_memory_equal(&failpoints, &before, sizeof before);
        assert_non_null(strstr(text, "failpoint '"));
    }
}

/* --- timers --- */

static struct dw_txn_id txn(uint64_t sequence)
{
    return (struct dw_txn_id){.coordinator = 1, .incarnation = 1, .sequence = sequence};
}

static void timers_come_back_when_due(void **state)
{
    (void)state;
    struct timers timers = {0};
    struct timer_entry entry;
    assert_int_equal(timers_next_us(&timers), UINT64_MAX);
    for (uint64_t i = 0; i < 1000; i++) {
        timers_arm(&timers, DW_TIMER_VOTES, 1000 + i, txn(i), (uint32_t)i);
        timers_arm(&timers, DW_TIMER_RETRY, 500 + i, txn(i), (uint32_t)i);
    }
    assert_int_equal(timers_next_us(&timers), 500);
    assert_false(timers_pop(&timers, 499, &entry));
    uint64_t popped[DW_TIMER_FINISH + 1] = {0};
    while (timers_pop(&timers, 1250, &entry)) {
        assert_int_equal(entry.txn.sequence, popped[entry.kind]);
        assert_int_equal(entry.attempt, popped[entry.kind]);
        assert_true(entry.due_us <= 1250);
        popped[entry.kind]++;
    }
    assert_int_equal(popped[DW_TIMER_VOTES], 251);
    assert_int_equal(popped[DW_TIMER_RETRY], 751);
    assert_int_equal(timers_next_us(&timers), 1251);
    timers_close(&timers);
}

/* --- the transaction table --- */

static void the_table_finds_what_was_added_and_nothing_else(void **state)
{
    (void)state;
    struct txn_table *table = txn_table_open();
    for (uint64_t i = 0; i < 5000; i++) {
        struct txn_context *context = txn_table_add(table, txn(i));
        assert_non_null(context);
        assert_int_equal(context->machine.state, DW_TXN_ABSENT);
        assert_int_equal(context->redo.size, 0);
        struct dw_change change = {.key = i, .value = (const uint8_t *)"v", .value_bytes = 1};
        assert_int_equal(dw_redo_add(&context->redo, &change), DW_OK);
        if (i % 2 == 1) {
            txn_table_remove(table, context);
        }
    }
    assert_int_equal(txn_table_count(table), 2500);
    for (uint64_t i = 0; i < 5000; i++) {
        struct txn_context *context = txn_table_find(table, txn(i));
        assert_int_equal(context != NULL, i % 2 == 0);
    }
    struct dw_txn_id other = txn(0);
    other.incarnation = 2;
    assert_null(txn_table_find(table, other));
    txn_table_close(table);
}

/* --- the command line --- */

/* The words are copied, since the command line may be changed; they live until the next call. */
static enum options_result read_line(struct options *options, const char *const *words)
{
    static char copies[32][64];
    char *argv[32] = {(char[]){"dogwood-compute"}};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) {
        argv[argc] = copies[argc];
        snprintf(argv[argc], sizeof copies[argc], "%s", words[argc - 1]);
    }
    argv[argc] = NULL;
    optind = 0;
    enum options_result result = options_read(argc, argv, options);
    if (result == OPTIONS_BAD) {
        free(options->parameters);
    }
    return result;
}

static void a_good_command_line_is_taken(void **state)
{
    (void)state;
    struct options options;
    static const char *const words[] = {"--id",
                                        "1",
                                        "--cluster",
                                        "f",
                                        "--run-id",
                                        "r",
                                        "--loop",
                                        "open",
                                        "--rate",
                                        "10.5",
                                        "--batch-accesses",
                                        "off",
                                        "--set",
                                        "theta=0.9",
                                        "--decision-timeout-ms",
                                        "20",
                                        "--protocol",
                                        "2pc",
                                        NULL};
    assert_int_equal(read_line(&options, words), OPTIONS_GOOD);
    assert_int_equal(options.runtime.node, 1);
    assert_ptr_equal(options.runtime.protocol, &dw_two_phase);
    assert_int_equal(options.runtime.loop, LOOP_OPEN);
    assert_false(options.runtime.batch_accesses);
    assert_int_equal(options.runtime.timeout_us[DW_TIMER_DECISION], 20000);
    assert_int_equal(options.runtime.timeout_us[DW_TIMER_RETRY], 20000);
    free(options.parameters);
}

static void a_bad_command_line_is_refused(void **state)
{
    (void)state;
    static const char *const bad[][8] = {
        {NULL},
        {"--id", "1", "--cluster", "f", NULL},
        {"--id", "64", NULL},
        {"--id", "-1", NULL},
        {"--id", NULL},
        {"--threads", "0", NULL},
        {"--protocol", "3pc", NULL},
        {"--workload", "tpcz", NULL},
        {"--set", "theta", NULL},
        {"--set", "thetta=1", NULL},
        {"--set", "theta=-1", NULL},
        {"--loop", "square", NULL},
        {"--rate", "nan", NULL},
        {"--vote-timeout-ms", "0", NULL},
        {"--batch-accesses", "maybe", NULL},
        {"--failpoint", "x=kill", NULL},
        {"--run-id", "", NULL},
        {"--nonsense", NULL},
        {"word", NULL},
        {"--id", "0", "--cluster", "f", "--run-id", "r", "--loop=open", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct options options;
        assert_int_equal(read_line(&options, bad[i]), OPTIONS_BAD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_file_lists_both_kinds),
        cmocka_unit_test(a_bad_cluster_file_is_refused_with_its_line),
        cmocka_unit_test(a_failpoint_acts_at_its_time_only),
        cmocka_unit_test(a_bad_failpoint_is_refused_and_changes_nothing),
        cmocka_unit_test(timers_come_back_when_due),
        cmocka_unit_test(the_table_finds_what_was_added_and_nothing_else),
        cmocka_unit_test(a_good_command_line_is_taken),
        cmocka_unit_test(a_bad_command_line_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
