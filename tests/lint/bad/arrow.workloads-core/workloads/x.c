#include <stdint.h>

#include "core/id.h"
