#include "core/node.h"

#include "base/assert.h"
#include "base/limits.h"

void dw_node_init(struct dw_node *node, uint32_t slot)
{
    DW_ASSERT(slot < DW_MAX_NODES);
    *node = (struct dw_node){.slot = slot};
}

static void set_state(struct dw_node *node, enum dw_node_state state)
{
    static const uint32_t legal[] = {
        [DW_NODE_DOWN] = 1u << DW_NODE_FENCING,
        [DW_NODE_FENCING] = 1u << DW_NODE_FENCING | 1u << DW_NODE_SCANNING,
        [DW_NODE_SCANNING] = 1u << DW_NODE_SCANNING | 1u << DW_NODE_SERVING | 1u << DW_NODE_STOPPED,
        [DW_NODE_SERVING] = 1u << DW_NODE_STOPPED,
        [DW_NODE_STOPPED] = 1u << DW_NODE_STOPPED,
    };
    DW_ASSERT(legal[node->state] & (1u << state));
    node->state = (uint8_t)state;
}

void dw_node_start(struct dw_node *node, struct dw_update *update)
{
    set_state(node, DW_NODE_FENCING);
    dw_update_add(update, (struct dw_out){.kind = DW_OUT_FENCE, .to = dw_node_bit(node->slot)});
}

void dw_node_fenced(struct dw_node *node, uint32_t incarnation, struct dw_update *update)
{
    if (incarnation <= node->incarnation || node->state == DW_NODE_DOWN || node->state == DW_NODE_STOPPED) {
        return;
    }
    if (node->state == DW_NODE_SERVING) {
        set_state(node, DW_NODE_STOPPED);
        return;
    }
    node->incarnation = incarnation;
    set_state(node, DW_NODE_SCANNING);
    dw_update_add(update, (struct dw_out){.kind = DW_OUT_SCAN, .to = dw_node_bit(node->slot)});
}

void dw_node_scanned(struct dw_node *node)
{
    set_state(node, DW_NODE_SERVING);
    dw_node_check(node);
}

void dw_node_stop(struct dw_node *node)
{
    set_state(node, DW_NODE_STOPPED);
}

struct dw_txn_id dw_node_next_id(struct dw_node *node)
{
    DW_ASSERT(node->state == DW_NODE_SERVING);
    return (struct dw_txn_id){
        .coordinator = node->slot, .incarnation = node->incarnation, .sequence = ++node->next_sequence};
}

void dw_node_check(const struct dw_node *node)
{
    DW_ASSERT(node->slot < DW_MAX_NODES);
    DW_ASSERT(node->state <= DW_NODE_STOPPED);
    DW_ASSERT(node->state < DW_NODE_SCANNING || node->incarnation > 0);
}

const char *dw_node_state_name(enum dw_node_state state)
{
    static const char *const names[] = {"DOWN", "FENCING", "SCANNING", "SERVING", "STOPPED"};
    return (unsigned)state <= DW_NODE_STOPPED ? names[state] : "?";
}
