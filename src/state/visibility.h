/* Visibility overrides: which sections a session shows in full or as a summary, whatever
 * the sections say themselves (seed 000, Session State Changes). They are the slice
 * `visibility_overrides` of {path, visibility}, one a path, and are written by the event
 * `set_visibility_override`, which has the same members: by read_section, and by scripts.
 *
 * The slice says what is open. The transcript says what of it the model was told by a tool
 * result, and not by the system text (run/disclose.h). This file knows no prompt: a path that
 * leads to no section of one has no effect on it. */
#ifndef AH_STATE_VISIBILITY_H
#define AH_STATE_VISIBILITY_H

#include "base/index.h"
#include "state/session.h"

typedef enum ah_visibility { AH_FULL, AH_SUMMARY } ah_visibility;

#define AH_VISIBILITY_SLICE "visibility_overrides"
#define AH_VISIBILITY_EVENT "set_visibility_override"

/* Makes slice and event known to the session and those of its family. May be called again. */
ah_status ah_visibility_register(ah_session *s, ah_err *err);
/* Dispatches the event in the overlay (NULL: at once). The session is registered. */
ah_status ah_visibility_set(ah_session *s, ah_overlay *o, ah_slice path, ah_visibility v,
                            ah_err *err);

typedef struct ah_override {
    ah_slice path;
    ah_visibility visibility;
} ah_override;

/* The overrides of one moment. */
typedef struct ah_overrides {
    const ah_mem *mem;
    ah_cell *head; /* the slice as it was read; a reference, paths point into it. NULL: empty */
    ah_override *item;
    size_t n, cap;
    ah_index index;
} ah_overrides;

void ah_overrides_init(ah_overrides *v, const ah_mem *mem); /* it must not move afterwards */
void ah_overrides_clear(ah_overrides *v);
/* Reads the slice as it is seen from the overlay; costs nothing where it has not changed. */
ah_status ah_overrides_read(ah_overrides *v, const ah_session *s, const ah_overlay *o, ah_err *err);
/* Another one, which replaces what there is for the path; the path is borrowed. */
ah_status ah_overrides_put(ah_overrides *v, ah_slice path, ah_visibility visibility, ah_err *err);
/* For an ah_override_source: ud is an ah_overrides. */
bool ah_overrides_find(void *ud, ah_slice path, ah_visibility *out);

#endif
