/* Accesses at their owner: locks first, then the row; changes wait in the transaction's write set. */
#include "compute/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static enum access_status lock_row(struct runtime *runtime, const struct txn_context *context,
                                   const struct dw_wire_access *access)
{
    enum dw_lock_mode mode = access->kind == DW_ACCESS_READ ? DW_LOCK_SHARED : DW_LOCK_EXCLUSIVE;
    struct dw_lock_name name = {.table = access->table, .key = access->key};
    switch (dw_lock_acquire(runtime->locks, context->id, name, mode)) {
    case DW_LOCK_GRANTED:
        return ACCESS_OK;
    case DW_LOCK_CONFLICT:
        return ACCESS_CONFLICT;
    case DW_LOCK_FULL:
        return ACCESS_REFUSED;
    }
    return ACCESS_REFUSED;
}

static uint8_t *sink_room(struct row_sink *sink, size_t size)
{
    if (sink->size + size > sink->capacity) {
        return NULL; /* sized before for the rows of all reads */
    }
    uint8_t *room = sink->bytes + sink->size;
    sink->size += size;
    return room;
}

static enum access_status read_row(struct runtime *runtime, const struct txn_context *context,
                                   const struct dw_wire_access *access, struct row_sink *sink, size_t index)
{
    const struct dw_table *schema = runtime->engine->ops->schema(runtime->engine, access->table);
    uint8_t *room = schema != NULL ? sink_room(sink, dw_table_row_bytes(schema)) : NULL;
    if (room == NULL ||
        runtime->engine->ops->read(runtime->engine, access->table, access->key, room) != DW_OK) {
        return ACCESS_REFUSED;
    }
    dw_redo_overlay(&context->redo, access->table, access->key, schema, room);
    sink->rows[index] = (struct dw_wire_row){.data = room, .size = dw_table_row_bytes(schema)};
    return ACCESS_OK;
}

static enum access_status write_row(struct runtime *runtime, struct txn_context *context,
                                    const struct dw_wire_access *access)
{
    struct dw_change change = {.key = access->key,
                               .table = access->table,
                               .field = access->field,
                               .value = access->value,
                               .value_bytes = access->value_size};
    if (dw_engine_check_write(runtime->engine, access->table, access->key, access->field,
                              access->value_size) != DW_OK ||
        dw_redo_add(&context->redo, &change) != DW_OK) {
        return ACCESS_REFUSED;
    }
    context->wrote = true;
    return ACCESS_OK;
}

/* It can only abort now: others need not wait for the message that says so. */
static enum access_status fail(struct runtime *runtime, struct txn_context *context,
                               enum access_status status)
{
    context->failed = true;
    dw_lock_release(runtime->locks, context->id);
    return status;
}

enum access_status executor_run(struct runtime *runtime, struct txn_context *context,
                                const struct dw_wire_access *accesses, size_t count, struct row_sink *sink)
{
    enum access_status status = ACCESS_OK;
    for (size_t i = 0; i < count && status == ACCESS_OK; i++) {
        sink->rows[i] = (struct dw_wire_row){0};
        status = lock_row(runtime, context, &accesses[i]);
        if (status == ACCESS_OK) {
            status = accesses[i].kind == DW_ACCESS_READ ? read_row(runtime, context, &accesses[i], sink, i)
                                                        : write_row(runtime, context, &accesses[i]);
        }
    }
    return status == ACCESS_OK ? ACCESS_OK : fail(runtime, context, status);
}

/* --- requests of other nodes --- */

/* The first request cannot name the execution that it creates. */
static bool is_first(const struct dw_wire_access_request *request)
{
    return request->token.counter == 0 && request->token.accesses == 1;
}

static bool names_execution(const struct txn_context *context, const struct dw_wire_access_request *request)
{
    return request->token.incarnation == context->token.incarnation &&
           request->token.counter == context->token.counter;
}

/* True if this execution has run the request already (docs/design.md, trap 6: "a repeated access is answered,
 * not run again"). */
static bool was_run(const struct txn_context *context, const struct dw_wire_access_request *request)
{
    return request->token.accesses <= context->token.accesses &&
           (is_first(request) || names_execution(context, request));
}

static struct txn_context *begin_execution(struct runtime *runtime, struct dw_txn_id txn)
{
    struct txn_context *context = txn_table_add(runtime->txns, txn);
    if (context == NULL) {
        return NULL;
    }
    context->distributed = true;
    context->token =
        (struct dw_token){.incarnation = runtime->node.incarnation, .counter = ++runtime->token_counter};
    struct dw_event join = {.kind = DW_EVENT_JOIN};
    driver_step(runtime, context, &join);
    /* A node that was fenced in this moment takes nobody in. */
    return txn_table_find(runtime->txns, txn);
}

/* Only access 1 creates state, and each later one must continue the execution that this node knows. NULL: it
 * does not. */
static struct txn_context *find_execution(struct runtime *runtime, struct txn_context *context,
                                          const struct dw_wire_access_request *request)
{
    if (context == NULL) {
        return is_first(request) && !driver_is_cancelled(runtime, request->txn)
                   ? begin_execution(runtime, request->txn)
                   : NULL;
    }
    bool continues = context->machine.state == DW_TXN_EXECUTING && !context->failed &&
                     names_execution(context, request) &&
                     request->token.accesses == context->token.accesses + 1;
    return continues ? context : NULL;
}

/* Room for the rows of the reads; false: no memory, or a table that is not there (refused later). */
static bool open_sink(struct runtime *runtime, const struct dw_wire_access_request *request,
                      struct row_sink *sink)
{
    *sink = (struct row_sink){0};
    for (size_t i = 0; i < request->access_count; i++) {
        const struct dw_table *schema =
            runtime->engine->ops->schema(runtime->engine, request->accesses[i].table);
        if (schema != NULL && request->accesses[i].kind == DW_ACCESS_READ) {
            sink->capacity += dw_table_row_bytes(schema);
        }
    }
    sink->rows = calloc(request->access_count, sizeof *sink->rows);
    sink->bytes = malloc(sink->capacity + 1);
    return sink->rows != NULL && sink->bytes != NULL;
}

static bool is_known_kind(const struct dw_wire_access_request *request)
{
    for (size_t i = 0; i < request->access_count; i++) {
        if (request->accesses[i].kind != DW_ACCESS_READ && request->accesses[i].kind != DW_ACCESS_WRITE) {
            return false;
        }
    }
    return true;
}

/* Runs the request, and keeps what it gave in place of what the one before it gave. */
static void run_request(struct runtime *runtime, struct txn_context *context,
                        const struct dw_wire_access_request *request)
{
    struct access_answer *answer = &context->answer;
    free(answer->sink.rows);
    free(answer->sink.bytes);
    context->token.accesses++;
    if (open_sink(runtime, request, &answer->sink)) {
        answer->status =
            executor_run(runtime, context, request->accesses, request->access_count, &answer->sink);
    } else {
        answer->status = fail(runtime, context, ACCESS_REFUSED);
    }
    answer->row_count = answer->status == ACCESS_OK ? request->access_count : 0;
}

static void send_answer(struct runtime *runtime, const struct txn_context *context,
                        const struct dw_wire_access_request *request)
{
    struct dw_wire_access_reply reply = {.id = request->id,
                                         .txn = request->txn,
                                         .status = context->answer.status,
                                         .token = context->token,
                                         .rows = context->answer.sink.rows,
                                         .row_count = context->answer.row_count};
    links_send_access_reply(runtime, request->from, &reply);
}

/* Of a request that was not run. */
static void send_refusal(struct runtime *runtime, const struct dw_wire_access_request *request,
                         enum access_status status)
{
    struct dw_wire_access_reply reply = {
        .id = request->id, .txn = request->txn, .status = status, .token = request->token};
    links_send_access_reply(runtime, request->from, &reply);
}

void executor_on_request(struct runtime *runtime, const struct dw_wire_access_request *request)
{
    if (request->from >= runtime->cluster->compute_nodes || request->from == runtime->options->node ||
        request->txn.coordinator != request->from) {
        return;
    }
    struct txn_context *context = txn_table_find(runtime->txns, request->txn);
    if (context != NULL && was_run(context, request)) {
        if (request->token.accesses == context->token.accesses) {
            send_answer(runtime, context, request);
        }
        return;
    }
    if (!is_known_kind(request)) {
        send_refusal(runtime, request, ACCESS_REFUSED);
        return;
    }
    context = find_execution(runtime, context, request);
    if (context == NULL) {
        send_refusal(runtime, request, ACCESS_MISMATCH);
        return;
    }
    run_request(runtime, context, request);
    send_answer(runtime, context, request);
}

enum dw_execution executor_execution(const struct txn_context *context, const struct dw_message *message,
                                     const struct dw_token *token)
{
    if (context->machine.state != DW_TXN_EXECUTING) {
        return DW_EXECUTION_NONE;
    }
    bool whole = !context->failed && token->incarnation == context->token.incarnation &&
                 token->counter == context->token.counter && token->accesses == context->token.accesses;
    if (message->kind == DW_MSG_READ_REQUEST && context->wrote) {
        whole = false;
    }
    return whole ? DW_EXECUTION_WHOLE : DW_EXECUTION_BROKEN;
}

enum dw_error executor_relock(struct runtime *runtime, struct txn_context *context)
{
    struct dw_redo_reader reader;
    struct dw_change change;
    dw_redo_reader_init(&reader, context->redo.data, context->redo.size);
    while (dw_redo_next(&reader, &change) == DW_REDO_CHANGE) {
        struct dw_lock_name name = {.table = change.table, .key = change.key};
        if (dw_lock_relock(runtime->locks, context->id, name) != DW_LOCK_GRANTED) {
            return DW_ERR_FULL;
        }
    }
    return DW_OK;
}
