#include "wire/steer.h"

#include <stdlib.h>
#include <string.h>

#include "wire/dogwood.pb-c.h"
#include "wire/pack.h"

enum dw_error dw_steer_encode_begin(struct dw_buffer *buffer, const struct dw_steer_begin *begin)
{
    Dogwood__V1__BeginRequest request;
    dogwood__v1__begin_request__init(&request);
    request.warmup_ms = begin->warmup_ms;
    request.duration_ms = begin->duration_ms;
    return pack_append(buffer, &request.base);
}

enum dw_error dw_steer_decode_begin(const uint8_t *data, size_t size, struct dw_steer_begin *begin)
{
    Dogwood__V1__BeginRequest *request = dogwood__v1__begin_request__unpack(NULL, size, data);
    if (request == NULL || request->base.n_unknown_fields != 0) {
        dogwood__v1__begin_request__free_unpacked(request, NULL);
        return DW_ERR_MALFORMED;
    }
    *begin = (struct dw_steer_begin){.warmup_ms = request->warmup_ms, .duration_ms = request->duration_ms};
    dogwood__v1__begin_request__free_unpacked(request, NULL);
    return DW_OK;
}

enum dw_error dw_steer_encode_failpoint(struct dw_buffer *buffer, const char *spec)
{
    Dogwood__V1__FailpointRequest request;
    if (strlen(spec) >= DW_STEER_SPEC) {
        return DW_ERR_ARGUMENT;
    }
    dogwood__v1__failpoint_request__init(&request);
    request.spec = pack_text(spec);
    return pack_append(buffer, &request.base);
}

enum dw_error dw_steer_decode_failpoint(const uint8_t *data, size_t size, char *spec)
{
    Dogwood__V1__FailpointRequest *request = dogwood__v1__failpoint_request__unpack(NULL, size, data);
    if (request == NULL || request->base.n_unknown_fields != 0 || strlen(request->spec) >= DW_STEER_SPEC) {
        dogwood__v1__failpoint_request__free_unpacked(request, NULL);
        return DW_ERR_MALFORMED;
    }
    memcpy(spec, request->spec, strlen(request->spec) + 1);
    dogwood__v1__failpoint_request__free_unpacked(request, NULL);
    return DW_OK;
}

enum dw_error dw_steer_encode_json(struct dw_buffer *buffer, const char *json)
{
    Dogwood__V1__JsonReply reply;
    dogwood__v1__json_reply__init(&reply);
    reply.json = pack_text(json);
    return pack_append(buffer, &reply.base);
}

enum dw_error dw_steer_decode_json(const uint8_t *data, size_t size, char **json)
{
    Dogwood__V1__JsonReply *reply = dogwood__v1__json_reply__unpack(NULL, size, data);
    if (reply == NULL || reply->base.n_unknown_fields != 0) {
        dogwood__v1__json_reply__free_unpacked(reply, NULL);
        return DW_ERR_MALFORMED;
    }
    *json = strdup(reply->json);
    dogwood__v1__json_reply__free_unpacked(reply, NULL);
    return *json != NULL ? DW_OK : DW_ERR_MEMORY;
}
