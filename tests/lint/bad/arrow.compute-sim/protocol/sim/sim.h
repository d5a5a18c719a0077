/* sim.h - a header. */
