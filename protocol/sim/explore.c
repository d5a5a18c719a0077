#include "sim/explore.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/assert.h"
#include "sim/check.h"
#include "sim/trace.h"

enum { MAX_PACKETS = 512, PACKET_WORDS = MAX_PACKETS / 64, MAX_ROUNDS = 16, MAX_DELIVERIES = 4096 };

enum action_kind {
    ACT_COMMIT = 1,
    ACT_DELIVER,
    ACT_DUPLICATE,
    ACT_DROP,
    ACT_TIMEOUT,
    ACT_CRASH,
    ACT_RESTART
};

/* A state: the world, what is in flight (by packet number), and the budgets that are left. Zeroed with its
 * padding. */
struct state {
    struct dw_world world;
    uint64_t flying[PACKET_WORDS];
    uint8_t committed; /* the caller has asked */
    uint8_t crashes, restarts, duplicates, drops, timeouts;
    uint8_t padding[2];
};

struct explorer {
    const struct dw_explore_options *options;
    struct dw_explore_result *result;
    struct dw_world_driver driver;
    struct state *current; /* the state that emits packets */
    struct dw_packet packets[MAX_PACKETS];
    uint32_t packet_count;
    bool out_of_packets;
    /* The states to visit, in order of discovery: a ring. */
    struct state *queue;
    uint64_t queue_capacity, queue_head, queue_count;
    /* Fingerprints of all states seen: open addressing; zero is free. */
    XXH128_hash_t *seen;
    uint64_t seen_capacity, seen_count;
    /* How each state was reached first, by its number. */
    struct step_back {
        uint32_t parent, action;
    } * back;
    uint64_t back_capacity;
    bool out_of_memory;
};

/* --- packets in flight --- */

static uint32_t packet_number(struct explorer *explorer, const struct dw_packet *packet)
{
    for (uint32_t i = 0; i < explorer->packet_count; i++) {
        if (memcmp(&explorer->packets[i], packet, sizeof *packet) == 0) {
            return i;
        }
    }
    if (explorer->packet_count == MAX_PACKETS) {
        explorer->out_of_packets = true;
        return 0;
    }
    explorer->packets[explorer->packet_count] = *packet;
    return explorer->packet_count++;
}

static void emit(void *user, const struct dw_packet *packet)
{
    struct explorer *explorer = user;
    uint32_t number = packet_number(explorer, packet);
    explorer->current->flying[number / 64] |= UINT64_C(1) << (number % 64);
}

static bool is_flying(const struct state *state, uint32_t number)
{
    return (state->flying[number / 64] >> (number % 64)) & 1;
}

static void land(struct state *state, uint32_t number)
{
    state->flying[number / 64] &= ~(UINT64_C(1) << (number % 64));
}

static bool nothing_flies(const struct state *state)
{
    for (uint32_t i = 0; i < PACKET_WORDS; i++) {
        if (state->flying[i] != 0) {
            return false;
        }
    }
    return true;
}

/* A starting node's calls are unary: they are not duplicated, and a lost one is called again, which is one
 * call more. */
static bool may_fail(const struct dw_packet *packet)
{
    return packet->kind == DW_PACKET_MESSAGE || packet->kind == DW_PACKET_LOG_REQUEST ||
           packet->kind == DW_PACKET_LOG_REPLY;
}

/* A reply to a process that is gone reaches nobody: its stream went with it. */
static void lose_replies(struct explorer *explorer, struct state *state, uint32_t node)
{
    for (uint32_t i = 0; i < explorer->packet_count; i++) {
        if (explorer->packets[i].kind == DW_PACKET_LOG_REPLY && explorer->packets[i].node == node) {
            land(state, i);
        }
    }
}

/* --- actions --- */

static uint32_t action(enum action_kind kind, uint32_t argument)
{
    return (uint32_t)kind << 16 | argument;
}

/* Takes the action in the state. */
static void act(struct explorer *explorer, struct state *state, uint32_t what)
{
    uint32_t argument = what & 0xffff;
    struct dw_world *world = &state->world;
    explorer->current = state;
    switch ((enum action_kind)(what >> 16)) {
    case ACT_COMMIT:
        state->committed = 1;
        dw_world_commit(world, &explorer->driver);
        return;
    case ACT_DUPLICATE:
        state->duplicates--;
        dw_world_receive(world, &explorer->driver, &explorer->packets[argument]);
        return;
    case ACT_DELIVER:
        land(state, argument);
        dw_world_receive(world, &explorer->driver, &explorer->packets[argument]);
        return;
    case ACT_DROP:
        state->drops--;
        land(state, argument);
        return;
    case ACT_TIMEOUT:
        state->timeouts -= state->timeouts != DW_EXPLORE_UNBOUNDED;
        dw_world_timeout(world, &explorer->driver, argument);
        return;
    case ACT_CRASH:
        state->crashes--;
        dw_world_crash(world, argument);
        lose_replies(explorer, state, argument);
        return;
    case ACT_RESTART:
        state->restarts--;
        dw_world_restart(world, &explorer->driver, argument);
        return;
    }
}

static void print_action(const struct explorer *explorer, FILE *file, uint32_t what)
{
    uint32_t argument = what & 0xffff;
    switch ((enum action_kind)(what >> 16)) {
    case ACT_COMMIT:
        fprintf(file, "the caller commits");
        break;
    case ACT_DELIVER:
        dw_trace_packet(file, &explorer->packets[argument]);
        break;
    case ACT_DUPLICATE:
        dw_trace_packet(file, &explorer->packets[argument]);
        fprintf(file, " (duplicated)");
        break;
    case ACT_DROP:
        fprintf(file, "lost: ");
        dw_trace_packet(file, &explorer->packets[argument]);
        break;
    case ACT_TIMEOUT:
        fprintf(file, "time-out at node %u", argument);
        break;
    case ACT_CRASH:
        fprintf(file, "node %u crashes", argument);
        break;
    case ACT_RESTART:
        fprintf(file, "node %u restarts", argument);
        break;
    }
    fprintf(file, "\n");
}

/* --- the set of seen states --- */

static bool is_free(XXH128_hash_t key)
{
    return key.low64 == 0 && key.high64 == 0;
}

static uint64_t find_slot(const XXH128_hash_t *table, uint64_t capacity, XXH128_hash_t key)
{
    uint64_t slot = key.low64 & (capacity - 1);
    while (!is_free(table[slot]) && !XXH128_isEqual(table[slot], key)) {
        slot = (slot + 1) & (capacity - 1);
    }
    return slot;
}

static bool grow_seen(struct explorer *explorer)
{
    uint64_t capacity = explorer->seen_capacity ? explorer->seen_capacity * 2 : 1 << 16;
    XXH128_hash_t *table = calloc(capacity, sizeof *table);
    if (table == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < explorer->seen_capacity; i++) {
        if (!is_free(explorer->seen[i])) {
            table[find_slot(table, capacity, explorer->seen[i])] = explorer->seen[i];
        }
    }
    free(explorer->seen);
    explorer->seen = table;
    explorer->seen_capacity = capacity;
    return true;
}

/* True if the state is new; remembers it. */
static bool remember(struct explorer *explorer, const struct state *state)
{
    if (explorer->seen_count * 10 >= explorer->seen_capacity * 7 && !grow_seen(explorer)) {
        explorer->out_of_memory = true;
        return false;
    }
    XXH128_hash_t key = XXH3_128bits(state, sizeof *state);
    uint64_t slot = find_slot(explorer->seen, explorer->seen_capacity, key);
    if (!is_free(explorer->seen[slot])) {
        return false;
    }
    explorer->seen[slot] = key;
    explorer->seen_count++;
    return true;
}

/* --- the queue, and the way back --- */

static bool grow_queue(struct explorer *explorer)
{
    uint64_t capacity = explorer->queue_capacity ? explorer->queue_capacity * 2 : 1024;
    struct state *queue = malloc(capacity * sizeof *queue);
    if (queue == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < explorer->queue_count; i++) {
        queue[i] = explorer->queue[(explorer->queue_head + i) % explorer->queue_capacity];
    }
    free(explorer->queue);
    explorer->queue = queue;
    explorer->queue_capacity = capacity;
    explorer->queue_head = 0;
    return true;
}

static bool note_way(struct explorer *explorer, uint64_t number, uint32_t parent, uint32_t what)
{
    if (number >= explorer->back_capacity) {
        uint64_t capacity = explorer->back_capacity ? explorer->back_capacity * 2 : 1 << 16;
        struct step_back *back = realloc(explorer->back, capacity * sizeof *back);
        if (back == NULL) {
            return false;
        }
        explorer->back = back;
        explorer->back_capacity = capacity;
    }
    explorer->back[number] = (struct step_back){.parent = parent, .action = what};
    return true;
}

static void push(struct explorer *explorer, const struct state *state, uint32_t parent, uint32_t what)
{
    if (explorer->queue_count == explorer->queue_capacity && !grow_queue(explorer)) {
        explorer->out_of_memory = true;
        return;
    }
    uint64_t tail = (explorer->queue_head + explorer->queue_count) % explorer->queue_capacity;
    explorer->queue[tail] = *state;
    explorer->queue_count++;
    if (!note_way(explorer, explorer->result->states, parent, what)) {
        explorer->out_of_memory = true;
    }
    explorer->result->states++;
}

/* --- progress --- */

/* Lets everything that flies arrive, oldest number first. False if that does not end. */
static bool deliver_all(struct explorer *explorer, struct state *state)
{
    for (uint32_t deliveries = 0; deliveries < MAX_DELIVERIES; deliveries++) {
        uint32_t number = 0;
        while (number < explorer->packet_count && !is_flying(state, number)) {
            number++;
        }
        if (number == explorer->packet_count) {
            return true;
        }
        act(explorer, state, action(ACT_DELIVER, number));
    }
    return false;
}

/* A fair run without further failures: all packets arrive, then all armed timers fire, again and again. */
static void run_fairly(struct explorer *explorer, struct state *state, bool (*done)(const struct dw_world *))
{
    for (uint32_t round = 0; round < MAX_ROUNDS; round++) {
        if (!deliver_all(explorer, state) || done(&state->world)) {
            return;
        }
        for (uint32_t i = 0; i < state->world.nodes; i++) {
            if (dw_world_is_up(&state->world, i) && state->world.txn[i].timer != DW_TIMER_NONE) {
                act(explorer, state, action(ACT_TIMEOUT, i));
            }
        }
    }
}

static const char *check_progress(struct explorer *explorer, const struct state *state)
{
    struct state run = *state;
    run.timeouts = DW_EXPLORE_UNBOUNDED;
    explorer->result->quiescent++;
    if (run.world.up != (1u << run.world.nodes) - 1) {
        run_fairly(explorer, &run, dw_world_live_decided);
        if (!dw_world_live_decided(&run.world)) {
            explorer->result->blocked++;
            if (explorer->options->protocol->logs_decide) {
                return "non-blocking";
            }
        }
    }
    for (uint32_t i = 0; i < run.world.nodes; i++) {
        if (!dw_world_is_up(&run.world, i)) {
            run.restarts = 1;
            act(explorer, &run, action(ACT_RESTART, i));
        }
    }
    run_fairly(explorer, &run, dw_world_is_settled);
    if (!dw_world_is_settled(&run.world)) {
        return "progress";
    }
    return dw_check_world(&run.world, explorer->options->protocol);
}

/* --- the search --- */

static void note_violation(struct explorer *explorer, const char *violation, uint32_t number, uint32_t last)
{
    struct dw_explore_result *result = explorer->result;
    result->verdict = DW_EXPLORE_VIOLATED;
    result->violation = violation;
    uint32_t reversed[DW_EXPLORE_MAX_SCHEDULE];
    uint32_t length = 0;
    if (last != 0) {
        reversed[length++] = last;
    }
    for (; number != 0 && length < DW_EXPLORE_MAX_SCHEDULE; number = explorer->back[number].parent) {
        reversed[length++] = explorer->back[number].action;
    }
    result->schedule_length = length;
    for (uint32_t i = 0; i < length; i++) {
        result->schedule[i] = reversed[length - 1 - i];
    }
}

static const char *check_state(struct explorer *explorer, const struct state *state)
{
    const char *violation = dw_check_world(&state->world, explorer->options->protocol);
    if (violation == NULL && state->committed && nothing_flies(state)) {
        violation = check_progress(explorer, state);
    }
    return violation;
}

static void try_action(struct explorer *explorer, const struct state *from, uint32_t number, uint32_t what)
{
    if (explorer->result->verdict != DW_EXPLORE_HOLDS) {
        return;
    }
    struct state next = *from;
    act(explorer, &next, what);
    explorer->result->transitions++;
    if (!remember(explorer, &next)) {
        return;
    }
    const char *violation = check_state(explorer, &next);
    if (violation != NULL) {
        note_violation(explorer, violation, number, what);
        return;
    }
    push(explorer, &next, number, what);
}

static void expand_packets(struct explorer *explorer, const struct state *state, uint32_t number)
{
    uint32_t count = explorer->packet_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_flying(state, i)) {
            continue;
        }
        try_action(explorer, state, number, action(ACT_DELIVER, i));
        if (may_fail(&explorer->packets[i])) {
            if (state->duplicates > 0) {
                try_action(explorer, state, number, action(ACT_DUPLICATE, i));
            }
            if (state->drops > 0) {
                try_action(explorer, state, number, action(ACT_DROP, i));
            }
        }
    }
}

static void expand_nodes(struct explorer *explorer, const struct state *state, uint32_t number)
{
    for (uint32_t i = 0; i < state->world.nodes; i++) {
        if (!dw_world_is_up(&state->world, i)) {
            if (state->restarts > 0) {
                try_action(explorer, state, number, action(ACT_RESTART, i));
            }
            continue;
        }
        if (state->timeouts > 0 && state->world.txn[i].timer != DW_TIMER_NONE) {
            try_action(explorer, state, number, action(ACT_TIMEOUT, i));
        }
        if (state->crashes > 0) {
            try_action(explorer, state, number, action(ACT_CRASH, i));
        }
    }
}

static void expand(struct explorer *explorer, const struct state *state, uint32_t number)
{
    const struct dw_world *world = &state->world;
    if (!state->committed && dw_world_is_up(world, 0) && world->node[0].incarnation == 1) {
        try_action(explorer, state, number, action(ACT_COMMIT, 0));
    }
    expand_packets(explorer, state, number);
    expand_nodes(explorer, state, number);
}

static struct state root_state(struct explorer *explorer)
{
    const struct dw_explore_options *options = explorer->options;
    struct state root;
    memset(&root, 0, sizeof root);
    explorer->current = &root;
    dw_world_init(&root.world, &explorer->driver, options->nodes, options->writers, options->readers);
    root.crashes = (uint8_t)options->crashes;
    root.restarts = (uint8_t)options->restarts;
    root.duplicates = (uint8_t)options->duplicates;
    root.drops = (uint8_t)options->drops;
    root.timeouts = (uint8_t)options->timeouts;
    return root;
}

static void search(struct explorer *explorer)
{
    struct dw_explore_result *result = explorer->result;
    uint64_t limit = explorer->options->max_states ? explorer->options->max_states : 200000000;
    struct state root = root_state(explorer);
    remember(explorer, &root);
    push(explorer, &root, 0, 0);
    uint64_t level_end = 1;
    for (uint64_t number = 0; explorer->queue_count > 0 && result->verdict == DW_EXPLORE_HOLDS; number++) {
        if (number == level_end) {
            result->depth++;
            level_end = result->states;
        }
        struct state state = explorer->queue[explorer->queue_head];
        explorer->queue_head = (explorer->queue_head + 1) % explorer->queue_capacity;
        explorer->queue_count--;
        expand(explorer, &state, (uint32_t)number);
        bool at_limit = result->states > limit || explorer->out_of_packets || explorer->out_of_memory;
        if (at_limit && result->verdict == DW_EXPLORE_HOLDS) {
            result->verdict = DW_EXPLORE_INCONCLUSIVE;
        }
    }
}

static void print_schedule(struct explorer *explorer, FILE *file)
{
    const struct dw_explore_result *result = explorer->result;
    fprintf(file, "%s is violated after %u events:\n", result->violation, result->schedule_length);
    for (uint32_t i = 0; i < result->schedule_length; i++) {
        fprintf(file, "%3u  ", i + 1);
        print_action(explorer, file, result->schedule[i]);
    }
}

static bool options_are_good(const struct dw_explore_options *options)
{
    uint64_t all = (UINT64_C(1) << options->nodes) - 1;
    return options->protocol != NULL && options->nodes >= 2 && options->nodes <= DW_WORLD_NODES &&
           ((options->writers | options->readers) & ~all) == 0 &&
           (options->writers & options->readers) == 0 && options->crashes <= 8 && options->restarts <= 8 &&
           options->duplicates <= 8 && options->drops <= 8 && options->timeouts <= DW_EXPLORE_UNBOUNDED;
}

enum dw_error dw_explore(const struct dw_explore_options *options, struct dw_explore_result *result,
                         FILE *trace)
{
    memset(result, 0, sizeof *result);
    if (!options_are_good(options)) {
        return DW_ERR_RANGE;
    }
    struct explorer *explorer = calloc(1, sizeof *explorer);
    if (explorer == NULL) {
        return DW_ERR_MEMORY;
    }
    explorer->options = options;
    explorer->result = result;
    explorer->driver = (struct dw_world_driver){.protocol = options->protocol,
                                                .rule = options->rule ? options->rule : dw_log_rule,
                                                .emit = emit,
                                                .trace = NULL,
                                                .user = explorer};
    search(explorer);
    result->packets = explorer->packet_count;
    if (result->verdict == DW_EXPLORE_VIOLATED && trace != NULL) {
        print_schedule(explorer, trace);
    }
    free(explorer->queue);
    free(explorer->seen);
    free(explorer->back);
    free(explorer);
    return DW_OK;
}
