/* The object is called for the next turn. */
#include "lua/lua_replay.h"

#include "host/store_replay.h"
#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_store.h"
#include "lua/lua_value.h"

static const char TURNS[] = "agenthost.turns";

enum { MAX_CALLS = 256 << 20 /* bytes of the calls of a turn as JSON */ };

static int turns_gc(lua_State *L)
{
    ah_replay_turns_clear(luaL_checkudata(L, 1, TURNS));
    return 0;
}

/* turns(): a store with the conversation, and { turn, calls }; nothing: there is no further turn.
 * Raises if the stream is damaged. */
static int next_turn(lua_State *L)
{
    ah_replay_turns *t = luaL_checkudata(L, 1, TURNS);
    ah_open_store **box;
    ah_buf *calls;
    ah_err err;

    if (!t->store)
        return 0;
    lua_settop(L, 1);
    box = ah_lua_push_held_store(L);
    calls = ah_lua_push_buf(L, MAX_CALLS);
    lua_toclose(L, -1);
    if (ah_replay_turns_next(t, box, calls, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (!*box)
        return 0;
    if (!ah_buf_ok(calls)) {
        ah_buf_error(calls, "the calls of a turn", &err);
        return ah_lua_raise_err(L, &err);
    }
    lua_pushvalue(L, 2);
    ah_lua_push_json(L, ah_buf_slice(calls));
    return 2;
}

/* ah._turns(store, conversation): an object that is called for the next turn */
static int new_turns(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_replay_turns *t;
    ah_slice id;
    ah_err err;

    id.p = luaL_checklstring(L, 2, &id.n);
    t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (ah_replay_turns){0};
    luaL_setmetatable(L, TURNS);
    return ah_replay_turns_init(t, s, id, &err) == AH_OK ? 1 : ah_lua_raise_err(L, &err);
}

void ah_lua_open_replay(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", turns_gc}, {"__close", turns_gc}, {"__call", next_turn}, {NULL, NULL}};

    luaL_newmetatable(L, TURNS);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
    lua_pushcfunction(L, new_turns);
    lua_setfield(L, -2, "_turns");
}
