/* workload.h - the ops table of a workload, its parameters by name, and the list of all workloads.
 *
 * A workload is pure: what it draws comes from the generator that it is given, so a seed fixes every
 * transaction. Its state is written once, by `init`, and then only read: all threads share it.
 */
#ifndef DW_WORKLOADS_WORKLOAD_H
#define DW_WORKLOADS_WORKLOAD_H

#include "base/error.h"
#include "base/random.h"
#include "workloads/txn.h"

enum dw_parameter_type {
    DW_PARAMETER_INTEGER = 1, /* a uint64_t in the parameter struct */
    DW_PARAMETER_NUMBER,      /* a double */
};

/* A parameter of a workload, as a user names it. The bounds are inclusive. */
struct dw_parameter {
    const char *name;
    enum dw_parameter_type type;
    size_t offset; /* within the workload's parameter struct */
    double minimum;
    double maximum;
    const char *help; /* one line, with the unit */
};

/* Long enough for every text of this header. */
enum { DW_WORKLOAD_TEXT = 256 };

/* Where the workload runs. The seed fixes the loaded data (and nothing else). */
struct dw_deployment {
    uint32_t compute_nodes; /* 1..DW_MAX_NODES */
    uint64_t seed;
};

struct dw_workload {
    const char *name;
    const struct dw_parameter *parameters;
    size_t parameter_count;
    size_t parameter_bytes; /* of the parameter struct */
    size_t state_bytes;     /* of the state that the caller allocates, aligned as malloc aligns */

    void (*defaults)(void *parameters);
    /* What concerns several parameters or the deployment; dw_workload_check also tests each one's range. */
    enum dw_error (*check)(const void *parameters, const struct dw_deployment *deployment, char *text,
                           size_t text_size);
    /* The parameters have passed dw_workload_check. No allocation: nothing to close. */
    void (*init)(void *state, const void *parameters, const struct dw_deployment *deployment);

    /* Tables are numbered from 0. The returned table lives as long as the state. */
    uint32_t (*table_count)(const void *state);
    const struct dw_table *(*table)(const void *state, uint32_t table);
    /* How many rows a node holds at the start, and the key of the one numbered `index`. */
    uint64_t (*row_count)(const void *state, uint32_t table, uint32_t node);
    uint64_t (*row_key)(const void *state, uint32_t table, uint32_t node, uint64_t index);
    /* The bytes of a loaded row: a function of (seed, table, key) alone, so that recovery need not log the
     * load. */
    void (*fill_row)(const void *state, uint32_t table, uint64_t key, uint8_t *row);

    /* Draws the next transaction that `node` coordinates; writes all of *procedure but what `next` won't
     * read. */
    void (*generate)(const void *state, struct dw_random *random, uint32_t node,
                     struct dw_procedure *procedure);
    /* Resumes the procedure. For the first round `results` is NULL and `count` 0; afterwards results[i]
     * belongs to access i of the round before. On DW_PROCEDURE_ACCESS, *round (cleared first) holds at least
     * one access; otherwise it is left alone. The last round's results may be freed after the call. */
    enum dw_procedure_step (*next)(const void *state, struct dw_procedure *procedure,
                                   const struct dw_access_result *results, size_t count,
                                   struct dw_round *round);
};

/* The workload of that name, or NULL. */
const struct dw_workload *dw_workload_find(const char *name);

/* All workloads in the order in which they are listed; NULL at the end. */
const struct dw_workload *dw_workload_at(unsigned index);

/* Sets a parameter from what a user typed. DW_ERR_ARGUMENT: no such parameter, or not a number; DW_ERR_RANGE.
 * On an error nothing is set and `text` holds one line that names the parameter and what it may be. */
DW_MUST_CHECK enum dw_error dw_workload_set(const struct dw_workload *workload, void *parameters,
                                            const char *name, const char *value, char *text,
                                            size_t text_size);

/* Checks all of it: ranges, deployment, and what fits together. DW_ERR_RANGE with one line in `text`. */
DW_MUST_CHECK enum dw_error dw_workload_check(const struct dw_workload *workload, const void *parameters,
                                              const struct dw_deployment *deployment, char *text,
                                              size_t text_size);

#endif
