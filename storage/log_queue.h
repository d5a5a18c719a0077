/* log_queue.h - what waits for the log writer: a bounded inbox that any thread fills, and the heap of delayed
 * requests, which belongs to the writer.
 */
#ifndef DW_STORAGE_LOG_QUEUE_H
#define DW_STORAGE_LOG_QUEUE_H

#include <pthread.h>

#include "storage/entry_table.h"
#include "storage/log_service.h"

struct dw_log_block;

/* One request or fence on its way through the service. */
struct dw_queued {
    struct dw_queued *next;  /* in a list; in the heap the next sibling */
    struct dw_queued *child; /* in the heap */
    struct dw_log_block *block;
    uint64_t due_us;
    uint64_t order; /* of arrival, between requests that are due at the same time */
    uint64_t hash;  /* of the key, for the table */
    struct dw_log_submission submission;
    dw_fence_done *fence_done; /* not NULL: a fence, and only submission.request.log and .context are used */
    /* What the writer found. */
    struct dw_table_entry *entry; /* NULL: absent */
    enum dw_answer answer;
    uint32_t incarnation;
    uint64_t position;
    bool waits; /* the answer tells of something that isn't durable yet */
};

/* Zero is the empty list. */
struct dw_queued_list {
    struct dw_queued *head;
    struct dw_queued *tail;
};

void dw_queued_list_add(struct dw_queued_list *list, struct dw_queued *item);
struct dw_queued *dw_queued_list_pop(struct dw_queued_list *list);
/* Moves all of `from` behind `list`. */
void dw_queued_list_move(struct dw_queued_list *list, struct dw_queued_list *from);

/* Pairing heap (Fredman et al., 1986) by due time, then arrival. The root is the earliest; NULL is empty.
 * Nothing is allocated, so a delayed request can never fail for want of memory. */
struct dw_queued *dw_queued_heap_add(struct dw_queued *root, struct dw_queued *item);
/* The heap without its root. */
struct dw_queued *dw_queued_heap_pop(struct dw_queued *root);

/* Requests that came together lie in one block of memory, with their redo. */
DW_MUST_CHECK enum dw_error dw_log_block_make(const struct dw_log_submission *submissions, size_t count,
                                              struct dw_log_block **block);
DW_MUST_CHECK enum dw_error dw_log_block_make_fence(uint32_t log, dw_fence_done *done, void *context,
                                                    struct dw_log_block **block);
void dw_log_block_free(struct dw_log_block *block);
/* Lets go of one item; the block goes with its last. */
void dw_queued_free(struct dw_queued *item);
/* What an item takes from the bound of the queue. */
size_t dw_queued_bytes(const struct dw_queued *item);

#define DW_LOG_NEVER UINT64_MAX

struct dw_log_queue {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct dw_queued_list inbox;
    size_t bytes; /* of all items that aren't answered yet */
    size_t max_bytes;
    uint64_t order;
    uint64_t refused; /* submissions that met the bound */
    bool sleeping;    /* the writer waits for `wake` */
    bool poked;
    bool closing;
    enum dw_error failed;
    struct dw_delay delay;
    struct dw_random random;
    uint64_t (*now_us)(void *user); /* NULL: the monotonic clock */
    void *user;
};

DW_MUST_CHECK enum dw_error dw_log_queue_init(struct dw_log_queue *queue,
                                              const struct dw_log_service_options *options);
/* The inbox must have been taken. */
void dw_log_queue_close(struct dw_log_queue *queue);

uint64_t dw_log_queue_now(const struct dw_log_queue *queue);

/* Queues all items of the block and takes it over. DW_ERR_FULL, DW_ERR_SHUTDOWN, or the error that the
 * service failed with: the block stays the caller's. */
DW_MUST_CHECK enum dw_error dw_log_queue_push(struct dw_log_queue *queue, struct dw_log_block *block);

/* The writer: takes what came, waiting for it until the deadline at most. Returns true if the queue is
 * closing. */
bool dw_log_queue_take(struct dw_log_queue *queue, uint64_t deadline_us, struct dw_queued_list *list);

/* Gives back what answered items had taken from the bound. */
void dw_log_queue_release(struct dw_log_queue *queue, size_t bytes);

void dw_log_queue_poke(struct dw_log_queue *queue);
void dw_log_queue_shut(struct dw_log_queue *queue);
void dw_log_queue_fail(struct dw_log_queue *queue, enum dw_error error);

#endif
