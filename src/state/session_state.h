/* The inside of a session, for session.c (reading and writing), session_types.c (types and
 * reducers) and session_record.c (changes as text). Callers: its floor. */
#ifndef AH_STATE_SESSION_STATE_H
#define AH_STATE_SESSION_STATE_H

#include "state/session.h"

/* A reducer, listed under its type of event. */
typedef struct rule {
    int slice;
    ah_reduce_fn fn;
    ah_value ud;
} rule;

typedef struct kind {
    ah_text *name;
    ah_schema *schema;
    bool slice;
    ah_policy policy;
    rule *rule; /* for events of this type */
    size_t n, cap;
} kind;

/* Shared by a session and its children. */
typedef struct catalog {
    const ah_mem *mem;
    size_t refs;
    kind *kind;
    size_t n, cap;
} catalog;

/* A slice that a layer has changed. */
typedef struct touched {
    ah_session *session; /* holds a reference, except in a session's own layer */
    int slice;
    ah_cell *base; /* its head outside the overlay; unused in a session's own layer */
    ah_cell *head;
} touched;

/* A change in an overlay, recorded so that it can be repeated after a conflict. */
typedef struct change {
    struct change *next;
    ah_session *session; /* holds a reference */
    enum { CHANGE_EVENT, CHANGE_APPEND, CHANGE_SET } what;
    int id;         /* EVENT: a type; otherwise a slice */
    ah_text *value; /* EVENT (NULL: none), APPEND */
    ah_cell *head;  /* SET */
} change;

/* The changes of a session, its parents and its children in one overlay. They are together
 * because a child reads through, so that the order of changes matters. Or a session's own state. */
typedef struct layer {
    ah_participant part; /* first member, known to overlays; key: the catalog */
    const ah_mem *mem;
    touched *touched;
    size_t n, cap;
    change *first, **last; /* only in an overlay */
    bool pinned;           /* the changes are not repeated on slices that others have changed */
} layer;

struct ah_session {
    const ah_mem *mem;
    size_t refs;
    ah_session *parent;
    catalog *types;
    layer own; /* the state itself, not a participant */
    bool claimed;
};

/* The slot `print` of a layer in an overlay (session_record.c). */
bool ah_session_print_layer(ah_participant *p, const ah_staged_names *names, ah_buf *out);
/* Like ah_session_dispatch, without the logs: they have the event already. */
ah_status ah_session_dispatch_again(ah_session *s, ah_overlay *o, int id, ah_text *value,
                                    ah_err *err);

catalog *ah_catalog_new(const ah_mem *mem);
void ah_catalog_unref(catalog *c);

#endif
