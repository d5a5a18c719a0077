#include "compute/timers.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static void grow(struct timer_queue *queue)
{
    size_t capacity = queue->capacity ? queue->capacity * 2 : 256;
    struct timer_entry *entries = malloc(capacity * sizeof *entries);
    DW_ASSERT(entries != NULL);
    for (size_t i = 0; i < queue->count; i++) {
        entries[i] = queue->entries[(queue->head + i) % queue->capacity];
    }
    free(queue->entries);
    queue->entries = entries;
    queue->capacity = capacity;
    queue->head = 0;
}

void timers_arm(struct timers *timers, enum dw_timer kind, uint64_t due_us, struct dw_txn_id txn,
                uint32_t attempt)
{
    DW_ASSERT(kind > DW_TIMER_NONE && kind <= DW_TIMER_FINISH);
    struct timer_queue *queue = &timers->queues[kind];
    if (queue->count == queue->capacity) {
        grow(queue);
    }
    queue->entries[(queue->head + queue->count) % queue->capacity] =
        (struct timer_entry){.due_us = due_us, .txn = txn, .attempt = attempt, .kind = kind};
    queue->count++;
}

bool timers_pop(struct timers *timers, uint64_t now_us, struct timer_entry *entry)
{
    for (unsigned kind = DW_TIMER_NONE + 1; kind <= DW_TIMER_FINISH; kind++) {
        struct timer_queue *queue = &timers->queues[kind];
        if (queue->count > 0 && queue->entries[queue->head].due_us <= now_us) {
            *entry = queue->entries[queue->head];
            queue->head = (queue->head + 1) % queue->capacity;
            queue->count--;
            return true;
        }
    }
    return false;
}

uint64_t timers_next_us(const struct timers *timers)
{
    uint64_t next = UINT64_MAX;
    for (unsigned kind = DW_TIMER_NONE + 1; kind <= DW_TIMER_FINISH; kind++) {
        const struct timer_queue *queue = &timers->queues[kind];
        if (queue->count > 0 && queue->entries[queue->head].due_us < next) {
            next = queue->entries[queue->head].due_us;
        }
    }
    return next;
}

void timers_close(struct timers *timers)
{
    for (unsigned kind = 0; kind <= DW_TIMER_FINISH; kind++) {
        free(timers->queues[kind].entries);
    }
    memset(timers, 0, sizeof *timers);
}
