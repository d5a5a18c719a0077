/* What comes from peers: who may say what, and which part of the node hears it. */
#include <stdio.h>

#include "compute/runtime.h"

/* One stream message. */
struct intake {
    struct runtime *runtime;
    const struct dw_identity *from;
    const char *wrong; /* the first item that its sender may not send; the rest is not heard */
};

/* A log's answer counts only from the node that has the log. */
static void on_log_reply(void *user, const struct dw_wire_log_reply *reply)
{
    struct intake *intake = user;
    if (cluster_storage_of(intake->runtime->cluster, reply->reply.log) != intake->from->node) {
        intake->wrong = "log reply: the log lies on another storage node";
    }
    if (intake->wrong == NULL) {
        driver_on_log_reply(intake->runtime, reply);
    }
}

static void on_commit_message(void *user, const struct dw_message *message, const struct dw_token *token)
{
    struct intake *intake = user;
    driver_on_message(intake->runtime, message, token);
}

static void on_access_request(void *user, const struct dw_wire_access_request *request)
{
    struct intake *intake = user;
    executor_on_request(intake->runtime, request);
}

/* The request's id, which comes back, names who was asked. */
static void on_access_reply(void *user, const struct dw_wire_access_reply *reply)
{
    struct intake *intake = user;
    if (reply->id >> 32 != intake->from->node) {
        intake->wrong = "access reply: another node was asked";
    }
    if (intake->wrong == NULL) {
        load_on_access_reply(intake->runtime, reply);
    }
}

/* Each peer is heard in its own name only, and only with what nodes of its kind say. */
static enum dw_error decode(struct intake *intake, const uint8_t *data, size_t size)
{
    static const struct dw_batch_visitor compute = {
        .message = on_commit_message, .access_request = on_access_request, .access_reply = on_access_reply};
    static const struct dw_batch_visitor storage = {.log_reply = on_log_reply};
    struct dw_decoder *decoder = &intake->runtime->decoder;
    if (!links_is_peer(intake->runtime, intake->from)) {
        intake->wrong = "a message from a peer that the cluster file does not list";
        return DW_OK;
    }
    switch (intake->from->role) {
    case DW_ROLE_COMPUTE:
        return dw_decode_batch_of(decoder, intake->from->node, data, size, &compute, intake, &intake->wrong);
    case DW_ROLE_STORAGE:
        return dw_decode_batch(decoder, data, size, &storage, intake, &intake->wrong);
    case DW_ROLE_CLIENT: /* no peer */
        break;
    }
    return DW_OK;
}

static const char *role_name(enum dw_role role)
{
    switch (role) {
    case DW_ROLE_STORAGE:
        return "storage node";
    case DW_ROLE_COMPUTE:
        return "compute node";
    case DW_ROLE_CLIENT:
        return "client";
    }
    return "peer";
}

static void refuse(const struct intake *intake, struct dw_conn *conn)
{
    struct runtime *runtime = intake->runtime;
    char text[256];
    runtime->refused.batches++;
    snprintf(text, sizeof text, "%s: refused by compute node %u, which closes the stream of %s %u",
             intake->wrong, runtime->options->node, role_name(intake->from->role), intake->from->node);
    dw_conn_close(conn, DW_ERR_MALFORMED, text);
}

enum dw_error intake_message(struct runtime *runtime, struct dw_conn *conn, const uint8_t *data, size_t size)
{
    struct intake intake = {.runtime = runtime, .from = dw_conn_peer(conn)};
    runtime->now_us = dw_rpc_now_us();
    runtime->cancelled_count = 0;
    enum dw_error error = decode(&intake, data, size);
    if (intake.wrong == NULL) {
        return error;
    }
    refuse(&intake, conn);
    return DW_OK;
}
