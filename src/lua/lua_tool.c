/* ah.tool, what handlers get (args, ctx) and what they may give back:
 * a value, nothing, ah.ok / ah.result / ah.fail, `nil, message`, or a raise. */
#include "lua/lua_tool.h"

#include "lua/lua_inject.h"
#include "lua/lua_prompt.h"
#include "lua/lua_schema.h"
#include "lua/lua_task.h"
#include "lua/lua_value.h"

static const char TOOL[] = "agenthost.tool";
static const char RESULT[] = "agenthost.result";
static const char CTX[] = "agenthost.ctx";

enum { MAX_VALUE = 64 << 20 }; /* bytes of one result as JSON */

/* -- ctx: what a handler may know and do --------------------------------------------- */

typedef struct ctx {
    ah_call *call; /* NULL once the call is over */
    ah_task *task;
} ctx;

static ah_call *check_call(lua_State *L)
{
    ctx *c = luaL_checkudata(L, 1, CTX);

    if (!c->call)
        ah_lua_raise(L, AH_USAGE, "ctx: the call is over");
    return c->call;
}

static int ctx_cancelled(lua_State *L)
{
    ctx *c = luaL_checkudata(L, 1, CTX);

    lua_pushboolean(L, !c->call || ah_run_cancelling(c->call->run) ||
                           atomic_load(&ah_lua_of(L)->host->cancel));
    return 1;
}

/* ctx:note(text): a note in the conversation after this call's result, if the call succeeds. */
static int ctx_note(lua_State *L)
{
    ah_call *call = check_call(L);
    ah_slice text;
    ah_text *entry;
    ah_err err;

    text.p = luaL_checklstring(L, 2, &text.n);
    if (!ah_utf8_valid(text))
        return ah_lua_raise(L, AH_USAGE, "ctx:note: the text is not UTF-8");
    entry = ah_entry_text(call->overlay.mem, AH_ENTRY_NOTE, text, ah_host_wall(ah_lua_of(L)->host));
    if (ah_overlay_stage(&call->overlay, AH_ENTRY_NOTE, entry, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

/* What a tool adds says which tool it was. */
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

/* Moves what was read whole into the call's changes; a list with a fault in it adds nothing. */
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

/* ctx:add_tools(tool | { tools }): the model has them from its next answer on, if the call succeeds. */
static int ctx_add_tools(lua_State *L)
{
    ah_call *call = check_call(L);
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
    ah_call *call = check_call(L);
    ah_changes *read = ah_lua_push_changes(L, call->overlay.mem);

    ah_lua_remove_tools(L, 2, "ctx:remove_tools", read);
    return take_changes(L, call, read);
}

/* Seconds left: of the run or of the tool's own timeout, whichever ends first; nil without one. */
static int push_deadline(lua_State *L, const ah_call *call)
{
    int64_t at = ah_run_deadline(call->run);

    if (call->deadline && (!at || call->deadline < at))
        at = call->deadline;
    if (at)
        lua_pushnumber(L, (double)(at - ah_host_now(ah_lua_of(L)->host)) / 1000);
    else
        lua_pushnil(L);
    return 1;
}

static int push_prompt(lua_State *L, const ah_call *call)
{
    ah_binding *b = ah_run_prompt(call->run);

    if (b)
        ah_lua_push_prompt(L, b);
    else
        lua_pushnil(L);
    return 1;
}

static int ctx_index(lua_State *L)
{
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
        lua_pushinteger(L, ah_run_id(call->run));
    else if (strcmp(key, "coerced") == 0)
        lua_pushlstring(L, call->coerced ? call->coerced->data : "", ah_text_slice(call->coerced).n);
    else if (strcmp(key, "deadline") == 0)
        return push_deadline(L, call);
    else if (strcmp(key, "prompt") == 0)
        return push_prompt(L, call);
    else
        return ah_lua_raise(L, AH_USAGE, "ctx: unknown field '%s'", key);
    return 1;
}

static int ctx_newindex(lua_State *L)
{
    return ah_lua_raise(L, AH_USAGE, "ctx is read-only");
}

/* -- from a handler's results to an outcome -------------------------------------------- */

static void to_value(ah_task *t, int idx, ah_buf *value, ah_outcome *o, ah_err *err)
{
    const ctx *c = t->ud;

    if (ah_lua_to_json(t->lua->caller, idx, &t->lua->mem, value, err) == AH_OK) {
        o->value = ah_buf_slice(value);
        if (ah_run_has_strategies(c->call->run))
            o->live = ah_lua_live(t->lua->caller, idx);
        return;
    }
    *o = (ah_outcome){.failure = AH_FAILED_RAISED, .message = ah_slice_of(err->message)};
}

static void message_at(lua_State *L, int idx, ah_outcome *o)
{
    o->message.p = lua_tolstring(L, idx, &o->message.n);
}

/* A result object: fields were checked when it was made. Its texts stay in its table. */
static void from_result(ah_task *t, int idx, ah_buf *value, ah_outcome *o, ah_err *err)
{
    lua_State *L = t->lua->caller;

    luaL_checkstack(L, 4, "tool result");
    lua_getfield(L, idx, "success");
    o->success = lua_toboolean(L, -1);
    lua_getfield(L, idx, "exclude_value_from_context");
    o->exclude_value = lua_toboolean(L, -1);
    if (lua_getfield(L, idx, "message") == LUA_TSTRING)
        message_at(L, -1, o);
    if (lua_getfield(L, idx, "value") != LUA_TNIL)
        to_value(t, lua_gettop(L), value, o, err);
}

static bool is_result(lua_State *L, int idx)
{
    bool is;

    if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
        return false;
    luaL_getmetatable(L, RESULT);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

/* The results begin at `first`. */
static void read_results(ah_task *t, int first, int nresults, ah_buf *value, ah_outcome *o, ah_err *err)
{
    lua_State *L = t->lua->caller;

    o->success = true;
    if (nresults == 0)
        return;
    if (nresults >= 2 && lua_isnil(L, first) && !lua_isnil(L, first + 1)) {
        o->success = false;
        message_at(L, first + 1, o);
    } else if (is_result(L, first)) {
        from_result(t, first, value, o, err);
    } else if (!lua_isnil(L, first)) {
        to_value(t, first, value, o, err);
    }
}

static void end_call(ah_task *t, const ah_outcome *o)
{
    ctx *c = t->ud;
    ah_call *call = c->call;

    c->call = NULL;
    call->task = NULL;
    ah_call_done(call, o, ah_host_now(t->lua->host));
    ah_driven_wake(t->job.of);
}

static void settled(ah_task *t, int nresults)
{
    int first = lua_gettop(t->lua->caller) - nresults + 1;
    ah_buf *value = ah_lua_push_buf(t->lua->caller, MAX_VALUE);
    ah_outcome o = {0};
    ah_err err;

    read_results(t, first, nresults, value, &o, &err);
    if (o.message.p && !ah_utf8_valid(o.message)) {
        ah_value_release(&o.live);
        o = (ah_outcome){.failure = AH_FAILED_RAISED,
                         .message = ah_slice_of("its message is not UTF-8")};
    }
    end_call(t, &o);
    ah_buf_clear(value); /* now, not when the collector comes: it may be large */
}

/* Kinds that leave the loop; everything else a handler raises is an answer (seed 002). */
static bool leaves(ah_status st)
{
    return st == AH_PROMPT_EVALUATION || st == AH_VISIBILITY_EXPANSION || st == AH_DEADLINE ||
           st == AH_BUDGET || st == AH_CANCELLED;
}

static void failed(ah_task *t, const ah_err *err)
{
    ah_outcome o = {.failure =
                        err->status == AH_TOOL_VALIDATION ? AH_FAILED_VALIDATION : AH_FAILED_RAISED,
                    .message = ah_slice_of(err->message)};
    char repaired[sizeof err->message];

    if (!ah_utf8_valid(o.message)) { /* error texts come from anywhere */
        memcpy(repaired, err->message, sizeof repaired);
        for (char *p = repaired; *p; p++)
            if ((unsigned char)*p >= 0x80)
                *p = '?';
        o.message = ah_slice_of(repaired);
    }
    if (leaves(err->status))
        o.leave = err->status;
    end_call(t, &o);
}

/* -- starting a handler ------------------------------------------------------------------- */

typedef struct handler {
    ah_lua *lua;
    int ref;
} handler;

static void release_handler(void *p)
{
    handler *hd = p;

    ah_lua_unref(hd->lua, &hd->ref);
    ah_free(&hd->lua->mem, hd);
}

static const struct ah_value_vt handler_vt = {release_handler};

ah_value ah_lua_live(lua_State *L, int idx)
{
    ah_lua *h = ah_lua_of(L);
    handler *box;
    int ref;

    lua_pushvalue(L, idx);
    ref = ah_lua_ref(L);
    if (!(box = ah_alloc(&h->mem, sizeof *box))) {
        ah_lua_unref(h, &ref);
        return (ah_value){0};
    }
    *box = (handler){.lua = h, .ref = ref};
    return (ah_value){&handler_vt, box};
}

void ah_lua_push_live(lua_State *L, const ah_value *v)
{
    if (v->vt == &handler_vt)
        lua_rawgeti(L, LUA_REGISTRYINDEX, ((const handler *)v->p)->ref);
    else
        lua_pushnil(L);
}

static ctx *push_ctx(lua_State *L, ah_call *call)
{
    ctx *c = lua_newuserdatauv(L, sizeof *c, 0);

    *c = (ctx){.call = call};
    luaL_setmetatable(L, CTX);
    return c;
}

/* Of `nil, message` the message becomes a text here, where its __tostring is fenced in. */
static int handled(lua_State *L, int status, lua_KContext kctx)
{
    (void)status;
    (void)kctx;
    if (lua_gettop(L) >= 2 && lua_isnil(L, 1) && !lua_isnil(L, 2)) {
        lua_settop(L, 2);
        luaL_tolstring(L, 2, NULL);
        lua_replace(L, 2);
    }
    return lua_gettop(L);
}

/* handler args ctx */
static int handle(lua_State *L)
{
    lua_callk(L, 2, LUA_MULTRET, 0, handled);
    return handled(L, LUA_OK, 0);
}

/* A tool without a timeout may wait as long as it has to, but not compute for ever. */
static void fence_in(ah_task *t, const ah_tool *tool)
{
    t->fence.memory = tool->memory;
    t->fence.work_ms = tool->timeout_ms ? 0 : t->lua->host->work_ms;
}

static int make_task(lua_State *L)
{
    ah_call *call = lua_touserdata(L, 1);
    handler *hd = call->tool->handler.p;
    ctx *c = push_ctx(L, call); /* -- call ctx */
    ah_task *t;

    lua_pushcfunction(L, handle);
    lua_rawgeti(L, LUA_REGISTRYINDEX, hd->ref); /* -- call ctx handle f */
    ah_lua_push_json(L, ah_text_slice(call->args));
    lua_pushvalue(L, 2); /* -- call ctx handle f args ctx */
    t = ah_task_new(hd->lua, L, 3, ah_run_owner(call->run));
    ah_task_keep(L, t); /* -- call */
    fence_in(t, call->tool);
    t->settled = settled;
    t->failed = failed;
    t->ud = c;
    t->deadline = call->deadline;
    c->task = t;
    call->task = c;
    return 0;
}

static void start(const ah_tool *tool, ah_call *call)
{
    ah_lua *h = ((handler *)tool->handler.p)->lua;
    lua_State *L = h->caller;
    ah_err err;
    ah_outcome o = {.failure = AH_FAILED_RAISED};

    lua_pushcfunction(L, make_task);
    lua_pushlightuserdata(L, call);
    if (ah_lua_call(h, L, 1, 0, &err) == AH_OK) {
        ah_task_begin(((ctx *)call->task)->task);
        return;
    }
    o.message = ah_slice_of(err.message);
    ah_call_done(call, &o, ah_host_now(h->host));
}

static void stop(const ah_tool *tool, ah_call *call)
{
    ctx *c = call->task;

    (void)tool;
    call->task = NULL;
    if (!c)
        return;
    c->call = NULL;
    ah_task_stop(c->task);
}

static const ah_tool_vt lua_tool_vt = {.start = start, .stop = stop};

/* -- ah.tool ---------------------------------------------------------------------------------- */

ah_tool *ah_lua_to_tool(lua_State *L, int idx)
{
    ah_tool **box = luaL_testudata(L, idx, TOOL);

    return box ? *box : NULL;
}

void ah_lua_push_tool(lua_State *L, ah_tool *tool)
{
    ah_tool **box = lua_newuserdatauv(L, sizeof *box, 0);

    *box = ah_tool_ref(tool);
    luaL_setmetatable(L, TOOL);
}

ah_tool **ah_lua_tool_list(lua_State *L, const char *what, size_t *n)
{
    int list = lua_gettop(L);
    ah_tool **out;

    *n = lua_istable(L, list) ? (size_t)luaL_len(L, list) : 0;
    out = lua_newuserdatauv(L, (*n + 1) * sizeof(ah_tool *), 0);
    for (size_t i = 0; i < *n; i++) {
        lua_geti(L, list, (lua_Integer)i + 1);
        if (!(out[i] = ah_lua_to_tool(L, -1)))
            ah_lua_raise(L, AH_PROMPT_VALIDATION, "%s[%d] must be made by ah.tool, found %s", what,
                         (int)i + 1, luaL_typename(L, -1));
        lua_pop(L, 1); /* the list keeps it */
    }
    return out;
}

/* What is being made, in a userdata so that a raise loses nothing. */
typedef struct draft {
    ah_schema *params, *result;
    handler *handler;
} draft;

static int draft_gc(lua_State *L)
{
    draft *d = lua_touserdata(L, 1);

    ah_schema_unref(d->params);
    ah_schema_unref(d->result);
    if (d->handler)
        release_handler(d->handler);
    *d = (draft){0};
    return 0;
}

static void read_schemas(lua_State *L, ah_lua *h, draft *d)
{
    ah_err err;

    ah_lua_read_params(L, 1, "ah.tool", &h->mem, &d->params);
    if (lua_getfield(L, 1, "result") != LUA_TNIL &&
        ah_lua_schema(L, -1, &h->mem, &d->result, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_settop(L, 2);
}

static void read_handler(lua_State *L, ah_lua *h, draft *d)
{
    lua_Debug ar;

    if (!ah_field_push(L, 1, "ah.tool", "handler", LUA_TFUNCTION))
        return;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">u", &ar);
    if (ar.nparams > 2)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "ah.tool: handlers are function(args, ctx); this one has %d parameters",
                     ar.nparams);
    if (!(d->handler = ah_alloc(&h->mem, sizeof *d->handler)))
        ah_lua_raise_nomem(L);
    d->handler->lua = h;
    d->handler->ref = LUA_NOREF;
    d->handler->ref = ah_lua_ref(L);
}

static void read_def(lua_State *L, draft *d, ah_tool_def *def)
{
    static const char what[] = "ah.tool";
    double timeout = 0, memory = 0;
    bool accepts = true;
    int most = 0;

    if (!ah_field_string(L, 1, what, "name", &def->name))
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah.tool: field 'name' is missing");
    if (!ah_field_string(L, 1, what, "description", &def->description))
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah.tool: field 'description' is missing");
    ah_field_string(L, 1, what, "full_description", &def->full_description);
    ah_field_bool(L, 1, what, "parallel", &def->parallel);
    ah_field_bool(L, 1, what, "coerce", &def->coerce);
    ah_field_number(L, 1, what, "timeout", 0.001, &timeout);
    ah_field_number(L, 1, what, "memory", AH_TOOL_LEAST_MEMORY, &memory);
    ah_field_count(L, 1, what, "max_result", AH_TOOL_LEAST_RESULT, &most);
    ah_field_bool(L, 1, what, "accepts_overrides", &accepts);
    def->timeout_ms = (int64_t)(timeout * 1000);
    def->memory = (size_t)memory;
    def->max_result = (size_t)most;
    def->keeps_words = !accepts;
    def->params = d->params;
    def->result = d->result;
    def->no_handler = d->handler == NULL;
    def->vt = &lua_tool_vt;
    if (d->handler)
        def->handler = (ah_value){&handler_vt, d->handler};
}

/* Leaves on the stack what the definition points into. */
static void read_examples(lua_State *L, ah_tool_def *def)
{
    ah_status st;
    ah_buf *b;
    ah_err err;

    if (!ah_field_push(L, 1, "ah.tool", "examples", LUA_TTABLE))
        return;
    b = ah_lua_push_buf(L, MAX_VALUE);
    if ((st = ah_lua_to_json(L, -2, b->mem, b, &err)) == AH_NOMEM)
        ah_lua_raise_nomem(L);
    if (st != AH_OK)
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah.tool: examples: %s", err.message);
    if (!ah_slice_is(ah_buf_slice(b), "{}")) /* an empty list */
        def->examples = ah_buf_slice(b);
}

/* ah.tool { name, description, full_description, params | schema, result, examples, handler,
 * parallel, timeout, memory, max_result, accepts_overrides, coerce }: raises prompt_validation at the
 * script's line. */
static int new_tool(lua_State *L)
{
    static const char *const known[] = {
        "name",   "description", "full_description",  "params",   "schema",
        "result", "examples",    "handler",           "parallel", "timeout",
        "memory", "max_result",  "accepts_overrides", "coerce",   NULL};
    ah_lua *h = ah_lua_of(L);
    ah_tool_def def = {0};
    ah_tool **box;
    ah_err err;
    draft *d;

    lua_settop(L, 1);
    ah_fields_check(L, 1, "ah.tool", known, false);
    d = lua_newuserdatauv(L, sizeof *d, 0); /* -- t draft */
    *d = (draft){0};
    luaL_setmetatable(L, "agenthost.draft");
    read_schemas(L, h, d);
    read_handler(L, h, d);
    read_def(L, d, &def);
    read_examples(L, &def);
    box = lua_newuserdatauv(L, sizeof *box, 0); /* -- t draft tool */
    *box = NULL;
    luaL_setmetatable(L, TOOL);
    if (ah_tool_new(&h->mem, &def, box, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    d->handler = NULL; /* the tool's now */
    return 1;
}

static int tool_gc(lua_State *L)
{
    ah_tool **box = luaL_checkudata(L, 1, TOOL);

    ah_tool_unref(*box);
    *box = NULL;
    return 0;
}

static int tool_tostring(lua_State *L)
{
    ah_tool *t = *(ah_tool **)luaL_checkudata(L, 1, TOOL);

    lua_pushfstring(L, "tool %s", t->name->data);
    return 1;
}

static int tool_eq(lua_State *L)
{
    ah_tool *a = ah_lua_to_tool(L, 1), *b = ah_lua_to_tool(L, 2);

    lua_pushboolean(L, a && a == b);
    return 1;
}

static int tool_index(lua_State *L)
{
    ah_tool *t = *(ah_tool **)luaL_checkudata(L, 1, TOOL);
    const char *key = luaL_checkstring(L, 2);

    if (strcmp(key, "name") == 0)
        lua_pushstring(L, t->name->data);
    else if (strcmp(key, "spec") == 0) /* what a model is told, decoded */
        ah_lua_push_json(L, ah_text_slice(t->spec));
    else if (strcmp(key, "examples") == 0)
        ah_lua_push_json(L, t->examples ? ah_text_slice(t->examples) : ah_slice_of("[]"));
    else
        return ah_lua_raise(L, AH_USAGE, "tool: unknown field '%s'", key);
    return 1;
}

/* -- results ------------------------------------------------------------------------------------ */

/* Sets the result's fields from the stack: message at 2, value at 1. */
static int make_result(lua_State *L, int value, int message, bool success)
{
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, message);
    lua_setfield(L, -2, "message");
    lua_pushvalue(L, value);
    lua_setfield(L, -2, "value");
    lua_pushboolean(L, success);
    lua_setfield(L, -2, "success");
    luaL_setmetatable(L, RESULT);
    return 1;
}

/* ah.ok(value, message) */
static int ok(lua_State *L)
{
    lua_settop(L, 2);
    luaL_optstring(L, 2, NULL);
    return make_result(L, 1, 2, true);
}

/* ah.fail(message) */
static int fail(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_settop(L, 2);
    return make_result(L, 2, 1, false);
}

/* ah.result { message, value, success = true, exclude_value_from_context } */
static int result(lua_State *L)
{
    static const char *const known[] = {"message", "value", "success", "exclude_value_from_context",
                                        NULL};
    bool success = true, exclude = false;
    ah_slice message;

    lua_settop(L, 1);
    ah_fields_check(L, 1, "ah.result", known, false);
    ah_field_bool(L, 1, "ah.result", "success", &success);
    ah_field_bool(L, 1, "ah.result", "exclude_value_from_context", &exclude);
    ah_field_string(L, 1, "ah.result", "message", &message);
    lua_getfield(L, 1, "message");
    lua_getfield(L, 1, "value");
    make_result(L, 3, 2, success);
    lua_pushboolean(L, exclude);
    lua_setfield(L, -2, "exclude_value_from_context");
    return 1;
}

static int result_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "success");
    lua_getfield(L, 1, "message");
    lua_pushfstring(L, "%s: %s", lua_toboolean(L, -2) ? "ok" : "failed",
                    luaL_optstring(L, -1, "(no message)"));
    return 1;
}

static void new_class(lua_State *L, const char *name, const luaL_Reg *meta)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
}

void ah_lua_open_tool(lua_State *L)
{
    static const luaL_Reg tool_meta[] = {{"__gc", tool_gc},
                                         {"__tostring", tool_tostring},
                                         {"__eq", tool_eq},
                                         {"__index", tool_index},
                                         {NULL, NULL}};
    static const luaL_Reg draft_meta[] = {{"__gc", draft_gc}, {NULL, NULL}};
    static const luaL_Reg result_meta[] = {{"__tostring", result_tostring}, {NULL, NULL}};
    static const luaL_Reg ctx_meta[] = {
        {"__index", ctx_index}, {"__newindex", ctx_newindex}, {NULL, NULL}};
    static const luaL_Reg ctx_methods[] = {{"cancelled", ctx_cancelled},
                                           {"note", ctx_note},
                                           {"add_tools", ctx_add_tools},
                                           {"remove_tools", ctx_remove_tools},
                                           {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"tool", new_tool}, {"ok", ok}, {"fail", fail}, {"result", result}, {NULL, NULL}};

    new_class(L, TOOL, tool_meta);
    new_class(L, "agenthost.draft", draft_meta);
    new_class(L, RESULT, result_meta);
    luaL_newmetatable(L, CTX);
    luaL_setfuncs(L, ctx_meta, 0);
    luaL_newlib(L, ctx_methods);
    lua_setfield(L, -2, "methods");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
