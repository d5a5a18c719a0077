/* server.h - a storage node at work: streams of log requests into the log service, and administration calls.
 */
#ifndef DW_STORAGE_SERVER_H
#define DW_STORAGE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rpc/rpc.h"
#include "storage/log_service.h"

struct server;

struct server_options {
    struct dw_identity self;
    const char *listen;
    uint64_t logs;              /* mask of the logs that are served */
    struct dw_log_store *store; /* taken over, also if starting fails */
    bool sync;
    struct dw_delay delay;
    uint64_t seed;          /* of the delay's random numbers */
    size_t max_queue_bytes; /* of log requests that wait; at least SERVER_MIN_QUEUE_BYTES */
    /* Called once, on some thread of the server: the store failed, or Shutdown was called. The process should
     * call storage_stop soon. */
    void (*on_stop)(void *user);
    void *user;
};

/* The requests of the largest message must fit into an empty queue, or its stream would wait for ever. */
#define SERVER_MIN_QUEUE_BYTES ((size_t)128 << 20)

/* Rebuilds the table of entries from the store, then serves. On failure *text gets one line that names the
 * thing and the mend. The process' signals must be blocked before. */
DW_MUST_CHECK enum dw_error storage_start(const struct server_options *options, struct server **server,
                                          char *text, size_t text_size);

uint16_t storage_port(const struct server *server);

/* True after the store failed; the log service has told why on stderr. */
bool storage_failed(struct server *server);

/* Refuses new calls, closes the streams, writes what is queued (delays are cut short; nobody is left to hear
 * the answers), closes the store. */
void storage_stop(struct server *server);

#endif
