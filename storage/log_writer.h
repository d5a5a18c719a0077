/* log_writer.h - the inside of a log service, and the thread that owns it: it drains the queue into batches,
 * applies the log rule, appends, syncs and answers.
 */
#ifndef DW_STORAGE_LOG_WRITER_H
#define DW_STORAGE_LOG_WRITER_H

#include <pthread.h>

#include "base/limits.h"
#include "storage/entry_table.h"
#include "storage/log_queue.h"
#include "storage/log_service.h"
#include "storage/log_stats.h"

#define DW_LOG_MAX_BATCH 4096u

struct dw_log_service {
    struct dw_log_service_options options;
    struct dw_log_store *store;
    dw_log_rule_fn *rule;
    pthread_t writer;
    struct dw_log_queue queue;

    /* Below the lock: the writer changes these under it, so it reads them without; others read them under it.
     */
    pthread_mutex_t lock;
    struct dw_entry_table table;
    uint32_t incarnations[DW_MAX_NODES];
    uint64_t durable_position;
    struct dw_log_counters counters;
    enum dw_error failed;
    char failed_text[16384]; /* a store's text names its directory, whose path may be long */

    /* The writer's alone. */
    uint64_t damaged; /* entries, at the start */
    uint64_t last_position;
    uint64_t conflicts;
    struct dw_queued *delayed;    /* heap */
    struct dw_queued_list ready;  /* due, not applied yet */
    struct dw_queued_list riding; /* applied and appended; their answers wait for the next sync */
    uint64_t riding_until_us;     /* when that sync is made at the latest */
    size_t answered_bytes;
    size_t batch_count;
    size_t record_count;
    size_t fence_count;
    struct dw_queued *batch[DW_LOG_MAX_BATCH];
    struct dw_stored_record records[DW_LOG_MAX_BATCH];
    struct dw_stored_fence fences[DW_MAX_NODES];
};

/* Runs until the queue is shut and everything in it is answered; the argument is the service. */
void *dw_log_writer_main(void *service);

#endif
