/* log_stats.h - the counters of a log service. Not synchronised: the service changes and reads them under its
 * lock. */
#ifndef DW_STORAGE_LOG_STATS_H
#define DW_STORAGE_LOG_STATS_H

#include "storage/log_service.h"

struct dw_log_counters {
    uint64_t requests[DW_ASKS];
    uint64_t answers[DW_ANSWERS];
    uint64_t fences;
    uint64_t records;
    uint64_t redo_bytes;
    uint64_t batches;
    uint64_t syncs;
    uint64_t largest_batch; /* records and fences of one batch */
    uint64_t conflicts;
};

/* What is as it is, and isn't reset. */
struct dw_log_gauges {
    uint64_t entries;
    uint64_t table_bytes;
    uint64_t queue_bytes;
    uint64_t refused;
    uint64_t damaged_at_start;
    uint64_t durable_position;
};

/* Writes at most `capacity` of the numbers and returns how many there are. */
size_t dw_log_stats_list(const struct dw_log_counters *counters, const struct dw_log_gauges *gauges,
                         struct dw_log_stat *stats, size_t capacity);

#endif
