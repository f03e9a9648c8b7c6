/* Tools written in C. A call is pending under a number until the program answers it or the core
 * stops it. An answer for a number that is over has no effect. */
#include "base/lent.h"
#include "base/near.h"
#include "lua/lua_api.h"
#include "lua/lua_error.h"
#include "lua/lua_tool.h"

enum { MAX_ANSWER = 64 << 20 };

/* A tool of the program, the data of its ah_tool. */
typedef struct native {
    ah_embed *embed;
    ah_tool_config cfg; /* of the tool: the functions and ud */
} native;

struct ah_lua_tool_call {
    uint64_t id;
    const native *of;
    ah_call *call;
    ah_lua_tool_call *next, **link;
};

/* -- calls ------------------------------------------------------------------------------- */

static ah_lua_tool_call *push_pending(const native *n, ah_call *call)
{
    ah_embed *e = n->embed;
    ah_lua_tool_call *p = ah_alloc(&e->lua->mem, sizeof *p);

    if (!p)
        return NULL;
    *p = (ah_lua_tool_call){.id = ++e->last_call, .of = n, .call = call, .next = e->pending};
    p->link = &e->pending;
    if (p->next)
        p->next->link = &p->next;
    e->pending = p;
    call->task = p;
    return p;
}

static void free_pending(ah_lua_tool_call *p)
{
    *p->link = p->next;
    if (p->next)
        p->next->link = p->link;
    p->call->task = NULL;
    ah_free(&p->of->embed->lua->mem, p);
}

static double seconds_left(const ah_call *call, int64_t now)
{
    int64_t at = ah_run_cfg(call->run)->deadline;

    if (call->deadline && (!at || call->deadline < at))
        at = call->deadline;
    return at ? (double)(at - now) / 1000 : -1;
}

/* Calls the program's function. Changes of agents that it makes meanwhile (ah_agent_send) belong to
 * the call. */
static void begin(const native *n, ah_call *call, const ah_tool_call *told)
{
    ah_lua *h = n->embed->lua;
    ah_overlay *outer = h->tool;

    h->tool = &call->overlay;
    ah_host_call_out(h->host, false);
    n->cfg.call(n->cfg.ud, h->host, told);
    ah_host_came_back(h->host, false);
    h->tool = outer;
}

static void start(const ah_tool *tool, ah_call *call)
{
    native *n = tool->handler.p;
    ah_host *host = n->embed->lua->host;
    ah_lua_tool_call *p = push_pending(n, call);
    ah_text *args = ah_text_ref(call->args); /* the call may be over before the function returns */
    ah_slice shown = ah_pin(ah_text_slice(args));
    ah_tool_call told = {.id = p ? p->id : 0,
                         .tool = tool->name->data,
                         .args = shown.p,
                         .args_len = shown.n,
                         .run = ah_run_cfg(call->run)->id,
                         .seconds_left = seconds_left(call, ah_host_now(host))};
    ah_outcome none = {.failure = AH_FAILED_RAISED, .message = AH_LIT("out of memory")};

    if (p) {
        begin(n, call, &told);
    } else {
        ah_call_done(call, &none, ah_host_now(host));
    }
    ah_unpin(shown, ah_text_slice(args));
    ah_text_unref(args);
}

static void stop(const ah_tool *tool, ah_call *call)
{
    native *n = tool->handler.p;
    ah_lua_tool_call *p = call->task;
    ah_host *host = n->embed->lua->host;
    uint64_t id;

    if (!p)
        return;
    id = p->id;
    free_pending(p);
    if (!n->cfg.cancel)
        return;
    ah_host_call_out(host, false);
    n->cfg.cancel(n->cfg.ud, host, id);
    ah_host_came_back(host, false);
}

static const ah_tool_vt native_vt = {.start = start, .stop = stop};

static void release(void *p)
{
    native *n = p;
    ah_host *host = n->embed->lua->host;

    if (n->cfg.release) {
        ah_host_call_out(host, true); /* a collection may be in progress */
        n->cfg.release(n->cfg.ud);
        ah_host_came_back(host, true);
    }
    ah_free(&n->embed->lua->mem, n);
}

static const struct ah_value_vt handler_vt = {.release = release};

/* -- answers ------------------------------------------------------------------------------ */

static ah_lua_tool_call *find(const ah_embed *e, uint64_t id)
{
    ah_lua_tool_call *p = e->pending;

    while (p && p->id != id)
        p = p->next;
    return p;
}

static void finish(ah_lua_tool_call *p, const ah_outcome *o)
{
    ah_call *call = p->call;
    ah_host *host = p->of->embed->lua->host;

    free_pending(p);
    ah_call_done(call, o, ah_host_now(host));
    ah_driver_run_wake(ah_run_owner(call->run));
}

static ah_status no_call(ah_embed *e, uint64_t id)
{
    ah_err err;

    ah_err_set(&err, AH_USAGE, "the call %llu is over", (unsigned long long)id);
    return ah_embed_fail(e, &err);
}

/* Appends the canonical form of the program's JSON to out. */
static ah_status read_value(ah_embed *e, ah_slice json, ah_buf *out, ah_err *err)
{
    ah_status st = ah_json_check_err(&e->lua->mem, json, "the tool's answer", err);

    if (st == AH_OK && ah_json_canon(&e->lua->mem, json, out) != AH_OK)
        st = ah_buf_ok(out) ? ah_err_nomem(err) : ah_buf_error(out, "the tool's answer", err);
    return st;
}

AH_API ah_status ah_tool_done(ah_host *host, uint64_t call, const char *json)
{
    ah_embed *e = ah_embed_of(host);
    ah_lua_tool_call *p = find(e, call);
    ah_outcome o = {.success = true};
    ah_status st = ah_embed_may(e, "ah_tool_done");
    ah_err err;
    ah_buf b;

    if (st != AH_OK || !p)
        return st != AH_OK ? st : no_call(e, call);
    ah_buf_init(&b, &e->lua->mem, MAX_ANSWER);
    st = read_value(e, ah_slice_of(json ? ah_lend_text(json) : ""), &b, &err);
    o.value = ah_buf_slice(&b);
    if (st != AH_OK)
        o = (ah_outcome){.failure = AH_FAILED_RAISED, .message = ah_slice_of(err.message)};
    finish(p, &o);
    ah_buf_clear(&b);
    return st == AH_OK ? AH_OK : ah_embed_fail(e, &err);
}

AH_API ah_status ah_tool_refuse(ah_host *host, uint64_t call, const char *message)
{
    ah_embed *e = ah_embed_of(host);
    ah_lua_tool_call *p = find(e, call);
    ah_outcome o = {
        .message = ah_slice_of(message && *message ? ah_lend_text(message) : "the tool failed")};
    ah_status st = ah_embed_may(e, "ah_tool_refuse");

    if (st != AH_OK || !p)
        return st != AH_OK ? st : no_call(e, call);
    if (!ah_utf8_valid(o.message))
        o = (ah_outcome){.failure = AH_FAILED_RAISED,
                         .message = AH_LIT("its message is not UTF-8")};
    finish(p, &o);
    return AH_OK;
}

/* -- declaring ------------------------------------------------------------------------------ */

/* A tool that is being made. The caller frees it, also after a raise. */
typedef struct draft {
    const ah_tool_config *cfg;
    ah_schema *params, *result;
    native *native;
    ah_tool *tool;
} draft;

static void compile(lua_State *L, const char *field, const char *json, ah_schema **out)
{
    ah_lua *h = ah_lua_of(L);
    ah_schema_options options = {.cache = &h->host->schemas};
    ah_slice text = ah_slice_of(json);
    ah_err err;

    if (!json)
        return;
    if (ah_json_check_err(&h->mem, text, field, &err) != AH_OK ||
        ah_schema_compile_with(&h->mem, text, &options, out, &err) != AH_OK)
        ah_lua_raise(L, err.status == AH_NOMEM ? AH_NOMEM : AH_PROMPT_VALIDATION,
                     "ah_add_tool: %s: %s", field, err.message);
}

static void check_config(lua_State *L, const ah_tool_config *c)
{
    if (!c || c->size != sizeof *c)
        ah_lua_raise(L, AH_USAGE, "ah_add_tool: size is %d, expected sizeof(ah_tool_config), %d",
                     c ? (int)c->size : 0, (int)sizeof *c);
    if (!c->name || !c->description || !c->call)
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah_add_tool: %s is missing",
                     !c->name          ? "the name"
                     : !c->description ? "the description"
                                       : "the function call");
    if (c->max_result && c->max_result < AH_TOOL_LEAST_RESULT)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "ah_add_tool: max_result must be 0, or %d bytes or more",
                     (int)AH_TOOL_LEAST_RESULT);
    if (!(c->timeout >= 0 && c->timeout <= 1e9))
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "ah_add_tool: the timeout must be from 0 to 1e9 seconds");
}

static int refuse_annotation(lua_State *L, ah_slice name)
{
    ah_near near = {.to = name};

    for (int i = 0; i < AH_ANNOTATIONS; i++)
        ah_near_offer(&near, ah_slice_of(ah_annotation_names[i]));
    return ah_lua_raise(L, AH_PROMPT_VALIDATION,
                        "ah_add_tool: annotations: unknown name '%.*s'%s%.*s%s", AH_FMT(name),
                        near.best.p ? " (did you mean '" : "", AH_FMT(near.best),
                        near.best.p ? "'?)" : "");
}

static void read_annotation(lua_State *L, ah_json_token key, ah_json_token value, ah_tool_def *def)
{
    int i = 0;

    while (i < AH_ANNOTATIONS && !ah_json_token_is(key, ah_annotation_names[i]))
        i++;
    if (i == AH_ANNOTATIONS)
        refuse_annotation(L, key.raw);
    if (value.kind != AH_JSON_TRUE && value.kind != AH_JSON_FALSE)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "ah_add_tool: annotations: '%s' must be true or false",
                     ah_annotation_names[i]);
    def->says[i] = value.kind == AH_JSON_TRUE ? AH_YES : AH_NO;
}

static void read_annotations(lua_State *L, const char *json, ah_tool_def *def)
{
    ah_slice text = ah_slice_of(json ? json : "{}");
    ah_json_reader r;
    ah_json_token key;
    ah_err err;

    if (ah_json_check_err(&ah_lua_of(L)->mem, text, "annotations", &err) != AH_OK)
        ah_lua_raise(L, err.status == AH_NOMEM ? AH_NOMEM : AH_PROMPT_VALIDATION, "ah_add_tool: %s",
                     err.message);
    r = ah_json_read(text);
    if (ah_json_next(&r).kind != AH_JSON_OBJECT)
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah_add_tool: annotations must be a JSON object");
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r))
        read_annotation(L, key, ah_json_next(&r), def);
}

static int make_tool(lua_State *L)
{
    draft *d = lua_touserdata(L, 1);
    const ah_tool_config *c = d->cfg;
    ah_lua *h = ah_lua_of(L);
    ah_tool_def def = {.vt = &native_vt, .place = AH_LIT("the program")};
    ah_err err;

    check_config(L, c);
    compile(L, "params", c->params, &d->params);
    compile(L, "result", c->result, &d->result);
    read_annotations(L, c->annotations, &def);
    if (c->version)
        def.version = ah_slice_of(c->version);
    if (!(d->native = ah_alloc(&h->mem, sizeof *d->native)))
        return ah_lua_raise_nomem(L);
    *d->native =
        (native){.embed = h->embed, .cfg = {.call = c->call, .cancel = c->cancel, .ud = c->ud}};
    def.name = ah_slice_of(c->name);
    def.description = ah_slice_of(c->description);
    def.params = d->params;
    def.result = d->result;
    def.full_description = ah_slice_of(c->full_description ? c->full_description : "");
    def.parallel = c->parallel;
    def.coerce = c->coerce;
    def.direct = c->return_direct;
    def.max_result = c->max_result;
    def.timeout_ms = ah_ms_of(c->timeout);
    def.handler = (ah_value){&handler_vt, d->native};
    if (ah_tool_new(&h->mem, &def, &d->tool, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_lua_push_tool(L, d->tool);
    ah_given_tool(L, h->embed, -1);
    d->native->cfg.release = c->release; /* nothing fails from here on */
    return 0;
}

AH_API ah_status ah_add_tool(ah_host *host, const ah_tool_config *tool)
{
    ah_embed *e = ah_embed_of(host);
    draft d = {.cfg = tool};
    ah_status st = ah_embed_enter(e, "ah_add_tool");

    if (st == AH_OK)
        st = ah_embed_call(e, make_tool, &d);

    if (!d.tool)
        ah_free(&e->lua->mem, d.native);
    ah_tool_unref(d.tool);
    ah_schema_unref(d.params);
    ah_schema_unref(d.result);
    return st;
}
