/* random.h - a seeded generator (SplitMix64) whose sequence is the same on every machine. */
#ifndef DW_BASE_RANDOM_H
#define DW_BASE_RANDOM_H

#include <stdint.h>

struct dw_random {
    uint64_t state;
};

/* Any seed is good, 0 too. */
void dw_random_init(struct dw_random *random, uint64_t seed);

/* The next 64 bits. */
uint64_t dw_random_next(struct dw_random *random);

/* A uniform number in [0, bound), without the bias of a plain remainder. bound must not be 0. */
uint64_t dw_random_below(struct dw_random *random, uint64_t bound);

/* A uniform number in [0, 1), a multiple of 2^-53. */
double dw_random_unit(struct dw_random *random);

#endif
