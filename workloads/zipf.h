/* zipf.h - exact samples of a power law over ranks 0..n-1, in constant memory.
 *
 * The probability of rank r is proportional to (r + 1)^-theta: uniform for theta = 0, Zipf's law for theta =
 * 1; any theta of 0 or more is right. Source: Hoermann and Derflinger, "Rejection-inversion to generate
 * variates from monotone discrete distributions", ACM TOMACS 6(3), 1996. The YCSB generator of Gray et al.
 * (SIGMOD 1994) is only an approximation, has a pole at theta = 1 and sums over all n at the start.
 */
#ifndef DW_WORKLOADS_ZIPF_H
#define DW_WORKLOADS_ZIPF_H

#include <stdint.h>

#include "base/random.h"

/* Beyond this a double no longer tells neighbouring ranks apart to the accuracy that is needed. */
#define DW_ZIPF_MAX_COUNT (UINT64_C(1) << 40)

struct dw_zipf {
    uint64_t count;
    double theta;
    double squeeze;  /* ranks within this distance above the drawn point need no test */
    double low_area; /* the range of areas from which a draw over all ranks is made */
    double high_area;
};

/* 1 <= count <= DW_ZIPF_MAX_COUNT; theta is finite and not negative. */
void dw_zipf_init(struct dw_zipf *zipf, uint64_t count, double theta);

/* A rank in [0, count). */
uint64_t dw_zipf_draw(const struct dw_zipf *zipf, struct dw_random *random);

/* A rank in [first, count) by the same law restricted to these; first < count. */
uint64_t dw_zipf_draw_from(const struct dw_zipf *zipf, struct dw_random *random, uint64_t first);

#endif
