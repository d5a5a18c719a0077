#include "storage/options.h"

#include <stdio.h>

#include "base/flags.h"
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

static bool read_logs(const char *text, uint64_t *logs)
{
    *logs = 0;
    for (;; text++) {
        uint64_t first;
        uint64_t last;
        if (!dw_read_whole(text, 0, DW_MAX_NODES - 1, &first, &text)) {
            return false;
        }
        last = first;
        if (*text == '-' && !dw_read_whole(text + 1, first, DW_MAX_NODES - 1, &last, &text)) {
            return false;
        }
        for (uint64_t log = first; log <= last; log++) {
            *logs |= dw_node_bit((uint32_t)log);
        }
        if (*text != ',') {
            return *text == '\0';
        }
    }
}

bool option_take_logs(void *logs, const char *value, char *mend, size_t mend_size)
{
    snprintf(mend, mend_size, "give numbers and ranges from 0 to %d, as in 0,2,4-7", DW_MAX_NODES - 1);
    return read_logs(value, logs);
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
    if (!dw_read_whole(text, 0, DW_MAX_NODES - 1, &coordinator, &text) || !skip_separator(&text) ||
        !dw_read_whole(text, 1, UINT32_MAX, &incarnation, &text) || !skip_separator(&text) ||
        !dw_read_whole(text, 0, UINT64_MAX, &sequence, NULL)) {
        return false;
    }
    *txn = (struct dw_txn_id){
        .coordinator = (uint32_t)coordinator, .incarnation = (uint32_t)incarnation, .sequence = sequence};
    return true;
}
