/* Do the protocols behave as the paper's Figures 1, 3 and 4 and its Tables 1 and 2 say, step by step? Each
 * scenario asserts what its figure or row says, and its whole trace is compared with a file in golden/.
 *
 * DW_UPDATE_GOLDEN=1 in the environment rewrites those files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/handlers.h"
#include "sim/scenario.h"

/* The steps of a run without failures, in microseconds: the set-up's latencies added up. */
enum {
    COMMIT = 1000,
    TRIP = 250,              /* one way, between compute nodes or to a log */
    WRITE = 1000,            /* what a log write takes at the log */
    ROUND_TRIP = 2 * TRIP,   /* between compute nodes, or to a log and back */
    LOG = ROUND_TRIP + WRITE /* a log write, as its writer sees it */
};
enum {
    ASKED = COMMIT + TRIP, /* the vote requests arrive */
    LOGGED = ASKED + LOG,  /* the participants know that their votes are logged */
    VOTED = LOGGED + TRIP, /* the votes arrive: Cornus has decided */
    DECIDED_2PC = VOTED + LOG,
    TIMEOUT = 10000,
    VOTES_OUT = COMMIT + TIMEOUT,    /* the coordinator's time-out for votes */
    DECISION_OUT = LOGGED + TIMEOUT, /* the participants' time-out for the decision */
    RESTART = 40000,
    SERVING = RESTART + LOG + ROUND_TRIP, /* fence, then scan */
    /* In the scenarios in which a participant fails, so that the others do not time out at the same instant.
     */
    LONG_TIMEOUT = 20000,
};

/* What a scenario must come to. */
struct expected {
    enum dw_outcome caller; /* UNKNOWN: never answered */
    uint64_t answered_us;
    enum dw_outcome outcome; /* of all nodes */
    uint64_t decided_us[3];
    uint64_t blocked; /* mask: who asked everybody and heard nothing (2PC) */
};

struct scenario {
    const char *name;
    const struct dw_protocol *protocol;
    struct dw_fault crash;
    struct expected expected;
};

/* --- running and comparing --- */

static char *read_golden(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("%s is missing; DW_UPDATE_GOLDEN=1 writes it", path);
        return NULL;
    }
    static char text[1 << 16];
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    assert_true(feof(file));
    fclose(file);
    return text;
}

static void compare_with_golden(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.txt", DW_GOLDEN_DIR, name);
    if (getenv("DW_UPDATE_GOLDEN") != NULL) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        assert_int_equal(fclose(file), 0);
        return;
    }
    assert_string_equal(text, read_golden(path));
}

/* Plays it, demands that its faults came to pass and that nothing was violated, and compares the trace. */
static struct dw_scenario_result play(const char *name, struct dw_scenario *scenario)
{
    char *text = NULL;
    size_t size = 0;
    struct dw_scenario_result result;
    scenario->trace = open_memstream(&text, &size);
    assert_non_null(scenario->trace);
    fprintf(scenario->trace, "%s\n", name);
    dw_scenario_run(scenario, &result);
    dw_scenario_print(scenario->trace, scenario, &result);
    fclose(scenario->trace);
    if (!dw_scenario_observed(scenario, &result)) {
        fail_msg("%s: fault not observed\n%s", name, text);
    }
    if (result.violation != NULL) {
        fail_msg("%s: %s is violated\n%s", name, result.violation, text);
    }
    compare_with_golden(name, text);
    free(text);
    return result;
}

static void assert_expected(const struct dw_scenario_result *result, const struct expected *expected)
{
    assert_int_equal(result->answered, expected->caller != DW_OUTCOME_UNKNOWN);
    assert_int_equal(result->caller, expected->caller);
    assert_int_equal(result->answered_us, expected->answered_us);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(result->node[i].outcome, expected->outcome);
        assert_int_equal(result->node[i].decided_us, expected->decided_us[i]);
        assert_int_equal(result->node[i].blocked, (expected->blocked & dw_node_bit(i)) != 0);
        /* Nothing is left over: everybody is back, and has forgotten. */
        assert_true(result->node[i].up);
        assert_int_equal(result->node[i].state, DW_TXN_ABSENT);
    }
}

/* "From a node's acknowledged vote, Cornus decides within the decision time-out + 1 round trip + 1 log write"
 * - if it stays up that long. */
static void assert_decided_in_time(const struct dw_scenario *scenario,
                                   const struct dw_scenario_result *result)
{
    for (uint32_t i = 0; i < scenario->nodes; i++) {
        const struct dw_scenario_node *node = &result->node[i];
        if (node->vote_logged_us != 0 && node->crashed_us == 0) {
            uint64_t limit = scenario->times.timer_us[DW_TIMER_DECISION] + ROUND_TRIP + WRITE;
            assert_true(node->decided_us - node->vote_logged_us <= limit);
        }
    }
}

static void play_with_crash(void **state)
{
    const struct scenario *test = *state;
    struct dw_scenario scenario;
    dw_scenario_init(&scenario, test->protocol, 3);
    dw_scenario_add(&scenario, test->crash);
    dw_scenario_add(&scenario, (struct dw_fault){.kind = DW_FAULT_RESTART_AT,
                                                 .point.node = test->crash.point.node,
                                                 .at_us = RESTART});
    if (test->crash.point.node != 0) {
        scenario.times.timer_us[DW_TIMER_DECISION] = LONG_TIMEOUT;
    }
    struct dw_scenario_result result = play(test->name, &scenario);
    assert_expected(&result, &test->expected);
    if (test->protocol == &dw_cornus) {
        assert_decided_in_time(&scenario, &result);
    }
}

/* --- the points at which the paper's nodes fail --- */

#define AT_OUTPUT(when, slot, output, field, value, to)                                                      \
    {                                                                                                        \
        .kind = DW_FAULT_CRASH_##when, .point = {                                                            \
            .node = (slot),                                                                                  \
            .out = DW_OUT_##output,                                                                          \
            .field = (value),                                                                                \
            .peer = (to)                                                                                     \
        }                                                                                                    \
    }
#define AT_EVENT(when, slot, happens, field, value, from)                                                    \
    {                                                                                                        \
        .kind = DW_FAULT_CRASH_##when, .point = {                                                            \
            .node = (slot),                                                                                  \
            .event = DW_EVENT_##happens,                                                                     \
            .field = (value),                                                                                \
            .peer = (from)                                                                                   \
        }                                                                                                    \
    }
#define BEFORE_START                                                                                         \
    {                                                                                                        \
        .kind = DW_FAULT_CRASH_BEFORE, .point = {                                                            \
            .node = 0,                                                                                       \
            .event = DW_EVENT_COMMIT,                                                                        \
            .peer = DW_SCENARIO_ANY                                                                          \
        }                                                                                                    \
    }

static const struct scenario scenarios[] = {
    /* Figure 1b: "If the coordinator fails before sending the decision to participants, participants may not
     * know the decision. ... Block until Coordinator recovers!" It fails as the first vote arrives, its
     * COMMIT unwritten; when it is back, START_2PC alone means abort, and it tells them. */
    {"fig1b_2pc_coordinator_failure",
     &dw_two_phase,
     AT_EVENT(BEFORE, 0, MESSAGE, message, DW_MSG_VOTE, 1),
     {.outcome = DW_OUTCOME_ABORTED, .decided_us = {SERVING, SERVING + TRIP, SERVING + TRIP}, .blocked = 6}},
    /* Figure 4a: "Since all nodes have VOTE-YES in their logs, each participant learns the decision of COMMIT
     * and avoids blocking." */
    {"fig4a_cornus_coordinator_fails_before_sending_decision",
     &dw_cornus,
     AT_OUTPUT(BEFORE, 0, SEND, message, DW_MSG_DECISION, 1),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = VOTED,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {VOTED, DECISION_OUT + LOG, DECISION_OUT + LOG}}},
    /* Figure 4b: "As the coordinator logs an ABORT for participant 1 and learns that participant 2 already
     * logs VOTE-YES, it reaches a decision of abort and sends it to participant 2." */
    {"fig4b_cornus_participant_fails_before_logging_vote",
     &dw_cornus,
     AT_OUTPUT(BEFORE, 1, LOG, ask, DW_ASK_VOTE, 1),
     {.caller = DW_OUTCOME_ABORTED,
      .answered_us = VOTES_OUT + LOG,
      .outcome = DW_OUTCOME_ABORTED,
      .decided_us = {VOTES_OUT + LOG, SERVING, VOTES_OUT + LOG + TRIP}}},

    /* Table 1, "Before 1PC starts": "Participants (if any) will timeout and unilaterally abort the
     * transaction." Recovered, the coordinator finds that it never voted. */
    {"table1_row1_cornus_before_start",
     &dw_cornus,
     BEFORE_START,
     {.outcome = DW_OUTCOME_ABORTED, .decided_us = {SERVING, TIMEOUT, TIMEOUT}}},
    {"table1_row1_2pc_before_start",
     &dw_two_phase,
     BEFORE_START,
     {.outcome = DW_OUTCOME_ABORTED, .decided_us = {SERVING, TIMEOUT, TIMEOUT}}},
    /* "After sending some vote requests": "Participants that did not receive the request will timeout and
     * abort unilaterally. Participants that receive the request will timeout waiting for the decision and
     * execute the termination protocol, which aborts the transaction." In 2PC the peer's denial frees the one
     * in doubt. */
    {"table1_row2_cornus_some_vote_requests",
     &dw_cornus,
     AT_OUTPUT(BEFORE, 0, SEND, message, DW_MSG_VOTE_REQUEST, 2),
     {.outcome = DW_OUTCOME_ABORTED, .decided_us = {SERVING, DECISION_OUT + LOG, TIMEOUT}}},
    {"table1_row2_2pc_some_vote_requests",
     &dw_two_phase,
     AT_OUTPUT(BEFORE, 0, SEND, message, DW_MSG_VOTE_REQUEST, 2),
     {.outcome = DW_OUTCOME_ABORTED, .decided_us = {SERVING, DECISION_OUT + ROUND_TRIP + LOG, TIMEOUT}}},
    /* "After sending all vote requests but before sending any decision": "All participants will timeout while
     * waiting for the decision and execute the termination protocol to learn the outcome." Text: "if this
     * scenario occurs in 2PC, the participants will block instead." Here the coordinator's own vote (its
     * COMMIT in 2PC) is logged, so the recovered coordinator commits. */
    {"table1_row3_cornus_all_vote_requests",
     &dw_cornus,
     AT_EVENT(BEFORE, 0, MESSAGE, message, DW_MSG_VOTE, 1),
     {.outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {SERVING + LOG, DECISION_OUT + LOG, DECISION_OUT + LOG}}},
    {"table1_row3_2pc_all_vote_requests",
     &dw_two_phase,
     AT_EVENT(BEFORE, 0, LOG_REPLY, ask, DW_ASK_COORD_COMMIT, 0),
     {.outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {SERVING, SERVING + TRIP, SERVING + TRIP},
      .blocked = 6}},
    /* "After sending some decisions": "Participants that did not receive the decision will run termination
     * protocol to learn the decision." In 2PC the peer that committed tells it. */
    {"table1_row4_cornus_some_decisions",
     &dw_cornus,
     AT_OUTPUT(BEFORE, 0, SEND, message, DW_MSG_DECISION, 2),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = VOTED,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {VOTED, VOTED + TRIP, DECISION_OUT + LOG}}},
    {"table1_row4_2pc_some_decisions",
     &dw_two_phase,
     AT_OUTPUT(BEFORE, 0, SEND, message, DW_MSG_DECISION, 2),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = DECIDED_2PC,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {DECIDED_2PC, DECIDED_2PC + TRIP, DECISION_OUT + ROUND_TRIP + LOG}}},
    /* "After sending all decisions": "No effect". Recovered: "if the decision is logged, follow that
     * decision; otherwise run termination protocol to learn it." First it is not logged, then it is; 2PC
     * always has it. */
    {"table1_row5_cornus_all_decisions",
     &dw_cornus,
     AT_OUTPUT(AFTER, 0, SEND, message, DW_MSG_DECISION, 2),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = VOTED,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {VOTED, VOTED + TRIP, VOTED + TRIP}}},
    {"table1_row5_cornus_all_decisions_logged",
     &dw_cornus,
     AT_EVENT(BEFORE, 0, LOG_REPLY, ask, DW_ASK_DECIDE_COMMIT, 0),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = VOTED,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {VOTED, VOTED + TRIP, VOTED + TRIP}}},
    {"table1_row5_2pc_all_decisions",
     &dw_two_phase,
     AT_OUTPUT(AFTER, 0, SEND, message, DW_MSG_DECISION, 2),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = DECIDED_2PC,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {DECIDED_2PC, DECIDED_2PC + TRIP, DECIDED_2PC + TRIP}}},

    /* Table 2, "Before receiving the vote request": "The coordinator will timeout, running the termination
     * protocol to abort the transaction". A 2PC coordinator aborts alone. */
    {"table2_row1_cornus_before_vote_request",
     &dw_cornus,
     AT_EVENT(BEFORE, 1, MESSAGE, message, DW_MSG_VOTE_REQUEST, 0),
     {.caller = DW_OUTCOME_ABORTED,
      .answered_us = VOTES_OUT + LOG,
      .outcome = DW_OUTCOME_ABORTED,
      .decided_us = {VOTES_OUT + LOG, SERVING, VOTES_OUT + LOG + TRIP}}},
    {"table2_row1_2pc_before_vote_request",
     &dw_two_phase,
     AT_EVENT(BEFORE, 1, MESSAGE, message, DW_MSG_VOTE_REQUEST, 0),
     {.caller = DW_OUTCOME_ABORTED,
      .answered_us = VOTES_OUT,
      .outcome = DW_OUTCOME_ABORTED,
      .decided_us = {VOTES_OUT, SERVING, VOTES_OUT + TRIP}}},
    /* "After receiving the vote request, before logging vote": "Same as above". */
    {"table2_row2_cornus_before_logging_vote",
     &dw_cornus,
     AT_OUTPUT(BEFORE, 1, LOG, ask, DW_ASK_VOTE, 1),
     {.caller = DW_OUTCOME_ABORTED,
      .answered_us = VOTES_OUT + LOG,
      .outcome = DW_OUTCOME_ABORTED,
      .decided_us = {VOTES_OUT + LOG, SERVING, VOTES_OUT + LOG + TRIP}}},
    {"table2_row2_2pc_before_logging_vote",
     &dw_two_phase,
     AT_OUTPUT(BEFORE, 1, LOG, ask, DW_ASK_VOTE, 1),
     {.caller = DW_OUTCOME_ABORTED,
      .answered_us = VOTES_OUT,
      .outcome = DW_OUTCOME_ABORTED,
      .decided_us = {VOTES_OUT, SERVING, VOTES_OUT + TRIP}}},
    /* "After logging vote, before replying to coordinator": "The coordinator will run the termination
     * protocol to see the vote and learn the final outcome." A 2PC coordinator cannot see it and aborts; the
     * recovered participant asks it. */
    {"table2_row3_cornus_before_replying",
     &dw_cornus,
     AT_OUTPUT(BEFORE, 1, SEND, message, DW_MSG_VOTE, 0),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = VOTES_OUT + LOG,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {VOTES_OUT + LOG, SERVING + LOG, VOTES_OUT + LOG + TRIP}}},
    {"table2_row3_2pc_before_replying",
     &dw_two_phase,
     AT_OUTPUT(BEFORE, 1, SEND, message, DW_MSG_VOTE, 0),
     {.caller = DW_OUTCOME_ABORTED,
      .answered_us = VOTES_OUT,
      .outcome = DW_OUTCOME_ABORTED,
      .decided_us = {VOTES_OUT, SERVING + ROUND_TRIP, VOTES_OUT + TRIP}}},
    /* "After replying vote to the coordinator": "No effect". Recovered: "If decision log exists, follow the
     * decision. Otherwise" it terminates. First the decision is not logged, then it is. */
    {"table2_row4_cornus_after_replying",
     &dw_cornus,
     AT_OUTPUT(AFTER, 1, SEND, message, DW_MSG_VOTE, 0),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = VOTED,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {VOTED, SERVING + LOG, VOTED + TRIP}}},
    {"table2_row4_cornus_decision_logged",
     &dw_cornus,
     AT_EVENT(BEFORE, 1, LOG_REPLY, ask, DW_ASK_DECIDE_COMMIT, 1),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = VOTED,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {VOTED, VOTED + TRIP, VOTED + TRIP}}},
    {"table2_row4_2pc_after_replying",
     &dw_two_phase,
     AT_OUTPUT(AFTER, 1, SEND, message, DW_MSG_VOTE, 0),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = DECIDED_2PC,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {DECIDED_2PC, SERVING + ROUND_TRIP, DECIDED_2PC + TRIP}}},
    {"table2_row4_2pc_decision_logged",
     &dw_two_phase,
     AT_EVENT(BEFORE, 1, LOG_REPLY, ask, DW_ASK_DECIDE_COMMIT, 1),
     {.caller = DW_OUTCOME_COMMITTED,
      .answered_us = DECIDED_2PC,
      .outcome = DW_OUTCOME_COMMITTED,
      .decided_us = {DECIDED_2PC, DECIDED_2PC + TRIP, DECIDED_2PC + TRIP}}},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* --- without failures --- */

/* Figure 3: one round trip and one log write before the caller hears. */
static void fig3_cornus_no_failure(void **state)
{
    (void)state;
    struct dw_scenario scenario;
    dw_scenario_init(&scenario, &dw_cornus, 3);
    struct dw_scenario_result result = play("fig3_cornus_no_failure", &scenario);
    struct expected expected = {.caller = DW_OUTCOME_COMMITTED,
                                .answered_us = VOTED,
                                .outcome = DW_OUTCOME_COMMITTED,
                                .decided_us = {VOTED, VOTED + TRIP, VOTED + TRIP}};
    assert_expected(&result, &expected);
    assert_int_equal(result.answered_us - COMMIT, ROUND_TRIP + LOG);
}

/* Figure 1a: "one network round-trip and two logging operations". */
static void fig1a_2pc_no_failure(void **state)
{
    (void)state;
    struct dw_scenario scenario;
    dw_scenario_init(&scenario, &dw_two_phase, 3);
    struct dw_scenario_result result = play("fig1a_2pc_no_failure", &scenario);
    struct expected expected = {.caller = DW_OUTCOME_COMMITTED,
                                .answered_us = DECIDED_2PC,
                                .outcome = DW_OUTCOME_COMMITTED,
                                .decided_us = {DECIDED_2PC, DECIDED_2PC + TRIP, DECIDED_2PC + TRIP}};
    assert_expected(&result, &expected);
    assert_int_equal(result.answered_us - COMMIT, ROUND_TRIP + 2 * LOG);
}

/* --- the bound of Cornus, at every point at which a coordinator can fail --- */

/* The coordinator crashes for good before its n-th output of any kind that travels. Whoever has voted decides
 * in time, whatever had left until then. */
static void cornus_decides_in_time_wherever_the_coordinator_fails(void **state)
{
    (void)state;
    static const enum dw_message_kind messages[] = {DW_MSG_VOTE_REQUEST, DW_MSG_DECISION};
    for (uint32_t nodes = 2; nodes <= DW_WORLD_NODES; nodes++) {
        for (uint32_t i = 0; i < 2 * (nodes - 1); i++) {
            struct dw_scenario scenario;
            struct dw_scenario_result result;
            dw_scenario_init(&scenario, &dw_cornus, nodes);
            dw_scenario_add(&scenario,
                            (struct dw_fault)AT_OUTPUT(BEFORE, 0, SEND, message, messages[i / (nodes - 1)],
                                                       1 + i % (nodes - 1)));
            dw_scenario_run(&scenario, &result);
            assert_true(dw_scenario_observed(&scenario, &result));
            assert_null(result.violation);
            assert_decided_in_time(&scenario, &result);
            for (uint32_t node = 1; node < nodes; node++) {
                assert_int_not_equal(result.node[node].outcome, DW_OUTCOME_UNKNOWN);
                assert_int_equal(result.node[node].state, DW_TXN_ABSENT);
            }
        }
    }
}

/* A vote that is lost costs the coordinator its time-out and one log write, and nobody an abort. */
static void a_lost_vote_delays_cornus_by_one_termination(void **state)
{
    (void)state;
    struct dw_scenario scenario;
    struct dw_scenario_result result;
    dw_scenario_init(&scenario, &dw_cornus, 3);
    struct dw_scenario_point vote = {.node = 2, .out = DW_OUT_SEND, .message = DW_MSG_VOTE};
    dw_scenario_add(&scenario, (struct dw_fault){.kind = DW_FAULT_LOSE, .point = vote});
    dw_scenario_run(&scenario, &result);
    assert_true(dw_scenario_observed(&scenario, &result));
    assert_null(result.violation);
    assert_int_equal(result.caller, DW_OUTCOME_COMMITTED);
    assert_int_equal(result.answered_us, VOTES_OUT + LOG);
    assert_int_equal(result.lost, 1);
}

/* A participant that votes no denies in its own log first, then says so. */
static void a_no_vote_aborts_after_one_denial(void **state)
{
    (void)state;
    for (unsigned i = 0; dw_protocol_at(i) != NULL; i++) {
        struct dw_scenario scenario;
        struct dw_scenario_result result;
        dw_scenario_init(&scenario, dw_protocol_at(i), 3);
        scenario.broken = dw_node_bit(2);
        dw_scenario_run(&scenario, &result);
        assert_null(result.violation);
        assert_int_equal(result.caller, DW_OUTCOME_ABORTED);
        assert_int_equal(result.answered_us, VOTED);
        assert_int_equal(result.log[2].record_count, 1);
        assert_int_equal(result.log[2].records[0], DW_RECORD_ABORT);
    }
}

/* --- does a scenario see what it must see? --- */

/* A fault whose point is never passed is not observed, nor a restart of a node that never went down. */
static void a_fault_that_does_not_happen_is_not_observed(void **state)
{
    (void)state;
    static const struct dw_fault never[] = {
        {.kind = DW_FAULT_CRASH_BEFORE,
         .point = {.node = 0, .out = DW_OUT_SEND, .message = DW_MSG_INQUIRY, .peer = DW_SCENARIO_ANY}},
        {.kind = DW_FAULT_CRASH_BEFORE,
         .point = {.node = 0, .out = DW_OUT_SEND, .message = DW_MSG_DECISION, .peer = 1, .nth = 2}},
        {.kind = DW_FAULT_RESTART_AT, .point.node = 1, .at_us = 5000},
        {.kind = DW_FAULT_CRASH_AT, .point.node = 1, .at_us = 2000000},
    };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        struct dw_scenario scenario;
        struct dw_scenario_result result;
        dw_scenario_init(&scenario, &dw_cornus, 3);
        dw_scenario_add(&scenario, never[i]);
        dw_scenario_run(&scenario, &result);
        assert_false(dw_scenario_observed(&scenario, &result));
    }
}

/* A wrong protocol is caught: this coordinator takes the first answer for all of them. */
static void decide_at_the_first_answer(struct dw_step *step)
{
    decide(step, DW_OUTCOME_COMMITTED);
}

static void a_violation_is_seen(void **state)
{
    (void)state;
    struct dw_protocol hasty = dw_cornus;
    hasty.answers_changed = decide_at_the_first_answer;
    struct dw_scenario scenario;
    struct dw_scenario_result result;
    dw_scenario_init(&scenario, &hasty, 3);
    struct dw_scenario_point request = {
        .node = 0, .out = DW_OUT_SEND, .message = DW_MSG_VOTE_REQUEST, .peer = 2};
    dw_scenario_add(&scenario, (struct dw_fault){.kind = DW_FAULT_LOSE, .point = request});
    dw_scenario_run(&scenario, &result);
    assert_true(dw_scenario_observed(&scenario, &result));
    assert_non_null(result.violation);
    assert_string_equal(result.violation, "commit-validity");
}

int main(void)
{
    enum { FIXED = 7 };
    struct CMUnitTest tests[SCENARIOS + FIXED] = {
        cmocka_unit_test(fig1a_2pc_no_failure),
        cmocka_unit_test(fig3_cornus_no_failure),
        cmocka_unit_test(cornus_decides_in_time_wherever_the_coordinator_fails),
        cmocka_unit_test(a_lost_vote_delays_cornus_by_one_termination),
        cmocka_unit_test(a_no_vote_aborts_after_one_denial),
        cmocka_unit_test(a_fault_that_does_not_happen_is_not_observed),
        cmocka_unit_test(a_violation_is_seen),
    };
    for (size_t i = 0; i < SCENARIOS; i++) {
        union {
            const struct scenario *test;
            void *state;
        } argument = {.test = &scenarios[i]};
        tests[FIXED + i] = (struct CMUnitTest){
            .name = scenarios[i].name, .test_func = play_with_crash, .initial_state = argument.state};
    }
    return cmocka_run_group_tests_name("scenario", tests, NULL, NULL);
}
