#include "compute/lock_table.h"

#include <stdlib.h>
