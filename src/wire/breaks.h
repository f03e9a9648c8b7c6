/* Finds out if a request begins with the segments of the one before, so that a provider's cache
 * serves it. The request before is known by hashes, taken when a head is made and when a body is
 * lowered anew: a turn that only adds entries costs nothing here. Entries of the transcript say the
 * reason, never that there is a break: what one of them changes another may put back before
 * anything is sent, and much of it stands where no cache reaches. For lower.c alone. */
#ifndef AH_WIRE_BREAKS_H
#define AH_WIRE_BREAKS_H

#include "wire/lower.h"

/* Entries that may be the reason, noted while they are taken in: the first of a kind that the last
 * request did not hold, of restarts the last. */
typedef struct ah_break_causes {
    struct {
        bool is;
        size_t entry;
    } by[AH_BREAK_FALLBACK + 1];
} ah_break_causes;

void ah_break_cause(const ah_wire *w, ah_break_causes *c, ah_break why, size_t entry);

/* The request is whole. Says why it does not begin with the last one (none where it does, and where
 * there was none), by which entry, and remembers it in place of that. */
ah_break ah_break_judge(ah_wire *w, const ah_break_causes *c, size_t *entry);

/* The body goes, to be lowered anew: what was sent of it is remembered first. */
void ah_break_forget_body(ah_wire *w);

#endif
