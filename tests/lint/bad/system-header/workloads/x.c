#include <math.h>
#include <time.h>
