/* What one tool call has staged: nothing of it is seen by others until the call
 * succeeds. Success commits it, in request order; failure drops it. */
#ifndef AH_PROMPT_OVERLAY_H
#define AH_PROMPT_OVERLAY_H

#include "model/transcript.h"

typedef struct ah_overlay {
    const ah_mem *mem;
    ah_entry *staged;
    size_t n, cap;
} ah_overlay;

void ah_overlay_init(ah_overlay *o, const ah_mem *mem);
/* Takes json (also on failure). */
ah_status ah_overlay_stage(ah_overlay *o, ah_entry_kind kind, ah_text *json, ah_err *err);
/* Hands everything to the transcript's next commit, or nothing (AH_NOMEM). Empties it. */
ah_status ah_overlay_commit(ah_overlay *o, ah_transcript *t, ah_err *err);
void ah_overlay_drop(ah_overlay *o);

#endif
