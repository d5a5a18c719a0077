/* version.h - a header. */
