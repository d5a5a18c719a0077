/* Are a node's figures right? Sums of costs against the network's and the log's own count and against the
 * table of docs/design.md, section 3; times against virtual time; an open loop's books; the end of a load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "small_cluster.h"

/* PLENTY: so many rows that no two transactions meet, with this seed. */
enum { SECOND_US = 1000000, PLENTY = 200000 };

static struct small_cluster *cluster; /* one for each test */

static int set_up(void **state)
{
    cluster = calloc(1, sizeof *cluster);
    assert_non_null(cluster);
    *state = cluster;
    return 0;
}

static int tear_down(void **state)
{
    small_close(*state);
    free(*state);
    return 0;
}

static uint64_t all_aborted(void)
{
    return small_sum(cluster, all_aborted);
}

/* --- costs --- */

/* Whatever the mix: each transaction with n other writers and r readers costs what the table says. */
static void check_costs(bool cornus)
{
    uint64_t with_writers = small_sum(cluster, costs.with_writers);
    uint64_t writers = small_sum(cluster, costs.writers), only_own = small_sum(cluster, costs.only_own);
    uint64_t readers = small_sum(cluster, costs.readers), costed = small_sum(cluster, costs.coordinated);
    assert_int_equal(costed, small_sum(cluster, all_committed));
    assert_int_equal(small_sum(cluster, costs.messages), 3 * writers + 2 * readers);
    assert_int_equal(small_sum(cluster, costs.log_writes), 2 * (writers + with_writers) + only_own);
    assert_int_equal(small_sum(cluster, costs.forced_log_writes),
                     writers + (cornus ? 1 : 2) * with_writers + only_own);
    assert_int_equal(small_sum(cluster, costs.acks), writers);
    assert_int_equal(small_sum(cluster, costs.ends), cornus ? 0 : with_writers);
    assert_int_equal(txn_table_count(cluster->nodes[0].txns), 0);
}

/* With one thread it is node 0's alone, so that no two transactions meet. */
static void run_mix(uint32_t nodes, const char *protocol, double read_pct, uint32_t threads, uint64_t records)
{
    small_open(cluster, nodes, protocol);
    cluster->parameters.read_pct = read_pct;
    cluster->parameters.remote_access_pct = 60;
    cluster->parameters.records = records;
    for (uint32_t i = 0; i < nodes; i++) {
        cluster->options[i].threads = threads;
    }
    small_start(cluster);
    small_begin(cluster, SECOND_US / 10, SECOND_US / 2);
    for (uint32_t i = 1; i < nodes && threads == 1; i++) {
        cluster->nodes[i].load.state = LOAD_DONE;
    }
    small_run(cluster, LOAD_DONE);
}

static void costs_are_those_of_the_table(void **state)
{
    (void)state;
    static const double mixes[] = {0, 50, 100};
    for (unsigned i = 0; i < 12; i++) {
        bool cornus = i % 2 == 0;
        uint32_t nodes = 2 + i / 6; /* n = 1, or up to 2 */
        double read_pct = mixes[i / 2 % 3];
        run_mix(nodes, cornus ? "cornus" : "2pc", read_pct, 1, 1000);
        assert_int_equal(all_aborted(), 0);
        assert_true(small_sum(cluster, costs.coordinated) > 200);
        check_costs(cornus);
        assert_int_equal(cluster->tally.messages, small_sum(cluster, costs.messages));
        assert_int_equal(cluster->tally.log_writes, small_sum(cluster, costs.log_writes));
        if (read_pct == 100) {
            assert_int_equal(small_sum(cluster, costs.log_writes), 0);
            assert_true(small_sum(cluster, costs.readers) >= small_sum(cluster, costs.coordinated));
        } else if (read_pct == 50) {
            assert_true(small_sum(cluster, costs.readers) > 0 && small_sum(cluster, costs.only_own) > 0);
        }
        small_close(cluster);
    }
}

static void what_aborted_costs_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        run_mix(3, i == 0 ? "cornus" : "2pc", 50, 8, 40);
        assert_true(all_aborted() > 100);
        check_costs(i == 0);
        assert_true(cluster->tally.messages > small_sum(cluster, costs.messages));
        small_close(cluster);
    }
}

/* A reader that has answered "still held" is done, though its transaction aborts at another node. */
static void a_readers_answer_costs_nothing_if_the_transaction_aborts(void **state)
{
    (void)state;
    small_open(cluster, 2, "cornus");
    small_start(cluster);
    struct runtime *reader = &cluster->nodes[1];
    struct dw_wire_access access = {.kind = DW_ACCESS_READ, .key = 1};
    struct dw_wire_access_request request = {.txn = {.incarnation = 1, .sequence = 1},
                                             .token = {.accesses = 1},
                                             .accesses = &access,
                                             .access_count = 1};
    executor_on_request(reader, &request);
    struct txn_context *context = txn_table_find(reader->txns, request.txn);
    assert_non_null(context);
    struct dw_message ask = {.kind = DW_MSG_READ_REQUEST, .to = 1, .txn = request.txn};
    struct dw_token token = context->token;
    driver_on_message(reader, &ask, &token);
    assert_int_equal(txn_table_count(reader->txns), 0);
    assert_int_equal(reader->stats.costs.messages, 0);
}

/* --- times --- */

struct release {
    uint64_t sum_us, count, total_us, committed;
};

static struct release run_release(const char *protocol, uint64_t skew_us, uint64_t duration_us)
{
    small_open(cluster, 2, protocol);
    cluster->parameters.read_pct = 0;
    cluster->skew_us[1] = skew_us;
    small_start(cluster);
    small_begin(cluster, SECOND_US / 100, duration_us);
    small_run(cluster, LOAD_DONE);
    struct release release = {.sum_us = small_sum(cluster, release_us),
                              .count = small_sum(cluster, release_count),
                              .total_us = small_sum(cluster, distributed.total_us),
                              .committed = small_sum(cluster, distributed.committed)};
    small_close(cluster);
    return release;
}

/* The other node frees its locks one hop after the answer; what it says of that travels one hop more. */
static void the_last_release_does_not_depend_on_other_clocks(void **state)
{
    (void)state;
    static const uint64_t skews[] = {0, 3600u * (uint64_t)SECOND_US, 7};
    for (unsigned i = 0; i < 6; i++) {
        struct release release = run_release(i % 2 == 0 ? "cornus" : "2pc", skews[i / 2], SECOND_US / 4);
        assert_true(release.committed > 100);
        assert_int_equal(release.count, release.committed);
        assert_int_equal(release.sum_us, release.total_us + release.count * 2 * SMALL_HOP_US);
    }
}

/* Whenever the window ends: also just when an answer comes. */
static void releases_are_those_of_the_transactions_that_count(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        struct release release = run_release("cornus", 0, SECOND_US / 100 + i * SMALL_HOP_US);
        assert_true(release.committed > 5);
        assert_int_equal(release.count, release.committed);
    }
}

/* Its only reader frees its locks after the answer, and nobody hears of it. */
static void a_release_that_nobody_told_is_not_counted(void **state)
{
    (void)state;
    small_open(cluster, 2, "cornus");
    cluster->parameters.read_pct = 100;
    cluster->parameters.accesses = 1;
    cluster->parameters.remote_access_pct = 100;
    small_start(cluster);
    small_begin(cluster, 0, SECOND_US / 10);
    small_run(cluster, LOAD_DONE);
    assert_true(small_sum(cluster, distributed.committed) > 100);
    assert_int_equal(small_sum(cluster, release_count), 0);
}

static void check_parts(const struct class_stats *class)
{
    assert_int_equal(class->execution_us + class->prepare_us + class->commit_us + class->abort_us,
                     class->total_us);
    assert_int_equal(class->latency.count, class->committed);
    assert_int_equal(class->latency.sum_ns, class->total_us * 1000);
}

/* A worker's time is spent once: a transaction begins when its worker takes it, not with the tick. */
static void a_closed_loop_without_aborts_spends_nothing_on_them(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    small_open(cluster, 2, "cornus");
    cluster->parameters.distributed_pct = 50;
    cluster->parameters.records = PLENTY;
    cluster->parameters.accesses = 2;
    cluster->options[0].threads = cluster->options[1].threads = THREADS;
    small_start(cluster);
    small_set_step_us(1);
    small_begin(cluster, 0, SECOND_US / 10);
    small_run(cluster, LOAD_DONE);
    assert_int_equal(all_aborted(), 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct stats *stats = &cluster->nodes[i].stats;
        assert_true(stats->local.committed > 100 && stats->distributed.committed > 100);
        check_parts(&stats->local);
        check_parts(&stats->distributed);
        assert_int_equal(stats->local.abort_us + stats->distributed.abort_us, 0);
        uint64_t spent_us = stats->local.total_us + stats->distributed.total_us;
        assert_true(spent_us <= THREADS * stats->window_us);
        assert_int_equal(stats->backlog.offered + stats->backlog.waiting + stats->backlog.undrained, 0);
    }
}

static void warm_up_leaves_no_trace_in_the_window(void **state)
{
    (void)state;
    small_open(cluster, 2, "cornus");
    cluster->parameters.records = 20;
    cluster->options[0].threads = cluster->options[1].threads = 4;
    small_start(cluster);
    small_begin(cluster, SECOND_US / 10, SECOND_US / 10);
    while (cluster->nodes[0].load.state == LOAD_WARMUP) {
        const struct stats *stats = &cluster->nodes[0].stats;
        assert_int_equal(stats->retries + stats->aborted + stats->window_us + stats->release_count, 0);
        small_hop(cluster);
    }
    assert_true(cluster->nodes[0].stats.all_aborted > 10);
    small_run(cluster, LOAD_DONE);
    assert_true(small_sum(cluster, retries) > 10);
    assert_true(small_sum(cluster, retries) < all_aborted());
    check_parts(&cluster->nodes[0].stats.distributed);
}

/* --- the open loop --- */

static void run_open(double rate_tps)
{
    small_open(cluster, 2, "cornus");
    cluster->parameters.records = 100;
    for (uint32_t i = 0; i < 2; i++) {
        cluster->options[i].loop = LOOP_OPEN;
        cluster->options[i].rate_tps = rate_tps;
        cluster->options[i].threads = 2;
    }
    small_start(cluster);
    small_begin(cluster, SECOND_US / 10, SECOND_US);
    small_run(cluster, LOAD_DRAINING);
}

static void check_books(const struct stats *stats)
{
    uint64_t ended = stats->distributed.committed + stats->local.committed + stats->unknown;
    assert_int_equal(stats->backlog.carried + stats->backlog.offered,
                     ended + stats->backlog.waiting + stats->backlog.unfinished);
    check_parts(&stats->distributed);
    assert_true(stats->distributed.wait_us <= stats->distributed.abort_us);
}

static void an_overloaded_open_loop_tells_what_waits(void **state)
{
    (void)state;
    run_open(100000);
    for (uint32_t i = 0; i < 2; i++) {
        const struct stats *stats = &cluster->nodes[i].stats;
        check_books(stats);
        assert_true(stats->backlog.offered > 95000 && stats->backlog.offered < 105000);
        assert_true(stats->backlog.carried > 9000 && stats->backlog.carried < 11000);
        assert_true(stats->backlog.waiting > 95000);
        assert_true(stats->backlog.waiting_us > SECOND_US * 9 / 10);
        assert_true(stats->backlog.unfinished > 0 && stats->backlog.unfinished <= 2);
        assert_true(stats->distributed.wait_us > 0);
    }
}

static void an_open_loop_below_its_capacity_leaves_little(void **state)
{
    (void)state;
    run_open(200);
    for (uint32_t i = 0; i < 2; i++) {
        const struct stats *stats = &cluster->nodes[i].stats;
        check_books(stats);
        assert_true(stats->backlog.offered > 140 && stats->backlog.offered < 260);
        assert_true(stats->backlog.waiting + stats->backlog.unfinished < 10);
        assert_true(stats->distributed.committed > 130);
    }
}

/* --- the end of a load --- */

static void run_stuck(uint64_t request_timeout_us)
{
    for (uint32_t i = 0; i < 2; i++) {
        cluster->options[i].request_timeout_us = request_timeout_us;
        for (unsigned timer = 0; timer <= DW_TIMER_FINISH; timer++) {
            cluster->options[i].timeout_us[timer] = SECOND_US / 10;
        }
    }
    /* The other node would give up by itself, but not before the load has. */
    cluster->options[1].timeout_us[DW_TIMER_VOTE_REQUEST] = 100u * (uint64_t)SECOND_US;
    small_start(cluster);
    small_begin(cluster, 0, SECOND_US / 10);
}

static struct slot *first_slot(void)
{
    return &cluster->nodes[0].load.slots[0];
}

static void run_until_locked(void)
{
    while (dw_lock_table_used(cluster->nodes[1].locks) == 0 || first_slot()->state != SLOT_EXECUTING) {
        small_hop(cluster);
    }
}

static void finish_node_0(void)
{
    while (cluster->nodes[0].load.state != LOAD_DONE) {
        small_hop(cluster);
    }
}

static void what_executes_when_the_load_gives_up_is_aborted_everywhere(void **state)
{
    (void)state;
    small_open(cluster, 2, "cornus");
    run_stuck(1000u * (uint64_t)SECOND_US);
    cluster->nodes[1].load.state = LOAD_IDLE;
    cluster->mute[1] = true;
    run_until_locked();
    finish_node_0();
    assert_int_equal(first_slot()->state, SLOT_IDLE);
    assert_int_equal(cluster->nodes[0].stats.backlog.undrained, 1);
    assert_int_equal(cluster->nodes[0].stats.backlog.unfinished, 1);
    assert_int_equal(dw_lock_table_used(cluster->nodes[0].locks), 0);
    assert_int_equal(txn_table_count(cluster->nodes[0].txns), 0);
    small_hop(cluster);
    assert_int_equal(small_locks(cluster), 0);
}

static void what_commits_when_the_load_gives_up_ends_without_its_slot(void **state)
{
    (void)state;
    small_open(cluster, 2, "cornus");
    cluster->parameters.read_pct = 0;
    run_stuck(SECOND_US);
    cluster->nodes[1].load.state = LOAD_IDLE;
    cluster->log_is_silent = true;
    finish_node_0();
    assert_int_equal(first_slot()->state, SLOT_IDLE);
    assert_int_equal(cluster->nodes[0].stats.all_unknown, 1);
    assert_int_equal(cluster->nodes[0].stats.unknown, 0);
    assert_true(small_locks(cluster) > 0); /* in doubt */
    cluster->log_is_silent = false;
    for (unsigned i = 0; i < 5000; i++) {
        small_hop(cluster);
    }
    assert_int_equal(small_locks(cluster), 0);
    /* The next load knows nothing of it. */
    assert_int_equal(load_begin(&cluster->nodes[0], 0, 1), DW_OK);
    assert_int_equal(cluster->nodes[0].load.begun, 0);
    small_hop(cluster);
    assert_int_equal(cluster->nodes[0].stats.distributed.committed, 0);
    assert_int_equal(cluster->nodes[0].stats.release_count, 0);
}

/* An acknowledgement that comes while the next load runs. */
static void a_release_counts_in_its_own_load_only(void **state)
{
    (void)state;
    small_open(cluster, 2, "2pc");
    cluster->parameters.read_pct = 0;
    run_stuck(SECOND_US / 10);
    cluster->nodes[1].load.state = LOAD_IDLE;
    while (cluster->nodes[0].stats.all_committed == 0) {
        small_hop(cluster);
    }
    cluster->mute[1] = true;
    finish_node_0();
    assert_true(cluster->nodes[0].stats.backlog.undrained > 0);
    assert_int_equal(cluster->nodes[0].stats.distributed.committed, 1);
    assert_int_equal(cluster->nodes[0].stats.release_count, 0);
    cluster->mute[1] = false;
    assert_int_equal(load_begin(&cluster->nodes[0], 0, 1), DW_OK);
    finish_node_0();
    assert_int_equal(cluster->nodes[0].stats.backlog.undrained, 0);
    assert_int_equal(cluster->nodes[0].stats.release_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(costs_are_those_of_the_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_aborted_costs_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_readers_answer_costs_nothing_if_the_transaction_aborts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_last_release_does_not_depend_on_other_clocks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(releases_are_those_of_the_transactions_that_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_release_that_nobody_told_is_not_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_loop_without_aborts_spends_nothing_on_them, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(warm_up_leaves_no_trace_in_the_window, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_overloaded_open_loop_tells_what_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_open_loop_below_its_capacity_leaves_little, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_executes_when_the_load_gives_up_is_aborted_everywhere, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_commits_when_the_load_gives_up_ends_without_its_slot, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_release_counts_in_its_own_load_only, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
