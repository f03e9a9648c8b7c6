/* Makes text from outside harmless for a terminal: no part of it is a command. Callers: its floor,
 * lua. */
#ifndef AH_BASE_HARMLESS_H
#define AH_BASE_HARMLESS_H

#include "base/buf.h"

enum { AH_CONTROL_CODE = 12 };

/* Returns the length of the character at the start if a terminal would obey it (ah_control_len) or
 * shows nothing for it, as for U+200B and the tags from U+E0000; else 0. What joins or varies other
 * characters (U+200C, U+200D, U+FE0F) is shown with them. */
size_t ah_hidden_len(ah_slice text);

/* Writes a hidden character of n bytes as its number: "\x1b", "\u202e" or "\u{e0041}". Returns the
 * length. */
size_t ah_control_code(const char *p, size_t n, char out[AH_CONTROL_CODE]);

/* Appends a text with hidden characters as numbers, and bytes that are not UTF-8 as U+FFFD. Tabs
 * stay. If `lines` is set, line ends stay, and "\r\n" is one. */
void ah_harmless(ah_slice text, bool lines, ah_buf *out);

/* Appends it as one line of at most `most` characters, of which "..." are the last if more follow.
 * White space of any length is one blank. */
void ah_harmless_line(ah_slice text, size_t most, ah_buf *out);

#endif
