/* Columns that a terminal uses for a text: wide characters, marks, joined emoji. Terminals
 * differ for new characters; this follows Unicode, as most of them do. Callers: its floor, lua. */
#ifndef AH_BASE_WIDTH_H
#define AH_BASE_WIDTH_H

#include "base/slice.h"

enum { AH_TAB_STOP = 8 };

/* Returns the bytes of the first character of a non-empty text, with its marks and joined
 * characters. *columns is 0 to 2: 0 for controls, 1 for a byte that is not UTF-8, which is shown
 * as U+FFFD. */
size_t ah_width_next(ah_slice text, unsigned *columns);

/* Returns the columns of a text that begins at `column` (for tabs); of several lines, those of
 * the widest. Controls and escape sequences have none. */
size_t ah_width(ah_slice text, size_t column);

/* Returns the length of the escape sequence at the beginning, as far as it is present; otherwise
 * 0. */
size_t ah_escape_len(ah_slice text);

#endif
