#include "base/flags.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/limits.h"
#include "base/nearest.h"

/* What a line shows of a value, and the whole line. */
enum { VALUE_SHOWN = 200, LINE = 1024 };

/* --- values --- */

bool dw_read_whole(const char *text, uint64_t low, uint64_t high, uint64_t *number, const char **rest)
{
    char *end;
    if (!isdigit((unsigned char)*text)) {
        return false;
    }
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (rest != NULL) {
        *rest = end;
    }
    return errno == 0 && *number >= low && *number <= high && (rest != NULL || *end == '\0');
}

bool dw_read_decimal(const char *text, double least, double most, double *number)
{
    char *end;
    /* strtod would take more: white space, hexadecimal digits, "inf" and "nan". */
    if (text[strspn(text, "0123456789.eE+-")] != '\0') {
        return false;
    }
    *number = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*number) && *number >= least && *number <= most;
}

static bool is_any(const char *text)
{
    (void)text;
    return true;
}

/* What is told of it later must stay one line. */
static bool is_one_line(const char *text)
{
    while (*text != '\0' && !iscntrl((unsigned char)*text)) {
        text++;
    }
    return *text == '\0';
}

static bool is_not_empty(const char *text)
{
    return *text != '\0' && is_one_line(text);
}

static bool is_run_id(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(text);
    return length > 0 && length <= DW_MAX_RUN_ID && text[strspn(text, allowed)] == '\0';
}

static bool has_port(const char *text, uint64_t low)
{
    uint64_t port;
    const char *colon = strrchr(text, ':');
    return is_one_line(text) && colon != NULL && colon != text &&
           dw_read_whole(colon + 1, low, UINT16_MAX, &port, NULL);
}

static bool is_address(const char *text)
{
    return has_port(text, 1);
}

static bool is_listen(const char *text)
{
    return has_port(text, 0);
}

static const struct dw_text_rule not_empty = {is_not_empty,
                                              "a text that is not empty, without control characters"};
const struct dw_text_rule dw_text_any = {is_any, "a text"};
const struct dw_text_rule dw_text_run_id = {is_run_id, "1 to 63 letters, digits, '.', '_' or '-'"};
_Static_assert(DW_MAX_RUN_ID == 63, "the mend says so");
const struct dw_text_rule dw_text_address = {is_address, "HOST:PORT, with a port from 1 to 65535"};
const struct dw_text_rule dw_text_listen = {is_listen,
                                            "HOST:PORT, with a port from 0 (any free one) to 65535"};

/* --- one flag: each takes a value, or writes the mend and returns false --- */

static bool take_text(const struct dw_flag *flag, const char *value, char *mend, size_t size)
{
    const struct dw_text_rule *rule = flag->rule != NULL ? flag->rule : &not_empty;
    snprintf(mend, size, "give %s", rule->mend);
    *flag->text = value;
    return rule->holds(value);
}

static bool take_whole(const struct dw_flag *flag, const char *value, char *mend, size_t size)
{
    uint64_t number;
    snprintf(mend, size, "give a whole number from %" PRIu64 " to %" PRIu64, flag->low, flag->high);
    if (!dw_read_whole(value, flag->low, flag->high, &number, NULL)) {
        return false;
    }
    if (flag->u32 != NULL) {
        DW_ASSERT(flag->high <= UINT32_MAX);
        *flag->u32 = (uint32_t)number;
    } else {
        *flag->u64 = number;
    }
    return true;
}

static bool take_decimal(const struct dw_flag *flag, const char *value, char *mend, size_t size)
{
    snprintf(mend, size, "give a number from %.15g to %.15g", flag->least, flag->most);
    return dw_read_decimal(value, flag->least, flag->most, flag->decimal);
}

static bool take_word(const char *words, unsigned *number, const char *value, char *mend, size_t size)
{
    size_t length = strlen(value);
    snprintf(mend, size, "give %s", words);
    for (*number = 0;; ++*number) {
        size_t width = strcspn(words, "|");
        if (width == length && strncmp(words, value, width) == 0) {
            return true;
        }
        if (words[width] == '\0') {
            return false;
        }
        words += width + 1;
    }
}

static bool take_on_off(const struct dw_flag *flag, const char *value, char *mend, size_t size)
{
    unsigned off;
    bool good = take_word("on|off", &off, value, mend, size);
    *flag->on_off = off == 0;
    return good;
}

static bool take_list(const struct dw_flag *flag, const char *value, char *mend, size_t size)
{
    uint64_t number;
    size_t count = 0;
    snprintf(mend, size, "give at most %zu whole numbers from %" PRIu64 " to %" PRIu64 ", as in 1,4,16",
             flag->list_size, flag->low, flag->high);
    DW_ASSERT(flag->high <= UINT32_MAX);
    for (;; value++) {
        if (count == flag->list_size || !dw_read_whole(value, flag->low, flag->high, &number, &value)) {
            return false;
        }
        flag->list[count++] = (uint32_t)number;
        if (*value != ',') {
            *flag->list_count = count;
            return *value == '\0';
        }
    }
}

static bool take(const struct dw_flag *flag, const char *value, char *mend, size_t size)
{
    if (flag->present != NULL) {
        *flag->present = true;
        return true;
    }
    if (flag->text != NULL) {
        return take_text(flag, value, mend, size);
    }
    if (flag->u32 != NULL || flag->u64 != NULL) {
        return take_whole(flag, value, mend, size);
    }
    if (flag->decimal != NULL) {
        return take_decimal(flag, value, mend, size);
    }
    if (flag->on_off != NULL) {
        return take_on_off(flag, value, mend, size);
    }
    if (flag->word != NULL) {
        return take_word(flag->words, flag->word, value, mend, size);
    }
    if (flag->list != NULL) {
        return take_list(flag, value, mend, size);
    }
    return flag->take(flag->user, value, mend, size);
}

/* --- the command line --- */

/* What getopt_long answers for flags[i] is FIRST_FLAG + i, so that it is no character. */
enum { FIRST_FLAG = 256 };

int dw_flags_refuse(const char *program, const char *format, ...)
{
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *c = line; *c != '\0'; c++) {
        *c = iscntrl((unsigned char)*c) ? '?' : *c;
    }
    fprintf(stderr, "%s: %s; see %s --help\n", program, line, program);
    return DW_EXIT_ASKED_WRONGLY;
}

bool dw_flags_given(const struct dw_flag *flags, const char *name)
{
    while (flags->name != NULL && strcmp(flags->name, name) != 0) {
        flags++;
    }
    DW_ASSERT(flags->name != NULL);
    return flags->given;
}

/* The table, and after it help, version and the end, as getopt_long wants them. Returns the number of help.
 */
static size_t list_options(const struct dw_flag *flags, struct option *options)
{
    size_t count = 0;
    for (; flags[count].name != NULL; count++) {
        const struct dw_flag *flag = &flags[count];
        DW_ASSERT(count < DW_FLAGS_MAX);
        DW_ASSERT((flag->present != NULL) + (flag->text != NULL) + (flag->u32 != NULL) + (flag->u64 != NULL) +
                      (flag->decimal != NULL) + (flag->on_off != NULL) + (flag->word != NULL) +
                      (flag->list != NULL) + (flag->take != NULL) ==
                  1);
        options[count] = (struct option){
            .name = flag->name, .has_arg = flag->present == NULL, .val = FIRST_FLAG + (int)count};
    }
    options[count] = (struct option){.name = "help", .val = FIRST_FLAG + (int)count};
    options[count + 1] = (struct option){.name = "version", .val = FIRST_FLAG + (int)count + 1};
    options[count + 2] = (struct option){.name = NULL};
    return count;
}

static int refuse_unknown(const char *program, const struct option *options, const char *given)
{
    const char *names[DW_FLAGS_MAX + 3];
    char name[64];
    size_t count = 0;
    do {
        names[count] = options[count].name;
    } while (names[count++] != NULL);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    const char *near = dw_nearest(name + strspn(name, "-"), names);
    return near != NULL ? dw_flags_refuse(program, "unknown flag '%s'; do you mean --%s?", name, near)
                        : dw_flags_refuse(program, "unknown flag '%s'", name);
}

/* getopt_long answered `found`, which is no flag with its value. */
static int refuse_found(const char *program, const struct option *options, char **argv, int found)
{
    if (optopt >= FIRST_FLAG) {
        return dw_flags_refuse(program, "--%s %s", options[optopt - FIRST_FLAG].name,
                               found == ':' ? "needs a value" : "takes no value");
    }
    if (optopt != 0) {
        return dw_flags_refuse(program, "unknown flag '-%c'", optopt);
    }
    return refuse_unknown(program, options, argv[optind - 1]);
}

static int take_found(const char *program, struct dw_flag *flag, const char *value)
{
    char mend[LINE] = "";
    flag->given = true;
    if (take(flag, value, mend, sizeof mend)) {
        return DW_FLAGS_GO_ON;
    }
    return dw_flags_refuse(program, "--%s '%.*s' is wrong: %s", flag->name, VALUE_SHOWN, value, mend);
}

static int check_needed(const char *program, const struct dw_flag *flags)
{
    for (; flags->name != NULL; flags++) {
        if (flags->needed != NULL && !flags->given) {
            return dw_flags_refuse(program, "--%s is missing: give %s", flags->name, flags->needed);
        }
    }
    return DW_FLAGS_GO_ON;
}

int dw_flags_read(const char *program, const char *usage, struct dw_flag *flags, int argc, char **argv,
                  int *first_word)
{
    struct option options[DW_FLAGS_MAX + 3];
    int help = FIRST_FLAG + (int)list_options(flags, options);
    int code = DW_FLAGS_GO_ON;
    int found;
    opterr = 0;
    optind = 0; /* starts anew */
    while (code == DW_FLAGS_GO_ON && (found = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (found == help || found == help + 1) {
            fputs(found == help ? usage : program, stdout);
            fputs(found == help ? "" : " " DW_VERSION "\n", stdout);
            return DW_EXIT_GOOD;
        }
        code = found < FIRST_FLAG ? refuse_found(program, options, argv, found)
                                  : take_found(program, &flags[found - FIRST_FLAG], optarg);
    }
    if (code == DW_FLAGS_GO_ON && first_word == NULL && optind < argc) {
        code = dw_flags_refuse(program, "'%.*s' belongs to no flag", VALUE_SHOWN, argv[optind]);
    }
    if (first_word != NULL) {
        *first_word = optind;
    }
    return code == DW_FLAGS_GO_ON ? check_needed(program, flags) : code;
}
