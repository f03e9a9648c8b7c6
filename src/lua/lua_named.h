/* Sessions, budgets and files in memory that have a name, and by it a stream of their own in a
 * store: it keeps what they hold, for all agents of this process that use them, and for the next
 * process. One struct is made for each object; the host lists them. What a run of an agent with a
 * store changes in them is appended together with the record of its conversation. Callers: its
 * floor. */
#ifndef AH_LUA_NAMED_H
#define AH_LUA_NAMED_H

#include "host/keeper.h"
#include "lua/lua_host.h"
#include "run/budget.h"
#include "state/fs.h"

typedef struct ah_lua_named ah_lua_named;

/* Makes the struct of a session or a budget (the other one is NULL), or of files, which it borrows.
 * It has no store yet. Raises usage for a name that cannot be in that of a stream, in the words of
 * `what`. */
ah_lua_named *ah_lua_named_new(lua_State *L, const char *what, ah_slice name, ah_session *s,
                               ah_budget *b);
ah_lua_named *ah_lua_named_new_files(lua_State *L, ah_slice name, ah_fs *fs);
/* Records what is new, releases the stream and frees n. NULL is allowed. */
void ah_lua_named_close(ah_lua_named *n);
/* Return the struct, or NULL: it has no name. */
ah_lua_named *ah_lua_named_session(const ah_lua *h, const ah_session *s);
ah_lua_named *ah_lua_named_budget(const ah_lua *h, const ah_budget *b);
ah_lua_named *ah_lua_named_files(const ah_lua *h, const ah_fs *fs);

/* Gives n its store, from which it takes its state, unless it has one. Fails with AH_CONFLICT if
 * another process, or another object of this one, holds the stream; with AH_USAGE if a session has
 * values already. */
ah_status ah_lua_named_attach(lua_State *L, ah_lua_named *n, ah_open_store *store, ah_err *err);
/* The same with the store that the value at idx names (ah_lua_to_store); nil: that of the host, if
 * it has one. Raises inside a handler, whose call may fail, if the value is not nil; else does
 * nothing there. */
ah_status ah_lua_named_read(lua_State *L, ah_lua_named *n, int idx, ah_err *err);
/* For an agent that uses n (NULL is allowed): attaches the agent's store (NULL: the host's).
 * AH_USAGE: the session is in another store than the agent's. AH_STORE: n is not recorded any
 * more. */
ah_status ah_lua_named_use(lua_State *L, ah_lua_named *n, ah_open_store *store, ah_err *err);
/* Gives a slice that was just added the values that the stream has for it. */
ah_status ah_lua_named_fill(lua_State *L, const ah_session *s, int slice, ah_err *err);
/* AH_OK, or AH_STORE: changes of the session, or of n (NULL is allowed), are not recorded any
 * more. */
ah_status ah_lua_named_state(const ah_lua *h, const ah_session *s, ah_err *err);
ah_status ah_lua_named_check(const ah_lua_named *n, ah_err *err);

/* Records what is new in all of them. by: the keeper of the conversation that has made it, which
 * the records name; NULL: none. with: its last records belong in the same append. */
void ah_lua_named_note(const ah_lua *h, ah_keeper *by, bool with);
/* Sets ah._unnamed, by which the command looks at a script without opening its stores. */
void ah_lua_open_named(lua_State *L);

/* True if the overlay changes a named session, or named files. */
bool ah_lua_named_changes(const ah_lua *h, const ah_overlay *o);

#endif
