#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "storage/server_internal.h"

enum { MAX_STATS = 64 };

void admin_refuse(struct dw_unary_call *call, enum dw_error error, const char *text)
{
    struct dw_unary_reply reply = {.error = error};
    snprintf(reply.text, sizeof reply.text, "%s", text);
    dw_unary_finish(call, &reply);
}

void admin_answer(struct dw_unary_call *call, enum dw_error error, struct dw_buffer *buffer)
{
    if (error != DW_OK) {
        dw_buffer_free(buffer);
        admin_refuse(call, error, dw_error_text(error));
        return;
    }
    struct dw_unary_reply reply = {.data = buffer->data, .size = buffer->size};
    *buffer = (struct dw_buffer){0};
    dw_unary_finish(call, &reply);
}

static void refuse_malformed(struct dw_unary_call *call, const char *method)
{
    char text[128];
    snprintf(text, sizeof text, "the request of %s is malformed: use a client of this version, %s", method,
             DW_VERSION);
    admin_refuse(call, DW_ERR_MALFORMED, text);
}

/* Answers for itself if the log is not served. */
static bool is_served(struct server *server, struct dw_unary_call *call, uint32_t log)
{
    char text[256];
    bool served = storage_serves(server, log, text, sizeof text);
    if (!served) {
        admin_refuse(call, DW_ERR_ARGUMENT, text);
    }
    return served;
}

static void call_scan(struct server *server, struct dw_unary_call *call, const uint8_t *data, size_t size)
{
    struct dw_admin_scan scan;
    if (dw_admin_decode_scan(data, size, &scan) != DW_OK) {
        refuse_malformed(call, DW_METHOD_SCAN);
    } else if (is_served(server, call, scan.log)) {
        reader_scan(server, call, &scan);
    }
}

static void call_read_entry(struct server *server, struct dw_unary_call *call, const uint8_t *data,
                            size_t size)
{
    uint32_t log;
    struct dw_txn_id txn;
    if (dw_admin_decode_read_entry(data, size, &log, &txn) != DW_OK) {
        refuse_malformed(call, DW_METHOD_READ_ENTRY);
    } else if (is_served(server, call, log)) {
        reader_read_entry(server, call, log, txn);
    }
}

/* On the log writer's thread. */
static void on_fenced(void *context, enum dw_error error, uint32_t incarnation)
{
    struct dw_buffer reply = {0};
    if (error == DW_ERR_RANGE) {
        admin_refuse(context, error,
                     "the log has no incarnation left: start a new run with an empty directory");
        return;
    }
    if (error == DW_OK) {
        error = dw_admin_encode_fenced(&reply, incarnation);
    }
    admin_answer(context, error, &reply);
}

static void call_fence(struct server *server, struct dw_unary_call *call, const uint8_t *data, size_t size)
{
    uint32_t log;
    uint32_t owner;
    char text[128];
    if (dw_admin_decode_fence(data, size, &log, &owner) != DW_OK) {
        refuse_malformed(call, DW_METHOD_FENCE);
    } else if (log != owner) {
        snprintf(text, sizeof text,
                 "log %u belongs to compute node %u, so node %u cannot take its incarnation: fence log %u",
                 log, log, owner, owner);
        admin_refuse(call, DW_ERR_ARGUMENT, text);
    } else if (is_served(server, call, log)) {
        enum dw_error error = dw_log_service_fence(server->service, log, on_fenced, call);
        if (error != DW_OK) {
            admin_refuse(call, error, dw_error_text(error));
        }
    }
}

static void answer_delay(struct server *server, struct dw_unary_call *call)
{
    struct dw_delay delay = dw_log_service_delay(server->service);
    struct dw_admin_delay told = {.mean_ms = delay.mean_ms, .parameter = delay.parameter};
    struct dw_buffer reply = {0};
    snprintf(told.distribution, sizeof told.distribution, "%s",
             dw_delay_distribution_name(delay.distribution));
    enum dw_error error = dw_admin_encode_delayed(&reply, &told);
    admin_answer(call, error, &reply);
}

static void call_delay(struct server *server, struct dw_unary_call *call, const uint8_t *data, size_t size)
{
    struct dw_admin_delay asked;
    char text[192];
    if (dw_admin_decode_delay(data, size, &asked) != DW_OK) {
        refuse_malformed(call, DW_METHOD_DELAY);
        return;
    }
    if (asked.set) {
        struct dw_delay delay = {.mean_ms = asked.mean_ms, .parameter = asked.parameter};
        if (dw_delay_distribution_parse(asked.distribution, &delay.distribution) != DW_OK) {
            snprintf(text, sizeof text,
                     "delay distribution '%s' is unknown: give constant, uniform, exponential or lognormal",
                     asked.distribution);
            admin_refuse(call, DW_ERR_ARGUMENT, text);
            return;
        }
        enum dw_error error = dw_delay_check(&delay, text, sizeof text);
        if (error != DW_OK) {
            admin_refuse(call, error, text);
            return;
        }
        dw_log_service_set_delay(server->service, &delay);
    }
    answer_delay(server, call);
}

static uint64_t take(atomic_uint_fast64_t *counter, bool reset)
{
    return reset ? atomic_exchange(counter, 0) : atomic_load(counter);
}

static enum dw_error encode_own_stats(struct server *server, bool reset, struct dw_buffer *reply)
{
    struct server_counters *counters = &server->counters;
    const struct dw_log_stat stats[] = {
        {"streams", atomic_load(&counters->streams)},
        {"messages", take(&counters->messages, reset)},
        {"reply_messages", take(&counters->reply_messages, reset)},
        {"refused_messages", take(&counters->refused, reset)},
        {"held_messages", take(&counters->held, reset)},
        {"refused_reads", take(&counters->reads_refused, reset)},
    };
    enum dw_error error = DW_OK;
    for (size_t i = 0; i < sizeof stats / sizeof *stats && error == DW_OK; i++) {
        error = dw_admin_encode_stat(reply, stats[i].name, stats[i].value);
    }
    return error;
}

static void call_stats(struct server *server, struct dw_unary_call *call, const uint8_t *data, size_t size)
{
    struct dw_log_stat stats[MAX_STATS];
    struct dw_buffer reply = {0};
    bool reset;
    if (dw_admin_decode_stats_request(data, size, &reset) != DW_OK) {
        refuse_malformed(call, DW_METHOD_STATS);
        return;
    }
    size_t count = dw_log_service_stats(server->service, stats, MAX_STATS, reset);
    enum dw_error error = DW_OK;
    for (size_t i = 0; i < count && i < MAX_STATS && error == DW_OK; i++) {
        error = dw_admin_encode_stat(&reply, stats[i].name, stats[i].value);
    }
    if (error == DW_OK) {
        error = encode_own_stats(server, reset, &reply);
    }
    admin_answer(call, error, &reply);
}

static void call_identify(struct server *server, struct dw_unary_call *call, const uint8_t *data, size_t size)
{
    struct dw_admin_identity identity = {.role = "storage",
                                         .node = server->options.self.node,
                                         .version = DW_VERSION,
                                         .pid = (uint64_t)getpid()};
    struct dw_buffer reply = {0};
    if (dw_admin_decode_empty(data, size) != DW_OK) {
        refuse_malformed(call, DW_METHOD_IDENTIFY);
        return;
    }
    snprintf(identity.run_id, sizeof identity.run_id, "%s", server->options.self.run_id);
    enum dw_error error = dw_admin_encode_identity(&reply, &identity);
    admin_answer(call, error, &reply);
}

static void call_shutdown(struct server *server, struct dw_unary_call *call, const uint8_t *data, size_t size)
{
    struct dw_buffer reply = {0};
    if (dw_admin_decode_empty(data, size) != DW_OK) {
        refuse_malformed(call, DW_METHOD_SHUTDOWN);
        return;
    }
    admin_answer(call, DW_OK, &reply);
    storage_tell_stop(server);
}

static const struct {
    const char *name;
    void (*run)(struct server *server, struct dw_unary_call *call, const uint8_t *data, size_t size);
} methods[] = {
    {DW_METHOD_IDENTIFY, call_identify}, {DW_METHOD_STATS, call_stats},
    {DW_METHOD_DELAY, call_delay},       {DW_METHOD_FENCE, call_fence},
    {DW_METHOD_SCAN, call_scan},         {DW_METHOD_READ_ENTRY, call_read_entry},
    {DW_METHOD_SHUTDOWN, call_shutdown},
};

void admin_call(void *user, struct dw_unary_call *call, const char *method, const uint8_t *data, size_t size)
{
    struct server *server = user;
    char text[192];
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(method, methods[i].name) == 0) {
            methods[i].run(server, call, data, size);
            return;
        }
    }
    snprintf(text, sizeof text,
             "storage node %u has no method %.60s: its methods are Identify, Stats, Delay, Fence, Scan, "
             "ReadEntry and Shutdown",
             server->options.self.node, method);
    admin_refuse(call, DW_ERR_MISSING, text);
}
