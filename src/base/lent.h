/* Lent bytes. A function may use bytes that its caller lends until it calls out (into Lua, an
 * observer, a function of the program): that code may free them. A function that needs bytes after
 * such a call copies, references or pins them.
 *
 * A build with AH_LENT (make check-asan) makes ASan find each breach: lent bytes are a copy that
 * the next call out frees, pinned bytes a copy that ah_unpin frees. In all other builds this
 * costs nothing. Callers: model, io, host, lua. */
#ifndef AH_BASE_LENT_H
#define AH_BASE_LENT_H

#include "base/slice.h"

#ifdef AH_LENT

/* Returns the bytes to lend, with a NUL after them; .p NULL stays. Valid in this thread until
 * the next call out. */
ah_slice ah_lend(ah_slice bytes);
/* Called after other code has run: frees everything lent in this thread. */
void ah_calling_out(void);
/* ah_pin returns the bytes as valid until ah_unpin, whatever is called meanwhile. ah_unpin
 * checks that they are still there and unchanged. */
ah_slice ah_pin(ah_slice bytes);
void ah_unpin(ah_slice pinned, ah_slice bytes);

#else

static inline ah_slice ah_lend(ah_slice bytes)
{
    return bytes;
}
static inline ah_slice ah_pin(ah_slice bytes)
{
    return bytes;
}
#define ah_calling_out()        ((void)0)
#define ah_unpin(pinned, bytes) ((void)(pinned), (void)(bytes))

#endif

/* Lends a text of the program, or NULL. */
static inline const char *ah_lend_text(const char *text)
{
    return text ? ah_lend(ah_slice_of(text)).p : NULL;
}

#endif
