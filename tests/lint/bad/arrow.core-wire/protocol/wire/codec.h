/* codec.h - a header. */
