/* flags.h - the command line of a program, read by a table.
 *
 * What is wrong is refused in one line on stderr that names the flag, the value and the mend. Every program
 * takes --help and --version besides what its table lists. A flag may be given again: the last one holds. */
#ifndef DW_BASE_FLAGS_H
#define DW_BASE_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a text must be, and the mend: "give ...". */
struct dw_text_rule {
    bool (*holds)(const char *text);
    const char *mend;
};
extern const struct dw_text_rule dw_text_any;
extern const struct dw_text_rule dw_text_run_id;
extern const struct dw_text_rule dw_text_address; /* HOST:PORT or [V6]:PORT; hosts are looked up later */
extern const struct dw_text_rule dw_text_listen;  /* the same; port 0 is any free one */

/* One flag. Exactly one of the pointers in the middle is set: it says what the flag takes, and a good value
 * is stored there. Values that are kept as text point into argv. */
struct dw_flag {
    const char *name;   /* without the dashes; NULL ends the table */
    const char *needed; /* what to give if it is missing; NULL: it may be left out */

    const char **text; /* obeys `rule`; without one, isn't empty and has no control characters */
    uint32_t *u32;     /* a whole number from `low` to `high` */
    uint64_t *u64;
    double *decimal;         /* a decimal number from `least` to `most` */
    bool *on_off;            /* "on" or "off" */
    bool *present;           /* takes no value; true if given */
    unsigned *word;          /* one of `words`: its number from 0, so an enum may stand here */
    uint32_t *list;          /* up to list_size numbers from `low` to `high`, as in 1,4,16 */
    bool (*take)(void *user, /* anything else: stores it, or writes the mend and returns false */
                 const char *value, char *mend, size_t mend_size);

    const struct dw_text_rule *rule;
    uint64_t low;
    uint64_t high;
    double least;
    double most;
    const char *words; /* as in "closed|open" */
    size_t list_size;
    size_t *list_count;
    void *user;

    bool given; /* set when it is read */
};

enum { DW_FLAGS_GO_ON = -1, DW_FLAGS_MAX = 64 };

/* Reads the command line of `program` into what `flags` point to. Returns DW_FLAGS_GO_ON, or the exit code
 * of a program that is to end now: help or version was printed, or a refusal. Words that belong to no flag
 * may stand anywhere if `first_word` isn't NULL: argv is permuted, and they begin at *first_word; else they
 * are refused. Not thread-safe, as getopt_long isn't. */
int dw_flags_read(const char *program, const char *usage, struct dw_flag *flags, int argc, char **argv,
                  int *first_word);

/* The flag of that name, which must be in the table, was on the command line. */
bool dw_flags_given(const struct dw_flag *flags, const char *name);

/* Prints "PROGRAM: ...; see PROGRAM --help", without control characters, to stderr; returns
 * DW_EXIT_ASKED_WRONGLY. */
__attribute__((format(printf, 2, 3))) int dw_flags_refuse(const char *program, const char *format, ...);

/* Reads decimal digits up to *rest; false if there are none, or the number isn't in [low, high]. A NULL rest
 * means that the text must end there. */
bool dw_read_whole(const char *text, uint64_t low, uint64_t high, uint64_t *number, const char **rest);

/* All of the text is a finite decimal number in [least, most], as in -1.5e3. */
bool dw_read_decimal(const char *text, double least, double most, double *number);

#endif
