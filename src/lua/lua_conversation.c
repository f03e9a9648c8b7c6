/* Conversations that last: agent:save, ah.load, agent:fork, agent:use. */
#include <errno.h>

#include "base/json.h"
#include "io/file.h"
#include "lua/lua_agent.h"
#include "lua/lua_background.h"
#include "lua/lua_definition.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_fork.h"
#include "lua/lua_handoff.h"
#include "lua/lua_now.h"
#include "lua/lua_open.h"
#include "lua/lua_registry.h"
#include "lua/lua_session.h"
#include "lua/lua_setup.h"
#include "lua/lua_toolset.h"
#include "lua/lua_value.h"
#include "run/pick.h"
#include "lua/lua_options.h"

enum { MAX_FILE = 1 << 30 };

static void not_running(lua_State *L, const ah_lua_agent *a, const char *what)
{
    if (a->current || a->busy)
        ah_lua_raise(L, AH_USAGE, "%s: the agent is running", what);
}

/* agent:save(path): true, or nil and an error. Saves the known part of a turn that is at work. */
static int agent_save(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    const char *path = luaL_checkstring(L, 2);
    ah_buf *b = ah_lua_push_buf(L, AH_STORE_MAX_RECORD);
    ah_err err;

    if (ah_lua_stream_save(a, b, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    ah_buf_char(b, '\n');
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    if (ah_file_replace(&a->lua->mem, path, ah_buf_slice(b), &err) != AH_OK)
        return ah_lua_fail(L, &err);
    ah_buf_clear(b); /* at once instead of at the next collection: it may be large */
    lua_pushboolean(L, true);
    return 1;
}

/* Appends the checkpoint of a file of version 0.1.0: a transcript, with a session among its
 * members. */
static ah_status raise_old(const ah_mem *mem, ah_slice file, ah_buf *out, ah_err *err)
{
    ah_slice session = ah_json_member(file, "session"), slices = ah_json_member(session, "slices");
    ah_transcript *t;
    ah_status st = ah_transcript_read(mem, file, &t, err);

    if (st != AH_OK)
        return st;
    if (session.p && ah_json_kind_of(slices) != AH_JSON_OBJECT)
        st = ah_err_set(err, AH_USAGE, "its session has no slices");
    ah_buf_str(out, "{\"opened\":");
    ah_fold_print_opened(AH_STREAM_CONVERSATION, (ah_slice){NULL, 0}, out);
    ah_buf_str(out, ",\"transcript\":");
    ah_transcript_print(t, out);
    ah_buf_str(out, ",\"slices\":");
    ah_buf_put(out, session.p ? slices : ah_slice_of("{}"));
    ah_buf_str(out, ",\"entities\":[],\"runs\":0,\"asks\":0}");
    ah_transcript_unref(t);
    return ah_buf_ok(out) ? st : ah_buf_error(out, "the conversation", err);
}

static ah_status take_file(ah_lua_agent *a, ah_slice file, ah_err *err)
{
    const ah_mem *mem = &a->lua->mem;
    ah_status st = ah_json_check_err(mem, file, "it", err);
    ah_buf b;

    if (st != AH_OK)
        return st;
    if (ah_json_member(file, "opened").p)
        return ah_lua_stream_load(a, file, err);
    ah_buf_init(&b, mem, MAX_FILE);
    st = raise_old(mem, file, &b, err);
    if (st == AH_OK)
        st = ah_lua_stream_load(a, ah_buf_slice(&b), err);
    ah_buf_clear(&b);
    return st;
}

static ah_status read_file(ah_lua_agent *a, const char *path, ah_buf *b, ah_err *err)
{
    char why[sizeof err->message];
    ah_file_found found;
    ah_status st = ah_file_look(path, true, b, &found, err);

    if (st != AH_OK) {
        if (st != AH_NOMEM)
            ah_json_detail(err, "reason",
                           ah_slice_of(found.why == ENOENT ? "not_found" : "unreadable"));
        return st;
    }
    st = take_file(a, ah_buf_slice(b), err);
    ah_buf_clear(b);
    if (st == AH_OK || st == AH_NOMEM)
        return st;
    memcpy(why, err->message, sizeof why);
    ah_err_set(err, AH_USAGE, "cannot load '%.200s': %s", path, why);
    ah_json_detail(err, "reason", ah_slice_of("damaged"));
    return err->status;
}

static int refuse_words(lua_State *L)
{
    return ah_lua_raise(
        L, AH_USAGE, "ah.load: the conversation is in the file; agent:run(text) goes on with it");
}

/* ah.load(path, { fields of ah.agent }): the agent, or nil and an error. Raises for errors in the
 * fields, but not for faults of the file. */
static int load(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    ah_lua_agent *a;
    ah_err err;

    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_insert(L, 1); /* -- fields path */
    ah_lua_attach_toolsets(L);
    a = ah_lua_push_agent(L);
    if (read_file(a, path, ah_lua_push_buf(L, MAX_FILE), &err) != AH_OK)
        return ah_lua_fail(L, &err);
    lua_pop(L, 1); /* -- fields path agent */
    if (lua_getfield(L, 1, "messages") != LUA_TNIL)
        return refuse_words(L);
    lua_pop(L, 1);
    if (ah_lua_read_agent(L, a, "ah.load", &err) != AH_OK)
        return ah_lua_fail(L, &err);
    if (luaL_len(L, 1) > (lua_Integer)a->prompt.n_sections)
        return refuse_words(L);
    ah_lua_keep_definition(L);
    return ah_lua_handoffs_resume(L, a);
}

static void copy_fronts(lua_State *L, ah_lua_agent *a, const ah_lua_agent *from)
{
    if (from->fronts == LUA_NOREF)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, from->fronts);
    for (lua_Integer i = 1, n = luaL_len(L, -1); i <= n; i++) {
        lua_geti(L, -1, i);
        ah_lua_add_front(L, a);
    }
    lua_pop(L, 1);
}

/* Pushes a fork of the agent on top (popped), by the method, which its object has. */
static void push_fork(lua_State *L)
{
    lua_getfield(L, -1, "fork");
    lua_insert(L, -2);
    lua_call(L, 1, 1);
}

/* The fork at idx has forks of the conversations that tools of the agent at 1 keep. */
static void fork_kept(lua_State *L, int idx)
{
    if (lua_getiuservalue(L, 1, AH_AGENT_KEPT) == LUA_TTABLE) {
        luaL_checkstack(L, 8, "agent:fork");
        lua_newtable(L);
        for (lua_pushnil(L); lua_next(L, -3);) { /* -- kept copy tool conversation */
            if (!ah_lua_to_agent(L, -1)->closed) {
                push_fork(L);
                lua_pushvalue(L, -2);
                lua_insert(L, -2);
                lua_rawset(L, -4);
            } else {
                lua_pop(L, 1);
            }
        }
        lua_setiuservalue(L, idx, AH_AGENT_KEPT);
    }
    lua_pop(L, 1);
}

/* True if the table at 2 names a turn. */
static bool has_turn(lua_State *L)
{
    bool has = lua_istable(L, 2) && lua_getfield(L, 2, "at") != LUA_TNIL;

    lua_settop(L, 2);
    return has;
}

/* agent:fork { at, store, id }: a second agent that continues from the last complete turn. Neither
 * sees later messages or changes of the other. Returns nil and an error if its store fails. */
static int agent_fork(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L), *b;
    ah_err err;

    lua_settop(L, 2);
    if (has_turn(L))
        return ah_lua_fork_at(L);
    b = ah_lua_push_agent(L);
    lua_getiuservalue(L, 1, AH_AGENT_SESSION);
    b->session = ah_lua_push_session_copy(L, -1);
    lua_setiuservalue(L, -3, AH_AGENT_SESSION);
    lua_pop(L, 1);
    b->kept = ah_text_ref(a->kept);
    lua_getiuservalue(L, 1, AH_AGENT_RESOURCES);
    lua_setiuservalue(L, -2, AH_AGENT_RESOURCES);
    b->adapter = ah_adapter_ref(a->adapter);
    ah_lua_fallbacks_copy(&b->fallback, &a->fallback);
    b->settings = ah_text_ref(a->settings);
    b->name = ah_text_ref(a->name);
    b->rules = a->rules;
    ah_drift_warnings_copy(&b->untold, &a->untold);
    b->limits = a->limits;
    b->exempt = ah_text_ref(a->exempt);
    if (ah_transcript_copy(a->transcript, &b->transcript, &err) != AH_OK ||
        ah_registry_copy(&b->registry, &a->registry, &err) != AH_OK ||
        ah_registry_copy(&b->executors, &a->executors, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_lua_background_lost(L, b,
                           "it goes on in the conversation that this one was forked from, and "
                           "its result will not come here.");
    lua_getiuservalue(L, 1, AH_AGENT_REGISTRY);
    ah_lua_use_registry(L, -2);
    ah_observer_copy(L, &b->observer, &a->observer);
    ah_lua_strategies_copy(L, &b->strategies, &a->strategies);
    ah_prompt_fields_copy(L, &b->prompt, &a->prompt, b->session, &b->registry);
    if (b->prompt.binding)
        ah_lua_strategies_lead(L, &b->strategies, ah_disclosure_strategy(&b->prompt.disclosure));
    ah_lua_discovery_copy(L, b, a);
    if (b->rules.brief)
        ah_lua_strategies_lead(L, &b->strategies, ah_pick_strategy());
    ah_picks_replay(&b->registry, b->transcript);
    ah_lua_hooks_copy(L, &b->hooks, &a->hooks);
    copy_fronts(L, b, a);
    b->budget = ah_budget_ref(a->budget);
    ah_lua_setup_copy(L, b, a);
    for (int i = AH_AGENT_DEFINITION; i <= AH_AGENT_PARAMS; i++) {
        lua_getiuservalue(L, 1, i);
        lua_setiuservalue(L, -2, i);
    }
    fork_kept(L, lua_gettop(L));
    ah_lua_handoffs_copy(L, b, a);
    if (ah_lua_stream_fork(L, 2, b, a, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    return 1;
}

/* -- another model ------------------------------------------------------------------------ */

/* The agent's model before a call changed it; restored if the call fails. */
typedef struct model {
    ah_participant part; /* key: the agent */
    ah_lua *lua;
    int ref; /* reference to its object; LUA_NOREF: nothing was kept */
    ah_lua_agent *agent;
    ah_adapter *adapter;
    ah_text *settings;
} model;

static const ah_participant_vt model_vt;

static void free_model(model *m)
{
    ah_lua *h = m->lua;

    ah_adapter_unref(m->adapter);
    ah_text_unref(m->settings);
    ah_lua_unref(h, &m->ref);
    ah_free(&h->mem, m);
}

static model *join_model(ah_lua *h, ah_overlay *o, ah_lua_agent *a, ah_err *err)
{
    model *m = (model *)(void *)ah_overlay_find(o, a);

    if (m)
        return m;
    if (!(m = ah_alloc(&h->mem, sizeof *m))) {
        ah_err_nomem(err);
        return NULL;
    }
    *m = (model){.part = {.vt = &model_vt, .key = a}, .lua = h, .ref = LUA_NOREF, .agent = a};
    if (ah_overlay_join(o, &m->part, err) == AH_OK)
        return m;
    ah_free(&h->mem, m);
    return NULL;
}

static ah_status prepare_model(ah_participant *p, ah_overlay *below, ah_err *err)
{
    const model *m = (const model *)(const void *)p;

    return !below || join_model(m->lua, below, m->agent, err) ? AH_OK : err->status;
}

/* Passes the model to the call around it, unless that call has kept an older one. */
static void commit_model(ah_participant *p, ah_overlay *below)
{
    model *m = (model *)(void *)p, *to = (model *)(void *)ah_overlay_find(below, m->agent);

    if (to && to->ref == LUA_NOREF) {
        to->ref = m->ref;
        to->adapter = m->adapter;
        to->settings = m->settings;
        m->ref = LUA_NOREF;
        m->adapter = NULL;
        m->settings = NULL;
    }
    free_model(m);
}

static void drop_model(ah_participant *p)
{
    model *m = (model *)(void *)p;
    ah_lua_agent *a = m->agent;

    if (m->ref != LUA_NOREF && !a->closed) {
        if (a->before)
            ah_adapter_unref(a->adapter);
        else
            a->before = a->adapter; /* the wire may borrow it */
        a->adapter = ah_adapter_ref(m->adapter);
        ah_text_set(&a->settings, ah_text_ref(m->settings));
    }
    free_model(m);
}

static const ah_participant_vt model_vt = {
    .prepare = prepare_model, .commit = commit_model, .drop = drop_model};

/* Keeps the model of the agent at 1 for the call, once; does nothing outside of calls. */
static void keep_model(lua_State *L, ah_lua_agent *a)
{
    ah_overlay *o = ah_lua_overlay(L);
    ah_err err;
    model *m = o ? join_model(a->lua, o, a, &err) : NULL;

    if (!o || (m && m->ref != LUA_NOREF))
        return;
    if (!m)
        ah_lua_raise_err(L, &err);
    m->adapter = ah_adapter_ref(a->adapter);
    m->settings = ah_text_ref(a->settings);
    lua_pushvalue(L, 1);
    m->ref = ah_lua_ref(L);
}

/* agent:use("provider/model" | adapter | { model, base_url, api_key, stream, http, options,
 * tool_change_mode }): continues the conversation with another model. Returns the agent, or nil and
 * an error. A wrong name is returned as well, since people type names into chats. */
static int agent_use(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_err err;

    not_running(L, a, "agent:use");
    lua_settop(L, 2);
    keep_model(L, a);
    if (!lua_istable(L, 2)) {
        lua_createtable(L, 0, 1);
        lua_insert(L, 2);
        lua_setfield(L, 2, "model");
    }
    lua_insert(L, 1); /* -- fields agent */
    ah_options_read(L, 1, &ah_subject_use, NULL);
    if (!a->before) /* second agent:use without a run between: the wire borrows the first */
        a->before = ah_adapter_ref(a->adapter);
    if (ah_lua_read_model(L, a, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    return 1;
}

void ah_lua_open_load(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"save", agent_save}, {"fork", agent_fork}, {"use", agent_use}, {NULL, NULL}};

    lua_pushcfunction(L, load);
    lua_setfield(L, -2, "load");
    ah_lua_agent_methods(L, methods);
}
