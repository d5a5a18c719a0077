#include <stdlib.h>

#include "base/limits.h"
#include "storage/server_internal.h"

/* A page ends early enough that one more record, of whatever size, would still have fitted. */
#define RECORD_SLACK 4096u
#define PAGE_BYTES   (DW_MAX_MESSAGE - DW_MAX_REDO - RECORD_SLACK)

/* One call that waits for the reader. */
struct read_job {
    struct read_job *next;
    struct dw_unary_call *call;
    bool is_scan;
    struct dw_admin_scan scan;
    uint32_t log;
    struct dw_txn_id txn;
};

static struct dw_admin_record record_out(const struct dw_stored_record *record)
{
    return (struct dw_admin_record){.position = record->position,
                                    .txn = record->txn,
                                    .log = record->log,
                                    .record = record->damaged ? DW_RECORD_NONE : record->record,
                                    .writer = record->writer,
                                    .incarnation = record->incarnation,
                                    .coordinator = record->coordinator,
                                    .participants = record->participants,
                                    .redo = record->redo,
                                    .redo_size = record->redo_size};
}

struct page {
    const struct dw_admin_scan *scan;
    struct dw_buffer reply;
    uint32_t count;
    uint64_t next;
    enum dw_error error;
};

static bool add_to_page(void *user, const struct dw_stored_record *stored)
{
    struct page *page = user;
    struct dw_admin_record record = record_out(stored);
    bool full = page->scan->limit != 0 && page->count == page->scan->limit;
    if (full || page->reply.size > PAGE_BYTES) {
        page->next = stored->position;
        return false;
    }
    page->error = dw_admin_encode_scanned(&page->reply, &record);
    page->count++;
    return page->error == DW_OK;
}

static void run_scan(struct server *server, const struct read_job *job)
{
    struct page page = {.scan = &job->scan};
    enum dw_error error =
        dw_log_service_scan(server->service, job->scan.log, job->scan.from, add_to_page, &page);
    error = error == DW_OK ? page.error : error;
    if (error == DW_OK) {
        error = dw_admin_encode_scan_end(&page.reply, page.next);
    }
    admin_answer(job->call, error, &page.reply);
}

/* The records of one entry lie apart, with those of others in between. */
struct entry_search {
    struct dw_txn_id txn;
    enum dw_entry_state wanted;
    enum dw_entry_state state; /* after the records found so far */
    struct dw_buffer reply;
    enum dw_error error;
};

static bool add_to_entry(void *user, const struct dw_stored_record *stored)
{
    struct entry_search *search = user;
    if (!dw_txn_id_equal(stored->txn, search->txn)) {
        return true;
    }
    struct dw_admin_record record = record_out(stored);
    search->error = dw_admin_encode_entry_record(&search->reply, &record);
    search->state = stored->damaged ? DW_ENTRY_DAMAGED
                                    : dw_entry_replay(search->state, stored->record, stored->coordinator);
    return search->error == DW_OK && search->state != search->wanted;
}

static void run_read_entry(struct server *server, const struct read_job *job)
{
    struct dw_entry entry = dw_log_service_read(server->service, job->log, job->txn);
    struct dw_admin_entry found = {.state = entry.state, .first_position = entry.first};
    struct entry_search search = {.txn = job->txn, .wanted = entry.state};
    enum dw_error error = dw_admin_encode_entry(&search.reply, &found);
    if (error == DW_OK && entry.state != DW_ENTRY_NONE && entry.state != DW_ENTRY_FORGOTTEN) {
        error = dw_log_service_scan(server->service, job->log, entry.first, add_to_entry, &search);
        error = error == DW_OK ? search.error : error;
    }
    admin_answer(job->call, error, &search.reply);
}

static struct read_job *next_job(struct reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    while (reader->head == NULL && !reader->closing) {
        pthread_cond_wait(&reader->wake, &reader->lock);
    }
    struct read_job *job = reader->head;
    if (job != NULL) {
        reader->head = job->next;
        reader->tail = reader->head == NULL ? NULL : reader->tail;
        reader->count--;
    }
    pthread_mutex_unlock(&reader->lock);
    return job;
}

static void *reader_main(void *argument)
{
    struct server *server = argument;
    for (struct read_job *job = next_job(&server->reader); job != NULL; job = next_job(&server->reader)) {
        if (job->is_scan) {
            run_scan(server, job);
        } else {
            run_read_entry(server, job);
        }
        free(job);
    }
    return NULL;
}

enum dw_error reader_open(struct server *server)
{
    struct reader *reader = &server->reader;
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->wake, NULL);
    if (pthread_create(&reader->thread, NULL, reader_main, server) != 0) {
        pthread_cond_destroy(&reader->wake);
        pthread_mutex_destroy(&reader->lock);
        return DW_ERR_MEMORY;
    }
    return DW_OK;
}

void reader_close(struct server *server)
{
    struct reader *reader = &server->reader;
    pthread_mutex_lock(&reader->lock);
    reader->closing = true;
    pthread_cond_signal(&reader->wake);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
    pthread_cond_destroy(&reader->wake);
    pthread_mutex_destroy(&reader->lock);
}

static bool push_job(struct reader *reader, struct read_job *job)
{
    pthread_mutex_lock(&reader->lock);
    bool room = reader->count < READER_MAX_JOBS;
    if (room) {
        job->next = NULL;
        if (reader->tail == NULL) {
            reader->head = job;
        } else {
            reader->tail->next = job;
        }
        reader->tail = job;
        reader->count++;
        pthread_cond_signal(&reader->wake);
    }
    pthread_mutex_unlock(&reader->lock);
    return room;
}

static void submit(struct server *server, const struct read_job *wanted)
{
    struct read_job *job = malloc(sizeof *job);
    if (job == NULL) {
        admin_refuse(wanted->call, DW_ERR_MEMORY, dw_error_text(DW_ERR_MEMORY));
        return;
    }
    *job = *wanted;
    if (!push_job(&server->reader, job)) {
        free(job);
        atomic_fetch_add(&server->counters.reads_refused, 1);
        admin_refuse(wanted->call, DW_ERR_FULL, "too many reads wait at this storage node: try again later");
    }
}

void reader_scan(struct server *server, struct dw_unary_call *call, const struct dw_admin_scan *scan)
{
    struct read_job job = {.call = call, .is_scan = true, .scan = *scan};
    submit(server, &job);
}

void reader_read_entry(struct server *server, struct dw_unary_call *call, uint32_t log, struct dw_txn_id txn)
{
    struct read_job job = {.call = call, .log = log, .txn = txn};
    submit(server, &job);
}
