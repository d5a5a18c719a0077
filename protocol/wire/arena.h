/* arena.h - bump memory handed to protobuf-c while it unpacks one batch. Private to protocol/wire. */
#ifndef DW_WIRE_ARENA_H
#define DW_WIRE_ARENA_H

#include <stddef.h>

#include "base/error.h"

struct dw_arena;

/* An empty arena; NULL: no memory. */
struct dw_arena *dw_arena_open(void);
void dw_arena_close(struct dw_arena *arena);

/* Begins a new batch that may take `limit` bytes: everything allocated before is gone. Memory that the last
 * batches needed is kept, as one piece, up to a few MiB; what is beyond is given back. */
void dw_arena_reset(struct dw_arena *arena, size_t limit);

/* `size` bytes aligned for any object, or NULL: no memory, or the batch's limit would be passed. */
void *dw_arena_alloc(struct dw_arena *arena, size_t size);

/* Why an allocation failed since the reset: DW_ERR_MEMORY, DW_ERR_TOO_LARGE for the limit, or DW_OK if none
 * did. */
enum dw_error dw_arena_failure(const struct dw_arena *arena);

#endif
