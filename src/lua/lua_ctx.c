/* ctx: facts and functions that a handler gets beside its arguments. It is valid during its call;
 * afterwards its fields raise. */
#include "lua/lua_ask.h"
#include "lua/lua_budget.h"
#include "lua/lua_error.h"
#include "lua/lua_entity.h"
#include "lua/lua_fields.h"
#include "lua/lua_inject.h"
#include "lua/lua_moment.h"
#include "lua/lua_now.h"
#include "lua/lua_open.h"
#include "lua/lua_prompt.h"
#include "lua/lua_resources.h"
#include "lua/lua_session.h"
#include "lua/lua_staged.h"
#include "lua/lua_step.h"
#include "lua/lua_undo.h"
#include "lua/lua_value.h"
#include "run/step.h"

static ah_call *check_call(lua_State *L)
{
    return ah_lua_check_call(L, 1);
}

/* Raises in the function of a step, which changes nothing that belongs to the call. */
static ah_call *check_changing(lua_State *L)
{
    ah_call *call = check_call(L);

    ah_lua_no_change(L);
    return call;
}

/* ctx:step(name, f, { on_lost, secret }): calls f(key) once, and returns its result, which is
 * recorded. Raises what f raises. */
static int ctx_step(lua_State *L)
{
    const ah_call *call = check_call(L);

    if (!call->tool->durable)
        return ah_lua_raise(L, AH_USAGE, "ctx:step is for tools with durable = true");
    if (!ah_lua_durable(L))
        return ah_lua_raise(L, AH_USAGE,
                            "ctx:step: steps do not nest, and only the handler and its tasks make "
                            "them");
    return ah_lua_through_step(L, "step", ctx_step);
}

static int ctx_cancelled(lua_State *L)
{
    ah_ctx *c = luaL_checkudata(L, 1, AH_CTX);

    lua_pushboolean(L, !c->call || ah_run_cancelling(c->call->run) ||
                           atomic_load(&ah_lua_of(L)->host->cancel));
    return 1;
}

/* ctx:note(text): adds a note to the conversation after this call's result, if the call
 * succeeds. */
static int ctx_note(lua_State *L)
{
    ah_call *call = check_changing(L);
    ah_host *host = ah_lua_of(L)->host;
    ah_slice text;
    ah_text *entry;
    ah_err err;

    text.p = luaL_checklstring(L, 2, &text.n);
    if (!ah_utf8_valid(text))
        return ah_lua_raise(L, AH_USAGE, "ctx:note: the text is not UTF-8");
    entry = ah_entry_text(call->overlay.mem, AH_ENTRY_NOTE, text, ah_host_wall(host));
    if (entry)
        entry->len = ah_secrets_redact_json(&host->secrets, entry->data, entry->len);
    if (ah_overlay_stage(&call->overlay, AH_ENTRY_NOTE, entry, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

/* Returns the provenance of a tool's changes, which names the tool. Raises when out of memory. */
static ah_text *by_tool(lua_State *L, const ah_call *call)
{
    ah_buf *b = ah_lua_push_buf(L, 1 << 10);
    ah_text *by = NULL;

    ah_buf_fmt(b, "{\"tool\":\"%s\"}", call->tool->name->data);
    if (ah_text_from_buf(b, "provenance", &by, NULL) != AH_OK)
        ah_lua_raise_nomem(L);
    lua_pop(L, 1);
    return by;
}

/* Moves the changes, read completely, into those of the call. So a list with a fault adds
 * nothing. */
static int take_changes(lua_State *L, ah_call *call, const ah_changes *read)
{
    ah_err err;

    for (size_t i = 0; i < read->n; i++) {
        const ah_change *c = &read->item[i];
        ah_status st = c->tool ? ah_changes_add(&call->changes, c->tool, c->by, &err)
                               : ah_changes_remove(&call->changes, ah_text_slice(c->text), &err);

        if (st != AH_OK)
            return ah_lua_raise_err(L, &err);
    }
    return 0;
}

/* ctx:add_tools(tool | { tools }): the model gets them with its next answer, if the call
 * succeeds. */
static int ctx_add_tools(lua_State *L)
{
    ah_call *call = check_changing(L);
    ah_changes *read = ah_lua_push_changes(L, call->overlay.mem);
    ah_text *by;

    ah_lua_add_tools(L, 2, "ctx:add_tools", read, NULL);
    by = by_tool(L, call);
    for (size_t i = 0; i < read->n; i++)
        read->item[i].by = ah_text_ref(by);
    ah_text_unref(by);
    return take_changes(L, call, read);
}

/* ctx:remove_tools(name | { names }) */
static int ctx_remove_tools(lua_State *L)
{
    ah_call *call = check_changing(L);
    ah_changes *read = ah_lua_push_changes(L, call->overlay.mem);

    ah_lua_remove_tools(L, 2, "ctx:remove_tools", read);
    return take_changes(L, call, read);
}

/* ctx:publish(value): to session.dispatcher, after the call has succeeded. */
static int ctx_publish(lua_State *L)
{
    ah_call *call = check_call(L);

    luaL_checkany(L, 2);
    lua_settop(L, 2);
    if (!ah_run_cfg(call->run)->session)
        return ah_lua_raise(L, AH_USAGE, "ctx:publish: a call that a program makes has no session");
    ah_lua_push_session(L, ah_run_cfg(call->run)->session);
    ah_lua_push_dispatcher_of(L, 3);
    ah_lua_publish(L, 4, 2);
    return 0;
}

/* ctx:progress(text), ctx:progress(fraction), ctx:progress(fraction, text): reported at once. */
static int ctx_progress(lua_State *L)
{
    ah_call *call = check_call(L);
    bool number = lua_type(L, 2) == LUA_TNUMBER;
    double fraction = number ? lua_tonumber(L, 2) : -1;
    ah_slice text = {NULL, 0};

    if (number && !(fraction >= 0 && fraction <= 1))
        return ah_lua_raise(L, AH_USAGE, "ctx:progress: a fraction is from 0 to 1");
    if (!number || !lua_isnoneornil(L, 3))
        text.p = luaL_checklstring(L, number ? 3 : 2, &text.n);
    if (text.p && !ah_utf8_valid(text))
        return ah_lua_raise(L, AH_USAGE, "ctx:progress: the text is not UTF-8");
    ah_call_progress(call, text, fraction);
    return 0;
}

/* ctx:enlist(object, name): the call's changes of the object are undone if the call fails. Under
 * the name, if there is one, a store keeps its state. */
static int ctx_enlist(lua_State *L)
{
    ah_call *call = check_changing(L);
    ah_slice name = {NULL, 0};

    luaL_checkany(L, 2);
    lua_settop(L, 3);
    if (!lua_isnil(L, 3))
        name.p = luaL_checklstring(L, 3, &name.n);
    if (name.p && (!name.n || name.n > AH_ENTITY_ID || !ah_utf8_valid(name)))
        return ah_lua_raise(L, AH_USAGE, "ctx:enlist: a name is UTF-8 of 1 to %d bytes",
                            AH_ENTITY_ID);
    ah_lua_enlist(L, &call->overlay, 2, name);
    lua_settop(L, 2);
    return 1;
}

/* ctx:changes(): what the call has changed so far */
static int ctx_changes(lua_State *L)
{
    return ah_lua_push_staged_changes(L, &check_call(L)->overlay);
}

/* Pushes a copy of the facts about the model that made the call; changes of the copy have no
 * effect. */
static int push_adapter(lua_State *L, const ah_call *call)
{
    const ah_adapter *a = ah_run_cfg(call->run)->adapter;

    lua_createtable(L, 0, 4);
    lua_pushstring(L, ah_tool_change_mode_names[a->tool_change_mode]);
    lua_setfield(L, -2, "tool_change_mode");
    lua_pushboolean(L, a->tool_change_mode != AH_TOOLS_RESTART);
    lua_setfield(L, -2, "supports_dynamic_tools");
    lua_pushstring(L, a->provider->data);
    lua_setfield(L, -2, "provider");
    lua_pushstring(L, a->model->data);
    lua_setfield(L, -2, "model");
    return 1;
}

/* Pushes the run's own budget, else that of the run around it; nil if there is none. */
static int push_budget(lua_State *L, const ah_call *call)
{
    const ah_budgets *s = ah_run_spending(call->run);

    if (s->n)
        ah_lua_push_budget(L, s->draw[0].budget);
    else
        lua_pushnil(L);
    return 1;
}

/* Pushes the seconds left for the run or for the tool's own timeout, the smaller; nil: no limit. */
static int push_deadline(lua_State *L, const ah_call *call)
{
    int64_t at = ah_run_cfg(call->run)->deadline;

    if (call->deadline && (!at || call->deadline < at))
        at = call->deadline;
    if (at)
        lua_pushnumber(L, (double)(at - ah_host_now(ah_lua_of(L)->host)) / 1000);
    else
        lua_pushnil(L);
    return 1;
}

/* Pushes the key by which another system knows the call; nil without a store, unless the tool is
 * durable. */
static int push_key(lua_State *L, const ah_call *call)
{
    if (call->key)
        lua_pushlstring(L, call->key->data, call->key->len);
    else if (call->steps)
        lua_pushstring(L, call->steps->key);
    else
        lua_pushnil(L);
    return 1;
}

static int push_prompt(lua_State *L, const ah_call *call)
{
    ah_binding *b = ah_run_cfg(call->run)->prompt;

    if (b)
        ah_lua_push_prompt(L, b);
    else
        lua_pushnil(L);
    return 1;
}

static int push_calls(lua_State *L, const ah_call *call)
{
    ah_lua_push_calls(L, ah_run_cfg(call->run)->transcript);
    return 1;
}

static int push_rendered(lua_State *L, const ah_call *call)
{
    ah_binding *b = ah_run_cfg(call->run)->prompt;

    if (b)
        ah_lua_push_rendered(L, b);
    else
        lua_pushnil(L);
    return 1;
}

/* Pushes a field that needs more than a line; returns false if there is none of this name. */
static bool push_member(lua_State *L, const ah_call *call, const char *key)
{
    static const struct {
        const char *name;
        int (*push)(lua_State *L, const ah_call *call);
    } member[] = {{"idempotency_key", push_key},  {"deadline", push_deadline},
                  {"prompt", push_prompt},        {"rendered_prompt", push_rendered},
                  {"adapter", push_adapter},      {"calls", push_calls},
                  {"budget_tracker", push_budget}};

    for (size_t i = 0; i < sizeof member / sizeof *member; i++)
        if (strcmp(key, member[i].name) == 0)
            return member[i].push(L, call) == 1;
    return false;
}

static int ctx_index(lua_State *L)
{
    static const char *const known[] = {
        "call_id",   "idempotency_key", "tool_name", "run",    "coerced",   "session",
        "resources", "filesystem",      "calls",     "prompt", "deadline",  "rendered_prompt",
        "adapter",   "budget_tracker",  "cancelled", "step",   "add_tools", "remove_tools",
        "note",      "publish",         "progress",  "enlist", "changes",   NULL};
    const char *key = luaL_checkstring(L, 2);
    ah_call *call;

    if (luaL_getmetafield(L, 1, "methods") != LUA_TNIL && lua_getfield(L, -1, key) != LUA_TNIL)
        return 1;
    call = check_call(L);
    if (strcmp(key, "call_id") == 0)
        lua_pushlstring(L, call->slot->id->data, call->slot->id->len);
    else if (strcmp(key, "tool_name") == 0)
        lua_pushlstring(L, call->slot->name->data, call->slot->name->len);
    else if (strcmp(key, "run") == 0)
        lua_pushinteger(L, ah_run_cfg(call->run)->id);
    else if (strcmp(key, "coerced") == 0)
        lua_pushlstring(L, call->coerced ? call->coerced->data : "",
                        ah_text_slice(call->coerced).n);
    else if (strcmp(key, "session") == 0)
        ah_lua_push_session(L, ah_run_cfg(call->run)->session);
    else if (strcmp(key, "resources") == 0)
        ah_lua_push_resources(L, lua_touserdata(L, 1));
    else if (strcmp(key, "filesystem") == 0)
        ah_lua_push_filesystem(L, lua_touserdata(L, 1));
    else if (!push_member(L, call, key))
        return ah_lua_unknown(L, "ctx", known, ah_slice_of(key));
    return 1;
}

static int ctx_newindex(lua_State *L)
{
    return ah_lua_raise(L, AH_USAGE, "ctx is read-only");
}

void ah_lua_open_ctx(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__index", ctx_index}, {"__newindex", ctx_newindex}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"cancelled", ctx_cancelled},
                                       {"ask", ah_lua_ctx_ask},
                                       {"step", ctx_step},
                                       {"note", ctx_note},
                                       {"publish", ctx_publish},
                                       {"progress", ctx_progress},
                                       {"enlist", ctx_enlist},
                                       {"changes", ctx_changes},
                                       {"add_tools", ctx_add_tools},
                                       {"remove_tools", ctx_remove_tools},
                                       {NULL, NULL}};

    ah_lua_open_ask(L);
    luaL_newmetatable(L, AH_CTX);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "methods");
    lua_pop(L, 1);
}
