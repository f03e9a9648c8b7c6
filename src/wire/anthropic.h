/* Anthropic Messages, as far as claude.c speaks it, too: the reader, and an image as a block. The
 * provider itself is in wire/providers.c. */
#ifndef AH_WIRE_ANTHROPIC_H
#define AH_WIRE_ANTHROPIC_H

#include "model/image.h"
#include "wire/adapter.h"

/* The slot `open` of a vtable; the others are in reading.h. */
ah_status ah_anthropic_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);
/* An image as a content block. */
void ah_put_anthropic_image(ah_buf *b, const ah_image *image);

#endif
