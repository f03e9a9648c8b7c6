/* ah.tool, the calls of handlers and their answers. Handlers get ctx beside their arguments
 * (lua_ctx.c); lua_result.c reads their results. */
#include "lua/lua_tool.h"

#include "lua/lua_error.h"
#include "lua/lua_expansion.h"
#include "lua/lua_entity.h"
#include "lua/lua_fields.h"
#include "lua/lua_group.h"
#include "lua/lua_host.h"
#include "lua/lua_now.h"
#include "lua/lua_render.h"
#include "lua/lua_resource_end.h"
#include "lua/lua_result.h"
#include "lua/lua_schema.h"
#include "lua/lua_tool_fields.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"
#include "run/step.h"

static const char TOOL[] = "agenthost.tool";

enum { MAX_ASKED = 4 << 20 };

typedef ah_lua_handler handler;

/* -- the end of a call ------------------------------------------------------------------ */

/* True: recorded steps were not asked for; the run ends, and the model reads nothing of it. A
 * handler that ran out of memory has not diverged, and may go on later. */
static bool stops_short(ah_call *call, ah_status failure)
{
    ah_err err;

    if (ah_steps_over(call->steps, &err) == AH_OK)
        return false;
    if (failure == AH_NOMEM)
        ah_err_nomem(&err);
    ah_run_stop_unsettled(call->run, &err);
    return true;
}

/* failure: status of the error that the handler raised; AH_OK: none. */
static void end_call(ah_task *t, const ah_outcome *o, ah_status failure)
{
    ah_ctx *c = t->ud;
    ah_call *call = c->call;

    ah_lua_leave_resources(t->lua, c);
    c->call = NULL;
    call->task = NULL;
    t->over = true;
    if (!stops_short(call, failure))
        ah_call_done(call, o, ah_host_now(t->lua->host));
    ah_driver_run_wake(t->job.of);
}

static void settled(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;
    ah_ctx *c = t->ud;
    const handler *hd = c->handler;
    int first = lua_gettop(L) - nresults + 1;
    ah_lua_result r;

    ah_watch_until(t->lua, t->deadline); /* for the result's metamethods and its renderer */
    ah_lua_result_read(L, first, nresults, &r);
    if (r.o.success && r.at)
        ah_lua_render(L, c->call, &hd->forms, r.at, &r.o);
    ah_watch_until(t->lua, 0);
    if (r.at && ah_run_cfg(c->call->run)->n_strategies > 0) /* last: a raise would lose it */
        r.o.live = ah_lua_live(L, r.at);
    end_call(t, &r.o, AH_OK);
    ah_lua_result_clear(&r);
}

/* Statuses that end the run; any other error of a handler is an answer (seed 002). */
static bool leaves(ah_status st)
{
    return st == AH_PROMPT_EVALUATION || st == AH_VISIBILITY_EXPANSION || st == AH_DEADLINE ||
           st == AH_BUDGET || st == AH_CANCELLED;
}

/* Ends the call so that its run ends to open sections. The error that the handler raised names
 * them; if that cannot be read, the call fails with the message. */
static void leave_for_sections(ah_task *t, ah_outcome *o)
{
    ah_err err;
    ah_buf b;

    ah_buf_init(&b, &t->lua->mem, MAX_ASKED);
    if (ah_lua_expansion(t->lua->caller, t->co, &b, &err) != AH_OK)
        o->message = ah_slice_of(err.message);
    else
        o->leave = AH_VISIBILITY_EXPANSION;
    if (o->leave != AH_OK && b.len)
        o->expansion = ah_buf_slice(&b);
    end_call(t, o, AH_VISIBILITY_EXPANSION);
    ah_buf_clear(&b);
}

static void failed(ah_task *t, const ah_err *err)
{
    ah_outcome o = {.failure =
                        err->status == AH_TOOL_VALIDATION ? AH_FAILED_VALIDATION : AH_FAILED_RAISED,
                    .message = ah_slice_of(err->message)};
    char repaired[sizeof err->message];

    if (!ah_utf8_valid(o.message)) { /* error texts may have any bytes */
        memcpy(repaired, err->message, sizeof repaired);
        for (char *p = repaired; *p; p++)
            if ((unsigned char)*p >= 0x80)
                *p = '?';
        o.message = ah_slice_of(repaired);
    }
    if (err->status == AH_VISIBILITY_EXPANSION) {
        leave_for_sections(t, &o);
        return;
    }
    if (leaves(err->status))
        o.leave = err->status;
    o.error = t->failure ? ah_text_slice(t->failure) : o.message;
    o.mistake = t->mistake;
    end_call(t, &o, err->status);
    ah_text_set(&t->failure, NULL);
}

/* -- starting a handler ------------------------------------------------------------------- */

static void release_handler(void *p)
{
    handler *hd = p;

    ah_lua_unref(hd->lua, &hd->forms.params);
    ah_lua_unref(hd->lua, &hd->forms.result);
    ah_lua_unref(hd->lua, &hd->forms.render);
    ah_lua_unref(hd->lua, &hd->lost);
    ah_lua_unref(hd->lua, &hd->ref);
    ah_free(&hd->lua->mem, hd);
}

static const struct ah_value_vt handler_vt = {.release = release_handler};

static ah_status next_entity(void *p, size_t *at, ah_entity *out, ah_err *err)
{
    const handler *hd = p;

    return ah_lua_next_entity(hd->lua, hd->ref, at, out, err);
}

static const struct ah_value_vt live_vt = {.release = release_handler, .entity = next_entity};

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
    *box = (handler){h, ref, AH_NO_FORMS, LUA_NOREF};
    return (ah_value){&live_vt, box};
}

void ah_lua_push_live(lua_State *L, const ah_value *v)
{
    if (v->vt == &live_vt)
        lua_rawgeti(L, LUA_REGISTRYINDEX, ((const handler *)v->p)->ref);
    else if (ah_value_is_json(v))
        ah_lua_push_json(L, ah_text_slice(v->p));
    else
        lua_pushnil(L);
}

/* Pushes a text for the value at idx. A plain table would print as an address, which is useless to
 * a model and never the same. */
static void push_words(lua_State *L, int idx)
{
    ah_err err;

    if (ah_lua_push_message(L, idx))
        return;
    if (lua_istable(L, idx) && luaL_getmetafield(L, idx, "__tostring") == LUA_TNIL) {
        ah_lua_read_error(L, idx, &err);
        lua_pushstring(L, err.message);
        return;
    }
    luaL_tolstring(L, idx, NULL);
}

/* Converts the message of `nil, message` to a text here, since the fence is around its
 * __tostring. */
int ah_lua_handled(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    if (lua_gettop(L) >= 2 && lua_isnil(L, 1) && !lua_isnil(L, 2)) {
        lua_settop(L, 2);
        push_words(L, 2);
        lua_replace(L, 2);
    }
    return lua_gettop(L);
}

/* (args, ctx) */
static int handle(lua_State *L)
{
    const ah_ctx *c = lua_touserdata(L, 2);

    lua_rawgeti(L, LUA_REGISTRYINDEX, c->handler->ref);
    lua_insert(L, 1);
    lua_callk(L, 2, LUA_MULTRET, 0, ah_lua_handled);
    return ah_lua_handled(L, LUA_OK, 0);
}

/* A tool without a timeout may wait without limit, but not compute without limit. */
static void fence_in(ah_task *t, const ah_tool *tool)
{
    t->fence.memory = tool->memory;
    t->fence.advice = ", and memory = bytes of the tool sets another one";
    t->fence.no_exit = true;
    t->watch.work_ms = tool->timeout_ms ? 0 : t->lua->host->work_ms;
    t->watch.advice =
        "; that is the limit of a tool without a timeout, and timeout = seconds sets another one";
}

/* Arguments of make_task. */
typedef struct beginning {
    const handler *handler;
    ah_call *call;
    lua_CFunction run;
} beginning;

static int make_task(lua_State *L)
{
    const beginning *b = lua_touserdata(L, 1);
    ah_call *call = b->call;
    ah_ctx *c = ah_lua_push_ctx(L, call); /* -- b ctx */
    ah_task *t;

    c->handler = b->handler;
    lua_pushcfunction(L, b->run); /* -- b ctx run */
    ah_lua_push_args(L, call, &b->handler->forms);
    lua_pushvalue(L, 2); /* -- b ctx run args ctx */
    t = ah_task_new(b->handler->lua, L, 2, ah_run_owner(call->run));
    ah_task_keep(L, t); /* -- b */
    fence_in(t, call->tool);
    t->settled = settled;
    t->failed = failed;
    t->ud = c;
    t->deadline = call->deadline;
    t->overlay = &call->overlay;
    c->task = t;
    call->task = c;
    return 0;
}

void ah_lua_start_call(const ah_lua_handler *hd, ah_call *call, lua_CFunction run)
{
    beginning b = {hd, call, run};
    ah_lua *h = hd->lua;
    ah_err err;
    ah_outcome o = {.failure = AH_FAILED_RAISED};

    lua_pushcfunction(h->caller, make_task);
    lua_pushlightuserdata(h->caller, &b);
    if (ah_lua_call(h, h->caller, 1, 0, &err) == AH_OK ||
        call->task) { /* the task exists, even if making it took too long */
        ah_task_begin(((ah_ctx *)call->task)->task);
        return;
    }
    o.message = ah_slice_of(err.message);
    ah_call_done(call, &o, ah_host_now(h->host));
}

static void start(const ah_tool *tool, ah_call *call)
{
    ah_lua_start_call(tool->handler.p, call, handle);
}

void ah_lua_stop_call(ah_call *call)
{
    ah_ctx *c = call->task;

    call->task = NULL;
    if (!c)
        return;
    c->call = NULL;
    c->task->over = true;
    ah_task_stop(c->task);
    ah_lua_leave_resources(c->task->lua, c);
}

static void stop(const ah_tool *tool, ah_call *call)
{
    (void)tool;
    ah_lua_stop_call(call);
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

void ah_lua_push_tools(lua_State *L, const ah_registry *r)
{
    lua_Integer n = 0;
    ah_tool *t;

    lua_createtable(L, (int)r->live, 0);
    for (size_t at = 0; (t = ah_registry_next(r, &at)) != NULL;) {
        ah_lua_push_tool(L, t);
        lua_rawseti(L, -2, ++n);
    }
}

ah_tool **ah_lua_tool_list(lua_State *L, const char *what, size_t *n)
{
    ah_tool **out;
    int list;

    if (lua_isnil(L, -1))
        lua_newtable(L);
    else
        ah_lua_push_flat_tools(L, -1, what);
    lua_replace(L, -2);
    list = lua_gettop(L);
    *n = (size_t)luaL_len(L, list);
    out = lua_newuserdatauv(L, (*n + 1) * sizeof(ah_tool *), 0);
    for (size_t i = 0; i < *n; i++) {
        lua_geti(L, list, (lua_Integer)i + 1);
        out[i] = ah_lua_to_tool(L, -1);
        lua_pop(L, 1); /* the list keeps it */
    }
    return out;
}

/* A tool that is being made, in a userdata so that a raise frees its parts. */
typedef struct draft {
    const char *what;
    bool outside; /* declared by others: no place in a script, and upper case in its name */
    bool method;  /* of an entity: function(self, args, ctx), found by name when called */
    bool ours;
    ah_schema *params, *result;
    handler *handler;
} draft;

/* The values that rows store of a declaration. Their texts are held by the table. */
typedef struct tool_fields {
    ah_tool_def def;
    bool accepts_overrides;
} tool_fields;

static const ah_option tool_common_rows[] = {
    {.name = "full_description",
     .kinds = AH_OPT_STRING,
     .otherwise = "`description`",
     .to = AH_TO_HELD(tool_fields, def.full_description),
     .doc = "the description for the model, unless the tool is declared [in "
            "brief](registry.md#brief-descriptions); UTF-8, up to 16 KiB"},
    {.name = "params",
     .kinds = AH_OPT_ANY,
     .otherwise = "no parameters",
     .is = "table or type",
     .type = "table<string, any>",
     .doc =
         "the parameters, in [short form](tool.md#short-forms) or as a [type](sessions.md#types); "
         "with a type, `args` is an instance"},
    {.name = "schema",
     .kinds = AH_OPT_ANY,
     .otherwise = "no parameters",
     .is = "table, JSON text, schema or type",
     .type = "table|string|ah.Schema",
     .doc = "the parameters, as JSON Schema of type `object`; not together with `params`"},
    {.name = "result",
     .kinds = AH_OPT_ANY,
     .otherwise = "anything",
     .is = "table, JSON text, schema or type",
     .type = "table|string|ah.Schema",
     .doc = "JSON Schema of the value, or its [type](sessions.md#types); defaults are filled in. A "
            "call with a value that does not fit fails"},
    {.name = "examples",
     .kinds = AH_OPT_TABLE,
     .is = "list",
     .type = "ah.Example[]",
     .doc = "up to 32 example calls, `{ description = ..., input = ..., output = ... }`, see "
            "[Examples](tool.md#examples)"},
    {.name = "annotations",
     .kinds = AH_OPT_TABLE,
     .otherwise = "nothing said",
     .type = "ah.Annotations",
     .doc = "statements on the tool for policies, see [Annotations](tool.md#annotations)"},
    {.name = "version",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(tool_fields, def.version),
     .doc = "version of the definition, 1 to 64 bytes. A change is "
            "[reported](agent.md#tools-that-have-changed) when a saved conversation continues; no "
            "model sees it"},
    {.name = "render",
     .kinds = AH_OPT_FUNCTION,
     .otherwise = "that of the type",
     .type = "fun(value: any): string",
     .doc =
         "`function(value)`: returns the text of the value for the model. If it fails or returns "
         "no text, a `warning` is emitted, and the model gets JSON"},
    {.name = "parallel",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(tool_fields, def.parallel),
     .doc = "true: adjacent calls of such tools run at the same time"},
    {.name = "on_lost",
     .kinds = AH_OPT_ANY,
     .otherwise = "`\"tell\"`",
     .is = "`\"tell\"`, `\"retry\"`, `\"ask\"` or function",
     .type = "\"tell\"|\"retry\"|\"ask\"|fun(key: string, arguments: table): boolean?, any",
     .doc = "what becomes of a call that was [at work when its process "
            "ended](stores.md#calls-that-were-at-work)"},
    {.name = "durable",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(tool_fields, def.durable),
     .doc =
         "true: after a crash the handler is entered again from its beginning, and is given what "
         "its [steps](durable.md) have got"},
    {.name = "background",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(tool_fields, def.background),
     .doc = "true: a call of the model is answered at once with a ticket, and its result follows, "
            "see [In the background](tool.md#in-the-background)"},
    {.name = "timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .to = AH_TO_MS(tool_fields, def.timeout_ms),
     .doc = "limit of one call, which is then stopped and fails. Without a timeout, the code of "
            "the call may be [at work](limits.md#time) for 10 seconds"},
    {.name = "memory",
     .kinds = AH_OPT_NUMBER,
     .least = AH_TOOL_LEAST_MEMORY,
     .unit = "bytes",
     .otherwise = "268435456",
     .to = AH_TO_SIZE(tool_fields, def.memory),
     .doc = "[memory](limits.md#memory) that one call may use"},
    {.name = "max_result",
     .kinds = AH_OPT_INTEGER,
     .least = AH_TOOL_LEAST_RESULT,
     .most = INT_MAX,
     .unit = "bytes",
     .otherwise = "65536",
     .to = AH_TO_SIZE(tool_fields, def.max_result),
     .doc = "longest result for the model. Of a longer result the model sees head and tail, and [a "
            "file](tool.md#long-results) has all of it"},
    {.name = "coerce",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(tool_fields, def.coerce),
     .doc =
         "true: arguments of a wrong type are converted if the meaning is clear, see "
         "[`validate`](schema.md#ahschema); `ctx.coerced` and the event `tool_invoked` list them"},
    {.name = "strict",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "that of `options`",
     .doc = "true: the provider enforces the schema, see [strict tools](models.md#strict-tools)"},
    {.name = "return_direct",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(tool_fields, def.direct),
     .doc = "true: the result is the answer of the run, see [Results as "
            "answers](tool.md#results-as-answers)"},
    {0},
};
const ah_subject ah_subject_tool_common = {
    .what = "ah.tool",
    .type = "ah.ToolCommon",
    .doc = "fields that tools and [methods](entities.md#tools-of-a-class) share",
    .row = tool_common_rows};

static const ah_option tool_rows[] = {
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .needed = true,
     .to = AH_TO_HELD(tool_fields, def.name),
     .doc = "1 to 64 of `a-z`, `0-9`, `_` and `-`"},
    {.name = "description",
     .kinds = AH_OPT_STRING,
     .needed = true,
     .to = AH_TO_HELD(tool_fields, def.description),
     .doc = "1 to 200 printable ASCII characters; surrounding blanks are removed"},
    {.name = "handler",
     .kinds = AH_OPT_FUNCTION,
     .type = "fun(args: table, ctx: ah.Ctx): any, string?",
     .doc = "`function(args, ctx)`; without a handler, and without an "
            "[executor](registry.md#executors), each call fails"},
    {.name = "accepts_overrides",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "true",
     .to = AH_TO_BOOL(tool_fields, accepts_overrides),
     .doc = "false: [overrides](prompts.md#overrides) of the description are not applied"},
    {0},
};
const ah_subject ah_subject_tool = {.what = "ah.tool",
                                    .type = "ah.ToolConfig",
                                    .base = &ah_subject_tool_common,
                                    .declares = true,
                                    .row = tool_rows};

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

/* Raises the error with the name of the tool, if it has one. */
static void refuse_tool(lua_State *L, ah_err *err)
{
    ah_slice name = {0};

    if (lua_getfield(L, 1, "name") == LUA_TSTRING)
        name.p = lua_tolstring(L, -1, &name.n);
    if (name.p && err->status == AH_PROMPT_VALIDATION && !ah_json_detail_of(err, "tool").p)
        ah_json_detail(err, "tool", name);
    ah_lua_raise_err(L, err);
}

static void read_schemas(lua_State *L, ah_lua *h, draft *d)
{
    int top = lua_gettop(L);
    ah_err err;

    ah_lua_read_params(L, 1, d->what, &h->mem, &d->params);
    if (lua_getfield(L, 1, "result") != LUA_TNIL &&
        ah_lua_schema(L, -1, &h->mem, &d->result, &err) != AH_OK)
        refuse_tool(L, &err);
    lua_settop(L, top);
}

static void read_handler(lua_State *L, ah_lua *h, draft *d)
{
    lua_Debug ar;
    ah_err err;

    if (lua_getfield(L, 1, "handler") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">u", &ar);
    if (ar.nparams > (d->method ? 3 : 2)) {
        ah_err_set(&err, AH_PROMPT_VALIDATION,
                   "%s: handlers are function(%sargs, ctx); this one has %d parameters", d->what,
                   d->method ? "self, " : "", ar.nparams);
        refuse_tool(L, &err);
    }
    if (!(d->handler = ah_alloc(&h->mem, sizeof *d->handler)))
        ah_lua_raise_nomem(L);
    *d->handler = (handler){h, LUA_NOREF, AH_NO_FORMS, LUA_NOREF};
    if (!d->method)
        d->handler->ref = ah_lua_ref(L);
    ah_lua_read_forms(L, 1, &d->handler->forms);
}

/* Reads `on_lost`: a word, or a function for the handler. */
static void read_on_lost(lua_State *L, draft *d, ah_tool_def *def)
{
    int type = lua_getfield(L, 1, "on_lost"), i = 0;
    ah_err err;

    if (type == LUA_TFUNCTION && d->handler) {
        def->on_lost = AH_LOST_SCRIPT;
        d->handler->lost = ah_lua_ref(L);
        return;
    }
    while (type == LUA_TSTRING && i < AH_LOST_SCRIPT &&
           strcmp(lua_tostring(L, -1), ah_on_lost_names[i]) != 0)
        i++;
    if (type != LUA_TNIL && type != LUA_TFUNCTION && (type != LUA_TSTRING || i == AH_LOST_SCRIPT)) {
        ah_err_set(
            &err, AH_PROMPT_VALIDATION,
            "%s: field 'on_lost' must be \"tell\", \"retry\", \"ask\" or a function, found %s",
            d->what, luaL_tolstring(L, -1, NULL));
        refuse_tool(L, &err);
    }
    if (type == LUA_TSTRING)
        def->on_lost = (ah_on_lost)i;
    lua_pop(L, 1);
}

static void read_def(lua_State *L, draft *d, ah_tool_def *def)
{
    read_on_lost(L, d, def);
    if (lua_getfield(L, 1, "strict") != LUA_TNIL)
        def->strict = lua_toboolean(L, -1) ? AH_YES : AH_NO;
    lua_pop(L, 1);
    ah_lua_read_annotations(L, d->what, def);
    def->examples = ah_lua_push_examples(L, 1);
    def->result_type = ah_lua_field_type(L, 1, "result");
    def->params_type = ah_lua_field_type(L, 1, "params");
    if (!def->params_type.p)
        def->params_type = ah_lua_field_type(L, 1, "schema");
    if (!d->ours && !d->outside && ah_lua_push_place(L))
        def->place.p = lua_tolstring(L, -1, &def->place.n);
    def->params = d->params;
    def->result = d->result;
    def->no_handler = d->handler == NULL;
    def->any_case = d->method || d->outside;
    def->ours = d->ours;
    def->vt = &lua_tool_vt;
    if (d->handler)
        def->handler = (ah_value){&handler_vt, d->handler};
}

/* The ticket would be the answer of the run. */
static void check_background(lua_State *L, const char *what, const ah_tool_def *def)
{
    ah_err err;

    if (!def->background || !def->direct)
        return;
    ah_err_set(
        &err, AH_PROMPT_VALIDATION,
        "%s: `background` and `return_direct` exclude each other: the result of a background "
        "call comes after the answer",
        what);
    refuse_tool(L, &err);
}

/* Makes and pushes a tool from the table at 1, whose fields have been read. */
static ah_tool *make_tool(lua_State *L, draft kind, tool_fields *fields)
{
    ah_lua *h = ah_lua_of(L);
    ah_tool_def *def = &fields->def;
    int top = lua_gettop(L);
    ah_tool **box;
    ah_err err;
    draft *d;

    d = lua_newuserdatauv(L, sizeof *d, 0); /* -- t .. draft */
    *d = kind;
    luaL_setmetatable(L, "agenthost.draft");
    read_schemas(L, h, d);
    read_handler(L, h, d);
    read_def(L, d, def);
    def->keeps_words = !fields->accepts_overrides;
    check_background(L, kind.what, def);
    box = lua_newuserdatauv(L, sizeof *box, 0); /* -- t .. draft .. tool */
    *box = NULL;
    luaL_setmetatable(L, TOOL);
    if (ah_tool_new(&h->mem, def, box, &err) != AH_OK)
        refuse_tool(L, &err);
    d->handler = NULL; /* owned by the tool now */
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return *box;
}

static int declare(lua_State *L, draft kind)
{
    tool_fields f = {.accepts_overrides = true};

    kind.what = "ah.tool";
    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_tool, &f);
    make_tool(L, kind, &f);
    return 1;
}

/* ah.tool { name, description, full_description, params | schema, result, examples, render,
 * handler, parallel, on_lost, durable, timeout, memory, max_result, accepts_overrides, coerce,
 * strict, annotations, version, return_direct }: raises prompt_validation at the script's line. */
static int new_tool(lua_State *L)
{
    return declare(L, (draft){0});
}

/* ah._outside_tool { ... }: as ah.tool, for a definition from outside of the program. */
static int outside_tool(lua_State *L)
{
    return declare(L, (draft){.outside = true});
}

int ah_lua_own_tool(lua_State *L)
{
    return declare(L, (draft){.ours = true});
}

ah_tool *ah_lua_push_method(lua_State *L, const char *what)
{
    tool_fields f = {.accepts_overrides = true};

    ah_options_take(L, 1, &ah_subject_tool, &f);
    return make_tool(L, (draft){.what = what, .method = true}, &f);
}

const ah_lua_handler *ah_lua_handler_of(const ah_tool *t)
{
    return t->handler.p;
}

void ah_lua_push_executor(lua_State *L, int name, int function)
{
    name = lua_absindex(L, name);
    function = lua_absindex(L, function);
    lua_pushcfunction(L, new_tool);
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, name);
    lua_setfield(L, -2, "name");
    lua_pushliteral(L, "Runs calls of its name.");
    lua_setfield(L, -2, "description");
    lua_pushliteral(L, "{\"additionalProperties\":true,\"type\":\"object\"}");
    lua_setfield(L, -2, "schema");
    lua_pushvalue(L, function);
    lua_setfield(L, -2, "handler");
    lua_call(L, 1, 1);
}

/* Returns the handler of a tool if it is a Lua function that the tool holds; else NULL. */
static const handler *own_handler(const ah_tool *t)
{
    return t->vt == &lua_tool_vt ? t->handler.p : NULL;
}

static void push_ref(lua_State *L, int ref)
{
    if (ref == LUA_NOREF)
        lua_pushnil(L);
    else
        lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
}

void ah_lua_push_handler(lua_State *L, const ah_tool *t)
{
    const handler *hd = own_handler(t);

    push_ref(L, hd ? hd->ref : LUA_NOREF);
}

void ah_lua_push_on_lost(lua_State *L, const ah_tool *t)
{
    const handler *hd = own_handler(t);

    if (hd && hd->lost != LUA_NOREF)
        push_ref(L, hd->lost);
    else
        lua_pushstring(L, ah_on_lost_names[t->on_lost]);
}

void ah_lua_push_renderer(lua_State *L, const ah_tool *t)
{
    const handler *hd = own_handler(t);

    push_ref(L, hd ? hd->forms.render : LUA_NOREF);
}

static int tool_gc(lua_State *L)
{
    ah_tool **box = luaL_checkudata(L, 1, TOOL);

    ah_tool_unref(*box);
    *box = NULL;
    return ah_lua_retire(L);
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

    return ah_lua_push_tool_field(L, t, key) ? 1 : ah_lua_no_tool_field(L, key);
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

    new_class(L, TOOL, tool_meta);
    new_class(L, "agenthost.draft", draft_meta);
    ah_lua_open_result(L);
    lua_pushcfunction(L, new_tool);
    lua_setfield(L, -2, "tool");
    lua_pushcfunction(L, outside_tool);
    lua_setfield(L, -2, "_outside_tool");
}
