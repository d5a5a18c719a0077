/* timers.h - the core's timers: one queue for each kind, since all timers of a kind last equally long.
 *
 * An entry is never taken out early: when it is due, the core sees by its number that the timer was set again
 * or disarmed meanwhile.
 */
#ifndef DW_COMPUTE_TIMERS_H
#define DW_COMPUTE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/txn.h"

struct timer_entry {
    uint64_t due_us;
    struct dw_txn_id txn;
    uint32_t attempt;
    enum dw_timer kind;
};

struct timer_queue {
    struct timer_entry *entries; /* a ring */
    size_t capacity;
    size_t head;
    size_t count;
};

/* Zero is empty. */
struct timers {
    struct timer_queue queues[DW_TIMER_FINISH + 1];
};

/* Sets a timer; `due_us` of one kind never decreases. Aborts the process without memory. */
void timers_arm(struct timers *timers, enum dw_timer kind, uint64_t due_us, struct dw_txn_id txn,
                uint32_t attempt);

/* Takes the next entry that is due; false if there is none. */
bool timers_pop(struct timers *timers, uint64_t now_us, struct timer_entry *entry);

/* When the next one is due; UINT64_MAX if there is none. */
uint64_t timers_next_us(const struct timers *timers);

void timers_close(struct timers *timers);

#endif
