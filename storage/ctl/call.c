#include <stdio.h>
#include <stdlib.h>

#include "storage/ctl/ctl.h"
#include "storage/options.h"

int ctl_fail(enum dw_error error, const char *text)
{
    fprintf(stderr, "dogwood-ctl: %s\n", text);
    return option_exit_code(error);
}

bool ctl_call(const struct ctl *ctl, const char *method, enum dw_error encoded, struct dw_buffer *request,
              uint8_t **data, size_t *size, int *code)
{
    char text[512];
    enum dw_error error = encoded;
    if (error != DW_OK) {
        snprintf(text, sizeof text, "the request of %s cannot be made: %s", method, dw_error_text(error));
    } else {
        error = dw_rpc_call(ctl->address, &ctl->self, method, request->data, request->size, ctl->timeout_ms,
                            data, size, text, sizeof text);
    }
    dw_buffer_free(request);
    if (error != DW_OK) {
        *code = ctl_fail(error, text);
    }
    return error == DW_OK;
}

int ctl_fail_reply(const struct ctl *ctl, const char *method)
{
    char text[256];
    snprintf(text, sizeof text,
             "the reply of %.100s to %.40s cannot be read: use a dogwood-ctl of its version", ctl->address,
             method);
    return ctl_fail(DW_ERR_IO, text);
}

bool ctl_call_identify(const struct ctl *ctl, struct dw_admin_identity *identity, int *code)
{
    struct dw_buffer request = {0};
    uint8_t *data;
    size_t size;
    if (!ctl_call(ctl, DW_METHOD_IDENTIFY, DW_OK, &request, &data, &size, code)) {
        return false;
    }
    enum dw_error error = dw_admin_decode_identity(data, size, identity);
    free(data);
    if (error != DW_OK) {
        *code = ctl_fail_reply(ctl, DW_METHOD_IDENTIFY);
    }
    return error == DW_OK;
}
