/* Does dw_txn_check see each broken invariant, and does set_state refuse each illegal move? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "aborts.h"
#include "core/protocol.h"

/* A participant that is prepared: its invariants are the richest. */
static struct dw_txn prepared(void)
{
    struct dw_txn txn;
    memset(&txn, 0, sizeof txn);
    txn.id = (struct dw_txn_id){.coordinator = 0, .incarnation = 1, .sequence = 1};
    txn.state = DW_TXN_PREPARED;
    txn.role = DW_TXN_PARTICIPANT;
    txn.timer = DW_TIMER_DECISION;
    txn.flags = DW_TXN_LOCKS | DW_TXN_WRITES | DW_TXN_VOTE_SENT | DW_TXN_VOTE_LOGGED;
    txn.writers = 3;
    return txn;
}

static void call_check(const void *argument)
{
    dw_txn_check(argument);
}

static void assert_bad(const struct dw_txn *txn)
{
    assert_true(aborts(call_check, txn));
}

static void a_machine_is_small_and_holds_no_pointers(void **state)
{
    (void)state;
    assert_true(sizeof(struct dw_txn) <= 256);
    struct dw_txn txn = prepared();
    struct dw_txn copy;
    memcpy(&copy, &txn, sizeof copy);
    dw_txn_check(&copy);
    /* Its fields leave no padding but the one that is named: equal machines are equal bytes. */
    assert_int_equal(sizeof txn,
                     sizeof txn.id + 9 * sizeof(uint64_t) + 2 * sizeof(uint32_t) + 3 + sizeof txn.padding);
}

static void nothing_is_remembered_of_an_absent_transaction(void **state)
{
    (void)state;
    struct dw_txn txn;
    memset(&txn, 0, sizeof txn);
    dw_txn_check(&txn);
    txn.flags = DW_TXN_LOCKS;
    assert_bad(&txn);
    txn.flags = 0;
    txn.timer = DW_TIMER_RETRY;
    assert_bad(&txn);
    txn.timer = DW_TIMER_NONE;
    txn.role = DW_TXN_PARTICIPANT;
    assert_bad(&txn);
}

static void every_state_that_waits_has_a_timer(void **state)
{
    (void)state;
    for (unsigned i = DW_TXN_EXECUTING; i < DW_TXN_STATES; i++) {
        struct dw_txn txn = prepared();
        txn.state = (uint8_t)i;
        assert_int_equal(aborts(call_check, &txn), i == DW_TXN_STOPPED);
        txn.timer = DW_TIMER_NONE;
        assert_int_equal(aborts(call_check, &txn), i != DW_TXN_STOPPED);
    }
}

static void each_broken_invariant_is_seen(void **state)
{
    (void)state;
    struct dw_txn txn = prepared();
    dw_txn_check(&txn);
    txn.state = DW_TXN_STATES;
    assert_bad(&txn);
    txn = prepared();
    txn.id.incarnation = 0;
    assert_bad(&txn);
    txn = prepared();
    txn.role = DW_TXN_NOBODY;
    assert_bad(&txn);
    txn = prepared();
    txn.votes_pending = 4;
    assert_bad(&txn);
    txn = prepared();
    txn.reads_pending = 1;
    assert_bad(&txn);
    txn = prepared();
    txn.inquirers = 4;
    assert_bad(&txn);
    txn = prepared();
    txn.flags &= ~(uint32_t)DW_TXN_LOCKS;
    assert_bad(&txn);
    txn = prepared();
    txn.flags &= ~(uint32_t)DW_TXN_VOTE_SENT;
    assert_bad(&txn);
    txn = prepared();
    txn.state = DW_TXN_COMMITTED;
    dw_txn_check(&txn);
    txn.flags |= DW_TXN_CALLER;
    assert_bad(&txn);
}

static void in_doubt_means_voted_and_undecided(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DW_TXN_STATES; i++) {
        struct dw_txn txn = prepared();
        txn.state = (uint8_t)i;
        bool decided = i == DW_TXN_COMMITTED || i == DW_TXN_ABORTED;
        assert_int_equal(dw_txn_in_doubt(&txn), !decided);
        assert_int_equal(dw_txn_outcome(&txn), i == DW_TXN_COMMITTED ? DW_OUTCOME_COMMITTED
                                               : i == DW_TXN_ABORTED ? DW_OUTCOME_ABORTED
                                                                     : DW_OUTCOME_UNKNOWN);
        assert_int_equal(dw_txn_may_execute(&txn), i == DW_TXN_ABSENT || i == DW_TXN_EXECUTING);
        txn.flags &= ~(uint32_t)DW_TXN_VOTE_SENT;
        assert_false(dw_txn_in_doubt(&txn));
    }
    /* It stopped in doubt, with its locks; or after its decision, without. */
    struct dw_txn txn = prepared();
    txn.state = DW_TXN_STOPPED;
    assert_true(dw_txn_in_doubt(&txn));
    txn.flags &= ~(uint32_t)DW_TXN_LOCKS;
    assert_false(dw_txn_in_doubt(&txn));
}

static void only_the_attempt_is_masked(void **state)
{
    (void)state;
    struct dw_txn txn = prepared();
    struct dw_txn other = txn;
    txn.attempt = 7;
    dw_txn_mask(&txn);
    assert_memory_equal(&txn, &other, sizeof txn);
}

/* --- moves --- */

struct move {
    enum dw_txn_state from, to;
};

static void call_move(const void *argument)
{
    const struct move *move = argument;
    struct dw_txn txn = prepared();
    txn.state = (uint8_t)move->from;
    dw_txn_set_state(&txn, move->to);
}

static bool may_move(enum dw_txn_state from, enum dw_txn_state to)
{
    struct move move = {.from = from, .to = to};
    return !aborts(call_move, &move);
}

/* AC2: "a participant cannot reverse its decision after it has reached one". */
static void a_decision_is_never_reversed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DW_TXN_STATES; i++) {
        enum dw_txn_state to = (enum dw_txn_state)i;
        bool ends = to == DW_TXN_ABSENT || to == DW_TXN_STOPPED;
        assert_int_equal(may_move(DW_TXN_COMMITTED, to), ends);
        assert_int_equal(may_move(DW_TXN_ABORTED, to), ends);
        assert_false(may_move(DW_TXN_STOPPED, to));
    }
    assert_false(may_move(DW_TXN_PREPARED, (enum dw_txn_state)DW_TXN_STATES));
}

/* Who is in doubt is never simply forgotten; who has denied never votes. */
static void doubt_ends_in_a_decision_and_a_denial_never_in_a_vote(void **state)
{
    (void)state;
    assert_false(may_move(DW_TXN_PREPARED, DW_TXN_ABSENT));
    assert_false(may_move(DW_TXN_TERMINATING, DW_TXN_ABSENT));
    assert_false(may_move(DW_TXN_PREPARED, DW_TXN_DENYING));
    assert_false(may_move(DW_TXN_LOGGING_VOTE, DW_TXN_DENYING));
    assert_false(may_move(DW_TXN_DENYING, DW_TXN_LOGGING_VOTE));
    assert_false(may_move(DW_TXN_DENYING, DW_TXN_PREPARED));
    assert_true(may_move(DW_TXN_TERMINATING, DW_TXN_COMMITTED));
    assert_true(may_move(DW_TXN_TERMINATING, DW_TXN_ABORTED));
}

/* --- updates --- */

static void add_outputs(const void *argument)
{
    struct dw_update update = {0};
    for (int i = 0; i < *(const int *)argument; i++) {
        dw_update_add(&update, (struct dw_out){.kind = DW_OUT_DISARM});
    }
}

static void an_update_has_room_for_its_limit_and_no_more(void **state)
{
    (void)state;
    int count = DW_UPDATE_MAX;
    assert_false(aborts(add_outputs, &count));
    count++;
    assert_true(aborts(add_outputs, &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_is_small_and_holds_no_pointers),
        cmocka_unit_test(nothing_is_remembered_of_an_absent_transaction),
        cmocka_unit_test(every_state_that_waits_has_a_timer),
        cmocka_unit_test(each_broken_invariant_is_seen),
        cmocka_unit_test(in_doubt_means_voted_and_undecided),
        cmocka_unit_test(only_the_attempt_is_masked),
        cmocka_unit_test(a_decision_is_never_reversed),
        cmocka_unit_test(doubt_ends_in_a_decision_and_a_denial_never_in_a_vote),
        cmocka_unit_test(an_update_has_room_for_its_limit_and_no_more),
    };
    return cmocka_run_group_tests_name("txn", tests, NULL, NULL);
}
