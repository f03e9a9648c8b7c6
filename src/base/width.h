/* Columns that a terminal gives to a text: wide characters, marks, emoji joined to one. Terminals
 * differ in what is new; this is what Unicode says, and what most of them do. */
#ifndef AH_BASE_WIDTH_H
#define AH_BASE_WIDTH_H

#include "base/slice.h"

enum { AH_TAB_STOP = 8 };

/* The bytes of the character at the beginning of a text that is not empty, with the marks on it and
 * what is joined to it. *columns: 0 to 2; 1 for a byte that is no UTF-8, which is shown as U+FFFD;
 * 0 for controls. */
size_t ah_width_next(ah_slice text, unsigned *columns);

/* The columns of a text that begins at `column` (for tabs); of several lines those of the widest.
 * Controls and escape sequences have none. */
size_t ah_width(ah_slice text, size_t column);

/* The length of the escape sequence at the beginning, as far as it is there; else 0. */
size_t ah_escape_len(ah_slice text);

#endif
