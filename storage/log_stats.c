#include "storage/log_stats.h"

#include <ctype.h>
#include <stdio.h>

struct list {
    struct dw_log_stat *stats;
    size_t capacity;
    size_t count;
};

static void add(struct list *list, const char *prefix, const char *name, uint64_t value)
{
    if (list->count < list->capacity) {
        struct dw_log_stat *stat = &list->stats[list->count];
        snprintf(stat->name, sizeof stat->name, "%s%s", prefix, name);
        for (char *c = stat->name; *c != '\0'; c++) {
            *c = (char)tolower((unsigned char)*c);
        }
        stat->value = value;
    }
    list->count++;
}

size_t dw_log_stats_list(const struct dw_log_counters *counters, const struct dw_log_gauges *gauges,
                         struct dw_log_stat *stats, size_t capacity)
{
    struct list list = {.stats = stats, .capacity = capacity};
    for (unsigned ask = 0; ask < DW_ASKS; ask++) {
        add(&list, "requests.", dw_ask_name((enum dw_ask)ask), counters->requests[ask]);
    }
    for (unsigned answer = 0; answer < DW_ANSWERS; answer++) {
        add(&list, "answers.", dw_answer_name((enum dw_answer)answer), counters->answers[answer]);
    }
    add(&list, "", "fences", counters->fences);
    add(&list, "", "appended_records", counters->records);
    add(&list, "", "appended_redo_bytes", counters->redo_bytes);
    add(&list, "", "batches", counters->batches);
    add(&list, "", "syncs", counters->syncs);
    add(&list, "", "largest_batch", counters->largest_batch);
    add(&list, "", "conflicts", counters->conflicts);
    add(&list, "", "entries", gauges->entries);
    add(&list, "", "table_bytes", gauges->table_bytes);
    add(&list, "", "queue_bytes", gauges->queue_bytes);
    add(&list, "", "refused_full", gauges->refused);
    add(&list, "", "damaged_at_start", gauges->damaged_at_start);
    add(&list, "", "durable_position", gauges->durable_position);
    return list.count;
}
