#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "storage/server_internal.h"

/* Replies of one batch to one peer travel as one message, unless they are more than this. */
enum { FIRST_SUBMISSIONS = 256, SEND_BYTES = 1 << 20 };

static void peer_link(struct peer *peer)
{
    struct server *server = peer->server;
    pthread_mutex_lock(&server->lock);
    peer->next = server->peers;
    if (peer->next != NULL) {
        peer->next->previous = peer;
    }
    server->peers = peer;
    pthread_mutex_unlock(&server->lock);
}

static void peer_unlink(struct peer *peer)
{
    struct server *server = peer->server;
    pthread_mutex_lock(&server->lock);
    if (peer->previous != NULL) {
        peer->previous->next = peer->next;
    } else {
        server->peers = peer->next;
    }
    if (peer->next != NULL) {
        peer->next->previous = peer->previous;
    }
    pthread_mutex_unlock(&server->lock);
}

static void peer_free(struct peer *peer)
{
    dw_conn_unref(peer->conn);
    dw_buffer_free(&peer->replies);
    free(peer);
}

static void peer_unref(struct peer *peer, size_t count)
{
    size_t before = atomic_fetch_sub(&peer->references, count);
    DW_ASSERT(before >= count);
    if (before == count) {
        peer_unlink(peer);
        peer_free(peer);
    }
}

void stream_free_all(struct server *server)
{
    while (server->peers != NULL) {
        struct peer *peer = server->peers;
        server->peers = peer->next;
        peer_free(peer);
    }
}

/* Replies, on the log writer's thread. */

/* A peer that misses a reply would wait for ever on a stream that works, so the stream goes down with it. */
static void lose_replies(struct peer *peer)
{
    atomic_store(&peer->lost_replies, true);
    storage_wake(peer->server);
}

static void send_replies(struct peer *peer)
{
    enum dw_error error = dw_conn_send(peer->conn, peer->replies.data, peer->replies.size);
    peer->replies.size = 0;
    atomic_fetch_add(&peer->server->counters.reply_messages, 1);
    /* If the stream went down meanwhile, its peer knows. */
    if (error != DW_OK && error != DW_ERR_CLOSED) {
        lose_replies(peer);
    }
}

static void on_done(void *context, uint64_t id, const struct dw_log_request *request, enum dw_answer answer,
                    uint64_t position, uint32_t incarnation)
{
    struct peer *peer = context;
    struct dw_wire_log_reply reply = {.id = id,
                                      .reply = {.txn = request->txn,
                                                .log = request->log,
                                                .ask = request->ask,
                                                .answer = answer,
                                                .position = position},
                                      .incarnation = incarnation};
    if (dw_encode_log_reply(&peer->replies, &reply) != DW_OK) {
        lose_replies(peer);
    }
    if (peer->replies.size >= SEND_BYTES) {
        send_replies(peer);
    }
    peer->answered++;
    if (!peer->dirty) {
        peer->dirty = true;
        peer->next_dirty = peer->server->dirty;
        peer->server->dirty = peer;
    }
}

void stream_batch_end(struct server *server)
{
    while (server->dirty != NULL) {
        struct peer *peer = server->dirty;
        size_t answered = peer->answered;
        server->dirty = peer->next_dirty;
        peer->dirty = false;
        peer->answered = 0;
        if (peer->replies.size > 0) {
            send_replies(peer);
        }
        peer_unref(peer, answered);
    }
}

/* Requests, on the loop thread. */

/* One message on its way from the decoder to the log service. */
struct intake {
    struct peer *peer;
    size_t count;
    enum dw_error error;
    uint32_t strange_log; /* of the first request for a log that isn't served here */
};

static enum dw_error make_room(struct server *server, size_t count)
{
    if (count < server->submission_capacity) {
        return DW_OK;
    }
    size_t capacity = server->submission_capacity == 0 ? FIRST_SUBMISSIONS : 2 * server->submission_capacity;
    struct dw_log_submission *grown = realloc(server->submissions, capacity * sizeof *grown);
    if (grown == NULL) {
        return DW_ERR_MEMORY;
    }
    server->submissions = grown;
    server->submission_capacity = capacity;
    return DW_OK;
}

static void take_request(void *user, const struct dw_wire_log_request *request)
{
    struct intake *intake = user;
    struct server *server = intake->peer->server;
    if (intake->error != DW_OK) {
        return;
    }
    if ((server->options.logs & dw_node_bit(request->request.log)) == 0) {
        intake->error = DW_ERR_ARGUMENT;
        intake->strange_log = request->request.log;
        return;
    }
    intake->error = make_room(server, intake->count);
    if (intake->error == DW_OK) {
        server->submissions[intake->count++] = (struct dw_log_submission){
            .request = request->request,
            .participants = request->participants,
            .redo = request->redo,
            .redo_size = request->redo_size,
            .force = request->force,
            .id = request->id,
            .done = on_done,
            .context = intake->peer,
        };
    }
}

/* Keeps the message until the log queue has room. Meanwhile nothing more is read from this peer: its window
 * fills up, and then its sends wait. */
static void hold(struct peer *peer)
{
    struct server *server = peer->server;
    DW_ASSERT(!peer->held);
    peer->held = true;
    peer->next_held = NULL;
    if (server->held_tail == NULL) {
        server->held_head = peer;
    } else {
        server->held_tail->next_held = peer;
    }
    server->held_tail = peer;
    atomic_fetch_add(&server->counters.held, 1);
    dw_conn_hold(peer->conn);
}

/* The writer tells of room only if it knows that somebody waits. So that is said before the last attempt:
 * either the attempt finds the room, or the writer makes it later and tells. */
static enum dw_error submit(struct peer *peer, size_t count)
{
    struct server *server = peer->server;
    atomic_fetch_add(&peer->references, count);
    enum dw_error error = dw_log_service_submit(server->service, server->submissions, count);
    if (error == DW_ERR_FULL) {
        atomic_store(&server->waiting, true);
        error = dw_log_service_submit(server->service, server->submissions, count);
    }
    if (error != DW_OK) {
        peer_unref(peer, count);
    }
    return error;
}

static void refuse(struct peer *peer, enum dw_error error, const char *what)
{
    char text[256];
    struct server *server = peer->server;
    atomic_fetch_add(&server->counters.refused, 1);
    snprintf(text, sizeof text, "%s: refused by storage node %u, which closes the stream", what,
             server->options.self.node);
    dw_conn_close(peer->conn, error, text);
}

static void refuse_log(struct peer *peer, uint32_t log)
{
    char text[256];
    bool served = storage_serves(peer->server, log, text, sizeof text);
    DW_ASSERT(!served);
    atomic_fetch_add(&peer->server->counters.refused, 1);
    dw_conn_close(peer->conn, DW_ERR_ARGUMENT, text);
}

/* A compute node writes in its own name only: a fence, a denial and a vote are judged by who wrote them.
 * Tools may write in any. */
static enum dw_error decode(struct intake *intake, const uint8_t *data, size_t size, const char **wrong)
{
    static const struct dw_batch_visitor visitor = {.log_request = take_request};
    const struct dw_identity *from = dw_conn_peer(intake->peer->conn);
    struct dw_decoder *decoder = &intake->peer->server->decoder;
    switch (from->role) {
    case DW_ROLE_COMPUTE:
        return dw_decode_batch_of(decoder, from->node, data, size, &visitor, intake, wrong);
    case DW_ROLE_CLIENT:
        return dw_decode_batch(decoder, data, size, &visitor, intake, wrong);
    case DW_ROLE_STORAGE:
        break;
    }
    *wrong = "a message from a storage node, which has no log to write to";
    return DW_ERR_MALFORMED;
}

/* Either all requests of a message are submitted, or none. */
enum dw_error stream_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    struct server *server = user;
    struct intake intake = {.peer = dw_conn_user(conn)};
    const char *wrong = NULL;
    if (intake.peer == NULL) {
        return DW_ERR_MEMORY;
    }
    enum dw_error error = decode(&intake, data, size, &wrong);
    if (error == DW_ERR_MALFORMED) {
        refuse(intake.peer, error, wrong);
        return DW_OK;
    }
    if (error == DW_OK && intake.error == DW_ERR_ARGUMENT) {
        refuse_log(intake.peer, intake.strange_log);
        return DW_OK;
    }
    error = error == DW_OK ? intake.error : error;
    if (error == DW_OK && intake.count > 0) {
        error = submit(intake.peer, intake.count);
    }
    if (error == DW_ERR_FULL) {
        hold(intake.peer);
        return DW_OK;
    }
    if (error != DW_OK) {
        refuse(intake.peer, error, dw_error_text(error));
        return DW_OK;
    }
    atomic_fetch_add(&server->counters.messages, 1);
    return DW_OK;
}

static struct peer *pop_held(struct server *server)
{
    struct peer *peer = server->held_head;
    server->held_head = peer->next_held;
    if (server->held_head == NULL) {
        server->held_tail = NULL;
    }
    peer->held = false;
    return peer;
}

/* Until one finds no room: it lines up again at the end, and the writer will tell again. */
static void retry_held(struct server *server)
{
    bool room = true;
    while (room && server->held_head != NULL) {
        struct peer *peer = pop_held(server);
        dw_conn_resume(peer->conn);
        room = !peer->held;
    }
}

void stream_attend(struct server *server)
{
    retry_held(server);
    /* Peers come only through this thread, and go through it or the writer's: only the links need the lock.
     * A stream that is down ignores its closing. */
    pthread_mutex_lock(&server->lock);
    for (struct peer *peer = server->peers; peer != NULL; peer = peer->next) {
        if (atomic_exchange(&peer->lost_replies, false)) {
            dw_conn_close(peer->conn, DW_ERR_FULL,
                          "the peer does not read its replies, and too many wait: the stream is closed");
        }
    }
    pthread_mutex_unlock(&server->lock);
}

void stream_up(void *user, struct dw_conn *conn, const struct dw_identity *identity)
{
    struct server *server = user;
    (void)identity;
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        dw_conn_close(conn, DW_ERR_MEMORY, "the storage node is out of memory");
        return;
    }
    peer->server = server;
    peer->conn = conn;
    atomic_init(&peer->references, 1);
    dw_conn_ref(conn);
    dw_conn_set_user(conn, peer);
    peer_link(peer);
    atomic_fetch_add(&server->counters.streams, 1);
}

static void remove_held(struct peer *gone)
{
    struct server *server = gone->server;
    struct peer *last = NULL;
    for (struct peer *peer = server->held_head; peer != gone; peer = peer->next_held) {
        last = peer;
    }
    if (last == NULL) {
        server->held_head = gone->next_held;
    } else {
        last->next_held = gone->next_held;
    }
    if (server->held_tail == gone) {
        server->held_tail = last;
    }
    gone->held = false;
}

void stream_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    struct server *server = user;
    struct peer *peer = dw_conn_user(conn);
    (void)error;
    (void)text;
    if (peer == NULL) {
        return;
    }
    if (peer->held) {
        remove_held(peer);
    }
    dw_conn_set_user(conn, NULL);
    atomic_fetch_sub(&server->counters.streams, 1);
    peer_unref(peer, 1);
}
