/* fake_store.h - a log store that counts what it is asked, can hold back an append until released, and can
 * fail one. */
#ifndef DW_TESTS_FAKE_STORE_H
#define DW_TESTS_FAKE_STORE_H

#include <pthread.h>

#include "storage/log_store.h"

struct fake_store {
    struct dw_log_store store;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool holds;  /* appends with sync wait */
    size_t held; /* how many do */
    bool fails;  /* the next append fails */
    bool fails_acknowledge;
    bool closed;
    size_t appends; /* calls with something to append */
    size_t syncs;
    size_t records;
    size_t fences;
    uint64_t last;   /* position appended */
    uint64_t synced; /* position up to which all is synced */
    uint64_t acknowledged;
};

void fake_store_init(struct fake_store *fake);
void fake_store_destroy(struct fake_store *fake);
void fake_store_hold(struct fake_store *fake);
void fake_store_release(struct fake_store *fake);
/* Blocks until an append is held back. */
void fake_store_wait_held(struct fake_store *fake);
void fake_store_wait_appends(struct fake_store *fake, size_t appends);
void fake_store_fail(struct fake_store *fake);
struct fake_store fake_store_numbers(struct fake_store *fake);

#endif
