#include <string.h>

#include "wire/admin.h"
#include "wire/dogwood.pb-c.h"

/* NULL if the bytes are no such message, or hold a field that isn't known: both ends speak the same version.
 */
static void *unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t size)
{
    ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, NULL, size, data);
    if (message != NULL && message->n_unknown_fields != 0) {
        protobuf_c_message_free_unpacked(message, NULL);
        message = NULL;
    }
    return message;
}

static enum dw_error release(ProtobufCMessage *message, bool good)
{
    protobuf_c_message_free_unpacked(message, NULL);
    return good ? DW_OK : DW_ERR_MALFORMED;
}

/* Copies a text; false if it doesn't fit, or could spoil a line of output. */
static bool text_in(const char *text, char *copy, size_t size)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            return false;
        }
    }
    if (length >= size) {
        return false;
    }
    memcpy(copy, text, length + 1);
    return true;
}

static bool txn_in(const Dogwood__V1__TxnId *from, struct dw_txn_id *txn)
{
    if (from == NULL || from->base.n_unknown_fields != 0) {
        return false;
    }
    *txn = (struct dw_txn_id){
        .coordinator = from->coordinator, .incarnation = from->incarnation, .sequence = from->sequence};
    return dw_txn_id_valid(*txn);
}

static bool record_in(const Dogwood__V1__Record *from, struct dw_admin_record *record)
{
    *record = (struct dw_admin_record){.position = from->position,
                                       .log = from->log,
                                       .record = (enum dw_record)from->record,
                                       .writer = from->writer,
                                       .incarnation = from->incarnation,
                                       .coordinator = from->coordinator,
                                       .participants = from->participants,
                                       .redo = from->redo.data,
                                       .redo_size = from->redo.len};
    return from->base.n_unknown_fields == 0 && txn_in(from->txn, &record->txn) && from->log < DW_MAX_NODES &&
           from->record <= DW_RECORD_END && from->redo.len <= DW_MAX_REDO;
}

/* All are checked before the first is visited. */
static bool visit_records(Dogwood__V1__Record **records, size_t count, dw_admin_record_visitor *on_record,
                          void *user)
{
    struct dw_admin_record record;
    for (size_t i = 0; i < count; i++) {
        if (!record_in(records[i], &record)) {
            return false;
        }
    }
    for (size_t i = 0; i < count && record_in(records[i], &record); i++) {
        on_record(user, &record);
    }
    return true;
}

enum dw_error dw_admin_decode_empty(const uint8_t *data, size_t size)
{
    (void)data;
    return size == 0 ? DW_OK : DW_ERR_MALFORMED;
}

enum dw_error dw_admin_decode_read_entry(const uint8_t *data, size_t size, uint32_t *log,
                                         struct dw_txn_id *txn)
{
    Dogwood__V1__ReadEntryRequest *request = unpack(&dogwood__v1__read_entry_request__descriptor, data, size);
    if (request == NULL) {
        return DW_ERR_MALFORMED;
    }
    *log = request->log;
    return release(&request->base, request->log < DW_MAX_NODES && txn_in(request->txn, txn));
}

enum dw_error dw_admin_decode_entry(const uint8_t *data, size_t size, struct dw_admin_entry *entry,
                                    dw_admin_record_visitor *on_record, void *user)
{
    Dogwood__V1__ReadEntryReply *reply = unpack(&dogwood__v1__read_entry_reply__descriptor, data, size);
    if (reply == NULL) {
        return DW_ERR_MALFORMED;
    }
    *entry = (struct dw_admin_entry){.state = (enum dw_entry_state)reply->state,
                                     .first_position = reply->first_position};
    return release(&reply->base, reply->state < DW_ENTRY_STATES &&
                                     visit_records(reply->records, reply->n_records, on_record, user));
}

enum dw_error dw_admin_decode_scan(const uint8_t *data, size_t size, struct dw_admin_scan *scan)
{
    Dogwood__V1__ScanRequest *request = unpack(&dogwood__v1__scan_request__descriptor, data, size);
    if (request == NULL) {
        return DW_ERR_MALFORMED;
    }
    *scan =
        (struct dw_admin_scan){.log = request->log, .from = request->from_position, .limit = request->limit};
    return release(&request->base, request->log < DW_MAX_NODES);
}

enum dw_error dw_admin_decode_scanned(const uint8_t *data, size_t size, dw_admin_record_visitor *on_record,
                                      void *user, uint64_t *next)
{
    Dogwood__V1__ScanReply *reply = unpack(&dogwood__v1__scan_reply__descriptor, data, size);
    if (reply == NULL) {
        return DW_ERR_MALFORMED;
    }
    *next = reply->next_position;
    return release(&reply->base, visit_records(reply->records, reply->n_records, on_record, user));
}

enum dw_error dw_admin_decode_fence(const uint8_t *data, size_t size, uint32_t *log, uint32_t *owner)
{
    Dogwood__V1__FenceRequest *request = unpack(&dogwood__v1__fence_request__descriptor, data, size);
    if (request == NULL) {
        return DW_ERR_MALFORMED;
    }
    *log = request->log;
    *owner = request->owner;
    return release(&request->base, request->log < DW_MAX_NODES && request->owner < DW_MAX_NODES);
}

enum dw_error dw_admin_decode_fenced(const uint8_t *data, size_t size, uint32_t *incarnation)
{
    Dogwood__V1__FenceReply *reply = unpack(&dogwood__v1__fence_reply__descriptor, data, size);
    if (reply == NULL) {
        return DW_ERR_MALFORMED;
    }
    *incarnation = reply->incarnation;
    return release(&reply->base, reply->incarnation > 0);
}

enum dw_error dw_admin_decode_delay(const uint8_t *data, size_t size, struct dw_admin_delay *delay)
{
    Dogwood__V1__DelayRequest *request = unpack(&dogwood__v1__delay_request__descriptor, data, size);
    if (request == NULL) {
        return DW_ERR_MALFORMED;
    }
    *delay = (struct dw_admin_delay){
        .set = request->set, .mean_ms = request->mean_ms, .parameter = request->parameter};
    return release(&request->base,
                   text_in(request->distribution, delay->distribution, sizeof delay->distribution));
}

enum dw_error dw_admin_decode_delayed(const uint8_t *data, size_t size, struct dw_admin_delay *delay)
{
    Dogwood__V1__DelayReply *reply = unpack(&dogwood__v1__delay_reply__descriptor, data, size);
    if (reply == NULL) {
        return DW_ERR_MALFORMED;
    }
    *delay = (struct dw_admin_delay){.mean_ms = reply->mean_ms, .parameter = reply->parameter};
    return release(&reply->base,
                   text_in(reply->distribution, delay->distribution, sizeof delay->distribution));
}

enum dw_error dw_admin_decode_stats_request(const uint8_t *data, size_t size, bool *reset)
{
    Dogwood__V1__StatsRequest *request = unpack(&dogwood__v1__stats_request__descriptor, data, size);
    if (request == NULL) {
        return DW_ERR_MALFORMED;
    }
    *reset = request->reset;
    return release(&request->base, true);
}

enum dw_error dw_admin_decode_stats(const uint8_t *data, size_t size, dw_admin_stat_visitor *on_stat,
                                    void *user)
{
    Dogwood__V1__StatsReply *reply = unpack(&dogwood__v1__stats_reply__descriptor, data, size);
    char name[DW_ADMIN_NAME];
    bool good = true;
    if (reply == NULL) {
        return DW_ERR_MALFORMED;
    }
    for (size_t i = 0; i < reply->n_stats && good; i++) {
        good =
            reply->stats[i]->base.n_unknown_fields == 0 && text_in(reply->stats[i]->name, name, sizeof name);
    }
    for (size_t i = 0; i < reply->n_stats && good; i++) {
        on_stat(user, reply->stats[i]->name, reply->stats[i]->value);
    }
    return release(&reply->base, good);
}

enum dw_error dw_admin_decode_identity(const uint8_t *data, size_t size, struct dw_admin_identity *identity)
{
    Dogwood__V1__IdentifyReply *reply = unpack(&dogwood__v1__identify_reply__descriptor, data, size);
    if (reply == NULL) {
        return DW_ERR_MALFORMED;
    }
    *identity = (struct dw_admin_identity){.node = reply->node, .pid = reply->pid};
    return release(&reply->base, text_in(reply->role, identity->role, sizeof identity->role) &&
                                     text_in(reply->run_id, identity->run_id, sizeof identity->run_id) &&
                                     text_in(reply->version, identity->version, sizeof identity->version));
}
