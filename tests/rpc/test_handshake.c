/* Are strangers refused, at both ends, with a line that names both sides? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "raw.h"
#include "rpc/internal.h"

static const char refused_run_id[] =
    "run id \"run-b\" of compute node 3 is refused by storage node 1, whose run id is \"run-a\"";

static void foreign_run_id_is_refused(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    struct dw_rpc_options options = endpoint_options(DW_ROLE_COMPUTE, 3, NULL);
    strcpy(options.self.run_id, "run-b");
    struct endpoint *client = endpoint_start(&options);
    struct dw_conn *conn = client_connect(client, server->address);
    AWAIT(client, e->downs > 0 && e->down_error == DW_ERR_REFUSED);
    assert_string_equal(client->down_text, refused_run_id);
    assert_int_equal(dw_conn_send(conn, (const uint8_t *)"x", 1), DW_ERR_CLOSED);
    endpoint_stop(client);
    endpoint_halt(server);
    assert_int_equal(server->ups, 0);
    assert_int_equal(server->messages, 0);
    endpoint_stop(server);
}

/* The status that the server sends says the same, so that callers who do not check learn it too. */
static void server_names_both_sides_in_its_status(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    char text[FIXTURE_TEXT];
    struct raw_call call = {.path = "/dogwood.v1.Node/Stream", .run_id = "run-b", .version = DW_VERSION};
    assert_int_equal(raw_run(server->address, &call, text, sizeof text), GRPC_STATUS_FAILED_PRECONDITION);
    assert_string_equal(text, refused_run_id);
    call.run_id = "run-a";
    call.version = "0.0.9";
    assert_int_equal(raw_run(server->address, &call, text, sizeof text), GRPC_STATUS_FAILED_PRECONDITION);
    assert_string_equal(text,
                        "version \"0.0.9\" of compute node 3 is refused by storage node 1, whose version is "
                        "\"" DW_VERSION "\"");
    endpoint_halt(server);
    assert_int_equal(server->ups, 0);
    endpoint_stop(server);
}

static void malformed_hand_shakes_are_refused(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    char text[FIXTURE_TEXT];
    const struct raw_call calls[] = {
        {.path = "/dogwood.v1.Node/Stream"},
        {.path = "/dogwood.v1.Node/Echo"},
        {.path = "/dogwood.v1.Node/Stream", .run_id = "run-a", .version = DW_VERSION, .role = "king"},
        {.path = "/dogwood.v1.Node/Stream", .run_id = "run-a", .version = DW_VERSION, .node = "three"},
        {.path = "/dogwood.v1.Node/Stream", .run_id = "run-a", .version = DW_VERSION, .node = "99999999999"},
        {.path = "/dogwood.v1.Node/Stream", .run_id = "run a", .version = DW_VERSION},
        {.path = "/dogwood.v1.Node/Stream", .run_id = "run-a", .version = DW_VERSION, .protocol = "2 pc"},
        {.path = "/dogwood.v1.Node/Stream",
         .run_id = "run-a",
         .version = DW_VERSION,
         .protocol = "a-name-that-is-longer-than-31-chars"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_int_equal(raw_run(server->address, &calls[i], text, sizeof text),
                         GRPC_STATUS_FAILED_PRECONDITION);
        assert_string_equal(
            text,
            "a caller without a valid Dogwood hand-shake is refused by storage node 1, run id \"run-a\"");
    }
    struct raw_call other_service = {
        .path = "/other.Service/Stream", .run_id = "run-a", .version = DW_VERSION};
    assert_int_not_equal(raw_run(server->address, &other_service, text, sizeof text), GRPC_STATUS_OK);
    assert_string_equal(text, "method \"/other.Service/Stream\" is not of service dogwood.v1.Node");
    endpoint_halt(server);
    assert_int_equal(server->ups, 0);
    endpoint_stop(server);
}

static void unexpected_node_is_dropped(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    struct endpoint *client = client_start();
    const struct dw_identity expect = {.role = DW_ROLE_STORAGE, .node = 2};
    struct dw_conn *conn = NULL;
    assert_int_equal(dw_rpc_connect(client->rpc, server->address, &expect, &conn), DW_OK);
    AWAIT(client, e->downs > 0 && e->down_error == DW_ERR_REFUSED);
    char text[FIXTURE_TEXT];
    snprintf(text, sizeof text,
             "storage node 1 answers at %s, where storage node 2 was expected; check the addresses",
             server->address);
    assert_string_equal(client->down_text, text);
    endpoint_stop(client);
    endpoint_stop(server);
}

/* An empty run id means "any", but only from a client. */
static void client_may_join_any_run(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    struct dw_rpc_options options = endpoint_options(DW_ROLE_CLIENT, 0, NULL);
    options.self.run_id[0] = '\0';
    struct endpoint *client = endpoint_start(&options);
    (void)client_connect(client, server->address);
    AWAIT(client, e->ups == 1);
    AWAIT(server, e->ups == 1);
    assert_int_equal(server->peer.role, DW_ROLE_CLIENT);
    assert_string_equal(server->peer.run_id, "");
    assert_string_equal(client->peer.run_id, "run-a");
    endpoint_stop(client);
    char text[FIXTURE_TEXT];
    struct raw_call call = {.path = "/dogwood.v1.Node/Stream", .run_id = "", .version = DW_VERSION};
    assert_int_equal(raw_run(server->address, &call, text, sizeof text), GRPC_STATUS_FAILED_PRECONDITION);
    endpoint_stop(server);
}

static void bad_own_run_ids_are_refused_at_start(void **state)
{
    (void)state;
    char text[FIXTURE_TEXT];
    struct dw_rpc *rpc = NULL;
    struct dw_rpc_options options = endpoint_options(DW_ROLE_STORAGE, 1, NULL);
    options.self.run_id[0] = '\0';
    assert_int_equal(dw_rpc_start(&options, &rpc, text, sizeof text), DW_ERR_ARGUMENT);
    assert_non_null(strstr(text, "run id is empty"));
    strcpy(options.self.run_id, "run\na");
    assert_int_equal(dw_rpc_start(&options, &rpc, text, sizeof text), DW_ERR_ARGUMENT);
    assert_non_null(strstr(text, "letters, digits"));
    memset(options.self.run_id, 'x', sizeof options.self.run_id);
    assert_int_equal(dw_rpc_start(&options, &rpc, text, sizeof text), DW_ERR_ARGUMENT);
    assert_null(rpc);
}

/* --- the protocol --- */

static const char refused_protocol[] = "protocol \"2pc\" of compute node 3 is refused by compute node 1, "
                                       "whose protocol is \"cornus\"; start both "
                                       "with the same --protocol";

static struct endpoint *compute_start(uint32_t node, const char *protocol, const char *listen)
{
    struct dw_rpc_options options = endpoint_options(DW_ROLE_COMPUTE, node, listen);
    strcpy(options.self.protocol, protocol);
    return endpoint_start(&options);
}

static struct dw_conn *connect_to(struct endpoint *client, const struct endpoint *server, enum dw_role role)
{
    const struct dw_identity expect = {.role = role, .node = 1};
    struct dw_conn *conn = NULL;
    assert_int_equal(dw_rpc_connect(client->rpc, server->address, &expect, &conn), DW_OK);
    return conn;
}

/* Commit safety depends on it: a vote or a silence means another thing in each protocol. */
static void compute_nodes_of_two_protocols_refuse_each_other(void **state)
{
    (void)state;
    struct endpoint *server = compute_start(1, "cornus", "127.0.0.1:0");
    struct endpoint *client = compute_start(3, "2pc", NULL);
    struct dw_conn *conn = connect_to(client, server, DW_ROLE_COMPUTE);
    AWAIT(client, e->downs > 0 && e->down_error == DW_ERR_REFUSED);
    assert_string_equal(client->down_text, refused_protocol);
    assert_int_equal(dw_conn_send(conn, (const uint8_t *)"x", 1), DW_ERR_CLOSED);
    /* Nor does one without a protocol get in. */
    struct raw_call call = {.path = "/dogwood.v1.Node/Stream", .run_id = "run-a", .version = DW_VERSION};
    char text[FIXTURE_TEXT];
    assert_int_equal(raw_run(server->address, &call, text, sizeof text), GRPC_STATUS_FAILED_PRECONDITION);
    assert_non_null(strstr(text, "protocol \"\" of compute node 3 is refused by compute node 1"));
    endpoint_stop(client);
    endpoint_halt(server);
    assert_int_equal(server->ups, 0);
    endpoint_stop(server);
}

static void compute_nodes_of_one_protocol_and_all_others_meet(void **state)
{
    (void)state;
    struct endpoint *compute = compute_start(1, "2pc", "127.0.0.1:0");
    struct endpoint *same = compute_start(3, "2pc", NULL);
    struct endpoint *storage = server_start();
    struct dw_rpc_options options = endpoint_options(DW_ROLE_CLIENT, 0, NULL);
    struct endpoint *tool = endpoint_start(&options);
    (void)connect_to(same, compute, DW_ROLE_COMPUTE);
    AWAIT(same, e->ups == 1);
    AWAIT(compute, e->ups == 1);
    assert_string_equal(same->peer.protocol, "2pc");
    assert_string_equal(compute->peer.protocol, "2pc");
    (void)connect_to(same, storage, DW_ROLE_STORAGE);
    AWAIT(storage, e->ups == 1);
    AWAIT(same, e->ups == 2);
    (void)connect_to(tool, compute, DW_ROLE_COMPUTE);
    AWAIT(tool, e->ups == 1);
    endpoint_stop(tool);
    endpoint_stop(same);
    endpoint_stop(storage);
    endpoint_stop(compute);
}

/* The client refuses as well, should the server be the one that does not look. */
static void a_client_compares_the_protocol_too(void **state)
{
    (void)state;
    struct dw_identity self = {.role = DW_ROLE_COMPUTE, .node = 3, .run_id = "run-a", .protocol = "2pc"};
    const struct dw_identity server = {
        .role = DW_ROLE_COMPUTE, .node = 1, .run_id = "run-a", .protocol = "cornus"};
    struct dw_identity peer;
    bool present;
    char text[FIXTURE_TEXT];
    struct rpc_hello hello;
    grpc_init();
    rpc_hello_fill(&hello, &server);
    grpc_metadata_array metadata = {
        .count = RPC_HELLO_ITEMS, .capacity = RPC_HELLO_ITEMS, .metadata = hello.items};
    assert_false(rpc_hello_check(&self, &server, "h:1", &metadata, &peer, &present, text, sizeof text));
    assert_string_equal(text, refused_protocol);
    strcpy(self.protocol, "cornus");
    assert_true(rpc_hello_check(&self, &server, "h:1", &metadata, &peer, &present, text, sizeof text));
    rpc_hello_release(&hello);
    grpc_shutdown_blocking();
}

static void bad_own_protocols_are_refused_at_start(void **state)
{
    (void)state;
    char text[FIXTURE_TEXT];
    struct dw_rpc *rpc = NULL;
    struct dw_rpc_options options = endpoint_options(DW_ROLE_COMPUTE, 1, NULL);
    strcpy(options.self.protocol, "two phase");
    assert_int_equal(dw_rpc_start(&options, &rpc, text, sizeof text), DW_ERR_ARGUMENT);
    assert_non_null(strstr(text, "protocol's name"));
    assert_null(rpc);
}

/* What the client makes of a server's metadata, without a server of another version at hand. */
static void client_checks_what_the_server_says(void **state)
{
    (void)state;
    const struct dw_identity self = {.role = DW_ROLE_COMPUTE, .node = 3, .run_id = "run-a"};
    const struct dw_identity server = {.role = DW_ROLE_STORAGE, .node = 1, .run_id = "run-a"};
    struct dw_identity peer;
    bool present;
    char text[FIXTURE_TEXT];
    struct rpc_hello hello;
    grpc_init();
    rpc_hello_fill(&hello, &server);
    grpc_metadata_array metadata = {
        .count = RPC_HELLO_ITEMS, .capacity = RPC_HELLO_ITEMS, .metadata = hello.items};
    assert_true(rpc_hello_check(&self, &server, "h:1", &metadata, &peer, &present, text, sizeof text));
    assert_true(present);
    assert_int_equal(peer.node, 1);
    grpc_slice_unref(hello.items[3].value);
    hello.items[3].value = grpc_slice_from_static_string("9.9.9");
    assert_false(rpc_hello_check(&self, &server, "h:1", &metadata, &peer, &present, text, sizeof text));
    assert_true(present);
    assert_string_equal(text,
                        "version \"" DW_VERSION
                        "\" of compute node 3 is refused by storage node 1, whose version is \"9.9.9\"");
    metadata.count = 2;
    assert_false(rpc_hello_check(&self, &server, "h:1", &metadata, &peer, &present, text, sizeof text));
    assert_false(present);
    assert_string_equal(text, "h:1 does not answer as a Dogwood node; check the address");
    rpc_hello_release(&hello);
    grpc_shutdown_blocking();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_run_id_is_refused),
        cmocka_unit_test(server_names_both_sides_in_its_status),
        cmocka_unit_test(malformed_hand_shakes_are_refused),
        cmocka_unit_test(unexpected_node_is_dropped),
        cmocka_unit_test(client_may_join_any_run),
        cmocka_unit_test(bad_own_run_ids_are_refused_at_start),
        cmocka_unit_test(client_checks_what_the_server_says),
        cmocka_unit_test(compute_nodes_of_two_protocols_refuse_each_other),
        cmocka_unit_test(compute_nodes_of_one_protocol_and_all_others_meet),
        cmocka_unit_test(a_client_compares_the_protocol_too),
        cmocka_unit_test(bad_own_protocols_are_refused_at_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
