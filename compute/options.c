#include "compute/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dogwood-compute --id N --cluster FILE --run-id ID [--listen HOST:PORT] [--protocol cornus|2pc]\n"
    "           [--threads N] [--workload ycsb] [--set KEY=VALUE]... [--seed S] [--loop closed|open] [--rate "
    "TPS]\n"
    "           [--vote-timeout-ms X] [--decision-timeout-ms X] [--vote-request-timeout-ms X]\n"
    "           [--request-timeout-ms X] [--retry-backoff-us X] [--batch-accesses on|off]\n"
    "           [--failpoint NAME=ACTION[@N]]...\n"
    "Executes transactions over partitioned data, and commits them with the protocol.\n";

enum flag {
    FLAG_ID = 1,
    FLAG_CLUSTER,
    FLAG_RUN_ID,
    FLAG_LISTEN,
    FLAG_PROTOCOL,
    FLAG_THREADS,
    FLAG_WORKLOAD,
    FLAG_SET,
    FLAG_SEED,
    FLAG_LOOP,
    FLAG_RATE,
    FLAG_VOTE_TIMEOUT,
    FLAG_DECISION_TIMEOUT,
    FLAG_VOTE_REQUEST_TIMEOUT,
    FLAG_REQUEST_TIMEOUT,
    FLAG_RETRY_BACKOFF,
    FLAG_BATCH_ACCESSES,
    FLAG_FAILPOINT,
    FLAG_HELP,
    FLAG_VERSION,
};

static const struct option flags[] = {
    {"id", required_argument, NULL, FLAG_ID},
    {"cluster", required_argument, NULL, FLAG_CLUSTER},
    {"run-id", required_argument, NULL, FLAG_RUN_ID},
    {"listen", required_argument, NULL, FLAG_LISTEN},
    {"protocol", required_argument, NULL, FLAG_PROTOCOL},
    {"threads", required_argument, NULL, FLAG_THREADS},
    {"workload", required_argument, NULL, FLAG_WORKLOAD},
    {"set", required_argument, NULL, FLAG_SET},
    {"seed", required_argument, NULL, FLAG_SEED},
    {"loop", required_argument, NULL, FLAG_LOOP},
    {"rate", required_argument, NULL, FLAG_RATE},
    {"vote-timeout-ms", required_argument, NULL, FLAG_VOTE_TIMEOUT},
    {"decision-timeout-ms", required_argument, NULL, FLAG_DECISION_TIMEOUT},
    {"vote-request-timeout-ms", required_argument, NULL, FLAG_VOTE_REQUEST_TIMEOUT},
    {"request-timeout-ms", required_argument, NULL, FLAG_REQUEST_TIMEOUT},
    {"retry-backoff-us", required_argument, NULL, FLAG_RETRY_BACKOFF},
    {"batch-accesses", required_argument, NULL, FLAG_BATCH_ACCESSES},
    {"failpoint", required_argument, NULL, FLAG_FAILPOINT},
    {"help", no_argument, NULL, FLAG_HELP},
    {"version", no_argument, NULL, FLAG_VERSION},
    {NULL, 0, NULL, 0},
};

__attribute__((format(printf, 1, 2))) static bool complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "dogwood-compute: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return false;
}

static bool take_number(const char *name, const char *text, double minimum, double maximum, double *value)
{
    char *end = NULL;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(number) || number < minimum ||
        number > maximum) {
        return complain("--%s takes a number from %.15g to %.15g, not '%s'", name, minimum, maximum, text);
    }
    *value = number;
    return true;
}

static bool take_integer(const char *name, const char *text, uint64_t minimum, uint64_t maximum,
                         uint64_t *value)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number < minimum || number > maximum) {
        return complain("--%s takes a whole number from %llu to %llu, not '%s'", name,
                        (unsigned long long)minimum, (unsigned long long)maximum, text);
    }
    *value = number;
    return true;
}

static bool take_milliseconds(const char *name, const char *text, uint64_t *value_us)
{
    double number = 0;
    if (!take_number(name, text, 0.001, 3600000, &number)) {
        return false;
    }
    *value_us = (uint64_t)(number * 1000);
    return true;
}

static bool take_choice(const char *name, const char *text, const char *first, const char *second,
                        bool *is_first)
{
    *is_first = strcmp(text, first) == 0;
    if (!*is_first && strcmp(text, second) != 0) {
        return complain("--%s takes %s or %s, not '%s'", name, first, second, text);
    }
    return true;
}

static bool take_setting(struct options *options, const char *text)
{
    char name[64], why[DW_WORKLOAD_TEXT];
    const char *equals = strchr(text, '=');
    if (equals == NULL || (size_t)(equals - text) >= sizeof name) {
        return complain("--set takes KEY=VALUE, not '%s'", text);
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    if (dw_workload_set(options->runtime.workload, options->parameters, name, equals + 1, why, sizeof why) !=
        DW_OK) {
        return complain("%s", why);
    }
    return true;
}

static bool take_workload(struct options *options, const char *name)
{
    const struct dw_workload *workload = dw_workload_find(name);
    if (workload == NULL) {
        return complain("there is no workload '%s'; there is %s", name, dw_workload_at(0)->name);
    }
    free(options->parameters);
    options->parameters = calloc(1, workload->parameter_bytes);
    if (options->parameters == NULL) {
        return complain("out of memory");
    }
    workload->defaults(options->parameters);
    options->runtime.workload = workload;
    options->runtime.parameters = options->parameters;
    return true;
}

static bool take_protocol(struct options *options, const char *name)
{
    options->runtime.protocol = dw_protocol_find(name);
    return options->runtime.protocol != NULL || complain("--protocol takes cornus or 2pc, not '%s'", name);
}

static bool take_run_id(struct options *options, const char *text)
{
    options->runtime.run_id = text;
    return (*text != '\0' && strlen(text) <= DW_MAX_RUN_ID) ||
           complain("--run-id takes 1 to %d characters", DW_MAX_RUN_ID);
}

static bool take_node_flag(struct options *options, int flag, const char *name)
{
    struct runtime_options *runtime = &options->runtime;
    uint64_t number = 0;
    bool first = false, good = true;
    char why[256];
    switch ((enum flag)flag) {
    case FLAG_ID:
        good = take_integer(name, optarg, 0, DW_MAX_NODES - 1, &number);
        runtime->node = (uint32_t)number;
        return good;
    case FLAG_THREADS:
        good = take_integer(name, optarg, 1, 1024, &number);
        runtime->threads = (uint32_t)number;
        return good;
    case FLAG_SEED:
        return take_integer(name, optarg, 0, UINT64_MAX, &runtime->seed);
    case FLAG_LOOP:
        good = take_choice(name, optarg, "closed", "open", &first);
        runtime->loop = first ? LOOP_CLOSED : LOOP_OPEN;
        return good;
    case FLAG_RATE:
        return take_number(name, optarg, 0.001, 1e7, &runtime->rate_tps);
    case FLAG_BATCH_ACCESSES:
        return take_choice(name, optarg, "on", "off", &runtime->batch_accesses);
    case FLAG_FAILPOINT:
        return failpoints_set(&runtime->failpoints, optarg, why, sizeof why) == DW_OK || complain("%s", why);
    case FLAG_VOTE_TIMEOUT:
        return take_milliseconds(name, optarg, &runtime->timeout_us[DW_TIMER_VOTES]);
    case FLAG_DECISION_TIMEOUT:
        good = take_milliseconds(name, optarg, &runtime->timeout_us[DW_TIMER_DECISION]);
        /* Asking again, and waiting for the last acknowledgement, take as long. */
        runtime->timeout_us[DW_TIMER_RETRY] = runtime->timeout_us[DW_TIMER_DECISION];
        runtime->timeout_us[DW_TIMER_FINISH] = runtime->timeout_us[DW_TIMER_DECISION];
        return good;
    case FLAG_VOTE_REQUEST_TIMEOUT:
        return take_milliseconds(name, optarg, &runtime->timeout_us[DW_TIMER_VOTE_REQUEST]);
    case FLAG_REQUEST_TIMEOUT:
        return take_milliseconds(name, optarg, &runtime->request_timeout_us);
    case FLAG_RETRY_BACKOFF:
        return take_integer(name, optarg, 0, 60000000, &runtime->retry_backoff_us);
    case FLAG_CLUSTER:
    case FLAG_RUN_ID:
    case FLAG_LISTEN:
    case FLAG_PROTOCOL:
    case FLAG_WORKLOAD:
    case FLAG_SET:
    case FLAG_HELP:
    case FLAG_VERSION:
        break;
    }
    return true;
}

static bool take_flag(struct options *options, int flag, const char *name)
{
    switch (flag) {
    case FLAG_CLUSTER:
        options->cluster_file = optarg;
        return true;
    case FLAG_RUN_ID:
        return take_run_id(options, optarg);
    case FLAG_LISTEN:
        options->runtime.listen = optarg;
        return true;
    case FLAG_PROTOCOL:
        return take_protocol(options, optarg);
    case FLAG_WORKLOAD:
        return take_workload(options, optarg);
    case FLAG_SET:
        return take_setting(options, optarg);
    default:
        return take_node_flag(options, flag, name);
    }
}

static bool set_defaults(struct options *options)
{
    *options = (struct options){.runtime = {.node = UINT32_MAX,
                                            .listen = "127.0.0.1:0",
                                            .protocol = &dw_cornus,
                                            .threads = 4,
                                            .seed = 1,
                                            .loop = LOOP_CLOSED,
                                            .request_timeout_us = 1000000,
                                            .retry_backoff_us = 1000,
                                            .batch_accesses = true}};
    for (unsigned timer = 0; timer <= DW_TIMER_FINISH; timer++) {
        options->runtime.timeout_us[timer] = 1000000;
    }
    return take_workload(options, dw_workload_at(0)->name);
}

static bool check(const struct options *options)
{
    const struct runtime_options *runtime = &options->runtime;
    if (runtime->node == UINT32_MAX) {
        return complain("--id is missing: the number of this node in the cluster file");
    }
    if (options->cluster_file == NULL) {
        return complain("--cluster is missing: the file that lists all nodes");
    }
    if (runtime->run_id == NULL) {
        return complain("--run-id is missing: the name of the deployment, the same at all nodes");
    }
    if (runtime->loop == LOOP_OPEN && runtime->rate_tps == 0) {
        return complain("--loop open needs --rate, transactions a second of this node");
    }
    return true;
}

enum options_result options_read(int argc, char **argv, struct options *options)
{
    if (!set_defaults(options)) {
        return OPTIONS_BAD;
    }
    int flag, index = 0;
    opterr = 0;
    while ((flag = getopt_long(argc, argv, "+:", flags, &index)) != -1) {
        if (flag == FLAG_HELP || flag == FLAG_VERSION) {
            fputs(flag == FLAG_HELP ? usage : "dogwood-compute " DW_VERSION "\n", stdout);
            return OPTIONS_DONE;
        }
        if (flag == '?' || flag == ':') {
            complain("%s '%s'; see --help", flag == '?' ? "unknown flag" : "a value is missing after",
                     argv[optind - 1]);
            return OPTIONS_BAD;
        }
        if (!take_flag(options, flag, flags[index].name)) {
            return OPTIONS_BAD;
        }
    }
    if (optind < argc) {
        complain("unknown word '%s'; see --help", argv[optind]);
        return OPTIONS_BAD;
    }
    return check(options) ? OPTIONS_GOOD : OPTIONS_BAD;
}
