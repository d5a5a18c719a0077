#include "wire/check.h"

#include "base/limits.h"

static bool lists_participants(enum dw_ask ask)
{
    return ask == DW_ASK_VOTE || ask == DW_ASK_START || ask == DW_ASK_COORD_COMMIT;
}

static bool carries_redo(enum dw_ask ask)
{
    return ask == DW_ASK_VOTE || ask == DW_ASK_COMMIT_LOCAL || ask == DW_ASK_COORD_COMMIT;
}

const char *dw_check_log_request(const struct dw_wire_log_request *wire)
{
    const struct dw_log_request *request = &wire->request;
    if (!dw_txn_id_valid(request->txn)) {
        return "log request: invalid transaction id";
    }
    if (request->log >= DW_MAX_NODES) {
        return "log request: log out of range";
    }
    if (request->writer >= DW_MAX_NODES) {
        return "log request: writer out of range";
    }
    if ((uint32_t)request->ask >= DW_ASKS) {
        return "log request: unknown ask";
    }
    if (wire->participants != 0 && !lists_participants(request->ask)) {
        return "log request: participants with an ask that lists none";
    }
    if (wire->redo_size != 0 && !carries_redo(request->ask)) {
        return "log request: redo with an ask that carries none";
    }
    if (wire->redo_size > DW_MAX_REDO) {
        return "log request: redo too large";
    }
    return NULL;
}

const char *dw_check_log_reply(const struct dw_wire_log_reply *wire)
{
    const struct dw_log_reply *reply = &wire->reply;
    if (!dw_txn_id_valid(reply->txn)) {
        return "log reply: invalid transaction id";
    }
    if (reply->log >= DW_MAX_NODES) {
        return "log reply: log out of range";
    }
    if ((uint32_t)reply->ask >= DW_ASKS) {
        return "log reply: unknown ask";
    }
    if ((uint32_t)reply->answer >= DW_ANSWERS) {
        return "log reply: unknown answer";
    }
    /* "Nothing there" must never be read out of an answer to anything but a plain read. */
    if (reply->answer == DW_ANSWER_NONE && reply->ask != DW_ASK_READ) {
        return "log reply: answer NONE to another ask than READ";
    }
    return NULL;
}

/* True if `value` may come with a message of this kind; false for an unknown kind. */
static bool value_fits(enum dw_message_kind kind, uint32_t value)
{
    switch (kind) {
    case DW_MSG_VOTE_REQUEST:
    case DW_MSG_READ_REQUEST:
    case DW_MSG_ACK:
    case DW_MSG_INQUIRY:
        return value == 0;
    case DW_MSG_VOTE:
        return value >= DW_VOTE_YES && value <= DW_VOTE_REFUSED;
    case DW_MSG_DECISION:
        return value == DW_OUTCOME_COMMITTED || value == DW_OUTCOME_ABORTED;
    case DW_MSG_INQUIRY_REPLY:
        return value <= DW_OUTCOME_ABORTED;
    }
    return false;
}

static bool token_is_zero(const struct dw_token *token)
{
    return token->incarnation == 0 && token->counter == 0 && token->accesses == 0;
}

const char *dw_check_message(const struct dw_message *message, const struct dw_token *token)
{
    if (!dw_txn_id_valid(message->txn)) {
        return "commit message: invalid transaction id";
    }
    if ((uint32_t)message->kind < DW_MSG_VOTE_REQUEST || (uint32_t)message->kind > DW_MSG_INQUIRY_REPLY) {
        return "commit message: unknown kind";
    }
    if (message->from >= DW_MAX_NODES) {
        return "commit message: sender out of range";
    }
    if (message->to >= DW_MAX_NODES) {
        return "commit message: receiver out of range";
    }
    if (!value_fits(message->kind, message->value)) {
        return "commit message: value does not fit the kind";
    }
    /* A list without the receiver would let it terminate without asking its own log. */
    bool vote_request = message->kind == DW_MSG_VOTE_REQUEST;
    if (vote_request ? (message->writers & dw_node_bit(message->to)) == 0 : message->writers != 0) {
        return "commit message: writers do not fit the kind";
    }
    if (message->kind != DW_MSG_ACK && token->released_us != 0) {
        return "commit message: a time of release with a kind other than ACK";
    }
    if (!vote_request && message->kind != DW_MSG_READ_REQUEST && !token_is_zero(token)) {
        return "commit message: token with a kind that asks for no execution";
    }
    return NULL;
}

const char *dw_check_access_request(const struct dw_wire_access_request *request)
{
    if (!dw_txn_id_valid(request->txn)) {
        return "access request: invalid transaction id";
    }
    if (request->from >= DW_MAX_NODES) {
        return "access request: sender out of range";
    }
    if (request->token.accesses == 0) {
        return "access request: number 0";
    }
    if (request->access_count == 0 || request->access_count > DW_WIRE_MAX_ACCESSES) {
        return "access request: number of accesses out of range";
    }
    return NULL;
}

const char *dw_check_access(const struct dw_wire_access *access)
{
    return access->value_size > DW_MAX_REDO ? "access: value too large" : NULL;
}

const char *dw_check_access_reply(const struct dw_wire_access_reply *reply)
{
    if (!dw_txn_id_valid(reply->txn)) {
        return "access reply: invalid transaction id";
    }
    if (reply->row_count > DW_WIRE_MAX_ACCESSES) {
        return "access reply: number of rows out of range";
    }
    return NULL;
}
