/* The staged changes of one tool call, invisible to others until the call succeeds. Success commits
 * them, in request order; failure drops them.
 *
 * An overlay holds entries for the transcript and *participants*: everything else that can be
 * changed and undone (a session's slices, a file system, an object with an undo copy). A
 * participant keeps the changes of this call beside its object, reads through them, and joins when
 * the call first writes. Callers: its floor, lua. */
#ifndef AH_STATE_OVERLAY_H
#define AH_STATE_OVERLAY_H

#include "model/transcript.h"
#include "state/change_list.h"

/* Overlays nest: a run that a handler started has that call's overlay below its own calls'
 * overlays, which commit into it. This file knows neither runs nor the content of participants. */

typedef struct ah_overlay ah_overlay;
typedef struct ah_participant ah_participant;

/* An object whose changes can be written down: a session, a file system. */
typedef struct ah_staged_name {
    const char *list; /* AH_STAGED_SESSION or AH_STAGED_FILES */
    ah_slice name;
    void *object; /* the session, or the file system */
} ah_staged_name;

/* The names of objects in records, by which a later process finds them. Borrowed. */
typedef struct ah_staged_names {
    const ah_staged_name *item;
    size_t n;
    const void *session; /* the conversation's own, which needs no name; NULL: none */
} ah_staged_names;

/* The lists of `staged` (docs/reference/journal.md) that participants write. */
#define AH_STAGED_SESSION  "session"
#define AH_STAGED_FILES    "files"
#define AH_STAGED_ENTITIES "entities"

/* Commit calls `prepare` of all participants in order of joining, then `finish`, then `commit`,
 * then `committed`; finish and committed only where present. If a prepare or a finish fails,
 * memory is out, or the call fails, it calls `drop` of all instead, in reverse order. So the
 * last call for each participant is exactly one of commit (or committed, if present) and drop,
 * and that call releases it. `below` is the overlay that receives the changes; NULL: the world.
 * Participants with `again` can be prepared earlier, by ah_overlay_prepare: commit then calls
 * `again` in place of `prepare`. */
typedef struct ah_participant_vt {
    /* Everything that can fail, so that commit cannot: conflicts with changes below, memory,
     * space, and joining `below` if it is not NULL. May be NULL. After any failure drop follows,
     * prepared or not. */
    ah_status (*prepare)(ah_participant *p, ah_overlay *below, ah_err *err);
    /* Prepares again what may have lost its ground, since others may have made changes after
     * `prepare`. NULL: nothing may run between prepare and commit. */
    ah_status (*again)(ah_participant *p, ah_overlay *below, ah_err *err);
    /* True if its commit changes something outside of the process. NULL: false. */
    bool (*outside)(const ah_participant *p);
    /* Last steps that the machine may refuse after all are prepared. After a failure all are
     * dropped: only changes of participants that finished before, and changes that the error
     * names, have been made. May be NULL. */
    ah_status (*finish)(ah_participant *p, ah_overlay *below, ah_err *err);
    /* Passes the changes to `below`, or makes them final. Cannot fail, runs no script. */
    void (*commit)(ah_participant *p, ah_overlay *below);
    /* Notifies others once all are committed; may run scripts, changes no outcome. May be NULL. */
    void (*committed)(ah_participant *p, ah_overlay *below);
    /* Discards the changes. Cannot fail in any state. */
    void (*drop)(ah_participant *p);
    /* The rest is for records of calls. All may be NULL. */
    /* The list of `staged` with its changes. NULL: they cannot be written down. */
    const char *list;
    /* Appends the changes as items of that list, with commas between them; nothing if there are
     * none. Returns false if they cannot be written down, as an object has no name. Failures of
     * memory are those of `out`. */
    bool (*print)(ah_participant *p, const ah_staged_names *names, ah_buf *out);
    /* Called after `prepare`: appends { root, path, before, after } of each file of the machine
     * that is about to change, with commas between them; to `kept` what each was, likewise. */
    void (*settle)(ah_participant *p, ah_buf *out, ah_buf *kept);
    /* Appends its changes so far as data. It may be called while the call is at work. */
    void (*show)(ah_participant *p, ah_change_list *l);
    /* See ah_overlay_pin. NULL: others cannot change what its changes are based on. */
    void (*pin)(ah_participant *p);
} ah_participant_vt;

/* Intrusive: the first member of a participant's data for one overlay. */
struct ah_participant {
    const ah_participant_vt *vt;
    const void *key; /* the changed object: address of the session, the file system, ... */
    ah_overlay *in;  /* set by ah_overlay_join */
    bool prepared;   /* by ah_overlay_prepare */
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
    ah_participant *first; /* in order of joining */
    ah_anchor *below;      /* holds a reference; NULL: the world */
    ah_anchor *anchor;     /* its own, for overlays on top; NULL: none */
    bool closed;           /* committed, dropped, or about to be: accepts nothing more */
    void *owner;           /* its owner (an ah_call); for error messages */
};

/* Initializes o; it adds a reference to below. NULL: the world. */
void ah_overlay_init(ah_overlay *o, const ah_mem *mem, ah_anchor *below);

/* The next four fail with AH_USAGE if the call is over, and with AH_NOMEM. */

/* Takes json (also on failure). */
ah_status ah_overlay_stage(ah_overlay *o, ah_entry_kind kind, ah_text *json, ah_err *err);
/* Adds p, with vt and key set, to the overlay, which then owns it; on failure it stays the
 * caller's. */
ah_status ah_overlay_join(ah_overlay *o, ah_participant *p, ah_err *err);
/* Returns the participant with this key in o; if there is none, a new one of `size` bytes joins,
 * zero except for its first member. NULL: failed, with *err set. */
ah_participant *ah_overlay_part(ah_overlay *o, const ah_participant_vt *vt, const void *key,
                                size_t size, ah_err *err);
/* Returns a new reference, for an overlay on top of o. */
ah_status ah_overlay_anchor(ah_overlay *o, ah_anchor **out, ah_err *err);

/* Returns the participant with this key, or NULL, in this overlay only; ah_overlay_below leads
 * to the next one. o may be NULL (the world): NULL. */
ah_participant *ah_overlay_find(const ah_overlay *o, const void *key);
/* Returns the overlay below; NULL: the world. */
ah_overlay *ah_overlay_below(const ah_overlay *o);

/* True if the commit changes something outside of the process. */
bool ah_overlay_outside(const ah_overlay *o);
/* Prepares the participants that can be prepared early; ah_overlay_commit or ah_overlay_drop
 * follows, some time later. Nothing more can be changed in the overlay. On failure it is over. */
ah_status ah_overlay_prepare(ah_overlay *o, ah_err *err);
/* After ah_overlay_prepare: appends the list `files` of a record `settled`, and to `kept` its kept
 * part. Returns false, and appends nothing, if no file of the machine is about to change. */
bool ah_overlay_print_settled(const ah_overlay *o, ah_buf *out, ah_buf *kept);
/* Appends the members of the object `staged` (docs/reference/journal.md) with the changes so far,
 * with commas between them. If a change cannot be written down, appends nothing and returns
 * false. */
bool ah_overlay_print(const ah_overlay *o, const ah_staged_names *names, ah_buf *out);

/* The changes so far are committed as they are, or not at all: what they are based on must be
 * unchanged then, and nothing is repeated on what others have made of it. Else prepare fails with
 * AH_CONFLICT. */
void ah_overlay_pin(ah_overlay *o);

/* Appends the changes of the participants so far to the list: files, slices, entities. */
void ah_overlay_show(const ah_overlay *o, ah_change_list *l);

/* Passes the entries to the transcript's next commit and all other changes to the overlay below;
 * or, if *err is set, none of them. The overlay is over in any case. */
ah_status ah_overlay_commit(ah_overlay *o, ah_transcript *t, ah_err *err);
void ah_overlay_drop(ah_overlay *o); /* does nothing once it is over */

ah_anchor *ah_anchor_ref(ah_anchor *a); /* NULL returns NULL */
void ah_anchor_unref(ah_anchor *a);     /* NULL does nothing */

#endif
