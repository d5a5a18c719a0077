/* Are ids compared, validated and hashed as their header says, and does every kind of message and output have
 * a name of its own? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/limits.h"
#include "core/id.h"
#include "core/protocol.h"

static void ids_differ_if_any_part_does(void **state)
{
    (void)state;
    struct dw_txn_id id = {.coordinator = 3, .incarnation = 2, .sequence = 1};
    struct dw_txn_id others[] = {{2, 2, 1}, {3, 1, 1}, {3, 2, 2}, {3, 2, UINT64_C(1) << 32 | 1}};
    assert_true(dw_txn_id_equal(id, id));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(dw_txn_id_equal(id, others[i]));
        assert_false(dw_txn_id_equal(others[i], id));
        assert_true(dw_txn_id_hash(id) != dw_txn_id_hash(others[i]));
    }
}

static void a_valid_id_has_a_coordinator_in_range_and_an_incarnation(void **state)
{
    (void)state;
    assert_true(dw_txn_id_valid((struct dw_txn_id){.coordinator = 0, .incarnation = 1}));
    assert_true(
        dw_txn_id_valid((struct dw_txn_id){.coordinator = DW_MAX_NODES - 1, .incarnation = UINT32_MAX}));
    assert_false(dw_txn_id_valid((struct dw_txn_id){.coordinator = DW_MAX_NODES, .incarnation = 1}));
    assert_false(dw_txn_id_valid((struct dw_txn_id){.coordinator = 0, .incarnation = 0, .sequence = 9}));
}

/* Consecutive ids must spread over the buckets of a table: 4096 of them over 256, 16 each on average. */
static void hashes_of_consecutive_ids_spread(void **state)
{
    (void)state;
    unsigned low[256] = {0};
    unsigned high[256] = {0};
    for (uint64_t sequence = 0; sequence < 4096; sequence++) {
        uint64_t hash =
            dw_txn_id_hash((struct dw_txn_id){.coordinator = 5, .incarnation = 1, .sequence = sequence});
        low[hash & 255]++;
        high[hash >> 56]++;
    }
    for (unsigned i = 0; i < 256; i++) {
        assert_in_range(low[i], 1, 48);
        assert_in_range(high[i], 1, 48);
    }
}

/* Tables of different machines must agree, and so must tomorrow's with today's. */
static void the_hash_does_not_change(void **state)
{
    (void)state;
    assert_true(dw_txn_id_hash((struct dw_txn_id){.coordinator = 1, .incarnation = 2, .sequence = 3}) ==
                UINT64_C(0x1a00858412db88d7));
}

static void nodes_have_a_bit_each(void **state)
{
    (void)state;
    uint64_t all = 0;
    for (uint32_t node = 0; node < DW_MAX_NODES; node++) {
        assert_int_equal(all & dw_node_bit(node), 0);
        all |= dw_node_bit(node);
    }
    assert_true(all == UINT64_MAX);
}

/* --- names --- */

static const char *message_name(int i)
{
    return dw_message_kind_name((enum dw_message_kind)i);
}

static const char *vote_name(int i)
{
    return dw_vote_name((enum dw_vote)i);
}

static const char *outcome_name(int i)
{
    return dw_outcome_name((enum dw_outcome)i);
}

static const char *out_name(int i)
{
    return dw_out_kind_name((enum dw_out_kind)i);
}

static const char *alarm_name(int i)
{
    return dw_alarm_name((enum dw_alarm)i);
}

static const char *txn_state_name(int i)
{
    return dw_txn_state_name((enum dw_txn_state)i);
}

static const char *timer_name(int i)
{
    return dw_timer_name((enum dw_timer)i);
}

static const char *node_state_name(int i)
{
    return dw_node_state_name((enum dw_node_state)i);
}

static void assert_names(int first, int last, const char *(*name_of)(int))
{
    for (int i = first; i <= last; i++) {
        assert_string_not_equal(name_of(i), "?");
        for (int k = first; k < i; k++) {
            assert_string_not_equal(name_of(i), name_of(k));
        }
    }
    assert_string_equal(name_of(first - 1), "?");
    assert_string_equal(name_of(last + 1), "?");
}

static void everything_has_a_name_of_its_own(void **state)
{
    (void)state;
    assert_names(DW_MSG_VOTE_REQUEST, DW_MSG_INQUIRY_REPLY, message_name);
    assert_names(DW_VOTE_YES, DW_VOTE_REFUSED, vote_name);
    assert_names(DW_OUTCOME_UNKNOWN, DW_OUTCOME_ABORTED, outcome_name);
    assert_names(DW_OUT_SEND, DW_OUT_SCAN, out_name);
    assert_names(DW_ALARM_CONFLICT, DW_ALARM_DISAGREEMENT, alarm_name);
    assert_names(DW_TXN_ABSENT, DW_TXN_STOPPED, txn_state_name);
    assert_names(DW_TIMER_NONE, DW_TIMER_FINISH, timer_name);
    assert_names(DW_NODE_DOWN, DW_NODE_STOPPED, node_state_name);
}

static void protocols_are_found_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(dw_protocol_find("cornus"), &dw_cornus);
    assert_ptr_equal(dw_protocol_find("2pc"), &dw_two_phase);
    assert_null(dw_protocol_find("2PC"));
    assert_null(dw_protocol_find(""));
    unsigned count = 0;
    while (dw_protocol_at(count) != NULL) {
        assert_ptr_equal(dw_protocol_find(dw_protocol_at(count)->name), dw_protocol_at(count));
        count++;
    }
    assert_true(count >= 2);
    assert_null(dw_protocol_at(UINT32_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_differ_if_any_part_does),
        cmocka_unit_test(a_valid_id_has_a_coordinator_in_range_and_an_incarnation),
        cmocka_unit_test(hashes_of_consecutive_ids_spread),
        cmocka_unit_test(the_hash_does_not_change),
        cmocka_unit_test(nodes_have_a_bit_each),
        cmocka_unit_test(everything_has_a_name_of_its_own),
        cmocka_unit_test(protocols_are_found_by_name),
    };
    return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
