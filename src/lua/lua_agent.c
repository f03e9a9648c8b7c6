/* ah.run and ah.agent: makes a run from an agent, whose fields lua_agent_fields.c reads, and a
 * reply from the run. */

#include "lua/lua_agent.h"
#include "lua/lua_background.h"
#include "lua/lua_book.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_gate.h"
#include "lua/lua_handoff.h"
#include "lua/lua_image.h"
#include "lua/lua_inbox.h"
#include "lua/lua_post.h"
#include "lua/lua_reply.h"
#include "lua/lua_keep.h"
#include "lua/lua_now.h"
#include "lua/lua_resource_end.h"
#include "lua/lua_resources.h"
#include "lua/lua_named.h"
#include "lua/lua_restage.h"
#include "lua/lua_session.h"
#include "lua/lua_setup.h"
#include "lua/lua_step.h"
#include "lua/lua_task.h"
#include "lua/lua_tool.h"
#include "lua/lua_toolset.h"
#include "lua/lua_undo.h"
#include "lua/lua_options.h"

static const char RUN[] = "agenthost.run";

typedef ah_lua_run run;

/* -- agents ------------------------------------------------------------------------------ */

/* Raises AH_USAGE while the prompt is rendered: the functions `enabled` and `visibility` must not
 * change the agent whose prompt they decide about. */
static void check_looking(lua_State *L, const ah_lua_agent *a)
{
    if (a->looking)
        ah_lua_raise(
            L, AH_USAGE,
            "`enabled` and `visibility` cannot use the agent whose prompt is being rendered");
}

static ah_lua_agent *check_open(lua_State *L, int at)
{
    ah_lua_agent *a = luaL_checkudata(L, at, AH_AGENT);

    if (a->closed)
        ah_lua_raise(L, AH_USAGE, "the agent is closed; save or fork it before agent:close()");
    check_looking(L, a);
    return a;
}

ah_lua_agent *ah_lua_check_agent(lua_State *L)
{
    return check_open(L, 1);
}

ah_lua_agent *ah_lua_to_agent(lua_State *L, int idx)
{
    return luaL_testudata(L, idx, AH_AGENT);
}

/* Raises unless the value is a text, a list of texts and images, or nil. */
static void check_said(lua_State *L, int idx, const char *what)
{
    int type = lua_type(L, idx);

    if (type > LUA_TNIL && type != LUA_TSTRING && type != LUA_TTABLE)
        ah_lua_raise(
            L, AH_USAGE,
            "%s: the text for the model must be a string, or a list of texts and images, found %s",
            what, luaL_typename(L, idx));
}

/* Pushes the user's text, which follows the sections in the array part of the table at 1. */
static void push_text(lua_State *L)
{
    const ah_lua_agent *a = lua_touserdata(L, 2);
    lua_Integer sections = (lua_Integer)a->prompt.n_sections, n = luaL_len(L, 1) - sections;

    if (n > 1)
        ah_lua_raise(
            L, AH_USAGE,
            "ah.run: sections, then one text for the model at most, found %d things behind the "
            "sections (several texts are a list: { \"...\", \"...\" })",
            (int)n);
    lua_geti(L, 1, sections + 1);
    check_said(L, -1, "ah.run");
}

/* -- nil err, with the partial reply in err.reply */
static int push_failure(lua_State *L, const ah_err *err, int reply)
{
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    if (reply) {
        lua_pushvalue(L, reply);
        lua_setfield(L, -2, "reply");
    }
    luaL_tolstring(L, -1, NULL);
    lua_setfield(L, LUA_REGISTRYINDEX, AH_LAST_FAILURE);
    return 2;
}

int ah_lua_fail(lua_State *L, const ah_err *err)
{
    return push_failure(L, err, 0);
}

void ah_lua_add_front(lua_State *L, ah_lua_agent *a)
{
    if (a->fronts == LUA_NOREF) {
        lua_newtable(L);
        a->fronts = ah_lua_ref(L);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, a->fronts);
    lua_insert(L, -2);
    lua_seti(L, -2, luaL_len(L, -2) + 1);
    lua_pop(L, 1);
}

/* Makes the parts that ah_lua_read_agent fills for a conversation. */
static void init_conversation(ah_lua_agent *a)
{
    a->untold.mem = &a->lua->mem;
    ah_lua_stream_init(a);
    ah_registry_init(&a->registry, &a->lua->mem);
    ah_registry_init(&a->executors, &a->lua->mem);
    ah_lua_strategies_init(&a->strategies, a->lua);
    ah_lua_hooks_init(&a->hooks, a->lua);
    ah_lua_setup_init(a);
    ah_lua_background_init(a);
    ah_changes_init(&a->handoffs.tools, &a->lua->mem);
}

ah_lua_agent *ah_lua_push_agent(lua_State *L)
{
    ah_lua_agent *a = lua_newuserdatauv(L, sizeof *a, AH_AGENT_VALUES);

    *a = (ah_lua_agent){.lua = ah_lua_of(L), .fronts = LUA_NOREF};
    ah_observer_init(&a->observer, a->lua);
    init_conversation(a);
    luaL_setmetatable(L, AH_AGENT);
    return a;
}

/* After a raise the collector frees the agent. */
bool ah_lua_new_agent(lua_State *L, const char *what, bool once)
{
    ah_lua_agent *a = ah_lua_push_agent(L);
    ah_err err;

    a->once = once;
    if (ah_lua_read_agent(L, a, what, &err) == AH_OK)
        return !a->stream.read || ah_lua_handoffs_resume(L, a) == 1;
    push_failure(L, &err, 0);
    return false;
}

static void discount(run *r)
{
    r->agent->runs -= r->counted;
    r->counted = false;
}

static void free_driven(run *r)
{
    bool unsettled;

    if (!r->driven)
        return;
    unsettled = ah_run_unsettled(ah_driver_run_run(r->driven));
    ah_driver_run_free(r->driven);
    r->driven = NULL;
    if (r->recorded)
        ah_lua_stream_run_over(r->agent, unsettled);
    r->recorded = false;
    if (r->ticket)
        ah_lua_background_forget(r);
    else
        discount(r);
}

/* Drops a run, even one that is still at work when the state is closed. The host's depth is set to
 * the maximum meanwhile, so that functions that close the resources of nested runs cannot wait. */
static void drop_driven(run *r)
{
    ah_host *host = r->agent->lua->host;
    int depth = host->depth;

    host->depth = AH_MAX_DEPTH;
    free_driven(r);
    host->depth = depth;
    ah_text_set(&r->said, NULL);
}

/* Lets the adapter free its data for the conversation. */
static void leave(const ah_lua_agent *a, ah_adapter *from)
{
    if (from && from->vt->leave)
        from->vt->leave(from, &a->wire);
}

/* Calls leave() for all adapters of the agent except the one in use. */
static void leave_others(const ah_lua_agent *a)
{
    if (a->before != a->adapter)
        leave(a, a->before);
    for (size_t i = 0; i < a->fallback.n; i++)
        if (a->fallback.item[i] != a->adapter)
            leave(a, a->fallback.item[i]);
}

/* Frees the conversation, and all that is read for it. */
static void clear_conversation(ah_lua_agent *a)
{
    ah_lua_stream_close(a);
    ah_lua_background_clear(a);
    a->session = NULL;
    leave_others(a);
    leave(a, a->adapter);
    ah_wire_clear(&a->wire);
    ah_registry_clear(&a->registry);
    ah_registry_clear(&a->executors);
    ah_lua_strategies_clear(&a->strategies);
    ah_lua_discovery_clear(&a->discovery);
    ah_lua_hooks_clear(&a->hooks);
    ah_lua_setup_clear(a);
    ah_lua_handoffs_clear(a);
    ah_budget_unref(a->budget);
    a->budget = NULL;
    ah_prompt_fields_clear(&a->prompt);
    ah_lua_fallbacks_clear(&a->fallback);
    ah_transcript_unref(a->transcript);
    a->transcript = NULL;
    ah_adapter_unref(a->adapter);
    ah_adapter_unref(a->before);
    a->adapter = a->before = NULL;
    ah_text_set(&a->settings, NULL);
    ah_text_set(&a->exempt, NULL);
    ah_text_set(&a->kept, NULL);
    ah_text_set(&a->name, NULL);
    ah_drift_warnings_clear(&a->untold);
}

void ah_lua_agent_close(ah_lua_agent *a)
{
    a->closed = true;
    clear_conversation(a);
    ah_observer_clear(&a->observer);
    ah_lua_unref(a->lua, &a->fronts);
}

void ah_lua_agent_empty(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT);
    static const int emptied[] = {AH_AGENT_BACKGROUND, AH_AGENT_KEPT, AH_AGENT_ACTIVE,
                                  AH_AGENT_NEXT};
    const ah_lua_handoffs *h = &a->handoffs;
    ah_text *id = ah_text_ref(a->setup.id);
    ah_lua_agent kept = {.lua = a->lua,
                         .fronts = a->fronts,
                         .observer = a->observer,
                         .adapter = ah_adapter_ref(h->adapter ? h->adapter : a->adapter),
                         .settings = ah_text_ref(h->settings ? h->settings : a->settings),
                         .budget = ah_budget_ref(a->budget),
                         .busy = a->busy,
                         .closed = true,
                         .again = true};

    clear_conversation(a);
    *a = kept;
    init_conversation(a);
    a->setup.id = id;
    for (size_t i = 0; i < sizeof emptied / sizeof *emptied; i++) {
        lua_pushnil(L);
        lua_setiuservalue(L, 1, emptied[i]);
    }
}

int ah_lua_agent_fill(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 2, AH_AGENT);
    ah_err err;
    int n;

    if (ah_lua_read_agent(L, a, "agent:rewind", &err) != AH_OK)
        return push_failure(L, &err, 0);
    a->again = a->closed = false;
    n = ah_lua_handoffs_resume(L, a);
    a->closed = n != 1;
    return n;
}

static int agent_gc(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT);

    if (a->current) /* both are garbage: the run is dropped first */
        drop_driven(a->current);
    a->current = NULL;
    ah_lua_agent_close(a);
    return ah_lua_retire(L);
}

/* agent:close(), and __close. With __close an error of the block has priority over ours. Returns
 * true, or nil and an error if the store does not have all of the conversation. */
static int agent_close(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT);
    ah_status st;
    ah_err err;

    check_looking(L, a);
    if ((a->runs || a->busy) && lua_isnoneornil(L, 2))
        return ah_lua_raise(
            L, AH_USAGE, "agent:close: a run of it is at work; wait for it, or agent:cancel() it");
    if (a->runs || a->busy)
        return 0;
    ah_lua_background_close(L, a);
    st = ah_lua_stream_settle(a, &err);
    ah_lua_agent_close(a);
    for (int i = 1; i <= AH_AGENT_VALUES; i++) { /* its session, resources and registry */
        lua_pushnil(L);
        lua_setiuservalue(L, 1, i);
    }
    if (st != AH_OK)
        return push_failure(L, &err, 0);
    lua_pushboolean(L, true);
    return 1;
}

/* -- a run --------------------------------------------------------------------------------- */

/* Closes the run's own resources. The functions that close them cannot wait either. */
static void close_late(ah_lua *h, run *r)
{
    int depth = h->host->depth;

    h->host->depth = AH_MAX_DEPTH;
    ah_lua_close_resources(h, &r->resources);
    h->host->depth = depth;
}

static int run_gc(lua_State *L)
{
    run *r = luaL_checkudata(L, 1, RUN);

    if (r->agent->current == r) /* a finalizer of the script may use the agent later */
        r->agent->current = NULL;
    drop_driven(r);
    r->waiter.done = true; /* a task may wait for it that is finalized later */
    close_late(ah_lua_of(L), r);
    return 0;
}

/* The task that waited for the run was stopped. Its own handler may have done that: the run ends
 * when that has returned. */
static void abandon(ah_task_waiter *w)
{
    run *r = (run *)(void *)((char *)w - offsetof(run, waiter));

    r->left = true;
    if (w->done && r->driven && !ah_driver_run_at_work(r->driven))
        free_driven(r);
}

/* Returns the keeper of the conversation that the run belongs to, also by the runs around it; NULL:
 * none. */
static ah_keeper *keeper_of(const run *r)
{
    ah_keeper *k = r->agent->stream.keeper;

    for (const ah_driver_run *d = r->driven; d && !k; d = ah_driver_run_parent(d))
        if (ah_lua_agent_of(d))
            k = ah_lua_agent_of(d)->stream.keeper;
    return k;
}

static void on_event(void *ud, const ah_notice *e)
{
    run *r = ud;
    ah_run *core = r->driven ? ah_driver_run_run(r->driven) : NULL;

    r->agent->busy += r->ticket != 0; /* an observer cannot close the agent below this call */
    if (r->tap && r->tap->event)
        r->tap->event(r->tap->agent, e);
    ah_observer_event(&r->agent->observer, core, r->tap ? r->tap->agent : NULL, e);
    if (core && e->type == AH_EVENT_TOOL_INVOKED)
        ah_lua_publish_event(r->agent->lua, core, e);
    if (e->type == AH_EVENT_REQUEST || e->type == AH_EVENT_TOOL_INVOKED)
        ah_lua_named_note(r->agent->lua, keeper_of(r), false);
    r->agent->busy -= r->ticket != 0;
}

static bool wants_content(void *ud)
{
    const run *r = ud;
    const ah_lua_agent *a = r->agent;

    return ah_observer_wants(&a->observer, AH_EVENT_CONTENT) ||
           (r->tap && r->tap->event && a->adapter->stream);
}

static void on_done(void *ud, ah_driver_run *d)
{
    run *r = ud;

    if (r->ticket)
        return;
    r->agent->current = NULL;
    if (r->recorded)
        ah_lua_stream_run_over(r->agent, ah_run_unsettled(ah_driver_run_run(d)));
    r->recorded = false;
    ah_lua_stream_note(r->agent); /* what a run inside a handler has added */
    ah_lua_named_note(r->agent->lua, keeper_of(r), false);
    if (r->left)
        discount(r);
    ah_lua_discovery_end(r->agent);
    ah_lua_close_resources(r->agent->lua, &r->resources);
    ah_lua_background_wake(r->agent);
    if (r->tap)
        r->tap->done(r->tap->agent);
    ah_task_waiter_done(&r->waiter);
}

int ah_lua_run_resources(const ah_driver_run *d)
{
    const run *r = ah_driver_run_ud(d, on_done);

    return r ? r->resources : LUA_NOREF;
}

static ah_status keep(void *ud, const ah_call *call, ah_overlay *o, ah_slice whole, ah_buf *path,
                      ah_err *err)
{
    const run *r = ud;

    return ah_lua_keep(r->agent->lua, r->resources, call, o, whole, path, err);
}

ah_lua_agent *ah_lua_agent_of_run(void *ud)
{
    return ((run *)ud)->agent;
}

ah_lua_agent *ah_lua_agent_of(const ah_driver_run *d)
{
    const run *r = ah_driver_run_ud(d, on_done);

    return r ? r->agent : NULL;
}

ah_agent *ah_lua_program_agent(const ah_driver_run *d)
{
    for (; d; d = ah_driver_run_parent(d)) {
        const run *r = ah_driver_run_ud(d, on_done);

        if (r && r->tap)
            return r->tap->agent;
    }
    return NULL;
}

ah_driver_run *ah_lua_agent_at_work(const ah_lua_agent *a)
{
    return a->current ? a->current->driven : NULL;
}

void ah_lua_push_reply_so_far(lua_State *L, const ah_driver_run *d)
{
    const run *r = ah_driver_run_ud(d, on_done);

    if (r)
        ah_lua_push_reply(L, ah_driver_run_run(d), r->agent->transcript, r->first);
    else
        lua_pushnil(L);
}

/* Appends the texts of a user's message, one per line. */
static void put_texts(ah_slice parts, ah_buf *out)
{
    ah_json_reader r = ah_json_read(parts);
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice text = ah_json_member(ah_json_skip(&r, t), "text");

        if (text.p && out->len)
            ah_buf_char(out, '\n');
        ah_json_string(text, out);
    }
}

/* Runs the input guards on the parts of the user's message; .p NULL: on the last one. */
static ah_status guard_parts(ah_lua_agent *a, ah_slice parts, ah_err *err)
{
    ah_status st;
    ah_buf b;

    if (a->hooks.guards[0] == LUA_NOREF)
        return AH_OK;
    if (!parts.p)
        parts = ah_json_member(ah_transcript_last(a->transcript, AH_ENTRY_USER), "content");
    ah_buf_init(&b, &a->lua->mem, AH_LUA_PARTS_MAX);
    if (parts.p)
        put_texts(parts, &b);
    st = ah_buf_ok(&b) ? ah_lua_guard_input(&a->hooks, ah_buf_slice(&b), err) : ah_err_nomem(err);
    ah_buf_clear(&b);
    return st;
}

static ah_status guard_said(ah_lua_agent *a, const ah_lua_content *said, ah_err *err)
{
    return said->text.p ? ah_lua_guard_input(&a->hooks, said->text, err)
                        : guard_parts(a, said->parts, err);
}

/* Appends the new entries to the transcript: settings (a last call without tools may have changed
 * them) and the user's message. Returns AH_GUARD, with nothing appended, if a guard refuses the
 * message. */
static ah_status open_turn(run *r, ah_err *err)
{
    ah_lua_agent *a = r->agent;
    ah_status st = guard_parts(a, ah_json_member(ah_text_slice(r->said), "content"), err);

    if (!ah_lua_stream_resumes(a))
        r->first = a->transcript->n;
    if (st == AH_OK)
        st = ah_lua_say_settings(a, err);
    if (st == AH_OK && r->said)
        st = ah_transcript_add(a->transcript, AH_ENTRY_USER, ah_text_ref(r->said), err);
    if (st == AH_OK)
        st = ah_lua_stream_defer(a, err);
    ah_text_set(&r->said, NULL);
    return st;
}

static void tell_tripped(ah_run *core, const ah_err *tripped)
{
    ah_run_warn(core, ah_slice_of(tripped->message));
}

/* Begins the run. With refused input, *tripped is filled and the run ends before its first
 * request. */
static ah_status begin_turn(run *r, int64_t deadline, ah_err *tripped, ah_err *err)
{
    ah_lua *h = r->agent->lua;
    ah_status st;

    h->until = deadline;
    st = open_turn(r, err);
    h->until = 0;
    if (st == AH_GUARD)
        *tripped = *err;
    return st == AH_GUARD ? AH_OK : st;
}

int64_t ah_lua_deadline_around(const ah_driver_run *parent, const ah_overlay *around)
{
    int64_t at = parent ? ah_run_cfg(ah_driver_run_run(parent))->deadline : 0;
    const ah_call *call = around ? around->owner : NULL;

    if (call && call->deadline && (!at || call->deadline < at))
        at = call->deadline;
    return at;
}

/* Returns the time of the field `deadline` by the loop clock; 0: none. */
static int64_t own_deadline(const ah_lua_agent *a)
{
    ah_host *host = a->lua->host;
    int64_t at;

    if (a->deadline <= 0)
        return 0;
    at = ah_host_now(host) + ah_ms_of(a->deadline) - ah_host_wall(host);
    return at > 0 ? at : 1;
}

int64_t ah_lua_agent_deadline(const ah_lua_agent *a, const ah_driver_run *parent,
                              const ah_overlay *around)
{
    int64_t at = ah_lua_deadline_around(parent, around), now = ah_host_now(a->lua->host);
    int64_t own = own_deadline(a);

    if (own && (!at || own < at))
        at = own;
    if (a->timeout > 0 && (!at || now + ah_ms_of(a->timeout) < at))
        at = now + ah_ms_of(a->timeout);
    return at;
}

/* Renders the prompt again, since its functions, parameters and the session may have changed. */
static ah_status look_again(ah_lua_agent *a, ah_overlay *around, ah_err *err)
{
    ah_prompt_look look;
    ah_changes c;
    ah_status st;

    if (a->closed) /* by a finalizer, since the run was requested */
        return ah_err_set(err, AH_USAGE, "the agent is closed");
    if (a->handoffs.active || a->handoffs.again) /* its text and tools are not its own now */
        return AH_OK;
    a->looking = true;
    ah_changes_init(&c, &a->lua->mem);
    st = ah_prompt_fields_look(&a->prompt, a->transcript, &a->registry, around, &look, &c, err);
    if (st == AH_OK && c.n)
        st = ah_lua_change_idle(a, &a->rules, &c, err);
    ah_prompt_fields_settle(&a->prompt, &look, a->transcript, st == AH_OK);
    ah_changes_clear(&c);
    a->looking = false;
    return st;
}

/* -- `setup`, within the run and before its first entries -- */

static ah_status be_ready(void *ud, ah_overlay *o, ah_err *err)
{
    run *r = ud;
    ah_status st = look_again(r->agent, o, err);

    if (st == AH_OK)
        st = open_turn(r, err);
    if (st == AH_GUARD) {
        tell_tripped(ah_driver_run_run(r->driven), err);
        err->phase = AH_PHASE_REQUEST;
    }
    return st;
}

static void set_up(void *ud, ah_run *core)
{
    run *r = ud;

    ah_lua_setup_begin(r->agent, core, be_ready, r);
}

static void stop_setup(void *ud, ah_run *core)
{
    (void)core;
    ah_lua_setup_stop(((run *)ud)->agent);
}

void ah_lua_push_run(lua_State *L, const ah_driver_run *d)
{
    const run *r = ah_driver_run_ud(d, on_done);

    lua_rawgeti(L, LUA_REGISTRYINDEX, r->waiter.ref);
}

static void configure(ah_lua_agent *a, run *r, ah_driver_run *parent, const ah_overlay *around,
                      ah_run_config *cfg)
{
    ah_host *host = a->lua->host;
    const ah_lua_agent *active = a->handoffs.active;

    *cfg = (ah_run_config){
        .mem = &a->lua->mem,
        .log = &a->observer.records,
        .secrets = &host->secrets,
        .id = ++host->last_run,
        .agent = ah_text_slice(active ? a->handoffs.name : a->name),
        .parent = parent ? ah_run_cfg(ah_driver_run_run(parent))->id : 0,
        .adapter = a->adapter,
        .fallback = a->fallback.item,
        .n_fallbacks = a->fallback.n,
        .fallback_after_output = a->fallback.after_output,
        .transcript = a->transcript,
        .wire = &a->wire,
        .models = a->lua->models,
        .registry = &a->registry,
        .executors = &a->executors,
        .rules = &a->rules,
        .untold = &a->untold,
        .strategy = a->strategies.item,
        .n_strategies = a->strategies.n,
        .discovered = a->discovery.on ? &a->discovery.core.at_hand : NULL,
        .hooks = &a->hooks.core,
        .host_hooks = ah_lua_gate(a->lua),
        .background = &a->background.core,
        .awaits = a->once || parent || r->tap,
        .metrics = &host->metrics,
        .session = a->session,
        .prompt = a->prompt.binding,
        .disclosure = a->prompt.binding ? &a->prompt.disclosure : NULL,
        .output = active ? active->prompt.output : a->prompt.output,
        .active = active ? &active->hooks.core : NULL,
        .hand_over = ah_lua_hand_over,
        .limits = a->limits,
        .deadline = ah_lua_agent_deadline(a, parent, around),
        .lasting_deadline = own_deadline(a),
        .wall = ah_host_wall,
        .random = ah_host_random,
        .back_off = ah_driver_back_off,
        .over = ah_host_over,
        .ud = host,
        .on = on_event,
        .setup = ah_lua_setup_due(a) ? set_up : NULL,
        .stop_setup = stop_setup,
        .keep = r->resources != LUA_NOREF ? keep : NULL,
        .names = &a->lua->names,
        .restage_entity = ah_lua_restage_entity,
        .find_tool = ah_lua_find_tool,
        .on_ud = r,
        .wants_content = wants_content,
    };
}

static void change_adapter(ah_lua_agent *a)
{
    leave_others(a);
    ah_wire_use(&a->wire, a->adapter, AH_BREAK_MODEL);
}

static void prepare_wire(ah_lua_agent *a)
{
    if (!a->wire.mem)
        ah_wire_init(&a->wire, &a->lua->mem, a->adapter, a->transcript);
    else if (a->wire.adapter != a->adapter)
        change_adapter(a);
    ah_adapter_unref(a->before);
    a->before = NULL;
}

/* A model that may take over must fit the budget before it is needed. */
static ah_status know_fallback(const ah_budget *b, const ah_adapter *f, bool limited, ah_err *err)
{
    char name[256];
    ah_status st;

    snprintf(name, sizeof name, "%s/%s", f->provider->data, f->model->data);
    st = ah_budget_knows(b, ah_slice_of(name), f, err);
    if (st == AH_OK && !limited)
        st = ah_budget_knows_length(b, ah_slice_of(name), f, err);
    return st;
}

/* Returns AH_OK if each budget that needs prices has one for every model that may be asked. */
static ah_status know_prices(const ah_lua_agent *a, const ah_budgets *s, ah_err *err)
{
    ah_slice settings = ah_text_slice(a->settings), model = ah_json_member(settings, "model");
    bool limited = ah_json_member(ah_json_member(settings, "options"), "max_tokens").p != NULL;
    ah_status st = AH_OK;

    for (size_t i = 0; i < s->n && st == AH_OK; i++) {
        st = ah_budget_knows(s->draw[i].budget, ah_json_inside(model), a->adapter, err);
        for (size_t k = 0; k < a->fallback.n && st == AH_OK; k++)
            st = know_fallback(s->draw[i].budget, a->fallback.item[k], limited, err);
    }
    return st;
}

/* Collects in *s the budgets that a run uses: its own, the accounts of the tasks that begin it, and
 * those of the run around it. */
static ah_status draw_on(const ah_lua_agent *a, ah_driver_run *parent, ah_budgets *s, ah_err *err)
{
    const ah_budgets *around = parent ? ah_run_spending(ah_driver_run_run(parent)) : NULL;
    ah_status st = ah_budgets_add(s, a->budget, err);

    if (!parent && st == AH_OK)
        st = ah_budgets_add(s, a->stream.recorder.account, err);
    for (const ah_task *t = a->lua->actor; t && st == AH_OK; t = t->parent)
        st = ah_budgets_add(s, t->account, err);
    for (size_t i = 0; around && i < around->n && st == AH_OK; i++)
        st = ah_budgets_add(s, around->draw[i].budget, err);
    return st == AH_OK ? know_prices(a, s, err) : st;
}

/* around: the overlay of the call in whose handler the run begins, or NULL. */
static ah_status begin(ah_lua_agent *a, run *r, ah_overlay *around, ah_err *err)
{
    ah_host *host = a->lua->host;
    ah_driver_run *parent = a->lua->running ? a->lua->running->job.of : NULL;
    bool setup = ah_lua_setup_due(a);
    ah_run_config cfg;
    ah_run *core;
    ah_status st;
    ah_err tripped = {.status = AH_OK};

    if (atomic_load(&host->stop))
        return ah_err_set(err, AH_CANCELLED, "the program is being ended: no run begins any more");
    a->lua->until = ah_lua_agent_deadline(a, parent, around);
    st = setup ? AH_OK : look_again(a, around, err);
    a->lua->until = 0;
    if (st != AH_OK)
        return st;
    prepare_wire(a);
    a->hooks.calls = 0;
    a->handoffs.n = 0;
    r->first = ah_lua_stream_resumes(a) ? a->stream.history.first : a->transcript->n;
    configure(a, r, parent, around, &cfg);
    ah_lua_stream_configure(a, &cfg);
    if ((st = draw_on(a, parent, &cfg.spending, err)) != AH_OK ||
        (around && (st = ah_overlay_anchor(around, &cfg.caller, err)) != AH_OK) ||
        (st = setup ? AH_OK : begin_turn(r, cfg.deadline, &tripped, err)) != AH_OK) {
        ah_anchor_unref(cfg.caller);
        ah_budgets_clear(&cfg.spending);
        return st;
    }
    st = ah_run_new(&cfg, ah_host_now(host), &core, err);
    ah_anchor_unref(cfg.caller);
    if (st != AH_OK)
        return st;
    st = ah_driver_run_new(host, core, parent, on_done, r, &r->driven, err);
    if (st == AH_OK && tripped.status == AH_GUARD) {
        tell_tripped(core, &tripped);
        ah_run_cancel(core, AH_GUARD, tripped.message);
    }
    if (st == AH_OK) {
        r->waiter.scope = r->driven;
        if ((r->recorded = cfg.recorder && a->stream.bound))
            ah_lua_inbox_watch(a);
        a->current = r;
        a->runs++;
        r->counted = true;
    }
    return st;
}

/* ctx: stack index of the run. */
static int finish(lua_State *L, int status, lua_KContext ctx)
{
    run *r = luaL_checkudata(L, (int)ctx, RUN);
    ah_run *core = ah_driver_run_run(r->driven);
    ah_run_result res;

    (void)status;
    ah_run_result_of(core, &res);
    ah_lua_push_reply(L, core, r->agent->transcript, r->first);
    free_driven(r);
    if (res.err.status != AH_OK)
        return push_failure(L, &res.err, lua_gettop(L));
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, AH_LAST_FAILURE);
    return 1;
}

/* True if the transcript has more than settings, system text and tools. */
static bool has_spoken(const ah_transcript *t)
{
    for (size_t i = t->n; i > 0; i--)
        if (t->entry[i - 1].kind == AH_ENTRY_USER || t->entry[i - 1].kind == AH_ENTRY_TOOL_RESULT ||
            t->entry[i - 1].kind == AH_ENTRY_ASSISTANT)
            return true;
    return false;
}

static void check_idle(lua_State *L, const ah_lua_agent *a)
{
    if (a->current || a->busy)
        ah_lua_raise(L, AH_USAGE,
                     "the agent is already running; agent:send(text) queues a message");
}

static void check_start(lua_State *L, const ah_lua_agent *a, const ah_lua_content *said, bool waits)
{
    if (!ah_lua_has_content(said) && !has_spoken(a->transcript))
        ah_lua_raise(L, AH_USAGE, "ah.run: there is nothing to say: give a text or messages");
    ah_lua_can_run(L, waits);
}

/* Pushes the table that the run's resources are opened from; nil: no resources. If a `setup` is
 * due, there is always a table, since it may bind resources. */
static void push_resources(lua_State *L, int at, const ah_lua_agent *a)
{
    if (lua_getiuservalue(L, at, AH_AGENT_RESOURCES) != LUA_TNIL || !ah_lua_setup_due(a))
        return;
    lua_pop(L, 1);
    lua_newtable(L);
}

/* Sets r->said to the entry of the user's content, if there is any. Within a call it has no keys:
 * those in the arguments of the model are for the handler alone. Raises when out of memory. */
static void keep_said(lua_State *L, run *r, const ah_lua_content *said)
{
    const ah_lua *h = r->agent->lua;

    if (ah_lua_has_content(said) &&
        !(r->said = ah_lua_content_entry(&h->mem, said, ah_host_wall(h->host))))
        ah_lua_raise_nomem(L);
    if (r->said && ah_lua_overlay(L))
        r->said->len = ah_secrets_redact_json(&h->host->secrets, r->said->data, r->said->len);
}

/* Goes on with the unfinished run: its question is recorded. Raises for another one. */
static void take_up(lua_State *L, const ah_lua_agent *a, ah_lua_content *said)
{
    ah_err err;

    if (ah_lua_overlay(L))
        ah_lua_raise(L, AH_USAGE, "a handler cannot go on with a conversation's unfinished run");
    if (ah_lua_stream_same(a, a->stream.history.first, said, a->once ? "ah.run" : "agent:run",
                           &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    *said = (ah_lua_content){0};
}

/* Takes what other processes have said to the conversation, which may end its unfinished run. */
static ah_status take_inbox(ah_lua_agent *a, ah_err *err)
{
    bool cancelled;
    ah_status st = ah_lua_inbox_take(a, &cancelled, err);

    if (st != AH_OK || !cancelled || !ah_lua_stream_resumes(a))
        return st;
    if ((st = ah_lua_stream_cancel(a, err)) == AH_OK)
        st = ah_err_set(err, AH_CANCELLED, "the run was cancelled through the store");
    return st;
}

ah_lua_run *ah_lua_start(lua_State *L, int at, const ah_tap *tap, ah_err *err)
{
    ah_lua_agent *a = check_open(L, at);
    bool apart =
        tap && ah_lua_of(L)->tool; /* begun by a tool of the program: it may outlive the call */
    ah_overlay *around = apart ? NULL : ah_lua_step_overlay(L, ah_lua_overlay(L));
    ah_lua_content said;
    ah_status st;
    run *r;

    if (ah_lua_read_content(L, at + 1, "ah.run", &said, err) != AH_OK)
        return NULL;
    check_idle(L, a);
    if (ah_lua_stream_state(a, err) != AH_OK || take_inbox(a, err) != AH_OK)
        return NULL;
    if (ah_lua_stream_resumes(a)) {
        take_up(L, a, &said);
    } else {
        ah_lua_deliver(L, at);
        ah_book_deliver(L, at);
        ah_lua_background_take(a);
    }
    check_start(L, a, &said, !tap);
    r = lua_newuserdatauv(L, sizeof *r, 1);
    *r = (run){.agent = a, .tap = tap, .resources = LUA_NOREF, .waiter.leave = abandon};
    luaL_setmetatable(L, RUN);
    lua_pushvalue(L, at);
    lua_setiuservalue(L, -2, 1);
    keep_said(L, r, &said);
    push_resources(L, at, a);
    r->resources = ah_lua_open_resources_of(L);
    ah_task_waiter_keep(L,
                        &r->waiter); /* until it is done, even if nothing waits for it any more */
    a->busy++;
    st = begin(a, r, around, err);
    a->busy--;
    if (st == AH_OK)
        return r;
    ah_task_waiter_done(&r->waiter);
    return NULL;
}

/* -- background calls ---------------------------------------------------------------------- */

/* Removes the runs that are over from the table on top. */
static void sweep_apart(lua_State *L)
{
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        const run *r = lua_touserdata(L, -1);

        if (r->driven)
            continue;
        lua_pushnil(L);
        lua_rawsetp(L, -4, r);
    }
}

/* Lists the run on top in the table of the agent at idx. */
static void list_apart(lua_State *L, int idx, run *r)
{
    ah_lua_background *b = &r->agent->background;

    if (lua_getiuservalue(L, idx, AH_AGENT_BACKGROUND) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, idx, AH_AGENT_BACKGROUND);
    }
    sweep_apart(L);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, r);
    lua_pop(L, 1);
    r->next = b->first;
    b->first = r;
}

/* -- agent run  makes the userdata */
static run *push_apart(lua_State *L, ah_lua_agent *a, ah_driver_run *outer, int64_t ticket)
{
    int agent = lua_gettop(L) + 2;
    run *r;

    ah_lua_push_run(L, outer);
    lua_getiuservalue(L, -1, 1);
    r = lua_newuserdatauv(L, sizeof *r, 1); /* -- outer agent run */
    *r = (run){.agent = a, .resources = LUA_NOREF, .ticket = ticket};
    luaL_setmetatable(L, RUN);
    lua_pushvalue(L, agent);
    lua_setiuservalue(L, -2, 1);
    push_resources(L, agent, a);
    r->resources = ah_lua_open_resources_of(L);
    list_apart(L, agent, r);
    return r;
}

/* The budgets of the run that has begun it. */
static ah_status share_budgets(const ah_run_config *from, ah_run_config *cfg, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < from->spending.n && st == AH_OK; i++)
        st = ah_budgets_add(&cfg->spending, from->spending.draw[i].budget, err);
    return st;
}

static ah_status begin_apart(run *r, const ah_call *call, ah_err *err)
{
    ah_host *host = r->agent->lua->host;
    const ah_run_config *of = ah_run_cfg(call->run);
    ah_driver_run *outer = ah_run_owner(call->run);
    ah_run_config cfg;
    ah_run *core;
    ah_status st;

    configure(r->agent, r, outer, NULL, &cfg);
    r->of = of->id;
    cfg.ticket = r->ticket;
    cfg.setup = NULL;
    cfg.caller = of->caller;
    cfg.deadline = of->awaits ? of->deadline : own_deadline(r->agent);
    if ((st = share_budgets(of, &cfg, err)) != AH_OK) {
        ah_budgets_clear(&cfg.spending);
        return st;
    }
    if ((st = ah_background_new(&cfg, call, ah_host_now(host), &core, err)) == AH_OK)
        st = ah_driver_run_new(host, core, of->awaits ? outer : NULL, on_done, r, &r->driven, err);
    if (st == AH_OK) /* the policies of the outer run are those of this one */
        ah_run_set_around(core, ah_run_around(call->run));
    return st;
}

void ah_lua_run_apart(lua_State *L, ah_lua_agent *a, const ah_call *call, int64_t ticket)
{
    const run *outer = ah_driver_run_ud(ah_run_owner(call->run), on_done);
    run *r = push_apart(L, a, ah_run_owner(call->run), ticket);
    ah_err err;

    r->tap = outer->tap;
    ah_task_waiter_keep(L, &r->waiter); /* until it has ended, even if nothing has the agent */
    if (begin_apart(r, call, &err) != AH_OK) {
        ah_lua_run_free_apart(r, true);
        ah_lua_raise_err(L, &err);
    }
}

/* The functions that close its resources come last: they may drive the host, and drop the run. */
void ah_lua_run_free_apart(run *r, bool late)
{
    ah_lua *h = r->agent->lua;
    int resources = r->resources, depth = h->host->depth;

    r->resources = LUA_NOREF;
    if (r->driven)
        free_driven(r);
    else
        ah_lua_background_forget(r);
    if (!r->waiter.done)
        ah_task_waiter_done(&r->waiter);
    if (late)
        h->host->depth = AH_MAX_DEPTH;
    ah_lua_close_resources(h, &resources);
    h->host->depth = depth;
}

/* Runs the agent at `at` with the content (or nil) at `at` + 1 and waits for the reply. */
static int run_agent(lua_State *L, int at)
{
    ah_err err;
    run *r;

    if (!(r = ah_lua_start(L, at, NULL, &err)))
        return push_failure(L, &err, 0);
    return ah_lua_await(L, &r->waiter, lua_gettop(L), finish);
}

int ah_lua_run_on(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushnil(L);
    return run_agent(L, 1);
}

/* -- for lua_api_agent.c ------------------------------------------------------------------- */

ah_task_waiter *ah_lua_run_waiter(ah_lua_run *r)
{
    return &r->waiter;
}

ah_driver_run *ah_lua_run_driven(const ah_lua_run *r)
{
    return r->driven;
}

size_t ah_lua_run_first(const ah_lua_run *r)
{
    return r->first;
}

void ah_lua_run_drop(ah_lua_run *r)
{
    if (r->agent->current == r) {
        r->agent->current = NULL;
        ah_lua_discovery_end(r->agent);
    }
    drop_driven(r);
    ah_task_waiter_done(&r->waiter);
}

/* Pushes the recorded reply, or nil and the recorded error. */
static int push_recorded(lua_State *L, const ah_lua_agent *a)
{
    ah_slice ended = ah_text_slice(a->stream.ended), code = ah_json_member(ended, "code");
    ah_err err;

    ah_lua_push_recorded(L, a->transcript, a->stream.ended_first, ended, ah_text_slice(a->name));
    if (ah_slice_is(ah_json_member(ended, "success"), "true"))
        return 1;
    ah_lua_recorded_error(a->lua, ended, ah_status_from_code(ah_json_inside(code)), &err);
    return push_failure(L, &err, lua_gettop(L));
}

/* (t, agent, text): the run of this id has ended in its store. Returns the number of results; 0: it
 * is tried again, with the text that is on top. Raises for another question. */
static int run_again(lua_State *L, const ah_lua_agent *a)
{
    ah_lua_content said;
    ah_err err;

    lua_pushvalue(L, 3);
    if (ah_lua_read_content(L, 4, "ah.run", &said, &err) != AH_OK)
        return push_failure(L, &err, 0);
    if (ah_lua_stream_same(a, a->stream.ended_first, &said, "ah.run", &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_settop(L, 3);
    if (ah_lua_stream_is_done(a))
        return push_recorded(L, a);
    if (has_spoken(a->transcript)) { /* the question is there */
        lua_settop(L, 2);
        lua_pushnil(L);
    }
    return 0;
}

/* ah.run { ... }: the reply, or nil and an error. */
static int ah_run_call(lua_State *L)
{
    const ah_lua_agent *a;
    int n = 0;

    lua_settop(L, 1);
    if (ah_lua_durable(L))
        return ah_lua_through_step(L, "run", ah_run_call);
    ah_lua_can_run(L, true); /* before anything begins */
    ah_lua_attach_toolsets(L);
    if (!ah_lua_new_agent(L, "ah.run", true)) /* -- t ah_lua_agent */
        return 2;
    a = lua_touserdata(L, 2);
    push_text(L); /* -- t agent text */
    if (a->stream.ended && !ah_lua_stream_resumes(a))
        n = run_again(L, a);
    return n ? n : run_agent(L, 2);
}

/* -- runs as steps ----------------------------------------------------------------------------- */

/* Appends the entries that a conversation of this process lacks. */
static ah_status take_entries(ah_transcript *t, const ah_transcript *from, ah_err *err)
{
    size_t mark = ah_transcript_mark(t, false);
    ah_status st = AH_OK;

    for (size_t i = 0; i < from->n && st == AH_OK; i++)
        st = ah_transcript_add(t, from->entry[i].kind, ah_text_ref(from->entry[i].json), err);
    if (st != AH_OK)
        ah_transcript_take_back(t, false, mark);
    return st;
}

static int transcript_box_gc(lua_State *L)
{
    ah_transcript **box = lua_touserdata(L, 1);

    ah_transcript_unref(*box);
    *box = NULL;
    return 0;
}

/* Pushes a box with the transcript, which a raise frees. */
static ah_transcript *push_entries(lua_State *L, ah_slice text)
{
    ah_transcript **box = lua_newuserdatauv(L, sizeof *box, 0);
    ah_err err;

    *box = NULL;
    if (luaL_newmetatable(L, "agenthost.entries")) {
        lua_pushcfunction(L, transcript_box_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    if (ah_transcript_read(&ah_lua_of(L)->mem, text, box, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    return *box;
}

/* Checks the JSON at idx, which came from a store. */
static ah_slice check_json(lua_State *L, int idx)
{
    ah_slice json;
    ah_err err;

    json.p = luaL_checklstring(L, idx, &json.n);
    if (ah_json_check_err(&ah_lua_of(L)->mem, json, "the reply", &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    return json;
}

/* ah._reply(parts, entries, first, agent): the reply of a run that is recorded as a step. The
 * agent's conversation gets its entries; agent nil: entries has all of the conversation. */
static int kept_reply(lua_State *L)
{
    ah_lua_agent *a = lua_isnoneornil(L, 4) ? NULL : check_open(L, 4);
    size_t first = (size_t)luaL_checkinteger(L, 3);
    ah_slice text, ended;
    ah_transcript *t;
    ah_err err;

    ended = check_json(L, 1);
    text.p = luaL_checklstring(L, 2, &text.n);
    t = push_entries(L, text);
    if (a) {
        check_idle(L, a);
        first = a->transcript->n;
        if (take_entries(a->transcript, t, &err) != AH_OK)
            return ah_lua_raise_err(L, &err);
        t = a->transcript;
    }
    ah_lua_push_recorded(L, t, first < t->n ? first : t->n, ended,
                         a ? ah_text_slice(a->name) : (ah_slice){NULL, 0});
    return 1;
}

/* -- methods ----------------------------------------------------------------------------------- */

/* Makes the params at idx the current ones. After a raise nothing has changed. */
static void set_params(lua_State *L, ah_lua_agent *a, int idx)
{
    ah_overlay *around = ah_lua_overlay(L);
    ah_binding *now = ah_prompt_fields_params(L, &a->prompt, idx);
    ah_binding *before = ah_binding_ref(a->prompt.binding);
    ah_err err;

    ah_prompt_fields_bind(&a->prompt, now);
    if (look_again(a, around, &err) == AH_OK) {
        ah_binding_unref(before);
    } else {
        ah_prompt_fields_bind(&a->prompt, before);
        ah_lua_raise_err(L, &err);
    }
}

static const ah_option run_with_rows[] = {
    {.name = "params",
     .kinds = AH_OPT_ANY,
     .is = "table",
     .type = "table<string, any>",
     .doc = "of the prompt, from this run on"},
    {.name = "asks",
     .kinds = AH_OPT_STRING,
     .words = "decline",
     .doc = "`decline`: an unfinished run that waits for responses goes on without them, and reads "
            "the text behind its turn; see [Asks that wait](asks.md#asks-that-wait)"},
    {0},
};
const ah_subject ah_subject_run_with = {.what = "agent:run",
                                        .type = "ah.RunWith",
                                        .doc = "fields of `agent:run` beside the text",
                                        .row = run_with_rows};

/* Reads the fields that agent:run takes beside the text. */
static void read_run_fields(lua_State *L, int idx, ah_lua_agent *a)
{
    luaL_checktype(L, idx, LUA_TTABLE);
    ah_options_read(L, idx, &ah_subject_run_with, NULL);
    if (lua_getfield(L, idx, "params") == LUA_TNIL)
        return;
    if (!a->prompt.binding && !ah_lua_setup_due(a))
        ah_lua_raise(L, AH_USAGE, "agent:run: field 'params' without a prompt");
    if (a->prompt.binding)
        set_params(L, a, lua_gettop(L));
    lua_setiuservalue(L, 1, AH_AGENT_PARAMS);
}

/* Declines the open asks of the unfinished run, and queues the content at 2 behind its turn. Leaves
 * nil at 2: the run goes on. */
static ah_status decline(lua_State *L, ah_lua_agent *a, ah_err *err)
{
    ah_transcript *t = a->transcript;
    ah_lua_content said;
    ah_text *entry;
    ah_status st = ah_lua_read_content(L, 2, "agent:run", &said, err);

    if (st != AH_OK || !ah_lua_has_content(&said))
        return st;
    if ((st = guard_said(a, &said, err)) != AH_OK || (st = ah_lua_inbox_decline(a, err)) != AH_OK)
        return st;
    entry = ah_lua_content_entry(&a->lua->mem, &said, ah_host_wall(a->lua->host));
    st = t->assistant ? ah_transcript_stage(t, AH_ENTRY_USER, entry, err)
                      : ah_transcript_add(t, AH_ENTRY_USER, entry, err);
    lua_settop(L, 1);
    lua_pushnil(L);
    return st;
}

/* True if the fields at idx decline the asks of an unfinished run. */
static bool declines(lua_State *L, int idx, const ah_lua_agent *a)
{
    bool yes = !lua_isnoneornil(L, idx) && lua_getfield(L, idx, "asks") != LUA_TNIL;

    return yes && ah_lua_stream_resumes(a);
}

/* agent:run(text or parts, { params, asks }): continues the agent's conversation. */
static int agent_run(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_err err;

    if (ah_lua_durable(L))
        return ah_lua_through_step(L, "run", agent_run);
    check_said(L, 2, "agent:run");
    check_idle(L, a);
    ah_lua_can_run(L, true);
    if (!lua_isnoneornil(L, 3))
        read_run_fields(L, 3, a);
    if (declines(L, 3, a) && (lua_settop(L, 2), decline(L, a, &err)) != AH_OK)
        return push_failure(L, &err, 0);
    lua_settop(L, 2);
    return run_agent(L, 1);
}

/* agent:send(text or parts): queues the message for the next commit of the run at work, or for the
 * next run. In a call it is sent when the call is committed. Returns true, or nil and an error. */
static int agent_send(lua_State *L)
{
    ah_lua_content said;
    ah_err err;

    ah_lua_check_agent(L);
    check_said(L, 2, "agent:send");
    if (lua_isnoneornil(L, 2) || (lua_isstring(L, 2) && !lua_rawlen(L, 2)))
        return ah_lua_raise(L, AH_USAGE, "agent:send: there is nothing to say: give a text");
    if (ah_lua_read_content(L, 2, "agent:send", &said, &err) != AH_OK)
        return ah_lua_fail(L, &err);
    if (guard_said(ah_lua_to_agent(L, 1), &said, &err) != AH_OK)
        return push_failure(L, &err, 0);
    ah_lua_send(L, 1, &said);
    lua_pushboolean(L, true);
    return 1;
}

/* agent:add_tools(tool | { tools }) */
static int agent_add_tools(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_changes *c = ah_lua_push_changes(L, &a->lua->mem);
    ah_text *by;

    ah_lua_add_tools(L, 2, "agent:add_tools", c, NULL);
    if (!(by = ah_text_new(&a->lua->mem, ah_slice_of("{\"script\":\"agent:add_tools\"}"))))
        return ah_lua_raise_nomem(L);
    for (size_t i = 0; i < c->n; i++)
        c->item[i].by = ah_text_ref(by);
    ah_text_unref(by);
    ah_lua_change(L, 1, c);
    return 0;
}

/* agent:remove_tools(name | { names }) */
static int agent_remove_tools(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_changes *c = ah_lua_push_changes(L, &a->lua->mem);

    ah_lua_remove_tools(L, 2, "agent:remove_tools", c);
    ah_lua_change(L, 1, c);
    return 0;
}

/* agent:cancel(): ends the run at work, if there is one, with `cancelled`; else an unfinished run
 * that waits in the store. Returns true, or nil and an error if that cannot be recorded. */
static int agent_cancel(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    ah_status st = AH_OK;
    ah_err err;

    if (a->current)
        ah_driver_run_cancel(a->current->driven, AH_CANCELLED, "cancelled by the script");
    else if (ah_lua_stream_resumes(a))
        st = ah_lua_stream_cancel(a, &err);
    if (st != AH_OK)
        return push_failure(L, &err, 0);
    lua_pushboolean(L, true);
    return 1;
}

/* agent:events { max, types }: a queue of the agent's events from now on. */
static int agent_events(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);

    lua_settop(L, 2);
    return ah_lua_push_events(L, 2, &a->observer.queues);
}

/* agent:transcript(): the conversation as JSON text. */
static int agent_transcript(lua_State *L)
{
    ah_lua_push_transcript(L, ah_lua_check_agent(L)->transcript);
    return 1;
}

/* agent:tools(): the list of the tools that are declared now. */
static int agent_tools(lua_State *L)
{
    ah_lua_push_tools(L, &ah_lua_check_agent(L)->registry);
    return 1;
}

static int agent_tostring(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT);

    if (a->closed) {
        lua_pushliteral(L, "agent (closed)");
        return 1;
    }
    lua_pushfstring(L, "agent %s/%s, %d tools, %d entries", a->adapter->provider->data,
                    a->adapter->model->data, (int)a->registry.live, (int)a->transcript->n);
    return 1;
}

void ah_lua_agent_methods(lua_State *L, const luaL_Reg *methods)
{
    luaL_getmetatable(L, AH_AGENT);
    lua_getfield(L, -1, "methods");
    luaL_setfuncs(L, methods, 0);
    lua_pop(L, 2);
}

/* agent.id, agent.unfinished, and the methods in upvalue 1. */
static int agent_index(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT);
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";

    lua_settop(L, 2);
    if (strcmp(key, "id") == 0)
        ah_lua_setup_push_id(L, a);
    else if (strcmp(key, "unfinished") == 0)
        ah_lua_stream_push_unfinished(L, a);
    else
        lua_gettable(L, lua_upvalueindex(1));
    return 1;
}

void ah_lua_open_agent(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", agent_gc}, {"__close", agent_close}, {"__tostring", agent_tostring}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"run", agent_run},
                                       {"send", agent_send},
                                       {"cancel", agent_cancel},
                                       {"close", agent_close},
                                       {"add_tools", agent_add_tools},
                                       {"remove_tools", agent_remove_tools},
                                       {"transcript", agent_transcript},
                                       {"tools", agent_tools},
                                       {"events", agent_events},
                                       {NULL, NULL}};
    static const luaL_Reg run_meta[] = {{"__gc", run_gc}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"run", ah_run_call},
                                         {"_reply", kept_reply},
                                         {"_reply_parts", ah_lua_reply_parts},
                                         {NULL, NULL}};

    ah_lua_open_reply(L);
    ah_lua_open_setup(L);
    luaL_newmetatable(L, AH_AGENT);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "agent");
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "methods");
    lua_pushcclosure(L, agent_index, 1);
    lua_setfield(L, -2, "__index");
    luaL_newmetatable(L, RUN);
    luaL_setfuncs(L, run_meta, 0);
    lua_pop(L, 2);
    luaL_setfuncs(L, functions, 0);
}
