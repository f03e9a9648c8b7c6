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

/* The arguments of `begin` that are no Lua values. */
typedef struct job {
    const ah_changes *earlier;
    ah_buf *text; /* of the conversation; empty: it is in its store */
} job;

/* (fields, definition, given, job): the new agent and the names of its stale tools, or nil and an
 * error. */
static int begin(lua_State *L)
{
    const job *j = lua_touserdata(L, 4);
    ah_lua_agent *b = ah_lua_push_agent(L);
    ah_err err;

    b->carried = true;
    if (j->text->len && ah_lua_stream_load(b, ah_buf_slice(j->text), &err) != AH_OK)
        return ah_lua_fail(L, &err);
    if (ah_lua_read_agent(L, b, WHAT, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    if (ah_lua_handoffs_resume(L, b) != 1)
        return 2;
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, -2, AH_AGENT_GIVEN);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, AH_AGENT_DEFINITION);
    push_stale(L, b, j->earlier);
    ah_lua_put_handlers(L, b, j->earlier);
    return 2;
}

/* Lets the emptied agent at 1 go on by its own fields. If that fails, it stays closed. */
static void go_back(lua_State *L, int fields, const ah_changes *earlier)
{
    ah_lua_agent *a = lua_touserdata(L, 1);

    lua_pushcfunction(L, ah_lua_agent_fill);
    lua_pushvalue(L, fields);
    lua_pushvalue(L, 1);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK && !a->closed)
        ah_lua_put_handlers(L, a, earlier);
    lua_pop(L, 1);
    if (a->closed)
        ah_lua_agent_close(a);
}

/* Closes the agent at 1, whose conversation another one has. */
static void leave(lua_State *L)
{
    ah_lua_agent_close(lua_touserdata(L, 1));
    for (int i = 1; i <= AH_AGENT_VALUES; i++) {
        lua_pushnil(L);
        lua_setiuservalue(L, 1, i);
    }
}

static void check_definition(lua_State *L)
{
    const ah_lua_agent *d = ah_lua_to_agent(L, 2);

    if (!d || d->closed || lua_rawequal(L, 1, 2))
        ah_lua_raise(L, AH_USAGE, "%s: the definition must be another agent, which is open", WHAT);
}

static void check_idle(lua_State *L, const ah_lua_agent *a)
{
    if (a->runs || a->busy)
        ah_lua_raise(L, AH_USAGE, "%s: a run of the conversation is at work: wait for it", WHAT);
    if (a->background.first)
        ah_lua_raise(L, AH_USAGE,
                     "%s: a background call of the conversation is outstanding: wait until a run "
                     "has taken its result",
                     WHAT);
    ah_lua_stream_check_outside(L, WHAT);
}

/* Writes what is outstanding into the store, or the conversation into *text. */
static ah_status settle(ah_lua_agent *a, ah_buf *text, ah_err *err)
{
    return a->stream.keeper ? ah_lua_stream_settle(a, err) : ah_lua_stream_save(a, text, err);
}

/* Pushes the store of the agent, or false. */
static void push_store(lua_State *L, const ah_lua_agent *a)
{
    if (a->stream.keeper)
        ah_lua_push_store(L, ah_keeper_store(a->stream.keeper));
    else
        lua_pushboolean(L, false);
}

/* -- the agent's own fields, to go back */
static void push_own_fields(lua_State *L, const ah_lua_agent *a)
{
    lua_pushcfunction(L, ah_lua_own_fields);
    lua_pushvalue(L, 1);
    push_store(L, a);
    lua_call(L, 2, 1);
}

/* -- the fields of the new agent */
static void push_carried_fields(lua_State *L, const ah_lua_agent *a)
{
    lua_pushcfunction(L, ah_lua_carried_fields);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    push_store(L, a);
    lua_call(L, 3, 1);
}

/* With the arguments of `begin` on top (popped), and own fields of the agent at 1 below them: as
 * `carry`. */
static int go_on(lua_State *L, ah_lua_agent *a, const job *j)
{
    int top = lua_gettop(L) - 4;
    bool stored = a->stream.keeper != NULL, fine;

    lua_pushcfunction(L, begin);
    lua_insert(L, top + 1);
    a->busy++;
    if (stored)
        ah_lua_agent_empty(L);
    fine = lua_pcall(L, 4, 2, 0) == LUA_OK;
    if (stored && (!fine || lua_isnil(L, top + 1)))
        go_back(L, top, j->earlier);
    a->busy--;
    if (!fine)
        return lua_error(L);
    if (!lua_isnil(L, top + 1))
        leave(L);
    return 2;
}

/* ah._carry(old, definition): an agent with the conversation of `old` and the fields of
 * `definition`, and the names of the earlier tools for which these have none; such a tool keeps its
 * handler. `old` is then closed. After nil and an error, and after a raise, `old` goes on as it
 * was; it is closed only if its store cannot be read again. */
static int carry(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_err err;
    job j;

    lua_settop(L, 2);
    check_definition(L);
    check_idle(L, a);
    j.earlier = push_earlier(L, a, ah_lua_to_agent(L, 2));
    j.text = ah_lua_push_buf(L, AH_STORE_MAX_RECORD);
    if (settle(a, j.text, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    push_own_fields(L, a);
    push_carried_fields(L, a);
    lua_getiuservalue(L, 2, AH_AGENT_DEFINITION);
    ah_lua_push_given(L);
    lua_pushlightuserdata(L, &j);
    return go_on(L, a, &j);
}

/* -- rest ------------------------------------------------------------------------------------ */

/* Upvalues: the agent, its own fields, its tools. Returns whether the agent goes on. */
static int wake(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, lua_upvalueindex(2));
    go_back(L, 2, lua_touserdata(L, lua_upvalueindex(3)));
    lua_pushboolean(L, !ah_lua_to_agent(L, 1)->closed);
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
    push_own_fields(L, a);
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
