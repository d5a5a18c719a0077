/* ycsb.h - a pure workload. */
#include "base/limits.h"

#include <math.h>
