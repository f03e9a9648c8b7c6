/* Differences of two texts by lines, as a unified diff with three lines of context. Owns nothing.
 * Callers: state. */
#ifndef AH_BASE_DIFF_H
#define AH_BASE_DIFF_H

#include "base/buf.h"

/* Appends the hunks from `before` to `after`; nothing if they are equal. The diff is a shortest one
 * up to 1,000 changed lines, and takes a bounded time beyond: everything between the first and the
 * last difference is then replaced as a whole. Stops after a whole line when the hunks would be
 * longer than `most` bytes, and returns true. Without memory `out` fails. */
bool ah_diff(const ah_mem *mem, ah_slice before, ah_slice after, size_t most, ah_buf *out);

#endif
