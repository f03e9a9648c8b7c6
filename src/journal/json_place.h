/* The first place at which two JSON texts differ, as a JSON pointer (RFC 6901). Owns nothing.
 * Callers: its floor. */
#ifndef AH_JOURNAL_JSON_PLACE_H
#define AH_JOURNAL_JSON_PLACE_H

#include "base/json.h"

/* Compares two checked texts by their bytes, in their order. Returns false if they are equal. Else
 * appends the pointer of the innermost value that differs; *was and *now are the values there, .p
 * NULL: there is none. */
bool ah_json_place(ah_slice a, ah_slice b, ah_buf *pointer, ah_slice *was, ah_slice *now);

#endif
