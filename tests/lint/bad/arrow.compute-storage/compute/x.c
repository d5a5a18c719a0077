#include <stdint.h>

#include "storage/log_store.h"
