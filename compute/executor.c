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
    if (status != ACCESS_OK) {
        /* It can only abort now: others need not wait for the message that says so. */
        context->failed = true;
        dw_lock_release(runtime->locks, context->id);
    }
    return status;
}

/* --- requests of other nodes --- */

/* Only access 1 creates state, and each later one must continue the execution that this node knows. */
static struct txn_context *find_execution(struct runtime *runtime,
                                          const struct dw_wire_access_request *request)
{
    struct txn_context *context = txn_table_find(runtime->txns, request->txn);
    bool first = request->token.counter == 0 && request->token.accesses == 1;
    if (first && context == NULL && !driver_is_cancelled(runtime, request->txn)) {
        context = txn_table_add(runtime->txns, request->txn);
        if (context != NULL) {
            context->distributed = true;
            context->token = (struct dw_token){.incarnation = runtime->node.incarnation,
                                               .counter = ++runtime->token_counter};
            struct dw_event join = {.kind = DW_EVENT_JOIN};
            driver_step(runtime, context, &join);
        }
        /* A node that was fenced in this moment takes nobody in. */
        return txn_table_find(runtime->txns, request->txn);
    }
    bool continues = context != NULL && context->machine.state == DW_TXN_EXECUTING && !context->failed &&
                     request->token.incarnation == context->token.incarnation &&
                     request->token.counter == context->token.counter &&
                     request->token.accesses == context->token.accesses + 1;
    return continues ? context : NULL;
}

/* Room for the rows of the reads; false: no memory, or a table that is not there (refused later). */
static bool open_sink(struct runtime *runtime, const struct dw_wire_access_request *request,
                      struct row_sink *sink)
{
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

static enum access_status run_request(struct runtime *runtime, const struct dw_wire_access_request *request,
                                      struct row_sink *sink, struct dw_token *token)
{
    if (!is_known_kind(request) || !open_sink(runtime, request, sink)) {
        return ACCESS_REFUSED;
    }
    struct txn_context *context = find_execution(runtime, request);
    if (context == NULL) {
        return ACCESS_MISMATCH;
    }
    context->token.accesses++;
    *token = context->token;
    return executor_run(runtime, context, request->accesses, request->access_count, sink);
}

void executor_on_request(struct runtime *runtime, const struct dw_wire_access_request *request)
{
    if (request->from >= runtime->cluster->compute_nodes || request->from == runtime->options->node ||
        request->txn.coordinator != request->from) {
        return;
    }
    struct row_sink sink = {0};
    struct dw_token token = request->token;
    enum access_status status = run_request(runtime, request, &sink, &token);
    struct dw_wire_access_reply reply = {.id = request->id,
                                         .txn = request->txn,
                                         .status = status,
                                         .token = token,
                                         .rows = sink.rows,
                                         .row_count = status == ACCESS_OK ? request->access_count : 0};
    links_send_access_reply(runtime, request->from, &reply);
    free(sink.rows);
    free(sink.bytes);
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
