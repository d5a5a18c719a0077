/* txn.h - what a transaction asks for: rounds of accesses, and the stored procedure that declares them.
 *
 * A stored procedure is a state machine that the compute node resumes: `next` (workloads/workload.h) takes
 * the results of the previous round and declares the accesses of the next, or commits, or aborts. The
 * accesses of one round are declared together: they do not depend on each other's results, so all that go to
 * one owner travel as one message. Everything here is a plain struct without pointers, given by the caller,
 * of fixed size.
 */
#ifndef DW_WORKLOADS_TXN_H
#define DW_WORKLOADS_TXN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* The numbers are sent on the wire and used in configurations: never renumber. */
enum dw_access_kind {
    DW_ACCESS_READ = 1,  /* the whole row, under a shared lock */
    DW_ACCESS_WRITE = 2, /* one field gets a new value, under an exclusive lock; nothing is read */
};

/* One access to one row. A read sees what the same transaction wrote to the row before, in the order of
 * declaration. */
struct dw_access {
    uint64_t key;
    uint32_t owner; /* slot of the compute node that holds the row */
    uint32_t table;
    uint32_t field;        /* WRITE: the field; else 0 */
    uint32_t value_offset; /* WRITE: its new value lies in dw_round.values from here on; else 0 */
    uint32_t value_bytes;  /* WRITE: the size of the field; else 0 */
    enum dw_access_kind kind;
};

/* Limits of one round. DW_ROUND_VALUE_BYTES is room for as many written fields of 128 bytes. */
enum {
    DW_ROUND_MAX_ACCESSES = 128,
    DW_ROUND_VALUE_BYTES = DW_ROUND_MAX_ACCESSES * 128,
};

/* The accesses that a procedure declares together. About 22 KB: one for each worker, reused. */
struct dw_round {
    uint32_t count;
    uint32_t values_used;
    struct dw_access accesses[DW_ROUND_MAX_ACCESSES];
    uint8_t values[DW_ROUND_VALUE_BYTES];
};

/* The new value of a WRITE; valid as long as the round is neither changed nor moved. */
static inline const uint8_t *dw_round_value(const struct dw_round *round, const struct dw_access *access)
{
    return round->values + access->value_offset;
}

void dw_round_clear(struct dw_round *round);

/* Appends an access. Asserts that there is room: a workload keeps its rounds within the limits, and checks
 * the parameters for it. */
void dw_round_read(struct dw_round *round, uint32_t owner, uint32_t table, uint64_t key);

/* Appends a WRITE and returns where its `bytes` bytes of new value are to be put, at once. */
uint8_t *dw_round_write(struct dw_round *round, uint32_t owner, uint32_t table, uint64_t key, uint32_t field,
                        uint32_t bytes);

/* The mask of the nodes that the round touches. */
uint64_t dw_round_owners(const struct dw_round *round);

/* What a round's access gave: for a READ the row, for a WRITE nothing (NULL, 0). Rows have the size that
 * their table says: the executor has checked what came from other nodes. */
struct dw_access_result {
    const uint8_t *row;
    size_t bytes;
};

/* What a procedure wants next. */
enum dw_procedure_step {
    DW_PROCEDURE_ACCESS = 1, /* run the round */
    DW_PROCEDURE_COMMIT,
    DW_PROCEDURE_ABORT, /* the transaction's own decision, e.g. an unused item number: not to be retried */
};

enum { DW_PROCEDURE_BYTES = 4096 };

/* A transaction that was generated: all its random choices are in here, so that `next` is deterministic. To
 * retry it after a conflict, go on with a copy that was made before the first `next`. */
struct dw_procedure {
    uint32_t kind;    /* which stored procedure of the workload, from 0; statistics may be kept by it */
    bool distributed; /* touches, or may touch, another node than that of the coordinator */
    uint8_t padding[3];
    _Alignas(8) uint8_t state[DW_PROCEDURE_BYTES]; /* belongs to the workload */
};

/* A table's columns: field f of a row is its bytes from offsets[f] to offsets[f + 1]. */
enum { DW_TABLE_MAX_FIELDS = 128 };

struct dw_table {
    const char *name;
    uint32_t field_count; /* 1..DW_TABLE_MAX_FIELDS */
    uint32_t offsets[DW_TABLE_MAX_FIELDS + 1];
};

static inline uint32_t dw_table_row_bytes(const struct dw_table *table)
{
    return table->offsets[table->field_count];
}

/* The field must exist. */
static inline uint32_t dw_table_field_bytes(const struct dw_table *table, uint32_t field)
{
    return table->offsets[field + 1] - table->offsets[field];
}

#endif
