/* dogwood-bench-log: a client that measures a storage node over the product's own stream. It keeps a fixed
 * number of log requests in flight, each about a new transaction, or sends bursts and watches whether others
 * are delayed by them. One JSON object a line. */
#include "storage/bench_log.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dogwood-bench-log --connect HOST:PORT --run-id ID [--node 0] [--log 0] [--bytes 128]\n"
    "                         [--ask vote|deny|commit-local|read] [--buckets] [--depths 1,4,16,64,256]\n"
    "                         [--streams 1] [--warm-up 0.2] [--seconds 1] [--count N]\n"
    "                         [--burst N [--rounds 20]]\n"
    "  what is in flight is spread over the streams; a depth ends after so many seconds or so many "
    "requests\n";

static int refuse(const char *flag, const char *value, const char *range)
{
    fprintf(stderr, "dogwood-bench-log: --%s \"%s\" is wrong; give %s\n", flag, value, range);
    return BENCH_ASKED_WRONGLY;
}

/* A whole number in [low, high] that ends with the text or a comma. */
static bool parse_number(const char *text, unsigned long low, unsigned long high, uint32_t *number,
                         const char **rest)
{
    char *stop;
    errno = 0;
    unsigned long value = strtoul(text, &stop, 10);
    *rest = stop;
    *number = (uint32_t)value;
    return text[0] >= '0' && text[0] <= '9' && errno == 0 && value >= low && value <= high;
}

static int parse_whole(const char *flag, const char *value, unsigned long low, unsigned long high,
                       uint32_t *number)
{
    char range[64];
    const char *rest;
    if (parse_number(value, low, high, number, &rest) && *rest == '\0') {
        return 0;
    }
    snprintf(range, sizeof range, "a whole number from %lu to %lu", low, high);
    return refuse(flag, value, range);
}

static bool parse_depths(const char *text, struct bench_options *options)
{
    options->depth_count = 0;
    for (;;) {
        const char *rest;
        if (options->depth_count == BENCH_MAX_DEPTHS ||
            !parse_number(text, 1, BENCH_MAX_IN_FLIGHT, &options->depths[options->depth_count], &rest)) {
            return false;
        }
        options->depth_count++;
        if (*rest != ',') {
            return *rest == '\0';
        }
        text = rest + 1;
    }
}

static int parse_seconds(const char *flag, const char *value, double low, double *seconds)
{
    char range[64];
    char *stop;
    *seconds = strtod(value, &stop);
    if (stop != value && *stop == '\0' && *seconds >= low && *seconds <= 3600) {
        return 0;
    }
    snprintf(range, sizeof range, "%.4g to 3600", low);
    return refuse(flag, value, range);
}

/* Asks that make sense of an absent entry of the writer's own log. */
static bool parse_ask(const char *text, enum dw_ask *ask)
{
    static const struct {
        const char *name;
        enum dw_ask ask;
    } asks[] = {{"vote", DW_ASK_VOTE},
                {"deny", DW_ASK_DENY},
                {"commit-local", DW_ASK_COMMIT_LOCAL},
                {"read", DW_ASK_READ}};
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        if (strcmp(text, asks[i].name) == 0) {
            *ask = asks[i].ask;
            return true;
        }
    }
    return false;
}

/* Returns 0, or the exit code of a wrong value. */
static int parse_flag(struct bench_options *options, const char *flag, const char *value)
{
    if (strcmp(flag, "connect") == 0) {
        options->address = value;
    } else if (strcmp(flag, "run-id") == 0) {
        options->run_id = value;
        return strlen(value) <= DW_MAX_RUN_ID ? 0 : refuse(flag, value, "at most 63 characters");
    } else if (strcmp(flag, "node") == 0) {
        return parse_whole(flag, value, 0, UINT32_MAX, &options->node);
    } else if (strcmp(flag, "log") == 0) {
        return parse_whole(flag, value, 0, DW_MAX_NODES - 1, &options->log);
    } else if (strcmp(flag, "bytes") == 0) {
        return parse_whole(flag, value, 0, 65536, &options->bytes);
    } else if (strcmp(flag, "streams") == 0) {
        return parse_whole(flag, value, 1, BENCH_MAX_STREAMS, &options->streams);
    } else if (strcmp(flag, "burst") == 0) {
        return parse_whole(flag, value, 1, 16384, &options->burst);
    } else if (strcmp(flag, "rounds") == 0) {
        return parse_whole(flag, value, 1, 100000, &options->rounds);
    } else if (strcmp(flag, "buckets") == 0) {
        options->buckets = true;
    } else if (strcmp(flag, "ask") == 0) {
        return parse_ask(value, &options->ask) ? 0 : refuse(flag, value, "vote, deny, commit-local or read");
    } else if (strcmp(flag, "depths") == 0) {
        return parse_depths(value, options)
                   ? 0
                   : refuse(flag, value, "at most 32 numbers from 1 to 65536, separated by commas");
    } else if (strcmp(flag, "seconds") == 0) {
        return parse_seconds(flag, value, 0.05, &options->seconds);
    } else if (strcmp(flag, "warm-up") == 0) {
        return parse_seconds(flag, value, 0, &options->warm_up);
    } else if (strcmp(flag, "count") == 0) {
        return parse_whole(flag, value, 1, 1000000000, &options->count);
    }
    return 0;
}

static int parse(int argc, char **argv, struct bench_options *options)
{
    static const struct option flags[] = {
        {"connect", required_argument, NULL, 'f'}, {"run-id", required_argument, NULL, 'f'},
        {"node", required_argument, NULL, 'f'},    {"log", required_argument, NULL, 'f'},
        {"depths", required_argument, NULL, 'f'},  {"seconds", required_argument, NULL, 'f'},
        {"bytes", required_argument, NULL, 'f'},   {"ask", required_argument, NULL, 'f'},
        {"streams", required_argument, NULL, 'f'}, {"burst", required_argument, NULL, 'f'},
        {"rounds", required_argument, NULL, 'f'},  {"warm-up", required_argument, NULL, 'f'},
        {"count", required_argument, NULL, 'f'},   {"buckets", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    int found;
    int index = 0;
    while ((found = getopt_long(argc, argv, "", flags, &index)) == 'f') {
        int wrong = parse_flag(options, flags[index].name, optarg);
        if (wrong != 0) {
            return wrong;
        }
    }
    if (found == 'h') {
        fputs(usage, stdout);
        exit(BENCH_GOOD);
    }
    if (found != -1 || optind < argc || options->address == NULL || options->run_id == NULL) {
        fputs(usage, stderr);
        return BENCH_ASKED_WRONGLY;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct bench_options options = {.depths = {1, 4, 16, 64, 256},
                                    .depth_count = 5,
                                    .streams = 1,
                                    .warm_up = 0.2,
                                    .seconds = 1,
                                    .bytes = 128,
                                    .ask = DW_ASK_VOTE,
                                    .rounds = 20};
    int wrong = parse(argc, argv, &options);
    if (wrong != 0) {
        return wrong;
    }
    return options.burst > 0 ? bench_burst(&options) : bench_depths(&options);
}
