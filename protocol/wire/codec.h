/* codec.h - between the bytes of a stream message (a dogwood.v1.Batch) and the structs of the core.
 *
 * Encoding appends one item to a buffer; the concatenation of items is a Batch. Decoding validates
 * everything: what passes has enums in range, valid ids and masks, and sizes within base/limits.h.
 */
#ifndef DW_WIRE_CODEC_H
#define DW_WIRE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/message.h"

/* A growing buffer. Zero is empty and valid; free with dw_buffer_free. */
struct dw_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
};
void dw_buffer_free(struct dw_buffer *buffer);
/* Makes room for `size` more bytes and returns where they go; the caller then adds to `size`. NULL: no
 * memory. */
uint8_t *dw_buffer_reserve(struct dw_buffer *buffer, size_t size);

/* A log request on the wire. */
struct dw_wire_log_request {
    uint64_t id;
    struct dw_log_request request; /* content is 0: the log service computes it */
    uint64_t participants;
    const uint8_t *redo;
    size_t redo_size;
    bool force;
};

/* A log reply on the wire. */
struct dw_wire_log_reply {
    uint64_t id;
    struct dw_log_reply reply;
    uint32_t incarnation;
};

/* What drivers attach to a message of the core. For the requests, the name of one execution at a participant:
 * its incarnation and a local counter; `accesses` requests belong to it. For ACK, for how long the sender's
 * locks of the transaction have been free: a span and not a time, since the clocks of two hosts have nothing
 * in common. */
struct dw_token {
    uint64_t incarnation;
    uint64_t counter;
    uint32_t accesses;
    uint64_t released_us;
};

enum { DW_WIRE_MAX_ACCESSES = 1024 };

/* One access, and what it carries. Kinds are checked by the receiver. */
struct dw_wire_access {
    uint32_t table;
    uint64_t key;
    uint32_t kind;
    uint32_t field;
    const uint8_t *value;
    size_t value_size;
};

struct dw_wire_access_request {
    uint64_t id;
    struct dw_txn_id txn;
    uint32_t from;
    struct dw_token token; /* token.accesses: number of this request within the execution, from 1 */
    const struct dw_wire_access *accesses;
    size_t access_count; /* 1..DW_WIRE_MAX_ACCESSES */
};

struct dw_wire_row {
    const uint8_t *data;
    size_t size;
};

struct dw_wire_access_reply {
    uint64_t id;
    struct dw_txn_id txn;
    uint32_t status;
    struct dw_token token;
    const struct dw_wire_row *rows;
    size_t row_count; /* at most DW_WIRE_MAX_ACCESSES */
};

/* Append one item. On an error nothing is appended: DW_ERR_ARGUMENT if the item breaks a rule that the
 * decoder keeps (it would cost the whole stream there), DW_ERR_TOO_LARGE if redo or a value exceeds
 * DW_MAX_REDO or the item alone exceeds DW_MAX_MESSAGE, DW_ERR_MEMORY. A token goes only with VOTE_REQUEST
 * and READ_REQUEST and may be NULL. */
DW_MUST_CHECK enum dw_error dw_encode_log_request(struct dw_buffer *buffer,
                                                  const struct dw_wire_log_request *request);
DW_MUST_CHECK enum dw_error dw_encode_log_reply(struct dw_buffer *buffer,
                                                const struct dw_wire_log_reply *reply);
DW_MUST_CHECK enum dw_error dw_encode_message(struct dw_buffer *buffer, const struct dw_message *message,
                                              const struct dw_token *token);
DW_MUST_CHECK enum dw_error dw_encode_access_request(struct dw_buffer *buffer,
                                                     const struct dw_wire_access_request *request);
DW_MUST_CHECK enum dw_error dw_encode_access_reply(struct dw_buffer *buffer,
                                                   const struct dw_wire_access_reply *reply);

/* Called for each item of a decoded batch, in the order: log requests, log replies, messages, access
 * requests, access replies. A NULL callback makes items of its kind malformed. Pointers in an item are valid
 * during the call; a log request's redo until the decoder is used again or closed. A token is never NULL; it
 * is zero if the message carries none. A callback must not use the same decoder. */
struct dw_batch_visitor {
    void (*log_request)(void *user, const struct dw_wire_log_request *request);
    void (*log_reply)(void *user, const struct dw_wire_log_reply *reply);
    void (*message)(void *user, const struct dw_message *message, const struct dw_token *token);
    void (*access_request)(void *user, const struct dw_wire_access_request *request);
    void (*access_reply)(void *user, const struct dw_wire_access_reply *reply);
};

/* Scratch memory for decoding, reused from batch to batch: an arena, so that decoding allocates nothing in
 * the usual case. One for each thread. Zero is valid. */
struct dw_decoder {
    struct dw_arena *arena;
};
void dw_decoder_close(struct dw_decoder *decoder);

/* What decoding `size` bytes may allocate: DW_DECODE_FIXED_BYTES + DW_DECODE_FACTOR * size. protobuf-c needs
 * some 20 bytes of memory for each byte of a short reply and 50 for the shortest access; a batch that needs
 * more consists of empty items and is malformed. */
enum { DW_DECODE_FACTOR = 64, DW_DECODE_FIXED_BYTES = 256 * 1024 };

/* Decodes and validates the whole batch before the first callback. DW_ERR_MALFORMED: nothing was visited, and
 * *text (may be NULL) is a static line that names the first wrong field. Total over all byte strings: never
 * crashes, never allocates beyond the bound above. An unknown field is malformed: both ends speak the same
 * version. DW_ERR_MEMORY: nothing was visited either, *text is not set. */
DW_MUST_CHECK enum dw_error dw_decode_batch(struct dw_decoder *decoder, const uint8_t *data, size_t size,
                                            const struct dw_batch_visitor *visitor, void *user,
                                            const char **text);

/* The same for a batch that compute node `sender` is known to have sent: one in which a log request's writer,
 * or the sender of a commit message or of an access request, is another node is malformed. */
DW_MUST_CHECK enum dw_error dw_decode_batch_of(struct dw_decoder *decoder, uint32_t sender,
                                               const uint8_t *data, size_t size,
                                               const struct dw_batch_visitor *visitor, void *user,
                                               const char **text);

#endif
