/* For a reload of the script. ah._carry: the conversation of one agent goes on with the definition
 * of another. A new agent reads it: from its store, or from the text that agent:save would write.
 * ah._rest: an agent leaves its store for a while. */
#include "lua/lua_agent.h"
#include "lua/lua_background.h"
#include "lua/lua_definition.h"
#include "lua/lua_error.h"
#include "lua/lua_fork.h"
#include "lua/lua_handoff.h"
#include "lua/lua_open.h"
#include "lua/lua_setup.h"
#include "lua/lua_store.h"
#include "lua/lua_value.h"

static const char WHAT[] = "reload";

/* Pushes the tools of the old agent that the new one may lack: those with handlers, without those
 * that its own `setup` is going to add. */
static ah_changes *push_earlier(lua_State *L, const ah_lua_agent *a, const ah_lua_agent *definition)
{
    ah_changes *c = ah_lua_push_handlers(L, a);
    ah_err err;

    if (definition->setup.fn != LUA_NOREF)
        return c;
    for (size_t i = 0; i < a->setup.added.n; i++)
        if (ah_changes_add(c, a->setup.added.item[i].tool, NULL, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
    return c;
}

/* Pushes a list of the names of the earlier tools that have no handler in the new agent. */
static void push_stale(lua_State *L, const ah_lua_agent *b, const ah_changes *earlier)
{
    lua_Integer n = 0;

    lua_newtable(L);
    for (size_t i = 0; i < earlier->n; i++) {
        const ah_text *name = earlier->item[i].tool->name;
        const ah_tool *there = ah_registry_find(&b->registry, ah_text_slice(name));

        if (!there || !there->stale)
            continue;
        lua_pushlstring(L, name->data, name->len);
        lua_rawseti(L, -2, ++n);
    }
}

/* (fields, text): the new agent, or nil and an error. text: a buffer; NULL: it is in its store. */
static int begin(lua_State *L)
{
    const ah_buf *text = lua_touserdata(L, 2);
    ah_lua_agent *b = ah_lua_push_agent(L);
    ah_err err;

    b->carried = true;
    if (text && ah_lua_stream_load(b, ah_buf_slice(text), &err) != AH_OK)
        return ah_lua_fail(L, &err);
    if (ah_lua_read_agent(L, b, WHAT, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    return ah_lua_handoffs_resume(L, b);
}

/* Calls `begin`, which leaves the new agent, or nil and an error, on top. Returns whether it did
 * not raise. */
static bool try_begin(lua_State *L, int fields, const ah_buf *text)
{
    lua_pushcfunction(L, begin);
    lua_pushvalue(L, fields);
    lua_pushlightuserdata(L, (void *)(uintptr_t)text);
    return lua_pcall(L, 2, 2, 0) == LUA_OK;
}

/* Lets the emptied agent at 1 go on by its own fields. If that fails, it stays closed. */
static void go_back(lua_State *L, ah_lua_agent *a, int fields, const ah_changes *earlier)
{
    lua_pushcfunction(L, ah_lua_agent_fill);
    lua_pushvalue(L, fields);
    lua_pushvalue(L, 1);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK && !a->closed)
        ah_lua_put_handlers(L, a, earlier);
    lua_pop(L, 1);
    if (a->closed)
        ah_lua_agent_close(a);
}

/* The new agent, with the definition at 2 and what the old one at 1 was opened with. */
static void finish(lua_State *L, int agent)
{
    lua_getiuservalue(L, 2, AH_AGENT_DEFINITION);
    lua_setiuservalue(L, agent, AH_AGENT_DEFINITION);
    ah_lua_push_given(L);
    lua_setiuservalue(L, agent, AH_AGENT_GIVEN);
    ah_lua_agent_close(lua_touserdata(L, 1));
    for (int i = 1; i <= AH_AGENT_VALUES; i++) {
        lua_pushnil(L);
        lua_setiuservalue(L, 1, i);
    }
}

static ah_lua_agent *check_definition(lua_State *L)
{
    ah_lua_agent *d = ah_lua_to_agent(L, 2);

    if (!d || d->closed || lua_rawequal(L, 1, 2))
        ah_lua_raise(L, AH_USAGE, "%s: the definition must be another agent, which is open", WHAT);
    return d;
}

static void check_idle(lua_State *L, const ah_lua_agent *a)
{
    if (a->runs || a->busy)
        ah_lua_raise(L, AH_USAGE, "%s: a run of the conversation is at work: wait for it", WHAT);
    if (a->background.first)
        ah_lua_raise(L, AH_USAGE,
                     "%s: a call of the conversation is at work in the background: wait for it, or "
                     "agent:cancel_background() it",
                     WHAT);
    ah_lua_stream_check_outside(L, WHAT);
}

/* (old, definition, store or false): -- fields of the new agent, own fields of the old one */
static void push_both_fields(lua_State *L)
{
    lua_pushcfunction(L, ah_lua_carried_fields);
    for (int i = 1; i <= 3; i++)
        lua_pushvalue(L, i);
    lua_call(L, 3, 1);
    lua_pushcfunction(L, ah_lua_own_fields);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 3);
    lua_call(L, 2, 1);
}

/* Writes what is outstanding into the store, or the conversation into *text. */
static ah_status settle(ah_lua_agent *a, ah_buf *text, ah_err *err)
{
    return a->stream.keeper ? ah_lua_stream_settle(a, err) : ah_lua_stream_save(a, text, err);
}

/* ah._carry(old, definition): an agent with the conversation of `old` and the fields of
 * `definition`, and the names of the earlier tools for which these have none; such a tool keeps its
 * handler. `old` is then closed. After nil and an error, and after a raise, `old` goes on as it
 * was; it is closed only if its store cannot be read again. */
static int carry(lua_State *L)
{
    enum { STORE = 3, FIELDS, OWN, EARLIER, TEXT, NEW };
    ah_lua_agent *a = ah_lua_check_agent(L);
    bool stored = a->stream.keeper != NULL, fine;
    ah_changes *earlier;
    ah_buf *text;
    ah_err err;

    lua_settop(L, 2);
    check_definition(L);
    check_idle(L, a);
    if (stored)
        ah_lua_push_store(L, ah_keeper_store(a->stream.keeper));
    else
        lua_pushboolean(L, false);
    push_both_fields(L);
    earlier = push_earlier(L, a, ah_lua_to_agent(L, 2));
    text = ah_lua_push_buf(L, AH_STORE_MAX_RECORD);
    if (settle(a, text, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    a->busy++;
    if (stored)
        ah_lua_agent_empty(L);
    fine = try_begin(L, FIELDS, stored ? NULL : text);
    if (stored && (!fine || lua_isnil(L, NEW)))
        go_back(L, a, OWN, earlier);
    a->busy--;
    if (!fine)
        return lua_error(L);
    if (lua_isnil(L, NEW))
        return 2;
    lua_settop(L, NEW);
    push_stale(L, ah_lua_to_agent(L, NEW), earlier);
    ah_lua_put_handlers(L, ah_lua_to_agent(L, NEW), earlier);
    finish(L, NEW);
    return 2;
}

/* -- rest ------------------------------------------------------------------------------------ */

/* Upvalues: the agent, its own fields, its tools. Returns whether it could go on. */
static int wake(lua_State *L)
{
    ah_lua_agent *a = ah_lua_to_agent(L, lua_upvalueindex(1));

    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, lua_upvalueindex(2));
    go_back(L, a, 2, lua_touserdata(L, lua_upvalueindex(3)));
    lua_pushboolean(L, !a->closed);
    return 1;
}

/* ah._rest(agent): gives its conversation in a store free, so that another agent can open it. Until
 * the function that is returned lets it go on, the agent is closed. Returns nil if it has no store,
 * or is closed; nil and an error if the store has not all of it. */
static int rest(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT);
    ah_err err;

    lua_settop(L, 1);
    if (a->closed || !a->stream.keeper)
        return 0;
    check_idle(L, a);
    if (ah_lua_stream_settle(a, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    lua_pushvalue(L, 1);
    lua_pushcfunction(L, ah_lua_own_fields);
    lua_pushvalue(L, 1);
    ah_lua_push_store(L, ah_keeper_store(a->stream.keeper));
    lua_call(L, 2, 1);
    ah_lua_push_handlers(L, a);
    lua_pushcclosure(L, wake, 3);
    ah_lua_agent_empty(L);
    return 1;
}

void ah_lua_open_carry(lua_State *L)
{
    lua_pushcfunction(L, carry);
    lua_setfield(L, -2, "_carry");
    lua_pushcfunction(L, rest);
    lua_setfield(L, -2, "_rest");
}
