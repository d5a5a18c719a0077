/* rpc.h - messages between processes. */
#include "wire/codec.h"
