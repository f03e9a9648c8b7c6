/* Base64 (RFC 4648, section 4): bytes as text that JSON can hold, and back. Strict: the
 * standard alphabet, padded, no line breaks, no bits beside the bytes. The URL alphabet and
 * streams are not for here. */
#ifndef AH_BASE_BASE64_H
#define AH_BASE_BASE64_H

#include "base/buf.h"

/* Appends the bytes as text. */
void ah_base64_put(ah_buf *out, ah_slice bytes);
/* Is the text what ah_base64_put gives for some bytes? "" is, for none. */
bool ah_base64_valid(ah_slice text);
/* How many bytes a valid text stands for. */
size_t ah_base64_size(ah_slice text);
/* Appends what a valid text stands for. */
void ah_base64_take(ah_slice text, ah_buf *out);

#endif
