/* Does a node serve only after it has fenced and scanned its log, and stop for good when it is fenced itself?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "aborts.h"
#include "base/limits.h"
#include "core/node.h"

/* Takes the node from its start to the named state. */
static struct dw_node node_in(enum dw_node_state state)
{
    struct dw_node node;
    struct dw_update update = {0};
    dw_node_init(&node, 3);
    if (state >= DW_NODE_FENCING) {
        dw_node_start(&node, &update);
    }
    if (state >= DW_NODE_SCANNING) {
        dw_node_fenced(&node, 4, &update);
    }
    if (state >= DW_NODE_SERVING) {
        dw_node_scanned(&node);
    }
    if (state == DW_NODE_STOPPED) {
        dw_node_stop(&node);
    }
    assert_int_equal(node.state, state);
    dw_node_check(&node);
    return node;
}

static void a_node_fences_then_scans_then_serves(void **state)
{
    (void)state;
    struct dw_node node;
    struct dw_update update = {0};
    dw_node_init(&node, 3);
    assert_int_equal(node.incarnation, 0);
    dw_node_start(&node, &update);
    assert_int_equal(update.count, 1);
    assert_int_equal(update.outs[0].kind, DW_OUT_FENCE);
    assert_int_equal(update.outs[0].to, dw_node_bit(3));
    update.count = 0;
    dw_node_fenced(&node, 4, &update);
    assert_int_equal(node.incarnation, 4);
    assert_int_equal(update.count, 1);
    assert_int_equal(update.outs[0].kind, DW_OUT_SCAN);
    assert_int_equal(update.outs[0].to, dw_node_bit(3));
    dw_node_scanned(&node);
    assert_int_equal(node.state, DW_NODE_SERVING);
}

/* The call may be repeated after a time-out. */
static void a_fence_may_be_asked_again(void **state)
{
    (void)state;
    struct dw_node node = node_in(DW_NODE_FENCING);
    struct dw_update update = {0};
    dw_node_start(&node, &update);
    assert_int_equal(update.outs[0].kind, DW_OUT_FENCE);
    assert_int_equal(node.state, DW_NODE_FENCING);
}

static void an_older_reply_is_ignored_in_every_state(void **state)
{
    (void)state;
    for (unsigned i = DW_NODE_SCANNING; i <= DW_NODE_STOPPED; i++) {
        for (uint32_t incarnation = 0; incarnation <= 4; incarnation++) {
            struct dw_node node = node_in((enum dw_node_state)i);
            struct dw_node before = node;
            struct dw_update update = {0};
            dw_node_fenced(&node, incarnation, &update);
            assert_memory_equal(&node, &before, sizeof node);
            assert_int_equal(update.count, 0);
        }
    }
}

/* Of two repeated requests the second one's reply: the scan of the first incarnation says nothing any more,
 * since the fence came after it. */
static void a_newer_reply_before_service_is_adopted_and_scanned_for(void **state)
{
    (void)state;
    struct dw_node node = node_in(DW_NODE_SCANNING);
    struct dw_update update = {0};
    dw_node_fenced(&node, 5, &update);
    assert_int_equal(node.state, DW_NODE_SCANNING);
    assert_int_equal(node.incarnation, 5);
    assert_int_equal(update.count, 1);
    assert_int_equal(update.outs[0].kind, DW_OUT_SCAN);
}

static void a_newer_reply_while_serving_means_that_it_fenced_itself(void **state)
{
    (void)state;
    struct dw_node node = node_in(DW_NODE_SERVING);
    struct dw_update update = {0};
    dw_node_fenced(&node, 5, &update);
    assert_int_equal(node.state, DW_NODE_STOPPED);
    assert_int_equal(node.incarnation, 4);
    assert_int_equal(update.count, 0);
}

static void a_reply_to_a_node_that_is_down_or_stopped_wakes_nobody(void **state)
{
    (void)state;
    static const enum dw_node_state states[] = {DW_NODE_DOWN, DW_NODE_STOPPED};
    for (unsigned i = 0; i < 2; i++) {
        struct dw_node node = node_in(states[i]);
        struct dw_update update = {0};
        dw_node_fenced(&node, 9, &update);
        assert_int_equal(node.state, states[i]);
        assert_int_equal(update.count, 0);
    }
}

static void ids_are_of_this_incarnation_and_never_repeat(void **state)
{
    (void)state;
    struct dw_node node = node_in(DW_NODE_SERVING);
    struct dw_txn_id first = dw_node_next_id(&node);
    struct dw_txn_id second = dw_node_next_id(&node);
    assert_true(dw_txn_id_valid(first) && dw_txn_id_valid(second));
    assert_int_equal(first.coordinator, 3);
    assert_int_equal(first.incarnation, 4);
    assert_true(second.sequence > first.sequence);
}

/* --- what a driver must not do --- */

static void call_start(const void *argument)
{
    struct dw_node node = *(const struct dw_node *)argument;
    struct dw_update update = {0};
    dw_node_start(&node, &update);
}

static void call_scanned(const void *argument)
{
    struct dw_node node = *(const struct dw_node *)argument;
    dw_node_scanned(&node);
}

static void call_next_id(const void *argument)
{
    struct dw_node node = *(const struct dw_node *)argument;
    (void)dw_node_next_id(&node);
}

static void call_check(const void *argument)
{
    dw_node_check(argument);
}

static void steps_out_of_order_are_asserted(void **state)
{
    (void)state;
    for (unsigned i = DW_NODE_DOWN; i <= DW_NODE_STOPPED; i++) {
        struct dw_node node = node_in((enum dw_node_state)i);
        assert_int_equal(aborts(call_start, &node), i != DW_NODE_DOWN && i != DW_NODE_FENCING);
        assert_int_equal(aborts(call_scanned, &node), i != DW_NODE_SCANNING);
        assert_int_equal(aborts(call_next_id, &node), i != DW_NODE_SERVING);
    }
}

static void impossible_nodes_are_asserted(void **state)
{
    (void)state;
    struct dw_node node = node_in(DW_NODE_SERVING);
    assert_false(aborts(call_check, &node));
    node.slot = DW_MAX_NODES;
    assert_true(aborts(call_check, &node));
    node = node_in(DW_NODE_SERVING);
    node.incarnation = 0;
    assert_true(aborts(call_check, &node));
    node = node_in(DW_NODE_SERVING);
    node.state = DW_NODE_STOPPED + 1;
    assert_true(aborts(call_check, &node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_fences_then_scans_then_serves),
        cmocka_unit_test(a_fence_may_be_asked_again),
        cmocka_unit_test(an_older_reply_is_ignored_in_every_state),
        cmocka_unit_test(a_newer_reply_before_service_is_adopted_and_scanned_for),
        cmocka_unit_test(a_newer_reply_while_serving_means_that_it_fenced_itself),
        cmocka_unit_test(a_reply_to_a_node_that_is_down_or_stopped_wakes_nobody),
        cmocka_unit_test(ids_are_of_this_incarnation_and_never_repeat),
        cmocka_unit_test(steps_out_of_order_are_asserted),
        cmocka_unit_test(impossible_nodes_are_asserted),
    };
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
