/* helper.h - a header. */
