/* dogwood-ctl: asks a running node, and tells it what to do. */
#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/ctl/ctl.h"
#include "storage/options.h"

enum { DEFAULT_TIMEOUT_MS = 5000, MAX_TIMEOUT_MS = 3600000 };

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

__attribute__((format(printf, 1, 2))) static int ask_wrongly(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("dogwood-ctl: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; see dogwood-ctl --help\n", stderr);
    va_end(arguments);
    return EXIT_ASKED_WRONGLY;
}

enum flag {
    FLAG_AT = 1,
    FLAG_RUN,
    FLAG_JSON,
    FLAG_TIMEOUT,
    FLAG_VERSION,
    FLAG_HELP,
    /* Of commands: */
    FLAG_RESET,
    FLAG_HEX,
    FLAG_FROM,
    FLAG_LIMIT,
    FLAG_PARTICIPANTS,
    FLAG_REDO,
    FLAG_WRITER,
    FLAG_INCARNATION,
    FLAG_NO_FORCE,
    FLAG_WARMUP,
    FLAG_DURATION,
};

static const struct option flags[] = {
    {"at", required_argument, NULL, FLAG_AT},
    {"run-id", required_argument, NULL, FLAG_RUN},
    {"json", no_argument, NULL, FLAG_JSON},
    {"timeout-ms", required_argument, NULL, FLAG_TIMEOUT},
    {"version", no_argument, NULL, FLAG_VERSION},
    {"help", no_argument, NULL, FLAG_HELP},
    {"reset", no_argument, NULL, FLAG_RESET},
    {"hex", no_argument, NULL, FLAG_HEX},
    {"from", required_argument, NULL, FLAG_FROM},
    {"limit", required_argument, NULL, FLAG_LIMIT},
    {"participants", required_argument, NULL, FLAG_PARTICIPANTS},
    {"redo", required_argument, NULL, FLAG_REDO},
    {"writer", required_argument, NULL, FLAG_WRITER},
    {"incarnation", required_argument, NULL, FLAG_INCARNATION},
    {"no-force", no_argument, NULL, FLAG_NO_FORCE},
    {"warmup-ms", required_argument, NULL, FLAG_WARMUP},
    {"duration-ms", required_argument, NULL, FLAG_DURATION},
    {NULL, 0, NULL, 0},
};

#define BIT(flag) (1u << (flag))

/* `words` spells what follows the command: l log, a ask, t transaction, d delay, f failpoint; small letters
 * after a '?' may be missing. */
static const struct command {
    const char *name;
    int (*run)(const struct ctl *ctl);
    const char *words;
    unsigned flags;
} commands[] = {
    {"identify", ctl_identify, "", 0},
    {"ping", ctl_ping, "", 0},
    {"stop", ctl_stop, "", 0},
    {"stats", ctl_stats, "", BIT(FLAG_RESET)},
    {"delay", ctl_delay, "?d", 0},
    {"read", ctl_read, "lt", BIT(FLAG_HEX)},
    {"scan", ctl_scan, "l", BIT(FLAG_FROM) | BIT(FLAG_LIMIT) | BIT(FLAG_HEX)},
    {"fence", ctl_fence, "l", 0},
    {"log", ctl_log, "lat",
     BIT(FLAG_PARTICIPANTS) | BIT(FLAG_REDO) | BIT(FLAG_WRITER) | BIT(FLAG_INCARNATION) | BIT(FLAG_NO_FORCE)},
    {"begin", ctl_begin, "", BIT(FLAG_WARMUP) | BIT(FLAG_DURATION)},
    {"status", ctl_status, "", 0},
    {"report", ctl_report, "", 0},
    {"digest", ctl_digest, "", 0},
    {"failpoint", ctl_failpoint, "?f", 0},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const char *flag_name(unsigned flag)
{
    for (size_t i = 0; flags[i].name != NULL; i++) {
        if ((unsigned)flags[i].val == flag) {
            return flags[i].name;
        }
    }
    return "?";
}

static int set_number(enum flag flag, const char *value, uint64_t low, uint64_t high, uint64_t *number)
{
    if (option_number(value, low, high, number)) {
        return EXIT_GOOD;
    }
    return ask_wrongly("--%s '%s' is wrong: give a number from %llu to %llu", flag_name(flag), value,
                       (unsigned long long)low, (unsigned long long)high);
}

static int set_small(enum flag flag, const char *value, uint64_t low, uint64_t high, uint32_t *number)
{
    uint64_t wide = 0;
    int wrong = set_number(flag, value, low, high, &wide);
    *number = (uint32_t)wide;
    return wrong;
}

static int set_at(struct ctl *ctl, const char *value)
{
    ctl->address = value;
    return option_address(value, false)
               ? EXIT_GOOD
               : ask_wrongly("--at '%s' is wrong: give HOST:PORT, as the node printed it", value);
}

static int set_run_id(struct ctl *ctl, const char *value)
{
    snprintf(ctl->self.run_id, sizeof ctl->self.run_id, "%s", value);
    return option_run_id(value)
               ? EXIT_GOOD
               : ask_wrongly("--run-id '%s' is wrong: give 1 to %d letters, digits, '.', '_' or '-'", value,
                             DW_MAX_RUN_ID);
}

static int set_participants(struct ctl *ctl, const char *value)
{
    return option_logs(value, &ctl->participants)
               ? EXIT_GOOD
               : ask_wrongly(
                     "--participants '%s' is wrong: give numbers and ranges from 0 to %d, as in 0,2,4-7",
                     value, DW_MAX_NODES - 1);
}

static int set_flag(struct ctl *ctl, enum flag flag, const char *value)
{
    switch (flag) {
    case FLAG_AT:
        return set_at(ctl, value);
    case FLAG_RUN:
        return set_run_id(ctl, value);
    case FLAG_JSON:
        ctl->json = true;
        return EXIT_GOOD;
    case FLAG_TIMEOUT:
        return set_small(flag, value, 1, MAX_TIMEOUT_MS, &ctl->timeout_ms);
    case FLAG_VERSION:
        puts("dogwood-ctl " DW_VERSION);
        exit(EXIT_GOOD);
    case FLAG_HELP:
        fputs(usage, stdout);
        exit(EXIT_GOOD);
    case FLAG_RESET:
        ctl->reset = true;
        return EXIT_GOOD;
    case FLAG_HEX:
        ctl->hex = true;
        return EXIT_GOOD;
    case FLAG_FROM:
        return set_number(flag, value, 0, UINT64_MAX, &ctl->from);
    case FLAG_LIMIT:
        return set_number(flag, value, 1, UINT64_MAX, &ctl->limit);
    case FLAG_PARTICIPANTS:
        return set_participants(ctl, value);
    case FLAG_REDO:
        ctl->redo = value;
        return EXIT_GOOD;
    case FLAG_WRITER:
        ctl->has_writer = true;
        return set_small(flag, value, 0, DW_MAX_NODES - 1, &ctl->writer);
    case FLAG_INCARNATION:
        ctl->has_incarnation = true;
        return set_small(flag, value, 0, UINT32_MAX, &ctl->incarnation);
    case FLAG_NO_FORCE:
        ctl->no_force = true;
        return EXIT_GOOD;
    case FLAG_WARMUP:
        return set_number(flag, value, 0, UINT64_MAX, &ctl->warmup_ms);
    case FLAG_DURATION:
        return set_number(flag, value, 1, UINT64_MAX, &ctl->duration_ms);
    }
    return EXIT_ASKED_WRONGLY;
}

static int refuse_flag(const char *given)
{
    const char *names[sizeof flags / sizeof *flags];
    char name[64];
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        names[i] = flags[i].name;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    bool is_long = strncmp(name, "--", 2) == 0;
    for (size_t i = 0; is_long && names[i] != NULL; i++) {
        if (strcmp(name + 2, names[i]) == 0) {
            return ask_wrongly("%s %s", name,
                               flags[i].has_arg == no_argument ? "takes no value" : "needs a value");
        }
    }
    const char *near = is_long ? option_nearest(name + 2, names) : NULL;
    return near != NULL ? ask_wrongly("unknown flag '%s'; do you mean --%s?", name, near)
                        : ask_wrongly("unknown flag '%s'", name);
}

/* Collects flags in *given, wherever they stand among the words. */
static int parse_flags(int argc, char **argv, struct ctl *ctl, unsigned *given)
{
    int found;
    opterr = 0;
    while ((found = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        if (found == '?') {
            return refuse_flag(argv[optind - 1]);
        }
        int wrong = set_flag(ctl, (enum flag)found, optarg);
        if (wrong != EXIT_GOOD) {
            return wrong;
        }
        *given |= BIT((unsigned)found);
    }
    return EXIT_GOOD;
}

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

static int set_word(struct ctl *ctl, char kind, const char *word)
{
    char text[256];
    uint64_t log;
    switch (kind) {
    case 'l':
        if (!option_number(word, 0, DW_MAX_NODES - 1, &log)) {
            return ask_wrongly("log '%s' is wrong: give a number from 0 to %d", word, DW_MAX_NODES - 1);
        }
        ctl->log = (uint32_t)log;
        return EXIT_GOOD;
    case 't':
        return option_txn(word, &ctl->txn)
                   ? EXIT_GOOD
                   : ask_wrongly("transaction '%s' is wrong: give COORDINATOR:INCARNATION:SEQUENCE, with a "
                                 "coordinator from 0 to %d and an incarnation of at least 1",
                                 word, DW_MAX_NODES - 1);
    case 'a':
        return parse_ask(word, &ctl->ask)
                   ? EXIT_GOOD
                   : ask_wrongly("ask '%s' is unknown: give vote, deny, decide-commit, decide-abort, "
                                 "commit-local, start, coord-commit, coord-abort, end or read",
                                 word);
    case 'd':
        ctl->set_delay = true;
        return dw_delay_parse(word, &ctl->delay, text, sizeof text) == DW_OK ? EXIT_GOOD
                                                                             : ask_wrongly("%s", text);
    default:
        ctl->spec = word;
        return EXIT_GOOD;
    }
}

static int parse_words(const struct command *command, int count, char **words, struct ctl *ctl)
{
    bool optional = false;
    int used = 0;
    for (const char *kind = command->words; *kind != '\0'; kind++) {
        if (*kind == '?') {
            optional = true;
            continue;
        }
        if (used == count) {
            return optional ? EXIT_GOOD : ask_wrongly("%s needs more words", command->name);
        }
        int wrong = set_word(ctl, *kind, words[used++]);
        if (wrong != EXIT_GOOD) {
            return wrong;
        }
    }
    return used == count ? EXIT_GOOD : ask_wrongly("'%s' is too much for %s", words[used], command->name);
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
    const char *near = option_nearest(name, names);
    if (near != NULL) {
        ask_wrongly("unknown command '%s'; do you mean %s?", name, near);
    } else {
        ask_wrongly("unknown command '%s'", name);
    }
    return NULL;
}

static int check_flags(const struct command *command, unsigned given)
{
    unsigned everywhere = BIT(FLAG_AT) | BIT(FLAG_RUN) | BIT(FLAG_JSON) | BIT(FLAG_TIMEOUT);
    for (unsigned flag = FLAG_AT; flag <= FLAG_DURATION; flag++) {
        if ((given & BIT(flag)) != 0 && ((everywhere | command->flags) & BIT(flag)) == 0) {
            return ask_wrongly("--%s does not go with %s", flag_name(flag), command->name);
        }
    }
    if ((given & BIT(FLAG_AT)) == 0) {
        return ask_wrongly("--at is missing: give the HOST:PORT that the node printed");
    }
    if (command->run == ctl_begin && (given & BIT(FLAG_DURATION)) == 0) {
        return ask_wrongly("begin needs --duration-ms");
    }
    return EXIT_GOOD;
}

int main(int argc, char **argv)
{
    unsigned given = 0;
    struct ctl ctl = {.self = {.role = DW_ROLE_CLIENT}, .timeout_ms = DEFAULT_TIMEOUT_MS, .spec = ""};
    int code = parse_flags(argc, argv, &ctl, &given);
    if (code != EXIT_GOOD) {
        return code;
    }
    if (optind == argc) {
        return ask_wrongly("a command is missing");
    }
    const struct command *command = find_command(argv[optind]);
    if (command == NULL) {
        return EXIT_ASKED_WRONGLY;
    }
    code = parse_words(command, argc - optind - 1, argv + optind + 1, &ctl);
    if (code == EXIT_GOOD) {
        code = check_flags(command, given);
    }
    return code == EXIT_GOOD ? command->run(&ctl) : code;
}
