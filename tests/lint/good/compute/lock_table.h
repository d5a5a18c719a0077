/* lock_table.h - pure: memory and nothing else. */
#include "core/cornus.h"

#include "workloads/ycsb.h"
