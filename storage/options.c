#include "storage/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

int option_exit_code(enum dw_error error)
{
    switch (error) {
    case DW_ERR_OK:
        return EXIT_GOOD;
    case DW_ERR_ARGUMENT:
    case DW_ERR_RANGE:
    case DW_ERR_MISSING:
    case DW_ERR_MALFORMED:
    case DW_ERR_TOO_LARGE:
        return EXIT_ASKED_WRONGLY;
    case DW_ERR_MEMORY:
    case DW_ERR_IO:
    case DW_ERR_CORRUPT:
    case DW_ERR_LOCKED:
    case DW_ERR_ADDRESS:
    case DW_ERR_FULL:
    case DW_ERR_CLOSED:
    case DW_ERR_REFUSED:
    case DW_ERR_TIMEOUT:
    case DW_ERR_SHUTDOWN:
        break;
    }
    return EXIT_ENVIRONMENT;
}

/* Reads digits up to `end`; false if there are none, or the number is out of range. */
static bool read_number(const char *text, uint64_t low, uint64_t high, uint64_t *number, const char **end)
{
    char *stop;
    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    *number = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0 && *number >= low && *number <= high;
}

bool option_number(const char *text, uint64_t low, uint64_t high, uint64_t *number)
{
    const char *end;
    return read_number(text, low, high, number, &end) && *end == '\0';
}

bool option_address(const char *text, bool listening)
{
    uint64_t port;
    const char *colon = strrchr(text, ':');
    return colon != NULL && colon != text && option_number(colon + 1, listening ? 0 : 1, 65535, &port);
}

bool option_run_id(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(text);
    return length > 0 && length <= DW_MAX_RUN_ID && strspn(text, allowed) == length;
}

bool option_logs(const char *text, uint64_t *logs)
{
    *logs = 0;
    for (;;) {
        uint64_t first;
        uint64_t last;
        if (!read_number(text, 0, DW_MAX_NODES - 1, &first, &text)) {
            return false;
        }
        last = first;
        if (*text == '-' && !read_number(text + 1, first, DW_MAX_NODES - 1, &last, &text)) {
            return false;
        }
        for (uint64_t log = first; log <= last; log++) {
            *logs |= dw_node_bit((uint32_t)log);
        }
        if (*text == '\0') {
            return true;
        }
        if (*text++ != ',') {
            return false;
        }
    }
}

void option_set_text(uint64_t set, char *text, size_t text_size)
{
    size_t used = 0;
    const char *comma = "";
    for (uint32_t first = 0; first < DW_MAX_NODES; first++) {
        if ((set & dw_node_bit(first)) == 0) {
            continue;
        }
        uint32_t last = first;
        while (last + 1 < DW_MAX_NODES && (set & dw_node_bit(last + 1)) != 0) {
            last++;
        }
        int put = last == first ? snprintf(text + used, text_size - used, "%s%u", comma, first)
                                : snprintf(text + used, text_size - used, "%s%u-%u", comma, first, last);
        if (put < 0 || (size_t)put >= text_size - used) {
            return;
        }
        used += (size_t)put;
        comma = ",";
        first = last;
    }
}

void option_logs_text(uint64_t logs, char *text, size_t text_size)
{
    char set[OPTION_LOGS_TEXT] = "";
    bool one = (logs & (logs - 1)) == 0;
    option_set_text(logs, set, sizeof set);
    snprintf(text, text_size, "%s %s", one ? "log" : "logs", set);
}

static bool skip_separator(const char **text)
{
    return *(*text)++ == ':' || (*text)[-1] == '.';
}

bool option_txn(const char *text, struct dw_txn_id *txn)
{
    uint64_t coordinator;
    uint64_t incarnation;
    uint64_t sequence;
    if (!read_number(text, 0, DW_MAX_NODES - 1, &coordinator, &text) || !skip_separator(&text) ||
        !read_number(text, 1, UINT32_MAX, &incarnation, &text) || !skip_separator(&text) ||
        !read_number(text, 0, UINT64_MAX, &sequence, &text)) {
        return false;
    }
    *txn = (struct dw_txn_id){
        .coordinator = (uint32_t)coordinator, .incarnation = (uint32_t)incarnation, .sequence = sequence};
    return *text == '\0';
}

enum { LONGEST_WORD = 32 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, row by row. */
static size_t distance(const char *a, const char *b)
{
    size_t row[LONGEST_WORD + 1];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = smaller(change, smaller(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[width];
}

const char *option_nearest(const char *text, const char *const *words)
{
    const char *nearest = NULL;
    size_t best = 4;
    for (; *words != NULL; words++) {
        if (strlen(*words) <= LONGEST_WORD) {
            size_t found = distance(text, *words);
            if (found < best && found < strlen(*words)) {
                best = found;
                nearest = *words;
            }
        }
    }
    return nearest;
}
