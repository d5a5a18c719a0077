/* cluster.h - which nodes a cluster has, and where they listen: the file that --cluster names.
 *
 * Lines `compute ID HOST:PORT` and `storage ID HOST:PORT`; empty lines and what follows '#' are left out. Ids
 * of each kind run from 0 without a gap. The log of compute node i lies on storage node i mod S.
 */
#ifndef DW_COMPUTE_CLUSTER_H
#define DW_COMPUTE_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"

enum { DW_MAX_ADDRESS = 255 };

struct cluster {
    uint32_t compute_nodes;
    uint32_t storage_nodes;
    char compute[DW_MAX_NODES][DW_MAX_ADDRESS + 1];
    char storage[DW_MAX_NODES][DW_MAX_ADDRESS + 1];
};

/* Reads the file. On failure *text gets one line that names file, line and mend. */
DW_MUST_CHECK enum dw_error cluster_read(const char *path, struct cluster *cluster, char *text,
                                         size_t text_size);

/* The storage node that holds a log. */
uint32_t cluster_storage_of(const struct cluster *cluster, uint32_t log);

#endif
