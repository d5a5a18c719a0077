/* runtime.h - a compute node at work: what its parts share. Everything here belongs to the loop thread of its
 * dw_rpc.
 *
 * One thread does all of it: it executes accesses, steps the protocol core, and generates load. A worker slot
 * is a resumable state machine, not a thread, so no hand-over stands between a message and what follows from
 * it.
 */
#ifndef DW_COMPUTE_RUNTIME_H
#define DW_COMPUTE_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "compute/cluster.h"
#include "compute/engine/engine.h"
#include "compute/engine/redo.h"
#include "compute/failpoint.h"
#include "compute/lock_table.h"
#include "compute/stats.h"
#include "compute/timers.h"
#include "core/protocol.h"
#include "rpc/rpc.h"
#include "wire/codec.h"
#include "workloads/workload.h"

struct txn_context;
struct slot;
struct txn_table;

/* What the owner of a row answers to an access request. The numbers are sent on the wire. */
enum access_status {
    ACCESS_OK = 1,
    ACCESS_CONFLICT = 2, /* NO_WAIT: somebody else holds a row */
    ACCESS_MISMATCH =
        3, /* not the execution that the owner knows: it restarted, timed out, or was cancelled */
    ACCESS_REFUSED = 4, /* no such row or field, or no room for the lock */
};

enum loop_kind { LOOP_CLOSED, LOOP_OPEN };

struct runtime_options {
    uint32_t node;
    const char *run_id;
    const char *listen;
    const struct dw_protocol *protocol;
    uint32_t threads; /* worker slots */
    const struct dw_workload *workload;
    void *parameters; /* of the workload; owned by who made the options */
    uint64_t seed;
    enum loop_kind loop;
    double rate_tps; /* of this node, open loop */
    uint64_t timeout_us[DW_TIMER_FINISH + 1];
    uint64_t request_timeout_us;
    uint64_t retry_backoff_us;
    bool batch_accesses;
    struct failpoints failpoints;
};

/* What is to be sent with the next flush. */
struct outbox {
    struct dw_buffer bytes;
    uint32_t items;
};

/* One direction to another process: a connection that may be up, and what is to be sent. Accesses stand
 * apart, since they may not take the room that the stream's queue keeps for messages of the protocol. */
struct peer {
    struct dw_conn *conn;   /* NULL while it is down */
    bool accepted;          /* by our server: holds a reference */
    struct outbox messages; /* of the protocol; at a storage node log requests */
    struct outbox accesses; /* requests and replies */
};

/* What was refused on streams, since the process started. */
struct refusals {
    uint64_t accesses; /* too much waited for the peer already: their transactions abort */
    uint64_t messages; /* even the room that accesses leave was full: time-outs see to them */
    uint64_t batches;  /* that came: with something that their sender may not say */
};

enum load_state { LOAD_IDLE, LOAD_WARMUP, LOAD_MEASURING, LOAD_DRAINING, LOAD_DONE };

/* Intended starts of an open loop, one after the other. In nanoseconds: cut to microseconds, the gaps of a
 * high rate would come out wrong. */
struct arrivals {
    struct dw_random random;
    uint64_t next_ns;
};

struct load {
    enum load_state state;
    uint32_t number;   /* from 1: of the load, for what outlives it */
    uint64_t warm_us;  /* when measuring begins */
    uint64_t stop_us;  /* when measuring ends */
    uint64_t drain_us; /* when the node gives up waiting for the last decisions */
    struct slot *slots;
    uint64_t slots_due_us; /* the earliest time at which a slot wants to be looked at */
    /* Open loop. The same sequence twice: `taken` is as far as workers have come, `due` as far as time has
     * come, so that what waits is counted without being held. */
    struct arrivals taken;
    struct arrivals due;
    uint64_t due_count;       /* transactions whose intended start has come */
    uint64_t due_before;      /* of them before the window */
    uint64_t begun, finished; /* transactions, not attempts */
};

struct runtime {
    const struct runtime_options *options;
    const struct cluster *cluster;
    struct dw_rpc *rpc;
    struct dw_node node;
    struct peer compute[DW_MAX_NODES];
    struct peer storage[DW_MAX_NODES];
    struct refusals refused;
    struct dw_decoder decoder;
    /* Transactions unknown here whose abort came in the stream message that is being handled: within one
     * message decisions are visited before accesses, so an access in it may have been sent before its abort.
     */
    struct dw_txn_id cancelled[64];
    uint32_t cancelled_count;
    void *workload_state;
    struct dw_engine *engine;
    void *lock_memory;
    struct dw_lock_table *locks;
    struct txn_table *txns;
    struct timers timers;
    uint64_t token_counter;
    struct dw_random random; /* back-off; transactions are drawn from the slots' own */
    struct load load;
    struct stats stats;
    struct failpoints failpoints; /* as set at start, and since */
    uint64_t now_us;              /* when the event that is being handled was taken */
    bool stopping;                /* fenced, or a failpoint said error: the process ends with exit_code */
    int exit_code;
};

/* --- transactions at this node: txn_table.c --- */

/* Rows that were read: one entry an access (empty for a write), their bytes in `bytes`. */
struct row_sink {
    struct dw_wire_row *rows;
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

/* What a request of another node gave, kept until the next one: a request that comes again is answered with
 * it. */
struct access_answer {
    enum access_status status;
    size_t row_count;
    struct row_sink sink; /* owned */
};

/* One transaction at this node: the core's machine, and what the executor keeps for it. */
struct txn_context {
    struct dw_txn_id id;
    struct dw_txn machine;
    struct slot *slot;           /* coordinator, until the caller is answered */
    struct dw_redo redo;         /* own changes */
    struct dw_token token;       /* participant: the execution, and the requests that it ran */
    struct access_answer answer; /* participant: to the last of them */
    bool failed;                 /* an access failed: its locks are freed, it will not vote yes */
    bool wrote;
    bool distributed;
    bool applied;
    uint64_t begin_us;    /* coordinator: of the first attempt; 0 at others, and after a restart */
    uint64_t released_us; /* own locks were freed; coordinator: the latest of all nodes, on the own clock */
    uint64_t asked;       /* coordinator: nodes that free locks after what was sent to them */
    uint64_t told;        /* coordinator: nodes that have freed theirs */
    uint32_t measured;    /* coordinator: number of the load in whose window it committed; 0: in none */
    bool was_reader;      /* participant: answered as a reader, and doesn't learn the outcome */
    struct txn_costs costs;
};

struct txn_table *txn_table_open(void);
void txn_table_close(struct txn_table *table);
struct txn_context *txn_table_find(struct txn_table *table, struct dw_txn_id id);
/* Adds a zeroed context; NULL: no memory. */
struct txn_context *txn_table_add(struct txn_table *table, struct dw_txn_id id);
void txn_table_remove(struct txn_table *table, struct txn_context *context);
size_t txn_table_count(const struct txn_table *table);
/* Calls `visit` for each context; it must not add or remove any. */
void txn_table_each(struct txn_table *table, void (*visit)(void *user, struct txn_context *context),
                    void *user);

/* --- links.c: peers, and the bytes that go to them --- */

/* Queue one item for a peer; they leave with links_flush. What cannot be sent is lost, as on any network: the
 * protocol's time-outs see to it. A peer that does not read makes accesses be refused first, and messages of
 * the protocol only when the room that is kept for them is full too; `refused` counts both. */
void links_send_message(struct runtime *runtime, const struct dw_message *message,
                        const struct dw_token *token);
void links_send_log(struct runtime *runtime, const struct dw_wire_log_request *request);
void links_send_access(struct runtime *runtime, uint32_t to, const struct dw_wire_access_request *request);
void links_send_access_reply(struct runtime *runtime, uint32_t to, const struct dw_wire_access_reply *reply);
void links_flush(struct runtime *runtime);
void links_up(struct runtime *runtime, struct dw_conn *conn, const struct dw_identity *peer);
/* Reports on stderr what an operator has to mend: a refusal, not a peer that is away. */
void links_down(struct runtime *runtime, struct dw_conn *conn, enum dw_error error, const char *text);
/* True for the other nodes of the cluster. */
bool links_is_peer(struct runtime *runtime, const struct dw_identity *identity);
uint32_t links_count_up(const struct runtime *runtime);
void links_close(struct runtime *runtime);

/* --- intake.c: what comes from them --- */

/* Hears one stream message. A peer that says what it may not say, above all in another's name, loses its
 * stream with a line that says so. */
enum dw_error intake_message(struct runtime *runtime, struct dw_conn *conn, const uint8_t *data, size_t size);

/* --- driver.c: the commit driver over the pure core --- */

/* Steps the transaction's machine and carries out what it asks for. Afterwards `context` may be gone. */
void driver_step(struct runtime *runtime, struct txn_context *context, struct dw_event *event);
void driver_on_message(struct runtime *runtime, const struct dw_message *message,
                       const struct dw_token *token);
void driver_on_log_reply(struct runtime *runtime, const struct dw_wire_log_reply *reply);
/* True if the transaction's abort came in the same stream message. */
bool driver_is_cancelled(const struct runtime *runtime, struct dw_txn_id id);
/* Fires the timers that are due. */
void driver_on_timers(struct runtime *runtime);

/* --- executor.c: accesses at their owner --- */

/* Runs accesses for a transaction, in order, under locks; on a failure all its locks are freed. Rows that
 * were read go to the sink. */
enum access_status executor_run(struct runtime *runtime, struct txn_context *context,
                                const struct dw_wire_access *accesses, size_t count, struct row_sink *sink);
/* Each request of an execution is run once: the last one is answered again if it comes again, an older one is
 * left alone, since its answer was heard before the next one was sent. */
void executor_on_request(struct runtime *runtime, const struct dw_wire_access_request *request);
/* What this node has of the execution that a request of the coordinator names. */
enum dw_execution executor_execution(const struct txn_context *context, const struct dw_message *message,
                                     const struct dw_token *token);
/* Takes the write locks of a recovered write set again. */
enum dw_error executor_relock(struct runtime *runtime, struct txn_context *context);

/* --- load.c and slot.c: worker slots and what they run --- */

DW_MUST_CHECK enum dw_error load_open(struct runtime *runtime);
void load_close(struct runtime *runtime);
/* Starts to generate transactions. DW_ERR_ARGUMENT: it runs already. */
DW_MUST_CHECK enum dw_error load_begin(struct runtime *runtime, uint64_t warmup_us, uint64_t duration_us);
/* Moves the load on; returns when it wants to be called again. */
uint64_t load_tick(struct runtime *runtime);
void load_on_access_reply(struct runtime *runtime, const struct dw_wire_access_reply *reply);
/* The transaction's caller has its answer. */
void load_answered(struct runtime *runtime, struct txn_context *context, enum dw_outcome outcome);
const struct dw_token *slot_token(const struct slot *slot, uint32_t node);
/* All votes are known: the event that is being handled completed them. False if that was noted before. */
bool slot_note_prepared(struct slot *slot, uint64_t now_us);

/* --- recovery.c --- */

/* Takes the incarnation, scans the own log, applies what is committed, locks what is in doubt. Blocks; called
 * before the endpoint listens. One line in `text` on failure. */
DW_MUST_CHECK enum dw_error recovery_run(struct runtime *runtime, char *text, size_t text_size);

/* --- admin.c --- */

void admin_on_unary(void *user, struct dw_unary_call *call, const char *method, const uint8_t *data,
                    size_t size);

#endif
