#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/ctl/ctl.h"
#include "storage/options.h"
#include "wire/steer.h"

int ctl_identify(const struct ctl *ctl)
{
    struct dw_admin_identity identity;
    int code;
    if (!ctl_call_identify(ctl, &identity, &code)) {
        return code;
    }
    printf(ctl->json ? "{\"role\":\"%s\",\"node\":%" PRIu32
                       ",\"run_id\":\"%s\",\"version\":\"%s\",\"pid\":%" PRIu64 "}\n"
                     : "%s node %" PRIu32 " of run %s, version %s, process %" PRIu64 "\n",
           identity.role, identity.node, identity.run_id, identity.version, identity.pid);
    return EXIT_GOOD;
}

int ctl_ping(const struct ctl *ctl)
{
    struct dw_admin_identity identity;
    int code;
    uint64_t before = dw_rpc_now_us();
    if (!ctl_call_identify(ctl, &identity, &code)) {
        return code;
    }
    uint64_t taken = dw_rpc_now_us() - before;
    printf(ctl->json ? "{\"role\":\"%s\",\"node\":%" PRIu32 ",\"us\":%" PRIu64 "}\n"
                     : "%s node %" PRIu32 " answers after %" PRIu64 " us, the connecting included\n",
           identity.role, identity.node, taken);
    return EXIT_GOOD;
}

/* Nothing is printed before the reply is known to be good. */
struct stats_output {
    bool json;
    const char *comma; /* before the next number; at first the brace */
};

static void print_stat(void *user, const char *name, uint64_t value)
{
    struct stats_output *output = user;
    if (output->json) {
        printf("%s\"%s\":%" PRIu64, output->comma, name, value);
        output->comma = ",";
    } else {
        printf("%-28s %20" PRIu64 "\n", name, value);
    }
}

int ctl_stats(const struct ctl *ctl)
{
    struct dw_buffer request = {0};
    struct stats_output output = {.json = ctl->json, .comma = "{"};
    uint8_t *data;
    size_t size;
    int code;
    enum dw_error error = dw_admin_encode_stats_request(&request, ctl->reset);
    if (!ctl_call(ctl, DW_METHOD_STATS, error, &request, &data, &size, &code)) {
        return code;
    }
    error = dw_admin_decode_stats(data, size, print_stat, &output);
    free(data);
    if (error != DW_OK) {
        return ctl_fail_reply(ctl, DW_METHOD_STATS);
    }
    if (ctl->json) {
        puts(*output.comma == '{' ? "{}" : "}");
    }
    return EXIT_GOOD;
}

static void print_delay(const struct ctl *ctl, const struct dw_admin_delay *delay)
{
    if (ctl->json) {
        printf("{\"mean_ms\":%.10g,\"distribution\":\"%s\",\"parameter\":%.10g}\n", delay->mean_ms,
               delay->distribution, delay->parameter);
    } else if (delay->mean_ms <= 0) {
        puts("no delay");
    } else if (delay->parameter > 0) {
        printf("%s, mean %.10g ms, parameter %.10g\n", delay->distribution, delay->mean_ms, delay->parameter);
    } else {
        printf("%s, mean %.10g ms\n", delay->distribution, delay->mean_ms);
    }
}

int ctl_delay(const struct ctl *ctl)
{
    struct dw_admin_delay delay = {
        .set = ctl->set_delay, .mean_ms = ctl->delay.mean_ms, .parameter = ctl->delay.parameter};
    struct dw_buffer request = {0};
    uint8_t *data;
    size_t size;
    int code;
    snprintf(delay.distribution, sizeof delay.distribution, "%s",
             dw_delay_distribution_name(ctl->delay.distribution));
    enum dw_error error = dw_admin_encode_delay(&request, &delay);
    if (!ctl_call(ctl, DW_METHOD_DELAY, error, &request, &data, &size, &code)) {
        return code;
    }
    error = dw_admin_decode_delayed(data, size, &delay);
    free(data);
    if (error != DW_OK) {
        return ctl_fail_reply(ctl, DW_METHOD_DELAY);
    }
    print_delay(ctl, &delay);
    return EXIT_GOOD;
}

int ctl_fence(const struct ctl *ctl)
{
    struct dw_buffer request = {0};
    uint32_t incarnation;
    uint8_t *data;
    size_t size;
    int code;
    enum dw_error error = dw_admin_encode_fence(&request, ctl->log, ctl->log);
    if (!ctl_call(ctl, DW_METHOD_FENCE, error, &request, &data, &size, &code)) {
        return code;
    }
    error = dw_admin_decode_fenced(data, size, &incarnation);
    free(data);
    if (error != DW_OK) {
        return ctl_fail_reply(ctl, DW_METHOD_FENCE);
    }
    printf(ctl->json ? "{\"log\":%" PRIu32 ",\"incarnation\":%" PRIu32 "}\n"
                     : "log %" PRIu32 " is fenced: its owner's incarnation is %" PRIu32 " now\n",
           ctl->log, incarnation);
    return EXIT_GOOD;
}

int ctl_stop(const struct ctl *ctl)
{
    struct dw_admin_identity identity;
    struct dw_buffer request = {0};
    uint8_t *data;
    size_t size;
    int code;
    if (!ctl_call_identify(ctl, &identity, &code) ||
        !ctl_call(ctl, DW_METHOD_SHUTDOWN, DW_OK, &request, &data, &size, &code)) {
        return code;
    }
    free(data);
    printf(ctl->json ? "{\"role\":\"%s\",\"node\":%" PRIu32 ",\"pid\":%" PRIu64 ",\"state\":\"stopping\"}\n"
                     : "%s node %" PRIu32 ", process %" PRIu64 ", is stopping\n",
           identity.role, identity.node, identity.pid);
    return EXIT_GOOD;
}

/* Calls whose reply is a JSON object, printed as it comes. */
static int print_json_reply(const struct ctl *ctl, const char *method, enum dw_error encoded,
                            struct dw_buffer *request)
{
    uint8_t *data;
    char *json;
    size_t size;
    int code;
    if (!ctl_call(ctl, method, encoded, request, &data, &size, &code)) {
        return code;
    }
    enum dw_error error = dw_steer_decode_json(data, size, &json);
    free(data);
    if (error != DW_OK) {
        return ctl_fail_reply(ctl, method);
    }
    puts(json);
    free(json);
    return EXIT_GOOD;
}

int ctl_begin(const struct ctl *ctl)
{
    struct dw_steer_begin begin = {.warmup_ms = ctl->warmup_ms, .duration_ms = ctl->duration_ms};
    struct dw_buffer request = {0};
    enum dw_error error = dw_steer_encode_begin(&request, &begin);
    return print_json_reply(ctl, DW_METHOD_BEGIN, error, &request);
}

int ctl_status(const struct ctl *ctl)
{
    struct dw_buffer request = {0};
    return print_json_reply(ctl, DW_METHOD_STATUS, DW_OK, &request);
}

int ctl_report(const struct ctl *ctl)
{
    struct dw_buffer request = {0};
    return print_json_reply(ctl, DW_METHOD_REPORT, DW_OK, &request);
}

int ctl_digest(const struct ctl *ctl)
{
    struct dw_buffer request = {0};
    return print_json_reply(ctl, DW_METHOD_DIGEST, DW_OK, &request);
}

int ctl_failpoint(const struct ctl *ctl)
{
    struct dw_buffer request = {0};
    enum dw_error error = dw_steer_encode_failpoint(&request, ctl->spec);
    return print_json_reply(ctl, DW_METHOD_FAILPOINT, error, &request);
}
