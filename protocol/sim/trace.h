/* trace.h - steps of the core as text: one line an event, one indented line an output. */
#ifndef DW_SIM_TRACE_H
#define DW_SIM_TRACE_H

#include <stdio.h>

#include "sim/world.h"

/* A step of `node`: what came, what it asks for, and the state that it leaves. */
void dw_trace_step(FILE *file, uint32_t node, const struct dw_event *event, const struct dw_update *update,
                   enum dw_txn_state state);

/* A packet on one line, without a newline: "VOTE YES 1>0", "log 1: DENY by 0". */
void dw_trace_packet(FILE *file, const struct dw_packet *packet);

#endif
