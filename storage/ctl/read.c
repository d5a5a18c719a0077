#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/ctl/ctl.h"
#include "storage/options.h"

struct output {
    const struct ctl *ctl;
    uint64_t count;
    bool begun; /* of a scan's object */
};

static void show(void *user, const struct dw_admin_record *record)
{
    struct output *output = user;
    const struct ctl *ctl = output->ctl;
    if (ctl->json) {
        fputs(output->count > 0 ? "," : "", stdout);
        print_record_json(record, ctl->hex);
    } else {
        if (output->count == 0) {
            print_record_head(ctl->hex);
        }
        print_record(record, ctl->hex);
    }
    output->count++;
}

static void ignore(void *user, const struct dw_admin_record *record)
{
    (void)user;
    (void)record;
}

static void print_entry(const struct ctl *ctl, const struct dw_admin_entry *entry)
{
    if (ctl->json) {
        printf("{\"log\":%" PRIu32 ",\"txn\":\"", ctl->log);
        print_txn(ctl->txn);
        printf("\",\"state\":\"%s\",\"first_position\":%" PRIu64 ",\"records\":[",
               dw_entry_state_name(entry->state), entry->first_position);
    } else {
        printf("log %" PRIu32 ", transaction ", ctl->log);
        print_txn(ctl->txn);
        printf(": %s\n", dw_entry_state_name(entry->state));
    }
}

/* The reply is read twice, since the entry is printed before its records. */
int ctl_read(const struct ctl *ctl)
{
    struct dw_buffer request = {0};
    struct dw_admin_entry entry;
    struct output output = {.ctl = ctl};
    uint8_t *data;
    size_t size;
    int code;
    enum dw_error error = dw_admin_encode_read_entry(&request, ctl->log, ctl->txn);
    if (!ctl_call(ctl, DW_METHOD_READ_ENTRY, error, &request, &data, &size, &code)) {
        return code;
    }
    error = dw_admin_decode_entry(data, size, &entry, ignore, NULL);
    if (error == DW_OK) {
        print_entry(ctl, &entry);
        error = dw_admin_decode_entry(data, size, &entry, show, &output);
    }
    free(data);
    if (error != DW_OK) {
        return ctl_fail_reply(ctl, DW_METHOD_READ_ENTRY);
    }
    fputs(ctl->json ? "]}\n" : "", stdout);
    return EXIT_GOOD;
}

/* What stands before a scan's first record; not before its first page is there. */
static void begin_scan(struct output *output)
{
    if (output->ctl->json && !output->begun) {
        printf("{\"log\":%" PRIu32 ",\"records\":[", output->ctl->log);
    }
    output->begun = true;
}

static void show_scanned(void *user, const struct dw_admin_record *record)
{
    begin_scan(user);
    show(user, record);
}

/* Fetches and prints one page; *next is where to go on, 0 at the end. */
static bool scan_page(const struct ctl *ctl, struct dw_admin_scan *scan, struct output *output,
                      uint64_t *next, int *code)
{
    struct dw_buffer request = {0};
    uint8_t *data;
    size_t size;
    enum dw_error error = dw_admin_encode_scan(&request, scan);
    if (!ctl_call(ctl, DW_METHOD_SCAN, error, &request, &data, &size, code)) {
        return false;
    }
    error = dw_admin_decode_scanned(data, size, show_scanned, output, next);
    free(data);
    if (error != DW_OK) {
        *code = ctl_fail_reply(ctl, DW_METHOD_SCAN);
    }
    return error == DW_OK;
}

static uint32_t rest_of(const struct ctl *ctl, uint64_t count)
{
    uint64_t rest = ctl->limit - count;
    return ctl->limit == 0 ? 0 : rest < UINT32_MAX ? (uint32_t)rest : UINT32_MAX;
}

/* Page by page: what is printed is never held as a whole. */
int ctl_scan(const struct ctl *ctl)
{
    struct dw_admin_scan scan = {.log = ctl->log, .from = ctl->from};
    struct output output = {.ctl = ctl};
    uint64_t next = ctl->from;
    int code;
    do {
        scan.from = next;
        scan.limit = rest_of(ctl, output.count);
        if (!scan_page(ctl, &scan, &output, &next, &code)) {
            return code;
        }
    } while (next != 0 && (ctl->limit == 0 || output.count < ctl->limit));
    begin_scan(&output);
    if (ctl->json) {
        printf("],\"next\":%" PRIu64 "}\n", next);
    } else if (next != 0) {
        printf("%" PRIu64 " records; go on with --from %" PRIu64 "\n", output.count, next);
    } else {
        printf("%" PRIu64 " records, to the end of log %" PRIu32 "\n", output.count, ctl->log);
    }
    return EXIT_GOOD;
}
