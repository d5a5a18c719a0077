/* update.h - what a step asks the driver to do, as data. The core does nothing itself.
 *
 * The driver carries the outputs out in their order, with one exception that it may use: messages and log
 * requests may be batched with others. Nothing depends on an output of the same update having succeeded.
 */
#ifndef DW_CORE_UPDATE_H
#define DW_CORE_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/message.h"

enum dw_out_kind {
    DW_OUT_SEND = 1, /* message `message` with `value` (and `writers`) to each node in `to` */
    DW_OUT_LOG,      /* request `ask` to each log in `to`; `writers` if the record lists them; `force` */
    DW_OUT_ARM,      /* timer `value` (dw_timer) with number `attempt`, in place of the one armed before */
    DW_OUT_DISARM,
    DW_OUT_CALLER,  /* answer the caller: `value` is a dw_outcome; UNKNOWN is an answer too */
    DW_OUT_APPLY,   /* make the transaction's changes at this node visible; `position` orders redo (0: not
                       known) */
    DW_OUT_RELEASE, /* free its locks; drop changes that were not applied */
    DW_OUT_RELOCK,  /* recovery: take the write locks of the record at `position` again, before serving */
    DW_OUT_ALARM,   /* `value` is a dw_alarm: count it and report it */
    DW_OUT_FENCE,   /* node: take the next incarnation of the own log */
    DW_OUT_SCAN,    /* node: read the own log from its start */
};

enum dw_alarm {
    DW_ALARM_CONFLICT = 1, /* a log answered CONFLICT */
    DW_ALARM_FENCED,       /* this node has a newer incarnation elsewhere and must stop */
    DW_ALARM_DAMAGED,      /* a log cannot read the entry; asked again */
    DW_ALARM_FORGOTTEN,    /* a log has forgotten a transaction that is in doubt here */
    DW_ALARM_DISAGREEMENT, /* two decisions for one transaction */
};

struct dw_out {
    enum dw_out_kind kind;
    enum dw_message_kind message;
    enum dw_ask ask;
    uint32_t value;
    uint32_t attempt;
    bool force;
    uint64_t to;
    uint64_t writers;
    uint64_t position;
};

enum { DW_UPDATE_MAX = 12 };

struct dw_update {
    uint32_t count;
    struct dw_out outs[DW_UPDATE_MAX];
};

/* Appends an output. Asserts that there is room: the longest update has fewer than DW_UPDATE_MAX. */
void dw_update_add(struct dw_update *update, struct dw_out out);

const char *dw_out_kind_name(enum dw_out_kind kind);
const char *dw_alarm_name(enum dw_alarm alarm);

#endif
