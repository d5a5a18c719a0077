/* Does the RocksDB store keep what it acknowledged, refuse a directory that isn't its own, and fail clearly
 * on a full disk?
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_fixture.h"

static const struct dw_log_service_options synced = {.sync = true};

static enum dw_error try_open(const char *directory, const char *run_id, uint32_t storage_id, char *text,
                              size_t size)
{
    struct dw_log_store *store = NULL;
    enum dw_error error = dw_rocksdb_store_open(directory, run_id, storage_id, &store, text, size);
    if (error == DW_OK) {
        store->ops->close(store);
    } else {
        assert_null(strchr(text, '\n'));
    }
    return error;
}

static void fences_and_positions_go_on(void **state)
{
    char directory[256];
    (void)state;
    make_directory(directory, sizeof directory);
    struct dw_log_service *service = open_service(directory, &synced);
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 1), DW_ANSWER_VOTE_YES);
    assert_int_equal(fence_and_wait(service, 0), 1);
    assert_int_equal(fence_and_wait(service, 0), 2);
    assert_int_equal(fence_and_wait(service, 9), 1);
    dw_log_service_close(service);
    service = open_service(directory, &synced);
    assert_int_equal(stat_of(service, "durable_position"), 4);
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 2), DW_ANSWER_FENCED);
    assert_int_equal(fence_and_wait(service, 0), 3);
    struct dw_log_submission vote = make_request(NULL, DW_ASK_VOTE, 0, 0, 2, "redo");
    vote.request.incarnation = 3;
    struct reply reply = ask_and_wait(service, &vote);
    assert_int_equal(reply.answer, DW_ANSWER_VOTE_YES);
    assert_int_equal(reply.position, 6);
    dw_log_service_close(service);
    remove_directory(directory);
}

static void large_and_empty_redo_are_kept(void **state)
{
    enum { SIZE = 1 << 20 };
    char directory[256];
    uint8_t *redo = malloc(SIZE);
    (void)state;
    assert_non_null(redo);
    memset(redo, 7, SIZE);
    make_directory(directory, sizeof directory);
    struct dw_log_service *service = open_service(directory, &synced);
    struct dw_log_submission vote = make_request(NULL, DW_ASK_VOTE, 0, 0, 1, NULL);
    vote.redo = redo;
    vote.redo_size = SIZE;
    assert_int_equal(ask_and_wait(service, &vote).answer, DW_ANSWER_VOTE_YES);
    struct dw_log_submission empty = make_request(NULL, DW_ASK_VOTE, 0, 0, 2, NULL);
    assert_int_equal(ask_and_wait(service, &empty).answer, DW_ANSWER_VOTE_YES);
    dw_log_service_close(service);
    service = open_service(directory, &synced);
    assert_int_equal(ask_and_wait(service, &vote).answer, DW_ANSWER_VOTE_YES);
    assert_int_equal(ask_and_wait(service, &empty).answer, DW_ANSWER_VOTE_YES);
    redo[SIZE - 1] = 8;
    assert_int_equal(ask_and_wait(service, &vote).answer, DW_ANSWER_CONFLICT);
    dw_log_service_close(service);
    remove_directory(directory);
    free(redo);
}

static void strangers_are_refused(void **state)
{
    char directory[256];
    char text[1024];
    (void)state;
    make_directory(directory, sizeof directory);
    struct dw_log_service *service = open_service(directory, &synced);
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 1), DW_ANSWER_VOTE_YES);
    dw_log_service_close(service);
    assert_int_equal(try_open(directory, "other", 0, text, sizeof text), DW_ERR_REFUSED);
    assert_non_null(strstr(text, directory));
    assert_non_null(strstr(text, "'test'"));
    assert_non_null(strstr(text, "'other'"));
    assert_int_equal(try_open(directory, "test", 1, text, sizeof text), DW_ERR_REFUSED);
    assert_non_null(strstr(text, "node 1"));
    assert_int_equal(try_open(directory, "test", 0, text, sizeof text), DW_OK);
    char name[80];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(try_open(directory, name, 0, text, sizeof text), DW_ERR_ARGUMENT);
    remove_directory(directory);
}

static void directories_that_cannot_be_are_refused(void **state)
{
    char directory[256], below[300], text[1024];
    (void)state;
    make_directory(directory, sizeof directory);
    snprintf(below, sizeof below, "%s/a/b", directory);
    assert_int_equal(try_open(below, "test", 0, text, sizeof text), DW_ERR_IO);
    assert_non_null(strstr(text, below));
    snprintf(below, sizeof below, "%s/file", directory);
    fclose(fopen(below, "w"));
    assert_int_equal(try_open(below, "test", 0, text, sizeof text), DW_ERR_IO);
    remove_directory(directory);
}

/* A second process: this program again, in another role. Its standard input is ours to write, and its output
 * to read. */
struct child {
    pid_t pid;
    int to;
    int from;
};

static struct child start_child(char *role, char *directory)
{
    char *arguments[] = {(char[]){"test_rocksdb_store"}, role, directory, NULL};
    posix_spawn_file_actions_t actions;
    int in[2], out[2];
    struct child child;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, in[0], 0), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, out[1], 1), 0);
    assert_int_equal(posix_spawn(&child.pid, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    child.to = in[1];
    child.from = out[0];
    return child;
}

static void end_child(const struct child *child)
{
    int status;
    close(child->to);
    close(child->from);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_int_equal(status, 0);
}

/* The role "hold": has the directory open until its input ends. */
static int hold(const char *directory)
{
    char text[1024];
    char byte = 0;
    struct dw_log_store *store = NULL;
    if (dw_rocksdb_store_open(directory, "test", 0, &store, text, sizeof text) != DW_OK) {
        return 1;
    }
    bool told = write(1, &byte, 1) == 1 && read(0, &byte, 1) == 0;
    store->ops->close(store);
    return told ? 0 : 1;
}

static void a_directory_in_use_is_refused(void **state)
{
    char directory[256], text[1024];
    char role[] = "hold";
    char byte;
    (void)state;
    make_directory(directory, sizeof directory);
    struct child child = start_child(role, directory);
    assert_int_equal(read(child.from, &byte, 1), 1);
    assert_int_equal(try_open(directory, "test", 0, text, sizeof text), DW_ERR_LOCKED);
    assert_non_null(strstr(text, directory));
    end_child(&child);
    assert_int_equal(try_open(directory, "test", 0, text, sizeof text), DW_OK);
    remove_directory(directory);
}

/* The lock holds inside one process too. */
static void a_directory_is_opened_once(void **state)
{
    char directory[256], text[1024];
    (void)state;
    make_directory(directory, sizeof directory);
    struct dw_log_service *service = open_service(directory, &synced);
    assert_int_equal(try_open(directory, "test", 0, text, sizeof text), DW_ERR_LOCKED);
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 1), DW_ANSWER_VOTE_YES);
    dw_log_service_close(service);
    remove_directory(directory);
}

/* Closing without loading, as a refused start does, changes nothing. */
static void opening_alone_changes_nothing(void **state)
{
    char directory[256], path[300], text[1024];
    (void)state;
    make_directory(directory, sizeof directory);
    assert_int_equal(try_open(directory, "test", 0, text, sizeof text), DW_OK);
    snprintf(path, sizeof path, "%s/ACKED", directory);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* Opens store and service as a node does; on success closes them. */
static enum dw_error try_start(const char *directory, char *text, size_t size)
{
    struct dw_log_service_options options = synced;
    struct dw_log_service *service;
    enum dw_error error = dw_rocksdb_store_open(directory, "test", 0, &options.store, text, size);
    if (error == DW_OK) {
        error = dw_log_service_open(&options, &service, text, size);
    }
    if (error == DW_OK) {
        dw_log_service_close(service);
    }
    return error;
}

/* RocksDB tells of each failure with the path, so what a path is made of must not be read as the cause. */
static void the_name_of_a_directory_is_no_cause(void **state)
{
    char above[256], directory[300], path[400], text[1024] = "";
    (void)state;
    make_directory(above, sizeof above);
    snprintf(directory, sizeof directory, "%s/block", above);
    snprintf(path, sizeof path, "%s/LOCK", directory);
    assert_int_equal(mkdir(directory, 0755), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(try_start(directory, text, sizeof text), DW_ERR_IO);
    assert_non_null(strstr(text, path));
    assert_null(strstr(text, "in use"));
    remove_directory(above);
}

/* The file carries one of the two locks; RocksDB's own still holds, and its refusal leaves no new file. */
static void a_start_beside_a_node_whose_side_file_is_gone_makes_none(void **state)
{
    char directory[256], path[300], text[1024];
    (void)state;
    make_directory(directory, sizeof directory);
    struct dw_log_service *service = open_service(directory, &synced);
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 1), DW_ANSWER_VOTE_YES);
    snprintf(path, sizeof path, "%s/ACKED", directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(try_start(directory, text, sizeof text), DW_ERR_LOCKED);
    assert_int_not_equal(access(path, F_OK), 0);
    dw_log_service_close(service);
    remove_directory(directory);
}

/* The role "lose": votes once more after its directory is gone. What it would acknowledge is lost at its end.
 */
static int lose(const char *directory)
{
    static struct inbox inbox;
    static char text[4096];
    inbox_init(&inbox);
    struct dw_log_service *service = open_service(directory, &synced);
    bool kept = ask(service, DW_ASK_VOTE, 0, 0, 1) == DW_ANSWER_VOTE_YES;
    remove_directory(directory);
    struct dw_log_submission vote = make_request(&inbox, DW_ASK_VOTE, 0, 0, 2, NULL);
    bool submitted = dw_log_service_submit(service, &vote, 1) == DW_OK;
    while (dw_log_service_failed(service, text, sizeof text) == DW_OK && inbox_count(&inbox) == 0) {
        sched_yield();
    }
    bool refused = inbox_count(&inbox) == 0 && strstr(text, "was removed while the node ran") != NULL &&
                   strstr(text, "give its records up") != NULL;
    dw_log_service_close(service);
    return kept && submitted && refused ? 0 : 1;
}

/* The path is long, so that the line would lose its mend if there were little room for it. */
static void nothing_is_acknowledged_once_the_directory_is_gone(void **state)
{
    enum { NAME = 240 };
    char above[256], directory[1024];
    char role[] = "lose";
    (void)state;
    make_directory(above, sizeof above);
    size_t length = (size_t)snprintf(directory, sizeof directory, "%s", above);
    for (int depth = 0; depth < 2; depth++) {
        directory[length] = '/';
        memset(directory + length + 1, 'd', NAME);
        length += 1 + NAME;
        directory[length] = '\0';
        assert_int_equal(mkdir(directory, 0755), 0);
    }
    struct child child = start_child(role, directory);
    end_child(&child);
    assert_int_not_equal(access(directory, F_OK), 0);
    remove_directory(above);
}

/* What the filling process saw. */
struct filled {
    size_t acknowledged;
    size_t acknowledged_after_close;
    enum dw_error submit, failed;
    enum dw_entry_state last;
    char text[1024];
};

/* The role "fill": votes until the disk is full. A process of its own, because a store that failed stays
 * locked until its process ends. */
static int fill(const char *directory)
{
    static struct inbox inbox;
    static uint8_t redo[32 << 10];
    static struct filled filled;
    uint64_t sequence = 0;
    inbox_init(&inbox);
    struct dw_log_service *service = open_service(directory, &synced);
    while (filled.submit == DW_OK && sequence < 4000) {
        struct dw_log_submission vote = make_request(&inbox, DW_ASK_VOTE, 0, 0, sequence, NULL);
        vote.redo = redo;
        vote.redo_size = sizeof redo;
        filled.submit = dw_log_service_submit(service, &vote, 1);
        sequence++;
        while (dw_log_service_failed(service, filled.text, sizeof filled.text) == DW_OK &&
               inbox_count(&inbox) < sequence) {
            sched_yield();
        }
    }
    filled.failed = dw_log_service_failed(service, filled.text, sizeof filled.text);
    filled.acknowledged = inbox_count(&inbox);
    filled.last = dw_log_service_read(service, 0, (struct dw_txn_id){1, 1, filled.acknowledged - 1}).state;
    dw_log_service_close(service);
    filled.acknowledged_after_close = inbox.count;
    inbox_close(&inbox);
    return write(1, &filled, sizeof filled) == sizeof filled ? 0 : 1;
}

static bool mounted;

static int make_mount_point(void **state)
{
    static char mount_point[256];
    make_directory(mount_point, sizeof mount_point);
    *state = mount_point;
    return 0;
}

static int remove_mount_point(void **state)
{
    if (mounted) {
        assert_int_equal(umount2(*state, MNT_DETACH), 0);
    }
    remove_directory(*state);
    return 0;
}

static void a_full_disk_fails_clearly_and_loses_nothing(void **state)
{
    const char *mount_point = *state;
    char directory[300];
    char role[] = "fill";
    static struct filled filled;
    if (mount("none", mount_point, "tmpfs", 0, "size=8m") != 0) {
        printf("SKIPPED: no small file system can be mounted here (%s)\n", strerror(errno));
        skip();
    }
    mounted = true;
    snprintf(directory, sizeof directory, "%s/data", mount_point);
    struct child child = start_child(role, directory);
    assert_int_equal(read(child.from, &filled, sizeof filled), sizeof filled);
    end_child(&child);
    assert_true(filled.acknowledged > 50);
    assert_int_equal(filled.submit, DW_ERR_IO);
    assert_int_equal(filled.failed, DW_ERR_IO);
    assert_int_equal(filled.acknowledged_after_close, filled.acknowledged);
    assert_int_equal(filled.last, DW_ENTRY_VOTE_YES);
    assert_non_null(strstr(filled.text, directory));
    assert_non_null(strstr(filled.text, "full"));
    /* With room again, everything that was acknowledged is there. */
    assert_int_equal(mount("none", mount_point, "tmpfs", MS_REMOUNT, "size=64m"), 0);
    struct dw_log_service *service = open_service(directory, &synced);
    for (uint64_t i = 0; i < filled.acknowledged; i++) {
        assert_int_equal(dw_log_service_read(service, 0, (struct dw_txn_id){1, 1, i}).state,
                         DW_ENTRY_VOTE_YES);
    }
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 100000), DW_ANSWER_VOTE_YES);
    dw_log_service_close(service);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        /* Without the checks for leaks at the exit: a failed database is left as it is. */
        int (*role)(const char *) = strcmp(argv[1], "hold") == 0   ? hold
                                    : strcmp(argv[1], "lose") == 0 ? lose
                                                                   : fill;
        _exit(role(argv[2]));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fences_and_positions_go_on),
        cmocka_unit_test(large_and_empty_redo_are_kept),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(directories_that_cannot_be_are_refused),
        cmocka_unit_test(a_directory_in_use_is_refused),
        cmocka_unit_test(a_directory_is_opened_once),
        cmocka_unit_test(opening_alone_changes_nothing),
        cmocka_unit_test(the_name_of_a_directory_is_no_cause),
        cmocka_unit_test(a_start_beside_a_node_whose_side_file_is_gone_makes_none),
        cmocka_unit_test(nothing_is_acknowledged_once_the_directory_is_gone),
        cmocka_unit_test_setup_teardown(a_full_disk_fails_clearly_and_loses_nothing, make_mount_point,
                                        remove_mount_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
