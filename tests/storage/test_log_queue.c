/* Does the heap of delayed requests give them back by due time, then by arrival? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/log_queue.h"

static void the_heap_sorts(void **state)
{
    enum { ITEMS = 2000 };
    struct dw_queued *items = calloc(ITEMS, sizeof *items);
    struct dw_random random;
    (void)state;
    assert_non_null(items);
    dw_random_init(&random, 1);
    for (int round = 0; round < 20; round++) {
        struct dw_queued *root = NULL;
        size_t added = 0, popped = 0;
        uint64_t due = 0;
        uint64_t order = 0;
        while (popped < ITEMS) {
            bool add = added < ITEMS && dw_random_below(&random, 3) > 0;
            if (add || root == NULL) {
                /* Due times rise from what was popped, as they do when time goes on. */
                items[added] =
                    (struct dw_queued){.due_us = due + dw_random_below(&random, 20), .order = added};
                root = dw_queued_heap_add(root, &items[added++]);
                continue;
            }
            struct dw_queued *item = root;
            root = dw_queued_heap_pop(root);
            /* Arrivals that are due at the same time as the last popped one may have come since. */
            assert_true(item->due_us > due || (item->due_us == due && (popped == 0 || item->order > order)));
            due = item->due_us;
            order = item->order;
            popped++;
        }
        assert_null(root);
    }
    free(items);
}

static void lists_keep_their_order(void **state)
{
    struct dw_queued items[4] = {{.order = 0}, {.order = 1}, {.order = 2}, {.order = 3}};
    struct dw_queued_list a = {0}, b = {0};
    (void)state;
    assert_null(dw_queued_list_pop(&a));
    dw_queued_list_move(&a, &b);
    dw_queued_list_add(&b, &items[0]);
    dw_queued_list_move(&a, &b);
    dw_queued_list_add(&b, &items[1]);
    dw_queued_list_add(&b, &items[2]);
    dw_queued_list_move(&a, &b);
    dw_queued_list_add(&a, &items[3]);
    assert_null(b.head);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(dw_queued_list_pop(&a)->order, i);
    }
    assert_null(dw_queued_list_pop(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heap_sorts),
        cmocka_unit_test(lists_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
