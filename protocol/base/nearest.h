/* nearest.h - what somebody who mistyped a word may have meant. */
#ifndef DW_BASE_NEAREST_H
#define DW_BASE_NEAREST_H

/* The known word that is nearest to `text`, or NULL if none is near; `words` ends with NULL. */
const char *dw_nearest(const char *text, const char *const *words);

#endif
