/* recovery.h - what a restarted node makes of its log, record by record, in the order of positions.
 *
 * A write set is applied as soon as its transaction is known to be committed, and dropped as soon as it is
 * known to be aborted; that this is not the order of the votes does no harm, since each field remembers the
 * position last applied (compute/engine/engine.h). Only when the log has come to its end is the rest in
 * doubt: it is locked again and handed to the core.
 *
 * Memory: one page of the scan (at most DW_MAX_MESSAGE), and for each transaction that the records so far
 * leave open its participants and, until its decision is known, its redo (at most DW_MAX_REDO). Open at one
 * place of the log are the transactions that were under way at once when it was written, and those that
 * earlier crashes left in doubt. So the bound is that of the node's work, and not the length of the log.
 *
 * A transaction that has ended is forgotten, so a record that comes after its decision, which the log rule
 * forbids, is not seen here: the store knows every entry, and judges that when it starts.
 */
#ifndef DW_COMPUTE_RECOVERY_H
#define DW_COMPUTE_RECOVERY_H

#include "compute/runtime.h"
#include "wire/admin.h"

struct open_entry;

struct recovery {
    struct runtime *runtime; /* its node scans */
    struct open_entry *open; /* a hash table that keeps the order of first records */
    size_t open_count;
    size_t redo_bytes; /* of all that is kept */
    char *text;        /* one line on an error; the caller's */
    size_t text_size;
};

void recovery_init(struct recovery *recovery, struct runtime *runtime, char *text, size_t text_size);

/* Takes the next record of the own log; positions rise. DW_ERR_CORRUPT: it cannot be applied, or another
 * protocol wrote it; DW_ERR_MEMORY. Then `text` says it in one line, and nothing more may be taken. */
DW_MUST_CHECK enum dw_error recovery_take(struct recovery *recovery, const struct dw_admin_record *record);

/* That was the log: locks what is in doubt, and gives what is open to the core. DW_ERR_CORRUPT: a vote that
 * could not be applied later; DW_ERR_FULL: more rows in doubt than the lock table holds; DW_ERR_MEMORY. */
DW_MUST_CHECK enum dw_error recovery_finish(struct recovery *recovery);

void recovery_close(struct recovery *recovery);

#endif
