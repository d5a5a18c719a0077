#include <stdint.h>

#include "sim/sim.h"
