/* Adapters as Lua objects: those written in Lua (the base of ah.adapter, ah.scripted and demo/
 * models) and those opened by name. lua_exchange.c calls the function of an adapter. */
#include "lua/lua_adapter.h"

#include <stdlib.h>

#include "lua/lua_error.h"
#include "lua/lua_exchange.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_models.h"
#include "lua/lua_modules.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"
#include "wire/providers.h"
#include "lua/lua_options.h"

static const char ADAPTER[] = "agenthost.adapter";

enum { MAX_KNOWN = 2 << 10 };

static void release(ah_scripted *s)
{
    ah_lua_adapter *a = (ah_lua_adapter *)s;

    ah_lua_exchange_release(a);
    ah_lua_unref(a->lua, &a->ref);
    ah_lua_unref(a->lua, &a->asks);
    ah_lua_unref(a->lua, &a->told);
    ah_tool_unref(a->runs);
    ah_free(s->native.base.mem, a);
}

/* (asks, call) -- boolean */
static int ask(lua_State *L)
{
    const ah_lua_adapter *a = lua_touserdata(L, 1);
    const ah_slot *slot = ((const ah_call *)lua_touserdata(L, 2))->slot;

    lua_rawgeti(L, LUA_REGISTRYINDEX, a->asks);
    lua_pushlstring(L, slot->name->data, slot->name->len);
    lua_pushlstring(L, slot->arguments->data, slot->arguments->len);
    lua_pushlstring(L, slot->id->data, slot->id->len);
    lua_call(L, 3, 1);
    return 1;
}

static ah_status stand_in(ah_scripted *s, const ah_call *call, ah_tool **out, ah_err *err)
{
    ah_lua_adapter *a = (ah_lua_adapter *)s;
    lua_State *L = a->lua->caller;
    ah_status st;

    if (a->asks == LUA_NOREF)
        return AH_OK;
    if (!lua_checkstack(L, 3))
        return ah_err_nomem(err);
    lua_pushcfunction(L, ask);
    lua_pushlightuserdata(L, a);
    lua_pushlightuserdata(L, (void *)(uintptr_t)call);
    if ((st = ah_lua_call(a->lua, L, 2, 1, err)) != AH_OK)
        return st;
    *out = lua_toboolean(L, -1) ? a->runs : NULL;
    lua_pop(L, 1);
    return AH_OK;
}

static ah_adapter *new_adapter(ah_lua *h, ah_slice provider, ah_slice model, int mode)
{
    ah_lua_adapter *a = ah_alloc(&h->mem, sizeof *a);
    ah_adapter *base;

    if (!a)
        return NULL;
    *a = (ah_lua_adapter){.scripted = {.start = ah_lua_exchange_start,
                                       .stop = ah_lua_exchange_stop,
                                       .rest = ah_lua_exchange_rest,
                                       .leave = ah_lua_exchange_leave,
                                       .release = release,
                                       .stand_in = stand_in},
                          .lua = h,
                          .ref = LUA_NOREF,
                          .asks = LUA_NOREF,
                          .told = LUA_NOREF};
    base = &a->scripted.native.base;
    *base = (ah_adapter){.vt = &ah_scripted_vt,
                         .mem = &h->mem,
                         .refs = 1,
                         .stream = true,
                         .tool_change_mode = (ah_tool_change_mode)mode};
    base->provider = ah_text_new(&h->mem, provider);
    base->model = ah_text_new(&h->mem, model);
    base->endpoint = ah_text_new(&h->mem, (ah_slice){"", 0});
    if (base->provider && base->model && base->endpoint) {
        base->lane = ah_adapter_lane(provider, (ah_slice){"", 0}, (ah_slice){"", 0});
        return base;
    }
    ah_adapter_unref(base);
    return NULL;
}

/* Reads the functions at 8 (asks) and 9 (runs); the adapter's object is on top. */
static void read_doubles(lua_State *L, ah_lua_adapter *a)
{
    luaL_checktype(L, 8, LUA_TFUNCTION);
    lua_pushliteral(L, "double");
    ah_lua_push_executor(L, -1, 9);
    a->runs = ah_tool_ref(ah_lua_to_tool(L, -1));
    lua_pop(L, 2);
    lua_pushvalue(L, 8);
    a->asks = ah_lua_ref(L);
}

/* Reads the wire at 11: the adapter then writes lines of this wire. */
static void read_wire(lua_State *L, ah_lua_adapter *a)
{
    ah_scripted_read(&a->scripted, (size_t)luaL_checkoption(L, 11, NULL, ah_scripted_wires));
    a->reads = true;
}

/* _adapter(provider, model, function(exchange), methods, tool_change_mode = "append", begins_only,
 * images = true, asks, runs, `told`, reads, annotated, alone, billed). asks(name, arguments as
 * text, call_id) returns true if runs(args, ctx) replaces the handler. `told`(what, conversation)
 * is called when the data kept for a conversation must be freed; without a conversation it means
 * all. reads: the wire of x:line. alone: other adapters of this name know nothing of its failures.
 */
static int lua_new_adapter(lua_State *L)
{
    ah_slice provider, model;
    ah_adapter **box;
    int mode;

    lua_settop(L, 14);
    provider.p = luaL_checklstring(L, 1, &provider.n);
    model.p = luaL_checklstring(L, 2, &model.n);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    luaL_checktype(L, 4, LUA_TTABLE);
    mode = luaL_checkoption(L, 5, "append", ah_tool_change_mode_names);
    box = lua_newuserdatauv(L, sizeof *box, 1);
    *box = NULL;
    luaL_setmetatable(L, ADAPTER);
    if (!(*box = new_adapter(ah_lua_of(L), provider, model, mode)))
        return ah_lua_raise_nomem(L);
    (*box)->begins_only = lua_toboolean(L, 6);
    (*box)->alone = lua_toboolean(L, 13) ? ++ah_lua_of(L)->host->lanes.alone : 0;
    (*box)->images = lua_isnoneornil(L, 7) || lua_toboolean(L, 7) ? AH_IMAGES_ALL : 0;
    lua_pushvalue(L, 4);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, 3);
    ((ah_lua_adapter *)*box)->ref = ah_lua_ref(L);
    if (!lua_isnoneornil(L, 8))
        read_doubles(L, (ah_lua_adapter *)*box);
    if (!lua_isnil(L, 11))
        read_wire(L, (ah_lua_adapter *)*box);
    ((ah_lua_adapter *)*box)->scripted.annotated = lua_toboolean(L, 12);
    (*box)->billed = lua_toboolean(L, 14);
    if (lua_isfunction(L, 10)) {
        lua_pushvalue(L, 10);
        ((ah_lua_adapter *)*box)->told = ah_lua_ref(L);
    }
    return 1;
}

static void push_capabilities(lua_State *L, const ah_adapter *a);

/* Returns a method that the adapter's script gave it, else a fact about its abilities. */
static int adapter_index(lua_State *L)
{
    static const char *const known[] = {"done",
                                        "requests",
                                        "provider",
                                        "model",
                                        "supports_dynamic_tools",
                                        "tool_change_mode",
                                        "native_output",
                                        "reasoning_back",
                                        "tool_search",
                                        "images",
                                        "strict_tools",
                                        NULL};
    const ah_adapter *a = *(ah_adapter **)luaL_checkudata(L, 1, ADAPTER);

    lua_getiuservalue(L, 1, 1);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TNIL)
        return 1;
    push_capabilities(L, a);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) == LUA_TNIL)
        return ah_lua_unknown(L, "adapter", known, ah_slice_of(luaL_checkstring(L, 2)));
    return 1;
}

static int adapter_gc(lua_State *L)
{
    ah_adapter **box = luaL_checkudata(L, 1, ADAPTER);

    ah_adapter_unref(*box);
    *box = NULL;
    return ah_lua_retire(L);
}

static int adapter_tostring(lua_State *L)
{
    ah_adapter *a = *(ah_adapter **)luaL_checkudata(L, 1, ADAPTER);

    lua_pushfstring(L, "adapter %s/%s", a->provider->data, a->model->data);
    return 1;
}

/* -- from a name to an adapter ---------------------------------------------------------------- */

/* A replay sends no requests, so it needs no key. */
static const char *environment(void *ud, const char *name)
{
    const ah_lua *h = ud;
    const char *value = getenv(name), *key = strstr(name, "_KEY");

    if (h->host->replay && key && !key[4] && (!value || !*value))
        return "replayed";
    return value;
}

/* demo/NAME: require("agenthost.providers.demo")(NAME) returns an adapter object. */
static ah_status open_demo(lua_State *L, ah_slice name, ah_adapter **out, ah_err *err)
{
    ah_lua *h = ah_lua_of(L);
    ah_adapter **box;
    ah_status st;

    if ((st = ah_lua_module(L, "agenthost.providers.demo", err)) != AH_OK)
        return st;
    lua_pushlstring(L, name.p, name.n);
    if ((st = ah_lua_call(h, L, 1, 1, err)) != AH_OK)
        return st;
    box = luaL_testudata(L, -1, ADAPTER);
    if (box)
        *out = ah_adapter_ref(*box);
    lua_pop(L, 1);
    return box ? AH_OK : ah_err_set(err, AH_USAGE, "model: there is no demo/%.*s", AH_FMT(name));
}

static const ah_service claude = {
    .name = AH_CLAUDE,
    .url = "https://api.anthropic.com", /* the command's default address */
    .url_env = {"ANTHROPIC_BASE_URL"},
    .key_env = {"ANTHROPIC_API_KEY"},
    .keyless = true, /* a logged-in user needs none */
};

/* Settings of a model of the claude command, collected before its adapter is made. */
typedef struct commanded {
    ah_wire_native native;
    ah_tool_change_mode mode;
} commanded;

/* (commanded) -- adapter object */
static int make_claude(lua_State *L)
{
    const commanded *c = lua_touserdata(L, 1);
    ah_slice key = c->native.key ? ah_secret_reveal(c->native.key) : (ah_slice){NULL, 0};

    lua_pushcfunction(L, ah_lua_load_module_once);
    lua_pushliteral(L, "agenthost.providers.claude");
    lua_call(L, 1, 1);
    lua_createtable(L, 0, 5); /* -- c module given */
    lua_pushstring(L, c->native.base.model->data);
    lua_setfield(L, -2, "model");
    lua_pushstring(L, ah_tool_change_mode_names[c->mode]);
    lua_setfield(L, -2, "tool_change_mode");
    if (key.p) {
        lua_pushlstring(L, key.p, key.n);
        lua_setfield(L, -2, "key");
    }
    if (!ah_slice_is(ah_text_slice(c->native.base.endpoint), claude.url)) {
        lua_pushstring(L, c->native.base.endpoint->data);
        lua_setfield(L, -2, "url");
    }
    lua_pushnumber(L, (lua_Number)c->native.limits.idle_ms / 1000);
    lua_setfield(L, -2, "idle");
    lua_call(L, 1, 1);
    luaL_checkudata(L, -1, ADAPTER);
    return 1;
}

static void take_claude(const commanded *c, ah_adapter *a)
{
    ah_text_set(&a->endpoint, ah_text_ref(c->native.base.endpoint));
    a->lane = c->native.base.lane;
    a->images = AH_IMAGES_USER | AH_IMAGES_RESULT_DATA;
    a->cost_told = AH_COST_LAST;
    a->billed = true;
    ((ah_scripted *)a)->service.key_env[0] = claude.key_env[0];
}

/* claude_agent_sdk/NAME: a Lua module makes the adapter from these settings. */
static ah_status open_claude(lua_State *L, ah_slice name, const ah_provider_options *o,
                             ah_adapter **out, ah_err *err)
{
    commanded c = {.mode = AH_TOOLS_RESTART};
    ah_status st =
        ah_provider_mode(o, AH_CLAUDE, 1 << AH_TOOLS_RESTART | 1 << AH_TOOLS_LIST_CHANGED,
                         AH_TOOLS_RESTART, &c.mode, err);

    if (st == AH_OK)
        st = ah_wire_native_fill(&c.native, &claude, name, o, err);
    if (st == AH_OK && !lua_checkstack(L, 2))
        st = ah_err_nomem(err);
    if (st == AH_OK) {
        lua_pushcfunction(L, make_claude);
        lua_pushlightuserdata(L, &c);
        st = ah_lua_call(ah_lua_of(L), L, 1, 1, err);
    }
    if (st == AH_OK) {
        *out = ah_adapter_ref(*(ah_adapter **)lua_touserdata(L, -1));
        take_claude(&c, *out);
        lua_pop(L, 1);
    }
    ah_text_unref(c.native.base.provider);
    ah_text_unref(c.native.base.model);
    ah_text_unref(c.native.base.endpoint);
    return st;
}

/* -- names --------------------------------------------------------------------------- */

static ah_status open_named(lua_State *L, ah_slice s, ah_provider_options *o, ah_adapter **out,
                            ah_err *err)
{
    const char *slash = memchr(s.p, '/', s.n), *meant = slash ? NULL : ah_model_home(s);

    if (!ah_utf8_valid(s))
        return ah_err_set(err, AH_USAGE, "model: the name is not UTF-8");
    if (meant && !memchr(s.p, '\0', s.n))
        return ah_err_set(
            err, AH_USAGE,
            "model: '%.*s' is not of the form provider/model (did you mean '%s/%.*s'?)", AH_FMT(s),
            meant, AH_FMT(s));
    if (!slash || slash == s.p || slash + 1 == s.p + s.n || memchr(s.p, '\0', s.n))
        return ah_err_set(err, AH_USAGE,
                          "model: '%.*s' is not of the form provider/model, such as openai/gpt-4o, "
                          "nor an alias",
                          AH_FMT(s));
    if (ah_slice_is((ah_slice){s.p, (size_t)(slash - s.p)}, "demo"))
        return open_demo(L, (ah_slice){slash + 1, (size_t)(s.p + s.n - slash - 1)}, out, err);
    o->getenv = environment;
    o->ud = ah_lua_of(L);
    o->models = ah_lua_of(L)->models;
    if (ah_slice_is((ah_slice){s.p, (size_t)(slash - s.p)}, AH_CLAUDE))
        return open_claude(L, (ah_slice){slash + 1, (size_t)(s.p + s.n - slash - 1)}, o, out, err);
    return ah_provider_open((ah_slice){s.p, (size_t)(slash - s.p)},
                            (ah_slice){slash + 1, (size_t)(s.p + s.n - slash - 1)}, o, out, err);
}

bool ah_lua_is_adapter(lua_State *L, int idx)
{
    return luaL_testudata(L, idx, ADAPTER) != NULL;
}

ah_status ah_lua_to_adapter(lua_State *L, int idx, ah_provider_options *o, ah_adapter **out,
                            ah_err *err)
{
    ah_adapter **box = luaL_testudata(L, idx, ADAPTER);
    ah_slice s;
    ah_status st;

    if (box && o->tool_change_mode.p)
        return ah_err_set(err, AH_USAGE, "tool_change_mode: an adapter has its own");
    if (box) {
        *out = ah_adapter_ref(*box);
        return AH_OK;
    }
    if (lua_type(L, idx) != LUA_TSTRING)
        return ah_err_set(err, AH_USAGE,
                          "model: expected \"provider/model\" or an adapter, found %s",
                          luaL_typename(L, idx));
    ah_lua_push_model(L, idx); /* -- name */
    s.p = lua_tolstring(L, -1, &s.n);
    st = open_named(L, s, o, out, err);
    lua_pop(L, 1);
    return st;
}

/* Sets a field of the table on top; leaves out a 0. */
static void set_count(lua_State *L, const char *name, int64_t n)
{
    if (!n)
        return;
    lua_pushinteger(L, n);
    lua_setfield(L, -2, name);
}

static void set_efforts(lua_State *L, unsigned efforts)
{
    lua_createtable(L, AH_EFFORTS, 0);
    for (int i = 0, n = 0; i < AH_EFFORTS; i++)
        if (efforts & 1u << i) {
            lua_pushstring(L, ah_effort_names[i]);
            lua_rawseti(L, -2, ++n);
        }
    lua_setfield(L, -2, "efforts");
}

/* The table is on top. */
static void set_prices(lua_State *L, const char *name, const ah_model_prices *p)
{
    lua_createtable(L, 0, 4);
    lua_pushnumber(L, p->input);
    lua_setfield(L, -2, "input");
    lua_pushnumber(L, p->cached_read);
    lua_setfield(L, -2, "cached_read");
    lua_pushnumber(L, p->cached_write);
    lua_setfield(L, -2, "cached_write");
    lua_pushnumber(L, p->output);
    lua_setfield(L, -2, "output");
    lua_setfield(L, -2, name);
}

/* Sets `prices`, their date, and the prices of long requests. */
static void set_all_prices(lua_State *L, const ah_model *m)
{
    const ah_model_prices *p = &m->prices;
    const ah_model_tier *t = m->tier;

    set_prices(L, "prices", p);
    if (m->priced_on && !m->supposed) {
        lua_pushstring(L, m->priced_on);
        lua_setfield(L, -2, "prices_of");
    }
    if (!t)
        return;
    set_prices(L, "long_prices",
               &(ah_model_prices){.input = p->input * t->input,
                                  .cached_read = p->cached_read * t->input,
                                  .cached_write = p->cached_write * t->input,
                                  .output = p->output * t->output});
    set_count(L, "long_above", t->above);
}

/* Sets the known facts about the model in the table on top; leaves out unknown ones. */
static void push_known(lua_State *L, const ah_adapter *a)
{
    const ah_model *m = &a->known;
    ah_slice learned = ah_models_learned(ah_lua_of(L)->models, ah_text_slice(a->provider),
                                         ah_text_slice(a->model));
    ah_buf *b = ah_lua_push_buf(L, MAX_KNOWN); /* -- t buf */

    ah_model_put_known(m, learned, b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    ah_lua_push_json(L, ah_buf_slice(b));
    lua_setfield(L, -3, "known");
    lua_pop(L, 1);
    set_count(L, "context_window", m->window);
    set_count(L, "max_output", m->output);
    if (m->priced)
        set_all_prices(L, m);
    if (m->efforts)
        set_efforts(L, m->efforts);
}

static void push_capabilities(lua_State *L, const ah_adapter *a)
{
    lua_createtable(L, 0, 17);
    if (a->known.asked)
        push_known(L, a);
    lua_pushstring(L, a->provider->data);
    lua_setfield(L, -2, "provider");
    lua_pushstring(L, a->model->data);
    lua_setfield(L, -2, "model");
    lua_pushboolean(L, a->tool_change_mode != AH_TOOLS_RESTART);
    lua_setfield(L, -2, "supports_dynamic_tools");
    lua_pushstring(L, ah_tool_change_mode_names[a->tool_change_mode]);
    lua_setfield(L, -2, "tool_change_mode");
    lua_pushboolean(L, a->native_output);
    lua_setfield(L, -2, "native_output");
    lua_pushboolean(L, a->reasoning_back);
    lua_setfield(L, -2, "reasoning_back");
    lua_pushstring(L, a->search & AH_SEARCH_OWN ? "provider" : "here");
    lua_setfield(L, -2, "tool_search");
    lua_pushboolean(L, a->images != 0);
    lua_setfield(L, -2, "images");
    lua_pushboolean(L, a->strict_tools != AH_STRICT_NONE);
    lua_setfield(L, -2, "strict_tools");
}

static const ah_option capabilities_rows[] = {
    {.name = "base_url",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_SLICE(ah_provider_options, base_url),
     .doc = "the server's address"},
    {.name = "api_key", .kinds = AH_OPT_STRING, .to = AH_TO_SLICE(ah_provider_options, api_key)},
    {0},
};
const ah_subject ah_subject_capabilities = {
    .what = "ah.capabilities", .type = "ah.CapabilitiesOf", .row = capabilities_rows};

/* ah.capabilities(model, { base_url, api_key }): a table, or nil and an error if the key is
 * missing. */
static int capabilities(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_provider_options o = {.mem = &h->mem, .secrets = &h->host->secrets};
    ah_adapter **box;
    ah_status st;
    ah_err err;

    lua_settop(L, 2);
    if (!lua_isnil(L, 2))
        ah_options_read(L, 2, &ah_subject_capabilities, &o);
    box = lua_newuserdatauv(L, sizeof *box, 1);
    *box = NULL;
    luaL_setmetatable(L, ADAPTER);
    o.limits = ah_http_limits_default;
    st = ah_lua_to_adapter(L, 1, &o, box, &err);
    if (st == AH_PROVIDER) {
        lua_pushnil(L);
        ah_lua_push_error(L, &err);
        return 2;
    }
    if (st != AH_OK)
        return ah_lua_raise_err(L, &err);
    push_capabilities(L, *box);
    return 1;
}

static void push_names(lua_State *L, const char *const names[AH_SERVICE_NAMES])
{
    lua_newtable(L);
    for (int i = 0; i < AH_SERVICE_NAMES && names[i]; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* ah.providers(): a list of { name, url, url_env, key_env, keyless }, with the adapters'
 * defaults. */
static int known_providers(lua_State *L)
{
    const ah_service *s;
    const char *name;

    lua_newtable(L);
    for (size_t i = 0; (name = ah_provider_at(i, &s)) != NULL; i++) {
        lua_createtable(L, 0, 5); /* -- list provider */
        lua_pushstring(L, name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, s->url);
        lua_setfield(L, -2, "url");
        push_names(L, s->url_env);
        lua_setfield(L, -2, "url_env");
        push_names(L, s->key_env);
        lua_setfield(L, -2, "key_env");
        lua_pushboolean(L, s->keyless);
        lua_setfield(L, -2, "keyless");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

void ah_lua_open_adapter(lua_State *L)
{
    static const luaL_Reg adapter_meta[] = {{"__gc", adapter_gc},
                                            {"__tostring", adapter_tostring},
                                            {"__index", adapter_index},
                                            {NULL, NULL}};

    ah_lua_open_exchange(L);
    luaL_newmetatable(L, ADAPTER);
    luaL_setfuncs(L, adapter_meta, 0);
    lua_pop(L, 1);
    lua_pushcfunction(L, lua_new_adapter);
    lua_setfield(L, -2, "_adapter");
    lua_pushcfunction(L, capabilities);
    lua_setfield(L, -2, "capabilities");
    lua_pushcfunction(L, known_providers);
    lua_setfield(L, -2, "providers");
}
