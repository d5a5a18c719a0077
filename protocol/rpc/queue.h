/* queue.h - bytes that wait for the stream, cut into messages of at most DW_MAX_MESSAGE at the borders of
 * sends. */
#ifndef DW_RPC_QUEUE_H
#define DW_RPC_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct rpc_chunk;

/* Zero, with `limit` set, is empty. */
struct rpc_queue {
    struct rpc_chunk *head;
    struct rpc_chunk *tail;
    struct rpc_chunk *spare; /* kept, so that the usual small message allocates nothing */
    size_t size;
    size_t limit;
};

/* Appends one send whole, if `reserved` bytes of the limit stay free behind it. DW_ERR_FULL or DW_ERR_MEMORY:
 * nothing was appended. */
DW_MUST_CHECK enum dw_error rpc_queue_append(struct rpc_queue *queue, const uint8_t *data, size_t size,
                                             size_t reserved);

/* The oldest message, or NULL. It belongs to the caller, who gives it back with rpc_queue_recycle. */
struct rpc_chunk *rpc_queue_take(struct rpc_queue *queue);
const uint8_t *rpc_chunk_bytes(const struct rpc_chunk *chunk, size_t *size);
void rpc_queue_recycle(struct rpc_queue *queue, struct rpc_chunk *chunk);

/* Forgets what waits. */
void rpc_queue_clear(struct rpc_queue *queue);

#endif
