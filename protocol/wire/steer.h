/* steer.h - between the bytes of the unary calls that steer a compute node and plain values.
 *
 * The replies are JSON objects, printed by `dogwood-ctl --json` as they come. Decoding is as strict as in
 * admin.h.
 */
#ifndef DW_WIRE_STEER_H
#define DW_WIRE_STEER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/codec.h"

/* Requests without a field are empty; all replies are JSON. */
#define DW_METHOD_BEGIN     "Begin"     /* starts the load */
#define DW_METHOD_STATUS    "Status"    /* what the node is doing */
#define DW_METHOD_REPORT    "Report"    /* what was measured */
#define DW_METHOD_DIGEST    "Digest"    /* a digest of all rows */
#define DW_METHOD_FAILPOINT "Failpoint" /* sets one, lists all */

struct dw_steer_begin {
    uint64_t warmup_ms;
    uint64_t duration_ms;
};

DW_MUST_CHECK enum dw_error dw_steer_encode_begin(struct dw_buffer *buffer,
                                                  const struct dw_steer_begin *begin);
DW_MUST_CHECK enum dw_error dw_steer_decode_begin(const uint8_t *data, size_t size,
                                                  struct dw_steer_begin *begin);

enum { DW_STEER_SPEC = 128 };

/* `spec` is NAME=ACTION, or empty to list them; on decoding it has room for DW_STEER_SPEC bytes. */
DW_MUST_CHECK enum dw_error dw_steer_encode_failpoint(struct dw_buffer *buffer, const char *spec);
DW_MUST_CHECK enum dw_error dw_steer_decode_failpoint(const uint8_t *data, size_t size, char *spec);

/* A reply. Decoded, *json is to be freed with free(). */
DW_MUST_CHECK enum dw_error dw_steer_encode_json(struct dw_buffer *buffer, const char *json);
DW_MUST_CHECK enum dw_error dw_steer_decode_json(const uint8_t *data, size_t size, char **json);

#endif
