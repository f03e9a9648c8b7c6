/* Policies and feedback are called and never wait; checks are tasks. Approvals are in
 * lua_approve.c. */
#include "lua/lua_hooks.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_lost.h"
#include "lua/lua_policy.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

bool ah_lua_put_reason(lua_State *L, int idx, ah_buf *why)
{
    ah_slice s;

    if (lua_isnoneornil(L, idx))
        return false;
    s.p = luaL_tolstring(L, idx, &s.n); /* stays on L */
    if (!ah_utf8_valid(s)) {
        ah_buf *text = ah_lua_push_buf(L, 3 * s.n); /* U+FFFD has three bytes */

        ah_utf8_repair(s, text);
        if (!ah_buf_ok(text))
            ah_lua_raise_nomem(L);
        s = ah_buf_slice(text);
    }
    ah_buf_put_most(why, s, AH_MAX_REASON);
    return s.n > 0;
}

/* -- completion checks ------------------------------------------------------------------------ */

static void end_checking(ah_task *t, ah_slice message)
{
    ah_lua_hooks *s = t->ud;
    ah_driver_run *of = t->job.of;

    s->checking = NULL;
    ah_run_checked(ah_driver_run_run(of), message);
    ah_driver_run_wake(of);
}

static void checked(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;
    ah_slice message = {NULL, 0};

    if (nresults > 0 && lua_type(L, -nresults) == LUA_TSTRING)
        message.p = lua_tolstring(L, -nresults, &message.n);
    if (message.p && !ah_utf8_valid(message)) {
        ah_buf *text = ah_lua_push_buf(L, 3 * message.n); /* U+FFFD has three bytes */

        ah_utf8_repair(message, text);
        if (!ah_buf_ok(text))
            ah_lua_raise_nomem(L);
        message = ah_buf_slice(text);
    }
    end_checking(t, message);
}

static void refuse_answer(const ah_lua_hooks *s, ah_run *run, const ah_err *why)
{
    ah_err err;

    ah_err_set(&err, AH_INTERNAL, "a check of the answer (%s) failed: %s", s->check, why->message);
    if (ah_run_check_failed(run, &err))
        ah_run_warn(run, ah_slice_of(err.message));
}

/* Refuses an answer that cannot be checked. */
static void check_failed(ah_task *t, const ah_err *err)
{
    ah_lua_hooks *s = t->ud;
    ah_driver_run *of = t->job.of;

    s->checking = NULL;
    refuse_answer(s, ah_driver_run_run(of), err);
    ah_driver_run_wake(of);
}

/* In the task: (checks, what, hooks) -- the first message that a check returns */
static int check_next(lua_State *L, int status, lua_KContext at)
{
    (void)status;
    for (lua_Integer i = (lua_Integer)at;; i++) {
        if (i > 0 && lua_type(L, 4) == LUA_TSTRING)
            return 1;
        lua_settop(L, 3);
        if (lua_geti(L, 1, i + 1) == LUA_TNIL)
            return 0;
        ah_lua_defined(L, -1, ((ah_lua_hooks *)lua_touserdata(L, 3))->check, AH_PLACE);
        lua_pushvalue(L, 2);
        lua_callk(L, 1, 1, (lua_KContext)(i + 1), check_next);
    }
}

static int run_checks(lua_State *L)
{
    return check_next(L, LUA_OK, 0);
}

typedef struct checking {
    ah_lua_hooks *hooks;
    ah_run *run;
} checking;

/* { text, value, reply, run, iteration } */
static void push_checked(lua_State *L, const ah_lua *h, const ah_run *run)
{
    ah_run_result r;

    ah_run_result_of(run, &r);
    lua_createtable(L, 0, 5);
    lua_pushlstring(L, r.text.p ? r.text.p : "", r.text.n);
    lua_setfield(L, -2, "text");
    if (r.value.p)
        ah_lua_push_json(L, r.value);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, "value");
    h->runs->push_reply(L, ah_run_owner(run));
    lua_setfield(L, -2, "reply");
    lua_pushinteger(L, ah_run_cfg(run)->id);
    lua_setfield(L, -2, "run");
    lua_pushinteger(L, ah_run_iterations(run));
    lua_setfield(L, -2, "iteration");
}

static int make_checking(lua_State *L)
{
    const checking *c = lua_touserdata(L, 1);
    ah_task *t;

    lua_pushcfunction(L, run_checks);
    lua_rawgeti(L, LUA_REGISTRYINDEX, c->hooks->checks);
    push_checked(L, c->hooks->lua, c->run);
    lua_pushlightuserdata(L, c->hooks);
    t = ah_task_new(c->hooks->lua, L, 3, ah_run_owner(c->run));
    t->settled = checked;
    t->failed = check_failed;
    t->ud = c->hooks;
    c->hooks->checking = t;
    return 0;
}

static void check(void *ud, ah_run *run)
{
    ah_lua_hooks *s = ud;
    checking c = {s, run};
    lua_State *L = s->lua->caller;
    ah_err err;

    lua_pushcfunction(L, make_checking);
    lua_pushlightuserdata(L, &c);
    if (ah_lua_call(s->lua, L, 1, 0, &err) == AH_OK ||
        s->checking) { /* the task exists, even if making it took too long */
        ah_task_begin(s->checking);
        return;
    }
    refuse_answer(s, run, &err);
}

static void stop_checking(void *ud, ah_run *run)
{
    ah_lua_hooks *s = ud;
    ah_task *t = s->checking;

    (void)run;
    s->checking = NULL;
    if (t)
        ah_task_stop(t);
}

/* -- guards ---------------------------------------------------------------------------------- */

static const char *const GUARDED[] = {"input", "output"};

typedef struct guarding {
    const ah_lua_hooks *hooks;
    int which; /* index in GUARDED */
    ah_slice text, value;
    bool tripped;
    char guard[AH_PLACE]; /* position of the current guard */
    char why[AH_MAX_MESSAGE];
} guarding;

/* Reads the two results on top: nil or true; a text with the reason; or false and the reason. */
static void read_guard(lua_State *L, guarding *g)
{
    int first = lua_gettop(L) - 1, why = lua_isboolean(L, first) ? first + 1 : first;

    if (lua_isnil(L, first) || (lua_isboolean(L, first) && lua_toboolean(L, first)))
        return;
    if (lua_type(L, first) != LUA_TSTRING && !lua_isboolean(L, first))
        ah_lua_raise(L, AH_USAGE, "it returned a %s; it returns nil or true, or why not (a text)",
                     luaL_typename(L, first));
    g->tripped = true;
    ah_print(g->why, sizeof g->why, "%s",
             lua_isnil(L, why) ? "it gave no reason" : luaL_tolstring(L, why, NULL));
}

/* (guarding): the first guard that refuses decides. */
static int run_guards(lua_State *L)
{
    guarding *g = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, g->hooks->guards[g->which]);
    for (lua_Integer i = 1; !g->tripped && lua_rawgeti(L, 2, i) == LUA_TFUNCTION; i++) {
        ah_lua_defined(L, -1, g->guard, sizeof g->guard);
        lua_pushlstring(L, g->text.p ? g->text.p : "", g->text.n);
        if (g->value.p)
            ah_lua_push_json(L, g->value);
        else
            lua_pushnil(L);
        lua_call(L, 2, 2);
        read_guard(L, g);
        lua_settop(L, 2);
    }
    return 0;
}

/* Returns AH_OK, or AH_GUARD if a guard refuses or fails. */
static ah_status ask_guards(ah_lua_hooks *s, guarding *g, ah_run *run, ah_err *err)
{
    lua_State *L = s->lua->caller;
    ah_status st = AH_NOMEM;
    ah_err why;

    g->hooks = s;
    if (lua_checkstack(L, 4)) {
        lua_pushcfunction(L, run_guards);
        lua_pushlightuserdata(L, g);
        st = ah_lua_call_as(s->lua, AH_CALLEE_GUARD, L, 1, 0, &why);
    } else {
        ah_err_nomem(&why);
    }
    if (st == AH_OK && !g->tripped)
        return AH_OK;
    if (st == AH_OK)
        return ah_err_set(err, AH_GUARD, "a guard of the %s (%s) tripped: %s", GUARDED[g->which],
                          g->guard, g->why);
    ah_err_set(err, AH_GUARD, "a guard of the %s (%s) failed: %s", GUARDED[g->which], g->guard,
               why.message);
    if (run)
        ah_run_warn(run, ah_slice_of(err->message));
    return AH_GUARD;
}

static ah_status guard(void *ud, ah_run *run, ah_slice text, ah_slice value, ah_err *err)
{
    guarding g = {.which = 1, .text = text, .value = value};

    return ask_guards(ud, &g, run, err);
}

ah_status ah_lua_guard_input(ah_lua_hooks *s, ah_slice text, ah_err *err)
{
    guarding g = {.text = text};

    return s->guards[0] == LUA_NOREF ? AH_OK : ask_guards(s, &g, NULL, err);
}

/* -- what: replaces a function, or a list of functions, by a list of our own */
static void keep_guards(lua_State *L, const char *field)
{
    lua_Integer n;

    if (lua_isfunction(L, -1)) {
        lua_createtable(L, 1, 0);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 1);
        return;
    }
    n = luaL_len(L, -1);
    lua_newtable(L);
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_geti(L, -2, i) != LUA_TFUNCTION)
            ah_lua_raise(L, AH_USAGE, "ah.run: guards: %s[%d] must be a function, found a %s",
                         field, (int)i, luaL_typename(L, -1));
        lua_rawseti(L, -2, i);
    }
    lua_remove(L, -2);
}

static const ah_option guards_rows[] = {
    {.name = "input",
     .kinds = AH_OPT_LIST | AH_OPT_FUNCTION,
     .is = "function or list of functions",
     .type = "ah.Guard|ah.Guard[]",
     .doc = "they look at the user's text before the model sees it"},
    {.name = "output",
     .kinds = AH_OPT_LIST | AH_OPT_FUNCTION,
     .is = "function or list of functions",
     .type = "ah.Guard|ah.Guard[]",
     .doc = "they look at the answer before the run returns it"},
    {0},
};
const ah_subject ah_subject_guards = {.what = "ah.run: guards",
                                      .type = "ah.Guards",
                                      .doc = "functions that look at texts and may end the run",
                                      .row = guards_rows};

static void read_guards(lua_State *L, int idx, ah_lua_hooks *s)
{
    if (lua_getfield(L, idx, "guards") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    ah_options_read(L, -1, &ah_subject_guards, NULL);
    for (int i = 0; i < 2; i++) {
        if (lua_getfield(L, -1, GUARDED[i]) == LUA_TNIL) {
            lua_pop(L, 1);
            continue;
        }
        keep_guards(L, GUARDED[i]);
        s->guards[i] = ah_lua_ref(L);
    }
    lua_pop(L, 1);
}

/* -- feedback ---------------------------------------------------------------------------------- */

typedef struct fed {
    ah_lua_hooks *hooks;
    ah_run *run;
    ah_changes *notes;
} fed;

/* -- ... provider    Returns true if it is due, and then records this moment in its table. */
static bool is_due(lua_State *L, double calls, double now)
{
    double every = 0, seconds = 0, last_calls, last_time;
    bool due;

    lua_getfield(L, -1, "every");
    lua_getfield(L, -2, "seconds");
    lua_getfield(L, -3, "last_calls");
    lua_getfield(L, -4, "last_time");
    every = lua_tonumber(L, -4);
    seconds = lua_tonumber(L, -3);
    last_calls = lua_tonumber(L, -2);
    last_time = lua_tonumber(L, -1);
    lua_pop(L, 4);
    due = (every > 0 && calls - last_calls >= every) || (seconds > 0 && now - last_time >= seconds);
    if (!due)
        return false;
    lua_pushnumber(L, calls);
    lua_setfield(L, -2, "last_calls");
    lua_pushnumber(L, now);
    lua_setfield(L, -2, "last_time");
    return true;
}

static void take_note(lua_State *L, const fed *f)
{
    ah_slice text;
    ah_err err;

    text.p = lua_tolstring(L, -1, &text.n);
    if (!ah_utf8_valid(text))
        ah_lua_raise(L, AH_USAGE, "feedback: the text is not UTF-8");
    if (ah_changes_note(f->notes, text, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* (fed) */
static int ask_feedback(lua_State *L)
{
    const fed *f = lua_touserdata(L, 1);
    double now = (double)ah_host_now(f->hooks->lua->host) / 1000;

    lua_rawgeti(L, LUA_REGISTRYINDEX, f->hooks->feedback);
    for (lua_Integer i = 1, n = luaL_len(L, 2); i <= n; i++) {
        lua_geti(L, 2, i);
        if (!is_due(L, (double)f->hooks->calls, now)) {
            lua_settop(L, 2);
            continue;
        }
        lua_getfield(L, 3, "text");
        lua_createtable(L, 0, 3);
        lua_pushinteger(L, (lua_Integer)f->hooks->calls);
        lua_setfield(L, -2, "calls");
        lua_pushinteger(L, ah_run_iterations(f->run));
        lua_setfield(L, -2, "iteration");
        lua_pushinteger(L, ah_run_cfg(f->run)->id);
        lua_setfield(L, -2, "run");
        lua_call(L, 1, 1);
        if (lua_type(L, -1) == LUA_TSTRING)
            take_note(L, f);
        lua_settop(L, 2);
    }
    return 0;
}

static ah_status feedback(void *ud, ah_run *run, size_t calls, ah_changes *notes, ah_err *err)
{
    ah_lua_hooks *s = ud;
    fed f = {s, run, notes};
    lua_State *L = s->lua->caller;

    s->calls += calls;
    if (!lua_checkstack(L, 4))
        return ah_err_nomem(err);
    lua_pushcfunction(L, ask_feedback);
    lua_pushlightuserdata(L, &f);
    return ah_lua_call_as(s->lua, AH_CALLEE_FEEDBACK, L, 1, 0, err);
}

/* -- reading the fields ------------------------------------------------------------------------ */

void ah_lua_hooks_init(ah_lua_hooks *s, ah_lua *h)
{
    *s = (ah_lua_hooks){.lua = h,
                        .core.ud = s,
                        .policies = LUA_NOREF,
                        .guards = {LUA_NOREF, LUA_NOREF},
                        .approve = LUA_NOREF,
                        .feedback = LUA_NOREF,
                        .checks = LUA_NOREF};
}

void ah_lua_hooks_clear(ah_lua_hooks *s)
{
    if (!s->lua)
        return;
    ah_lua_unref(s->lua, &s->policies);
    ah_lua_unref(s->lua, &s->guards[0]);
    ah_lua_unref(s->lua, &s->guards[1]);
    ah_lua_unref(s->lua, &s->approve);
    ah_lua_unref(s->lua, &s->feedback);
    ah_lua_unref(s->lua, &s->checks);
    ah_lua_hooks_init(s, s->lua);
}

static void set_core(ah_lua_hooks *s)
{
    s->core.before = s->policies == LUA_NOREF ? NULL : ah_lua_policy_before;
    s->core.after = s->policies == LUA_NOREF ? NULL : ah_lua_policy_after;
    s->core.guard = s->guards[1] == LUA_NOREF ? NULL : guard;
    s->core.ask = s->lua->runs->ask;
    s->core.decides = s->approve != LUA_NOREF;
    s->core.stop_asking = s->lua->runs->stop_asking;
    s->core.lost = ah_lua_find_lost;
    s->core.stop_lost = ah_lua_stop_lost;
    s->core.feedback = s->feedback == LUA_NOREF ? NULL : feedback;
    s->core.check = s->checks == LUA_NOREF ? NULL : check;
    s->core.stop_checking = stop_checking;
}

/* -- ... item: a function, or (with `member`) a table with a function in that field */
static void check_item(lua_State *L, const char *field, int at, const char *member, bool function)
{
    int type = lua_type(L, -1);

    if (function && type == LUA_TFUNCTION)
        return;
    if (type == LUA_TTABLE && member && lua_getfield(L, -1, member) == LUA_TFUNCTION) {
        lua_pop(L, 1);
        return;
    }
    ah_lua_raise(L, AH_USAGE, "ah.run: %s[%d] must be %s%s%s%s, found %s", field, at,
                 function ? "a function" : "", function && member ? " or " : "",
                 member ? "a table with a function " : "", member ? member : "",
                 lua_typename(L, type));
}

/* Reads a list and keeps a copy that no script can change during the run. */
static void read_list(lua_State *L, int idx, const char *field, const char *member, bool function,
                      int *ref)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, idx, "ah.run", field, &n))
        return;
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, -2, i);
        check_item(L, field, (int)i, member, function);
        lua_rawseti(L, -2, i);
    }
    *ref = ah_lua_ref(L);
    lua_pop(L, 1);
}

static const ah_option feedback_rows[] = {
    {.name = "every", .kinds = AH_OPT_NUMBER, .least = 0.001, .doc = "after this number of calls"},
    {.name = "seconds",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .doc = "after this number of seconds"},
    {.name = "text",
     .kinds = AH_OPT_FUNCTION,
     .type = "fun(run: { calls: integer, iteration: integer, run: integer }): string?",
     .needed = true,
     .doc = "returns the note for the model, or nil"},
    {0},
};
const ah_subject ah_subject_feedback = {
    .what = "ah.run: feedback",
    .type = "ah.Feedback",
    .doc = "notes for the model after a number of calls or seconds",
    .row = feedback_rows};

/* Copies feedback providers as well: the copies record when they were last called. */
static void read_feedback(lua_State *L, ah_lua_hooks *s)
{
    if (s->feedback == LUA_NOREF)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->feedback);
    for (lua_Integer i = 1, n = luaL_len(L, -1); i <= n; i++) {
        lua_geti(L, -1, i);
        ah_options_read(L, -1, &ah_subject_feedback, NULL);
        lua_createtable(L, 0, 5);
        for (const ah_option *o = feedback_rows; o->name; o++) {
            lua_getfield(L, -2, o->name);
            lua_setfield(L, -2, o->name);
        }
        lua_pushnumber(L, (double)ah_host_now(s->lua->host) / 1000);
        lua_setfield(L, -2, "last_time");
        lua_rawseti(L, -3, i);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void read_policies(lua_State *L, int idx, const char *what, ah_lua_hooks *s)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, idx, what, "policies", &n))
        return;
    ah_lua_read_policies(L, what, n);
    s->policies = ah_lua_ref(L);
}

static void swap(int *a, int *b)
{
    int of_a = *a;

    *a = *b;
    *b = of_a;
}

void ah_lua_hooks_swap(ah_lua_hooks *a, ah_lua_hooks *b)
{
    swap(&a->policies, &b->policies);
    swap(&a->approve, &b->approve);
    swap(&a->feedback, &b->feedback);
    swap(&a->checks, &b->checks);
    for (int i = 0; i < 2; i++)
        swap(&a->guards[i], &b->guards[i]);
    set_core(a);
    set_core(b);
}

void ah_lua_hooks_read(lua_State *L, int idx, const char *what, ah_lua_hooks *s)
{
    read_policies(L, idx, what, s);
    read_guards(L, idx, s);
    read_list(L, idx, "checks", NULL, true, &s->checks);
    read_list(L, idx, "feedback", "text", false, &s->feedback);
    read_feedback(L, s);
    if (ah_lua_field_push(L, idx, what, "approve", LUA_TFUNCTION))
        s->approve = ah_lua_ref(L);
    set_core(s);
}

void ah_lua_hooks_copy(lua_State *L, ah_lua_hooks *s, const ah_lua_hooks *from)
{
    s->policies = ah_lua_copy_ref(L, from->policies);
    s->guards[0] = ah_lua_copy_ref(L, from->guards[0]);
    s->guards[1] = ah_lua_copy_ref(L, from->guards[1]);
    s->approve = ah_lua_copy_ref(L, from->approve);
    s->feedback = ah_lua_copy_ref(L, from->feedback);
    s->checks = ah_lua_copy_ref(L, from->checks);
    set_core(s);
}
