/* acked_file.h - the side file ACKED: the highest position that was ever acknowledged, as a lower bound.
 *
 * It is written after each durable batch and before its answers, without a sync of its own: a killed process
 * leaves it exact, a crash of the machine leaves it at some earlier value. It also carries the lock on the
 * directory.
 */
#ifndef DW_STORAGE_ACKED_FILE_H
#define DW_STORAGE_ACKED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dw_acked_file {
    int fd; /* -1: closed */
    int directory_fd;
    bool made;         /* this opening made the file; it is removed again if nothing gets written */
    bool blank;        /* it was there, without a byte */
    bool present;      /* it holds a position */
    uint64_t position; /* 0 if there is none */
};

/* The line about a damaged file; its argument is the directory. */
#define DW_ACKED_DAMAGED                                                                                     \
    "%s/ACKED is damaged, so it is not known whether acknowledged records are missing: restore it, or "      \
    "remove it to start without this check"

/* Opens or makes the file and locks it. DW_ERR_LOCKED: another process has it; DW_ERR_CORRUPT: it cannot be
 * read (the lock is released); DW_ERR_IO. On failure *text tells, naming the directory and the mend. */
DW_MUST_CHECK enum dw_error dw_acked_file_open(const char *directory, struct dw_acked_file *file, char *text,
                                               size_t text_size);

/* Notes a position. DW_ERR_IO, with errno set: ENOENT if the file was removed, so that the note is lost. */
DW_MUST_CHECK enum dw_error dw_acked_file_write(struct dw_acked_file *file, uint64_t position);

/* Makes the file and its place in the directory durable. DW_ERR_IO, with errno set. */
DW_MUST_CHECK enum dw_error dw_acked_file_sync(struct dw_acked_file *file);

void dw_acked_file_close(struct dw_acked_file *file);

#endif
