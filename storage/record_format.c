#include "storage/record_format.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/limits.h"

#define FLAG_COORDINATOR 1u
#define FENCE_TAG        'f'

static uint8_t *put_be16(uint8_t *at, uint16_t value)
{
    value = htobe16(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static uint8_t *put_be32(uint8_t *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static uint8_t *put_be64(uint8_t *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static uint16_t get_be16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return be16toh(value);
}

static uint32_t get_be32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static uint64_t get_be64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return be64toh(value);
}

static uint8_t *put_le32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static uint8_t *put_le64(uint8_t *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static uint32_t get_le32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static uint64_t get_le64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

uint64_t dw_record_content(uint64_t participants, const uint8_t *redo, size_t redo_size)
{
    return XXH3_64bits_withSeed(redo_size > 0 ? (const void *)redo : "", redo_size, participants);
}

/* The redo is hashed alone, so that it need not be copied behind the head first. */
static uint64_t value_check(const uint8_t *key, size_t key_size, const uint8_t *rest, size_t rest_size,
                            const uint8_t *redo, size_t redo_size)
{
    uint8_t joined[DW_RECORD_KEY_SIZE + DW_RECORD_HEAD_SIZE];
    DW_ASSERT(key_size + rest_size <= sizeof joined);
    memcpy(joined, key, key_size);
    memcpy(joined + key_size, rest, rest_size);
    uint64_t redo_hash = dw_record_content(redo_size, redo, redo_size);
    return XXH3_64bits_withSeed(joined, key_size + rest_size, redo_hash);
}

void dw_record_key_encode(const struct dw_stored_record *record, uint8_t key[DW_RECORD_KEY_SIZE])
{
    DW_ASSERT(record->log < DW_MAX_NODES);
    uint8_t *at = put_be16(key, (uint16_t)record->log);
    at = put_be64(at, record->position);
    at = put_be32(at, record->txn.coordinator);
    at = put_be32(at, record->txn.incarnation);
    put_be64(at, record->txn.sequence);
}

void dw_record_head_encode(const struct dw_stored_record *record, const uint8_t key[DW_RECORD_KEY_SIZE],
                           uint8_t head[DW_RECORD_HEAD_SIZE])
{
    uint8_t *at = put_le64(head + 8, record->participants);
    at = put_le32(at, record->writer);
    at = put_le32(at, record->incarnation);
    *at++ = (uint8_t)record->record;
    *at = record->coordinator ? FLAG_COORDINATOR : 0;
    put_le64(head, value_check(key, DW_RECORD_KEY_SIZE, head + 8, DW_RECORD_HEAD_SIZE - 8, record->redo,
                               record->redo_size));
}

void dw_record_key_first(uint32_t log, uint64_t position, uint8_t key[DW_RECORD_KEY_SIZE])
{
    memset(key, 0, DW_RECORD_KEY_SIZE);
    put_be64(put_be16(key, (uint16_t)log), position);
}

bool dw_record_key_decode(const uint8_t *key, size_t size, struct dw_stored_record *record)
{
    *record = (struct dw_stored_record){0};
    if (size != DW_RECORD_KEY_SIZE || get_be16(key) >= DW_MAX_NODES) {
        return false;
    }
    record->log = get_be16(key);
    record->position = get_be64(key + 2);
    record->txn.coordinator = get_be32(key + 10);
    record->txn.incarnation = get_be32(key + 14);
    record->txn.sequence = get_be64(key + 18);
    return true;
}

bool dw_record_decode(const uint8_t *key, size_t key_size, const uint8_t *value, size_t value_size,
                      struct dw_stored_record *record)
{
    if (!dw_record_key_decode(key, key_size, record)) {
        return false;
    }
    record->damaged = true;
    if (value_size < DW_RECORD_HEAD_SIZE) {
        return true;
    }
    const uint8_t *redo = value + DW_RECORD_HEAD_SIZE;
    size_t redo_size = value_size - DW_RECORD_HEAD_SIZE;
    if (get_le64(value) != value_check(key, key_size, value + 8, DW_RECORD_HEAD_SIZE - 8, redo, redo_size)) {
        return true;
    }
    uint8_t kind = value[24];
    if (kind == DW_RECORD_NONE || kind > DW_RECORD_END || value[25] > FLAG_COORDINATOR) {
        return true;
    }
    record->damaged = false;
    record->participants = get_le64(value + 8);
    record->writer = get_le32(value + 16);
    record->incarnation = get_le32(value + 20);
    record->record = (enum dw_record)kind;
    record->coordinator = value[25] == FLAG_COORDINATOR;
    record->redo = redo;
    record->redo_size = redo_size;
    return true;
}

void dw_fence_encode(const struct dw_stored_fence *fence, uint8_t key[DW_FENCE_KEY_SIZE],
                     uint8_t value[DW_FENCE_VALUE_SIZE])
{
    key[0] = FENCE_TAG;
    put_be32(put_be16(key + 1, (uint16_t)fence->log), fence->incarnation);
    put_le64(value + 8, fence->position);
    put_le64(value, value_check(key, DW_FENCE_KEY_SIZE, value + 8, 8, NULL, 0));
}

enum dw_error dw_fence_decode(const uint8_t *key, size_t key_size, const uint8_t *value, size_t value_size,
                              struct dw_stored_fence *fence)
{
    *fence = (struct dw_stored_fence){0};
    if (key_size != DW_FENCE_KEY_SIZE || key[0] != FENCE_TAG) {
        return DW_ERR_MISSING;
    }
    fence->log = get_be16(key + 1);
    fence->incarnation = get_be32(key + 3);
    if (fence->log >= DW_MAX_NODES || value_size != DW_FENCE_VALUE_SIZE ||
        get_le64(value) != value_check(key, key_size, value + 8, 8, NULL, 0)) {
        return DW_ERR_CORRUPT;
    }
    fence->position = get_le64(value + 8);
    return DW_OK;
}
