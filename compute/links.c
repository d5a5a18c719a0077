#include "compute/runtime.h"

#include <string.h>

#include "base/assert.h"

static void note_lost(enum dw_error error)
{
    /* An item that cannot be encoded is our own mistake; one without memory is lost like any other message.
     */
    DW_ASSERT(error == DW_OK || error == DW_ERR_MEMORY);
}

/* A stream that is full or down loses what was queued: the time-outs of the protocol see to it. */
static void send_bytes(const struct peer *peer, size_t size)
{
    if (peer->conn != NULL && size > 0) {
        enum dw_error error = dw_conn_send(peer->conn, peer->out.data, size);
        (void)error;
    }
}

/* After an item was appended behind `before` bytes: what would not fit one message leaves in two. */
static void keep_within_message(struct peer *peer, size_t before)
{
    if (peer->out.size > DW_MAX_MESSAGE) {
        send_bytes(peer, before);
        peer->out.size -= before;
        memmove(peer->out.data, peer->out.data + before, peer->out.size);
    }
}

void links_send_message(struct runtime *runtime, const struct dw_message *message,
                        const struct dw_token *token)
{
    struct peer *peer = &runtime->compute[message->to];
    if (peer->conn != NULL) {
        size_t before = peer->out.size;
        note_lost(dw_encode_message(&peer->out, message, token));
        keep_within_message(peer, before);
    }
}

void links_send_log(struct runtime *runtime, const struct dw_wire_log_request *request)
{
    struct peer *peer = &runtime->storage[cluster_storage_of(runtime->cluster, request->request.log)];
    if (peer->conn != NULL) {
        size_t before = peer->out.size;
        note_lost(dw_encode_log_request(&peer->out, request));
        keep_within_message(peer, before);
    }
}

void links_send_access(struct runtime *runtime, uint32_t to, const struct dw_wire_access_request *request)
{
    struct peer *peer = &runtime->compute[to];
    if (peer->conn != NULL) {
        size_t before = peer->out.size;
        note_lost(dw_encode_access_request(&peer->out, request));
        keep_within_message(peer, before);
    }
}

void links_send_access_reply(struct runtime *runtime, uint32_t to, const struct dw_wire_access_reply *reply)
{
    struct peer *peer = &runtime->compute[to];
    if (peer->conn == NULL) {
        return;
    }
    size_t before = peer->out.size;
    enum dw_error error = dw_encode_access_reply(&peer->out, reply);
    if (error == DW_ERR_TOO_LARGE) {
        /* More rows than a message holds: the transaction cannot run this way. */
        struct dw_wire_access_reply refused = *reply;
        refused.status = ACCESS_REFUSED;
        refused.row_count = 0;
        error = dw_encode_access_reply(&peer->out, &refused);
    }
    note_lost(error);
    keep_within_message(peer, before);
}

static void flush_peer(struct peer *peer)
{
    send_bytes(peer, peer->out.size);
    peer->out.size = 0;
}

void links_flush(struct runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->cluster->storage_nodes; i++) {
        flush_peer(&runtime->storage[i]);
    }
    for (uint32_t i = 0; i < runtime->cluster->compute_nodes; i++) {
        flush_peer(&runtime->compute[i]);
    }
}

static struct peer *find_peer(struct runtime *runtime, const struct dw_identity *peer)
{
    if (peer->role == DW_ROLE_COMPUTE && peer->node < runtime->cluster->compute_nodes) {
        return &runtime->compute[peer->node];
    }
    if (peer->role == DW_ROLE_STORAGE && peer->node < runtime->cluster->storage_nodes) {
        return &runtime->storage[peer->node];
    }
    return NULL;
}

static void drop(struct peer *peer)
{
    if (peer->accepted) {
        dw_conn_unref(peer->conn);
    }
    peer->conn = NULL;
    peer->accepted = false;
    peer->out.size = 0;
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

void links_down(struct runtime *runtime, struct dw_conn *conn)
{
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

void links_close(struct runtime *runtime)
{
    for (uint32_t i = 0; i < DW_MAX_NODES; i++) {
        if (runtime->compute[i].conn != NULL) {
            drop(&runtime->compute[i]);
        }
        dw_buffer_free(&runtime->compute[i].out);
        dw_buffer_free(&runtime->storage[i].out);
    }
}
