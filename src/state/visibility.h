/* Visibility overrides: which sections a session shows in full or as a summary, in place of the
 * sections' own visibility (seed 000, Session State Changes). They are the slice
 * `visibility_overrides` of {path, visibility}, one per path. The event `set_visibility_override`,
 * with the same members, writes them: from read_section and from scripts.
 *
 * The slice states what is open. The transcript states which part of it the model received in a
 * tool result instead of the system text (run/disclose.h). This file knows no prompt: a path
 * without a section has no effect. Callers: prompt, run, lua. */
#ifndef AH_STATE_VISIBILITY_H
#define AH_STATE_VISIBILITY_H

#include "base/index.h"
#include "state/session.h"

typedef enum ah_visibility { AH_FULL, AH_SUMMARY } ah_visibility;

#define AH_VISIBILITY_SLICE "visibility_overrides"
#define AH_VISIBILITY_EVENT "set_visibility_override"

/* Adds slice and event to the session and its family. May be called again. */
ah_status ah_visibility_register(ah_session *s, ah_err *err);
/* Dispatches the event in the overlay (NULL: immediately). The session must be registered. */
ah_status ah_visibility_set(ah_session *s, ah_overlay *o, ah_slice path, ah_visibility v,
                            ah_err *err);

typedef struct ah_override {
    ah_slice path;
    ah_visibility visibility;
} ah_override;

/* The overrides at one moment. */
typedef struct ah_overrides {
    const ah_mem *mem;
    ah_cell *head; /* the slice as it was read, referenced; paths point into it. NULL: empty */
    ah_override *item;
    size_t n, cap;
    ah_index index;
} ah_overrides;

void ah_overrides_init(ah_overrides *v, const ah_mem *mem); /* v must not move afterwards */
void ah_overrides_clear(ah_overrides *v);
/* Reads the slice as the overlay sees it; an unchanged slice costs nothing. */
ah_status ah_overrides_read(ah_overrides *v, const ah_session *s, const ah_overlay *o, ah_err *err);
/* Adds an override in place of the path's earlier one; the path is borrowed. */
ah_status ah_overrides_put(ah_overrides *v, ah_slice path, ah_visibility visibility, ah_err *err);
/* For an ah_override_source: ud is an ah_overrides. */
bool ah_overrides_find(void *ud, ah_slice path, ah_visibility *out);

#endif
