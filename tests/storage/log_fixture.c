#include "log_fixture.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void inbox_init(struct inbox *inbox)
{
    memset(inbox, 0, sizeof *inbox);
    pthread_mutex_init(&inbox->lock, NULL);
    pthread_cond_init(&inbox->changed, NULL);
}

void inbox_close(struct inbox *inbox)
{
    pthread_cond_destroy(&inbox->changed);
    pthread_mutex_destroy(&inbox->lock);
}

void inbox_wait(struct inbox *inbox, size_t count)
{
    pthread_mutex_lock(&inbox->lock);
    while (inbox->count < count) {
        pthread_cond_wait(&inbox->changed, &inbox->lock);
    }
    pthread_mutex_unlock(&inbox->lock);
}

size_t inbox_count(struct inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    size_t count = inbox->count;
    pthread_mutex_unlock(&inbox->lock);
    return count;
}

void inbox_done(void *context, uint64_t id, const struct dw_log_request *request, enum dw_answer answer,
                uint64_t position, uint32_t incarnation)
{
    struct inbox *inbox = context;
    (void)request;
    pthread_mutex_lock(&inbox->lock);
    inbox->replies[inbox->count % FIXTURE_MAX_REPLIES] =
        (struct reply){.id = id, .answer = answer, .position = position, .incarnation = incarnation};
    inbox->count++;
    pthread_cond_broadcast(&inbox->changed);
    pthread_mutex_unlock(&inbox->lock);
}

struct dw_log_submission make_request(struct inbox *inbox, enum dw_ask ask_, uint32_t log, uint32_t writer,
                                      uint64_t sequence, const char *redo)
{
    return (struct dw_log_submission){
        .request = {.txn = {.coordinator = 1, .incarnation = 1, .sequence = sequence},
                    .log = log,
                    .writer = writer,
                    .incarnation = 1,
                    .ask = ask_},
        .participants = 3,
        .redo = (const uint8_t *)redo,
        .redo_size = redo == NULL ? 0 : strlen(redo),
        .force = true,
        .id = sequence,
        .done = inbox_done,
        .context = inbox,
    };
}

struct reply ask_and_wait(struct dw_log_service *service, const struct dw_log_submission *submission)
{
    struct inbox *inbox = malloc(sizeof *inbox);
    assert_non_null(inbox);
    inbox_init(inbox);
    struct dw_log_submission copy = *submission;
    copy.context = inbox;
    copy.done = inbox_done;
    assert_int_equal(dw_log_service_submit(service, &copy, 1), DW_OK);
    inbox_wait(inbox, 1);
    struct reply reply = inbox->replies[0];
    inbox_close(inbox);
    free(inbox);
    return reply;
}

enum dw_answer ask(struct dw_log_service *service, enum dw_ask ask_, uint32_t log, uint32_t writer,
                   uint64_t sequence)
{
    struct dw_log_submission submission = make_request(NULL, ask_, log, writer, sequence, "redo");
    return ask_and_wait(service, &submission).answer;
}

static void fence_done(void *context, enum dw_error error, uint32_t incarnation)
{
    inbox_done(context, (uint64_t)error, NULL, DW_ANSWER_NONE, 0, incarnation);
}

uint32_t fence_and_wait(struct dw_log_service *service, uint32_t log)
{
    struct inbox *inbox = malloc(sizeof *inbox);
    assert_non_null(inbox);
    inbox_init(inbox);
    assert_int_equal(dw_log_service_fence(service, log, fence_done, inbox), DW_OK);
    inbox_wait(inbox, 1);
    assert_int_equal(inbox->replies[0].id, DW_OK);
    uint32_t incarnation = inbox->replies[0].incarnation;
    inbox_close(inbox);
    free(inbox);
    return incarnation;
}

uint64_t stat_of(struct dw_log_service *service, const char *name)
{
    struct dw_log_stat stats[64];
    size_t count = dw_log_service_stats(service, stats, 64, false);
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(stats[i].name, name) == 0) {
            return stats[i].value;
        }
    }
    fail_msg("there is no number named %s", name);
    return 0;
}

void make_directory(char *path, size_t size)
{
    const char *below = getenv("TMPDIR");
    snprintf(path, size, "%s/dogwood-test-XXXXXX", below == NULL ? "/tmp" : below);
    assert_non_null(mkdtemp(path));
}

static int remove_item(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

void remove_directory(const char *path)
{
    assert_int_equal(nftw(path, remove_item, 16, FTW_DEPTH | FTW_PHYS), 0);
}

struct dw_log_service *open_service(const char *directory, const struct dw_log_service_options *options)
{
    char text[512] = "";
    struct dw_log_service_options opened = *options;
    struct dw_log_service *service = NULL;
    if (directory == NULL) {
        opened.store = dw_memory_store_open();
        assert_non_null(opened.store);
    } else if (dw_rocksdb_store_open(directory, "test", 0, &opened.store, text, sizeof text) != DW_OK) {
        fail_msg("%s", text);
    }
    if (dw_log_service_open(&opened, &service, text, sizeof text) != DW_OK) {
        fail_msg("%s", text);
    }
    return service;
}
