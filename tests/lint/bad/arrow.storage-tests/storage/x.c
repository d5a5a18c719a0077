#include <stdint.h>

#include "tests/helper.h"
