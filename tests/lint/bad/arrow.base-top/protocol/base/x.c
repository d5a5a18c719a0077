#include <stdint.h>

#include "version.h"
