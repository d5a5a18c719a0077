#include "base/assert.h"
#include "base/limits.h"
#include "wire/check.h"
#include "wire/codec.h"
#include "wire/dogwood.pb-c.h"

/* A batch with one item has the very bytes that the item adds to any batch, so the item is packed as such a
 * batch. */
static enum dw_error append(struct dw_buffer *buffer, const Dogwood__V1__Batch *batch)
{
    size_t size = dogwood__v1__batch__get_packed_size(batch);
    if (size > DW_MAX_MESSAGE) {
        return DW_ERR_TOO_LARGE;
    }
    uint8_t *bytes = dw_buffer_reserve(buffer, size);
    if (bytes == NULL) {
        return DW_ERR_MEMORY;
    }
    size_t packed = dogwood__v1__batch__pack(batch, bytes);
    DW_ASSERT(packed == size);
    buffer->size += size;
    return DW_OK;
}

static Dogwood__V1__TxnId txn_out(struct dw_txn_id txn)
{
    Dogwood__V1__TxnId out = DOGWOOD__V1__TXN_ID__INIT;
    out.coordinator = txn.coordinator;
    out.incarnation = txn.incarnation;
    out.sequence = txn.sequence;
    return out;
}

/* protobuf-c takes pointers to bytes that it only reads. */
static ProtobufCBinaryData bytes_out(const uint8_t *data, size_t size)
{
    union {
        const uint8_t *in;
        uint8_t *out;
    } pointer = {.in = data};
    return (ProtobufCBinaryData){.len = size, .data = pointer.out};
}

enum dw_error dw_encode_log_request(struct dw_buffer *buffer, const struct dw_wire_log_request *request)
{
    if (request->redo_size > DW_MAX_REDO) {
        return DW_ERR_TOO_LARGE;
    }
    if (dw_check_log_request(request) != NULL) {
        return DW_ERR_ARGUMENT;
    }
    Dogwood__V1__TxnId txn = txn_out(request->request.txn);
    Dogwood__V1__LogRequest item = DOGWOOD__V1__LOG_REQUEST__INIT;
    item.id = request->id;
    item.txn = &txn;
    item.log = request->request.log;
    item.ask = (uint32_t)request->request.ask;
    item.writer = request->request.writer;
    item.incarnation = request->request.incarnation;
    item.participants = request->participants;
    item.redo = bytes_out(request->redo, request->redo_size);
    item.force = request->force;
    Dogwood__V1__LogRequest *items[] = {&item};
    Dogwood__V1__Batch batch = DOGWOOD__V1__BATCH__INIT;
    batch.n_log_requests = 1;
    batch.log_requests = items;
    return append(buffer, &batch);
}

enum dw_error dw_encode_log_reply(struct dw_buffer *buffer, const struct dw_wire_log_reply *reply)
{
    if (dw_check_log_reply(reply) != NULL) {
        return DW_ERR_ARGUMENT;
    }
    Dogwood__V1__TxnId txn = txn_out(reply->reply.txn);
    Dogwood__V1__LogReply item = DOGWOOD__V1__LOG_REPLY__INIT;
    item.id = reply->id;
    item.txn = &txn;
    item.log = reply->reply.log;
    item.ask = (uint32_t)reply->reply.ask;
    item.answer = (uint32_t)reply->reply.answer;
    item.position = reply->reply.position;
    item.incarnation = reply->incarnation;
    Dogwood__V1__LogReply *items[] = {&item};
    Dogwood__V1__Batch batch = DOGWOOD__V1__BATCH__INIT;
    batch.n_log_replies = 1;
    batch.log_replies = items;
    return append(buffer, &batch);
}

enum dw_error dw_encode_message(struct dw_buffer *buffer, const struct dw_message *message,
                                const struct dw_token *token)
{
    static const struct dw_token no_token;
    const struct dw_token *sent = token != NULL ? token : &no_token;
    if (dw_check_message(message, sent) != NULL) {
        return DW_ERR_ARGUMENT;
    }
    Dogwood__V1__TxnId txn = txn_out(message->txn);
    Dogwood__V1__CommitMessage item = DOGWOOD__V1__COMMIT_MESSAGE__INIT;
    item.txn = &txn;
    item.kind = (uint32_t)message->kind;
    item.from = message->from;
    item.to = message->to;
    item.value = message->value;
    item.writers = message->writers;
    item.token_incarnation = sent->incarnation;
    item.token_counter = sent->counter;
    item.accesses = sent->accesses;
    item.released_us = sent->released_us;
    Dogwood__V1__CommitMessage *items[] = {&item};
    Dogwood__V1__Batch batch = DOGWOOD__V1__BATCH__INIT;
    batch.n_commit_messages = 1;
    batch.commit_messages = items;
    return append(buffer, &batch);
}

static enum dw_error accesses_out(const struct dw_wire_access_request *request, Dogwood__V1__Access *accesses,
                                  Dogwood__V1__Access **pointers)
{
    for (size_t i = 0; i < request->access_count; i++) {
        const struct dw_wire_access *access = &request->accesses[i];
        if (dw_check_access(access) != NULL) {
            return DW_ERR_TOO_LARGE;
        }
        dogwood__v1__access__init(&accesses[i]);
        accesses[i].table = access->table;
        accesses[i].key = access->key;
        accesses[i].kind = access->kind;
        accesses[i].field = access->field;
        accesses[i].value = bytes_out(access->value, access->value_size);
        pointers[i] = &accesses[i];
    }
    return DW_OK;
}

enum dw_error dw_encode_access_request(struct dw_buffer *buffer, const struct dw_wire_access_request *request)
{
    if (dw_check_access_request(request) != NULL) {
        return DW_ERR_ARGUMENT;
    }
    Dogwood__V1__Access accesses[DW_WIRE_MAX_ACCESSES];
    Dogwood__V1__Access *pointers[DW_WIRE_MAX_ACCESSES];
    enum dw_error error = accesses_out(request, accesses, pointers);
    if (error != DW_OK) {
        return error;
    }
    Dogwood__V1__TxnId txn = txn_out(request->txn);
    Dogwood__V1__AccessRequest item = DOGWOOD__V1__ACCESS_REQUEST__INIT;
    item.id = request->id;
    item.txn = &txn;
    item.from = request->from;
    item.token_incarnation = request->token.incarnation;
    item.token_counter = request->token.counter;
    item.number = request->token.accesses;
    item.n_accesses = request->access_count;
    item.accesses = pointers;
    Dogwood__V1__AccessRequest *items[] = {&item};
    Dogwood__V1__Batch batch = DOGWOOD__V1__BATCH__INIT;
    batch.n_access_requests = 1;
    batch.access_requests = items;
    return append(buffer, &batch);
}

enum dw_error dw_encode_access_reply(struct dw_buffer *buffer, const struct dw_wire_access_reply *reply)
{
    if (dw_check_access_reply(reply) != NULL) {
        return DW_ERR_ARGUMENT;
    }
    ProtobufCBinaryData rows[DW_WIRE_MAX_ACCESSES];
    for (size_t i = 0; i < reply->row_count; i++) {
        rows[i] = bytes_out(reply->rows[i].data, reply->rows[i].size);
    }
    Dogwood__V1__TxnId txn = txn_out(reply->txn);
    Dogwood__V1__AccessReply item = DOGWOOD__V1__ACCESS_REPLY__INIT;
    item.id = reply->id;
    item.txn = &txn;
    item.status = reply->status;
    item.token_incarnation = reply->token.incarnation;
    item.token_counter = reply->token.counter;
    item.number = reply->token.accesses;
    item.n_rows = reply->row_count;
    item.rows = rows;
    Dogwood__V1__AccessReply *items[] = {&item};
    Dogwood__V1__Batch batch = DOGWOOD__V1__BATCH__INIT;
    batch.n_access_replies = 1;
    batch.access_replies = items;
    return append(buffer, &batch);
}
