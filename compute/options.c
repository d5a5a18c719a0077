#include "compute/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/flags.h"

#define PROGRAM "dogwood-compute"

static const char usage[] =
    "usage: dogwood-compute --id N --cluster FILE --run-id ID [--listen HOST:PORT] [--protocol cornus|2pc]\n"
    "           [--threads N] [--workload ycsb] [--set KEY=VALUE]... [--seed S] [--loop closed|open] [--rate "
    "TPS]\n"
    "           [--vote-timeout-ms X] [--decision-timeout-ms X] [--vote-request-timeout-ms X]\n"
    "           [--request-timeout-ms X] [--retry-backoff-us X] [--batch-accesses on|off]\n"
    "           [--failpoint NAME=ACTION[@N]]...\n"
    "Executes transactions over partitioned data, and commits them with the protocol.\n";

static bool take_milliseconds(void *us, const char *value, char *mend, size_t mend_size)
{
    const double least = 0.001, most = 3600000;
    double number;
    snprintf(mend, mend_size, "give a number from %.15g to %.15g", least, most);
    if (!dw_read_decimal(value, least, most, &number)) {
        return false;
    }
    *(uint64_t *)us = (uint64_t)(number * 1000);
    return true;
}

static bool take_protocol(void *user, const char *value, char *mend, size_t mend_size)
{
    const struct dw_protocol **protocol = user;
    snprintf(mend, mend_size, "give cornus|2pc");
    *protocol = dw_protocol_find(value);
    return *protocol != NULL;
}

static bool take_failpoint(void *failpoints, const char *value, char *mend, size_t mend_size)
{
    return failpoints_set(failpoints, value, mend, mend_size) == DW_OK;
}

static bool take_workload(void *user, const char *value, char *mend, size_t mend_size)
{
    struct options *options = user;
    const struct dw_workload *workload = dw_workload_find(value);
    if (workload == NULL) {
        snprintf(mend, mend_size, "give %s", dw_workload_at(0)->name);
        return false;
    }
    free(options->parameters);
    options->parameters = calloc(1, workload->parameter_bytes);
    DW_ASSERT(options->parameters != NULL);
    workload->defaults(options->parameters);
    options->runtime.workload = workload;
    options->runtime.parameters = options->parameters;
    return true;
}

/* A parameter of the workload as it was named before. */
static bool take_setting(void *user, const char *value, char *mend, size_t mend_size)
{
    struct options *options = user;
    char name[64];
    size_t length = strcspn(value, "=");
    snprintf(mend, mend_size, "give KEY=VALUE");
    if (value[length] == '\0' || length >= sizeof name) {
        return false;
    }
    snprintf(name, sizeof name, "%.*s", (int)length, value);
    return dw_workload_set(options->runtime.workload, options->parameters, name, value + length + 1, mend,
                           mend_size) == DW_OK;
}

static void set_defaults(struct options *options)
{
    char mend[DW_WORKLOAD_TEXT];
    *options = (struct options){.runtime = {.listen = "127.0.0.1:0",
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
    bool good = take_workload(options, dw_workload_at(0)->name, mend, sizeof mend);
    DW_ASSERT(good);
}

static int read_flags(int argc, char **argv, struct options *options)
{
    struct runtime_options *runtime = &options->runtime;
    uint64_t *timeout_us = runtime->timeout_us;
    struct dw_flag flags[] = {
        {.name = "id",
         .needed = "the number of this node in the cluster file",
         .u32 = &runtime->node,
         .high = DW_MAX_NODES - 1},
        {.name = "cluster", .needed = "the file that lists all nodes", .text = &options->cluster_file},
        {.name = "run-id",
         .needed = "the name of the deployment, the same at all nodes",
         .text = &runtime->run_id,
         .rule = &dw_text_run_id},
        {.name = "listen", .text = &runtime->listen, .rule = &dw_text_listen},
        {.name = "protocol", .take = take_protocol, .user = &runtime->protocol},
        {.name = "threads", .u32 = &runtime->threads, .low = 1, .high = 1024},
        {.name = "workload", .take = take_workload, .user = options},
        {.name = "set", .take = take_setting, .user = options},
        {.name = "seed", .u64 = &runtime->seed, .high = UINT64_MAX},
        {.name = "loop", .word = &runtime->loop, .words = "closed|open"},
        {.name = "rate", .decimal = &runtime->rate_tps, .least = 0.001, .most = 1e7},
        {.name = "vote-timeout-ms", .take = take_milliseconds, .user = &timeout_us[DW_TIMER_VOTES]},
        {.name = "decision-timeout-ms", .take = take_milliseconds, .user = &timeout_us[DW_TIMER_DECISION]},
        {.name = "vote-request-timeout-ms",
         .take = take_milliseconds,
         .user = &timeout_us[DW_TIMER_VOTE_REQUEST]},
        {.name = "request-timeout-ms", .take = take_milliseconds, .user = &runtime->request_timeout_us},
        {.name = "retry-backoff-us", .u64 = &runtime->retry_backoff_us, .high = 60000000},
        {.name = "batch-accesses", .on_off = &runtime->batch_accesses},
        {.name = "failpoint", .take = take_failpoint, .user = &runtime->failpoints},
        {.name = NULL},
    };
    return dw_flags_read(PROGRAM, usage, flags, argc, argv, NULL);
}

enum options_result options_read(int argc, char **argv, struct options *options)
{
    set_defaults(options);
    struct runtime_options *runtime = &options->runtime;
    int code = read_flags(argc, argv, options);
    /* Asking again, and waiting for the last acknowledgement, take as long. */
    runtime->timeout_us[DW_TIMER_RETRY] = runtime->timeout_us[DW_TIMER_DECISION];
    runtime->timeout_us[DW_TIMER_FINISH] = runtime->timeout_us[DW_TIMER_DECISION];
    if (code == DW_FLAGS_GO_ON && runtime->loop == LOOP_OPEN && runtime->rate_tps == 0) {
        code = dw_flags_refuse(PROGRAM, "--loop open needs --rate, transactions a second of this node");
    }
    return code == DW_FLAGS_GO_ON ? OPTIONS_GOOD : code == DW_EXIT_GOOD ? OPTIONS_DONE : OPTIONS_BAD;
}
