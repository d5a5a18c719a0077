#include <stdint.h>

#include "workloads/txn.h"
