/* store.h - logs. */
#include "rpc/rpc.h"

#include <rocksdb/c.h>
