/* options.h - the values of flags, as dogwood-storage and dogwood-ctl have them in common. */
#ifndef DW_STORAGE_OPTIONS_H
#define DW_STORAGE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/id.h"

/* Exit codes of every program. */
enum { EXIT_GOOD = 0, EXIT_VIOLATION = 1, EXIT_ASKED_WRONGLY = 2, EXIT_ENVIRONMENT = 3 };

/* What an error of a node means for the program that asked. */
int option_exit_code(enum dw_error error);

/* A whole decimal number in [low, high], and nothing else. */
bool option_number(const char *text, uint64_t low, uint64_t high, uint64_t *number);

/* "HOST:PORT" or "[V6]:PORT"; port 0 only if `listening`. Whether the host exists is seen when it is used. */
bool option_address(const char *text, bool listening);

/* 1 to DW_MAX_RUN_ID letters, digits, '.', '_', '-'. */
bool option_run_id(const char *text);

/* "0,2,4-7": a mask of logs, or of nodes; at least one. */
bool option_logs(const char *text, uint64_t *logs);
enum { OPTION_LOGS_TEXT = 200 };
/* The same backwards, as "0-3,7". */
void option_set_text(uint64_t set, char *text, size_t text_size);
/* As "log 3" or "logs 0-3,7". */
void option_logs_text(uint64_t logs, char *text, size_t text_size);

/* "COORDINATOR:INCARNATION:SEQUENCE"; points may stand for the colons. */
bool option_txn(const char *text, struct dw_txn_id *txn);

/* The known word that is nearest to `text`, or NULL if none is near; `words` ends with NULL. */
const char *option_nearest(const char *text, const char *const *words);

#endif
