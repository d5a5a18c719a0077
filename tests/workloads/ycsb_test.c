/* Does YCSB draw what its parameters say: placement, shares, skew, different rows, the same for the same
 * seed? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "workloads/ycsb.h"

enum { DRAWS = 20000 };

/* What a test needs to draw transactions of one node. */
struct fixture {
    struct dw_ycsb ycsb;
    struct dw_random random;
    struct dw_procedure procedure;
    struct dw_round round;
    uint32_t node;
};

static struct dw_ycsb_parameters small(void)
{
    struct dw_ycsb_parameters parameters;
    dw_ycsb.defaults(&parameters);
    parameters.records = 10000;
    parameters.distributed_pct = 50;
    parameters.remote_access_pct = 10;
    return parameters;
}

static void fixture_init(struct fixture *fixture, struct dw_ycsb_parameters parameters, uint32_t nodes,
                         uint32_t node, uint64_t seed)
{
    struct dw_deployment deployment = {.compute_nodes = nodes, .seed = seed};
    char text[DW_WORKLOAD_TEXT];
    assert_int_equal(dw_workload_check(&dw_ycsb, &parameters, &deployment, text, sizeof text), DW_OK);
    dw_ycsb.init(&fixture->ycsb, &parameters, &deployment);
    dw_random_init(&fixture->random, seed);
    fixture->node = node;
}

/* Draws the next transaction and declares its round; checks what holds for every one. */
static void draw(struct fixture *fixture)
{
    dw_ycsb.generate(&fixture->ycsb, &fixture->random, fixture->node, &fixture->procedure);
    assert_int_equal(dw_ycsb.next(&fixture->ycsb, &fixture->procedure, NULL, 0, &fixture->round),
                     DW_PROCEDURE_ACCESS);
    const struct dw_round *round = &fixture->round;
    uint32_t nodes = fixture->ycsb.deployment.compute_nodes;
    assert_int_equal(round->count, fixture->ycsb.parameters.accesses);
    for (uint32_t i = 0; i < round->count; i++) {
        const struct dw_access *access = &round->accesses[i];
        assert_int_equal(access->owner, access->key % nodes);
        assert_true(access->key / nodes < fixture->ycsb.parameters.records);
        for (uint32_t j = 0; j < i; j++) {
            assert_true(access->key != round->accesses[j].key);
        }
    }
    bool elsewhere = (dw_round_owners(round) & ~(UINT64_C(1) << fixture->node)) != 0;
    assert_int_equal(fixture->procedure.distributed, elsewhere);
}

/* `seen` of `draws` lies within five standard deviations of a share: wrong by chance once in 1.7 million. */
static void assert_share(double seen, double draws, double share)
{
    double deviation = sqrt(share * (1 - share) / draws);
    assert_true(fabs(seen / draws - share) <= 5 * deviation);
}

static void one_node_has_no_distributed_transactions(void **state)
{
    (void)state;
    struct fixture fixture;
    struct dw_ycsb_parameters parameters = small();
    parameters.distributed_pct = 100;
    fixture_init(&fixture, parameters, 1, 0, 1);
    for (int i = 0; i < 1000; i++) {
        draw(&fixture);
        assert_false(fixture.procedure.distributed);
    }
}

static void the_share_of_distributed_transactions_is_exact(void **state)
{
    (void)state;
    static const double shares[] = {0, 0.05, 0.5, 0.97, 1};
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        struct fixture fixture;
        struct dw_ycsb_parameters parameters = small();
        parameters.distributed_pct = 100 * shares[s];
        fixture_init(&fixture, parameters, 4, 2, 7);
        unsigned distributed = 0;
        for (int i = 0; i < DRAWS; i++) {
            draw(&fixture);
            distributed += fixture.procedure.distributed;
        }
        assert_share(distributed, DRAWS, shares[s]);
    }
}

/* Of n accesses, with chance p each, n p + (1 - p)^n are remote on average. Their variance is below that of n
 * independent ones, n p (1 - p), plus 1 for the one that is forced. */
static void the_share_of_remote_accesses_is_exact_and_never_zero(void **state)
{
    (void)state;
    static const double shares[] = {0, 0.05, 0.3, 1};
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        struct fixture fixture;
        struct dw_ycsb_parameters parameters = small();
        parameters.distributed_pct = 100;
        parameters.remote_access_pct = 100 * shares[s];
        fixture_init(&fixture, parameters, 4, 0, 8);
        double n = 16, p = shares[s];
        double remote = 0;
        double by_node[4] = {0};
        for (int i = 0; i < DRAWS; i++) {
            draw(&fixture);
            assert_true(fixture.procedure.distributed);
            for (uint32_t a = 0; a < fixture.round.count; a++) {
                remote += fixture.round.accesses[a].owner != 0;
                by_node[fixture.round.accesses[a].owner]++;
            }
        }
        double mean = n * p + pow(1 - p, n);
        double deviation = sqrt((n * p * (1 - p) + 1) / DRAWS);
        assert_true(fabs(remote / DRAWS - mean) <= 5 * deviation);
        for (int node = 1; node < 4; node++) {
            assert_share(by_node[node], remote, 1.0 / 3);
        }
    }
}

static void the_share_of_reads_is_exact(void **state)
{
    (void)state;
    static const double shares[] = {0, 0.5, 0.9, 1};
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        struct fixture fixture;
        struct dw_ycsb_parameters parameters = small();
        parameters.read_pct = 100 * shares[s];
        fixture_init(&fixture, parameters, 2, 1, 9);
        double reads = 0;
        for (int i = 0; i < DRAWS; i++) {
            draw(&fixture);
            for (uint32_t a = 0; a < fixture.round.count; a++) {
                reads += fixture.round.accesses[a].kind == DW_ACCESS_READ;
            }
        }
        assert_share(reads, DRAWS * 16.0, shares[s]);
    }
}

/* The first access of a transaction meets no taken key, so it follows the plain law. Every rank of 50 is
 * compared. */
static void the_skew_over_a_partition_is_exact(void **state)
{
    (void)state;
    static const double thetas[] = {0, 0.5, 0.9, 0.99, 1, 1.2, 2};
    enum { RANKS = 50 };
    for (size_t t = 0; t < sizeof thetas / sizeof *thetas; t++) {
        struct fixture fixture;
        struct dw_ycsb_parameters parameters = small();
        parameters.records = RANKS;
        parameters.accesses = 1;
        parameters.distributed_pct = 0;
        parameters.theta = thetas[t];
        fixture_init(&fixture, parameters, 3, 1, 10);
        unsigned seen[RANKS] = {0};
        for (int i = 0; i < 5 * DRAWS; i++) {
            draw(&fixture);
            seen[fixture.round.accesses[0].key / 3]++;
        }
        double sum = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            sum += pow(rank + 1, -thetas[t]);
        }
        for (int rank = 0; rank < RANKS; rank++) {
            assert_share(seen[rank], 5 * DRAWS, pow(rank + 1, -thetas[t]) / sum);
        }
    }
}

/* Two different rows of three with theta = 1 (weights 6, 3, 2): the second follows the law of what is left.
 */
static void later_accesses_follow_the_law_of_the_free_rows(void **state)
{
    (void)state;
    struct fixture fixture;
    struct dw_ycsb_parameters parameters = small();
    parameters.records = 3;
    parameters.accesses = 2;
    parameters.distributed_pct = 0;
    parameters.theta = 1;
    fixture_init(&fixture, parameters, 1, 0, 11);
    unsigned seen[3][3] = {{0}};
    for (int i = 0; i < DRAWS; i++) {
        draw(&fixture);
        seen[fixture.round.accesses[0].key][fixture.round.accesses[1].key]++;
    }
    static const double weights[3] = {6, 3, 2};
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            double share = a == b ? 0 : weights[a] / 11 * weights[b] / (11 - weights[a]);
            assert_share(seen[a][b], DRAWS, share);
        }
    }
}

/* The same where rejection gives up and the law's tail is drawn from: with theta = 5 the second of three rows
 * is rarely hit while the first is taken (weights 1, 1/32, 1/243). */
static void a_steep_law_is_exact_too(void **state)
{
    (void)state;
    struct fixture fixture;
    struct dw_ycsb_parameters parameters = small();
    parameters.records = 3;
    parameters.accesses = 2;
    parameters.distributed_pct = 0;
    parameters.theta = 5;
    fixture_init(&fixture, parameters, 1, 0, 12);
    unsigned seen[3][3] = {{0}};
    for (int i = 0; i < 5 * DRAWS; i++) {
        draw(&fixture);
        seen[fixture.round.accesses[0].key][fixture.round.accesses[1].key]++;
    }
    static const double weights[3] = {1, 1.0 / 32, 1.0 / 243};
    const double sum = 1 + 1.0 / 32 + 1.0 / 243;
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            double share = a == b ? 0 : weights[a] / sum * weights[b] / (sum - weights[a]);
            assert_share(seen[a][b], 5 * DRAWS, share);
        }
    }
}

/* `draw` asserts that all rows differ; that it ends at all is the point here. */
static void rows_differ_even_if_a_transaction_takes_them_all(void **state)
{
    (void)state;
    static const double thetas[] = {0, 0.99, 1, 3, 20, 100};
    static const uint64_t sizes[] = {1, 16, 128};
    for (size_t t = 0; t < sizeof thetas / sizeof *thetas; t++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            struct fixture fixture;
            struct dw_ycsb_parameters parameters = small();
            parameters.accesses = sizes[s];
            parameters.theta = thetas[t];
            parameters.records = sizes[s];
            fixture_init(&fixture, parameters, 2, 0, 13);
            for (int i = 0; i < 50; i++) {
                draw(&fixture);
            }
            parameters.records = sizes[s] + 1;
            fixture_init(&fixture, parameters, 64, 63, 14);
            for (int i = 0; i < 50; i++) {
                draw(&fixture);
            }
        }
    }
}

static void a_write_changes_one_field_to_new_bytes(void **state)
{
    (void)state;
    struct fixture fixture;
    struct dw_ycsb_parameters parameters = small();
    parameters.read_pct = 0;
    parameters.record_bytes = 1050;
    fixture_init(&fixture, parameters, 2, 0, 15);
    unsigned fields[11] = {0};
    uint8_t before[8] = {0};
    for (int i = 0; i < 1000; i++) {
        draw(&fixture);
        uint32_t used = 0;
        for (uint32_t a = 0; a < fixture.round.count; a++) {
            const struct dw_access *access = &fixture.round.accesses[a];
            assert_true(access->field < 11);
            fields[access->field]++;
            assert_int_equal(access->value_bytes, access->field == 10 ? 50 : 100);
            assert_int_equal(access->value_offset, used);
            used += access->value_bytes;
            const uint8_t *value = dw_round_value(&fixture.round, access);
            assert_memory_not_equal(value, before, sizeof before);
            memcpy(before, value, sizeof before);
        }
        assert_int_equal(used, fixture.round.values_used);
    }
    for (int field = 0; field < 11; field++) {
        assert_share(fields[field], 16000, 1.0 / 11);
    }
}

static void a_procedure_is_one_round_and_then_commits(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, small(), 2, 0, 16);
    dw_ycsb.generate(&fixture.ycsb, &fixture.random, 0, &fixture.procedure);
    struct dw_procedure retry = fixture.procedure;
    assert_int_equal(dw_ycsb.next(&fixture.ycsb, &fixture.procedure, NULL, 0, &fixture.round),
                     DW_PROCEDURE_ACCESS);
    struct dw_round first = fixture.round;
    static const struct dw_access_result results[16] = {{NULL, 0}};
    assert_int_equal(dw_ycsb.next(&fixture.ycsb, &fixture.procedure, results, 16, &fixture.round),
                     DW_PROCEDURE_COMMIT);
    assert_int_equal(dw_ycsb.next(&fixture.ycsb, &retry, NULL, 0, &fixture.round), DW_PROCEDURE_ACCESS);
    assert_memory_equal(first.accesses, fixture.round.accesses, first.count * sizeof *first.accesses);
    assert_memory_equal(first.values, fixture.round.values, first.values_used);
}

static void fields_are_100_bytes_and_at_least_one(void **state)
{
    (void)state;
    static const uint32_t sizes[][3] = {{1, 1, 1},       {99, 1, 99},  {100, 1, 100},    {101, 2, 1},
                                        {1000, 10, 100}, {250, 3, 50}, {12800, 128, 100}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct fixture fixture;
        struct dw_ycsb_parameters parameters = small();
        parameters.record_bytes = sizes[i][0];
        fixture_init(&fixture, parameters, 1, 0, 17);
        assert_int_equal(dw_ycsb.table_count(&fixture.ycsb), 1);
        const struct dw_table *table = dw_ycsb.table(&fixture.ycsb, DW_YCSB_TABLE);
        assert_int_equal(dw_table_row_bytes(table), sizes[i][0]);
        assert_int_equal(table->field_count, sizes[i][1]);
        assert_int_equal(dw_table_field_bytes(table, table->field_count - 1), sizes[i][2]);
        for (uint32_t f = 0; f + 1 < table->field_count; f++) {
            assert_int_equal(dw_table_field_bytes(table, f), 100);
        }
    }
}

static void rows_are_dealt_round_robin_and_depend_on_seed_and_key_alone(void **state)
{
    (void)state;
    struct fixture a, b;
    struct dw_ycsb_parameters parameters = small();
    fixture_init(&a, parameters, 3, 0, 18);
    parameters.accesses = 4;
    parameters.theta = 1;
    fixture_init(&b, parameters, 5, 0, 18);
    assert_int_equal(dw_ycsb.row_count(&a.ycsb, 0, 2), 10000);
    assert_int_equal(dw_ycsb.row_count(&a.ycsb, 0, 3), 0);
    assert_int_equal(dw_ycsb.row_key(&a.ycsb, 0, 2, 0), 2);
    assert_int_equal(dw_ycsb.row_key(&a.ycsb, 0, 2, 9999), 29999);
    uint8_t row[1000], same[1000], other[1000];
    dw_ycsb.fill_row(&a.ycsb, 0, 17, row);
    dw_ycsb.fill_row(&b.ycsb, 0, 17, same);
    assert_memory_equal(row, same, sizeof row);
    dw_ycsb.fill_row(&a.ycsb, 0, 18, other);
    assert_memory_not_equal(row, other, 8);
    fixture_init(&b, parameters, 5, 0, 19);
    dw_ycsb.fill_row(&b.ycsb, 0, 17, other);
    assert_memory_not_equal(row, other, 8);
}

/* One line for an access: kind, owner, key, and for a write field and first bytes. */
static void print_round(const struct dw_round *round, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < round->count; i++) {
        const struct dw_access *access = &round->accesses[i];
        int n;
        if (access->kind == DW_ACCESS_READ) {
            n = snprintf(text + used, size - used, "r %u %u\n", access->owner, (unsigned)access->key);
        } else {
            const uint8_t *value = dw_round_value(round, access);
            n = snprintf(text + used, size - used, "w %u %u.%u %02x%02x\n", access->owner,
                         (unsigned)access->key, access->field, value[0], value[1]);
        }
        assert_true(n > 0 && (size_t)n < size - used);
        used += (size_t)n;
    }
}

/* A change of these means that recorded seeds no longer replay: say so in the message of that change. */
static void the_first_transactions_of_a_seed_never_change(void **state)
{
    (void)state;
    struct fixture fixture;
    struct dw_ycsb_parameters parameters = small();
    parameters.accesses = 6;
    parameters.theta = 0.9;
    fixture_init(&fixture, parameters, 4, 1, 2026);
    static const char *const golden[] = {
        "w 1 1213.6 5ecb\nw 1 89.7 daf7\nr 1 8461\nr 1 5\nw 1 5805.5 1c48\nw 1 4593.7 dc1b\n",
        "r 1 145\nr 1 2133\nw 1 209.6 0d88\nr 1 989\nw 1 2125.3 4aab\nw 1 57.2 6944\n",
        "w 2 1726.2 46ae\nw 1 12065.2 337e\nr 1 101\nw 1 1.3 7abc\nr 1 14605\nw 1 16705.7 22fd\n",
    };
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        char text[512];
        draw(&fixture);
        print_round(&fixture.round, text, sizeof text);
        assert_string_equal(text, golden[i]);
    }
    uint8_t row[1000];
    dw_ycsb.fill_row(&fixture.ycsb, 0, 5, row);
    static const uint8_t golden_row[] = {0xe2, 0x64, 0xf8, 0xba, 0xed, 0xa3, 0x08, 0xd1,
                                         0xd0, 0x0f, 0xc9, 0xb6, 0x81, 0x01, 0xf1, 0x57};
    assert_memory_equal(row, golden_row, sizeof golden_row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_has_no_distributed_transactions),
        cmocka_unit_test(the_share_of_distributed_transactions_is_exact),
        cmocka_unit_test(the_share_of_remote_accesses_is_exact_and_never_zero),
        cmocka_unit_test(the_share_of_reads_is_exact),
        cmocka_unit_test(the_skew_over_a_partition_is_exact),
        cmocka_unit_test(later_accesses_follow_the_law_of_the_free_rows),
        cmocka_unit_test(a_steep_law_is_exact_too),
        cmocka_unit_test(rows_differ_even_if_a_transaction_takes_them_all),
        cmocka_unit_test(a_write_changes_one_field_to_new_bytes),
        cmocka_unit_test(a_procedure_is_one_round_and_then_commits),
        cmocka_unit_test(fields_are_100_bytes_and_at_least_one),
        cmocka_unit_test(rows_are_dealt_round_robin_and_depend_on_seed_and_key_alone),
        cmocka_unit_test(the_first_transactions_of_a_seed_never_change),
    };
    return cmocka_run_group_tests_name("workloads_ycsb", tests, NULL, NULL);
}
