/* log_fixture.h - a log service with its requests and answers, as tests use them: one directory a test,
 * blocking calls, and answers collected in the order of their coming.
 */
#ifndef DW_TESTS_LOG_FIXTURE_H
#define DW_TESTS_LOG_FIXTURE_H

#include <pthread.h>

#include "storage/log_service.h"

enum { FIXTURE_MAX_REPLIES = 4096 };

struct reply {
    uint64_t id;
    enum dw_answer answer;
    uint64_t position;
    uint32_t incarnation;
};

/* Where answers go. */
struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t count;
    struct reply replies[FIXTURE_MAX_REPLIES];
};

void inbox_init(struct inbox *inbox);
void inbox_close(struct inbox *inbox);
/* Blocks until so many answers came in all. */
void inbox_wait(struct inbox *inbox, size_t count);
size_t inbox_count(struct inbox *inbox);
/* The done function; its context is the inbox. */
void inbox_done(void *context, uint64_t id, const struct dw_log_request *request, enum dw_answer answer,
                uint64_t position, uint32_t incarnation);

/* A forced request on transaction 1.1.sequence, with answers to the inbox; its redo is `redo`, a string. */
struct dw_log_submission make_request(struct inbox *inbox, enum dw_ask ask, uint32_t log, uint32_t writer,
                                      uint64_t sequence, const char *redo);

/* Submits and waits for the answer. */
struct reply ask_and_wait(struct dw_log_service *service, const struct dw_log_submission *submission);
enum dw_answer ask(struct dw_log_service *service, enum dw_ask ask, uint32_t log, uint32_t writer,
                   uint64_t sequence);

/* Fences and waits. */
uint32_t fence_and_wait(struct dw_log_service *service, uint32_t log);

/* One of the service's numbers; fails the test if there is none of that name. */
uint64_t stat_of(struct dw_log_service *service, const char *name);

/* A new directory below TMPDIR or /tmp, and its removal with all that is in it. */
void make_directory(char *path, size_t size);
void remove_directory(const char *path);

/* Opens a service over a new memory store or over RocksDB in the directory (NULL: memory); fails the test if
 * it can't. */
struct dw_log_service *open_service(const char *directory, const struct dw_log_service_options *options);

#endif
