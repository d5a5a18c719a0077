/* When threads race VOTE against DENY on the same transactions, does each log hold exactly one record, and
 * does everybody hear the same?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "log_fixture.h"

enum { THREADS = 8, TXNS = 200 };

struct racer {
    struct dw_log_service *service;
    pthread_t thread;
    unsigned number;
    struct inbox inbox;
    enum dw_answer answers[TXNS];
};

static void *race(void *argument)
{
    struct racer *racer = argument;
    /* Odd racers deny; and each begins elsewhere, so that everybody wins sometimes. */
    enum dw_ask asked = racer->number % 2 == 0 ? DW_ASK_VOTE : DW_ASK_DENY;
    for (uint64_t i = 0; i < TXNS; i += 8) {
        struct dw_log_submission submissions[8];
        for (uint64_t k = 0; k < 8; k++) {
            uint64_t sequence = (i + k + racer->number * 25) % TXNS;
            submissions[k] =
                make_request(&racer->inbox, asked, (uint32_t)sequence % 3, racer->number, sequence, "redo");
            submissions[k].force = sequence % 4 != 0;
        }
        if (dw_log_service_submit(racer->service, submissions, 8) != DW_OK) {
            abort();
        }
        (void)dw_log_service_read(racer->service, 0, (struct dw_txn_id){1, 1, i});
    }
    inbox_wait(&racer->inbox, TXNS);
    return NULL;
}

static bool count_record(void *user, const struct dw_stored_record *record)
{
    size_t *counts = user;
    counts[record->txn.sequence]++;
    return true;
}

static void check_race(struct dw_log_service *service, const struct racer *racers)
{
    size_t counts[TXNS] = {0};
    for (uint32_t log = 0; log < 3; log++) {
        assert_int_equal(dw_log_service_scan(service, log, 0, count_record, counts), DW_OK);
    }
    for (uint64_t i = 0; i < TXNS; i++) {
        assert_int_equal(counts[i], 1);
        enum dw_entry_state entry =
            dw_log_service_read(service, (uint32_t)i % 3, (struct dw_txn_id){1, 1, i}).state;
        assert_true(entry == DW_ENTRY_VOTE_YES || entry == DW_ENTRY_ABORT);
        for (size_t k = 0; k < THREADS; k++) {
            assert_int_equal(racers[k].answers[i],
                             entry == DW_ENTRY_VOTE_YES ? DW_ANSWER_VOTE_YES : DW_ANSWER_ABORT);
        }
    }
}

static void race_over(const char *directory, double delay_ms)
{
    struct dw_log_service_options options = {
        .sync = true,
        .delay = {.distribution = DW_DELAY_UNIFORM, .mean_ms = delay_ms, .parameter = delay_ms}};
    struct dw_log_service *service = open_service(directory, &options);
    struct racer *racers = calloc(THREADS, sizeof *racers);
    assert_non_null(racers);
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i].service = service;
        racers[i].number = i;
        inbox_init(&racers[i].inbox);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(racers[i].thread, NULL);
        assert_int_equal(racers[i].inbox.count, TXNS);
        for (size_t k = 0; k < TXNS; k++) {
            racers[i].answers[racers[i].inbox.replies[k].id] = racers[i].inbox.replies[k].answer;
        }
    }
    check_race(service, racers);
    dw_log_service_close(service);
    if (directory != NULL) {
        service = open_service(directory, &options);
        check_race(service, racers);
        dw_log_service_close(service);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        inbox_close(&racers[i].inbox);
    }
    free(racers);
}

static void one_record_over_the_memory_store(void **state)
{
    (void)state;
    race_over(NULL, 0);
    race_over(NULL, 1);
}

static void one_record_over_rocksdb(void **state)
{
    char directory[256];
    (void)state;
    make_directory(directory, sizeof directory);
    race_over(directory, 0.5);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_record_over_the_memory_store),
        cmocka_unit_test(one_record_over_rocksdb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
