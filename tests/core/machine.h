/* machine.h - one machine of the core, fed event by event, whose updates are read as text.
 *
 * Each function steps the machine and returns the state that it leaves and the outputs, as the tracer words
 * them: "PREPARED: send VOTE YES to 0; timer DECISION". So a test reads like the protocol. The text lives
 * until the next step. Every step also passes dw_txn_check and dw_node_check.
 */
#ifndef DW_TESTS_CORE_MACHINE_H
#define DW_TESTS_CORE_MACHINE_H

#include "core/protocol.h"

struct machine {
    const struct dw_protocol *protocol;
    struct dw_node node;
    struct dw_txn txn;
    struct dw_txn_id id;
    struct dw_update update; /* of the last step */
    char text[1024];
};

/* Serves as `slot` in incarnation 1, and knows nothing of the transaction, which node 0 coordinates. */
void machine_init(struct machine *machine, const struct dw_protocol *protocol, uint32_t slot);

/* The same, but still scanning: it takes machine_recover. */
void machine_init_scanning(struct machine *machine, const struct dw_protocol *protocol, uint32_t slot);

const char *machine_step(struct machine *machine, struct dw_event event);
const char *machine_commit(struct machine *machine, uint64_t writers, uint64_t readers);
const char *machine_cancel(struct machine *machine, uint64_t joined);
const char *machine_join(struct machine *machine);

/* VOTE_REQUEST from node 0, listing `writers`; READ_REQUEST from it. */
const char *machine_ask_vote(struct machine *machine, uint64_t writers, enum dw_execution execution);
const char *machine_ask_read(struct machine *machine, enum dw_execution execution);

/* Any other message. */
const char *machine_hear(struct machine *machine, uint32_t from, enum dw_message_kind kind, uint32_t value);

/* A log's reply. The entry's position is 7. */
const char *machine_reply(struct machine *machine, uint32_t log, enum dw_ask ask, enum dw_answer answer);

/* The armed timer fires. */
const char *machine_timeout(struct machine *machine);

const char *machine_recover(struct machine *machine, enum dw_entry_state entry, uint64_t writers);

#endif
