/* log_service.h - the logs of one storage node: the log rule applied to a queue by one writer thread.
 *
 * Requests from any thread join a queue, first waiting out the injected delay if they are writes. The writer takes all
 * that are due, applies the log rule of core/log_rule.h to the table of unswept entries in memory, appends what it
 * says as one batch, syncs once, and only then answers all of them. So check and append are one atomic step, an
 * answer VOTE_YES is durable, and a denial that meets a pending vote waits for it. A request with force = false does not cause a
 * sync: it waits for one, at most a bounded time, or is answered without if sync is off.
 */
#ifndef DW_STORAGE_LOG_SERVICE_H
#define DW_STORAGE_LOG_SERVICE_H

#include "storage/delay.h"
#include "storage/log_store.h"

struct dw_log_service;

/* Called once per request, on the writer thread, in the order of the log. Must not block for long. */
typedef void dw_log_done(void *context, uint64_t id, const struct dw_log_request *request, enum dw_answer answer,
                         uint64_t position, uint32_t incarnation);

/* One request. `content` of the rule's request is computed by the service from participants and redo. The redo is
 * copied at submission. */
struct dw_log_submission {
    struct dw_log_request request;
    uint64_t participants;
    const uint8_t *redo;
    size_t redo_size;
    bool force;
    uint64_t id;
    dw_log_done *done;
    void *context;
};

struct dw_log_service_options {
    struct dw_log_store *store; /* taken over: closed with the service, also if opening fails */
    bool sync;
    struct dw_delay delay;
    uint64_t seed;              /* of the delay's random numbers */
    size_t max_queue_bytes;     /* what may wait; 0: 256 MiB */
    dw_log_rule_fn *rule;       /* NULL: dw_log_rule; tests put mutants here */
};

/* Loads the table from the store and starts the writer. */
DW_MUST_CHECK enum dw_error dw_log_service_open(const struct dw_log_service_options *options,
                                                struct dw_log_service **service, char *text, size_t text_size);

/* Queues `count` requests at once (one wake-up). DW_ERR_FULL: the bound would be passed, none was queued. DW_ERR_IO:
 * the store failed earlier and nothing is accepted any more; then the process should stop. */
DW_MUST_CHECK enum dw_error dw_log_service_submit(struct dw_log_service *service,
                                                  const struct dw_log_submission *submissions, size_t count);

/* Takes the next incarnation of the log's owner through the same queue as appends, durably, undelayed. */
typedef void dw_fence_done(void *context, enum dw_error error, uint32_t incarnation);
DW_MUST_CHECK enum dw_error dw_log_service_fence(struct dw_log_service *service, uint32_t log, dw_fence_done *done,
                                                 void *context);

/* The state of one entry as far as it is durable; no delay, any thread. */
struct dw_entry dw_log_service_read(struct dw_log_service *service, uint32_t log, struct dw_txn_id txn);

/* Visits durable records of a log from a position on; any thread. */
DW_MUST_CHECK enum dw_error dw_log_service_scan(struct dw_log_service *service, uint32_t log, uint64_t from,
                                                dw_record_visitor *on_record, void *user);

/* The delay from now on, for requests that arrive later; any thread. */
void dw_log_service_set_delay(struct dw_log_service *service, const struct dw_delay *delay);
struct dw_delay dw_log_service_delay(struct dw_log_service *service);

/* Counters since the start, or since the last reset: name and value, e.g. requests by ask, answers by answer,
 * appended records and bytes, batches, syncs, largest batch, entries, conflicts, queue bytes. */
struct dw_log_stat {
    char name[48];
    uint64_t value;
};
size_t dw_log_service_stats(struct dw_log_service *service, struct dw_log_stat *stats, size_t capacity, bool reset);

/* Non-zero after the store failed; the text tells what happened. */
enum dw_error dw_log_service_failed(struct dw_log_service *service, char *text, size_t text_size);

/* Answers what is queued (delays are cut short), stops the writer, closes the store. */
void dw_log_service_close(struct dw_log_service *service);

#endif
