/* Is decoding total: does it survive random, truncated, spliced and bit-flipped bytes, and pass only items
 * that keep the rules? Run it under the sanitizers. The seed is printed first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/random.h"
#include "wire/check.h"
#include "wire/codec.h"

enum { ROUNDS = 20000, FRAME_MAX = 8192 };

static const uint64_t seed = 20240607;

struct tally {
    unsigned items;
    uint64_t bytes;
};

/* Reads every byte that an item points to, so that a sanitizer sees a wrong pointer. */
static void touch(struct tally *tally, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        tally->bytes += data[i];
    }
    tally->items++;
}

static void on_log_request(void *user, const struct dw_wire_log_request *request)
{
    assert_null(dw_check_log_request(request));
    touch(user, request->redo, request->redo_size);
}

static void on_log_reply(void *user, const struct dw_wire_log_reply *reply)
{
    assert_null(dw_check_log_reply(reply));
    touch(user, NULL, 0);
}

static void on_message(void *user, const struct dw_message *message, const struct dw_token *token)
{
    assert_null(dw_check_message(message, token));
    touch(user, NULL, 0);
}

static void on_access_request(void *user, const struct dw_wire_access_request *request)
{
    assert_null(dw_check_access_request(request));
    for (size_t i = 0; i < request->access_count; i++) {
        assert_null(dw_check_access(&request->accesses[i]));
        touch(user, request->accesses[i].value, request->accesses[i].value_size);
    }
}

static void on_access_reply(void *user, const struct dw_wire_access_reply *reply)
{
    assert_null(dw_check_access_reply(reply));
    for (size_t i = 0; i < reply->row_count; i++) {
        touch(user, reply->rows[i].data, reply->rows[i].size);
    }
}

static const struct dw_batch_visitor visitor = {.log_request = on_log_request,
                                                .log_reply = on_log_reply,
                                                .message = on_message,
                                                .access_request = on_access_request,
                                                .access_reply = on_access_reply};

/* Decodes a copy that ends where the memory ends, so that reading on is seen. */
static enum dw_error decode(struct dw_decoder *decoder, const uint8_t *data, size_t size, struct tally *tally)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    unsigned before = tally->items;
    const char *text = NULL;
    enum dw_error error = dw_decode_batch(decoder, copy, size, &visitor, tally, &text);
    free(copy);
    assert_true(error == DW_OK || error == DW_ERR_MALFORMED);
    if (error != DW_OK) {
        assert_non_null(text);
        assert_int_equal(tally->items, before);
    }
    return error;
}

static struct dw_txn_id random_txn(struct dw_random *random)
{
    return (struct dw_txn_id){.coordinator = (uint32_t)dw_random_below(random, DW_MAX_NODES),
                              .incarnation = 1 + (uint32_t)dw_random_below(random, 1000),
                              .sequence = dw_random_next(random)};
}

static enum dw_error add_log_item(struct dw_buffer *buffer, struct dw_random *random, bool reply)
{
    static const uint8_t redo[256] = {1, 2, 3};
    struct dw_txn_id txn = random_txn(random);
    if (reply) {
        struct dw_wire_log_reply item = {
            .id = dw_random_next(random),
            .reply = {.txn = txn, .ask = DW_ASK_DENY, .answer = DW_ANSWER_ABORT, .position = 77}};
        return dw_encode_log_reply(buffer, &item);
    }
    struct dw_wire_log_request item = {.id = dw_random_next(random),
                                       .request = {.txn = txn, .log = 3, .writer = 4, .incarnation = 9},
                                       .participants = dw_random_next(random),
                                       .redo = redo,
                                       .redo_size = dw_random_below(random, sizeof redo)};
    return dw_encode_log_request(buffer, &item);
}

static enum dw_error add_access_item(struct dw_buffer *buffer, struct dw_random *random, bool reply)
{
    static const uint8_t value[64] = {9};
    struct dw_txn_id txn = random_txn(random);
    if (reply) {
        struct dw_wire_row rows[] = {{value, 64}, {value, dw_random_below(random, 64)}};
        struct dw_wire_access_reply item = {.txn = txn, .rows = rows, .row_count = 2};
        return dw_encode_access_reply(buffer, &item);
    }
    struct dw_wire_access accesses[] = {
        {.table = 1, .key = dw_random_next(random), .value = value, .value_size = 8},
        {.table = 2, .key = 5, .kind = 1}};
    struct dw_wire_access_request item = {
        .txn = txn, .token = {.accesses = 1}, .accesses = accesses, .access_count = 2};
    return dw_encode_access_request(buffer, &item);
}

static void add_item(struct dw_buffer *buffer, struct dw_random *random)
{
    uint64_t kind = dw_random_below(random, 5);
    enum dw_error error;
    if (kind < 2) {
        error = add_log_item(buffer, random, kind == 1);
    } else if (kind < 4) {
        error = add_access_item(buffer, random, kind == 3);
    } else {
        struct dw_message message = {.kind = DW_MSG_VOTE_REQUEST,
                                     .to = 5,
                                     .txn = random_txn(random),
                                     .writers = dw_random_next(random) | 1 << 5};
        struct dw_token token = {.incarnation = 1, .counter = dw_random_next(random), .accesses = 2};
        error = dw_encode_message(buffer, &message, &token);
    }
    assert_int_equal(error, DW_OK);
}

static void make_frame(struct dw_buffer *buffer, struct dw_random *random)
{
    buffer->size = 0;
    uint64_t items = 1 + dw_random_below(random, 12);
    for (uint64_t i = 0; i < items; i++) {
        add_item(buffer, random);
    }
}

struct fixture {
    struct dw_random random;
    struct dw_decoder decoder;
    struct dw_buffer frame;
    struct tally tally;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture != NULL) {
        dw_random_init(&fixture->random, seed);
    }
    *state = fixture;
    return fixture == NULL;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    dw_decoder_close(&fixture->decoder);
    dw_buffer_free(&fixture->frame);
    free(fixture);
    return 0;
}

static void random_bytes(void **state)
{
    struct fixture *fixture = *state;
    uint8_t bytes[512];
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = dw_random_below(&fixture->random, sizeof bytes + 1);
        for (size_t i = 0; i < size; i++) {
            bytes[i] = (uint8_t)dw_random_next(&fixture->random);
        }
        (void)decode(&fixture->decoder, bytes, size, &fixture->tally);
    }
}

/* Bytes that look like protobuf get deeper into the decoder than noise does: known tags, small lengths. */
static void plausible_bytes(void **state)
{
    struct fixture *fixture = *state;
    uint8_t bytes[256];
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = dw_random_below(&fixture->random, sizeof bytes + 1);
        for (size_t i = 0; i < size; i++) {
            static const uint8_t usual[] = {0x0a, 0x12, 0x1a, 0x22, 0x2a, 0x08, 0x10,
                                            0x18, 0x20, 0,    1,    2,    4,    6};
            uint64_t pick = dw_random_below(&fixture->random, sizeof usual + 4);
            bytes[i] = pick < sizeof usual ? usual[pick] : (uint8_t)dw_random_below(&fixture->random, 64);
        }
        (void)decode(&fixture->decoder, bytes, size, &fixture->tally);
    }
}

static void truncated_frames(void **state)
{
    struct fixture *fixture = *state;
    unsigned refused = 0;
    for (int frame = 0; frame < 60; frame++) {
        make_frame(&fixture->frame, &fixture->random);
        assert_int_equal(decode(&fixture->decoder, fixture->frame.data, fixture->frame.size, &fixture->tally),
                         DW_OK);
        for (size_t size = 0; size < fixture->frame.size; size++) {
            refused += decode(&fixture->decoder, fixture->frame.data, size, &fixture->tally) != DW_OK;
        }
    }
    /* A cut passes only between two items. */
    assert_true(refused > 1000);
}

static void flipped_bits(void **state)
{
    struct fixture *fixture = *state;
    unsigned refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make_frame(&fixture->frame, &fixture->random);
        uint64_t flips = 1 + dw_random_below(&fixture->random, 4);
        for (uint64_t i = 0; i < flips; i++) {
            size_t bit = dw_random_below(&fixture->random, fixture->frame.size * 8);
            fixture->frame.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        refused +=
            decode(&fixture->decoder, fixture->frame.data, fixture->frame.size, &fixture->tally) != DW_OK;
    }
    assert_true(refused > ROUNDS / 4);
}

static void spliced_frames(void **state)
{
    struct fixture *fixture = *state;
    struct dw_buffer other = {0};
    uint8_t bytes[2 * FRAME_MAX];
    for (int round = 0; round < ROUNDS / 2; round++) {
        make_frame(&fixture->frame, &fixture->random);
        make_frame(&other, &fixture->random);
        assert_true(fixture->frame.size <= FRAME_MAX && other.size <= FRAME_MAX);
        size_t head = dw_random_below(&fixture->random, fixture->frame.size + 1);
        size_t skip = dw_random_below(&fixture->random, other.size + 1);
        memcpy(bytes, fixture->frame.data, head);
        memcpy(bytes + head, other.data + skip, other.size - skip);
        (void)decode(&fixture->decoder, bytes, head + other.size - skip, &fixture->tally);
    }
    dw_buffer_free(&other);
}

/* Empty items cost far more memory than bytes; the bound must hold, whatever they are nested in. */
static void empty_items_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    static uint8_t bytes[DW_MAX_MESSAGE];
    for (uint8_t field = 1; field <= 5; field++) {
        for (size_t i = 0; i < sizeof bytes; i += 2) {
            bytes[i] = (uint8_t)(field << 3 | 2);
            bytes[i + 1] = 0;
        }
        const char *text = NULL;
        assert_int_equal(
            dw_decode_batch(&fixture->decoder, bytes, sizeof bytes, &visitor, &fixture->tally, &text),
            DW_ERR_MALFORMED);
        assert_string_equal(text, "batch: too many items for its size");
    }
    assert_int_equal(fixture->tally.items, 0);
}

static void longer_than_a_message(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *bytes = calloc(1, DW_MAX_MESSAGE + 1);
    const char *text = NULL;
    assert_int_equal(
        dw_decode_batch(&fixture->decoder, bytes, DW_MAX_MESSAGE + 1, &visitor, &fixture->tally, &text),
        DW_ERR_MALFORMED);
    assert_non_null(strstr(text, "longer than a message"));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plausible_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(truncated_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flipped_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(spliced_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(empty_items_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(longer_than_a_message, set_up, tear_down),
    };
    printf("seed %llu, %d rounds\n", (unsigned long long)seed, ROUNDS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
