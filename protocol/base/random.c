#include "base/random.h"

#include "base/assert.h"

void dw_random_init(struct dw_random *random, uint64_t seed)
{
    random->state = seed;
}

/* SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. */
uint64_t dw_random_next(struct dw_random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t dw_random_below(struct dw_random *random, uint64_t bound)
{
    DW_ASSERT(bound > 0);
    /* Reject the first 2^64 mod bound values, so that each remainder is equally likely. */
    uint64_t first_fair = (0 - bound) % bound;
    uint64_t value;
    do {
        value = dw_random_next(random);
    } while (value < first_fair);
    return value % bound;
}

double dw_random_unit(struct dw_random *random)
{
    return (double)(dw_random_next(random) >> 11) * 0x1.0p-53;
}
