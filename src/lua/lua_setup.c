/* `setup` gets the conversation, an object that stages all requests: tools and the system text in
 * lists of its own, changes of the session in an overlay, resources in those of the run. Everything
 * is applied in one step after the function has returned. */
#include "lua/lua_setup.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/near.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_post.h"
#include "lua/lua_resources.h"

static const char CONVERSATION[] = "agenthost.conversation";

enum { MAX_ID = 200 };

/* User values of the conversation object. */
enum { AGENT = 1, FIELDS = 2, CONTAINER = 3 };

/* A running `setup`, in the conversation's userdata, which its task keeps. */
typedef struct ah_setting_up {
    ah_lua_agent *agent; /* NULL: it is over */
    ah_run *run;
    ah_task *task;
    ah_overlay overlay;
    ah_changes tools;
    ah_text *system; /* NULL: not set */
    ah_setup_fn rest;
    void *ud;
} setting_up;

/* -- of an agent ------------------------------------------------------------------------------ */

void ah_lua_setup_init(ah_lua_agent *a)
{
    a->setup = (ah_lua_setup){.fn = LUA_NOREF};
    ah_changes_init(&a->setup.added, &a->lua->mem);
}

void ah_lua_setup_clear(ah_lua_agent *a)
{
    ah_lua_unref(a->lua, &a->setup.fn);
    ah_text_set(&a->setup.id, NULL);
    ah_text_set(&a->setup.system, NULL);
    ah_changes_clear(&a->setup.added);
}

bool ah_lua_setup_due(const ah_lua_agent *a)
{
    return a->setup.fn != LUA_NOREF && !a->setup.done;
}

void ah_lua_setup_read(lua_State *L, int idx, ah_lua_agent *a)
{
    if (ah_lua_field_push(L, 1, "ah.agent", "setup", LUA_TFUNCTION))
        a->setup.fn = ah_lua_ref(L);
    lua_getfield(L, 1, "params");
    lua_setiuservalue(L, idx, AH_AGENT_PARAMS);
}

void ah_lua_setup_system(lua_State *L, ah_lua_agent *a, ah_slice text)
{
    ah_text *t = text.p ? ah_text_new(&a->lua->mem, text) : NULL;

    if (text.p && !t)
        ah_lua_raise_nomem(L);
    ah_text_set(&a->setup.system, t);
}

/* Takes references to the tools of *from. */
static ah_status add_all(ah_changes *to, const ah_changes *from, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < from->n && st == AH_OK; i++)
        st = ah_changes_add(to, from->item[i].tool, from->item[i].by, err);
    return st;
}

void ah_lua_setup_copy(lua_State *L, ah_lua_agent *a, const ah_lua_agent *from)
{
    ah_err err;

    a->setup.fn = ah_lua_copy_ref(L, from->setup.fn);
    a->setup.system = ah_text_ref(from->setup.system);
    if (add_all(&a->setup.added, &from->setup.added, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

void ah_lua_setup_id(lua_State *L, ah_lua_agent *a, int idx, const char *what)
{
    ah_slice s = {NULL, 0};
    ah_text *id;

    if (lua_type(L, idx) == LUA_TSTRING)
        s.p = lua_tolstring(L, idx, &s.n);
    if (!s.n || s.n > MAX_ID || memchr(s.p, '\0', s.n) || !ah_utf8_valid(s))
        ah_lua_raise(L, AH_USAGE, "%s: id must be a text of 1 to %d bytes, found %s", what, MAX_ID,
                     s.p ? "another one" : luaL_typename(L, idx));
    if (!(id = ah_text_new(&a->lua->mem, s)))
        ah_lua_raise_nomem(L);
    ah_text_set(&a->setup.id, id);
}

void ah_lua_setup_new_id(ah_host *host, char out[AH_NEW_ID])
{
    snprintf(out, AH_NEW_ID, "%08" PRIx32 "%08" PRIx32,
             (uint32_t)(ah_host_random(host) * 4294967296.0),
             (uint32_t)(ah_host_random(host) * 4294967296.0));
}

void ah_lua_setup_push_id(lua_State *L, ah_lua_agent *a)
{
    char id[AH_NEW_ID];

    if (!a->setup.id) {
        ah_lua_setup_new_id(a->lua->host, id);
        if (!(a->setup.id = ah_text_new(&a->lua->mem, ah_slice_of(id))))
            ah_lua_raise_nomem(L);
    }
    lua_pushlstring(L, a->setup.id->data, a->setup.id->len);
}

/* -- the conversation ------------------------------------------------------------------------- */

static setting_up *check_open(lua_State *L)
{
    setting_up *s = luaL_checkudata(L, 1, CONVERSATION);

    if (!s->agent)
        ah_lua_raise(
            L, AH_USAGE,
            "conversation: `setup` is over; a handler has ctx:add_tools, a script agent:add_tools");
    return s;
}

bool ah_lua_setup_has_added(const ah_lua_agent *a, const ah_tool *there)
{
    bool is = false;

    for (size_t i = 0; i < a->setup.added.n && !is; i++) {
        const ah_tool *t = a->setup.added.item[i].tool;

        is = there == t || there->full == t;
    }
    return is;
}

/* True if one of the first n changes is a tool of that name. */
static bool has_tool(const ah_changes *c, size_t n, const ah_tool *tool)
{
    bool has = false;

    for (size_t i = 0; i < n && !has; i++)
        has = ah_slice_eq(ah_text_slice(c->item[i].tool->name), ah_text_slice(tool->name));
    return has;
}

/* True if the conversation has this very tool: a strategy has added it before a fork. */
static bool is_there(const ah_lua_agent *a, const ah_tool *tool)
{
    const ah_tool *there = ah_registry_find(&a->registry, ah_text_slice(tool->name));

    return there && !there->stale && (there == tool || there->full == tool) &&
           !ah_lua_setup_has_added(a, there);
}

/* Raises, at the line that adds the tool, for a fault that would fail the final step. */
static void check_tool(lua_State *L, const setting_up *s, const ah_changes *read, size_t i)
{
    const ah_lua_agent *a = s->agent;
    const ah_tool *tool = read->item[i].tool;
    const ah_tool *there = ah_registry_find(&a->registry, ah_text_slice(tool->name));

    if (has_tool(&s->tools, s->tools.n, tool) || has_tool(read, i, tool) ||
        (there && !there->stale && !ah_lua_setup_has_added(a, there)))
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "conversation:add_tools: tool '%s' is declared twice",
                     tool->name->data);
    if (!there && a->registry.live + s->tools.n + i >= (size_t)a->rules.max_tools)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "conversation:add_tools: with '%s' there are more tools than max_tools (%d)",
                     tool->name->data, a->rules.max_tools);
}

/* conversation:add_tools(tool | { tools }) */
static int add_tools(lua_State *L)
{
    setting_up *s = check_open(L);
    ah_changes *read = ah_lua_push_changes(L, s->tools.mem);
    ah_status st = AH_OK;
    ah_text *by;
    ah_err err;

    ah_lua_add_tools(L, 2, "conversation:add_tools", read, NULL);
    for (size_t i = 0; i < read->n; i++)
        if (!is_there(s->agent, read->item[i].tool))
            check_tool(L, s, read, i);
    by = ah_text_new(s->tools.mem, ah_slice_of("{\"script\":\"setup\"}"));
    for (size_t i = 0; by && i < read->n && st == AH_OK; i++)
        if (!is_there(s->agent, read->item[i].tool))
            st = ah_changes_add(&s->tools, read->item[i].tool, by, &err);
    ah_text_unref(by);
    return by && st == AH_OK ? 0 : ah_lua_raise_nomem(L);
}

/* conversation:set_system(text): replaces the field `system`. */
static int set_system(lua_State *L)
{
    setting_up *s = check_open(L);
    ah_slice text;
    ah_text *t;

    luaL_checktype(L, 2, LUA_TSTRING);
    text.p = lua_tolstring(L, 2, &text.n);
    if (!ah_utf8_valid(text))
        return ah_lua_raise(L, AH_USAGE, "conversation:set_system: the text is not UTF-8");
    if (!(t = ah_text_new(s->tools.mem, text)))
        return ah_lua_raise_nomem(L);
    ah_text_set(&s->system, t);
    return 0;
}

static const char *const fields[] = {"id", "session", "resources", "params", NULL};
static const luaL_Reg methods[] = {
    {"add_tools", add_tools}, {"set_system", set_system}, {NULL, NULL}};

static int unknown(lua_State *L, const char *key)
{
    ah_near near = {.to = ah_slice_of(key)};

    for (const char *const *f = fields; *f; f++)
        ah_near_offer(&near, ah_slice_of(*f));
    for (const luaL_Reg *m = methods; m->name; m++)
        ah_near_offer(&near, ah_slice_of(m->name));
    if (near.best.p)
        return ah_lua_raise(L, AH_USAGE, "conversation: there is no '%s' (did you mean '%.*s'?)",
                            key, AH_FMT(near.best));
    return ah_lua_raise(L, AH_USAGE,
                        "conversation: there is no '%s'; there are id, session, resources, params, "
                        "add_tools, set_system",
                        key);
}

static int conversation_index(lua_State *L)
{
    const char *key;

    luaL_checkudata(L, 1, CONVERSATION);
    key = luaL_checkstring(L, 2);
    for (const luaL_Reg *m = methods; m->name; m++)
        if (strcmp(m->name, key) == 0) {
            lua_pushcfunction(L, m->func);
            return 1;
        }
    for (const char *const *f = fields; *f; f++)
        if (strcmp(*f, key) == 0) {
            lua_getiuservalue(L, 1, FIELDS);
            lua_getfield(L, -1, key);
            return 1;
        }
    return unknown(L, key);
}

static int conversation_newindex(lua_State *L)
{
    return ah_lua_raise(L, AH_USAGE,
                        "conversation: its fields cannot be set; use "
                        "conversation:set_system(text), conversation:add_tools(tools) or "
                        "conversation.resources.name = value");
}

static void clear(setting_up *s)
{
    s->agent = NULL;
    ah_overlay_drop(&s->overlay);
    ah_changes_clear(&s->tools);
    ah_text_set(&s->system, NULL);
}

static int conversation_gc(lua_State *L)
{
    clear(luaL_checkudata(L, 1, CONVERSATION));
    return ah_lua_retire(L);
}

/* -- applying the changes ---------------------------------------------------------------------- */

/* Makes the tools of an earlier `setup` stale. A tool that is added again with the same
 * specification is bound again without a message to the model. One that is not stays declared and
 * stale. */
static ah_status unbind_added(ah_lua_agent *a, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < a->setup.added.n && st == AH_OK; i++) {
        const ah_tool *there =
            ah_registry_find(&a->registry, ah_text_slice(a->setup.added.item[i].tool->name));
        ah_tool *stale = NULL;

        if (!there || there->stale || !ah_lua_setup_has_added(a, there))
            continue;
        st = ah_tool_stale(&a->lua->mem, ah_text_slice(there->spec), &stale, err);
        if (st == AH_OK)
            st = ah_registry_put(&a->registry, stale, err);
        ah_tool_unref(stale);
    }
    ah_registry_settle(&a->registry);
    return st;
}

/* Keeps the bound resources for later runs. */
static void bind_resources(lua_State *L, int conversation)
{
    lua_getiuservalue(L, conversation, AGENT);
    lua_getiuservalue(L, conversation, CONTAINER);
    ah_lua_push_bound_of(L);
    lua_setiuservalue(L, -2, AH_AGENT_RESOURCES);
    lua_pop(L, 1);
}

/* Pushes the conversation. */
static void push_conversation(lua_State *L, const ah_task *t)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, t->ref);
    lua_getiuservalue(L, -1, 2);
    lua_remove(L, -2);
}

static ah_status apply(lua_State *L, setting_up *s, ah_err *err)
{
    ah_lua_agent *a = s->agent;
    const ah_text *system = s->system ? s->system : a->setup.system;
    ah_changes *added = ah_lua_push_changes(L, &a->lua->mem);
    ah_changes before = a->setup.added;
    ah_status st = add_all(added, &s->tools, err);

    if (st == AH_OK)
        st = unbind_added(a, err);
    if (st != AH_OK)
        return st;
    a->setup.added = *added; /* they may be in the registry from here on */
    *added = before;
    ah_lua_say_system(L, a, ah_text_slice(system));
    ah_lua_declare(L, a, AH_CONFLICT_ERROR, &s->tools);
    ah_lua_deliver_in(L, &s->overlay, a); /* additions by functions of the script itself */
    if ((st = s->rest(s->ud, &s->overlay, err)) == AH_OK)
        st = ah_overlay_commit(&s->overlay, a->transcript, err);
    if (st == AH_OK) {
        push_conversation(L, s->task);
        bind_resources(L, lua_gettop(L));
        a->setup.done = true;
    }
    return st;
}

/* -- the task ---------------------------------------------------------------------------------- */

static void end(setting_up *s, const ah_err *err)
{
    ah_task *t = s->task;
    ah_run *run = s->run;

    s->agent->setup.at_work = NULL;
    t->over = true;
    clear(s);
    ah_run_ready(run, err);
    ah_driver_run_wake(t->job.of);
}

/* Results: nothing, or nil and a reason. */
static void settled(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;
    bool failed = nresults > 1 && lua_isnil(L, -nresults) && !lua_isnil(L, 1 - nresults);
    setting_up *s = t->ud;
    ah_err err;

    if (failed)
        ah_lua_read_placed(L, 1 - nresults, &err);
    else
        failed = apply(L, s, &err) != AH_OK;
    end(s, failed ? &err : NULL);
}

/* Ends a `setup` that failed. An error that its own code raised gets the line, for the author. */
static void failed(ah_task *t, const ah_err *err)
{
    ah_err full = *err, placed;

    if (lua_status(t->co) == LUA_ERRRUN) {
        ah_lua_read_error(t->co, -1, &placed);
        if (strcmp(placed.message, err->message) == 0)
            ah_lua_read_placed(t->co, -1, &full);
    }
    end(t->ud, &full);
}

/* -- a copy of the params of the agent at idx */
static void push_params(lua_State *L, int idx)
{
    lua_getiuservalue(L, idx, AH_AGENT_PARAMS);
    lua_newtable(L);
    if (lua_istable(L, -2))
        for (lua_pushnil(L); lua_next(L, -3);) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -4);
        }
    lua_remove(L, -2);
}

/* With agent and container on top: -- agent container fields */
static void push_fields(lua_State *L, ah_lua_agent *a)
{
    int agent = lua_gettop(L) - 1;

    lua_createtable(L, 0, 4);
    ah_lua_setup_push_id(L, a);
    lua_setfield(L, -2, "id");
    lua_getiuservalue(L, agent, AH_AGENT_SESSION);
    lua_setfield(L, -2, "session");
    push_params(L, agent);
    lua_setfield(L, -2, "params");
    lua_pushvalue(L, agent + 1);
    ah_lua_push_own_resources(L);
    lua_setfield(L, -2, "resources");
}

typedef struct beginning {
    ah_lua_agent *agent;
    ah_run *run;
    ah_setup_fn rest;
    void *ud;
} beginning;

/* -- conversation */
static setting_up *push_new(lua_State *L, const beginning *b)
{
    setting_up *s = lua_newuserdatauv(L, sizeof *s, 3);

    *s = (setting_up){.agent = b->agent, .run = b->run, .rest = b->rest, .ud = b->ud};
    ah_changes_init(&s->tools, &b->agent->lua->mem);
    ah_overlay_init(&s->overlay, &b->agent->lua->mem, ah_run_cfg(b->run)->caller);
    luaL_setmetatable(L, CONVERSATION);
    ah_lua_push_run(L, ah_run_owner(b->run));
    lua_getiuservalue(L, -1, 1);
    lua_replace(L, -2); /* -- conversation agent */
    lua_rawgeti(L, LUA_REGISTRYINDEX, ah_lua_run_resources(ah_run_owner(b->run)));
    push_fields(L, b->agent);
    lua_setiuservalue(L, -4, FIELDS);
    lua_setiuservalue(L, -3, CONTAINER);
    lua_setiuservalue(L, -2, AGENT);
    return s;
}

static int make_task(lua_State *L)
{
    const beginning *b = lua_touserdata(L, 1);
    ah_lua_agent *a = b->agent;
    setting_up *s;
    ah_task *t;

    s = push_new(L, b);
    lua_rawgeti(L, LUA_REGISTRYINDEX, a->setup.fn);
    lua_pushvalue(L, 2);
    t = ah_task_new(a->lua, L, 1, ah_run_owner(b->run));
    t->settled = settled;
    t->failed = failed;
    t->overlay = &s->overlay;
    t->ud = s;
    s->task = t;
    a->setup.at_work = s;
    ah_task_keep(L, t); /* the conversation, which was at 2 */
    return 0;
}

void ah_lua_setup_begin(ah_lua_agent *a, ah_run *run, ah_setup_fn rest, void *ud)
{
    beginning b = {a, run, rest, ud};
    lua_State *L = a->lua->caller;
    ah_err err;

    if (!lua_checkstack(L, 4)) {
        ah_run_ready(run, (ah_err_nomem(&err), &err));
        return;
    }
    lua_pushcfunction(L, make_task);
    lua_pushlightuserdata(L, &b);
    if (ah_lua_call(a->lua, L, 1, 0, &err) == AH_OK ||
        a->setup.at_work) /* the task exists, even if making it took too long */
        ah_task_begin(a->setup.at_work->task);
    else
        ah_run_ready(run, &err);
}

/* The conversation stays on the stack until its staged changes are dropped, which may call the
 * script. */
void ah_lua_setup_stop(ah_lua_agent *a)
{
    setting_up *s = a->setup.at_work;
    lua_State *L = a->lua->caller;
    ah_task *t = s ? s->task : NULL;
    bool kept = s && lua_checkstack(L, 4);

    if (!s)
        return;
    if (kept)
        push_conversation(L, t);
    a->setup.at_work = NULL;
    t->over = true;
    ah_task_stop(t);
    if (kept) {
        clear(s);
        lua_pop(L, 1);
    }
}

void ah_lua_open_setup(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__index", conversation_index},
                                    {"__newindex", conversation_newindex},
                                    {"__gc", conversation_gc},
                                    {NULL, NULL}};

    luaL_newmetatable(L, CONVERSATION);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
}
