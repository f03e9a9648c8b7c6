/* A session: an agent's data beside its conversation, in typed slices (seed 002, Session
 * Integration). A slice is a list of values of one type, as canonical JSON. It changes when an
 * *event*, a value of some type, is dispatched to the reducers of that type. A session is
 * reference-counted. Callers: its floor, run. */
#ifndef AH_STATE_SESSION_H
#define AH_STATE_SESSION_H

#include "model/tool.h" /* ah_value */
#include "schema/schema.h"
#include "state/list.h"
#include "state/overlay.h"

/* Tool calls change a session in their overlay (state/overlay.h): the session's layer there keeps
 * the heads of the touched slices and the changes. Commit swaps heads that are unchanged below;
 * otherwise it repeats the changes through the reducers on the present slices, so that sibling
 * calls never overwrite each other. Untouched slices cost nothing, however large.
 *
 * The policy `log` is for data that must survive a failed call: such slices are outside all
 * overlays, and changes of them are immediate and stay.
 *
 * A child session reads through to its parent and writes its own: a slice is the parent's until
 * the child first changes it. They share types and reducers. */

typedef struct ah_session ah_session;

/* Below, `id` is a type of the session, `o` the overlay in which to read or write (NULL: none,
 * immediately), `value` canonical JSON that the type's schema accepts. */

enum { AH_MAX_TYPES = 1024 };

/* parent: adds a reference; may be NULL */
ah_session *ah_session_new(const ah_mem *mem, ah_session *parent);
/* Makes a copy with the same types, reducers and parent, and with the present slices of s,
 * without staged changes of overlays. Later changes are independent. NULL: out of memory. */
ah_session *ah_session_copy(const ah_session *s);
ah_session *ah_session_ref(ah_session *s);
void ah_session_unref(ah_session *s); /* NULL does nothing */
/* Returns the topmost parent, or s itself. It owns the types and reducers. */
ah_session *ah_session_root(ah_session *s);

/* Makes the one conversation that records the session its recorder. False: it has one. */
bool ah_session_claim(ah_session *s);
void ah_session_unclaim(ah_session *s);

/* -- types and reducers ------------------------------------------------------------- */

typedef struct ah_session_event {
    ah_slice type;
    ah_text *value; /* NULL: a success without a value */
} ah_session_event;

/* Changes `list`, the slice before the event, into the slice after it. The old list is
 * unaffected, and replaced only if this and all other reducers of the event return AH_OK. Must
 * be pure: after a conflict it is called again with another list. */
typedef ah_status (*ah_reduce_fn)(void *ud, ah_slice slice, const ah_session_event *e,
                                  ah_list *list, ah_err *err);

typedef enum ah_policy { AH_POLICY_STATE, AH_POLICY_LOG } ah_policy;
typedef enum ah_keep { AH_KEEP_APPEND, AH_KEEP_LATEST, AH_KEEP_BY_KEY } ah_keep;

/* Options of a slice; `keep` is for values of its own type. */
typedef struct ah_slice_options {
    ah_policy policy;
    ah_keep keep;
    ah_slice key; /* AH_KEEP_BY_KEY: a value replaces the one with an equal member of this name */
} ah_slice_options;

/* Adds a type, or finds it. schema NULL: any JSON. Fails with AH_USAGE if a type with another
 * schema has the name. */
ah_status ah_session_type(ah_session *s, ah_slice name, ah_schema *schema, int *id, ah_err *err);
/* Gives the type a slice. options NULL: defaults for a new slice, no change of an old one. Fails
 * with AH_USAGE if the policy would change. */
ah_status ah_session_keep(ah_session *s, int id, const ah_slice_options *options, ah_err *err);
/* Sets the reducer of a slice for a type of event, in place of an old one. ud is taken on
 * success. */
ah_status ah_session_reduce(ah_session *s, int slice, int event, ah_reduce_fn fn, ah_value ud,
                            ah_err *err);

/* Sets the built-in reducer of AH_KEEP_BY_KEY. */
ah_status ah_session_reduce_by_key(ah_session *s, int slice, int event, ah_slice key, ah_err *err);

int ah_session_find(const ah_session *s, ah_slice name); /* -1: no such type */
int ah_session_types(const ah_session *s);               /* ids are 0 to this number - 1 */
ah_slice ah_session_name(const ah_session *s, int id);
bool ah_session_has_slice(const ah_session *s, int id);

/* Returns canonical JSON as a value of the type, with its defaults. Fails with
 * AH_TOOL_VALIDATION. */
ah_status ah_session_check(const ah_session *s, int id, ah_slice json, ah_text **out, ah_err *err);

/* -- reading and writing -------------------------------------------------------------- */

/* Borrowed until the next write; NULL: empty. */
ah_cell *ah_session_head(const ah_session *s, const ah_overlay *o, int slice);

/* Each makes all of its changes, or none. Fails with the error of a reducer, AH_NOMEM, or
 * AH_USAGE if the overlay's call is over. */
ah_status ah_session_dispatch(ah_session *s, ah_overlay *o, int id, ah_text *value, ah_err *err);
ah_status ah_session_append(ah_session *s, ah_overlay *o, int slice, ah_text *value, ah_err *err);
ah_status ah_session_set(ah_session *s, ah_overlay *o, int slice, ah_cell *head, ah_err *err);

/* Dispatches a successful tool's value if its type is known. json.p NULL: there is no value. */
ah_status ah_session_take(ah_session *s, ah_overlay *o, ah_slice type, ah_slice json, ah_err *err);

/* -- snapshots (session_text.c) ---------------------------------------------------------- */

/* Appends {"agenthost_session":1,"slices":{"Name":[...]}}: the non-empty slices, by name. */
void ah_session_print(const ah_session *s, const ah_overlay *o, ah_buf *out);
/* Appends {"Name":[...]} alone, followed by the slices of a snapshot (.p NULL: none) that this
 * session does not have. */
void ah_session_print_slices(const ah_session *s, const ah_overlay *o, ah_slice kept, ah_buf *out);
enum {
    AH_RESTORE_KNOWN = 1, /* unknown slices of the snapshot are ignored */
    AH_RESTORE_LOGS = 2   /* logs that have values are set, too */
};
/* Sets the slices to those of a snapshot: others become empty, except non-empty logs, which stay
 * without AH_RESTORE_LOGS. Fails with AH_USAGE if the text is not a snapshot, names an unknown
 * slice, or contains a value that its type refuses. */
ah_status ah_session_restore(ah_session *s, ah_overlay *o, ah_slice text, unsigned how,
                             ah_err *err);

/* Appends what the overlay has changed in the session to the list; o NULL: nothing. */
void ah_session_show(const ah_session *s, const ah_overlay *o, ah_change_list *l);
/* Appends what differs from a snapshot. Fails with AH_USAGE as ah_session_restore does. */
ah_status ah_session_show_since(const ah_session *s, const ah_overlay *o, ah_slice text,
                                ah_change_list *l, ah_err *err);

/* Makes changes again that a call staged, in the call's overlay: one item of the list `session` of
 * docs/reference/journal.md (checked JSON). Logs are left out: they have the changes. AH_STORE:
 * the item is damaged; AH_CONFLICT: the session has no such type, or refuses the value. */
ah_status ah_session_restage(ah_session *s, ah_overlay *o, ah_slice item, ah_err *err);

/* For session_record.c: reads a list of values of the slice (checked JSON) to the end of `list`.
 * Fails with AH_USAGE. */
ah_status ah_session_read_values(const ah_session *s, int id, ah_slice json, ah_list *list,
                                 ah_err *err);
/* For session_record.c: appends the values of a slice as a JSON list. */
void ah_session_put_values(const ah_session *s, const ah_cell *head, ah_buf *out);
/* For session_text.c: sets several slices at once. Takes the heads, also on failure. */
typedef struct ah_edit {
    int slice;
    ah_cell *head;
} ah_edit;
ah_status ah_session_set_all(ah_session *s, ah_overlay *o, ah_edit *edit, size_t n, ah_err *err);
bool ah_session_is_log(const ah_session *s, int id);
const ah_mem *ah_session_mem(const ah_session *s);

#endif
