/* options.h - the values of flags, as dogwood-storage and dogwood-ctl have them in common. */
#ifndef DW_STORAGE_OPTIONS_H
#define DW_STORAGE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "core/id.h"

/* The names that these programs have for exit codes. */
enum {
    EXIT_GOOD = DW_EXIT_GOOD,
    EXIT_ASKED_WRONGLY = DW_EXIT_ASKED_WRONGLY,
    EXIT_ENVIRONMENT = DW_EXIT_ENVIRONMENT
};

/* What an error of a node means for the program that asked. */
int option_exit_code(enum dw_error error);

/* For a flag: "0,2,4-7", a mask of logs, or of nodes; at least one. */
bool option_take_logs(void *logs, const char *value, char *mend, size_t mend_size);

enum { OPTION_LOGS_TEXT = 200 };
/* The same backwards, as "0-3,7". */
void option_set_text(uint64_t set, char *text, size_t text_size);
/* As "log 3" or "logs 0-3,7". */
void option_logs_text(uint64_t logs, char *text, size_t text_size);

/* "COORDINATOR:INCARNATION:SEQUENCE"; points may stand for the colons. */
bool option_txn(const char *text, struct dw_txn_id *txn);

#endif
