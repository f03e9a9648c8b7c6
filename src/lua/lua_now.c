/* The current call is the call of the task whose own code runs. If that task has no call of its
 * own, it is the call in which the task's run was started. */
#include "lua/lua_now.h"

#include "lua/lua_error.h"

ah_call *ah_lua_check_call(lua_State *L, int idx)
{
    ah_ctx *c = luaL_checkudata(L, idx, AH_CTX);

    if (!c->call)
        ah_lua_raise(L, AH_USAGE, "ctx: the call is over");
    return c->call;
}

ah_overlay *ah_lua_overlay(lua_State *L)
{
    const ah_lua *h = ah_lua_of(L);
    const ah_task *t = h->actor;
    ah_anchor *caller = t && t->job.of ? ah_run_cfg(ah_driver_run_run(t->job.of))->caller : NULL;

    if (h->tool)
        return h->tool;
    if (t && (t->over || (!t->overlay && caller && !caller->overlay)))
        ah_lua_raise(L, AH_USAGE, "the call is over: nothing can be changed in it");
    if (t && t->overlay)
        return t->overlay;
    return caller ? caller->overlay : NULL;
}

ah_ctx *ah_lua_push_ctx(lua_State *L, ah_call *call)
{
    ah_ctx *c = lua_newuserdatauv(L, sizeof *c, 0);

    *c = (ah_ctx){.call = call, .resources = LUA_NOREF};
    luaL_setmetatable(L, AH_CTX);
    return c;
}

void ah_lua_no_reducer(lua_State *L)
{
    const ah_lua *h = ah_lua_of(L);

    if (h->reducing)
        ah_lua_raise(L, AH_USAGE, "a reducer must change nothing but its slice, through its view");
}

void ah_lua_no_change(lua_State *L)
{
    const ah_lua *h = ah_lua_of(L);

    ah_lua_no_reducer(L);
    if (h->callee == AH_CALLEE_NONE && h->actor && h->actor->outside)
        ah_lua_raise(L, AH_USAGE,
                     "the function of a step must not change session, files or entities: a step is "
                     "not repeated. Return the value, and make the change after ctx:step");
}
