/* admin.h - between the bytes of unary calls (administration) and plain structs.
 *
 * Encoding appends to a buffer and fails only with DW_ERR_MEMORY, or DW_ERR_ARGUMENT if what is to be sent
 * breaks a rule that the decoder keeps. Decoding validates: what passes has known enums, logs and ids in
 * range, and texts that fit. It returns DW_ERR_MALFORMED if not; an unknown field is malformed, too.
 */
#ifndef DW_WIRE_ADMIN_H
#define DW_WIRE_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "core/log_rule.h"
#include "wire/codec.h"

/* The methods, as dw_rpc_call and on_unary know them. Both kinds of node: */
#define DW_METHOD_IDENTIFY   "Identify"
#define DW_METHOD_STATS      "Stats"
#define DW_METHOD_SHUTDOWN   "Shutdown"
/* Storage nodes: */
#define DW_METHOD_READ_ENTRY "ReadEntry"
#define DW_METHOD_SCAN       "Scan"
#define DW_METHOD_FENCE      "Fence"
#define DW_METHOD_DELAY      "Delay"

enum { DW_ADMIN_NAME = 48 };

/* Requests and replies without a field are empty. */
DW_MUST_CHECK enum dw_error dw_admin_decode_empty(const uint8_t *data, size_t size);

/* A record as ReadEntry and Scan show it. */
struct dw_admin_record {
    uint64_t position;
    struct dw_txn_id txn;
    uint32_t log;
    enum dw_record record; /* DW_RECORD_NONE: the record is damaged */
    uint32_t writer;
    uint32_t incarnation;
    bool coordinator;
    uint64_t participants;
    const uint8_t *redo;
    size_t redo_size;
};
/* The pointers in a record are valid during the call. */
typedef void dw_admin_record_visitor(void *user, const struct dw_admin_record *record);

struct dw_admin_entry {
    enum dw_entry_state state;
    uint64_t first_position; /* 0 if there is none */
};

DW_MUST_CHECK enum dw_error dw_admin_encode_read_entry(struct dw_buffer *buffer, uint32_t log,
                                                       struct dw_txn_id txn);
DW_MUST_CHECK enum dw_error dw_admin_decode_read_entry(const uint8_t *data, size_t size, uint32_t *log,
                                                       struct dw_txn_id *txn);
/* The reply is the entry, followed by its records. */
DW_MUST_CHECK enum dw_error dw_admin_encode_entry(struct dw_buffer *buffer,
                                                  const struct dw_admin_entry *entry);
DW_MUST_CHECK enum dw_error dw_admin_encode_entry_record(struct dw_buffer *buffer,
                                                         const struct dw_admin_record *record);
DW_MUST_CHECK enum dw_error dw_admin_decode_entry(const uint8_t *data, size_t size,
                                                  struct dw_admin_entry *entry,
                                                  dw_admin_record_visitor *on_record, void *user);

struct dw_admin_scan {
    uint32_t log;
    uint64_t from;  /* position */
    uint32_t limit; /* records at most; 0: as many as fit a message */
};

DW_MUST_CHECK enum dw_error dw_admin_encode_scan(struct dw_buffer *buffer, const struct dw_admin_scan *scan);
DW_MUST_CHECK enum dw_error dw_admin_decode_scan(const uint8_t *data, size_t size,
                                                 struct dw_admin_scan *scan);
/* The reply is any number of records, and the position to go on from (0: that was the end of the log). */
DW_MUST_CHECK enum dw_error dw_admin_encode_scanned(struct dw_buffer *buffer,
                                                    const struct dw_admin_record *record);
DW_MUST_CHECK enum dw_error dw_admin_encode_scan_end(struct dw_buffer *buffer, uint64_t next);
DW_MUST_CHECK enum dw_error dw_admin_decode_scanned(const uint8_t *data, size_t size,
                                                    dw_admin_record_visitor *on_record, void *user,
                                                    uint64_t *next);

/* `owner` is the compute node that takes an incarnation of its log. */
DW_MUST_CHECK enum dw_error dw_admin_encode_fence(struct dw_buffer *buffer, uint32_t log, uint32_t owner);
DW_MUST_CHECK enum dw_error dw_admin_decode_fence(const uint8_t *data, size_t size, uint32_t *log,
                                                  uint32_t *owner);
DW_MUST_CHECK enum dw_error dw_admin_encode_fenced(struct dw_buffer *buffer, uint32_t incarnation);
DW_MUST_CHECK enum dw_error dw_admin_decode_fenced(const uint8_t *data, size_t size, uint32_t *incarnation);

/* The delay of a storage node: request and reply. Ranges are judged by the node. */
struct dw_admin_delay {
    bool set; /* request: change it; false: only tell */
    double mean_ms;
    char distribution[DW_ADMIN_NAME];
    double parameter;
};

DW_MUST_CHECK enum dw_error dw_admin_encode_delay(struct dw_buffer *buffer,
                                                  const struct dw_admin_delay *delay);
DW_MUST_CHECK enum dw_error dw_admin_decode_delay(const uint8_t *data, size_t size,
                                                  struct dw_admin_delay *delay);
DW_MUST_CHECK enum dw_error dw_admin_encode_delayed(struct dw_buffer *buffer,
                                                    const struct dw_admin_delay *delay);
DW_MUST_CHECK enum dw_error dw_admin_decode_delayed(const uint8_t *data, size_t size,
                                                    struct dw_admin_delay *delay);

typedef void dw_admin_stat_visitor(void *user, const char *name, uint64_t value);

DW_MUST_CHECK enum dw_error dw_admin_encode_stats_request(struct dw_buffer *buffer, bool reset);
DW_MUST_CHECK enum dw_error dw_admin_decode_stats_request(const uint8_t *data, size_t size, bool *reset);
/* The reply is any number of these. */
DW_MUST_CHECK enum dw_error dw_admin_encode_stat(struct dw_buffer *buffer, const char *name, uint64_t value);
DW_MUST_CHECK enum dw_error dw_admin_decode_stats(const uint8_t *data, size_t size,
                                                  dw_admin_stat_visitor *on_stat, void *user);

struct dw_admin_identity {
    char role[DW_ADMIN_NAME]; /* "storage", "compute" */
    uint32_t node;
    char run_id[DW_MAX_RUN_ID + 1];
    char version[DW_ADMIN_NAME];
    uint64_t pid;
};

DW_MUST_CHECK enum dw_error dw_admin_encode_identity(struct dw_buffer *buffer,
                                                     const struct dw_admin_identity *identity);
DW_MUST_CHECK enum dw_error dw_admin_decode_identity(const uint8_t *data, size_t size,
                                                     struct dw_admin_identity *identity);

#endif
