/* forged_client - a peer that speaks in another's name: connects as it is told, sends one item, and prints
 * what becomes of its stream.
 *
 * usage: forged_client ADDRESS TO_ROLE TO_NODE RUN_ID PROTOCOL AS_ROLE AS_NODE ITEM CLAIMED
 *
 * Roles are "storage", "compute" and "client". ITEM is "log" (a denial in log 0), "vote" (a vote request to
 * node 0) or "access"; CLAIMED is the node that it says it comes from. Prints "down TEXT", or "reply ANSWER"
 * if a log answered; exits 0 after either.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/rpc.h"
#include "wire/codec.h"

struct forger {
    struct dw_buffer batch;
    struct dw_decoder decoder;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool over;
};

static void die(const char *text)
{
    fprintf(stderr, "forged_client: %s\n", text);
    exit(3);
}

/* Says so, once. */
static void end(struct forger *forger, const char *what, const char *text)
{
    pthread_mutex_lock(&forger->mutex);
    if (!forger->over) {
        printf("%s %s\n", what, text);
        fflush(stdout);
    }
    forger->over = true;
    pthread_cond_signal(&forger->changed);
    pthread_mutex_unlock(&forger->mutex);
}

static void on_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    struct forger *forger = user;
    (void)peer;
    if (dw_conn_send(conn, forger->batch.data, forger->batch.size) != DW_OK) {
        die("cannot send");
    }
}

static void on_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    (void)conn;
    (void)error;
    end(user, "down", text);
}

static void on_log_reply(void *user, const struct dw_wire_log_reply *reply)
{
    end(user, "reply", dw_answer_name(reply->reply.answer));
}

static enum dw_error on_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    static const struct dw_batch_visitor visitor = {.log_reply = on_log_reply};
    struct forger *forger = user;
    (void)conn;
    return dw_decode_batch(&forger->decoder, data, size, &visitor, forger, NULL);
}

static enum dw_role role_of(const char *name)
{
    if (strcmp(name, "storage") == 0) {
        return DW_ROLE_STORAGE;
    }
    return strcmp(name, "compute") == 0 ? DW_ROLE_COMPUTE : DW_ROLE_CLIENT;
}

static enum dw_error forge(struct dw_buffer *batch, const char *item, uint32_t claimed)
{
    const struct dw_txn_id txn = {.coordinator = 1, .incarnation = 1, .sequence = 1};
    if (strcmp(item, "log") == 0) {
        const struct dw_wire_log_request request = {
            .request = {.txn = txn, .writer = claimed, .incarnation = 1, .ask = DW_ASK_DENY}, .force = true};
        return dw_encode_log_request(batch, &request);
    }
    if (strcmp(item, "vote") == 0) {
        const struct dw_message message = {
            .kind = DW_MSG_VOTE_REQUEST, .from = claimed, .txn = txn, .writers = 1};
        return dw_encode_message(batch, &message, NULL);
    }
    const struct dw_wire_access access = {.kind = 1};
    const struct dw_wire_access_request request = {
        .txn = txn, .from = claimed, .token = {.accesses = 1}, .accesses = &access, .access_count = 1};
    return dw_encode_access_request(batch, &request);
}

static uint32_t number(const char *word)
{
    return (uint32_t)strtoul(word, NULL, 10);
}

int main(int argc, char **argv)
{
    struct forger forger = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    if (argc != 10) {
        die("nine words are wanted");
    }
    struct dw_identity expect = {.role = role_of(argv[2]), .node = number(argv[3])};
    struct dw_rpc_options options = {
        .self = {.role = role_of(argv[6]), .node = number(argv[7])},
        .handlers = {.on_up = on_up, .on_message = on_message, .on_down = on_down},
        .user = &forger,
    };
    struct dw_rpc *rpc;
    struct dw_conn *conn;
    char text[256];
    snprintf(options.self.run_id, sizeof options.self.run_id, "%s", argv[4]);
    snprintf(options.self.protocol, sizeof options.self.protocol, "%s", argv[5]);
    if (forge(&forger.batch, argv[8], number(argv[9])) != DW_OK) {
        die("no such item");
    }
    if (dw_rpc_start(&options, &rpc, text, sizeof text) != DW_OK) {
        die(text);
    }
    if (dw_rpc_connect(rpc, argv[1], &expect, &conn) != DW_OK) {
        die("wrong address");
    }
    pthread_mutex_lock(&forger.mutex);
    while (!forger.over) {
        pthread_cond_wait(&forger.changed, &forger.mutex);
    }
    pthread_mutex_unlock(&forger.mutex);
    dw_rpc_stop(rpc);
    dw_decoder_close(&forger.decoder);
    dw_buffer_free(&forger.batch);
    return 0;
}
