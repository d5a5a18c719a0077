/* id.h - ids. */
