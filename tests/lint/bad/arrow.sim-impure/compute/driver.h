/* driver.h - talks. */
#include "rpc/rpc.h"
