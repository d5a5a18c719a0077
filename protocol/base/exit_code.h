/* exit_code.h - how every program ends. */
#ifndef DW_BASE_EXIT_CODE_H
#define DW_BASE_EXIT_CODE_H

enum dw_exit_code {
    DW_EXIT_GOOD = 0,
    DW_EXIT_VIOLATION = 1,     /* a promise of the protocol was found broken */
    DW_EXIT_ASKED_WRONGLY = 2, /* flag, word, range */
    DW_EXIT_ENVIRONMENT = 3,   /* port, lock, disk, memory, or a peer that doesn't answer */
    DW_EXIT_INCONCLUSIVE = 4,  /* a limit was reached before there was a verdict */
};

#endif
