/* dogwood-storage: one storage node. */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/options.h"
#include "storage/server.h"

enum { TEXT = 16384, MIB_SHIFT = 20, DEFAULT_QUEUE_MIB = 256, MIN_QUEUE_MIB = 128, MAX_QUEUE_MIB = 65536 };

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

struct settings {
    bool has_id;
    const char *data;
    const char *store;
    const char *listen;
    struct server_options server;
};

__attribute__((format(printf, 1, 2))) static int ask_wrongly(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("dogwood-storage: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; see dogwood-storage --help\n", stderr);
    va_end(arguments);
    return EXIT_ASKED_WRONGLY;
}

enum flag {
    FLAG_ID = 1,
    FLAG_RUN,
    FLAG_DATA,
    FLAG_LISTEN,
    FLAG_DELAY,
    FLAG_SYNC,
    FLAG_STORE,
    FLAG_LOGS,
    FLAG_QUEUE,
    FLAG_SEED,
    FLAG_VERSION,
    FLAG_HELP
};

static const struct option flags[] = {
    {"id", required_argument, NULL, FLAG_ID},
    {"run-id", required_argument, NULL, FLAG_RUN},
    {"data", required_argument, NULL, FLAG_DATA},
    {"listen", required_argument, NULL, FLAG_LISTEN},
    {"log-delay", required_argument, NULL, FLAG_DELAY},
    {"sync", required_argument, NULL, FLAG_SYNC},
    {"store", required_argument, NULL, FLAG_STORE},
    {"logs", required_argument, NULL, FLAG_LOGS},
    {"queue-mib", required_argument, NULL, FLAG_QUEUE},
    {"seed", required_argument, NULL, FLAG_SEED},
    {"version", no_argument, NULL, FLAG_VERSION},
    {"help", no_argument, NULL, FLAG_HELP},
    {NULL, 0, NULL, 0},
};

static int set_id(struct settings *settings, const char *value)
{
    uint64_t id;
    if (!option_number(value, 0, DW_MAX_NODES - 1, &id)) {
        return ask_wrongly("--id '%s' is wrong: give a number from 0 to %d", value, DW_MAX_NODES - 1);
    }
    settings->has_id = true;
    settings->server.self.node = (uint32_t)id;
    return EXIT_GOOD;
}

static int set_run_id(struct settings *settings, const char *value)
{
    if (!option_run_id(value)) {
        return ask_wrongly("--run-id '%s' is wrong: give 1 to %d letters, digits, '.', '_' or '-'", value,
                           DW_MAX_RUN_ID);
    }
    snprintf(settings->server.self.run_id, sizeof settings->server.self.run_id, "%s", value);
    return EXIT_GOOD;
}

static int set_listen(struct settings *settings, const char *value)
{
    if (!option_address(value, true)) {
        return ask_wrongly(
            "--listen '%s' is wrong: give HOST:PORT, with a port from 0 (any free one) to 65535", value);
    }
    settings->listen = value;
    return EXIT_GOOD;
}

static int set_delay(struct settings *settings, const char *value)
{
    char text[256];
    if (dw_delay_parse(value, &settings->server.delay, text, sizeof text) != DW_OK) {
        return ask_wrongly("--log-delay: %s", text);
    }
    return EXIT_GOOD;
}

static int set_sync(struct settings *settings, const char *value)
{
    settings->server.sync = strcmp(value, "on") == 0;
    if (!settings->server.sync && strcmp(value, "off") != 0) {
        return ask_wrongly("--sync '%s' is wrong: give on or off", value);
    }
    return EXIT_GOOD;
}

static int set_store(struct settings *settings, const char *value)
{
    if (strcmp(value, "rocksdb") != 0 && strcmp(value, "memory") != 0) {
        return ask_wrongly("--store '%s' is wrong: give rocksdb or memory", value);
    }
    settings->store = value;
    return EXIT_GOOD;
}

static int set_logs(struct settings *settings, const char *value)
{
    if (!option_logs(value, &settings->server.logs)) {
        return ask_wrongly("--logs '%s' is wrong: give numbers and ranges from 0 to %d, as in 0,2,4-7", value,
                           DW_MAX_NODES - 1);
    }
    return EXIT_GOOD;
}

static int set_queue(struct settings *settings, const char *value)
{
    uint64_t mib;
    if (!option_number(value, MIN_QUEUE_MIB, MAX_QUEUE_MIB, &mib)) {
        return ask_wrongly("--queue-mib '%s' is wrong: give a number from %d to %d", value, MIN_QUEUE_MIB,
                           MAX_QUEUE_MIB);
    }
    settings->server.max_queue_bytes = (size_t)mib << MIB_SHIFT;
    return EXIT_GOOD;
}

static int set_seed(struct settings *settings, const char *value)
{
    if (!option_number(value, 0, UINT64_MAX, &settings->server.seed)) {
        return ask_wrongly("--seed '%s' is wrong: give a whole number", value);
    }
    return EXIT_GOOD;
}

static int set_flag(struct settings *settings, enum flag flag, const char *value)
{
    switch (flag) {
    case FLAG_ID:
        return set_id(settings, value);
    case FLAG_RUN:
        return set_run_id(settings, value);
    case FLAG_DATA:
        settings->data = value;
        return *value == '\0' ? ask_wrongly("--data is empty: give a directory") : EXIT_GOOD;
    case FLAG_LISTEN:
        return set_listen(settings, value);
    case FLAG_DELAY:
        return set_delay(settings, value);
    case FLAG_SYNC:
        return set_sync(settings, value);
    case FLAG_STORE:
        return set_store(settings, value);
    case FLAG_LOGS:
        return set_logs(settings, value);
    case FLAG_QUEUE:
        return set_queue(settings, value);
    case FLAG_SEED:
        return set_seed(settings, value);
    case FLAG_VERSION:
        puts("dogwood-storage " DW_VERSION);
        exit(EXIT_GOOD);
    case FLAG_HELP:
        fputs(usage, stdout);
        exit(EXIT_GOOD);
    }
    return EXIT_ASKED_WRONGLY;
}

static int refuse_flag(const char *given)
{
    const char *names[sizeof flags / sizeof *flags];
    char name[64];
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        names[i] = flags[i].name;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strncmp(name, "--", 2) == 0 && strcmp(name + 2, names[i]) == 0) {
            return ask_wrongly("%s %s", name,
                               flags[i].has_arg == no_argument ? "takes no value" : "needs a value");
        }
    }
    const char *near = strncmp(name, "--", 2) == 0 ? option_nearest(name + 2, names) : NULL;
    if (near != NULL) {
        return ask_wrongly("unknown flag '%s'; do you mean --%s?", name, near);
    }
    return ask_wrongly("unknown flag '%s'", name);
}

static int check_settings(const struct settings *settings)
{
    bool memory = strcmp(settings->store, "memory") == 0;
    if (!settings->has_id) {
        return ask_wrongly("--id is missing: give the number of this storage node");
    }
    if (settings->server.self.run_id[0] == '\0') {
        return ask_wrongly("--run-id is missing: give the name of the deployment");
    }
    if (!memory && settings->data == NULL) {
        return ask_wrongly("--data is missing: give the directory of the logs, or --store memory");
    }
    if (memory && settings->data != NULL) {
        return ask_wrongly("--data has no meaning with --store memory: leave one of them out");
    }
    return EXIT_GOOD;
}

static int parse(int argc, char **argv, struct settings *settings)
{
    int found;
    opterr = 0;
    while ((found = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        if (found == '?') {
            return refuse_flag(argv[optind - 1]);
        }
        int wrong = set_flag(settings, (enum flag)found, optarg);
        if (wrong != EXIT_GOOD) {
            return wrong;
        }
    }
    if (optind < argc) {
        return ask_wrongly("'%s' belongs to no flag", argv[optind]);
    }
    return check_settings(settings);
}

static enum dw_error open_store(struct settings *settings, char *text, size_t text_size)
{
    if (strcmp(settings->store, "memory") == 0) {
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
 * is no reason to die. */
static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int serve(const struct settings *settings, struct server *server, const sigset_t *signals)
{
    int caught;
    printf("listening %.*s:%u\n", (int)(strrchr(settings->listen, ':') - settings->listen), settings->listen,
           storage_port(server));
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
        .store = "rocksdb",
        .listen = "127.0.0.1:0",
        .server = {.self = {.role = DW_ROLE_STORAGE},
                   .logs = UINT64_MAX,
                   .sync = true,
                   .seed = 1,
                   .max_queue_bytes = (size_t)DEFAULT_QUEUE_MIB << MIB_SHIFT,
                   .on_stop = on_stop,
                   .user = &self},
    };
    int wrong = parse(argc, argv, &settings);
    if (wrong != EXIT_GOOD) {
        return wrong;
    }
    settings.server.listen = settings.listen;
    block_signals(&signals);
    enum dw_error error = open_store(&settings, text, sizeof text);
    if (error == DW_OK) {
        error = storage_start(&settings.server, &server, text, sizeof text);
    }
    if (error != DW_OK) {
        fprintf(stderr, "dogwood-storage: %s\n", text);
        return option_exit_code(error) == EXIT_ASKED_WRONGLY ? EXIT_ASKED_WRONGLY : EXIT_ENVIRONMENT;
    }
    return serve(&settings, server, &signals);
}
