/* raw.h - a gRPC caller that keeps none of Dogwood's rules, for what a stranger may send. */
#ifndef TESTS_RPC_RAW_H
#define TESTS_RPC_RAW_H

#include <grpc/grpc.h>

struct raw_call {
    const char *path;   /* "/dogwood.v1.Node/Stream" */
    const char *run_id; /* NULL: no hand-shake at all */
    const char *version;
    const char *role;
    const char *node;
    const char *protocol; /* NULL: empty */
    size_t message_size;  /* zero bytes to send as one message */
};

/* Calls, sends one message, closes its side, and waits for the status; returns it and its text. */
grpc_status_code raw_run(const char *address, const struct raw_call *call, char *text, size_t text_size);

#endif
