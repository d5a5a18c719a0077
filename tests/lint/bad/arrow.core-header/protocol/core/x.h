/* x.h - a header. */
#  include "rpc/rpc.h"
