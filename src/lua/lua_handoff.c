/* A handoff is staged as changes of its call: tools removed and added, system text, state and
 * settings. When they are made, the run takes the adapter and the policies of the active agent. */
#include "lua/lua_handoff.h"

#include "lua/lua_error.h"
#include "lua/lua_modules.h"
#include "lua/lua_now.h"
#include "lua/lua_schema.h"
#include "lua/lua_setup.h"
#include "lua/lua_value.h"

enum { MAX_TEXT = 64 << 20 };

/* Name under which handoffs keep their state. No strategy of a script can have it. */
static const char STATE[] = "agenthost/handoff";

/* Tools of strategies that stay with the conversation, or make no sense in another one. */
static const char *const bound[] = {"pick_tools", "search_tools", "call_tool", NULL};

void ah_lua_handoffs_clear(ah_lua_agent *a)
{
    ah_lua_handoffs *h = &a->handoffs;

    ah_text_set(&h->name, NULL);
    ah_text_set(&h->next_name, NULL);
    ah_text_set(&h->text, NULL);
    ah_text_set(&h->settings, NULL);
    ah_changes_clear(&h->tools);
    ah_adapter_unref(h->adapter);
    *h = (ah_lua_handoffs){.tools.mem = &a->lua->mem};
}

static ah_status add_all(ah_changes *to, const ah_changes *from, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < from->n && st == AH_OK; i++)
        st = ah_changes_add(to, from->item[i].tool, NULL, err);
    return st;
}

void ah_lua_handoffs_copy(lua_State *L, ah_lua_agent *b, const ah_lua_agent *a)
{
    ah_err err;

    if (a->handoffs.at == a->transcript->n + 1)
        ah_lua_raise(L, AH_USAGE,
                     "agent:fork: a handoff is not complete before the end of the turn: fork the "
                     "conversation before it, or from the event `tool_loop_iteration` on");
    if (!a->handoffs.active)
        return;
    if (add_all(&b->handoffs.tools, &a->handoffs.tools, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    b->handoffs.active = a->handoffs.active;
    b->handoffs.name = ah_text_ref(a->handoffs.name);
    b->handoffs.text = ah_text_ref(a->handoffs.text);
    b->handoffs.settings = ah_text_ref(a->handoffs.settings);
    b->handoffs.adapter = ah_adapter_ref(a->handoffs.adapter);
    lua_getiuservalue(L, 1, AH_AGENT_ACTIVE);
    lua_setiuservalue(L, -2, AH_AGENT_ACTIVE);
}

/* -- taking over ------------------------------------------------------------------------------ */

/* The wire may borrow the adapter of before until the next run. */
static void use_adapter(ah_lua_agent *a, ah_adapter *to)
{
    ah_adapter_ref(to);
    if (a->before)
        ah_adapter_unref(a->adapter);
    else
        a->before = a->adapter;
    a->adapter = to;
}

static void keep_active(const ah_lua_agent *a)
{
    lua_State *L = a->lua->caller;
    int top = lua_gettop(L);

    ah_lua_push_run(L, ah_lua_agent_at_work(a));
    lua_getiuservalue(L, -1, 1); /* -- run agent */
    lua_getiuservalue(L, -1, AH_AGENT_NEXT);
    lua_setiuservalue(L, -2, AH_AGENT_ACTIVE);
    lua_pushnil(L);
    lua_setiuservalue(L, -2, AH_AGENT_NEXT);
    lua_settop(L, top);
}

/* The agent's own parts are put back. */
static void take_back(ah_lua_agent *a)
{
    ah_lua_handoffs *h = &a->handoffs;

    if (h->adapter)
        use_adapter(a, h->adapter);
    if (h->settings)
        ah_text_set(&a->settings, ah_text_ref(h->settings));
    ah_adapter_unref(h->adapter);
    h->adapter = NULL;
    ah_text_set(&h->settings, NULL);
    ah_text_set(&h->text, NULL);
    ah_changes_clear(&h->tools);
}

static ah_tool *whole(ah_tool *t)
{
    return t->full ? t->full : t;
}

/* Puts the tool into the registry in place of one of the same specification. */
static void put_handler(ah_lua_agent *a, ah_tool *t)
{
    ah_tool *there = ah_registry_find(&a->registry, ah_text_slice(t->name));

    if (there && whole(there) != t &&
        ah_slice_eq(ah_text_slice(whole(there)->spec), ah_text_slice(t->spec)))
        (void)ah_registry_put(&a->registry, t, NULL); /* its place exists */
}

/* The tools that were declared as in the journal get the handlers of the next agent. */
static void put_handlers(ah_lua_agent *a)
{
    const ah_lua_handoffs *h = &a->handoffs;
    ah_tool *t;

    for (size_t at = 0; h->next && (t = ah_registry_next(&h->next->registry, &at));)
        put_handler(a, whole(t));
    for (size_t i = 0; !h->next && i < h->tools.n; i++)
        put_handler(a, h->tools.item[i].tool);
}

static void take_over(ah_lua_agent *a)
{
    ah_lua_handoffs *h = &a->handoffs;

    if (h->again)
        put_handlers(a);
    h->again = false;
    h->active = h->next;
    h->next = NULL;
    h->call = NULL;
    h->at = a->transcript->n + 1;
    ah_text_set(&h->name, h->next_name);
    h->next_name = NULL;
    if (h->active) {
        use_adapter(a, h->active->adapter);
        ah_text_set(&a->settings, ah_text_ref(h->active->settings));
    } else {
        take_back(a);
    }
    if (lua_checkstack(a->lua->caller, 6))
        keep_active(a);
}

void ah_lua_hand_over(void *ud, const ah_call *call, ah_handover *to)
{
    ah_lua_agent *a = ah_lua_agent_of_run(ud);
    ah_lua_handoffs *h = &a->handoffs;

    if (h->again || h->call == call)
        take_over(a);
    *to = (ah_handover){
        .adapter = a->adapter,
        .max_in_flight = a->limits.max_in_flight,
        .hooks = h->active ? &h->active->hooks.core : NULL,
        .output = h->active ? h->active->prompt.output : a->prompt.output,
        .agent = ah_text_slice(h->active ? h->name : a->name),
    };
}

/* -- parts of agents --------------------------------------------------------------------------- */

static bool is_bound(const ah_tool *t)
{
    size_t i = 0;

    while (bound[i] && !ah_slice_is(ah_text_slice(t->name), bound[i]))
        i++;
    return bound[i] != NULL;
}

/* Puts the tools of the registry into the list, in its order. */
static ah_status list_tools(const ah_registry *r, ah_changes *out, ah_err *err)
{
    ah_status st = AH_OK;
    ah_tool *t;

    for (size_t at = 0; st == AH_OK && (t = ah_registry_next(r, &at));)
        if (!is_bound(t))
            st = ah_changes_add(out, whole(t), NULL, err);
    return st;
}

/* Appends the system text in force. */
static bool put_system(const ah_transcript *t, ah_buf *out)
{
    ah_slice text = ah_json_member(ah_transcript_last(t, AH_ENTRY_PROMPT), "text");

    if (text.p)
        ah_json_string(text, out);
    return ah_buf_ok(out);
}

static ah_text *text_at(lua_State *L, int idx)
{
    ah_slice s;
    ah_text *t;

    s.p = luaL_checklstring(L, idx, &s.n);
    if (!(t = ah_text_new(&ah_lua_of(L)->mem, s)))
        ah_lua_raise_nomem(L);
    return t;
}

/* ah._definition(agent): the fields of its definition, or nil. */
static int definition(lua_State *L)
{
    luaL_checkudata(L, 1, AH_AGENT);
    lua_getiuservalue(L, 1, AH_AGENT_DEFINITION);
    return 1;
}

/* Pushes the schema of its answers, or nil. */
static void push_output(lua_State *L, const ah_lua_agent *a)
{
    if (a->prompt.output)
        ah_lua_push_schema(L, ah_schema_ref(a->prompt.output));
    else
        lua_pushnil(L);
}

/* -- loaded conversations --------------------------------------------------------------------- */

/* Returns the state of the last handoff that is committed, an object; .p NULL: none. */
static ah_slice state_of(const ah_lua_agent *a)
{
    ah_strategy_cursor k = {0};

    return ah_strategy_committed(&k, a->transcript, STATE);
}

/* Returns the state of a handoff among the changes of a call's record; .p NULL: none. */
static ah_slice state_in(const ah_lua_agent *a, ah_slice staged)
{
    ah_err ignored;
    ah_json_reader r;
    ah_json_token t;

    if (ah_json_check_err(&a->lua->mem, staged, "what a call staged", &ignored) != AH_OK)
        return (ah_slice){NULL, 0}; /* the call fails when it is restaged */
    r = ah_json_read(ah_json_member(staged, "changes"));
    if (ah_json_next(&r).kind != AH_JSON_ARRAY)
        return (ah_slice){NULL, 0};
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice entry = ah_json_member(ah_json_skip(&r, t), "entry");

        if (ah_json_string_is(ah_json_member(entry, "name"), STATE))
            return ah_json_member(entry, "state");
    }
    return (ah_slice){NULL, 0};
}

/* Returns the state of a handoff of the pending turn, whose call an earlier process has settled, or
 * finished; .p NULL: none. */
static ah_slice next_state(const ah_lua_agent *a)
{
    const ah_run_history *h = &a->stream.history;
    const ah_transcript *t = a->transcript;
    ah_slice state = {NULL, 0};

    if (!ah_lua_stream_resumes(a))
        return state;
    state = ah_strategy_staged(t, STATE);
    for (size_t i = 0; i < h->n && i < t->n_slots && !state.p; i++)
        if (h->call[i].staged && !t->slot[i].result)
            state = state_in(a, ah_text_slice(h->call[i].staged));
    if (ah_json_kind_of(ah_json_member(state, "path")) != AH_JSON_ARRAY)
        state.p = NULL;
    return state;
}

bool ah_lua_is_handed_over(const ah_lua_agent *a)
{
    ah_slice path = ah_json_member(state_of(a), "path");

    return ah_json_kind_of(path) == AH_JSON_ARRAY && !ah_slice_is(path, "[]");
}

void ah_lua_handoffs_keep(lua_State *L, ah_lua_agent *a, ah_changes *tools)
{
    ah_err err;

    if (add_all(&a->handoffs.tools, tools, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_changes_clear(tools);
}

/* Pushes the state, or nil. */
static void push_state(lua_State *L, ah_slice state)
{
    if (state.p)
        ah_lua_push_json(L, state);
    else
        lua_pushnil(L);
}

int ah_lua_handoffs_resume(lua_State *L, ah_lua_agent *a)
{
    int agent = lua_gettop(L);
    ah_slice state = ah_lua_is_handed_over(a) ? state_of(a) : (ah_slice){NULL, 0};
    ah_slice next = next_state(a);
    ah_err err;

    if (!state.p && !next.p)
        return 1;
    luaL_checkstack(L, 8, "ah.load");
    if (ah_lua_module(L, "agenthost.agents.handoff", &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_getfield(L, -1, "resume");
    lua_pushvalue(L, agent);
    lua_pushvalue(L, 1);
    lua_getiuservalue(L, agent, AH_AGENT_SESSION);
    push_output(L, a);
    push_state(L, state);
    push_state(L, next);
    lua_call(L, 6, 2);
    return lua_isnil(L, -2) ? 2 : (lua_pop(L, 1), 1);
}

/* The text of the script's last prompt, as its own. */
static void keep_own_text(lua_State *L, ah_lua_agent *a)
{
    size_t at = ah_disclosure_text_at(a->transcript);
    ah_buf *b = ah_lua_push_buf(L, MAX_TEXT);

    if (at)
        ah_json_string(ah_json_member(ah_text_slice(a->transcript->entry[at - 1].json), "text"), b);
    ah_text_set(&a->handoffs.text, NULL);
    if (!ah_buf_ok(b) || !(a->handoffs.text = ah_text_new(&a->lua->mem, ah_buf_slice(b))))
        ah_lua_raise_nomem(L);
    lua_pop(L, 1);
}

/* Sets the system text of the active agent unless it is in force. */
static void say_text(lua_State *L, ah_lua_agent *a, const ah_lua_agent *to)
{
    ah_buf *now = ah_lua_push_buf(L, MAX_TEXT), *text = ah_lua_push_buf(L, MAX_TEXT);
    ah_err err;

    if (!put_system(a->transcript, now) || !put_system(to->transcript, text))
        ah_lua_raise_nomem(L);
    if (!ah_slice_eq(ah_buf_slice(now), ah_buf_slice(text)) &&
        ah_transcript_add(a->transcript, AH_ENTRY_PROMPT,
                          ah_entry_prompt(&a->lua->mem, ah_buf_slice(text),
                                          ah_slice_of("{\"script\":\"ah.load\"}"),
                                          ah_host_wall(a->lua->host)),
                          &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_pop(L, 2);
}

/* ah._resume(agent, active, name): the active agent of a loaded conversation. */
static int resume(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT), *to = luaL_checkudata(L, 2, AH_AGENT);
    ah_changes *tools = ah_lua_push_changes(L, &a->lua->mem);
    ah_lua_handoffs *h = &a->handoffs;
    ah_err err;

    keep_own_text(L, a);
    ah_text_set(&h->name, text_at(L, 3));
    h->adapter = ah_adapter_ref(a->adapter);
    ah_text_set(&h->settings, ah_text_ref(a->settings));
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, 1, AH_AGENT_ACTIVE);
    h->active = to;
    use_adapter(a, to->adapter);
    ah_text_set(&a->settings, ah_text_ref(to->settings));
    if (ah_lua_say_settings(a, &err) != AH_OK || list_tools(&to->registry, tools, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_lua_declare(L, a, AH_CONFLICT_SKIP, tools);
    say_text(L, a, to);
    return 0;
}

/* -- staging ---------------------------------------------------------------------------------- */

static bool lists(const ah_changes *c, const ah_tool *t)
{
    size_t i = 0;

    while (i < c->n && c->item[i].tool != t)
        i++;
    return i < c->n;
}

/* Removes the tools that the list lacks, and adds those that the registry lacks. */
static ah_status exchange_tools(const ah_registry *r, const ah_changes *tools, ah_text *by,
                                ah_changes *out, ah_err *err)
{
    ah_status st = AH_OK;
    ah_tool *t;

    for (size_t at = 0; st == AH_OK && (t = ah_registry_next(r, &at));) {
        if (lists(tools, whole(t)) || ah_slice_is(ah_text_slice(t->name), bound[0]))
            continue;
        if ((st = ah_changes_remove(out, ah_text_slice(t->name), err)) == AH_OK)
            out->item[out->n - 1].ours = true;
    }
    for (size_t i = 0; i < tools->n && st == AH_OK; i++) {
        ah_tool *there = ah_registry_find(r, ah_text_slice(tools->item[i].tool->name));

        if (!there || whole(there) != tools->item[i].tool)
            st = ah_changes_replace(out, tools->item[i].tool, by, err);
    }
    return st;
}

/* A handoff to `to` (NULL: the conversation's own agent). Lists and buffers are on the stack. */
typedef struct staging {
    ah_lua_agent *agent, *to;
    ah_changes *tools, *out;
    ah_buf *text, *now;
    ah_text *by;
} staging;

static ah_status exchange_text(const staging *s, ah_slice text, ah_err *err)
{
    if (!put_system(s->agent->transcript, s->now))
        return ah_err_nomem(err);
    return ah_slice_eq(ah_buf_slice(s->now), text) ? AH_OK
                                                   : ah_changes_prompt(s->out, text, s->by, err);
}

/* Keeps the parts of the conversation's own agent. */
static ah_status leave_home(const staging *s, ah_err *err)
{
    ah_lua_agent *a = s->agent;
    ah_lua_handoffs *h = &a->handoffs;
    ah_text *text;

    ah_changes_clear(&h->tools);
    if (list_tools(&a->registry, &h->tools, err) != AH_OK)
        return err->status;
    if (!put_system(a->transcript, s->text) ||
        !(text = ah_text_new(&a->lua->mem, ah_buf_slice(s->text))))
        return ah_err_nomem(err);
    ah_buf_reset(s->text, 0);
    ah_text_set(&h->text, text);
    ah_text_set(&h->settings, ah_text_ref(a->settings));
    ah_adapter_ref(a->adapter);
    ah_adapter_unref(h->adapter);
    h->adapter = a->adapter;
    return AH_OK;
}

static ah_status stage(const staging *s, ah_err *err)
{
    const ah_lua_handoffs *h = &s->agent->handoffs;
    const ah_lua_agent *to = s->to;
    ah_status st = h->active ? AH_OK : leave_home(s, err);

    if (st == AH_OK)
        st = to ? list_tools(&to->registry, s->tools, err) : add_all(s->tools, &h->tools, err);
    if (st == AH_OK && to && !put_system(to->transcript, s->text))
        st = ah_err_nomem(err);
    if (st == AH_OK)
        st = exchange_tools(&s->agent->registry, s->tools, s->by, s->out, err);
    if (st == AH_OK)
        st = exchange_text(s, to ? ah_buf_slice(s->text) : ah_text_slice(h->text), err);
    return st == AH_OK
               ? ah_changes_settings(s->out, ah_text_slice(to ? to->settings : h->settings), err)
               : st;
}

/* ah._resume_next(agent, active or nil, name): the agent to which the pending turn of a
 * conversation hands it over. */
static int resume_next(lua_State *L)
{
    ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT);
    ah_lua_agent *to = lua_isnil(L, 2) ? NULL : luaL_checkudata(L, 2, AH_AGENT);
    staging s = {.agent = a, .to = to, .text = ah_lua_push_buf(L, MAX_TEXT)};
    ah_lua_handoffs *h = &a->handoffs;
    ah_err err;

    if (!h->active && leave_home(&s, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_text_set(&h->next_name, text_at(L, 3));
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, 1, AH_AGENT_NEXT);
    h->next = to;
    h->again = true;
    return 0;
}

/* Returns why the agent cannot take over, or NULL. */
static const char *refusal(const ah_lua_agent *a, const ah_lua_agent *to)
{
    if (a->handoffs.n >= AH_MAX_HANDOFFS)
        return "this run has had its most handoffs (10): answer now, without another one";
    if (to && ah_registry_find(&to->registry, ah_slice_of(AH_READ_SECTION)))
        return "an agent with summarised sections cannot take over a conversation: use "
               "agent:as_tool";
    return NULL;
}

/* Returns the agent of the call's conversation and pushes its object. Raises if the call is not one
 * of the run's model. */
static ah_lua_agent *push_conversation(lua_State *L, const ah_call *call)
{
    const ah_lua *h = ah_lua_of(L);
    ah_driver_run *d = h->running ? h->running->job.of : NULL;
    ah_lua_agent *a = d ? ah_lua_agent_of(d) : NULL;

    if (!a || call->parent_call || ah_driver_run_run(d) != call->run)
        ah_lua_raise(L, AH_USAGE,
                     "ah.handoff: only a model can hand a conversation over, not a program that "
                     "calls the tool");
    ah_lua_push_run(L, d);
    lua_getiuservalue(L, -1, 1);
    lua_remove(L, -2);
    return a;
}

/* ah._conversation(ctx): the agent of the conversation, the agent that is active in it, the schema
 * of its answers or nil, and its id. */
static int conversation(lua_State *L)
{
    ah_lua_agent *a = push_conversation(L, ah_lua_check_call(L, 1));

    if (a->handoffs.active)
        lua_getiuservalue(L, -1, AH_AGENT_ACTIVE);
    else
        lua_pushvalue(L, -1);
    push_output(L, a);
    ah_lua_setup_push_id(L, a);
    return 4;
}

/* ah._conversation_id(agent) */
static int conversation_id(lua_State *L)
{
    ah_lua_setup_push_id(L, luaL_checkudata(L, 1, AH_AGENT));
    return 1;
}

/* ah._like(agent, other): gives the agent the definition of the other one, and returns it. */
static int like(lua_State *L)
{
    luaL_checkudata(L, 1, AH_AGENT);
    luaL_checkudata(L, 2, AH_AGENT);
    lua_getiuservalue(L, 2, AH_AGENT_DEFINITION);
    lua_setiuservalue(L, 1, AH_AGENT_DEFINITION);
    lua_settop(L, 1);
    return 1;
}

/* ah._same(agent, agent): true if both were opened from one definition. */
static int same(lua_State *L)
{
    luaL_checkudata(L, 1, AH_AGENT);
    luaL_checkudata(L, 2, AH_AGENT);
    lua_getiuservalue(L, 1, AH_AGENT_DEFINITION);
    lua_getiuservalue(L, 2, AH_AGENT_DEFINITION);
    lua_pushboolean(L, lua_rawequal(L, 1, 2) || (lua_istable(L, -1) && lua_rawequal(L, -1, -2)));
    return 1;
}

/* ah._agent_name(agent): its field `name`, or nil. */
static int agent_name(lua_State *L)
{
    const ah_lua_agent *a = luaL_checkudata(L, 1, AH_AGENT);

    lua_pushstring(L, a->name ? a->name->data : NULL);
    return 1;
}

/* ah._hand_over(ctx, agent or nil, name, state, by): stages the handoff of the call. nil: to the
 * conversation's own agent. Returns true, or nil and an error. */
static int hand_over(lua_State *L)
{
    ah_call *call = ah_lua_check_call(L, 1);
    ah_lua_agent *to = lua_isnil(L, 2) ? NULL : luaL_checkudata(L, 2, AH_AGENT);
    ah_lua_agent *a = push_conversation(L, call);
    const char *why = refusal(a, to), *state = luaL_checkstring(L, 4);
    int agent = lua_gettop(L);
    staging s = {.agent = a, .to = to, .out = &call->changes};
    ah_status st;
    ah_err err;

    if (why) {
        ah_err_set(&err, AH_USAGE, "%s", why);
        return ah_lua_fail(L, &err);
    }
    s.tools = ah_lua_push_changes(L, &a->lua->mem);
    s.text = ah_lua_push_buf(L, MAX_TEXT);
    s.now = ah_lua_push_buf(L, MAX_TEXT);
    ah_text_set(&a->handoffs.next_name, text_at(L, 3));
    s.by = text_at(L, 5);
    st = stage(&s, &err);
    ah_text_unref(s.by);
    if (st == AH_OK)
        st = ah_changes_state(&call->changes, STATE, ah_slice_of(state), &err);
    if (st != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, agent, AH_AGENT_NEXT);
    a->handoffs.next = to;
    a->handoffs.call = call;
    a->handoffs.again = false;
    a->handoffs.n++;
    lua_pushboolean(L, true);
    return 1;
}

void ah_lua_open_handoff(lua_State *L)
{
    static const luaL_Reg functions[] = {{"_conversation", conversation},
                                         {"_conversation_id", conversation_id},
                                         {"_like", like},
                                         {"_same", same},
                                         {"_definition", definition},
                                         {"_agent_name", agent_name},
                                         {"_hand_over", hand_over},
                                         {"_resume", resume},
                                         {"_resume_next", resume_next},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
