#include "sim/scenario.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "sim/check.h"
#include "sim/trace.h"

enum { MAX_PENDING = 256 };

enum pending_kind { PENDING_PACKET = 1, PENDING_TIMER, PENDING_COMMIT, PENDING_FAULT };

/* Something that will happen. */
struct pending {
    uint64_t at_us;
    uint64_t sequence;
    enum pending_kind kind;
    uint32_t node;  /* that causes it */
    uint32_t life;  /* its life then: replies and timers die with their process */
    uint32_t fault; /* number of the fault */
    enum dw_timer timer;
    uint32_t attempt;
    struct dw_packet packet;
};

struct run {
    const struct dw_scenario *scenario;
    struct dw_scenario_result *result;
    uint64_t now_us;
    uint64_t sequence;
    struct pending pending[MAX_PENDING];
    uint32_t pending_count;
    uint32_t life[DW_SCENARIO_NODES];
    struct dw_node node[DW_SCENARIO_NODES];
    struct dw_txn txn[DW_SCENARIO_NODES];
    struct dw_world_log log[DW_SCENARIO_NODES];
    bool reversed;
    bool conflict;
    uint32_t alarms;
};

/* --- what will happen --- */

static struct pending *add_pending(struct run *run, enum pending_kind kind, uint32_t node, uint64_t delay_us)
{
    DW_ASSERT(run->pending_count < MAX_PENDING);
    struct pending *pending = &run->pending[run->pending_count++];
    memset(pending, 0, sizeof *pending);
    pending->at_us = run->now_us + delay_us;
    pending->sequence = run->sequence++;
    pending->kind = kind;
    pending->node = node;
    pending->life = run->life[node];
    return pending;
}

static void send_packet(struct run *run, uint32_t node, uint64_t delay_us, struct dw_packet packet)
{
    add_pending(run, PENDING_PACKET, node, delay_us)->packet = packet;
}

static bool is_earlier(const struct pending *a, const struct pending *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->sequence < b->sequence);
}

static struct pending take_next(struct run *run)
{
    uint32_t next = 0;
    for (uint32_t i = 1; i < run->pending_count; i++) {
        if (is_earlier(&run->pending[i], &run->pending[next])) {
            next = i;
        }
    }
    struct pending taken = run->pending[next];
    run->pending[next] = run->pending[--run->pending_count];
    return taken;
}

static void cancel_timer(struct run *run, uint32_t node)
{
    for (uint32_t i = 0; i < run->pending_count; i++) {
        if (run->pending[i].kind == PENDING_TIMER && run->pending[i].node == node) {
            run->pending[i] = run->pending[--run->pending_count];
            return;
        }
    }
}

/* --- the trace --- */

/* Starts a line with the time; NULL if there is no trace. */
static FILE *trace_line(const struct run *run)
{
    if (run->scenario->trace != NULL) {
        fprintf(run->scenario->trace, "%8" PRIu64 " us  ", run->now_us);
    }
    return run->scenario->trace;
}

static void trace_packet_line(const struct run *run, const char *what, const struct dw_packet *packet)
{
    FILE *file = trace_line(run);
    if (file != NULL) {
        fprintf(file, "%s: ", what);
        dw_trace_packet(file, packet);
        fprintf(file, "\n");
    }
}

static void trace_node_line(const struct run *run, uint32_t node, const char *what)
{
    FILE *file = trace_line(run);
    if (file != NULL) {
        fprintf(file, "node %u %s\n", node, what);
    }
}

static void crash(struct run *run, uint32_t node)
{
    struct dw_scenario_node *noted = &run->result->node[node];
    DW_ASSERT(noted->up);
    noted->up = false;
    noted->crashed_us = run->now_us;
    run->life[node]++;
    cancel_timer(run, node);
    dw_node_init(&run->node[node], node);
    memset(&run->txn[node], 0, sizeof run->txn[node]);
    trace_node_line(run, node, "crashes");
}

/* --- what a step asks for --- */

static void note_outcome(struct run *run, uint32_t node, enum dw_outcome outcome)
{
    struct dw_scenario_node *noted = &run->result->node[node];
    if ((run->scenario->writers & dw_node_bit(node)) == 0) {
        return;
    }
    if (noted->outcome == DW_OUTCOME_UNKNOWN) {
        noted->outcome = outcome;
        noted->decided_us = run->now_us;
    }
    run->reversed = run->reversed || noted->outcome != outcome;
}

static void send_message(struct run *run, uint32_t node, uint32_t to, const struct dw_out *out, bool lost)
{
    struct dw_packet packet = dw_packet_message(node, to, out);
    run->result->messages += out->message != DW_MSG_ACK;
    run->result->acks += out->message == DW_MSG_ACK;
    if (lost) {
        run->result->lost++;
        trace_packet_line(run, "lost", &packet);
        return;
    }
    send_packet(run, node, run->scenario->times.message_us, packet);
}

/* A request reaches its log after the trip and the write: the injected delay is served before it is admitted.
 */
static void send_request(struct run *run, uint32_t node, uint32_t log, const struct dw_out *out, bool lost)
{
    const struct dw_scenario_times *times = &run->scenario->times;
    struct dw_packet packet = dw_packet_request(node, run->node[node].incarnation, log, out);
    bool writes = dw_ask_is_write(out->ask);
    run->result->log_writes += writes;
    run->result->forced += writes && out->force;
    if (lost) {
        run->result->lost++;
        trace_packet_line(run, "lost", &packet);
        return;
    }
    send_packet(run, node, times->storage_us + (writes ? times->log_write_us : 0), packet);
}

static void call_log(struct run *run, uint32_t node, enum dw_packet_kind kind)
{
    const struct dw_scenario_times *times = &run->scenario->times;
    uint64_t write_us = kind == DW_PACKET_FENCE ? times->log_write_us : 0;
    send_packet(run, node, times->storage_us + write_us, dw_packet_call(node, kind));
}

static void arm(struct run *run, uint32_t node, const struct dw_out *out)
{
    cancel_timer(run, node);
    DW_ASSERT(out->value < DW_SCENARIO_TIMERS);
    struct pending *pending =
        add_pending(run, PENDING_TIMER, node, run->scenario->times.timer_us[out->value]);
    pending->timer = (enum dw_timer)out->value;
    pending->attempt = out->attempt;
}

static void answer_caller(struct run *run, const struct dw_out *out)
{
    run->result->caller = (enum dw_outcome)out->value;
    run->result->answered = true;
    run->result->answered_us = run->now_us;
}

/* Carries out one output for one destination (the node itself for what stays at home). */
static void carry_out(struct run *run, uint32_t node, const struct dw_out *out, uint32_t to, bool applied,
                      bool lost)
{
    switch (out->kind) {
    case DW_OUT_SEND:
        send_message(run, node, to, out, lost);
        return;
    case DW_OUT_LOG:
        send_request(run, node, to, out, lost);
        return;
    case DW_OUT_ARM:
        arm(run, node, out);
        return;
    case DW_OUT_DISARM:
        cancel_timer(run, node);
        return;
    case DW_OUT_CALLER:
        answer_caller(run, out);
        return;
    case DW_OUT_APPLY:
        note_outcome(run, node, DW_OUTCOME_COMMITTED);
        return;
    case DW_OUT_RELEASE:
        if (!applied) {
            note_outcome(run, node, DW_OUTCOME_ABORTED);
        }
        return;
    case DW_OUT_ALARM:
        run->alarms |= 1u << out->value;
        return;
    case DW_OUT_FENCE:
        call_log(run, node, DW_PACKET_FENCE);
        return;
    case DW_OUT_SCAN:
        call_log(run, node, DW_PACKET_SCAN);
        return;
    case DW_OUT_RELOCK:
        return;
    }
}

/* The same, unless a fault has its point here. False if the node crashed. */
static bool try_carry_out(struct run *run, uint32_t node, const struct dw_out *out, uint32_t to, bool applied)
{
    const struct dw_fault *fault = dw_scenario_pass_output(run->scenario, run->result, node, out, to);
    if (fault != NULL && fault->kind == DW_FAULT_CRASH_BEFORE) {
        crash(run, node);
        return false;
    }
    carry_out(run, node, out, to, applied, fault != NULL && fault->kind == DW_FAULT_LOSE);
    if (fault != NULL && fault->kind == DW_FAULT_CRASH_AFTER) {
        crash(run, node);
        return false;
    }
    return true;
}

static void carry_out_all(struct run *run, uint32_t node, const struct dw_update *update)
{
    bool applied = false;
    for (uint32_t i = 0; i < update->count; i++) {
        const struct dw_out *out = &update->outs[i];
        bool travels = out->kind == DW_OUT_SEND || out->kind == DW_OUT_LOG;
        uint64_t to = travels ? out->to : dw_node_bit(node);
        for (uint32_t peer = 0; peer < run->scenario->nodes; peer++) {
            if ((to & dw_node_bit(peer)) != 0 && !try_carry_out(run, node, out, peer, applied)) {
                return;
            }
        }
        applied = applied || out->kind == DW_OUT_APPLY;
    }
}

/* --- steps --- */

static void note_progress(struct run *run, uint32_t node)
{
    struct dw_scenario_node *noted = &run->result->node[node];
    if (dw_txn_has(&run->txn[node], DW_TXN_VOTE_LOGGED) && noted->vote_logged_us == 0) {
        noted->vote_logged_us = run->now_us;
    }
    if (dw_txn_has(&run->txn[node], DW_TXN_BLOCKED) && !noted->blocked) {
        noted->blocked = true;
        noted->blocked_us = run->now_us;
    }
}

static void step(struct run *run, uint32_t node, const struct dw_event *event)
{
    const struct dw_fault *fault = dw_scenario_pass_event(run->scenario, run->result, node, event);
    if (fault != NULL && fault->kind == DW_FAULT_CRASH_BEFORE) {
        crash(run, node);
        return;
    }
    if (fault != NULL && fault->kind == DW_FAULT_LOSE) {
        run->result->lost++;
        trace_node_line(run, node, "loses what comes");
        return;
    }
    struct dw_update update;
    dw_step(run->scenario->protocol, &run->node[node], &run->txn[node], event, &update);
    FILE *file = trace_line(run);
    if (file != NULL) {
        dw_trace_step(file, node, event, &update, (enum dw_txn_state)run->txn[node].state);
    }
    note_progress(run, node);
    carry_out_all(run, node, &update);
    if (fault != NULL && fault->kind == DW_FAULT_CRASH_AFTER && run->result->node[node].up) {
        crash(run, node);
    }
}

static enum dw_execution execution(const struct run *run, uint32_t node)
{
    if (run->txn[node].state != DW_TXN_EXECUTING) {
        return DW_EXECUTION_NONE;
    }
    return run->scenario->broken & dw_node_bit(node) ? DW_EXECUTION_BROKEN : DW_EXECUTION_WHOLE;
}

static void take_message(struct run *run, const struct dw_packet *packet)
{
    uint32_t node = packet->node;
    if (run->node[node].state != DW_NODE_SERVING) {
        run->result->lost++;
        trace_packet_line(run, "nobody hears", packet);
        return;
    }
    struct dw_event event = {.kind = DW_EVENT_MESSAGE,
                             .txn = dw_world_txn(),
                             .message = packet->message,
                             .execution = execution(run, node)};
    step(run, node, &event);
}

/* --- start and recovery --- */

static void start_node(struct run *run, uint32_t node)
{
    struct dw_update update = {0};
    dw_node_start(&run->node[node], &update);
    carry_out_all(run, node, &update);
}

/* The driver applies or drops the redo that the scan finds; the core is asked about what is in doubt. */
static void take_scan(struct run *run, const struct dw_packet *packet)
{
    uint32_t node = packet->node;
    enum dw_entry_state entry = packet->entry;
    if (entry == DW_ENTRY_COMMIT || entry == DW_ENTRY_COORD_COMMIT || entry == DW_ENTRY_END) {
        note_outcome(run, node, DW_OUTCOME_COMMITTED);
    } else if (entry != DW_ENTRY_VOTE_YES) {
        note_outcome(run, node, DW_OUTCOME_ABORTED);
    }
    trace_packet_line(run, "recovery", packet);
    if (entry != DW_ENTRY_NONE) {
        struct dw_event event = {.kind = DW_EVENT_RECOVERED,
                                 .txn = dw_world_txn(),
                                 .entry = entry,
                                 .writers = packet->participants,
                                 .position = 1};
        step(run, node, &event);
    }
    if (run->node[node].state == DW_NODE_SCANNING) {
        dw_node_scanned(&run->node[node]);
        run->result->node[node].serving_us = run->now_us;
        trace_node_line(run, node, "serves");
    }
}

static void take_fence_reply(struct run *run, const struct dw_packet *packet)
{
    struct dw_update update = {0};
    trace_packet_line(run, "recovery", packet);
    dw_node_fenced(&run->node[packet->node], packet->incarnation, &update);
    carry_out_all(run, packet->node, &update);
}

/* --- packets and the rest --- */

static void note_record(struct run *run, const struct dw_packet *request, enum dw_entry_state before)
{
    static const enum dw_record records[DW_ENTRY_STATES] = {
        [DW_ENTRY_VOTE_YES] = DW_RECORD_VOTE_YES,
        [DW_ENTRY_COMMIT] = DW_RECORD_COMMIT,
        [DW_ENTRY_ABORT] = DW_RECORD_ABORT,
        [DW_ENTRY_START] = DW_RECORD_START_2PC,
        [DW_ENTRY_COORD_COMMIT] = DW_RECORD_COMMIT,
        [DW_ENTRY_COORD_ABORT] = DW_RECORD_ABORT,
        [DW_ENTRY_END] = DW_RECORD_END,
    };
    struct dw_scenario_log *log = &run->result->log[request->log];
    enum dw_entry_state state = run->log[request->log].entry.state;
    FILE *file = trace_line(run);
    if (file != NULL) {
        dw_trace_packet(file, request);
        fprintf(file, state == before ? ": holds %s\n" : ": appends %s\n", dw_record_name(records[state]));
    }
    if (state != before) {
        DW_ASSERT(log->record_count < DW_SCENARIO_RECORDS);
        log->writers[log->record_count] = request->node;
        log->records[log->record_count++] = records[state];
    }
    log->state = state;
}

static void serve(struct run *run, const struct pending *pending)
{
    const struct dw_packet *packet = &pending->packet;
    enum dw_entry_state before = run->log[packet->log].entry.state;
    struct dw_packet reply = dw_world_log_serve(&run->log[packet->log], dw_log_rule, packet);
    if (packet->kind == DW_PACKET_LOG_REQUEST) {
        note_record(run, packet, before);
        run->conflict = run->conflict || reply.reply.answer == DW_ANSWER_CONFLICT;
    }
    add_pending(run, PENDING_PACKET, packet->node, run->scenario->times.storage_us)->packet = reply;
    run->pending[run->pending_count - 1].life = pending->life;
}

static void take_packet(struct run *run, const struct pending *pending)
{
    const struct dw_packet *packet = &pending->packet;
    bool asker_lives = run->life[packet->node] == pending->life;
    switch (packet->kind) {
    case DW_PACKET_MESSAGE:
        take_message(run, packet);
        return;
    case DW_PACKET_LOG_REQUEST:
    case DW_PACKET_FENCE:
    case DW_PACKET_SCAN:
        serve(run, pending);
        return;
    case DW_PACKET_LOG_REPLY:
        if (asker_lives) {
            struct dw_event event = {
                .kind = DW_EVENT_LOG_REPLY, .txn = dw_world_txn(), .reply = packet->reply};
            step(run, packet->node, &event);
        }
        return;
    case DW_PACKET_FENCE_REPLY:
        if (asker_lives) {
            take_fence_reply(run, packet);
        }
        return;
    case DW_PACKET_SCAN_REPLY:
        if (asker_lives) {
            take_scan(run, packet);
        }
        return;
    }
}

static void take_timer(struct run *run, const struct pending *pending)
{
    struct dw_event event = {.kind = DW_EVENT_TIMEOUT,
                             .txn = dw_world_txn(),
                             .timer = pending->timer,
                             .attempt = pending->attempt};
    step(run, pending->node, &event);
}

/* The caller of a coordinator that is down, or has been, is gone with it. */
static void take_commit(struct run *run)
{
    if (run->life[0] != 0) {
        return;
    }
    struct dw_event event = {.kind = DW_EVENT_COMMIT,
                             .txn = dw_world_txn(),
                             .writers = run->scenario->writers,
                             .readers = run->scenario->readers};
    step(run, 0, &event);
}

static void take_fault(struct run *run, uint32_t number)
{
    const struct dw_fault *fault = &run->scenario->faults[number];
    uint32_t node = fault->point.node;
    bool up = run->result->node[node].up;
    if (up != (fault->kind == DW_FAULT_CRASH_AT)) {
        return; /* stays unobserved */
    }
    run->result->observed |= 1u << number;
    if (up) {
        crash(run, node);
        return;
    }
    run->result->node[node].up = true;
    trace_node_line(run, node, "restarts");
    start_node(run, node);
}

static void take(struct run *run, const struct pending *pending)
{
    switch (pending->kind) {
    case PENDING_PACKET:
        take_packet(run, pending);
        return;
    case PENDING_TIMER:
        take_timer(run, pending);
        return;
    case PENDING_COMMIT:
        take_commit(run);
        return;
    case PENDING_FAULT:
        take_fault(run, pending->fault);
        return;
    }
}

/* Clusters that fit are checked after each event as the explorer checks them. */
static void check(struct run *run)
{
    if (run->scenario->nodes > DW_WORLD_NODES || run->result->violation != NULL) {
        return;
    }
    struct dw_world world;
    memset(&world, 0, sizeof world);
    world.nodes = run->scenario->nodes;
    world.writers = run->scenario->writers;
    world.readers = run->scenario->readers;
    for (uint32_t i = 0; i < run->scenario->nodes; i++) {
        world.up |= run->result->node[i].up ? 1u << i : 0;
        world.node[i] = run->node[i];
        world.txn[i] = run->txn[i];
        world.log[i] = run->log[i];
        world.history.outcome[i] = (uint8_t)run->result->node[i].outcome;
    }
    world.history.caller = (uint8_t)run->result->caller;
    world.history.reversed = run->reversed;
    world.history.conflicts = run->conflict;
    world.history.alarms = (uint8_t)run->alarms;
    run->result->violation = dw_check_world(&world, run->scenario->protocol);
}

/* --- the whole --- */

static void begin(struct run *run)
{
    const struct dw_scenario *scenario = run->scenario;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct dw_fault *fault = &scenario->faults[i];
        if (fault->kind >= DW_FAULT_CRASH_AT) {
            add_pending(run, PENDING_FAULT, fault->point.node, fault->at_us)->fault = i;
        }
    }
    add_pending(run, PENDING_COMMIT, 0, scenario->times.commit_us);
    for (uint32_t i = 0; i < scenario->nodes; i++) {
        struct dw_update update = {0};
        run->result->node[i].up = true;
        dw_node_init(&run->node[i], i);
        dw_node_start(&run->node[i], &update);
        dw_node_fenced(&run->node[i], 1, &update);
        dw_node_scanned(&run->node[i]);
        run->log[i].incarnation = 1;
        if (i > 0 && ((scenario->writers | scenario->readers) & dw_node_bit(i)) != 0) {
            struct dw_event join = {.kind = DW_EVENT_JOIN, .txn = dw_world_txn()};
            step(run, i, &join);
        }
    }
}

void dw_scenario_run(const struct dw_scenario *scenario, struct dw_scenario_result *result)
{
    struct run run;
    memset(&run, 0, sizeof run);
    memset(result, 0, sizeof *result);
    run.scenario = scenario;
    run.result = result;
    begin(&run);
    while (run.pending_count > 0) {
        struct pending pending = take_next(&run);
        if (pending.at_us > scenario->end_us) {
            break;
        }
        run.now_us = pending.at_us;
        take(&run, &pending);
        check(&run);
    }
    result->end_us = run.now_us;
    for (uint32_t i = 0; i < scenario->nodes; i++) {
        result->node[i].state = (enum dw_txn_state)run.txn[i].state;
    }
}
