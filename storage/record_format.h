/* record_format.h - how records and fences look as keys and values on disk.
 *
 * Key of a record: log (2 bytes), position (8), transaction (coordinator 4, incarnation 4, sequence 8), all
 * big-endian, so that keys sort by log and position, and a record whose value is damaged still names its
 * transaction. Value: check (8), participants (8), writer (4), incarnation (4), record (1), flags (1),
 * little-endian, then redo. Key of a fence: 'f', log (2), incarnation (4), big-endian. Value: check (8),
 * position (8), little-endian. The check is XXH3 over the key and the rest of the value.
 */
#ifndef DW_STORAGE_RECORD_FORMAT_H
#define DW_STORAGE_RECORD_FORMAT_H

#include "storage/log_store.h"

enum {
    DW_RECORD_KEY_SIZE = 26,
    DW_RECORD_HEAD_SIZE = 26, /* of a value, before its redo */
    DW_FENCE_KEY_SIZE = 7,
    DW_FENCE_VALUE_SIZE = 16,
};

/* A hash of what a record carries, which tells whether a repeated vote is the same one. */
uint64_t dw_record_content(uint64_t participants, const uint8_t *redo, size_t redo_size);

void dw_record_key_encode(const struct dw_stored_record *record, uint8_t key[DW_RECORD_KEY_SIZE]);

/* The part of the value before the redo. The record's redo is read for the check. */
void dw_record_head_encode(const struct dw_stored_record *record, const uint8_t key[DW_RECORD_KEY_SIZE],
                           uint8_t head[DW_RECORD_HEAD_SIZE]);

/* The smallest key of a log from this position on. */
void dw_record_key_first(uint32_t log, uint64_t position, uint8_t key[DW_RECORD_KEY_SIZE]);

/* Reads a key of the database. False: it isn't a record's. */
bool dw_record_key_decode(const uint8_t *key, size_t size, struct dw_stored_record *record);

/* Reads key and value; redo points into the value. A value that fails its check, or says what cannot be, sets
 * `damaged`. False: the key isn't a record's. */
bool dw_record_decode(const uint8_t *key, size_t key_size, const uint8_t *value, size_t value_size,
                      struct dw_stored_record *record);

void dw_fence_encode(const struct dw_stored_fence *fence, uint8_t key[DW_FENCE_KEY_SIZE],
                     uint8_t value[DW_FENCE_VALUE_SIZE]);

/* DW_ERR_MISSING: the key isn't a fence's. DW_ERR_CORRUPT: its value fails the check. */
DW_MUST_CHECK enum dw_error dw_fence_decode(const uint8_t *key, size_t key_size, const uint8_t *value,
                                            size_t value_size, struct dw_stored_fence *fence);

#endif
