#include "core/id.h"

#include "base/limits.h"

bool dw_txn_id_equal(struct dw_txn_id a, struct dw_txn_id b)
{
    return a.coordinator == b.coordinator && a.incarnation == b.incarnation && a.sequence == b.sequence;
}

bool dw_txn_id_valid(struct dw_txn_id id)
{
    return id.coordinator < DW_MAX_NODES && id.incarnation > 0;
}

/* The finaliser of SplitMix64, twice. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t dw_txn_id_hash(struct dw_txn_id id)
{
    uint64_t high = (uint64_t)id.coordinator << 32 | id.incarnation;
    return mix(mix(high + UINT64_C(0x9e3779b97f4a7c15)) ^ id.sequence);
}
