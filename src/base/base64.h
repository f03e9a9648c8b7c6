/* Base64 (RFC 4648): encodes bytes as text for JSON (section 4) or addresses (section 5,
 * base64url), and decodes them. Decoding is strict: only the selected alphabet, padding for
 * base64 and none for base64url, no line breaks, no extra bits. It does not handle streams.
 * Callers: model, state, lua. */
#ifndef AH_BASE_BASE64_H
#define AH_BASE_BASE64_H

#include "base/buf.h"

/* Appends the bytes as text. */
void ah_base64_put(ah_buf *out, ah_slice bytes);
void ah_base64url_put(ah_buf *out, ah_slice bytes);
/* Returns why the text is not a valid encoding (static), and sets *at to the offset of the fault
 * from 0; NULL: it is valid, as "" is. */
const char *ah_base64_fault(ah_slice text, size_t *at);
const char *ah_base64url_fault(ah_slice text, size_t *at);
bool ah_base64_valid(ah_slice text); /* true if there is no fault */
/* Returns the number of bytes that a valid text of either alphabet encodes. */
size_t ah_base64_size(ah_slice text);
/* Appends the bytes that a valid text of either alphabet encodes. */
void ah_base64_take(ah_slice text, ah_buf *out);

#endif
