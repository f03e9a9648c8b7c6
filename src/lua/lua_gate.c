/* ah.gate: policies and approvals of the whole program, for all calls of all runs and for calls
 * outside of runs (ah_call_tool, registry:execute at the top of a script). */
#include "lua/lua_gate.h"

#include "lua/lua_fields.h"
#include "lua/lua_hooks.h"
#include "lua/lua_options.h"

static const char GATE[] = "agenthost.gate", THE_GATE[] = "agenthost.the_gate";

static int gate_gc(lua_State *L)
{
    ah_lua_hooks *s = luaL_checkudata(L, 1, GATE);

    if (s->lua->gate == s)
        s->lua->gate = NULL;
    ah_lua_hooks_clear(s);
    return ah_lua_retire(L);
}

static ah_lua_hooks *push_gate(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_lua_hooks *s = lua_newuserdatauv(L, sizeof *s, 0);

    ah_lua_hooks_init(s, h);
    luaL_setmetatable(L, GATE);
    return s;
}

static const ah_option gate_rows[] = {
    {.name = "policies",
     .kinds = AH_OPT_LIST,
     .is = "list of functions or tables",
     .type = "ah.Policy[]",
     .doc = "they decide on each call before its handler, or on its result"},
    {.name = "approve",
     .kinds = AH_OPT_FUNCTION,
     .type = "fun(call: ah.Asked): boolean?, (table|string)?",
     .doc = "decides on calls for which a policy asks; may wait"},
    {0},
};
const ah_subject ah_subject_gate = {.what = "ah.gate", .type = "ah.GateConfig", .row = gate_rows};

/* ah.gate { policies, approve }: replaces an earlier gate. The gate never moves, since runs at work
 * have its address. */
static int set_gate(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_lua_hooks *given;

    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_gate, NULL);
    given = push_gate(L);
    ah_lua_hooks_read(L, 1, "ah.gate", given);
    if (!h->gate) {
        h->gate = push_gate(L);
        lua_setfield(L, LUA_REGISTRYINDEX, THE_GATE);
    }
    ah_lua_hooks_swap(h->gate, given); /* the collector clears the earlier ones */
    return 0;
}

const ah_hooks *ah_lua_gate(const ah_lua *h)
{
    return h->gate ? &h->gate->core : NULL;
}

void ah_lua_open_gate(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", gate_gc}, {NULL, NULL}};

    luaL_newmetatable(L, GATE);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
    lua_pushcfunction(L, set_gate);
    lua_setfield(L, -2, "gate");
}
