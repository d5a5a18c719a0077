#include <string.h>

unsigned long dw_length(const char *text)
{
    return strlen(text);
}
