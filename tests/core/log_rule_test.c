/* Is the log rule the one that docs/log-rule.md prints, cell by cell? Is it idempotent, does it keep Lemma 1,
 * and can each entry be rebuilt from its records?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log_rule.h"

enum { INCARNATION = 3, OWNER = 1, OTHER = 2, CONTENT = 77, OTHER_CONTENT = 78, COLUMNS = 12 };

/* What the page says of one ask in one state. */
struct cell {
    bool given;
    enum dw_answer answer;
    enum dw_record append;
    bool content_matters;
};

static struct cell page[DW_ASKS][DW_ENTRY_STATES];

/* --- reading the page --- */

static int find_name(const char *name, int count, const char *(*name_of)(int))
{
    for (int i = 0; i < count; i++) {
        if (strcmp(name, name_of(i)) == 0) {
            return i;
        }
    }
    fail_msg("docs/log-rule.md: unknown name '%s'", name);
    return -1;
}

static const char *ask_name(int i)
{
    return dw_ask_name((enum dw_ask)i);
}

static const char *state_name(int i)
{
    return dw_entry_state_name((enum dw_entry_state)i);
}

static const char *answer_name(int i)
{
    return dw_answer_name((enum dw_answer)i);
}

static const char *record_name(int i)
{
    return dw_record_name((enum dw_record)i);
}

/* Splits "| a | b |" in place; 0 if the line is no row of a table. */
static int split_row(char *line, char *cells[COLUMNS])
{
    int count = 0;
    if (line[0] != '|') {
        return 0;
    }
    char *rest = NULL;
    for (char *cell = strtok_r(line, "|\n", &rest); cell != NULL; cell = strtok_r(NULL, "|\n", &rest)) {
        cell += strspn(cell, " ");
        size_t length = strlen(cell);
        while (length > 0 && cell[length - 1] == ' ') {
            length--;
        }
        cell[length] = '\0';
        if (length > 0) {
            assert_true(count < COLUMNS);
            cells[count++] = cell;
        }
    }
    return count;
}

/* The answer to the asker whose request appended this record: what the entry holds now. */
static enum dw_answer answer_after(enum dw_record record)
{
    static const enum dw_answer answers[] = {
        [DW_RECORD_NONE] = DW_ANSWER_NONE,       [DW_RECORD_VOTE_YES] = DW_ANSWER_VOTE_YES,
        [DW_RECORD_START_2PC] = DW_ANSWER_START, [DW_RECORD_COMMIT] = DW_ANSWER_COMMIT,
        [DW_RECORD_ABORT] = DW_ANSWER_ABORT,     [DW_RECORD_END] = DW_ANSWER_END,
    };
    return answers[record];
}

/* The state of an entry whose last record is this one. */
static enum dw_entry_state state_after(enum dw_record record, bool coordinator)
{
    static const enum dw_entry_state states[][2] = {
        [DW_RECORD_VOTE_YES] = {DW_ENTRY_VOTE_YES, DW_ENTRY_DAMAGED},
        [DW_RECORD_START_2PC] = {DW_ENTRY_DAMAGED, DW_ENTRY_START},
        [DW_RECORD_COMMIT] = {DW_ENTRY_COMMIT, DW_ENTRY_COORD_COMMIT},
        [DW_RECORD_ABORT] = {DW_ENTRY_ABORT, DW_ENTRY_COORD_ABORT},
        [DW_RECORD_END] = {DW_ENTRY_DAMAGED, DW_ENTRY_END},
    };
    return states[record][coordinator];
}

static void read_cell(int ask, int state, const char *text)
{
    struct cell *cell = &page[ask][state];
    static const char append[] = "append ";
    if (cell->given) {
        fail_msg("docs/log-rule.md tells twice of %s in %s", ask_name(ask), state_name(state));
    }
    cell->given = true;
    if (strncmp(text, append, sizeof append - 1) == 0) {
        cell->append = (enum dw_record)find_name(text + sizeof append - 1, DW_RECORD_END + 1, record_name);
        cell->answer = answer_after(cell->append);
    } else {
        cell->append = DW_RECORD_NONE;
        cell->answer = (enum dw_answer)find_name(text, DW_ANSWERS, answer_name);
    }
}

static void read_content_row(char *cells[COLUMNS], int count)
{
    assert_int_equal(count, 3);
    assert_string_equal(cells[2], "CONFLICT");
    page[find_name(cells[0], DW_ASKS, ask_name)][find_name(cells[1], DW_ENTRY_STATES, state_name)]
        .content_matters = true;
}

/* Reads the tables that begin with "ask" and with "other content"; others are for people. */
static void read_table(FILE *file, char *header[COLUMNS], int columns)
{
    char line[1024];
    char *cells[COLUMNS];
    int states[COLUMNS] = {0};
    bool rule = strcmp(header[0], "ask") == 0;
    bool content = strcmp(header[0], "other content") == 0;
    for (int i = 1; rule && i < columns; i++) {
        states[i] = find_name(header[i], DW_ENTRY_STATES, state_name);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        int count = split_row(line, cells);
        if (count == 0) {
            return;
        }
        if (cells[0][0] == '-') {
            continue;
        }
        if (content) {
            read_content_row(cells, count);
        } else if (rule) {
            assert_int_equal(count, columns);
            for (int i = 1; i < columns; i++) {
                read_cell(find_name(cells[0], DW_ASKS, ask_name), states[i], cells[i]);
            }
        }
    }
}

static int read_page(void **state)
{
    (void)state;
    FILE *file = fopen(DW_LOG_RULE_PAGE, "r");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be read\n", DW_LOG_RULE_PAGE);
        return -1;
    }
    char line[1024];
    char *cells[COLUMNS];
    while (fgets(line, sizeof line, file) != NULL) {
        int columns = split_row(line, cells);
        if (columns > 0) {
            read_table(file, cells, columns);
        }
    }
    fclose(file);
    return 0;
}

/* --- asking --- */

static struct dw_log_request request(enum dw_ask ask)
{
    return (struct dw_log_request){.txn = {.coordinator = 0, .incarnation = 1, .sequence = 9},
                                   .log = OWNER,
                                   .writer = OWNER,
                                   .incarnation = INCARNATION,
                                   .ask = ask,
                                   .content = CONTENT};
}

static struct dw_entry entry(enum dw_entry_state state)
{
    return (struct dw_entry){.state = state, .content = CONTENT, .first = state == DW_ENTRY_NONE ? 0 : 5};
}

/* Compares the rule with the cell, or with `instead` if that is not NONE. */
static void assert_cell(enum dw_entry_state state, const struct dw_log_request *asked, enum dw_answer instead)
{
    const struct cell *cell = &page[asked->ask][state];
    struct dw_entry before = entry(state);
    struct dw_log_verdict verdict = dw_log_rule(&before, INCARNATION, asked);
    enum dw_record append = instead == DW_ANSWER_NONE ? cell->append : DW_RECORD_NONE;
    enum dw_answer answer = instead == DW_ANSWER_NONE ? cell->answer : instead;
    enum dw_entry_state after =
        append == DW_RECORD_NONE ? state : state_after(append, dw_ask_is_coordinator(asked->ask));
    if (verdict.answer != answer || verdict.append != append || verdict.state != after) {
        fail_msg("%s in %s: the rule answers %s, appends %s, leaves %s; the page says %s, %s, %s",
                 dw_ask_name(asked->ask), dw_entry_state_name(state), dw_answer_name(verdict.answer),
                 dw_record_name(verdict.append), dw_entry_state_name(verdict.state), dw_answer_name(answer),
                 dw_record_name(append), dw_entry_state_name(after));
    }
}

static void the_page_tells_of_every_ask_in_every_state(void **state)
{
    (void)state;
    for (int ask = 0; ask < DW_ASKS; ask++) {
        for (int i = 0; i < DW_ENTRY_STATES; i++) {
            if (!page[ask][i].given) {
                fail_msg("docs/log-rule.md says nothing of %s in %s", ask_name(ask), state_name(i));
            }
        }
    }
}

static void each_cell_is_the_one_on_the_page(void **state)
{
    (void)state;
    for (int ask = 0; ask < DW_ASKS; ask++) {
        for (int i = 0; i < DW_ENTRY_STATES; i++) {
            struct dw_log_request asked = request((enum dw_ask)ask);
            assert_cell((enum dw_entry_state)i, &asked, DW_ANSWER_NONE);
            /* A newer incarnation than the log's cannot be, and is not fenced. */
            asked.incarnation = INCARNATION + 1;
            assert_cell((enum dw_entry_state)i, &asked, DW_ANSWER_NONE);
        }
    }
}

static void other_content_conflicts_where_the_page_says(void **state)
{
    (void)state;
    int conflicts = 0;
    for (int ask = 0; ask < DW_ASKS; ask++) {
        for (int i = 0; i < DW_ENTRY_STATES; i++) {
            struct dw_log_request asked = request((enum dw_ask)ask);
            bool matters = page[ask][i].content_matters;
            asked.content = OTHER_CONTENT;
            assert_cell((enum dw_entry_state)i, &asked, matters ? DW_ANSWER_CONFLICT : DW_ANSWER_NONE);
            asked.writer = OTHER;
            assert_cell((enum dw_entry_state)i, &asked, matters ? DW_ANSWER_CONFLICT : DW_ANSWER_NONE);
            conflicts += matters;
        }
    }
    assert_int_equal(conflicts, 2);
}

static void an_older_incarnation_of_the_owner_is_fenced_before_all_else(void **state)
{
    (void)state;
    for (int ask = 0; ask < DW_ASKS; ask++) {
        for (int i = 0; i < DW_ENTRY_STATES; i++) {
            for (uint64_t content = CONTENT; content <= OTHER_CONTENT; content++) {
                struct dw_log_request asked = request((enum dw_ask)ask);
                asked.incarnation = INCARNATION - 1;
                asked.content = content;
                assert_cell((enum dw_entry_state)i, &asked,
                            ask == DW_ASK_READ ? DW_ANSWER_NONE : DW_ANSWER_FENCED);
            }
        }
    }
}

static void another_node_is_never_fenced(void **state)
{
    (void)state;
    for (int ask = 0; ask < DW_ASKS; ask++) {
        for (int i = 0; i < DW_ENTRY_STATES; i++) {
            for (uint32_t incarnation = 1; incarnation <= INCARNATION + 1; incarnation++) {
                struct dw_log_request asked = request((enum dw_ask)ask);
                asked.writer = OTHER;
                asked.incarnation = incarnation;
                assert_cell((enum dw_entry_state)i, &asked, DW_ANSWER_NONE);
            }
        }
    }
}

/* --- what follows from the table --- */

/* An entry with its records, as a store keeps it. */
struct kept {
    struct dw_entry entry;
    enum dw_record records[8];
    bool coordinator[8];
    unsigned count;
};

static struct dw_log_verdict keep(struct kept *kept, enum dw_ask ask)
{
    struct dw_log_request asked = request(ask);
    struct dw_log_verdict verdict = dw_log_rule(&kept->entry, INCARNATION, &asked);
    if (verdict.append != DW_RECORD_NONE) {
        assert_true(kept->count < 8);
        kept->entry.content = kept->count == 0 ? CONTENT : kept->entry.content;
        kept->coordinator[kept->count] = dw_ask_is_coordinator(ask);
        kept->records[kept->count++] = verdict.append;
    }
    kept->entry.state = verdict.state;
    return verdict;
}

static bool holds(const struct kept *kept, enum dw_record record)
{
    for (unsigned i = 0; i < kept->count; i++) {
        if (kept->records[i] == record) {
            return true;
        }
    }
    return false;
}

static enum dw_entry_state replay(const struct kept *kept)
{
    enum dw_entry_state state = DW_ENTRY_NONE;
    for (unsigned i = 0; i < kept->count; i++) {
        state = dw_entry_replay(state, kept->records[i], kept->coordinator[i]);
    }
    return state;
}

/* Calls `check` after each step of every sequence of `depth` asks. */
static unsigned for_all_sequences(struct kept kept, unsigned depth,
                                  void (*check)(const struct kept *before, enum dw_ask ask,
                                                const struct dw_log_verdict *verdict,
                                                const struct kept *after))
{
    unsigned steps = 0;
    for (unsigned ask = 0; depth > 0 && ask < DW_ASKS; ask++) {
        struct kept after = kept;
        struct dw_log_verdict verdict = keep(&after, (enum dw_ask)ask);
        check(&kept, (enum dw_ask)ask, &verdict, &after);
        steps += 1 + for_all_sequences(after, depth - 1, check);
    }
    return steps;
}

static void check_again(const struct kept *before, enum dw_ask ask, const struct dw_log_verdict *verdict,
                        const struct kept *after)
{
    (void)before;
    struct kept again = *after;
    struct dw_log_verdict second = keep(&again, ask);
    assert_int_equal(second.append, DW_RECORD_NONE);
    assert_int_equal(second.answer, verdict->answer);
    assert_int_equal(second.state, verdict->state);
}

static void asking_again_appends_nothing_and_gives_the_same_answer(void **state)
{
    (void)state;
    assert_true(for_all_sequences((struct kept){0}, 4, check_again) > 10000);
}

/* "Lemma 1 [Irreversible Global Decision]: once a global decision is reached for a transaction, the decision
 * will not change": no VOTE_YES after ABORT, no ABORT by denial after VOTE_YES; and decisions exclude each
 * other. */
static void check_lemma(const struct kept *before, enum dw_ask ask, const struct dw_log_verdict *verdict,
                        const struct kept *after)
{
    assert_false(verdict->append == DW_RECORD_VOTE_YES && before->count > 0);
    assert_false(ask == DW_ASK_DENY && verdict->append != DW_RECORD_NONE && before->count > 0);
    assert_false(holds(after, DW_RECORD_ABORT) && holds(after, DW_RECORD_COMMIT));
    assert_false(holds(before, DW_RECORD_ABORT) && verdict->append != DW_RECORD_NONE);
    assert_false(ask == DW_ASK_READ && verdict->append != DW_RECORD_NONE);
    /* What LogIfNotExist answers is what the entry holds. */
    if (dw_ask_is_if_not_exist(ask) && verdict->answer == DW_ANSWER_ABORT) {
        assert_true(holds(after, DW_RECORD_ABORT));
    }
    if (dw_ask_is_if_not_exist(ask) && verdict->answer == DW_ANSWER_VOTE_YES) {
        assert_true(holds(after, DW_RECORD_VOTE_YES) && after->count == 1);
    }
}

static void lemma_1_irreversible_global_decision(void **state)
{
    (void)state;
    assert_true(for_all_sequences((struct kept){0}, 4, check_lemma) > 10000);
}

static void check_replay(const struct kept *before, enum dw_ask ask, const struct dw_log_verdict *verdict,
                         const struct kept *after)
{
    (void)before;
    (void)ask;
    (void)verdict;
    assert_int_equal(replay(after), after->entry.state);
}

static void replaying_the_records_gives_the_state(void **state)
{
    (void)state;
    assert_true(for_all_sequences((struct kept){0}, 4, check_replay) > 10000);
}

/* --- entries that can exist --- */

#define V DW_RECORD_VOTE_YES
#define S DW_RECORD_START_2PC
#define C DW_RECORD_COMMIT
#define A DW_RECORD_ABORT
#define E DW_RECORD_END

static const struct legal {
    bool coordinator;
    enum dw_record records[3]; /* NONE ends */
} legal[] = {
    {false, {V, 0, 0}}, {false, {V, C, 0}}, {false, {V, A, 0}}, {false, {A, 0, 0}},
    {false, {C, 0, 0}}, {true, {S, 0, 0}},  {true, {S, C, 0}},  {true, {S, C, E}},
    {true, {S, A, 0}},  {true, {C, 0, 0}},  {true, {C, E, 0}},  {true, {A, 0, 0}},
};

static bool is_legal(const enum dw_record records[3], const bool coordinator[3])
{
    for (unsigned i = 0; i < sizeof legal / sizeof *legal; i++) {
        bool same = true;
        for (unsigned k = 0; k < 3; k++) {
            same = same && legal[i].records[k] == records[k] &&
                   (records[k] == DW_RECORD_NONE || legal[i].coordinator == coordinator[k]);
        }
        if (same) {
            return true;
        }
    }
    return false;
}

/* The `number`-th of the sequences of `length` records, each with either flag. */
static void make_sequence(unsigned number, unsigned length, enum dw_record records[3], bool coordinator[3])
{
    for (unsigned k = 0; k < 3; k++, number /= 10) {
        records[k] = k < length ? (enum dw_record)(DW_RECORD_VOTE_YES + number % 10 / 2) : DW_RECORD_NONE;
        coordinator[k] = number % 2 != 0;
    }
}

static void every_other_sequence_of_records_is_damaged(void **state)
{
    (void)state;
    static const unsigned counts[] = {1, 10, 100, 1000};
    unsigned found = 0;
    for (unsigned length = 1; length <= 3; length++) {
        for (unsigned number = 0; number < counts[length]; number++) {
            enum dw_record records[3];
            bool coordinator[3];
            enum dw_entry_state result = DW_ENTRY_NONE;
            make_sequence(number, length, records, coordinator);
            for (unsigned k = 0; k < length; k++) {
                result = dw_entry_replay(result, records[k], coordinator[k]);
            }
            bool expected = is_legal(records, coordinator);
            assert_int_equal(result,
                             expected ? state_after(records[length - 1], coordinator[0]) : DW_ENTRY_DAMAGED);
            found += expected;
        }
    }
    assert_int_equal(found, sizeof legal / sizeof *legal);
}

static void nothing_mends_a_damaged_or_forgotten_entry(void **state)
{
    (void)state;
    for (unsigned record = DW_RECORD_NONE; record <= DW_RECORD_END; record++) {
        for (unsigned flag = 0; flag < 2; flag++) {
            assert_int_equal(dw_entry_replay(DW_ENTRY_DAMAGED, (enum dw_record)record, flag),
                             DW_ENTRY_DAMAGED);
            assert_int_equal(dw_entry_replay(DW_ENTRY_FORGOTTEN, (enum dw_record)record, flag),
                             DW_ENTRY_DAMAGED);
            assert_int_equal(dw_entry_replay(DW_ENTRY_NONE, DW_RECORD_NONE, flag), DW_ENTRY_DAMAGED);
        }
    }
}

/* --- kinds and names --- */

static void asks_are_sorted_into_kinds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DW_ASKS; i++) {
        enum dw_ask ask = (enum dw_ask)i;
        assert_int_equal(dw_ask_is_if_not_exist(ask), ask == DW_ASK_VOTE || ask == DW_ASK_DENY);
        assert_int_equal(dw_ask_is_write(ask), ask != DW_ASK_READ);
        assert_int_equal(dw_ask_is_coordinator(ask), ask == DW_ASK_START || ask == DW_ASK_COORD_COMMIT ||
                                                         ask == DW_ASK_COORD_ABORT || ask == DW_ASK_END);
    }
}

static void assert_names(int count, const char *(*name_of)(int))
{
    for (int i = 0; i < count; i++) {
        assert_string_not_equal(name_of(i), "?");
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(name_of(i), name_of(k));
        }
    }
    assert_string_equal(name_of(count), "?");
    assert_string_equal(name_of(-1), "?");
}

static void everything_has_a_name_of_its_own(void **state)
{
    (void)state;
    assert_names(DW_ASKS, ask_name);
    assert_names(DW_ENTRY_STATES, state_name);
    assert_names(DW_ANSWERS, answer_name);
    assert_names(DW_RECORD_END + 1, record_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_tells_of_every_ask_in_every_state),
        cmocka_unit_test(each_cell_is_the_one_on_the_page),
        cmocka_unit_test(other_content_conflicts_where_the_page_says),
        cmocka_unit_test(an_older_incarnation_of_the_owner_is_fenced_before_all_else),
        cmocka_unit_test(another_node_is_never_fenced),
        cmocka_unit_test(asking_again_appends_nothing_and_gives_the_same_answer),
        cmocka_unit_test(lemma_1_irreversible_global_decision),
        cmocka_unit_test(replaying_the_records_gives_the_state),
        cmocka_unit_test(every_other_sequence_of_records_is_damaged),
        cmocka_unit_test(nothing_mends_a_damaged_or_forgotten_entry),
        cmocka_unit_test(asks_are_sorted_into_kinds),
        cmocka_unit_test(everything_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests_name("log_rule", tests, read_page, NULL);
}
