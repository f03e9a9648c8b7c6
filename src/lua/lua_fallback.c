/* fallback = { "provider/model" | adapter | { model, base_url, api_key, tool_change_mode }, ...,
 * after_output = false }. When which is taken is decided in run/run_fallback.c. */
#include "lua/lua_fallback.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"

void ah_lua_fallbacks_clear(ah_fallbacks *f)
{
    for (size_t i = 0; i < f->n; i++)
        ah_adapter_unref(f->item[i]);
    f->n = 0;
}

void ah_lua_fallbacks_copy(ah_fallbacks *f, const ah_fallbacks *from)
{
    *f = *from;
    for (size_t i = 0; i < f->n; i++)
        ah_adapter_ref(f->item[i]);
}

/* One item on top: leaves the model on top of it. */
static void push_model(lua_State *L, ah_provider_options *o)
{
    static const char *const known[] = {"model", "base_url", "api_key", "tool_change_mode", NULL};
    static const char what[] = "ah.run: fallback";

    if (!lua_istable(L, -1)) {
        lua_pushvalue(L, -1);
        return;
    }
    ah_fields_check(L, -1, what, known, false);
    ah_field_string(L, -1, what, "base_url", &o->base_url);
    ah_field_string(L, -1, what, "api_key", &o->api_key);
    ah_field_string(L, -1, what, "tool_change_mode", &o->tool_change_mode);
    lua_getfield(L, -1, "model");
}

/* The i-th item on top, of those that are there. */
static void read_item(lua_State *L, int i, const ah_log *log, ah_provider_options o, ah_fallbacks *f)
{
    ah_status st;
    ah_err err;

    push_model(L, &o); /* -- item model */
    st = ah_lua_to_adapter(L, -1, &o, &f->item[f->n], &err);
    lua_pop(L, 1);
    if (st == AH_OK)
        f->n++;
    else if (st == AH_PROVIDER)
        ah_log_put(log, AH_LOG_WARNING, "fallback %d is passed over: %s", i, err.message);
    else if (st == AH_NOMEM)
        ah_lua_raise_err(L, &err);
    else
        ah_lua_raise(L, AH_USAGE, "ah.run: fallback[%d]: %s", i, err.message);
}

void ah_lua_read_fallbacks(lua_State *L, const ah_log *log, const ah_provider_options *o,
                           ah_fallbacks *f)
{
    static const char *const known[] = {"after_output", NULL};
    lua_Integer n;

    if (!ah_field_push(L, 1, "ah.run", "fallback", LUA_TTABLE))
        return;
    ah_fields_check(L, -1, "ah.run: fallback", known, true);
    ah_field_bool(L, -1, "ah.run: fallback", "after_output", &f->after_output);
    n = luaL_len(L, -1);
    if (n > AH_MAX_FALLBACKS)
        ah_lua_raise(L, AH_USAGE, "ah.run: field 'fallback' holds %d models at most, found %d",
                     AH_MAX_FALLBACKS, (int)n);
    for (int i = 1; i <= n; i++) {
        lua_geti(L, -1, i);
        read_item(L, i, log, *o, f);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}
