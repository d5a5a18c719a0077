#include "wire/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"

enum {
    FIRST_PIECE = 64 * 1024,
    KEPT_MOST = 4 * 1024 * 1024,
    ALIGNMENT = alignof(max_align_t),
};

/* Memory comes in pieces, newest first; usually there is one, since a reset joins them. */
struct piece {
    struct piece *next;
    size_t capacity;
    size_t used;
    alignas(max_align_t) unsigned char bytes[];
};

struct dw_arena {
    struct piece *pieces;
    size_t limit;
    size_t taken;
    enum dw_error failure;
};

static struct piece *piece_open(size_t capacity, struct piece *next)
{
    struct piece *piece = malloc(sizeof *piece + capacity);
    if (piece != NULL) {
        piece->next = next;
        piece->capacity = capacity;
        piece->used = 0;
    }
    return piece;
}

static void free_pieces(struct piece *piece)
{
    while (piece != NULL) {
        struct piece *next = piece->next;
        free(piece);
        piece = next;
    }
}

struct dw_arena *dw_arena_open(void)
{
    return calloc(1, sizeof(struct dw_arena));
}

void dw_arena_close(struct dw_arena *arena)
{
    if (arena != NULL) {
        free_pieces(arena->pieces);
        free(arena);
    }
}

void dw_arena_reset(struct dw_arena *arena, size_t limit)
{
    size_t total = 0;
    for (const struct piece *piece = arena->pieces; piece != NULL; piece = piece->next) {
        total += piece->capacity;
    }
    if (arena->pieces != NULL && (arena->pieces->next != NULL || total > KEPT_MOST)) {
        free_pieces(arena->pieces);
        arena->pieces = piece_open(total < KEPT_MOST ? total : KEPT_MOST, NULL);
    }
    if (arena->pieces != NULL) {
        arena->pieces->used = 0;
    }
    arena->limit = limit;
    arena->taken = 0;
    arena->failure = DW_OK;
}

/* Each piece doubles the last, so that a large batch needs few of them. */
static bool add_piece(struct dw_arena *arena, size_t size)
{
    size_t capacity = arena->pieces == NULL ? FIRST_PIECE : 2 * arena->pieces->capacity;
    struct piece *piece = piece_open(capacity > size ? capacity : size, arena->pieces);
    if (piece == NULL) {
        return false;
    }
    arena->pieces = piece;
    return true;
}

void *dw_arena_alloc(struct dw_arena *arena, size_t size)
{
    if (size > arena->limit - arena->taken) {
        arena->failure = DW_ERR_TOO_LARGE;
        return NULL;
    }
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct piece *piece = arena->pieces;
    if (piece == NULL || rounded > piece->capacity - piece->used) {
        if (!add_piece(arena, rounded)) {
            arena->failure = DW_ERR_MEMORY;
            return NULL;
        }
        piece = arena->pieces;
    }
    void *bytes = piece->bytes + piece->used;
    piece->used += rounded;
    arena->taken += size;
    DW_ASSERT(piece->used <= piece->capacity);
    return bytes;
}

enum dw_error dw_arena_failure(const struct dw_arena *arena)
{
    return arena->failure;
}
