#include "core/update.h"

#include "base/assert.h"

void dw_update_add(struct dw_update *update, struct dw_out out)
{
    DW_ASSERT(update->count < DW_UPDATE_MAX);
    update->outs[update->count++] = out;
}

const char *dw_out_kind_name(enum dw_out_kind kind)
{
    static const char *const names[] = {"?",     "SEND",    "LOG",    "ARM",   "DISARM", "CALLER",
                                        "APPLY", "RELEASE", "RELOCK", "ALARM", "FENCE",  "SCAN"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

const char *dw_alarm_name(enum dw_alarm alarm)
{
    static const char *const names[] = {"?", "CONFLICT", "FENCED", "DAMAGED", "FORGOTTEN", "DISAGREEMENT"};
    return (unsigned)alarm < sizeof names / sizeof *names ? names[alarm] : "?";
}
