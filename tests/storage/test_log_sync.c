/* Is nothing ever acknowledged before it is durable, and nothing at all after a failure? What causes a sync?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_store.h"
#include "log_fixture.h"

/* A service over a fake store, with a clock that only the test moves. */
struct bench {
    struct fake_store fake;
    struct inbox inbox;
    pthread_mutex_t lock;
    uint64_t now_us;
    struct dw_log_service *service;
};

static uint64_t bench_now(void *user)
{
    struct bench *bench = user;
    pthread_mutex_lock(&bench->lock);
    uint64_t now = bench->now_us;
    pthread_mutex_unlock(&bench->lock);
    return now;
}

static void bench_move(struct bench *bench, uint64_t us)
{
    pthread_mutex_lock(&bench->lock);
    bench->now_us += us;
    pthread_mutex_unlock(&bench->lock);
    dw_log_service_poke(bench->service);
}

static struct bench *bench_open(bool sync)
{
    static struct bench bench;
    char text[256];
    bench.now_us = 1;
    bench.service = NULL;
    fake_store_init(&bench.fake);
    inbox_init(&bench.inbox);
    pthread_mutex_init(&bench.lock, NULL);
    struct dw_log_service_options options = {
        .store = &bench.fake.store, .sync = sync, .now_us = bench_now, .user = &bench};
    assert_int_equal(dw_log_service_open(&options, &bench.service, text, sizeof text), DW_OK);
    return &bench;
}

static void bench_close(struct bench *bench)
{
    dw_log_service_close(bench->service);
    assert_true(bench->fake.closed);
    pthread_mutex_destroy(&bench->lock);
    inbox_close(&bench->inbox);
    fake_store_destroy(&bench->fake);
}

static void submit(struct bench *bench, enum dw_ask asked, uint64_t sequence, bool force, uint64_t id)
{
    struct dw_log_submission submission = make_request(&bench->inbox, asked, 0, 0, sequence, "redo");
    submission.force = force;
    submission.id = id;
    assert_int_equal(dw_log_service_submit(bench->service, &submission, 1), DW_OK);
}

static enum dw_entry_state state_of(struct bench *bench, uint64_t sequence)
{
    return dw_log_service_read(bench->service, 0, (struct dw_txn_id){1, 1, sequence}).state;
}

static bool count_record(void *user, const struct dw_stored_record *record)
{
    (void)record;
    ++*(size_t *)user;
    return true;
}

static size_t scanned(struct bench *bench)
{
    size_t count = 0;
    assert_int_equal(dw_log_service_scan(bench->service, 0, 0, count_record, &count), DW_OK);
    return count;
}

static void no_answer_and_no_reading_before_the_sync(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    fake_store_hold(&bench->fake);
    submit(bench, DW_ASK_VOTE, 1, true, 0);
    fake_store_wait_held(&bench->fake);
    /* Appended, not synced: nobody may see it; and a denial that meets the pending vote waits for it. */
    submit(bench, DW_ASK_DENY, 1, true, 1);
    assert_int_equal(state_of(bench, 1), DW_ENTRY_NONE);
    assert_int_equal(scanned(bench), 0);
    assert_int_equal(inbox_count(&bench->inbox), 0);
    assert_int_equal(fake_store_numbers(&bench->fake).acknowledged, 0);
    fake_store_release(&bench->fake);
    inbox_wait(&bench->inbox, 2);
    assert_int_equal(bench->inbox.replies[0].answer, DW_ANSWER_VOTE_YES);
    assert_int_equal(bench->inbox.replies[1].answer, DW_ANSWER_VOTE_YES);
    assert_int_equal(state_of(bench, 1), DW_ENTRY_VOTE_YES);
    assert_int_equal(scanned(bench), 1);
    struct fake_store numbers = fake_store_numbers(&bench->fake);
    assert_int_equal(numbers.syncs, 1);
    assert_int_equal(numbers.acknowledged, 1);
    bench_close(bench);
}

/* An entry's earlier state is what can be read while its next one waits for the sync. */
static void a_decision_is_not_read_before_its_sync(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    submit(bench, DW_ASK_VOTE, 1, true, 0);
    inbox_wait(&bench->inbox, 1);
    fake_store_hold(&bench->fake);
    submit(bench, DW_ASK_DECIDE_COMMIT, 1, true, 1);
    fake_store_wait_held(&bench->fake);
    assert_int_equal(state_of(bench, 1), DW_ENTRY_VOTE_YES);
    assert_int_equal(scanned(bench), 1);
    fake_store_release(&bench->fake);
    inbox_wait(&bench->inbox, 2);
    assert_int_equal(state_of(bench, 1), DW_ENTRY_COMMIT);
    assert_int_equal(scanned(bench), 2);
    bench_close(bench);
}

/* What queues up during a sync goes into one batch, with one sync. */
static void a_queue_becomes_one_batch(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    fake_store_hold(&bench->fake);
    submit(bench, DW_ASK_VOTE, 1, true, 0);
    fake_store_wait_held(&bench->fake);
    for (uint64_t i = 2; i <= 65; i++) {
        submit(bench, DW_ASK_VOTE, i, true, i);
    }
    fake_store_release(&bench->fake);
    inbox_wait(&bench->inbox, 65);
    struct fake_store numbers = fake_store_numbers(&bench->fake);
    assert_int_equal(numbers.appends, 2);
    assert_int_equal(numbers.syncs, 2);
    assert_int_equal(numbers.records, 65);
    assert_int_equal(stat_of(bench->service, "largest_batch"), 64);
    bench_close(bench);
}

static void an_unforced_request_rides_the_next_sync(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    submit(bench, DW_ASK_START, 1, false, 0);
    fake_store_wait_appends(&bench->fake, 1);
    struct fake_store numbers = fake_store_numbers(&bench->fake);
    assert_int_equal(numbers.syncs, 0);
    /* A forced request about something else that is durable already, or absent, causes none and isn't held
     * up. */
    submit(bench, DW_ASK_READ, 7, true, 1);
    inbox_wait(&bench->inbox, 1);
    assert_int_equal(bench->inbox.replies[0].id, 1);
    assert_int_equal(state_of(bench, 1), DW_ENTRY_NONE);
    assert_int_equal(scanned(bench), 0);
    assert_int_equal(fake_store_numbers(&bench->fake).acknowledged, 0);
    submit(bench, DW_ASK_VOTE, 2, true, 2);
    inbox_wait(&bench->inbox, 3);
    assert_int_equal(bench->inbox.replies[1].id, 0);
    assert_int_equal(bench->inbox.replies[2].id, 2);
    assert_int_equal(fake_store_numbers(&bench->fake).syncs, 1);
    assert_int_equal(state_of(bench, 1), DW_ENTRY_START);
    bench_close(bench);
}

static void an_unforced_request_causes_a_sync_in_the_end(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    submit(bench, DW_ASK_START, 1, false, 0);
    fake_store_wait_appends(&bench->fake, 1);
    submit(bench, DW_ASK_READ, 7, true, 1);
    inbox_wait(&bench->inbox, 1);
    bench_move(bench, DW_LOG_RIDE_US - 1);
    submit(bench, DW_ASK_READ, 7, true, 2);
    inbox_wait(&bench->inbox, 2);
    assert_int_equal(fake_store_numbers(&bench->fake).syncs, 0);
    bench_move(bench, 1);
    inbox_wait(&bench->inbox, 3);
    assert_int_equal(bench->inbox.replies[2].id, 0);
    struct fake_store numbers = fake_store_numbers(&bench->fake);
    assert_int_equal(numbers.syncs, 1);
    assert_int_equal(numbers.appends, 1);
    assert_int_equal(numbers.acknowledged, 1);
    bench_close(bench);
}

/* An answer that tells of an unsynced record waits: forced, it has the record synced; unforced, it rides too.
 */
static void an_answer_waits_for_what_it_tells_of(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    submit(bench, DW_ASK_VOTE, 1, false, 0);
    submit(bench, DW_ASK_DENY, 1, false, 1);
    fake_store_wait_appends(&bench->fake, 1);
    submit(bench, DW_ASK_READ, 7, true, 2);
    inbox_wait(&bench->inbox, 1);
    assert_int_equal(bench->inbox.replies[0].id, 2);
    submit(bench, DW_ASK_DENY, 1, true, 3);
    inbox_wait(&bench->inbox, 4);
    for (uint64_t i = 0; i < 3; i++) {
        static const uint64_t order[] = {0, 1, 3};
        assert_int_equal(bench->inbox.replies[i + 1].id, order[i]);
        assert_int_equal(bench->inbox.replies[i + 1].answer, DW_ANSWER_VOTE_YES);
    }
    struct fake_store numbers = fake_store_numbers(&bench->fake);
    assert_int_equal(numbers.syncs, 1);
    assert_int_equal(numbers.records, 1);
    /* Durable now: asking once more costs no sync. */
    submit(bench, DW_ASK_DENY, 1, true, 4);
    inbox_wait(&bench->inbox, 5);
    assert_int_equal(fake_store_numbers(&bench->fake).syncs, 1);
    bench_close(bench);
}

static void without_sync_nothing_is_synced(void **state)
{
    struct bench *bench = bench_open(false);
    (void)state;
    submit(bench, DW_ASK_VOTE, 1, true, 0);
    submit(bench, DW_ASK_START, 2, false, 1);
    inbox_wait(&bench->inbox, 2);
    assert_int_equal(fence_and_wait(bench->service, 0), 1);
    struct fake_store numbers = fake_store_numbers(&bench->fake);
    assert_int_equal(numbers.syncs, 0);
    assert_int_equal(numbers.records, 2);
    assert_int_equal(numbers.acknowledged, 3);
    assert_int_equal(state_of(bench, 1), DW_ENTRY_VOTE_YES);
    assert_int_equal(state_of(bench, 2), DW_ENTRY_START);
    bench_close(bench);
}

static void a_fence_is_synced(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    assert_int_equal(fence_and_wait(bench->service, 3), 1);
    assert_int_equal(fence_and_wait(bench->service, 3), 2);
    struct fake_store numbers = fake_store_numbers(&bench->fake);
    assert_int_equal(numbers.syncs, 2);
    assert_int_equal(numbers.fences, 2);
    assert_int_equal(numbers.acknowledged, 2);
    bench_close(bench);
}

static void closing_syncs_what_rides(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    submit(bench, DW_ASK_START, 1, false, 0);
    bench_close(bench);
    assert_int_equal(bench->inbox.count, 1);
    assert_int_equal(bench->fake.syncs, 1);
}

struct fence_result {
    struct inbox *inbox;
    enum dw_error error;
};

static void note_fence(void *context, enum dw_error error, uint32_t incarnation)
{
    struct fence_result *result = context;
    result->error = error;
    inbox_done(result->inbox, 99, NULL, DW_ANSWER_NONE, 0, incarnation);
}

static void nothing_is_acknowledged_after_a_failure(void **state)
{
    struct bench *bench = bench_open(true);
    struct fence_result fence = {.inbox = &bench->inbox, .error = DW_OK};
    char text[256];
    (void)state;
    submit(bench, DW_ASK_VOTE, 1, true, 0);
    inbox_wait(&bench->inbox, 1);
    submit(bench, DW_ASK_START, 2, false, 1);
    fake_store_wait_appends(&bench->fake, 2);
    fake_store_hold(&bench->fake);
    submit(bench, DW_ASK_VOTE, 3, true, 2);
    fake_store_wait_held(&bench->fake);
    submit(bench, DW_ASK_READ, 1, true, 3);
    assert_int_equal(dw_log_service_fence(bench->service, 0, note_fence, &fence), DW_OK);
    assert_int_equal(dw_log_service_failed(bench->service, text, sizeof text), DW_OK);
    fake_store_fail(&bench->fake);
    fake_store_release(&bench->fake);
    /* Only the fence is told, and it is the last of what was queued. */
    inbox_wait(&bench->inbox, 2);
    assert_int_equal(bench->inbox.replies[1].id, 99);
    assert_int_equal(fence.error, DW_ERR_IO);
    assert_int_equal(dw_log_service_failed(bench->service, text, sizeof text), DW_ERR_IO);
    assert_non_null(strstr(text, "told to fail"));
    struct dw_log_submission late = make_request(&bench->inbox, DW_ASK_READ, 0, 0, 1, NULL);
    assert_int_equal(dw_log_service_submit(bench->service, &late, 1), DW_ERR_IO);
    assert_int_equal(dw_log_service_fence(bench->service, 0, note_fence, &fence), DW_ERR_IO);
    assert_int_equal(state_of(bench, 1), DW_ENTRY_VOTE_YES);
    assert_int_equal(state_of(bench, 2), DW_ENTRY_NONE);
    assert_int_equal(state_of(bench, 3), DW_ENTRY_NONE);
    assert_int_equal(scanned(bench), 1);
    bench_close(bench);
    assert_int_equal(bench->inbox.count, 2);
    assert_int_equal(bench->fake.acknowledged, 1);
}

static void a_failed_side_file_is_a_failure(void **state)
{
    struct bench *bench = bench_open(true);
    (void)state;
    pthread_mutex_lock(&bench->fake.lock);
    bench->fake.fails_acknowledge = true;
    pthread_mutex_unlock(&bench->fake.lock);
    submit(bench, DW_ASK_VOTE, 1, true, 0);
    bench_close(bench);
    assert_int_equal(bench->inbox.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_answer_and_no_reading_before_the_sync),
        cmocka_unit_test(a_decision_is_not_read_before_its_sync),
        cmocka_unit_test(a_queue_becomes_one_batch),
        cmocka_unit_test(an_unforced_request_rides_the_next_sync),
        cmocka_unit_test(an_unforced_request_causes_a_sync_in_the_end),
        cmocka_unit_test(an_answer_waits_for_what_it_tells_of),
        cmocka_unit_test(without_sync_nothing_is_synced),
        cmocka_unit_test(a_fence_is_synced),
        cmocka_unit_test(closing_syncs_what_rides),
        cmocka_unit_test(nothing_is_acknowledged_after_a_failure),
        cmocka_unit_test(a_failed_side_file_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
