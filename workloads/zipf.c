#include "workloads/zipf.h"

#include <math.h>

#include "base/assert.h"

/* Ranks count from 1 in here, as in the paper. The law is scaled to 1 at the lowest rank `low` that may be
 * drawn: h(x) = (x / low)^-theta, and H is its integral from `low` on. Scaled so, nothing cancels, however
 * steep the law. */

/* (e^x - 1) / x and log(1 + x) / x, which are 1 at 0: with these theta = 1 is no special case. */
static double expm1_over(double x)
{
    return fabs(x) > 1e-8 ? expm1(x) / x : 1 + x / 2;
}

static double log1p_over(double x)
{
    return fabs(x) > 1e-8 ? log1p(x) / x : 1 - x / 2;
}

static double density(const struct dw_zipf *zipf, double low, double x)
{
    return exp(-zipf->theta * log(x / low));
}

static double area(const struct dw_zipf *zipf, double low, double x)
{
    double log_x = log(x / low);
    return low * log_x * expm1_over((1 - zipf->theta) * log_x);
}

/* The x up to which the area is `u`. Rounding may carry a steep law past its last point: infinity then. */
static double area_inverse(const struct dw_zipf *zipf, double low, double u)
{
    double scaled = u / low;
    double argument = fmax(scaled * (1 - zipf->theta), -1);
    return low * exp(log1p_over(argument) * scaled);
}

void dw_zipf_init(struct dw_zipf *zipf, uint64_t count, double theta)
{
    DW_ASSERT(count >= 1 && count <= DW_ZIPF_MAX_COUNT);
    DW_ASSERT(isfinite(theta) && theta >= 0);
    *zipf = (struct dw_zipf){.count = count, .theta = theta};
    zipf->squeeze = 2 - area_inverse(zipf, 2, area(zipf, 2, 2.5) - density(zipf, 2, 2));
    zipf->low_area = area(zipf, 1, 1.5) - 1;
    zipf->high_area = area(zipf, 1, (double)count + 0.5);
}

/* Inverts a uniform area to a point, rounds it to a rank k, and rejects what the histogram bar of k, which
 * reaches down from H(k + 1/2) by h(k), does not cover. */
static uint64_t draw(const struct dw_zipf *zipf, struct dw_random *random, uint64_t first, double low_area,
                     double high_area)
{
    double low = (double)first;
    double high = (double)zipf->count;
    for (;;) {
        double u = low_area + (1 - dw_random_unit(random)) * (high_area - low_area);
        double x = area_inverse(zipf, low, u);
        double k = fmax(low, fmin(high, floor(x + 0.5)));
        /* The distance that rank 2 allows holds for all later ranks (it grows with k), whatever the scale. */
        if (k - x <= zipf->squeeze || u >= area(zipf, low, k + 0.5) - density(zipf, low, k)) {
            return (uint64_t)k;
        }
    }
}

uint64_t dw_zipf_draw(const struct dw_zipf *zipf, struct dw_random *random)
{
    if (zipf->theta == 0) {
        return dw_random_below(random, zipf->count);
    }
    return draw(zipf, random, 1, zipf->low_area, zipf->high_area) - 1;
}

uint64_t dw_zipf_draw_from(const struct dw_zipf *zipf, struct dw_random *random, uint64_t first)
{
    DW_ASSERT(first < zipf->count);
    if (zipf->theta == 0) {
        return first + dw_random_below(random, zipf->count - first);
    }
    double low = (double)(first + 1);
    double low_area = area(zipf, low, low + 0.5) - 1;
    return draw(zipf, random, first + 1, low_area, area(zipf, low, (double)zipf->count + 0.5)) - 1;
}
