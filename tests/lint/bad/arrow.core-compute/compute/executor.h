/* executor.h - a header. */
