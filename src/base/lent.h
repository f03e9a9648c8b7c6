/* Bytes that are lent. Bytes are lent downwards only: who is given them may use them until it
 * calls out (into Lua, an observer, a function of the program), which may do anything, and most of
 * all let go of them. Whoever calls out owns what it uses afterwards: it copies, references or
 * pins.
 *
 * A build with AH_LENT (make check-asan) makes the breach of it a fault that ASan finds: what is
 * lent is a copy of its own, which is gone with the next call out; what is pinned is one, too, gone
 * with its end. In all other builds nothing of this is there, and nothing is paid for it. */
#ifndef AH_BASE_LENT_H
#define AH_BASE_LENT_H

#include "base/slice.h"

#ifdef AH_LENT

/* The bytes as they are lent, with a NUL behind them; .p NULL stays. Good in this thread until the
 * next call out. */
ah_slice ah_lend(ah_slice bytes);
/* Somebody else's code has run: all that was lent in this thread is gone. */
void ah_calling_out(void);
/* The bytes for as long as the caller says, whatever is called meanwhile; and their end, where what
 * was pinned must still be there and the same. */
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

/* A text that a program gives, or NULL. */
static inline const char *ah_lend_text(const char *text)
{
    return text ? ah_lend(ah_slice_of(text)).p : NULL;
}

#endif
