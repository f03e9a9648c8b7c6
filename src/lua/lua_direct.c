/* Direct calls. The run is like any other (checks, time limits, ctx, cancelling). The handler's
 * value is taken before it is rendered for a model. */
#include "lua/lua_direct.h"

#include "lua/lua_agent.h"
#include "lua/lua_error.h"
#include "lua/lua_gate.h"
#include "lua/lua_host.h"
#include "lua/lua_now.h"
#include "lua/lua_step.h"
#include "lua/lua_tool.h"
#include "wire/scripted.h"

enum { MAX_LINE = 64 << 20 };

/* A model that makes one call. */
typedef struct caller {
    ah_scripted scripted;
    ah_host *host;
    ah_text *lines;
} caller;

/* One call, in a userdata. */
typedef struct direct {
    ah_lua *lua;
    ah_registry registry;
    ah_inject_rules rules;
    ah_transcript *transcript;
    ah_wire wire;
    ah_adapter *model;
    ah_driver_run *driven;
    ah_task_waiter waiter;
    ah_log silent;
    bool started, answered, success; /* its handler was called; it ended; it succeeded */
    ah_status leave;
    ah_text *value, *words;
    ah_value live;
    bool lost;          /* no memory to keep the live value */
    ah_strategy keeper; /* takes the live value */
    ah_direct_take take;
} direct;

static const char DIRECT[] = "agenthost.direct";

/* -- the model ------------------------------------------------------------------------------- */

static void say(ah_job *job)
{
    ah_exchange *x = (ah_exchange *)(void *)((char *)job - offsetof(ah_exchange, job));
    const caller *c = (const caller *)ah_run_cfg(ah_driver_run_run(x->of))->adapter;

    ah_exchange_feed(x, ah_text_slice(c->lines));
    ah_exchange_end(x, NULL);
}

/* Answers in a job, since an answer must not arrive while the exchange is being started. */
static void start(ah_scripted *s, ah_exchange *x)
{
    x->job.fn = say;
    ah_job_post(((caller *)s)->host, &x->job);
}

static void stop(ah_scripted *s, ah_exchange *x) /* the exchange owns the job */
{
    (void)s;
    (void)x;
}

static void release(ah_scripted *s)
{
    caller *c = (caller *)s;

    ah_text_unref(c->lines);
    ah_free(s->native.base.mem, c);
}

/* The id of the call is derived from that of the call around it, if there is one. */
static ah_text *lines_of(ah_lua *h, const ah_overlay *around, const ah_tool *tool, ah_slice args)
{
    ah_call *in = around ? around->owner : NULL;
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, &h->mem, MAX_LINE);
    ah_buf_str(&b, "{\"call\":{\"index\":0,\"id\":\"");
    if (in)
        ah_buf_fmt(&b, "%s.%u", in->slot->id->data, ++in->within);
    else
        ah_buf_fmt(&b, "call_%lld", (long long)h->host->last_run + 1);
    ah_buf_fmt(&b, "\",\"name\":\"%s\",\"arguments\":", tool->name->data);
    ah_json_put_string(&b, args);
    ah_buf_str(&b, "}}\n{\"stop\":\"tool_calls\"}\n");
    ah_text_from_buf(&b, "arguments", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

static ah_adapter *new_caller(ah_lua *h, const ah_overlay *around, const ah_tool *tool,
                              ah_slice args)
{
    caller *c = ah_alloc(&h->mem, sizeof *c);
    ah_adapter *a;

    if (!c)
        return NULL;
    *c = (caller){.scripted = {.start = start, .stop = stop, .release = release}, .host = h->host};
    a = &c->scripted.native.base;
    *a = (ah_adapter){.vt = &ah_scripted_vt, .mem = &h->mem, .refs = 1, .stream = true};
    a->provider = ah_text_new(&h->mem, ah_slice_of("host"));
    a->model = ah_text_new(&h->mem, ah_slice_of("call"));
    a->endpoint = ah_text_new(&h->mem, ah_slice_of(""));
    c->lines = lines_of(h, around, tool, args);
    if (a->provider && a->model && a->endpoint && c->lines)
        return a;
    ah_adapter_unref(a);
    return NULL;
}

/* -- the run ----------------------------------------------------------------------------------- */

static void clear(direct *d)
{
    ah_driver_run_free(d->driven);
    ah_wire_clear(&d->wire);
    ah_registry_clear(&d->registry);
    ah_transcript_unref(d->transcript);
    ah_adapter_unref(d->model);
    ah_text_unref(d->value);
    ah_text_unref(d->words);
    ah_value_release(&d->live);
    *d = (direct){.lua = d->lua};
    ah_registry_init(&d->registry, &d->lua->mem);
}

static int direct_gc(lua_State *L)
{
    clear(luaL_checkudata(L, 1, DIRECT));
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

/* Only these events are passed on: the run and its model are internal. */
static bool about_tool(ah_event_type type)
{
    return type == AH_EVENT_TOOL_STARTED || type == AH_EVENT_TOOL_PROGRESS ||
           type == AH_EVENT_TOOL_INVOKED || type == AH_EVENT_POLICY || type == AH_EVENT_ASK ||
           type == AH_EVENT_ASK_CLOSED || type == AH_EVENT_WARNING || type == AH_EVENT_MAP_PROGRESS;
}

/* Passes the event to the observers of the run around it, else to the program's watcher. */
static void tell(const direct *d, const ah_notice *n)
{
    ah_run *around = ah_run_around(ah_driver_run_run(d->driven));

    if (around)
        ah_run_relay(around, n);
    else if (d->lua->host->cfg.watcher.event)
        d->lua->program->watch(d->lua->embed, NULL, n);
}

static void on_event(void *ud, const ah_notice *n)
{
    direct *d = ud;

    if (about_tool(n->type) && d->driven)
        tell(d, n);
    d->started |= n->type == AH_EVENT_TOOL_STARTED;
    for (size_t i = 0; n->type == AH_EVENT_TOOL_INVOKED && i < n->n; i++) {
        if (strcmp(n->field[i].name, "content") == 0)
            ah_text_set(&d->words, ah_text_new(&d->lua->mem, n->field[i].s));
        if (strcmp(n->field[i].name, "success") == 0) /* its commit may have failed */
            d->success = d->success && n->field[i].i;
    }
}

static void on_answer(void *ud, const ah_call *call)
{
    direct *d = ud;

    d->answered = true;
    d->success = call->success;
    d->leave = call->leave;
    d->value =
        call->value ? ah_text_ref(call->value) : ah_text_new(&d->lua->mem, ah_slice_of("null"));
}

static void on_done(void *ud, ah_driver_run *driven)
{
    (void)driven;
    ah_task_waiter_done(&((direct *)ud)->waiter);
}

/* (direct, call) */
static int keep_live(lua_State *L)
{
    direct *d = lua_touserdata(L, 1);
    const ah_call *call = lua_touserdata(L, 2);

    ah_lua_push_live(L, &call->live);
    d->live = ah_lua_live(L, -1);
    d->lost = d->live.vt == NULL;
    return 0;
}

static ah_status look(void *ud, ah_run *run, const ah_call *call, ah_changes *out, ah_err *err)
{
    direct *d = ud;
    lua_State *L = d->lua->caller;

    (void)run;
    (void)out;
    if (!call->live.vt)
        return AH_OK;
    d->lost = true;
    if (!lua_checkstack(L, 3))
        return ah_err_nomem(err);
    lua_pushcfunction(L, keep_live);
    lua_pushlightuserdata(L, d);
    lua_pushlightuserdata(L, (void *)(uintptr_t)call);
    return ah_lua_call(d->lua, L, 2, 0, err);
}

static void configure(direct *d, ah_driver_run *parent, const ah_overlay *around,
                      ah_run_config *cfg)
{
    static const struct ah_strategy_vt keeper_vt = {.after = look};
    ah_host *host = d->lua->host;

    d->keeper = (ah_strategy){.name = "direct", .vt = &keeper_vt, .ud = d};
    *cfg =
        (ah_run_config){.mem = &d->lua->mem,
                        .log = &d->silent,
                        .secrets = &host->secrets,
                        .id = ++host->last_run,
                        .parent = parent ? ah_run_cfg(ah_driver_run_run(parent))->id : 0,
                        .adapter = d->model,
                        .transcript = d->transcript,
                        .wire = &d->wire,
                        .registry = &d->registry,
                        .rules = &d->rules,
                        .strategy = &d->keeper,
                        .n_strategies = 1,
                        .host_hooks = ah_lua_gate(d->lua),
                        .made_by_code = true,
                        .session = parent ? ah_run_cfg(ah_driver_run_run(parent))->session : NULL,
                        .limits.max_iterations = 1,
                        .deadline = ah_lua_deadline_around(parent, around),
                        .wall = ah_host_wall,
                        .random = ah_host_random,
                        .over = ah_host_over,
                        .ud = host,
                        .on = on_event,
                        .answered = on_answer,
                        .on_ud = d};
}

/* around: the overlay of the call in whose handler it begins, or NULL. */
static ah_status begin(direct *d, ah_tool *tool, ah_overlay *around, ah_err *err)
{
    ah_host *host = d->lua->host;
    ah_driver_run *parent = d->lua->running ? d->lua->running->job.of : NULL;
    ah_run_config cfg;
    ah_status st;
    ah_run *run;

    configure(d, parent, around, &cfg);
    ah_wire_init(&d->wire, &d->lua->mem, d->model, d->transcript);
    if ((st = ah_registry_add(&d->registry, tool, err)) != AH_OK ||
        (around && (st = ah_overlay_anchor(around, &cfg.caller, err)) != AH_OK))
        return st;
    st = ah_run_new(&cfg, ah_host_now(host), &run, err);
    ah_anchor_unref(cfg.caller);
    if (st == AH_OK)
        st = ah_driver_run_new(host, run, parent, on_done, d, &d->driven, err);
    if (st == AH_OK)
        d->waiter.scope = d->driven;
    return st;
}

/* -- the result -------------------------------------------------------------------------------- */

static void read_status(const direct *d, const ah_err *end, ah_direct_reply *r)
{
    r->status = end->status;
    r->details = ah_slice_of(end->details);
    r->ended = d->leave != AH_OK || r->status == AH_CANCELLED || r->status == AH_DEADLINE ||
               r->status == AH_BUDGET || r->status == AH_NOMEM;
    if (d->answered && d->success) {
        r->status = d->value && !d->lost ? AH_OK : AH_NOMEM;
        r->ended = r->status != AH_OK;
    } else if (d->answered)
        r->status = d->leave != AH_OK ? d->leave : AH_INTERNAL;
    else if (!r->ended)
        r->status = d->started ? AH_DEADLINE : AH_TOOL_VALIDATION;
}

void ah_direct_error(const ah_direct_reply *r, ah_err *err)
{
    if (r->status == AH_NOMEM ||
        (!r->words && !r->ended)) /* every answer has words unless memory is out */
        ah_err_nomem(err);
    else
        ah_err_set(err, r->status, "%s", r->words ? r->words->data : ah_status_name(r->status));
    if (r->ended && r->details.n < sizeof err->details) /* raising it again keeps the details */
        memcpy(err->details, r->details.p, r->details.n + 1);
}

static int finish(lua_State *L, int status, lua_KContext ctx)
{
    direct *d = luaL_checkudata(L, (int)ctx, DIRECT);
    ah_direct_reply r = {.words = d->words, .value = d->value, .live = &d->live};
    ah_run_result result;
    int n;

    (void)status;
    ah_run_result_of(ah_driver_run_run(d->driven), &result);
    read_status(d, &result.err, &r);
    n = d->take(L, &r);
    clear(d); /* at once instead of at the next collection */
    return n;
}

int ah_lua_direct(lua_State *L, ah_tool *tool, ah_slice args, ah_direct_take take)
{
    ah_overlay *around = ah_lua_step_overlay(L, ah_lua_overlay(L));
    ah_status st;
    direct *d;
    ah_err err;

    ah_lua_no_step(L, "a call of a tool by code");
    ah_lua_can_await(L);
    d = push_direct(L);
    d->take = take;
    if (!(d->transcript = ah_transcript_new(&d->lua->mem)) ||
        !(d->model = new_caller(d->lua, around, tool, args)))
        return ah_lua_raise_nomem(L);
    ah_task_waiter_keep(L,
                        &d->waiter); /* until it is done, even if nothing waits for it any more */
    if ((st = begin(d, tool, around, &err)) == AH_OK)
        return ah_lua_await(L, &d->waiter, lua_gettop(L), finish);
    ah_task_waiter_done(&d->waiter);
    return ah_lua_raise_err(L, &err);
}
