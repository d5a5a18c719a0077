/* Restart: take the incarnation, scan the own log, apply what is committed in the order of positions, lock
 * what is in doubt, and only then serve (docs/design.md, trap 7). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "compute/runtime.h"
#include "wire/admin.h"

enum { CALL_DEADLINE_MS = 10000 };

/* What the log says of one transaction. */
struct entry {
    struct dw_txn_id txn;
    enum dw_entry_state state;
    uint64_t participants;
    uint64_t position; /* of the record with the redo */
    uint8_t *redo;
    size_t redo_size;
};

struct scan {
    struct runtime *runtime;
    struct entry *entries; /* in the order of their first records */
    size_t count;
    size_t capacity;
    enum dw_error error; /* of taking a record */
    char *text;
    size_t text_size;
};

static struct dw_identity self(const struct runtime *runtime)
{
    struct dw_identity identity = {.role = DW_ROLE_COMPUTE, .node = runtime->options->node};
    snprintf(identity.run_id, sizeof identity.run_id, "%s", runtime->options->run_id);
    return identity;
}

/* Calls the storage node that holds the own log; the request's buffer is emptied. */
static enum dw_error call(const struct scan *scan, const char *method, struct dw_buffer *request,
                          uint8_t **data, size_t *size)
{
    const struct runtime *runtime = scan->runtime;
    uint32_t storage = cluster_storage_of(runtime->cluster, runtime->options->node);
    struct dw_identity identity = self(runtime);
    enum dw_error error =
        dw_rpc_call(runtime->cluster->storage[storage], &identity, method, request->data, request->size,
                    CALL_DEADLINE_MS, data, size, scan->text, scan->text_size);
    dw_buffer_free(request);
    return error;
}

static enum dw_error malformed(const struct scan *scan, const char *method)
{
    snprintf(scan->text, scan->text_size,
             "the storage node's answer to %s is malformed; is it of the same version?", method);
    return DW_ERR_MALFORMED;
}

static enum dw_error fence(struct scan *scan, uint32_t *incarnation)
{
    struct dw_buffer request = {0};
    uint32_t node = scan->runtime->options->node;
    uint8_t *data = NULL;
    size_t size = 0;
    enum dw_error error = dw_admin_encode_fence(&request, node, node);
    if (error == DW_OK) {
        error = call(scan, DW_METHOD_FENCE, &request, &data, &size);
    }
    if (error == DW_OK && dw_admin_decode_fenced(data, size, incarnation) != DW_OK) {
        error = malformed(scan, DW_METHOD_FENCE);
    }
    free(data);
    return error;
}

static struct entry *find_entry(struct scan *scan, struct dw_txn_id txn)
{
    struct txn_context *context = txn_table_find(scan->runtime->txns, txn);
    return context != NULL ? &scan->entries[context->token.counter] : NULL;
}

/* While the scan runs, the table of transactions is an index of the entries: token.counter is the number. */
static struct entry *add_entry(struct scan *scan, struct dw_txn_id txn)
{
    if (scan->count == scan->capacity) {
        size_t capacity = scan->capacity ? scan->capacity * 2 : 1024;
        struct entry *entries = realloc(scan->entries, capacity * sizeof *entries);
        if (entries == NULL) {
            return NULL;
        }
        scan->entries = entries;
        scan->capacity = capacity;
    }
    struct txn_context *context = txn_table_add(scan->runtime->txns, txn);
    if (context == NULL) {
        return NULL;
    }
    context->token.counter = scan->count;
    struct entry *entry = &scan->entries[scan->count++];
    *entry = (struct entry){.txn = txn};
    return entry;
}

static enum dw_error keep_redo(struct entry *entry, const struct dw_admin_record *record)
{
    if (record->redo_size == 0 || entry->redo != NULL) {
        return DW_OK;
    }
    entry->redo = malloc(record->redo_size);
    if (entry->redo == NULL) {
        return DW_ERR_MEMORY;
    }
    memcpy(entry->redo, record->redo, record->redo_size);
    entry->redo_size = record->redo_size;
    entry->position = record->position;
    return DW_OK;
}

/* True if only the other protocol writes such a record. Under 2PC a coordinator without information presumes
 * abort, which is wrong for what it committed by votes; under Cornus a vote in its log would be asked for. */
static bool is_foreign(const struct runtime *runtime, const struct dw_admin_record *record)
{
    bool own_vote = record->record == DW_RECORD_VOTE_YES && record->txn.coordinator == runtime->options->node;
    return runtime->options->protocol->logs_decide ? record->coordinator : own_vote;
}

static void refuse_protocol(struct scan *scan)
{
    snprintf(
        scan->text, scan->text_size,
        "log %u was written by another protocol than %s: start with the protocol of the first run, or an "
        "empty data directory",
        scan->runtime->options->node, scan->runtime->options->protocol->name);
    scan->error = DW_ERR_CORRUPT;
}

static void take_record(void *user, const struct dw_admin_record *record)
{
    struct scan *scan = user;
    if (is_foreign(scan->runtime, record)) {
        refuse_protocol(scan);
        return;
    }
    struct entry *entry = find_entry(scan, record->txn);
    entry = entry != NULL ? entry : add_entry(scan, record->txn);
    if (entry == NULL) {
        scan->error = DW_ERR_MEMORY;
        return;
    }
    entry->state = dw_entry_replay(entry->state, record->record, record->coordinator);
    if (record->participants != 0) {
        entry->participants = record->participants;
    }
    if (entry->position == 0) {
        entry->position = record->position;
    }
    if (keep_redo(entry, record) != DW_OK) {
        scan->error = DW_ERR_MEMORY;
    }
}

static enum dw_error take_page(struct scan *scan, uint64_t *from)
{
    struct dw_buffer request = {0};
    struct dw_admin_scan wanted = {.log = scan->runtime->options->node, .from = *from};
    uint8_t *data = NULL;
    size_t size = 0;
    enum dw_error error = dw_admin_encode_scan(&request, &wanted);
    if (error == DW_OK) {
        error = call(scan, DW_METHOD_SCAN, &request, &data, &size);
    }
    if (error == DW_OK && dw_admin_decode_scanned(data, size, take_record, scan, from) != DW_OK) {
        error = malformed(scan, DW_METHOD_SCAN);
    }
    free(data);
    return error == DW_OK ? scan->error : error;
}

static int by_position(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return left->position < right->position ? -1 : left->position > right->position;
}

static bool is_committed(enum dw_entry_state state)
{
    return state == DW_ENTRY_COMMIT || state == DW_ENTRY_COORD_COMMIT || state == DW_ENTRY_END;
}

static enum dw_error bad_entry(const struct scan *scan, const struct entry *entry)
{
    snprintf(
        scan->text, scan->text_size,
        "log %u holds a record of transaction %u:%u:%llu that cannot be applied; was it loaded with other "
        "parameters? Start with the workload parameters of the first run, or an empty data directory",
        scan->runtime->options->node, entry->txn.coordinator, entry->txn.incarnation,
        (unsigned long long)entry->txn.sequence);
    return DW_ERR_CORRUPT;
}

/* What is in doubt must be fit to be applied later, when nobody can refuse it any more. */
static bool is_fit(const struct runtime *runtime, const struct entry *entry)
{
    struct dw_redo_reader reader;
    struct dw_change change;
    enum dw_redo_read read;
    dw_redo_reader_init(&reader, entry->redo, entry->redo_size);
    while ((read = dw_redo_next(&reader, &change)) == DW_REDO_CHANGE) {
        if (dw_engine_check_write(runtime->engine, change.table, change.key, change.field,
                                  change.value_bytes) != DW_OK) {
            return false;
        }
    }
    return read == DW_REDO_END && (entry->participants & dw_node_bit(runtime->options->node)) != 0;
}

/* The redo of one entry: applied if it is committed, kept with its locks if it is in doubt. */
static enum dw_error recover_entry(struct scan *scan, struct entry *entry)
{
    struct runtime *runtime = scan->runtime;
    struct dw_applied applied;
    if (is_committed(entry->state) && entry->redo_size > 0 &&
        runtime->engine->ops->apply(runtime->engine, entry->position, entry->redo, entry->redo_size,
                                    &applied) != DW_OK) {
        return bad_entry(scan, entry);
    }
    bool in_doubt = entry->state == DW_ENTRY_VOTE_YES;
    if (entry->state == DW_ENTRY_DAMAGED || (in_doubt && !is_fit(runtime, entry))) {
        return bad_entry(scan, entry);
    }
    struct txn_context *context = txn_table_find(runtime->txns, entry->txn);
    DW_ASSERT(context != NULL);
    context->token = (struct dw_token){0};
    context->distributed = true;
    if (in_doubt) {
        context->redo =
            (struct dw_redo){.data = entry->redo, .size = entry->redo_size, .capacity = entry->redo_size};
        entry->redo = NULL;
        context->wrote = true;
        if (executor_relock(runtime, context) != DW_OK) {
            snprintf(scan->text, scan->text_size,
                     "the lock table has no room for all transactions in doubt of log %u: start with more "
                     "--threads",
                     runtime->options->node);
            return DW_ERR_FULL;
        }
    }
    struct dw_event event = {.kind = DW_EVENT_RECOVERED,
                             .entry = entry->state,
                             .writers = entry->participants,
                             .position = entry->position};
    driver_step(runtime, context, &event);
    return DW_OK;
}

static enum dw_error recover_all(struct scan *scan)
{
    if (scan->count > 0) {
        qsort(scan->entries, scan->count, sizeof *scan->entries, by_position);
    }
    enum dw_error error = DW_OK;
    for (size_t i = 0; i < scan->count && error == DW_OK; i++) {
        error = recover_entry(scan, &scan->entries[i]);
    }
    return error;
}

static enum dw_error scan_log(struct scan *scan)
{
    uint64_t from = 1;
    enum dw_error error = DW_OK;
    while (error == DW_OK && from != 0) {
        error = take_page(scan, &from);
    }
    return error == DW_OK ? recover_all(scan) : error;
}

enum dw_error recovery_run(struct runtime *runtime, char *text, size_t text_size)
{
    struct scan scan = {.runtime = runtime, .text = text, .text_size = text_size};
    struct dw_update update = {0};
    uint32_t incarnation = 0;
    snprintf(text, text_size, "out of memory");
    dw_node_start(&runtime->node, &update);
    enum dw_error error = fence(&scan, &incarnation);
    if (error == DW_OK) {
        dw_node_fenced(&runtime->node, incarnation, &update);
        error = scan_log(&scan);
    }
    if (error == DW_OK) {
        dw_node_scanned(&runtime->node);
    }
    for (size_t i = 0; i < scan.count; i++) {
        free(scan.entries[i].redo);
    }
    free(scan.entries);
    return error;
}
