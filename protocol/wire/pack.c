#include "wire/pack.h"

#include "base/assert.h"

enum dw_error pack_append(struct dw_buffer *buffer, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size == 0) {
        return DW_OK; /* all fields have their defaults */
    }
    uint8_t *bytes = dw_buffer_reserve(buffer, size);
    if (bytes == NULL) {
        return DW_ERR_MEMORY;
    }
    size_t packed = protobuf_c_message_pack(message, bytes);
    DW_ASSERT(packed == size);
    buffer->size += size;
    return DW_OK;
}

char *pack_text(const char *text)
{
    union {
        const char *in;
        char *out;
    } pointer = {.in = text};
    return pointer.out;
}
