/* What surrounds the run of a scenario: its set-up, the points of its faults, and the text of its result. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "sim/scenario.h"

void dw_scenario_init(struct dw_scenario *scenario, const struct dw_protocol *protocol, uint32_t nodes)
{
    DW_ASSERT(nodes >= 1 && nodes <= DW_SCENARIO_NODES);
    memset(scenario, 0, sizeof *scenario);
    scenario->protocol = protocol;
    scenario->nodes = nodes;
    scenario->writers = dw_node_bit(nodes) - 1;
    scenario->times = (struct dw_scenario_times){
        .commit_us = 1000, .message_us = 250, .storage_us = 250, .log_write_us = 1000};
    for (uint32_t i = 0; i < DW_SCENARIO_TIMERS; i++) {
        scenario->times.timer_us[i] = 10000;
    }
    scenario->end_us = 1000000;
}

void dw_scenario_add(struct dw_scenario *scenario, struct dw_fault fault)
{
    DW_ASSERT(scenario->fault_count < DW_SCENARIO_FAULTS);
    DW_ASSERT(fault.point.node < scenario->nodes);
    scenario->faults[scenario->fault_count++] = fault;
}

/* --- the points of faults --- */

/* The fault whose point is passed now for the right time, or NULL. */
static const struct dw_fault *pass_point(const struct dw_scenario *scenario,
                                         struct dw_scenario_result *result,
                                         const struct dw_scenario_point *here)
{
    const struct dw_fault *found = NULL;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct dw_fault *fault = &scenario->faults[i];
        const struct dw_scenario_point *point = &fault->point;
        bool same_kind = point->out == here->out && point->event == here->event;
        bool same_content = point->message == here->message && point->ask == here->ask;
        bool same_peer = point->peer == DW_SCENARIO_ANY || point->peer == here->peer;
        if (fault->kind >= DW_FAULT_CRASH_AT || point->node != here->node || !same_kind || !same_content ||
            !same_peer) {
            continue;
        }
        if (++result->passed[i] == (point->nth == 0 ? 1 : point->nth)) {
            result->observed |= 1u << i;
            found = fault;
        }
    }
    return found;
}

const struct dw_fault *dw_scenario_pass_output(const struct dw_scenario *scenario,
                                               struct dw_scenario_result *result, uint32_t node,
                                               const struct dw_out *out, uint32_t peer)
{
    struct dw_scenario_point here = {.node = node, .out = out->kind, .peer = peer};
    if (out->kind == DW_OUT_SEND) {
        here.message = out->message;
    } else if (out->kind == DW_OUT_LOG) {
        here.ask = out->ask;
    }
    return pass_point(scenario, result, &here);
}

const struct dw_fault *dw_scenario_pass_event(const struct dw_scenario *scenario,
                                              struct dw_scenario_result *result, uint32_t node,
                                              const struct dw_event *event)
{
    struct dw_scenario_point here = {.node = node, .event = event->kind, .peer = node};
    if (event->kind == DW_EVENT_MESSAGE) {
        here.message = event->message.kind;
        here.peer = event->message.from;
    } else if (event->kind == DW_EVENT_LOG_REPLY) {
        here.ask = event->reply.ask;
        here.peer = event->reply.log;
    }
    return pass_point(scenario, result, &here);
}

/* --- the result --- */

bool dw_scenario_observed(const struct dw_scenario *scenario, const struct dw_scenario_result *result)
{
    return result->observed == (1u << scenario->fault_count) - 1;
}

static void print_log(FILE *file, uint32_t number, const struct dw_scenario_log *log)
{
    fprintf(file, "log %u:", number);
    for (uint32_t i = 0; i < log->record_count; i++) {
        fprintf(file, "%s %s by %u", i > 0 ? "," : "", dw_record_name(log->records[i]), log->writers[i]);
    }
    fprintf(file, log->record_count == 0 ? " empty\n" : "\n");
}

static void print_node(FILE *file, uint32_t number, const struct dw_scenario_node *node)
{
    fprintf(file, "node %u: %s", number, dw_outcome_name(node->outcome));
    if (node->outcome != DW_OUTCOME_UNKNOWN) {
        fprintf(file, " at %" PRIu64, node->decided_us);
    }
    if (node->blocked) {
        fprintf(file, ", blocked since %" PRIu64, node->blocked_us);
    }
    fprintf(file, ", ends %s %s\n", node->up ? "up" : "down", dw_txn_state_name(node->state));
}

void dw_scenario_print(FILE *file, const struct dw_scenario *scenario,
                       const struct dw_scenario_result *result)
{
    if (result->answered) {
        fprintf(file, "caller: %s at %" PRIu64 "\n", dw_outcome_name(result->caller), result->answered_us);
    } else {
        fprintf(file, "caller: never answered\n");
    }
    for (uint32_t i = 0; i < scenario->nodes; i++) {
        print_node(file, i, &result->node[i]);
    }
    for (uint32_t i = 0; i < scenario->nodes; i++) {
        print_log(file, i, &result->log[i]);
    }
    fprintf(file, "log writes %u, forced %u; messages %u, acknowledgements %u, lost %u\n", result->log_writes,
            result->forced, result->messages, result->acks, result->lost);
}
