/* Does the queue keep sends whole and in order, cut messages only between sends, and hold its bound? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rpc/queue.h"

enum { MIB = 1 << 20 };

static void assert_message(struct rpc_queue *queue, size_t size, uint8_t first, uint8_t last)
{
    struct rpc_chunk *chunk = rpc_queue_take(queue);
    assert_non_null(chunk);
    size_t taken;
    const uint8_t *bytes = rpc_chunk_bytes(chunk, &taken);
    assert_int_equal(taken, size);
    assert_int_equal(bytes[0], first);
    assert_int_equal(bytes[size - 1], last);
    rpc_queue_recycle(queue, chunk);
}

static void small_sends_join(void **state)
{
    (void)state;
    struct rpc_queue queue = {.limit = 100};
    assert_null(rpc_queue_take(&queue));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"abc", 3, 0), DW_OK);
        assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"defg", 4, 0), DW_OK);
        assert_message(&queue, 7, 'a', 'g');
        assert_null(rpc_queue_take(&queue));
        assert_int_equal(queue.size, 0);
    }
    rpc_queue_clear(&queue);
}

static void messages_are_cut_between_sends(void **state)
{
    (void)state;
    struct rpc_queue queue = {.limit = 64 * (size_t)MIB};
    uint8_t *bytes = malloc(3 * MIB);
    for (uint8_t i = 1; i <= 4; i++) {
        memset(bytes, i, 3 * MIB);
        assert_int_equal(rpc_queue_append(&queue, bytes, i == 2 ? MIB : 3 * MIB, 0), DW_OK);
    }
    /* 3 + 1 MiB fill one message exactly; the next two do not fit together. */
    assert_message(&queue, 4 * MIB, 1, 2);
    assert_message(&queue, 3 * MIB, 3, 3);
    assert_message(&queue, 3 * MIB, 4, 4);
    assert_null(rpc_queue_take(&queue));
    free(bytes);
    rpc_queue_clear(&queue);
}

static void bound_holds_and_refuses_whole(void **state)
{
    (void)state;
    struct rpc_queue queue = {.limit = 10};
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"123456", 6, 0), DW_OK);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"abcde", 5, 0), DW_ERR_FULL);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"wxyz", 4, 0), DW_OK);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"!", 1, 0), DW_ERR_FULL);
    assert_message(&queue, 10, '1', 'z');
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"!", 1, 0), DW_OK);
    rpc_queue_clear(&queue);
    assert_int_equal(queue.size, 0);
    assert_null(rpc_queue_take(&queue));
}

/* Bulk leaves the reserve to others, however much of it they have taken already. */
static void a_reserve_is_left_free(void **state)
{
    (void)state;
    struct rpc_queue queue = {.limit = 10};
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"bulkbul", 7, 4), DW_ERR_FULL);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"bulkbu", 6, 4), DW_OK);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"!", 1, 4), DW_ERR_FULL);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"ab", 2, 0), DW_OK);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"!", 1, 4), DW_ERR_FULL);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"cd", 2, 0), DW_OK);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"!", 1, 0), DW_ERR_FULL);
    assert_message(&queue, 10, 'b', 'd');
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"!", 1, 10), DW_ERR_FULL);
    assert_int_equal(rpc_queue_append(&queue, (const uint8_t *)"!", 1, 11), DW_ERR_FULL);
    rpc_queue_clear(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_sends_join),
        cmocka_unit_test(messages_are_cut_between_sends),
        cmocka_unit_test(bound_holds_and_refuses_whole),
        cmocka_unit_test(a_reserve_is_left_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
