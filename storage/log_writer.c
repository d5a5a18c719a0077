#include "storage/log_writer.h"

#include <stdio.h>
#include <sys/prctl.h>

#define MAX_BATCH_BYTES (1u << 20)
#define PREFETCH_GROUP  32u
#define TIMER_SLACK_NS  1000ul

static void answer(struct dw_log_service *service, struct dw_queued *item)
{
    const struct dw_log_submission *submission = &item->submission;
    if (item->fence_done != NULL) {
        item->fence_done(submission->context, item->incarnation == 0 ? DW_ERR_RANGE : DW_OK,
                         item->incarnation);
    } else {
        submission->done(submission->context, submission->id, &submission->request, item->answer,
                         item->position, item->incarnation);
    }
    service->answered_bytes += dw_queued_bytes(item);
    dw_queued_free(item);
}

/* After a failure an outcome is unknown, so a request gets no answer at all; a fence is told the error. */
static void drop(struct dw_log_service *service, struct dw_queued *item)
{
    if (item->fence_done != NULL) {
        item->fence_done(item->submission.context, DW_ERR_IO, 0);
    }
    service->answered_bytes += dw_queued_bytes(item);
    dw_queued_free(item);
}

static void drop_all(struct dw_log_service *service, struct dw_queued_list *list)
{
    for (struct dw_queued *item = dw_queued_list_pop(list); item != NULL; item = dw_queued_list_pop(list)) {
        drop(service, item);
    }
}

/* What a failed write left behind is indeterminate: nothing may be acknowledged from here on. */
static void fail(struct dw_log_service *service, enum dw_error error, const char *text)
{
    dw_log_queue_fail(&service->queue, error);
    pthread_mutex_lock(&service->lock);
    service->failed = error;
    snprintf(service->failed_text, sizeof service->failed_text,
             "the log has failed and acknowledges nothing more: %s", text);
    pthread_mutex_unlock(&service->lock);
    fprintf(stderr, "%s\n", service->failed_text);
}

/* All are counted, but only the first, second, fourth and so on is printed: a flood of lines would stop the
 * writer as soon as nobody reads them. */
static void report_conflict(struct dw_log_service *service, const struct dw_queued *item)
{
    const struct dw_log_request *request = &item->submission.request;
    service->conflicts++;
    if ((service->conflicts & (service->conflicts - 1)) == 0) {
        fprintf(stderr, "conflict %llu: %s by node %u meets %s in log %u, transaction %u.%u.%llu\n",
                (unsigned long long)service->conflicts, dw_ask_name(request->ask), request->writer,
                dw_entry_state_name(item->entry == NULL ? DW_ENTRY_NONE : item->entry->entry.state),
                request->log, request->txn.coordinator, request->txn.incarnation,
                (unsigned long long)request->txn.sequence);
    }
}

static void add_record(struct dw_log_service *service, const struct dw_queued *item, enum dw_record record)
{
    const struct dw_log_submission *submission = &item->submission;
    service->records[service->record_count++] = (struct dw_stored_record){
        .position = service->last_position,
        .txn = submission->request.txn,
        .log = submission->request.log,
        .record = record,
        .writer = submission->request.writer,
        .incarnation = submission->request.incarnation,
        .coordinator = dw_ask_is_coordinator(submission->request.ask),
        .participants = submission->participants,
        .redo = submission->redo,
        .redo_size = submission->redo_size,
    };
    service->counters.records++;
    service->counters.redo_bytes += submission->redo_size;
}

/* Makes what the rule says of the item's entry true in the table. DW_ERR_MEMORY. */
static enum dw_error change_entry(struct dw_log_service *service, struct dw_queued *item,
                                  const struct dw_log_verdict *verdict)
{
    const struct dw_log_request *request = &item->submission.request;
    service->last_position++;
    if (item->entry == NULL) {
        item->entry = dw_entry_table_insert(&service->table, request->log, request->txn, item->hash);
        if (item->entry == NULL) {
            return DW_ERR_MEMORY;
        }
        item->entry->entry.content = request->content;
        item->entry->entry.first = service->last_position;
    }
    item->entry->entry.state = verdict->state;
    item->entry->dirty = true;
    add_record(service, item, verdict->append);
    return DW_OK;
}

static enum dw_error apply_request(struct dw_log_service *service, struct dw_queued *item)
{
    const struct dw_log_request *request = &item->submission.request;
    static const struct dw_entry absent = {.state = DW_ENTRY_NONE};
    enum dw_error error = DW_OK;
    item->entry = dw_entry_table_find(&service->table, request->log, request->txn, item->hash);
    item->incarnation = service->incarnations[request->log];
    struct dw_log_verdict verdict =
        service->rule(item->entry == NULL ? &absent : &item->entry->entry, item->incarnation, request);
    if (verdict.append != DW_RECORD_NONE) {
        error = change_entry(service, item, &verdict);
    }
    if (item->entry != NULL) {
        item->position = item->entry->entry.first;
        item->waits = item->entry->dirty;
    }
    item->answer = verdict.answer;
    service->counters.requests[request->ask]++;
    service->counters.answers[verdict.answer]++;
    if (verdict.answer == DW_ANSWER_CONFLICT) {
        service->counters.conflicts++;
        report_conflict(service, item);
    }
    return error;
}

/* After the last incarnation comes none: a number that came round to the first would let old writers in. */
static void apply_fence(struct dw_log_service *service, struct dw_queued *item)
{
    uint32_t log = item->submission.request.log;
    if (service->incarnations[log] == UINT32_MAX) {
        item->incarnation = 0;
        return;
    }
    item->incarnation = ++service->incarnations[log];
    item->waits = true;
    service->fences[service->fence_count++] = (struct dw_stored_fence){
        .position = ++service->last_position, .log = log, .incarnation = item->incarnation};
    service->counters.fences++;
}

/* The cache misses of a group of keys are taken together, so that a big table costs hardly more than a small
 * one. */
static void prefetch(const struct dw_log_service *service, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        dw_entry_table_prefetch_bucket(&service->table, service->batch[i]->hash);
    }
    for (size_t i = from; i < to; i++) {
        dw_entry_table_prefetch_entry(&service->table, service->batch[i]->hash);
    }
}

/* Applies the log rule to the whole batch, each request seeing the changes of those before it. */
static enum dw_error apply_batch(struct dw_log_service *service)
{
    enum dw_error error = DW_OK;
    pthread_mutex_lock(&service->lock);
    for (size_t from = 0; from < service->batch_count && error == DW_OK; from += PREFETCH_GROUP) {
        size_t to = from + PREFETCH_GROUP;
        to = to < service->batch_count ? to : service->batch_count;
        prefetch(service, from, to);
        for (size_t i = from; i < to && error == DW_OK; i++) {
            if (service->batch[i]->fence_done != NULL) {
                apply_fence(service, service->batch[i]);
            } else {
                error = apply_request(service, service->batch[i]);
            }
        }
    }
    pthread_mutex_unlock(&service->lock);
    return error;
}

/* Takes from what is due as much as one batch may hold. */
static void gather_batch(struct dw_log_service *service)
{
    size_t bytes = 0;
    size_t fences = 0;
    service->batch_count = 0;
    service->record_count = 0;
    service->fence_count = 0;
    while (service->ready.head != NULL && service->batch_count < DW_LOG_MAX_BATCH) {
        bytes += service->ready.head->submission.redo_size;
        fences += service->ready.head->fence_done != NULL;
        if (fences > DW_MAX_NODES || (bytes > MAX_BATCH_BYTES && service->batch_count > 0)) {
            break;
        }
        service->batch[service->batch_count++] = dw_queued_list_pop(&service->ready);
    }
}

/* A sync is made for a fence, for a forced request whose answer tells of something not durable, and when
 * answers have been riding for long enough. */
static bool needs_sync(const struct dw_log_service *service, bool overdue)
{
    bool waiting = service->riding.head != NULL;
    for (size_t i = 0; i < service->batch_count; i++) {
        const struct dw_queued *item = service->batch[i];
        if (item->waits && (item->fence_done != NULL || item->submission.force)) {
            return true;
        }
        waiting = waiting || item->waits;
    }
    return waiting && overdue;
}

static void publish_entry(struct dw_queued *item)
{
    if (item->entry != NULL && item->entry->dirty) {
        item->entry->durable = (uint8_t)item->entry->entry.state;
        item->entry->dirty = false;
    }
}

/* Everything that was applied is durable now (or as durable as it gets, without sync). Every dirty entry was
 * made so by an item that still waits. */
static void publish(struct dw_log_service *service)
{
    pthread_mutex_lock(&service->lock);
    for (struct dw_queued *item = service->riding.head; item != NULL; item = item->next) {
        publish_entry(item);
    }
    for (size_t i = 0; i < service->batch_count; i++) {
        publish_entry(service->batch[i]);
    }
    service->durable_position = service->last_position;
    pthread_mutex_unlock(&service->lock);
}

static void answer_all(struct dw_log_service *service)
{
    struct dw_queued_list riding = service->riding;
    service->riding = (struct dw_queued_list){0};
    for (struct dw_queued *item = dw_queued_list_pop(&riding); item != NULL;
         item = dw_queued_list_pop(&riding)) {
        answer(service, item);
    }
    for (size_t i = 0; i < service->batch_count; i++) {
        answer(service, service->batch[i]);
    }
}

/* After a batch without a sync: answers that tell only of durable things are given, the others ride. */
static void answer_durable(struct dw_log_service *service, uint64_t now)
{
    for (size_t i = 0; i < service->batch_count; i++) {
        struct dw_queued *item = service->batch[i];
        if (!item->waits) {
            answer(service, item);
            continue;
        }
        if (service->riding.head == NULL) {
            service->riding_until_us = now + DW_LOG_RIDE_US;
        }
        dw_queued_list_add(&service->riding, item);
    }
}

static enum dw_error append_batch(struct dw_log_service *service, bool sync)
{
    size_t size = service->record_count + service->fence_count;
    if (size == 0 && !sync) {
        return DW_OK;
    }
    enum dw_error error = service->store->ops->append(service->store, service->records, service->record_count,
                                                      service->fences, service->fence_count, sync);
    bool acknowledged = sync || !service->options.sync;
    if (error == DW_OK && acknowledged && service->last_position > service->durable_position) {
        error = service->store->ops->acknowledge(service->store, service->last_position);
    }
    pthread_mutex_lock(&service->lock);
    service->counters.batches++;
    service->counters.syncs += sync;
    if (size > service->counters.largest_batch) {
        service->counters.largest_batch = size;
    }
    pthread_mutex_unlock(&service->lock);
    return error;
}

static void drop_batch(struct dw_log_service *service)
{
    for (size_t i = 0; i < service->batch_count; i++) {
        drop(service, service->batch[i]);
    }
}

/* The bound has room again before the user hears of it, so that what was refused may be tried then. */
static void end_batch(struct dw_log_service *service)
{
    dw_log_queue_release(&service->queue, service->answered_bytes);
    service->answered_bytes = 0;
    if (service->options.on_batch_end != NULL) {
        service->options.on_batch_end(service->options.user);
    }
}

static void run_batch(struct dw_log_service *service, uint64_t now, bool closing)
{
    gather_batch(service);
    enum dw_error error = apply_batch(service);
    if (error != DW_OK) {
        fail(service, error, "no memory for an entry: use a machine with more memory, or a smaller run");
        drop_batch(service);
        return;
    }
    bool overdue = closing || (service->riding.head != NULL && now >= service->riding_until_us);
    bool sync = service->options.sync && needs_sync(service, overdue);
    error = append_batch(service, sync);
    if (error != DW_OK) {
        fail(service, error, service->store->ops->error_text(service->store));
        drop_batch(service);
        return;
    }
    if (sync || !service->options.sync) {
        publish(service);
        answer_all(service);
    } else {
        answer_durable(service, now);
    }
    end_batch(service);
}

static uint64_t next_deadline(const struct dw_log_service *service)
{
    uint64_t deadline = service->delayed == NULL ? DW_LOG_NEVER : service->delayed->due_us;
    if (service->riding.head != NULL && service->riding_until_us < deadline) {
        deadline = service->riding_until_us;
    }
    return deadline;
}

/* Puts what came into the heap or among what is due, after those whose delay has passed. */
static void sort_arrivals(struct dw_log_service *service, struct dw_queued_list *arrivals, uint64_t now,
                          bool closing)
{
    struct dw_queued_list undelayed = {0};
    struct dw_queued *item;
    while ((item = dw_queued_list_pop(arrivals)) != NULL) {
        if (item->due_us == 0) {
            dw_queued_list_add(&undelayed, item);
        } else {
            service->delayed = dw_queued_heap_add(service->delayed, item);
        }
    }
    while (service->delayed != NULL && (closing || service->delayed->due_us <= now)) {
        item = service->delayed;
        service->delayed = dw_queued_heap_pop(item);
        dw_queued_list_add(&service->ready, item);
    }
    dw_queued_list_move(&service->ready, &undelayed);
}

static void drop_everything(struct dw_log_service *service)
{
    while (service->delayed != NULL) {
        struct dw_queued *item = service->delayed;
        service->delayed = dw_queued_heap_pop(item);
        drop(service, item);
    }
    drop_all(service, &service->riding);
    drop_all(service, &service->ready);
}

static void run_due(struct dw_log_service *service, bool closing)
{
    uint64_t now = dw_log_queue_now(&service->queue);
    while (service->failed == DW_OK &&
           (service->ready.head != NULL ||
            (service->riding.head != NULL && (closing || now >= service->riding_until_us)))) {
        run_batch(service, now, closing);
    }
    if (service->failed != DW_OK && (service->answered_bytes > 0 || service->delayed != NULL ||
                                     service->ready.head != NULL || service->riding.head != NULL)) {
        drop_everything(service);
        end_batch(service);
    }
}

void *dw_log_writer_main(void *argument)
{
    struct dw_log_service *service = argument;
    bool closing = false;
    /* By default the kernel lets a sleep last up to 50 us longer, which every injected delay would have on
     * top. */
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
    bool more = true;
    while (more) {
        struct dw_queued_list arrivals = {0};
        closing = dw_log_queue_take(&service->queue, next_deadline(service), &arrivals);
        /* Once it closes, nothing more can arrive: this round is the last. */
        more = !closing;
        sort_arrivals(service, &arrivals, dw_log_queue_now(&service->queue), closing);
        run_due(service, closing);
    }
    return NULL;
}
