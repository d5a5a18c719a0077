#include "storage/log_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/limits.h"
#include "storage/record_format.h"

#define DEFAULT_MAX_BYTES ((size_t)256 << 20)

struct dw_log_block {
    size_t live; /* items that aren't answered; only the writer changes it */
    size_t count;
    size_t bytes;
    struct dw_queued items[];
};

void dw_queued_list_add(struct dw_queued_list *list, struct dw_queued *item)
{
    item->next = NULL;
    if (list->tail == NULL) {
        list->head = item;
    } else {
        list->tail->next = item;
    }
    list->tail = item;
}

struct dw_queued *dw_queued_list_pop(struct dw_queued_list *list)
{
    struct dw_queued *item = list->head;
    if (item != NULL) {
        list->head = item->next;
        if (list->head == NULL) {
            list->tail = NULL;
        }
    }
    return item;
}

void dw_queued_list_move(struct dw_queued_list *list, struct dw_queued_list *from)
{
    if (from->head == NULL) {
        return;
    }
    if (list->tail == NULL) {
        list->head = from->head;
    } else {
        list->tail->next = from->head;
    }
    list->tail = from->tail;
    *from = (struct dw_queued_list){0};
}

static bool is_before(const struct dw_queued *a, const struct dw_queued *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

/* Makes the later of two roots the first child of the earlier. */
static struct dw_queued *merge(struct dw_queued *a, struct dw_queued *b)
{
    if (a == NULL || b == NULL) {
        return a == NULL ? b : a;
    }
    if (is_before(b, a)) {
        struct dw_queued *other = a;
        a = b;
        b = other;
    }
    b->next = a->child;
    a->child = b;
    return a;
}

struct dw_queued *dw_queued_heap_add(struct dw_queued *root, struct dw_queued *item)
{
    item->next = NULL;
    item->child = NULL;
    return merge(root, item);
}

struct dw_queued *dw_queued_heap_pop(struct dw_queued *root)
{
    /* First pass: merge the children in pairs, collected in reverse; second pass: merge the pairs. */
    struct dw_queued *pairs = NULL;
    struct dw_queued *child = root->child;
    while (child != NULL) {
        struct dw_queued *second = child->next;
        struct dw_queued *rest = second == NULL ? NULL : second->next;
        child->next = NULL;
        struct dw_queued *pair = merge(child, second);
        pair->next = pairs;
        pairs = pair;
        child = rest;
    }
    struct dw_queued *merged = NULL;
    while (pairs != NULL) {
        struct dw_queued *next = pairs->next;
        pairs->next = NULL;
        merged = merge(merged, pairs);
        pairs = next;
    }
    root->child = NULL;
    return merged;
}

static enum dw_error check_submission(const struct dw_log_submission *submission)
{
    const struct dw_log_request *request = &submission->request;
    if (request->log >= DW_MAX_NODES || (unsigned)request->ask >= DW_ASKS || !dw_txn_id_valid(request->txn)) {
        return DW_ERR_RANGE;
    }
    return submission->redo_size > DW_MAX_REDO ? DW_ERR_TOO_LARGE : DW_OK;
}

/* Only these asks put redo into an entry's first record, which a repetition must match. */
static bool has_content(enum dw_ask ask)
{
    return ask == DW_ASK_VOTE || ask == DW_ASK_COMMIT_LOCAL || ask == DW_ASK_COORD_COMMIT;
}

static struct dw_log_block *allocate(size_t count, size_t redo_bytes)
{
    struct dw_log_block *block = malloc(sizeof *block + count * sizeof *block->items + redo_bytes);
    if (block != NULL) {
        *block = (struct dw_log_block){
            .live = count, .count = count, .bytes = count * sizeof *block->items + redo_bytes};
    }
    return block;
}

enum dw_error dw_log_block_make(const struct dw_log_submission *submissions, size_t count,
                                struct dw_log_block **block)
{
    size_t redo_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        enum dw_error error = check_submission(&submissions[i]);
        if (error != DW_OK) {
            return error;
        }
        redo_bytes += submissions[i].redo_size;
    }
    *block = allocate(count, redo_bytes);
    if (*block == NULL) {
        return DW_ERR_MEMORY;
    }
    uint8_t *redo = (uint8_t *)&(*block)->items[count];
    for (size_t i = 0; i < count; i++) {
        struct dw_queued *item = &(*block)->items[i];
        *item = (struct dw_queued){.block = *block, .submission = submissions[i]};
        struct dw_log_submission *submission = &item->submission;
        if (submission->redo_size > 0) {
            memcpy(redo, submission->redo, submission->redo_size);
        }
        submission->redo = redo;
        redo += submission->redo_size;
        struct dw_log_request *request = &submission->request;
        request->content =
            has_content(request->ask)
                ? dw_record_content(submission->participants, submission->redo, submission->redo_size)
                : 0;
        item->hash = dw_entry_table_hash(request->log, request->txn);
    }
    return DW_OK;
}

enum dw_error dw_log_block_make_fence(uint32_t log, dw_fence_done *done, void *context,
                                      struct dw_log_block **block)
{
    if (log >= DW_MAX_NODES) {
        return DW_ERR_RANGE;
    }
    *block = allocate(1, 0);
    if (*block == NULL) {
        return DW_ERR_MEMORY;
    }
    (*block)->items[0] = (struct dw_queued){.block = *block, .fence_done = done};
    (*block)->items[0].submission.request.log = log;
    (*block)->items[0].submission.context = context;
    return DW_OK;
}

void dw_log_block_free(struct dw_log_block *block)
{
    free(block);
}

void dw_queued_free(struct dw_queued *item)
{
    struct dw_log_block *block = item->block;
    DW_ASSERT(block->live > 0);
    if (--block->live == 0) {
        free(block);
    }
}

size_t dw_queued_bytes(const struct dw_queued *item)
{
    return sizeof *item + item->submission.redo_size;
}

enum dw_error dw_log_queue_init(struct dw_log_queue *queue, const struct dw_log_service_options *options)
{
    *queue = (struct dw_log_queue){
        .max_bytes = options->max_queue_bytes == 0 ? DEFAULT_MAX_BYTES : options->max_queue_bytes,
        .delay = options->delay,
        .now_us = options->now_us,
        .user = options->user,
    };
    dw_random_init(&queue->random, options->seed);
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&queue->lock, NULL) != 0) {
        return DW_ERR_MEMORY;
    }
    if (pthread_condattr_init(&attributes) != 0) {
        pthread_mutex_destroy(&queue->lock);
        return DW_ERR_MEMORY;
    }
    int failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed = failed != 0 ? failed : pthread_cond_init(&queue->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (failed != 0) {
        pthread_mutex_destroy(&queue->lock);
        return DW_ERR_MEMORY;
    }
    return DW_OK;
}

void dw_log_queue_close(struct dw_log_queue *queue)
{
    DW_ASSERT(queue->inbox.head == NULL);
    pthread_cond_destroy(&queue->wake);
    pthread_mutex_destroy(&queue->lock);
}

uint64_t dw_log_queue_now(const struct dw_log_queue *queue)
{
    struct timespec now;
    if (queue->now_us != NULL) {
        return queue->now_us(queue->user);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Unlocks, and wakes the writer if it sleeps: only then, or it would run into the lock at once. */
static void unlock_and_wake(struct dw_log_queue *queue, bool wake)
{
    wake = wake && queue->sleeping;
    if (wake) {
        queue->sleeping = false;
    }
    pthread_mutex_unlock(&queue->lock);
    if (wake) {
        pthread_cond_signal(&queue->wake);
    }
}

/* Injected delay is served before a request is admitted, and on every write, also one that will append
 * nothing. */
static void admit(struct dw_log_queue *queue, struct dw_log_block *block)
{
    uint64_t now = queue->delay.mean_ms > 0 ? dw_log_queue_now(queue) : 0;
    for (size_t i = 0; i < block->count; i++) {
        struct dw_queued *item = &block->items[i];
        item->order = queue->order++;
        if (item->fence_done == NULL && dw_ask_is_write(item->submission.request.ask)) {
            item->due_us = now + dw_delay_draw(&queue->delay, &queue->random);
        }
        dw_queued_list_add(&queue->inbox, item);
    }
    queue->bytes += block->bytes;
}

enum dw_error dw_log_queue_push(struct dw_log_queue *queue, struct dw_log_block *block)
{
    enum dw_error error = DW_OK;
    pthread_mutex_lock(&queue->lock);
    if (queue->failed != DW_OK) {
        error = DW_ERR_IO;
    } else if (queue->closing) {
        error = DW_ERR_SHUTDOWN;
    } else if (block->bytes > queue->max_bytes - queue->bytes) {
        queue->refused++;
        error = DW_ERR_FULL;
    } else {
        admit(queue, block);
    }
    unlock_and_wake(queue, error == DW_OK);
    return error;
}

/* Sleeps until woken; false once the deadline has passed. */
static bool sleep_until(struct dw_log_queue *queue, uint64_t deadline_us)
{
    queue->sleeping = true;
    if (deadline_us == DW_LOG_NEVER || queue->now_us != NULL) {
        pthread_cond_wait(&queue->wake, &queue->lock);
        return true;
    }
    struct timespec deadline = {.tv_sec = (time_t)(deadline_us / 1000000),
                                .tv_nsec = (long)(deadline_us % 1000000) * 1000};
    return pthread_cond_timedwait(&queue->wake, &queue->lock, &deadline) != ETIMEDOUT;
}

bool dw_log_queue_take(struct dw_log_queue *queue, uint64_t deadline_us, struct dw_queued_list *list)
{
    pthread_mutex_lock(&queue->lock);
    bool wait = deadline_us == DW_LOG_NEVER || deadline_us > dw_log_queue_now(queue);
    while (wait && queue->inbox.head == NULL && !queue->closing && !queue->poked) {
        wait = sleep_until(queue, deadline_us);
    }
    queue->sleeping = false;
    queue->poked = false;
    dw_queued_list_move(list, &queue->inbox);
    bool closing = queue->closing;
    pthread_mutex_unlock(&queue->lock);
    return closing;
}

void dw_log_queue_release(struct dw_log_queue *queue, size_t bytes)
{
    pthread_mutex_lock(&queue->lock);
    DW_ASSERT(bytes <= queue->bytes);
    queue->bytes -= bytes;
    pthread_mutex_unlock(&queue->lock);
}

void dw_log_queue_poke(struct dw_log_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->poked = true;
    unlock_and_wake(queue, true);
}

void dw_log_queue_shut(struct dw_log_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closing = true;
    unlock_and_wake(queue, true);
}

void dw_log_queue_fail(struct dw_log_queue *queue, enum dw_error error)
{
    pthread_mutex_lock(&queue->lock);
    queue->failed = error;
    pthread_mutex_unlock(&queue->lock);
}
