/* delay.h - the injected delay of log writes: how long a request waits before it is admitted. */
#ifndef DW_STORAGE_DELAY_H
#define DW_STORAGE_DELAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/random.h"

enum dw_delay_distribution {
    DW_DELAY_CONSTANT = 0,
    DW_DELAY_UNIFORM = 1,     /* parameter: half width in ms, at most the mean; default the mean */
    DW_DELAY_EXPONENTIAL = 2, /* no parameter */
    DW_DELAY_LOGNORMAL =
        3, /* parameter: sigma of the logarithm; default 0.5. The mean is the mean of the delay. */
};

struct dw_delay {
    enum dw_delay_distribution distribution;
    double mean_ms; /* 0..60000 */
    double parameter;
};

/* Parses "MS[:DIST[:PARAM]]", DIST one of constant, uniform, exponential, lognormal. On failure *text gets
 * one line that names the part and what is allowed. */
DW_MUST_CHECK enum dw_error dw_delay_parse(const char *spec, struct dw_delay *delay, char *text,
                                           size_t text_size);

/* Checks the ranges, as parse does; an absent parameter is given as NaN and gets its default. */
DW_MUST_CHECK enum dw_error dw_delay_check(struct dw_delay *delay, char *text, size_t text_size);

DW_MUST_CHECK enum dw_error dw_delay_distribution_parse(const char *name,
                                                        enum dw_delay_distribution *distribution);
const char *dw_delay_distribution_name(enum dw_delay_distribution distribution);

/* The next delay, in microseconds. */
uint64_t dw_delay_draw(const struct dw_delay *delay, struct dw_random *random);

#endif
