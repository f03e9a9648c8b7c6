/* Base64 (RFC 4648): bytes as text that JSON (section 4) or an address (section 5, base64url) can
 * hold, and back. Strict: the alphabet that is asked for; padded, base64url not at all; no line
 * breaks, no bits beside the bytes. Streams are not for here. */
#ifndef AH_BASE_BASE64_H
#define AH_BASE_BASE64_H

#include "base/buf.h"

/* Appends the bytes as text. */
void ah_base64_put(ah_buf *out, ah_slice bytes);
void ah_base64url_put(ah_buf *out, ah_slice bytes);
/* Says why the text is not what was put for some bytes ("" is, for none), and from which byte on
 * (from 0); NULL: it is. */
const char *ah_base64_fault(ah_slice text, size_t *at);
const char *ah_base64url_fault(ah_slice text, size_t *at);
bool ah_base64_valid(ah_slice text); /* true if there is no fault */
/* Returns the number of bytes that a valid text of either alphabet stands for. */
size_t ah_base64_size(ah_slice text);
/* Appends what a valid text of either alphabet stands for. */
void ah_base64_take(ah_slice text, ah_buf *out);

#endif
