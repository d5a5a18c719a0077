#include "fake_store.h"

#include <string.h>

static struct fake_store *fake_of(struct dw_log_store *store)
{
    return (struct fake_store *)(void *)store;
}

static void count(struct fake_store *fake, const struct dw_stored_record *records, size_t record_count,
                  const struct dw_stored_fence *fences, size_t fence_count)
{
    fake->appends += record_count + fence_count > 0;
    fake->records += record_count;
    fake->fences += fence_count;
    for (size_t i = 0; i < record_count; i++) {
        fake->last = records[i].position > fake->last ? records[i].position : fake->last;
    }
    for (size_t i = 0; i < fence_count; i++) {
        fake->last = fences[i].position > fake->last ? fences[i].position : fake->last;
    }
}

static enum dw_error fake_append(struct dw_log_store *store, const struct dw_stored_record *records,
                                 size_t record_count, const struct dw_stored_fence *fences,
                                 size_t fence_count, bool sync)
{
    struct fake_store *fake = fake_of(store);
    pthread_mutex_lock(&fake->lock);
    count(fake, records, record_count, fences, fence_count);
    fake->held += sync;
    pthread_cond_broadcast(&fake->changed);
    while (sync && fake->holds) {
        pthread_cond_wait(&fake->changed, &fake->lock);
    }
    fake->held -= sync;
    enum dw_error error = fake->fails ? DW_ERR_IO : DW_OK;
    if (sync && error == DW_OK) {
        fake->syncs++;
        fake->synced = fake->last;
    }
    pthread_mutex_unlock(&fake->lock);
    return error;
}

static enum dw_error fake_acknowledge(struct dw_log_store *store, uint64_t position)
{
    struct fake_store *fake = fake_of(store);
    pthread_mutex_lock(&fake->lock);
    fake->acknowledged = position;
    enum dw_error error = fake->fails_acknowledge ? DW_ERR_IO : DW_OK;
    pthread_mutex_unlock(&fake->lock);
    return error;
}

static enum dw_error fake_load(struct dw_log_store *store, dw_fence_visitor *on_fence,
                               dw_record_visitor *on_record, void *user)
{
    (void)store;
    (void)on_fence;
    (void)on_record;
    (void)user;
    return DW_OK;
}

static enum dw_error fake_scan(struct dw_log_store *store, uint32_t log, uint64_t from,
                               dw_record_visitor *on_record, void *user)
{
    struct fake_store *fake = fake_of(store);
    struct fake_store now = fake_store_numbers(fake);
    for (uint64_t position = from == 0 ? 1 : from; position <= now.last; position++) {
        struct dw_stored_record record = {.position = position, .log = log};
        if (!on_record(user, &record)) {
            break;
        }
    }
    return DW_OK;
}

static void fake_close(struct dw_log_store *store)
{
    fake_of(store)->closed = true;
}

static const char *fake_error_text(const struct dw_log_store *store)
{
    (void)store;
    return "the fake store was told to fail";
}

static const struct dw_log_store_ops fake_ops = {
    .name = "fake",
    .append = fake_append,
    .acknowledge = fake_acknowledge,
    .load = fake_load,
    .scan = fake_scan,
    .close = fake_close,
    .error_text = fake_error_text,
};

void fake_store_init(struct fake_store *fake)
{
    memset(fake, 0, sizeof *fake);
    fake->store.ops = &fake_ops;
    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->changed, NULL);
}

void fake_store_destroy(struct fake_store *fake)
{
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->lock);
}

void fake_store_hold(struct fake_store *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->holds = true;
    pthread_mutex_unlock(&fake->lock);
}

void fake_store_release(struct fake_store *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->holds = false;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

void fake_store_wait_held(struct fake_store *fake)
{
    pthread_mutex_lock(&fake->lock);
    while (!fake->holds || fake->held == 0) {
        pthread_cond_wait(&fake->changed, &fake->lock);
    }
    pthread_mutex_unlock(&fake->lock);
}

void fake_store_wait_appends(struct fake_store *fake, size_t appends)
{
    pthread_mutex_lock(&fake->lock);
    while (fake->appends < appends) {
        pthread_cond_wait(&fake->changed, &fake->lock);
    }
    pthread_mutex_unlock(&fake->lock);
}

void fake_store_fail(struct fake_store *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->fails = true;
    pthread_mutex_unlock(&fake->lock);
}

struct fake_store fake_store_numbers(struct fake_store *fake)
{
    struct fake_store copy = {.appends = 0};
    pthread_mutex_lock(&fake->lock);
    copy.held = fake->held;
    copy.appends = fake->appends;
    copy.syncs = fake->syncs;
    copy.records = fake->records;
    copy.fences = fake->fences;
    copy.last = fake->last;
    copy.synced = fake->synced;
    copy.acknowledged = fake->acknowledged;
    copy.closed = fake->closed;
    pthread_mutex_unlock(&fake->lock);
    return copy;
}
