/* A moment is one call as a strategy or a policy written in Lua sees it, with the means by which a
 * strategy makes changes after it (for authors: docs/reference/strategies.md). lua_inject.c and
 * lua_hooks.c call strategies and policies; run/inject.c applies the changes. */
#include "lua/lua_moment.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_inject.h"
#include "lua/lua_render.h"
#include "lua/lua_reply.h"
#include "lua/lua_tool.h"
#include "lua/lua_tool_fields.h"
#include "lua/lua_value.h"
#include "lua/lua_staged.h"
#include "run/run.h"

static const char MOMENT[] = "agenthost.moment";

enum { MAX_ARGS = 32 << 20, MAX_STATE = 1 << 20 };

/* A script may keep the object. It is empty once the strategy has returned or failed. */
typedef struct ah_moment_box {
    ah_moment *m;
} moment_box;

static ah_moment *check_moment(lua_State *L)
{
    ah_moment *m = ((moment_box *)luaL_checkudata(L, 1, MOMENT))->m;

    if (!m)
        ah_lua_raise(L, AH_USAGE, "the call that the strategy or policy was asked about is over");
    return m;
}

/* Returns the moment at 1. Raises if it must not change anything: in a policy, or before a call. */
static ah_moment *check_changing(lua_State *L)
{
    ah_moment *m = check_moment(L);

    if (!m->strategy)
        ah_lua_raise(L, AH_USAGE, "policy: only strategies change tools and texts");
    if (!m->out)
        ah_lua_raise(L, AH_USAGE, "strategy: nothing can be changed before a call, only after it");
    return m;
}

static int moment_add(lua_State *L)
{
    ah_moment *m = check_changing(L);

    ah_lua_add_tools(L, 2, "strategy", m->out, m->by);
    return 0;
}

static int moment_replace(lua_State *L)
{
    ah_moment *m = check_changing(L);
    size_t first = m->out->n;

    ah_lua_add_tools(L, 2, "strategy", m->out, m->by);
    for (size_t i = first; i < m->out->n; i++)
        m->out->item[i].kind = AH_CHANGE_REPLACE;
    return 0;
}

static int moment_remove(lua_State *L)
{
    ah_lua_remove_tools(L, 2, "strategy", check_changing(L)->out);
    return 0;
}

static ah_slice check_text(lua_State *L)
{
    ah_slice text;

    text.p = luaL_checklstring(L, 2, &text.n);
    if (!ah_utf8_valid(text))
        ah_lua_raise(L, AH_USAGE, "strategy: the text is not UTF-8");
    return text;
}

static int moment_note(lua_State *L)
{
    ah_moment *m = check_changing(L);
    ah_err err;

    if (ah_changes_note(m->out, check_text(L), &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

static int moment_prompt(lua_State *L)
{
    ah_moment *m = check_changing(L);
    ah_err err;

    if (ah_changes_prompt(m->out, check_text(L), m->by, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

/* Pushes the strategy's state, including its last change in this moment; nil if it has none yet.
 * Raises in a policy. */
static void push_state(lua_State *L, const ah_moment *m)
{
    ah_slice state = {NULL, 0};

    if (!m->strategy)
        ah_lua_raise(L, AH_USAGE, "policy: only strategies have a state");
    for (size_t i = m->out ? m->out->n : 0; i > 0 && !state.p; i--)
        if (m->out->item[i - 1].kind == AH_CHANGE_STATE)
            state = ah_json_member(ah_text_slice(m->out->item[i - 1].text), "state");
    if (!state.p)
        state = ah_strategy_state(m->kept, ah_run_cfg(m->run)->transcript, m->strategy);
    if (!state.p || ah_json_kind_of(state) == AH_JSON_NULL)
        lua_pushnil(L);
    else
        ah_lua_push_json(L, state);
}

/* m.state = value */
static int moment_newindex(lua_State *L)
{
    ah_moment *m = check_changing(L);
    const char *key = luaL_checkstring(L, 2);
    ah_buf *b = ah_lua_push_buf(L, MAX_STATE);
    ah_err err;

    if (strcmp(key, "state") != 0)
        ah_lua_raise(L, AH_USAGE, "strategy: only the field 'state' can be set, not '%.100s'", key);
    if (lua_isnil(L, 3))
        ah_buf_str(b, "null");
    else if (ah_lua_to_json(L, 3, b->mem, b, &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "strategy: state: %s", err.message);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    if (ah_changes_state(m->out, m->strategy, ah_buf_slice(b), &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_buf_clear(b);
    return 0;
}

/* call:changes(): what the call has changed so far; nothing before its handler. For policies
 * only: a strategy may come after the commit. */
static int moment_changes(lua_State *L)
{
    if (check_moment(L)->strategy)
        return ah_lua_raise(L, AH_USAGE, "strategy: only policies see the changes of a call");
    return ah_lua_push_staged_changes(L, &check_moment(L)->call->overlay);
}

/* Pushes the arguments as the model wrote them; nil if they are not JSON. */
static void push_written(lua_State *L, ah_slice arguments, bool json)
{
    if (json)
        ah_lua_push_json(L, arguments);
    else
        lua_pushnil(L);
}

/* Policies judge what the handler gets; strategies see what the conversation has. */
static void push_arguments(lua_State *L, const ah_moment *m)
{
    const ah_call *c = m->call;

    if (c->args && m->strategy)
        ah_lua_push_said(L, c);
    else if (c->args)
        ah_lua_push_json(L, ah_text_slice(c->args));
    else if (m->out)
        lua_pushnil(L);
    else
        push_written(L, ah_text_slice(c->slot->arguments), c->slot->written != AH_ARGUMENTS_WRONG);
}

/* Pushes { name, arguments, success } of one call. `json`: its arguments are known to be JSON. */
static void push_call(lua_State *L, ah_slice call, bool json, bool success)
{
    ah_slice name, arguments, text;
    const ah_json_slot want[] = {{"name", &name}, {"arguments", &arguments}};
    ah_buf *b = ah_lua_push_buf(L, MAX_ARGS);

    ah_json_members(call, want, 2);
    lua_createtable(L, 0, 3);
    ah_lua_push_json(L, name);
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, success);
    lua_setfield(L, -2, "success");
    ah_json_string(arguments, b);
    text = ah_buf_ok(b) ? ah_buf_slice(b) : (ah_slice){"", 0};
    push_written(L, text,
                 text.n && (json || ah_json_check(b->mem, text, AH_JSON_MAX_DEPTH, NULL) == AH_OK));
    lua_setfield(L, -2, "arguments");
    ah_buf_clear(b);
    lua_remove(L, -2);
}

/* Appends the answered calls of one assistant message to the list on top, except those that a
 * strategy has answered. */
static void push_turn(lua_State *L, const ah_transcript *t, ah_slice assistant, size_t at)
{
    ah_json_reader r = ah_json_read(ah_json_member(assistant, "tool_calls"));
    ah_json_token token = ah_json_next(&r);

    token = ah_json_next(&r);
    for (size_t i = 0; token.kind == AH_JSON_OBJECT; i++, token = ah_json_next(&r)) {
        bool pending = at == t->n;
        ah_text *result = pending ? t->slot[i].result : t->entry[at + 1 + i].json;
        ah_slice call = ah_json_skip(&r, token);

        if (!result || ah_json_member(ah_text_slice(result), "refused").p)
            continue;
        push_call(L, call,
                  pending ? t->slot[i].written != AH_ARGUMENTS_WRONG : t->entry[at].objects,
                  ah_slice_is(ah_json_member(ah_text_slice(result), "success"), "true"));
        lua_rawseti(L, -2, luaL_len(L, -2) + 1);
    }
}

void ah_lua_push_calls(lua_State *L, const ah_transcript *t)
{
    luaL_checkstack(L, 8, "calls");
    lua_newtable(L);
    for (size_t i = 0; i < t->n; i++)
        if (t->entry[i].kind == AH_ENTRY_ASSISTANT)
            push_turn(L, t, ah_text_slice(t->entry[i].json), i);
    if (t->assistant)
        push_turn(L, t, ah_text_slice(t->assistant), t->n);
}

/* Returns the tool of the call, also before it was looked up; NULL: none. */
static const ah_tool *tool_of(const ah_moment *m)
{
    const ah_call *c = m->call;

    return c->tool ? c->tool
                   : ah_registry_find(ah_run_cfg(m->run)->registry, ah_text_slice(c->slot->name));
}

static void no_field(lua_State *L, const ah_moment *m, const char *key)
{
    static const char *const known[] = {
        "name",        "id",      "arguments", "result", "value",  "success",
        "state",       "tools",   "iteration", "run",    "calls",  "history",
        "add",         "replace", "remove",    "note",   "prompt", "parent_call",
        "annotations", "version", "changes",   NULL};
    const char *who = m->strategy ? "strategy" : "policy", *hint = NULL;

    if (strcmp(key, "tool") == 0)
        hint = "the tool's name is `name`";
    else if (strcmp(key, "call_id") == 0)
        hint = "the call's id is `id`";
    if (hint)
        ah_lua_raise(L, AH_USAGE, "%s: unknown field '%s'; %s", who, key, hint);
    ah_lua_unknown(L, who, known, ah_slice_of(key));
}

static void push_field(lua_State *L, const ah_moment *m, const char *key)
{
    const ah_call *c = m->call;

    if (strcmp(key, "name") == 0)
        lua_pushlstring(L, c->slot->name->data, c->slot->name->len);
    else if (strcmp(key, "id") == 0)
        lua_pushlstring(L, c->slot->id->data, c->slot->id->len);
    else if (strcmp(key, "parent_call") == 0 && c->parent_call)
        lua_pushlstring(L, c->parent_call->data, c->parent_call->len);
    else if (strcmp(key, "parent_call") == 0)
        lua_pushnil(L);
    else if (strcmp(key, "arguments") == 0)
        push_arguments(L, m);
    else if (strcmp(key, "raw_arguments") == 0)
        lua_pushlstring(L, c->slot->arguments->data, c->slot->arguments->len);
    else if (strcmp(key, "result") == 0 && c->content)
        lua_pushlstring(L, c->content->data, c->content->len);
    else if (strcmp(key, "result") == 0)
        lua_pushnil(L);
    else if (strcmp(key, "value") == 0)
        ah_lua_push_live(L, &c->live);
    else if (strcmp(key, "success") == 0)
        lua_pushboolean(L, c->success);
    else if (strcmp(key, "state") == 0)
        push_state(L, m);
    else if (strcmp(key, "tools") == 0)
        ah_lua_push_tools(L, ah_run_cfg(m->run)->registry);
    else if (strcmp(key, "annotations") == 0)
        ah_lua_push_annotations(L, tool_of(m));
    else if (strcmp(key, "version") == 0)
        ah_lua_push_version(L, tool_of(m));
    else if (strcmp(key, "iteration") == 0)
        lua_pushinteger(L, ah_run_iterations(m->run));
    else if (strcmp(key, "run") == 0)
        lua_pushinteger(L, ah_run_cfg(m->run)->id);
    else if (strcmp(key, "calls") == 0)
        ah_lua_push_calls(L, ah_run_cfg(m->run)->transcript);
    else if (strcmp(key, "history") == 0)
        ah_lua_push_messages(L, ah_run_cfg(m->run)->transcript, ah_run_cfg(m->run)->transcript->n);
    else
        no_field(L, m, key);
}

static int moment_index(lua_State *L)
{
    const char *key = luaL_checkstring(L, 2);

    luaL_checkudata(L, 1, MOMENT);
    if (luaL_getmetafield(L, 1, "methods") != LUA_TNIL && lua_getfield(L, -1, key) != LUA_TNIL)
        return 1;
    push_field(L, check_moment(L), key);
    return 1;
}

void ah_lua_push_moment(lua_State *L, ah_moment *m)
{
    moment_box *box = lua_newuserdatauv(L, sizeof *box, 0);

    box->m = m;
    m->box = box;
    luaL_setmetatable(L, MOMENT);
}

void ah_lua_end_moment(ah_moment *m)
{
    if (m->box)
        m->box->m = NULL;
    m->box = NULL;
}

/* (function or table, method, moment) -- two results; the first is added if changes are taken */
static int call_with_moment(lua_State *L)
{
    const char *method = lua_touserdata(L, 2);
    ah_moment *m = lua_touserdata(L, 3);
    int nargs = 1;

    ah_lua_push_moment(L, m); /* -- f method m box */
    if (lua_istable(L, 1)) {
        lua_getfield(L, 1, method);
        lua_pushvalue(L, 1);
        nargs = 2;
    } else {
        lua_pushvalue(L, 1);
    }
    lua_pushvalue(L, 4);
    lua_call(L, nargs, 2);
    if (m->out && !lua_isnil(L, -2))
        ah_lua_add_tools(L, -2, "strategy", m->out, m->by);
    return 2;
}

ah_status ah_lua_with_moment(ah_lua *h, lua_State *L, const char *method, ah_moment *m, ah_err *err)
{
    ah_status st;

    lua_pushcfunction(L, call_with_moment);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, (void *)(uintptr_t)method);
    lua_pushlightuserdata(L, m);
    st = ah_lua_call_as(h, AH_CALLEE_STRATEGY, L, 3, 2, err);
    ah_lua_end_moment(m);
    if (st != AH_OK) {
        lua_pushnil(L);
        lua_pushnil(L);
    }
    return st;
}

static int box_gc(lua_State *L)
{
    moment_box *box = luaL_checkudata(L, 1, MOMENT);

    if (box->m)
        box->m->box = NULL;
    box->m = NULL;
    return 0;
}

void ah_lua_open_moment(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", box_gc}, {"__index", moment_index}, {"__newindex", moment_newindex}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"add", moment_add},   {"replace", moment_replace}, {"remove", moment_remove},
        {"note", moment_note}, {"prompt", moment_prompt},   {"changes", moment_changes},
        {NULL, NULL}};

    luaL_newmetatable(L, MOMENT);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "methods");
    lua_pop(L, 1);
}
