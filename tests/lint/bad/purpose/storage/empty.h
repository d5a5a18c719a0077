/* empty.h - */
