/* bench_writer.c - what one log writer costs inside a process: the floors that figures of a storage node are
 * held against. Prints one JSON object per line.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/flags.h"
#include "base/limits.h"
#include "storage/log_service.h"

#define PROGRAM "dogwood-bench-writer"

enum { MAX_BATCHES = 16, MAX_BATCH = 4096 };

enum mode { MODE_STORE, MODE_FDATASYNC, MODE_SERVICE, MODE_ENTRIES };

struct settings {
    enum mode mode;
    const char *data; /* NULL: the memory store */
    bool sync;
    uint32_t bytes;
    uint32_t batches[MAX_BATCHES];
    size_t batch_count;
    double seconds;
    uint64_t entries;
};

/* Every so many nanoseconds up to 10 ms there is a bucket; what is slower counts as 10 ms. */
#define BUCKET_NS 100u
#define BUCKETS   100000u

struct times {
    uint64_t count;
    uint32_t buckets[BUCKETS + 1];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void times_add(struct times *times, uint64_t ns)
{
    uint64_t bucket = ns / BUCKET_NS;
    times->buckets[bucket < BUCKETS ? bucket : BUCKETS]++;
    times->count++;
}

static double times_us(const struct times *times, double quantile)
{
    uint64_t wanted = (uint64_t)((double)times->count * quantile);
    uint64_t seen = 0;
    for (size_t i = 0; i <= BUCKETS; i++) {
        seen += times->buckets[i];
        if (seen > wanted) {
            return (double)i * BUCKET_NS / 1000;
        }
    }
    return 0;
}

static void print_times(const char *mode, size_t batch, double records_per_s, const struct times *times)
{
    printf("{\"mode\":\"%s\",\"batch\":%zu,\"records_per_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f}\n", mode,
           batch, records_per_s, times_us(times, 0.5), times_us(times, 0.99));
    fflush(stdout);
}

static _Noreturn void die(const char *text)
{
    fprintf(stderr, PROGRAM ": %s\n", text);
    exit(DW_EXIT_ENVIRONMENT);
}

static struct times *make_times(void)
{
    struct times *times = calloc(1, sizeof *times);
    if (times == NULL) {
        die("out of memory");
    }
    return times;
}

static struct dw_log_store *open_store(const struct settings *settings)
{
    char text[512];
    struct dw_log_store *store = settings->data == NULL ? dw_memory_store_open() : NULL;
    if (settings->data != NULL &&
        dw_rocksdb_store_open(settings->data, "bench", 0, &store, text, sizeof text) != DW_OK) {
        die(text);
    }
    if (store == NULL) {
        die("out of memory");
    }
    return store;
}

static bool ignore_record(void *user, const struct dw_stored_record *record)
{
    uint64_t *last = user;
    *last = record->position > *last ? record->position : *last;
    return true;
}

static void ignore_fence(void *user, const struct dw_stored_fence *fence)
{
    uint64_t *last = user;
    *last = fence->position > *last ? fence->position : *last;
}

/* One writer and its store, with nothing around them. */
static void bench_store(const struct settings *settings, size_t batch)
{
    static struct dw_stored_record records[MAX_BATCH];
    static uint8_t redo[DW_MAX_REDO];
    struct times *times = make_times();
    struct dw_log_store *store = open_store(settings);
    uint64_t position = 0;
    if (store->ops->load(store, ignore_fence, ignore_record, &position) != DW_OK) {
        die(store->ops->error_text(store));
    }
    uint64_t start = now_ns();
    uint64_t end = start;
    while ((double)(end - start) < settings->seconds * 1e9) {
        uint64_t before = end;
        for (size_t i = 0; i < batch; i++) {
            position++;
            records[i] = (struct dw_stored_record){.position = position,
                                                   .txn = {.incarnation = 1, .sequence = position},
                                                   .record = DW_RECORD_VOTE_YES,
                                                   .participants = 1,
                                                   .redo = redo,
                                                   .redo_size = settings->bytes};
        }
        if (store->ops->append(store, records, batch, NULL, 0, settings->sync) != DW_OK ||
            store->ops->acknowledge(store, position) != DW_OK) {
            die(store->ops->error_text(store));
        }
        end = now_ns();
        times_add(times, end - before);
    }
    double rate = (double)(times->count * batch) / ((double)(end - start) / 1e9);
    print_times(settings->sync ? "store-sync" : "store", batch, rate, times);
    store->ops->close(store);
    free(times);
}

/* The disk's own floor: append so many bytes to a plain file and fdatasync it. */
static void bench_fdatasync(const struct settings *settings, size_t batch)
{
    char path[PATH_MAX];
    uint8_t *data = calloc(batch, settings->bytes);
    struct times *times = make_times();
    snprintf(path, sizeof path, "%s/floor", settings->data == NULL ? "." : settings->data);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || data == NULL) {
        die(strerror(errno));
    }
    uint64_t start = now_ns();
    uint64_t end = start;
    while ((double)(end - start) < settings->seconds * 1e9) {
        uint64_t before = end;
        size_t size = batch * settings->bytes;
        if (write(fd, data, size) != (ssize_t)size || fdatasync(fd) != 0) {
            die(strerror(errno));
        }
        end = now_ns();
        times_add(times, end - before);
    }
    double rate = (double)(times->count * batch) / ((double)(end - start) / 1e9);
    print_times("fdatasync", batch, rate, times);
    close(fd);
    unlink(path);
    free(data);
    free(times);
}

/* A client with a number of votes in flight: each answer frees a place, and all free places are filled at
 * once. */
struct client {
    struct dw_log_service *service;
    struct times *times;
    const struct settings *settings;
    size_t depth;
    uint64_t sequence;
    uint64_t *sent_ns; /* by place */
    size_t *free_places;
    struct dw_log_submission *submissions;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t free_count;
    /* Answered since the batch began; the writer's until the end of the batch. */
    size_t *answered;
    size_t answered_count;
};

static void on_answer(void *context, uint64_t id, const struct dw_log_request *request, enum dw_answer answer,
                      uint64_t position, uint32_t incarnation)
{
    struct client *client = context;
    (void)request;
    (void)position;
    (void)incarnation;
    DW_ASSERT(answer == DW_ANSWER_VOTE_YES);
    client->answered[client->answered_count++] = (size_t)id;
}

static void on_batch_end(void *user)
{
    struct client *client = user;
    if (client->answered_count == 0) {
        return;
    }
    uint64_t now = now_ns();
    pthread_mutex_lock(&client->lock);
    for (size_t i = 0; i < client->answered_count; i++) {
        times_add(client->times, now - client->sent_ns[client->answered[i]]);
        client->free_places[client->free_count++] = client->answered[i];
    }
    client->answered_count = 0;
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

static void submit_votes(struct client *client, const size_t *places, size_t count)
{
    static uint8_t redo[DW_MAX_REDO];
    uint64_t now = now_ns();
    for (size_t i = 0; i < count; i++) {
        uint64_t sequence = client->sequence++;
        client->sent_ns[places[i]] = now;
        client->submissions[i] = (struct dw_log_submission){
            .request = {.txn = {.incarnation = 1, .sequence = sequence},
                        .incarnation = 1,
                        .ask = DW_ASK_VOTE},
            .participants = 3,
            .redo = redo,
            .redo_size = client->settings->bytes,
            .force = true,
            .id = places[i],
            .done = on_answer,
            .context = client,
        };
    }
    enum dw_error error = dw_log_service_submit(client->service, client->submissions, count);
    if (error != DW_OK) {
        die(dw_error_text(error));
    }
}

static void client_close(struct client *client)
{
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->lock);
    free(client->sent_ns);
    free(client->free_places);
    free(client->submissions);
    free(client->answered);
    free(client->times);
}

static void client_open(struct client *client, const struct settings *settings, size_t depth)
{
    char text[512];
    *client =
        (struct client){.settings = settings, .depth = depth, .times = make_times(), .free_count = depth};
    client->sent_ns = calloc(depth, sizeof *client->sent_ns);
    client->free_places = calloc(depth, sizeof *client->free_places);
    client->submissions = calloc(depth, sizeof *client->submissions);
    client->answered = calloc(depth, sizeof *client->answered);
    if (client->sent_ns == NULL || client->free_places == NULL || client->submissions == NULL ||
        client->answered == NULL) {
        die("out of memory");
    }
    for (size_t i = 0; i < depth; i++) {
        client->free_places[i] = i;
    }
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->changed, NULL);
    struct dw_log_service_options options = {
        .store = open_store(settings), .sync = settings->sync, .on_batch_end = on_batch_end, .user = client};
    if (dw_log_service_open(&options, &client->service, text, sizeof text) != DW_OK) {
        die(text);
    }
}

/* Votes until the time has passed or so many are made, whichever is first; returns votes a second. */
static double vote(struct client *client, double seconds, uint64_t votes)
{
    size_t *places = calloc(client->depth, sizeof *places);
    DW_ASSERT(places != NULL);
    uint64_t start = now_ns();
    uint64_t end = start;
    uint64_t before = client->sequence;
    while ((double)(end - start) < seconds * 1e9 && client->sequence - before < votes) {
        pthread_mutex_lock(&client->lock);
        while (client->free_count == 0) {
            pthread_cond_wait(&client->changed, &client->lock);
        }
        size_t count = client->free_count;
        memcpy(places, client->free_places, count * sizeof *places);
        client->free_count = 0;
        pthread_mutex_unlock(&client->lock);
        submit_votes(client, places, count);
        end = now_ns();
    }
    pthread_mutex_lock(&client->lock);
    while (client->free_count < client->depth) {
        pthread_cond_wait(&client->changed, &client->lock);
    }
    pthread_mutex_unlock(&client->lock);
    free(places);
    return (double)(client->sequence - before) / ((double)(now_ns() - start) / 1e9);
}

static void bench_service(const struct settings *settings, size_t depth)
{
    struct client client;
    client_open(&client, settings, depth);
    /* Records of an earlier run may be in the directory; a new sequence of ids steps around them. */
    client.sequence = now_ns();
    double rate = vote(&client, settings->seconds, UINT64_MAX);
    print_times(settings->sync ? "service-sync" : "service", depth, rate, client.times);
    dw_log_service_close(client.service);
    client_close(&client);
}

static uint64_t stat_of(struct dw_log_service *service, const char *name)
{
    struct dw_log_stat stats[64];
    size_t count = dw_log_service_stats(service, stats, 64, false);
    for (size_t i = 0; i < count && i < 64; i++) {
        if (strcmp(stats[i].name, name) == 0) {
            return stats[i].value;
        }
    }
    return 0;
}

/* What a vote costs with so many entries in the table. A small table would soon be a bigger one, so it is
 * made anew until there are enough votes to compare; only the memory store can be. */
static void bench_entries(const struct settings *settings, size_t depth)
{
    enum { VOTES = 200000 };
    struct times *times = make_times();
    uint64_t votes = 0;
    uint64_t entries = 0;
    uint64_t table_bytes = 0;
    double seconds = 0;
    while (votes < VOTES) {
        struct client client;
        client_open(&client, settings, depth);
        client.sequence = now_ns();
        vote(&client, 1e9, settings->entries);
        memset(client.times, 0, sizeof *client.times);
        uint64_t before = client.sequence;
        double rate = vote(&client, 1e9, settings->data == NULL ? settings->entries / 8 + 1 : VOTES);
        votes += client.sequence - before;
        seconds += (double)(client.sequence - before) / rate;
        entries = stat_of(client.service, "entries");
        table_bytes = stat_of(client.service, "table_bytes");
        for (size_t i = 0; i <= BUCKETS; i++) {
            times->buckets[i] += client.times->buckets[i];
        }
        times->count += client.times->count;
        dw_log_service_close(client.service);
        client_close(&client);
    }
    printf("{\"mode\":\"entries\",\"preloaded\":%llu,\"batch\":%zu,\"votes_per_s\":%.0f,\"us_per_vote\":%.3f,"
           "\"p50_us\":%.1f,\"p99_us\":%.1f,\"entries\":%llu,\"table_bytes\":%llu}\n",
           (unsigned long long)settings->entries, depth, (double)votes / seconds,
           seconds * 1e6 / (double)votes, times_us(times, 0.5), times_us(times, 0.99),
           (unsigned long long)entries, (unsigned long long)table_bytes);
    fflush(stdout);
    free(times);
}

static const char usage[] =
    "usage: dogwood-bench-writer [--data DIR] [--sync on|off] [--bytes N] [--batches N,N,...] [--seconds S]\n"
    "                            [--floor fdatasync | --service | --entries N]\n"
    "  one writer over the RocksDB store in DIR (without --data: the memory store), batches of N records;\n"
    "  --floor fdatasync: a plain file in DIR; --service: a log service with N votes in flight;\n"
    "  --entries N: the same after N entries were made, to compare big tables with small ones\n";

static int parse(int argc, char **argv, struct settings *settings)
{
    unsigned floor = 0;
    bool service = false;
    struct dw_flag flags[] = {
        {.name = "data", .text = &settings->data},
        {.name = "sync", .on_off = &settings->sync},
        {.name = "bytes", .u32 = &settings->bytes, .high = DW_MAX_REDO},
        {.name = "batches",
         .list = settings->batches,
         .list_count = &settings->batch_count,
         .list_size = MAX_BATCHES,
         .low = 1,
         .high = MAX_BATCH},
        {.name = "seconds", .decimal = &settings->seconds, .least = 0.01, .most = 3600},
        {.name = "floor", .word = &floor, .words = "fdatasync"},
        {.name = "service", .present = &service},
        {.name = "entries", .u64 = &settings->entries, .low = 1, .high = 1000000000},
        {.name = NULL},
    };
    int code = dw_flags_read(PROGRAM, usage, flags, argc, argv, NULL);
    settings->mode = dw_flags_given(flags, "floor") ? MODE_FDATASYNC
                     : settings->entries > 0        ? MODE_ENTRIES
                     : service                      ? MODE_SERVICE
                                                    : MODE_STORE;
    return code;
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .sync = true, .bytes = 128, .batches = {1, 4, 16, 64, 256}, .batch_count = 5, .seconds = 1};
    int code = parse(argc, argv, &settings);
    if (code != DW_FLAGS_GO_ON) {
        return code;
    }
    for (size_t i = 0; i < settings.batch_count; i++) {
        switch (settings.mode) {
        case MODE_STORE:
            bench_store(&settings, settings.batches[i]);
            break;
        case MODE_FDATASYNC:
            bench_fdatasync(&settings, settings.batches[i]);
            break;
        case MODE_SERVICE:
            bench_service(&settings, settings.batches[i]);
            break;
        case MODE_ENTRIES:
            bench_entries(&settings, settings.batches[i]);
            break;
        }
    }
    return 0;
}
