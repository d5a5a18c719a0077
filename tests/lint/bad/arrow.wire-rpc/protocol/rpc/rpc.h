/* rpc.h - a header. */
