/* Does the log service do what the log rule says, over every store, with delays, fences, scans and bounds? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "log_fixture.h"
#include "storage/record_format.h"

/* How each state of an entry is reached. */
static const enum dw_ask ways[][3] = {
    {DW_ASK_READ, DW_ASK_READ, DW_ASK_READ},          {DW_ASK_VOTE, DW_ASK_READ, DW_ASK_READ},
    {DW_ASK_VOTE, DW_ASK_DECIDE_COMMIT, DW_ASK_READ}, {DW_ASK_COMMIT_LOCAL, DW_ASK_READ, DW_ASK_READ},
    {DW_ASK_DENY, DW_ASK_READ, DW_ASK_READ},          {DW_ASK_VOTE, DW_ASK_DECIDE_ABORT, DW_ASK_READ},
    {DW_ASK_DECIDE_ABORT, DW_ASK_READ, DW_ASK_READ},  {DW_ASK_START, DW_ASK_READ, DW_ASK_READ},
    {DW_ASK_COORD_COMMIT, DW_ASK_READ, DW_ASK_READ},  {DW_ASK_START, DW_ASK_COORD_COMMIT, DW_ASK_READ},
    {DW_ASK_START, DW_ASK_COORD_ABORT, DW_ASK_READ},  {DW_ASK_START, DW_ASK_COORD_COMMIT, DW_ASK_END},
};
enum { WAYS = sizeof ways / sizeof *ways, VARIANTS = 2, ENTRIES = WAYS * DW_ASKS * VARIANTS };

/* What the entries must be, by the rule itself. */
struct model {
    struct dw_entry entries[ENTRIES];
    uint64_t position;
};

static void step(struct model *model, struct dw_log_service *service, size_t index, enum dw_ask asked,
                 const char *redo)
{
    struct dw_log_submission submission = make_request(NULL, asked, 2, 2, index, redo);
    struct dw_log_request request = submission.request;
    bool has_content = asked == DW_ASK_VOTE || asked == DW_ASK_COMMIT_LOCAL || asked == DW_ASK_COORD_COMMIT;
    request.content = has_content ? dw_record_content(3, (const uint8_t *)redo, strlen(redo)) : 0;
    struct dw_entry *entry = &model->entries[index];
    struct dw_log_verdict verdict = dw_log_rule(entry, 0, &request);
    if (verdict.append != DW_RECORD_NONE) {
        model->position++;
        if (entry->state == DW_ENTRY_NONE) {
            entry->first = model->position;
            entry->content = request.content;
        }
        entry->state = verdict.state;
    }
    struct reply reply = ask_and_wait(service, &submission);
    assert_int_equal(reply.answer, verdict.answer);
    assert_int_equal(reply.position, entry->first);
    assert_int_equal(reply.incarnation, 0);
}

static void check_entries(const struct model *model, struct dw_log_service *service)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        struct dw_txn_id txn = {.coordinator = 1, .incarnation = 1, .sequence = i};
        struct dw_entry entry = dw_log_service_read(service, 2, txn);
        assert_int_equal(entry.state, model->entries[i].state);
        assert_int_equal(entry.first, model->entries[i].first);
        assert_int_equal(entry.content, model->entries[i].content);
        assert_int_equal(dw_log_service_read(service, 3, txn).state, DW_ENTRY_NONE);
    }
}

/* Every ask, with the same and with other bytes, on an entry in every state. */
static void ask_everything(struct model *model, struct dw_log_service *service)
{
    size_t index = 0;
    for (size_t way = 0; way < WAYS; way++) {
        for (unsigned asked = 0; asked < DW_ASKS; asked++) {
            for (size_t variant = 0; variant < VARIANTS; variant++, index++) {
                for (size_t i = 0; i < 3; i++) {
                    step(model, service, index, ways[way][i], "redo");
                }
                step(model, service, index, (enum dw_ask)asked, variant == 0 ? "redo" : "other");
            }
        }
    }
}

static void follow_the_rule(const char *directory)
{
    struct dw_log_service_options options = {.sync = true};
    struct model model = {.position = 0};
    struct dw_log_service *service = open_service(directory, &options);
    ask_everything(&model, service);
    check_entries(&model, service);
    assert_true(stat_of(service, "conflicts") > 0);
    assert_int_equal(stat_of(service, "appended_records"), model.position);
    if (directory != NULL) {
        dw_log_service_close(service);
        service = open_service(directory, &options);
        check_entries(&model, service);
    }
    ask_everything(&model, service);
    check_entries(&model, service);
    dw_log_service_close(service);
}

static void the_rule_holds_over_the_memory_store(void **state)
{
    (void)state;
    follow_the_rule(NULL);
}

static void the_rule_holds_over_rocksdb_and_after_reopening(void **state)
{
    (void)state;
    char directory[256];
    make_directory(directory, sizeof directory);
    follow_the_rule(directory);
    remove_directory(directory);
}

/* A batch sees its own changes: many asks on one entry, submitted at once. */
static void a_batch_sees_its_own_changes(void **state)
{
    static const enum dw_answer expected[] = {DW_ANSWER_VOTE_YES, DW_ANSWER_VOTE_YES, DW_ANSWER_COMMIT,
                                              DW_ANSWER_COMMIT, DW_ANSWER_CONFLICT};
    static const enum dw_ask asks[] = {DW_ASK_VOTE, DW_ASK_DENY, DW_ASK_DECIDE_COMMIT, DW_ASK_DENY,
                                       DW_ASK_DECIDE_ABORT};
    struct dw_log_service_options options = {.sync = true};
    struct dw_log_service *service = open_service(NULL, &options);
    struct dw_log_submission submissions[5];
    static struct inbox inbox;
    (void)state;
    inbox_init(&inbox);
    for (size_t i = 0; i < 5; i++) {
        submissions[i] = make_request(&inbox, asks[i], 0, 0, 1, "redo");
        submissions[i].id = i;
    }
    assert_int_equal(dw_log_service_submit(service, submissions, 5), DW_OK);
    inbox_wait(&inbox, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(inbox.replies[i].id, i);
        assert_int_equal(inbox.replies[i].answer, expected[i]);
        assert_int_equal(inbox.replies[i].position, 1);
    }
    assert_int_equal(stat_of(service, "appended_records"), 2);
    assert_int_equal(stat_of(service, "batches"), 1);
    dw_log_service_close(service);
    inbox_close(&inbox);
}

/* A clock that only the test moves. */
struct clock {
    pthread_mutex_t lock;
    uint64_t now_us;
};

static uint64_t clock_now(void *user)
{
    struct clock *clock = user;
    pthread_mutex_lock(&clock->lock);
    uint64_t now = clock->now_us;
    pthread_mutex_unlock(&clock->lock);
    return now;
}

static void clock_move(struct clock *clock, struct dw_log_service *service, uint64_t us)
{
    pthread_mutex_lock(&clock->lock);
    clock->now_us += us;
    pthread_mutex_unlock(&clock->lock);
    dw_log_service_poke(service);
}

static struct dw_log_service *open_delayed(struct clock *clock, double mean_ms)
{
    pthread_mutex_init(&clock->lock, NULL);
    clock->now_us = 1000000;
    struct dw_log_service_options options = {
        .sync = true, .delay = {.mean_ms = mean_ms}, .now_us = clock_now, .user = clock};
    return open_service(NULL, &options);
}

static void submit_one(struct dw_log_service *service, struct inbox *inbox, enum dw_ask asked, uint64_t id,
                       uint64_t sequence)
{
    struct dw_log_submission submission = make_request(inbox, asked, 0, 0, sequence, "redo");
    submission.id = id;
    assert_int_equal(dw_log_service_submit(service, &submission, 1), DW_OK);
}

/* Everything that was queued before has been looked at by the writer when this returns. */
static void pass_the_writer(struct dw_log_service *service)
{
    assert_int_equal(ask(service, DW_ASK_READ, 63, 63, 1), DW_ANSWER_NONE);
}

static void delayed_requests_come_due_together_and_in_order(void **state)
{
    struct clock clock;
    static struct inbox inbox;
    struct dw_log_service *service = open_delayed(&clock, 32);
    (void)state;
    inbox_init(&inbox);
    for (uint64_t i = 0; i < 100; i++) {
        submit_one(service, &inbox, DW_ASK_VOTE, i, i);
    }
    pass_the_writer(service);
    clock_move(&clock, service, 31999);
    pass_the_writer(service);
    assert_int_equal(inbox_count(&inbox), 0);
    assert_int_equal(stat_of(service, "appended_records"), 0);
    clock_move(&clock, service, 1);
    inbox_wait(&inbox, 100);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(inbox.replies[i].id, i);
        assert_int_equal(inbox.replies[i].answer, DW_ANSWER_VOTE_YES);
    }
    dw_log_service_close(service);
    inbox_close(&inbox);
    pthread_mutex_destroy(&clock.lock);
}

/* Also a LogIfNotExist that will append nothing; but no read, and no fence. */
static void what_is_delayed_and_what_is_not(void **state)
{
    struct clock clock;
    static struct inbox inbox;
    struct dw_log_service *service = open_delayed(&clock, 0);
    struct dw_delay delay = {.mean_ms = 5};
    (void)state;
    inbox_init(&inbox);
    submit_one(service, &inbox, DW_ASK_VOTE, 0, 1);
    inbox_wait(&inbox, 1);
    dw_log_service_set_delay(service, &delay);
    assert_true(dw_log_service_delay(service).mean_ms == 5);
    submit_one(service, &inbox, DW_ASK_DENY, 1, 1);
    submit_one(service, &inbox, DW_ASK_DECIDE_COMMIT, 2, 1);
    submit_one(service, &inbox, DW_ASK_READ, 3, 1);
    inbox_wait(&inbox, 2);
    assert_int_equal(inbox.replies[1].id, 3);
    assert_int_equal(inbox.replies[1].answer, DW_ANSWER_VOTE_YES);
    assert_int_equal(fence_and_wait(service, 5), 1);
    /* A shorter delay from now on lets later requests pass those that wait. */
    delay.mean_ms = 1;
    dw_log_service_set_delay(service, &delay);
    submit_one(service, &inbox, DW_ASK_VOTE, 4, 2);
    clock_move(&clock, service, 1000);
    inbox_wait(&inbox, 3);
    assert_int_equal(inbox.replies[2].id, 4);
    clock_move(&clock, service, 4000);
    inbox_wait(&inbox, 5);
    assert_int_equal(inbox.replies[3].id, 1);
    assert_int_equal(inbox.replies[3].answer, DW_ANSWER_VOTE_YES);
    assert_int_equal(inbox.replies[4].id, 2);
    assert_int_equal(inbox.replies[4].answer, DW_ANSWER_COMMIT);
    dw_log_service_close(service);
    inbox_close(&inbox);
    pthread_mutex_destroy(&clock.lock);
}

static void a_fence_blocks_votes_that_are_still_delayed(void **state)
{
    struct clock clock;
    static struct inbox inbox;
    struct dw_log_service *service = open_delayed(&clock, 10);
    struct dw_log_submission denial;
    (void)state;
    inbox_init(&inbox);
    /* The owner's first incarnation is 1, so that a request without one is fenced too. */
    assert_int_equal(fence_and_wait(service, 0), 1);
    submit_one(service, &inbox, DW_ASK_VOTE, 0, 1);
    denial = make_request(&inbox, DW_ASK_DENY, 0, 4, 2, NULL);
    denial.id = 1;
    assert_int_equal(dw_log_service_submit(service, &denial, 1), DW_OK);
    assert_int_equal(fence_and_wait(service, 0), 2);
    clock_move(&clock, service, 10000);
    inbox_wait(&inbox, 2);
    assert_int_equal(inbox.replies[0].answer, DW_ANSWER_FENCED);
    assert_int_equal(inbox.replies[0].incarnation, 2);
    /* Made for another node: not fenced, whatever its stamp. */
    assert_int_equal(inbox.replies[1].answer, DW_ANSWER_ABORT);
    assert_int_equal(dw_log_service_read(service, 0, (struct dw_txn_id){1, 1, 1}).state, DW_ENTRY_NONE);
    assert_int_equal(fence_and_wait(service, 1), 1);
    dw_log_service_close(service);
    inbox_close(&inbox);
    pthread_mutex_destroy(&clock.lock);
}

static void note_fence(void *context, enum dw_error error, uint32_t incarnation)
{
    inbox_done(context, (uint64_t)error, NULL, DW_ANSWER_NONE, 0, incarnation);
}

/* A directory whose only log record is a fence: of log 0, with the last incarnation that there is. */
static void make_last_incarnation(const char *directory)
{
    char text[1024];
    struct dw_log_store *store;
    struct dw_stored_fence last = {.position = 1, .log = 0, .incarnation = UINT32_MAX};
    assert_int_equal(dw_rocksdb_store_open(directory, "test", 0, &store, text, sizeof text), DW_OK);
    assert_int_equal(store->ops->load(store, NULL, NULL, NULL), DW_OK);
    assert_int_equal(store->ops->append(store, NULL, 0, &last, 1, true), DW_OK);
    assert_int_equal(store->ops->acknowledge(store, 1), DW_OK);
    store->ops->close(store);
}

/* If it came round to 0, every old writer would be let in again. */
static void after_the_last_incarnation_there_is_none(void **state)
{
    static struct inbox inbox;
    char directory[256];
    (void)state;
    inbox_init(&inbox);
    make_directory(directory, sizeof directory);
    make_last_incarnation(directory);
    struct dw_log_service *service = open_service(directory, &(struct dw_log_service_options){.sync = true});
    assert_int_equal(dw_log_service_fence(service, 0, note_fence, &inbox), DW_OK);
    inbox_wait(&inbox, 1);
    assert_int_equal(inbox.replies[0].id, DW_ERR_RANGE);
    struct dw_log_submission vote = make_request(&inbox, DW_ASK_VOTE, 0, 0, 1, NULL);
    vote.request.incarnation = UINT32_MAX - 1;
    assert_int_equal(ask_and_wait(service, &vote).answer, DW_ANSWER_FENCED);
    vote.request.incarnation = UINT32_MAX;
    assert_int_equal(ask_and_wait(service, &vote).answer, DW_ANSWER_VOTE_YES);
    assert_int_equal(fence_and_wait(service, 1), 1);
    dw_log_service_close(service);
    remove_directory(directory);
    inbox_close(&inbox);
}

static void closing_cuts_delays_short(void **state)
{
    struct clock clock;
    static struct inbox inbox;
    struct dw_log_service *service = open_delayed(&clock, 60000);
    (void)state;
    inbox_init(&inbox);
    for (uint64_t i = 0; i < 10; i++) {
        submit_one(service, &inbox, DW_ASK_VOTE, i, i);
    }
    dw_log_service_close(service);
    assert_int_equal(inbox_count(&inbox), 10);
    inbox_close(&inbox);
    pthread_mutex_destroy(&clock.lock);
}

static void the_queue_is_bounded(void **state)
{
    struct clock clock;
    static struct inbox inbox;
    static uint8_t redo[1000];
    (void)state;
    pthread_mutex_init(&clock.lock, NULL);
    clock.now_us = 0;
    inbox_init(&inbox);
    struct dw_log_service_options options = {
        .sync = true, .delay = {.mean_ms = 1}, .max_queue_bytes = 10000, .now_us = clock_now, .user = &clock};
    struct dw_log_service *service = open_service(NULL, &options);
    struct dw_log_submission submission = make_request(&inbox, DW_ASK_VOTE, 0, 0, 1, NULL);
    submission.redo = redo;
    submission.redo_size = sizeof redo;
    size_t queued = 0;
    enum dw_error error;
    while ((error = dw_log_service_submit(service, &submission, 1)) == DW_OK) {
        queued++;
    }
    assert_int_equal(error, DW_ERR_FULL);
    assert_true(queued >= 5 && queued <= 10);
    assert_true(stat_of(service, "queue_bytes") <= 10000);
    assert_int_equal(stat_of(service, "refused_full"), 1);
    clock_move(&clock, service, 1000);
    inbox_wait(&inbox, queued);
    /* The bytes come back right after the answers, and with them the room for the next. */
    pass_the_writer(service);
    pass_the_writer(service);
    assert_int_equal(dw_log_service_submit(service, &submission, 1), DW_OK);
    dw_log_service_close(service);
    assert_int_equal(inbox_count(&inbox), queued + 1);
    inbox_close(&inbox);
    pthread_mutex_destroy(&clock.lock);
}

static void bad_requests_are_refused_whole(void **state)
{
    struct dw_log_service_options options = {.sync = true};
    struct dw_log_service *service = open_service(NULL, &options);
    static struct inbox inbox;
    struct dw_log_submission two[2];
    (void)state;
    inbox_init(&inbox);
    two[0] = make_request(&inbox, DW_ASK_VOTE, 0, 0, 1, "redo");
    two[1] = make_request(&inbox, DW_ASK_VOTE, DW_MAX_NODES, 0, 1, "redo");
    assert_int_equal(dw_log_service_submit(service, two, 2), DW_ERR_RANGE);
    two[1] = make_request(&inbox, (enum dw_ask)DW_ASKS, 0, 0, 1, "redo");
    assert_int_equal(dw_log_service_submit(service, two, 2), DW_ERR_RANGE);
    two[1] = make_request(&inbox, DW_ASK_VOTE, 0, 0, 1, "redo");
    two[1].request.txn.incarnation = 0;
    assert_int_equal(dw_log_service_submit(service, two, 2), DW_ERR_RANGE);
    two[1] = make_request(&inbox, DW_ASK_VOTE, 0, 0, 1, "redo");
    two[1].redo_size = DW_MAX_REDO + 1;
    assert_int_equal(dw_log_service_submit(service, two, 2), DW_ERR_TOO_LARGE);
    assert_int_equal(dw_log_service_submit(service, two, 0), DW_OK);
    assert_int_equal(dw_log_service_fence(service, DW_MAX_NODES, NULL, NULL), DW_ERR_RANGE);
    dw_log_service_close(service);
    assert_int_equal(inbox_count(&inbox), 0);
    inbox_close(&inbox);
}

struct seen {
    size_t count, stop_after;
    uint64_t positions[64];
    struct dw_stored_record last;
    char redo[16];
};

static bool see(void *user, const struct dw_stored_record *record)
{
    struct seen *seen = user;
    seen->positions[seen->count++] = record->position;
    seen->last = *record;
    memcpy(seen->redo, record->redo, record->redo_size);
    return seen->count != seen->stop_after;
}

static void scan_both(const char *directory)
{
    struct dw_log_service_options options = {.sync = true};
    struct dw_log_service *service = open_service(directory, &options);
    /* Positions rise over all logs: log 1 gets the odd ones of 1..20, then a decision at 21; log 2 the even
     * ones. */
    for (uint64_t i = 1; i <= 20; i++) {
        assert_int_equal(ask(service, DW_ASK_VOTE, 2 - i % 2, 9, i), DW_ANSWER_VOTE_YES);
    }
    assert_int_equal(ask(service, DW_ASK_DECIDE_COMMIT, 1, 7, 19), DW_ANSWER_COMMIT);
    struct seen seen = {.count = 0};
    assert_int_equal(dw_log_service_scan(service, 1, 0, see, &seen), DW_OK);
    assert_int_equal(seen.count, 11);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(seen.positions[i], 2 * i + 1);
    }
    assert_int_equal(seen.positions[10], 21);
    assert_int_equal(seen.last.record, DW_RECORD_COMMIT);
    assert_int_equal(seen.last.writer, 7);
    assert_int_equal(seen.last.log, 1);
    assert_int_equal(seen.last.txn.sequence, 19);
    seen = (struct seen){.stop_after = 3};
    assert_int_equal(dw_log_service_scan(service, 2, 11, see, &seen), DW_OK);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.positions[0], 12);
    assert_int_equal(seen.last.record, DW_RECORD_VOTE_YES);
    assert_int_equal(seen.last.participants, 3);
    assert_int_equal(seen.last.redo_size, 4);
    assert_memory_equal(seen.redo, "redo", 4);
    seen = (struct seen){.count = 0};
    assert_int_equal(dw_log_service_scan(service, 2, 21, see, &seen), DW_OK);
    assert_int_equal(dw_log_service_scan(service, 3, 0, see, &seen), DW_OK);
    assert_int_equal(seen.count, 0);
    assert_int_equal(dw_log_service_scan(service, DW_MAX_NODES, 0, see, &seen), DW_ERR_RANGE);
    dw_log_service_close(service);
}

static void a_scan_starts_at_its_position(void **state)
{
    char directory[256];
    (void)state;
    scan_both(NULL);
    make_directory(directory, sizeof directory);
    scan_both(directory);
    remove_directory(directory);
}

static void numbers_add_up_and_are_reset(void **state)
{
    struct dw_log_service_options options = {.sync = true};
    struct dw_log_service *service = open_service(NULL, &options);
    (void)state;
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 1), DW_ANSWER_VOTE_YES);
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 1), DW_ANSWER_VOTE_YES);
    assert_int_equal(ask(service, DW_ASK_DENY, 0, 0, 2), DW_ANSWER_ABORT);
    assert_int_equal(ask(service, DW_ASK_DECIDE_COMMIT, 0, 0, 2), DW_ANSWER_CONFLICT);
    assert_int_equal(stat_of(service, "requests.vote"), 2);
    assert_int_equal(stat_of(service, "requests.deny"), 1);
    assert_int_equal(stat_of(service, "answers.vote_yes"), 2);
    assert_int_equal(stat_of(service, "answers.conflict"), 1);
    assert_int_equal(stat_of(service, "appended_records"), 2);
    assert_int_equal(stat_of(service, "appended_redo_bytes"), 8);
    assert_int_equal(stat_of(service, "conflicts"), 1);
    assert_int_equal(stat_of(service, "entries"), 2);
    assert_int_equal(stat_of(service, "syncs"), 2);
    assert_int_equal(stat_of(service, "largest_batch"), 1);
    assert_int_equal(stat_of(service, "durable_position"), 2);
    size_t count = dw_log_service_stats(service, NULL, 0, true);
    assert_true(count > 20);
    assert_int_equal(stat_of(service, "requests.vote"), 0);
    assert_int_equal(stat_of(service, "entries"), 2);
    dw_log_service_close(service);
}

/* The rule is a parameter, so that a wrong one can be shown to be noticed. */
static struct dw_log_verdict always_abort(const struct dw_entry *entry, uint32_t incarnation,
                                          const struct dw_log_request *request)
{
    (void)incarnation;
    (void)request;
    return (struct dw_log_verdict){.answer = DW_ANSWER_ABORT, .state = entry->state};
}

static void another_rule_is_obeyed(void **state)
{
    struct dw_log_service_options options = {.sync = true, .rule = always_abort};
    struct dw_log_service *service = open_service(NULL, &options);
    (void)state;
    assert_int_equal(ask(service, DW_ASK_VOTE, 0, 0, 1), DW_ANSWER_ABORT);
    assert_int_equal(stat_of(service, "entries"), 0);
    dw_log_service_close(service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_holds_over_the_memory_store),
        cmocka_unit_test(the_rule_holds_over_rocksdb_and_after_reopening),
        cmocka_unit_test(a_batch_sees_its_own_changes),
        cmocka_unit_test(delayed_requests_come_due_together_and_in_order),
        cmocka_unit_test(what_is_delayed_and_what_is_not),
        cmocka_unit_test(a_fence_blocks_votes_that_are_still_delayed),
        cmocka_unit_test(after_the_last_incarnation_there_is_none),
        cmocka_unit_test(closing_cuts_delays_short),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(bad_requests_are_refused_whole),
        cmocka_unit_test(a_scan_starts_at_its_position),
        cmocka_unit_test(numbers_add_up_and_are_reset),
        cmocka_unit_test(another_rule_is_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
