/* Agents of a C program: opened from JSON by the code of ah.agent, run with or without waiting, and
 * their replies. */
#include "base/lent.h"
#include "lua/lua_api.h"
#include "lua/lua_background.h"
#include "lua/lua_definition.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_reply.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

enum { MAX_JSON = 1 << 30 };

struct ah_agent {
    ah_embed *embed;
    ah_agent *next, **link;
    void *user;
    int ref; /* reference to the agent in Lua */
    ah_lua_agent *lua;
    bool ours;                   /* no script has it */
    ah_transcript *conversation; /* the agent's transcript */
    int run_ref;                 /* reference to the userdata of the run */
    ah_lua_run *run;             /* the last run; NULL: none yet */
    ah_tap tap;
    bool at_work, has_reply, counted;
    ah_event_node *done, *least; /* events for the end of a run: complete, and minimal */
    ah_err err;
    ah_reply reply;
    ah_usage usage;     /* of the reply */
    size_t first, last; /* entries of the reply's run */
    ah_text *text, *value, *err_json, *reply_json, *messages, *transcript, *head;
};

/* -- opening ------------------------------------------------------------------------------- */

/* The config at 1 is from JSON: replaces names of tools by the tools. */
static void resolve_tools(lua_State *L, ah_embed *e)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, 1, "ah_agent_open", "tools", &n))
        return;
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_geti(L, -1, i) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "ah_agent_open: tools must be names, found %s",
                         luaL_typename(L, -1));
        ah_given_push(L, e, AH_GIVEN_TOOLS, lua_tostring(L, -1));
        if (lua_isnil(L, -1))
            ah_given_no_tool(L, e, lua_tostring(L, -2));
        lua_seti(L, -3, i);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void resolve_model(lua_State *L, ah_embed *e)
{
    if (lua_getfield(L, 1, "model") == LUA_TSTRING && !strchr(lua_tostring(L, -1), '/')) {
        ah_given_push(L, e, AH_GIVEN_MODELS, lua_tostring(L, -1));
        if (!lua_isnil(L, -1))
            lua_setfield(L, 1, "model"); /* else ah.agent reports the fault */
        else
            lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* JSON has no functions or objects. */
static void refuse_others(lua_State *L)
{
    const char *field = ah_options_out_of(L, 1, &ah_subject_run, AH_IN_JSON);

    lua_settop(L, 1); /* -- config */
    if (!field)
        return;
    if (strcmp(field, "on") == 0 || strcmp(field, "log") == 0 || strcmp(field, "asks") == 0)
        ah_lua_raise(
            L, AH_USAGE,
            "ah_agent_open: field '%s' is for functions of scripts; ah_next_event gives the "
            "events, ah_ask_next the asks, the log of ah_config the records",
            field);
    ah_lua_raise(L, AH_USAGE,
                 "ah_agent_open: field '%s' takes functions or objects, which JSON cannot hold: "
                 "return an agent with it from a script, and open that by its name",
                 field);
}

typedef struct opening {
    ah_agent *agent;
    const char *config; /* of ah_agent_open; else NULL */
    const char *name;   /* of ah_agent_find */
} opening;

static void push_config(lua_State *L, const ah_embed *e, const char *config)
{
    ah_slice json = ah_slice_of(config ? config : "");
    ah_err err;

    if (ah_json_check_err(&e->lua->mem, json, "ah_agent_open: the config", &err) != AH_OK)
        ah_lua_raise(L, err.status == AH_NOMEM ? AH_NOMEM : AH_USAGE, "%s", err.message);
    ah_lua_push_json(L, json);
    if (ah_json_kind_of(json) != AH_JSON_OBJECT)
        ah_lua_raise(L, AH_USAGE, "ah_agent_open: the config must be an object");
    lua_replace(L, 1);
}

/* Keeps the agent on top (popped). */
static void keep_agent(lua_State *L, ah_agent *a)
{
    ah_lua_agent *agent = ah_lua_to_agent(L, -1);
    ah_transcript *t = agent->transcript;

    if (agent->closed)
        ah_lua_raise(L, AH_USAGE, "the script has closed this agent");
    a->lua = agent;
    a->ref = ah_lua_ref(L);
    a->conversation = ah_transcript_ref(t);
}

/* Pushes an agent that a script returned. Raises if there is none of that name. */
static void push_given(lua_State *L, ah_embed *e, const char *name)
{
    ah_given_push(L, e, AH_GIVEN_AGENTS, name);
    if (lua_isnil(L, -1))
        ah_lua_raise(L, AH_USAGE, "no script has returned an agent '%s'", name);
}

/* (config at 1) -- agent nil, or nil err */
static void open_new(lua_State *L, ah_embed *e)
{
    refuse_others(L);
    resolve_tools(L, e);
    resolve_model(L, e);
    lua_pushcfunction(L, ah_lua_agent_open);
    lua_insert(L, 1);
    lua_call(L, 1, 2);
}

/* Opens another conversation (agent:open) of the agent whose name is on top. */
static void open_another(lua_State *L, ah_embed *e)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "ah_agent_open: field 'agent' must be a string, found %s",
                     luaL_typename(L, -1));
    push_given(L, e, lua_tostring(L, -1));
    lua_pushnil(L);
    lua_setfield(L, 1, "agent");
    lua_pushcfunction(L, ah_lua_open_conversation);
    lua_insert(L, -2); /* -- config name open agent */
    lua_pushvalue(L, 1);
    lua_call(L, 2, 2);
}

static int open_agent(lua_State *L)
{
    opening *o = lua_touserdata(L, 1);
    ah_embed *e = ah_lua_of(L)->embed;

    push_config(L, e, o->config);
    if (lua_getfield(L, 1, "agent") == LUA_TNIL)
        open_new(L, e);
    else
        open_another(L, e);
    if (lua_isnil(L, -2))
        return lua_error(L);
    lua_pop(L, 1);
    keep_agent(L, o->agent);
    o->agent->ours = true;
    return 0;
}

static int find_agent(lua_State *L)
{
    opening *o = lua_touserdata(L, 1);
    ah_embed *e = ah_lua_of(L)->embed;

    push_given(L, e, o->name ? o->name : "");
    keep_agent(L, o->agent);
    return 0;
}

static void enter_list(ah_agent *a)
{
    ah_embed *e = a->embed;

    a->next = e->agents;
    a->link = &e->agents;
    if (a->next)
        a->next->link = &a->next;
    e->agents = a;
}

static ah_status make(ah_host *host, const char *what, lua_CFunction f, opening *o, ah_agent **out)
{
    ah_embed *e = ah_embed_of(host);
    ah_status st = ah_embed_enter(e, what);
    ah_err err;

    if (st != AH_OK)
        return st;
    if (!out)
        return ah_embed_fail(e,
                             (ah_err_set(&err, AH_USAGE, "%s: out must not be NULL", what), &err));
    if (!(o->agent = ah_alloc(&e->lua->mem, sizeof *o->agent)))
        return ah_embed_fail(e, (ah_err_nomem(&err), &err));
    o->agent->embed = e;
    o->agent->ref = o->agent->run_ref = LUA_NOREF;
    if ((st = ah_embed_call(e, f, o)) != AH_OK) {
        ah_free(&e->lua->mem, o->agent);
        return st;
    }
    enter_list(o->agent);
    *out = o->agent;
    return AH_OK;
}

AH_API ah_status ah_agent_open(ah_host *host, const char *config, ah_agent **out)
{
    opening o = {.config = ah_lend_text(config)};

    return make(host, "ah_agent_open", open_agent, &o, out);
}

AH_API ah_status ah_agent_find(ah_host *host, const char *name, ah_agent **out)
{
    opening o = {.name = ah_lend_text(name)};

    return make(host, "ah_agent_find", find_agent, &o, out);
}

/* -- closing --------------------------------------------------------------------------------- */

static void forget_reply(ah_agent *a)
{
    ah_text_set(&a->text, NULL);
    ah_text_set(&a->value, NULL);
    ah_text_set(&a->err_json, NULL);
    ah_text_set(&a->reply_json, NULL);
    a->has_reply = false;
}

static void leave_work(ah_agent *a)
{
    if (a->counted)
        a->embed->at_work--;
    a->at_work = a->counted = false;
}

/* finalized: Lua has already freed the run and the agent. */
static void free_agent(ah_agent *a, bool finalized)
{
    ah_embed *e = a->embed;

    if (a->run && !finalized)
        ah_lua_run_drop(a->run);
    leave_work(a);
    if (!finalized)
        ah_lua_background_untap(a->lua);
    if (!finalized && a->ours && !a->lua->runs)
        ah_lua_agent_close(a->lua);
    if (!finalized) {
        ah_lua_unref(e->lua, &a->run_ref);
        ah_lua_unref(e->lua, &a->ref);
    }
    ah_event_free(e, a->done);
    ah_event_free(e, a->least);
    ah_events_forget(e, a);
    forget_reply(a);
    ah_transcript_unref(a->conversation);
    ah_text_set(&a->messages, NULL);
    ah_text_set(&a->transcript, NULL);
    ah_text_set(&a->head, NULL);
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    ah_free(&e->lua->mem, a);
}

AH_API void ah_agent_close(ah_agent *agent)
{
    if (agent && ah_embed_enter_top(agent->embed, "ah_agent_close") == AH_OK)
        free_agent(agent, false);
}

void ah_agents_close(ah_embed *e, bool finalized)
{
    while (e->agents)
        free_agent(e->agents, finalized);
}

/* -- a run ------------------------------------------------------------------------------------- */

static void on_event(ah_agent *a, const ah_notice *n)
{
    ah_event_node *node = ah_event_new(a->embed, a, n);

    if (n->type != AH_EVENT_DONE) {
        ah_event_queue(a->embed, node, false);
        return;
    }
    ah_event_free(a->embed, a->done);
    a->done = node;
}

static ah_tokens tokens_of(const ah_usage *u)
{
    return (ah_tokens){.input = u->input,
                       .cached_read = u->cached_read,
                       .cached_write = u->cached_write,
                       .output = u->output,
                       .reasoning = u->reasoning,
                       .known = u->known,
                       .priced = u->priced,
                       .cost = (double)u->cost / AH_COST_UNIT,
                       .unpriced = u->unpriced,
                       .prices_of = u->prices_of[0] ? u->prices_of : NULL};
}

static void keep_reply(ah_agent *a)
{
    const ah_mem *mem = &a->embed->lua->mem;
    const ah_run *run = ah_driver_run_run(ah_lua_run_driven(a->run));
    ah_run_result r;

    ah_run_result_of(run, &r);
    a->err = r.err;
    if (!(a->text = ah_text_new(mem, r.text)) ||
        (r.value.p && !(a->value = ah_text_new(mem, r.value))))
        ah_err_nomem(&a->err);
    a->usage = r.usage;
    a->reply = (ah_reply){.run = ah_run_cfg(run)->id,
                          .status = a->err.status,
                          .text = a->text ? a->text->data : "",
                          .text_len = a->text ? a->text->len : 0,
                          .stop = ah_stop_name(r.stop),
                          .iterations = r.iterations,
                          .rounds = r.rounds,
                          .tool_calls = r.tool_calls,
                          .value = a->value ? a->value->data : NULL,
                          .usage = tokens_of(&a->usage)};
    ah_embed_error(mem, &a->err, &a->reply.error, &a->err_json);
    a->first = ah_lua_run_first(a->run);
    a->last = a->conversation->n;
    a->has_reply = true;
}

static void tell_done(ah_agent *a)
{
    ah_embed *e = a->embed;
    ah_event_node *node = a->done ? a->done : a->least;

    if (node == a->least) {
        ah_event_set_run(a->least, a->reply.run, ah_host_wall(e->lua->host));
        a->least = NULL;
    }
    a->done = NULL;
    ah_event_free(e, a->least);
    a->least = NULL;
    ah_event_queue(e, node, true);
}

static void on_done(ah_agent *a)
{
    bool tell = a->counted;

    keep_reply(a);
    leave_work(a);
    if (tell)
        tell_done(a);
}

typedef struct beginning {
    ah_agent *agent;
    const char *text;
    bool waits;
} beginning;

static void let_go_of_run(ah_agent *a)
{
    if (a->run)
        ah_lua_run_drop(a->run);
    a->run = NULL;
    ah_lua_unref(a->embed->lua, &a->run_ref);
}

static int waited(lua_State *L, int status, lua_KContext ctx)
{
    (void)L;
    (void)status;
    (void)ctx;
    return 0;
}

static int begin(lua_State *L)
{
    beginning *b = lua_touserdata(L, 1);
    ah_agent *a = b->agent;
    ah_lua_run *run;
    ah_err err;

    lua_settop(L, 0);
    if (b->waits)
        ah_lua_can_await(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, a->ref);
    lua_pushstring(L, b->text);
    a->tap = (ah_tap){.agent = a, .event = b->waits ? NULL : on_event, .done = on_done};
    lua_pushboolean(L, true); /* the reference is made before the run, which could be lost */
    a->run_ref = ah_lua_ref(L);
    if (!(run = ah_lua_start(L, 1, &a->tap, &err)))
        return ah_lua_raise_err(L, &err);
    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, a->run_ref);
    forget_reply(a);
    a->run = run;
    a->at_work = true;
    return b->waits ? ah_lua_await(L, ah_lua_run_waiter(run), 0, waited) : 0;
}

static ah_status start(ah_agent *a, const char *text, bool waits)
{
    beginning b = {a, ah_lend_text(text), waits};
    ah_embed *e = a->embed;
    bool had_reply = a->has_reply;
    ah_status st;
    ah_err err;

    if (a->at_work) {
        ah_err_set(&err, AH_USAGE, "the agent is at work; ah_agent_send queues a message");
        return ah_embed_fail(e, &err);
    }
    let_go_of_run(a);
    a->has_reply = false; /* for callbacks while the run begins */
    st = ah_embed_call(e, begin, &b);
    if (!a->run) {
        ah_lua_unref(e->lua, &a->run_ref);
        a->has_reply = had_reply;
    }
    return st;
}

AH_API ah_status ah_agent_run(ah_agent *agent, const char *text)
{
    ah_status st = ah_embed_enter(agent->embed, "ah_agent_run");

    if (st == AH_OK)
        st = start(agent, text, true);
    if (st == AH_OK && agent->reply.status != AH_OK)
        st = ah_embed_fail(agent->embed, &agent->err);
    return st;
}

AH_API ah_status ah_agent_start(ah_agent *agent, const char *text)
{
    ah_embed *e = agent->embed;
    ah_status st = ah_embed_may(e, "ah_agent_start");
    ah_err err;

    if (st != AH_OK)
        return st;
    if (e->n_done >= e->max_events) {
        ah_err_set(&err, AH_BUDGET, "the events `done` of %zu runs are unread: call ah_next_event",
                   e->n_done);
        return ah_embed_fail(e, &err);
    }
    if (!agent->at_work && !agent->least && !(agent->least = ah_event_new_done(e, agent)))
        return ah_embed_fail(e, (ah_err_nomem(&err), &err));
    if ((st = start(agent, text, false)) != AH_OK)
        return st;
    agent->counted = true;
    e->at_work++;
    return AH_OK;
}

/* -- during a run ------------------------------------------------------------------------------ */

static int send(lua_State *L)
{
    const beginning *b = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, b->agent->ref);
    lua_getfield(L, -1, "send");
    lua_insert(L, -2);
    lua_pushstring(L, b->text);
    lua_call(L, 2, 2);
    return lua_toboolean(L, -2) ? 0 : lua_error(L);
}

AH_API ah_status ah_agent_send(ah_agent *agent, const char *text)
{
    beginning b = {agent, ah_lend_text(text), false};
    ah_status st = ah_embed_may(agent->embed, "ah_agent_send");
    ah_err err;

    if (st == AH_OK && (!text || !*text))
        return ah_embed_fail(
            agent->embed,
            (ah_err_set(&err, AH_USAGE, "ah_agent_send: there is nothing to say: give a text"),
             &err));
    return st == AH_OK ? ah_embed_call(agent->embed, send, &b) : st;
}

AH_API void ah_agent_cancel(ah_agent *agent)
{
    if (ah_embed_may(agent->embed, "ah_agent_cancel") == AH_OK && agent->at_work)
        ah_driver_run_cancel(ah_lua_run_driven(agent->run), AH_CANCELLED,
                             "cancelled by the program");
}

AH_API const char *ah_agent_id(const ah_agent *agent)
{
    const ah_lua_agent *a = agent->lua;

    return !a->closed && a->stream.keeper && a->setup.id ? a->setup.id->data : NULL;
}

AH_API bool ah_agent_at_work(const ah_agent *agent)
{
    return agent->at_work;
}

AH_API void *ah_agent_user(const ah_agent *agent)
{
    return agent->user;
}

AH_API void ah_agent_set_user(ah_agent *agent, void *user)
{
    agent->user = user;
}

/* -- replies and transcripts ------------------------------------------------------------------- */

AH_API const ah_reply *ah_agent_reply(const ah_agent *agent)
{
    return agent->has_reply ? &agent->reply : NULL;
}

static void print_reply(const ah_agent *a, ah_buf *b)
{
    const ah_reply *r = &a->reply;

    ah_buf_fmt(b, "{\"run\":%lld,\"text\":", (long long)r->run);
    ah_json_put_string(b, (ah_slice){r->text, r->text_len});
    if (a->value) {
        ah_buf_str(b, ",\"value\":");
        ah_buf_put(b, ah_text_slice(a->value));
    }
    ah_buf_fmt(b, ",\"stop\":\"%s\",\"iterations\":%d,\"rounds\":%d,\"tool_calls\":%zu,\"usage\":",
               r->stop, r->iterations, r->rounds, r->tool_calls);
    ah_usage_print(&a->usage, b);
    ah_buf_str(b, ",\"injected_tools\":");
    ah_lua_put_changed_tools(a->conversation, a->first, a->last, AH_ENTRY_TOOLS_ADDED, b);
    ah_buf_str(b, ",\"removed_tools\":");
    ah_lua_put_changed_tools(a->conversation, a->first, a->last, AH_ENTRY_TOOLS_REMOVED, b);
    if (r->status != AH_OK) {
        ah_buf_str(b, ",\"error\":");
        ah_err_json(&a->err, b);
    }
    ah_buf_char(b, '}');
}

AH_API const char *ah_agent_reply_json(ah_agent *agent)
{
    ah_text *t = NULL;
    ah_buf b;

    if (!agent->has_reply || agent->reply_json)
        return agent->reply_json ? agent->reply_json->data : NULL;
    ah_buf_init(&b, &agent->embed->lua->mem, MAX_JSON);
    print_reply(agent, &b);
    ah_text_from_buf(&b, "the reply", &t, NULL);
    ah_buf_clear(&b);
    ah_text_set(&agent->reply_json, t);
    return t ? t->data : NULL;
}

AH_API const char *ah_agent_transcript(ah_agent *agent)
{
    ah_lua *h = agent->embed->lua;
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, &h->mem, MAX_JSON);
    ah_transcript_print(agent->conversation, &b);
    ah_text_from_buf(&b, "the transcript", &t, NULL);
    ah_buf_clear(&b);
    ah_text_set(&agent->transcript, t);
    return t ? t->data : NULL;
}

AH_API const char *ah_agent_head(ah_agent *agent)
{
    ah_lua *h = agent->embed->lua;
    ah_text *t = NULL;
    ah_status st;
    ah_err err;
    ah_buf b;

    if (ah_embed_enter(agent->embed, "ah_agent_head") != AH_OK)
        return NULL;
    ah_buf_init(&b, &h->mem, MAX_JSON);
    st = ah_lua_stream_head(agent->lua, &b, &err);
    if (st == AH_OK)
        ah_text_from_buf(&b, "the head", &t, &err);
    ah_buf_clear(&b);
    ah_text_set(&agent->head, t);
    return t ? t->data : NULL;
}

static int make_messages(lua_State *L)
{
    ah_agent *a = lua_touserdata(L, 1);
    ah_buf *b = ah_lua_push_buf(L, MAX_JSON);
    ah_text *t = NULL;
    ah_err err;

    ah_lua_push_messages(L, a->conversation, a->conversation->n);
    if (lua_rawlen(L, -1) == 0)
        ah_buf_str(b, "[]");
    else if (ah_lua_to_json(L, -1, b->mem, b, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (ah_text_from_buf(b, "the messages", &t, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_buf_clear(b);
    ah_text_set(&a->messages, t);
    return 0;
}

AH_API const char *ah_agent_messages(ah_agent *agent)
{
    ah_text_set(&agent->messages, NULL);
    ah_embed_call(agent->embed, make_messages, agent);
    return agent->messages ? agent->messages->data : NULL;
}
