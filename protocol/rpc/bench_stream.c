/* dogwood-bench-stream: the floor under every log request, an exchange that does nothing.
 *
 * The server decodes log requests and answers each at once, with the product's codec and on the product's
 * stream; its client is dogwood-bench-log. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/flags.h"
#include "rpc/rpc.h"
#include "wire/codec.h"

#define PROGRAM "dogwood-bench-stream"
#define RUN_ID  "bench-stream"

static const char usage[] =
    "usage: dogwood-bench-stream --listen HOST:PORT\n"
    "  answers log requests at once; measure it with dogwood-bench-log --run-id " RUN_ID "\n";

/* The echo server. Its loop thread is the only user of this. */
struct echo {
    struct dw_decoder decoder;
    struct dw_buffer replies;
    enum dw_error error;
};

static void echo_request(void *user, const struct dw_wire_log_request *request)
{
    struct echo *echo = user;
    struct dw_wire_log_reply reply = {
        .id = request->id,
        .reply = {.txn = request->request.txn,
                  .log = request->request.log,
                  .ask = request->request.ask,
                  .answer = DW_ANSWER_VOTE_YES,
                  .position = request->id + 1},
        .incarnation = 1,
    };
    enum dw_error error = dw_encode_log_reply(&echo->replies, &reply);
    echo->error = echo->error == DW_OK ? error : echo->error;
}

static enum dw_error echo_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    static const struct dw_batch_visitor visitor = {.log_request = echo_request};
    struct echo *echo = user;
    echo->replies.size = 0;
    echo->error = DW_OK;
    enum dw_error error = dw_decode_batch(&echo->decoder, data, size, &visitor, echo, NULL);
    if (error == DW_OK) {
        error = echo->error;
    }
    if (error == DW_OK) {
        error = dw_conn_send(conn, echo->replies.data, echo->replies.size);
    }
    /* A peer that left meanwhile is no fault of this message. */
    return error == DW_ERR_CLOSED ? DW_OK : error;
}

static int serve(const char *listen)
{
    char text[256];
    struct echo echo = {0};
    struct dw_rpc *rpc = NULL;
    struct dw_rpc_options options = {.self = {.role = DW_ROLE_STORAGE, .run_id = RUN_ID},
                                     .listen = listen,
                                     .handlers = {.on_message = echo_message},
                                     .user = &echo};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (dw_rpc_start(&options, &rpc, text, sizeof text) != DW_OK) {
        fprintf(stderr, PROGRAM ": %s\n", text);
        return DW_EXIT_ENVIRONMENT;
    }
    printf("listening %.*s:%u\n", (int)(strrchr(listen, ':') - listen), listen, dw_rpc_port(rpc));
    fflush(stdout);
    int caught;
    sigwait(&signals, &caught);
    dw_rpc_stop(rpc);
    dw_decoder_close(&echo.decoder);
    dw_buffer_free(&echo.replies);
    return 0;
}

int main(int argc, char **argv)
{
    const char *listen = NULL;
    struct dw_flag flags[] = {
        {.name = "listen", .needed = "HOST:PORT", .text = &listen, .rule = &dw_text_listen},
        {.name = NULL},
    };
    int code = dw_flags_read(PROGRAM, usage, flags, argc, argv, NULL);
    return code == DW_FLAGS_GO_ON ? serve(listen) : code;
}
