/* handlers.h - the functions that protocols share, and the small words in which handlers are written.
 *
 * For protocol files (and the mutants of the tests) only; drivers include protocol.h.
 */
#ifndef DW_CORE_HANDLERS_H
#define DW_CORE_HANDLERS_H

#include "core/protocol.h"

/* --- words (step.c) --- */

/* The bit of the node that steps. */
uint64_t step_self(const struct dw_step *step);
/* Sends `kind` with `value` to all nodes in `to`; nothing if it is empty. */
void step_send(struct dw_step *step, enum dw_message_kind kind, uint32_t value, uint64_t to);
/* Sends the request to all logs in `to`; the transaction's list goes with it. */
void step_log(struct dw_step *step, enum dw_ask ask, uint64_t to, bool force);
/* The same to the own log. */
void step_log_own(struct dw_step *step, enum dw_ask ask, bool force);
void step_arm(struct dw_step *step, enum dw_timer timer);
/* Answers the caller if it still waits. */
void step_answer_caller(struct dw_step *step, enum dw_outcome outcome);
/* Applies the own changes if the outcome is commit, then frees the locks, if they are held. */
void step_release(struct dw_step *step, enum dw_outcome outcome);
void step_alarm(struct dw_step *step, enum dw_alarm alarm);
/* Ends the transaction here: the machine becomes DW_TXN_ABSENT. */
void step_forget(struct dw_step *step);
/* Stops without deciding: the caller hears "unknown", locks stay. */
void step_stop(struct dw_step *step, enum dw_alarm alarm);

/* --- coordinator.c: Coordinator::Start1PC (Algorithm 2, lines 1-12), and its frame in 2PC --- */

void coordinator_commit(struct dw_step *step);
void coordinator_cancel(struct dw_step *step);
void coordinator_vote(struct dw_step *step);
void coordinator_own_logged(struct dw_step *step);
void coordinator_ack(struct dw_step *step);
/* All answers are in and nothing is left to wait for but a local write: commits a transaction that lists no
 * log but the own one. */
void coordinator_commit_unlisted(struct dw_step *step);
/* True if a log other than the own one is listed: the protocol proper is needed. */
bool coordinator_is_distributed(const struct dw_step *step);

/* --- participant.c: Participant::Start1PC (lines 13-27) --- */

void participant_join(struct dw_step *step);
void participant_vote_request(struct dw_step *step);
void participant_vote(struct dw_step *step);        /* default of .vote_request */
void participant_deny_absent(struct dw_step *step); /* default of .vote_request_absent */
void participant_silence(struct dw_step *step);     /* default of .silence */
void participant_vote_logged(struct dw_step *step); /* default of .vote_logged */
void participant_read_request(struct dw_step *step);
void participant_decision(struct dw_step *step);
void participant_denied(struct dw_step *step);
/* Gives up execution state: frees the locks, denies in the own log; `relay` tells the coordinator what that
 * gave. */
void participant_deny(struct dw_step *step, bool relay);

/* --- decision.c: what follows when the outcome is known, in either role (lines 9-12, 24) --- */

/* The outcome is known here. Answers the caller, frees the locks, logs the decision, tells the participants.
 */
void decide(struct dw_step *step, enum dw_outcome outcome);
/* The reply to DECIDE_COMMIT, DECIDE_ABORT or COORD_ABORT. */
void decision_logged(struct dw_step *step);
/* Forgets the transaction if its decision is logged and acknowledged. */
void decision_settle(struct dw_step *step);

/* --- termination.c: TerminationProtocol (lines 28-36) --- */

/* An answer of a log while TERMINATING. */
void termination_answer(struct dw_step *step);
/* FORGOTTEN, from the own log, to one whose vote has left or never will: aborts if that vote was not logged,
 * else stops with an alarm. */
void termination_own_forgot(struct dw_step *step);
/* Every listed log (default of .listed): the own one too, as its vote may still be on the way. */
uint64_t termination_listed(const struct dw_step *step);

#endif
