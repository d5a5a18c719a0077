/* stream_client - a stream to a storage node that a test drives: commands come in on standard input, events
 * go out on standard output, one a line.
 *
 * usage: stream_client ADDRESS NODE RUN_ID
 *
 * commands:
 *   add ID LOG ASK COORDINATOR INCARNATION SEQUENCE WRITER WRITER_INCARNATION REDO_BYTES
 *               puts a request into the message; redo is the low byte of ID, repeated
 *   send        sends the message; waits while too much is queued
 *   raw HEX     sends these bytes as they are
 *   quit
 * events:
 *   up | down ERROR TEXT
 *   reply ID ASK ANSWER POSITION INCARNATION
 *   end         of a message: the replies since the last `end` came in one
 *   unsent ERROR   after a send or raw that failed
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "client.h"

enum { MAX_RAW = 1 << 20, RETRY_US = 1000 };

static void say_up(struct client *client)
{
    (void)client;
    puts("up");
}

static void say_reply(struct client *client, const struct dw_wire_log_reply *reply)
{
    (void)client;
    printf("reply %" PRIu64 " %s %s %" PRIu64 " %" PRIu32 "\n", reply->id, dw_ask_name(reply->reply.ask),
           dw_answer_name(reply->reply.answer), reply->reply.position, reply->incarnation);
}

static void say_end(struct client *client)
{
    (void)client;
    puts("end");
}

static void say_down(struct client *client, enum dw_error error, const char *text)
{
    (void)client;
    printf("down %d %s\n", (int)error, text);
}

static void add(struct dw_buffer *message, char *words)
{
    static uint8_t redo[DW_MAX_REDO];
    uint64_t numbers[9];
    for (size_t i = 0; i < 9; i++) {
        numbers[i] = strtoull(words, &words, 10);
    }
    memset(redo, (int)(numbers[0] & 0xff), sizeof redo);
    struct dw_wire_log_request request = {
        .id = numbers[0],
        .request = {.log = (uint32_t)numbers[1],
                    .ask = (enum dw_ask)numbers[2],
                    .txn = {.coordinator = (uint32_t)numbers[3],
                            .incarnation = (uint32_t)numbers[4],
                            .sequence = numbers[5]},
                    .writer = (uint32_t)numbers[6],
                    .incarnation = (uint32_t)numbers[7]},
        .participants = numbers[2] == DW_ASK_VOTE ? dw_node_bit((uint32_t)numbers[1]) : 0,
        .redo = redo,
        .redo_size = numbers[8],
        .force = true,
    };
    if (numbers[8] > sizeof redo || dw_encode_log_request(message, &request) != DW_OK) {
        client_die("a request cannot be encoded");
    }
}

/* A full queue empties as the peer reads, which nobody tells a sender. */
static enum dw_error send_when_room(struct client *client, const uint8_t *data, size_t size)
{
    enum dw_error error = dw_conn_send(client->conn, data, size);
    while (error == DW_ERR_FULL) {
        usleep(RETRY_US);
        error = dw_conn_send(client->conn, data, size);
    }
    return error;
}

static enum dw_error send_hex(struct client *client, const char *hex)
{
    static uint8_t bytes[MAX_RAW];
    size_t size = 0;
    unsigned byte;
    while (size < MAX_RAW && sscanf(hex + 2 * size, "%2x", &byte) == 1) {
        bytes[size++] = (uint8_t)byte;
    }
    return send_when_room(client, bytes, size);
}

static void say_unsent(enum dw_error error)
{
    if (error != DW_OK) {
        printf("unsent %d\n", (int)error);
    }
}

static bool obey(struct client *client, struct dw_buffer *message, char *line)
{
    if (strncmp(line, "add ", 4) == 0) {
        add(message, line + 4);
    } else if (strcmp(line, "send\n") == 0) {
        client_wait_up(client);
        say_unsent(send_when_room(client, message->data, message->size));
        message->size = 0;
    } else if (strncmp(line, "raw ", 4) == 0) {
        client_wait_up(client);
        say_unsent(send_hex(client, line + 4));
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static char line[2 * MAX_RAW + 16];
    struct dw_buffer message = {0};
    struct client client = {
        .on_up = say_up, .on_reply = say_reply, .on_message_end = say_end, .on_down = say_down};
    if (argc != 4) {
        client_die("usage: stream_client ADDRESS NODE RUN_ID");
    }
    setlinebuf(stdout);
    client_open(&client, argv[1], argv[2], argv[3]);
    while (fgets(line, sizeof line, stdin) != NULL && obey(&client, &message, line)) {
    }
    client_close(&client);
    dw_buffer_free(&message);
    return 0;
}
