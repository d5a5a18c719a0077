#include <stdint.h>

#include "rpc/rpc.h"
