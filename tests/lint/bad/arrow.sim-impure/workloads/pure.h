/* pure.h - pure. */
