#include <stdint.h>

#include "compute/executor.h"
