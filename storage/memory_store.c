/* memory_store.c - records in chunks of memory that are only ever added to, so that a scan needs the lock
 * just to learn how far the last chunk is filled. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "storage/log_store.h"

#define CHUNK_BYTES (256u << 10)

struct chunk {
    struct chunk *next;
    uint64_t last; /* position of its last record */
    size_t used;
    size_t capacity;
    _Alignas(16) uint8_t data[]; /* a dw_stored_record and its redo, then the next */
};

struct log {
    struct chunk *first;
    struct chunk *last;
};

struct memory_store {
    struct dw_log_store store;
    pthread_mutex_t lock; /* of the links and the fill levels of chunks, not of what is in them */
    struct log logs[DW_MAX_NODES];
};

static struct memory_store *memory_of(struct dw_log_store *store)
{
    return (struct memory_store *)(void *)store;
}

static size_t record_bytes(const struct dw_stored_record *record)
{
    return (sizeof *record + record->redo_size + 15) & ~(size_t)15;
}

/* A chunk at the end of the log with room for so many bytes, or NULL. */
static struct chunk *make_room(struct log *log, size_t bytes)
{
    if (log->last != NULL && log->last->capacity - log->last->used >= bytes) {
        return log->last;
    }
    size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    struct chunk *chunk = malloc(sizeof *chunk + capacity);
    if (chunk == NULL) {
        return NULL;
    }
    *chunk = (struct chunk){.capacity = capacity};
    if (log->last == NULL) {
        log->first = chunk;
    } else {
        log->last->next = chunk;
    }
    log->last = chunk;
    return chunk;
}

static enum dw_error memory_append(struct dw_log_store *store, const struct dw_stored_record *records,
                                   size_t count, const struct dw_stored_fence *fences, size_t fence_count,
                                   bool sync)
{
    struct memory_store *memory = memory_of(store);
    enum dw_error error = DW_OK;
    (void)fences;
    (void)fence_count;
    (void)sync;
    pthread_mutex_lock(&memory->lock);
    for (size_t i = 0; i < count && error == DW_OK; i++) {
        DW_ASSERT(records[i].log < DW_MAX_NODES);
        size_t bytes = record_bytes(&records[i]);
        struct chunk *chunk = make_room(&memory->logs[records[i].log], bytes);
        if (chunk == NULL) {
            error = DW_ERR_MEMORY;
            break;
        }
        uint8_t *place = chunk->data + chunk->used;
        memcpy(place, &records[i], sizeof records[i]);
        if (records[i].redo_size > 0) {
            memcpy(place + sizeof records[i], records[i].redo, records[i].redo_size);
        }
        chunk->used += bytes;
        chunk->last = records[i].position;
    }
    pthread_mutex_unlock(&memory->lock);
    return error;
}

static enum dw_error memory_acknowledge(struct dw_log_store *store, uint64_t position)
{
    (void)store;
    (void)position;
    return DW_OK;
}

/* A store in memory is always new. */
static enum dw_error memory_load(struct dw_log_store *store, dw_fence_visitor *on_fence,
                                 dw_record_visitor *on_record, void *user)
{
    (void)store;
    (void)on_fence;
    (void)on_record;
    (void)user;
    return DW_OK;
}

static bool visit_chunk(const struct chunk *chunk, size_t used, uint64_t from, dw_record_visitor *on_record,
                        void *user)
{
    size_t offset = 0;
    while (offset < used) {
        struct dw_stored_record record;
        memcpy(&record, chunk->data + offset, sizeof record);
        record.redo = chunk->data + offset + sizeof record;
        if (record.position >= from && !on_record(user, &record)) {
            return false;
        }
        offset += record_bytes(&record);
    }
    return true;
}

static enum dw_error memory_scan(struct dw_log_store *store, uint32_t log, uint64_t from,
                                 dw_record_visitor *on_record, void *user)
{
    struct memory_store *memory = memory_of(store);
    DW_ASSERT(log < DW_MAX_NODES);
    pthread_mutex_lock(&memory->lock);
    struct chunk *chunk = memory->logs[log].first;
    while (chunk != NULL) {
        size_t used = chunk->last < from ? 0 : chunk->used;
        struct chunk *next = chunk->next;
        if (used > 0) {
            pthread_mutex_unlock(&memory->lock);
            bool go_on = visit_chunk(chunk, used, from, on_record, user);
            pthread_mutex_lock(&memory->lock);
            next = go_on ? chunk->next : NULL;
        }
        chunk = next;
    }
    pthread_mutex_unlock(&memory->lock);
    return DW_OK;
}

static void memory_close(struct dw_log_store *store)
{
    struct memory_store *memory = memory_of(store);
    for (size_t i = 0; i < DW_MAX_NODES; i++) {
        struct chunk *chunk = memory->logs[i].first;
        while (chunk != NULL) {
            struct chunk *next = chunk->next;
            free(chunk);
            chunk = next;
        }
    }
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

static const char *memory_error_text(const struct dw_log_store *store)
{
    (void)store;
    return "the memory store is out of memory: use a smaller run or more memory";
}

static const struct dw_log_store_ops memory_ops = {
    .name = "memory",
    .append = memory_append,
    .acknowledge = memory_acknowledge,
    .load = memory_load,
    .scan = memory_scan,
    .close = memory_close,
    .error_text = memory_error_text,
};

struct dw_log_store *dw_memory_store_open(void)
{
    struct memory_store *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return NULL;
    }
    memory->store.ops = &memory_ops;
    if (pthread_mutex_init(&memory->lock, NULL) != 0) {
        free(memory);
        return NULL;
    }
    return &memory->store;
}
