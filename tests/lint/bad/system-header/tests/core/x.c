#include <grpc/grpc.h>
