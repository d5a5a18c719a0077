/* rpc.h - messages. */
