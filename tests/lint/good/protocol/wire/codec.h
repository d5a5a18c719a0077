/* codec.h - conversion. */
#include "core/cornus.h"
