/* dogwood-sim: runs the shipped protocol code without processes. `explore` tries every order of events. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/explore.h"

enum {
    EXIT_GOOD = 0,
    EXIT_VIOLATION = 1,
    EXIT_ASKED_WRONGLY = 2,
    EXIT_ENVIRONMENT = 3,
    EXIT_INCONCLUSIVE = 4
};

static const char usage[] =
    "usage: dogwood-sim explore [--protocol cornus|2pc] [--participants K] [--readers K] [--crashes C]\n"
    "                           [--restarts R] [--dups U] [--drops D] [--timeouts T] [--max-states N]\n"
    "Tries every order of events of one transaction over a coordinator, K writing participants and K "
    "readers.\n";

struct arguments {
    struct dw_explore_options options;
    uint32_t participants;
    uint32_t readers;
};

/* A number between 0 and `limit`, or a line on stderr. */
static bool parse_number(const char *name, const char *text, uint64_t limit, uint64_t *value)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || number > limit) {
        fprintf(stderr, "dogwood-sim: --%s takes a whole number from 0 to %llu, not '%s'\n", name,
                (unsigned long long)limit, text);
        return false;
    }
    *value = number;
    return true;
}

static const struct option long_options[] = {
    {"protocol", required_argument, NULL, 'p'},
    {"participants", required_argument, NULL, 'k'},
    {"readers", required_argument, NULL, 'q'},
    {"crashes", required_argument, NULL, 'c'},
    {"restarts", required_argument, NULL, 'r'},
    {"dups", required_argument, NULL, 'u'},
    {"drops", required_argument, NULL, 'd'},
    {"max-states", required_argument, NULL, 'm'},
    {"help", no_argument, NULL, 'h'},
    {"timeouts", required_argument, NULL, 't'},
    {NULL, 0, NULL, 0},
};

static bool take_option(struct arguments *arguments, int option, int index)
{
    const char *name = long_options[index].name;
    uint64_t value = 0;
    if (option == 'p') {
        arguments->options.protocol = dw_protocol_find(optarg);
        if (arguments->options.protocol == NULL) {
            fprintf(stderr, "dogwood-sim: --protocol takes cornus or 2pc, not '%s'\n", optarg);
        }
        return arguments->options.protocol != NULL;
    }
    uint64_t limit = option == 'm'                    ? UINT64_C(4000000000)
                     : option == 't'                  ? 100
                     : option == 'k' || option == 'q' ? DW_WORLD_NODES - 1
                                                      : 8;
    if (!parse_number(name, optarg, limit, &value)) {
        return false;
    }
    switch (option) {
    case 'k':
        arguments->participants = (uint32_t)value;
        return true;
    case 'q':
        arguments->readers = (uint32_t)value;
        return true;
    case 'c':
        arguments->options.crashes = (uint32_t)value;
        return true;
    case 'r':
        arguments->options.restarts = (uint32_t)value;
        return true;
    case 'u':
        arguments->options.duplicates = (uint32_t)value;
        return true;
    case 't':
        arguments->options.timeouts = (uint32_t)value;
        return true;
    case 'd':
        arguments->options.drops = (uint32_t)value;
        return true;
    default:
        arguments->options.max_states = value;
        return true;
    }
}

/* 0, or the exit code. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
    int option, index = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:", long_options, &index)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            exit(EXIT_GOOD);
        }
        if (option == '?' || option == ':') {
            fprintf(stderr, "dogwood-sim: %s '%s'; see dogwood-sim --help\n",
                    option == '?' ? "unknown flag" : "a value is missing after", argv[optind - 1]);
            return EXIT_ASKED_WRONGLY;
        }
        if (!take_option(arguments, option, index)) {
            return EXIT_ASKED_WRONGLY;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "dogwood-sim: unknown word '%s'; see dogwood-sim --help\n", argv[optind]);
        return EXIT_ASKED_WRONGLY;
    }
    uint32_t nodes = 1 + arguments->participants + arguments->readers;
    if (nodes < 2 || nodes > DW_WORLD_NODES) {
        fprintf(stderr, "dogwood-sim: participants and readers are 1 to %d in all, not %u\n",
                DW_WORLD_NODES - 1, nodes - 1);
        return EXIT_ASKED_WRONGLY;
    }
    arguments->options.nodes = nodes;
    arguments->options.writers = (UINT64_C(1) << (1 + arguments->participants)) - 1;
    arguments->options.readers = ((UINT64_C(1) << nodes) - 1) & ~arguments->options.writers;
    return 0;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int explore(const struct arguments *arguments)
{
    static const char *const verdicts[] = {"holds", "violated", "inconclusive"};
    const struct dw_explore_options *options = &arguments->options;
    struct dw_explore_result result;
    printf("explore protocol %s participants %u readers %u crashes %u restarts %u dups %u drops %u timeouts "
           "%u\n",
           options->protocol->name, arguments->participants, arguments->readers, options->crashes,
           options->restarts, options->duplicates, options->drops, options->timeouts);
    fflush(stdout);
    double start = seconds_now();
    enum dw_error error = dw_explore(options, &result, stdout);
    if (error != DW_OK) {
        fprintf(stderr, "dogwood-sim: %s; give smaller bounds\n", dw_error_text(error));
        return EXIT_ENVIRONMENT;
    }
    printf("%s: states %llu transitions %llu depth %u packets %u quiescent %llu blocked %llu seconds %.1f\n",
           verdicts[result.verdict], (unsigned long long)result.states,
           (unsigned long long)result.transitions, result.depth, result.packets,
           (unsigned long long)result.quiescent, (unsigned long long)result.blocked, seconds_now() - start);
    static const int codes[] = {EXIT_GOOD, EXIT_VIOLATION, EXIT_INCONCLUSIVE};
    return codes[result.verdict];
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.options = {.protocol = &dw_cornus, .timeouts = DW_EXPLORE_UNBOUNDED},
                                  .participants = 1};
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return EXIT_GOOD;
    }
    if (argc < 2 || strcmp(argv[1], "explore") != 0) {
        fputs(usage, stderr);
        return EXIT_ASKED_WRONGLY;
    }
    int code = parse(argc - 1, argv + 1, &arguments);
    return code != 0 ? code : explore(&arguments);
}
