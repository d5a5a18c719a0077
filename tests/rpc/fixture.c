#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct dw_identity storage_1 = {.role = DW_ROLE_STORAGE, .node = 1};

static void lock(struct endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->mutex);
}

static void unlock(struct endpoint *endpoint)
{
    pthread_cond_broadcast(&endpoint->changed);
    pthread_mutex_unlock(&endpoint->mutex);
}

static void on_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    struct endpoint *endpoint = user;
    dw_conn_ref(conn);
    lock(endpoint);
    struct dw_conn *old = endpoint->conn;
    endpoint->conn = conn;
    endpoint->peer = *peer;
    endpoint->ups++;
    unlock(endpoint);
    if (old != NULL) {
        dw_conn_unref(old);
    }
}

static void on_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    struct endpoint *endpoint = user;
    (void)conn;
    lock(endpoint);
    endpoint->downs++;
    endpoint->down_error = error;
    snprintf(endpoint->down_text, sizeof endpoint->down_text, "%s", text);
    unlock(endpoint);
}

static void record(struct endpoint *endpoint, const uint8_t *data, size_t size)
{
    endpoint->bytes = realloc(endpoint->bytes, endpoint->size + size + 1);
    assert_non_null(endpoint->bytes);
    memcpy(endpoint->bytes + endpoint->size, data, size);
    endpoint->size += size;
    endpoint->largest = size > endpoint->largest ? size : endpoint->largest;
    endpoint->messages++;
}

static enum dw_error on_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    struct endpoint *endpoint = user;
    lock(endpoint);
    if (endpoint->hold) {
        endpoint->holds++;
        unlock(endpoint);
        dw_conn_hold(conn);
        return DW_OK;
    }
    record(endpoint, data, size);
    const char *close_text = endpoint->close_text;
    bool echo = endpoint->echo;
    bool refuse = endpoint->refuse;
    while (endpoint->block) {
        endpoint->blocked = true;
        pthread_cond_broadcast(&endpoint->changed);
        pthread_cond_wait(&endpoint->changed, &endpoint->mutex);
    }
    endpoint->blocked = false;
    unlock(endpoint);
    if (close_text != NULL) {
        dw_conn_close(conn, DW_ERR_MALFORMED, close_text);
        return DW_ERR_MALFORMED;
    }
    if (echo) {
        enum dw_error error = dw_conn_send(conn, data, size);
        return error == DW_ERR_CLOSED ? DW_OK : error;
    }
    return refuse ? DW_ERR_MALFORMED : DW_OK;
}

/* Methods: Echo sends the request back, Fail gives an error, Defer is answered by the test, Large replies
 * with as many bytes as the request's four bytes say. */
static void on_unary(void *user, struct dw_unary_call *call, const char *method, const uint8_t *data,
                     size_t size)
{
    struct endpoint *endpoint = user;
    struct dw_unary_reply reply = {0};
    if (strcmp(method, "Defer") == 0) {
        lock(endpoint);
        endpoint->deferred = call;
        unlock(endpoint);
        return;
    }
    if (strcmp(method, "Echo") == 0) {
        reply.data = malloc(size + 1);
        reply.size = size;
        memcpy(reply.data, data, size);
    } else if (strcmp(method, "Large") == 0 && size == sizeof(uint32_t)) {
        uint32_t wanted;
        memcpy(&wanted, data, sizeof wanted);
        reply.data = calloc(1, wanted);
        reply.size = wanted;
    } else if (strcmp(method, "Fail") == 0) {
        reply.error = DW_ERR_LOCKED;
        snprintf(reply.text, sizeof reply.text, "log 5 is locked; stop its \"owner\"");
    } else {
        reply.error = DW_ERR_MISSING;
        snprintf(reply.text, sizeof reply.text, "no method %s here", method);
    }
    dw_unary_finish(call, &reply);
}

static uint64_t on_tick(void *user, uint64_t now_us)
{
    struct endpoint *endpoint = user;
    lock(endpoint);
    endpoint->ticks++;
    endpoint->tick_now_us = now_us;
    struct dw_conn *resumed = endpoint->resume ? endpoint->conn : NULL;
    endpoint->resume = false;
    uint64_t next = endpoint->tick_us;
    if (next <= now_us) {
        endpoint->tick_us = UINT64_MAX;
        next = UINT64_MAX;
    }
    unlock(endpoint);
    if (resumed != NULL) {
        dw_conn_resume(resumed);
    }
    return next;
}

struct dw_rpc_options endpoint_options(enum dw_role role, uint32_t node, const char *listen)
{
    return (struct dw_rpc_options){.self = {.role = role, .node = node, .run_id = FIXTURE_RUN_ID},
                                   .listen = listen,
                                   .handlers = {.on_up = on_up,
                                                .on_message = on_message,
                                                .on_down = on_down,
                                                .on_unary = on_unary,
                                                .on_tick = on_tick}};
}

struct endpoint *endpoint_start(const struct dw_rpc_options *options)
{
    char text[FIXTURE_TEXT] = "";
    struct dw_rpc_options with_user = *options;
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    assert_non_null(endpoint);
    endpoint->tick_us = UINT64_MAX;
    pthread_mutex_init(&endpoint->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&endpoint->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    with_user.user = endpoint;
    if (dw_rpc_start(&with_user, &endpoint->rpc, text, sizeof text) != DW_OK) {
        fail_msg("the endpoint does not start: %s", text);
    }
    snprintf(endpoint->address, sizeof endpoint->address, "127.0.0.1:%u", dw_rpc_port(endpoint->rpc));
    return endpoint;
}

struct endpoint *server_start(void)
{
    struct dw_rpc_options options = endpoint_options(DW_ROLE_STORAGE, 1, "127.0.0.1:0");
    return endpoint_start(&options);
}

struct endpoint *client_start(void)
{
    struct dw_rpc_options options = endpoint_options(DW_ROLE_COMPUTE, 3, NULL);
    return endpoint_start(&options);
}

struct dw_conn *client_connect(struct endpoint *client, const char *address)
{
    struct dw_conn *conn = NULL;
    assert_int_equal(dw_rpc_connect(client->rpc, address, &storage_1, &conn), DW_OK);
    assert_non_null(conn);
    return conn;
}

void endpoint_set(struct endpoint *endpoint, bool *flag, bool value)
{
    lock(endpoint);
    *flag = value;
    unlock(endpoint);
}

void endpoint_halt(struct endpoint *endpoint)
{
    dw_rpc_stop(endpoint->rpc);
    endpoint->rpc = NULL;
}

void endpoint_stop(struct endpoint *endpoint)
{
    if (endpoint->rpc != NULL) {
        endpoint_halt(endpoint);
    }
    if (endpoint->conn != NULL) {
        dw_conn_unref(endpoint->conn);
    }
    pthread_cond_destroy(&endpoint->changed);
    pthread_mutex_destroy(&endpoint->mutex);
    free(endpoint->bytes);
    free(endpoint);
}

struct timespec await_begin(struct endpoint *endpoint)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FIXTURE_PATIENCE_S;
    pthread_mutex_lock(&endpoint->mutex);
    return until;
}

void await_step(struct endpoint *endpoint, const struct timespec *until, const char *condition,
                const char *file, int line)
{
    if (pthread_cond_timedwait(&endpoint->changed, &endpoint->mutex, until) != 0) {
        pthread_mutex_unlock(&endpoint->mutex);
        print_error("waited in vain for: %s (down: \"%s\")\n", condition, endpoint->down_text);
        _fail(file, line);
    }
}

int pair_set_up(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    pair->server = server_start();
    pair->client = client_start();
    (void)client_connect(pair->client, pair->server->address);
    AWAIT(pair->client, e->ups == 1);
    AWAIT(pair->server, e->ups == 1);
    *state = pair;
    return 0;
}

int pair_tear_down(void **state)
{
    struct pair *pair = *state;
    endpoint_stop(pair->client);
    endpoint_stop(pair->server);
    free(pair);
    return 0;
}
