#include "compute/runtime.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static void note_lost(enum dw_error error)
{
    /* An item that cannot be encoded is our own mistake; one without memory is lost like any other message.
     */
    DW_ASSERT(error == DW_OK || error == DW_ERR_MEMORY);
}

static void count_refused(uint64_t *counter, enum dw_error error, const struct outbox *outbox)
{
    if (error == DW_ERR_FULL) {
        *counter += outbox->items;
    }
}

/* What a stream that is full or down does not take is lost: the time-outs of the protocol see to it. */
static void send_accesses(struct runtime *runtime, struct peer *peer)
{
    struct outbox *outbox = &peer->accesses;
    if (peer->conn != NULL && outbox->bytes.size > 0) {
        enum dw_error error = dw_conn_send_bulk(peer->conn, outbox->bytes.data, outbox->bytes.size);
        count_refused(&runtime->refused.accesses, error, outbox);
    }
    outbox->bytes.size = 0;
    outbox->items = 0;
}

static void send_messages(struct runtime *runtime, struct peer *peer)
{
    struct outbox *outbox = &peer->messages;
    if (peer->conn != NULL && outbox->bytes.size > 0) {
        enum dw_error error = dw_conn_send(peer->conn, outbox->bytes.data, outbox->bytes.size);
        count_refused(&runtime->refused.messages, error, outbox);
    }
    outbox->bytes.size = 0;
    outbox->items = 0;
}

/* Accesses go first: an abort that overtakes the access before it would leave an execution that nobody ends
 * before its time-out. */
static void send_apart(struct runtime *runtime, struct peer *peer)
{
    send_accesses(runtime, peer);
    send_messages(runtime, peer);
}

/* An item was appended behind `before` bytes: what would not fit one message leaves in two. */
static void keep_within_message(struct runtime *runtime, struct peer *peer, struct outbox *outbox,
                                size_t before)
{
    struct dw_buffer *bytes = &outbox->bytes;
    outbox->items += bytes->size > before;
    if (bytes->size > DW_MAX_MESSAGE) {
        size_t item = bytes->size - before;
        bytes->size = before;
        outbox->items--;
        send_apart(runtime, peer);
        memmove(bytes->data, bytes->data + before, item);
        bytes->size = item;
        outbox->items = 1;
    }
}

void links_send_message(struct runtime *runtime, const struct dw_message *message,
                        const struct dw_token *token)
{
    struct peer *peer = &runtime->compute[message->to];
    if (peer->conn != NULL) {
        size_t before = peer->messages.bytes.size;
        note_lost(dw_encode_message(&peer->messages.bytes, message, token));
        keep_within_message(runtime, peer, &peer->messages, before);
    }
}

void links_send_log(struct runtime *runtime, const struct dw_wire_log_request *request)
{
    struct peer *peer = &runtime->storage[cluster_storage_of(runtime->cluster, request->request.log)];
    if (peer->conn != NULL) {
        size_t before = peer->messages.bytes.size;
        note_lost(dw_encode_log_request(&peer->messages.bytes, request));
        keep_within_message(runtime, peer, &peer->messages, before);
    }
}

void links_send_access(struct runtime *runtime, uint32_t to, const struct dw_wire_access_request *request)
{
    struct peer *peer = &runtime->compute[to];
    if (peer->conn != NULL) {
        size_t before = peer->accesses.bytes.size;
        note_lost(dw_encode_access_request(&peer->accesses.bytes, request));
        keep_within_message(runtime, peer, &peer->accesses, before);
    }
}

void links_send_access_reply(struct runtime *runtime, uint32_t to, const struct dw_wire_access_reply *reply)
{
    struct peer *peer = &runtime->compute[to];
    if (peer->conn == NULL) {
        return;
    }
    size_t before = peer->accesses.bytes.size;
    enum dw_error error = dw_encode_access_reply(&peer->accesses.bytes, reply);
    if (error == DW_ERR_TOO_LARGE) {
        /* More rows than a message holds: the transaction cannot run this way. */
        struct dw_wire_access_reply refused = *reply;
        refused.status = ACCESS_REFUSED;
        refused.row_count = 0;
        error = dw_encode_access_reply(&peer->accesses.bytes, &refused);
    }
    note_lost(error);
    keep_within_message(runtime, peer, &peer->accesses, before);
}

/* Both as one message, if the stream has room for bulk of that size. */
static bool send_joined(struct peer *peer)
{
    struct dw_buffer *accesses = &peer->accesses.bytes;
    const struct dw_buffer *messages = &peer->messages.bytes;
    if (accesses->size + messages->size > DW_MAX_MESSAGE) {
        return false;
    }
    uint8_t *room = dw_buffer_reserve(accesses, messages->size);
    if (room == NULL) {
        return false;
    }
    memcpy(room, messages->data, messages->size);
    return dw_conn_send_bulk(peer->conn, accesses->data, accesses->size + messages->size) == DW_OK;
}

static void flush_peer(struct runtime *runtime, struct peer *peer)
{
    bool both = peer->accesses.bytes.size > 0 && peer->messages.bytes.size > 0;
    if (peer->conn != NULL && both && send_joined(peer)) {
        peer->accesses.bytes.size = peer->messages.bytes.size = 0;
        peer->accesses.items = peer->messages.items = 0;
        return;
    }
    send_apart(runtime, peer);
}

void links_flush(struct runtime *runtime)
{
    /* Compute nodes first: what follows from a vote request takes one message more than what follows from the
     * own vote. */
    for (uint32_t i = 0; i < runtime->cluster->compute_nodes; i++) {
        flush_peer(runtime, &runtime->compute[i]);
    }
    for (uint32_t i = 0; i < runtime->cluster->storage_nodes; i++) {
        flush_peer(runtime, &runtime->storage[i]);
    }
}

static struct peer *find_peer(struct runtime *runtime, const struct dw_identity *peer)
{
    if (peer->role == DW_ROLE_COMPUTE && peer->node < runtime->cluster->compute_nodes &&
        peer->node != runtime->options->node) {
        return &runtime->compute[peer->node];
    }
    if (peer->role == DW_ROLE_STORAGE && peer->node < runtime->cluster->storage_nodes) {
        return &runtime->storage[peer->node];
    }
    return NULL;
}

bool links_is_peer(struct runtime *runtime, const struct dw_identity *identity)
{
    return find_peer(runtime, identity) != NULL;
}

static void drop(struct peer *peer)
{
    if (peer->accepted) {
        dw_conn_unref(peer->conn);
    }
    peer->conn = NULL;
    peer->accepted = false;
    peer->messages.bytes.size = peer->accesses.bytes.size = 0;
    peer->messages.items = peer->accesses.items = 0;
}

/* Of two compute nodes the one with the larger number opens the stream; both send on it. A new one replaces
 * one whose end was not noticed yet. */
void links_up(struct runtime *runtime, struct dw_conn *conn, const struct dw_identity *identity)
{
    struct peer *peer = find_peer(runtime, identity);
    if (peer == NULL) {
        return;
    }
    drop(peer);
    peer->conn = conn;
    peer->accepted = identity->role == DW_ROLE_COMPUTE && identity->node > runtime->options->node;
    if (peer->accepted) {
        dw_conn_ref(conn);
    }
}

/* Whether an operator has to mend something. A peer that is away is no news: `status` counts those that are
 * up. */
static bool is_for_operator(enum dw_error error)
{
    switch (error) {
    case DW_ERR_ARGUMENT:
    case DW_ERR_RANGE:
    case DW_ERR_REFUSED:
    case DW_ERR_MALFORMED:
        return true;
    case DW_ERR_OK:
    case DW_ERR_MEMORY:
    case DW_ERR_IO:
    case DW_ERR_CORRUPT:
    case DW_ERR_LOCKED:
    case DW_ERR_MISSING:
    case DW_ERR_ADDRESS:
    case DW_ERR_FULL:
    case DW_ERR_CLOSED:
    case DW_ERR_TIMEOUT:
    case DW_ERR_TOO_LARGE:
    case DW_ERR_SHUTDOWN:
        return false;
    }
    return false;
}

void links_down(struct runtime *runtime, struct dw_conn *conn, enum dw_error error, const char *text)
{
    if (is_for_operator(error)) {
        fprintf(stderr, "dogwood-compute %u: %s\n", runtime->options->node, text);
    }
    for (uint32_t i = 0; i < DW_MAX_NODES; i++) {
        if (runtime->compute[i].conn == conn) {
            drop(&runtime->compute[i]);
        }
        if (runtime->storage[i].conn == conn) {
            drop(&runtime->storage[i]);
        }
    }
}

uint32_t links_count_up(const struct runtime *runtime)
{
    uint32_t up = 0;
    for (uint32_t i = 0; i < DW_MAX_NODES; i++) {
        up += (runtime->compute[i].conn != NULL) + (runtime->storage[i].conn != NULL);
    }
    return up;
}

static void free_outboxes(struct peer *peer)
{
    dw_buffer_free(&peer->messages.bytes);
    dw_buffer_free(&peer->accesses.bytes);
}

void links_close(struct runtime *runtime)
{
    for (uint32_t i = 0; i < DW_MAX_NODES; i++) {
        if (runtime->compute[i].conn != NULL) {
            drop(&runtime->compute[i]);
        }
        free_outboxes(&runtime->compute[i]);
        free_outboxes(&runtime->storage[i]);
    }
}
