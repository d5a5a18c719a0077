/* Does a stream survive what goes wrong: servers that restart, floods, oversized and malformed messages, a
 * stop with traffic in flight? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "raw.h"

static void client_reconnects_to_a_restarted_server(void **state)
{
    struct pair *pair = *state;
    char address[64];
    snprintf(address, sizeof address, "%s", pair->server->address);
    struct dw_conn *conn = pair->client->conn;
    for (unsigned restart = 1; restart <= 3; restart++) {
        endpoint_stop(pair->server);
        AWAIT(pair->client, e->downs >= 1 && e->ups == restart);
        struct dw_rpc_options options = endpoint_options(DW_ROLE_STORAGE, 1, address);
        pair->server = endpoint_start(&options);
        endpoint_set(pair->server, &pair->server->echo, true);
        uint64_t begin = dw_rpc_now_us();
        AWAIT(pair->client, e->ups == restart + 1);
        print_message("reconnected after %.0f ms\n", (double)(dw_rpc_now_us() - begin) / 1000);
        assert_ptr_equal(pair->client->conn, conn);
        assert_int_equal(dw_conn_send(conn, (const uint8_t *)"again", 5), DW_OK);
        AWAIT(pair->client, e->size == 5 * restart);
    }
}

/* The first failure is news, its repetitions are not; then the server appears. */
static void client_waits_for_a_server(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    char address[64];
    snprintf(address, sizeof address, "%s", server->address);
    endpoint_stop(server);
    struct endpoint *client = client_start();
    (void)client_connect(client, address);
    AWAIT(client, e->downs == 1);
    assert_int_equal(client->down_error, DW_ERR_CLOSED);
    assert_true(strlen(client->down_text) > 0);
    struct dw_rpc_options options = endpoint_options(DW_ROLE_STORAGE, 1, address);
    server = endpoint_start(&options);
    AWAIT(client, e->ups == 1);
    assert_int_equal(client->downs, 1);
    endpoint_stop(client);
    endpoint_stop(server);
}

static void sends_after_the_end_are_refused(void **state)
{
    struct pair *pair = *state;
    struct dw_conn *accepted = pair->server->conn;
    dw_conn_ref(accepted);
    endpoint_halt(pair->client);
    AWAIT(pair->server, e->downs == 1);
    assert_int_equal(pair->server->down_error, DW_ERR_CLOSED);
    assert_int_equal(dw_conn_send(accepted, (const uint8_t *)"x", 1), DW_ERR_CLOSED);
    endpoint_halt(pair->server);
    /* The reference outlives even the endpoint. */
    assert_int_equal(dw_conn_send(accepted, (const uint8_t *)"x", 1), DW_ERR_CLOSED);
    dw_conn_unref(accepted);
    assert_int_equal(pair->client->down_error, DW_ERR_SHUTDOWN);
    assert_int_equal(pair->client->downs, 1);
}

/* A reader that does not read fills the connection's window, then the queue; nothing that was refused
 * arrives. */
static void queue_is_bounded(void **state)
{
    (void)state;
    enum { PIECE = 100 * 1000, BOUND = 1000 * 1000 };
    struct endpoint *server = server_start();
    struct dw_rpc_options options = endpoint_options(DW_ROLE_COMPUTE, 3, NULL);
    options.max_queue_bytes = BOUND;
    struct endpoint *client = endpoint_start(&options);
    (void)client_connect(client, server->address);
    AWAIT(client, e->ups == 1);
    endpoint_set(server, &server->block, true);
    uint8_t *piece = calloc(1, PIECE);
    assert_int_equal(dw_conn_send(client->conn, piece, 1), DW_OK);
    AWAIT(server, e->blocked);
    size_t accepted = 1;
    enum dw_error error = DW_OK;
    while (error == DW_OK && accepted < 200 * (size_t)BOUND) {
        error = dw_conn_send(client->conn, piece, PIECE);
        accepted += error == DW_OK ? PIECE : 0;
    }
    assert_int_equal(error, DW_ERR_FULL);
    endpoint_set(server, &server->block, false);
    AWAIT(server, e->size == accepted);
    /* There is room again. */
    assert_int_equal(dw_conn_send(client->conn, piece, PIECE), DW_OK);
    AWAIT(server, e->size == accepted + PIECE);
    free(piece);
    endpoint_stop(client);
    endpoint_stop(server);
}

/* Bulk is refused while there is room for others yet, and what they send arrives. */
static void bulk_leaves_room_for_others(void **state)
{
    (void)state;
    enum { PIECE = 50 * 1000, BOUND = 1000 * 1000, RESERVED = 200 * 1000 };
    struct endpoint *server = server_start();
    struct dw_rpc_options options = endpoint_options(DW_ROLE_COMPUTE, 3, NULL);
    options.max_queue_bytes = BOUND;
    options.reserved_bytes = RESERVED;
    struct endpoint *client = endpoint_start(&options);
    (void)client_connect(client, server->address);
    AWAIT(client, e->ups == 1);
    endpoint_set(server, &server->block, true);
    uint8_t *piece = calloc(1, PIECE);
    assert_int_equal(dw_conn_send(client->conn, piece, 1), DW_OK);
    AWAIT(server, e->blocked);
    /* What the sockets take drains in steps: only when the reserve's room is there to the byte is it full. */
    size_t accepted = 1;
    unsigned small = 0;
    while (small < RESERVED / PIECE && accepted < 200 * (size_t)BOUND) {
        enum dw_error error = dw_conn_send_bulk(client->conn, piece, PIECE);
        accepted += error == DW_OK ? PIECE : 0;
        small = error == DW_ERR_FULL ? small : 0;
        if (error == DW_ERR_FULL) {
            assert_int_equal(dw_conn_send(client->conn, piece, PIECE), DW_OK);
            accepted += PIECE;
            small++;
        }
    }
    assert_int_equal(small, RESERVED / PIECE);
    endpoint_set(server, &server->block, false);
    AWAIT(server, e->size == accepted);
    free(piece);
    endpoint_stop(client);
    endpoint_stop(server);
}

static void assert_unharmed(struct pair *pair)
{
    endpoint_set(pair->server, &pair->server->echo, true);
    assert_int_equal(dw_conn_send(pair->client->conn, (const uint8_t *)"fine", 4), DW_OK);
    AWAIT(pair->client, e->size == 4);
    assert_int_equal(pair->client->downs, 0);
    assert_int_equal(pair->client->ups, 1);
}

static void oversized_message_closes_only_its_stream(void **state)
{
    struct pair *pair = *state;
    char text[FIXTURE_TEXT];
    struct raw_call call = {.path = "/dogwood.v1.Node/Stream",
                            .run_id = FIXTURE_RUN_ID,
                            .version = DW_VERSION,
                            .message_size = 2 * DW_MAX_MESSAGE};
    assert_int_equal(raw_run(pair->server->address, &call, text, sizeof text),
                     GRPC_STATUS_RESOURCE_EXHAUSTED);
    AWAIT(pair->server, e->ups == 2 && e->downs == 1);
    assert_int_equal(pair->server->messages, 0);
    assert_true(strlen(text) > 0);
    assert_unharmed(pair);
}

static void malformed_message_closes_only_its_stream(void **state)
{
    struct pair *pair = *state;
    struct endpoint *other = client_start();
    (void)client_connect(other, pair->server->address);
    AWAIT(other, e->ups == 1);
    endpoint_set(pair->server, &pair->server->refuse, true);
    assert_int_equal(dw_conn_send(other->conn, (const uint8_t *)"?", 1), DW_OK);
    AWAIT(other, e->downs == 1);
    assert_int_equal(other->down_error, DW_ERR_MALFORMED);
    assert_string_equal(other->down_text, "storage node 1 closes the stream: malformed message");
    AWAIT(pair->server, e->downs == 1);
    assert_int_equal(pair->server->down_error, DW_ERR_MALFORMED);
    endpoint_set(pair->server, &pair->server->refuse, false);
    /* It comes back by itself, and the first client never noticed. */
    AWAIT(other, e->ups == 2);
    assert_unharmed(pair);
    endpoint_stop(other);
}

static void closing_gives_the_words(void **state)
{
    struct pair *pair = *state;
    pthread_mutex_lock(&pair->server->mutex);
    pair->server->close_text = "log request: log out of range";
    pthread_mutex_unlock(&pair->server->mutex);
    assert_int_equal(dw_conn_send(pair->client->conn, (const uint8_t *)"?", 1), DW_OK);
    AWAIT(pair->client, e->downs == 1);
    assert_int_equal(pair->client->down_error, DW_ERR_MALFORMED);
    assert_string_equal(pair->client->down_text, "log request: log out of range");
    AWAIT(pair->server, e->downs == 1);
    assert_string_equal(pair->server->down_text, "log request: log out of range");
}

static void resume(struct endpoint *endpoint)
{
    endpoint_set(endpoint, &endpoint->resume, true);
    dw_rpc_wake(endpoint->rpc);
}

/* What is held comes again, nothing overtakes it, and nothing is lost. */
static void held_message_comes_again(void **state)
{
    struct pair *pair = *state;
    endpoint_set(pair->server, &pair->server->hold, true);
    assert_int_equal(dw_conn_send(pair->client->conn, (const uint8_t *)"first ", 6), DW_OK);
    AWAIT(pair->server, e->holds == 1);
    assert_int_equal(dw_conn_send(pair->client->conn, (const uint8_t *)"second", 6), DW_OK);
    resume(pair->server);
    AWAIT(pair->server, e->holds == 2);
    assert_int_equal(pair->server->messages, 0);
    endpoint_set(pair->server, &pair->server->hold, false);
    resume(pair->server);
    AWAIT(pair->server, e->size == 12);
    assert_memory_equal(pair->server->bytes, "first second", 12);
    /* Resuming what is not held does nothing. */
    resume(pair->server);
    endpoint_set(pair->server, &pair->server->echo, true);
    assert_int_equal(dw_conn_send(pair->client->conn, (const uint8_t *)"third", 5), DW_OK);
    AWAIT(pair->client, e->size == 5);
}

static void held_message_is_dropped_with_its_stream(void **state)
{
    struct pair *pair = *state;
    endpoint_set(pair->server, &pair->server->hold, true);
    assert_int_equal(dw_conn_send(pair->client->conn, (const uint8_t *)"x", 1), DW_OK);
    AWAIT(pair->server, e->holds == 1);
    endpoint_halt(pair->client);
    AWAIT(pair->server, e->downs == 1);
    resume(pair->server);
    AWAIT(pair->server, !e->resume);
    endpoint_halt(pair->server);
    assert_int_equal(pair->server->messages, 0);
    assert_int_equal(pair->server->holds, 1);
}

static void malformed_message_from_the_server_closes_too(void **state)
{
    struct pair *pair = *state;
    endpoint_set(pair->client, &pair->client->refuse, true);
    assert_int_equal(dw_conn_send(pair->server->conn, (const uint8_t *)"?", 1), DW_OK);
    AWAIT(pair->client, e->downs == 1);
    assert_int_equal(pair->client->down_error, DW_ERR_MALFORMED);
    AWAIT(pair->server, e->downs == 1);
    endpoint_set(pair->client, &pair->client->refuse, false);
    AWAIT(pair->client, e->ups == 2);
}

struct flood {
    struct dw_conn *conn;
    atomic_bool stop;
    unsigned surprises;
};

static void *flood(void *argument)
{
    struct flood *flood = argument;
    static const uint8_t bytes[1000];
    while (!atomic_load(&flood->stop)) {
        enum dw_error error = dw_conn_send(flood->conn, bytes, sizeof bytes);
        flood->surprises += error != DW_OK && error != DW_ERR_FULL && error != DW_ERR_CLOSED;
    }
    return NULL;
}

/* Threads go on sending while the one end, then the other, stops. */
static void stop_with_traffic_in_flight(void **state)
{
    (void)state;
    for (int round = 0; round < 6; round++) {
        void *made = NULL;
        (void)pair_set_up(&made);
        struct pair *pair = made;
        endpoint_set(pair->server, &pair->server->echo, true);
        struct flood floods[2] = {{.conn = pair->client->conn}, {.conn = pair->client->conn}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, flood, &floods[i]), 0);
        }
        AWAIT(pair->client, e->messages > 10);
        endpoint_halt(round % 2 == 0 ? pair->client : pair->server);
        endpoint_halt(round % 2 == 0 ? pair->server : pair->client);
        for (int i = 0; i < 2; i++) {
            atomic_store(&floods[i].stop, true);
            pthread_join(threads[i], NULL);
            assert_int_equal(floods[i].surprises, 0);
        }
        assert_int_equal(pair->client->downs, 1);
        assert_int_equal(pair->server->downs, pair->server->ups);
        (void)pair_tear_down(&made);
    }
}

static void stop_before_anything_happened(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct endpoint *server = server_start();
        struct endpoint *client = client_start();
        (void)client_connect(client, server->address);
        endpoint_stop(i % 2 == 0 ? client : server);
        endpoint_stop(i % 2 == 0 ? server : client);
    }
}

#define PAIR_TEST(name) cmocka_unit_test_setup_teardown(name, pair_set_up, pair_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(client_reconnects_to_a_restarted_server),
        cmocka_unit_test(client_waits_for_a_server),
        PAIR_TEST(sends_after_the_end_are_refused),
        cmocka_unit_test(queue_is_bounded),
        cmocka_unit_test(bulk_leaves_room_for_others),
        PAIR_TEST(oversized_message_closes_only_its_stream),
        PAIR_TEST(malformed_message_closes_only_its_stream),
        PAIR_TEST(closing_gives_the_words),
        PAIR_TEST(held_message_comes_again),
        PAIR_TEST(held_message_is_dropped_with_its_stream),
        PAIR_TEST(malformed_message_from_the_server_closes_too),
        cmocka_unit_test(stop_with_traffic_in_flight),
        cmocka_unit_test(stop_before_anything_happened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
