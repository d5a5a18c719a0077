#include "client.h"

#include <stdio.h>
#include <stdlib.h>

void client_die(const char *text)
{
    fprintf(stderr, "client: %s\n", text);
    exit(3);
}

static void on_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    struct client *client = user;
    (void)peer;
    pthread_mutex_lock(&client->mutex);
    client->up = true;
    client->conn = conn;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->mutex);
    if (client->on_up != NULL) {
        client->on_up(client);
    }
}

static void on_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    struct client *client = user;
    (void)conn;
    pthread_mutex_lock(&client->mutex);
    client->up = false;
    client->downs++;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->mutex);
    if (client->on_down != NULL) {
        client->on_down(client, error, text);
    }
}

static void on_reply(void *user, const struct dw_wire_log_reply *reply)
{
    struct client *client = user;
    client->on_reply(client, reply);
}

static enum dw_error on_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    static const struct dw_batch_visitor visitor = {.log_reply = on_reply};
    struct client *client = user;
    (void)conn;
    enum dw_error error = dw_decode_batch(&client->decoder, data, size, &visitor, client, NULL);
    if (error == DW_OK && client->on_message_end != NULL) {
        client->on_message_end(client);
    }
    return error;
}

void client_open(struct client *client, const char *address, const char *node, const char *run_id)
{
    char text[256];
    struct dw_conn *conn;
    struct dw_identity expect = {.role = DW_ROLE_STORAGE, .node = (uint32_t)strtoul(node, NULL, 10)};
    struct dw_rpc_options options = {
        .self = {.role = DW_ROLE_CLIENT},
        .reconnect_ms = 1,
        .handlers = {.on_up = on_up, .on_message = on_message, .on_down = on_down},
        .user = client,
    };
    snprintf(options.self.run_id, sizeof options.self.run_id, "%s", run_id);
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->changed, NULL);
    if (dw_rpc_start(&options, &client->rpc, text, sizeof text) != DW_OK) {
        client_die(text);
    }
    if (dw_rpc_connect(client->rpc, address, &expect, &conn) != DW_OK) {
        client_die("wrong address");
    }
}

void client_close(struct client *client)
{
    dw_rpc_stop(client->rpc);
    dw_decoder_close(&client->decoder);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->mutex);
}

void client_wait_up(struct client *client)
{
    pthread_mutex_lock(&client->mutex);
    while (!client->up) {
        pthread_cond_wait(&client->changed, &client->mutex);
    }
    pthread_mutex_unlock(&client->mutex);
}
