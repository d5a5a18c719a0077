#include "base/assert.h"
#include "base/limits.h"
#include "wire/arena.h"
#include "wire/check.h"
#include "wire/codec.h"
#include "wire/dogwood.pb-c.h"

static void *allocate(void *arena, size_t size)
{
    return dw_arena_alloc(arena, size);
}

/* The whole arena is emptied before the next batch. */
static void release(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

void dw_decoder_close(struct dw_decoder *decoder)
{
    dw_arena_close(decoder->arena);
    decoder->arena = NULL;
}

/* A missing id becomes the zero id, which is not valid. */
static struct dw_txn_id txn_in(const Dogwood__V1__TxnId *txn)
{
    if (txn == NULL || txn->base.n_unknown_fields != 0) {
        return (struct dw_txn_id){0};
    }
    return (struct dw_txn_id){
        .coordinator = txn->coordinator, .incarnation = txn->incarnation, .sequence = txn->sequence};
}

static struct dw_wire_log_request log_request_in(const Dogwood__V1__LogRequest *item)
{
    return (struct dw_wire_log_request){.id = item->id,
                                        .request = {.txn = txn_in(item->txn),
                                                    .log = item->log,
                                                    .writer = item->writer,
                                                    .incarnation = item->incarnation,
                                                    .ask = (enum dw_ask)item->ask},
                                        .participants = item->participants,
                                        .redo = item->redo.data,
                                        .redo_size = item->redo.len,
                                        .force = item->force};
}

static struct dw_wire_log_reply log_reply_in(const Dogwood__V1__LogReply *item)
{
    return (struct dw_wire_log_reply){.id = item->id,
                                      .reply = {.txn = txn_in(item->txn),
                                                .log = item->log,
                                                .ask = (enum dw_ask)item->ask,
                                                .answer = (enum dw_answer)item->answer,
                                                .position = item->position},
                                      .incarnation = item->incarnation};
}

static struct dw_message message_in(const Dogwood__V1__CommitMessage *item)
{
    return (struct dw_message){.kind = (enum dw_message_kind)item->kind,
                               .from = item->from,
                               .to = item->to,
                               .value = item->value,
                               .txn = txn_in(item->txn),
                               .writers = item->writers};
}

static struct dw_token message_token_in(const Dogwood__V1__CommitMessage *item)
{
    return (struct dw_token){.incarnation = item->token_incarnation,
                             .counter = item->token_counter,
                             .accesses = item->accesses,
                             .released_us = item->released_us};
}

static struct dw_wire_access access_in(const Dogwood__V1__Access *item)
{
    return (struct dw_wire_access){.table = item->table,
                                   .key = item->key,
                                   .kind = item->kind,
                                   .field = item->field,
                                   .value = item->value.data,
                                   .value_size = item->value.len};
}

/* Without the accesses themselves. */
static struct dw_wire_access_request access_request_in(const Dogwood__V1__AccessRequest *item)
{
    return (struct dw_wire_access_request){.id = item->id,
                                           .txn = txn_in(item->txn),
                                           .from = item->from,
                                           .token = {.incarnation = item->token_incarnation,
                                                     .counter = item->token_counter,
                                                     .accesses = item->number},
                                           .access_count = item->n_accesses};
}

/* Without the rows themselves. */
static struct dw_wire_access_reply access_reply_in(const Dogwood__V1__AccessReply *item)
{
    return (struct dw_wire_access_reply){.id = item->id,
                                         .txn = txn_in(item->txn),
                                         .status = item->status,
                                         .token = {.incarnation = item->token_incarnation,
                                                   .counter = item->token_counter,
                                                   .accesses = item->number},
                                         .row_count = item->n_rows};
}

/* Both ends speak the same version, so a field that is not known is damage, not a newer sender. */
static const char *check_known(const ProtobufCMessage *item)
{
    return item->n_unknown_fields != 0 ? "unknown field" : NULL;
}

/* Who must have sent a batch, if that is known: on its stream nobody speaks for another node. */
struct sender {
    bool known;
    uint32_t node;
};

static bool is_forged(struct sender sender, uint32_t claimed)
{
    return sender.known && claimed != sender.node;
}

static const char *check_log_traffic(const Dogwood__V1__Batch *batch, struct sender sender,
                                     const struct dw_batch_visitor *visitor)
{
    const char *wrong = NULL;
    if (batch->n_log_requests != 0 && visitor->log_request == NULL) {
        return "log requests are not served here";
    }
    for (size_t i = 0; i < batch->n_log_requests && wrong == NULL; i++) {
        struct dw_wire_log_request request = log_request_in(batch->log_requests[i]);
        wrong = check_known(&batch->log_requests[i]->base);
        wrong = wrong != NULL ? wrong : dw_check_log_request(&request);
        if (wrong == NULL && is_forged(sender, request.request.writer)) {
            wrong = "log request: the writer is not the node that sent it";
        }
    }
    if (batch->n_log_replies != 0 && visitor->log_reply == NULL) {
        return "log replies are not awaited here";
    }
    for (size_t i = 0; i < batch->n_log_replies && wrong == NULL; i++) {
        struct dw_wire_log_reply reply = log_reply_in(batch->log_replies[i]);
        wrong = check_known(&batch->log_replies[i]->base);
        wrong = wrong != NULL ? wrong : dw_check_log_reply(&reply);
    }
    return wrong;
}

static const char *check_messages(const Dogwood__V1__Batch *batch, struct sender sender,
                                  const struct dw_batch_visitor *visitor)
{
    const char *wrong = NULL;
    if (batch->n_commit_messages != 0 && visitor->message == NULL) {
        return "commit messages are not served here";
    }
    for (size_t i = 0; i < batch->n_commit_messages && wrong == NULL; i++) {
        struct dw_message message = message_in(batch->commit_messages[i]);
        struct dw_token token = message_token_in(batch->commit_messages[i]);
        wrong = check_known(&batch->commit_messages[i]->base);
        wrong = wrong != NULL ? wrong : dw_check_message(&message, &token);
        if (wrong == NULL && is_forged(sender, message.from)) {
            wrong = "commit message: the sender is not the node that sent it";
        }
    }
    return wrong;
}

static const char *check_one_access_request(const Dogwood__V1__AccessRequest *item, struct sender sender)
{
    struct dw_wire_access_request request = access_request_in(item);
    const char *wrong = check_known(&item->base);
    wrong = wrong != NULL ? wrong : dw_check_access_request(&request);
    for (size_t i = 0; i < item->n_accesses && wrong == NULL; i++) {
        struct dw_wire_access access = access_in(item->accesses[i]);
        wrong = check_known(&item->accesses[i]->base);
        wrong = wrong != NULL ? wrong : dw_check_access(&access);
    }
    if (wrong == NULL && is_forged(sender, request.from)) {
        wrong = "access request: the sender is not the node that sent it";
    }
    return wrong;
}

static const char *check_access_traffic(const Dogwood__V1__Batch *batch, struct sender sender,
                                        const struct dw_batch_visitor *visitor)
{
    const char *wrong = NULL;
    if (batch->n_access_requests != 0 && visitor->access_request == NULL) {
        return "access requests are not served here";
    }
    for (size_t i = 0; i < batch->n_access_requests && wrong == NULL; i++) {
        wrong = check_one_access_request(batch->access_requests[i], sender);
    }
    if (batch->n_access_replies != 0 && visitor->access_reply == NULL) {
        return "access replies are not awaited here";
    }
    for (size_t i = 0; i < batch->n_access_replies && wrong == NULL; i++) {
        struct dw_wire_access_reply reply = access_reply_in(batch->access_replies[i]);
        wrong = check_known(&batch->access_replies[i]->base);
        wrong = wrong != NULL ? wrong : dw_check_access_reply(&reply);
    }
    return wrong;
}

static const char *check_batch(const Dogwood__V1__Batch *batch, struct sender sender,
                               const struct dw_batch_visitor *visitor)
{
    const char *wrong = check_known(&batch->base);
    wrong = wrong != NULL ? wrong : check_log_traffic(batch, sender, visitor);
    wrong = wrong != NULL ? wrong : check_messages(batch, sender, visitor);
    return wrong != NULL ? wrong : check_access_traffic(batch, sender, visitor);
}

/* Arrays that protobuf-c holds as pointers are laid out flat for the visitor; one scratch serves all items,
 * as pointers are valid during the call only. */
union scratch {
    struct dw_wire_access accesses[DW_WIRE_MAX_ACCESSES];
    struct dw_wire_row rows[DW_WIRE_MAX_ACCESSES];
};

static void visit_access_request(const Dogwood__V1__AccessRequest *item, union scratch *scratch,
                                 const struct dw_batch_visitor *visitor, void *user)
{
    struct dw_wire_access_request request = access_request_in(item);
    DW_ASSERT(request.access_count <= DW_WIRE_MAX_ACCESSES);
    for (size_t i = 0; i < item->n_accesses; i++) {
        scratch->accesses[i] = access_in(item->accesses[i]);
    }
    request.accesses = scratch->accesses;
    visitor->access_request(user, &request);
}

static void visit_access_reply(const Dogwood__V1__AccessReply *item, union scratch *scratch,
                               const struct dw_batch_visitor *visitor, void *user)
{
    struct dw_wire_access_reply reply = access_reply_in(item);
    DW_ASSERT(reply.row_count <= DW_WIRE_MAX_ACCESSES);
    for (size_t i = 0; i < item->n_rows; i++) {
        scratch->rows[i] = (struct dw_wire_row){.data = item->rows[i].data, .size = item->rows[i].len};
    }
    reply.rows = scratch->rows;
    visitor->access_reply(user, &reply);
}

static void visit_accesses(const Dogwood__V1__Batch *batch, const struct dw_batch_visitor *visitor,
                           void *user)
{
    union scratch scratch;
    for (size_t i = 0; i < batch->n_access_requests; i++) {
        visit_access_request(batch->access_requests[i], &scratch, visitor, user);
    }
    for (size_t i = 0; i < batch->n_access_replies; i++) {
        visit_access_reply(batch->access_replies[i], &scratch, visitor, user);
    }
}

static void visit_batch(const Dogwood__V1__Batch *batch, const struct dw_batch_visitor *visitor, void *user)
{
    for (size_t i = 0; i < batch->n_log_requests; i++) {
        struct dw_wire_log_request request = log_request_in(batch->log_requests[i]);
        visitor->log_request(user, &request);
    }
    for (size_t i = 0; i < batch->n_log_replies; i++) {
        struct dw_wire_log_reply reply = log_reply_in(batch->log_replies[i]);
        visitor->log_reply(user, &reply);
    }
    for (size_t i = 0; i < batch->n_commit_messages; i++) {
        struct dw_message message = message_in(batch->commit_messages[i]);
        struct dw_token token = message_token_in(batch->commit_messages[i]);
        visitor->message(user, &message, &token);
    }
    if (batch->n_access_requests != 0 || batch->n_access_replies != 0) {
        visit_accesses(batch, visitor, user);
    }
}

static enum dw_error malformed(const char **text, const char *wrong)
{
    if (text != NULL) {
        *text = wrong;
    }
    return DW_ERR_MALFORMED;
}

static enum dw_error decode(struct dw_decoder *decoder, struct sender sender, const uint8_t *data,
                            size_t size, const struct dw_batch_visitor *visitor, void *user,
                            const char **text)
{
    if (size > DW_MAX_MESSAGE) {
        return malformed(text, "batch: longer than a message may be");
    }
    if (decoder->arena == NULL && (decoder->arena = dw_arena_open()) == NULL) {
        return DW_ERR_MEMORY;
    }
    dw_arena_reset(decoder->arena, DW_DECODE_FIXED_BYTES + size * DW_DECODE_FACTOR);
    ProtobufCAllocator allocator = {.alloc = allocate, .free = release, .allocator_data = decoder->arena};
    Dogwood__V1__Batch *batch = dogwood__v1__batch__unpack(&allocator, size, data);
    enum dw_error failure = dw_arena_failure(decoder->arena);
    if (failure == DW_ERR_MEMORY) {
        return DW_ERR_MEMORY;
    }
    if (failure != DW_OK) {
        return malformed(text, "batch: too many items for its size");
    }
    if (batch == NULL) {
        return malformed(text, "batch: not a protobuf message");
    }
    const char *wrong = check_batch(batch, sender, visitor);
    if (wrong != NULL) {
        return malformed(text, wrong);
    }
    visit_batch(batch, visitor, user);
    return DW_OK;
}

enum dw_error dw_decode_batch(struct dw_decoder *decoder, const uint8_t *data, size_t size,
                              const struct dw_batch_visitor *visitor, void *user, const char **text)
{
    return decode(decoder, (struct sender){.known = false}, data, size, visitor, user, text);
}

enum dw_error dw_decode_batch_of(struct dw_decoder *decoder, uint32_t sender, const uint8_t *data,
                                 size_t size, const struct dw_batch_visitor *visitor, void *user,
                                 const char **text)
{
    return decode(decoder, (struct sender){.known = true, .node = sender}, data, size, visitor, user, text);
}
