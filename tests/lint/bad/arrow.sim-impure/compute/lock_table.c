#include "compute/lock_table.h"

#include <pthread.h>
