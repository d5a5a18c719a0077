#include "compute/stats.h"

#include <inttypes.h>
#include <sys/resource.h>

uint64_t stats_cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void print_histogram(const struct dw_histogram *histogram, FILE *file)
{
    size_t cursor = 0;
    struct dw_histogram_bucket bucket;
    const char *separator = "";
    fprintf(file, "\"hist\":[");
    while (dw_histogram_next(histogram, &cursor, &bucket)) {
        fprintf(file, "%s[%.3f,%" PRIu64 "]", separator, bucket.low_us, bucket.count);
        separator = ",";
    }
    fprintf(file, "],\"max_us\":%.3f,\"clamped_low\":%" PRIu64 ",\"clamped_high\":%" PRIu64,
            (double)histogram->max_ns / 1000.0, histogram->below, histogram->above);
    fprintf(file, ",\"p50_us\":%.3f,\"p90_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f",
            (double)dw_histogram_percentile_ns(histogram, 50) / 1000.0,
            (double)dw_histogram_percentile_ns(histogram, 90) / 1000.0,
            (double)dw_histogram_percentile_ns(histogram, 99) / 1000.0,
            (double)dw_histogram_percentile_ns(histogram, 99.9) / 1000.0);
}

static void print_class(const struct class_stats *class, FILE *file)
{
    fprintf(file,
            "\"committed\":%" PRIu64 ",\"total_us\":%" PRIu64 ",\"execution_us\":%" PRIu64
            ",\"prepare_us\":%" PRIu64 ",\"commit_us\":%" PRIu64 ",\"abort_us\":%" PRIu64
            ",\"wait_us\":%" PRIu64 ",\"occupancy_us\":%" PRIu64 ",",
            class->committed, class->total_us, class->execution_us, class->prepare_us, class->commit_us,
            class->abort_us, class->wait_us, class->occupancy_us);
    print_histogram(&class->latency, file);
}

/* What only an open loop has is left out in a closed one. */
static void print_backlog(const struct stats *stats, FILE *file)
{
    const struct backlog_stats *backlog = &stats->backlog;
    fprintf(file, "\"unfinished\":%" PRIu64 ",\"undrained\":%" PRIu64, backlog->unfinished,
            backlog->undrained);
    if (stats->open_loop) {
        fprintf(file,
                ",\"carried\":%" PRIu64 ",\"offered\":%" PRIu64 ",\"waiting\":%" PRIu64
                ",\"waiting_us\":%" PRIu64,
                backlog->carried, backlog->offered, backlog->waiting, backlog->waiting_us);
    }
}

static void print_costs(const struct cost_stats *costs, FILE *file)
{
    fprintf(file,
            "\"costed\":%" PRIu64 ",\"with_writers\":%" PRIu64 ",\"only_own\":%" PRIu64
            ",\"writers\":%" PRIu64 ",\"readers\":%" PRIu64 ",\"log_writes\":%" PRIu64
            ",\"forced_log_writes\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"acks\":%" PRIu64
            ",\"ends\":%" PRIu64 ",\"log_bytes\":%" PRIu64,
            costs->coordinated, costs->with_writers, costs->only_own, costs->writers, costs->readers,
            costs->log_writes, costs->forced_log_writes, costs->messages, costs->acks, costs->ends,
            costs->log_bytes);
}

void stats_print_report(const struct stats *stats, FILE *file)
{
    fprintf(file,
            "\"window_us\":%" PRIu64 ",\"cpu_us\":%" PRIu64 ",\"committed\":%" PRIu64 ",\"aborted\":%" PRIu64
            ",\"unknown\":%" PRIu64 ",\"retries\":%" PRIu64 ",",
            stats->window_us, stats->cpu_us, stats->distributed.committed + stats->local.committed,
            stats->aborted, stats->unknown, stats->retries);
    print_backlog(stats, file);
    fprintf(file, ",\"dist\":{");
    print_class(&stats->distributed, file);
    fprintf(file, ",\"release_us\":%" PRIu64 ",\"release_count\":%" PRIu64 ",", stats->release_us,
            stats->release_count);
    print_costs(&stats->costs, file);
    fprintf(file, "},\"local\":{");
    print_class(&stats->local, file);
    fprintf(file, "},\"alarms\":{");
    const char *separator = "";
    for (unsigned alarm = DW_ALARM_CONFLICT; alarm <= DW_ALARM_DISAGREEMENT; alarm++) {
        fprintf(file, "%s\"%s\":%" PRIu64, separator, dw_alarm_name((enum dw_alarm)alarm),
                stats->alarms[alarm]);
        separator = ",";
    }
    fprintf(file, "}");
}
