#include "core/id.h"
