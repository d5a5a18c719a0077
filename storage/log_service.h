/* log_service.h - the logs of one storage node: the log rule applied to a queue by one writer thread.
 *
 * Requests from any thread join a queue, first waiting out the injected delay if they are writes. The writer
 * takes all that are due, applies the log rule of core/log_rule.h to the table of unswept entries in memory,
 * appends what it says as one batch, syncs once, and only then answers all of them. So check and append are
 * one atomic step, an answer VOTE_YES is durable, and a denial that meets a pending vote waits for it. A
 * request with force = false does not cause a sync: it waits for one, at most a bounded time, or is answered
 * without if sync is off.
 */
#ifndef DW_STORAGE_LOG_SERVICE_H
#define DW_STORAGE_LOG_SERVICE_H

#include "storage/delay.h"
#include "storage/log_store.h"

struct dw_log_service;

/* Called once per request, on the writer thread, without locks; answers of one batch come in the order in
 * which they were applied. Must not block for long; may submit. `position` is that of the entry's first
 * record, 0 if there is none; `incarnation` is the newest of the log's owner. Never called after the store
 * failed: such an outcome is unknown. */
typedef void dw_log_done(void *context, uint64_t id, const struct dw_log_request *request,
                         enum dw_answer answer, uint64_t position, uint32_t incarnation);

/* One request. `content` of the rule's request is computed by the service from participants and redo. The
 * redo is copied at submission. */
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
    uint64_t seed;          /* of the delay's random numbers */
    size_t max_queue_bytes; /* what may wait; 0: 256 MiB */
    dw_log_rule_fn *rule;   /* NULL: dw_log_rule; tests put mutants here */
    /* Called on the writer thread after the answers of each batch, and once the store has failed; may be
     * NULL. Here replies that the `done` calls gathered can be sent at once, and what met DW_ERR_FULL can be
     * tried again: what was answered no longer counts. */
    void (*on_batch_end)(void *user);
    /* The clock of delays, in microseconds; NULL: the monotonic clock. With another one the writer doesn't
     * know when its time comes, so whoever moves the clock calls dw_log_service_poke. */
    uint64_t (*now_us)(void *user);
    void *user;
};

/* A request with force = false causes a sync by itself after this time at the latest. */
#define DW_LOG_RIDE_US 2000u

/* Loads the table from the store and starts the writer. */
DW_MUST_CHECK enum dw_error dw_log_service_open(const struct dw_log_service_options *options,
                                                struct dw_log_service **service, char *text,
                                                size_t text_size);

/* Queues `count` requests at once (one wake-up), all or none. DW_ERR_FULL: the bound would be passed.
 * DW_ERR_RANGE: a log, a transaction id or an ask is out of range (which logs this storage node serves is the
 * caller's business). DW_ERR_TOO_LARGE: more redo than DW_MAX_REDO. DW_ERR_IO: the store failed earlier and
 * nothing is accepted any more; then the process should stop. DW_ERR_MEMORY. */
DW_MUST_CHECK enum dw_error dw_log_service_submit(struct dw_log_service *service,
                                                  const struct dw_log_submission *submissions, size_t count);

/* Takes the next incarnation of the log's owner through the same queue as appends, durably, undelayed; the
 * first is 1. If the store fails, `done` gets DW_ERR_IO; if there is none left after UINT32_MAX,
 * DW_ERR_RANGE. Called on the writer thread. */
typedef void dw_fence_done(void *context, enum dw_error error, uint32_t incarnation);
DW_MUST_CHECK enum dw_error dw_log_service_fence(struct dw_log_service *service, uint32_t log,
                                                 dw_fence_done *done, void *context);

/* The state of one entry as far as it is durable; no delay, any thread. */
struct dw_entry dw_log_service_read(struct dw_log_service *service, uint32_t log, struct dw_txn_id txn);

/* Visits durable records of a log from a position on; any thread. */
DW_MUST_CHECK enum dw_error dw_log_service_scan(struct dw_log_service *service, uint32_t log, uint64_t from,
                                                dw_record_visitor *on_record, void *user);

/* The delay from now on, for requests that arrive later; any thread. */
void dw_log_service_set_delay(struct dw_log_service *service, const struct dw_delay *delay);
struct dw_delay dw_log_service_delay(struct dw_log_service *service);

/* Makes the writer read its clock again. */
void dw_log_service_poke(struct dw_log_service *service);

/* Counters since the start, or since the last reset: name and value, e.g. requests by ask, answers by answer,
 * appended records and bytes, batches, syncs, largest batch, entries, conflicts, queue bytes. */
struct dw_log_stat {
    char name[48];
    uint64_t value;
};
size_t dw_log_service_stats(struct dw_log_service *service, struct dw_log_stat *stats, size_t capacity,
                            bool reset);

/* Non-zero after the store failed; the text tells what happened. */
enum dw_error dw_log_service_failed(struct dw_log_service *service, char *text, size_t text_size);

/* Answers what is queued (delays are cut short), stops the writer, closes the store. */
void dw_log_service_close(struct dw_log_service *service);

#endif
