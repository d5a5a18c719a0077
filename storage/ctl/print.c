#include <inttypes.h>
#include <stdio.h>

#include "storage/ctl/ctl.h"
#include "storage/options.h"

void print_txn(struct dw_txn_id txn)
{
    printf("%" PRIu32 ":%" PRIu32 ":%" PRIu64, txn.coordinator, txn.incarnation, txn.sequence);
}

static const char *name_of(const struct dw_admin_record *record)
{
    return record->record == DW_RECORD_NONE ? "DAMAGED" : dw_record_name(record->record);
}

static void print_hex(const struct dw_admin_record *record)
{
    for (size_t i = 0; i < record->redo_size; i++) {
        printf("%02x", record->redo[i]);
    }
}

static void print_participants_json(uint64_t participants)
{
    const char *comma = "";
    putchar('[');
    for (uint32_t node = 0; node < DW_MAX_NODES; node++) {
        if ((participants & dw_node_bit(node)) != 0) {
            printf("%s%" PRIu32, comma, node);
            comma = ",";
        }
    }
    putchar(']');
}

void print_record_json(const struct dw_admin_record *record, bool hex)
{
    printf("{\"position\":%" PRIu64 ",\"txn\":\"", record->position);
    print_txn(record->txn);
    printf("\",\"log\":%" PRIu32 ",\"record\":\"%s\",\"writer\":%" PRIu32 ",\"incarnation\":%" PRIu32
           ",\"coordinator\":%s,\"participants\":",
           record->log, name_of(record), record->writer, record->incarnation,
           record->coordinator ? "true" : "false");
    print_participants_json(record->participants);
    printf(",\"redo_bytes\":%zu", record->redo_size);
    if (hex) {
        fputs(",\"redo\":\"", stdout);
        print_hex(record);
        putchar('"');
    }
    putchar('}');
}

void print_record_head(bool hex)
{
    printf("%10s  %-20s %-9s %6s %5s  %-16s %6s%s\n", "position", "transaction", "record", "writer", "inc.",
           "participants", "redo B", hex ? "  redo" : "");
}

void print_record(const struct dw_admin_record *record, bool hex)
{
    char txn[48];
    char participants[OPTION_LOGS_TEXT] = "-";
    snprintf(txn, sizeof txn, "%" PRIu32 ":%" PRIu32 ":%" PRIu64, record->txn.coordinator,
             record->txn.incarnation, record->txn.sequence);
    if (record->participants != 0) {
        option_set_text(record->participants, participants, sizeof participants);
    }
    printf("%10" PRIu64 "  %-20s %-9s %6" PRIu32 " %5" PRIu32 "  %-16s %6zu", record->position, txn,
           name_of(record), record->writer, record->incarnation, participants, record->redo_size);
    if (hex && record->redo_size > 0) {
        fputs("  ", stdout);
        print_hex(record);
    }
    putchar('\n');
}
