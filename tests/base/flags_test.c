/* Does a table of flags take what is right, and refuse what is wrong in one line that names the flag, the
 * value and the mend? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_code.h"
#include "base/flags.h"
#include "base/nearest.h"

enum color { COLOR_RED, COLOR_GREEN };

struct values {
    const char *name;
    const char *note;
    const char *run;
    const char *at;
    const char *listen;
    uint32_t small;
    uint64_t big;
    double ratio;
    bool on;
    bool here;
    enum color color;
    uint32_t list[3];
    size_t list_count;
    char taken[64];
};

static bool take_even(void *user, const char *value, char *mend, size_t mend_size)
{
    char *taken = user;
    snprintf(mend, mend_size, "give an even length");
    strcat(taken, value);
    return strlen(value) % 2 == 0;
}

/* The command line and what became of it. */
struct reading {
    struct values values;
    const char *needed; /* of --name */
    bool takes_words;
    int first_word;
    int code;
    bool given_big;
    bool given_small;
    char out[512];
    char err[2048];
};

/* Where a stream's bytes go while a program's function runs. */
struct capture {
    int fd; /* of the stream: 1 or 2 */
    int kept;
    FILE *file;
};

static struct capture capture_begin(int fd)
{
    struct capture capture = {.fd = fd, .kept = dup(fd), .file = tmpfile()};
    assert_non_null(capture.file);
    assert_true(capture.kept >= 0);
    assert_int_equal(dup2(fileno(capture.file), fd), fd);
    return capture;
}

static void capture_end(struct capture *capture, char *text, size_t size)
{
    fflush(NULL);
    assert_int_equal(dup2(capture->kept, capture->fd), capture->fd);
    close(capture->kept);
    rewind(capture->file);
    size_t got = fread(text, 1, size - 1, capture->file);
    text[got] = '\0';
    fclose(capture->file);
}

/* `words` ends with NULL. They are copied, since argv may be changed; copies live until the next call. */
static void read_words(struct reading *reading, const char *const *words)
{
    struct values *values = &reading->values;
    static char copies[8192];
    size_t used = 0;
    char *argv[24] = {(char[]){"prog"}};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) {
        size_t size = strlen(words[argc - 1]) + 1;
        assert_true(argc < 23 && used + size <= sizeof copies);
        argv[argc] = memcpy(copies + used, words[argc - 1], size);
        used += size;
    }
    struct dw_flag flags[] = {
        {.name = "name", .needed = reading->needed, .text = &values->name},
        {.name = "note", .text = &values->note, .rule = &dw_text_any},
        {.name = "run", .text = &values->run, .rule = &dw_text_run_id},
        {.name = "at", .text = &values->at, .rule = &dw_text_address},
        {.name = "listen", .text = &values->listen, .rule = &dw_text_listen},
        {.name = "small", .u32 = &values->small, .low = 2, .high = UINT32_MAX},
        {.name = "big", .u64 = &values->big, .high = UINT64_MAX},
        {.name = "ratio", .decimal = &values->ratio, .least = -1.5, .most = 2e3},
        {.name = "on", .on_off = &values->on},
        {.name = "here", .present = &values->here},
        {.name = "color", .word = &values->color, .words = "red|green"},
        {.name = "list",
         .list = values->list,
         .list_count = &values->list_count,
         .list_size = 3,
         .low = 1,
         .high = 9},
        {.name = "take", .take = take_even, .user = values->taken},
        {.name = NULL},
    };
    fflush(NULL);
    struct capture out = capture_begin(STDOUT_FILENO);
    struct capture err = capture_begin(STDERR_FILENO);
    reading->code = dw_flags_read("prog", "usage: prog\n", flags, argc, argv,
                                  reading->takes_words ? &reading->first_word : NULL);
    capture_end(&err, reading->err, sizeof reading->err);
    capture_end(&out, reading->out, sizeof reading->out);
    reading->given_big = dw_flags_given(flags, "big");
    reading->given_small = dw_flags_given(flags, "small");
}

#define READ(reading, ...) read_words((reading), (const char *const[]){__VA_ARGS__, NULL})

/* The strings stay until the program ends, since values point to them; so the leak checker sees them by this.
 */
static struct reading fresh(void)
{
    return (struct reading){.values = {.small = 7, .on = true}};
}

static void assert_taken(const struct reading *reading)
{
    assert_string_equal(reading->err, "");
    assert_int_equal(reading->code, DW_FLAGS_GO_ON);
}

/* One line that is exactly this. */
static void assert_refused(const struct reading *reading, const char *line)
{
    char whole[2048];
    snprintf(whole, sizeof whole, "prog: %s; see prog --help\n", line);
    assert_string_equal(reading->err, whole);
    assert_string_equal(reading->out, "");
    assert_int_equal(reading->code, DW_EXIT_ASKED_WRONGLY);
}

static void assert_value_refused(const char *flag, const char *value, const char *mend)
{
    char line[1024];
    char word[512];
    struct reading reading = fresh();
    snprintf(word, sizeof word, "--%s=%s", flag, value);
    snprintf(line, sizeof line, "--%s '%s' is wrong: %s", flag, value, mend);
    READ(&reading, word);
    assert_refused(&reading, line);
}

static void each_kind_takes_its_values(void **state)
{
    (void)state;
    struct reading reading = fresh();
    READ(&reading, "--name", "n", "--small", "2", "--big=3", "--ratio", "1e3", "--on", "off", "--here",
         "--color", "green");
    assert_taken(&reading);
    assert_string_equal(reading.values.name, "n");
    assert_int_equal(reading.values.small, 2);
    assert_int_equal(reading.values.big, 3);
    assert_true(reading.values.ratio == 1000);
    assert_false(reading.values.on);
    assert_true(reading.values.here);
    assert_int_equal(reading.values.color, COLOR_GREEN);
    assert_true(reading.given_big);

    reading = fresh();
    READ(&reading, "--list", "1,9,4", "--note", "", "--on=on", "--color=red", "--run", "a.B-9_", "--take",
         "ab");
    assert_taken(&reading);
    assert_int_equal(reading.values.list_count, 3);
    assert_int_equal(reading.values.list[1], 9);
    assert_string_equal(reading.values.note, "");
    assert_true(reading.values.on);
    assert_int_equal(reading.values.color, COLOR_RED);
    assert_string_equal(reading.values.run, "a.B-9_");
    assert_string_equal(reading.values.taken, "ab");
}

static void what_is_left_out_keeps_its_value(void **state)
{
    (void)state;
    struct reading reading = fresh();
    READ(&reading, "--big", "0");
    assert_taken(&reading);
    assert_int_equal(reading.values.small, 7);
    assert_true(reading.values.on);
    assert_false(reading.values.here);
    assert_true(reading.given_big);
    assert_false(reading.given_small);
}

static void whole_numbers_keep_to_their_range(void **state)
{
    (void)state;
    static const char small[] = "give a whole number from 2 to 4294967295";
    static const char big[] = "give a whole number from 0 to 18446744073709551615";
    static const char *const wrong[] = {
        "1", "4294967296", "18446744073709551618", "-3", "+3", " 3", "3 ", "0x10", "3x", "1e3", "", "3.0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_value_refused("small", wrong[i], small);
    }
    assert_value_refused("big", "18446744073709551616", big);
    assert_value_refused("big", "99999999999999999999999999", big);
    assert_value_refused("big", "-1", big);
    struct reading reading = fresh();
    READ(&reading, "--small", "4294967295", "--big", "18446744073709551615");
    assert_taken(&reading);
    assert_int_equal(reading.values.small, UINT32_MAX);
    assert_true(reading.values.big == UINT64_MAX);
    READ(&reading, "--small", "0002");
    assert_taken(&reading);
    assert_int_equal(reading.values.small, 2);
}

static void decimal_numbers_keep_to_their_range(void **state)
{
    (void)state;
    static const char *const wrong[] = {"-1.6",   "2000.1", "nan",  "inf",  "-inf", "infinity", "1e999",
                                        "-1e999", "0x1",    "1e3x", " 1",   "1 ",   "",         "-",
                                        ".",      "1e",     "1,5",  "1.5.", "NAN",  "nan(1)",   "0x1p3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_value_refused("ratio", wrong[i], "give a number from -1.5 to 2000");
    }
    static const struct {
        const char *text;
        double value;
    } right[] = {{"-1.5", -1.5}, {"2000", 2000}, {"2e3", 2000}, {".5", 0.5}, {"+1", 1}, {"1.25E-2", 0.0125}};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        struct reading reading = fresh();
        READ(&reading, "--ratio", right[i].text);
        assert_taken(&reading);
        assert_true(reading.values.ratio == right[i].value);
    }
}

/* They would spoil the line that tells of the value later; the refusal shows '?' in their place. */
static void texts_are_one_line(void **state)
{
    (void)state;
    struct reading reading = fresh();
    READ(&reading, "--name", "two\nlines");
    assert_refused(&reading,
                   "--name 'two?lines' is wrong: give a text that is not empty, without control characters");
    READ(&reading, "--listen", "two\nlines:0");
    assert_refused(&reading,
                   "--listen 'two?lines:0' is wrong: give HOST:PORT, with a port from 0 (any free one) to "
                   "65535");
}

static void texts_keep_to_their_rule(void **state)
{
    (void)state;
    static const char run[] = "give 1 to 63 letters, digits, '.', '_' or '-'";
    static const char at[] = "give HOST:PORT, with a port from 1 to 65535";
    static const char listen[] = "give HOST:PORT, with a port from 0 (any free one) to 65535";
    char long_run[65];
    memset(long_run, 'x', 64);
    long_run[64] = '\0';
    static const char one_line[] = "give a text that is not empty, without control characters";
    assert_value_refused("name", "", one_line);
    assert_value_refused("run", "", run);
    assert_value_refused("run", "a b", run);
    assert_value_refused("run", long_run, run);
    static const char *const addresses[] = {
        "", "host", ":80", "host:", "host:x", "host:65536", "host:-1", "host:1 "};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        assert_value_refused("at", addresses[i], at);
        assert_value_refused("listen", addresses[i], listen);
    }
    assert_value_refused("at", "host:0", at);
    struct reading reading = fresh();
    READ(&reading, "--listen", "127.0.0.1:0", "--at", "[::1]:65535", "--run", long_run + 1);
    assert_taken(&reading);
    assert_string_equal(reading.values.at, "[::1]:65535");
    assert_string_equal(reading.values.run, long_run + 1);
}

static void words_and_lists_are_whole(void **state)
{
    (void)state;
    static const char list[] = "give at most 3 whole numbers from 1 to 9, as in 1,4,16";
    static const char *const lists[] = {"", "0", "10", "1,", ",1", "1,,2", "1,2,3,4", "1;2", "1,x", "1 ,2"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_value_refused("list", lists[i], list);
    }
    static const char *const colors[] = {"", "re", "redd", "RED", "red|green", "|", "een"};
    for (size_t i = 0; i < sizeof colors / sizeof *colors; i++) {
        assert_value_refused("color", colors[i], "give red|green");
    }
    assert_value_refused("on", "yes", "give on|off");
    assert_value_refused("on", "", "give on|off");
    assert_value_refused("take", "odd", "give an even length");
}

static void a_missing_value_is_named(void **state)
{
    (void)state;
    struct reading reading = fresh();
    READ(&reading, "--here", "--small");
    assert_refused(&reading, "--small needs a value");
    reading = fresh();
    READ(&reading, "--here=yes");
    assert_refused(&reading, "--here takes no value");
    assert_false(reading.values.here);
    reading = fresh();
    READ(&reading, "--help=x");
    assert_refused(&reading, "--help takes no value");
}

static void an_unknown_flag_is_named_with_its_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        const char *line;
    } unknown[] = {{"--smal1", "unknown flag '--smal1'; do you mean --small?"},
                   {"--rati0=3", "unknown flag '--rati0'; do you mean --ratio?"},
                   {"--quite-another", "unknown flag '--quite-another'"},
                   {"--versoin", "unknown flag '--versoin'; do you mean --version?"},
                   {"-x", "unknown flag '-x'"},
                   {"-xyz", "unknown flag '-x'"},
                   /* The start of --listen and of --list. */
                   {"--lis", "unknown flag '--lis'; do you mean --list?"}};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct reading reading = fresh();
        READ(&reading, "--small", "3", unknown[i].word);
        assert_refused(&reading, unknown[i].line);
    }
}

static void the_last_of_a_repeated_flag_holds(void **state)
{
    (void)state;
    struct reading reading = fresh();
    READ(&reading, "--small", "3", "--small", "4", "--list", "1,2,3", "--list", "5", "--take", "ab", "--take",
         "cd");
    assert_taken(&reading);
    assert_int_equal(reading.values.small, 4);
    assert_int_equal(reading.values.list_count, 1);
    assert_int_equal(reading.values.list[0], 5);
    /* A function of the program's own sees each. */
    assert_string_equal(reading.values.taken, "abcd");
    READ(&reading, "--small", "3", "--small", "1");
    assert_refused(&reading, "--small '1' is wrong: give a whole number from 2 to 4294967295");
}

static void what_is_needed_is_asked_for(void **state)
{
    (void)state;
    struct reading reading = fresh();
    reading.needed = "the name of something";
    READ(&reading, "--small", "3");
    assert_refused(&reading, "--name is missing: give the name of something");
    reading = fresh();
    reading.needed = "the name of something";
    READ(&reading, "--name", "n");
    assert_taken(&reading);
}

static void help_and_version_end_the_program_well(void **state)
{
    (void)state;
    struct reading reading = fresh();
    reading.needed = "the name of something";
    READ(&reading, "--help", "--nonsense");
    assert_int_equal(reading.code, DW_EXIT_GOOD);
    assert_string_equal(reading.out, "usage: prog\n");
    assert_string_equal(reading.err, "");
    READ(&reading, "--version");
    assert_int_equal(reading.code, DW_EXIT_GOOD);
    assert_string_equal(reading.out, "prog 0.1.0\n");
}

static void words_are_refused_unless_they_are_wanted(void **state)
{
    (void)state;
    struct reading reading = fresh();
    READ(&reading, "--small", "3", "more");
    assert_refused(&reading, "'more' belongs to no flag");
    reading = fresh();
    reading.takes_words = true;
    READ(&reading, "one", "--small", "3", "two", "--here", "--", "--three");
    assert_taken(&reading);
    assert_true(reading.values.here);
    /* prog --small 3 --here -- one two --three */
    assert_int_equal(reading.first_word, 5);
}

static void a_refusal_is_one_line_whatever_it_quotes(void **state)
{
    (void)state;
    char word[4096];
    struct reading reading = fresh();
    READ(&reading, "--small=1\n\t\033[2J");
    assert_refused(&reading, "--small '1???[2J' is wrong: give a whole number from 2 to 4294967295");
    memset(word, 'x', sizeof word);
    memcpy(word, "--small=", 8);
    word[sizeof word - 1] = '\0';
    READ(&reading, word);
    assert_int_equal(reading.code, DW_EXIT_ASKED_WRONGLY);
    assert_true(strlen(reading.err) < 400);
    assert_non_null(strstr(reading.err, "give a whole number from 2 to 4294967295; see prog --help\n"));
    memcpy(word, "--smallx", 8);
    READ(&reading, word);
    assert_int_equal(reading.code, DW_EXIT_ASKED_WRONGLY);
    assert_true(strlen(reading.err) < 400);
}

static void digits_are_read_up_to_what_follows(void **state)
{
    (void)state;
    uint64_t number;
    const char *rest;
    assert_true(dw_read_whole("12:3", 0, 63, &number, &rest));
    assert_int_equal(number, 12);
    assert_string_equal(rest, ":3");
    assert_false(dw_read_whole("12:3", 0, 63, &number, NULL));
    assert_false(dw_read_whole("64:3", 0, 63, &number, &rest));
    assert_false(dw_read_whole(":3", 0, 63, &number, &rest));
    assert_false(dw_read_whole("", 0, 63, &number, &rest));
}

static void the_nearest_word_is_found(void **state)
{
    (void)state;
    static const char *const words[] = {
        "stats", "status", "stop", "at", "a-word-that-is-too-long-to-be-measured", NULL};
    assert_string_equal(dw_nearest("stat", words), "stats");
    assert_string_equal(dw_nearest("statuss", words), "status");
    assert_string_equal(dw_nearest("sotp", words), "stop");
    assert_null(dw_nearest("wxyz", words));
    assert_null(dw_nearest("", words));
    assert_null(dw_nearest("statxxxx", words));
    assert_null(dw_nearest("xy", words));
    assert_null(dw_nearest("a-word-that-is-too-long-to-be-measured", words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_takes_its_values),
        cmocka_unit_test(what_is_left_out_keeps_its_value),
        cmocka_unit_test(whole_numbers_keep_to_their_range),
        cmocka_unit_test(decimal_numbers_keep_to_their_range),
        cmocka_unit_test(texts_keep_to_their_rule),
        cmocka_unit_test(texts_are_one_line),
        cmocka_unit_test(words_and_lists_are_whole),
        cmocka_unit_test(a_missing_value_is_named),
        cmocka_unit_test(an_unknown_flag_is_named_with_its_nearest),
        cmocka_unit_test(the_last_of_a_repeated_flag_holds),
        cmocka_unit_test(what_is_needed_is_asked_for),
        cmocka_unit_test(help_and_version_end_the_program_well),
        cmocka_unit_test(words_are_refused_unless_they_are_wanted),
        cmocka_unit_test(a_refusal_is_one_line_whatever_it_quotes),
        cmocka_unit_test(digits_are_read_up_to_what_follows),
        cmocka_unit_test(the_nearest_word_is_found),
    };
    return cmocka_run_group_tests_name("base_flags", tests, NULL, NULL);
}
