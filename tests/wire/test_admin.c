/* Does every administration message come back as it was sent, also with all fields at their defaults; are
 * rules kept on both sides; and is decoding total over damaged bytes? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/random.h"
#include "wire/admin.h"

enum { ROUNDS = 20000, FRAME_MAX = 512 };

static const struct dw_txn_id txn_a = {.coordinator = 3, .incarnation = 7, .sequence = UINT64_MAX};

static const struct dw_admin_record record_a = {
    .position = 99,
    .txn = {.coordinator = 63, .incarnation = UINT32_MAX, .sequence = 5},
    .log = 63,
    .record = DW_RECORD_COMMIT,
    .writer = 62,
    .incarnation = 4,
    .coordinator = true,
    .participants = UINT64_MAX,
    .redo = (const uint8_t *)"redo",
    .redo_size = 4,
};

struct seen {
    unsigned records;
    unsigned stats;
    uint64_t bytes;
    struct dw_admin_record last;
    uint64_t last_value;
    char last_name[DW_ADMIN_NAME];
};

static void on_record(void *user, const struct dw_admin_record *record)
{
    struct seen *seen = user;
    seen->records++;
    seen->last = *record;
    for (size_t i = 0; i < record->redo_size; i++) {
        seen->bytes += record->redo[i];
    }
}

static void on_stat(void *user, const char *name, uint64_t value)
{
    struct seen *seen = user;
    seen->stats++;
    seen->last_value = value;
    assert_true(strlen(name) < sizeof seen->last_name);
    memcpy(seen->last_name, name, strlen(name) + 1);
}

static void assert_record_a(const struct dw_admin_record *record)
{
    assert_int_equal(record->position, record_a.position);
    assert_true(dw_txn_id_equal(record->txn, record_a.txn));
    assert_int_equal(record->log, record_a.log);
    assert_int_equal(record->record, record_a.record);
    assert_int_equal(record->writer, record_a.writer);
    assert_int_equal(record->incarnation, record_a.incarnation);
    assert_int_equal(record->coordinator, record_a.coordinator);
    assert_int_equal(record->participants, record_a.participants);
    assert_int_equal(record->redo_size, record_a.redo_size);
}

static void test_read_entry(void **state)
{
    struct dw_buffer buffer = {0};
    struct seen seen = {0};
    uint32_t log;
    struct dw_txn_id txn;
    (void)state;
    assert_int_equal(dw_admin_encode_read_entry(&buffer, 63, txn_a), DW_OK);
    assert_int_equal(dw_admin_decode_read_entry(buffer.data, buffer.size, &log, &txn), DW_OK);
    assert_int_equal(log, 63);
    assert_true(dw_txn_id_equal(txn, txn_a));
    buffer.size = 0;
    struct dw_admin_entry entry = {.state = DW_ENTRY_COORD_COMMIT, .first_position = 17};
    struct dw_admin_entry found;
    assert_int_equal(dw_admin_encode_entry(&buffer, &entry), DW_OK);
    assert_int_equal(dw_admin_encode_entry_record(&buffer, &record_a), DW_OK);
    assert_int_equal(dw_admin_encode_entry_record(&buffer, &record_a), DW_OK);
    assert_int_equal(dw_admin_decode_entry(buffer.data, buffer.size, &found, on_record, &seen), DW_OK);
    assert_int_equal(found.state, entry.state);
    assert_int_equal(found.first_position, 17);
    assert_int_equal(seen.records, 2);
    assert_record_a(&seen.last);
    dw_buffer_free(&buffer);
}

static void test_scan(void **state)
{
    struct dw_buffer buffer = {0};
    struct seen seen = {0};
    struct dw_admin_scan scan = {.log = 5, .from = UINT64_MAX, .limit = 8};
    struct dw_admin_scan found;
    uint64_t next;
    (void)state;
    assert_int_equal(dw_admin_encode_scan(&buffer, &scan), DW_OK);
    assert_int_equal(dw_admin_decode_scan(buffer.data, buffer.size, &found), DW_OK);
    assert_int_equal(found.log, scan.log);
    assert_int_equal(found.from, scan.from);
    assert_int_equal(found.limit, scan.limit);
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_scanned(&buffer, &record_a), DW_OK);
    assert_int_equal(dw_admin_encode_scan_end(&buffer, 41), DW_OK);
    assert_int_equal(dw_admin_decode_scanned(buffer.data, buffer.size, on_record, &seen, &next), DW_OK);
    assert_int_equal(next, 41);
    assert_int_equal(seen.records, 1);
    assert_record_a(&seen.last);
    dw_buffer_free(&buffer);
}

static void test_fence_delay_stats_identity(void **state)
{
    struct dw_buffer buffer = {0};
    struct seen seen = {0};
    uint32_t log;
    uint32_t owner;
    uint32_t incarnation;
    bool reset;
    struct dw_admin_delay delay = {
        .set = true, .mean_ms = 2.5, .distribution = "lognormal", .parameter = 0.25};
    struct dw_admin_delay found_delay;
    struct dw_admin_identity identity = {
        .role = "storage", .node = 9, .run_id = "r-1", .version = "0.1.0", .pid = 77};
    struct dw_admin_identity found;
    (void)state;
    assert_int_equal(dw_admin_encode_fence(&buffer, 4, 5), DW_OK);
    assert_int_equal(dw_admin_decode_fence(buffer.data, buffer.size, &log, &owner), DW_OK);
    assert_int_equal(log, 4);
    assert_int_equal(owner, 5);
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_fenced(&buffer, 6), DW_OK);
    assert_int_equal(dw_admin_decode_fenced(buffer.data, buffer.size, &incarnation), DW_OK);
    assert_int_equal(incarnation, 6);
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_delay(&buffer, &delay), DW_OK);
    assert_int_equal(dw_admin_decode_delay(buffer.data, buffer.size, &found_delay), DW_OK);
    assert_true(found_delay.set);
    assert_string_equal(found_delay.distribution, "lognormal");
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_delayed(&buffer, &delay), DW_OK);
    assert_int_equal(dw_admin_decode_delayed(buffer.data, buffer.size, &found_delay), DW_OK);
    assert_string_equal(found_delay.distribution, "lognormal");
    assert_true(found_delay.mean_ms > 2.4 && found_delay.parameter < 0.3);
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_stats_request(&buffer, true), DW_OK);
    assert_int_equal(dw_admin_decode_stats_request(buffer.data, buffer.size, &reset), DW_OK);
    assert_true(reset);
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_stat(&buffer, "syncs", 3), DW_OK);
    assert_int_equal(dw_admin_encode_stat(&buffer, "batches", UINT64_MAX), DW_OK);
    assert_int_equal(dw_admin_decode_stats(buffer.data, buffer.size, on_stat, &seen), DW_OK);
    assert_int_equal(seen.stats, 2);
    assert_string_equal(seen.last_name, "batches");
    assert_int_equal(seen.last_value, UINT64_MAX);
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_identity(&buffer, &identity), DW_OK);
    assert_int_equal(dw_admin_decode_identity(buffer.data, buffer.size, &found), DW_OK);
    assert_string_equal(found.role, identity.role);
    assert_string_equal(found.run_id, identity.run_id);
    assert_string_equal(found.version, identity.version);
    assert_int_equal(found.node, identity.node);
    assert_int_equal(found.pid, identity.pid);
    dw_buffer_free(&buffer);
}

/* Such a message has no byte at all. */
static void test_defaults(void **state)
{
    struct dw_buffer buffer = {0};
    struct dw_admin_scan scan = {0};
    struct dw_admin_entry entry = {0};
    uint32_t log = 1;
    uint32_t owner = 1;
    uint64_t next = 1;
    bool reset = true;
    (void)state;
    assert_int_equal(dw_admin_encode_fence(&buffer, 0, 0), DW_OK);
    assert_int_equal(dw_admin_encode_scan(&buffer, &scan), DW_OK);
    assert_int_equal(dw_admin_encode_entry(&buffer, &entry), DW_OK);
    assert_int_equal(dw_admin_encode_scan_end(&buffer, 0), DW_OK);
    assert_int_equal(dw_admin_encode_stats_request(&buffer, false), DW_OK);
    assert_int_equal(buffer.size, 0);
    assert_int_equal(dw_admin_decode_fence(NULL, 0, &log, &owner), DW_OK);
    assert_int_equal(log + owner, 0);
    assert_int_equal(dw_admin_decode_scan(NULL, 0, &scan), DW_OK);
    assert_int_equal(dw_admin_decode_entry(NULL, 0, &entry, on_record, NULL), DW_OK);
    assert_int_equal(dw_admin_decode_scanned(NULL, 0, on_record, NULL, &next), DW_OK);
    assert_int_equal(next, 0);
    assert_int_equal(dw_admin_decode_stats_request(NULL, 0, &reset), DW_OK);
    assert_false(reset);
    assert_int_equal(dw_admin_decode_empty(NULL, 0), DW_OK);
    dw_buffer_free(&buffer);
}

static void test_rules(void **state)
{
    struct dw_buffer buffer = {0};
    struct dw_admin_scan scan = {.log = DW_MAX_NODES};
    struct dw_admin_record record = record_a;
    struct dw_admin_delay delay = {.distribution = "line\nbreak"};
    struct dw_txn_id zero = {0};
    struct dw_txn_id txn;
    struct seen seen = {0};
    uint32_t number;
    uint64_t next;
    (void)state;
    assert_int_equal(dw_admin_encode_read_entry(&buffer, DW_MAX_NODES, txn_a), DW_ERR_ARGUMENT);
    assert_int_equal(dw_admin_encode_read_entry(&buffer, 0, zero), DW_ERR_ARGUMENT);
    assert_int_equal(dw_admin_encode_scan(&buffer, &scan), DW_ERR_ARGUMENT);
    assert_int_equal(dw_admin_encode_fence(&buffer, 0, DW_MAX_NODES), DW_ERR_ARGUMENT);
    assert_int_equal(buffer.size, 0);
    assert_int_equal(dw_admin_decode_read_entry(NULL, 0, &number, &txn), DW_ERR_MALFORMED);
    assert_int_equal(dw_admin_decode_fenced(NULL, 0, &number), DW_ERR_MALFORMED);
    assert_int_equal(dw_admin_decode_empty((const uint8_t *)"\x08\x01", 2), DW_ERR_MALFORMED);
    /* Of two records the second is wrong: none is visited. */
    record.log = DW_MAX_NODES;
    assert_int_equal(dw_admin_encode_scanned(&buffer, &record_a), DW_OK);
    assert_int_equal(dw_admin_encode_scanned(&buffer, &record), DW_OK);
    assert_int_equal(dw_admin_decode_scanned(buffer.data, buffer.size, on_record, &seen, &next),
                     DW_ERR_MALFORMED);
    assert_int_equal(seen.records, 0);
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_delay(&buffer, &delay), DW_OK);
    assert_int_equal(dw_admin_decode_delay(buffer.data, buffer.size, &delay), DW_ERR_MALFORMED);
    buffer.size = 0;
    assert_int_equal(dw_admin_encode_stat(&buffer, "a name that is longer than any statistic may have it", 1),
                     DW_OK);
    assert_int_equal(dw_admin_decode_stats(buffer.data, buffer.size, on_stat, &seen), DW_ERR_MALFORMED);
    assert_int_equal(seen.stats, 0);
    dw_buffer_free(&buffer);
}

/* Every decoder gets the bytes; the sanitizers watch. */
static void decode_all(const uint8_t *data, size_t size, struct seen *seen)
{
    uint32_t number[2];
    uint64_t next;
    bool reset;
    struct dw_txn_id txn;
    struct dw_admin_scan scan;
    struct dw_admin_entry entry;
    struct dw_admin_delay delay;
    struct dw_admin_identity identity;
    enum dw_error errors[] = {
        dw_admin_decode_read_entry(data, size, number, &txn),
        dw_admin_decode_entry(data, size, &entry, on_record, seen),
        dw_admin_decode_scan(data, size, &scan),
        dw_admin_decode_scanned(data, size, on_record, seen, &next),
        dw_admin_decode_fence(data, size, number, number + 1),
        dw_admin_decode_fenced(data, size, number),
        dw_admin_decode_delay(data, size, &delay),
        dw_admin_decode_delayed(data, size, &delay),
        dw_admin_decode_stats_request(data, size, &reset),
        dw_admin_decode_stats(data, size, on_stat, seen),
        dw_admin_decode_identity(data, size, &identity),
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        assert_true(errors[i] == DW_OK || errors[i] == DW_ERR_MALFORMED);
    }
}

static void test_damage(void **state)
{
    struct dw_random random;
    struct dw_buffer buffer = {0};
    struct seen seen = {0};
    uint8_t frame[FRAME_MAX];
    (void)state;
    dw_random_init(&random, 20240607);
    for (int round = 0; round < ROUNDS; round++) {
        buffer.size = 0;
        if (round % 3 != 0) {
            assert_int_equal(round % 3 == 1 ? dw_admin_encode_scanned(&buffer, &record_a)
                                            : dw_admin_encode_stat(&buffer, "syncs", 3),
                             DW_OK);
        }
        if (buffer.size > 0) {
            memcpy(frame, buffer.data, buffer.size);
        }
        size_t size =
            buffer.size > 0 ? 1 + dw_random_below(&random, buffer.size) : dw_random_below(&random, 64);
        for (uint64_t i = buffer.size > 0 ? dw_random_below(&random, 4) : size; i > 0; i--) {
            frame[dw_random_below(&random, size)] = (uint8_t)dw_random_next(&random);
        }
        decode_all(frame, size, &seen);
    }
    assert_true(seen.records > 0 && seen.stats > 0);
    dw_buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_entry),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_fence_delay_stats_identity),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
