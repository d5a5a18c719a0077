/* Is a directory with damaged or missing acknowledged records refused, whatever RocksDB makes of it? And does
 * a refusal leave the directory as it was, so that it can still be mended?
 */
#include <dirent.h>
#include <fcntl.h>
#include <rocksdb/c.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_fixture.h"

enum { TXNS = 40 };

static const struct dw_log_service_options synced = {.sync = true};

static void vote(struct dw_log_service *service, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        assert_int_equal(ask(service, DW_ASK_VOTE, (uint32_t)i % 2, 9, i), DW_ANSWER_VOTE_YES);
    }
}

/* A directory whose first half lies in a table file, and whose second half in the newest .log file. */
static void make_log(char *directory, size_t size)
{
    make_directory(directory, size);
    struct dw_log_service *service = open_service(directory, &synced);
    vote(service, 0, TXNS / 2);
    assert_int_equal(fence_and_wait(service, 1), 1);
    dw_log_service_close(service);
    service = open_service(directory, &synced);
    vote(service, TXNS / 2, TXNS);
    dw_log_service_close(service);
}

/* The newest file with such a name. */
static void newest(const char *directory, const char *suffix, char *path, size_t size)
{
    char best[256] = "";
    DIR *listing = opendir(directory);
    assert_non_null(listing);
    for (struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
        size_t length = strlen(item->d_name);
        if (length > strlen(suffix) && strcmp(item->d_name + length - strlen(suffix), suffix) == 0 &&
            strcmp(item->d_name, best) > 0) {
            snprintf(best, sizeof best, "%s", item->d_name);
        }
    }
    closedir(listing);
    assert_string_not_equal(best, "");
    snprintf(path, size, "%s/%s", directory, best);
}

/* Opens store and service, and closes them; on failure the text says why. */
static enum dw_error try_start(const char *directory, size_t *entries, char *text, size_t size)
{
    struct dw_log_service_options options = synced;
    struct dw_log_service *service;
    enum dw_error error = dw_rocksdb_store_open(directory, "test", 0, &options.store, text, size);
    if (error == DW_OK) {
        error = dw_log_service_open(&options, &service, text, size);
    }
    if (error != DW_OK) {
        assert_null(strchr(text, '\n'));
        return error;
    }
    *entries = 0;
    for (uint64_t i = 0; i < TXNS; i++) {
        struct dw_txn_id txn = {.coordinator = 1, .incarnation = 1, .sequence = i};
        *entries += dw_log_service_read(service, (uint32_t)i % 2, txn).state == DW_ENTRY_VOTE_YES;
    }
    dw_log_service_close(service);
    return DW_OK;
}

static void assert_refused(const char *directory)
{
    char text[1024] = "";
    size_t entries;
    assert_int_equal(try_start(directory, &entries, text, sizeof text), DW_ERR_CORRUPT);
    assert_non_null(strstr(text, directory));
    assert_non_null(strstr(text, ".log"));
}

static void assert_whole(const char *directory)
{
    char text[1024] = "";
    size_t entries = 0;
    if (try_start(directory, &entries, text, sizeof text) != DW_OK) {
        fail_msg("%s", text);
    }
    assert_int_equal(entries, TXNS);
}

static void a_missing_newest_log_file_is_refused(void **state)
{
    char directory[256], path[600], aside[700];
    (void)state;
    make_log(directory, sizeof directory);
    newest(directory, ".log", path, sizeof path);
    snprintf(aside, sizeof aside, "%s.aside", path);
    assert_int_equal(rename(path, aside), 0);
    assert_refused(directory);
    /* A second try is refused as well; and the mend that the line names works. */
    assert_refused(directory);
    assert_int_equal(rename(aside, path), 0);
    assert_whole(directory);
    remove_directory(directory);
}

/* The only acknowledged thing in the newest file is a fence. */
static void a_missing_fence_is_refused(void **state)
{
    char directory[256], path[600];
    (void)state;
    make_log(directory, sizeof directory);
    struct dw_log_service *service = open_service(directory, &synced);
    assert_int_equal(fence_and_wait(service, 0), 1);
    dw_log_service_close(service);
    newest(directory, ".log", path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_refused(directory);
    remove_directory(directory);
}

static void a_database_without_its_files_is_not_made_anew(void **state)
{
    char directory[256], path[600];
    (void)state;
    make_log(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/CURRENT", directory);
    assert_int_equal(unlink(path), 0);
    assert_refused(directory);
    /* Without log files RocksDB itself would start anew. */
    newest(directory, ".log", path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_refused(directory);
    snprintf(path, sizeof path, "%s/ACKED", directory);
    assert_int_equal(unlink(path), 0);
    assert_refused(directory);
    remove_directory(directory);
}

static void flip(const char *path, off_t offset)
{
    uint8_t byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 0x5a;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static off_t size_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

static void copy(const char *from, const char *to)
{
    char command[2000];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -a '%s' '%s'", to, from, to);
    assert_int_equal(system(command), 0);
}

/* Flips one byte after another in a copy. Each must be refused, or leave every record as it was; and a
 * refused copy is whole again once the byte is put right. Returns how many were refused. */
static size_t flip_everywhere(const char *suffix, off_t step)
{
    char directory[256], damaged[300], path[600], text[1024];
    size_t refused = 0;
    make_log(directory, sizeof directory);
    snprintf(damaged, sizeof damaged, "%s.damaged", directory);
    copy(directory, damaged);
    newest(damaged, suffix, path, sizeof path);
    off_t size = size_of(path);
    for (off_t offset = 0; offset < size; offset += step) {
        size_t entries = 0;
        flip(path, offset);
        enum dw_error error = try_start(damaged, &entries, text, sizeof text);
        if (error == DW_OK) {
            assert_int_equal(entries, TXNS);
            copy(directory, damaged);
            continue;
        }
        refused++;
        assert_int_equal(error, DW_ERR_CORRUPT);
        assert_non_null(strstr(text, damaged));
        flip(path, offset);
        if (refused % 16 == 1) {
            assert_whole(damaged);
            copy(directory, damaged);
        }
    }
    remove_directory(damaged);
    remove_directory(directory);
    return refused;
}

static void a_flipped_byte_in_the_log_file_is_refused(void **state)
{
    (void)state;
    /* Every record counts, so there is hardly a byte that can be flipped unpunished. */
    assert_true(flip_everywhere(".log", 17) > 50);
}

static void a_flipped_byte_in_a_table_file_is_refused(void **state)
{
    (void)state;
    assert_true(flip_everywhere(".sst", 31) > 10);
}

static void a_shortened_log_file_is_refused(void **state)
{
    char directory[256], damaged[300], path[600];
    (void)state;
    make_log(directory, sizeof directory);
    snprintf(damaged, sizeof damaged, "%s.damaged", directory);
    copy(directory, damaged);
    newest(damaged, ".log", path, sizeof path);
    off_t size = size_of(path);
    for (off_t left = 0; left < size; left += 101) {
        copy(directory, damaged);
        assert_int_equal(truncate(path, left), 0);
        assert_refused(damaged);
    }
    remove_directory(damaged);
    remove_directory(directory);
}

/* RocksDB's own text about it ends with a newline; try_start() sees to it that ours is one line. */
static void an_enlarged_table_file_is_refused(void **state)
{
    char directory[256], path[600];
    (void)state;
    make_log(directory, sizeof directory);
    newest(directory, ".sst", path, sizeof path);
    assert_int_equal(truncate(path, size_of(path) + 64), 0);
    assert_refused(directory);
    remove_directory(directory);
}

static void a_damaged_side_file_is_refused(void **state)
{
    char directory[256], path[300], text[1024];
    size_t entries;
    (void)state;
    make_log(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/ACKED", directory);
    off_t size = size_of(path);
    for (off_t offset = 0; offset < size; offset++) {
        flip(path, offset);
        assert_int_equal(try_start(directory, &entries, text, sizeof text), DW_ERR_CORRUPT);
        assert_non_null(strstr(text, path));
        flip(path, offset);
    }
    assert_whole(directory);
    for (off_t left = size - 1; left >= 0; left -= 5) {
        assert_int_equal(truncate(path, left), 0);
        assert_int_equal(try_start(directory, &entries, text, sizeof text), DW_ERR_CORRUPT);
        assert_non_null(strstr(text, path));
    }
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(try_start(directory, &entries, text, sizeof text), DW_ERR_CORRUPT);
    /* The mend that the line names. */
    assert_int_equal(unlink(path), 0);
    assert_whole(directory);
    assert_int_equal(size_of(path), size);
    remove_directory(directory);
}

/* After a crash of the machine the side file may be older than the log. */
static void an_older_side_file_is_accepted(void **state)
{
    char directory[256], path[300], older[300];
    (void)state;
    make_directory(directory, sizeof directory);
    struct dw_log_service *service = open_service(directory, &synced);
    vote(service, 0, 10);
    snprintf(path, sizeof path, "%s/ACKED", directory);
    snprintf(older, sizeof older, "%s/older", directory);
    copy(path, older);
    vote(service, 10, TXNS);
    dw_log_service_close(service);
    assert_int_equal(rename(older, path), 0);
    assert_whole(directory);
    remove_directory(directory);
}

/* Opens the database behind the store's back, and puts or deletes the key of the record at this position. */
static void tamper(const char *directory, uint64_t position, bool delete)
{
    char *reason = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_t *db = rocksdb_open(options, directory, &reason);
    assert_null(reason);
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(db, read);
    bool found = false;
    for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator) && !found;
         rocksdb_iter_next(iterator)) {
        size_t key_size, value_size;
        const char *key = rocksdb_iter_key(iterator, &key_size);
        const char *value = rocksdb_iter_value(iterator, &value_size);
        char changed[1024];
        if (key_size != 26 || (uint8_t)key[9] != position) {
            continue;
        }
        found = true;
        assert_true(value_size <= sizeof changed);
        memcpy(changed, value, value_size);
        changed[value_size - 1] ^= 1;
        if (delete) {
            rocksdb_delete(db, write, key, key_size, &reason);
        } else {
            rocksdb_put(db, write, key, key_size, changed, value_size, &reason);
        }
        assert_null(reason);
    }
    assert_true(found);
    rocksdb_iter_destroy(iterator);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void a_missing_record_in_the_middle_is_refused(void **state)
{
    char directory[256];
    (void)state;
    make_log(directory, sizeof directory);
    tamper(directory, 7, true);
    assert_refused(directory);
    remove_directory(directory);
}

static bool find_damaged(void *user, const struct dw_stored_record *record)
{
    struct dw_stored_record *found = user;
    if (record->damaged) {
        *found = *record;
    }
    return true;
}

static void a_damaged_record_answers_damaged_and_others_are_fine(void **state)
{
    char directory[256];
    (void)state;
    make_log(directory, sizeof directory);
    /* Position 7 is transaction 6, in log 0. */
    tamper(directory, 7, false);
    struct dw_log_service *service = open_service(directory, &synced);
    assert_int_equal(stat_of(service, "damaged_at_start"), 1);
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 9, 6), DW_ANSWER_DAMAGED);
    assert_int_equal(ask(service, DW_ASK_DENY, 0, 9, 6), DW_ANSWER_DAMAGED);
    assert_int_equal(ask(service, DW_ASK_READ, 0, 9, 6), DW_ANSWER_DAMAGED);
    for (uint64_t i = 0; i < TXNS; i++) {
        assert_int_equal(ask(service, DW_ASK_DENY, (uint32_t)i % 2, 9, i),
                         i == 6 ? DW_ANSWER_DAMAGED : DW_ANSWER_VOTE_YES);
    }
    struct dw_stored_record found = {.position = 0};
    assert_int_equal(dw_log_service_scan(service, 0, 0, find_damaged, &found), DW_OK);
    assert_int_equal(found.position, 7);
    assert_int_equal(found.txn.sequence, 6);
    assert_int_equal(found.record, DW_RECORD_NONE);
    dw_log_service_close(service);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_newest_log_file_is_refused),
        cmocka_unit_test(a_missing_fence_is_refused),
        cmocka_unit_test(a_database_without_its_files_is_not_made_anew),
        cmocka_unit_test(a_flipped_byte_in_the_log_file_is_refused),
        cmocka_unit_test(a_flipped_byte_in_a_table_file_is_refused),
        cmocka_unit_test(a_shortened_log_file_is_refused),
        cmocka_unit_test(an_enlarged_table_file_is_refused),
        cmocka_unit_test(a_damaged_side_file_is_refused),
        cmocka_unit_test(an_older_side_file_is_accepted),
        cmocka_unit_test(a_missing_record_in_the_middle_is_refused),
        cmocka_unit_test(a_damaged_record_answers_damaged_and_others_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
