/* histogram.h - a latency histogram of fixed size whose readings err by less than 1.6 %. */
#ifndef DW_BASE_HISTOGRAM_H
#define DW_BASE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values are nanoseconds, since a whole microsecond would be an error of 100 % at the low end. The range is 1
 * us to 200 s. Every power of two is cut into 64 buckets of equal width, so a bucket is at most 1/64 (1.5625
 * %) of its lower edge wide: log-linear, as in HdrHistogram. */
#define DW_HISTOGRAM_MIN_NS  UINT64_C(1000)
#define DW_HISTOGRAM_MAX_NS  UINT64_C(200000000000)
#define DW_HISTOGRAM_BUCKETS 1761

/* Zero is the empty histogram; it may be copied, compared and hashed as bytes. Not thread-safe: give each
 * thread its own and merge them. */
struct dw_histogram {
    uint64_t buckets[DW_HISTOGRAM_BUCKETS];
    uint64_t count;     /* of all values, the clamped ones too: the sum over the buckets */
    uint64_t below;     /* values under DW_HISTOGRAM_MIN_NS, counted in the first bucket */
    uint64_t above;     /* values over DW_HISTOGRAM_MAX_NS, counted in the last bucket */
    uint64_t sum_ns;    /* exact, of the values as given, modulo 2^64 */
    uint64_t sum_carry; /* how often sum_ns wrapped */
    uint64_t min_ns;    /* exact, as given; 0 if empty */
    uint64_t max_ns;    /* exact, as given; 0 if empty */
};

/* Counts one value. Values outside the range are clamped to its nearest bucket, and counted in `below` or
 * `above`; sum, minimum and maximum still take them as given. */
void dw_histogram_add(struct dw_histogram *histogram, uint64_t value_ns);

/* Adds all of `from` to `into`; the result is the same as if `into` had been given every value of both. */
void dw_histogram_merge(struct dw_histogram *into, const struct dw_histogram *from);

/* The smallest reading that at least `percent` of the values do not exceed, percent in [0, 100] and taken to
 * the nearest 0.0001; 0 means the first value. It is the inclusive upper edge of the bucket that holds the
 * value of that rank, but never more than the exact maximum. So for the true value v of that rank v <=
 * reading < v * (1 + 1/64), it never flatters, and a histogram of one repeated value reads exactly that
 * value. A rank that falls among the values below the range reads at most DW_HISTOGRAM_MIN_NS - 1, one among
 * those above reads the exact maximum: both are upper bounds only. Returns 0 if the histogram is empty. */
uint64_t dw_histogram_percentile_ns(const struct dw_histogram *histogram, double percent);

/* The mean of the values as given, from the exact sum; rounded only by the division. 0 if empty. */
double dw_histogram_mean_ns(const struct dw_histogram *histogram);

/* One bucket that holds something. Both edges are inclusive. low_us is low_ns / 1000, exact when printed with
 * three decimals. The edges are fixed by this header, so exported buckets of different runs merge by adding
 * counts. */
struct dw_histogram_bucket {
    uint64_t low_ns;
    uint64_t high_ns;
    double low_us;
    uint64_t count;
};

/* Finds the next bucket with a count above 0, in rising order. Start with *cursor = 0; false at the end. */
bool dw_histogram_next(const struct dw_histogram *histogram, size_t *cursor,
                       struct dw_histogram_bucket *bucket);

/* The bucket that counts a value, and the edges of a bucket; for tests and for readers of exported files. The
 * index must be less than DW_HISTOGRAM_BUCKETS. */
size_t dw_histogram_index(uint64_t value_ns);
uint64_t dw_histogram_low_ns(size_t index);
uint64_t dw_histogram_high_ns(size_t index);

/* True if the counts agree with each other, e.g. after reading a histogram from elsewhere. */
bool dw_histogram_check(const struct dw_histogram *histogram);

#endif
