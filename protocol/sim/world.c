#include "sim/world.h"

#include <string.h>

#include "base/assert.h"

struct dw_txn_id dw_world_txn(void)
{
    return (struct dw_txn_id){.coordinator = 0, .incarnation = 1, .sequence = 1};
}

/* --- what a step leaves behind --- */

/* A node's outcome is what happened to its changes. It is final, over crashes too. */
static void note_outcome(struct dw_world *world, uint32_t node, enum dw_outcome outcome)
{
    if ((world->writers & dw_node_bit(node)) == 0) {
        return;
    }
    uint8_t *noted = &world->history.outcome[node];
    if (*noted != DW_OUTCOME_UNKNOWN && *noted != outcome) {
        world->history.reversed = 1;
    }
    *noted = (uint8_t)outcome;
}

static struct dw_packet packet_to(enum dw_packet_kind kind, uint32_t node)
{
    struct dw_packet packet;
    memset(&packet, 0, sizeof packet);
    packet.kind = kind;
    packet.node = node;
    return packet;
}

struct dw_packet dw_packet_message(uint32_t from, uint32_t to, const struct dw_out *out)
{
    struct dw_packet packet = packet_to(DW_PACKET_MESSAGE, to);
    packet.message.kind = out->message;
    packet.message.from = from;
    packet.message.to = to;
    packet.message.value = out->value;
    packet.message.txn = dw_world_txn();
    packet.message.writers = out->writers;
    return packet;
}

struct dw_packet dw_packet_request(uint32_t node, uint32_t incarnation, uint32_t log,
                                   const struct dw_out *out)
{
    struct dw_packet packet = packet_to(DW_PACKET_LOG_REQUEST, node);
    bool has_content =
        out->ask == DW_ASK_VOTE || out->ask == DW_ASK_COMMIT_LOCAL || out->ask == DW_ASK_COORD_COMMIT;
    packet.log = log;
    packet.incarnation = incarnation;
    packet.participants = out->writers;
    packet.request.txn = dw_world_txn();
    packet.request.log = log;
    packet.request.writer = node;
    packet.request.incarnation = incarnation;
    packet.request.ask = out->ask;
    packet.request.content = has_content ? 1 + node : 0;
    return packet;
}

struct dw_packet dw_packet_call(uint32_t node, enum dw_packet_kind kind)
{
    struct dw_packet packet = packet_to(kind, node);
    packet.log = node;
    return packet;
}

static void emit(const struct dw_world_driver *driver, struct dw_packet packet)
{
    driver->emit(driver->user, &packet);
}

static void carry_out(struct dw_world *world, const struct dw_world_driver *driver, uint32_t node,
                      const struct dw_out *out, bool applied)
{
    switch (out->kind) {
    case DW_OUT_SEND:
    case DW_OUT_LOG:
        for (uint32_t to = 0; to < world->nodes; to++) {
            if ((out->to & dw_node_bit(to)) == 0) {
                continue;
            }
            if (out->kind == DW_OUT_SEND) {
                emit(driver, dw_packet_message(node, to, out));
            } else {
                emit(driver, dw_packet_request(node, world->node[node].incarnation, to, out));
            }
        }
        return;
    case DW_OUT_CALLER:
        world->history.caller = (uint8_t)out->value;
        world->history.caller_answered = 1;
        return;
    case DW_OUT_APPLY:
        note_outcome(world, node, DW_OUTCOME_COMMITTED);
        return;
    case DW_OUT_RELEASE:
        if (!applied) {
            note_outcome(world, node, DW_OUTCOME_ABORTED);
        }
        return;
    case DW_OUT_ALARM:
        world->history.alarms |= (uint8_t)(1u << out->value);
        return;
    case DW_OUT_FENCE:
        emit(driver, dw_packet_call(node, DW_PACKET_FENCE));
        return;
    case DW_OUT_SCAN:
        emit(driver, dw_packet_call(node, DW_PACKET_SCAN));
        return;
    case DW_OUT_ARM:
    case DW_OUT_DISARM:
    case DW_OUT_RELOCK:
        return;
    }
}

static void carry_out_all(struct dw_world *world, const struct dw_world_driver *driver, uint32_t node,
                          const struct dw_update *update)
{
    bool applied = false;
    for (uint32_t i = 0; i < update->count; i++) {
        carry_out(world, driver, node, &update->outs[i], applied);
        applied = applied || update->outs[i].kind == DW_OUT_APPLY;
    }
    if (dw_txn_has(&world->txn[node], DW_TXN_BLOCKED)) {
        world->history.blocked = 1;
    }
}

static void step(struct dw_world *world, const struct dw_world_driver *driver, uint32_t node,
                 const struct dw_event *event)
{
    struct dw_update update;
    dw_step(driver->protocol, &world->node[node], &world->txn[node], event, &update);
    if (driver->trace != NULL) {
        driver->trace(driver->user, world, node, event, &update);
    }
    carry_out_all(world, driver, node, &update);
    dw_txn_mask(&world->txn[node]);
    dw_node_check(&world->node[node]);
}

/* --- the cluster --- */

void dw_world_init(struct dw_world *world, const struct dw_world_driver *driver, uint32_t nodes,
                   uint64_t writers, uint64_t readers)
{
    DW_ASSERT(nodes >= 1 && nodes <= DW_WORLD_NODES);
    memset(world, 0, sizeof *world);
    world->nodes = nodes;
    world->up = (1u << nodes) - 1;
    world->writers = writers;
    world->readers = readers;
    for (uint32_t i = 0; i < nodes; i++) {
        struct dw_update update = {0};
        dw_node_init(&world->node[i], i);
        dw_node_start(&world->node[i], &update);
        dw_node_fenced(&world->node[i], 1, &update);
        dw_node_scanned(&world->node[i]);
        world->log[i].incarnation = 1;
        if (i > 0 && ((writers | readers) & dw_node_bit(i)) != 0) {
            struct dw_event join = {.kind = DW_EVENT_JOIN, .txn = dw_world_txn()};
            step(world, driver, i, &join);
        }
    }
}

void dw_world_commit(struct dw_world *world, const struct dw_world_driver *driver)
{
    DW_ASSERT(dw_world_is_up(world, 0) && world->node[0].incarnation == 1);
    struct dw_event event = {
        .kind = DW_EVENT_COMMIT, .txn = dw_world_txn(), .writers = world->writers, .readers = world->readers};
    step(world, driver, 0, &event);
}

static struct dw_packet serve_request(struct dw_world_log *log, dw_log_rule_fn *rule,
                                      const struct dw_packet *packet)
{
    struct dw_log_verdict verdict = rule(&log->entry, log->incarnation, &packet->request);
    if (verdict.append != DW_RECORD_NONE) {
        if (log->entry.state == DW_ENTRY_NONE) {
            log->entry.first = 1;
            log->entry.content = packet->request.content;
            log->began_yes = verdict.append == DW_RECORD_VOTE_YES;
        }
        if (packet->participants != 0) {
            log->participants = packet->participants;
        }
        log->entry.state = verdict.state;
    }
    struct dw_packet reply = packet_to(DW_PACKET_LOG_REPLY, packet->node);
    reply.log = packet->log;
    reply.incarnation = packet->incarnation;
    reply.reply.txn = dw_world_txn();
    reply.reply.log = packet->log;
    reply.reply.ask = packet->request.ask;
    reply.reply.answer = verdict.answer;
    reply.reply.position = log->entry.first;
    return reply;
}

struct dw_packet dw_world_log_serve(struct dw_world_log *log, dw_log_rule_fn *rule,
                                    const struct dw_packet *packet)
{
    struct dw_packet reply;
    if (packet->kind == DW_PACKET_FENCE) {
        reply = packet_to(DW_PACKET_FENCE_REPLY, packet->node);
        reply.incarnation = ++log->incarnation;
        return reply;
    }
    if (packet->kind == DW_PACKET_SCAN) {
        reply = packet_to(DW_PACKET_SCAN_REPLY, packet->node);
        reply.entry = log->entry.state;
        reply.participants = log->participants;
        return reply;
    }
    DW_ASSERT(packet->kind == DW_PACKET_LOG_REQUEST);
    return serve_request(log, rule, packet);
}

static void receive_at_log(struct dw_world *world, const struct dw_world_driver *driver,
                           const struct dw_packet *packet)
{
    struct dw_packet reply = dw_world_log_serve(&world->log[packet->log], driver->rule, packet);
    if (reply.kind == DW_PACKET_LOG_REPLY) {
        if (reply.reply.answer == DW_ANSWER_CONFLICT) {
            world->history.conflicts = 1;
        }
        if (packet->incarnation != world->node[packet->node].incarnation) {
            return; /* a reply to a process that is gone reaches nobody: its stream went with it */
        }
    }
    emit(driver, reply);
}

/* The redo that a scan finds is applied, or dropped, by the driver; the core is asked about what is in doubt.
 */
static void receive_scan(struct dw_world *world, const struct dw_world_driver *driver,
                         const struct dw_packet *packet)
{
    uint32_t node = packet->node;
    if (packet->entry == DW_ENTRY_COMMIT || packet->entry == DW_ENTRY_COORD_COMMIT ||
        packet->entry == DW_ENTRY_END) {
        note_outcome(world, node, DW_OUTCOME_COMMITTED);
    } else if (packet->entry != DW_ENTRY_VOTE_YES) {
        note_outcome(world, node, DW_OUTCOME_ABORTED);
    }
    if (packet->entry != DW_ENTRY_NONE) {
        struct dw_event event = {.kind = DW_EVENT_RECOVERED,
                                 .txn = dw_world_txn(),
                                 .entry = packet->entry,
                                 .writers = packet->participants,
                                 .position = 1};
        step(world, driver, node, &event);
    }
    dw_node_scanned(&world->node[node]);
}

/* A node has execution state from its join to its vote, and none after a crash. */
static enum dw_execution execution(const struct dw_world *world, uint32_t node)
{
    return world->txn[node].state == DW_TXN_EXECUTING ? DW_EXECUTION_WHOLE : DW_EXECUTION_NONE;
}

static void receive_at_node(struct dw_world *world, const struct dw_world_driver *driver,
                            const struct dw_packet *packet)
{
    uint32_t node = packet->node;
    if (!dw_world_is_up(world, node)) {
        return;
    }
    struct dw_event event = {.txn = dw_world_txn()};
    if (packet->kind == DW_PACKET_MESSAGE) {
        event.kind = DW_EVENT_MESSAGE;
        event.message = packet->message;
        event.execution = execution(world, node);
        step(world, driver, node, &event);
    } else if (packet->kind == DW_PACKET_LOG_REPLY) {
        if (packet->incarnation == world->node[node].incarnation) {
            event.kind = DW_EVENT_LOG_REPLY;
            event.reply = packet->reply;
            step(world, driver, node, &event);
        }
    } else if (packet->kind == DW_PACKET_FENCE_REPLY) {
        struct dw_update update = {0};
        dw_node_fenced(&world->node[node], packet->incarnation, &update);
        carry_out_all(world, driver, node, &update);
    } else if (packet->kind == DW_PACKET_SCAN_REPLY && world->node[node].state == DW_NODE_SCANNING) {
        receive_scan(world, driver, packet);
    }
}

void dw_world_receive(struct dw_world *world, const struct dw_world_driver *driver,
                      const struct dw_packet *packet)
{
    switch (packet->kind) {
    case DW_PACKET_LOG_REQUEST:
    case DW_PACKET_FENCE:
    case DW_PACKET_SCAN:
        receive_at_log(world, driver, packet);
        return;
    case DW_PACKET_MESSAGE:
    case DW_PACKET_LOG_REPLY:
    case DW_PACKET_FENCE_REPLY:
    case DW_PACKET_SCAN_REPLY:
        receive_at_node(world, driver, packet);
        return;
    }
}

void dw_world_timeout(struct dw_world *world, const struct dw_world_driver *driver, uint32_t node)
{
    DW_ASSERT(dw_world_is_up(world, node) && world->txn[node].timer != DW_TIMER_NONE);
    struct dw_event event = {.kind = DW_EVENT_TIMEOUT,
                             .txn = dw_world_txn(),
                             .timer = (enum dw_timer)world->txn[node].timer,
                             .attempt = world->txn[node].attempt};
    step(world, driver, node, &event);
}

void dw_world_crash(struct dw_world *world, uint32_t node)
{
    DW_ASSERT(dw_world_is_up(world, node));
    world->up &= ~(1u << node);
    dw_node_init(&world->node[node], node);
    memset(&world->txn[node], 0, sizeof world->txn[node]);
}

void dw_world_restart(struct dw_world *world, const struct dw_world_driver *driver, uint32_t node)
{
    DW_ASSERT(!dw_world_is_up(world, node));
    struct dw_update update = {0};
    world->up |= 1u << node;
    dw_node_start(&world->node[node], &update);
    carry_out_all(world, driver, node, &update);
}
