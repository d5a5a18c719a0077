/* dogwood-bench-stream: the floor under every log request, an exchange that does nothing.
 *
 * The server decodes log requests and answers each at once; the client keeps a fixed number of them in
 * flight. Both encode and decode with the product's codec and travel on the product's stream. */
#include "rpc/bench_stream.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/rpc.h"
#include "wire/codec.h"

enum { EXIT_ASKED_WRONGLY = 2, EXIT_ENVIRONMENT = 3 };

static const char usage[] =
    "usage: dogwood-bench-stream --listen HOST:PORT\n"
    "       dogwood-bench-stream --connect HOST:PORT [--depths 1,4,16,64,256] [--seconds 1] [--bytes 128]\n";

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
    struct dw_rpc_options options = {.self = {.role = DW_ROLE_STORAGE, .run_id = BENCH_RUN_ID},
                                     .listen = listen,
                                     .handlers = {.on_message = echo_message},
                                     .user = &echo};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (dw_rpc_start(&options, &rpc, text, sizeof text) != DW_OK) {
        fprintf(stderr, "dogwood-bench-stream: %s\n", text);
        return EXIT_ENVIRONMENT;
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

static int refuse(const char *flag, const char *value, const char *range)
{
    fprintf(stderr, "dogwood-bench-stream: %s \"%s\" is wrong; give %s\n", flag, value, range);
    return EXIT_ASKED_WRONGLY;
}

/* A whole number in [low, high] that ends where `end` says. */
static bool parse_number(const char *text, unsigned long low, unsigned long high, char end, uint32_t *number,
                         const char **rest)
{
    char *stop;
    errno = 0;
    unsigned long value = strtoul(text, &stop, 10);
    *rest = stop;
    *number = (uint32_t)value;
    return text[0] >= '0' && text[0] <= '9' && errno == 0 && value >= low && value <= high &&
           (*stop == '\0' || *stop == end);
}

static bool parse_depths(const char *text, struct bench_options *options)
{
    options->depth_count = 0;
    for (;;) {
        const char *rest;
        if (options->depth_count == BENCH_MAX_DEPTHS ||
            !parse_number(text, 1, BENCH_MAX_DEPTH, ',', &options->depths[options->depth_count], &rest)) {
            return false;
        }
        options->depth_count++;
        if (*rest == '\0') {
            return true;
        }
        text = rest + 1;
    }
}

static bool parse_seconds(const char *text, double *seconds)
{
    char *stop;
    *seconds = strtod(text, &stop);
    return stop != text && *stop == '\0' && *seconds >= 0.05 && *seconds <= 3600;
}

/* Returns 0, or the exit code of a wrong flag. */
static int parse(int argc, char **argv, struct bench_options *options, const char **listen)
{
    static const struct option flags[] = {
        {"listen", required_argument, NULL, 'l'}, {"connect", required_argument, NULL, 'c'},
        {"depths", required_argument, NULL, 'd'}, {"seconds", required_argument, NULL, 's'},
        {"bytes", required_argument, NULL, 'b'},  {NULL, 0, NULL, 0}};
    const char *rest;
    int flag;
    while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        if (flag == 'l') {
            *listen = optarg;
        } else if (flag == 'c') {
            options->address = optarg;
        } else if (flag == 'd' && !parse_depths(optarg, options)) {
            return refuse("--depths", optarg, "at most 32 numbers of 1 to 65536, separated by commas");
        } else if (flag == 's' && !parse_seconds(optarg, &options->seconds)) {
            return refuse("--seconds", optarg, "0.05 to 3600");
        } else if (flag == 'b' && !parse_number(optarg, 0, 65536, '\0', &options->bytes, &rest)) {
            return refuse("--bytes", optarg, "0 to 65536");
        } else if (flag == '?') {
            fputs(usage, stderr);
            return EXIT_ASKED_WRONGLY;
        }
    }
    if (optind < argc || (*listen == NULL) == (options->address == NULL)) {
        fputs(usage, stderr);
        return EXIT_ASKED_WRONGLY;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct bench_options options = {
        .depths = {1, 4, 16, 64, 256}, .depth_count = 5, .seconds = 1, .bytes = 128};
    const char *listen = NULL;
    int wrong = parse(argc, argv, &options, &listen);
    if (wrong != 0) {
        return wrong;
    }
    return listen != NULL ? serve(listen) : bench_client(&options);
}
