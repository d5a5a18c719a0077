/* dogwood-bench-log: a client that measures a storage node over the product's own stream. It keeps a fixed
 * number of log requests in flight, each about a new transaction, or sends bursts and watches whether others
 * are delayed by them. One JSON object a line. */
#include "storage/bench_log.h"

#include "base/flags.h"

static const char usage[] =
    "usage: dogwood-bench-log --connect HOST:PORT --run-id ID [--node 0] [--log 0] [--bytes 128]\n"
    "                         [--ask vote|deny|commit-local|read] [--buckets] [--depths 1,4,16,64,256]\n"
    "                         [--streams 1] [--warm-up 0.2] [--seconds 1] [--count N]\n"
    "                         [--burst N [--rounds 20]]\n"
    "  what is in flight is spread over the streams; a depth ends after so many seconds or so many "
    "requests\n";

static int parse(int argc, char **argv, struct bench_options *options)
{
    /* Asks that make sense of an absent entry of the writer's own log. */
    static const enum dw_ask asks[] = {DW_ASK_VOTE, DW_ASK_DENY, DW_ASK_COMMIT_LOCAL, DW_ASK_READ};
    unsigned ask = 0;
    struct dw_flag flags[] = {
        {.name = "connect", .needed = "the HOST:PORT that the node printed", .text = &options->address},
        {.name = "run-id",
         .needed = "the run id of the node",
         .text = &options->run_id,
         .rule = &dw_text_run_id},
        {.name = "node", .u32 = &options->node, .high = UINT32_MAX},
        {.name = "log", .u32 = &options->log, .high = DW_MAX_NODES - 1},
        {.name = "bytes", .u32 = &options->bytes, .high = 65536},
        {.name = "ask", .word = &ask, .words = "vote|deny|commit-local|read"},
        {.name = "buckets", .present = &options->buckets},
        {.name = "depths",
         .list = options->depths,
         .list_count = &options->depth_count,
         .list_size = BENCH_MAX_DEPTHS,
         .low = 1,
         .high = BENCH_MAX_IN_FLIGHT},
        {.name = "streams", .u32 = &options->streams, .low = 1, .high = BENCH_MAX_STREAMS},
        {.name = "warm-up", .decimal = &options->warm_up, .most = 3600},
        {.name = "seconds", .decimal = &options->seconds, .least = 0.05, .most = 3600},
        {.name = "count", .u32 = &options->count, .low = 1, .high = 1000000000},
        {.name = "burst", .u32 = &options->burst, .low = 1, .high = 16384},
        {.name = "rounds", .u32 = &options->rounds, .low = 1, .high = 100000},
        {.name = NULL},
    };
    int code = dw_flags_read("dogwood-bench-log", usage, flags, argc, argv, NULL);
    options->ask = asks[ask];
    return code;
}

int main(int argc, char **argv)
{
    struct bench_options options = {.depths = {1, 4, 16, 64, 256},
                                    .depth_count = 5,
                                    .streams = 1,
                                    .warm_up = 0.2,
                                    .seconds = 1,
                                    .bytes = 128,
                                    .rounds = 20};
    int code = parse(argc, argv, &options);
    if (code != DW_FLAGS_GO_ON) {
        return code;
    }
    return options.burst > 0 ? bench_burst(&options) : bench_depths(&options);
}
