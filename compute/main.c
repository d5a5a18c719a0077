/* dogwood-compute: a compute node. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "compute/options.h"

/* --- callbacks of the loop thread --- */

static void on_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    links_up(user, conn, peer);
}

static void on_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    links_down(user, conn, error, text);
}

static enum dw_error on_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    return intake_message(user, conn, data, size);
}

static uint64_t on_tick(void *user, uint64_t now_us)
{
    struct runtime *runtime = user;
    runtime->now_us = now_us;
    driver_on_timers(runtime);
    uint64_t load_us = load_tick(runtime);
    links_flush(runtime);
    if (runtime->stopping) {
        runtime->stopping = false;
        kill(getpid(), SIGTERM);
    }
    uint64_t timer_us = timers_next_us(&runtime->timers);
    return load_us < timer_us ? load_us : timer_us;
}

/* --- the pieces of a node --- */

enum { LOCKS_MINIMUM = 1 << 16, LOCKS_PER_SLOT = 4096 };

static uint32_t lock_capacity(const struct runtime *runtime)
{
    /* What all slots of all nodes may hold here at once, and what is in doubt after a restart. */
    uint64_t wanted = (uint64_t)runtime->options->threads * runtime->cluster->compute_nodes * LOCKS_PER_SLOT;
    wanted = wanted < LOCKS_MINIMUM ? LOCKS_MINIMUM : wanted;
    return wanted > DW_LOCK_MAX_CAPACITY ? DW_LOCK_MAX_CAPACITY : (uint32_t)wanted;
}

static enum dw_error load_data(struct runtime *runtime)
{
    const struct runtime_options *options = runtime->options;
    struct dw_deployment deployment = {.compute_nodes = runtime->cluster->compute_nodes,
                                       .seed = options->seed};
    options->workload->init(runtime->workload_state, options->parameters, &deployment);
    enum dw_error error = dw_engine_open("memory", &runtime->engine);
    return error == DW_OK
               ? dw_engine_load(runtime->engine, options->workload, runtime->workload_state, options->node)
               : error;
}

static enum dw_error open_runtime(struct runtime *runtime)
{
    uint32_t locks = lock_capacity(runtime);
    runtime->workload_state = calloc(1, runtime->options->workload->state_bytes);
    runtime->lock_memory = aligned_alloc(64, (dw_lock_table_bytes(locks) + 63) / 64 * 64);
    runtime->txns = txn_table_open();
    if (runtime->workload_state == NULL || runtime->lock_memory == NULL || runtime->txns == NULL) {
        return DW_ERR_MEMORY;
    }
    runtime->locks = dw_lock_table_init(runtime->lock_memory, locks);
    runtime->failpoints = runtime->options->failpoints;
    dw_node_init(&runtime->node, runtime->options->node);
    runtime->now_us = dw_rpc_now_us();
    enum dw_error error = load_open(runtime);
    return error == DW_OK ? load_data(runtime) : error;
}

static void close_runtime(struct runtime *runtime)
{
    load_close(runtime);
    links_close(runtime);
    timers_close(&runtime->timers);
    dw_decoder_close(&runtime->decoder);
    if (runtime->txns != NULL) {
        txn_table_close(runtime->txns);
    }
    if (runtime->engine != NULL) {
        runtime->engine->ops->close(runtime->engine);
    }
    free(runtime->lock_memory);
    free(runtime->workload_state);
}

static struct dw_identity identity_of(const struct runtime *runtime, enum dw_role role, uint32_t node)
{
    struct dw_identity identity = {.role = role, .node = node};
    snprintf(identity.run_id, sizeof identity.run_id, "%s", runtime->options->run_id);
    return identity;
}

static enum dw_error connect_peers(struct runtime *runtime)
{
    const struct cluster *cluster = runtime->cluster;
    struct dw_conn *conn = NULL;
    enum dw_error error = DW_OK;
    for (uint32_t i = 0; i < cluster->storage_nodes && error == DW_OK; i++) {
        struct dw_identity expect = identity_of(runtime, DW_ROLE_STORAGE, i);
        error = dw_rpc_connect(runtime->rpc, cluster->storage[i], &expect, &conn);
    }
    for (uint32_t i = 0; i < runtime->options->node && error == DW_OK; i++) {
        struct dw_identity expect = identity_of(runtime, DW_ROLE_COMPUTE, i);
        error = dw_rpc_connect(runtime->rpc, cluster->compute[i], &expect, &conn);
    }
    return error;
}

static enum dw_error start_rpc(struct runtime *runtime, char *text, size_t text_size)
{
    struct dw_rpc_options options = {
        .self = identity_of(runtime, DW_ROLE_COMPUTE, runtime->options->node),
        .listen = runtime->options->listen,
        .handlers = {.on_up = on_up,
                     .on_message = on_message,
                     .on_down = on_down,
                     .on_unary = admin_on_unary,
                     .on_tick = on_tick},
        .user = runtime,
    };
    snprintf(options.self.protocol, sizeof options.self.protocol, "%s", runtime->options->protocol->name);
    enum dw_error error = dw_rpc_start(&options, &runtime->rpc, text, text_size);
    if (error == DW_OK) {
        error = connect_peers(runtime);
        if (error != DW_OK) {
            snprintf(text, text_size, "cannot open the connections to the cluster: %s", dw_error_text(error));
            dw_rpc_stop(runtime->rpc);
        }
    }
    return error;
}

static void print_listening(const struct runtime *runtime)
{
    const char *colon = strrchr(runtime->options->listen, ':');
    int host = colon != NULL ? (int)(colon - runtime->options->listen) : 0;
    printf("listening %.*s:%u\n", host, runtime->options->listen, dw_rpc_port(runtime->rpc));
    fflush(stdout);
}

/* Serves until a signal, or until the node has to stop; returns the exit code. */
static int serve(struct runtime *runtime, const sigset_t *signals)
{
    char text[512] = "out of memory";
    enum dw_error error = open_runtime(runtime);
    if (error == DW_OK) {
        error = recovery_run(runtime, text, sizeof text);
    }
    if (error == DW_OK) {
        error = start_rpc(runtime, text, sizeof text);
    }
    if (error != DW_OK) {
        fprintf(stderr, "dogwood-compute: %s\n", text);
        return DW_EXIT_ENVIRONMENT;
    }
    print_listening(runtime);
    int signal = 0;
    sigwait(signals, &signal);
    dw_rpc_stop(runtime->rpc);
    return runtime->exit_code;
}

static bool check_options(const struct options *options, struct cluster *cluster)
{
    char text[512];
    struct dw_deployment deployment = {.seed = options->runtime.seed};
    enum dw_error error = cluster_read(options->cluster_file, cluster, text, sizeof text);
    if (error == DW_OK && options->runtime.node >= cluster->compute_nodes) {
        snprintf(text, sizeof text, "--id %u is not in %s, which lists compute nodes 0 to %u",
                 options->runtime.node, options->cluster_file, cluster->compute_nodes - 1);
        error = DW_ERR_RANGE;
    }
    if (error == DW_OK) {
        deployment.compute_nodes = cluster->compute_nodes;
        error =
            dw_workload_check(options->runtime.workload, options->parameters, &deployment, text, sizeof text);
    }
    if (error != DW_OK) {
        fprintf(stderr, "dogwood-compute: %s\n", text);
    }
    return error == DW_OK;
}

int main(int argc, char **argv)
{
    struct options options;
    struct cluster cluster;
    enum options_result result = options_read(argc, argv, &options);
    int code = result == OPTIONS_DONE ? DW_EXIT_GOOD : DW_EXIT_ASKED_WRONGLY;
    if (result == OPTIONS_GOOD && check_options(&options, &cluster)) {
        /* Before gRPC starts threads, which inherit the mask. */
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        pthread_sigmask(SIG_BLOCK, &signals, NULL);
        struct runtime *runtime = calloc(1, sizeof *runtime);
        DW_ASSERT(runtime != NULL);
        runtime->options = &options.runtime;
        runtime->cluster = &cluster;
        code = serve(runtime, &signals);
        close_runtime(runtime);
        free(runtime);
    }
    free(options.parameters);
    return code;
}
