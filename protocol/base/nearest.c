#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

/* Words that take more changes than this are not near. */
enum { LONGEST_WORD = 32, MOST_CHANGES = 3 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, row by row. */
static size_t distance(const char *a, const char *b)
{
    size_t row[LONGEST_WORD + 1];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = smaller(change, smaller(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[width];
}

const char *dw_nearest(const char *text, const char *const *words)
{
    const char *nearest = NULL;
    size_t best = MOST_CHANGES + 1;
    for (; *words != NULL; words++) {
        if (strlen(*words) <= LONGEST_WORD) {
            size_t found = distance(text, *words);
            if (found < best && found < strlen(*words)) {
                best = found;
                nearest = *words;
            }
        }
    }
    return nearest;
}
