/* The objects of steps, the paths of tasks, and the way into steps.lua. */
#include "lua/lua_step.h"

#include <stdlib.h>

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_modules.h"
#include "lua/lua_value.h"
#include "run/restage.h"
#include "run/run.h"
#include "run/step.h"

enum {
    MAX_STAGED = 256 << 20,
    MAX_FILE = 128 /* bytes of the members that describe a file */
};

static const char STEP[] = "agenthost.step", MODULE[] = "agenthost.tasks.steps";

/* A step as Lua has it. Its user value is the task that asked for it. */
typedef struct box {
    ah_task_waiter waiter;
    ah_task *task;
    ah_call *call;
    ah_call_step *step; /* valid while box_valid */
    ah_err err;         /* of step_started */
    ah_job job;         /* enters the handler again */
    int ref;            /* the box itself, until then */
} box;

/* -- the place of the code ----------------------------------------------------------------------
 */

/* The call of the durable handler, or of one that is replayed, whose code, or whose task's code,
 * runs; NULL: none. */
static ah_call *durable_call(const ah_task *t)
{
    ah_call *call = t && !t->over && t->overlay ? t->overlay->owner : NULL;

    return call && call->tool && call->steps ? call : NULL;
}

static ah_task *actor_of(lua_State *L)
{
    const ah_lua *h = ah_lua_of(L);

    return h->callee == AH_CALLEE_NONE && !h->reducing ? h->actor : NULL;
}

bool ah_lua_durable(lua_State *L)
{
    const ah_task *t = actor_of(L);

    return t && !t->outside && durable_call(t);
}

static int through(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    return lua_gettop(L);
}

int ah_lua_through_step(lua_State *L, const char *name, lua_CFunction plain)
{
    int n = lua_gettop(L);
    ah_err err;

    luaL_checkstack(L, 4, "a step");
    if (ah_lua_module(L, MODULE, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_insert(L, 1);
    lua_pushcfunction(L, plain);
    lua_insert(L, 2); /* -- f plain args.. */
    lua_callk(L, n + 1, LUA_MULTRET, 0, through);
    return through(L, LUA_OK, 0);
}

/* Returns the call whose handler, or whose task, runs in a replay; NULL: none. */
static ah_call *replayed_call(lua_State *L)
{
    ah_call *call = durable_call(actor_of(L));

    return call && ah_call_replays(call) ? call : NULL;
}

bool ah_lua_replays(lua_State *L)
{
    return replayed_call(L) != NULL;
}

void ah_lua_no_replay(lua_State *L, const char *what)
{
    ah_call *call = replayed_call(L);
    ah_err err;

    if (!call)
        return;
    ah_step_not_recorded(call, what, &err);
    ah_lua_raise_err(L, &err);
}

/* ah._replayed(): the id of the call that is replayed here; nil: none. */
static int replayed(lua_State *L)
{
    const ah_call *call = replayed_call(L);

    if (call)
        lua_pushstring(L, call->slot->id->data);
    return call ? 1 : 0;
}

/* ah._not_recorded(what, goes_on): in a replay raises not_recorded; goes_on: notes it only. */
static int not_recorded(lua_State *L)
{
    const char *what = luaL_checkstring(L, 1);
    ah_call *call = replayed_call(L);
    ah_err err;

    if (call && lua_toboolean(L, 2))
        ah_step_not_recorded(call, what, &err);
    else
        ah_lua_no_replay(L, what);
    return 0;
}

void ah_lua_no_step(lua_State *L, const char *what)
{
    ah_lua_no_replay(L, what);
    if (ah_lua_durable(L))
        ah_lua_raise(L, AH_USAGE,
                     "%s cannot be repeated when a durable handler is entered again: use it inside "
                     "of ctx:step(name, function() ... end)",
                     what);
}

ah_overlay *ah_lua_step_overlay(lua_State *L, ah_overlay *o)
{
    const ah_task *t = actor_of(L);
    ah_overlay *aside;
    ah_call *call;
    ah_err err;

    if (!t || !t->outside || !(call = durable_call(t)) || !t->step)
        return o;
    if (!(aside = ah_step_aside(call, t->step, &err)))
        ah_lua_raise_err(L, &err);
    return aside;
}

/* -- paths of tasks -----------------------------------------------------------------------------
 */

static ah_text *path_below(lua_State *L, const ah_task *t, unsigned number)
{
    char digits[16];
    ah_text *path;
    ah_buf b;

    ah_buf_init(&b, &t->lua->mem, 2 * AH_MAX_STEP_PATH);
    ah_buf_put(&b, ah_text_slice(t->path));
    ah_buf_add(&b, digits, ah_print(digits, sizeof digits, "/%u", number));
    path = ah_buf_ok(&b) ? ah_text_new(&t->lua->mem, ah_buf_slice(&b)) : NULL;
    ah_buf_clear(&b);
    if (!path)
        ah_lua_raise_nomem(L);
    return path;
}

void ah_lua_step_child(lua_State *L, ah_task *by, ah_task *t)
{
    if (!by || !durable_call(by))
        return;
    t->outside = by->outside ? 1 : 0;
    t->step = by->step;
    if (!t->outside)
        t->path = path_below(L, by, ++by->starts);
}

void ah_lua_step_gone(const ah_task *t)
{
    const ah_call *call = durable_call(t);

    if (call)
        ah_steps_give_up(call->steps, ah_text_slice(t->path));
}

/* Gives up the steps of a path that is not entered this time. */
static void give_up(const ah_task *t, ah_slice path)
{
    ah_steps_give_up(durable_call(t)->steps, path);
}

/* ah._path(): a path for work that several tasks share, below that of the running code; nil: the
 * code is not durable. */
static int new_path(lua_State *L)
{
    ah_task *t = actor_of(L);
    ah_text *path;

    if (!ah_lua_durable(L))
        return 0;
    path = path_below(L, t, ++t->starts);
    lua_pushlstring(L, path->data, path->len);
    ah_text_unref(path);
    return 1;
}

/* ah._at_path(path): the running task goes on at this path. */
static int at_path(lua_State *L)
{
    ah_task *t = actor_of(L);
    ah_slice path;
    ah_text *text;

    path.p = luaL_checklstring(L, 1, &path.n);
    if (!ah_lua_durable(L))
        return 0;
    if (!(text = ah_text_new(&t->lua->mem, path)))
        return ah_lua_raise_nomem(L);
    ah_text_set(&t->path, text);
    t->starts = 0;
    return 0;
}

/* ah._skip(n or path): n tasks are not started again, or the work at this path is not done again,
 * since their end is known. */
static int skip(lua_State *L)
{
    ah_task *t = actor_of(L);
    lua_Integer n = 0;
    ah_slice path;

    if (!ah_lua_durable(L))
        return 0;
    if (lua_type(L, 1) == LUA_TSTRING) {
        path.p = lua_tolstring(L, 1, &path.n);
        give_up(t, path);
        return 0;
    }
    for (n = luaL_checkinteger(L, 1); n > 0; n--) {
        ah_text *text = path_below(L, t, ++t->starts);

        give_up(t, ah_text_slice(text));
        ah_text_unref(text);
    }
    return 0;
}

/* -- steps --------------------------------------------------------------------------------------
 */

static bool is_valid(const box *b)
{
    return b->step && durable_call(b->task) == b->call;
}

static box *check_step(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, STEP);

    if (!is_valid(b))
        ah_lua_raise(L, AH_USAGE, "the call is over: it makes no step any more");
    return b;
}

const ah_text *ah_lua_step_key(lua_State *L, int idx)
{
    const box *b = luaL_testudata(L, idx, STEP);

    return b && is_valid(b) ? b->step->key : NULL;
}

static void leave(ah_task_waiter *w)
{
    box *b = (box *)(void *)((char *)w - offsetof(box, waiter));

    if (is_valid(b))
        ah_step_leave(b->step);
}

static int step_gc(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, STEP);

    if (!b->waiter.done && b->waiter.task)
        leave(&b->waiter);
    ah_job_cancel(&b->job);
    b->step = NULL;
    return 0;
}

/* The run ends. What the handler makes of the error changes nothing. */
static int raise_diverged(lua_State *L, ah_call *call, const ah_err *err)
{
    if (err->status == AH_DIVERGED) {
        ah_run_stop_unsettled(call->run, err);
        ah_driver_run_wake(ah_run_owner(call->run));
    }
    return ah_lua_raise_err(L, err);
}

static int push_step(lua_State *L, ah_task *t, ah_call *call, ah_call_step *step)
{
    static const char *const states[] = {"new", "lost", "begun", "recorded"};
    box *b = lua_newuserdatauv(L, sizeof *b, 1);

    *b = (box){.waiter.leave = leave, .task = t, .call = call, .step = step, .ref = LUA_NOREF};
    luaL_setmetatable(L, STEP);
    ah_task_push(L, t);
    lua_setiuservalue(L, -2, 1);
    lua_pushstring(L, states[step->state]);
    lua_pushboolean(L, step->success);
    if (step->kept)
        lua_pushlstring(L, step->kept->data, step->kept->len);
    else
        lua_pushnil(L);
    return 4;
}

/* ah._step(kind, name, once): the step, its state, and for one that is recorded its success and its
 * value, a JSON text; nil: the code makes no steps, or with `once` the step was asked for before.
 */
static int ask_step(lua_State *L)
{
    ah_task *t = actor_of(L);
    char place[AH_PLACE] = "";
    ah_slice kind, name;
    ah_call_step *step;
    ah_call *call;
    ah_err err;

    kind.p = luaL_checklstring(L, 1, &kind.n);
    name.p = luaL_checklstring(L, 2, &name.n);
    if (!ah_lua_durable(L))
        return 0;
    call = durable_call(t);
    ah_lua_where(L, place, sizeof place);
    if (ah_step_ask(call, ah_text_slice(t->path), kind, name, lua_toboolean(L, 3), place, &step,
                    &err) != AH_OK)
        return raise_diverged(L, call, &err);
    return step ? push_step(L, t, call, step) : 0;
}

static void recorded(void *ud, const ah_err *err)
{
    box *b = ud;

    b->err = *err;
    ah_task_waiter_done(&b->waiter);
}

static int begun(lua_State *L, int status, lua_KContext ctx)
{
    box *b = luaL_checkudata(L, 1, STEP);

    (void)status;
    (void)ctx;
    return b->err.status == AH_OK ? 0 : ah_lua_raise_err(L, &b->err);
}

/* step:begin(on_lost, what): records that it begins, and waits until that is kept. */
static int step_begin(lua_State *L)
{
    box *b = check_step(L);
    const char *on_lost = luaL_checkstring(L, 2);
    ah_slice what = {NULL, 0};
    ah_err err;

    what.p = luaL_optlstring(L, 3, NULL, &what.n);
    if (what.p && !ah_utf8_valid(what))
        what.p = NULL;
    lua_settop(L, 1);
    ah_lua_can_await(L);
    b->waiter = (ah_task_waiter){.leave = leave};
    ah_task_waiter_keep(L, &b->waiter);
    if (ah_step_begin(b->call, b->step, on_lost, what, recorded, b, &err) != AH_OK) {
        ah_task_waiter_done(&b->waiter);
        return ah_lua_raise_err(L, &err);
    }
    return ah_lua_await(L, &b->waiter, 0, begun);
}

/* -- AGENTHOST_REENTER=always: each recorded step abandons the handler, which is entered again --
 */

/* Another task may have begun a step meanwhile: then the handler goes on. */
static void enter_again(ah_job *job)
{
    box *b = (box *)(void *)((char *)job - offsetof(box, job));
    ah_call *call = b->call;
    ah_lua *h = b->task->lua;

    if (is_valid(b) && call->task && ah_steps_at_work(call->steps)) {
        if (b->waiter.task && !b->waiter.done)
            ah_task_waiter_done(&b->waiter);
    } else if (is_valid(b) && call->task) {
        call->tool->vt->stop(call->tool, call);
        ah_call_enter_again(call);
        call->tool->vt->start(call->tool, call);
    }
    ah_lua_unref(h, &b->ref);
}

static int go_on(lua_State *L, int status, lua_KContext ctx)
{
    (void)L;
    (void)status;
    (void)ctx;
    return 0;
}

/* Not if other steps are at work, which would be lost, nor where the code cannot be abandoned. */
static bool can_reenter(lua_State *L, const box *b)
{
    const ah_lua *h = b->task->lua;

    return h->reenter && lua_isyieldable(L) && h->running && h->running->co == L &&
           !ah_steps_at_work(b->call->steps);
}

static int reenter(lua_State *L, box *b)
{
    lua_pushvalue(L, 1);
    b->ref = ah_lua_ref(L);
    b->waiter = (ah_task_waiter){.leave = leave};
    b->job = (ah_job){.fn = enter_again, .of = b->task->job.of};
    ah_job_post(b->task->lua->host, &b->job);
    lua_pushvalue(L, 1);
    ah_task_waiter_keep(L, &b->waiter);
    return ah_lua_await(L, &b->waiter, 0, go_on);
}

/* step:finish(success, value, hash, size): records the result; value: JSON text. Of a file that was
 * read: hash, in hexadecimal digits; size. */
static int step_finish(lua_State *L)
{
    box *b = check_step(L);
    ah_slice kept, said = {NULL, 0};
    char file[MAX_FILE];
    ah_err err;

    kept.p = luaL_checklstring(L, 3, &kept.n);
    if (!lua_isnoneornil(L, 4)) {
        said.n = ah_print(file, sizeof file, ",\"hash\":\"%s\",\"size\":%lld",
                          luaL_checkstring(L, 4), (long long)luaL_checkinteger(L, 5));
        said.p = file;
    }
    if (ah_step_end(b->call, b->step, lua_toboolean(L, 2), said, kept, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_run_look_again(b->call->run);
    return can_reenter(L, b) ? reenter(L, b) : 0;
}

/* step:conflict(): what it has given is not so any more. */
static int step_conflict(lua_State *L)
{
    ah_steps_conflict(check_step(L)->call->steps);
    return 0;
}

/* step:key(): its idempotency key. */
static int step_key(lua_State *L)
{
    const box *b = check_step(L);
    char key[AH_STEP_KEY];

    ah_step_key(b->call->steps, b->step, key);
    lua_pushstring(L, key);
    return 1;
}

/* step:changed(): true if runs inside of it have changed something, which is dropped. */
static int step_changed(lua_State *L)
{
    box *b = check_step(L);
    bool changed = ah_step_has_changes(b->step);
    ah_err err;

    if (ah_step_close_aside(b->call, b->step, false, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_pushboolean(L, changed);
    return 1;
}

/* step:take(): passes what runs inside of it have changed to the call, and returns it as JSON text;
 * nil: nothing. false: it cannot be written down, and is dropped. */
static int step_take(lua_State *L)
{
    box *b = check_step(L);
    bool keeps = true, changed = ah_step_has_changes(b->step);
    ah_buf *out = ah_lua_push_buf(L, MAX_STAGED);
    ah_err err;

    if (changed && b->call->steps->recorder)
        keeps = ah_call_print_in(b->call, &b->step->aside, out);
    if (ah_step_close_aside(b->call, b->step, keeps, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (!keeps)
        lua_pushboolean(L, false);
    else if (!ah_buf_ok(out))
        return ah_lua_raise_nomem(L);
    else if (out->len)
        lua_pushlstring(L, out->data, out->len);
    else
        lua_pushnil(L);
    ah_buf_clear(out);
    return 1;
}

/* ah._restage(changes): makes the changes of a recorded run in the call; JSON text. */
static int restage(lua_State *L)
{
    ah_slice json;
    ah_err err;

    json.p = luaL_checklstring(L, 1, &json.n);
    if (!ah_lua_durable(L))
        return 0;
    if (ah_json_check_err(&ah_lua_of(L)->mem, json, "the changes of a run", &err) != AH_OK ||
        ah_call_restage(durable_call(actor_of(L)), json, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

static int step_to_string(lua_State *L)
{
    lua_pushliteral(L, "step");
    return 1;
}

/* ah._secret(name): a secret step begins. */
static int secret_step(lua_State *L)
{
    ah_task *t = actor_of(L);
    ah_slice name;

    name.p = luaL_checklstring(L, 1, &name.n);
    ah_lua_no_replay(L, "a secret step");
    if (ah_lua_durable(L))
        ah_step_secret(durable_call(t), ah_text_slice(t->path), name);
    return 0;
}

/* ctx: 0. The task is the one that began, as its coroutine is. */
static int outside_end(lua_State *L, int status, lua_KContext ctx)
{
    ah_task *t = ah_lua_of(L)->actor;

    (void)ctx;
    if (t && t->outside)
        t->outside--;
    if (t)
        t->step = NULL;
    lua_pushboolean(L, status == LUA_OK || status == LUA_YIELD);
    lua_replace(L, 1);
    return lua_gettop(L);
}

/* ah._outside(step or nil, f, ...): pcall of f(...) in the step, where functions make no steps. */
static int outside(lua_State *L)
{
    ah_task *t = ah_lua_of(L)->actor;
    const box *b = luaL_testudata(L, 1, STEP);
    int status;

    if (t) {
        t->outside++;
        t->step = b && is_valid(b) ? b->step : NULL;
    }
    status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, outside_end);
    return outside_end(L, status, 0);
}

/* ah._durable(): true where the running code makes steps. */
static int is_durable(lua_State *L)
{
    lua_pushboolean(L, ah_lua_durable(L));
    return 1;
}

/* ah._wall(): seconds since the epoch. */
static int wall(lua_State *L)
{
    lua_pushnumber(L, (double)ah_host_wall(ah_lua_of(L)->host) / 1000);
    return 1;
}

void ah_lua_open_step(lua_State *L)
{
    const char *always = getenv("AGENTHOST_REENTER");
    static const luaL_Reg functions[] = {{"_step", ask_step},
                                         {"_secret", secret_step},
                                         {"_outside", outside},
                                         {"_durable", is_durable},
                                         {"_path", new_path},
                                         {"_at_path", at_path},
                                         {"_skip", skip},
                                         {"_restage", restage},
                                         {"_wall", wall},
                                         {"_replayed", replayed},
                                         {"_not_recorded", not_recorded},
                                         {NULL, NULL}};
    static const luaL_Reg methods[] = {{"begin", step_begin}, {"finish", step_finish},
                                       {"key", step_key},     {"changed", step_changed},
                                       {"take", step_take},   {"conflict", step_conflict},
                                       {NULL, NULL}};
    static const luaL_Reg meta[] = {
        {"__gc", step_gc}, {"__tostring", step_to_string}, {NULL, NULL}};

    ah_lua_of(L)->reenter = always && strcmp(always, "always") == 0;
    luaL_newmetatable(L, STEP);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
