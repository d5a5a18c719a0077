#include <grpc/grpc.h>
#include <rocksdb/c.h>
