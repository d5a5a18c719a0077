#include "protocol/rpc/rpc.h"
#include "rpc.h"
#include "../rpc/rpc.h"
#include "rpc/missing.h"
#include <rpc/rpc.h>
#include "rpc/rpc.h"
