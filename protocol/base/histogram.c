#include "base/histogram.h"

#include "base/assert.h"

#define SUB_BITS    6 /* 64 buckets to an octave */
#define SUB_BUCKETS (1u << SUB_BITS)

/* How many buckets of the endless log-linear scale lie below the range, which begins exactly on an edge. */
#define SKIPPED UINT64_C(637)

static unsigned octave(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

/* Where a value lies on the scale that has 64 buckets in every octave. Values of at least 64 only. */
static uint64_t scale_index(uint64_t value)
{
    unsigned shift = octave(value) - SUB_BITS;
    return (uint64_t)octave(value) * SUB_BUCKETS + ((value >> shift) & (SUB_BUCKETS - 1));
}

static uint64_t clamp(uint64_t value_ns)
{
    if (value_ns < DW_HISTOGRAM_MIN_NS) {
        return DW_HISTOGRAM_MIN_NS;
    }
    return value_ns > DW_HISTOGRAM_MAX_NS ? DW_HISTOGRAM_MAX_NS : value_ns;
}

size_t dw_histogram_index(uint64_t value_ns)
{
    uint64_t index = scale_index(clamp(value_ns)) - SKIPPED;
    DW_ASSERT(index < DW_HISTOGRAM_BUCKETS);
    return (size_t)index;
}

/* The lower edge of a bucket of the scale, also of the one after the last. */
static uint64_t scale_low(uint64_t index)
{
    unsigned shift = (unsigned)(index / SUB_BUCKETS) - SUB_BITS;
    return (SUB_BUCKETS + index % SUB_BUCKETS) << shift;
}

uint64_t dw_histogram_low_ns(size_t index)
{
    DW_ASSERT(index < DW_HISTOGRAM_BUCKETS);
    return scale_low(index + SKIPPED);
}

uint64_t dw_histogram_high_ns(size_t index)
{
    DW_ASSERT(index < DW_HISTOGRAM_BUCKETS);
    /* The range ends inside the last bucket; what lies past it was clamped, so the bucket ends there too. */
    if (index == DW_HISTOGRAM_BUCKETS - 1) {
        return DW_HISTOGRAM_MAX_NS;
    }
    return scale_low(index + SKIPPED + 1) - 1;
}

static void add_sum(struct dw_histogram *histogram, uint64_t sum_ns, uint64_t carry)
{
    histogram->sum_ns += sum_ns;
    histogram->sum_carry += carry + (histogram->sum_ns < sum_ns ? 1 : 0);
}

void dw_histogram_add(struct dw_histogram *histogram, uint64_t value_ns)
{
    if (histogram->count == 0 || value_ns < histogram->min_ns) {
        histogram->min_ns = value_ns;
    }
    if (value_ns > histogram->max_ns) {
        histogram->max_ns = value_ns;
    }
    histogram->buckets[dw_histogram_index(value_ns)]++;
    histogram->count++;
    histogram->below += value_ns < DW_HISTOGRAM_MIN_NS;
    histogram->above += value_ns > DW_HISTOGRAM_MAX_NS;
    add_sum(histogram, value_ns, 0);
}

void dw_histogram_merge(struct dw_histogram *into, const struct dw_histogram *from)
{
    if (from->count == 0) {
        return;
    }
    if (into->count == 0 || from->min_ns < into->min_ns) {
        into->min_ns = from->min_ns;
    }
    if (from->max_ns > into->max_ns) {
        into->max_ns = from->max_ns;
    }
    for (size_t i = 0; i < DW_HISTOGRAM_BUCKETS; i++) {
        into->buckets[i] += from->buckets[i];
    }
    into->count += from->count;
    into->below += from->below;
    into->above += from->above;
    add_sum(into, from->sum_ns, from->sum_carry);
}

/* The rank, from 1, of the first value that `percent` of all values do not exceed. In whole millionths, since
 * 0.999 * 1000 may round up to the rank after the right one; in two parts, since count * 10^6 may not fit. */
static uint64_t rank_of(uint64_t count, double percent)
{
    const uint64_t million = 1000000;
    uint64_t millionths = (uint64_t)(percent * 10000.0 + 0.5);
    uint64_t rank = count / million * millionths + (count % million * millionths + million - 1) / million;
    return rank == 0 ? 1 : rank;
}

/* The bucket in which the count over buckets reaches `rank`. */
static size_t bucket_of_rank(const struct dw_histogram *histogram, uint64_t rank)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < DW_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= rank) {
            return i;
        }
    }
    return DW_HISTOGRAM_BUCKETS - 1;
}

uint64_t dw_histogram_percentile_ns(const struct dw_histogram *histogram, double percent)
{
    DW_ASSERT(percent >= 0.0 && percent <= 100.0);
    if (histogram->count == 0) {
        return 0;
    }
    uint64_t rank = rank_of(histogram->count, percent);
    if (rank > histogram->count - histogram->above) {
        return histogram->max_ns;
    }
    uint64_t reading = DW_HISTOGRAM_MIN_NS - 1;
    if (rank > histogram->below) {
        reading = dw_histogram_high_ns(bucket_of_rank(histogram, rank));
    }
    return reading < histogram->max_ns ? reading : histogram->max_ns;
}

double dw_histogram_mean_ns(const struct dw_histogram *histogram)
{
    if (histogram->count == 0) {
        return 0.0;
    }
    double sum = (double)histogram->sum_carry * 0x1.0p64 + (double)histogram->sum_ns;
    return sum / (double)histogram->count;
}

bool dw_histogram_next(const struct dw_histogram *histogram, size_t *cursor,
                       struct dw_histogram_bucket *bucket)
{
    for (size_t i = *cursor; i < DW_HISTOGRAM_BUCKETS; i++) {
        if (histogram->buckets[i] > 0) {
            uint64_t low_ns = dw_histogram_low_ns(i);
            *bucket = (struct dw_histogram_bucket){.low_ns = low_ns,
                                                   .high_ns = dw_histogram_high_ns(i),
                                                   .low_us = (double)low_ns / 1000.0,
                                                   .count = histogram->buckets[i]};
            *cursor = i + 1;
            return true;
        }
    }
    *cursor = DW_HISTOGRAM_BUCKETS;
    return false;
}

bool dw_histogram_check(const struct dw_histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i < DW_HISTOGRAM_BUCKETS; i++) {
        count += histogram->buckets[i];
    }
    if (count != histogram->count) {
        return false;
    }
    if (histogram->below > histogram->buckets[0] ||
        histogram->above > histogram->buckets[DW_HISTOGRAM_BUCKETS - 1]) {
        return false;
    }
    if (count == 0) {
        return histogram->sum_ns == 0 && histogram->sum_carry == 0 && histogram->max_ns == 0 &&
               histogram->min_ns == 0;
    }
    return histogram->min_ns <= histogram->max_ns &&
           (histogram->below > 0) == (histogram->min_ns < DW_HISTOGRAM_MIN_NS) &&
           (histogram->above > 0) == (histogram->max_ns > DW_HISTOGRAM_MAX_NS);
}
