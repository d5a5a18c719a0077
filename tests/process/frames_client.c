/* frames_client - throws malformed, truncated, random, oversized and strange messages at a storage node, from
 * a seed. After each it sends a plain READ: either that is answered, or the node closes the stream, and the
 * next message goes on a new one.
 *
 * usage: frames_client ADDRESS NODE RUN_ID SEED ROUNDS
 * output: "answered N refused N oversized N"
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/random.h"
#include "client.h"
#include "tests/rpc/raw.h"

enum { FRAME_MAX = 64 * 1024, OVERSIZED_CALLS = 4 };

#define PROBE UINT64_C(0x7072616265)

struct storm {
    struct dw_random random;
    struct dw_buffer frame;
    uint64_t probes; /* answered; under the client's mutex */
};

static uint32_t below(struct storm *storm, uint32_t bound)
{
    return (uint32_t)dw_random_below(&storm->random, bound);
}

static void put(struct storm *storm, const void *data, size_t size)
{
    uint8_t *to = dw_buffer_reserve(&storm->frame, size);
    if (to == NULL) {
        client_die("out of memory");
    }
    memcpy(to, data, size);
    storm->frame.size += size;
}

static void put_random(struct storm *storm, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)dw_random_next(&storm->random);
        put(storm, &byte, 1);
    }
}

static void put_log_request(struct storm *storm)
{
    static const uint8_t redo[256];
    struct dw_wire_log_request request = {
        .id = dw_random_next(&storm->random),
        .request = {.txn = {.coordinator = below(storm, DW_MAX_NODES),
                            .incarnation = 1 + below(storm, 3),
                            .sequence = dw_random_next(&storm->random)},
                    .log = 8 + below(storm, 8),
                    .writer = below(storm, DW_MAX_NODES),
                    .incarnation = below(storm, 3),
                    .ask = DW_ASK_VOTE},
        .participants = dw_random_next(&storm->random),
        .redo = redo,
        .redo_size = below(storm, sizeof redo),
        .force = below(storm, 2) == 0,
    };
    if (dw_encode_log_request(&storm->frame, &request) != DW_OK) {
        client_die("a request cannot be encoded");
    }
}

/* Well-formed, but nothing that a storage node takes. */
static void put_strange(struct storm *storm)
{
    struct dw_message message = {
        .kind = DW_MSG_ACK, .from = 1, .to = 2, .txn = {.coordinator = 2, .incarnation = 1, .sequence = 3}};
    struct dw_wire_log_reply reply = {
        .id = 1, .reply = {.txn = message.txn, .ask = DW_ASK_VOTE, .answer = DW_ANSWER_ABORT}};
    enum dw_error error = below(storm, 2) == 0 ? dw_encode_message(&storm->frame, &message, NULL)
                                               : dw_encode_log_reply(&storm->frame, &reply);
    if (error != DW_OK) {
        client_die("a message cannot be encoded");
    }
}

static void put_requests(struct storm *storm)
{
    for (uint32_t i = 1 + below(storm, 20); i > 0; i--) {
        put_log_request(storm);
    }
}

static void flip_bits(struct storm *storm)
{
    for (uint32_t i = 1 + below(storm, 8); i > 0; i--) {
        storm->frame.data[below(storm, (uint32_t)storm->frame.size)] ^= (uint8_t)(1u << below(storm, 8));
    }
}

static void make_frame(struct storm *storm)
{
    static const uint8_t endless_length[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff,
                                             0xff, 0xff, 0xff, 0xff, 0x01};
    static const uint8_t empty_item[] = {0x0a, 0x00};
    static const uint8_t unknown_field[] = {0x0a, 0x04, 0xf8, 0xff, 0x03, 0x01};
    storm->frame.size = 0;
    switch (below(storm, 8)) {
    case 0:
        put_random(storm, 1 + below(storm, 4096));
        break;
    case 1:
        put_requests(storm);
        flip_bits(storm);
        break;
    case 2:
        put_requests(storm);
        storm->frame.size = 1 + below(storm, (uint32_t)storm->frame.size);
        break;
    case 3:
        put(storm, endless_length, sizeof endless_length);
        break;
    case 4:
        while (storm->frame.size < FRAME_MAX) {
            put(storm, empty_item, sizeof empty_item);
        }
        break;
    case 5:
        put_requests(storm);
        put(storm, unknown_field, sizeof unknown_field);
        break;
    case 6:
        put_strange(storm);
        break;
    default:
        put_requests(storm);
        break;
    }
}

static void on_reply(struct client *client, const struct dw_wire_log_reply *reply)
{
    struct storm *storm = client->user;
    if (reply->id == PROBE && reply->reply.ask == DW_ASK_READ) {
        pthread_mutex_lock(&client->mutex);
        storm->probes++;
        pthread_cond_broadcast(&client->changed);
        pthread_mutex_unlock(&client->mutex);
    }
}

static void send_probe(struct client *client)
{
    struct dw_buffer buffer = {0};
    struct dw_wire_log_request probe = {.id = PROBE,
                                        .request = {.txn = {.incarnation = 1}, .ask = DW_ASK_READ}};
    if (dw_encode_log_request(&buffer, &probe) != DW_OK) {
        client_die("out of memory");
    }
    enum dw_error error = dw_conn_send(client->conn, buffer.data, buffer.size);
    dw_buffer_free(&buffer);
    if (error != DW_OK && error != DW_ERR_CLOSED) {
        client_die(dw_error_text(error));
    }
}

/* True if the node answered the probe, false if it closed the stream. */
static bool round_trip(struct client *client, struct storm *storm)
{
    client_wait_up(client);
    pthread_mutex_lock(&client->mutex);
    uint64_t probes = storm->probes;
    unsigned downs = client->downs;
    pthread_mutex_unlock(&client->mutex);
    make_frame(storm);
    enum dw_error error = dw_conn_send(client->conn, storm->frame.data, storm->frame.size);
    if (error != DW_OK && error != DW_ERR_CLOSED) {
        client_die(dw_error_text(error));
    }
    send_probe(client);
    pthread_mutex_lock(&client->mutex);
    while (storm->probes == probes && client->downs == downs) {
        pthread_cond_wait(&client->changed, &client->mutex);
    }
    bool answered = storm->probes != probes;
    pthread_mutex_unlock(&client->mutex);
    return answered;
}

/* Messages beyond the limit, as a stream's first message and as an administration call's request. */
static unsigned throw_oversized(const char *address, const char *run_id)
{
    static const char *const paths[] = {"/dogwood.v1.Node/Stream", "/dogwood.v1.Node/Scan"};
    unsigned refused = 0;
    char text[256];
    for (int i = 0; i < OVERSIZED_CALLS; i++) {
        struct raw_call call = {.path = paths[i % 2],
                                .run_id = run_id,
                                .role = "client",
                                .version = DW_VERSION,
                                .message_size = DW_MAX_MESSAGE + 4096 + (size_t)i * DW_MAX_MESSAGE};
        refused += raw_run(address, &call, text, sizeof text) != GRPC_STATUS_OK;
    }
    return refused;
}

int main(int argc, char **argv)
{
    static struct storm storm;
    struct client client = {.on_reply = on_reply, .user = &storm};
    uint64_t answered = 0;
    if (argc != 6) {
        client_die("usage: frames_client ADDRESS NODE RUN_ID SEED ROUNDS");
    }
    dw_random_init(&storm.random, strtoull(argv[4], NULL, 10));
    uint64_t rounds = strtoull(argv[5], NULL, 10);
    unsigned oversized = throw_oversized(argv[1], argv[3]);
    client_open(&client, argv[1], argv[2], argv[3]);
    for (uint64_t i = 0; i < rounds; i++) {
        answered += round_trip(&client, &storm);
    }
    client_close(&client);
    dw_buffer_free(&storm.frame);
    printf("answered %" PRIu64 " refused %" PRIu64 " oversized %u\n", answered, rounds - answered, oversized);
    return 0;
}
