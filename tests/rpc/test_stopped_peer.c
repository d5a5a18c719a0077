/* Is a peer that keeps its connections but does nothing (SIGSTOP) noticed at both ends, and welcomed back?
 *
 * The children are started before gRPC: a process that uses it must not fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

extern char **environ;

enum { KEEPALIVE_MS = 300 };

/* The server writes its address to `server_out`; the client waits for one on `client_in`. */
struct children {
    pid_t server;
    pid_t client;
    FILE *server_out;
    FILE *client_in;
};

static pid_t spawn(char *const arguments[], int child_end, int child_fd, int other_end)
{
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_end, child_fd);
    posix_spawn_file_actions_addclose(&actions, other_end);
    if (posix_spawn(&pid, arguments[0], &actions, NULL, arguments, environ) != 0) {
        pid = -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    close(child_end);
    return pid;
}

static int start_children(struct children *children)
{
    static char bench[] = BENCH_STREAM;
    static char shell[] = "/bin/sh";
    static char client_bench[] = BENCH_LOG;
    static char command[] =
        "read address && exec \"$0\" --connect \"$address\" --run-id bench-stream --depths 4 "
        "--seconds 3600";
    char *server[] = {bench, (char[]){"--listen"}, (char[]){"127.0.0.1:0"}, NULL};
    char *client[] = {shell, (char[]){"-c"}, command, client_bench, NULL};
    int out[2];
    int in[2];
    if (pipe(out) != 0 || pipe(in) != 0) {
        return -1;
    }
    /* Only its own end may stay open in each child, or a reader would never see the end. */
    children->server = spawn(server, out[1], STDOUT_FILENO, out[0]);
    children->client = spawn(client, in[0], STDIN_FILENO, in[1]);
    children->server_out = fdopen(out[0], "r");
    children->client_in = fdopen(in[1], "w");
    return children->server > 0 && children->client > 0 && children->server_out != NULL &&
                   children->client_in != NULL
               ? 0
               : -1;
}

static void end_child(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void stop_child(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
}

static struct endpoint *start(enum dw_role role, const char *listen)
{
    struct dw_rpc_options options = endpoint_options(role, 0, listen);
    options.keepalive_ms = KEEPALIVE_MS;
    strcpy(options.self.run_id, "bench-stream");
    options.handlers.on_unary = NULL;
    return endpoint_start(&options);
}

static void stopped_server_is_noticed(void **state)
{
    struct children *children = *state;
    char address[64] = "";
    assert_int_equal(fscanf(children->server_out, "listening %63s", address), 1);
    struct endpoint *client = start(DW_ROLE_CLIENT, NULL);
    const struct dw_identity storage_0 = {.role = DW_ROLE_STORAGE};
    struct dw_conn *conn = NULL;
    assert_int_equal(dw_rpc_connect(client->rpc, address, &storage_0, &conn), DW_OK);
    AWAIT(client, e->ups == 1);
    /* Once with an idle stream, once with messages that nobody takes. */
    for (unsigned round = 1; round <= 2; round++) {
        stop_child(children->server);
        static const uint8_t nothing[100000];
        for (int i = 0; i < 50 && round == 2; i++) {
            (void)!dw_conn_send(conn, nothing, sizeof nothing);
        }
        uint64_t begin = dw_rpc_now_us();
        AWAIT(client, e->downs >= round && dw_conn_send(conn, nothing, 1) == DW_ERR_CLOSED);
        print_message("stopped server noticed after %.0f ms\n", (double)(dw_rpc_now_us() - begin) / 1000);
        /* A stopped server still completes connections in its kernel, but no hand-shake. */
        assert_int_equal(client->ups, round);
        assert_int_equal(kill(children->server, SIGCONT), 0);
        AWAIT(client, e->ups == round + 1);
    }
    endpoint_stop(client);
}

static void stopped_client_is_noticed(void **state)
{
    struct children *children = *state;
    struct endpoint *server = start(DW_ROLE_STORAGE, "127.0.0.1:0");
    fprintf(children->client_in, "%s\n", server->address);
    fflush(children->client_in);
    AWAIT(server, e->ups == 1 && e->messages > 0);
    stop_child(children->client);
    AWAIT(server, e->downs == 1);
    assert_int_equal(server->down_error, DW_ERR_CLOSED);
    endpoint_stop(server);
}

int main(void)
{
    struct children children;
    if (start_children(&children) != 0) {
        perror("cannot start the children");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(stopped_server_is_noticed, &children),
        cmocka_unit_test_prestate(stopped_client_is_noticed, &children),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    end_child(children.server);
    end_child(children.client);
    fclose(children.server_out);
    fclose(children.client_in);
    return failures;
}
