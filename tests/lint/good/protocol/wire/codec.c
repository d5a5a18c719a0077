#include "wire/codec.h"

#include <stdlib.h>

#include "dogwood.pb-c.h"
