/* Policies and feedback are called (they never wait); checks are tasks. Approvals are
 * lua_approve.c's. */
#include "lua/lua_hooks.h"

#include "lua/lua_approve.h"
#include "lua/lua_moment.h"
#include "lua/lua_value.h"

/* -- policies -------------------------------------------------------------------------- */

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

/* What a policy returned, two values on top: nil or "allow"; "deny" or "ask", and why. */
static ah_verdict read_verdict(lua_State *L, const ah_err *failed, ah_buf *why)
{
    const char *word = failed ? NULL : lua_tostring(L, -2);
    int reason = lua_gettop(L);
    ah_verdict v = AH_VERDICT_DENY;

    if (failed) {
        ah_buf_fmt(why, "a policy failed: %s", failed->message);
        return v;
    }
    if (lua_isnil(L, -2) || (word && strcmp(word, "allow") == 0))
        return AH_VERDICT_ALLOW;
    if (word && strcmp(word, "ask") == 0)
        v = AH_VERDICT_ASK;
    else if (!word || strcmp(word, "deny") != 0) {
        ah_buf_str(why, "a policy returned ");
        if (!word || !ah_lua_put_reason(L, reason - 1, why))
            ah_buf_str(why, word ? "an empty string" : luaL_typename(L, reason - 1));
        ah_buf_str(why, "; it returns \"allow\", \"deny\" or \"ask\", and why");
        return v;
    }
    if (!ah_lua_put_reason(L, reason, why))
        ah_buf_str(why, v == AH_VERDICT_ASK ? "a policy wants it approved" : "a policy denies it");
    return v;
}

typedef struct asked {
    ah_lua_hooks *hooks;
    ah_run *run;
    const ah_call *call;
    ah_buf *why;
    ah_verdict verdict;
} asked;

/* (asked): the first policy that denies decides; one that asks lets those behind it deny. */
static int ask_policies(lua_State *L)
{
    asked *a = lua_touserdata(L, 1);
    ah_buf *words;
    lua_Integer n;

    lua_rawgeti(L, LUA_REGISTRYINDEX, a->hooks->policies);
    words = ah_lua_push_buf(L, a->why->max); /* -- asked policies words */
    n = luaL_len(L, 2);
    for (lua_Integer i = 1; i <= n && a->verdict != AH_VERDICT_DENY; i++) {
        ah_status st;
        ah_verdict v;
        ah_err err;

        ah_buf_reset(words, 0);
        lua_geti(L, 2, i);
        st = ah_lua_with_moment(a->hooks->lua, L, "before", &(ah_moment){.run = a->run, .call = a->call},
                                &err);
        v = read_verdict(L, st == AH_OK ? NULL : &err, words);
        if (v != AH_VERDICT_ALLOW) {
            if (v == AH_VERDICT_DENY)
                ah_buf_reset(a->why, 0);
            ah_buf_str(a->why, a->why->len ? "; " : "");
            if (!ah_buf_ok(words))
                ah_lua_raise_nomem(L);
            ah_buf_put(a->why, ah_buf_slice(words));
            a->verdict = v;
        }
        lua_settop(L, 3);
    }
    return 0;
}

static ah_verdict before(void *ud, ah_run *run, const ah_call *call, ah_buf *why)
{
    ah_lua_hooks *s = ud;
    asked a = {.hooks = s, .run = run, .call = call, .why = why, .verdict = AH_VERDICT_ALLOW};
    lua_State *L = s->lua->caller;
    ah_err err;

    if (!lua_checkstack(L, 4))
        return AH_VERDICT_DENY;
    lua_pushcfunction(L, ask_policies);
    lua_pushlightuserdata(L, &a);
    if (ah_lua_call_as(s->lua, AH_CALLEE_POLICY, L, 1, 0, &err) != AH_OK) {
        ah_buf_reset(why, 0);
        ah_buf_fmt(why, "a policy failed: %s", err.message);
        return AH_VERDICT_DENY;
    }
    return a.verdict;
}

/* -- completion checks ------------------------------------------------------------------------ */

static void end_checking(ah_task *t, ah_slice message)
{
    ah_lua_hooks *s = t->ud;
    ah_driven *of = t->job.of;

    s->checking = NULL;
    ah_run_checked(ah_driven_run(of), message);
    ah_driven_wake(of);
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

/* A check that cannot be made must not keep the answer back. */
static void check_failed(ah_task *t, const ah_err *err)
{
    ah_run_warn(ah_driven_run(t->job.of), ah_slice_of(err->message));
    end_checking(t, (ah_slice){NULL, 0});
}

/* In the task: (checks, what) -- the first message a check returns */
static int check_next(lua_State *L, int status, lua_KContext at)
{
    (void)status;
    for (lua_Integer i = (lua_Integer)at;; i++) {
        if (i > 0 && lua_type(L, 3) == LUA_TSTRING)
            return 1;
        lua_settop(L, 2);
        if (lua_geti(L, 1, i + 1) == LUA_TNIL)
            return 0;
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

static int make_checking(lua_State *L)
{
    const checking *c = lua_touserdata(L, 1);
    ah_slice text = ah_run_text(c->run);
    ah_task *t;

    lua_pushcfunction(L, run_checks);
    lua_rawgeti(L, LUA_REGISTRYINDEX, c->hooks->checks);
    lua_createtable(L, 0, 3);
    lua_pushlstring(L, text.p, text.n);
    lua_setfield(L, -2, "text");
    lua_pushinteger(L, ah_run_id(c->run));
    lua_setfield(L, -2, "run");
    lua_pushinteger(L, ah_run_iterations(c->run));
    lua_setfield(L, -2, "iteration");
    t = ah_task_new(c->hooks->lua, L, 2, ah_run_owner(c->run));
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
    if (ah_lua_call(s->lua, L, 1, 0, &err) == AH_OK || s->checking) { /* made, if late */
        ah_task_begin(s->checking);
        return;
    }
    ah_run_warn(run, ah_slice_of(err.message));
    ah_run_checked(run, (ah_slice){NULL, 0});
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

/* -- feedback ------------------------------------------------------------------------------------ */

typedef struct fed {
    ah_lua_hooks *hooks;
    ah_run *run;
    ah_changes *notes;
} fed;

/* -- ... provider: is it due? Its own table remembers when it was last asked. */
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
        lua_pushinteger(L, ah_run_id(f->run));
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

/* -- reading the fields ------------------------------------------------------------------------------ */

void ah_lua_hooks_init(ah_lua_hooks *s, ah_lua *h)
{
    *s = (ah_lua_hooks){.lua = h,
                        .core.ud = s,
                        .policies = LUA_NOREF,
                        .approve = LUA_NOREF,
                        .feedback = LUA_NOREF,
                        .checks = LUA_NOREF};
}

void ah_lua_hooks_clear(ah_lua_hooks *s)
{
    if (!s->lua)
        return;
    ah_lua_unref(s->lua, &s->policies);
    ah_lua_unref(s->lua, &s->approve);
    ah_lua_unref(s->lua, &s->feedback);
    ah_lua_unref(s->lua, &s->checks);
    ah_lua_hooks_init(s, s->lua);
}

static void set_core(ah_lua_hooks *s)
{
    s->core.before = s->policies == LUA_NOREF ? NULL : before;
    s->core.ask = ah_lua_approve;
    s->core.stop_asking = ah_lua_stop_approving;
    s->core.feedback = s->feedback == LUA_NOREF ? NULL : feedback;
    s->core.check = s->checks == LUA_NOREF ? NULL : check;
    s->core.stop_checking = stop_checking;
}

/* -- ... item: a function, or a table with a function under `member`, where it may be one. */
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
                 member ? "a table with a function " : "", member ? member : "", lua_typename(L, type));
}

/* A list that is copied, so that nobody changes it behind the run's back. */
static void read_list(lua_State *L, int idx, const char *field, const char *member, bool function,
                      int *ref)
{
    lua_Integer n;

    if (!ah_field_push(L, idx, "ah.run", field, LUA_TTABLE))
        return;
    n = luaL_len(L, -1);
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, -2, i);
        check_item(L, field, (int)i, member, function);
        lua_rawseti(L, -2, i);
    }
    *ref = ah_lua_ref(L);
    lua_pop(L, 1);
}

/* Feedback providers are copied, too: they remember when they were last asked. */
static void read_feedback(lua_State *L, ah_lua_hooks *s)
{
    static const char *const known[] = {"every", "seconds", "text", NULL};
    double v;

    if (s->feedback == LUA_NOREF)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->feedback);
    for (lua_Integer i = 1, n = luaL_len(L, -1); i <= n; i++) {
        lua_geti(L, -1, i);
        ah_fields_check(L, -1, "ah.run: feedback", known, false);
        lua_createtable(L, 0, 5);
        for (int k = 0; known[k]; k++) {
            if (k < 2 && ah_field_number(L, -2, "ah.run: feedback", known[k], 0.001, &v))
                lua_pushnumber(L, v);
            else
                lua_getfield(L, -2, known[k]);
            lua_setfield(L, -2, known[k]);
        }
        lua_pushnumber(L, (double)ah_host_now(s->lua->host) / 1000);
        lua_setfield(L, -2, "last_time");
        lua_rawseti(L, -3, i);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void ah_lua_hooks_read(lua_State *L, int idx, ah_lua_hooks *s)
{
    read_list(L, idx, "policies", "before", true, &s->policies);
    read_list(L, idx, "checks", NULL, true, &s->checks);
    read_list(L, idx, "feedback", "text", false, &s->feedback);
    read_feedback(L, s);
    if (ah_field_push(L, idx, "ah.run", "approve", LUA_TFUNCTION))
        s->approve = ah_lua_ref(L);
    set_core(s);
}

void ah_lua_hooks_copy(lua_State *L, ah_lua_hooks *s, const ah_lua_hooks *from)
{
    s->policies = ah_lua_copy_ref(L, from->policies);
    s->approve = ah_lua_copy_ref(L, from->approve);
    s->feedback = ah_lua_copy_ref(L, from->feedback);
    s->checks = ah_lua_copy_ref(L, from->checks);
    set_core(s);
}
