/* error.h - the one list of errors. An abort, or "already logged", is a result and not listed here. */
#ifndef DW_BASE_ERROR_H
#define DW_BASE_ERROR_H

#define DW_ERRORS(X)                                                                                         \
    X(OK, "ok")                                                                                              \
    X(ARGUMENT, "invalid argument")                                                                          \
    X(RANGE, "value out of range")                                                                           \
    X(MEMORY, "out of memory")                                                                               \
    X(IO, "input/output error")                                                                              \
    X(CORRUPT, "damaged data")                                                                               \
    X(LOCKED, "locked by another process")                                                                   \
    X(MISSING, "not found")                                                                                  \
    X(ADDRESS, "address cannot be used")                                                                     \
    X(FULL, "queue is full")                                                                                 \
    X(CLOSED, "connection is closed")                                                                        \
    X(REFUSED, "refused by the peer")                                                                        \
    X(TIMEOUT, "deadline passed")                                                                            \
    X(MALFORMED, "malformed message")                                                                        \
    X(TOO_LARGE, "message too large")                                                                        \
    X(SHUTDOWN, "shutting down")

enum dw_error {
#define DW_ERROR_ENUM(name, text) DW_ERR_##name,
    DW_ERRORS(DW_ERROR_ENUM)
#undef DW_ERROR_ENUM
    /* The usual name of success. */
    DW_OK = DW_ERR_OK,
};

/* Functions that return an error must have it looked at. */
#define DW_MUST_CHECK __attribute__((warn_unused_result))

/* The text of an error; static, never NULL, also for a value outside the enum. */
const char *dw_error_text(enum dw_error error);

#endif
