/* Does a wrong or busy address give DW_ERR_ADDRESS and one line that names it and the mend? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fixture.h"

static void assert_listen_fails(const char *listen, const char *expected)
{
    char text[FIXTURE_TEXT] = "";
    struct dw_rpc *rpc = NULL;
    struct dw_rpc_options options = endpoint_options(DW_ROLE_STORAGE, 1, listen);
    struct endpoint unused = {.tick_us = UINT64_MAX};
    options.user = &unused;
    assert_int_equal(dw_rpc_start(&options, &rpc, text, sizeof text), DW_ERR_ADDRESS);
    assert_null(rpc);
    assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
    assert_null(strchr(text, '\n'));
    /* A failed start calls nobody. */
    assert_int_equal(unused.ticks, 0);
}

static void busy_port_is_named(void **state)
{
    (void)state;
    struct endpoint *server = server_start();
    char expected[FIXTURE_TEXT];
    snprintf(expected, sizeof expected, "port %u on 127.0.0.1 is in use; choose another or port 0",
             dw_rpc_port(server->rpc));
    assert_listen_fails(server->address, expected);
    endpoint_stop(server);
}

static void wrong_listen_addresses_are_named(void **state)
{
    (void)state;
    assert_listen_fails("127.0.0.1",
                        "address \"127.0.0.1\" is not HOST:PORT; write for example 127.0.0.1:7001");
    assert_listen_fails("", "address \"\" is not HOST:PORT");
    assert_listen_fails(":7001", "address \":7001\" is not HOST:PORT");
    assert_listen_fails("127.0.0.1:", "address \"127.0.0.1:\" is not HOST:PORT");
    assert_listen_fails("127.0.0.1:seven", "address \"127.0.0.1:seven\" is not HOST:PORT");
    assert_listen_fails("127.0.0.1:7001x", "address \"127.0.0.1:7001x\" is not HOST:PORT");
    assert_listen_fails("127.0.0.1:-1", "address \"127.0.0.1:-1\" is not HOST:PORT");
    assert_listen_fails("::1:7001", "address \"::1:7001\" is not HOST:PORT");
    assert_listen_fails("[]:7001", "address \"[]:7001\" is not HOST:PORT");
    assert_listen_fails("127.0.0.1:70000",
                        "port 70000 in \"127.0.0.1:70000\" is out of range; choose one of 0 to");
    assert_listen_fails("no-such-host.invalid:7001", "host \"no-such-host.invalid\" cannot be resolved");
    assert_listen_fails("192.0.2.1:0",
                        "192.0.2.1:0 is no address of this machine; listen on 127.0.0.1 or 0.0.0.0");
}

static void wrong_peer_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const addresses[] = {"nowhere", "127.0.0.1:0", "127.0.0.1:70000",
                                            "no-such-host.invalid:1"};
    struct endpoint *client = client_start();
    const struct dw_identity self = {.role = DW_ROLE_CLIENT};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct dw_conn *conn = NULL;
        uint8_t *data = NULL;
        size_t size = 0;
        char text[FIXTURE_TEXT] = "";
        assert_int_equal(dw_rpc_connect(client->rpc, addresses[i], &storage_1, &conn), DW_ERR_ADDRESS);
        assert_null(conn);
        assert_int_equal(
            dw_rpc_call(addresses[i], &self, "Echo", NULL, 0, 1000, &data, &size, text, sizeof text),
            DW_ERR_ADDRESS);
        assert_true(strlen(text) > 0);
        assert_null(data);
    }
    endpoint_stop(client);
}

static void names_and_free_ports_work(void **state)
{
    (void)state;
    struct dw_rpc_options options = endpoint_options(DW_ROLE_STORAGE, 1, "localhost:0");
    struct endpoint *server = endpoint_start(&options);
    assert_int_not_equal(dw_rpc_port(server->rpc), 0);
    struct endpoint *client = client_start();
    assert_int_equal(dw_rpc_port(client->rpc), 0);
    char address[64];
    snprintf(address, sizeof address, "localhost:%u", dw_rpc_port(server->rpc));
    (void)client_connect(client, address);
    AWAIT(client, e->ups == 1);
    endpoint_stop(client);
    endpoint_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_port_is_named),
        cmocka_unit_test(wrong_listen_addresses_are_named),
        cmocka_unit_test(wrong_peer_addresses_are_refused),
        cmocka_unit_test(names_and_free_ports_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
