/* engine.h - what holds the rows of a compute node: an ops table, chosen at run time.
 *
 * An engine knows nothing of transactions: row locks (compute/lock_table.h) keep readers and writers of a row
 * apart, changes wait in a write set (compute/engine/redo.h) until the outcome is known, and `apply` makes
 * them visible.
 *
 * Redo order. A log record's position orders the write sets of one row; the order in which outcomes become
 * known does not, since in Cornus locks are freed before the decision is logged: after a restart, T1 may be
 * in doubt while T2, which wrote the same row later, is known to be committed and applied at once. So every
 * *field* remembers the position last applied, and an older change is refused. The field, not the row: a
 * write set holds changed fields only, and if T2 changed another field of the row than T1, T1's change is
 * still missing when T1 resolves late.
 *
 * Room for what comes later. An engine that offers more gets operations at the end of the ops table, which
 * are NULL in those that don't: reading at a snapshot (beside `read`, which gives the newest version),
 * `pre_commit` (fixes the commit timestamp, may refuse) and `post_commit` in place of one `apply`, and the
 * position up to which everything applied is durable, from which recovery may start.
 */
#ifndef DW_COMPUTE_ENGINE_ENGINE_H
#define DW_COMPUTE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "workloads/workload.h"

enum { DW_ENGINE_MAX_TABLES = 32 };

/* What `apply` did: changes that were made, and changes that were refused as older than what the field holds.
 */
struct dw_applied {
    uint32_t changes;
    uint32_t refused;
};

struct dw_engine;

/* create_table and insert are called from one thread before any other uses the engine. All else may run on
 * any number of threads at once, as long as no row is read or applied to while another thread applies to it.
 */
struct dw_engine_ops {
    const char *name; /* as in a configuration: "memory" */
    /* Tables are numbered by the workload, below DW_ENGINE_MAX_TABLES. The schema is copied but for its name,
     * which must live as long as the engine. `expected_rows` sizes the table; more may follow.
     * DW_ERR_ARGUMENT: the number is too large or taken. */
    enum dw_error (*create_table)(struct dw_engine *engine, uint32_t table, const struct dw_table *schema,
                                  uint64_t expected_rows);
    /* Puts a row that isn't there yet, with all positions 0. DW_ERR_ARGUMENT: it is there already, or no such
     * table. */
    enum dw_error (*insert)(struct dw_engine *engine, uint32_t table, uint64_t key, const uint8_t *row);
    /* The columns of a table, as long as the engine lives; NULL if there is no such table. */
    const struct dw_table *(*schema)(const struct dw_engine *engine, uint32_t table);
    bool (*contains)(struct dw_engine *engine, uint32_t table, uint64_t key);
    /* Copies the whole row. DW_ERR_MISSING: no such table or row. */
    enum dw_error (*read)(struct dw_engine *engine, uint32_t table, uint64_t key, uint8_t *row);
    /* Makes the changes of a write set visible, for the log record at `position`. A change is refused if its
     * field remembers a later position; the same position may be applied again. Position 0 means not known:
     * the change is made, and what the field remembers stays. All of the write set is validated first: on
     * DW_ERR_CORRUPT (the bytes, or a field that isn't there, or of another size) and DW_ERR_MISSING (no such
     * table or row) nothing changed. */
    enum dw_error (*apply)(struct dw_engine *engine, uint64_t position, const uint8_t *redo, size_t size,
                           struct dw_applied *applied);
    void (*close)(struct dw_engine *engine);
};

/* What every engine begins with. */
struct dw_engine {
    const struct dw_engine_ops *ops;
};

/* An engine that keeps its rows in memory, empty at the start. NULL if there is no memory. */
struct dw_engine *dw_memory_engine_open(void);

/* Opens an engine by its name. DW_ERR_MISSING: there is none of that name; DW_ERR_MEMORY. */
DW_MUST_CHECK enum dw_error dw_engine_open(const char *name, struct dw_engine **engine);

/* The names of all engines in the order in which they are listed; NULL at the end. */
const char *dw_engine_name_at(unsigned index);

/* Creates the workload's tables and loads the rows that belong to `node`. */
DW_MUST_CHECK enum dw_error dw_engine_load(struct dw_engine *engine, const struct dw_workload *workload,
                                           const void *state, uint32_t node);

/* Would a write be accepted by `apply`? To be asked when the access arrives, after its row is locked;
 * whatever passed this and went into a write set can be applied. DW_ERR_MISSING: no such table or row;
 * DW_ERR_RANGE: no such field; DW_ERR_ARGUMENT: the value has not the field's size. */
DW_MUST_CHECK enum dw_error dw_engine_check_write(struct dw_engine *engine, uint32_t table, uint64_t key,
                                                  uint32_t field, size_t value_bytes);

#endif
