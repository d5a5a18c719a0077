/* What does a coordinator do that the figures don't show: readers, local transactions, cancelling, logs that
 * answer something else than a vote? For Cornus, and for both protocols where they are the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine.h"

enum { SELF = 1, P1 = 2, P2 = 4 };

/* --- no need for both phases --- */

static void a_transaction_that_read_on_one_node_skips_both_phases(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct machine m;
        machine_init(&m, dw_protocol_at(i), 0);
        assert_string_equal(machine_commit(&m, 0, SELF), "ABSENT: caller hears COMMITTED; APPLY; RELEASE");
        /* Elsewhere: the reader is asked only to free its locks. */
        machine_init(&m, dw_protocol_at(i), 0);
        assert_string_equal(machine_commit(&m, 0, P1),
                            "ABSENT: send READ_REQUEST to 1; caller hears COMMITTED; APPLY; RELEASE");
        assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_HELD), "ABSENT");
        machine_init(&m, dw_protocol_at(i), 0);
        assert_string_equal(machine_commit(&m, 0, 0), "ABSENT: caller hears COMMITTED; APPLY; RELEASE");
    }
}

static void a_local_transaction_logs_one_record(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct machine m;
        machine_init(&m, dw_protocol_at(i), 0);
        assert_string_equal(machine_commit(&m, SELF, SELF),
                            "LOGGING_COMMIT: log COMMIT_LOCAL at 0; timer RETRY");
        assert_true(m.update.outs[0].force);
        assert_string_equal(machine_timeout(&m), "LOGGING_COMMIT: log COMMIT_LOCAL at 0; timer RETRY");
        assert_string_equal(machine_reply(&m, 0, DW_ASK_COMMIT_LOCAL, DW_ANSWER_COMMIT),
                            "ABSENT: caller hears COMMITTED; APPLY; RELEASE; timer FINISH; DISARM");
        assert_int_equal(m.update.outs[1].position, 7);
        /* The second request's reply comes to nobody. */
        assert_string_equal(machine_reply(&m, 0, DW_ASK_COMMIT_LOCAL, DW_ANSWER_COMMIT), "ABSENT");
    }
}

static void a_local_commit_that_the_log_denies_aborts(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_cornus, 0);
    (void)machine_commit(&m, SELF, 0);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_COMMIT_LOCAL, DW_ANSWER_ABORT),
                        "ABSENT: caller hears ABORTED; RELEASE; timer FINISH; DISARM");
}

/* Each answer for itself: only ABORT aborts. What nobody could have logged, or has swept, tells nothing, and
 * the caller hears so. */
static void only_abort_aborts_a_local_commit(void **state)
{
    (void)state;
    static const struct {
        enum dw_answer answer;
        const char *says;
    } cases[DW_ANSWERS] = {
        {DW_ANSWER_NONE, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_VOTE_YES, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_COMMIT, "ABSENT: caller hears COMMITTED; APPLY; RELEASE; timer FINISH; DISARM"},
        {DW_ANSWER_ABORT, "ABSENT: caller hears ABORTED; RELEASE; timer FINISH; DISARM"},
        {DW_ANSWER_START, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_END, "STOPPED: alarm DISAGREEMENT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_CONFLICT, "STOPPED: alarm CONFLICT; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_FENCED, "STOPPED: alarm FENCED; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_FORGOTTEN, "STOPPED: alarm FORGOTTEN; caller hears UNKNOWN; DISARM"},
        {DW_ANSWER_DAMAGED, "LOGGING_COMMIT: alarm DAMAGED"},
    };
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        for (unsigned k = 0; k < DW_ANSWERS; k++) {
            struct machine m;
            machine_init(&m, dw_protocol_at(i), 0);
            (void)machine_commit(&m, SELF, 0);
            assert_string_equal(machine_reply(&m, 0, DW_ASK_COMMIT_LOCAL, cases[k].answer), cases[k].says);
        }
    }
}

static void cancelling_aborts_without_a_record(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct machine m;
        machine_init(&m, dw_protocol_at(i), 0);
        assert_string_equal(machine_cancel(&m, SELF | P1 | P2),
                            "ABSENT: caller hears ABORTED; RELEASE; send DECISION ABORTED to 1,2");
    }
}

/* --- the round of readers --- */

static void a_reader_and_a_local_writer_need_the_round_only(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct machine m;
        machine_init(&m, dw_protocol_at(i), 0);
        assert_string_equal(machine_commit(&m, SELF, P1 | P2),
                            "VOTING: send READ_REQUEST to 1,2; timer VOTES");
        assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_HELD), "VOTING");
        assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_HELD), "VOTING");
        assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_HELD),
                            "LOGGING_COMMIT: log COMMIT_LOCAL at 0; timer RETRY");
    }
}

static void a_transaction_that_read_on_two_nodes_logs_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct machine m;
        machine_init(&m, dw_protocol_at(i), 0);
        assert_string_equal(machine_commit(&m, 0, SELF | P1), "VOTING: send READ_REQUEST to 1; timer VOTES");
        assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_HELD),
                            "ABSENT: caller hears COMMITTED; APPLY; RELEASE; DISARM");
    }
}

/* A refusal, or silence: a lock may have been lost. Readers that have not answered are told to free theirs.
 */
static void a_round_that_fails_aborts(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct machine m;
        machine_init(&m, dw_protocol_at(i), 0);
        (void)machine_commit(&m, SELF, P1 | P2);
        assert_string_equal(
            machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_REFUSED),
            "ABSENT: caller hears ABORTED; RELEASE; send DECISION ABORTED to 1,2; timer FINISH; DISARM");
        machine_init(&m, dw_protocol_at(i), 0);
        (void)machine_commit(&m, SELF, P1 | P2);
        (void)machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_HELD);
        assert_string_equal(
            machine_timeout(&m),
            "ABSENT: caller hears ABORTED; RELEASE; send DECISION ABORTED to 2; timer FINISH; DISARM");
    }
}

/* "The coordinator's own vote(YES) is sent only after all such answers." */
static void cornus_votes_when_all_readers_hold(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_cornus, 0);
    assert_string_equal(machine_commit(&m, SELF | P1, P2),
                        "VOTING: send VOTE_REQUEST to 1; send READ_REQUEST to 2; timer VOTES");
    assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_YES), "VOTING");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_HELD), "VOTING: log VOTE at 0");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_HELD), "VOTING");
    assert_string_equal(machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_VOTE_YES),
                        "COMMITTED: caller hears COMMITTED; APPLY; RELEASE; send DECISION COMMITTED to 1; "
                        "log DECIDE_COMMIT (unforced) at 0; timer FINISH");
}

/* Its vote has not left: a denial in its own log aborts, and leaves the others' logs alone. */
static void cornus_denies_its_own_log_if_a_reader_refuses(void **state)
{
    (void)state;
    for (unsigned silent = 0; silent < 2; silent++) {
        struct machine m;
        machine_init(&m, &dw_cornus, 0);
        (void)machine_commit(&m, SELF | P1, P2);
        const char *text = silent ? machine_timeout(&m) : machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_REFUSED);
        assert_string_equal(text, "TERMINATING: log DENY at 0; timer RETRY");
        /* A vote that comes now changes nothing, nor does "still held". */
        assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_YES), "TERMINATING");
        assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_HELD), "TERMINATING");
        assert_string_equal(machine_reply(&m, 0, DW_ASK_DENY, DW_ANSWER_ABORT),
                            "ABORTED: caller hears ABORTED; RELEASE; send DECISION ABORTED to 1,2; "
                            "log DECIDE_ABORT (unforced) at 0; timer FINISH");
    }
}

static void two_phase_commits_when_readers_hold_too(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_two_phase, 0);
    assert_string_equal(
        machine_commit(&m, SELF | P1, P2),
        "VOTING: send VOTE_REQUEST to 1; send READ_REQUEST to 2; log START at 0; timer VOTES");
    assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_YES), "VOTING");
    assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_HELD),
                        "LOGGING_COMMIT: log COORD_COMMIT at 0; timer RETRY");
}

/* A coordinator that only reads is listed, and votes. */
static void a_reading_coordinator_is_listed(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_cornus, 0);
    assert_string_equal(machine_commit(&m, P1, SELF),
                        "VOTING: send VOTE_REQUEST to 1; log VOTE at 0; timer VOTES");
    assert_int_equal(m.update.outs[0].writers, SELF | P1);
    assert_int_equal(m.update.outs[1].writers, SELF | P1);
}

/* --- Cornus: its own vote, and termination --- */

static void cornus_voting(struct machine *m)
{
    machine_init(m, &dw_cornus, 0);
    assert_string_equal(machine_commit(m, SELF | P1 | P2, 0),
                        "VOTING: send VOTE_REQUEST to 1,2; log VOTE at 0; timer VOTES");
    assert_true(m->update.outs[1].force);
}

/* Neither the others' votes nor the own one alone decide. */
static void cornus_waits_for_its_own_log_too(void **state)
{
    (void)state;
    struct machine m;
    cornus_voting(&m);
    (void)machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_YES);
    assert_string_equal(machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_YES), "VOTING");
    cornus_voting(&m);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_VOTE_YES), "VOTING");
    assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_YES), "VOTING");
    assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_YES), "VOTING");
}

/* "LogIfNotExist can return ABORT to a node that logs its own vote: then it votes no." */
static void a_coordinator_whose_vote_was_denied_aborts(void **state)
{
    (void)state;
    static const enum dw_answer answers[] = {DW_ANSWER_ABORT, DW_ANSWER_FORGOTTEN};
    for (unsigned i = 0; i < 2; i++) {
        struct machine m;
        cornus_voting(&m);
        (void)machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_YES);
        (void)machine_hear(&m, 2, DW_MSG_VOTE, DW_VOTE_YES);
        assert_string_equal(machine_reply(&m, 0, DW_ASK_VOTE, answers[i]),
                            "ABORTED: caller hears ABORTED; RELEASE; send DECISION ABORTED to 1,2; "
                            "log DECIDE_ABORT (unforced) at 0; timer FINISH");
    }
}

/* Trap 1: line 29 says "other than self"; the own log is asked too, since the own vote may be on its way. */
static void termination_asks_every_listed_log_the_own_one_too(void **state)
{
    (void)state;
    struct machine m;
    cornus_voting(&m);
    assert_string_equal(machine_timeout(&m), "TERMINATING: log DENY at 0,1,2; timer RETRY");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_VOTE_YES), "TERMINATING");
    assert_string_equal(machine_reply(&m, 2, DW_ASK_DENY, DW_ANSWER_VOTE_YES), "TERMINATING");
    /* Line 35: who has not answered is asked again. */
    assert_string_equal(machine_timeout(&m), "TERMINATING: log DENY at 0; timer RETRY");
    /* The reply to the own vote is an answer as well. */
    assert_string_equal(machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_VOTE_YES),
                        "COMMITTED: caller hears COMMITTED; APPLY; RELEASE; send DECISION COMMITTED to 1,2; "
                        "log DECIDE_COMMIT (unforced) at 0; timer FINISH");
}

static void one_abort_or_commit_decides_termination(void **state)
{
    (void)state;
    struct machine m;
    cornus_voting(&m);
    (void)machine_timeout(&m);
    assert_string_equal(machine_reply(&m, 2, DW_ASK_DENY, DW_ANSWER_ABORT),
                        "ABORTED: caller hears ABORTED; RELEASE; send DECISION ABORTED to 1,2; "
                        "log DECIDE_ABORT (unforced) at 0; timer FINISH");
    cornus_voting(&m);
    (void)machine_timeout(&m);
    assert_string_equal(machine_reply(&m, 2, DW_ASK_DENY, DW_ANSWER_COMMIT),
                        "COMMITTED: caller hears COMMITTED; APPLY; RELEASE; send DECISION COMMITTED to 1,2; "
                        "log DECIDE_COMMIT (unforced) at 0; timer FINISH");
    /* A message can bring the same news: what the sender's log holds decides. */
    cornus_voting(&m);
    (void)machine_timeout(&m);
    assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_YES), "TERMINATING");
    (void)machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_NO);
    assert_int_equal(m.txn.state, DW_TXN_ABORTED);
    cornus_voting(&m);
    (void)machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_COMMITTED);
    assert_int_equal(m.txn.state, DW_TXN_COMMITTED);
}

/* "Errors and plain reads never do." */
static void nothing_else_decides_termination(void **state)
{
    (void)state;
    struct machine m;
    cornus_voting(&m);
    (void)machine_timeout(&m);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_READ, DW_ANSWER_ABORT), "TERMINATING");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_NONE), "TERMINATING");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_DAMAGED), "TERMINATING: alarm DAMAGED");
    assert_string_equal(machine_reply(&m, 5, DW_ASK_DENY, DW_ANSWER_ABORT), "TERMINATING");
    assert_string_equal(machine_timeout(&m), "TERMINATING: log DENY at 0,1,2; timer RETRY");
}

/* --- FORGOTTEN, DAMAGED, CONFLICT, FENCED --- */

/* "From one's own log: my vote was never logged, abort; from another's: no information, re-read the own log,
 * and if that still says VOTE_YES, stop and alarm." */
static void a_log_that_forgot_tells_nothing_unless_it_is_the_own_one(void **state)
{
    (void)state;
    struct machine m;
    cornus_voting(&m);
    (void)machine_timeout(&m);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_FORGOTTEN), "TERMINATING");
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DENY, DW_ANSWER_VOTE_YES),
                        "STOPPED: alarm FORGOTTEN; caller hears UNKNOWN; DISARM");
    cornus_voting(&m);
    (void)machine_timeout(&m);
    (void)machine_reply(&m, 0, DW_ASK_DENY, DW_ANSWER_VOTE_YES);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_FORGOTTEN),
                        "STOPPED: alarm FORGOTTEN; caller hears UNKNOWN; DISARM");
    cornus_voting(&m);
    (void)machine_timeout(&m);
    (void)machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_FORGOTTEN);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DENY, DW_ANSWER_FORGOTTEN),
                        "ABORTED: caller hears ABORTED; RELEASE; send DECISION ABORTED to 1,2; "
                        "log DECIDE_ABORT (unforced) at 0; timer FINISH");
}

/* The vote that it knows to be logged is gone, so the premise of that abort is: the others may have
 * committed. */
static void a_logged_vote_that_the_own_log_forgot_stops_with_an_alarm(void **state)
{
    (void)state;
    static const char stopped[] = "STOPPED: alarm FORGOTTEN; caller hears UNKNOWN; DISARM";
    struct machine m;
    cornus_voting(&m);
    (void)machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_VOTE_YES);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_FORGOTTEN), stopped);
    cornus_voting(&m);
    (void)machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_VOTE_YES);
    (void)machine_timeout(&m);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DENY, DW_ANSWER_FORGOTTEN), stopped);
    assert_true(dw_txn_has(&m.txn, DW_TXN_LOCKS));
    assert_int_equal(m.node.state, DW_NODE_SERVING);
    /* It stays so, whatever is heard. */
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_ABORT), "STOPPED");
    /* The alarm of another log, then the own one: the same. */
    cornus_voting(&m);
    (void)machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_VOTE_YES);
    (void)machine_timeout(&m);
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_FORGOTTEN), "TERMINATING");
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DENY, DW_ANSWER_FORGOTTEN), stopped);
}

/* Fenced: the outcome is unknown. The locks stay, the caller hears so, and the node does nothing any more. */
static void a_fenced_node_stops_without_deciding(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct machine m;
        machine_init(&m, dw_protocol_at(i), 0);
        (void)machine_commit(&m, SELF | P1, 0);
        assert_string_equal(machine_reply(&m, 0, dw_protocol_at(i)->logs_decide ? DW_ASK_VOTE : DW_ASK_START,
                                          DW_ANSWER_FENCED),
                            "STOPPED: alarm FENCED; caller hears UNKNOWN; DISARM");
        assert_int_equal(m.node.state, DW_NODE_STOPPED);
        assert_true(dw_txn_has(&m.txn, DW_TXN_LOCKS));
        assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_NO), "STOPPED");
    }
}

static void a_conflict_stops_the_transaction_and_not_the_node(void **state)
{
    (void)state;
    struct machine m;
    cornus_voting(&m);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_CONFLICT),
                        "STOPPED: alarm CONFLICT; caller hears UNKNOWN; DISARM");
    assert_int_equal(m.node.state, DW_NODE_SERVING);
    assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, DW_VOTE_NO), "STOPPED");
}

static void a_damaged_entry_is_asked_again(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, &dw_cornus, 0);
    (void)machine_commit(&m, SELF, 0);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_COMMIT_LOCAL, DW_ANSWER_DAMAGED),
                        "LOGGING_COMMIT: alarm DAMAGED");
    assert_string_equal(machine_timeout(&m), "LOGGING_COMMIT: log COMMIT_LOCAL at 0; timer RETRY");
}

/* --- after the decision --- */

static void cornus_committed(struct machine *m)
{
    cornus_voting(m);
    (void)machine_hear(m, 1, DW_MSG_VOTE, DW_VOTE_YES);
    (void)machine_hear(m, 2, DW_MSG_VOTE, DW_VOTE_YES);
    (void)machine_reply(m, 0, DW_ASK_VOTE, DW_ANSWER_VOTE_YES);
    assert_int_equal(m->txn.state, DW_TXN_COMMITTED);
}

/* A participant that misses the decision finds it in the logs, so one time-out's patience is enough. */
static void cornus_does_not_insist_on_acknowledgements(void **state)
{
    (void)state;
    struct machine m;
    cornus_committed(&m);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DECIDE_COMMIT, DW_ANSWER_COMMIT), "COMMITTED");
    assert_string_equal(machine_timeout(&m), "ABSENT: DISARM");
    cornus_committed(&m);
    assert_string_equal(machine_timeout(&m), "COMMITTED: log DECIDE_COMMIT (unforced) at 0; timer FINISH");
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DECIDE_COMMIT, DW_ANSWER_COMMIT), "ABSENT: DISARM");
    cornus_committed(&m);
    (void)machine_hear(&m, 1, DW_MSG_ACK, 0);
    (void)machine_hear(&m, 2, DW_MSG_ACK, 0);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DECIDE_COMMIT, DW_ANSWER_FORGOTTEN), "ABSENT: DISARM");
}

/* Late votes, replies and time-outs of a decided transaction change nothing. */
static void what_comes_late_changes_nothing(void **state)
{
    (void)state;
    struct machine m;
    cornus_committed(&m);
    for (uint32_t vote = DW_VOTE_YES; vote <= DW_VOTE_REFUSED; vote++) {
        assert_string_equal(machine_hear(&m, 1, DW_MSG_VOTE, vote), "COMMITTED");
    }
    assert_string_equal(machine_reply(&m, 0, DW_ASK_VOTE, DW_ANSWER_VOTE_YES), "COMMITTED");
    assert_string_equal(machine_reply(&m, 1, DW_ASK_DENY, DW_ANSWER_ABORT), "COMMITTED");
    assert_string_equal(machine_hear(&m, 1, DW_MSG_DECISION, DW_OUTCOME_ABORTED), "COMMITTED");
    struct dw_event stale = {.kind = DW_EVENT_TIMEOUT, .timer = DW_TIMER_VOTES, .attempt = 1};
    assert_string_equal(machine_step(&m, stale), "COMMITTED");
    stale.timer = DW_TIMER_FINISH;
    assert_string_equal(machine_step(&m, stale), "COMMITTED");
}

static void a_log_that_contradicts_the_decision_raises_an_alarm(void **state)
{
    (void)state;
    static const enum dw_answer strange[] = {DW_ANSWER_ABORT, DW_ANSWER_NONE, DW_ANSWER_VOTE_YES,
                                             DW_ANSWER_START, DW_ANSWER_END};
    struct machine m;
    for (unsigned i = 0; i < sizeof strange / sizeof *strange; i++) {
        cornus_committed(&m);
        assert_string_equal(machine_reply(&m, 0, DW_ASK_DECIDE_COMMIT, strange[i]),
                            "STOPPED: alarm DISAGREEMENT; DISARM");
    }
    cornus_committed(&m);
    assert_string_equal(machine_reply(&m, 0, DW_ASK_DECIDE_COMMIT, DW_ANSWER_CONFLICT),
                        "STOPPED: alarm CONFLICT; DISARM");
    assert_false(dw_txn_in_doubt(&m.txn));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_that_read_on_one_node_skips_both_phases),
        cmocka_unit_test(a_local_transaction_logs_one_record),
        cmocka_unit_test(a_local_commit_that_the_log_denies_aborts),
        cmocka_unit_test(only_abort_aborts_a_local_commit),
        cmocka_unit_test(cancelling_aborts_without_a_record),
        cmocka_unit_test(a_reader_and_a_local_writer_need_the_round_only),
        cmocka_unit_test(a_transaction_that_read_on_two_nodes_logs_nothing),
        cmocka_unit_test(a_round_that_fails_aborts),
        cmocka_unit_test(cornus_votes_when_all_readers_hold),
        cmocka_unit_test(cornus_denies_its_own_log_if_a_reader_refuses),
        cmocka_unit_test(two_phase_commits_when_readers_hold_too),
        cmocka_unit_test(a_reading_coordinator_is_listed),
        cmocka_unit_test(cornus_waits_for_its_own_log_too),
        cmocka_unit_test(a_coordinator_whose_vote_was_denied_aborts),
        cmocka_unit_test(termination_asks_every_listed_log_the_own_one_too),
        cmocka_unit_test(one_abort_or_commit_decides_termination),
        cmocka_unit_test(nothing_else_decides_termination),
        cmocka_unit_test(a_log_that_forgot_tells_nothing_unless_it_is_the_own_one),
        cmocka_unit_test(a_logged_vote_that_the_own_log_forgot_stops_with_an_alarm),
        cmocka_unit_test(a_fenced_node_stops_without_deciding),
        cmocka_unit_test(a_conflict_stops_the_transaction_and_not_the_node),
        cmocka_unit_test(a_damaged_entry_is_asked_again),
        cmocka_unit_test(cornus_does_not_insist_on_acknowledgements),
        cmocka_unit_test(what_comes_late_changes_nothing),
        cmocka_unit_test(a_log_that_contradicts_the_decision_raises_an_alarm),
    };
    return cmocka_run_group_tests_name("coordinator", tests, NULL, NULL);
}
