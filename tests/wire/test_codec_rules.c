/* Does the decoder refuse each broken rule by its name, visiting nothing, and does the encoder refuse it too?
 *
 * Broken items are packed with protobuf-c directly, since the encoder would not write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "wire/codec.h"
#include "wire/dogwood.pb-c.h"

struct visits {
    unsigned count;
};

static void on_log_request(void *user, const struct dw_wire_log_request *request)
{
    struct visits *visits = user;
    (void)request;
    visits->count++;
}

static void on_log_reply(void *user, const struct dw_wire_log_reply *reply)
{
    struct visits *visits = user;
    (void)reply;
    visits->count++;
}

static void on_message(void *user, const struct dw_message *message, const struct dw_token *token)
{
    struct visits *visits = user;
    (void)message;
    (void)token;
    visits->count++;
}

static void on_access_request(void *user, const struct dw_wire_access_request *request)
{
    struct visits *visits = user;
    (void)request;
    visits->count++;
}

static void on_access_reply(void *user, const struct dw_wire_access_reply *reply)
{
    struct visits *visits = user;
    (void)reply;
    visits->count++;
}

static const struct dw_batch_visitor all_kinds = {.log_request = on_log_request,
                                                  .log_reply = on_log_reply,
                                                  .message = on_message,
                                                  .access_request = on_access_request,
                                                  .access_reply = on_access_reply};

/* A batch with one good item of each kind, for a test to break one field. */
struct sample {
    Dogwood__V1__TxnId txn;
    Dogwood__V1__LogRequest log_request, *log_requests[1];
    Dogwood__V1__LogReply log_reply, *log_replies[1];
    Dogwood__V1__CommitMessage message, *messages[1];
    Dogwood__V1__Access access, *accesses[DW_WIRE_MAX_ACCESSES + 1];
    Dogwood__V1__AccessRequest access_request, *access_requests[1];
    Dogwood__V1__AccessReply access_reply, *access_replies[1];
    ProtobufCBinaryData rows[DW_WIRE_MAX_ACCESSES + 1];
    Dogwood__V1__Batch batch;
};

static void sample_items(struct sample *sample)
{
    dogwood__v1__txn_id__init(&sample->txn);
    sample->txn.incarnation = 1;
    dogwood__v1__log_request__init(&sample->log_request);
    sample->log_request.txn = &sample->txn;
    dogwood__v1__log_reply__init(&sample->log_reply);
    sample->log_reply.txn = &sample->txn;
    sample->log_reply.answer = DW_ANSWER_ABORT;
    dogwood__v1__commit_message__init(&sample->message);
    sample->message.txn = &sample->txn;
    sample->message.kind = DW_MSG_ACK;
    dogwood__v1__access__init(&sample->access);
    for (size_t i = 0; i <= DW_WIRE_MAX_ACCESSES; i++) {
        sample->accesses[i] = &sample->access;
    }
    dogwood__v1__access_request__init(&sample->access_request);
    sample->access_request.txn = &sample->txn;
    sample->access_request.number = 1;
    sample->access_request.n_accesses = 1;
    sample->access_request.accesses = sample->accesses;
    dogwood__v1__access_reply__init(&sample->access_reply);
    sample->access_reply.txn = &sample->txn;
    sample->access_reply.rows = sample->rows;
}

static int set_up(void **state)
{
    struct sample *sample = calloc(1, sizeof *sample);
    if (sample == NULL) {
        return 1;
    }
    sample_items(sample);
    dogwood__v1__batch__init(&sample->batch);
    sample->log_requests[0] = &sample->log_request;
    sample->batch.n_log_requests = 1;
    sample->batch.log_requests = sample->log_requests;
    sample->log_replies[0] = &sample->log_reply;
    sample->batch.n_log_replies = 1;
    sample->batch.log_replies = sample->log_replies;
    sample->messages[0] = &sample->message;
    sample->batch.n_commit_messages = 1;
    sample->batch.commit_messages = sample->messages;
    sample->access_requests[0] = &sample->access_request;
    sample->batch.n_access_requests = 1;
    sample->batch.access_requests = sample->access_requests;
    sample->access_replies[0] = &sample->access_reply;
    sample->batch.n_access_replies = 1;
    sample->batch.access_replies = sample->access_replies;
    *state = sample;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static enum dw_error decode_with(const struct sample *sample, const struct dw_batch_visitor *visitor,
                                 struct visits *visits, const char **text)
{
    struct dw_decoder decoder = {0};
    size_t size = dogwood__v1__batch__get_packed_size(&sample->batch);
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    dogwood__v1__batch__pack(&sample->batch, bytes);
    enum dw_error error = dw_decode_batch(&decoder, bytes, size, visitor, visits, text);
    free(bytes);
    dw_decoder_close(&decoder);
    return error;
}

/* The batch passes as it is. */
static void good(const struct sample *sample)
{
    struct visits visits = {0};
    const char *text = "";
    enum dw_error error = decode_with(sample, &all_kinds, &visits, &text);
    assert_string_equal(text, "");
    assert_int_equal(error, DW_OK);
    assert_int_equal(visits.count, 5);
}

/* The batch is refused, and the text has these words. */
static void bad(const struct sample *sample, const char *words)
{
    struct visits visits = {0};
    const char *text = "";
    assert_int_equal(decode_with(sample, &all_kinds, &visits, &text), DW_ERR_MALFORMED);
    assert_int_equal(visits.count, 0);
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" does not name \"%s\"", text, words);
    }
}

#define BREAKS(sample, field, value, words)                                                                  \
    do {                                                                                                     \
        __typeof__((sample)->field) saved = (sample)->field;                                                 \
        (sample)->field = (value);                                                                           \
        bad(sample, words);                                                                                  \
        (sample)->field = saved;                                                                             \
        good(sample);                                                                                        \
    } while (0)

static void transaction_ids(void **state)
{
    struct sample *sample = *state;
    BREAKS(sample, txn.coordinator, DW_MAX_NODES, "log request: invalid transaction id");
    BREAKS(sample, txn.incarnation, 0, "log request: invalid transaction id");
    BREAKS(sample, log_request.txn, NULL, "log request: invalid transaction id");
    BREAKS(sample, log_reply.txn, NULL, "log reply: invalid transaction id");
    BREAKS(sample, message.txn, NULL, "commit message: invalid transaction id");
    BREAKS(sample, access_request.txn, NULL, "access request: invalid transaction id");
    BREAKS(sample, access_reply.txn, NULL, "access reply: invalid transaction id");
}

static void log_requests(void **state)
{
    struct sample *sample = *state;
    BREAKS(sample, log_request.log, DW_MAX_NODES, "log request: log out of range");
    BREAKS(sample, log_request.writer, DW_MAX_NODES, "log request: writer out of range");
    BREAKS(sample, log_request.ask, DW_ASKS, "log request: unknown ask");
    BREAKS(sample, log_request.ask, UINT32_MAX, "log request: unknown ask");
    sample->log_request.participants = 1;
    BREAKS(sample, log_request.ask, DW_ASK_DENY, "participants with an ask that lists none");
    sample->log_request.participants = 0;
    uint8_t *redo = calloc(1, DW_MAX_REDO + 1);
    sample->log_request.redo = (ProtobufCBinaryData){.len = 1, .data = redo};
    BREAKS(sample, log_request.ask, DW_ASK_DECIDE_COMMIT, "redo with an ask that carries none");
    BREAKS(sample, log_request.redo.len, DW_MAX_REDO + 1, "redo too large");
    free(redo);
}

/* Which asks may carry what, one by one. */
static void participants_and_redo_by_ask(void **state)
{
    struct sample *sample = *state;
    static const char lists[DW_ASKS + 1] = "y....yy...";
    static const char carries[DW_ASKS + 1] = "y...y.y...";
    uint8_t redo[1] = {0};
    for (uint32_t ask = 0; ask < DW_ASKS; ask++) {
        sample->log_request.ask = ask;
        sample->log_request.participants = 1;
        if (lists[ask] == 'y') {
            good(sample);
        } else {
            bad(sample, "participants");
        }
        sample->log_request.participants = 0;
        sample->log_request.redo = (ProtobufCBinaryData){.len = 1, .data = redo};
        if (carries[ask] == 'y') {
            good(sample);
        } else {
            bad(sample, "redo");
        }
        sample->log_request.redo = (ProtobufCBinaryData){0};
    }
}

static void log_replies(void **state)
{
    struct sample *sample = *state;
    BREAKS(sample, log_reply.log, DW_MAX_NODES, "log reply: log out of range");
    BREAKS(sample, log_reply.ask, DW_ASKS, "log reply: unknown ask");
    BREAKS(sample, log_reply.answer, DW_ANSWERS, "log reply: unknown answer");
    BREAKS(sample, log_reply.answer, DW_ANSWER_NONE, "answer NONE to another ask than READ");
    sample->log_reply.ask = DW_ASK_READ;
    sample->log_reply.answer = DW_ANSWER_NONE;
    good(sample);
}

static void commit_messages(void **state)
{
    struct sample *sample = *state;
    BREAKS(sample, message.kind, 0, "commit message: unknown kind");
    BREAKS(sample, message.kind, DW_MSG_INQUIRY_REPLY + 1, "commit message: unknown kind");
    BREAKS(sample, message.from, DW_MAX_NODES, "sender out of range");
    BREAKS(sample, message.to, DW_MAX_NODES, "receiver out of range");
    BREAKS(sample, message.value, 1, "value does not fit");
    BREAKS(sample, message.writers, 1, "writers do not fit");
    BREAKS(sample, message.token_incarnation, 1, "token");
    BREAKS(sample, message.token_counter, 1, "token");
    BREAKS(sample, message.accesses, 1, "token");
}

static void message_values_by_kind(void **state)
{
    struct sample *sample = *state;
    /* For each kind from 1: which of the values 0 to 6 it may carry. */
    static const char *const values[] = {"y......", "y......", ".yyyyy.", ".yy....",
                                         "y......", "y......", "yyy...."};
    for (uint32_t kind = DW_MSG_VOTE_REQUEST; kind <= DW_MSG_INQUIRY_REPLY; kind++) {
        sample->message.kind = kind;
        sample->message.writers = kind == DW_MSG_VOTE_REQUEST;
        for (uint32_t value = 0; value < 7; value++) {
            sample->message.value = value;
            if (values[kind - 1][value] == 'y') {
                good(sample);
            } else {
                bad(sample, "value does not fit");
            }
        }
    }
}

/* The list of logs to ask must hold the receiver's own. */
static void vote_request_lists_the_receiver(void **state)
{
    struct sample *sample = *state;
    sample->message.kind = DW_MSG_VOTE_REQUEST;
    sample->message.to = 3;
    sample->message.writers = 1 << 3 | 1;
    good(sample);
    BREAKS(sample, message.writers, 0, "writers do not fit");
    BREAKS(sample, message.writers, 1, "writers do not fit");
}

static void accesses(void **state)
{
    struct sample *sample = *state;
    BREAKS(sample, access_request.from, DW_MAX_NODES, "access request: sender out of range");
    BREAKS(sample, access_request.number, 0, "access request: number 0");
    BREAKS(sample, access_request.n_accesses, 0, "number of accesses");
    BREAKS(sample, access_request.n_accesses, DW_WIRE_MAX_ACCESSES + 1, "number of accesses");
    BREAKS(sample, access_reply.n_rows, DW_WIRE_MAX_ACCESSES + 1, "number of rows");
    sample->access_request.n_accesses = DW_WIRE_MAX_ACCESSES;
    sample->access_reply.n_rows = DW_WIRE_MAX_ACCESSES;
    good(sample);
    sample->access_request.n_accesses = 1;
    uint8_t *value = calloc(1, DW_MAX_REDO + 1);
    sample->access.value = (ProtobufCBinaryData){.len = DW_MAX_REDO, .data = value};
    BREAKS(sample, access.value.len, DW_MAX_REDO + 1, "access: value too large");
    free(value);
}

static enum dw_error decode_from(const struct sample *sample, uint32_t sender, struct visits *visits,
                                 const char **text)
{
    struct dw_decoder decoder = {0};
    size_t size = dogwood__v1__batch__get_packed_size(&sample->batch);
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    dogwood__v1__batch__pack(&sample->batch, bytes);
    enum dw_error error = dw_decode_batch_of(&decoder, sender, bytes, size, &all_kinds, visits, text);
    free(bytes);
    dw_decoder_close(&decoder);
    return error;
}

/* On the stream of one node nobody speaks for another. */
static void senders(void **state)
{
    struct sample *sample = *state;
    uint32_t *const claims[] = {&sample->log_request.writer, &sample->message.from,
                                &sample->access_request.from};
    static const char *const items[] = {"log request: the writer is not", "commit message: the sender is not",
                                        "access request: the sender is not"};
    for (size_t i = 0; i < 3; i++) {
        *claims[i] = 2;
    }
    struct visits visits = {0};
    const char *text = "";
    assert_int_equal(decode_from(sample, 2, &visits, &text), DW_OK);
    assert_int_equal(visits.count, 5);
    for (size_t i = 0; i < 3; i++) {
        *claims[i] = 3;
        visits.count = 0;
        assert_int_equal(decode_from(sample, 2, &visits, &text), DW_ERR_MALFORMED);
        assert_int_equal(visits.count, 0);
        assert_non_null(strstr(text, items[i]));
        good(sample);
        *claims[i] = 2;
    }
}

static void unknown_fields(void **state)
{
    struct sample *sample = *state;
    uint8_t varint[] = {1};
    ProtobufCMessageUnknownField unknown = {
        .tag = 99, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = 1, .data = varint};
    ProtobufCMessage *items[] = {
        &sample->batch.base,  &sample->log_request.base,    &sample->log_reply.base,   &sample->message.base,
        &sample->access.base, &sample->access_request.base, &sample->access_reply.base};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        items[i]->n_unknown_fields = 1;
        items[i]->unknown_fields = &unknown;
        bad(sample, "unknown field");
        items[i]->n_unknown_fields = 0;
    }
    sample->txn.base.n_unknown_fields = 1;
    sample->txn.base.unknown_fields = &unknown;
    bad(sample, "transaction id");
}

static void kinds_that_nobody_serves(void **state)
{
    struct sample *sample = *state;
    for (int kind = 0; kind < 5; kind++) {
        struct dw_batch_visitor visitor = all_kinds;
        visitor.log_request = kind == 0 ? NULL : visitor.log_request;
        visitor.log_reply = kind == 1 ? NULL : visitor.log_reply;
        visitor.message = kind == 2 ? NULL : visitor.message;
        visitor.access_request = kind == 3 ? NULL : visitor.access_request;
        visitor.access_reply = kind == 4 ? NULL : visitor.access_reply;
        struct visits visits = {0};
        const char *text = "";
        assert_int_equal(decode_with(sample, &visitor, &visits, &text), DW_ERR_MALFORMED);
        assert_int_equal(visits.count, 0);
        assert_non_null(strstr(text, kind == 1 || kind == 4 ? "not awaited" : "not served"));
    }
}

/* The sender keeps the same rules: a broken item is refused where it is made. */
static void encoder_refuses_what_the_decoder_would(void **state)
{
    (void)state;
    struct dw_buffer buffer = {0};
    const struct dw_txn_id txn = {.incarnation = 1};
    const struct dw_token token = {.counter = 1};
    struct dw_wire_log_request request = {.request = {.txn = txn, .log = DW_MAX_NODES}};
    struct dw_wire_log_reply reply = {.reply = {.txn = txn, .answer = DW_ANSWER_NONE}};
    struct dw_message message = {.kind = DW_MSG_DECISION, .txn = txn};
    struct dw_message with_token = {.kind = DW_MSG_ACK, .txn = txn};
    struct dw_wire_access_request access = {.txn = txn, .token = {.accesses = 1}};
    struct dw_wire_access_reply rows = {.txn = txn, .row_count = DW_WIRE_MAX_ACCESSES + 1};
    assert_int_equal(dw_encode_log_request(&buffer, &request), DW_ERR_ARGUMENT);
    assert_int_equal(dw_encode_log_reply(&buffer, &reply), DW_ERR_ARGUMENT);
    assert_int_equal(dw_encode_message(&buffer, &message, NULL), DW_ERR_ARGUMENT);
    assert_int_equal(dw_encode_message(&buffer, &with_token, &token), DW_ERR_ARGUMENT);
    assert_int_equal(dw_encode_access_request(&buffer, &access), DW_ERR_ARGUMENT);
    assert_int_equal(dw_encode_access_reply(&buffer, &rows), DW_ERR_ARGUMENT);
    assert_int_equal(buffer.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(transaction_ids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(log_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(participants_and_redo_by_ask, set_up, tear_down),
        cmocka_unit_test_setup_teardown(log_replies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(commit_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(message_values_by_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(vote_request_lists_the_receiver, set_up, tear_down),
        cmocka_unit_test_setup_teardown(accesses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(senders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kinds_that_nobody_serves, set_up, tear_down),
        cmocka_unit_test(encoder_refuses_what_the_decoder_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
