/* helper.h - beside its tests. */
