/* The staged changes of one tool call: others see none of them until the call
 * succeeds. Success commits them, in request order; failure drops them.
 *
 * It holds entries for the transcript and *participants*: whatever else can be changed
 * and taken back (a session's slices, a file system, an object with an undo copy). A
 * participant keeps the changes of this call beside what it belongs to, reads through
 * them, and joins when the call first writes.
 *
 * Overlays nest: a run that was started in a handler has that call's overlay below its
 * own calls' overlays, and they commit into it. This file knows neither runs nor what
 * participants keep. */
#ifndef AH_STATE_OVERLAY_H
#define AH_STATE_OVERLAY_H

#include "model/transcript.h"

typedef struct ah_overlay ah_overlay;
typedef struct ah_participant ah_participant;

/* Commit calls `prepare` of all participants in the order in which they joined, then `finish`
 * of those that have one, then `commit` of all, then `committed` of those that have one. If one
 * prepare or finish fails, or there is no memory, or the call fails, `drop` is called instead, of
 * all, the last one that joined first. So for each participant exactly one of commit (or committed,
 * where there is one) and drop is the last call, and gives it back. `below` is the overlay that
 * gets the changes; NULL: the world. */
typedef struct ah_participant_vt {
    /* Everything that can fail, so that commit cannot: conflicts with what was changed
     * below meanwhile, memory, space, and joining `below` where that is no NULL. May be
     * NULL. After a failure drop follows, whether it was prepared or not. */
    ah_status (*prepare)(ah_participant *p, ah_overlay *below, ah_err *err);
    /* Last steps that the machine may still refuse once all is prepared. After a failure drop of
     * all follows: only changes of those that finished before, and changes that the error itself
     * names, have been made. May be NULL. */
    ah_status (*finish)(ah_participant *p, ah_overlay *below, ah_err *err);
    /* Hands the changes to `below`, or makes them true. Cannot fail, runs no script. */
    void (*commit)(ah_participant *p, ah_overlay *below);
    /* Notifies others, once all is committed; may run scripts, changes no outcome. May be NULL. */
    void (*committed)(ah_participant *p, ah_overlay *below);
    /* Forgets the changes. Cannot fail, whatever had been done. */
    void (*drop)(ah_participant *p);
} ah_participant_vt;

/* Intrusive: the first member of what a participant keeps for one overlay. */
struct ah_participant {
    const ah_participant_vt *vt;
    const void *key; /* the changed object: the address of the session, the file system, ... */
    ah_overlay *in;  /* set by ah_overlay_join */
    ah_participant *next;
};

/* A counted reference to an overlay that may be gone. */
typedef struct ah_anchor {
    const ah_mem *mem;
    size_t refs;
    ah_overlay *overlay; /* NULL: committed or dropped */
} ah_anchor;

struct ah_overlay {
    const ah_mem *mem;
    ah_entry *staged;
    size_t n, cap;
    ah_participant *first; /* in the order in which they joined */
    ah_anchor *below;      /* a reference; NULL: the world */
    ah_anchor *anchor;     /* its own, for overlays on top of it; NULL: there are none */
    bool closed;           /* committed, dropped, or about to be: takes nothing more */
    void *owner;           /* its owner (an ah_call); for error messages */
};

/* below: referenced; NULL: the world. */
void ah_overlay_init(ah_overlay *o, const ah_mem *mem, ah_anchor *below);

/* The next four fail with AH_USAGE where the call is over, and with AH_NOMEM. */

/* Takes json (also on failure). */
ah_status ah_overlay_stage(ah_overlay *o, ah_entry_kind kind, ah_text *json, ah_err *err);
/* p, with vt and key set, is the overlay's from now on; on failure it stays the caller's. */
ah_status ah_overlay_join(ah_overlay *o, ah_participant *p, ah_err *err);
/* The participant of this key in o; where there is none, a new one of `size` bytes joins, zero but
 * for its first member. NULL: *err says why. */
ah_participant *ah_overlay_part(ah_overlay *o, const ah_participant_vt *vt, const void *key,
                                size_t size, ah_err *err);
/* A new reference, for what is to have o below it. */
ah_status ah_overlay_anchor(ah_overlay *o, ah_anchor **out, ah_err *err);

/* The participant of this key, or NULL. Looks into this overlay only: to read through,
 * go on with ah_overlay_below. o may be NULL (the world): NULL. */
ah_participant *ah_overlay_find(const ah_overlay *o, const void *key);
/* The overlay below, or NULL: the world. */
ah_overlay *ah_overlay_below(const ah_overlay *o);

/* Hands the entries to the transcript's next commit and everything else to what is below;
 * or nothing of it, when err says why. The overlay is over either way. */
ah_status ah_overlay_commit(ah_overlay *o, ah_transcript *t, ah_err *err);
void ah_overlay_drop(ah_overlay *o); /* harmless once it is over */

ah_anchor *ah_anchor_ref(ah_anchor *a); /* NULL gives NULL */
void ah_anchor_unref(ah_anchor *a);     /* NULL is fine */

#endif
