#include "sim/trace.h"

/* "0,2" for the mask 0b101. */
static void print_mask(FILE *file, uint64_t mask)
{
    const char *separator = "";
    for (uint32_t i = 0; i < 64; i++) {
        if (mask & dw_node_bit(i)) {
            fprintf(file, "%s%u", separator, i);
            separator = ",";
        }
    }
}

static const char *value_name(enum dw_message_kind kind, uint32_t value)
{
    switch (kind) {
    case DW_MSG_VOTE:
        return dw_vote_name((enum dw_vote)value);
    case DW_MSG_DECISION:
    case DW_MSG_INQUIRY_REPLY:
        return dw_outcome_name((enum dw_outcome)value);
    case DW_MSG_VOTE_REQUEST:
    case DW_MSG_READ_REQUEST:
    case DW_MSG_ACK:
    case DW_MSG_INQUIRY:
        return NULL;
    }
    return NULL;
}

static void print_message(FILE *file, enum dw_message_kind kind, uint32_t value)
{
    const char *name = value_name(kind, value);
    fprintf(file, "%s%s%s", dw_message_kind_name(kind), name ? " " : "", name ? name : "");
}

static void print_event(FILE *file, const struct dw_event *event)
{
    switch (event->kind) {
    case DW_EVENT_COMMIT:
        fprintf(file, "commit asked, writers ");
        print_mask(file, event->writers);
        if (event->readers) {
            fprintf(file, ", readers ");
            print_mask(file, event->readers);
        }
        return;
    case DW_EVENT_CANCEL:
        fprintf(file, "cancelled");
        return;
    case DW_EVENT_JOIN:
        fprintf(file, "first access");
        return;
    case DW_EVENT_MESSAGE:
        print_message(file, event->message.kind, event->message.value);
        fprintf(file, " from %u", event->message.from);
        return;
    case DW_EVENT_LOG_REPLY:
        fprintf(file, "log %u answers %s to %s", event->reply.log, dw_answer_name(event->reply.answer),
                dw_ask_name(event->reply.ask));
        return;
    case DW_EVENT_TIMEOUT:
        fprintf(file, "time-out %s", dw_timer_name(event->timer));
        return;
    case DW_EVENT_RECOVERED:
        fprintf(file, "scan found %s", dw_entry_state_name(event->entry));
        return;
    }
}

static void print_out(FILE *file, const struct dw_out *out)
{
    switch (out->kind) {
    case DW_OUT_SEND:
        fprintf(file, "send ");
        print_message(file, out->message, out->value);
        fprintf(file, " to ");
        print_mask(file, out->to);
        return;
    case DW_OUT_LOG:
        fprintf(file, "log %s%s at ", dw_ask_name(out->ask), out->force ? "" : " (unforced)");
        print_mask(file, out->to);
        return;
    case DW_OUT_ARM:
        fprintf(file, "timer %s", dw_timer_name((enum dw_timer)out->value));
        return;
    case DW_OUT_CALLER:
        fprintf(file, "caller hears %s", dw_outcome_name((enum dw_outcome)out->value));
        return;
    case DW_OUT_ALARM:
        fprintf(file, "alarm %s", dw_alarm_name((enum dw_alarm)out->value));
        return;
    case DW_OUT_DISARM:
    case DW_OUT_APPLY:
    case DW_OUT_RELEASE:
    case DW_OUT_RELOCK:
    case DW_OUT_FENCE:
    case DW_OUT_SCAN:
        fprintf(file, "%s", dw_out_kind_name(out->kind));
        return;
    }
}

void dw_trace_step(FILE *file, uint32_t node, const struct dw_event *event, const struct dw_update *update,
                   enum dw_txn_state state)
{
    fprintf(file, "node %u: ", node);
    print_event(file, event);
    fprintf(file, " -> %s\n", dw_txn_state_name(state));
    for (uint32_t i = 0; i < update->count; i++) {
        fprintf(file, "    ");
        print_out(file, &update->outs[i]);
        fprintf(file, "\n");
    }
}

void dw_trace_packet(FILE *file, const struct dw_packet *packet)
{
    switch (packet->kind) {
    case DW_PACKET_MESSAGE:
        print_message(file, packet->message.kind, packet->message.value);
        fprintf(file, " %u>%u", packet->message.from, packet->message.to);
        return;
    case DW_PACKET_LOG_REQUEST:
        fprintf(file, "%s by node %u (incarnation %u) at log %u", dw_ask_name(packet->request.ask),
                packet->request.writer, packet->request.incarnation, packet->log);
        return;
    case DW_PACKET_LOG_REPLY:
        fprintf(file, "log %u answers %s to %s of node %u", packet->log, dw_answer_name(packet->reply.answer),
                dw_ask_name(packet->reply.ask), packet->node);
        return;
    case DW_PACKET_FENCE:
        fprintf(file, "node %u asks log %u for an incarnation", packet->node, packet->log);
        return;
    case DW_PACKET_FENCE_REPLY:
        fprintf(file, "node %u gets incarnation %u", packet->node, packet->incarnation);
        return;
    case DW_PACKET_SCAN:
        fprintf(file, "node %u scans log %u", packet->node, packet->log);
        return;
    case DW_PACKET_SCAN_REPLY:
        fprintf(file, "the scan of node %u found %s", packet->node, dw_entry_state_name(packet->entry));
        return;
    }
}
