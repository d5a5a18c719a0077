/* options.h - the command line of dogwood-compute. */
#ifndef DW_COMPUTE_OPTIONS_H
#define DW_COMPUTE_OPTIONS_H

#include "compute/runtime.h"

struct options {
    struct runtime_options runtime;
    const char *cluster_file;
    void *parameters; /* owned: free it */
};

enum options_result {
    OPTIONS_GOOD,
    OPTIONS_DONE, /* --help or --version was printed */
    OPTIONS_BAD,  /* one line was printed to stderr */
};

/* Reads the command line; strings in `options` point into argv. */
enum options_result options_read(int argc, char **argv, struct options *options);

#endif
