#include <stdio.h>

#include "rpc/internal.h"

grpc_status_code rpc_status_of(enum dw_error error)
{
    switch (error) {
    case DW_ERR_OK:
        return GRPC_STATUS_OK;
    case DW_ERR_ARGUMENT:
    case DW_ERR_ADDRESS:
    case DW_ERR_MALFORMED:
        return GRPC_STATUS_INVALID_ARGUMENT;
    case DW_ERR_RANGE:
        return GRPC_STATUS_OUT_OF_RANGE;
    case DW_ERR_MEMORY:
    case DW_ERR_FULL:
    case DW_ERR_TOO_LARGE:
        return GRPC_STATUS_RESOURCE_EXHAUSTED;
    case DW_ERR_IO:
        return GRPC_STATUS_INTERNAL;
    case DW_ERR_CORRUPT:
        return GRPC_STATUS_DATA_LOSS;
    case DW_ERR_LOCKED:
    case DW_ERR_REFUSED:
        return GRPC_STATUS_FAILED_PRECONDITION;
    case DW_ERR_MISSING:
        return GRPC_STATUS_UNIMPLEMENTED;
    case DW_ERR_TIMEOUT:
        return GRPC_STATUS_DEADLINE_EXCEEDED;
    case DW_ERR_CLOSED:
    case DW_ERR_SHUTDOWN:
        return GRPC_STATUS_UNAVAILABLE;
    }
    return GRPC_STATUS_UNKNOWN;
}

enum dw_error rpc_error_of(grpc_status_code status)
{
    switch (status) {
    case GRPC_STATUS_OK:
        return DW_OK;
    case GRPC_STATUS_INVALID_ARGUMENT:
        return DW_ERR_MALFORMED;
    case GRPC_STATUS_DEADLINE_EXCEEDED:
        return DW_ERR_TIMEOUT;
    case GRPC_STATUS_NOT_FOUND:
    case GRPC_STATUS_UNIMPLEMENTED:
        return DW_ERR_MISSING;
    case GRPC_STATUS_RESOURCE_EXHAUSTED:
        return DW_ERR_TOO_LARGE;
    case GRPC_STATUS_FAILED_PRECONDITION:
    case GRPC_STATUS_PERMISSION_DENIED:
    case GRPC_STATUS_UNAUTHENTICATED:
        return DW_ERR_REFUSED;
    case GRPC_STATUS_OUT_OF_RANGE:
        return DW_ERR_RANGE;
    case GRPC_STATUS_DATA_LOSS:
        return DW_ERR_CORRUPT;
    case GRPC_STATUS_CANCELLED:
    case GRPC_STATUS_UNAVAILABLE:
        return DW_ERR_CLOSED;
    case GRPC_STATUS_UNKNOWN:
    case GRPC_STATUS_ALREADY_EXISTS:
    case GRPC_STATUS_ABORTED:
    case GRPC_STATUS_INTERNAL:
    case GRPC_STATUS__DO_NOT_USE:
        break;
    }
    return DW_ERR_IO;
}

void rpc_slice_text(grpc_slice slice, char *text, size_t text_size)
{
    const char *start = (const char *)GRPC_SLICE_START_PTR(slice);
    snprintf(text, text_size, "%.*s", (int)GRPC_SLICE_LENGTH(slice), start);
}
