#include "wire/admin.h"
#include "wire/dogwood.pb-c.h"
#include "wire/pack.h"

static Dogwood__V1__TxnId txn_out(struct dw_txn_id txn)
{
    Dogwood__V1__TxnId out;
    dogwood__v1__txn_id__init(&out);
    out.coordinator = txn.coordinator;
    out.incarnation = txn.incarnation;
    out.sequence = txn.sequence;
    return out;
}

/* `txn` lives as long as the record. */
static Dogwood__V1__Record record_out(const struct dw_admin_record *record, Dogwood__V1__TxnId *txn)
{
    union {
        const uint8_t *in;
        uint8_t *out;
    } redo = {.in = record->redo};
    Dogwood__V1__Record out;
    dogwood__v1__record__init(&out);
    *txn = txn_out(record->txn);
    out.position = record->position;
    out.txn = txn;
    out.log = record->log;
    out.record = (uint32_t)record->record;
    out.writer = record->writer;
    out.incarnation = record->incarnation;
    out.coordinator = record->coordinator;
    out.participants = record->participants;
    out.redo.data = redo.out;
    out.redo.len = record->redo_size;
    return out;
}

enum dw_error dw_admin_encode_read_entry(struct dw_buffer *buffer, uint32_t log, struct dw_txn_id txn)
{
    Dogwood__V1__TxnId id = txn_out(txn);
    Dogwood__V1__ReadEntryRequest request;
    dogwood__v1__read_entry_request__init(&request);
    if (log >= DW_MAX_NODES || !dw_txn_id_valid(txn)) {
        return DW_ERR_ARGUMENT;
    }
    request.log = log;
    request.txn = &id;
    return pack_append(buffer, &request.base);
}

enum dw_error dw_admin_encode_entry(struct dw_buffer *buffer, const struct dw_admin_entry *entry)
{
    Dogwood__V1__ReadEntryReply reply;
    dogwood__v1__read_entry_reply__init(&reply);
    reply.state = (uint32_t)entry->state;
    reply.first_position = entry->first_position;
    return pack_append(buffer, &reply.base);
}

enum dw_error dw_admin_encode_entry_record(struct dw_buffer *buffer, const struct dw_admin_record *record)
{
    Dogwood__V1__TxnId txn;
    Dogwood__V1__Record item = record_out(record, &txn);
    Dogwood__V1__Record *items[] = {&item};
    Dogwood__V1__ReadEntryReply reply;
    dogwood__v1__read_entry_reply__init(&reply);
    reply.n_records = 1;
    reply.records = items;
    return pack_append(buffer, &reply.base);
}

enum dw_error dw_admin_encode_scan(struct dw_buffer *buffer, const struct dw_admin_scan *scan)
{
    Dogwood__V1__ScanRequest request;
    dogwood__v1__scan_request__init(&request);
    if (scan->log >= DW_MAX_NODES) {
        return DW_ERR_ARGUMENT;
    }
    request.log = scan->log;
    request.from_position = scan->from;
    request.limit = scan->limit;
    return pack_append(buffer, &request.base);
}

enum dw_error dw_admin_encode_scanned(struct dw_buffer *buffer, const struct dw_admin_record *record)
{
    Dogwood__V1__TxnId txn;
    Dogwood__V1__Record item = record_out(record, &txn);
    Dogwood__V1__Record *items[] = {&item};
    Dogwood__V1__ScanReply reply;
    dogwood__v1__scan_reply__init(&reply);
    reply.n_records = 1;
    reply.records = items;
    return pack_append(buffer, &reply.base);
}

enum dw_error dw_admin_encode_scan_end(struct dw_buffer *buffer, uint64_t next)
{
    Dogwood__V1__ScanReply reply;
    dogwood__v1__scan_reply__init(&reply);
    reply.next_position = next;
    return pack_append(buffer, &reply.base);
}

enum dw_error dw_admin_encode_fence(struct dw_buffer *buffer, uint32_t log, uint32_t owner)
{
    Dogwood__V1__FenceRequest request;
    dogwood__v1__fence_request__init(&request);
    if (log >= DW_MAX_NODES || owner >= DW_MAX_NODES) {
        return DW_ERR_ARGUMENT;
    }
    request.log = log;
    request.owner = owner;
    return pack_append(buffer, &request.base);
}

enum dw_error dw_admin_encode_fenced(struct dw_buffer *buffer, uint32_t incarnation)
{
    Dogwood__V1__FenceReply reply;
    dogwood__v1__fence_reply__init(&reply);
    reply.incarnation = incarnation;
    return pack_append(buffer, &reply.base);
}

enum dw_error dw_admin_encode_delay(struct dw_buffer *buffer, const struct dw_admin_delay *delay)
{
    Dogwood__V1__DelayRequest request;
    dogwood__v1__delay_request__init(&request);
    request.set = delay->set;
    request.mean_ms = delay->mean_ms;
    request.distribution = pack_text(delay->distribution);
    request.parameter = delay->parameter;
    return pack_append(buffer, &request.base);
}

enum dw_error dw_admin_encode_delayed(struct dw_buffer *buffer, const struct dw_admin_delay *delay)
{
    Dogwood__V1__DelayReply reply;
    dogwood__v1__delay_reply__init(&reply);
    reply.mean_ms = delay->mean_ms;
    reply.distribution = pack_text(delay->distribution);
    reply.parameter = delay->parameter;
    return pack_append(buffer, &reply.base);
}

enum dw_error dw_admin_encode_stats_request(struct dw_buffer *buffer, bool reset)
{
    Dogwood__V1__StatsRequest request;
    dogwood__v1__stats_request__init(&request);
    request.reset = reset;
    return pack_append(buffer, &request.base);
}

enum dw_error dw_admin_encode_stat(struct dw_buffer *buffer, const char *name, uint64_t value)
{
    Dogwood__V1__Stat item;
    dogwood__v1__stat__init(&item);
    Dogwood__V1__Stat *items[] = {&item};
    Dogwood__V1__StatsReply reply;
    dogwood__v1__stats_reply__init(&reply);
    item.name = pack_text(name);
    item.value = value;
    reply.n_stats = 1;
    reply.stats = items;
    return pack_append(buffer, &reply.base);
}

enum dw_error dw_admin_encode_identity(struct dw_buffer *buffer, const struct dw_admin_identity *identity)
{
    Dogwood__V1__IdentifyReply reply;
    dogwood__v1__identify_reply__init(&reply);
    reply.role = pack_text(identity->role);
    reply.node = identity->node;
    reply.run_id = pack_text(identity->run_id);
    reply.version = pack_text(identity->version);
    reply.pid = identity->pid;
    return pack_append(buffer, &reply.base);
}
