/* Do lock table shards and engine together keep threads apart? Each thread runs transactions that read and
 * increment counters; every granted increment must be there in the end. The thread sanitizer watches the
 * rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "compute/engine/engine.h"
#include "compute/engine/redo.h"
#include "compute/lock_table.h"

enum { THREADS = 4, SHARDS = 4, ROWS = 32, TRANSACTIONS = 3000, ROWS_OF_ONE = 3 };

struct shard {
    pthread_mutex_t mutex;
    struct dw_lock_table *locks;
};

struct node {
    struct dw_engine *engine;
    struct shard shards[SHARDS];
};

struct worker {
    struct node *node;
    uint32_t number;
    uint64_t committed;
};

static const struct dw_table schema = {.name = "counters", .field_count = 2, .offsets = {0, 8, 16}};

static struct shard *shard_of(struct node *node, struct dw_lock_name name)
{
    return &node->shards[dw_lock_hash(name) >> 62];
}

static bool lock(struct node *node, struct dw_txn_id txn, uint64_t key, enum dw_lock_mode mode)
{
    struct dw_lock_name name = {.table = 0, .key = key};
    struct shard *shard = shard_of(node, name);
    pthread_mutex_lock(&shard->mutex);
    enum dw_lock_result result = dw_lock_acquire(shard->locks, txn, name, mode);
    pthread_mutex_unlock(&shard->mutex);
    return result == DW_LOCK_GRANTED;
}

static void unlock_all(struct node *node, struct dw_txn_id txn)
{
    for (int i = 0; i < SHARDS; i++) {
        pthread_mutex_lock(&node->shards[i].mutex);
        (void)dw_lock_release(node->shards[i].locks, txn);
        pthread_mutex_unlock(&node->shards[i].mutex);
    }
}

/* Reads a counter under a shared lock, upgrades, and buffers the counter plus one. */
static bool increment(struct node *node, struct dw_txn_id txn, uint64_t key, struct dw_redo *redo)
{
    uint8_t row[16];
    if (!lock(node, txn, key, DW_LOCK_SHARED)) {
        return false;
    }
    DW_ASSERT(node->engine->ops->read(node->engine, 0, key, row) == DW_OK);
    if (!lock(node, txn, key, DW_LOCK_EXCLUSIVE)) {
        return false;
    }
    dw_redo_overlay(redo, 0, key, &schema, row);
    uint64_t counter;
    memcpy(&counter, row + 8, sizeof counter);
    counter++;
    struct dw_change change = {
        .key = key, .field = 1, .value = (const uint8_t *)&counter, .value_bytes = sizeof counter};
    DW_ASSERT(dw_engine_check_write(node->engine, 0, key, 1, sizeof counter) == DW_OK);
    DW_ASSERT(dw_redo_add(redo, &change) == DW_OK);
    return true;
}

/* A transaction may meet the same row twice: it must then see its own increment. */
static bool run_transaction(struct node *node, struct dw_txn_id txn, struct dw_random *random,
                            struct dw_redo *redo)
{
    dw_redo_clear(redo);
    bool granted = true;
    for (int i = 0; granted && i < ROWS_OF_ONE; i++) {
        granted = increment(node, txn, dw_random_below(random, ROWS), redo);
    }
    if (granted) {
        struct dw_applied applied;
        DW_ASSERT(node->engine->ops->apply(node->engine, 0, redo->data, redo->size, &applied) == DW_OK);
    }
    unlock_all(node, txn);
    return granted;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct dw_random random;
    dw_random_init(&random, worker->number);
    struct dw_redo redo = {0};
    for (uint64_t i = 0; i < TRANSACTIONS; i++) {
        struct dw_txn_id txn = {.coordinator = worker->number, .incarnation = 1, .sequence = i};
        worker->committed += run_transaction(worker->node, txn, &random, &redo);
    }
    dw_redo_free(&redo);
    return NULL;
}

static void node_init(struct node *node)
{
    node->engine = dw_memory_engine_open();
    assert_non_null(node->engine);
    assert_int_equal(node->engine->ops->create_table(node->engine, 0, &schema, ROWS), DW_OK);
    static const uint8_t zero[16] = {0};
    for (uint64_t key = 0; key < ROWS; key++) {
        assert_int_equal(node->engine->ops->insert(node->engine, 0, key, zero), DW_OK);
    }
    for (int i = 0; i < SHARDS; i++) {
        void *memory = malloc(dw_lock_table_bytes(THREADS * ROWS_OF_ONE));
        assert_non_null(memory);
        node->shards[i].locks = dw_lock_table_init(memory, THREADS * ROWS_OF_ONE);
        assert_int_equal(pthread_mutex_init(&node->shards[i].mutex, NULL), 0);
    }
}

static void node_close(struct node *node)
{
    for (int i = 0; i < SHARDS; i++) {
        dw_lock_table_check(node->shards[i].locks);
        assert_int_equal(dw_lock_table_used(node->shards[i].locks), 0);
        free(node->shards[i].locks);
        pthread_mutex_destroy(&node->shards[i].mutex);
    }
    node->engine->ops->close(node->engine);
}

static void no_increment_is_lost(void **state)
{
    (void)state;
    struct node node;
    node_init(&node);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.node = &node, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    uint64_t committed = 0;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        committed += workers[i].committed;
    }
    uint64_t sum = 0;
    for (uint64_t key = 0; key < ROWS; key++) {
        uint64_t row[2];
        assert_int_equal(node.engine->ops->read(node.engine, 0, key, (uint8_t *)row), DW_OK);
        assert_int_equal(row[0], 0);
        sum += row[1];
    }
    assert_true(committed > 0);
    assert_int_equal(sum, committed * ROWS_OF_ONE);
    node_close(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_increment_is_lost),
    };
    return cmocka_run_group_tests_name("compute_engine_threads", tests, NULL, NULL);
}
