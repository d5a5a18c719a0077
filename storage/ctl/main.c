/* dogwood-ctl: asks a running node, and tells it what to do. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/flags.h"
#include "base/nearest.h"
#include "storage/ctl/ctl.h"
#include "storage/options.h"

enum { DEFAULT_TIMEOUT_MS = 5000, MAX_TIMEOUT_MS = 3600000, MOST_FLAGS = 5 };

#define PROGRAM "dogwood-ctl"

static const char usage[] =
    "usage: dogwood-ctl --at HOST:PORT [--run-id ID] [--json] [--timeout-ms N] COMMAND\n"
    "\n"
    "every node:\n"
    "  identify                    role, number, run id, version and process\n"
    "  ping                        how long an answer takes\n"
    "  stop                        ends the node cleanly\n"
    "storage nodes:\n"
    "  stats [--reset]             counters since the start, or since the last reset\n"
    "  delay [MS[:DIST[:PARAM]]]   shows, or sets, the injected delay of log writes\n"
    "  read LOG TXN [--hex]        one entry and its records\n"
    "  scan LOG [--from POSITION] [--limit N] [--hex]\n"
    "                              the records of a log, in their order\n"
    "  fence LOG                   takes the next incarnation of the log's owner, which shuts out the older "
    "ones\n"
    "  log LOG ASK TXN [--participants LIST] [--redo TEXT] [--writer N] [--incarnation N] [--no-force]\n"
    "                              one request, made by hand; ASK is vote, deny, decide-commit, "
    "decide-abort,\n"
    "                              commit-local, start, coord-commit, coord-abort, end or read\n"
    "compute nodes (answers are JSON):\n"
    "  begin --duration-ms N [--warmup-ms N]\n"
    "                              starts the load\n"
    "  status | report | digest    what it does, what was measured, a digest of all rows\n"
    "  failpoint [NAME=ACTION]     sets one, or shows all\n"
    "\n"
    "TXN is COORDINATOR:INCARNATION:SEQUENCE. --hex shows redo. By default the request of `log` is written "
    "by the\n"
    "log's owner, in the transaction's incarnation, with the coordinator and the owner as participants.\n"
    "Without --run-id any node answers. --json prints one object. --version, --help.\n"
    "Exit codes: 0 good; 2 asked wrongly; 3 environment, e.g. nobody answers.\n";

/* `words` spells what follows the command: l log, a ask, t transaction, d delay, f failpoint; small letters
 * after a '?' may be missing. `flags` are those of this command. */
static const struct command {
    const char *name;
    int (*run)(const struct ctl *ctl);
    const char *words;
    const char *flags[MOST_FLAGS + 1];
} commands[] = {
    {"identify", ctl_identify, "", {NULL}},
    {"ping", ctl_ping, "", {NULL}},
    {"stop", ctl_stop, "", {NULL}},
    {"stats", ctl_stats, "", {"reset"}},
    {"delay", ctl_delay, "?d", {NULL}},
    {"read", ctl_read, "lt", {"hex"}},
    {"scan", ctl_scan, "l", {"from", "limit", "hex"}},
    {"fence", ctl_fence, "l", {NULL}},
    {"log", ctl_log, "lat", {"participants", "redo", "writer", "incarnation", "no-force"}},
    {"begin", ctl_begin, "", {"warmup-ms", "duration-ms"}},
    {"status", ctl_status, "", {NULL}},
    {"report", ctl_report, "", {NULL}},
    {"digest", ctl_digest, "", {NULL}},
    {"failpoint", ctl_failpoint, "?f", {NULL}},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* "decide-commit" and "DECIDE_COMMIT" are the same. */
static bool parse_ask(const char *text, enum dw_ask *ask)
{
    for (unsigned each = 0; each < DW_ASKS; each++) {
        const char *name = dw_ask_name((enum dw_ask)each);
        size_t i = 0;
        while (name[i] != '\0' &&
               (toupper((unsigned char)text[i]) == name[i] || (text[i] == '-' && name[i] == '_'))) {
            i++;
        }
        if (name[i] == '\0' && text[i] == '\0') {
            *ask = (enum dw_ask)each;
            return true;
        }
    }
    return false;
}

static int take_log(struct ctl *ctl, const char *word)
{
    uint64_t log;
    if (!dw_read_whole(word, 0, DW_MAX_NODES - 1, &log, NULL)) {
        return dw_flags_refuse(PROGRAM, "log '%s' is wrong: give a number from 0 to %d", word,
                               DW_MAX_NODES - 1);
    }
    ctl->log = (uint32_t)log;
    return DW_FLAGS_GO_ON;
}

static int take_word(struct ctl *ctl, char kind, const char *word)
{
    char text[256];
    switch (kind) {
    case 'l':
        return take_log(ctl, word);
    case 't':
        return option_txn(word, &ctl->txn)
                   ? DW_FLAGS_GO_ON
                   : dw_flags_refuse(PROGRAM,
                                     "transaction '%s' is wrong: give COORDINATOR:INCARNATION:SEQUENCE, with "
                                     "a coordinator from 0 to %d and an incarnation of at least 1",
                                     word, DW_MAX_NODES - 1);
    case 'a':
        return parse_ask(word, &ctl->ask)
                   ? DW_FLAGS_GO_ON
                   : dw_flags_refuse(PROGRAM,
                                     "ask '%s' is unknown: give vote, deny, decide-commit, decide-abort, "
                                     "commit-local, start, coord-commit, coord-abort, end or read",
                                     word);
    case 'd':
        ctl->set_delay = true;
        return dw_delay_parse(word, &ctl->delay, text, sizeof text) == DW_OK
                   ? DW_FLAGS_GO_ON
                   : dw_flags_refuse(PROGRAM, "%s", text);
    default:
        ctl->spec = word;
        return DW_FLAGS_GO_ON;
    }
}

static int take_words(const struct command *command, int count, char **words, struct ctl *ctl)
{
    bool optional = false;
    int used = 0;
    int code = DW_FLAGS_GO_ON;
    for (const char *kind = command->words; *kind != '\0' && code == DW_FLAGS_GO_ON; kind++) {
        if (*kind == '?') {
            optional = true;
        } else if (used < count) {
            code = take_word(ctl, *kind, words[used++]);
        } else if (!optional) {
            return dw_flags_refuse(PROGRAM, "%s needs more words", command->name);
        }
    }
    return code == DW_FLAGS_GO_ON && used < count
               ? dw_flags_refuse(PROGRAM, "'%s' is too much for %s", words[used], command->name)
               : code;
}

static const struct command *find_command(const char *name)
{
    const char *names[COMMANDS + 1] = {NULL};
    for (size_t i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) == 0) {
            return &commands[i];
        }
    }
    const char *near = dw_nearest(name, names);
    if (near != NULL) {
        dw_flags_refuse(PROGRAM, "unknown command '%s'; do you mean %s?", name, near);
    } else {
        dw_flags_refuse(PROGRAM, "unknown command '%s'", name);
    }
    return NULL;
}

static bool takes_flag(const struct command *command, const char *name)
{
    for (const char *const *flag = command->flags; *flag != NULL; flag++) {
        if (strcmp(*flag, name) == 0) {
            return true;
        }
    }
    return false;
}

/* `flags` are those that belong to single commands. */
static int check_flags(const struct command *command, const struct dw_flag *flags)
{
    for (const struct dw_flag *flag = flags; flag->name != NULL; flag++) {
        if (flag->given && !takes_flag(command, flag->name)) {
            return dw_flags_refuse(PROGRAM, "--%s does not go with %s", flag->name, command->name);
        }
    }
    if (command->run == ctl_begin && !dw_flags_given(flags, "duration-ms")) {
        return dw_flags_refuse(PROGRAM, "begin needs --duration-ms");
    }
    return DW_FLAGS_GO_ON;
}

/* Returns the command, or NULL and the exit code in *code. */
static const struct command *parse(int argc, char **argv, struct ctl *ctl, int *code)
{
    enum { EVERYWHERE = 4 };
    const char *run_id = "";
    int first;
    struct dw_flag flags[] = {
        {.name = "at",
         .needed = "the HOST:PORT that the node printed",
         .text = &ctl->address,
         .rule = &dw_text_address},
        {.name = "run-id", .text = &run_id, .rule = &dw_text_run_id},
        {.name = "json", .present = &ctl->json},
        {.name = "timeout-ms", .u32 = &ctl->timeout_ms, .low = 1, .high = MAX_TIMEOUT_MS},
        /* Of single commands: */
        {.name = "reset", .present = &ctl->reset},
        {.name = "hex", .present = &ctl->hex},
        {.name = "from", .u64 = &ctl->from, .high = UINT64_MAX},
        {.name = "limit", .u64 = &ctl->limit, .low = 1, .high = UINT64_MAX},
        {.name = "participants", .take = option_take_logs, .user = &ctl->participants},
        {.name = "redo", .text = &ctl->redo, .rule = &dw_text_any},
        {.name = "writer", .u32 = &ctl->writer, .high = DW_MAX_NODES - 1},
        {.name = "incarnation", .u32 = &ctl->incarnation, .high = UINT32_MAX},
        {.name = "no-force", .present = &ctl->no_force},
        {.name = "warmup-ms", .u64 = &ctl->warmup_ms, .high = UINT64_MAX},
        {.name = "duration-ms", .u64 = &ctl->duration_ms, .low = 1, .high = UINT64_MAX},
        {.name = NULL},
    };
    *code = dw_flags_read(PROGRAM, usage, flags, argc, argv, &first);
    if (*code != DW_FLAGS_GO_ON) {
        return NULL;
    }
    snprintf(ctl->self.run_id, sizeof ctl->self.run_id, "%s", run_id);
    ctl->has_writer = dw_flags_given(flags, "writer");
    ctl->has_incarnation = dw_flags_given(flags, "incarnation");
    if (first == argc) {
        *code = dw_flags_refuse(PROGRAM, "a command is missing");
        return NULL;
    }
    *code = EXIT_ASKED_WRONGLY;
    const struct command *command = find_command(argv[first]);
    if (command != NULL) {
        *code = take_words(command, argc - first - 1, argv + first + 1, ctl);
    }
    if (*code == DW_FLAGS_GO_ON) {
        *code = check_flags(command, flags + EVERYWHERE);
    }
    return command;
}

/* What was found and could not be told is no success. */
static int finish(int code)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_GOOD) {
        return ctl_fail(DW_ERR_IO, "the output cannot be written: is the disk full?");
    }
    return code;
}

int main(int argc, char **argv)
{
    int code;
    struct ctl ctl = {.self = {.role = DW_ROLE_CLIENT}, .timeout_ms = DEFAULT_TIMEOUT_MS, .spec = ""};
    const struct command *command = parse(argc, argv, &ctl, &code);
    return code == DW_FLAGS_GO_ON ? finish(command->run(&ctl)) : code;
}
