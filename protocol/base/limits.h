/* limits.h - the sizes that every part agrees on. */
#ifndef DW_BASE_LIMITS_H
#define DW_BASE_LIMITS_H

#define DW_MAX_NODES   64         /* compute nodes: participants are a 64-bit mask */
#define DW_MAX_MESSAGE (4u << 20) /* bytes of one message on a stream (gRPC's own default limit) */
#define DW_MAX_REDO    (1u << 20) /* bytes of redo in one log record */
#define DW_MAX_RUN_ID  63         /* characters of a run id */
#define DW_VERSION     "0.1.0"

#endif
