#include "compute/lock_table.h"
#include "compute/engine.h"
#include "workloads/pure.h"
