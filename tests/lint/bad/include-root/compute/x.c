#include "dogwood.pb-c.h"
