#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "sim/trace.h"

void machine_init_scanning(struct machine *machine, const struct dw_protocol *protocol, uint32_t slot)
{
    struct dw_update update = {0};
    memset(machine, 0, sizeof *machine);
    machine->protocol = protocol;
    machine->id = (struct dw_txn_id){.coordinator = 0, .incarnation = 1, .sequence = 1};
    dw_node_init(&machine->node, slot);
    dw_node_start(&machine->node, &update);
    dw_node_fenced(&machine->node, 1, &update);
}

void machine_init(struct machine *machine, const struct dw_protocol *protocol, uint32_t slot)
{
    machine_init_scanning(machine, protocol, slot);
    dw_node_scanned(&machine->node);
}

/* Appends to the text what fits. */
static void append(struct machine *machine, const char *text, size_t length)
{
    size_t used = strlen(machine->text);
    assert_true(used + length < sizeof machine->text);
    memcpy(machine->text + used, text, length);
    machine->text[used + length] = '\0';
}

/* The tracer's lines on one: the state after "-> ", then the outputs, which are indented. */
static void read_trace(struct machine *machine, const char *trace)
{
    const char *line = strstr(trace, "-> ");
    const char *separator = ": ";
    assert_non_null(line);
    line += 3;
    machine->text[0] = '\0';
    append(machine, line, strcspn(line, "\n"));
    while ((line = strstr(line, "\n    ")) != NULL) {
        line += 5;
        append(machine, separator, strlen(separator));
        append(machine, line, strcspn(line, "\n"));
        separator = "; ";
    }
}

const char *machine_step(struct machine *machine, struct dw_event event)
{
    char *trace = NULL;
    size_t size = 0;
    event.txn = machine->id;
    event.message.txn = machine->id;
    event.reply.txn = machine->id;
    dw_step(machine->protocol, &machine->node, &machine->txn, &event, &machine->update);
    dw_txn_check(&machine->txn);
    dw_node_check(&machine->node);
    FILE *file = open_memstream(&trace, &size);
    assert_non_null(file);
    dw_trace_step(file, machine->node.slot, &event, &machine->update, (enum dw_txn_state)machine->txn.state);
    fclose(file);
    read_trace(machine, trace);
    free(trace);
    return machine->text;
}

const char *machine_commit(struct machine *machine, uint64_t writers, uint64_t readers)
{
    return machine_step(machine,
                        (struct dw_event){.kind = DW_EVENT_COMMIT, .writers = writers, .readers = readers});
}

const char *machine_cancel(struct machine *machine, uint64_t joined)
{
    return machine_step(machine, (struct dw_event){.kind = DW_EVENT_CANCEL, .writers = joined});
}

const char *machine_join(struct machine *machine)
{
    return machine_step(machine, (struct dw_event){.kind = DW_EVENT_JOIN});
}

static struct dw_event message(const struct machine *machine, uint32_t from, enum dw_message_kind kind)
{
    return (struct dw_event){
        .kind = DW_EVENT_MESSAGE,
        .message = {.kind = kind, .from = from, .to = machine->node.slot},
    };
}

const char *machine_ask_vote(struct machine *machine, uint64_t writers, enum dw_execution execution)
{
    struct dw_event event = message(machine, 0, DW_MSG_VOTE_REQUEST);
    event.message.writers = writers;
    event.execution = execution;
    return machine_step(machine, event);
}

const char *machine_ask_read(struct machine *machine, enum dw_execution execution)
{
    struct dw_event event = message(machine, 0, DW_MSG_READ_REQUEST);
    event.execution = execution;
    return machine_step(machine, event);
}

const char *machine_hear(struct machine *machine, uint32_t from, enum dw_message_kind kind, uint32_t value)
{
    struct dw_event event = message(machine, from, kind);
    event.message.value = value;
    return machine_step(machine, event);
}

const char *machine_reply(struct machine *machine, uint32_t log, enum dw_ask ask, enum dw_answer answer)
{
    return machine_step(
        machine, (struct dw_event){.kind = DW_EVENT_LOG_REPLY,
                                   .reply = {.log = log, .ask = ask, .answer = answer, .position = 7}});
}

const char *machine_timeout(struct machine *machine)
{
    return machine_step(machine, (struct dw_event){.kind = DW_EVENT_TIMEOUT,
                                                   .timer = (enum dw_timer)machine->txn.timer,
                                                   .attempt = machine->txn.attempt});
}

const char *machine_recover(struct machine *machine, enum dw_entry_state entry, uint64_t writers)
{
    return machine_step(
        machine,
        (struct dw_event){.kind = DW_EVENT_RECOVERED, .entry = entry, .writers = writers, .position = 7});
}
