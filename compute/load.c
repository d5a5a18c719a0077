/* The load of a node: its worker slots, closed or open loop, warm-up, measuring, draining. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/slot.h"

#include "base/assert.h"

enum { DRAIN_TIMEOUTS = 20 };

enum dw_error load_open(struct runtime *runtime)
{
    struct load *load = &runtime->load;
    load->slots = calloc(runtime->options->threads, sizeof *load->slots);
    if (load->slots == NULL) {
        return DW_ERR_MEMORY;
    }
    /* Each slot draws from a sequence of its own, which depends on seed, node and slot only. */
    struct dw_random seeds;
    dw_random_init(&seeds, runtime->options->seed * UINT64_C(0x9e3779b97f4a7c15) + runtime->options->node);
    for (uint32_t i = 0; i < runtime->options->threads; i++) {
        dw_random_init(&load->slots[i].random, dw_random_next(&seeds));
    }
    dw_random_init(&runtime->random, dw_random_next(&seeds));
    dw_random_init(&load->taken.random, dw_random_next(&seeds));
    return DW_OK;
}

void load_close(struct runtime *runtime)
{
    for (uint32_t i = 0; runtime->load.slots != NULL && i < runtime->options->threads; i++) {
        slot_close(&runtime->load.slots[i]);
    }
    free(runtime->load.slots);
}

/* --- open loop --- */

/* The time between two intended starts is exponential, so that arrivals are a Poisson process. */
static void draw_next(struct arrivals *arrivals, double rate_tps)
{
    double unit = dw_random_unit(&arrivals->random);
    arrivals->next_ns += (uint64_t)(-log1p(-unit) * 1e9 / rate_tps + 0.5); /* cut off, it would be faster */
}

static uint64_t next_us(const struct arrivals *arrivals)
{
    return arrivals->next_ns / 1000;
}

static void begin_arrivals(struct runtime *runtime, uint64_t now_us)
{
    struct load *load = &runtime->load;
    load->taken.next_ns = now_us * 1000;
    draw_next(&load->taken, runtime->options->rate_tps);
    load->due = load->taken;
}

/* Counts what has become due. */
static void count_due(struct runtime *runtime, uint64_t now_us)
{
    struct load *load = &runtime->load;
    while (runtime->options->loop == LOOP_OPEN && next_us(&load->due) <= now_us) {
        load->due_count++;
        draw_next(&load->due, runtime->options->rate_tps);
    }
}

/* --- the states of a load --- */

enum dw_error load_begin(struct runtime *runtime, uint64_t warmup_us, uint64_t duration_us)
{
    struct load *load = &runtime->load;
    if (load->state != LOAD_IDLE && load->state != LOAD_DONE) {
        return DW_ERR_ARGUMENT;
    }
    uint64_t now_us = dw_rpc_now_us();
    struct stats before = runtime->stats;
    runtime->stats = (struct stats){.costs = before.costs, .open_loop = runtime->options->loop == LOOP_OPEN};
    /* A rule that was broken before, as in recovery, stays broken. */
    memcpy(runtime->stats.alarms, before.alarms, sizeof before.alarms);
    load->state = LOAD_WARMUP;
    load->number++;
    load->due_count = load->due_before = load->begun = load->finished = 0;
    load->warm_us = now_us + warmup_us;
    load->stop_us = load->warm_us + duration_us;
    load->slots_due_us = 0;
    if (runtime->options->loop == LOOP_OPEN) {
        begin_arrivals(runtime, now_us);
    }
    return DW_OK;
}

static void start_measuring(struct runtime *runtime, uint64_t now_us)
{
    struct load *load = &runtime->load;
    struct stats *stats = &runtime->stats;
    load->state = LOAD_MEASURING;
    load->due_before = load->due_count;
    if (stats->open_loop) {
        stats->backlog.carried = load->due_count - load->finished;
    }
    stats->window_start_us = now_us;
    stats->cpu_start_us = stats_cpu_us();
}

/* What the window leaves behind: its transactions that have no latency are told by number. */
static void count_backlog(struct runtime *runtime, uint64_t now_us)
{
    const struct load *load = &runtime->load;
    struct backlog_stats *backlog = &runtime->stats.backlog;
    backlog->unfinished = load->begun - load->finished;
    if (runtime->stats.open_loop) {
        backlog->offered = load->due_count - load->due_before;
        backlog->waiting = load->due_count - load->begun;
        backlog->waiting_us = backlog->waiting > 0 ? now_us - next_us(&load->taken) : 0;
    }
}

static void stop_measuring(struct runtime *runtime, uint64_t now_us)
{
    uint64_t longest = 0;
    for (unsigned timer = 0; timer <= DW_TIMER_FINISH; timer++) {
        longest =
            runtime->options->timeout_us[timer] > longest ? runtime->options->timeout_us[timer] : longest;
    }
    runtime->load.state = LOAD_DRAINING;
    runtime->load.drain_us = now_us + DRAIN_TIMEOUTS * longest;
    count_backlog(runtime, now_us);
    runtime->stats.window_us = now_us - runtime->stats.window_start_us;
    runtime->stats.cpu_us = stats_cpu_us() - runtime->stats.cpu_start_us;
}

static bool all_idle(const struct runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->options->threads; i++) {
        if (runtime->load.slots[i].state != SLOT_IDLE && runtime->load.slots[i].state != SLOT_BACKOFF) {
            return false;
        }
    }
    return true;
}

static void finish_drain(struct runtime *runtime, uint64_t now_us)
{
    bool drained = all_idle(runtime) && txn_table_count(runtime->txns) == 0;
    if (!drained && now_us < runtime->load.drain_us) {
        return;
    }
    runtime->stats.backlog.undrained = txn_table_count(runtime->txns);
    for (uint32_t i = 0; i < runtime->options->threads; i++) {
        slot_abandon(runtime, &runtime->load.slots[i]);
    }
    runtime->load.state = LOAD_DONE;
}

static void change_state(struct runtime *runtime, uint64_t now_us)
{
    struct load *load = &runtime->load;
    if (load->state == LOAD_WARMUP && now_us >= load->warm_us) {
        start_measuring(runtime, now_us);
    }
    if (load->state == LOAD_MEASURING && now_us >= load->stop_us) {
        stop_measuring(runtime, now_us);
    }
    if (load->state == LOAD_DRAINING) {
        finish_drain(runtime, now_us);
    }
}

static bool is_generating(const struct load *load)
{
    return load->state == LOAD_WARMUP || load->state == LOAD_MEASURING;
}

/* Gives an idle slot its next transaction, if there is one. */
static void feed(struct runtime *runtime, struct slot *slot, uint64_t now_us)
{
    struct load *load = &runtime->load;
    if (!is_generating(load)) {
        return;
    }
    if (runtime->options->loop == LOOP_CLOSED) {
        slot_begin(runtime, slot);
    } else if (next_us(&load->taken) <= now_us) {
        uint64_t intended_us = next_us(&load->taken);
        draw_next(&load->taken, runtime->options->rate_tps);
        slot_begin_due(runtime, slot, intended_us);
    }
}

static uint64_t slot_wants(const struct runtime *runtime, const struct slot *slot)
{
    const struct load *load = &runtime->load;
    switch (slot->state) {
    case SLOT_IDLE:
        if (!is_generating(load)) {
            return UINT64_MAX;
        }
        return runtime->options->loop == LOOP_CLOSED ? 0 : next_us(&load->taken);
    case SLOT_ANSWERED:
        return 0;
    case SLOT_EXECUTING:
        return slot->due_us;
    case SLOT_BACKOFF:
        return is_generating(load) ? slot->due_us : UINT64_MAX;
    case SLOT_COMMITTING:
        return UINT64_MAX;
    }
    return UINT64_MAX;
}

static void attend_slot(struct runtime *runtime, struct slot *slot, uint64_t now_us)
{
    bool due = (slot->state == SLOT_EXECUTING || slot->state == SLOT_BACKOFF) && slot->due_us <= now_us;
    if (due && (slot->state == SLOT_EXECUTING || is_generating(&runtime->load))) {
        slot_due(runtime, slot);
    }
    if (slot->state == SLOT_IDLE) {
        feed(runtime, slot, now_us);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t load_tick(struct runtime *runtime)
{
    struct load *load = &runtime->load;
    uint64_t now_us = dw_rpc_now_us();
    /* A fenced node begins nothing: it is about to end. */
    if (load->state == LOAD_IDLE || load->state == LOAD_DONE || runtime->node.state != DW_NODE_SERVING) {
        return UINT64_MAX;
    }
    bool due = load->slots_due_us <= now_us;
    /* Before the state changes: what was answered in the window counts in it, in all its figures. */
    for (uint32_t i = 0; due && i < runtime->options->threads; i++) {
        if (load->slots[i].state == SLOT_ANSWERED) {
            slot_resume(runtime, &load->slots[i]);
        }
    }
    if (is_generating(load)) {
        count_due(runtime, now_us);
    }
    change_state(runtime, now_us);
    if (due) {
        for (uint32_t i = 0; i < runtime->options->threads; i++) {
            attend_slot(runtime, &load->slots[i], now_us);
        }
        load->slots_due_us = UINT64_MAX;
        for (uint32_t i = 0; i < runtime->options->threads; i++) {
            load->slots_due_us = earlier(load->slots_due_us, slot_wants(runtime, &load->slots[i]));
        }
    }
    uint64_t next = load->slots_due_us;
    switch (load->state) {
    case LOAD_WARMUP:
        return earlier(next, load->warm_us);
    case LOAD_MEASURING:
        return earlier(next, load->stop_us);
    case LOAD_DRAINING:
        return earlier(next, now_us + 10000);
    case LOAD_IDLE:
    case LOAD_DONE:
        return next;
    }
    return next;
}

void load_on_access_reply(struct runtime *runtime, const struct dw_wire_access_reply *reply)
{
    struct txn_context *context = txn_table_find(runtime->txns, reply->txn);
    if (context != NULL && context->slot != NULL) {
        slot_on_access_reply(runtime, context->slot, reply);
    }
}
