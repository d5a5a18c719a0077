/* Do accesses leave room for the protocol on a stream whose peer does not read, and is a peer heard in its
 * own name only? A runtime with real streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "compute/runtime.h"
#include "tests/rpc/fixture.h"

static const struct dw_txn_id txn = {.coordinator = 1, .incarnation = 1, .sequence = 1};

/* --- a peer that does not read --- */

enum { BOUND = 1 << 20, RESERVED = 1 << 18, VALUE = 20000, DECISIONS = 1000 };

struct tally {
    unsigned messages;
    unsigned accesses;
};

static void tally_message(void *user, const struct dw_message *message, const struct dw_token *token)
{
    struct tally *tally = user;
    (void)message;
    (void)token;
    tally->messages++;
}

static void tally_request(void *user, const struct dw_wire_access_request *request)
{
    struct tally *tally = user;
    (void)request;
    tally->accesses++;
}

/* What arrived, which may be more than one message's worth; a part of the items ends at each border. */
static struct tally tally_of(const struct endpoint *endpoint)
{
    static const struct dw_batch_visitor visitor = {.message = tally_message,
                                                    .access_request = tally_request};
    struct tally tally = {0};
    struct dw_decoder decoder = {0};
    assert_true(endpoint->size <= DW_MAX_MESSAGE);
    assert_int_equal(dw_decode_batch(&decoder, endpoint->bytes, endpoint->size, &visitor, &tally, NULL),
                     DW_OK);
    dw_decoder_close(&decoder);
    return tally;
}

/* Node 1 of two, whose stream to node 0 is driven from the test's thread. */
struct sender {
    struct runtime runtime;
    struct runtime_options options;
    struct cluster cluster;
    struct endpoint *self;
    struct endpoint *peer;
    unsigned accesses; /* sent */
};

static int sender_set_up(void **state)
{
    static const struct dw_identity expect = {.role = DW_ROLE_COMPUTE, .node = 0};
    struct sender *sender = calloc(1, sizeof *sender);
    assert_non_null(sender);
    struct dw_rpc_options peer = endpoint_options(DW_ROLE_COMPUTE, 0, "127.0.0.1:0");
    struct dw_rpc_options self = endpoint_options(DW_ROLE_COMPUTE, 1, NULL);
    self.max_queue_bytes = BOUND;
    self.reserved_bytes = RESERVED;
    sender->cluster = (struct cluster){.compute_nodes = 2, .storage_nodes = 1};
    sender->options.node = 1;
    sender->runtime.options = &sender->options;
    sender->runtime.cluster = &sender->cluster;
    sender->peer = endpoint_start(&peer);
    sender->self = endpoint_start(&self);
    struct dw_conn *conn = NULL;
    assert_int_equal(dw_rpc_connect(sender->self->rpc, sender->peer->address, &expect, &conn), DW_OK);
    AWAIT(sender->self, e->ups == 1);
    links_up(&sender->runtime, conn, &expect);
    *state = sender;
    return 0;
}

static int sender_tear_down(void **state)
{
    struct sender *sender = *state;
    endpoint_set(sender->peer, &sender->peer->block, false);
    endpoint_stop(sender->self);
    endpoint_stop(sender->peer);
    /* The opened connection went with its endpoint; nothing of the runtime refers to it any more. */
    sender->runtime.compute[0].conn = NULL;
    links_close(&sender->runtime);
    free(sender);
    return 0;
}

static void send_access(struct sender *sender)
{
    static const uint8_t value[VALUE];
    const struct dw_wire_access access = {.kind = DW_ACCESS_WRITE, .value = value, .value_size = VALUE};
    const struct dw_wire_access_request request = {
        .txn = txn, .from = 1, .token = {.accesses = 1}, .accesses = &access, .access_count = 1};
    links_send_access(&sender->runtime, 0, &request);
    sender->accesses++;
}

static void send_decision(struct sender *sender)
{
    const struct dw_message message = {
        .kind = DW_MSG_DECISION, .from = 1, .value = DW_OUTCOME_COMMITTED, .txn = txn};
    links_send_message(&sender->runtime, &message, NULL);
}

/* Until accesses are refused, and no socket takes anything any more: `refused` in a row. */
static void stuff(struct sender *sender)
{
    struct endpoint *peer = sender->peer;
    endpoint_set(peer, &peer->block, true);
    send_access(sender);
    links_flush(&sender->runtime);
    AWAIT(peer, e->blocked);
    uint64_t in_a_row = 0;
    while (in_a_row < 100) {
        uint64_t before = sender->runtime.refused.accesses;
        send_access(sender);
        links_flush(&sender->runtime);
        in_a_row = sender->runtime.refused.accesses > before ? in_a_row + 1 : 0;
        assert_true(sender->accesses < 200 * (BOUND / VALUE));
    }
    assert_int_equal(sender->runtime.refused.messages, 0);
}

/* "Protocol messages have their capacity reserved; only accesses and new transactions wait." */
static void accesses_never_make_a_decision_unsendable(void **state)
{
    struct sender *sender = *state;
    stuff(sender);
    for (unsigned i = 0; i < DECISIONS; i++) {
        /* An access in the same flush is refused without it. */
        if (i % 10 == 0) {
            send_access(sender);
        }
        send_decision(sender);
        links_flush(&sender->runtime);
    }
    assert_int_equal(sender->runtime.refused.messages, 0);
    endpoint_set(sender->peer, &sender->peer->block, false);
    /* Accesses were sent before, and arrive before. */
    unsigned arrived = sender->accesses - (unsigned)sender->runtime.refused.accesses;
    AWAIT(sender->peer, e->size > 0 && tally_of(e).messages == DECISIONS);
    struct tally tally = tally_of(sender->peer);
    assert_int_equal(tally.accesses, arrived);
    assert_int_equal(sender->self->downs, 0);
}

/* The reserve is bounded too, and what it refuses is counted as such. */
static void refused_messages_are_counted(void **state)
{
    struct sender *sender = *state;
    unsigned messages = 0;
    stuff(sender);
    while (sender->runtime.refused.messages == 0) {
        for (unsigned i = 0; i < 10; i++) {
            send_decision(sender);
        }
        links_flush(&sender->runtime);
        messages += 10;
        assert_true(messages < BOUND);
    }
    assert_int_equal(sender->runtime.refused.messages, 10);
    assert_true(messages > DECISIONS);
}

/* What is lost because the stream is down was not refused. */
static void what_a_closed_stream_loses_is_not_called_refused(void **state)
{
    struct sender *sender = *state;
    endpoint_halt(sender->peer);
    AWAIT(sender->self, e->downs >= 1);
    send_access(sender);
    send_decision(sender);
    links_flush(&sender->runtime);
    assert_int_equal(sender->runtime.refused.accesses, 0);
    assert_int_equal(sender->runtime.refused.messages, 0);
}

/* --- a peer that speaks for others --- */

/* Node 0 of three, over two storage nodes; its parts run on its loop thread. */
struct node {
    struct runtime runtime;
    struct runtime_options options;
    struct cluster cluster;
    char address[64];
};

static void node_up(void *user, struct dw_conn *conn, const struct dw_identity *peer)
{
    links_up(user, conn, peer);
}

static void node_down(void *user, struct dw_conn *conn, enum dw_error error, const char *text)
{
    links_down(user, conn, error, text);
}

static enum dw_error node_message(void *user, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    return intake_message(user, conn, data, size);
}

static uint64_t node_tick(void *user, uint64_t now_us)
{
    (void)now_us;
    links_flush(user);
    return UINT64_MAX;
}

static int node_set_up(void **state)
{
    struct node *node = calloc(1, sizeof *node);
    assert_non_null(node);
    char text[256];
    struct runtime *runtime = &node->runtime;
    node->cluster = (struct cluster){.compute_nodes = 3, .storage_nodes = 2};
    node->options.protocol = dw_protocol_find("cornus");
    for (unsigned timer = 0; timer <= DW_TIMER_FINISH; timer++) {
        node->options.timeout_us[timer] = 1000000000;
    }
    runtime->options = &node->options;
    runtime->cluster = &node->cluster;
    runtime->txns = txn_table_open();
    assert_non_null(runtime->txns);
    runtime->node = (struct dw_node){.incarnation = 1, .state = DW_NODE_SERVING};
    struct dw_rpc_options options = {.self = {.role = DW_ROLE_COMPUTE, .node = 0, .run_id = FIXTURE_RUN_ID},
                                     .listen = "127.0.0.1:0",
                                     .handlers = {.on_up = node_up,
                                                  .on_message = node_message,
                                                  .on_down = node_down,
                                                  .on_tick = node_tick},
                                     .user = runtime};
    assert_int_equal(dw_rpc_start(&options, &runtime->rpc, text, sizeof text), DW_OK);
    snprintf(node->address, sizeof node->address, "127.0.0.1:%u", dw_rpc_port(runtime->rpc));
    *state = node;
    return 0;
}

/* Its parts stand still, and can be looked at. */
static void node_halt(struct node *node)
{
    dw_rpc_stop(node->runtime.rpc);
    node->runtime.rpc = NULL;
}

static int node_tear_down(void **state)
{
    struct node *node = *state;
    if (node->runtime.rpc != NULL) {
        node_halt(node);
    }
    links_close(&node->runtime);
    timers_close(&node->runtime.timers);
    dw_decoder_close(&node->runtime.decoder);
    txn_table_close(node->runtime.txns);
    free(node);
    return 0;
}

/* Sends one batch to the node as this peer, and frees it. */
static struct endpoint *say_as(const struct node *node, enum dw_role role, uint32_t number,
                               struct dw_buffer *batch)
{
    static const struct dw_identity expect = {.role = DW_ROLE_COMPUTE};
    struct dw_rpc_options options = endpoint_options(role, number, NULL);
    options.reconnect_ms = 3600 * 1000;
    struct endpoint *endpoint = endpoint_start(&options);
    struct dw_conn *conn = NULL;
    assert_int_equal(dw_rpc_connect(endpoint->rpc, node->address, &expect, &conn), DW_OK);
    AWAIT(endpoint, e->ups == 1);
    assert_int_equal(dw_conn_send(conn, batch->data, batch->size), DW_OK);
    dw_buffer_free(batch);
    return endpoint;
}

/* The same, and the peer loses its stream with a line that has these words. */
static void refused(const struct node *node, enum dw_role role, uint32_t number, struct dw_buffer *batch,
                    const char *words)
{
    struct endpoint *endpoint = say_as(node, role, number, batch);
    AWAIT(endpoint, e->downs > 0);
    if (strstr(endpoint->down_text, words) == NULL ||
        strstr(endpoint->down_text, "refused by compute node 0, which closes the stream of") == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", endpoint->down_text, words);
    }
    assert_int_equal(endpoint->down_error, DW_ERR_MALFORMED);
    endpoint_stop(endpoint);
}

static struct dw_buffer vote_request(uint32_t from)
{
    struct dw_buffer batch = {0};
    const struct dw_message message = {
        .kind = DW_MSG_VOTE_REQUEST, .from = from, .txn = txn, .writers = dw_node_bit(0) | dw_node_bit(1)};
    assert_int_equal(dw_encode_message(&batch, &message, NULL), DW_OK);
    return batch;
}

static struct dw_buffer access_request(uint32_t from)
{
    struct dw_buffer batch = {0};
    const struct dw_wire_access access = {.kind = DW_ACCESS_READ};
    const struct dw_wire_access_request request = {
        .txn = txn, .from = from, .token = {.accesses = 1}, .accesses = &access, .access_count = 1};
    assert_int_equal(dw_encode_access_request(&batch, &request), DW_OK);
    return batch;
}

static struct dw_buffer access_reply(uint32_t asked)
{
    struct dw_buffer batch = {0};
    const struct dw_wire_access_reply reply = {
        .id = (uint64_t)asked << 32, .txn = txn, .status = ACCESS_MISMATCH, .token = {.accesses = 1}};
    assert_int_equal(dw_encode_access_reply(&batch, &reply), DW_OK);
    return batch;
}

static struct dw_buffer log_reply(uint32_t log)
{
    struct dw_buffer batch = {0};
    const struct dw_wire_log_reply reply = {
        .reply = {.txn = txn, .log = log, .ask = DW_ASK_DENY, .answer = DW_ANSWER_ABORT}};
    assert_int_equal(dw_encode_log_reply(&batch, &reply), DW_OK);
    return batch;
}

static void nobody_speaks_for_another(void **state)
{
    struct node *node = *state;
    struct dw_buffer batch = vote_request(1);
    refused(node, DW_ROLE_COMPUTE, 2, &batch, "commit message: the sender is not the node that sent it");
    batch = access_request(1);
    refused(node, DW_ROLE_COMPUTE, 2, &batch, "access request: the sender is not the node that sent it");
    batch = access_reply(1);
    refused(node, DW_ROLE_COMPUTE, 2, &batch, "access reply: another node was asked");
    batch = log_reply(0);
    refused(node, DW_ROLE_STORAGE, 1, &batch, "log reply: the log lies on another storage node");
    node_halt(node);
    assert_int_equal(node->runtime.refused.batches, 4);
    assert_int_equal(txn_table_count(node->runtime.txns), 0);
}

/* A storage node has no say in a commit, and a compute node none in what a log holds. */
static void nodes_say_only_what_nodes_of_their_kind_say(void **state)
{
    struct node *node = *state;
    struct dw_buffer batch = vote_request(1);
    refused(node, DW_ROLE_STORAGE, 1, &batch, "commit messages are not served here");
    batch = log_reply(0);
    refused(node, DW_ROLE_COMPUTE, 2, &batch, "log replies are not awaited here");
    batch = vote_request(1);
    refused(node, DW_ROLE_CLIENT, 1, &batch, "a peer that the cluster file does not list");
    /* One that the cluster lacks, and one that says it is this node. */
    batch = vote_request(3);
    refused(node, DW_ROLE_COMPUTE, 3, &batch, "a peer that the cluster file does not list");
    batch = vote_request(0);
    refused(node, DW_ROLE_COMPUTE, 0, &batch, "a peer that the cluster file does not list");
    node_halt(node);
    assert_int_equal(node->runtime.refused.batches, 5);
    assert_int_equal(txn_table_count(node->runtime.txns), 0);
}

static void note_vote(void *user, const struct dw_message *message, const struct dw_token *token)
{
    struct dw_message *vote = user;
    (void)token;
    *vote = *message;
}

/* The honest one is heard, and answered: of a reader's locks nothing is known here. */
static void a_peer_is_heard_in_its_own_name(void **state)
{
    static const struct dw_batch_visitor visitor = {.message = note_vote};
    struct node *node = *state;
    struct dw_buffer batch = {0};
    struct dw_decoder decoder = {0};
    const struct dw_message request = {.kind = DW_MSG_READ_REQUEST, .from = 1, .txn = txn};
    struct dw_message vote = {0};
    assert_int_equal(dw_encode_message(&batch, &request, NULL), DW_OK);
    struct endpoint *honest = say_as(node, DW_ROLE_COMPUTE, 1, &batch);
    AWAIT(honest, e->messages == 1);
    assert_int_equal(dw_decode_batch(&decoder, honest->bytes, honest->size, &visitor, &vote, NULL), DW_OK);
    dw_decoder_close(&decoder);
    assert_int_equal(vote.kind, DW_MSG_VOTE);
    assert_int_equal(vote.value, DW_VOTE_REFUSED);
    assert_int_equal(honest->downs, 0);
    node_halt(node);
    assert_int_equal(node->runtime.refused.batches, 0);
    endpoint_stop(honest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(accesses_never_make_a_decision_unsendable, sender_set_up,
                                        sender_tear_down),
        cmocka_unit_test_setup_teardown(refused_messages_are_counted, sender_set_up, sender_tear_down),
        cmocka_unit_test_setup_teardown(what_a_closed_stream_loses_is_not_called_refused, sender_set_up,
                                        sender_tear_down),
        cmocka_unit_test_setup_teardown(nobody_speaks_for_another, node_set_up, node_tear_down),
        cmocka_unit_test_setup_teardown(nodes_say_only_what_nodes_of_their_kind_say, node_set_up,
                                        node_tear_down),
        cmocka_unit_test_setup_teardown(a_peer_is_heard_in_its_own_name, node_set_up, node_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
