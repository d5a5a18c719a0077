/* bench_stream.h - what the two files of dogwood-bench-stream share. */
#ifndef DW_RPC_BENCH_STREAM_H
#define DW_RPC_BENCH_STREAM_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_RUN_ID "bench-stream"

enum { BENCH_MAX_DEPTHS = 32, BENCH_MAX_DEPTH = 65536 };

struct bench_options {
    const char *address;
    uint32_t depths[BENCH_MAX_DEPTHS];
    size_t depth_count;
    double seconds;
    uint32_t bytes; /* of redo in a request */
};

/* Runs all depths one after the other and prints one JSON object a line. Returns the exit code. */
int bench_client(const struct bench_options *options);

#endif
