#include "helper.h"

#include "storage/store.h"

int __wrap_read(void);
