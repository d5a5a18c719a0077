#include "storage/log_service.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/log_writer.h"
#include "storage/record_format.h"

struct loading {
    struct dw_log_service *service;
    enum dw_error error;
};

static void load_fence(void *user, const struct dw_stored_fence *fence)
{
    struct dw_log_service *service = ((struct loading *)user)->service;
    uint32_t *incarnation = &service->incarnations[fence->log];
    *incarnation = fence->incarnation > *incarnation ? fence->incarnation : *incarnation;
    if (fence->position > service->last_position) {
        service->last_position = fence->position;
    }
}

static void report_damage(struct dw_log_service *service, const struct dw_stored_record *record)
{
    if (service->damaged++ == 0) {
        fprintf(
            stderr,
            "log %u: the record at position %llu, transaction %u.%u.%llu, %s: its entry answers 'damaged'\n",
            record->log, (unsigned long long)record->position, record->txn.coordinator,
            record->txn.incarnation, (unsigned long long)record->txn.sequence,
            record->damaged ? "cannot be read" : "contradicts what is before it");
    }
}

static bool load_record(void *user, const struct dw_stored_record *record)
{
    struct loading *loading = user;
    struct dw_log_service *service = loading->service;
    uint64_t hash = dw_entry_table_hash(record->log, record->txn);
    struct dw_table_entry *entry = dw_entry_table_find(&service->table, record->log, record->txn, hash);
    if (entry == NULL) {
        entry = dw_entry_table_insert(&service->table, record->log, record->txn, hash);
        if (entry == NULL) {
            loading->error = DW_ERR_MEMORY;
            return false;
        }
        entry->entry.first = record->position;
        if (record->record == DW_RECORD_VOTE_YES || record->record == DW_RECORD_COMMIT) {
            entry->entry.content = dw_record_content(record->participants, record->redo, record->redo_size);
        }
    }
    enum dw_entry_state before = entry->entry.state;
    entry->entry.state =
        record->damaged ? DW_ENTRY_DAMAGED : dw_entry_replay(before, record->record, record->coordinator);
    if (entry->entry.state == DW_ENTRY_DAMAGED && before != DW_ENTRY_DAMAGED) {
        report_damage(service, record);
    }
    entry->durable = (uint8_t)entry->entry.state;
    if (record->position > service->last_position) {
        service->last_position = record->position;
    }
    return true;
}

static enum dw_error load(struct dw_log_service *service, char *text, size_t text_size)
{
    struct loading loading = {.service = service};
    enum dw_error error = service->store->ops->load(service->store, load_fence, load_record, &loading);
    if (error != DW_OK) {
        snprintf(text, text_size, "%s", service->store->ops->error_text(service->store));
        return error;
    }
    if (loading.error != DW_OK) {
        snprintf(text, text_size,
                 "no memory for the table of log entries (%u read): use a machine with more memory",
                 service->table.count);
        return loading.error;
    }
    if (service->damaged > 1) {
        fprintf(stderr, "%llu entries are damaged in all\n", (unsigned long long)service->damaged);
    }
    service->durable_position = service->last_position;
    return DW_OK;
}

static enum dw_error start(struct dw_log_service *service, char *text, size_t text_size)
{
    enum dw_error error = load(service, text, text_size);
    if (error == DW_OK && pthread_create(&service->writer, NULL, dw_log_writer_main, service) != 0) {
        snprintf(text, text_size, "the log writer's thread cannot be started: raise the limit of threads");
        error = DW_ERR_MEMORY;
    }
    return error;
}

static void free_service(struct dw_log_service *service)
{
    dw_entry_table_close(&service->table);
    dw_log_queue_close(&service->queue);
    pthread_mutex_destroy(&service->lock);
    free(service);
}

/* A service with an empty table, or NULL. */
static struct dw_log_service *make_service(const struct dw_log_service_options *options)
{
    struct dw_log_service *service = calloc(1, sizeof *service);
    if (service == NULL) {
        return NULL;
    }
    service->options = *options;
    service->store = options->store;
    service->rule = options->rule == NULL ? dw_log_rule : options->rule;
    if (dw_log_queue_init(&service->queue, options) != DW_OK) {
        free(service);
        return NULL;
    }
    if (pthread_mutex_init(&service->lock, NULL) != 0) {
        dw_log_queue_close(&service->queue);
        free(service);
        return NULL;
    }
    if (dw_entry_table_init(&service->table) != DW_OK) {
        free_service(service);
        return NULL;
    }
    return service;
}

enum dw_error dw_log_service_open(const struct dw_log_service_options *options,
                                  struct dw_log_service **service, char *text, size_t text_size)
{
    enum dw_error error = DW_ERR_MEMORY;
    struct dw_log_service *made = make_service(options);
    if (made == NULL) {
        snprintf(text, text_size, "no memory for the log service");
    } else {
        error = start(made, text, text_size);
    }
    if (error != DW_OK) {
        if (made != NULL) {
            free_service(made);
        }
        options->store->ops->close(options->store);
        return error;
    }
    *service = made;
    return DW_OK;
}

enum dw_error dw_log_service_submit(struct dw_log_service *service,
                                    const struct dw_log_submission *submissions, size_t count)
{
    struct dw_log_block *block;
    if (count == 0) {
        return DW_OK;
    }
    enum dw_error error = dw_log_block_make(submissions, count, &block);
    if (error != DW_OK) {
        return error;
    }
    error = dw_log_queue_push(&service->queue, block);
    if (error != DW_OK) {
        dw_log_block_free(block);
    }
    return error;
}

enum dw_error dw_log_service_fence(struct dw_log_service *service, uint32_t log, dw_fence_done *done,
                                   void *context)
{
    struct dw_log_block *block;
    enum dw_error error = dw_log_block_make_fence(log, done, context, &block);
    if (error != DW_OK) {
        return error;
    }
    error = dw_log_queue_push(&service->queue, block);
    if (error != DW_OK) {
        dw_log_block_free(block);
    }
    return error;
}

struct dw_entry dw_log_service_read(struct dw_log_service *service, uint32_t log, struct dw_txn_id txn)
{
    struct dw_entry found = {.state = DW_ENTRY_NONE};
    uint64_t hash = dw_entry_table_hash(log, txn);
    pthread_mutex_lock(&service->lock);
    const struct dw_table_entry *entry = dw_entry_table_find(&service->table, log, txn, hash);
    if (entry != NULL && entry->durable != DW_ENTRY_NONE) {
        found = entry->entry;
        found.state = (enum dw_entry_state)entry->durable;
    }
    pthread_mutex_unlock(&service->lock);
    return found;
}

struct durable_scan {
    uint64_t limit;
    dw_record_visitor *on_record;
    void *user;
};

static bool visit_durable(void *user, const struct dw_stored_record *record)
{
    const struct durable_scan *scan = user;
    return record->position <= scan->limit && scan->on_record(scan->user, record);
}

enum dw_error dw_log_service_scan(struct dw_log_service *service, uint32_t log, uint64_t from,
                                  dw_record_visitor *on_record, void *user)
{
    struct durable_scan scan = {.on_record = on_record, .user = user};
    if (log >= DW_MAX_NODES) {
        return DW_ERR_RANGE;
    }
    pthread_mutex_lock(&service->lock);
    scan.limit = service->durable_position;
    pthread_mutex_unlock(&service->lock);
    return service->store->ops->scan(service->store, log, from, visit_durable, &scan);
}

void dw_log_service_set_delay(struct dw_log_service *service, const struct dw_delay *delay)
{
    pthread_mutex_lock(&service->queue.lock);
    service->queue.delay = *delay;
    pthread_mutex_unlock(&service->queue.lock);
}

struct dw_delay dw_log_service_delay(struct dw_log_service *service)
{
    pthread_mutex_lock(&service->queue.lock);
    struct dw_delay delay = service->queue.delay;
    pthread_mutex_unlock(&service->queue.lock);
    return delay;
}

void dw_log_service_poke(struct dw_log_service *service)
{
    dw_log_queue_poke(&service->queue);
}

size_t dw_log_service_stats(struct dw_log_service *service, struct dw_log_stat *stats, size_t capacity,
                            bool reset)
{
    struct dw_log_gauges gauges = {.damaged_at_start = service->damaged};
    pthread_mutex_lock(&service->queue.lock);
    gauges.queue_bytes = service->queue.bytes;
    gauges.refused = service->queue.refused;
    pthread_mutex_unlock(&service->queue.lock);
    pthread_mutex_lock(&service->lock);
    gauges.entries = service->table.count;
    gauges.table_bytes = service->table.bytes;
    gauges.durable_position = service->durable_position;
    struct dw_log_counters counters = service->counters;
    if (reset) {
        service->counters = (struct dw_log_counters){0};
    }
    pthread_mutex_unlock(&service->lock);
    return dw_log_stats_list(&counters, &gauges, stats, capacity);
}

enum dw_error dw_log_service_failed(struct dw_log_service *service, char *text, size_t text_size)
{
    pthread_mutex_lock(&service->lock);
    enum dw_error failed = service->failed;
    snprintf(text, text_size, "%s", service->failed_text);
    pthread_mutex_unlock(&service->lock);
    return failed;
}

void dw_log_service_close(struct dw_log_service *service)
{
    dw_log_queue_shut(&service->queue);
    pthread_join(service->writer, NULL);
    service->store->ops->close(service->store);
    free_service(service);
}
