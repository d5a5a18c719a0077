/* check.h - the rules that an item must keep, the same for sender and receiver. Private to protocol/wire.
 *
 * Each function returns NULL, or a static line that names the first wrong field.
 */
#ifndef DW_WIRE_CHECK_H
#define DW_WIRE_CHECK_H

#include "wire/codec.h"

/* The numbers of `ask`, `kind` and so on may come straight from the wire: they are compared as unsigned
 * numbers. */
const char *dw_check_log_request(const struct dw_wire_log_request *request);
const char *dw_check_log_reply(const struct dw_wire_log_reply *reply);
const char *dw_check_message(const struct dw_message *message, const struct dw_token *token);
const char *dw_check_access_request(const struct dw_wire_access_request *request);
const char *dw_check_access(const struct dw_wire_access *access);
const char *dw_check_access_reply(const struct dw_wire_access_reply *reply);

#endif
