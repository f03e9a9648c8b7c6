/* A fork at a turn is a stream that begins with the state of the base at that turn, and an agent
 * that opens it as agent:open does. A rewind writes that state into the stream itself; the agent is
 * emptied, and filled with it by its fields. */
#include "lua/lua_fork.h"

#include "host/store_fork.h"
#include "lua/lua_agent.h"
#include "lua/lua_background.h"
#include "lua/lua_definition.h"
#include "lua/lua_error.h"
#include "lua/lua_named.h"
#include "lua/lua_options.h"
#include "lua/lua_session.h"
#include "lua/lua_setup.h"
#include "lua/lua_store.h"
#include "lua/lua_value.h"

enum { MAX_HEAD = 256 /* bytes */ };

static const char WHAT[] = "agent:fork";
#define TURNS "%s: turns are counted from 1, 0 is before them"

/* Returns the id at idx. Raises unless it can name a stream. */
static ah_slice check_id(lua_State *L, int idx)
{
    ah_slice id = {NULL, 0};

    id.p = lua_tolstring(L, idx, &id.n);
    if (!ah_utf8_valid(id))
        ah_lua_raise(L, AH_USAGE, "%s: id is not UTF-8", WHAT);
    ah_lua_stream_check_id(L, id, WHAT);
    return id;
}

/* Pushes the field `id` of the table at 2, or a new id. The slice is that of the string. */
static ah_slice push_id(lua_State *L)
{
    char made[AH_NEW_ID];
    int type = lua_getfield(L, 2, "id");

    if (type == LUA_TNIL) {
        ah_lua_setup_new_id(ah_lua_of(L)->host, made);
        lua_pushstring(L, made);
        lua_replace(L, -2);
    } else if (type != LUA_TSTRING) {
        ah_lua_raise(L, AH_USAGE, "%s: id must be a string, found %s", WHAT, luaL_typename(L, -1));
    }
    return check_id(L, -1);
}

/* Sets *out to a new reference to the store for the fork. Without a store and an id it is one in
 * memory. */
static ah_status find_store(lua_State *L, const ah_lua_agent *a, ah_open_store **out, ah_err *err)
{
    static const ah_store_options memory = {.create = true};
    bool named = lua_getfield(L, 2, "id") != LUA_TNIL;
    int type = lua_getfield(L, 2, "store");

    if (type == LUA_TNIL && named)
        *out = ah_open_store_ref(ah_keeper_store(a->stream.keeper));
    else if (type != LUA_TNIL && (type != LUA_TBOOLEAN || lua_toboolean(L, -1)))
        return ah_lua_to_store(L, -1, out, err);
    else
        return ah_open_store_new(a->lua->host, &memory, out, err);
    return AH_OK;
}

/* Empties the session of the fields at 2, logs included, unless it has a stream of its own. */
static void empty_session(lua_State *L, const ah_lua_agent *a)
{
    ah_session *s;
    ah_err err;

    lua_getfield(L, 2, "session");
    s = lua_isnil(L, -1) ? NULL : ah_lua_to_session(L, -1);
    for (int i = 0; s && !ah_lua_named_session(a->lua, s) && i < ah_session_types(s); i++)
        if (ah_session_has_slice(s, i) && ah_session_set(s, NULL, i, NULL, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
    lua_pop(L, 1);
}

/* Opens the conversation `id` of the store by the fields of the agent at 1. */
static int open_fork(lua_State *L, const ah_lua_agent *a, ah_open_store *store, ah_slice id)
{
    ah_lua_push_given(L);
    ah_lua_push_store(L, store);
    lua_setfield(L, -2, "store");
    lua_pushlstring(L, id.p, id.n);
    lua_setfield(L, -2, "id");
    lua_replace(L, 2);
    empty_session(L, a);
    lua_settop(L, 2);
    return ah_lua_open_conversation(L);
}

int ah_lua_fork_at(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_fork f = {0};
    ah_open_store **to;
    ah_status st;
    ah_err err;

    ah_options_read(L, 2, &ah_subject_fork, NULL);
    if (!a->stream.keeper)
        return ah_lua_raise(L, AH_USAGE,
                            "%s: `at` needs an agent with a store, whose records say what each "
                            "turn was: ah.agent { store = ..., id = ... }",
                            WHAT);
    ah_lua_stream_check_outside(L, WHAT);
    lua_getfield(L, 2, "at");
    f.turn = lua_tointeger(L, -1);
    if (f.turn < 0)
        return ah_lua_raise(L, AH_USAGE, TURNS, WHAT);
    f.id = push_id(L);
    to = ah_lua_push_held_store(L);
    st = find_store(L, a, to, &err);
    if (st == AH_OK)
        st = ah_lua_stream_settle(a, &err);
    if (st == AH_OK) {
        f.from = ah_keeper_store(a->stream.keeper);
        f.base = ah_keeper_stream(a->stream.keeper);
        f.to = *to;
        st = ah_open_store_fork(a->lua->host, &f, &err);
    }
    return st == AH_OK ? open_fork(L, a, *to, f.id) : ah_lua_fail(L, &err);
}

/* _fork(store, conversation, turn, script, folder, id): the id of the fork, or nil and an error.
 * script, folder: in place of those of the conversation; nil: these. id: nil: a new one */
static int fork_stored(lua_State *L)
{
    ah_host *host = ah_lua_of(L)->host;
    ah_fork f = {.turn = luaL_checkinteger(L, 3)};
    char made[AH_NEW_ID];
    ah_open_store **held;
    ah_err err;

    lua_settop(L, 6);
    f.base.p = luaL_checklstring(L, 2, &f.base.n);
    f.script.p = luaL_optlstring(L, 4, NULL, &f.script.n);
    f.folder.p = luaL_optlstring(L, 5, NULL, &f.folder.n);
    if (lua_isnil(L, 6)) {
        ah_lua_setup_new_id(host, made);
        lua_pushstring(L, made);
        lua_replace(L, 6);
    }
    f.id = check_id(L, 6);
    held = ah_lua_push_held_store(L);
    if (ah_lua_to_store(L, 1, held, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    f.from = f.to = *held;
    if (ah_open_store_fork(host, &f, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    lua_pushvalue(L, 6);
    return 1;
}

/* -- rewinding ------------------------------------------------------------------------------- */

typedef struct rewind_fields {
    bool dry, files, force;
} rewind_fields;

static const ah_option rewind_rows[] = {
    {.name = "dry",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(rewind_fields, dry),
     .doc = "true: only says what is dropped, and changes nothing"},
    {.name = "files",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(rewind_fields, files),
     .doc = "true: files of the machine are put back, too"},
    {.name = "force",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(rewind_fields, force),
     .doc = "true: also files that another program has changed since"},
    {0},
};
const ah_subject ah_subject_rewind = {
    .what = "agent:rewind", .type = "ah.RewindOptions", .row = rewind_rows};

/* Returns the agent at 1. Raises unless it has a store. */
static ah_lua_agent *check_stored(lua_State *L, const char *what)
{
    ah_lua_agent *a = ah_lua_check_agent(L);

    if (!a->stream.keeper)
        ah_lua_raise(L, AH_USAGE,
                     "%s: the agent has no store, whose records say what each turn was: "
                     "ah.agent { store = ..., id = ... }",
                     what);
    return a;
}

/* agent:mark(): the number of turns so far, or nil and an error */
static int agent_mark(lua_State *L)
{
    ah_lua_agent *a = check_stored(L, "agent:mark");
    int64_t turns = 0;
    ah_err err;
    ah_status st = ah_lua_stream_settle(a, &err);

    if (st == AH_OK)
        st = ah_open_store_turns(ah_keeper_store(a->stream.keeper),
                                 ah_keeper_stream(a->stream.keeper), &turns, &err);
    if (st != AH_OK)
        return ah_lua_fail(L, &err);
    lua_pushinteger(L, (lua_Integer)turns);
    return 1;
}

/* agent:head(): number and hash of the last record, or nil and an error */
static int agent_head(lua_State *L)
{
    ah_lua_agent *a = check_stored(L, "agent:head");
    ah_buf *b = ah_lua_push_buf(L, MAX_HEAD);
    ah_err err;

    if (ah_lua_stream_head(a, b, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    lua_pushlstring(L, b->data, b->len);
    return 1;
}

/* Pushes what is dropped, or returns false with *err. */
static bool push_dropped(lua_State *L, const ah_rewind *r, ah_err *err)
{
    ah_buf *out = ah_lua_push_buf(L, AH_STORE_MAX_RECORD);

    if (ah_open_store_rewind(ah_lua_of(L)->host, r, out, err) != AH_OK)
        return false;
    ah_lua_push_json(L, ah_buf_slice(out));
    return true;
}

ah_changes *ah_lua_push_handlers(lua_State *L, const ah_lua_agent *a)
{
    ah_changes *c = ah_lua_push_changes(L, &a->lua->mem);
    ah_tool *t;
    ah_err err;

    for (size_t at = 0; (t = ah_registry_next(&a->registry, &at));)
        if (!t->stale && !ah_lua_setup_has_added(a, t) &&
            ah_changes_add(c, t->full ? t->full : t, NULL, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
    return c;
}

void ah_lua_put_handlers(lua_State *L, ah_lua_agent *a, const ah_changes *c)
{
    bool bound;
    ah_err err;

    for (size_t i = 0; i < c->n; i++) {
        ah_tool *t = c->item[i].tool;
        const ah_tool *there = ah_registry_find(&a->registry, ah_text_slice(t->name));

        if (there && there->stale &&
            ah_registry_rebind(&a->registry, t, a->rules.brief, &bound, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
    }
}

/* (agent, fields, handlers, rewind): what is dropped, or nil and an error. */
static int rewind_emptied(lua_State *L)
{
    ah_lua_agent *a = lua_touserdata(L, 1);
    ah_err err;

    ah_lua_agent_empty(L);
    if (!push_dropped(L, lua_touserdata(L, 4), &err))
        return ah_lua_fail(L, &err);
    empty_session(L, a);
    lua_pushcfunction(L, ah_lua_agent_fill);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 1);
    lua_call(L, 2, 2); /* -- .. agent nil, or nil err */
    if (lua_isnil(L, -2))
        return 2;
    ah_lua_put_handlers(L, a, lua_touserdata(L, 3));
    lua_pop(L, 2);
    return 1;
}

/* Rewinds, and lets the agent at 1 go on from there: what is dropped, or nil and an error, with
 * which the agent is closed. */
static int go_on(lua_State *L, ah_lua_agent *a, ah_rewind *r)
{
    int top = lua_gettop(L), st;

    ah_lua_background_close(L, a);
    lua_pushcfunction(L, rewind_emptied);
    lua_pushvalue(L, 1);
    lua_pushcfunction(L, ah_lua_own_fields);
    lua_pushvalue(L, 1);
    ah_lua_push_store(L, r->store);
    lua_call(L, 2, 1);
    ah_lua_push_handlers(L, a);
    lua_pushlightuserdata(L, r);
    a->busy++;
    st = lua_pcall(L, 4, LUA_MULTRET, 0);
    a->busy--;
    if (a->closed)
        ah_lua_agent_close(a);
    return st == LUA_OK ? lua_gettop(L) - top : lua_error(L);
}

/* agent:rewind(turn, { dry, files, force }): what is dropped and changed; or nil and an error. The
 * agent goes on after that turn; dry: as it was. */
static int agent_rewind(lua_State *L)
{
    static const char what[] = "agent:rewind";
    ah_lua_agent *a = check_stored(L, what);
    rewind_fields f = {0};
    ah_rewind r = {.turn = luaL_checkinteger(L, 2), .dry = true};
    ah_open_store **store;
    ah_err err;
    ah_status st;

    lua_settop(L, 3);
    if (!lua_isnil(L, 3))
        ah_options_read(L, 3, &ah_subject_rewind, &f);
    if (r.turn < 0)
        return ah_lua_raise(L, AH_USAGE, TURNS, what);
    if (a->runs || a->busy)
        return ah_lua_raise(L, AH_USAGE, "%s: the agent is running", what);
    ah_lua_stream_check_outside(L, what);
    r.files = f.files;
    r.force = f.force;
    r.check = !f.dry;
    store = ah_lua_push_held_store(L);
    r.store = *store = ah_open_store_ref(ah_keeper_store(a->stream.keeper));
    ah_lua_setup_push_id(L, a);
    r.conversation.p = lua_tolstring(L, -1, &r.conversation.n);
    st = ah_lua_stream_settle(a, &err);
    if (st != AH_OK || !push_dropped(L, &r, &err))
        return ah_lua_fail(L, &err);
    if (f.dry)
        return 1;
    r.dry = false;
    return go_on(L, a, &r);
}

/* _rewind(store, conversation, turn, dry, take, files, force): what is dropped, or nil and an error
 */
static int rewind_stored(lua_State *L)
{
    ah_rewind r = {.turn = luaL_checkinteger(L, 3),
                   .dry = lua_toboolean(L, 4),
                   .take = lua_toboolean(L, 5),
                   .files = lua_toboolean(L, 6),
                   .force = lua_toboolean(L, 7)};
    ah_open_store **held;
    ah_err err;

    lua_settop(L, 7);
    r.conversation.p = luaL_checklstring(L, 2, &r.conversation.n);
    held = ah_lua_push_held_store(L);
    if (ah_lua_to_store(L, 1, held, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    r.store = *held;
    return push_dropped(L, &r, &err) ? 1 : ah_lua_fail(L, &err);
}

void ah_lua_open_fork(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"mark", agent_mark}, {"head", agent_head}, {"rewind", agent_rewind}, {NULL, NULL}};

    lua_pushcfunction(L, fork_stored);
    lua_setfield(L, -2, "_fork");
    lua_pushcfunction(L, rewind_stored);
    lua_setfield(L, -2, "_rewind");
    ah_lua_agent_methods(L, methods);
}
