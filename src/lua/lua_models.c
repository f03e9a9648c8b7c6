/* Models that a program defines: ah.alias, and ah_alias of agenthost.h (lua_api_given.c). Defines
 * names for models, and rows beside the table of models (wire/models.h). */
#include "lua/lua_models.h"

#include "lua/lua_error.h"
#include "lua/lua_state.h"
#include "lua/lua_value.h"
#include "wire/models.h"

static const char ALIASES[] = "agenthost.aliases"; /* registry: names of models by alias */

enum { MAX_ROW = 64 << 10 };

/* The origin of aliases and rows. */
typedef struct speaker {
    ah_model_from from;
    const char *what; /* in errors */
} speaker;

static const speaker by_script = {AH_MODEL_SCRIPT, "ah.alias"};
static const speaker by_settings = {AH_MODEL_SETTINGS, "models of the settings"};

/* -- ... name row: adds the row on top as the row of the model */
static void add_row(lua_State *L, const speaker *who, ah_slice model, int row)
{
    ah_lua *h = ah_lua_of(L);
    ah_buf *b = ah_lua_push_buf(L, MAX_ROW); /* -- ... name row buf */
    ah_err err;

    if (ah_lua_to_json(L, row, &h->mem, b, &err) != AH_OK ||
        ah_models_add(h->models, model, ah_buf_slice(b), who->from, who->what, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_pop(L, 1);
}

/* Pushes the model of a row: its field `model`, else the name. Returns false if that is not
 * "provider/model". */
static bool push_model_of(lua_State *L, int name, int value)
{
    if (lua_type(L, value) == LUA_TSTRING) {
        lua_pushvalue(L, value);
        return strchr(lua_tostring(L, -1), '/') != NULL;
    }
    if (lua_getfield(L, value, "model") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushvalue(L, name);
    }
    return lua_type(L, -1) == LUA_TSTRING && strchr(lua_tostring(L, -1), '/');
}

/* -- ... aliases name value: takes one alias or row */
static void take_one(lua_State *L, const speaker *who)
{
    int value = lua_gettop(L), name = value - 1, aliases = value - 2;
    ah_slice model;

    if (lua_type(L, name) != LUA_TSTRING)
        luaL_error(L, "%s: expected names of models as keys, found %s", who->what,
                   luaL_typename(L, name));
    if ((lua_type(L, value) != LUA_TSTRING && !lua_istable(L, value)) ||
        !push_model_of(L, name, value))
        luaL_error(L,
                   "%s: field '%s' must be \"provider/model\", or a table with model = "
                   "\"provider/model\" and its properties",
                   who->what, lua_tostring(L, name));
    model.p = lua_tolstring(L, -1, &model.n); /* -- ... aliases name value model */
    if (lua_istable(L, value))
        add_row(L, who, model, value);
    if (!lua_istable(L, value) ||
        !lua_rawequal(L, -1, name)) { /* a row under the model's own name is not an alias */
        lua_pushvalue(L, name);
        lua_pushvalue(L, -2);
        lua_rawset(L, aliases);
    }
    lua_settop(L, value);
}

/* Takes the table at 1, models by name. */
static void take_all(lua_State *L, const speaker *who)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, ALIASES); /* -- map aliases */
    lua_pushnil(L);
    while (lua_next(L, 1)) { /* -- map aliases name value */
        take_one(L, who);
        lua_pop(L, 1);
    }
}

/* ah.alias { fast = "groq/llama-3.3-70b-versatile", new = { model = "openai/gpt-9", ... } } */
static int lua_alias(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    take_all(L, &by_script);
    return 0;
}

/* ah.aliases(): name -> "provider/model", a new table. */
static int known_aliases(lua_State *L)
{
    lua_settop(L, 0);
    lua_newtable(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, ALIASES);
    lua_pushnil(L);
    while (lua_next(L, 2)) { /* -- copy aliases name model */
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, 1);
    }
    lua_settop(L, 1);
    return 1;
}

void ah_lua_push_model(lua_State *L, int idx)
{
    lua_pushvalue(L, idx);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, ALIASES);
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -2) == LUA_TSTRING)
        lua_replace(L, -3);
    else
        lua_pop(L, 1);
    lua_pop(L, 1);
}

/* -- from C ------------------------------------------------------------------------------------ */

int ah_lua_set_models(lua_State *L)
{
    ah_slice json = ah_slice_of(lua_touserdata(L, 1));
    ah_lua *h = ah_lua_of(L);
    ah_err err;

    if (ah_json_check_err(&h->mem, json, by_settings.what, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (ah_json_kind_of(json) != AH_JSON_OBJECT)
        return ah_lua_raise(L, AH_USAGE, "%s: expected a JSON object", by_settings.what);
    lua_settop(L, 0);
    ah_lua_push_json(L, json);
    take_all(L, &by_settings);
    return 0;
}

void ah_lua_open_models(lua_State *L)
{
    lua_pushcfunction(L, lua_alias);
    lua_setfield(L, -2, "alias");
    lua_pushcfunction(L, known_aliases);
    lua_setfield(L, -2, "aliases");
}
