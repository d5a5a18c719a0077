/* Does each item come out of a batch as it went in, in the promised order, and do the size limits hold? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "wire/codec.h"

enum { ITEMS_MAX = 4096 };

/* What a visitor saw: copies of the last item of each kind, and the order of kinds. */
struct seen {
    char order[ITEMS_MAX + 1];
    size_t count;
    struct dw_wire_log_request log_request;
    struct dw_wire_log_reply log_reply;
    struct dw_message message;
    struct dw_token token;
    struct dw_wire_access_request access_request;
    struct dw_wire_access accesses[DW_WIRE_MAX_ACCESSES];
    struct dw_wire_access_reply access_reply;
    struct dw_wire_row rows[DW_WIRE_MAX_ACCESSES];
    uint8_t *bytes; /* redo, values and rows, one after the other */
    size_t size;
};

static void keep(struct seen *seen, const uint8_t *data, size_t size)
{
    if (size > 0) {
        seen->bytes = realloc(seen->bytes, seen->size + size);
        assert_non_null(seen->bytes);
        memcpy(seen->bytes + seen->size, data, size);
        seen->size += size;
    }
}

static void note(struct seen *seen, char kind)
{
    assert_true(seen->count < ITEMS_MAX);
    seen->order[seen->count++] = kind;
}

static void see_log_request(void *user, const struct dw_wire_log_request *request)
{
    struct seen *seen = user;
    note(seen, 'q');
    seen->log_request = *request;
    keep(seen, request->redo, request->redo_size);
}

static void see_log_reply(void *user, const struct dw_wire_log_reply *reply)
{
    struct seen *seen = user;
    note(seen, 'r');
    seen->log_reply = *reply;
}

static void see_message(void *user, const struct dw_message *message, const struct dw_token *token)
{
    struct seen *seen = user;
    note(seen, 'm');
    assert_non_null(token);
    seen->message = *message;
    seen->token = *token;
}

static void see_access_request(void *user, const struct dw_wire_access_request *request)
{
    struct seen *seen = user;
    note(seen, 'a');
    seen->access_request = *request;
    for (size_t i = 0; i < request->access_count; i++) {
        seen->accesses[i] = request->accesses[i];
        keep(seen, request->accesses[i].value, request->accesses[i].value_size);
    }
}

static void see_access_reply(void *user, const struct dw_wire_access_reply *reply)
{
    struct seen *seen = user;
    note(seen, 'b');
    seen->access_reply = *reply;
    for (size_t i = 0; i < reply->row_count; i++) {
        seen->rows[i] = reply->rows[i];
        keep(seen, reply->rows[i].data, reply->rows[i].size);
    }
}

static const struct dw_batch_visitor visitor = {.log_request = see_log_request,
                                                .log_reply = see_log_reply,
                                                .message = see_message,
                                                .access_request = see_access_request,
                                                .access_reply = see_access_reply};

struct fixture {
    struct dw_buffer buffer;
    struct dw_decoder decoder;
    struct seen seen;
};

static int set_up(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    dw_buffer_free(&fixture->buffer);
    dw_decoder_close(&fixture->decoder);
    free(fixture->seen.bytes);
    free(fixture);
    return 0;
}

static enum dw_error decode(struct fixture *fixture)
{
    const char *text = NULL;
    free(fixture->seen.bytes);
    memset(&fixture->seen, 0, sizeof fixture->seen);
    return dw_decode_batch(&fixture->decoder, fixture->buffer.data, fixture->buffer.size, &visitor,
                           &fixture->seen, &text);
}

static const struct dw_txn_id txn = {.coordinator = 63, .incarnation = UINT32_MAX, .sequence = UINT64_MAX};

static void fill(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(i * 7 + 1);
    }
}

static void assert_txn(struct dw_txn_id id)
{
    assert_true(dw_txn_id_equal(id, txn));
}

static void log_request_round_trip(void **state)
{
    struct fixture *fixture = *state;
    static uint8_t redo[DW_MAX_REDO];
    fill(redo, sizeof redo);
    const size_t sizes[] = {0, 1, 128, 4096, DW_MAX_REDO};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct dw_wire_log_request in = {
            .id = UINT64_MAX - i,
            .request = {.txn = txn, .log = 63, .writer = 62, .incarnation = UINT32_MAX, .ask = DW_ASK_VOTE},
            .participants = UINT64_MAX,
            .redo = redo,
            .redo_size = sizes[i],
            .force = i % 2 == 0};
        fixture->buffer.size = 0;
        assert_int_equal(dw_encode_log_request(&fixture->buffer, &in), DW_OK);
        assert_int_equal(decode(fixture), DW_OK);
        const struct dw_wire_log_request *out = &fixture->seen.log_request;
        assert_int_equal(out->id, in.id);
        assert_txn(out->request.txn);
        assert_int_equal(out->request.log, 63);
        assert_int_equal(out->request.writer, 62);
        assert_int_equal(out->request.incarnation, UINT32_MAX);
        assert_int_equal(out->request.ask, DW_ASK_VOTE);
        assert_int_equal(out->request.content, 0);
        assert_int_equal(out->participants, UINT64_MAX);
        assert_int_equal(out->force, in.force);
        assert_int_equal(fixture->seen.size, sizes[i]);
        assert_int_equal(memcmp(fixture->seen.bytes ? fixture->seen.bytes : redo, redo, sizes[i]), 0);
    }
}

static void every_ask_and_answer_round_trips(void **state)
{
    struct fixture *fixture = *state;
    for (int ask = 0; ask < DW_ASKS; ask++) {
        for (int answer = 0; answer < DW_ANSWERS; answer++) {
            struct dw_wire_log_request request = {.request = {.txn = txn, .ask = (enum dw_ask)ask}};
            struct dw_wire_log_reply reply = {.id = 9,
                                              .reply = {.txn = txn,
                                                        .log = 5,
                                                        .ask = (enum dw_ask)ask,
                                                        .answer = (enum dw_answer)answer,
                                                        .position = UINT64_MAX},
                                              .incarnation = 4};
            if (answer == DW_ANSWER_NONE && ask != DW_ASK_READ) {
                continue;
            }
            fixture->buffer.size = 0;
            assert_int_equal(dw_encode_log_request(&fixture->buffer, &request), DW_OK);
            assert_int_equal(dw_encode_log_reply(&fixture->buffer, &reply), DW_OK);
            assert_int_equal(decode(fixture), DW_OK);
            assert_int_equal(fixture->seen.log_request.request.ask, ask);
            const struct dw_wire_log_reply *out = &fixture->seen.log_reply;
            assert_txn(out->reply.txn);
            assert_int_equal(out->id, 9);
            assert_int_equal(out->reply.log, 5);
            assert_int_equal(out->reply.ask, ask);
            assert_int_equal(out->reply.answer, answer);
            assert_int_equal(out->reply.position, UINT64_MAX);
            assert_int_equal(out->incarnation, 4);
        }
    }
}

static void every_message_kind_round_trips(void **state)
{
    struct fixture *fixture = *state;
    const struct dw_token token = {.incarnation = UINT64_MAX, .counter = 7, .accesses = 3};
    const struct {
        enum dw_message_kind kind;
        uint32_t value;
        uint64_t writers;
        bool token;
    } rows[] = {{DW_MSG_VOTE_REQUEST, 0, UINT64_MAX, true},
                {DW_MSG_READ_REQUEST, 0, 0, true},
                {DW_MSG_VOTE, DW_VOTE_YES, 0, false},
                {DW_MSG_VOTE, DW_VOTE_NO, 0, false},
                {DW_MSG_VOTE, DW_VOTE_COMMITTED, 0, false},
                {DW_MSG_VOTE, DW_VOTE_HELD, 0, false},
                {DW_MSG_VOTE, DW_VOTE_REFUSED, 0, false},
                {DW_MSG_DECISION, DW_OUTCOME_COMMITTED, 0, false},
                {DW_MSG_DECISION, DW_OUTCOME_ABORTED, 0, false},
                {DW_MSG_ACK, 0, 0, false},
                {DW_MSG_INQUIRY, 0, 0, false},
                {DW_MSG_INQUIRY_REPLY, DW_OUTCOME_UNKNOWN, 0, false},
                {DW_MSG_INQUIRY_REPLY, DW_OUTCOME_ABORTED, 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dw_message in = {.kind = rows[i].kind,
                                .from = 63,
                                .to = 1,
                                .value = rows[i].value,
                                .txn = txn,
                                .writers = rows[i].writers};
        fixture->buffer.size = 0;
        assert_int_equal(dw_encode_message(&fixture->buffer, &in, rows[i].token ? &token : NULL), DW_OK);
        assert_int_equal(decode(fixture), DW_OK);
        const struct dw_message *out = &fixture->seen.message;
        assert_txn(out->txn);
        assert_int_equal(out->kind, in.kind);
        assert_int_equal(out->from, 63);
        assert_int_equal(out->to, 1);
        assert_int_equal(out->value, in.value);
        assert_int_equal(out->writers, in.writers);
        assert_int_equal(fixture->seen.token.incarnation, rows[i].token ? UINT64_MAX : 0);
        assert_int_equal(fixture->seen.token.counter, rows[i].token ? 7 : 0);
        assert_int_equal(fixture->seen.token.accesses, rows[i].token ? 3 : 0);
    }
}

static void access_request_round_trip(void **state)
{
    struct fixture *fixture = *state;
    static struct dw_wire_access accesses[DW_WIRE_MAX_ACCESSES];
    uint8_t value[32];
    fill(value, sizeof value);
    for (size_t i = 0; i < DW_WIRE_MAX_ACCESSES; i++) {
        accesses[i] = (struct dw_wire_access){.table = (uint32_t)i,
                                              .key = UINT64_MAX - i,
                                              .kind = (uint32_t)i + 1,
                                              .field = (uint32_t)i + 2,
                                              .value = value,
                                              .value_size = i % sizeof value};
    }
    struct dw_wire_access_request in = {.id = 11,
                                        .txn = txn,
                                        .from = 63,
                                        .token = {.incarnation = 2, .counter = 3, .accesses = 4},
                                        .accesses = accesses,
                                        .access_count = DW_WIRE_MAX_ACCESSES};
    assert_int_equal(dw_encode_access_request(&fixture->buffer, &in), DW_OK);
    assert_int_equal(decode(fixture), DW_OK);
    const struct dw_wire_access_request *out = &fixture->seen.access_request;
    assert_int_equal(out->id, 11);
    assert_txn(out->txn);
    assert_int_equal(out->from, 63);
    assert_int_equal(out->token.incarnation, 2);
    assert_int_equal(out->token.counter, 3);
    assert_int_equal(out->token.accesses, 4);
    assert_int_equal(out->access_count, DW_WIRE_MAX_ACCESSES);
    size_t offset = 0;
    for (size_t i = 0; i < DW_WIRE_MAX_ACCESSES; i++) {
        const struct dw_wire_access *access = &fixture->seen.accesses[i];
        assert_int_equal(access->table, accesses[i].table);
        assert_int_equal(access->key, accesses[i].key);
        assert_int_equal(access->kind, accesses[i].kind);
        assert_int_equal(access->field, accesses[i].field);
        assert_int_equal(access->value_size, accesses[i].value_size);
        assert_int_equal(memcmp(fixture->seen.bytes + offset, value, access->value_size), 0);
        offset += access->value_size;
    }
}

static void access_reply_round_trip(void **state)
{
    struct fixture *fixture = *state;
    uint8_t bytes[100];
    fill(bytes, sizeof bytes);
    const struct dw_wire_row rows[] = {{bytes, 100}, {NULL, 0}, {bytes, 1}};
    struct dw_wire_access_reply in = {.id = 12,
                                      .txn = txn,
                                      .status = 77,
                                      .token = {.incarnation = 5, .counter = 6, .accesses = 7},
                                      .rows = rows,
                                      .row_count = 3};
    assert_int_equal(dw_encode_access_reply(&fixture->buffer, &in), DW_OK);
    assert_int_equal(decode(fixture), DW_OK);
    const struct dw_wire_access_reply *out = &fixture->seen.access_reply;
    assert_int_equal(out->id, 12);
    assert_txn(out->txn);
    assert_int_equal(out->status, 77);
    assert_int_equal(out->token.incarnation, 5);
    assert_int_equal(out->token.counter, 6);
    assert_int_equal(out->token.accesses, 7);
    assert_int_equal(out->row_count, 3);
    assert_int_equal(fixture->seen.rows[0].size, 100);
    assert_int_equal(fixture->seen.rows[1].size, 0);
    assert_int_equal(fixture->seen.rows[2].size, 1);
    assert_int_equal(fixture->seen.size, 101);
    assert_int_equal(memcmp(fixture->seen.bytes, bytes, 100), 0);
}

/* Items are appended in any order and visited kind by kind; within a kind the order stays. */
static void batch_is_visited_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct dw_wire_access access = {.table = 1};
    struct dw_wire_access_reply access_reply = {.txn = txn};
    struct dw_wire_access_request access_request = {
        .txn = txn, .token = {.accesses = 1}, .accesses = &access, .access_count = 1};
    struct dw_message message = {.kind = DW_MSG_ACK, .txn = txn};
    struct dw_wire_log_reply log_reply = {.reply = {.txn = txn, .answer = DW_ANSWER_COMMIT}};
    struct dw_wire_log_request log_request = {.request = {.txn = txn}};
    for (uint64_t i = 1; i <= 3; i++) {
        log_request.id = i;
        assert_int_equal(dw_encode_access_reply(&fixture->buffer, &access_reply), DW_OK);
        assert_int_equal(dw_encode_access_request(&fixture->buffer, &access_request), DW_OK);
        assert_int_equal(dw_encode_message(&fixture->buffer, &message, NULL), DW_OK);
        assert_int_equal(dw_encode_log_reply(&fixture->buffer, &log_reply), DW_OK);
        assert_int_equal(dw_encode_log_request(&fixture->buffer, &log_request), DW_OK);
    }
    assert_int_equal(decode(fixture), DW_OK);
    assert_string_equal(fixture->seen.order, "qqqrrrmmmaaabbb");
    assert_int_equal(fixture->seen.log_request.id, 3);
}

static void empty_batch_is_good(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(decode(fixture), DW_OK);
    assert_int_equal(fixture->seen.count, 0);
}

/* A batch as large as a message may be passes, and the arena serves small ones again afterwards. */
static void largest_batch_passes(void **state)
{
    struct fixture *fixture = *state;
    struct dw_wire_log_request request = {.request = {.txn = txn}, .redo_size = 4000};
    static uint8_t redo[4000];
    request.redo = redo;
    size_t count = 0;
    while (fixture->buffer.size + 4100 <= DW_MAX_MESSAGE) {
        assert_int_equal(dw_encode_log_request(&fixture->buffer, &request), DW_OK);
        count++;
    }
    assert_int_equal(decode(fixture), DW_OK);
    assert_int_equal(fixture->seen.count, count);
    fixture->buffer.size = 0;
    request.redo_size = 1;
    for (int i = 0; i < 100; i++) {
        fixture->buffer.size = 0;
        assert_int_equal(dw_encode_log_request(&fixture->buffer, &request), DW_OK);
        assert_int_equal(decode(fixture), DW_OK);
    }
}

static void oversized_items_are_not_appended(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *bytes = calloc(1, DW_MAX_MESSAGE + 1);
    struct dw_wire_log_request request = {
        .request = {.txn = txn}, .redo = bytes, .redo_size = DW_MAX_REDO + 1};
    assert_int_equal(dw_encode_log_request(&fixture->buffer, &request), DW_ERR_TOO_LARGE);
    struct dw_wire_access access = {.value = bytes, .value_size = DW_MAX_REDO + 1};
    struct dw_wire_access_request accesses = {
        .txn = txn, .token = {.accesses = 1}, .accesses = &access, .access_count = 1};
    assert_int_equal(dw_encode_access_request(&fixture->buffer, &accesses), DW_ERR_TOO_LARGE);
    struct dw_wire_row row = {.data = bytes, .size = DW_MAX_MESSAGE};
    struct dw_wire_access_reply reply = {.txn = txn, .rows = &row, .row_count = 1};
    assert_int_equal(dw_encode_access_reply(&fixture->buffer, &reply), DW_ERR_TOO_LARGE);
    assert_int_equal(fixture->buffer.size, 0);
    free(bytes);
}

static void buffer_grows_and_keeps_what_it_holds(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < 5000; i++) {
        uint8_t *byte = dw_buffer_reserve(&fixture->buffer, 1);
        assert_non_null(byte);
        *byte = (uint8_t)i;
        fixture->buffer.size++;
    }
    for (size_t i = 0; i < 5000; i++) {
        assert_int_equal(fixture->buffer.data[i], (uint8_t)i);
    }
    assert_null(dw_buffer_reserve(&fixture->buffer, SIZE_MAX - 100));
    assert_int_equal(fixture->buffer.size, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(log_request_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_ask_and_answer_round_trips, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_message_kind_round_trips, set_up, tear_down),
        cmocka_unit_test_setup_teardown(access_request_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(access_reply_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(batch_is_visited_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(empty_batch_is_good, set_up, tear_down),
        cmocka_unit_test_setup_teardown(largest_batch_passes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(oversized_items_are_not_appended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(buffer_grows_and_keeps_what_it_holds, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
