#include <stdint.h>

#include "wire/codec.h"
