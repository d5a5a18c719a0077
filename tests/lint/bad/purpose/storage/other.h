/* another.h - the name of another file. */
