/* Restart: take the incarnation, scan the own log, apply what is committed, lock what is in doubt, and only
 * then serve (docs/design.md, trap 7). */
#include "compute/recovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/assert.h"

enum { CALL_DEADLINE_MS = 10000 };

/* A transaction that the records so far leave open. */
struct open_entry {
    struct dw_txn_id txn;
    enum dw_entry_state state;
    uint64_t participants;
    uint64_t position; /* of the record with the redo, else of the first one */
    uint8_t *redo;
    size_t redo_size;
    UT_hash_handle hh;
};

void recovery_init(struct recovery *recovery, struct runtime *runtime, char *text, size_t text_size)
{
    *recovery = (struct recovery){.runtime = runtime, .text = text, .text_size = text_size};
}

/* --- errors --- */

static enum dw_error out_of_memory(const struct recovery *recovery)
{
    snprintf(recovery->text, recovery->text_size, "out of memory");
    return DW_ERR_MEMORY;
}

static enum dw_error bad_entry(const struct recovery *recovery, struct dw_txn_id txn)
{
    snprintf(
        recovery->text, recovery->text_size,
        "log %u holds a record of transaction %u:%u:%llu that cannot be applied; was it loaded with other "
        "parameters? Start with the workload parameters of the first run, or an empty data directory",
        recovery->runtime->options->node, txn.coordinator, txn.incarnation, (unsigned long long)txn.sequence);
    return DW_ERR_CORRUPT;
}

static enum dw_error bad_protocol(const struct recovery *recovery)
{
    snprintf(
        recovery->text, recovery->text_size,
        "log %u was written by another protocol than %s: start with the protocol of the first run, or an "
        "empty data directory",
        recovery->runtime->options->node, recovery->runtime->options->protocol->name);
    return DW_ERR_CORRUPT;
}

/* --- what is open --- */

static struct open_entry *find(const struct recovery *recovery, struct dw_txn_id txn)
{
    struct open_entry *entry;
    HASH_FIND(hh, recovery->open, &txn, sizeof txn, entry);
    return entry;
}

static struct open_entry *add(struct recovery *recovery, const struct dw_admin_record *record)
{
    struct open_entry *entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
        entry->txn = record->txn;
        entry->position = record->position;
        HASH_ADD(hh, recovery->open, txn, sizeof entry->txn, entry);
        recovery->open_count++;
    }
    return entry;
}

static void drop_redo(struct recovery *recovery, struct open_entry *entry)
{
    free(entry->redo);
    recovery->redo_bytes -= entry->redo_size;
    entry->redo = NULL;
    entry->redo_size = 0;
}

/* `entry` may be NULL: a transaction that ends with its first record was never open. */
static void drop(struct recovery *recovery, struct open_entry *entry)
{
    if (entry != NULL) {
        drop_redo(recovery, entry);
        HASH_DEL(recovery->open, entry);
        recovery->open_count--;
        free(entry);
    }
}

void recovery_close(struct recovery *recovery)
{
    while (recovery->open != NULL) {
        drop(recovery, recovery->open);
    }
}

/* --- one record --- */

/* True if only the other protocol writes such a record. Under 2PC a coordinator without information presumes
 * abort, which is wrong for what it committed by votes; under Cornus a vote in its log would be asked for. */
static bool is_foreign(const struct runtime *runtime, const struct dw_admin_record *record)
{
    bool own_vote = record->record == DW_RECORD_VOTE_YES && record->txn.coordinator == runtime->options->node;
    return runtime->options->protocol->logs_decide ? record->coordinator : own_vote;
}

/* Keeps the transaction, and the record's redo if that is wanted later. */
static enum dw_error keep(struct recovery *recovery, struct open_entry *entry,
                          const struct dw_admin_record *record, enum dw_entry_state state, bool with_redo)
{
    if (entry == NULL) {
        entry = add(recovery, record);
    }
    if (entry == NULL) {
        return out_of_memory(recovery);
    }
    entry->state = state;
    if (record->participants != 0) {
        entry->participants = record->participants;
    }
    if (with_redo && record->redo_size > 0) {
        DW_ASSERT(entry->redo == NULL); /* a vote is an entry's first record */
        entry->redo = malloc(record->redo_size);
        if (entry->redo == NULL) {
            return out_of_memory(recovery);
        }
        memcpy(entry->redo, record->redo, record->redo_size);
        entry->redo_size = record->redo_size;
        recovery->redo_bytes += record->redo_size;
    }
    return DW_OK;
}

static enum dw_error apply(const struct recovery *recovery, struct dw_txn_id txn, uint64_t position,
                           const uint8_t *redo, size_t size)
{
    struct dw_engine *engine = recovery->runtime->engine;
    struct dw_applied applied;
    bool good = size == 0 || engine->ops->apply(engine, position, redo, size, &applied) == DW_OK;
    return good ? DW_OK : bad_entry(recovery, txn);
}

/* A decision to commit: the redo is the vote's, or in the record itself. */
static enum dw_error apply_committed(const struct recovery *recovery, const struct open_entry *entry,
                                     const struct dw_admin_record *record)
{
    enum dw_error error = DW_OK;
    if (entry != NULL) {
        error = apply(recovery, entry->txn, entry->position, entry->redo, entry->redo_size);
    }
    return error == DW_OK ? apply(recovery, record->txn, record->position, record->redo, record->redo_size)
                          : error;
}

enum dw_error recovery_take(struct recovery *recovery, const struct dw_admin_record *record)
{
    if (is_foreign(recovery->runtime, record)) {
        return bad_protocol(recovery);
    }
    struct open_entry *entry = find(recovery, record->txn);
    enum dw_entry_state before = entry != NULL ? entry->state : DW_ENTRY_NONE;
    enum dw_entry_state state = dw_entry_replay(before, record->record, record->coordinator);
    enum dw_error error = DW_OK;
    switch (state) {
    case DW_ENTRY_VOTE_YES:
        return keep(recovery, entry, record, state, true);
    case DW_ENTRY_START:
        return keep(recovery, entry, record, state, false);
    case DW_ENTRY_COORD_COMMIT:
        /* Its participants are told again until END says that all have acknowledged. */
        error = apply_committed(recovery, entry, record);
        return error == DW_OK ? keep(recovery, entry, record, state, false) : error;
    case DW_ENTRY_COMMIT:
        error = apply_committed(recovery, entry, record);
        drop(recovery, entry);
        return error;
    case DW_ENTRY_ABORT:
    case DW_ENTRY_COORD_ABORT:
    case DW_ENTRY_END:
        drop(recovery, entry);
        return DW_OK;
    case DW_ENTRY_NONE:
    case DW_ENTRY_FORGOTTEN:
    case DW_ENTRY_DAMAGED:
        return bad_entry(recovery, record->txn);
    }
    return bad_entry(recovery, record->txn);
}

/* --- the end of the log --- */

/* What is in doubt must be fit to be applied later, when nobody can refuse it any more. */
static bool is_fit(const struct runtime *runtime, const struct open_entry *entry)
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

/* The context of a vote in doubt gets its redo and its locks. */
static enum dw_error lock_again(struct recovery *recovery, struct open_entry *entry,
                                struct txn_context *context)
{
    if (!is_fit(recovery->runtime, entry)) {
        return bad_entry(recovery, entry->txn);
    }
    dw_redo_free(&context->redo);
    context->redo =
        (struct dw_redo){.data = entry->redo, .size = entry->redo_size, .capacity = entry->redo_size};
    recovery->redo_bytes -= entry->redo_size;
    entry->redo = NULL;
    entry->redo_size = 0;
    context->wrote = true;
    if (executor_relock(recovery->runtime, context) != DW_OK) {
        snprintf(recovery->text, recovery->text_size,
                 "the lock table has no room for all transactions in doubt of log %u: start with more "
                 "--threads",
                 recovery->runtime->options->node);
        return DW_ERR_FULL;
    }
    return DW_OK;
}

static enum dw_error hand_over(struct recovery *recovery, struct open_entry *entry)
{
    struct txn_context *context = txn_table_add(recovery->runtime->txns, entry->txn);
    if (context == NULL) {
        return out_of_memory(recovery);
    }
    context->distributed = true;
    if (entry->state == DW_ENTRY_VOTE_YES) {
        enum dw_error error = lock_again(recovery, entry, context);
        if (error != DW_OK) {
            return error;
        }
    }
    struct dw_event event = {.kind = DW_EVENT_RECOVERED,
                             .entry = entry->state,
                             .writers = entry->participants,
                             .position = entry->position};
    driver_step(recovery->runtime, context, &event);
    return DW_OK;
}

enum dw_error recovery_finish(struct recovery *recovery)
{
    while (recovery->open != NULL) {
        enum dw_error error = hand_over(recovery, recovery->open);
        if (error != DW_OK) {
            return error;
        }
        drop(recovery, recovery->open);
    }
    return DW_OK;
}

/* --- calls to the storage node --- */

static struct dw_identity self(const struct runtime *runtime)
{
    struct dw_identity identity = {.role = DW_ROLE_COMPUTE, .node = runtime->options->node};
    snprintf(identity.run_id, sizeof identity.run_id, "%s", runtime->options->run_id);
    return identity;
}

/* Calls the storage node that holds the own log; the request's buffer is emptied. */
static enum dw_error call(const struct recovery *recovery, const char *method, struct dw_buffer *request,
                          uint8_t **data, size_t *size)
{
    const struct runtime *runtime = recovery->runtime;
    uint32_t storage = cluster_storage_of(runtime->cluster, runtime->options->node);
    struct dw_identity identity = self(runtime);
    enum dw_error error =
        dw_rpc_call(runtime->cluster->storage[storage], &identity, method, request->data, request->size,
                    CALL_DEADLINE_MS, data, size, recovery->text, recovery->text_size);
    dw_buffer_free(request);
    return error;
}

static enum dw_error malformed(const struct recovery *recovery, const char *method)
{
    snprintf(recovery->text, recovery->text_size,
             "the storage node's answer to %s is malformed; is it of the same version?", method);
    return DW_ERR_MALFORMED;
}

static enum dw_error fence(struct recovery *recovery, uint32_t *incarnation)
{
    struct dw_buffer request = {0};
    uint32_t node = recovery->runtime->options->node;
    uint8_t *data = NULL;
    size_t size = 0;
    enum dw_error error = dw_admin_encode_fence(&request, node, node);
    if (error == DW_OK) {
        error = call(recovery, DW_METHOD_FENCE, &request, &data, &size);
    }
    if (error == DW_OK && dw_admin_decode_fenced(data, size, incarnation) != DW_OK) {
        error = malformed(recovery, DW_METHOD_FENCE);
    }
    free(data);
    return error;
}

/* The records of a page, up to the first that is wrong. */
struct page {
    struct recovery *recovery;
    enum dw_error error;
};

static void take_record(void *user, const struct dw_admin_record *record)
{
    struct page *page = user;
    if (page->error == DW_OK) {
        page->error = recovery_take(page->recovery, record);
    }
}

static enum dw_error take_page(struct recovery *recovery, uint64_t *from)
{
    struct dw_buffer request = {0};
    struct dw_admin_scan wanted = {.log = recovery->runtime->options->node, .from = *from};
    struct page page = {.recovery = recovery};
    uint8_t *data = NULL;
    size_t size = 0;
    enum dw_error error = dw_admin_encode_scan(&request, &wanted);
    if (error == DW_OK) {
        error = call(recovery, DW_METHOD_SCAN, &request, &data, &size);
    }
    if (error == DW_OK && dw_admin_decode_scanned(data, size, take_record, &page, from) != DW_OK) {
        error = malformed(recovery, DW_METHOD_SCAN);
    }
    free(data);
    return error == DW_OK ? page.error : error;
}

static enum dw_error scan_log(struct recovery *recovery)
{
    uint64_t from = 1;
    enum dw_error error = DW_OK;
    while (error == DW_OK && from != 0) {
        error = take_page(recovery, &from);
    }
    return error == DW_OK ? recovery_finish(recovery) : error;
}

enum dw_error recovery_run(struct runtime *runtime, char *text, size_t text_size)
{
    struct recovery recovery;
    struct dw_update update = {0};
    uint32_t incarnation = 0;
    recovery_init(&recovery, runtime, text, text_size);
    snprintf(text, text_size, "out of memory");
    dw_node_start(&runtime->node, &update);
    enum dw_error error = fence(&recovery, &incarnation);
    if (error == DW_OK) {
        dw_node_fenced(&runtime->node, incarnation, &update);
        error = scan_log(&recovery);
    }
    if (error == DW_OK) {
        dw_node_scanned(&runtime->node);
    }
    recovery_close(&recovery);
    return error;
}
