/* Connects the discovery of entities (run/discover.h) to agents and scripts. */
#include "lua/lua_discover.h"

#include "lua/lua_agent.h"
#include "lua/lua_entity.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_post.h"
#include "lua/lua_options.h"

static const char ID[] = "agenthost.retracted";
static const char OPEN[] = "agenthost.discoveries"; /* registry: agents by address, weak */

/* -- fields --------------------------------------------------------------------------- */

static void begin(lua_State *L, ah_lua_agent *a, int max_depth, bool keep)
{
    ah_lua_discovery *d = &a->discovery;

    ah_lua_strategies_lead(L, &a->strategies, ah_discovery_strategy(&d->core));
    ah_discovery_init(&d->core, &a->lua->mem, max_depth, a->rules.brief);
    d->on = true;
    d->keep = keep;
    lua_getfield(L, LUA_REGISTRYINDEX, OPEN);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, a);
    lua_pop(L, 1);
}

typedef struct discover_fields {
    bool keep;
} discover_fields;

static const ah_option discover_rows[] = {
    {.name = "keep",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "true",
     .to = AH_TO_BOOL(discover_fields, keep),
     .doc = "false: each run of an agent releases the entities at its end"},
    {0},
};
const ah_subject ah_subject_discover = {.what = "ah.run: discover",
                                        .type = "ah.Discover",
                                        .doc = "of [entities](entities.md#what-is-discovered)",
                                        .row = discover_rows};

void ah_lua_discovery_read(lua_State *L, int idx, ah_lua_agent *a)
{
    int max_depth = AH_ENTITY_SLOT_DEPTH, type = lua_getfield(L, idx, "discover");
    discover_fields f = {.keep = true};
    bool on = lua_toboolean(L, -1);

    if (lua_getfield(L, idx, "max_depth") != LUA_TNIL)
        max_depth = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (type == LUA_TTABLE) {
        ah_options_read(L, -1, &ah_subject_discover, &f);
    } else if (type != LUA_TNIL && type != LUA_TBOOLEAN) {
        ah_lua_raise(L, AH_USAGE, "ah.run: field 'discover' must be true or a table, found a %s",
                     lua_typename(L, type));
    }
    lua_pop(L, 1);
    if (on)
        begin(L, a, max_depth, f.keep);
}

static ah_entity_class *find_class(void *ud, ah_slice name)
{
    lua_State *L = ((ah_lua *)ud)->caller;
    const ah_lua_entity *e = NULL;

    if (lua_checkstack(L, 8) && (e = ah_lua_push_entity_named(L, name)))
        lua_pop(L, 1); /* its name in the registry keeps it */
    return e ? e->core : NULL;
}

ah_status ah_lua_discovery_replay(ah_lua_agent *a, ah_err *err)
{
    if (!a->discovery.on)
        return AH_OK;
    return ah_discovery_replay(&a->discovery.core, a->transcript, &a->registry, find_class, a->lua,
                               err);
}

void ah_lua_discovery_redeclare(lua_State *L, const ah_lua_agent *a, ah_changes *out)
{
    ah_err err;

    if (a->discovery.on &&
        ah_discovery_redeclare(&a->discovery.core, &a->registry, out, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

void ah_lua_discovery_copy(lua_State *L, ah_lua_agent *a, const ah_lua_agent *from)
{
    ah_err err;

    if (!from->discovery.on)
        return;
    begin(L, a, from->discovery.core.max_depth, from->discovery.keep);
    if (ah_lua_discovery_replay(a, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

void ah_lua_discovery_end(ah_lua_agent *a)
{
    if (a->discovery.on && (a->once || !a->discovery.keep))
        ah_discovery_release(&a->discovery.core);
}

void ah_lua_discovery_clear(ah_lua_discovery *d)
{
    if (!d->on)
        return;
    ah_discovery_clear(&d->core);
    *d = (ah_lua_discovery){0};
}

/* -- ah.retract ------------------------------------------------------------------------- */

static int id_gc(lua_State *L)
{
    ah_text_set(luaL_checkudata(L, 1, ID), NULL);
    return 0;
}

/* instance class -- id */
static ah_text *push_id(lua_State *L)
{
    ah_text **id = lua_newuserdatauv(L, sizeof(ah_text *), 0);
    ah_err err;

    *id = NULL;
    luaL_setmetatable(L, ID);
    if (ah_lua_entity_id(ah_lua_of(L), L, 2, 1, id, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    return *id;
}

/* Pushes a list of the agents that discover. The list keeps them, since scripts may run and agents
 * be collected meanwhile. */
static void push_open(lua_State *L)
{
    lua_Integer n = 0;

    lua_newtable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, OPEN); /* -- list open */
    for (lua_pushnil(L); lua_next(L, -2);)
        lua_rawseti(L, -4, ++n);
    lua_pop(L, 1);
}

/* Retracts the tools of the agent at idx; returns their number. */
static size_t retract_in(lua_State *L, int idx, const ah_entity_class *of, ah_slice id)
{
    ah_lua_agent *a = ah_lua_to_agent(L, idx);
    ah_changes *c = ah_lua_push_changes(L, &a->lua->mem);
    size_t n;
    ah_err err;

    if (ah_discovery_retract(&a->discovery.core, of, id, &a->registry, c, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    if ((n = c->n) > 0)
        ah_lua_change(L, idx, c);
    return n;
}

/* ah.retract(instance): withdraws its tools in all conversations; returns their number. */
static int retract(lua_State *L)
{
    const ah_lua_entity *e;
    const ah_text *id;
    lua_Integer n = 0;

    lua_settop(L, 1);
    if (!(e = ah_lua_push_entity_of(L, 1)))
        return ah_lua_raise(L, AH_USAGE,
                            "ah.retract: expected an instance of an entity, found a %s",
                            luaL_typename(L, 1));
    id = push_id(L); /* -- instance class id */
    push_open(L);    /* -- instance class id list */
    for (lua_Integer i = 1; lua_rawgeti(L, 4, i) != LUA_TNIL; i++) {
        n += (lua_Integer)retract_in(L, 5, e->core, ah_text_slice(id));
        lua_settop(L, 4);
    }
    lua_pushinteger(L, n);
    return 1;
}

void ah_lua_open_discover(lua_State *L)
{
    static const luaL_Reg id_meta[] = {{"__gc", id_gc}, {NULL, NULL}};

    luaL_newmetatable(L, ID);
    luaL_setfuncs(L, id_meta, 0);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, OPEN);
    lua_pop(L, 1);
    lua_pushcfunction(L, retract);
    lua_setfield(L, -2, "retract");
}
