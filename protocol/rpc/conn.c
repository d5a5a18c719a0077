#include <grpc/byte_buffer_reader.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "rpc/internal.h"

static void on_start(void *owner, bool ok);
static void on_read(void *owner, bool ok);
static void on_write(void *owner, bool ok);

struct dw_conn *conn_open(struct dw_rpc *rpc, bool client)
{
    struct dw_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        return NULL;
    }
    conn->rpc = rpc;
    conn->client = client;
    atomic_init(&conn->references, 1);
    pthread_mutex_init(&conn->mutex, NULL);
    conn->queue.limit = rpc->options.max_queue_bytes;
    conn->queue_reserved = rpc->options.reserved_bytes;
    conn->start_tag = (struct rpc_tag){.run = on_start, .owner = conn};
    conn->read_tag = (struct rpc_tag){.run = on_read, .owner = conn};
    conn->write_tag = (struct rpc_tag){.run = on_write, .owner = conn};
    return conn;
}

void dw_conn_ref(struct dw_conn *conn)
{
    atomic_fetch_add_explicit(&conn->references, 1, memory_order_relaxed);
}

void dw_conn_unref(struct dw_conn *conn)
{
    unsigned before = atomic_fetch_sub_explicit(&conn->references, 1, memory_order_acq_rel);
    DW_ASSERT(before > 0);
    if (before == 1) {
        DW_ASSERT(conn->call == NULL);
        rpc_queue_clear(&conn->queue);
        pthread_mutex_destroy(&conn->mutex);
        free(conn);
    }
}

void dw_conn_set_user(struct dw_conn *conn, void *user)
{
    conn->user = user;
}

void *dw_conn_user(const struct dw_conn *conn)
{
    return conn->user;
}

void conn_start(struct dw_conn *conn, const grpc_op *ops, size_t count, struct rpc_tag *tag)
{
    grpc_call_error error = grpc_call_start_batch(conn->call, ops, count, tag, NULL);
    DW_ASSERT(error == GRPC_CALL_OK);
    conn->operations++;
}

/* The mutex is held and no other send is under way. */
static void start_write(struct dw_conn *conn, const uint8_t *data, size_t size)
{
    DW_ASSERT(!conn->writing && conn->outgoing == NULL);
    grpc_slice slice = grpc_slice_from_copied_buffer((const char *)data, size);
    conn->outgoing = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    conn->writing = true;
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = conn->outgoing};
    conn_start(conn, &op, 1, &conn->write_tag);
}

/* The mutex is held. */
static void written(struct dw_conn *conn, bool ok)
{
    grpc_byte_buffer_destroy(conn->outgoing);
    conn->outgoing = NULL;
    conn->writing = false;
    /* After a failed write the call is dying and its status is on the way. */
    conn->open = conn->open && ok;
}

/* Sends, and takes the end of the send from gRPC at once, as a rule: otherwise gRPC would wake the loop
 * thread to tell it. What this thread is handed instead may be any event of the endpoint. The mutex is held.
 */
static void write_now(struct dw_conn *conn, const uint8_t *data, size_t size)
{
    struct dw_rpc *rpc = conn->rpc;
    void *tag;
    int ok;
    grpc_completion_queue_thread_local_cache_init(rpc->queue);
    start_write(conn, data, size);
    if (grpc_completion_queue_thread_local_cache_flush(rpc->queue, &tag, &ok) == 0) {
        return;
    }
    /* The call's last event ends it, which is for the loop thread. */
    if (tag == &conn->write_tag && conn->operations > 1) {
        written(conn, ok != 0);
        conn->operations--;
    } else {
        rpc_hand_over(rpc, tag, ok != 0);
    }
}

/* Sends all that waits, up to the largest message, if nothing is under way. The mutex is held. */
static void flush(struct dw_conn *conn)
{
    if (!conn->open || conn->writing) {
        return;
    }
    struct rpc_chunk *chunk = rpc_queue_take(&conn->queue);
    if (chunk != NULL) {
        size_t size;
        const uint8_t *bytes = rpc_chunk_bytes(chunk, &size);
        start_write(conn, bytes, size);
        rpc_queue_recycle(&conn->queue, chunk);
    }
}

static enum dw_error send_leaving(struct dw_conn *conn, const uint8_t *data, size_t size, size_t reserved)
{
    if (size > DW_MAX_MESSAGE) {
        return DW_ERR_TOO_LARGE;
    }
    enum dw_error error = DW_OK;
    pthread_mutex_lock(&conn->mutex);
    if (!conn->open) {
        error = DW_ERR_CLOSED;
    } else if (size > 0 && conn->writing) {
        error = rpc_queue_append(&conn->queue, data, size, reserved);
    } else if (size > 0) {
        write_now(conn, data, size);
    }
    pthread_mutex_unlock(&conn->mutex);
    return error;
}

enum dw_error dw_conn_send(struct dw_conn *conn, const uint8_t *data, size_t size)
{
    return send_leaving(conn, data, size, 0);
}

enum dw_error dw_conn_send_bulk(struct dw_conn *conn, const uint8_t *data, size_t size)
{
    return send_leaving(conn, data, size, conn->queue_reserved);
}

const struct dw_identity *dw_conn_peer(const struct dw_conn *conn)
{
    return &conn->peer;
}

void conn_read(struct dw_conn *conn)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &conn->incoming};
    pthread_mutex_lock(&conn->mutex);
    conn_start(conn, &op, 1, &conn->read_tag);
    pthread_mutex_unlock(&conn->mutex);
}

void conn_up(struct dw_conn *conn, const struct dw_identity *peer)
{
    pthread_mutex_lock(&conn->mutex);
    conn->open = true;
    pthread_mutex_unlock(&conn->mutex);
    conn->up = true;
    conn->peer = *peer;
    if (conn->rpc->options.handlers.on_up != NULL) {
        conn->rpc->options.handlers.on_up(conn->rpc->options.user, conn, &conn->peer);
    }
}

static void note_reason(struct dw_conn *conn, enum dw_error error, const char *text)
{
    if (conn->reason == DW_OK) {
        conn->reason = error;
        snprintf(conn->text, sizeof conn->text, "%s", text);
    }
}

static void shut(struct dw_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    conn->open = false;
    rpc_queue_clear(&conn->queue);
    pthread_mutex_unlock(&conn->mutex);
}

void conn_close(struct dw_conn *conn, enum dw_error error, const char *text)
{
    DW_ASSERT(error != DW_OK && conn->call != NULL);
    note_reason(conn, error, text);
    shut(conn);
    grpc_call_cancel_with_status(conn->call, rpc_status_of(error), text, NULL);
}

void dw_conn_close(struct dw_conn *conn, enum dw_error error, const char *text)
{
    if (conn->call != NULL && !conn->finished && conn->reason == DW_OK) {
        conn_close(conn, error, text);
    }
}

void conn_finished(struct dw_conn *conn, enum dw_error error, const char *text)
{
    note_reason(conn, error, text);
    shut(conn);
    conn->finished = true;
}

static void drop_incoming(struct dw_conn *conn)
{
    grpc_byte_buffer_destroy(conn->incoming);
    conn->incoming = NULL;
    conn->held = false;
}

/* Everything that the call had under way has come back. */
static void conn_ended(struct dw_conn *conn)
{
    struct dw_rpc *rpc = conn->rpc;
    if (conn->held) {
        drop_incoming(conn);
    }
    pthread_mutex_lock(&conn->mutex);
    grpc_call_unref(conn->call);
    conn->call = NULL;
    conn->writing = false;
    pthread_mutex_unlock(&conn->mutex);
    grpc_metadata_array_destroy(&conn->metadata);
    DW_ASSERT(conn->reason != DW_OK && rpc->live > 0);
    rpc->live--;
    if (conn->client) {
        client_ended(conn);
        return;
    }
    if (conn->up && rpc->options.handlers.on_down != NULL) {
        rpc->options.handlers.on_down(rpc->options.user, conn, conn->reason, conn->text);
    }
    dw_conn_unref(conn);
}

void conn_done(struct dw_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    DW_ASSERT(conn->operations > 0);
    bool last = --conn->operations == 0;
    pthread_mutex_unlock(&conn->mutex);
    if (last && conn->finished) {
        conn_ended(conn);
    }
}

/* The initial metadata is out; what was sent meanwhile can follow. */
static void on_start(void *owner, bool ok)
{
    struct dw_conn *conn = owner;
    (void)ok;
    pthread_mutex_lock(&conn->mutex);
    conn->writing = false;
    flush(conn);
    pthread_mutex_unlock(&conn->mutex);
    conn_done(conn);
}

static void on_write(void *owner, bool ok)
{
    struct dw_conn *conn = owner;
    pthread_mutex_lock(&conn->mutex);
    written(conn, ok);
    flush(conn);
    pthread_mutex_unlock(&conn->mutex);
    conn_done(conn);
}

/* Gives one message to the user, without a copy if it lies in one piece. */
static enum dw_error deliver(struct dw_conn *conn)
{
    grpc_byte_buffer_reader reader;
    const struct dw_rpc_options *options = &conn->rpc->options;
    if (!grpc_byte_buffer_reader_init(&reader, conn->incoming)) {
        return DW_ERR_MALFORMED;
    }
    grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
    enum dw_error error = DW_OK;
    if (conn->up && options->handlers.on_message != NULL && conn->reason == DW_OK) {
        error = options->handlers.on_message(options->user, conn, GRPC_SLICE_START_PTR(slice),
                                             GRPC_SLICE_LENGTH(slice));
    }
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
    return error;
}

/* Reading on waits until the tick has sent what follows from this message. gRPC grants the peer new window
 * with the next message that leaves on the stream; but if it is to read while none is granted, in a packet of
 * its own, which would cost a system call and wake the peer for nothing. */
static void read_after_tick(struct dw_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    conn->operations++; /* so that the call does not end meanwhile */
    pthread_mutex_unlock(&conn->mutex);
    conn->next_unread = conn->rpc->unread;
    conn->rpc->unread = conn;
}

void conn_read_all(struct dw_rpc *rpc)
{
    while (rpc->unread != NULL) {
        struct dw_conn *conn = rpc->unread;
        rpc->unread = conn->next_unread;
        if (!conn->finished) {
            conn_read(conn);
        }
        conn_done(conn);
    }
}

/* Gives the user what came and reads on, unless the user has it held. */
static void take(struct dw_conn *conn)
{
    enum dw_error error = deliver(conn);
    if (conn->held && error == DW_OK && conn->reason == DW_OK) {
        return;
    }
    drop_incoming(conn);
    if (error != DW_OK) {
        char text[RPC_TEXT];
        char self[40];
        rpc_identity_text(&conn->rpc->options.self, self, sizeof self);
        snprintf(text, sizeof text, "%s closes the stream: %s", self, dw_error_text(error));
        dw_conn_close(conn, error, text);
    } else if (!conn->finished) {
        read_after_tick(conn);
    }
}

void dw_conn_hold(struct dw_conn *conn)
{
    DW_ASSERT(conn->incoming != NULL);
    conn->held = true;
}

void dw_conn_resume(struct dw_conn *conn)
{
    if (conn->held) {
        conn->held = false;
        take(conn);
    }
}

static void on_read(void *owner, bool ok)
{
    struct dw_conn *conn = owner;
    if (ok && conn->incoming != NULL) {
        take(conn);
    } else if (!conn->client && !conn->finished) {
        /* The client learns more from the status, which follows; a server ends what its peer has ended. */
        conn_close(conn, DW_ERR_CLOSED, "the peer closed the stream, sent too much, or is gone");
    }
    conn_done(conn);
}
