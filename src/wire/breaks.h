/* Decides if a request begins with the segments of the one before, so that the provider's cache
 * serves it. The earlier request is known by hashes, taken when a head is made and when a body is
 * lowered anew; a turn that only adds entries costs nothing here. Entries of the transcript give
 * the reason for a break, but never decide that there is one: a later entry may undo an earlier
 * one, and much of a head is never cached. Owns no memory; used by lower.c only.
 * Callers: its module. */
#ifndef AH_WIRE_BREAKS_H
#define AH_WIRE_BREAKS_H

#include "wire/lower.h"

/* Entries that may be the reason, noted as they are taken in: of each kind the first that the last
 * request did not have; of restarts the last. */
typedef struct ah_break_causes {
    struct {
        bool is;
        size_t entry;
    } by[AH_BREAK_FALLBACK + 1];
} ah_break_causes;

void ah_break_cause(const ah_wire *w, ah_break_causes *c, ah_break why, size_t entry);

/* Compares the finished request with the last one, and remembers it instead. Returns why it does
 * not begin with the last one (NONE if it does, or if it is the first), and the entry that caused
 * it. */
ah_break ah_break_judge(ah_wire *w, const ah_break_causes *c, size_t *entry);

/* The body is about to be lowered anew: remembers what was sent of it. */
void ah_break_forget_body(ah_wire *w);

#endif
