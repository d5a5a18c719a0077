#include "sim/check.h"

#include <stddef.h>

static bool someone_has(const struct dw_world *world, enum dw_outcome outcome)
{
    for (uint32_t i = 0; i < world->nodes; i++) {
        if (world->history.outcome[i] == outcome) {
            return true;
        }
    }
    return world->history.caller == outcome;
}

/* Logs whose votes make the decision: the listed ones in Cornus, the participants' in 2PC. */
static uint64_t voting_logs(const struct dw_world *world, const struct dw_protocol *protocol)
{
    uint64_t others = world->writers & ~dw_node_bit(0);
    return protocol->logs_decide && others != 0 ? world->writers | dw_node_bit(0) : others;
}

static bool all_began_yes(const struct dw_world *world, uint64_t logs)
{
    for (uint32_t i = 0; i < world->nodes; i++) {
        if ((logs & dw_node_bit(i)) != 0 && !world->log[i].began_yes) {
            return false;
        }
    }
    return true;
}

static bool coordinator_logged_commit(const struct dw_world *world)
{
    enum dw_entry_state state = world->log[0].entry.state;
    return state == DW_ENTRY_COORD_COMMIT || state == DW_ENTRY_END;
}

static bool commit_is_valid(const struct dw_world *world, const struct dw_protocol *protocol)
{
    uint64_t logs = voting_logs(world, protocol);
    if (logs == 0) {
        return true; /* local: its one COMMIT record is the decision */
    }
    return all_began_yes(world, logs) && (protocol->logs_decide || coordinator_logged_commit(world));
}

static bool abort_is_valid(const struct dw_world *world, const struct dw_protocol *protocol)
{
    uint64_t logs = voting_logs(world, protocol);
    if (protocol->logs_decide) {
        return logs == 0 || !all_began_yes(world, logs);
    }
    return !coordinator_logged_commit(world);
}

static bool vote_is_held(const struct dw_world *world, uint32_t node)
{
    if (!dw_world_is_up(world, node) || world->node[node].state != DW_NODE_SERVING ||
        world->log[node].entry.state != DW_ENTRY_VOTE_YES) {
        return true;
    }
    const struct dw_txn *txn = &world->txn[node];
    if (txn->state == DW_TXN_COMMITTED || txn->state == DW_TXN_ABORTED) {
        return true;
    }
    return txn->state != DW_TXN_ABSENT && dw_txn_has(txn, DW_TXN_LOCKS);
}

const char *dw_check_world(const struct dw_world *world, const struct dw_protocol *protocol)
{
    bool committed = someone_has(world, DW_OUTCOME_COMMITTED);
    bool aborted = someone_has(world, DW_OUTCOME_ABORTED);
    if (world->history.reversed) {
        return "irreversible";
    }
    if (committed && aborted) {
        return "agreement";
    }
    if (committed && !commit_is_valid(world, protocol)) {
        return "commit-validity";
    }
    if (aborted && !abort_is_valid(world, protocol)) {
        return "abort-validity";
    }
    if (world->history.conflicts) {
        return "no-conflict";
    }
    if (world->history.alarms & ~(1u << DW_ALARM_FENCED)) {
        return "no-alarm";
    }
    for (uint32_t i = 0; i < world->nodes; i++) {
        if (!vote_is_held(world, i)) {
            return "vote-is-held";
        }
    }
    return NULL;
}

bool dw_world_is_settled(const struct dw_world *world)
{
    for (uint32_t i = 0; i < world->nodes; i++) {
        if (!dw_world_is_up(world, i)) {
            continue;
        }
        if (world->node[i].state != DW_NODE_SERVING || world->txn[i].state != DW_TXN_ABSENT) {
            return false;
        }
    }
    return dw_world_live_decided(world);
}

bool dw_world_live_decided(const struct dw_world *world)
{
    for (uint32_t i = 0; i < world->nodes; i++) {
        if ((world->writers & dw_node_bit(i)) != 0 && dw_world_is_up(world, i) &&
            world->node[i].state == DW_NODE_SERVING && dw_txn_in_doubt(&world->txn[i])) {
            return false;
        }
    }
    return true;
}
