/* load_client - keeps votes in flight on one log, and writes the sequence number of each acknowledged one to
 * standard output before anything else is sent. Ends with 0 when its stream goes down.
 *
 * usage: load_client ADDRESS NODE RUN_ID LOG FIRST_SEQUENCE DEPTH REDO_BYTES
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

enum { MAX_DEPTH = 4096, LINE = 24 };

struct load {
    uint32_t log;
    uint64_t sequence;
    unsigned depth;
    size_t redo_bytes;
    struct dw_buffer requests;
    char lines[MAX_DEPTH * LINE];
    size_t used;
    unsigned answered;
    uint8_t redo[DW_MAX_REDO];
    bool over; /* under the client's mutex */
};

static void add_vote(struct load *load)
{
    struct dw_wire_log_request request = {
        .id = load->sequence,
        .request = {.txn = {.coordinator = load->log, .incarnation = 1, .sequence = load->sequence},
                    .log = load->log,
                    .writer = load->log,
                    .incarnation = 1,
                    .ask = DW_ASK_VOTE},
        .participants = dw_node_bit(load->log),
        .redo = load->redo,
        .redo_size = load->redo_bytes,
        .force = true,
    };
    /* The redo tells its transaction, so that a reader can tell whose bytes it got. */
    memcpy(load->redo, &load->sequence, sizeof load->sequence);
    load->sequence++;
    if (dw_encode_log_request(&load->requests, &request) != DW_OK) {
        client_die("out of memory");
    }
}

static void send_votes(struct client *client, unsigned count)
{
    struct load *load = client->user;
    load->requests.size = 0;
    for (unsigned i = 0; i < count; i++) {
        add_vote(load);
    }
    enum dw_error error = dw_conn_send(client->conn, load->requests.data, load->requests.size);
    if (error != DW_OK && error != DW_ERR_CLOSED) {
        client_die(dw_error_text(error));
    }
}

static void on_up(struct client *client)
{
    struct load *load = client->user;
    send_votes(client, load->depth);
}

static void on_reply(struct client *client, const struct dw_wire_log_reply *reply)
{
    struct load *load = client->user;
    if (reply->reply.answer != DW_ANSWER_VOTE_YES) {
        client_die(dw_answer_name(reply->reply.answer));
    }
    load->answered++;
    load->used +=
        (size_t)snprintf(load->lines + load->used, LINE, "%" PRIu64 "\n", reply->reply.txn.sequence);
}

static void on_message_end(struct client *client)
{
    struct load *load = client->user;
    if (write(STDOUT_FILENO, load->lines, load->used) != (ssize_t)load->used) {
        client_die("nobody reads the acknowledgements");
    }
    unsigned answered = load->answered;
    load->used = 0;
    load->answered = 0;
    send_votes(client, answered);
}

static void on_down(struct client *client, enum dw_error error, const char *text)
{
    struct load *load = client->user;
    (void)error;
    (void)text;
    pthread_mutex_lock(&client->mutex);
    load->over = true;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->mutex);
}

int main(int argc, char **argv)
{
    static struct load load;
    struct client client = {.on_up = on_up,
                            .on_reply = on_reply,
                            .on_message_end = on_message_end,
                            .on_down = on_down,
                            .user = &load};
    if (argc != 8) {
        client_die("usage: load_client ADDRESS NODE RUN_ID LOG FIRST_SEQUENCE DEPTH REDO_BYTES");
    }
    load.log = (uint32_t)strtoul(argv[4], NULL, 10);
    load.sequence = strtoull(argv[5], NULL, 10);
    load.depth = (unsigned)strtoul(argv[6], NULL, 10);
    load.redo_bytes = strtoull(argv[7], NULL, 10);
    if (load.depth == 0 || load.depth > MAX_DEPTH || load.redo_bytes < sizeof load.sequence ||
        load.redo_bytes > DW_MAX_REDO) {
        client_die("a number is out of range");
    }
    client_open(&client, argv[1], argv[2], argv[3]);
    pthread_mutex_lock(&client.mutex);
    while (!load.over) {
        pthread_cond_wait(&client.changed, &client.mutex);
    }
    pthread_mutex_unlock(&client.mutex);
    client_close(&client);
    dw_buffer_free(&load.requests);
    return 0;
}
