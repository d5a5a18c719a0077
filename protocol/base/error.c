#include "base/error.h"

const char *dw_error_text(enum dw_error error)
{
    switch (error) {
#define DW_ERROR_CASE(name, text)                                                                            \
    case DW_ERR_##name:                                                                                      \
        return text;
        DW_ERRORS(DW_ERROR_CASE)
#undef DW_ERROR_CASE
    }
    return "unknown error";
}
