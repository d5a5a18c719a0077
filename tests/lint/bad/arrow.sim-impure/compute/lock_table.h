/* lock_table.h - clean by itself. */
