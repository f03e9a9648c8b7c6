/* Texts of others as a terminal may be given them: nothing in it is a command. */
#ifndef AH_BASE_HARMLESS_H
#define AH_BASE_HARMLESS_H

#include "base/buf.h"

enum { AH_CONTROL_CODE = 8 };

/* A control character of n bytes (ah_control_len) as its number, "\x1b" or "\u202e"; its length. */
size_t ah_control_code(const char *p, size_t n, char out[AH_CONTROL_CODE]);

/* Appends a text with controls as their numbers and bytes that are no UTF-8 as U+FFFD. Tabs stay;
 * line ends do where `lines`, and "\r\n" is one. */
void ah_harmless(ah_slice text, bool lines, ah_buf *out);

#endif
