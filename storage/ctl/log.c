#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "storage/ctl/ctl.h"
#include "storage/options.h"

/* One request on its way. `state` and what follows are shared with the loop thread, under the mutex. */
struct exchange {
    const struct ctl *ctl;
    struct dw_buffer request;
    struct dw_decoder decoder;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum { WAITING, ANSWERED, FAILED } state;
    struct dw_wire_log_reply reply;
    enum dw_error error;
    char text[512];
};

static void settle(struct exchange *exchange, int state, enum dw_error error, const char *text)
{
    pthread_mutex_lock(&exchange->mutex);
    if (exchange->state == WAITING) {
        exchange->state = state;
        exchange->error = error;
        snprintf(exchange->text, sizeof exchange->text, "%s", text);
        pthread_cond_signal(&exchange->changed);
    }
    pthread_mutex_unlock(&exchange->mutex);
}

static void on_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    struct exchange *exchange = user;
    (void)peer;
    enum dw_error error = dw_conn_send(conn, exchange->request.data, exchange->request.size);
    if (error != DW_OK) {
        settle(exchange, FAILED, error, dw_error_text(error));
    }
}

static void on_reply(void *user, const struct dw_wire_log_reply *reply)
{
    struct exchange *exchange = user;
    pthread_mutex_lock(&exchange->mutex);
    exchange->reply = *reply;
    pthread_mutex_unlock(&exchange->mutex);
}

static enum dw_error on_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    static const struct dw_batch_visitor visitor = {.log_reply = on_reply};
    struct exchange *exchange = user;
    const char *text = NULL;
    (void)conn;
    enum dw_error error = dw_decode_batch(&exchange->decoder, data, size, &visitor, exchange, &text);
    if (error != DW_OK) {
        settle(exchange, FAILED, error, text != NULL ? text : dw_error_text(error));
    } else {
        settle(exchange, ANSWERED, DW_OK, "");
    }
    return error;
}

static void on_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    (void)conn;
    settle(user, FAILED, error, text);
}

static enum dw_error encode(const struct ctl *ctl, struct dw_buffer *buffer)
{
    bool lists = ctl->ask == DW_ASK_VOTE || ctl->ask == DW_ASK_START || ctl->ask == DW_ASK_COORD_COMMIT;
    uint64_t participants = ctl->participants;
    if (lists && participants == 0) {
        participants = dw_node_bit(ctl->log) | dw_node_bit(ctl->txn.coordinator);
    }
    struct dw_wire_log_request request = {
        .id = 1,
        .request = {.txn = ctl->txn,
                    .log = ctl->log,
                    .writer = ctl->has_writer ? ctl->writer : ctl->log,
                    .incarnation = ctl->has_incarnation ? ctl->incarnation : ctl->txn.incarnation,
                    .ask = ctl->ask},
        .participants = participants,
        .redo = (const uint8_t *)ctl->redo,
        .redo_size = ctl->redo == NULL ? 0 : strlen(ctl->redo),
        .force = !ctl->no_force,
    };
    return dw_encode_log_request(buffer, &request);
}

static void await(struct exchange *exchange)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += exchange->ctl->timeout_ms / 1000;
    until.tv_nsec += (long)(exchange->ctl->timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int late = 0;
    pthread_mutex_lock(&exchange->mutex);
    while (exchange->state == WAITING && late == 0) {
        late = pthread_cond_timedwait(&exchange->changed, &exchange->mutex, &until);
    }
    pthread_mutex_unlock(&exchange->mutex);
    char text[256];
    snprintf(text, sizeof text,
             "no answer from %.100s within %" PRIu32
             " ms: the outcome is unknown; ask again, or raise --timeout-ms "
             "above the delay",
             exchange->ctl->address, exchange->ctl->timeout_ms);
    settle(exchange, FAILED, DW_ERR_TIMEOUT, text);
}

static void exchange_init(struct exchange *exchange, const struct ctl *ctl)
{
    pthread_condattr_t attributes;
    *exchange = (struct exchange){.ctl = ctl};
    pthread_mutex_init(&exchange->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&exchange->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void exchange_close(struct exchange *exchange)
{
    dw_buffer_free(&exchange->request);
    dw_decoder_close(&exchange->decoder);
    pthread_cond_destroy(&exchange->changed);
    pthread_mutex_destroy(&exchange->mutex);
}

static void run(struct exchange *exchange, uint32_t node)
{
    struct dw_rpc *rpc;
    struct dw_conn *conn;
    char text[256];
    struct dw_identity expect = {.role = DW_ROLE_STORAGE, .node = node};
    struct dw_rpc_options options = {
        .self = exchange->ctl->self,
        .handlers = {.on_up = on_up, .on_message = on_message, .on_down = on_down},
        .user = exchange};
    enum dw_error error = dw_rpc_start(&options, &rpc, text, sizeof text);
    if (error != DW_OK) {
        settle(exchange, FAILED, error, text);
        return;
    }
    error = dw_rpc_connect(rpc, exchange->ctl->address, &expect, &conn);
    if (error != DW_OK) {
        settle(exchange, FAILED, error, dw_error_text(error));
    }
    await(exchange);
    dw_rpc_stop(rpc);
}

static void print_reply(const struct ctl *ctl, const struct dw_wire_log_reply *reply)
{
    const char *ask = dw_ask_name(reply->reply.ask);
    const char *answer = dw_answer_name(reply->reply.answer);
    if (ctl->json) {
        printf("{\"log\":%" PRIu32 ",\"txn\":\"", reply->reply.log);
        print_txn(reply->reply.txn);
        printf("\",\"ask\":\"%s\",\"answer\":\"%s\",\"position\":%" PRIu64 ",\"incarnation\":%" PRIu32 "}\n",
               ask, answer, reply->reply.position, reply->incarnation);
    } else {
        printf("%s of transaction ", ask);
        print_txn(reply->reply.txn);
        printf(" in log %" PRIu32 ": %s", reply->reply.log, answer);
        if (reply->reply.position != 0) {
            printf(", entry at position %" PRIu64, reply->reply.position);
        }
        printf(", owner's incarnation %" PRIu32 "\n", reply->incarnation);
    }
}

int ctl_log(const struct ctl *ctl)
{
    struct dw_admin_identity identity;
    struct exchange exchange;
    int code;
    exchange_init(&exchange, ctl);
    enum dw_error error = encode(ctl, &exchange.request);
    if (error != DW_OK) {
        exchange_close(&exchange);
        return ctl_fail(error, error == DW_ERR_TOO_LARGE
                                   ? "--redo is too long: give at most 1 MiB"
                                   : "this ask takes no --redo or no --participants: leave them out");
    }
    if (!ctl_call_identify(ctl, &identity, &code)) {
        exchange_close(&exchange);
        return code;
    }
    run(&exchange, identity.node);
    if (exchange.state == ANSWERED) {
        print_reply(ctl, &exchange.reply);
        code = EXIT_GOOD;
    } else {
        code = ctl_fail(exchange.error, exchange.text);
    }
    exchange_close(&exchange);
    return code;
}
