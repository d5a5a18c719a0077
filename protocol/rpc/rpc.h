/* rpc.h - messages between processes: batched bidirectional streams for the hot paths, unary calls for
 * administration. The only user of gRPC C core.
 *
 * A `dw_rpc` is one endpoint: one completion queue, one thread that is always blocked in it (the loop
 * thread), at most one listening server, and any number of peers that it connects to. Every callback runs on
 * the loop thread and must not block. Sending is allowed from every thread.
 *
 * A stream message is opaque bytes here: whatever was queued with dw_conn_send while the previous message was
 * on its way goes out as one message, in order. wire/codec.h fills and reads the bytes (concatenated items of
 * a Batch).
 *
 * Hand-shake: a client tells role, node, run id, version and commit protocol in the call's metadata; the
 * server compares run id and version, between compute nodes the protocol too, and refuses a stranger with a
 * status that names both sides. A client also learns who answered, and drops a peer that is not the one that
 * it expected.
 */
#ifndef DW_RPC_RPC_H
#define DW_RPC_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"

struct dw_rpc;
/* One stream with one peer, opened by either side. */
struct dw_conn;

enum dw_role {
    DW_ROLE_STORAGE = 1,
    DW_ROLE_COMPUTE = 2,
    DW_ROLE_CLIENT = 3, /* dogwood-ctl, bench programs, tests: no node number to be unique */
};

enum { DW_MAX_PROTOCOL = 31 }; /* characters of a protocol's name */

/* Who an endpoint says it is. */
struct dw_identity {
    enum dw_role role;
    uint32_t node;
    char run_id[DW_MAX_RUN_ID + 1];
    /* How a compute node commits; empty for all others. Two compute nodes must agree in it: a vote, a
     * decision or a silence means another thing in each protocol. */
    char protocol[DW_MAX_PROTOCOL + 1];
};

/* The answer of a unary handler: a packed message (rpc frees it with free()), or an error with its one-line
 * text. */
struct dw_unary_reply {
    enum dw_error error;
    char text[256]; /* error: names the thing and the mend */
    uint8_t *data;  /* DW_OK: malloc'ed, may be NULL if size is 0 */
    size_t size;
};

/* Answers a deferred unary call from any thread; takes the reply's data. Call exactly once per call. */
struct dw_unary_call;
void dw_unary_finish(struct dw_unary_call *call, struct dw_unary_reply *reply);

struct dw_rpc_handlers {
    /* A stream came up. `peer` is who is at the other end; valid during the call. For a connection that this
     * endpoint opened, it is called again after each reconnection. NULL: ignored. */
    void (*on_up)(void *user, struct dw_conn *conn, const struct dw_identity *peer);
    /* One stream message. The bytes are valid during the call. Return an error, DW_ERR_MALFORMED as a rule,
     * to have the stream closed with an error status (dw_conn_close before it gives the words); other
     * connections are unaffected. One that was opened here is tried again. NULL: messages are dropped. */
    enum dw_error (*on_message)(void *user, struct dw_conn *conn, const uint8_t *data, size_t size);
    /* The stream is gone: everything that was queued or unacknowledged is lost. An accepted connection must
     * not be used after this returns, nor from other threads later (see dw_conn_ref); one that this endpoint
     * opened will be retried. `text` says why. For a connection opened here it is also called, without an
     * on_up before, when an attempt fails for another error than the attempt before it (unreachable,
     * refused), so it can be reported as it comes: DW_ERR_REFUSED with both sides' names for a stranger.
     * NULL: ignored. */
    void (*on_down)(void *user, struct dw_conn *conn, enum dw_error error, const char *text);
    /* A unary call of `method` ("Stats"). Must lead to exactly one dw_unary_finish(call, ...), now or later,
     * from any thread, even after dw_rpc_stop. For a method that is not known answer DW_ERR_MISSING. NULL:
     * all methods are unknown. */
    void (*on_unary)(void *user, struct dw_unary_call *call, const char *method, const uint8_t *data,
                     size_t size);
    /* Called whenever the loop thread is about to wait for the next event, so after each other callback and
     * after dw_rpc_wake, though once for several that were there together: the place to send what follows
     * from them. Returns the monotonic time (dw_rpc_now_us) at which it wants to be called again at the
     * latest, or UINT64_MAX. gRPC rounds that time up to a millisecond. Keep it cheap. Not called any more
     * once dw_rpc_stop has begun. NULL: never. */
    uint64_t (*on_tick)(void *user, uint64_t now_us);
};

struct dw_rpc_options {
    struct dw_identity self; /* run id, protocol: letters, digits, '.', '_', '-'; an empty run id, for a
                                client only, means any */
    const char *listen;      /* "127.0.0.1:0", or NULL for an endpoint without a server; copied */
    size_t max_queue_bytes;  /* bound of what may wait in one connection; 0: 64 MiB */
    size_t reserved_bytes;   /* of these, what dw_conn_send_bulk leaves free; 0: a quarter */
    uint32_t reconnect_ms;   /* back-off between attempts; 0: 100 */
    uint32_t keepalive_ms;   /* ping interval; a silent peer is dropped after one more; 0: 2000 */
    struct dw_rpc_handlers handlers;
    void *user;
};

/* Starts the endpoint and its loop thread. Signals that the process handles must be blocked before (gRPC's
 * threads inherit the mask), and the process must not fork afterwards. On failure *text (size bytes) gets one
 * line that names the thing and the mend: an address that cannot be used is DW_ERR_ADDRESS. */
DW_MUST_CHECK enum dw_error dw_rpc_start(const struct dw_rpc_options *options, struct dw_rpc **rpc,
                                         char *text, size_t text_size);

/* The port that the server listens on, also if 0 was asked for; 0 without a server. */
uint16_t dw_rpc_port(const struct dw_rpc *rpc);

/* Opens a connection that reconnects by itself until dw_rpc_stop. `expect` is the identity that must answer
 * (role and node; run id is always our own). The pointer is valid until dw_rpc_stop. */
DW_MUST_CHECK enum dw_error dw_rpc_connect(struct dw_rpc *rpc, const char *address,
                                           const struct dw_identity *expect, struct dw_conn **conn);

/* Queues bytes (at most DW_MAX_MESSAGE) for the peer and sends as soon as the previous message is out. They
 * go out whole, in one message, after what was queued before. DW_ERR_CLOSED if the stream is down,
 * DW_ERR_FULL if the bound would be passed: nothing was queued. A message that was accepted may still be
 * lost. From any thread. */
DW_MUST_CHECK enum dw_error dw_conn_send(struct dw_conn *conn, const uint8_t *data, size_t size);

/* The same for what may be refused first: DW_ERR_FULL also if less than `reserved_bytes` would be left for
 * dw_conn_send. From any thread. */
DW_MUST_CHECK enum dw_error dw_conn_send_bulk(struct dw_conn *conn, const uint8_t *data, size_t size);

/* Who is at the other end, as in on_up: from on_up to the end of on_down. On the loop thread only. */
const struct dw_identity *dw_conn_peer(const struct dw_conn *conn);

/* Called within on_message, which then returns DW_OK: the message cannot be taken now. It is kept, and
 * nothing more is read, so that the peer's sends come to wait; dw_conn_resume delivers it again and reads on.
 * A message that is held when the stream goes down is lost. On the loop thread only. */
void dw_conn_hold(struct dw_conn *conn);
/* Must not be called within on_message. Does nothing if no message is held. On the loop thread only. */
void dw_conn_resume(struct dw_conn *conn);

/* Lets another thread hold an accepted connection beyond on_down; sends then give DW_ERR_CLOSED. */
void dw_conn_ref(struct dw_conn *conn);
void dw_conn_unref(struct dw_conn *conn);

/* Closes the stream with an error and a line that the peer gets to read (a server's line arrives; of a
 * client's the server learns only that the stream ended). on_down follows. One that was opened here is tried
 * again. Loop thread. */
void dw_conn_close(struct dw_conn *conn, enum dw_error error, const char *text);

/* A slot for the user's own pointer. Set on the loop thread. */
void dw_conn_set_user(struct dw_conn *conn, void *user);
void *dw_conn_user(const struct dw_conn *conn);

/* Makes the loop thread run on_tick soon. From any thread. */
void dw_rpc_wake(struct dw_rpc *rpc);

/* Monotonic time in microseconds: what all deadlines are measured by. */
uint64_t dw_rpc_now_us(void);

/* Stops: new calls are refused, streams are closed, the queue is drained to its end, the thread is joined,
 * all memory is freed. Connections' on_down is called. */
void dw_rpc_stop(struct dw_rpc *rpc);

/* A blocking unary call of `method` at `address`, for tools and start-up; uses a channel of its own, not a
 * dw_rpc. `self` is checked by the server like a stream's. On DW_OK the reply is in *data (free() it) and
 * *size; else *text tells (the server's own line, if it sent one). Waits for a server that is not up yet
 * until the deadline. */
DW_MUST_CHECK enum dw_error dw_rpc_call(const char *address, const struct dw_identity *self,
                                        const char *method, const uint8_t *request, size_t request_size,
                                        uint32_t deadline_ms, uint8_t **data, size_t *size, char *text,
                                        size_t text_size);

#endif
