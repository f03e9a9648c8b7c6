/* ahtest.model_order(a, b) and ahtest.model_rows(): the contents of the table of models
 * (wire/models.h). */
#include "ahtest.h"
#include "wire/models.h"

static bool version_at(lua_State *L, int idx, ah_model_version *out)
{
    ah_slice s;
    size_t used;

    s.p = luaL_checklstring(L, idx, &s.n);
    return ah_model_version_read(s, out, &used);
}

/* Returns -1, 0 or 1, as two versions compare; nil if one is not a version. */
static int model_order(lua_State *L)
{
    ah_model_version a, b;
    int order;

    if (!version_at(L, 1, &a) || !version_at(L, 2, &b))
        return 0;
    order = ah_model_version_cmp(&a, &b);
    lua_pushinteger(L, (order > 0) - (order < 0));
    return 1;
}

/* Returns a list of { pattern, since, home, source, date }. */
static int model_rows(lua_State *L)
{
    lua_createtable(L, (int)ah_model_rows_n, 0);
    for (size_t i = 0; i < ah_model_rows_n; i++) {
        const ah_model_row *r = &ah_model_rows[i];

        lua_createtable(L, 0, 6);
        lua_pushstring(L, r->pattern);
        lua_setfield(L, -2, "pattern");
        lua_pushstring(L, r->since);
        lua_setfield(L, -2, "since");
        lua_pushstring(L, r->home);
        lua_setfield(L, -2, "home");
        lua_pushstring(L, r->source ? r->source->name : NULL);
        lua_setfield(L, -2, "source");
        lua_pushstring(L, r->source ? r->source->date : NULL);
        lua_setfield(L, -2, "date");
        lua_pushnumber(L, r->prices.input);
        lua_setfield(L, -2, "input");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

void ahtest_open_models(lua_State *L)
{
    lua_pushcfunction(L, model_order);
    lua_setfield(L, -2, "model_order");
    lua_pushcfunction(L, model_rows);
    lua_setfield(L, -2, "model_rows");
}
