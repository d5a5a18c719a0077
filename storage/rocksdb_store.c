/* rocksdb_store.c - the logs of a storage node in one RocksDB database.
 *
 * RocksDB alone opens silently with records gone. So positions run without a gap over all records and fences,
 * which shows whether any is missing in between, and the side file ACKED shows whether any is missing at the
 * end. Both are checked on a database opened read-only: opening for writing may already discard what a repair
 * would need.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/limits.h"
#include "storage/acked_file.h"
#include "storage/log_store.h"
#include "storage/record_format.h"

#define META_KEY       "meta"
#define FORMAT_VERSION 1u
#define RECOVERY_MODE                                                                                        \
    0 /* kTolerateCorruptedTailRecords: of a torn tail only, which was never acknowledged                    \
       */
#define MEMTABLE_BYTES (64u << 20)
#define SCAN_READAHEAD (2u << 20)
#define LOG_FATAL_ONLY 4
#define MAX_META       128

struct rocksdb_store {
    struct dw_log_store store;
    rocksdb_t *db; /* read-only until it is loaded; NULL: a new database, not yet made */
    bool loaded;
    bool broken; /* a write failed */
    rocksdb_options_t *options;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *synced;
    rocksdb_writeoptions_t *unsynced;
    rocksdb_writebatch_t *batch;
    struct dw_acked_file acked;
    char meta[MAX_META];
    char directory[PATH_MAX];
    char text[2 * PATH_MAX + 1024];
};

static struct rocksdb_store *rocksdb_of(struct dw_log_store *store)
{
    return (struct rocksdb_store *)(void *)store;
}

/* Some of RocksDB's texts end with a newline; a refusal is one line. */
static void join_lines(char *text)
{
    size_t used = 0;
    for (const char *from = text; *from != '\0'; from++) {
        text[used++] = iscntrl((unsigned char)*from) ? ' ' : *from;
    }
    while (used > 0 && text[used - 1] == ' ') {
        used--;
    }
    text[used] = '\0';
}

/* The words of RocksDB when another opener holds its file LOCK. Less would match names of directories. */
static bool is_locked(const char *reason)
{
    return strstr(reason, "While lock file: ") != NULL ||
           strstr(reason, "lock hold by current process") != NULL;
}

static const char *mend_of(const char *reason)
{
    if (strstr(reason, strerror(EACCES)) != NULL) {
        return "let this user read and write the directory and its files";
    }
    if (strstr(reason, strerror(EMFILE)) != NULL) {
        return "raise the limit of open files (ulimit -n)";
    }
    return "mend the disk (is it full?)";
}

/* Takes RocksDB's own text, and gives the error that it stands for. */
static enum dw_error fail(struct rocksdb_store *db, const char *what, char *reason)
{
    enum dw_error error = DW_ERR_IO;
    join_lines(reason);
    if (is_locked(reason)) {
        error = DW_ERR_LOCKED;
        snprintf(db->text, sizeof db->text,
                 "%s is in use by another process: stop it, or give another directory (%s)", db->directory,
                 reason);
    } else if (strncmp(reason, "Corruption", 10) == 0 || strstr(reason, strerror(ENOENT)) != NULL) {
        error = DW_ERR_CORRUPT;
        snprintf(db->text, sizeof db->text,
                 "%s is damaged: put the files that it names back from a copy (the log is in %s/*.log), or "
                 "start with an empty directory and give its records up (%s)",
                 db->directory, db->directory, reason);
    } else {
        snprintf(db->text, sizeof db->text, "%s: %s failed: %s and start again (%s)", db->directory, what,
                 mend_of(reason), reason);
    }
    rocksdb_free(reason);
    return error;
}

static enum dw_error fail_errno(struct rocksdb_store *db, const char *what)
{
    snprintf(db->text, sizeof db->text, "%s: %s failed: %s: mend it and start again", db->directory, what,
             strerror(errno));
    return DW_ERR_IO;
}

static enum dw_error fail_missing(struct rocksdb_store *db, const char *what, uint64_t expected,
                                  uint64_t found)
{
    snprintf(db->text, sizeof db->text,
             "%s: acknowledged records are missing (%s: expected %llu, found %llu): put the missing %s/*.log "
             "files back, "
             "or start with an empty directory and give its records up",
             db->directory, what, (unsigned long long)expected, (unsigned long long)found, db->directory);
    return DW_ERR_CORRUPT;
}

/* Whatever RocksDB calls it, a write that failed is a matter of the disk, and the database is done with. */
static enum dw_error fail_write(struct rocksdb_store *db, const char *what, char *reason)
{
    db->broken = true;
    (void)fail(db, what, reason);
    return DW_ERR_IO;
}

static enum dw_error rocksdb_store_append(struct dw_log_store *store, const struct dw_stored_record *records,
                                          size_t count, const struct dw_stored_fence *fences,
                                          size_t fence_count, bool sync)
{
    struct rocksdb_store *db = rocksdb_of(store);
    char *reason = NULL;
    DW_ASSERT(db->loaded);
    if (count == 0 && fence_count == 0) {
        if (sync) {
            rocksdb_flush_wal(db->db, 1, &reason);
        }
        return reason == NULL ? DW_OK : fail_write(db, "a sync", reason);
    }
    rocksdb_writebatch_clear(db->batch);
    for (size_t i = 0; i < count; i++) {
        const struct dw_stored_record *record = &records[i];
        uint8_t key[DW_RECORD_KEY_SIZE];
        uint8_t head[DW_RECORD_HEAD_SIZE];
        dw_record_key_encode(record, key);
        dw_record_head_encode(record, key, head);
        const char *key_parts[] = {(const char *)key};
        const char *value_parts[] = {(const char *)head, (const char *)record->redo};
        const size_t key_sizes[] = {sizeof key};
        const size_t value_sizes[] = {sizeof head, record->redo_size};
        rocksdb_writebatch_putv(db->batch, 1, key_parts, key_sizes, record->redo_size > 0 ? 2 : 1,
                                value_parts, value_sizes);
    }
    for (size_t i = 0; i < fence_count; i++) {
        uint8_t key[DW_FENCE_KEY_SIZE];
        uint8_t value[DW_FENCE_VALUE_SIZE];
        dw_fence_encode(&fences[i], key, value);
        rocksdb_writebatch_put(db->batch, (const char *)key, sizeof key, (const char *)value, sizeof value);
    }
    rocksdb_write(db->db, sync ? db->synced : db->unsynced, db->batch, &reason);
    return reason == NULL ? DW_OK : fail_write(db, sync ? "a synced write" : "a write", reason);
}

static enum dw_error rocksdb_store_acknowledge(struct dw_log_store *store, uint64_t position)
{
    struct rocksdb_store *db = rocksdb_of(store);
    if (position <= db->acked.position) {
        return DW_OK;
    }
    if (dw_acked_file_write(&db->acked, position) == DW_OK) {
        return DW_OK;
    }
    if (errno != ENOENT) {
        return fail_errno(db, "writing ACKED");
    }
    snprintf(
        db->text, sizeof db->text,
        "%s/ACKED was removed while the node ran, and perhaps the whole log with it: put the directory back "
        "from a copy, or start with an empty one and give its records up",
        db->directory);
    return DW_ERR_IO;
}

/* What the records and fences add up to. Positions run from 1 without a gap, so count and sum tell if one is
 * missing, and the sum also if one is there twice. */
struct tally {
    uint64_t count;
    uint64_t sum;
    uint64_t last;
};

static void tally_add(struct tally *tally, uint64_t position)
{
    tally->count++;
    tally->sum += position;
    tally->last = position > tally->last ? position : tally->last;
}

static bool tally_is_whole(const struct tally *tally)
{
    uint64_t n = tally->last;
    uint64_t sum = n % 2 == 0 ? n / 2 * (n + 1) : (n + 1) / 2 * n;
    return tally->count == n && tally->sum == sum;
}

static enum dw_error iterator_error(struct rocksdb_store *db, const rocksdb_iterator_t *iterator)
{
    char *reason = NULL;
    rocksdb_iter_get_error(iterator, &reason);
    return reason == NULL ? DW_OK : fail(db, "reading", reason);
}

static enum dw_error fail_key(struct rocksdb_store *db)
{
    snprintf(db->text, sizeof db->text,
             "%s holds a key that is neither a record nor a readable fence: put its files back from a copy, "
             "or start with "
             "an empty directory and give its records up (the log is in %s/*.log)",
             db->directory, db->directory);
    return DW_ERR_CORRUPT;
}

/* Visits the fences, then the records; `on_fence` may be NULL, then only the tally is made. */
static enum dw_error visit_fences(struct rocksdb_store *db, rocksdb_iterator_t *iterator, struct tally *tally,
                                  dw_fence_visitor *on_fence, void *user)
{
    for (rocksdb_iter_seek(iterator, "f", 1); rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
        size_t key_size, value_size;
        const uint8_t *key = (const uint8_t *)rocksdb_iter_key(iterator, &key_size);
        const uint8_t *value = (const uint8_t *)rocksdb_iter_value(iterator, &value_size);
        struct dw_stored_fence fence;
        if (key_size == strlen(META_KEY) && memcmp(key, META_KEY, key_size) == 0) {
            break;
        }
        if (dw_fence_decode(key, key_size, value, value_size, &fence) != DW_OK) {
            return fail_key(db);
        }
        tally_add(tally, fence.position);
        if (on_fence != NULL) {
            on_fence(user, &fence);
        }
    }
    return iterator_error(db, iterator);
}

static enum dw_error visit_records(struct rocksdb_store *db, rocksdb_iterator_t *iterator,
                                   struct tally *tally, dw_record_visitor *on_record, void *user)
{
    bool go_on = true;
    for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
        size_t key_size, value_size;
        const uint8_t *key = (const uint8_t *)rocksdb_iter_key(iterator, &key_size);
        if (key_size > 0 && key[0] >= 'f') {
            break;
        }
        const uint8_t *value = (const uint8_t *)rocksdb_iter_value(iterator, &value_size);
        struct dw_stored_record record;
        if (!dw_record_decode(key, key_size, value, value_size, &record)) {
            return fail_key(db);
        }
        tally_add(tally, record.position);
        go_on = go_on && on_record(user, &record);
    }
    return iterator_error(db, iterator);
}

static enum dw_error load_all(struct rocksdb_store *db, dw_fence_visitor *on_fence,
                              dw_record_visitor *on_record, void *user, struct tally *tally)
{
    if (db->db == NULL) {
        return DW_OK;
    }
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(db->db, db->read);
    enum dw_error error = visit_fences(db, iterator, tally, on_fence, user);
    if (error == DW_OK) {
        error = visit_records(db, iterator, tally, on_record, user);
    }
    rocksdb_iter_destroy(iterator);
    if (error == DW_OK && !tally_is_whole(tally)) {
        error = fail_missing(db, "records up to the last position", tally->last, tally->count);
    }
    return error;
}

/* Opens for writing. RocksDB then writes what it replayed into a table file and syncs it, so that all of it
 * is durable, whether its sync had been reached before or not. */
static enum dw_error open_for_writing(struct rocksdb_store *db, uint64_t last)
{
    char *reason = NULL;
    if (!db->acked.present && dw_acked_file_write(&db->acked, 0) != DW_OK) {
        return fail_errno(db, "writing ACKED");
    }
    if (dw_acked_file_sync(&db->acked) != DW_OK) {
        return fail_errno(db, "syncing ACKED");
    }
    if (db->db != NULL) {
        rocksdb_close(db->db);
    }
    rocksdb_options_set_create_if_missing(db->options, 1);
    db->db = rocksdb_open(db->options, db->directory, &reason);
    if (reason != NULL) {
        /* A side file that was made just now goes again: a refusal changes nothing. */
        db->acked.present = false;
        return fail(db, "opening", reason);
    }
    rocksdb_put(db->db, db->synced, META_KEY, strlen(META_KEY), db->meta, strlen(db->meta), &reason);
    if (reason != NULL) {
        return fail(db, "writing the run id", reason);
    }
    db->loaded = true;
    return rocksdb_store_acknowledge(&db->store, last);
}

static enum dw_error rocksdb_store_load(struct dw_log_store *store, dw_fence_visitor *on_fence,
                                        dw_record_visitor *on_record, void *user)
{
    struct rocksdb_store *db = rocksdb_of(store);
    struct tally tally = {0};
    DW_ASSERT(!db->loaded);
    enum dw_error error = load_all(db, on_fence, on_record, user, &tally);
    return error == DW_OK ? open_for_writing(db, tally.last) : error;
}

static enum dw_error rocksdb_store_scan(struct dw_log_store *store, uint32_t log, uint64_t from,
                                        dw_record_visitor *on_record, void *user)
{
    struct rocksdb_store *db = rocksdb_of(store);
    uint8_t first[DW_RECORD_KEY_SIZE];
    char *reason = NULL;
    bool go_on = true;
    DW_ASSERT(db->loaded && log < DW_MAX_NODES);
    dw_record_key_first(log, from, first);
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(db->db, db->read);
    rocksdb_iter_seek(iterator, (const char *)first, sizeof first);
    for (; go_on && rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
        size_t key_size, value_size;
        const uint8_t *key = (const uint8_t *)rocksdb_iter_key(iterator, &key_size);
        const uint8_t *value = (const uint8_t *)rocksdb_iter_value(iterator, &value_size);
        struct dw_stored_record record;
        if (!dw_record_decode(key, key_size, value, value_size, &record) || record.log != log) {
            break;
        }
        go_on = on_record(user, &record);
    }
    /* The text is the writer's; a scan may run on any thread and leaves it alone. */
    rocksdb_iter_get_error(iterator, &reason);
    rocksdb_iter_destroy(iterator);
    if (reason != NULL) {
        rocksdb_free(reason);
        return DW_ERR_CORRUPT;
    }
    return DW_OK;
}

static void rocksdb_store_close(struct dw_log_store *store)
{
    struct rocksdb_store *db = rocksdb_of(store);
    /* After a failed write RocksDB asserts, as Debian builds it, when it closes the log file. Such a database
     * stays as it is, with its lock, until the process ends; it should end soon. */
    if (db->db != NULL && !db->broken) {
        rocksdb_close(db->db);
    }
    rocksdb_writebatch_destroy(db->batch);
    rocksdb_writeoptions_destroy(db->synced);
    rocksdb_writeoptions_destroy(db->unsynced);
    rocksdb_readoptions_destroy(db->read);
    rocksdb_options_destroy(db->options);
    dw_acked_file_close(&db->acked);
    free(db);
}

static const char *rocksdb_store_error_text(const struct dw_log_store *store)
{
    return ((const struct rocksdb_store *)(const void *)store)->text;
}

static const struct dw_log_store_ops rocksdb_ops = {
    .name = "rocksdb",
    .append = rocksdb_store_append,
    .acknowledge = rocksdb_store_acknowledge,
    .load = rocksdb_store_load,
    .scan = rocksdb_store_scan,
    .close = rocksdb_store_close,
    .error_text = rocksdb_store_error_text,
};

/* One writer that only adds keys which rise within each log: big memtables, few compactions, no compression.
 */
static void set_options(struct rocksdb_store *db)
{
    rocksdb_options_t *options = db->options = rocksdb_options_create();
    rocksdb_options_set_wal_recovery_mode(options, RECOVERY_MODE);
    rocksdb_options_set_paranoid_checks(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
    rocksdb_options_set_max_write_buffer_number(options, 4);
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_level0_file_num_compaction_trigger(options, 8);
    rocksdb_options_set_level0_slowdown_writes_trigger(options, 40);
    rocksdb_options_set_level0_stop_writes_trigger(options, 60);
    rocksdb_options_set_allow_concurrent_memtable_write(options, 0);
    /* RocksDB's own LOG lies in the same directory, and as Debian builds it, with its assertions, it aborts
     * when a second line meets a full disk. What matters of its errors is in our own text. */
    rocksdb_options_set_info_log_level(options, LOG_FATAL_ONLY);
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    db->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(db->read, 1);
    rocksdb_readoptions_set_fill_cache(db->read, 0);
    rocksdb_readoptions_set_readahead_size(db->read, SCAN_READAHEAD);
    db->synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(db->synced, 1);
    db->unsynced = rocksdb_writeoptions_create();
    db->batch = rocksdb_writebatch_create();
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    return length >= strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0;
}

/* Tells whether a database is there. RocksDB would make a new one over the remains of one without CURRENT. */
static enum dw_error find_database(struct rocksdb_store *db, bool *found)
{
    bool remains = false;
    *found = false;
    DIR *directory = opendir(db->directory);
    if (directory == NULL) {
        return fail_errno(db, "listing the directory");
    }
    for (struct dirent *item = readdir(directory); item != NULL; item = readdir(directory)) {
        *found = *found || strcmp(item->d_name, "CURRENT") == 0;
        remains = remains || has_suffix(item->d_name, ".log") || has_suffix(item->d_name, ".sst");
    }
    closedir(directory);
    if (!*found && (remains || db->acked.position > 0)) {
        snprintf(db->text, sizeof db->text,
                 "%s holds the remains of a log without its file CURRENT: put it and the %s/*.log files back "
                 "from a copy, "
                 "or start with an empty directory",
                 db->directory, db->directory);
        return DW_ERR_CORRUPT;
    }
    return DW_OK;
}

/* The highest position that RocksDB recovered, by a look at the end of each log. */
static enum dw_error find_last(struct rocksdb_store *db, uint64_t *last)
{
    struct tally tally = {0};
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(db->db, db->read);
    enum dw_error error = visit_fences(db, iterator, &tally, NULL, NULL);
    for (uint32_t log = 0; error == DW_OK && log < DW_MAX_NODES; log++) {
        uint8_t end[DW_RECORD_KEY_SIZE];
        struct dw_stored_record record;
        size_t size;
        dw_record_key_first(log, UINT64_MAX, end);
        rocksdb_iter_seek_for_prev(iterator, (const char *)end, sizeof end);
        if (rocksdb_iter_valid(iterator)) {
            const uint8_t *key = (const uint8_t *)rocksdb_iter_key(iterator, &size);
            if (dw_record_key_decode(key, size, &record)) {
                tally_add(&tally, record.position);
            }
        }
        error = iterator_error(db, iterator);
    }
    rocksdb_iter_destroy(iterator);
    *last = tally.last;
    return error;
}

static enum dw_error check_acked(struct rocksdb_store *db)
{
    uint64_t last;
    enum dw_error error = find_last(db, &last);
    if (error != DW_OK) {
        return error;
    }
    if (db->acked.blank && last > 0) {
        snprintf(db->text, sizeof db->text, DW_ACKED_DAMAGED, db->directory);
        return DW_ERR_CORRUPT;
    }
    if (last < db->acked.position) {
        return fail_missing(db, "the last position", db->acked.position, last);
    }
    if (!db->acked.present && last > 0) {
        fprintf(stderr, "%s/ACKED is gone: starting without the check for missing records at the end\n",
                db->directory);
    }
    return DW_OK;
}

/* A database without this key was killed while it was made, before anything was acknowledged: check_acked()
 * has seen that. */
static enum dw_error check_meta(struct rocksdb_store *db)
{
    char *reason = NULL;
    size_t size;
    char *meta = rocksdb_get(db->db, db->read, META_KEY, strlen(META_KEY), &size, &reason);
    if (reason != NULL) {
        return fail(db, "reading the run id", reason);
    }
    enum dw_error error = DW_OK;
    if (meta != NULL && (size != strlen(db->meta) || memcmp(meta, db->meta, size) != 0)) {
        snprintf(
            db->text, sizeof db->text,
            "%s belongs to %.*s, and not to %s: give the directory of this storage node, or an empty one",
            db->directory, (int)size, meta, db->meta);
        error = DW_ERR_REFUSED;
    }
    rocksdb_free(meta);
    return error;
}

static enum dw_error open_checked(struct rocksdb_store *db)
{
    char *reason = NULL;
    bool found;
    if (mkdir(db->directory, 0755) != 0 && errno != EEXIST) {
        return fail_errno(db, "making the directory");
    }
    enum dw_error error = dw_acked_file_open(db->directory, &db->acked, db->text, sizeof db->text);
    if (error != DW_OK) {
        return error;
    }
    error = find_database(db, &found);
    if (error != DW_OK || !found) {
        return error;
    }
    db->db = rocksdb_open_for_read_only(db->options, db->directory, 0, &reason);
    if (reason != NULL) {
        return fail(db, "opening", reason);
    }
    error = check_meta(db);
    return error == DW_OK ? check_acked(db) : error;
}

enum dw_error dw_rocksdb_store_open(const char *directory, const char *run_id, uint32_t storage_id,
                                    struct dw_log_store **store, char *text, size_t text_size)
{
    if (strlen(run_id) > DW_MAX_RUN_ID || strlen(directory) >= PATH_MAX) {
        snprintf(text, text_size,
                 "the run id or the directory's name is too long: give at most %d and %d bytes",
                 DW_MAX_RUN_ID, PATH_MAX - 1);
        return DW_ERR_ARGUMENT;
    }
    struct rocksdb_store *db = calloc(1, sizeof *db);
    if (db == NULL) {
        snprintf(text, text_size, "out of memory");
        return DW_ERR_MEMORY;
    }
    db->store.ops = &rocksdb_ops;
    db->acked = (struct dw_acked_file){.fd = -1, .directory_fd = -1};
    snprintf(db->directory, sizeof db->directory, "%s", directory);
    snprintf(db->meta, sizeof db->meta, "run '%s', storage node %u, format %u", run_id, storage_id,
             FORMAT_VERSION);
    set_options(db);
    enum dw_error error = open_checked(db);
    if (error != DW_OK) {
        snprintf(text, text_size, "%s", db->text);
        rocksdb_store_close(&db->store);
        return error;
    }
    *store = &db->store;
    return DW_OK;
}
