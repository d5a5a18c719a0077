/* server_internal.h - what the files of the storage node's server share. Not for others.
 *
 * Three threads meet here: the loop thread of rpc/rpc.h takes requests and never blocks; the log writer
 * answers them; the reader looks into the store for administration calls.
 */
#ifndef DW_STORAGE_SERVER_INTERNAL_H
#define DW_STORAGE_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/server.h"
#include "wire/admin.h"
#include "wire/codec.h"

/* The far end of one stream. Lives until the stream is down and all its requests are answered. */
struct peer {
    struct server *server;
    struct dw_conn *conn;
    atomic_size_t references; /* one for the stream, one for each request in the log service */
    struct peer *next;        /* of all; under the server's lock */
    struct peer *previous;

    /* The log writer's own. */
    struct dw_buffer replies;
    size_t answered; /* since the batch began */
    struct peer *next_dirty;
    bool dirty;
    atomic_bool lost_replies; /* the stream must go down, since replies are missing in it */

    /* The loop thread's own. */
    bool held;
    struct peer *next_held;
};

/* Calls that read the store, on a thread of their own. */
struct reader {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct read_job *head;
    struct read_job *tail;
    size_t count;
    bool closing;
};

struct server_counters {
    atomic_uint_fast64_t streams;        /* that are up */
    atomic_uint_fast64_t messages;       /* taken from streams */
    atomic_uint_fast64_t reply_messages; /* sent: one for each stream that a batch answers */
    atomic_uint_fast64_t refused;        /* messages that were malformed or not for this node */
    atomic_uint_fast64_t held;           /* messages that had to wait for room in the queue */
    atomic_uint_fast64_t reads_refused;
};

struct server {
    struct server_options options;
    struct dw_log_service *service;
    struct server_counters counters;
    struct reader reader;
    atomic_bool stop_told;

    pthread_mutex_t lock;
    struct dw_rpc *rpc; /* NULL before it is up, and once it goes down */
    struct peer *peers;

    atomic_bool waiting; /* a message is held: the writer should tell when there is room */
    atomic_bool attend;  /* the loop thread should look after held messages and lost replies */

    /* The loop thread's own. */
    struct dw_decoder decoder;
    struct dw_log_submission *submissions; /* of the message that is being decoded */
    size_t submission_capacity;
    struct peer *held_head;
    struct peer *held_tail;

    /* The log writer's own. */
    struct peer *dirty;
};

/* server.c */
/* Makes the loop thread run stream_attend soon. From any thread. */
void storage_wake(struct server *server);
void storage_tell_stop(struct server *server);
/* True if the log is served here; else *text tells who does not serve what. */
bool storage_serves(const struct server *server, uint32_t log, char *text, size_t text_size);

/* stream.c: on the loop thread, but for stream_batch_end. */
void stream_up(void *server, struct dw_conn *conn, const struct dw_identity *peer);
enum dw_error stream_message(void *server, struct dw_conn *conn, const uint8_t *data, size_t size);
void stream_down(void *server, struct dw_conn *conn, enum dw_error error, const char *text);
/* Delivers held messages again, and closes streams that lost replies. */
void stream_attend(struct server *server);
/* The log writer: sends what the batch answered. */
void stream_batch_end(struct server *server);
/* What a failed store left behind; no thread may be running any more. */
void stream_free_all(struct server *server);

/* admin.c: on the loop thread. */
void admin_call(void *server, struct dw_unary_call *call, const char *method, const uint8_t *data,
                size_t size);
void admin_refuse(struct dw_unary_call *call, enum dw_error error, const char *text);
/* Answers with what the buffer holds, which is taken over, or with the error. */
void admin_answer(struct dw_unary_call *call, enum dw_error error, struct dw_buffer *reply);

/* reader.c */
enum { READER_MAX_JOBS = 64 };
DW_MUST_CHECK enum dw_error reader_open(struct server *server);
/* Answers what waits, and ends the thread. */
void reader_close(struct server *server);
/* Takes the call over. From the loop thread. */
void reader_scan(struct server *server, struct dw_unary_call *call, const struct dw_admin_scan *scan);
void reader_read_entry(struct server *server, struct dw_unary_call *call, uint32_t log, struct dw_txn_id txn);

#endif
