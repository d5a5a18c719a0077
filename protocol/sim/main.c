/* dogwood-sim: runs the shipped protocol code without processes. `explore` tries every order of events. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/exit_code.h"
#include "base/flags.h"
#include "sim/explore.h"

#define PROGRAM "dogwood-sim"

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

static bool take_protocol(void *user, const char *value, char *mend, size_t mend_size)
{
    const struct dw_protocol **protocol = user;
    snprintf(mend, mend_size, "give cornus|2pc");
    *protocol = dw_protocol_find(value);
    return *protocol != NULL;
}

/* Who takes part: the coordinator is node 0, writers follow, then readers. */
static int set_nodes(struct arguments *arguments)
{
    uint32_t nodes = 1 + arguments->participants + arguments->readers;
    if (nodes < 2 || nodes > DW_WORLD_NODES) {
        return dw_flags_refuse(PROGRAM, "participants and readers are 1 to %d in all, not %u",
                               DW_WORLD_NODES - 1, nodes - 1);
    }
    arguments->options.nodes = nodes;
    arguments->options.writers = (UINT64_C(1) << (1 + arguments->participants)) - 1;
    arguments->options.readers = ((UINT64_C(1) << nodes) - 1) & ~arguments->options.writers;
    return DW_FLAGS_GO_ON;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    struct dw_explore_options *options = &arguments->options;
    int word;
    struct dw_flag flags[] = {
        {.name = "protocol", .take = take_protocol, .user = &options->protocol},
        {.name = "participants", .u32 = &arguments->participants, .high = DW_WORLD_NODES - 1},
        {.name = "readers", .u32 = &arguments->readers, .high = DW_WORLD_NODES - 1},
        {.name = "crashes", .u32 = &options->crashes, .high = 8},
        {.name = "restarts", .u32 = &options->restarts, .high = 8},
        {.name = "dups", .u32 = &options->duplicates, .high = 8},
        {.name = "drops", .u32 = &options->drops, .high = 8},
        {.name = "timeouts", .u32 = &options->timeouts, .high = 100},
        {.name = "max-states", .u64 = &options->max_states, .high = UINT64_C(4000000000)},
        {.name = NULL},
    };
    int code = dw_flags_read(PROGRAM, usage, flags, argc, argv, &word);
    if (code != DW_FLAGS_GO_ON) {
        return code;
    }
    if (word == argc || strcmp(argv[word], "explore") != 0) {
        return dw_flags_refuse(PROGRAM, "a command is missing or unknown: give explore");
    }
    if (word + 1 < argc) {
        return dw_flags_refuse(PROGRAM, "'%s' belongs to no flag", argv[word + 1]);
    }
    return set_nodes(arguments);
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
        fprintf(stderr, PROGRAM ": %s; give smaller bounds\n", dw_error_text(error));
        return DW_EXIT_ENVIRONMENT;
    }
    printf("%s: states %llu transitions %llu depth %u packets %u quiescent %llu blocked %llu seconds %.1f\n",
           verdicts[result.verdict], (unsigned long long)result.states,
           (unsigned long long)result.transitions, result.depth, result.packets,
           (unsigned long long)result.quiescent, (unsigned long long)result.blocked, seconds_now() - start);
    static const int codes[] = {DW_EXIT_GOOD, DW_EXIT_VIOLATION, DW_EXIT_INCONCLUSIVE};
    return codes[result.verdict];
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.options = {.protocol = &dw_cornus, .timeouts = DW_EXPLORE_UNBOUNDED},
                                  .participants = 1};
    int code = parse(argc, argv, &arguments);
    return code != DW_FLAGS_GO_ON ? code : explore(&arguments);
}
