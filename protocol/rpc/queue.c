#include "rpc/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"

enum { FIRST_CAPACITY = 16 * 1024, SPARE_MOST = 256 * 1024 };

struct rpc_chunk {
    struct rpc_chunk *next;
    size_t size;
    size_t capacity;
    uint8_t *bytes;
};

static void chunk_free(struct rpc_chunk *chunk)
{
    if (chunk != NULL) {
        free(chunk->bytes);
        free(chunk);
    }
}

/* Doubles until `size` more bytes fit. */
static enum dw_error chunk_grow(struct rpc_chunk *chunk, size_t size)
{
    if (size <= chunk->capacity - chunk->size) {
        return DW_OK;
    }
    size_t capacity = chunk->capacity == 0 ? FIRST_CAPACITY : chunk->capacity;
    while (size > capacity - chunk->size) {
        capacity *= 2;
    }
    uint8_t *bytes = realloc(chunk->bytes, capacity);
    if (bytes == NULL) {
        return DW_ERR_MEMORY;
    }
    chunk->bytes = bytes;
    chunk->capacity = capacity;
    return DW_OK;
}

static void chunk_link(struct rpc_queue *queue, struct rpc_chunk *chunk)
{
    if (queue->tail == NULL) {
        queue->head = chunk;
    } else {
        queue->tail->next = chunk;
    }
    queue->tail = chunk;
}

enum dw_error rpc_queue_append(struct rpc_queue *queue, const uint8_t *data, size_t size, size_t reserved)
{
    DW_ASSERT(size > 0 && size <= DW_MAX_MESSAGE);
    DW_ASSERT(queue->size <= queue->limit);
    size_t room = queue->limit - queue->size;
    if (room < reserved || size > room - reserved) {
        return DW_ERR_FULL;
    }
    struct rpc_chunk *chunk = queue->tail;
    bool fresh = chunk == NULL || size > DW_MAX_MESSAGE - chunk->size;
    if (fresh) {
        chunk = queue->spare != NULL ? queue->spare : calloc(1, sizeof *chunk);
        queue->spare = NULL;
    }
    if (chunk == NULL) {
        return DW_ERR_MEMORY;
    }
    if (chunk_grow(chunk, size) != DW_OK) {
        if (fresh) {
            chunk_free(chunk);
        }
        return DW_ERR_MEMORY;
    }
    if (fresh) {
        chunk_link(queue, chunk);
    }
    memcpy(chunk->bytes + chunk->size, data, size);
    chunk->size += size;
    queue->size += size;
    return DW_OK;
}

struct rpc_chunk *rpc_queue_take(struct rpc_queue *queue)
{
    struct rpc_chunk *chunk = queue->head;
    if (chunk != NULL) {
        queue->head = chunk->next;
        queue->tail = queue->head == NULL ? NULL : queue->tail;
        chunk->next = NULL;
        DW_ASSERT(chunk->size > 0 && chunk->size <= queue->size);
        queue->size -= chunk->size;
    }
    return chunk;
}

const uint8_t *rpc_chunk_bytes(const struct rpc_chunk *chunk, size_t *size)
{
    *size = chunk->size;
    return chunk->bytes;
}

void rpc_queue_recycle(struct rpc_queue *queue, struct rpc_chunk *chunk)
{
    if (queue->spare != NULL || chunk->capacity > SPARE_MOST) {
        chunk_free(chunk);
        return;
    }
    chunk->size = 0;
    queue->spare = chunk;
}

void rpc_queue_clear(struct rpc_queue *queue)
{
    struct rpc_chunk *chunk;
    while ((chunk = rpc_queue_take(queue)) != NULL) {
        chunk_free(chunk);
    }
    chunk_free(queue->spare);
    queue->spare = NULL;
}
