/* dogwood-storage: one storage node. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "storage/options.h"
#include "storage/server.h"

enum { TEXT = 16384, MIB_SHIFT = 20, DEFAULT_QUEUE_MIB = 256, MIN_QUEUE_MIB = 128, MAX_QUEUE_MIB = 65536 };

#define PROGRAM "dogwood-storage"

static const char usage[] =
    "usage: dogwood-storage --id N --run-id ID --data DIR [--listen HOST:PORT] [--log-delay "
    "MS[:DIST[:PARAM]]]\n"
    "                       [--sync on|off] [--store rocksdb|memory] [--logs LIST] [--queue-mib N] [--seed "
    "N]\n"
    "\n"
    "  --id N          number of this storage node, 0 to 63\n"
    "  --run-id ID     the deployment: letters, digits, '.', '_', '-'; strangers are refused\n"
    "  --data DIR      where the logs lie; made if missing (its parent must exist); not with --store memory\n"
    "  --listen ADDR   HOST:PORT or [V6]:PORT; port 0 takes a free one; default 127.0.0.1:0\n"
    "  --log-delay D   injected delay of log writes in ms, 0 to 60000; DIST is constant, uniform, "
    "exponential\n"
    "                  or lognormal; default 0\n"
    "  --sync on|off   off: writes are acknowledged before they are on disk; default on\n"
    "  --store S       rocksdb, or memory, which forgets everything at the end; default rocksdb\n"
    "  --logs LIST     the logs that are served, as in 0,2,4-7; default all\n"
    "  --queue-mib N   log requests that may wait, in MiB, 128 to 65536; default 256\n"
    "  --seed N        of the delay's random numbers; default 1\n"
    "  --version, --help\n"
    "\n"
    "Prints \"listening HOST:PORT\" once it serves. SIGTERM, SIGINT and `dogwood-ctl stop` end it cleanly.\n"
    "Exit codes: 0 good; 2 asked wrongly; 3 environment.\n";

enum store { STORE_ROCKSDB, STORE_MEMORY };

struct settings {
    const char *run_id;
    const char *data;
    unsigned store;
    uint32_t queue_mib;
    struct server_options server;
};

static bool take_delay(void *delay, const char *value, char *mend, size_t mend_size)
{
    return dw_delay_parse(value, delay, mend, mend_size) == DW_OK;
}

static int check_settings(const struct settings *settings)
{
    bool memory = settings->store == STORE_MEMORY;
    if (!memory && settings->data == NULL) {
        return dw_flags_refuse(PROGRAM,
                               "--data is missing: give the directory of the logs, or --store memory");
    }
    if (memory && settings->data != NULL) {
        return dw_flags_refuse(PROGRAM, "--data has no meaning with --store memory: leave one of them out");
    }
    return DW_FLAGS_GO_ON;
}

static int parse(int argc, char **argv, struct settings *settings)
{
    struct server_options *server = &settings->server;
    struct dw_flag flags[] = {
        {.name = "id",
         .needed = "the number of this storage node",
         .u32 = &server->self.node,
         .high = DW_MAX_NODES - 1},
        {.name = "run-id",
         .needed = "the name of the deployment",
         .text = &settings->run_id,
         .rule = &dw_text_run_id},
        {.name = "data", .text = &settings->data},
        {.name = "listen", .text = &server->listen, .rule = &dw_text_listen},
        {.name = "log-delay", .take = take_delay, .user = &server->delay},
        {.name = "sync", .on_off = &server->sync},
        {.name = "store", .word = &settings->store, .words = "rocksdb|memory"},
        {.name = "logs", .take = option_take_logs, .user = &server->logs},
        {.name = "queue-mib", .u32 = &settings->queue_mib, .low = MIN_QUEUE_MIB, .high = MAX_QUEUE_MIB},
        {.name = "seed", .u64 = &server->seed, .high = UINT64_MAX},
        {.name = NULL},
    };
    int code = dw_flags_read(PROGRAM, usage, flags, argc, argv, NULL);
    if (code != DW_FLAGS_GO_ON) {
        return code;
    }
    snprintf(server->self.run_id, sizeof server->self.run_id, "%s", settings->run_id);
    server->max_queue_bytes = (size_t)settings->queue_mib << MIB_SHIFT;
    return check_settings(settings);
}

static enum dw_error open_store(struct settings *settings, char *text, size_t text_size)
{
    if (settings->store == STORE_MEMORY) {
        settings->server.store = dw_memory_store_open();
        snprintf(text, text_size, "out of memory: free some and start again");
        return settings->server.store == NULL ? DW_ERR_MEMORY : DW_OK;
    }
    return dw_rocksdb_store_open(settings->data, settings->server.self.run_id, settings->server.self.node,
                                 &settings->server.store, text, text_size);
}

/* From whatever thread: the main thread waits for signals only. */
static void on_stop(void *user)
{
    const pthread_t *main_thread = user;
    pthread_kill(*main_thread, SIGTERM);
}

/* Before any thread is started, so that all inherit the mask. A reader of our standard output that went away
 * is no reason to die; nor is a file that reached the limit of its size: that write fails, and the log tells.
 */
static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static int serve(const struct settings *settings, struct server *server, const sigset_t *signals)
{
    int caught;
    printf("listening %.*s:%u\n", (int)(strrchr(settings->server.listen, ':') - settings->server.listen),
           settings->server.listen, storage_port(server));
    fflush(stdout);
    sigwait(signals, &caught);
    bool failed = storage_failed(server);
    storage_stop(server);
    if (failed) {
        /* A database whose write failed stays open, and its threads run on: so nothing of an ordinary exit,
         * which takes down what they stand on. The log service has told what happened. */
        _Exit(EXIT_ENVIRONMENT);
    }
    return EXIT_GOOD;
}

int main(int argc, char **argv)
{
    static char text[TEXT];
    pthread_t self = pthread_self();
    struct server *server;
    sigset_t signals;
    struct settings settings = {
        .queue_mib = DEFAULT_QUEUE_MIB,
        .server = {.self = {.role = DW_ROLE_STORAGE},
                   .listen = "127.0.0.1:0",
                   .logs = UINT64_MAX,
                   .sync = true,
                   .seed = 1,
                   .on_stop = on_stop,
                   .user = &self},
    };
    int code = parse(argc, argv, &settings);
    if (code != DW_FLAGS_GO_ON) {
        return code;
    }
    block_signals(&signals);
    enum dw_error error = open_store(&settings, text, sizeof text);
    if (error == DW_OK) {
        error = storage_start(&settings.server, &server, text, sizeof text);
    }
    if (error != DW_OK) {
        fprintf(stderr, PROGRAM ": %s\n", text);
        return option_exit_code(error) == EXIT_ASKED_WRONGLY ? EXIT_ASKED_WRONGLY : EXIT_ENVIRONMENT;
    }
    return serve(&settings, server, &signals);
}
