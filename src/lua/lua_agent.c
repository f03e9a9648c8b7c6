/* ah.run and ah.agent: from a table of named fields to a run, and back to a reply. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "lua/lua_adapter.h"
#include "lua/lua_agent.h"
#include "lua/lua_ctx.h"
#include "lua/lua_image.h"
#include "lua/lua_limits.h"
#include "lua/lua_registry.h"
#include "lua/lua_reply.h"
#include "lua/lua_resources.h"
#include "lua/lua_prompt_fields.h"
#include "lua/lua_session.h"
#include "lua/lua_task.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"
#include "run/pick.h"

static const char RUN[] = "agenthost.run";

enum { MAX_SETTINGS = 4 << 20, MAX_SYSTEM = 64 << 20, DEFAULT_ITERATIONS = 20, DEFAULT_RETRIES = 2 };

/* One run at work. */
typedef struct ah_lua_run {
    ah_lua_agent *agent;
    ah_driven *driven;
    ah_waiter waiter;
    size_t first;      /* the transcript's length before it */
    int resources;     /* reference, lua_resources.h */
    const ah_tap *tap; /* NULL: a script's run */
} run;

/* -- reading the fields -------------------------------------------------------------- */

static const char *const fields[] = {"model",
                                     "system",
                                     "prompt",
                                     "params",
                                     "overrides",
                                     "output",
                                     "messages",
                                     "tools",
                                     "options",
                                     "base_url",
                                     "api_key",
                                     "stream",
                                     "http",
                                     "on",
                                     "log",
                                     "max_iterations",
                                     "on_max",
                                     "on_unknown_tool",
                                     "timeout",
                                     "deadline",
                                     "retries",
                                     "strategies",
                                     "max_tools",
                                     "on_conflict",
                                     "hint",
                                     "max_restarts",
                                     "policies",
                                     "approve",
                                     "feedback",
                                     "checks",
                                     "budget",
                                     "tool_change_mode",
                                     "loop_detector",
                                     "session",
                                     "resources",
                                     "discover",
                                     "max_depth",
                                     "fallback",
                                     "registry",
                                     "executors",
                                     "brief",
                                     "keep_picked",
                                     NULL};

/* One of two words; true when it is the second. */
static bool read_choice(lua_State *L, const char *field, const char *first, const char *second)
{
    ah_slice s;

    if (!ah_field_string(L, 1, "ah.run", field, &s) || ah_slice_is(s, first))
        return false;
    if (!ah_slice_is(s, second))
        ah_lua_raise(L, AH_USAGE, "ah.run: field '%s' must be \"%s\" or \"%s\", found \"%.*s\"", field,
                     first, second, AH_FMT(s));
    return true;
}

static void read_limits(lua_State *L, ah_lua_agent *a)
{
    a->limits.max_iterations = DEFAULT_ITERATIONS;
    a->limits.retries = DEFAULT_RETRIES;
    ah_field_count(L, 1, "ah.run", "max_iterations", 1, &a->limits.max_iterations);
    ah_field_count(L, 1, "ah.run", "retries", 0, &a->limits.retries);
    ah_field_number(L, 1, "ah.run", "timeout", 0.001, &a->limits.timeout);
    ah_field_number(L, 1, "ah.run", "deadline", 0, &a->limits.deadline);
    a->limits.answer_on_max = read_choice(L, "on_max", "error", "answer");
    a->limits.throw_on_unknown = read_choice(L, "on_unknown_tool", "answer", "throw");
    ah_lua_read_loop(L, 1, &a->lua->mem, &a->limits.loop, &a->exempt);
}

/* Agent on top. A session of its own where the script gives none. */
static void read_session(lua_State *L, ah_lua_agent *a)
{
    if (lua_getfield(L, 1, "session") == LUA_TNIL) {
        lua_pop(L, 1);
        a->session = ah_lua_push_new_session(L);
    } else if (!(a->session = ah_lua_to_session(L, -1))) {
        ah_lua_raise(L, AH_USAGE, "ah.run: field 'session' must be made by ah.session, found a %s",
                     luaL_typename(L, -1));
    }
    lua_setiuservalue(L, -2, AH_AGENT_SESSION);
}

static void seconds(lua_State *L, const char *name, int64_t *ms)
{
    double s;

    if (ah_field_number(L, -1, "ah.run: http", name, 0.001, &s))
        *ms = (int64_t)(s * 1000);
}

static void read_http(lua_State *L, ah_http_limits *limits)
{
    static const char *const known[] = {"connect_timeout", "idle_timeout", "total_timeout",
                                        "max_header",      "max_body",     NULL};
    double bytes;

    *limits = ah_http_limits_default;
    if (!ah_field_push(L, 1, "ah.run", "http", LUA_TTABLE))
        return;
    ah_fields_check(L, -1, "ah.run: http", known, false);
    seconds(L, "connect_timeout", &limits->connect_ms);
    seconds(L, "idle_timeout", &limits->idle_ms);
    seconds(L, "total_timeout", &limits->total_ms);
    if (ah_field_number(L, -1, "ah.run: http", "max_header", 1, &bytes))
        limits->header_bytes = (size_t)bytes;
    if (ah_field_number(L, -1, "ah.run: http", "max_body", 1, &bytes))
        limits->body_bytes = (size_t)bytes;
    lua_pop(L, 1);
}

/* Pushes the model: from outside, the script, the conversation, the environment, in this order. */
static void push_model(lua_State *L, const ah_lua_agent *a)
{
    const char *env = getenv("AGENTHOST_MODEL");
    ah_slice saved = ah_json_member(ah_transcript_last(a->transcript, AH_ENTRY_SETTINGS), "model");

    if (a->lua->model) {
        lua_pushstring(L, a->lua->model->data);
        return;
    }
    if (lua_getfield(L, 1, "model") != LUA_TNIL)
        return;
    lua_pop(L, 1);
    if (saved.p)
        ah_lua_push_json(L, saved);
    else if (env && *env)
        lua_pushstring(L, env);
    else
        ah_lua_raise(L, AH_USAGE,
                     "ah.run: no model: give model = \"provider/model\", --model or AGENTHOST_MODEL "
                     "(demo/echo needs no key and no network)");
}

/* A wrong name is the script's mistake and raised; what the world lacks (a key) is not. */
static ah_status read_model(lua_State *L, ah_lua_agent *a, ah_err *err)
{
    ah_adapter *now = NULL;
    ah_provider_options o = {.mem = &a->lua->mem, .secrets = &a->lua->host->secrets};
    ah_status st;

    o.stream = ah_observer_wants(&a->observer, AH_EVENT_CONTENT);
    ah_field_bool(L, 1, "ah.run", "stream", &o.stream);
    ah_field_string(L, 1, "ah.run", "base_url", &o.base_url);
    ah_field_string(L, 1, "ah.run", "api_key", &o.api_key);
    ah_field_string(L, 1, "ah.run", "tool_change_mode", &o.tool_change_mode);
    read_http(L, &o.limits);
    push_model(L, a);
    st = ah_lua_to_adapter(L, -1, &o, &now, err);
    if (st == AH_OK) {
        ah_adapter_unref(a->adapter);
        a->adapter = now;
    }
    if (st != AH_OK && st != AH_PROVIDER)
        ah_lua_raise_err(L, err);
    lua_pop(L, 1);
    return st;
}

/* With what is said of all requests; addresses and keys are the model's own. */
static void read_fallbacks(lua_State *L, ah_lua_agent *a)
{
    ah_provider_options o = {.mem = &a->lua->mem, .secrets = &a->lua->host->secrets};

    o.stream = a->adapter->stream;
    read_http(L, &o.limits);
    ah_lua_read_fallbacks(L, &a->observer.records, &o, &a->fallback);
}

static void put_options(lua_State *L, ah_lua_agent *a, ah_buf *b)
{
    static const char *const known[] = {"temperature", "max_tokens", "top_p", "stop",      "seed",
                                        "tool_choice", "reasoning",  "cache", "cache_key", NULL};
    ah_err err;

    if (!ah_field_push(L, 1, "ah.run", "options", LUA_TTABLE)) {
        ah_slice before =
            ah_json_member(ah_transcript_last(a->transcript, AH_ENTRY_SETTINGS), "options");

        ah_buf_put(b, before.p ? before : ah_slice_of("{}"));
        return;
    }
    ah_fields_check(L, -1, "ah.run: options", known, false);
    if (ah_lua_to_json(L, -1, &a->lua->mem, b, &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "ah.run: options: %s", err.message);
    lua_pop(L, 1);
}

/* The model as scripts name it, "provider/model", as a JSON string. */
static void put_model(lua_State *L, const ah_lua_agent *a, ah_buf *b)
{
    ah_buf *name = ah_lua_push_buf(L, MAX_SETTINGS);

    ah_buf_put(name, ah_text_slice(a->adapter->provider));
    ah_buf_char(name, '/');
    ah_buf_put(name, ah_text_slice(a->adapter->model));
    if (!ah_buf_ok(name))
        ah_lua_raise_nomem(L);
    if (!ah_utf8_valid(ah_buf_slice(name)))
        ah_lua_raise(L, AH_USAGE, "ah.run: the name of the model is not UTF-8");
    ah_json_put_string(b, ah_buf_slice(name));
    lua_pop(L, 1);
}

/* The settings, with what the conversation has learned of the same model. */
static void put_learned(const ah_lua_agent *a, ah_slice before, ah_buf *b)
{
    ah_slice settings = ah_text_slice(a->settings), learned = ah_json_member(before, "learned");
    bool same = ah_slice_eq(ah_json_member(before, "model"), ah_json_member(settings, "model"));

    ah_buf_add(b, settings.p, settings.n - 1);
    if (same && learned.p)
        ah_buf_fmt(b, ",\"learned\":%.*s", AH_FMT(learned));
    ah_buf_char(b, '}');
}

/* Where they are not in force already. */
static ah_status say_settings(ah_lua_agent *a, ah_err *err)
{
    ah_slice before = ah_transcript_last(a->transcript, AH_ENTRY_SETTINGS);
    ah_text *now = NULL;
    ah_status st = AH_OK;
    ah_buf b;

    ah_buf_init(&b, &a->lua->mem, MAX_SETTINGS + 1024);
    put_learned(a, before, &b);
    if (!ah_buf_ok(&b) || !ah_slice_eq(before, ah_buf_slice(&b)))
        st = ah_text_from_buf(&b, "settings", &now, err);
    if (st == AH_OK && now)
        st = ah_transcript_add(a->transcript, AH_ENTRY_SETTINGS, now, err);
    ah_buf_clear(&b);
    return st;
}

static void read_settings(lua_State *L, ah_lua_agent *a, const ah_buf *options)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_SETTINGS);
    ah_text *now = NULL;
    ah_err err;

    if (!ah_buf_ok(options)) {
        ah_buf_error(options, "options", &err);
        ah_lua_raise_err(L, &err);
    }
    ah_buf_str(b, "{\"type\":\"settings\",\"model\":");
    put_model(L, a, b);
    ah_buf_str(b, ",\"options\":");
    ah_buf_put(b, ah_buf_slice(options));
    if (a->prompt.output) {
        ah_buf_str(b, ",\"output\":");
        ah_buf_put(b, ah_text_slice(ah_schema_text(a->prompt.output)));
    }
    ah_buf_char(b, '}');
    if (ah_text_from_buf(b, "options", &now, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_text_set(&a->settings, now);
    if (say_settings(a, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_buf_clear(b);
    lua_pop(L, 1);
}

/* Do the wires of all its models carry the schema of `output`? */
static bool has_native_output(const ah_lua_agent *a)
{
    ah_slice schema =
        a->prompt.output ? ah_text_slice(ah_schema_text(a->prompt.output)) : ah_slice_of("{}");
    bool all = ah_adapter_carries(a->adapter, schema);

    for (size_t i = 0; i < a->fallback.n; i++)
        all = all && ah_adapter_carries(a->fallback.item[i], schema);
    return all;
}

/* `system`, then the prompt. */
static void read_system(lua_State *L, ah_lua_agent *a)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_SYSTEM);
    ah_slice text = {NULL, 0};
    ah_text *entry;
    ah_err err;

    ah_field_string(L, 1, "ah.run", "system", &text);
    if (!ah_utf8_valid(text))
        ah_lua_raise(L, AH_USAGE, "ah.run: field 'system' is not UTF-8");
    ah_prompt_fields_text(L, &a->prompt, has_native_output(a), text.p ? text : ah_slice_of(""),
                          a->transcript, b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    if (!text.p && !b->len)
        return;
    entry = ah_entry_text(&a->lua->mem, AH_ENTRY_PROMPT, ah_buf_slice(b), ah_host_wall(a->lua->host));
    if (entry && ah_slice_eq(ah_json_member(ah_transcript_last(a->transcript, AH_ENTRY_PROMPT), "text"),
                             ah_json_member(ah_text_slice(entry), "text")))
        ah_text_unref(entry); /* in force already */
    else if (ah_transcript_add(a->transcript, AH_ENTRY_PROMPT, entry, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_buf_clear(b);
    lua_pop(L, 1);
}

static void warn(void *ud, const char *message, ah_slice tool_name)
{
    const ah_lua_agent *a = ud;

    ah_log_put(&a->observer.records, AH_LOG_WARNING, "%s: tool_name=%.*s", message, AH_FMT(tool_name));
}

/* Makes changes while no run is at work. */
static ah_status change(ah_lua_agent *a, ah_inject_rules *rules, ah_changes *c, ah_err *err)
{
    ah_injection in = {.mem = &a->lua->mem,
                       .registry = &a->registry,
                       .transcript = a->transcript,
                       .rules = rules,
                       .time = ah_host_wall(a->lua->host),
                       .warn = warn,
                       .ud = a};
    ah_status st = ah_inject(&in, c, err);

    ah_buf_clear(&in.added);
    ah_buf_clear(&in.removed);
    return st;
}

/* The tools that a conversation offers already, without handlers, and the names of those that
 * it has withdrawn. */
static ah_status reopen(ah_lua_agent *a, ah_err *err)
{
    ah_offers offers;
    ah_status st = AH_OK;

    if (a->transcript->n == 0)
        return AH_OK;
    ah_offers_init(&offers, &a->lua->mem);
    st = ah_offers_replay(&offers, a->transcript, err);
    if (st == AH_OK)
        st = ah_registry_reserve(&a->registry, offers.n, err);
    for (size_t i = 0; i < offers.n && st == AH_OK; i++) {
        ah_tool *stale = NULL;

        st = ah_tool_stale(&a->lua->mem, offers.tool[i].spec, &stale, err);
        if (st == AH_OK)
            ah_registry_put(&a->registry, stale);
        if (st == AH_OK && offers.tool[i].gone)
            ah_registry_remove(&a->registry, ah_text_slice(stale->name));
        ah_tool_unref(stale);
    }
    ah_offers_clear(&offers);
    return st;
}

static void add_pick_tools(lua_State *L, const ah_lua_agent *a, ah_changes *c)
{
    ah_tool *t = NULL;
    ah_status st;
    ah_err err;

    if (!a->rules.brief)
        return;
    st = ah_pick_tool(&a->lua->mem, &t, &err);
    if (st == AH_OK)
        st = ah_changes_add(c, t, NULL, &err);
    ah_tool_unref(t);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* `executors`: functions by name. The order in which they are taken does not matter. */
static void read_executors(lua_State *L, ah_lua_agent *a)
{
    ah_err err;

    if (!ah_field_push(L, 1, "ah.run", "executors", LUA_TTABLE))
        return;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TFUNCTION)
            ah_lua_raise(L, AH_USAGE,
                         "ah.run: field 'executors' must be { name = function(args, ctx) }, found a %s "
                         "under a %s",
                         luaL_typename(L, -1), luaL_typename(L, -2));
        ah_lua_push_executor(L, -2, -1);
        if (ah_registry_add(&a->executors, ah_lua_to_tool(L, -1), &err) != AH_OK)
            ah_lua_raise_err(L, &err);
        lua_pop(L, 1);
    }
    ah_registry_settle(&a->executors);
    lua_pop(L, 1);
}

/* Declares what is given at the start. What the conversation offers already, the same as it
 * was, only gets its handlers; the rest of that stays stale. */
static void declare(lua_State *L, ah_lua_agent *a, ah_conflict on_conflict, ah_changes *c)
{
    ah_inject_rules rules = {.max_tools = INT_MAX,
                             .on_conflict = on_conflict,
                             .brief = a->rules.brief,
                             .warned_many = true,
                             .warned_full = true};
    ah_err err;

    if (ah_changes_rebind(c, &a->registry, a->rules.brief, &err) != AH_OK ||
        change(a, &rules, c, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

static bool was_not_withdrawn(const ah_registry *r, ah_slice name)
{
    ah_slice gone;

    return !ah_registry_had(r, name, &gone);
}

static bool is_stale(const ah_registry *r, ah_slice name)
{
    const ah_tool *t = ah_registry_find(r, name);

    return t && t->stale;
}

/* Adds the tools under `field` of the strategies whose names are `wanted`: a conversation that
 * goes on keeps those to which they have brought it. */
static void add_brought(lua_State *L, ah_lua_agent *a, const char *field,
                        bool (*wanted)(const ah_registry *r, ah_slice name), ah_changes *to)
{
    ah_changes *all = ah_lua_push_changes(L, &a->lua->mem);
    ah_err err;

    ah_lua_strategies_tools(L, &a->strategies, field, all);
    for (size_t i = 0; i < all->n; i++)
        if (wanted(&a->registry, ah_text_slice(all->item[i].tool->name)) &&
            ah_changes_add(to, all->item[i].tool, NULL, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
    lua_pop(L, 1);
}

/* What is declared at the start knows no second tool of a name. agent: where its object lies. */
static void read_tools(lua_State *L, int agent, ah_lua_agent *a)
{
    ah_changes *c, *later;
    bool offered;
    ah_err err;

    if (reopen(a, &err) != AH_OK || ah_lua_discovery_replay(a, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    offered = ah_registry_find(&a->registry, ah_slice_of(AH_READ_SECTION)) != NULL;
    if (!ah_field_push(L, 1, "ah.run", "tools", LUA_TTABLE))
        lua_newtable(L);
    c = ah_lua_push_changes(L, &a->lua->mem);
    ah_lua_add_tools(L, -2, "ah.run", c, NULL);
    ah_lua_read_registry(L, agent, c);
    ah_prompt_fields_tools(L, &a->prompt, offered, c);
    add_brought(L, a, "tools", was_not_withdrawn, c);
    if (c->n > (size_t)a->rules.max_tools)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "ah.run: %d tools are more than max_tools (%d); many models take no more than 128 "
                     "and choose badly among many, but max_tools = %d allows them",
                     (int)c->n, a->rules.max_tools, (int)c->n);
    add_pick_tools(L, a, c);
    declare(L, a, AH_CONFLICT_ERROR, c);
    later = ah_lua_push_changes(L, &a->lua->mem);
    add_brought(L, a, "later", is_stale, later);
    declare(L, a, AH_CONFLICT_SKIP, later);
    ah_picks_replay(&a->registry, a->transcript);
    lua_pop(L, 3);
}

static ah_entry_kind kind_of(ah_slice name)
{
    int k = 0;

    while (k < AH_ENTRY_KINDS && !ah_slice_is(name, ah_entry_name((ah_entry_kind)k)))
        k++;
    return (ah_entry_kind)k;
}

static void add_entry(lua_State *L, ah_lua_agent *a, ah_entry_kind kind, ah_slice json)
{
    ah_err err;

    if (ah_transcript_add(a->transcript, kind, ah_text_new(&a->lua->mem, json), &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* `messages`: an earlier conversation, checked for pairing. */
static void read_messages(lua_State *L, ah_lua_agent *a)
{
    int top = lua_gettop(L);
    ah_err err;

    if (!ah_field_push(L, 1, "ah.run", "messages", LUA_TTABLE))
        return;
    if (ah_lua_module(L, "agenthost.messages", &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_getfield(L, -1, "to_entries");
    lua_pushvalue(L, -3);
    if (ah_lua_call(a->lua, L, 1, 1, &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "ah.run: %s", err.message);
    for (lua_Integer i = 1, n = luaL_len(L, -1); i < n; i += 2) {
        ah_slice name, json;

        lua_geti(L, -1, i);
        lua_geti(L, -2, i + 1);
        name.p = lua_tolstring(L, -2, &name.n);
        json.p = lua_tolstring(L, -1, &json.n);
        add_entry(L, a, kind_of(name), json);
        lua_pop(L, 2);
    }
    if (ah_transcript_sound(a->transcript, &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "ah.run: messages: %s", err.message);
    lua_settop(L, top);
}

/* -- agents ------------------------------------------------------------------------------ */

ah_lua_agent *ah_lua_check_agent(lua_State *L)
{
    return luaL_checkudata(L, 1, AH_AGENT);
}

ah_lua_agent *ah_lua_to_agent(lua_State *L, int idx)
{
    return luaL_testudata(L, idx, AH_AGENT);
}

/* What the user says: a text, a list of texts and images, or nothing. */
static void check_said(lua_State *L, int idx, const char *what)
{
    int type = lua_type(L, idx);

    if (type > LUA_TNIL && type != LUA_TSTRING && type != LUA_TTABLE)
        ah_lua_raise(
            L, AH_USAGE,
            "%s: the text for the model must be a string, or a list of texts and images, found %s", what,
            luaL_typename(L, idx));
}

/* The array part behind the sections: what the user says. Pushed. */
static void push_text(lua_State *L)
{
    const ah_lua_agent *a = lua_touserdata(L, 2);
    lua_Integer sections = (lua_Integer)a->prompt.n_sections, n = luaL_len(L, 1) - sections;

    if (n > 1)
        ah_lua_raise(L, AH_USAGE, "ah.run: sections, then one text for the model at most, found %d more",
                     (int)n);
    lua_geti(L, 1, sections + 1);
    check_said(L, -1, "ah.run");
}

/* -- nil err, with the partial reply in err.reply */
static int push_failure(lua_State *L, const ah_err *err, int reply)
{
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    if (reply) {
        lua_pushvalue(L, reply);
        lua_setfield(L, -2, "reply");
    }
    return 2;
}

int ah_lua_fail(lua_State *L, const ah_err *err)
{
    return push_failure(L, err, 0);
}

ah_lua_agent *ah_lua_push_agent(lua_State *L)
{
    ah_lua_agent *a = lua_newuserdatauv(L, sizeof *a, AH_AGENT_VALUES);

    *a = (ah_lua_agent){.lua = ah_lua_of(L)};
    ah_observer_init(&a->observer, a->lua);
    ah_registry_init(&a->registry, &a->lua->mem);
    ah_registry_init(&a->executors, &a->lua->mem);
    ah_lua_strategies_init(&a->strategies, a->lua);
    ah_lua_hooks_init(&a->hooks, a->lua);
    luaL_setmetatable(L, AH_AGENT);
    return a;
}

ah_status ah_lua_read_model(lua_State *L, ah_lua_agent *a, ah_err *err)
{
    int top = lua_gettop(L);
    ah_buf *options = ah_lua_push_buf(L, MAX_SETTINGS);
    ah_status st;

    put_options(L, a, options); /* first: what is wrong with them must change nothing */
    if (!ah_buf_ok(options))
        ah_lua_raise_nomem(L);
    st = read_model(L, a, err);
    if (st == AH_OK)
        read_settings(L, a, options);
    lua_settop(L, top);
    return st;
}

ah_status ah_lua_read_agent(lua_State *L, ah_lua_agent *a, const char *what, ah_err *err)
{
    int top = lua_gettop(L);
    ah_status st;

    ah_fields_check(L, 1, what, fields, true);
    if (!a->transcript && !(a->transcript = ah_transcript_new(&a->lua->mem)))
        ah_lua_raise_nomem(L);
    ah_observer_read(L, 1, &a->observer);
    read_session(L, a);
    if ((st = ah_lua_restore_kept(L, a, err)) != AH_OK)
        return st;
    read_limits(L, a);
    ah_lua_rules_read(L, 1, &a->rules);
    ah_lua_strategies_read(L, 1, &a->strategies);
    ah_lua_discovery_read(L, 1, a);
    ah_lua_hooks_read(L, 1, &a->hooks);
    a->budget = ah_lua_budget_read(L, 1);
    ah_prompt_fields_read(L, &a->observer.records, a->transcript, a->session, &a->prompt);
    if (a->prompt.binding)
        ah_lua_strategies_lead(L, &a->strategies, ah_disclosure_strategy(&a->prompt.disclosure));
    ah_lua_push_bound(L, a->prompt.binding);
    lua_setiuservalue(L, -2, AH_AGENT_RESOURCES);
    if ((st = ah_lua_read_model(L, a, err)) != AH_OK)
        return st;
    read_fallbacks(L, a);
    read_system(L, a);
    read_tools(L, top, a);
    read_executors(L, a);
    read_messages(L, a);
    lua_settop(L, top);
    return AH_OK;
}

/* Table at 1 -> agent on top, or a failure: nil err. A raise leaves it to the collector. */
static bool new_agent(lua_State *L, const char *what)
{
    ah_lua_agent *a = ah_lua_push_agent(L);
    ah_err err;

    if (ah_lua_read_agent(L, a, what, &err) == AH_OK)
        return true;
    push_failure(L, &err, 0);
    return false;
}

static int agent_gc(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);

    if (a->current) { /* both are garbage: the run goes first */
        ah_driven_free(a->current->driven);
        a->current->driven = NULL;
        a->current = NULL;
    }
    ah_lowered_clear(&a->wire);
    ah_observer_clear(&a->observer);
    ah_registry_clear(&a->registry);
    ah_registry_clear(&a->executors);
    ah_lua_strategies_clear(&a->strategies);
    ah_lua_discovery_clear(&a->discovery);
    ah_lua_hooks_clear(&a->hooks);
    ah_budget_unref(a->budget);
    a->budget = NULL;
    ah_prompt_fields_clear(&a->prompt);
    ah_lua_fallbacks_clear(&a->fallback);
    ah_transcript_unref(a->transcript);
    a->transcript = NULL;
    ah_adapter_unref(a->adapter);
    ah_adapter_unref(a->before);
    a->adapter = a->before = NULL;
    ah_text_set(&a->settings, NULL);
    ah_text_set(&a->exempt, NULL);
    ah_text_set(&a->kept, NULL);
    return 0;
}

/* -- a run --------------------------------------------------------------------------------- */

/* A run that is not over when the state is closed. What closes its resources cannot wait
 * there: nothing must be driven any more. */
static void close_late(ah_lua *h, run *r)
{
    int depth = h->host->depth;

    h->host->depth = AH_MAX_DEPTH;
    ah_lua_close_resources(h, &r->resources);
    h->host->depth = depth;
}

static int run_gc(lua_State *L)
{
    run *r = luaL_checkudata(L, 1, RUN);

    ah_driven_free(r->driven);
    r->driven = NULL;
    close_late(ah_lua_of(L), r);
    return 0;
}

static void on_event(void *ud, const ah_notice *e)
{
    run *r = ud;
    ah_run *core = r->driven ? ah_driven_run(r->driven) : NULL;

    if (r->tap && r->tap->event)
        r->tap->event(r->tap->agent, e);
    ah_observer_event(&r->agent->observer, core, r->tap ? r->tap->agent : NULL, e);
    if (core && e->type == AH_EVENT_TOOL_INVOKED)
        ah_lua_publish_event(r->agent->lua, core, e);
}

static void on_done(void *ud, ah_driven *d)
{
    run *r = ud;

    (void)d;
    r->agent->current = NULL;
    ah_lua_discovery_end(&r->agent->discovery);
    ah_lua_close_resources(r->agent->lua, &r->resources);
    if (r->tap)
        r->tap->done(r->tap->agent);
    ah_waiter_done(&r->waiter);
}

int ah_lua_run_resources(const ah_driven *d)
{
    const run *r = ah_driven_ud(d, on_done);

    return r ? r->resources : LUA_NOREF;
}

/* Says what is not yet said: settings (a last call without tools changed them), the user's text. */
static ah_status open_turn(ah_lua_agent *a, const ah_lua_said *said, ah_err *err)
{
    ah_transcript *t = a->transcript;
    ah_status st = say_settings(a, err);

    if (!ah_lua_says(said) || st != AH_OK)
        return st;
    return ah_transcript_add(t, AH_ENTRY_USER,
                             ah_lua_said_entry(t->mem, said, ah_host_wall(a->lua->host)), err);
}

/* The earliest of its own and of the run around it. */
static int64_t deadline_of(const ah_lua_agent *a, const ah_driven *parent, int64_t now)
{
    int64_t at = parent ? ah_run_deadline(ah_driven_run(parent)) : 0;

    if (a->limits.deadline > 0 && (!at || (int64_t)(a->limits.deadline * 1000) < at))
        at = (int64_t)(a->limits.deadline * 1000);
    if (a->limits.timeout > 0 && (!at || now + (int64_t)(a->limits.timeout * 1000) < at))
        at = now + (int64_t)(a->limits.timeout * 1000);
    return at;
}

static void configure(ah_lua_agent *a, run *r, ah_driven *parent, ah_run_config *cfg)
{
    ah_host *host = a->lua->host;
    bool tapped = r->tap && r->tap->event;

    *cfg = (ah_run_config){
        .mem = &a->lua->mem,
        .log = &a->observer.records,
        .secrets = &host->secrets,
        .id = ++host->last_run,
        .parent = parent ? ah_run_id(ah_driven_run(parent)) : 0,
        .adapter = a->adapter,
        .fallback = a->fallback.item,
        .n_fallbacks = a->fallback.n,
        .fallback_after_output = a->fallback.after_output,
        .transcript = a->transcript,
        .wire = &a->wire,
        .registry = &a->registry,
        .executors = &a->executors,
        .rules = &a->rules,
        .strategy = a->strategies.item,
        .n_strategies = a->strategies.n,
        .discovered = a->discovery.on ? &a->discovery.core.at_hand : NULL,
        .hooks = &a->hooks.core,
        .metrics = &host->metrics,
        .session = a->session,
        .prompt = a->prompt.binding,
        .output = a->prompt.output,
        .max_iterations = a->limits.max_iterations,
        .answer_on_max = a->limits.answer_on_max,
        .throw_on_unknown = a->limits.throw_on_unknown,
        .retries = a->limits.retries,
        .loop = a->limits.loop,
        .deadline = deadline_of(a, parent, ah_host_now(host)),
        .wall = ah_host_wall,
        .random = ah_host_random,
        .ud = host,
        .on = on_event,
        .on_ud = r,
        .wants_content =
            ah_observer_wants(&a->observer, AH_EVENT_CONTENT) || (tapped && a->adapter->stream),
    };
}

static void prepare_wire(ah_lua_agent *a)
{
    if (!a->wire.mem)
        ah_lowered_init(&a->wire, &a->lua->mem, a->adapter, a->transcript);
    else if (a->wire.adapter != a->adapter)
        ah_lowered_use(&a->wire, a->adapter, AH_BREAK_MODEL);
    ah_adapter_unref(a->before);
    a->before = NULL;
}

/* Has each budget a price for the models that may be asked, where it needs one? */
static ah_status know_prices(const ah_lua_agent *a, const ah_spending *s, ah_err *err)
{
    ah_slice model = ah_json_member(ah_text_slice(a->settings), "model");
    char name[256];
    ah_status st = AH_OK;

    for (size_t i = 0; i < s->n && st == AH_OK; i++) {
        st = ah_budget_knows(s->budget[i], ah_json_inside(model), err);
        for (size_t k = 0; k < a->fallback.n && st == AH_OK; k++) {
            const ah_adapter *f = a->fallback.item[k];

            snprintf(name, sizeof name, "%s/%s", f->provider->data, f->model->data);
            st = ah_budget_knows(s->budget[i], ah_slice_of(name), err);
        }
    }
    return st;
}

/* A run draws on its own budget and on those of the run around it. */
static ah_status draw_on(const ah_lua_agent *a, ah_driven *parent, ah_spending *s, ah_err *err)
{
    const ah_spending *around = parent ? ah_run_spending(ah_driven_run(parent)) : NULL;
    ah_status st = ah_spending_add(s, a->budget, err);

    for (size_t i = 0; around && i < around->n && st == AH_OK; i++)
        st = ah_spending_add(s, around->budget[i], err);
    return st == AH_OK ? know_prices(a, s, err) : st;
}

/* The prompt as it is now: its functions, parameters and the session may have changed. */
static ah_status look_again(ah_lua_agent *a, ah_overlay *around, ah_err *err)
{
    ah_prompt_look look;
    ah_changes c;
    ah_status st;

    ah_changes_init(&c, &a->lua->mem);
    st = ah_prompt_fields_look(&a->prompt, a->transcript, &a->registry, around, &look, &c, err);
    if (st == AH_OK && c.n)
        st = change(a, &a->rules, &c, err);
    ah_prompt_fields_settle(&a->prompt, &look, a->transcript, st == AH_OK);
    ah_changes_clear(&c);
    return st;
}

/* around: the overlay of the call in whose handler it begins, or NULL. */
static ah_status begin(ah_lua_agent *a, run *r, const ah_lua_said *said, ah_overlay *around, ah_err *err)
{
    ah_host *host = a->lua->host;
    ah_driven *parent = a->lua->running ? a->lua->running->job.of : NULL;
    ah_run_config cfg;
    ah_run *core;
    ah_status st;

    if ((st = look_again(a, around, err)) != AH_OK)
        return st;
    prepare_wire(a);
    a->hooks.calls = 0;
    r->first = a->transcript->n;
    configure(a, r, parent, &cfg);
    if ((st = draw_on(a, parent, &cfg.spending, err)) != AH_OK ||
        (around && (st = ah_overlay_anchor(around, &cfg.caller, err)) != AH_OK) ||
        (st = open_turn(a, said, err)) != AH_OK) {
        ah_anchor_unref(cfg.caller);
        ah_spending_clear(&cfg.spending);
        return st;
    }
    st = ah_run_new(&cfg, ah_host_now(host), &core, err);
    ah_anchor_unref(cfg.caller);
    if (st != AH_OK)
        return st;
    st = ah_driven_new(host, core, parent, on_done, r, &r->driven, err);
    if (st == AH_OK) {
        r->waiter.scope = r->driven;
        a->current = r;
    }
    return st;
}

/* ctx: where the run lies on the stack. */
static int finish(lua_State *L, int status, lua_KContext ctx)
{
    run *r = luaL_checkudata(L, (int)ctx, RUN);
    ah_run *core = ah_driven_run(r->driven);
    ah_run_result res;

    (void)status;
    ah_run_result_of(core, &res);
    ah_lua_push_reply(L, core, r->agent->transcript, r->first);
    ah_driven_free(r->driven);
    r->driven = NULL;
    return res.err.status == AH_OK ? 1 : push_failure(L, &res.err, lua_gettop(L));
}

/* Is there anything but settings, system text and tools? */
static bool has_spoken(const ah_transcript *t)
{
    for (size_t i = t->n; i > 0; i--)
        if (t->entry[i - 1].kind == AH_ENTRY_USER || t->entry[i - 1].kind == AH_ENTRY_TOOL_RESULT ||
            t->entry[i - 1].kind == AH_ENTRY_ASSISTANT)
            return true;
    return false;
}

static void check_idle(lua_State *L, const ah_lua_agent *a)
{
    if (a->current)
        ah_lua_raise(L, AH_USAGE, "the agent is already running; agent:send(text) queues a message");
}

static void check_start(lua_State *L, const ah_lua_agent *a, const ah_lua_said *said)
{
    check_idle(L, a);
    if (!ah_lua_says(said) && !has_spoken(a->transcript))
        ah_lua_raise(L, AH_USAGE, "ah.run: there is nothing to say: give a text or messages");
    ah_lua_can_run(L);
}

ah_lua_run *ah_lua_start(lua_State *L, int at, const ah_tap *tap, ah_err *err)
{
    ah_lua_agent *a = luaL_checkudata(L, at, AH_AGENT);
    ah_overlay *around = ah_lua_overlay(L);
    ah_lua_said said;
    run *r;

    ah_lua_read_said(L, at + 1, "ah.run", &said);
    check_start(L, a, &said);
    r = lua_newuserdatauv(L, sizeof *r, 1);
    *r = (run){.agent = a, .tap = tap, .resources = LUA_NOREF};
    luaL_setmetatable(L, RUN);
    lua_pushvalue(L, at);
    lua_setiuservalue(L, -2, 1);
    lua_getiuservalue(L, at, AH_AGENT_RESOURCES);
    r->resources = ah_lua_open_resources_of(L);
    ah_waiter_keep(L, &r->waiter); /* until it is done, whoever stops waiting */
    if (begin(a, r, &said, around, err) == AH_OK)
        return r;
    ah_waiter_done(&r->waiter);
    return NULL;
}

/* Agent at `at`, what is said (or nil) at `at` + 1: runs until there is a reply. */
static int run_agent(lua_State *L, int at)
{
    ah_err err;
    run *r;

    if (!(r = ah_lua_start(L, at, NULL, &err)))
        return push_failure(L, &err, 0);
    return ah_lua_await(L, &r->waiter, lua_gettop(L), finish);
}

/* -- for lua_api_agent.c ------------------------------------------------------------------- */

ah_waiter *ah_lua_run_waiter(ah_lua_run *r)
{
    return &r->waiter;
}

ah_driven *ah_lua_run_driven(const ah_lua_run *r)
{
    return r->driven;
}

size_t ah_lua_run_first(const ah_lua_run *r)
{
    return r->first;
}

void ah_lua_run_drop(ah_lua_run *r)
{
    if (r->agent->current == r) {
        r->agent->current = NULL;
        ah_lua_discovery_end(&r->agent->discovery);
    }
    ah_driven_free(r->driven);
    r->driven = NULL;
    ah_waiter_done(&r->waiter);
}

/* ah.run { ... }: the reply, or nil and an error. */
static int ah_run_call(lua_State *L)
{
    lua_settop(L, 1);
    if (!new_agent(L, "ah.run")) /* -- t ah_lua_agent */
        return 2;
    ((ah_lua_agent *)lua_touserdata(L, 2))->once = true;
    push_text(L); /* -- t agent text */
    return run_agent(L, 2);
}

/* ah.agent { ... }: the agent, or nil and an error. */
int ah_lua_agent_open(lua_State *L)
{
    lua_settop(L, 1);
    if (!new_agent(L, "ah.agent"))
        return 2;
    if (luaL_len(L, 1) > (lua_Integer)((ah_lua_agent *)lua_touserdata(L, 2))->prompt.n_sections)
        return ah_lua_raise(L, AH_USAGE, "ah.agent: the text goes to agent:run(text)");
    return 1;
}

/* -- methods ----------------------------------------------------------------------------------- */

/* The params at idx count from now on, or nothing has changed and it raises. */
static void set_params(lua_State *L, ah_lua_agent *a, int idx)
{
    ah_overlay *around = ah_lua_overlay(L);
    ah_binding *now = ah_prompt_fields_params(L, &a->prompt, idx);
    ah_binding *before = ah_binding_ref(a->prompt.binding);
    ah_err err;

    ah_prompt_fields_bind(&a->prompt, now);
    if (look_again(a, around, &err) == AH_OK) {
        ah_binding_unref(before);
    } else {
        ah_prompt_fields_bind(&a->prompt, before);
        ah_lua_raise_err(L, &err);
    }
}

/* What agent:run is told beside the text. */
static void read_run_fields(lua_State *L, int idx, ah_lua_agent *a)
{
    static const char *const known[] = {"params", NULL};

    luaL_checktype(L, idx, LUA_TTABLE);
    ah_fields_check(L, idx, "agent:run", known, false);
    if (lua_getfield(L, idx, "params") == LUA_TNIL)
        return;
    if (!a->prompt.binding)
        ah_lua_raise(L, AH_USAGE, "agent:run: field 'params' without a prompt");
    set_params(L, a, lua_gettop(L));
}

/* agent:run(text or parts, { params }): continues its conversation. */
static int agent_run(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);

    check_said(L, 2, "agent:run");
    check_idle(L, a);
    if (!lua_isnoneornil(L, 3))
        read_run_fields(L, 3, a);
    lua_settop(L, 2);
    return run_agent(L, 1);
}

/* agent:send(text or parts): during a run, queued to the next commit; else said in the next run. */
static int agent_send(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_lua_said said;
    ah_text *entry;
    ah_err err;
    ah_status st;

    check_said(L, 2, "agent:send");
    ah_lua_read_said(L, 2, "agent:send", &said);
    if (!ah_lua_says(&said))
        return ah_lua_raise(L, AH_USAGE, "agent:send: there is nothing to say: give a text");
    entry = ah_lua_said_entry(&a->lua->mem, &said, ah_host_wall(a->lua->host));
    if (a->current)
        st = ah_run_send(ah_driven_run(a->current->driven), entry, &err);
    else
        st = ah_transcript_add(a->transcript, AH_ENTRY_USER, entry, &err);
    return st == AH_OK ? 0 : ah_lua_raise_err(L, &err);
}

ah_status ah_lua_agent_change(ah_lua_agent *a, ah_changes *c, ah_err *err)
{
    if (a->current)
        return ah_inject_from_outside(ah_driven_run(a->current->driven), c, err);
    if (a->once || !a->transcript) /* its run is over, or it is being collected */
        return AH_OK;
    return change(a, &a->rules, c, err);
}

int ah_lua_make_changes(lua_State *L, ah_lua_agent *a, ah_changes *c)
{
    ah_err err;

    return ah_lua_agent_change(a, c, &err) == AH_OK ? 0 : ah_lua_raise_err(L, &err);
}

/* agent:add_tools(tool | { tools }) */
static int agent_add_tools(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_changes *c = ah_lua_push_changes(L, &a->lua->mem);
    ah_text *by;

    ah_lua_add_tools(L, 2, "agent:add_tools", c, NULL);
    if (!(by = ah_text_new(&a->lua->mem, ah_slice_of("{\"script\":\"agent:add_tools\"}"))))
        return ah_lua_raise_nomem(L);
    for (size_t i = 0; i < c->n; i++)
        c->item[i].by = ah_text_ref(by);
    ah_text_unref(by);
    return ah_lua_make_changes(L, a, c);
}

/* agent:remove_tools(name | { names }) */
static int agent_remove_tools(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_changes *c = ah_lua_push_changes(L, &a->lua->mem);

    ah_lua_remove_tools(L, 2, "agent:remove_tools", c);
    return ah_lua_make_changes(L, a, c);
}

/* agent:cancel(): ends the run at work, if there is one, with `cancelled`. */
static int agent_cancel(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);

    if (a->current)
        ah_driven_cancel(a->current->driven, AH_CANCELLED, "cancelled by the script");
    return 0;
}

/* agent:transcript(): the conversation as JSON text. */
static int agent_transcript(lua_State *L)
{
    ah_lua_push_transcript(L, ah_lua_check_agent(L)->transcript);
    return 1;
}

static int agent_tostring(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);

    lua_pushfstring(L, "agent %s/%s, %d tools, %d entries", a->adapter->provider->data,
                    a->adapter->model->data, (int)a->registry.live, (int)a->transcript->n);
    return 1;
}

void ah_lua_open_agent(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", agent_gc}, {"__tostring", agent_tostring}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"run", agent_run},
                                       {"send", agent_send},
                                       {"cancel", agent_cancel},
                                       {"add_tools", agent_add_tools},
                                       {"remove_tools", agent_remove_tools},
                                       {"transcript", agent_transcript},
                                       {"save", ah_lua_agent_save},
                                       {"fork", ah_lua_agent_fork},
                                       {"use", ah_lua_agent_use},
                                       {NULL, NULL}};
    static const luaL_Reg run_meta[] = {{"__gc", run_gc}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"run", ah_run_call}, {"agent", ah_lua_agent_open}, {"load", ah_lua_load}, {NULL, NULL}};

    ah_lua_open_reply(L);
    luaL_newmetatable(L, AH_AGENT);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newmetatable(L, RUN);
    luaL_setfuncs(L, run_meta, 0);
    lua_pop(L, 2);
    luaL_setfuncs(L, functions, 0);
}
