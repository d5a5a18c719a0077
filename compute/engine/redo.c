#include "compute/engine/redo.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"

enum {
    MAX_NUMBER_BYTES = 10, /* of a 64-bit number in groups of 7 bits */
    MAX_HEADER_BYTES = 1 + 4 * MAX_NUMBER_BYTES,
};

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
    while (number >= 0x80) {
        *at++ = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    *at++ = (uint8_t)number;
    return at;
}

static enum dw_error reserve(struct dw_redo *redo, size_t needed)
{
    if (needed <= redo->capacity) {
        return DW_OK;
    }
    size_t capacity = redo->capacity == 0 ? 1024 : redo->capacity;
    while (capacity < needed) {
        capacity *= 2;
    }
    uint8_t *data = realloc(redo->data, capacity);
    if (data == NULL) {
        return DW_ERR_MEMORY;
    }
    redo->data = data;
    redo->capacity = capacity;
    return DW_OK;
}

enum dw_error dw_redo_add(struct dw_redo *redo, const struct dw_change *change)
{
    uint8_t header[MAX_HEADER_BYTES];
    uint8_t *end = header;
    if (redo->size == 0) {
        *end++ = DW_REDO_FORMAT;
    }
    end = put_number(end, change->table);
    end = put_number(end, change->key);
    end = put_number(end, change->field);
    end = put_number(end, change->value_bytes);
    size_t header_bytes = (size_t)(end - header);
    if (change->value_bytes > DW_MAX_REDO || redo->size + header_bytes + change->value_bytes > DW_MAX_REDO) {
        return DW_ERR_TOO_LARGE;
    }
    enum dw_error error = reserve(redo, redo->size + header_bytes + change->value_bytes);
    if (error != DW_OK) {
        return error;
    }
    memcpy(redo->data + redo->size, header, header_bytes);
    redo->size += header_bytes;
    if (change->value_bytes > 0) {
        memcpy(redo->data + redo->size, change->value, change->value_bytes);
    }
    redo->size += change->value_bytes;
    return DW_OK;
}

void dw_redo_clear(struct dw_redo *redo)
{
    redo->size = 0;
}

void dw_redo_free(struct dw_redo *redo)
{
    free(redo->data);
    *redo = (struct dw_redo){0};
}

void dw_redo_overlay(const struct dw_redo *redo, uint32_t table, uint64_t key, const struct dw_table *schema,
                     uint8_t *row)
{
    struct dw_redo_reader reader;
    dw_redo_reader_init(&reader, redo->data, redo->size);
    struct dw_change change;
    enum dw_redo_read read;
    while ((read = dw_redo_next(&reader, &change)) == DW_REDO_CHANGE) {
        if (change.table != table || change.key != key) {
            continue;
        }
        DW_ASSERT(change.field < schema->field_count);
        DW_ASSERT(change.value_bytes == dw_table_field_bytes(schema, change.field));
        memcpy(row + schema->offsets[change.field], change.value, change.value_bytes);
    }
    DW_ASSERT(read == DW_REDO_END);
}

/* --- reading --- */

void dw_redo_reader_init(struct dw_redo_reader *reader, const uint8_t *data, size_t size)
{
    *reader = (struct dw_redo_reader){.at = data, .end = size > 0 ? data + size : data};
}

/* Reads a number of at most `max`; false if the bytes end before it does, or it has a shorter form. */
static bool get_number(const uint8_t **at, const uint8_t *end, uint64_t max, uint64_t *number)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (*at == end) {
            return false;
        }
        uint8_t byte = *(*at)++;
        uint64_t bits = byte & 0x7f;
        if (bits << shift >> shift != bits) {
            return false; /* more than 64 bits */
        }
        value |= bits << shift;
        if (byte < 0x80) {
            *number = value;
            return value <= max && (byte != 0 || shift == 0);
        }
    }
    return false;
}

static bool get_change(const uint8_t **at, const uint8_t *end, struct dw_change *change)
{
    uint64_t table, key, field, bytes;
    if (!get_number(at, end, UINT32_MAX, &table) || !get_number(at, end, UINT64_MAX, &key) ||
        !get_number(at, end, UINT32_MAX, &field) || !get_number(at, end, DW_MAX_REDO, &bytes)) {
        return false;
    }
    if (bytes > (size_t)(end - *at)) {
        return false;
    }
    *change = (struct dw_change){
        .key = key,
        .table = (uint32_t)table,
        .field = (uint32_t)field,
        .value = *at,
        .value_bytes = (size_t)bytes,
    };
    *at += bytes;
    return true;
}

enum dw_redo_read dw_redo_next(struct dw_redo_reader *reader, struct dw_change *change)
{
    if (reader->at == reader->end) {
        return DW_REDO_END;
    }
    const uint8_t *at = reader->at;
    if (!reader->started && *at++ != DW_REDO_FORMAT) {
        return DW_REDO_DAMAGED;
    }
    if (!get_change(&at, reader->end, change)) {
        return DW_REDO_DAMAGED;
    }
    reader->started = true;
    reader->at = at;
    return DW_REDO_CHANGE;
}
