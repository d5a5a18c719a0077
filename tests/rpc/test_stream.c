/* Do messages travel whole, in order and batched, from any thread, and do wake-ups and timers work? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "fixture.h"

enum { THREADS = 4, SENDS = 5000, RECORD = 16 };

static void echo_comes_back(void **state)
{
    struct pair *pair = *state;
    endpoint_set(pair->server, &pair->server->echo, true);
    assert_int_equal(pair->server->peer.role, DW_ROLE_COMPUTE);
    assert_int_equal(pair->server->peer.node, 3);
    assert_string_equal(pair->server->peer.run_id, FIXTURE_RUN_ID);
    assert_int_equal(pair->client->peer.role, DW_ROLE_STORAGE);
    assert_int_equal(pair->client->peer.node, 1);
    assert_int_equal(dw_conn_send(pair->client->conn, (const uint8_t *)"hello", 5), DW_OK);
    AWAIT(pair->client, e->size == 5);
    assert_memory_equal(pair->client->bytes, "hello", 5);
    assert_int_equal(dw_conn_send(pair->client->conn, NULL, 0), DW_OK);
}

static void user_pointer_is_kept(void **state)
{
    struct pair *pair = *state;
    assert_null(dw_conn_user(pair->client->conn));
    dw_conn_set_user(pair->client->conn, pair);
    assert_ptr_equal(dw_conn_user(pair->client->conn), pair);
}

static void largest_message_travels(void **state)
{
    struct pair *pair = *state;
    uint8_t *bytes = malloc(DW_MAX_MESSAGE + 1);
    endpoint_set(pair->server, &pair->server->echo, true);
    for (size_t i = 0; i < DW_MAX_MESSAGE; i++) {
        bytes[i] = (uint8_t)(i * 31 >> 3);
    }
    assert_int_equal(dw_conn_send(pair->client->conn, bytes, DW_MAX_MESSAGE + 1), DW_ERR_TOO_LARGE);
    assert_int_equal(dw_conn_send(pair->client->conn, bytes, DW_MAX_MESSAGE), DW_OK);
    AWAIT(pair->client, e->size == DW_MAX_MESSAGE);
    assert_int_equal(memcmp(pair->client->bytes, bytes, DW_MAX_MESSAGE), 0);
    free(bytes);
}

struct sender {
    struct dw_conn *conn;
    uint32_t number;
    unsigned failures;
};

/* A record is its sender, its number and a filling that both determine. */
static void make_record(uint8_t record[RECORD], uint32_t sender, uint32_t number)
{
    memset(record, (int)(sender * 31 + number), RECORD);
    memcpy(record, &sender, sizeof sender);
    memcpy(record + 4, &number, sizeof number);
}

static void *send_many(void *argument)
{
    struct sender *sender = argument;
    for (uint32_t i = 0; i < SENDS; i++) {
        uint8_t record[RECORD];
        make_record(record, sender->number, i);
        sender->failures += dw_conn_send(sender->conn, record, sizeof record) != DW_OK;
    }
    return NULL;
}

static void sends_of_many_threads_arrive_whole_in_order_batched(void **state)
{
    struct pair *pair = *state;
    pthread_t threads[THREADS];
    struct sender senders[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        senders[i] = (struct sender){.conn = pair->client->conn, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, &senders[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(senders[i].failures, 0);
    }
    AWAIT(pair->server, e->size == (size_t)THREADS * SENDS * RECORD);
    uint32_t next[THREADS] = {0};
    for (size_t at = 0; at < pair->server->size; at += RECORD) {
        uint8_t expected[RECORD];
        uint32_t sender;
        memcpy(&sender, pair->server->bytes + at, sizeof sender);
        assert_true(sender < THREADS);
        make_record(expected, sender, next[sender]++);
        assert_memory_equal(pair->server->bytes + at, expected, RECORD);
    }
    assert_true(pair->server->messages < THREADS * SENDS);
}

/* While the receiver is held up the sends of one thread pile up, and then leave in few messages. */
static void what_queues_up_leaves_as_one_message(void **state)
{
    struct pair *pair = *state;
    enum { PIECE = 64 * 1024, PIECES = 100 };
    uint8_t *piece = calloc(1, PIECE);
    endpoint_set(pair->server, &pair->server->block, true);
    for (int i = 0; i < PIECES; i++) {
        piece[0] = (uint8_t)i;
        assert_int_equal(dw_conn_send(pair->client->conn, piece, PIECE), DW_OK);
    }
    AWAIT(pair->server, e->blocked);
    endpoint_set(pair->server, &pair->server->block, false);
    AWAIT(pair->server, e->size == (size_t)PIECE * PIECES);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(pair->server->bytes[(size_t)i * PIECE], i);
    }
    assert_true(pair->server->largest > PIECE && pair->server->largest <= DW_MAX_MESSAGE);
    assert_true(pair->server->messages < PIECES);
    free(piece);
}

static void two_clients_share_a_server(void **state)
{
    struct pair *pair = *state;
    struct endpoint *other = client_start();
    (void)client_connect(other, pair->server->address);
    AWAIT(other, e->ups == 1);
    endpoint_set(pair->server, &pair->server->echo, true);
    assert_int_equal(dw_conn_send(other->conn, (const uint8_t *)"two", 3), DW_OK);
    assert_int_equal(dw_conn_send(pair->client->conn, (const uint8_t *)"one", 3), DW_OK);
    AWAIT(other, e->size == 3);
    AWAIT(pair->client, e->size == 3);
    assert_memory_equal(other->bytes, "two", 3);
    assert_memory_equal(pair->client->bytes, "one", 3);
    endpoint_stop(other);
}

static void an_endpoint_can_serve_and_connect(void **state)
{
    struct pair *pair = *state;
    endpoint_set(pair->server, &pair->server->echo, true);
    struct dw_rpc_options options = endpoint_options(DW_ROLE_COMPUTE, 5, "127.0.0.1:0");
    struct endpoint *both = endpoint_start(&options);
    (void)client_connect(both, pair->server->address);
    AWAIT(both, e->ups == 1);
    assert_int_equal(dw_conn_send(both->conn, (const uint8_t *)"out", 3), DW_OK);
    AWAIT(both, e->size == 3);
    const struct dw_identity compute_5 = {.role = DW_ROLE_COMPUTE, .node = 5};
    struct dw_conn *in = NULL;
    assert_int_equal(dw_rpc_connect(pair->client->rpc, both->address, &compute_5, &in), DW_OK);
    AWAIT(both, e->ups == 2);
    endpoint_stop(both);
}

/* Once asleep the loop does not tick by itself; each wake-up makes it. */
static void wake_runs_the_tick(void **state)
{
    struct pair *pair = *state;
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&pair->client->mutex);
        unsigned before = pair->client->ticks;
        pthread_mutex_unlock(&pair->client->mutex);
        dw_rpc_wake(pair->client->rpc);
        AWAIT(pair->client, e->ticks > before);
    }
}

static void timer_is_kept(void **state)
{
    struct pair *pair = *state;
    uint64_t due = dw_rpc_now_us() + 30000;
    pthread_mutex_lock(&pair->client->mutex);
    pair->client->tick_us = due;
    pthread_mutex_unlock(&pair->client->mutex);
    dw_rpc_wake(pair->client->rpc);
    AWAIT(pair->client, e->tick_us == UINT64_MAX);
    assert_true(pair->client->tick_now_us >= due);
}

#define PAIR_TEST(name) cmocka_unit_test_setup_teardown(name, pair_set_up, pair_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(echo_comes_back),
        PAIR_TEST(user_pointer_is_kept),
        PAIR_TEST(largest_message_travels),
        PAIR_TEST(sends_of_many_threads_arrive_whole_in_order_batched),
        PAIR_TEST(what_queues_up_leaves_as_one_message),
        PAIR_TEST(two_clients_share_a_server),
        PAIR_TEST(an_endpoint_can_serve_and_connect),
        PAIR_TEST(wake_runs_the_tick),
        PAIR_TEST(timer_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
