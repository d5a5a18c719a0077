/* id.h - a header. */
