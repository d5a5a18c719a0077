/* internal.h - what the files of protocol/rpc share. Not for others.
 *
 * Everything that is started on the completion queue has a tag, and the loop thread runs the tag's function
 * when the queue gives it back. `live` counts the things that still await tags; the loop ends when it is 0
 * after a stop.
 */
#ifndef DW_RPC_INTERNAL_H
#define DW_RPC_INTERNAL_H

#include <grpc/grpc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "rpc/queue.h"
#include "rpc/rpc.h"

#define RPC_SERVICE     "/dogwood.v1.Node/"
#define RPC_STREAM_NAME "Stream"
#define RPC_ERROR_KEY   "dw-error" /* trailing metadata of a unary reply: the number of its dw_error */

enum {
    RPC_TEXT = 256,
    RPC_ADDRESS = 280,        /* a host name, brackets and a port */
    RPC_HANDSHAKE_MS = 5000,  /* from the start of an attempt to the server's identity */
    RPC_CONNECT_MS = 1000,    /* one attempt to connect */
    RPC_MESSAGE_SLACK = 1024, /* what gRPC may receive beyond DW_MAX_MESSAGE */
    RPC_ACCEPTS = 8,          /* incoming calls that may be matched at once */
    RPC_EVENTS_A_TICK = 16,
};

struct rpc_tag {
    void (*run)(void *owner, bool ok);
    void *owner;
    struct rpc_tag *next; /* in the list of strays */
    bool ok;
};

struct dw_rpc {
    struct dw_rpc_options options; /* with defaults filled in; `listen` is NULL */
    grpc_completion_queue *queue;
    grpc_server *server;
    uint16_t port;
    pthread_t thread;

    pthread_mutex_t mutex;
    struct dw_conn *clients; /* what dw_rpc_connect made; freed by dw_rpc_stop */
    grpc_channel *wake_channel;
    grpc_call *wake_call; /* never started: it only carries empty batches */
    struct rpc_tag wake_tag;
    bool wake_pending;
    bool wake_closed;
    bool stop_asked;
    struct rpc_tag *strays; /* events that came to a sender although they are the loop's */

    /* The loop thread's own. */
    bool stopping;
    size_t live;
    uint64_t due_us;        /* when a client connection wants attention */
    struct dw_conn *unread; /* connections that go on reading after the next tick */
    struct rpc_tag shutdown_tag;
};

/* One side of one stream. A connection that this endpoint opened lives through many calls, one after the
 * other. */
struct dw_conn {
    struct dw_rpc *rpc; /* for the loop thread only: a reference may outlive the endpoint */
    struct dw_conn *next;
    atomic_uint references;
    void *user;

    pthread_mutex_t mutex;
    bool open;           /* sends are accepted */
    bool writing;        /* a send is under way, so others wait in `queue` */
    unsigned operations; /* batches whose tags have not come back */
    grpc_call *call;
    grpc_byte_buffer *outgoing;
    struct rpc_queue queue;
    size_t queue_reserved; /* what dw_conn_send_bulk leaves free; constant */

    /* The loop thread's own. */
    bool client;
    struct dw_identity peer; /* of the last on_up */
    bool up;                 /* on_up was called, on_down not yet */
    bool finished;           /* the call's status is known: nothing but stragglers can come */
    bool held;               /* `incoming` is to be delivered again */
    struct dw_conn *next_unread;
    enum dw_error reason;
    char text[RPC_TEXT];
    grpc_byte_buffer *incoming;
    grpc_metadata_array metadata;
    struct rpc_tag start_tag;
    struct rpc_tag read_tag;
    struct rpc_tag write_tag;
    struct rpc_tag finish_tag;
    int cancelled; /* accepted */

    /* Opened here. */
    struct dw_identity expect;
    char address[RPC_ADDRESS];
    grpc_channel *channel;
    struct rpc_tag hello_tag;
    grpc_metadata_array trailing;
    grpc_status_code status;
    grpc_slice details;
    uint64_t due_us;             /* next attempt, or end of the hand-shake's time; UINT64_MAX: none */
    enum dw_error last_reported; /* of failed attempts in a row */
};

/* address.c: one numeric address out of "host:port" or "[v6]:port". */
struct rpc_address {
    char text[RPC_ADDRESS];    /* as it was asked for */
    char numeric[RPC_ADDRESS]; /* "127.0.0.1:7001", "[::1]:7001" */
    char target[RPC_ADDRESS];  /* the same for grpc_channel_create: "ipv4:127.0.0.1:7001" */
};
/* Port 0 is good only if `listening`. On DW_ERR_ADDRESS *text names address and mend. */
DW_MUST_CHECK enum dw_error rpc_resolve(const char *address, bool listening, struct rpc_address *resolved,
                                        char *text, size_t text_size);
/* Says why a server could not listen there. */
void rpc_explain_listen(const struct rpc_address *address, char *text, size_t text_size);

/* args.c: arguments of channels and servers. */
enum { RPC_ARGS_MAX = 32 };
struct rpc_args {
    grpc_channel_args list;
    grpc_arg args[RPC_ARGS_MAX];
};
void rpc_args_server(struct rpc_args *args, uint32_t keepalive_ms);
void rpc_args_client(struct rpc_args *args, uint32_t keepalive_ms, uint32_t reconnect_ms);
/* gRPC's own log lines are dropped unless GRPC_VERBOSITY asks for them: each failure has its line here. */
void rpc_silence(void);

/* handshake.c: who is who, in the initial metadata of both sides. */
enum { RPC_HELLO_ITEMS = 5 };
struct rpc_hello {
    grpc_metadata items[RPC_HELLO_ITEMS];
};
/* Fills the metadata; the slices are released with rpc_hello_release once the batch has been started. */
void rpc_hello_fill(struct rpc_hello *hello, const struct dw_identity *self);
void rpc_hello_release(struct rpc_hello *hello);
/* A run id that may be sent: empty, or letters, digits, '.', '_' and '-'. */
bool rpc_run_id_valid(const char *run_id);
/* The same of a protocol's name. */
bool rpc_protocol_valid(const char *protocol);
/* Reads who sent the metadata; true if `self`, as a server, may talk with it. Else *text names both sides. */
bool rpc_hello_accept(const struct dw_identity *self, const grpc_metadata_array *metadata,
                      struct dw_identity *peer, char *text, size_t text_size);
/* The same at the client. *present tells if the metadata held an identity at all; if not, a status will
 * follow. */
bool rpc_hello_check(const struct dw_identity *self, const struct dw_identity *expect, const char *address,
                     const grpc_metadata_array *metadata, struct dw_identity *peer, bool *present, char *text,
                     size_t text_size);
void rpc_identity_text(const struct dw_identity *identity, char *text, size_t text_size);

/* status.c */
grpc_status_code rpc_status_of(enum dw_error error);
enum dw_error rpc_error_of(grpc_status_code status);
/* The bytes of a slice as text, cut at the buffer's end. */
void rpc_slice_text(grpc_slice slice, char *text, size_t text_size);

/* loop.c */
void *rpc_loop(void *rpc);
/* Gives an event that another thread was handed by gRPC to the loop thread. */
void rpc_hand_over(struct dw_rpc *rpc, struct rpc_tag *tag, bool ok);
void rpc_wake_open(struct dw_rpc *rpc);

/* conn.c: what accepted and opened streams have in common. */
struct dw_conn *conn_open(struct dw_rpc *rpc, bool client);
/* Starts a batch; the mutex must be held. */
void conn_start(struct dw_conn *conn, const grpc_op *ops, size_t count, struct rpc_tag *tag);
/* A batch came back. Ends the call if it was the last one. */
void conn_done(struct dw_conn *conn);
/* Asks for the next message. */
void conn_read(struct dw_conn *conn);
/* The same for all that have delivered a message since the last time. */
void conn_read_all(struct dw_rpc *rpc);
/* The stream is up: sends are accepted from here on, and the user hears of it. */
void conn_up(struct dw_conn *conn, const struct dw_identity *peer);
/* Cancels the call; on_down will give this reason. */
void conn_close(struct dw_conn *conn, enum dw_error error, const char *text);
/* The call is at its end; the reason is kept if none is known yet. */
void conn_finished(struct dw_conn *conn, enum dw_error error, const char *text);

/* client.c */
void client_attend(struct dw_rpc *rpc, uint64_t now_us);
void client_ended(struct dw_conn *conn);
void client_stop_all(struct dw_rpc *rpc);

/* server.c */
DW_MUST_CHECK enum dw_error server_open(struct dw_rpc *rpc, const char *listen, char *text, size_t text_size);
void server_stop(struct dw_rpc *rpc);

/* unary.c: takes over the call and answers it; `refusal` is the line for a caller that is refused, or NULL.
 */
void unary_begin(struct dw_rpc *rpc, grpc_call *grpc, const char *method, const char *refusal);

#endif
