/* What does a participant do that the figures don't show: readers, lost execution state, denied votes,
 * messages that come twice, too early or too late?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine.h"

enum { ALL = 7 };

static void executing(struct machine *m, const struct dw_protocol *protocol)
{
    machine_init(m, protocol, 1);
    assert_string_equal(machine_join(m), "EXECUTING: timer VOTE_REQUEST");
}

static void logging_vote(struct machine *m, const struct dw_protocol *protocol)
{
    executing(m, protocol);
    assert_string_equal(machine_ask_vote(m, ALL, DW_EXECUTION_WHOLE),
                        "LOGGING_VOTE: log VOTE at 1; timer DECISION");
    assert_true(m->update.outs[0].force);
    assert_int_equal(m->update.outs[0].writers, ALL);
}

static void prepared(struct machine *m, const struct dw_protocol *protocol)
{
    logging_vote(m, protocol);
    assert_string_equal(machine_reply(m, 1, DW_ASK_VOTE, DW_ANSWER_VOTE_YES),
                        "PREPARED: send VOTE YES to 0; timer DECISION");
}

/* --- before the vote --- */

static void more_accesses_change_nothing(void **state)
{
    (void)state;
    struct machine m;
    executing(&m, &dw_cornus);
    assert_string_equal(machine_join(&m), "EXECUTING");
}

/* Lines 14-15: "on timeout RPC local SN sync::Log(ABORT); return". Nobody needs to hear of it. */
static void silence_before_the_request_is_denied_in_the_own_log(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        struct machine m;
        executing(&m, protocol);
        assert_string_equal(machine_timeout(&m), "DENYING: RELEASE; log DENY at 1; timer RETRY");
        assert_string_equal(machine_timeout(&m), "DENYING: log DENY at 1; timer RETRY");
        assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_ABORT), "ABSENT: DISARM");
    }
}

/* A request that meets the denial is answered by its result. */
static void a_request_during_the_denial_is_answered_by_it(void **state)
{
    (void)state;
    struct machine m;
    executing(&m, &dw_cornus);
    (void)machine_timeout(&m);
    assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE), "DENYING");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_ABORT),
                        "ABSENT: send VOTE NO to 0; DISARM");
}

/* Trap 6: "without execution state, a vote request is answered by deny on its own log and relaying the
 * result; on forgotten it stays silent". */
static void a_request_without_execution_state_relays_what_the_log_holds(void **state)
{
    (void)state;
    static const struct {
        enum dw_answer answer;
        const char *says;
    } cases[] = {
        {DW_ANSWER_ABORT, "ABSENT: send VOTE NO to 0; DISARM"},
        {DW_ANSWER_VOTE_YES, "ABSENT: send VOTE YES to 0; DISARM"},
        {DW_ANSWER_COMMIT, "ABSENT: send VOTE COMMITTED to 0; DISARM"},
        {DW_ANSWER_FORGOTTEN, "ABSENT: DISARM"},
    };
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
            struct machine m;
            machine_init(&m, protocol, 1);
            assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE),
                                "DENYING: log DENY at 1; timer RETRY");
            /* Another reply than the one to the denial tells nothing. */
            assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_VOTE_YES), "DENYING");
            assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, cases[k].answer), cases[k].says);
        }
    }
}

static void a_broken_execution_is_denied(void **state)
{
    (void)state;
    static const enum dw_execution broken[] = {DW_EXECUTION_NONE, DW_EXECUTION_BROKEN};
    for (unsigned i = 0; i < 2; i++) {
        struct machine m;
        executing(&m, &dw_cornus);
        assert_string_equal(machine_ask_vote(&m, ALL, broken[i]),
                            "DENYING: RELEASE; log DENY at 1; timer RETRY");
        assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_ABORT),
                            "ABSENT: send VOTE NO to 0; DISARM");
    }
}

/* --- readers --- */

static void a_reader_answers_frees_and_forgets(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        struct machine m;
        executing(&m, protocol);
        assert_string_equal(machine_ask_read(&m, DW_EXECUTION_WHOLE),
                            "ABSENT: APPLY; RELEASE; send VOTE HELD to 0; DISARM");
        /* Asked again, it cannot tell any more. */
        assert_string_equal(machine_ask_read(&m, DW_EXECUTION_NONE), "ABSENT: send VOTE REFUSED to 0");
        executing(&m, protocol);
        assert_string_equal(machine_ask_read(&m, DW_EXECUTION_BROKEN),
                            "ABSENT: RELEASE; send VOTE REFUSED to 0; DISARM");
    }
}

static void a_writer_does_not_answer_a_readers_request(void **state)
{
    (void)state;
    struct machine m;
    logging_vote(&m, &dw_cornus);
    assert_string_equal(machine_ask_read(&m, DW_EXECUTION_NONE), "LOGGING_VOTE");
    prepared(&m, &dw_cornus);
    assert_string_equal(machine_ask_read(&m, DW_EXECUTION_NONE), "PREPARED");
}

/* --- the vote --- */

/* Lines 18-19: "if resp is ABORT then reply ABORT to coordinator". */
static void a_vote_that_was_denied_is_a_no(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        struct machine m;
        logging_vote(&m, protocol);
        assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_ABORT),
                            "ABSENT: RELEASE; send VOTE NO to 0; DISARM");
        logging_vote(&m, protocol);
        assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_COMMIT),
                            "ABSENT: APPLY; RELEASE; send VOTE COMMITTED to 0; DISARM");
        logging_vote(&m, protocol);
        assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_FORGOTTEN),
                            "ABSENT: RELEASE; DISARM");
    }
}

static void a_request_that_comes_again_gets_the_same_answer(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        struct machine m;
        logging_vote(&m, protocol);
        assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE), "LOGGING_VOTE");
        prepared(&m, protocol);
        assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE), "PREPARED: send VOTE YES to 0");
        (void)machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED);
        assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE),
                            "COMMITTED: send VOTE COMMITTED to 0");
        prepared(&m, protocol);
        (void)machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_ABORTED);
        assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE), "ABORTED: send VOTE NO to 0");
    }
}

/* "Once a vote(YES) has been sent, its sender never aborts alone; it terminates, own log included." */
static void an_unanswered_vote_is_terminated_own_log_included(void **state)
{
    (void)state;
    struct machine m;
    logging_vote(&m, &dw_cornus);
    assert_string_equal(machine_timeout(&m), "TERMINATING: log DENY at 0,1,2; timer RETRY");
    assert_true(dw_txn_has(&m.txn, DW_TXN_LOCKS));
    /* It does not claim a vote that it does not know to be logged. */
    assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE), "TERMINATING");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_VOTE_YES), "TERMINATING");
    assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE), "TERMINATING: send VOTE YES to 0");
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DENY, DW_ANSWER_ABORT),
                        "ABORTED: RELEASE; log DECIDE_ABORT (unforced) at 1; timer FINISH");
}

/* Trap 5 reads "my vote was never logged, abort" out of `forgotten`. One who knows that it was logged cannot:
 * the others may have committed on it. */
static void a_logged_vote_that_the_own_log_forgot_stops_it(void **state)
{
    (void)state;
    struct machine m;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        prepared(&m, dw_protocol_at(i));
        assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_FORGOTTEN),
                            "STOPPED: alarm FORGOTTEN; DISARM");
        assert_true(dw_txn_has(&m.txn, DW_TXN_LOCKS));
        assert_int_equal(m.node.state, DW_NODE_SERVING);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED), "STOPPED");
        /* Another's log is not its own. */
        prepared(&m, dw_protocol_at(i));
        assert_string_equal(machine_reply(&m, 2, DW_ASK_DENY, DW_ANSWER_FORGOTTEN), "PREPARED");
    }
    prepared(&m, &dw_cornus);
    (void)machine_timeout(&m);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_FORGOTTEN),
                        "STOPPED: alarm FORGOTTEN; DISARM");
    /* A restarted node knows it from its scan. */
    machine_init_scanning(&m, &dw_cornus, 1);
    (void)machine_recover(&m, DW_ENTRY_VOTE_YES, ALL);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_FORGOTTEN),
                        "STOPPED: alarm FORGOTTEN; DISARM");
    /* One who never heard that it was logged aborts. */
    logging_vote(&m, &dw_cornus);
    (void)machine_timeout(&m);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_FORGOTTEN),
                        "ABORTED: RELEASE; log DECIDE_ABORT (unforced) at 1; timer FINISH");
}

static void a_damaged_entry_keeps_the_vote_open(void **state)
{
    (void)state;
    struct machine m;
    logging_vote(&m, &dw_cornus);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_DAMAGED), "LOGGING_VOTE: alarm DAMAGED");
    assert_string_equal(machine_timeout(&m), "TERMINATING: log DENY at 0,1,2; timer RETRY");
}

static void fenced_or_in_conflict_it_stops_with_its_locks(void **state)
{
    (void)state;
    struct machine m;
    logging_vote(&m, &dw_cornus);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_FENCED), "STOPPED: alarm FENCED; DISARM");
    assert_int_equal(m.node.state, DW_NODE_STOPPED);
    assert_true(dw_txn_has(&m.txn, DW_TXN_LOCKS));
    assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED), "STOPPED");
    logging_vote(&m, &dw_cornus);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_CONFLICT),
                        "STOPPED: alarm CONFLICT; DISARM");
    assert_int_equal(m.node.state, DW_NODE_SERVING);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED), "STOPPED");
}

/* --- the decision, in every state (trap 18) --- */

static void a_commit_is_accepted_in_every_state_of_doubt(void **state)
{
    (void)state;
    static const char committed[] =
        "COMMITTED: APPLY; RELEASE; log DECIDE_COMMIT (unforced) at 1; timer FINISH";
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        struct machine m;
        logging_vote(&m, protocol);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED), committed);
        prepared(&m, protocol);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED), committed);
        prepared(&m, protocol);
        (void)machine_timeout(&m);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED), committed);
        /* The late reply to the own vote, then the same decision again, then its record. */
        assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_VOTE_YES), "COMMITTED");
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED), "COMMITTED");
        assert_string_equal(machine_reply(&m, 1, DW_ASK_DECIDE_COMMIT, DW_ANSWER_COMMIT),
                            "ABSENT: send ACK to 0; DISARM");
    }
}

static void an_abort_is_accepted_in_every_state_of_doubt(void **state)
{
    (void)state;
    static const char aborted[] = "ABORTED: RELEASE; log DECIDE_ABORT (unforced) at 1; timer FINISH";
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        struct machine m;
        logging_vote(&m, protocol);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_ABORTED), aborted);
        prepared(&m, protocol);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_ABORTED), aborted);
        assert_string_equal(machine_reply(&m, 1, DW_ASK_DECIDE_ABORT, DW_ANSWER_ABORT),
                            "ABSENT: send ACK to 0; DISARM");
    }
}

/* No vote was sent and none will be: an abort needs no record. */
static void an_abort_before_the_vote_frees_and_forgets(void **state)
{
    (void)state;
    struct machine m;
    executing(&m, &dw_cornus);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_ABORTED), "ABSENT: RELEASE; DISARM");
    assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_ABORTED), "ABSENT");
    executing(&m, &dw_cornus);
    (void)machine_timeout(&m);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_ABORTED), "DENYING");
}

/* It committed and forgot, and its acknowledgement was lost: the log is asked, and acknowledged from. */
static void a_commit_that_comes_again_is_acknowledged_from_the_log(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        struct machine m;
        machine_init(&m, protocol, 1);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED),
                            "COMMITTED: log DECIDE_COMMIT (unforced) at 1; timer FINISH");
        assert_string_equal(machine_timeout(&m),
                            "COMMITTED: log DECIDE_COMMIT (unforced) at 1; timer FINISH");
        assert_string_equal(machine_reply(&m, 1, DW_ASK_DECIDE_COMMIT, DW_ANSWER_COMMIT),
                            "ABSENT: send ACK to 0; DISARM");
        /* The same during a denial, and over what a late first access left; nothing is applied twice. */
        executing(&m, protocol);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED),
                            "COMMITTED: RELEASE; log DECIDE_COMMIT (unforced) at 1; timer FINISH");
        executing(&m, protocol);
        (void)machine_timeout(&m);
        assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED),
                            "COMMITTED: log DECIDE_COMMIT (unforced) at 1; timer FINISH");
    }
}

static void two_decisions_raise_an_alarm(void **state)
{
    (void)state;
    struct machine m;
    prepared(&m, &dw_cornus);
    (void)machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_COMMITTED);
    assert_string_equal(machine_hear(&m, 0, DW_MSG_DECISION, DW_OUTCOME_ABORTED),
                        "STOPPED: alarm DISAGREEMENT; DISARM");
}

static void a_timeout_of_an_older_attempt_is_ignored(void **state)
{
    (void)state;
    struct machine m;
    logging_vote(&m, &dw_cornus);
    struct dw_event stale = {.kind = DW_EVENT_TIMEOUT, .timer = DW_TIMER_DECISION, .attempt = m.txn.attempt};
    (void)machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_VOTE_YES);
    assert_string_equal(machine_step(&m, stale), "PREPARED");
    stale.timer = DW_TIMER_VOTE_REQUEST;
    assert_string_equal(machine_step(&m, stale), "PREPARED");
    assert_string_equal(machine_timeout(&m), "TERMINATING: log DENY at 0,1,2; timer RETRY");
}

/* --- recovery, and strays --- */

static void a_recovered_cornus_node_terminates_whoever_it_was(void **state)
{
    (void)state;
    for (uint32_t slot = 0; slot < 2; slot++) {
        struct machine m;
        machine_init_scanning(&m, &dw_cornus, slot);
        assert_string_equal(machine_recover(&m, DW_ENTRY_VOTE_YES, ALL),
                            "TERMINATING: RELOCK; log DENY at 0,1,2; timer RETRY");
        assert_int_equal(m.update.outs[0].position, 7);
        /* Termination gates nothing, nor does service gate termination. */
        assert_string_equal(machine_reply(&m, 2, DW_ASK_DENY, DW_ANSWER_VOTE_YES), "TERMINATING");
        assert_string_equal(machine_hear(&m, 2, DW_MSG_DECISION, DW_OUTCOME_COMMITTED), "TERMINATING");
        dw_node_scanned(&m.node);
        assert_string_equal(machine_reply(&m, slot, DW_ASK_DENY, DW_ANSWER_VOTE_YES), "TERMINATING");
        (void)machine_reply(&m, 1 - slot, DW_ASK_DENY, DW_ANSWER_COMMIT);
        assert_int_equal(m.txn.state, DW_TXN_COMMITTED);
        /* Nobody acknowledges to himself. */
        assert_string_equal(machine_reply(&m, slot, DW_ASK_DECIDE_COMMIT, DW_ANSWER_COMMIT),
                            slot == 0 ? "ABSENT: DISARM" : "ABSENT: send ACK to 0; DISARM");
    }
}

static void a_decided_entry_needs_no_recovery(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        static const enum dw_entry_state decided[] = {DW_ENTRY_COMMIT, DW_ENTRY_ABORT, DW_ENTRY_FORGOTTEN,
                                                      DW_ENTRY_DAMAGED};
        for (unsigned k = 0; k < sizeof decided / sizeof *decided; k++) {
            struct machine m;
            machine_init_scanning(&m, protocol, 1);
            assert_string_equal(machine_recover(&m, decided[k], ALL), "ABSENT");
        }
    }
}

/* A node that is still scanning knows nothing yet, so it hears nothing. */
static void a_node_that_scans_hears_no_messages(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        const struct dw_protocol *protocol = dw_protocol_at(i);
        struct machine m;
        machine_init_scanning(&m, protocol, 1);
        assert_string_equal(machine_ask_vote(&m, ALL, DW_EXECUTION_NONE), "ABSENT");
        assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0), "ABSENT");
        assert_string_equal(machine_join(&m), "ABSENT");
    }
}

static void what_is_not_meant_for_a_participant_is_ignored(void **state)
{
    (void)state;
    struct machine m;
    prepared(&m, &dw_cornus);
    for (uint32_t vote = DW_VOTE_YES; vote <= DW_VOTE_REFUSED; vote++) {
        assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, vote), "PREPARED");
    }
    assert_string_equal(machine_hear(&m, 2, DW_MSG_ACK, 0), "PREPARED");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY, 0), "PREPARED");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_INQUIRY_REPLY, DW_OUTCOME_ABORTED), "PREPARED");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_VOTE, DW_ANSWER_VOTE_YES), "PREPARED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_accesses_change_nothing),
        cmocka_unit_test(silence_before_the_request_is_denied_in_the_own_log),
        cmocka_unit_test(a_request_during_the_denial_is_answered_by_it),
        cmocka_unit_test(a_request_without_execution_state_relays_what_the_log_holds),
        cmocka_unit_test(a_broken_execution_is_denied),
        cmocka_unit_test(a_reader_answers_frees_and_forgets),
        cmocka_unit_test(a_writer_does_not_answer_a_readers_request),
        cmocka_unit_test(a_vote_that_was_denied_is_a_no),
        cmocka_unit_test(a_request_that_comes_again_gets_the_same_answer),
        cmocka_unit_test(an_unanswered_vote_is_terminated_own_log_included),
        cmocka_unit_test(a_logged_vote_that_the_own_log_forgot_stops_it),
        cmocka_unit_test(a_damaged_entry_keeps_the_vote_open),
        cmocka_unit_test(fenced_or_in_conflict_it_stops_with_its_locks),
        cmocka_unit_test(a_commit_is_accepted_in_every_state_of_doubt),
        cmocka_unit_test(an_abort_is_accepted_in_every_state_of_doubt),
        cmocka_unit_test(an_abort_before_the_vote_frees_and_forgets),
        cmocka_unit_test(a_commit_that_comes_again_is_acknowledged_from_the_log),
        cmocka_unit_test(two_decisions_raise_an_alarm),
        cmocka_unit_test(a_timeout_of_an_older_attempt_is_ignored),
        cmocka_unit_test(a_recovered_cornus_node_terminates_whoever_it_was),
        cmocka_unit_test(a_decided_entry_needs_no_recovery),
        cmocka_unit_test(a_node_that_scans_hears_no_messages),
        cmocka_unit_test(what_is_not_meant_for_a_participant_is_ignored),
    };
    return cmocka_run_group_tests_name("participant", tests, NULL, NULL);
}
