/* world.h - a small cluster that commits one transaction, as a value: nodes, logs, and what happened so far.
 *
 * The nodes run the real core; the logs run the real log rule. Whoever drives the world (explorer, scenarios)
 * decides which packet arrives when, which timer fires, who crashes. Copying the struct copies the world.
 */
#ifndef DW_SIM_WORLD_H
#define DW_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/protocol.h"

enum { DW_WORLD_NODES = 4 };

/* What travels. Log requests go to storage, which never fails here. FENCE and SCAN are the calls of a
 * starting node. */
enum dw_packet_kind {
    DW_PACKET_MESSAGE = 1,
    DW_PACKET_LOG_REQUEST,
    DW_PACKET_LOG_REPLY,
    DW_PACKET_FENCE,
    DW_PACKET_FENCE_REPLY,
    DW_PACKET_SCAN,
    DW_PACKET_SCAN_REPLY,
};

/* One packet. Zeroed with its padding, so that equal packets are equal bytes. */
struct dw_packet {
    enum dw_packet_kind kind;
    uint32_t node;        /* compute node that sent it, or that it goes to: replies, messages (to) */
    uint32_t log;         /* requests to and replies from a log */
    uint32_t incarnation; /* FENCE_REPLY; LOG_REQUEST: the writer's */
    struct dw_message message;
    struct dw_log_request request;
    uint64_t participants; /* LOG_REQUEST, SCAN_REPLY: listed logs */
    struct dw_log_reply reply;
    enum dw_entry_state entry; /* SCAN_REPLY */
    uint32_t padding;
};

struct dw_world_log {
    uint32_t incarnation;
    uint32_t began_yes; /* the entry's first record is VOTE_YES */
    struct dw_entry entry;
    uint64_t participants;
};

/* What must never change once it is set, kept over crashes. */
struct dw_world_history {
    uint8_t outcome[DW_WORLD_NODES]; /* dw_outcome: what happened to the node's changes */
    uint8_t caller;                  /* dw_outcome that the caller heard */
    uint8_t caller_answered;
    uint8_t reversed;  /* a node's outcome changed: a violation */
    uint8_t conflicts; /* conflicts that logs answered: a violation */
    uint8_t alarms;    /* mask of dw_alarm */
    uint8_t blocked;   /* a 2PC node asked everybody and heard nothing */
};

struct dw_world {
    uint32_t nodes;
    uint32_t up; /* mask */
    uint64_t writers;
    uint64_t readers;
    struct dw_node node[DW_WORLD_NODES];
    struct dw_txn txn[DW_WORLD_NODES];
    struct dw_world_log log[DW_WORLD_NODES];
    struct dw_world_history history;
    uint8_t padding[4];
};

/* What the driver gives. `emit` is called for each packet that a step sends, `trace` (may be NULL) after each
 * step. */
struct dw_world_driver {
    const struct dw_protocol *protocol;
    dw_log_rule_fn *rule;
    void (*emit)(void *user, const struct dw_packet *packet);
    void (*trace)(void *user, const struct dw_world *world, uint32_t node, const struct dw_event *event,
                  const struct dw_update *update);
    void *user;
};

/* The id of the world's one transaction: node 0 coordinates it. */
struct dw_txn_id dw_world_txn(void);

/* What a step's outputs become on the way, for one destination: a SEND, a LOG, and the calls FENCE and SCAN.
 * The incarnation is the sender's. */
struct dw_packet dw_packet_message(uint32_t from, uint32_t to, const struct dw_out *out);
struct dw_packet dw_packet_request(uint32_t node, uint32_t incarnation, uint32_t log,
                                   const struct dw_out *out);
struct dw_packet dw_packet_call(uint32_t node, enum dw_packet_kind kind);

/* A log takes a LOG_REQUEST, FENCE or SCAN; returns its reply. */
struct dw_packet dw_world_log_serve(struct dw_world_log *log, dw_log_rule_fn *rule,
                                    const struct dw_packet *packet);

/* All nodes serve in incarnation 1, every other participant has run its accesses, and the caller is about to
 * commit. Writers and readers are masks over `nodes`. */
void dw_world_init(struct dw_world *world, const struct dw_world_driver *driver, uint32_t nodes,
                   uint64_t writers, uint64_t readers);

/* The caller asks node 0 to commit. Once, while node 0 is up in its first incarnation. */
void dw_world_commit(struct dw_world *world, const struct dw_world_driver *driver);

/* A packet arrives. One that arrives at a node that is down is lost. */
void dw_world_receive(struct dw_world *world, const struct dw_world_driver *driver,
                      const struct dw_packet *packet);

/* The armed timer of the node fires. */
void dw_world_timeout(struct dw_world *world, const struct dw_world_driver *driver, uint32_t node);

/* The node loses everything but its log; a caller that was not answered never will be. */
void dw_world_crash(struct dw_world *world, uint32_t node);
void dw_world_restart(struct dw_world *world, const struct dw_world_driver *driver, uint32_t node);

static inline bool dw_world_is_up(const struct dw_world *world, uint32_t node)
{
    return (world->up & (1u << node)) != 0;
}

#endif
