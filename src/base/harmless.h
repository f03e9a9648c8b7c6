/* Makes text from outside harmless for a terminal: no part of it is a command. Callers: lua. */
#ifndef AH_BASE_HARMLESS_H
#define AH_BASE_HARMLESS_H

#include "base/buf.h"

enum { AH_CONTROL_CODE = 8 };

/* Writes a control character of n bytes (ah_control_len) as its number, "\x1b" or "\u202e".
 * Returns its length. */
size_t ah_control_code(const char *p, size_t n, char out[AH_CONTROL_CODE]);

/* Appends a text with controls as numbers, and bytes that are not UTF-8 as U+FFFD. Tabs stay. If
 * `lines` is set, line ends stay, and "\r\n" is one. */
void ah_harmless(ah_slice text, bool lines, ah_buf *out);

/* Appends it as one line of at most `most` characters, of which "..." are the last if more follow.
 * White space of any length is one blank. */
void ah_harmless_line(ah_slice text, size_t most, ah_buf *out);

#endif
