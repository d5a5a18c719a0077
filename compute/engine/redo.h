/* redo.h - a write set: the after-images of the fields that a transaction changed, in the bytes that a log
 * record holds.
 *
 * One form serves as write buffer, as redo in a log record and as input of an engine's `apply`: a transaction
 * appends its changes while it executes, its log record carries the bytes as they are, and recovery applies
 * them unchanged. Pure code; the simulator runs the same.
 *
 * Format: nothing at all if there are no changes; else the byte DW_REDO_FORMAT, then for each change in the
 * order of writing: table, key, field and size as LEB128 numbers of the shortest form, and the value. A later
 * change of the same field wins. About 6 bytes beside a field's value.
 */
#ifndef DW_COMPUTE_ENGINE_REDO_H
#define DW_COMPUTE_ENGINE_REDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "workloads/txn.h"

enum { DW_REDO_FORMAT = 1 };

struct dw_change {
    uint64_t key;
    uint32_t table;
    uint32_t field;
    const uint8_t *value; /* the whole field as it is afterwards */
    size_t value_bytes;
};

/* A write set that grows. Zero is empty and valid. */
struct dw_redo {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/* Appends a change; the value is copied. DW_ERR_TOO_LARGE: the write set would exceed DW_MAX_REDO;
 * DW_ERR_MEMORY. On an error nothing changed. */
DW_MUST_CHECK enum dw_error dw_redo_add(struct dw_redo *redo, const struct dw_change *change);

/* Empties it and keeps the memory for the next transaction. */
void dw_redo_clear(struct dw_redo *redo);
void dw_redo_free(struct dw_redo *redo);

/* Puts the changes of one row into a copy of it, so that a transaction reads what it wrote. The changes must
 * fit the table: they passed dw_engine_check_write, or come from an engine that accepted them. */
void dw_redo_overlay(const struct dw_redo *redo, uint32_t table, uint64_t key, const struct dw_table *schema,
                     uint8_t *row);

/* Reads changes one by one, from any bytes: total, and never past their end. */
struct dw_redo_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool started;
};

enum dw_redo_read {
    DW_REDO_CHANGE = 1, /* *change is set; its value points into the bytes */
    DW_REDO_END,
    DW_REDO_DAMAGED, /* not what dw_redo_add writes; the reader stays here */
};

void dw_redo_reader_init(struct dw_redo_reader *reader, const uint8_t *data, size_t size);
enum dw_redo_read dw_redo_next(struct dw_redo_reader *reader, struct dw_change *change);

#endif
