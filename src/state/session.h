/* A session: what an agent knows beside its conversation, as typed slices (seed 002, Session
 * Integration). A slice is a list of values of one type, as canonical JSON; it changes when
 * an *event*, a value of some type, is dispatched to the reducers registered for it.
 *
 * Tool calls change a session in their overlay (state/overlay.h): the session's layer there
 * keeps the heads of the slices it touched and the changes it made. Commit swaps the heads
 * where nothing else has changed them meanwhile; else the changes are made again on what is
 * there now, through the reducers, so that siblings never erase each other. What a call does
 * not touch costs it nothing, however large it is.
 *
 * The policy `log` is for what must be known though the call failed: such slices are outside
 * all overlays; what goes to them is there at once and stays.
 *
 * A child session reads through to its parent and writes its own: a slice is the parent's
 * until the child first changes it. They share types and reducers. */
#ifndef AH_STATE_SESSION_H
#define AH_STATE_SESSION_H

#include "model/tool.h" /* ah_value */
#include "schema/schema.h"
#include "state/list.h"
#include "state/overlay.h"

typedef struct ah_session ah_session;

/* In all that follows: `id` is a type of the session, `o` the overlay in which to read or
 * write (NULL: none, at once), `value` canonical JSON that the type's schema accepts. */

enum { AH_MAX_TYPES = 1024 };

ah_session *ah_session_new(const ah_mem *mem, ah_session *parent); /* parent: referenced, or NULL */
/* Makes a copy with the same types, reducers and parent, and with the slices of s as they are now,
 * without staged changes of overlays; later changes of one do not show in the other. NULL: out of
 * memory. */
ah_session *ah_session_copy(const ah_session *s);
ah_session *ah_session_ref(ah_session *s);
void ah_session_unref(ah_session *s); /* NULL is fine */
/* The topmost parent, or s. Types and reducers are its. */
ah_session *ah_session_root(ah_session *s);

/* -- types and reducers ------------------------------------------------------------- */

typedef struct ah_session_event {
    ah_slice type;
    ah_text *value; /* NULL: a success without a value */
} ah_session_event;

/* Changes `list`, which is the slice as it was, into what it is to be. The old list is not
 * affected, and forgotten only if AH_OK is returned by this and all other reducers of the
 * event. Must be pure: on a conflict it is called again on another list. */
typedef ah_status (*ah_reduce_fn)(void *ud, ah_slice slice, const ah_session_event *e,
                                  ah_list *list, ah_err *err);

typedef enum ah_policy { AH_POLICY_STATE, AH_POLICY_LOG } ah_policy;
typedef enum ah_keep { AH_KEEP_APPEND, AH_KEEP_LATEST, AH_KEEP_BY_KEY } ah_keep;

/* Options of a slice; `keep` is for values of its own type. */
typedef struct ah_slice_options {
    ah_policy policy;
    ah_keep keep;
    ah_slice key; /* AH_KEEP_BY_KEY: a value replaces the one with the same member of this name */
} ah_slice_options;

/* Makes a type known, or finds it. schema NULL: any JSON. AH_USAGE where the name is taken
 * by a type with another schema. */
ah_status ah_session_type(ah_session *s, ah_slice name, ah_schema *schema, int *id, ah_err *err);
/* Gives the type a slice. options NULL: the defaults for a new one, no change of an old one.
 * AH_USAGE where the policy would change. */
ah_status ah_session_keep(ah_session *s, int id, const ah_slice_options *options, ah_err *err);
/* Sets the reducer of a slice for a type of event; it replaces an old one. ud is taken on
 * success. */
ah_status ah_session_reduce(ah_session *s, int slice, int event, ah_reduce_fn fn, ah_value ud,
                            ah_err *err);

/* Sets the ready-made reducer of AH_KEEP_BY_KEY. */
ah_status ah_session_reduce_by_key(ah_session *s, int slice, int event, ah_slice key, ah_err *err);

int ah_session_find(const ah_session *s, ah_slice name); /* -1: no such type */
int ah_session_types(const ah_session *s);               /* ids are 0 to this - 1 */
ah_slice ah_session_name(const ah_session *s, int id);
bool ah_session_has_slice(const ah_session *s, int id);

/* Canonical JSON as a value of the type, its defaults filled in. AH_TOOL_VALIDATION says
 * what is wrong with it. */
ah_status ah_session_check(const ah_session *s, int id, ah_slice json, ah_text **out, ah_err *err);

/* -- reading and writing -------------------------------------------------------------- */

/* Borrowed, until something is written; NULL: empty. */
ah_cell *ah_session_head(const ah_session *s, const ah_overlay *o, int slice);

/* Each changes everything it is to change, or nothing. The error is that of a reducer,
 * AH_NOMEM, or AH_USAGE where the call of the overlay is over. */
ah_status ah_session_dispatch(ah_session *s, ah_overlay *o, int id, ah_text *value, ah_err *err);
ah_status ah_session_append(ah_session *s, ah_overlay *o, int slice, ah_text *value, ah_err *err);
ah_status ah_session_set(ah_session *s, ah_overlay *o, int slice, ah_cell *head, ah_err *err);

/* A successful tool's value: dispatched if its type is known, else nothing. json.p NULL: the
 * success had none. */
ah_status ah_session_take(ah_session *s, ah_overlay *o, ah_slice type, ah_slice json, ah_err *err);

/* -- snapshots (session_text.c) ---------------------------------------------------------- */

/* {"agenthost_session":1,"slices":{"Name":[...]}}: the slices that hold anything, by name. With
 * those of another snapshot (.p NULL: none) that this session does not have, behind them. */
void ah_session_print(const ah_session *s, const ah_overlay *o, ah_slice kept, ah_buf *out);
/* Sets the slices to those of a snapshot: those it does not name are empty afterwards, but
 * logs that hold anything stay as they are. AH_USAGE where the text is no snapshot, names a
 * slice that is not there (`known`: which is left out then), or holds a value that its type
 * refuses. */
ah_status ah_session_restore(ah_session *s, ah_overlay *o, ah_slice text, bool known, ah_err *err);

/* For session_text.c: sets several at once. Takes the heads, also on failure. */
typedef struct ah_edit {
    int slice;
    ah_cell *head;
} ah_edit;
ah_status ah_session_set_all(ah_session *s, ah_overlay *o, ah_edit *edit, size_t n, ah_err *err);
bool ah_session_is_log(const ah_session *s, int id);
const ah_mem *ah_session_mem(const ah_session *s);

#endif
