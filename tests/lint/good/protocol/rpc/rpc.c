#include "rpc/rpc.h"

#include <grpc/grpc.h>
