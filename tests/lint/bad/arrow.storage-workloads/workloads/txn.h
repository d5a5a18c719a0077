/* txn.h - a header. */
