/* Do unary calls bring back replies and exact errors, keep deadlines, and survive late answers? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

enum { LONG_MS = FIXTURE_PATIENCE_S * 1000 };

/* One call and its result, so that it can run in a thread. */
struct call {
    char address[64];
    struct dw_identity self;
    const char *method;
    const uint8_t *request;
    size_t request_size;
    uint32_t deadline_ms;
    enum dw_error error;
    uint8_t *data;
    size_t size;
    char text[FIXTURE_TEXT];
};

static struct call call_of(const char *address, const char *method, const char *request)
{
    struct call call = {.self = {.role = DW_ROLE_CLIENT, .run_id = FIXTURE_RUN_ID},
                        .method = method,
                        .request = (const uint8_t *)request,
                        .request_size = strlen(request),
                        .deadline_ms = LONG_MS};
    snprintf(call.address, sizeof call.address, "%s", address);
    return call;
}

static void *run(void *argument)
{
    struct call *call = argument;
    call->error = dw_rpc_call(call->address, &call->self, call->method, call->request, call->request_size,
                              call->deadline_ms, &call->data, &call->size, call->text, sizeof call->text);
    return NULL;
}

static int set_up(void **state)
{
    *state = server_start();
    return 0;
}

static int tear_down(void **state)
{
    endpoint_stop(*state);
    return 0;
}

static void reply_comes_back(void **state)
{
    struct endpoint *server = *state;
    static const char *const requests[] = {"", "x", "a longer request"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct call call = call_of(server->address, "Echo", requests[i]);
        run(&call);
        assert_int_equal(call.error, DW_OK);
        assert_int_equal(call.size, strlen(requests[i]));
        assert_memory_equal(call.data, requests[i], call.size);
        free(call.data);
    }
}

static void error_comes_back_exactly(void **state)
{
    struct endpoint *server = *state;
    struct call call = call_of(server->address, "Fail", "x");
    run(&call);
    assert_int_equal(call.error, DW_ERR_LOCKED);
    assert_string_equal(call.text, "log 5 is locked; stop its \"owner\"");
    assert_null(call.data);
}

static void unknown_methods(void **state)
{
    struct endpoint *server = *state;
    struct call call = call_of(server->address, "Dance", "x");
    run(&call);
    assert_int_equal(call.error, DW_ERR_MISSING);
    assert_string_equal(call.text, "no method Dance here");
    struct dw_rpc_options options = endpoint_options(DW_ROLE_COMPUTE, 4, "127.0.0.1:0");
    options.handlers.on_unary = NULL;
    struct endpoint *deaf = endpoint_start(&options);
    struct call other = call_of(deaf->address, "Dance", "x");
    run(&other);
    assert_int_equal(other.error, DW_ERR_MISSING);
    assert_string_equal(other.text, "unknown method \"Dance\" of compute node 4");
    endpoint_stop(deaf);
}

static void deferred_call_is_answered_from_another_thread(void **state)
{
    struct endpoint *server = *state;
    struct call call = call_of(server->address, "Defer", "x");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, &call), 0);
    AWAIT(server, e->deferred != NULL);
    struct dw_unary_reply reply = {.data = malloc(4), .size = 4};
    memcpy(reply.data, "late", 4);
    dw_unary_finish(server->deferred, &reply);
    pthread_join(thread, NULL);
    assert_int_equal(call.error, DW_OK);
    assert_int_equal(call.size, 4);
    assert_memory_equal(call.data, "late", 4);
    free(call.data);
}

static void deadline_passes_and_the_late_answer_does_no_harm(void **state)
{
    struct endpoint *server = *state;
    struct call call = call_of(server->address, "Defer", "x");
    call.deadline_ms = 100;
    run(&call);
    assert_int_equal(call.error, DW_ERR_TIMEOUT);
    assert_non_null(strstr(call.text, "no answer from 127.0.0.1:"));
    assert_non_null(strstr(call.text, "to Defer within 100 ms"));
    AWAIT(server, e->deferred != NULL);
    struct dw_unary_reply reply = {.data = malloc(4), .size = 4};
    dw_unary_finish(server->deferred, &reply);
    struct call next = call_of(server->address, "Echo", "y");
    run(&next);
    assert_int_equal(next.error, DW_OK);
    free(next.data);
}

static void answer_after_the_stop_does_no_harm(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    struct call call = call_of(server->address, "Defer", "x");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, &call), 0);
    AWAIT(server, e->deferred != NULL);
    endpoint_halt(server);
    pthread_join(thread, NULL);
    assert_int_not_equal(call.error, DW_OK);
    assert_int_not_equal(call.error, DW_ERR_TIMEOUT);
    struct dw_unary_reply reply = {.data = malloc(4), .size = 4};
    dw_unary_finish(server->deferred, &reply);
    endpoint_stop(server);
}

static void large_replies(void **state)
{
    struct endpoint *server = *state;
    uint32_t wanted = DW_MAX_MESSAGE;
    struct call call = call_of(server->address, "Large", "");
    call.request = (const uint8_t *)&wanted;
    call.request_size = sizeof wanted;
    run(&call);
    assert_int_equal(call.error, DW_OK);
    assert_int_equal(call.size, DW_MAX_MESSAGE);
    free(call.data);
    call.data = NULL;
    wanted++;
    run(&call);
    assert_int_equal(call.error, DW_ERR_TOO_LARGE);
    assert_string_equal(call.text, "the reply exceeds the largest message; ask for less");
    call.request_size = DW_MAX_MESSAGE + 1;
    run(&call);
    assert_int_equal(call.error, DW_ERR_TOO_LARGE);
    assert_non_null(strstr(call.text, "the request to Large exceeds"));
}

static void run_ids_are_compared(void **state)
{
    struct endpoint *server = *state;
    struct call call = call_of(server->address, "Echo", "x");
    strcpy(call.self.run_id, "run-b");
    run(&call);
    assert_int_equal(call.error, DW_ERR_REFUSED);
    assert_string_equal(
        call.text, "run id \"run-b\" of a client is refused by storage node 1, whose run id is \"run-a\"");
    call.self.run_id[0] = '\0';
    run(&call);
    assert_int_equal(call.error, DW_OK);
    free(call.data);
    call.self.role = DW_ROLE_COMPUTE;
    run(&call);
    assert_int_equal(call.error, DW_ERR_REFUSED);
    strcpy(call.self.run_id, "a b");
    run(&call);
    assert_int_equal(call.error, DW_ERR_ARGUMENT);
}

/* The call begins while nobody listens, and is answered once somebody does. */
static void call_waits_for_a_server(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    char address[64];
    snprintf(address, sizeof address, "%s", server->address);
    endpoint_stop(server);
    struct call impatient = call_of(address, "Echo", "x");
    impatient.deadline_ms = 300;
    run(&impatient);
    assert_int_equal(impatient.error, DW_ERR_TIMEOUT);
    struct call call = call_of(address, "Echo", "x");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, &call), 0);
    struct dw_rpc_options options = endpoint_options(DW_ROLE_STORAGE, 1, address);
    server = endpoint_start(&options);
    pthread_join(thread, NULL);
    assert_int_equal(call.error, DW_OK);
    free(call.data);
    endpoint_stop(server);
}

static void many_callers_at_once(void **state)
{
    struct endpoint *server = *state;
    enum { CALLERS = 24 };
    struct call calls[CALLERS];
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        calls[i] = call_of(server->address, "Echo", "together");
        assert_int_equal(pthread_create(&threads[i], NULL, run, &calls[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(calls[i].error, DW_OK);
        assert_int_equal(calls[i].size, 8);
        free(calls[i].data);
    }
}

#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(reply_comes_back),
        SERVER_TEST(error_comes_back_exactly),
        SERVER_TEST(unknown_methods),
        SERVER_TEST(deferred_call_is_answered_from_another_thread),
        SERVER_TEST(deadline_passes_and_the_late_answer_does_no_harm),
        cmocka_unit_test(answer_after_the_stop_does_no_harm),
        SERVER_TEST(large_replies),
        SERVER_TEST(run_ids_are_compared),
        cmocka_unit_test(call_waits_for_a_server),
        SERVER_TEST(many_callers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
