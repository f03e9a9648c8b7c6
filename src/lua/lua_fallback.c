/* fallback = { "provider/model" | adapter | { model, base_url, api_key, tool_change_mode }, ...,
 * after_output = false }. run/run_fallback.c decides when a fallback is used. */
#include "lua/lua_fallback.h"
#include "lua/lua_options.h"

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

static const ah_option fallback_rows[] = {
    {.name = "after_output",
     .kinds = AH_OPT_BOOLEAN,
     .to = AH_TO_BOOL(ah_fallbacks, after_output),
     .doc = "even where a piece of the answer was shown"},
    {0},
};
const ah_subject ah_subject_fallback = {
    .what = "ah.run: fallback",
    .type = "ah.Fallback",
    .doc = "models that go on where the one before is overloaded or out",
    .list = "string|ah.Adapter|ah.FallbackModel",
    .row = fallback_rows};

static const ah_option fallback_model_rows[] = {
    {.name = "model",
     .kinds = AH_OPT_STRING | AH_OPT_OBJECT,
     .type = "string|ah.Adapter",
     .needed = true,
     .doc = "`provider/model`, or what `ah.scripted` returns"},
    {.name = "base_url",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_SLICE(ah_provider_options, base_url),
     .doc = "the server's address"},
    {.name = "api_key",
     .kinds = AH_OPT_STRING,
     .otherwise = "from the environment",
     .to = AH_TO_SLICE(ah_provider_options, api_key)},
    {.name = "tool_change_mode",
     .kinds = AH_OPT_STRING,
     .otherwise = "the model's own",
     .type = "ah.ToolChangeMode",
     .to = AH_TO_SLICE(ah_provider_options, tool_change_mode)},
    {0},
};
const ah_subject ah_subject_fallback_model = {
    .what = "ah.run: fallback", .type = "ah.FallbackModel", .row = fallback_model_rows};

/* With one item on top: pushes its model. */
static void push_model(lua_State *L, ah_provider_options *o)
{
    if (!lua_istable(L, -1)) {
        lua_pushvalue(L, -1);
        return;
    }
    ah_options_read(L, -1, &ah_subject_fallback_model, o);
    lua_getfield(L, -1, "model");
}

/* Reads the i-th item of the list, on top. */
static void read_item(lua_State *L, int i, const ah_log *log, ah_provider_options o,
                      ah_fallbacks *f)
{
    ah_status st;
    ah_err err;

    push_model(L, &o); /* -- item model */
    st = ah_lua_to_adapter(L, -1, &o, &f->item[f->n], &err);
    lua_pop(L, 1);
    if (st == AH_OK)
        f->n++;
    else if (st == AH_PROVIDER)
        ah_log_put(log, AH_LOG_WARNING, "fallback %d is skipped: %s", i, err.message);
    else if (st == AH_NOMEM)
        ah_lua_raise_err(L, &err);
    else
        ah_lua_raise(L, AH_USAGE, "ah.run: fallback[%d]: %s", i, err.message);
}

void ah_lua_read_fallbacks(lua_State *L, const ah_log *log, const ah_provider_options *o,
                           ah_fallbacks *f)
{
    lua_Integer n;

    if (!ah_lua_field_push(L, 1, "ah.run", "fallback", LUA_TTABLE))
        return;
    ah_options_read(L, -1, &ah_subject_fallback, f);
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
