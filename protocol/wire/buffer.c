#include <stdlib.h>

#include "base/assert.h"
#include "wire/codec.h"

enum { FIRST_CAPACITY = 1024 };

void dw_buffer_free(struct dw_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct dw_buffer){0};
}

uint8_t *dw_buffer_reserve(struct dw_buffer *buffer, size_t size)
{
    DW_ASSERT(buffer->size <= buffer->capacity);
    if (size > buffer->capacity - buffer->size) {
        size_t capacity = buffer->capacity == 0 ? FIRST_CAPACITY : buffer->capacity;
        while (size > capacity - buffer->size) {
            if (capacity > SIZE_MAX / 2) {
                return NULL;
            }
            capacity *= 2;
        }
        uint8_t *data = realloc(buffer->data, capacity);
        if (data == NULL) {
            return NULL;
        }
        buffer->data = data;
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->size;
}
