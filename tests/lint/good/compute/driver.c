#include "compute/lock_table.h"

#include <pthread.h>

#include "rpc/rpc.h"
