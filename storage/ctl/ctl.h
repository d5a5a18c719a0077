/* ctl.h - what the files of dogwood-ctl share: the settings, one call, and how records are printed. */
#ifndef DW_STORAGE_CTL_CTL_H
#define DW_STORAGE_CTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/rpc.h"
#include "storage/delay.h"
#include "wire/admin.h"

/* What was asked on the command line; checked, but for what only the node can judge. */
struct ctl {
    const char *address;
    struct dw_identity self; /* an empty run id goes with any node */
    uint32_t timeout_ms;
    bool json;
    /* The command's words. */
    uint32_t log;
    struct dw_txn_id txn;
    enum dw_ask ask;
    struct dw_delay delay;
    bool set_delay;
    const char *spec; /* of a failpoint; "" lists them */
    /* The command's flags. */
    bool reset;
    bool hex; /* show redo */
    uint64_t from;
    uint64_t limit; /* 0: all */
    bool has_writer;
    uint32_t writer;
    bool has_incarnation;
    uint32_t incarnation;
    uint64_t participants;
    const char *redo;
    bool no_force;
    uint64_t warmup_ms;
    uint64_t duration_ms;
};

/* commands.c: each prints, and returns the exit code. */
int ctl_identify(const struct ctl *ctl);
int ctl_ping(const struct ctl *ctl);
int ctl_stats(const struct ctl *ctl);
int ctl_delay(const struct ctl *ctl);
int ctl_fence(const struct ctl *ctl);
int ctl_stop(const struct ctl *ctl);
int ctl_begin(const struct ctl *ctl);
int ctl_status(const struct ctl *ctl);
int ctl_report(const struct ctl *ctl);
int ctl_digest(const struct ctl *ctl);
int ctl_failpoint(const struct ctl *ctl);

/* read.c */
int ctl_read(const struct ctl *ctl);
int ctl_scan(const struct ctl *ctl);

/* log.c: a hand-made request over a stream. */
int ctl_log(const struct ctl *ctl);

/* call.c */
/* Prints one line on stderr and returns the exit code that goes with the error. */
int ctl_fail(enum dw_error error, const char *text);
/* A unary call; the request is freed. On failure it has been told, and *code is the exit code. The caller
 * frees *data. */
DW_MUST_CHECK bool ctl_call(const struct ctl *ctl, const char *method, enum dw_error encoded,
                            struct dw_buffer *request, uint8_t **data, size_t *size, int *code);
/* Tells of a reply that cannot be read. */
int ctl_fail_reply(const struct ctl *ctl, const char *method);
DW_MUST_CHECK bool ctl_call_identify(const struct ctl *ctl, struct dw_admin_identity *identity, int *code);

/* print.c: pieces of output. */
void print_record_head(bool hex);
void print_record(const struct dw_admin_record *record, bool hex);
void print_record_json(const struct dw_admin_record *record, bool hex);
void print_txn(struct dw_txn_id txn);

#endif
