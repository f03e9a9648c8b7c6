/* A tool called by name, from C: a run of its own whose model says nothing but this one
 * call. So everything about it is as in any run (checks, time limits, ctx, cancelling), and
 * only what the handler gave is taken, before it is made into words for a model. */
#include "lua/lua_adapter.h"
#include "lua/lua_api.h"
#include "lua/lua_tool.h"

enum { MAX_LINE = 64 << 20 };

/* A model that makes one call. */
typedef struct caller {
    ah_scripted scripted;
    ah_host *host;
    ah_text *lines;
} caller;

/* One call from C, in a userdata. */
typedef struct direct {
    ah_lua *lua;
    ah_registry registry;
    ah_inject_rules rules;
    ah_transcript *transcript;
    ah_lowered wire;
    ah_adapter *model;
    ah_driven *driven;
    ah_waiter waiter;
    ah_log silent;
    bool started, answered, success; /* its handler was called; came to an end; well */
    ah_status leave;
    ah_text *value, *words;
} direct;

static const char DIRECT[] = "agenthost.direct";

/* -- the model ------------------------------------------------------------------------------- */

static void say(ah_job *job)
{
    ah_exchange *x = (ah_exchange *)(void *)((char *)job - offsetof(ah_exchange, job));
    const caller *c = (const caller *)ah_run_adapter(ah_driven_run(x->of));

    ah_exchange_feed(x, ah_text_slice(c->lines));
    ah_exchange_end(x, NULL);
}

/* In a job: an answer must not come while the exchange is being started. */
static void start(ah_scripted *s, ah_exchange *x)
{
    x->job.fn = say;
    ah_job_post(((caller *)s)->host, &x->job);
}

static void stop(ah_scripted *s, ah_exchange *x) /* the job goes with the exchange */
{
    (void)s;
    (void)x;
}

static void release(ah_scripted *s)
{
    caller *c = (caller *)s;

    ah_text_unref(c->lines);
    ah_free(s->base.mem, c);
}

static ah_text *lines_of(const ah_mem *mem, const ah_tool *tool, ah_slice args)
{
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, mem, MAX_LINE);
    ah_buf_fmt(
        &b, "{\"call\":{\"index\":0,\"id\":\"call\",\"name\":\"%s\",\"arguments\":", tool->name->data);
    ah_json_put_string(&b, args);
    ah_buf_str(&b, "}}\n{\"stop\":\"tool_calls\"}\n");
    ah_text_from_buf(&b, "arguments", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

static ah_adapter *new_caller(ah_lua *h, const ah_tool *tool, ah_slice args)
{
    caller *c = ah_alloc(&h->mem, sizeof *c);
    ah_adapter *a;

    if (!c)
        return NULL;
    *c = (caller){.scripted = {.start = start, .stop = stop, .release = release}, .host = h->host};
    a = &c->scripted.base;
    *a = (ah_adapter){.vt = &ah_scripted_vt, .mem = &h->mem, .refs = 1, .stream = true};
    a->provider = ah_text_new(&h->mem, ah_slice_of("host"));
    a->model = ah_text_new(&h->mem, ah_slice_of("call"));
    a->endpoint = ah_text_new(&h->mem, ah_slice_of(""));
    c->lines = lines_of(&h->mem, tool, args);
    if (a->provider && a->model && a->endpoint && c->lines)
        return a;
    ah_adapter_unref(a);
    return NULL;
}

/* -- the run ------------------------------------------------------------------------------------ */

static int direct_gc(lua_State *L)
{
    direct *d = luaL_checkudata(L, 1, DIRECT);

    ah_driven_free(d->driven);
    ah_lowered_clear(&d->wire);
    ah_registry_clear(&d->registry);
    ah_transcript_unref(d->transcript);
    ah_adapter_unref(d->model);
    ah_text_unref(d->value);
    ah_text_unref(d->words);
    *d = (direct){.lua = d->lua};
    ah_registry_init(&d->registry, &d->lua->mem);
    return 0;
}

static direct *push_direct(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", direct_gc}, {NULL, NULL}};
    ah_lua *h = ah_lua_of(L);
    direct *d = lua_newuserdatauv(L, sizeof *d, 0);

    *d = (direct){.lua = h, .rules = {.max_tools = AH_MAX_TOOLS}, .silent = {.level = AH_LOG_OFF}};
    ah_registry_init(&d->registry, &h->mem);
    if (luaL_newmetatable(L, DIRECT))
        luaL_setfuncs(L, meta, 0);
    lua_setmetatable(L, -2);
    return d;
}

/* The run and its model are only how the call is made. */
static bool about_tool(ah_event_type type)
{
    return type == AH_EVENT_TOOL_STARTED || type == AH_EVENT_TOOL_PROGRESS ||
           type == AH_EVENT_TOOL_INVOKED || type == AH_EVENT_WARNING;
}

static void on_event(void *ud, const ah_notice *n)
{
    direct *d = ud;

    if (about_tool(n->type) && d->lua->host->cfg.watcher.event)
        ah_embed_watch(d->lua->embed, NULL, n);
    d->started |= n->type == AH_EVENT_TOOL_STARTED;
    for (size_t i = 0; n->type == AH_EVENT_TOOL_INVOKED && i < n->n; i++)
        if (strcmp(n->field[i].name, "content") == 0)
            ah_text_set(&d->words, ah_text_new(&d->lua->mem, n->field[i].s));
}

static void on_answer(void *ud, const ah_call *call, const ah_outcome *o)
{
    direct *d = ud;

    d->answered = true;
    d->success = call->success;
    d->leave = o->leave;
    d->value = ah_text_new(&d->lua->mem, o->value.p ? o->value : ah_slice_of("null"));
}

static void on_done(void *ud, ah_driven *driven)
{
    (void)driven;
    ah_waiter_done(&((direct *)ud)->waiter);
}

static void begin(lua_State *L, direct *d)
{
    ah_host *host = d->lua->host;
    ah_driven *parent = d->lua->running ? d->lua->running->job.of : NULL;
    ah_run_config cfg = {.mem = &d->lua->mem,
                         .log = &d->silent,
                         .secrets = &host->secrets,
                         .id = ++host->last_run,
                         .parent = parent ? ah_run_id(ah_driven_run(parent)) : 0,
                         .adapter = d->model,
                         .transcript = d->transcript,
                         .wire = &d->wire,
                         .registry = &d->registry,
                         .rules = &d->rules,
                         .max_iterations = 1,
                         .deadline = parent ? ah_run_deadline(ah_driven_run(parent)) : 0,
                         .wall = ah_host_wall,
                         .random = ah_host_random,
                         .ud = host,
                         .on = on_event,
                         .answered = on_answer,
                         .on_ud = d};
    ah_run *run;
    ah_err err;

    ah_lowered_init(&d->wire, &d->lua->mem, d->model, d->transcript);
    if (ah_run_new(&cfg, ah_host_now(host), &run, &err) != AH_OK ||
        ah_driven_new(host, run, parent, on_done, d, &d->driven, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    d->waiter.scope = d->driven;
}

/* -- what came of it ------------------------------------------------------------------------------ */

static ah_status status_of(const direct *d)
{
    ah_run_result r;

    if (d->answered && d->success)
        return d->value ? AH_OK : AH_NOMEM;
    if (d->answered)
        return d->leave != AH_OK ? d->leave : AH_INTERNAL;
    ah_run_result_of(ah_driven_run(d->driven), &r);
    if (r.err.status == AH_CANCELLED || r.err.status == AH_DEADLINE || r.err.status == AH_NOMEM)
        return r.err.status;
    return d->started ? AH_DEADLINE : AH_TOOL_VALIDATION;
}

static int finish(lua_State *L, int status, lua_KContext ctx)
{
    direct *d = luaL_checkudata(L, (int)ctx, DIRECT);
    ah_status st = status_of(d);
    ah_err err;

    (void)status;
    if (st == AH_OK) {
        ah_text_set(&d->lua->embed->result, ah_text_ref(d->value));
    } else {
        ah_err_set(&err, st, "%s", d->words ? d->words->data : ah_status_name(st));
        if (st == AH_NOMEM)
            ah_err_nomem(&err);
    }
    direct_gc(L);
    return st == AH_OK ? 0 : ah_lua_raise_err(L, &err);
}

typedef struct request {
    const char *name, *args;
} request;

static int call_tool(lua_State *L)
{
    const request *q = lua_touserdata(L, 1);
    ah_lua *h = ah_lua_of(L);
    ah_slice args = ah_slice_of(q->args ? q->args : "{}");
    ah_tool *tool;
    direct *d;
    ah_err err;

    if (ah_json_check_err(&h->mem, args, "args", &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_given_push(L, h->embed, AH_GIVEN_TOOLS, q->name);
    if (!(tool = ah_lua_to_tool(L, -1)))
        return ah_given_no_tool(L, h->embed, q->name);
    if (tool->no_handler)
        return ah_lua_raise(L, AH_TOOL_NOT_FOUND, "the tool '%s' has no handler", q->name);
    ah_lua_can_await(L);
    d = push_direct(L);
    lua_replace(L, 1); /* -- d tool */
    if (!(d->transcript = ah_transcript_new(&h->mem)) || !(d->model = new_caller(h, tool, args)))
        return ah_lua_raise_nomem(L);
    if (ah_registry_add(&d->registry, tool, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    begin(L, d);
    return ah_lua_await(L, &d->waiter, 1, finish);
}

AH_API ah_status ah_call_tool(ah_host *host, const char *name, const char *args, const char **result)
{
    ah_embed *e = ah_embed_of(host);
    request q = {name, args};
    ah_status st = ah_embed_enter(e, "ah_call_tool");
    ah_err err;

    if (st != AH_OK)
        return st;
    if (!name)
        return ah_embed_fail(e, (ah_err_set(&err, AH_USAGE, "ah_call_tool: no name"), &err));
    st = ah_embed_call(e, call_tool, &q);
    if (st == AH_OK && result)
        *result = e->result->data;
    return st;
}
