/* pack.h - appending a protobuf-c message to a buffer; for the files of protocol/wire only. */
#ifndef DW_WIRE_PACK_H
#define DW_WIRE_PACK_H

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "wire/codec.h"

/* Repeated fields of concatenated messages add up, so each call may append a whole message of its own. */
DW_MUST_CHECK enum dw_error pack_append(struct dw_buffer *buffer, const ProtobufCMessage *message);

/* protobuf-c takes pointers to texts that it only reads. */
char *pack_text(const char *text);

#endif
