/* Reads the fields of ah.run and ah.agent from a table into an agent, in the order in which they
 * depend on each other. Nothing runs here. */
#include <limits.h>
#include <stdlib.h>

#include "lua/lua_background.h"
#include "lua/lua_adapter.h"
#include "lua/lua_agent.h"
#include "lua/lua_background.h"
#include "lua/lua_budget.h"
#include "lua/lua_defaults.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_handoff.h"
#include "lua/lua_host.h"
#include "lua/lua_limits.h"
#include "lua/lua_modules.h"
#include "lua/lua_named.h"
#include "lua/lua_options.h"
#include "lua/lua_registry.h"
#include "lua/lua_prompt_fields.h"
#include "lua/lua_resources.h"
#include "lua/lua_run_options.h"
#include "lua/lua_session.h"
#include "lua/lua_setup.h"
#include "lua/lua_tool.h"
#include "lua/lua_watch.h"
#include "lua/lua_value.h"
#include "run/pick.h"
#include "state/visibility.h"

enum {
    MAX_SETTINGS = 4 << 20,
    MAX_SYSTEM = 64 << 20,
    MAX_NAME = 50,
    DEFAULT_ITERATIONS = 20,
    DEFAULT_RETRIES = 2
};

/* Reads `name`. Names of tools are made from it. */
static void read_name(lua_State *L, ah_lua_agent *a)
{
    ah_slice name;
    size_t n = 0;

    if (!ah_lua_field_string(L, 1, "ah.run", "name", &name))
        return;
    while (n < name.n && strchr("abcdefghijklmnopqrstuvwxyz0123456789_-", name.p[n]) && name.p[n])
        n++;
    if (!n || n < name.n || n > MAX_NAME)
        ah_lua_raise(L, AH_USAGE,
                     "ah.run: field 'name' must be 1 to %d of a-z, 0-9, '_' and '-', found '%.60s'",
                     MAX_NAME, name.p);
    if (!(a->name = ah_text_new(&a->lua->mem, name)))
        ah_lua_raise_nomem(L);
}

/* Checks all fields of the table at 1, opens the conversation in its store, and stores the values
 * of rows that store. */
static ah_status read_fields(lua_State *L, const char *what, ah_lua_agent *a, ah_err *err)
{
    ah_run_fields f = {
        .limits = {.max_iterations = DEFAULT_ITERATIONS, .retries = DEFAULT_RETRIES},
        .rules = {.max_tools = AH_MAX_TOOLS, .hint = true, .max_restarts = AH_MAX_RESTARTS},
        .on_drift = -1,
    };
    ah_status st;

    ah_options_read_as(L, 1, &ah_subject_run, what, NULL);
    read_name(L, a);
    if ((st = ah_lua_stream_read(L, a, what, err)) != AH_OK)
        return st;
    ah_lua_fill_defaults(L, 1, a->transcript && a->transcript->settings.options.text.p);
    ah_options_take(L, 1, &ah_subject_run, &f);
    a->limits = f.limits;
    a->timeout = f.timeout;
    a->deadline = f.deadline;
    a->rules = f.rules;
    a->rules.on_drift = (ah_on_drift)(f.on_drift + 1);
    return AH_OK;
}

/* Reads `session`; without it the agent gets a session of its own. The agent is on top. */
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

static void read_http(lua_State *L, ah_http_limits *limits)
{
    *limits = ah_http_limits_default;
    if (lua_getfield(L, 1, "http") != LUA_TNIL)
        ah_options_read(L, -1, &ah_subject_http_limits, limits);
    lua_setfield(L, 1, "http"); /* the table is our own copy by now; fallbacks read it again */
}

/* Pushes the model: the one given from outside, by the script, by the conversation or by the
 * environment, in this order. Returns true if it is the conversation's. */
static bool push_model(lua_State *L, const ah_lua_agent *a)
{
    const char *env = getenv("AGENTHOST_MODEL");
    ah_slice saved = a->transcript->settings.model;

    if (a->lua->model) {
        lua_pushstring(L, a->lua->model->data);
        return false;
    }
    if (lua_getfield(L, 1, "model") != LUA_TNIL)
        return false;
    lua_pop(L, 1);
    if (saved.p)
        ah_lua_push_json(L, saved);
    else if (env && *env)
        lua_pushstring(L, env);
    else
        ah_lua_raise(
            L, AH_USAGE,
            "ah.run: no model: give model = \"provider/model\", --model or AGENTHOST_MODEL "
            "(demo/echo needs no key and no network)");
    return saved.p != NULL;
}

/* True if the name on top of the stack is not a known model, with any other fields. */
static bool is_unknown(lua_State *L, const ah_lua_agent *a)
{
    ah_provider_options plain = {.mem = &a->lua->mem, .secrets = &a->lua->host->secrets};
    ah_adapter *there = NULL;
    ah_err ignored;
    bool unknown = lua_type(L, -1) == LUA_TSTRING &&
                   ah_lua_to_adapter(L, -1, &plain, &there, &ignored) == AH_USAGE;

    ah_adapter_unref(there);
    return unknown;
}

/* Explains that the conversation was held with a model of another script or machine. */
static void tell_foreign(lua_State *L, ah_err *err)
{
    char why[sizeof err->message];

    memcpy(why, err->message, sizeof why);
    ah_err_set(err, AH_PROVIDER,
               "the conversation was held with '%s', which is not known here: give model = ... "
               "(%s)",
               lua_tostring(L, -1), why);
}

/* Reads `model` and opens its adapter. Returns AH_PROVIDER if something outside the script is
 * missing (a key), and AH_USAGE for a wrong name, which may come from the script or a person.
 * Raises all other errors. */
static ah_status read_model(lua_State *L, ah_lua_agent *a, ah_err *err)
{
    ah_adapter *now = NULL;
    ah_provider_options o = {.mem = &a->lua->mem, .secrets = &a->lua->host->secrets};
    ah_status st;
    bool saved;

    o.stream = ah_observer_wants(&a->observer, AH_EVENT_CONTENT);
    ah_options_take(L, 1, &ah_subject_connection, &o);
    read_http(L, &o.limits);
    saved = push_model(L, a);
    st = ah_lua_to_adapter(L, -1, &o, &now, err);
    if (st == AH_OK) {
        ah_adapter_unref(a->adapter);
        a->adapter = now;
    }
    if (st != AH_OK && st != AH_PROVIDER && (st != AH_USAGE || !is_unknown(L, a)))
        ah_lua_raise_err(L, err);
    if (st == AH_USAGE && saved) {
        tell_foreign(L, err);
        st = err->status;
    }
    lua_pop(L, 1);
    return st;
}

/* Reads `fallback` with the settings of all requests. Each model has its own address and key. */
static void read_fallbacks(lua_State *L, ah_lua_agent *a)
{
    ah_provider_options o = {.mem = &a->lua->mem, .secrets = &a->lua->host->secrets};

    o.stream = a->adapter->stream;
    read_http(L, &o.limits);
    ah_lua_read_fallbacks(L, &a->observer.records, &o, &a->fallback);
}

static void put_options(lua_State *L, ah_lua_agent *a, ah_buf *b)
{
    ah_err err;

    if (a->again) {
        ah_buf_put(b, ah_json_member(ah_text_slice(a->settings), "options"));
        return;
    }
    if (lua_getfield(L, 1, "options") == LUA_TNIL) {
        const ah_model_settings *s = &a->transcript->settings;
        ah_slice before = s->given.p ? s->given : s->options.text;

        ah_buf_put(b, before.p ? before : ah_slice_of("{}"));
        lua_pop(L, 1);
        return;
    }
    ah_options_read(L, -1, &ah_subject_options, NULL);
    if (ah_lua_to_json(L, -1, &a->lua->mem, b, &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "ah.run: options: %s", err.message);
    lua_pop(L, 1);
}

/* Appends the model's name for scripts, "provider/model", as a JSON string. */
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

/* Appends the settings, with the facts that the conversation has learned about the same model. */
static void put_learned(const ah_lua_agent *a, ah_buf *b)
{
    ah_slice settings = ah_text_slice(a->settings), learned = a->transcript->settings.learned;
    bool same = ah_slice_eq(a->transcript->settings.model, ah_json_member(settings, "model"));

    ah_buf_add(b, settings.p, settings.n - 1);
    if (same && learned.p)
        ah_buf_fmt(b, ",\"learned\":%.*s", AH_FMT(learned));
    ah_buf_char(b, '}');
}

/* True if the settings in force name this model. */
static bool is_set(const ah_lua_agent *a, const ah_adapter *model)
{
    ah_slice set = a->transcript->settings.model, name = ah_text_slice(model->model);
    ah_slice provider = ah_text_slice(model->provider);

    if (set.n < 2)
        return false;
    set = ah_json_inside(set);
    return set.n == provider.n + 1 + name.n && ah_slice_begins(set, model->provider->data) &&
           ah_slice_ends(set, model->model->data);
}

/* True if the unfinished run of the conversation goes on with one of the agent's fallbacks. */
static bool goes_on_with_fallback(const ah_lua_agent *a)
{
    bool found = false;

    for (size_t i = 0; i < a->fallback.n; i++)
        found = found || is_set(a, a->fallback.item[i]);
    return found && ah_lua_stream_resumes(a);
}

ah_status ah_lua_say_settings(ah_lua_agent *a, ah_err *err)
{
    ah_text *now = NULL;
    ah_status st = AH_OK;
    ah_buf b;

    if (goes_on_with_fallback(a))
        return AH_OK;
    ah_buf_init(&b, &a->lua->mem, MAX_SETTINGS + 1024);
    put_learned(a, &b);
    if (!ah_buf_ok(&b) || !ah_slice_eq(a->transcript->settings.text, ah_buf_slice(&b)))
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
    /* A run that goes on says them when its fallbacks are known. A conversation that was handed
     * over has those of the active agent. */
    if (!ah_lua_stream_resumes(a) && !ah_lua_is_handed_over(a) &&
        ah_lua_say_settings(a, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_buf_clear(b);
    lua_pop(L, 1);
}

/* True if the wires of all its models send the schema of `output` to the model. */
static bool has_native_output(const ah_lua_agent *a)
{
    ah_slice schema =
        a->prompt.output ? ah_text_slice(ah_schema_text(a->prompt.output)) : ah_slice_of("{}");
    bool all = ah_adapter_shows(a->adapter, schema) &&
               !(ah_wire_learned_lacking(a->transcript->settings.learned) & AH_MODEL_OUTPUT);

    for (size_t i = 0; i < a->fallback.n; i++)
        all = all && ah_adapter_shows(a->fallback.item[i], schema);
    return all;
}

/* True if the entry has the same system text as the script's last one. A text that a strategy has
 * set since stays in force then. */
static bool says_again(const ah_transcript *t, const ah_text *entry)
{
    size_t at = ah_disclosure_text_at(t);

    return at && ah_slice_eq(ah_json_member(ah_text_slice(t->entry[at - 1].json), "text"),
                             ah_json_member(ah_text_slice(entry), "text"));
}

void ah_lua_say_system(lua_State *L, ah_lua_agent *a, ah_slice text)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_SYSTEM);
    ah_text *entry;
    ah_err err;

    ah_prompt_fields_text(L, &a->prompt, has_native_output(a), text.p ? text : ah_slice_of(""),
                          a->transcript, b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    if (!text.p && !b->len) {
        lua_pop(L, 1);
        return;
    }
    entry =
        ah_entry_text(&a->lua->mem, AH_ENTRY_PROMPT, ah_buf_slice(b), ah_host_wall(a->lua->host));
    if (entry && says_again(a->transcript, entry))
        ah_text_unref(entry);
    else if (ah_transcript_add(a->transcript, AH_ENTRY_PROMPT, entry, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_buf_clear(b);
    lua_pop(L, 1);
}

/* Sets the system text: `system`, then the prompt. If a `setup` is due, this is done after it,
 * since it may set another text. */
static void read_system(lua_State *L, ah_lua_agent *a)
{
    ah_slice text = {NULL, 0};

    ah_lua_field_string(L, 1, "ah.run", "system", &text);
    if (!ah_utf8_valid(text))
        ah_lua_raise(L, AH_USAGE, "ah.run: field 'system' is not UTF-8");
    if (ah_lua_setup_due(a))
        ah_lua_setup_system(L, a, text);
    else
        ah_lua_say_system(L, a, text);
}

static void warn(void *ud, ah_slice message, ah_slice tool_name, ah_slice changed)
{
    ah_lua_agent *a = ud;

    ah_log_put(&a->observer.records, AH_LOG_WARNING, "%.*s: tool_name=%.*s", AH_FMT(message),
               AH_FMT(tool_name));
    ah_drift_warnings_add(&a->untold, message, tool_name, changed);
}

ah_injection ah_lua_injection_idle(ah_lua_agent *a, ah_inject_rules *rules)
{
    return (ah_injection){.mem = &a->lua->mem,
                          .registry = &a->registry,
                          .transcript = a->transcript,
                          .rules = rules,
                          .time = ah_host_wall(a->lua->host),
                          .warn = warn,
                          .ud = a};
}

ah_status ah_lua_change_idle(ah_lua_agent *a, ah_inject_rules *rules, ah_changes *c, ah_err *err)
{
    ah_injection in = ah_lua_injection_idle(a, rules);
    ah_status st = ah_inject(&in, c, err);

    ah_buf_clear(&in.added);
    ah_buf_clear(&in.removed);
    return st;
}

/* Puts into the registry the tools that the conversation already offers, without handlers, and the
 * names of those that it has withdrawn. */
static ah_status reopen(ah_lua_agent *a, ah_err *err)
{
    ah_offers offers;
    ah_status st = AH_OK;

    if (a->transcript->n == 0)
        return AH_OK;
    ah_offers_init(&offers, &a->lua->mem);
    st = ah_offers_replay(&offers, a->transcript, err);
    for (size_t i = 0; i < offers.n && st == AH_OK; i++) {
        ah_tool *stale = NULL;

        st = ah_tool_stale(&a->lua->mem, offers.tool[i].spec, &stale, err);
        if (st == AH_OK)
            st = ah_registry_put(&a->registry, stale, err);
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

/* Reads `executors`, functions by name. Their order does not matter. */
static void read_executors(lua_State *L, ah_lua_agent *a)
{
    ah_err err;

    if (lua_getfield(L, 1, "executors") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TFUNCTION)
            ah_lua_raise(
                L, AH_USAGE,
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

/* Makes additions under the names of stale tools replacements: changes by the script, which are no
 * drift. */
static void replace_stale(const ah_lua_agent *a, ah_changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const ah_tool *there =
            c->item[i].tool ? ah_registry_find(&a->registry, ah_text_slice(c->item[i].tool->name))
                            : NULL;

        if (there && there->stale)
            c->item[i].kind = AH_CHANGE_REPLACE;
    }
}

void ah_lua_declare(lua_State *L, ah_lua_agent *a, ah_conflict on_conflict, ah_changes *c)
{
    ah_inject_rules rules = {.max_tools = INT_MAX,
                             .on_conflict = on_conflict,
                             .on_drift = a->rules.on_drift,
                             .brief = a->rules.brief,
                             .warned_many = true,
                             .warned_full = true};
    ah_err err;

    if (a->carried)
        replace_stale(a, c);
    if (ah_changes_rebind(c, &a->registry, a->rules.brief, &err) != AH_OK ||
        ah_lua_change_idle(a, &rules, c, &err) != AH_OK)
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

/* Adds the tools under `field` of the strategies whose names are `wanted`. So a continued
 * conversation keeps the tools that strategies added. */
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

/* Raises if the script declares more tools than max_tools. Tools of sections opened earlier only
 * use the room that is left, as when they were opened. So a conversation that reached max_tools
 * through them can continue. */
static void fit(lua_State *L, ah_lua_agent *a, ah_changes *c)
{
    int n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += !c->item[i].yields;
    if (n > a->rules.max_tools)
        ah_lua_raise(
            L, AH_PROMPT_VALIDATION,
            "ah.run: %d tools are more than max_tools (%d); many models take no more than 128 "
            "and choose badly among many, but max_tools = %d allows them",
            n, a->rules.max_tools, n);
    if (!ah_changes_fit(c, &a->registry, (size_t)a->rules.max_tools))
        return;
    a->rules.warned_full = true;
    ah_log_put(
        &a->observer.records, AH_LOG_WARNING,
        "Tools of open sections are left out: max_tools are declared (raise it, or remove some)");
}

/* Declares the tools at the start of an agent, where a second tool of the same name is an error.
 * agent: stack index of the agent. */
static void read_tools(lua_State *L, int agent, ah_lua_agent *a)
{
    ah_changes *c, *later;
    bool offered = ah_registry_find(&a->registry, ah_slice_of(AH_READ_SECTION)) != NULL;

    if (lua_getfield(L, 1, "tools") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
    }
    c = ah_lua_push_changes(L, &a->lua->mem);
    ah_lua_add_tools(L, -2, "ah.run", c, NULL);
    ah_lua_read_registry(L, agent, c);
    ah_prompt_fields_tools(L, &a->prompt, offered, c);
    add_brought(L, a, "tools", was_not_withdrawn, c);
    ah_lua_strategies_describe(L, &a->strategies, &a->registry, c);
    fit(L, a, c);
    if (ah_lua_is_handed_over(a))
        ah_lua_handoffs_keep(L, a, c);
    add_pick_tools(L, a, c);
    ah_lua_declare(L, a, AH_CONFLICT_ERROR, c);
    later = ah_lua_push_changes(L, &a->lua->mem);
    add_brought(L, a, "later", is_stale, later);
    ah_lua_discovery_redeclare(L, a, later);
    ah_lua_strategies_describe(L, &a->strategies, &a->registry, later);
    ah_lua_declare(L, a, AH_CONFLICT_SKIP, later);
    ah_lua_strategies_defer(L, &a->strategies, &a->registry, a->transcript);
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

/* Reads `messages`, an earlier conversation, and checks the pairing of calls and results. */
static void read_messages(lua_State *L, ah_lua_agent *a)
{
    int top = lua_gettop(L);
    ah_err err;

    if (lua_getfield(L, 1, "messages") == LUA_TNIL || a->stream.read) { /* it has them already */
        lua_settop(L, top);
        return;
    }
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

/* -- all fields ----------------------------------------------------------------------------- */

ah_status ah_lua_read_model(lua_State *L, ah_lua_agent *a, ah_err *err)
{
    int top = lua_gettop(L);
    ah_buf *options = ah_lua_push_buf(L, MAX_SETTINGS);
    ah_status st;

    put_options(L, a, options); /* first, so that an error changes nothing */
    if (!ah_buf_ok(options))
        ah_lua_raise_nomem(L);
    st = a->again ? AH_OK : read_model(L, a, err);
    if (st == AH_OK)
        read_settings(L, a, options);
    lua_settop(L, top);
    return st;
}

/* Restores the saved session into the one that the script gave. If the session is the agent's own,
 * which has no types, it gets only the open sections, and the rest is kept as text. */
static ah_status restore_kept(lua_State *L, ah_lua_agent *a, ah_err *err)
{
    bool given;
    ah_status st;

    if (ah_lua_named_session(a->lua, a->session))
        ah_text_set(&a->kept, NULL); /* it has its own stream */
    if (!a->kept)
        return AH_OK;
    given = lua_getfield(L, 1, "session") != LUA_TNIL;
    lua_pop(L, 1);
    if (!given && (st = ah_visibility_register(a->session, err)) != AH_OK)
        return st;
    st = ah_session_restore(a->session, ah_lua_overlay(L), ah_text_slice(a->kept),
                            given ? AH_RESTORE_LOGS : AH_RESTORE_KNOWN, err);
    if (given)
        ah_text_set(&a->kept, NULL);
    return st;
}

/* Gives the session or the budget (NULL: it has no name) the agent's store. */
static ah_status use_named(lua_State *L, ah_lua_agent *a, ah_lua_named *n, ah_err *err)
{
    ah_open_store *store = a->stream.keeper ? ah_keeper_store(a->stream.keeper) : NULL;
    bool none = lua_getfield(L, 1, "store") == LUA_TBOOLEAN;
    ah_status st = AH_OK;

    lua_pop(L, 1);
    if (!none || store)
        st = ah_lua_named_use(L, n, store, err);
    if (st == AH_USAGE)
        ah_lua_raise_err(L, err);
    return st;
}

ah_status ah_lua_read_agent(lua_State *L, ah_lua_agent *a, const char *what, ah_err *err)
{
    int top = lua_gettop(L);
    ah_status st;

    if ((st = read_fields(L, what, a, err)) != AH_OK)
        return st;
    if (!a->transcript && !(a->transcript = ah_transcript_new(&a->lua->mem)))
        ah_lua_raise_nomem(L);
    if (!a->again)
        ah_observer_read(L, 1, &a->observer);
    read_session(L, a);
    if ((st = use_named(L, a, ah_lua_named_session(a->lua, a->session), err)) != AH_OK ||
        (st = restore_kept(L, a, err)) != AH_OK)
        return st;
    if ((st = ah_lua_stream_bind(L, a, err)) == AH_USAGE)
        ah_lua_raise_err(L, err);
    if (st != AH_OK)
        return st;
    if (a->stream.loaded)
        ah_lua_background_lost(L, a,
                               "its outcome is unknown: the conversation was saved while the call "
                               "was outstanding. It was not run again.");
    else if (a->stream.read)
        ah_lua_background_lost(L, a,
                               "its outcome is unknown: the program ended while the call was "
                               "outstanding. It was not run again.");
    ah_lua_read_loop(L, 1, &a->lua->mem, &a->limits.loop, &a->exempt);
    ah_lua_strategies_read(L, 1, &a->strategies);
    ah_lua_discovery_read(L, 1, a);
    ah_lua_hooks_read(L, 1, "ah.run", &a->hooks);
    if (!a->again && ah_lua_field_push(L, 1, "ah.run", "asks", LUA_TFUNCTION))
        ah_lua_add_front(L, a);
    if (!a->again)
        a->budget = ah_lua_budget_read(L, 1);
    if ((st = use_named(L, a, ah_lua_named_budget(a->lua, a->budget), err)) != AH_OK) {
        lua_settop(L, top);
        return st;
    }
    ah_lua_setup_read(L, top, a);
    ah_watch_bound(L, ah_lua_agent_deadline(a, NULL, NULL));
    ah_prompt_fields_read(L, &a->observer.records, a->transcript, a->session, &a->prompt);
    if (a->prompt.binding)
        ah_lua_strategies_lead(L, &a->strategies, ah_disclosure_strategy(&a->prompt.disclosure));
    if (a->rules.brief)
        ah_lua_strategies_lead(L, &a->strategies, ah_pick_strategy());
    ah_lua_push_bound(L, a->prompt.binding);
    lua_setiuservalue(L, top, AH_AGENT_RESOURCES);
    if (a->once && ah_lua_stream_is_done(a)) {
        lua_settop(L, top);
        return AH_OK;
    }
    if ((st = ah_lua_read_model(L, a, err)) == AH_USAGE)
        ah_lua_raise_err(L, err);
    if (st != AH_OK) {
        lua_settop(L, top);
        return st;
    }
    read_fallbacks(L, a);
    read_system(L, a);
    if ((st = reopen(a, err)) != AH_OK || (st = ah_lua_discovery_replay(a, err)) != AH_OK) {
        lua_settop(L, top);
        return st;
    }
    read_tools(L, top, a);
    read_executors(L, a);
    read_messages(L, a);
    lua_settop(L, top);
    return ah_lua_stream_defer(a, err);
}
