/* log_store.h - where the records of a storage node lie: an append-only sequence for each log, durable or
 * not.
 *
 * A store knows nothing of the log rule; storage/log_service.h applies it. All functions but read and scan
 * are called from one thread, the log writer; read and scan may run on other threads at the same time.
 */
#ifndef DW_STORAGE_LOG_STORE_H
#define DW_STORAGE_LOG_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/log_rule.h"

/* One record. Positions are given by the log service: they rise over all logs of the storage node, from 1. */
struct dw_stored_record {
    uint64_t position;
    struct dw_txn_id txn;
    uint32_t log;
    enum dw_record record;
    uint32_t writer;      /* compute node that wrote it: another than `log` for a denial on behalf */
    uint32_t incarnation; /* of the writer */
    bool coordinator;     /* a 2PC coordinator's own entry */
    bool damaged;         /* on reading: the record cannot be decoded; only position, log and txn are set */
    uint64_t participants;
    const uint8_t *redo; /* valid during the call */
    size_t redo_size;
};

/* A new incarnation of a log's owner. It takes a position like a record does, so that a lost one is noticed.
 */
struct dw_stored_fence {
    uint64_t position;
    uint32_t log;
    uint32_t incarnation;
};

/* Called for each record of a log in the order of positions; false ends the visit. */
typedef bool dw_record_visitor(void *user, const struct dw_stored_record *record);
typedef void dw_fence_visitor(void *user, const struct dw_stored_fence *fence);

struct dw_log_store;

struct dw_log_store_ops {
    const char *name; /* "memory", "rocksdb" */
    /* Appends all, or none. With `sync` the batch, and everything appended before it, is durable on return.
     * After an error the store must be taken as broken: what the failed batch left is indeterminate. No
     * records and no fences are allowed, with `sync`: then all that was appended before becomes durable. */
    enum dw_error (*append)(struct dw_log_store *store, const struct dw_stored_record *records, size_t count,
                            const struct dw_stored_fence *fences, size_t fence_count, bool sync);
    /* Tells that everything up to this position is about to be acknowledged; the store notes it, so that a
     * later opening can tell that acknowledged records are missing. After an error nothing may be
     * acknowledged. */
    enum dw_error (*acknowledge)(struct dw_log_store *store, uint64_t position);
    /* Visits every fence and then every record, log by log, for the rebuilding of the table. Called once,
     * before all other functions. DW_ERR_CORRUPT if records are missing. Until it succeeds, nothing on disk
     * is changed. */
    enum dw_error (*load)(struct dw_log_store *store, dw_fence_visitor *on_fence,
                          dw_record_visitor *on_record, void *user);
    /* Visits the records of one log from a position on, also those that aren't synced yet. */
    enum dw_error (*scan)(struct dw_log_store *store, uint32_t log, uint64_t from,
                          dw_record_visitor *on_record, void *user);
    void (*close)(struct dw_log_store *store);
    /* The text of the last error, for a message: names the directory and the mend. */
    const char *(*error_text)(const struct dw_log_store *store);
};

/* What every store begins with. */
struct dw_log_store {
    const struct dw_log_store_ops *ops;
};

/* A store that forgets everything at exit. NULL if there is no memory. */
struct dw_log_store *dw_memory_store_open(void);

/* A store over RocksDB in `directory`, made if missing (its parent must exist). Refuses (one line in *text
 * naming the directory and the mend): DW_ERR_LOCKED, another process has it; DW_ERR_CORRUPT, damaged or
 * acknowledged records are missing (storage/README.md); DW_ERR_REFUSED, it belongs to another run id or
 * storage node; DW_ERR_IO. */
DW_MUST_CHECK enum dw_error dw_rocksdb_store_open(const char *directory, const char *run_id,
                                                  uint32_t storage_id, struct dw_log_store **store,
                                                  char *text, size_t text_size);

#endif
