#include "workloads/txn.h"

#include "base/assert.h"

void dw_round_clear(struct dw_round *round)
{
    round->count = 0;
    round->values_used = 0;
}

static struct dw_access *append(struct dw_round *round)
{
    DW_ASSERT(round->count < DW_ROUND_MAX_ACCESSES);
    return &round->accesses[round->count++];
}

void dw_round_read(struct dw_round *round, uint32_t owner, uint32_t table, uint64_t key)
{
    DW_ASSERT(owner < DW_MAX_NODES);
    *append(round) = (struct dw_access){.key = key, .owner = owner, .table = table, .kind = DW_ACCESS_READ};
}

uint8_t *dw_round_write(struct dw_round *round, uint32_t owner, uint32_t table, uint64_t key, uint32_t field,
                        uint32_t bytes)
{
    DW_ASSERT(owner < DW_MAX_NODES);
    DW_ASSERT(bytes <= DW_ROUND_VALUE_BYTES - round->values_used);
    uint32_t offset = round->values_used;
    *append(round) = (struct dw_access){
        .key = key,
        .owner = owner,
        .table = table,
        .field = field,
        .value_offset = offset,
        .value_bytes = bytes,
        .kind = DW_ACCESS_WRITE,
    };
    round->values_used += bytes;
    return round->values + offset;
}

uint64_t dw_round_owners(const struct dw_round *round)
{
    uint64_t owners = 0;
    for (uint32_t i = 0; i < round->count; i++) {
        owners |= UINT64_C(1) << round->accesses[i].owner;
    }
    return owners;
}
