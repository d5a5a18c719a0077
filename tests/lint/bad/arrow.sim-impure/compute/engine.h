/* engine.h - reaches the transport by way of another header. */
#include "compute/driver.h"
