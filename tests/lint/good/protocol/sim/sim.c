#include <stdio.h>

#include "compute/lock_table.h"
#include "core/cornus.h"
#include "workloads/ycsb.h"

#if defined(__SANITIZE_THREAD__)
#endif

__attribute__((unused)) static const char *text = "_Reserved /* not a comment";
