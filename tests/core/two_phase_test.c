/* Does 2PC force COMMIT before anybody hears of it, presume abort where it may, and answer each inquiry with
 * what is known, never with a guess? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine.h"

enum { ALL = 7, OTHERS = 6, BOTH = 3 };

/* --- the coordinator --- */

static void coordinator_voting(struct machine *m)
{
    machine_init(m, &dw_two_phase, 0);
    assert_string_equal(machine_commit(m, ALL, 0),
                        "VOTING: send VOTE_REQUEST to 1,2; log START at 0; timer VOTES");
}

static void coordinator_logging(struct machine *m)
{
    coordinator_voting(m);
    assert_string_equal(machine_hear(m, 1, DW_MSG_VOTE, DW_VOTE_YES), "VOTING");
    assert_string_equal(machine_hear(m, 2, DW_MSG_VOTE, DW_VOTE_YES),
                        "LOGGING_COMMIT: log COORD_COMMIT at 0; timer RETRY");
}

static void coordinator_committed(struct machine *m)
{
    coordinator_logging(m);
    assert_string_equal(
        machine_reply(m, 0, DW_ASK_COORD_COMMIT, DW_ANSWER_COMMIT),
        "COMMITTED: caller hears COMMITTED; APPLY; RELEASE; send DECISION COMMITTED to 1,2; timer FINISH");
}

static void commit_is_forced_before_anybody_hears(void **state)
{
    (void)state;
    struct machine m;
    coordinator_logging(&m);
    assert_true(m.update.outs[0].force);
    assert_int_equal(m.update.outs[0].writers, ALL);
    coordinator_committed(&m);
}

static void the_commit_stays_until_all_have_acknowledged(void **state)
{
    (void)state;
    struct machine m;
    coordinator_committed(&m);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_ACK, 0), "COMMITTED");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_ACK, 0), "COMMITTED");
    assert_string_equal(machine_timeout(&m), "COMMITTED: send DECISION COMMITTED to 1; timer FINISH");
    assert_string_equal(machine_hear(&m, 1, DW_MSG_ACK, 0), "ABSENT: log END (unforced) at 0; DISARM");
    assert_string_equal(machine_hear(&m, 1, DW_MSG_ACK, 0), "ABSENT");
    assert_string_equal(machine_reply(&m, 0, DW_ASK_END, DW_ANSWER_END), "ABSENT");
}

static void the_coordinator_aborts_alone_until_its_commit_leaves(void **state)
{
    (void)state;
    struct machine m;
    coordinator_voting(&m);
    assert_string_equal(machine_timeout(&m),
                        "ABORTED: caller hears ABORTED; RELEASE; send DECISION ABORTED to 1,2; "
                        "log COORD_ABORT (unforced) at 0; timer FINISH");
    coordinator_voting(&m);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_NO),
                        "ABORTED: caller hears ABORTED; RELEASE; send DECISION ABORTED to 1,2; "
                        "log COORD_ABORT (unforced) at 0; timer FINISH");
    /* After that a time-out only writes again. */
    coordinator_logging(&m);
    assert_string_equal(machine_timeout(&m), "LOGGING_COMMIT: log COORD_COMMIT at 0; timer RETRY");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_NO), "LOGGING_COMMIT");
}

/* Whether START is logged, or lost, tells nothing. */
static void the_reply_to_start_is_not_waited_for(void **state)
{
    (void)state;
    struct machine m;
    coordinator_voting(&m);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_START, DW_ANSWER_START), "VOTING");
    coordinator_logging(&m);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_START, DW_ANSWER_COMMIT), "LOGGING_COMMIT");
}

static void an_abort_is_written_again_until_it_is_logged(void **state)
{
    (void)state;
    struct machine m;
    coordinator_voting(&m);
    (void)machine_timeout(&m);
    assert_string_equal(machine_timeout(&m), "ABORTED: log COORD_ABORT (unforced) at 0; timer FINISH");
    assert_string_equal(machine_reply(&m, 0, DW_ASK_COORD_ABORT, DW_ANSWER_ABORT), "ABSENT: DISARM");
}

/* A commit whose record is refused is a violation: it stops, and the caller does not hear "aborted". */
static void a_refused_commit_record_stops_the_coordinator(void **state)
{
    (void)state;
    static const struct {
        enum dw_answer answer;
        const char *says;
    } cases[] = {
        {DW_ANSWER_NONE, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_VOTE_YES, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_ABORT, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_START, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_END, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_CONFLICT, "STOPPED: alarm CONFLICT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_FENCED, "STOPPED: alarm FENCED; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_FORGOTTEN, "STOPPED: alarm FORGOTTEN; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_DAMAGED, "LOGGING_COMMIT: alarm DAMAGED"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct machine m;
        coordinator_logging(&m);
        assert_string_equal(machine_reply(&m, 0, DW_ASK_COORD_COMMIT, cases[i].answer), cases[i].says);
    }
}

static void a_recovered_coordinator_follows_its_log(void **state)
{
    (void)state;
    struct machine m;
    machine_init_scanning(&m, &dw_two_phase, 0);
    assert_string_equal(
        machine_recover(&m, DW_ENTRY_START, ALL),
        "ABORTED: send DECISION ABORTED to 1,2; log COORD_ABORT (unforced) at 0; timer FINISH");
    machine_init_scanning(&m, &dw_two_phase, 0);
    assert_string_equal(machine_recover(&m, DW_ENTRY_COORD_COMMIT, ALL),
                        "COMMITTED: send DECISION COMMITTED to 1,2; timer FINISH");
    static const enum dw_entry_state over[] = {DW_ENTRY_COORD_ABORT, DW_ENTRY_END, DW_ENTRY_DAMAGED};
    for (unsigned i = 0; i < sizeof over / sizeof *over; i++) {
        machine_init_scanning(&m, &dw_two_phase, 0);
        assert_string_equal(machine_recover(&m, over[i], ALL), "ABSENT");
    }
}

/* --- the participant --- */

static void participant_prepared(struct machine *m, uint64_t writers)
{
    machine_init(m, &dw_two_phase, 1);
    (void)machine_join(m);
    assert_string_equal(machine_ask_vote(m, writers, DW_EXECUTION_WHOLE),
                        "LOGGING_VOTE: log VOTE at 1; timer DECISION");
    assert_string_equal(machine_reply(m, 1, DW_ASK_VOTE, DW_ANSWER_VOTE_YES),
                        "PREPARED: send VOTE YES to 0; timer DECISION");
}

static void participant_in_doubt(struct machine *m)
{
    participant_prepared(m, ALL);
    assert_string_equal(machine_timeout(m), "TERMINATING: send INQUIRY to 0,2; timer RETRY");
}

static void in_doubt_it_asks_nodes_and_never_logs(void **state)
{
    (void)state;
    struct machine m;
    participant_in_doubt(&m);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_UNKNOWN), "TERMINATING");
    assert_false(dw_txn_has(&m.txn, DW_TXN_BLOCKED));
    assert_string_equal(machine_timeout(&m), "TERMINATING: send INQUIRY to 0,2; timer RETRY");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_COMMITTED),
                        "COMMITTED: APPLY; RELEASE; log DECIDE_COMMIT (unforced) at 1; timer FINISH");
    participant_in_doubt(&m);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_ABORTED),
                        "ABORTED: RELEASE; log DECIDE_ABORT (unforced) at 1; timer FINISH");
}

/* Blocked: everybody answered "unknown", or a round went by in which who knows did not answer. */
static void blocked_is_noted_also_if_the_coordinator_is_silent(void **state)
{
    (void)state;
    struct machine m;
    participant_in_doubt(&m);
    (void)machine_hear(&m, 2, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_UNKNOWN);
    (void)machine_hear(&m, 0, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_UNKNOWN);
    assert_true(dw_txn_has(&m.txn, DW_TXN_BLOCKED));
    participant_in_doubt(&m);
    (void)machine_timeout(&m);
    assert_true(dw_txn_has(&m.txn, DW_TXN_BLOCKED));
    (void)machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED);
    assert_false(dw_txn_has(&m.txn, DW_TXN_BLOCKED));
}

/* The reply to the own vote may come after the time-out; the coordinator may still be waiting for it. */
static void a_late_vote_is_still_told(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_two_phase, 1);
    (void)machine_join(&m);
    (void)machine_ask_vote(&m, BOTH, DW_EXECUTION_WHOLE);
    assert_string_equal(machine_timeout(&m), "TERMINATING: send INQUIRY to 0; timer RETRY");
    assert_string_equal(machine_ask_vote(&m, BOTH, DW_EXECUTION_NONE), "TERMINATING");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_VOTE_YES),
                        "TERMINATING: send VOTE YES to 0");
    assert_int_equal(m.txn.position, 7);
    assert_string_equal(machine_ask_vote(&m, BOTH, DW_EXECUTION_NONE), "TERMINATING: send VOTE YES to 0");
}

/* What else the late reply may say. */
static void a_late_reply_to_the_vote_is_read_answer_by_answer(void **state)
{
    (void)state;
    static const char aborted[] = "ABORTED: RELEASE; log DECIDE_ABORT (unforced) at 1; timer FINISH";
    static const struct {
        enum dw_answer answer;
        const char *says;
    } cases[] = {
        {DW_ANSWER_ABORT, aborted},
        {DW_ANSWER_COMMIT, "COMMITTED: APPLY; RELEASE; log DECIDE_COMMIT (unforced) at 1; timer FINISH"},
        {DW_ANSWER_FORGOTTEN, aborted},
        {DW_ANSWER_NONE, "TERMINATING"},
        {DW_ANSWER_START, "TERMINATING"},
        {DW_ANSWER_END, "TERMINATING"},
        {DW_ANSWER_DAMAGED, "TERMINATING: alarm DAMAGED"},
    };
    struct machine m;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        machine_init(&m, &dw_two_phase, 1);
        (void)machine_join(&m);
        (void)machine_ask_vote(&m, BOTH, DW_EXECUTION_WHOLE);
        (void)machine_timeout(&m);
        assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, cases[i].answer), cases[i].says);
    }
    /* Of a vote that is known to be logged, an absence is a violation. */
    participant_in_doubt(&m);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_FORGOTTEN),
                        "STOPPED: alarm FORGOTTEN; DISARM");
}

static void a_recovered_participant_locks_again_and_asks(void **state)
{
    (void)state;
    struct machine m;
    machine_init_scanning(&m, &dw_two_phase, 1);
    assert_string_equal(machine_recover(&m, DW_ENTRY_VOTE_YES, ALL),
                        "TERMINATING: RELOCK; send INQUIRY to 0,2; timer RETRY");
    assert_int_equal(m.update.outs[0].position, 7);
}

/* --- inquiries --- */

/* What the coordinator says: nothing remembered means abort, since it remembers a commit until all have
 * acknowledged it. */
static void the_coordinator_answers_in_every_state(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_two_phase, 0);
    assert_string_equal(machine_hear(&m, 1, DW_MSG_INQUIRY, 0), "ABSENT: send INQUIRY_REPLY ABORTED to 1");
    coordinator_voting(&m);
    assert_string_equal(machine_hear(&m, 1, DW_MSG_INQUIRY, 0), "VOTING: send INQUIRY_REPLY UNKNOWN to 1");
    coordinator_logging(&m);
    assert_string_equal(machine_hear(&m, 1, DW_MSG_INQUIRY, 0),
                        "LOGGING_COMMIT: send INQUIRY_REPLY UNKNOWN to 1");
    coordinator_committed(&m);
    assert_string_equal(machine_hear(&m, 1, DW_MSG_INQUIRY, 0),
                        "COMMITTED: send INQUIRY_REPLY COMMITTED to 1");
    coordinator_voting(&m);
    (void)machine_timeout(&m);
    assert_string_equal(machine_hear(&m, 1, DW_MSG_INQUIRY, 0), "ABORTED: send INQUIRY_REPLY ABORTED to 1");
    coordinator_logging(&m);
    (void)machine_reply(&m, 0, DW_ASK_COORD_COMMIT, DW_ANSWER_CONFLICT);
    assert_string_equal(machine_hear(&m, 1, DW_MSG_INQUIRY, 0), "STOPPED");
}

static void a_participant_in_doubt_says_unknown(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_two_phase, 1);
    (void)machine_join(&m);
    (void)machine_ask_vote(&m, ALL, DW_EXECUTION_WHOLE);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0),
                        "LOGGING_VOTE: send INQUIRY_REPLY UNKNOWN to 2");
    participant_prepared(&m, ALL);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0), "PREPARED: send INQUIRY_REPLY UNKNOWN to 2");
    participant_in_doubt(&m);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0),
                        "TERMINATING: send INQUIRY_REPLY UNKNOWN to 2");
    (void)machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0),
                        "COMMITTED: send INQUIRY_REPLY COMMITTED to 2");
    participant_in_doubt(&m);
    (void)machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_ABORTED);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0), "ABORTED: send INQUIRY_REPLY ABORTED to 2");
}

/* One that is not in doubt may have decided and forgotten, or never have voted: its log tells. */
static void a_participant_that_forgot_answers_from_its_log(void **state)
{
    (void)state;
    static const struct {
        enum dw_answer answer;
        const char *says;
    } cases[] = {
        {DW_ANSWER_ABORT, "ABSENT: send INQUIRY_REPLY ABORTED to 0,2; DISARM"},
        {DW_ANSWER_COMMIT, "ABSENT: send INQUIRY_REPLY COMMITTED to 0,2; DISARM"},
        {DW_ANSWER_VOTE_YES, "ABSENT: send INQUIRY_REPLY UNKNOWN to 0,2; DISARM"},
        {DW_ANSWER_FORGOTTEN, "ABSENT: send INQUIRY_REPLY UNKNOWN to 0,2; DISARM"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct machine m;
        machine_init(&m, &dw_two_phase, 1);
        assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0), "DENYING: log DENY at 1; timer RETRY");
        assert_string_equal(machine_hear(&m, 0, DW_MSG_INQUIRY, 0), "DENYING");
        assert_string_equal(machine_timeout(&m), "DENYING: log DENY at 1; timer RETRY");
        assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, cases[i].answer), cases[i].says);
    }
}

/* A first access may come twice, the second time when the transaction is decided and forgotten here. What it
 * leaves is unvoted execution state, but nobody may hear "aborted" of a transaction that committed. */
static void a_late_first_access_does_not_turn_a_commit_into_an_abort(void **state)
{
    (void)state;
    struct machine m;
    participant_prepared(&m, ALL);
    (void)machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DECIDE_COMMIT, DW_ANSWER_COMMIT),
                        "ABSENT: send ACK to 0; DISARM");
    assert_string_equal(machine_join(&m), "EXECUTING: timer VOTE_REQUEST");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0),
                        "DENYING: RELEASE; log DENY at 1; timer RETRY");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_COMMIT),
                        "ABSENT: send INQUIRY_REPLY COMMITTED to 2; DISARM");
}

/* An inquiry and a vote request may meet in one denial. */
static void inquirers_and_the_coordinator_hear_the_same_denial(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_two_phase, 1);
    (void)machine_hear(&m, 2, DW_MSG_INQUIRY, 0);
    assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE), "DENYING");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_ABORT),
                        "ABSENT: send INQUIRY_REPLY ABORTED to 2; send VOTE NO to 0; DISARM");
    machine_init(&m, &dw_two_phase, 1);
    (void)machine_hear(&m, 2, DW_MSG_INQUIRY, 0);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED),
                        "COMMITTED: log DECIDE_COMMIT (unforced) at 1; timer FINISH");
}

/* A coordinator that has forgotten an acknowledged commit presumes abort; only one in doubt may listen. */
static void a_reply_to_nobody_in_doubt_is_ignored(void **state)
{
    (void)state;
    struct machine m;
    participant_prepared(&m, ALL);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_ABORTED), "PREPARED");
    (void)machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_ABORTED), "COMMITTED");
    machine_init(&m, &dw_two_phase, 1);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_ABORTED), "ABSENT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_is_forced_before_anybody_hears),
        cmocka_unit_test(the_commit_stays_until_all_have_acknowledged),
        cmocka_unit_test(the_coordinator_aborts_alone_until_its_commit_leaves),
        cmocka_unit_test(the_reply_to_start_is_not_waited_for),
        cmocka_unit_test(an_abort_is_written_again_until_it_is_logged),
        cmocka_unit_test(a_refused_commit_record_stops_the_coordinator),
        cmocka_unit_test(a_recovered_coordinator_follows_its_log),
        cmocka_unit_test(in_doubt_it_asks_nodes_and_never_logs),
        cmocka_unit_test(blocked_is_noted_also_if_the_coordinator_is_silent),
        cmocka_unit_test(a_late_vote_is_still_told),
        cmocka_unit_test(a_late_reply_to_the_vote_is_read_answer_by_answer),
        cmocka_unit_test(a_recovered_participant_locks_again_and_asks),
        cmocka_unit_test(the_coordinator_answers_in_every_state),
        cmocka_unit_test(a_participant_in_doubt_says_unknown),
        cmocka_unit_test(a_participant_that_forgot_answers_from_its_log),
        cmocka_unit_test(a_late_first_access_does_not_turn_a_commit_into_an_abort),
        cmocka_unit_test(inquirers_and_the_coordinator_hear_the_same_denial),
        cmocka_unit_test(a_reply_to_nobody_in_doubt_is_ignored),
    };
    return cmocka_run_group_tests_name("two_phase", tests, NULL, NULL);
}
