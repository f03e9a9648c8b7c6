/* The primitives below lua/agenthost/tasks.lua: tasks that scripts start, and parks, in which a
 * task waits until other code of the script wakes it. */
#include <lauxlib.h>

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_open.h"
#include "lua/lua_task.h"

enum { MAX_DEEP = 100, MAX_TASKS = 100 * 1000 };

/* -- tasks ------------------------------------------------------------------------------------ */

/* -- ... results  calls the function that was given for the end */
static void call_ended(lua_State *L, const ah_task *t, int nargs)
{
    luaL_checkstack(L, 4, "the end of a task");
    ah_task_push(L, t);
    lua_getiuservalue(L, -1, 2);
    lua_remove(L, -2);
    lua_insert(L, -nargs - 1);
    lua_call(L, nargs, 0);
}

static void settled(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;

    luaL_checkstack(L, 1, "the end of a task");
    lua_pushboolean(L, true);
    lua_insert(L, -nresults - 1);
    call_ended(L, t, nresults + 1);
}

typedef struct failure {
    ah_task *task;
    const ah_err *err;
} failure;

/* A value that the code itself has raised stays what it is; limits of memory and time have errors
 * of ours. */
static void push_raised(lua_State *L, const failure *f)
{
    lua_State *co = f->task->co;

    if (lua_status(co) == LUA_ERRRUN && f->err->status != AH_NOMEM && lua_checkstack(co, 1)) {
        lua_pushvalue(co, -1);
        lua_xmove(co, L, 1);
    } else {
        ah_lua_push_error(L, f->err);
    }
}

static int report_failure(lua_State *L)
{
    const failure *f = lua_touserdata(L, 1);
    ah_text *trace = f->task->failure;

    lua_pushboolean(L, false);
    push_raised(L, f);
    if (trace)
        lua_pushlstring(L, ah_text_slice(trace).p, ah_text_slice(trace).n);
    else
        lua_pushnil(L);
    lua_pushboolean(L, f->task->mistake);
    call_ended(L, f->task, 4);
    return 0;
}

static void failed(ah_task *t, const ah_err *err)
{
    failure f = {t, err};

    lua_pushcfunction(t->lua->caller, report_failure);
    lua_pushlightuserdata(t->lua->caller, &f);
    if (ah_lua_call(t->lua, t->lua->caller, 1, 0, NULL) == AH_OK)
        ah_text_set(&t->failure, NULL); /* whoever awaits the task has it */
}

static int report_stop(lua_State *L)
{
    lua_pushnil(L);
    call_ended(L, lua_touserdata(L, 1), 1);
    return 0;
}

/* A task that was itself cancelled, or is out of time, may stop this one: its end must not be cut
 * short by the watch of that task, or its group would wait for ever. */
static void gone(ah_task *t)
{
    ah_watch pause;

    t->gone = NULL;
    ah_watch_pause(t->lua, &pause);
    lua_pushcfunction(t->lua->caller, report_stop);
    lua_pushlightuserdata(t->lua->caller, t);
    ah_lua_call(t->lua, t->lua->caller, 1, 0, NULL);
    ah_watch_go_on(t->lua, &pause);
}

/* The task at idx; NULL: it has ended. */
static ah_task *at_work(lua_State *L, int idx)
{
    ah_task *t = luaL_checkudata(L, idx, AH_TASK);

    return t->ref != LUA_NOREF ? t : NULL;
}

/* The task that a new one belongs to: the one at idx, none for false, else the one at work. */
static ah_task *parent_at(lua_State *L, int idx)
{
    const ah_lua *h = ah_lua_of(L);

    if (lua_isuserdata(L, idx))
        return at_work(L, idx);
    return lua_isnil(L, idx) && h->callee == AH_CALLEE_NONE ? h->actor : NULL;
}

static void check_begin(lua_State *L, const ah_lua *h, const ah_task *parent)
{
    if (atomic_load(&h->host->stop))
        ah_lua_raise(L, AH_CANCELLED, "cancelled: the program is being ended");
    if (h->callee == AH_CALLEE_REDUCER)
        ah_lua_raise(L, AH_USAGE, "a reducer cannot start a task: it must be a pure function");
    if (lua_gc(L, LUA_GCISRUNNING, 0) < 0)
        ah_lua_raise(L, AH_USAGE, "a finalizer cannot start a task");
    if (parent && parent->stopped)
        ah_lua_raise(L, AH_USAGE, "the task has ended or was cancelled: it can start no other");
    if (parent && parent->over)
        ah_lua_raise(L, AH_USAGE, "the call is over: no task can be started in it");
    if (parent && parent->depth >= MAX_DEEP)
        ah_lua_raise(L, AH_USAGE, "tasks inside tasks are more than %d deep", MAX_DEEP);
    if (h->n_tasks >= MAX_TASKS)
        ah_lua_raise(L, AH_USAGE, "%d tasks are at work, and there can be no more: use ah.map",
                     MAX_TASKS);
}

/* ah._task(f, ended, parent, ...): a task that calls f(...), soon, and the script's line. parent:
 * false for none, nil for the task at work. ended is called once: (true, results ...), (false, what
 * was raised, traceback, true if it is a mistake), or (nil) if the task was stopped. */
static int new_task(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_task *parent, *t;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    parent = parent_at(L, 3);
    check_begin(L, h, parent);
    lua_remove(L, 3);
    lua_pushvalue(L, 2);
    lua_remove(L, 2);
    lua_insert(L, 1);          /* -- ended f ... */
    if (!ah_lua_push_place(L)) /* before the task exists: it may raise */
        lua_pushliteral(L, "a program");
    lua_insert(L, 1); /* -- place ended f ... */
    t = ah_task_new(h, L, lua_gettop(L) - 3, parent ? parent->job.of : NULL);
    t->settled = settled;
    t->failed = failed;
    t->gone = gone;
    ah_task_keep(L, t);
    t->watch.work_ms = 0;
    t->fence.memory = 0;
    if (parent)
        ah_task_adopt(L, parent, t);
    ah_job_post(h->host, &t->job);
    ah_task_push(L, t);
    lua_insert(L, 1);
    return 2;
}

/* ah._stop(task): ends it wherever it is; harmless when it has ended. */
static int stop_task(lua_State *L)
{
    ah_task *t = at_work(L, 1);

    if (t)
        ah_task_stop(t);
    return 0;
}

/* ah._current(): the task whose code runs; nil: none. */
static int current_task(lua_State *L)
{
    const ah_lua *h = ah_lua_of(L);

    if (h->actor && h->callee == AH_CALLEE_NONE)
        ah_task_push(L, h->actor);
    else
        lua_pushnil(L);
    return 1;
}

/* ah._tasks(): a list of all tasks at work, those of handlers included. */
static int all_tasks(lua_State *L)
{
    lua_Integer n = 0;

    lua_newtable(L);
    for (const ah_task *t = ah_lua_of(L)->tasks; t; t = t->next) {
        ah_task_push(L, t);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/* ah._where(task): the line at which it is ("script.lua:12", or "") and the word for its wait. */
static int where_task(lua_State *L)
{
    const ah_task *t = at_work(L, 1);
    const ah_task_waiter *w = t && t->waiter ? t->waiter : t ? t->drives : NULL;
    char place[AH_PLACE] = "";

    if (t)
        ah_lua_where(t->co, place, sizeof place);
    lua_pushstring(L, place);
    lua_pushstring(L, w && w->by_code ? w->by_code : w && w->scope ? "a run" : NULL);
    return 2;
}

/* -- parks ------------------------------------------------------------------------------------- */

static const char PARK[] = "agenthost.park";

/* Its user value is what it was woken with. */
typedef struct park {
    ah_task_waiter waiter;
    ah_timer timer;
    ah_lua *lua;
    bool over; /* woken, given up, or its time is over */
    bool late; /* the last of these */
} park;

static void end_park(park *p)
{
    p->over = true;
    ah_timer_unset(&p->timer);
}

static void timed_out(ah_timer *timer)
{
    park *p = (park *)(void *)((char *)timer - offsetof(park, timer));

    p->late = true;
    end_park(p);
    ah_task_waiter_done(&p->waiter);
}

static void leave_park(ah_task_waiter *w)
{
    end_park((park *)(void *)((char *)w - offsetof(park, waiter)));
}

static int park_gc(lua_State *L)
{
    ah_timer_unset(&((park *)luaL_checkudata(L, 1, PARK))->timer);
    return 0;
}

static int new_park(lua_State *L)
{
    park *p = lua_newuserdatauv(L, sizeof *p, 1);

    *p = (park){.waiter.leave = leave_park, .timer.fn = timed_out, .lua = ah_lua_of(L)};
    luaL_setmetatable(L, PARK);
    return 1;
}

static int woken(lua_State *L, int status, lua_KContext ctx)
{
    const park *p = lua_touserdata(L, 1);

    (void)status;
    (void)ctx;
    lua_pushboolean(L, !p->late);
    lua_getiuservalue(L, 1, 1);
    return 2;
}

/* park:wait(word, seconds): true and the value that it was woken with; false: the time is over.
 * Once. */
static int park_wait(lua_State *L)
{
    static const char *const words[] = {"await",   "all its tasks", "send",
                                        "receive", "acquire",       NULL};
    park *p = luaL_checkudata(L, 1, PARK);
    const char *word = words[luaL_checkoption(L, 2, NULL, words)];
    double seconds = luaL_optnumber(L, 3, -1);

    lua_settop(L, 1);
    if (p->over)
        return woken(L, LUA_OK, 0);
    ah_lua_can_await(L);
    p->waiter.by_code = word;
    ah_task_waiter_keep(L, &p->waiter);
    if (seconds >= 0)
        ah_timer_set(p->lua->host->loop, &p->timer, ah_host_now(p->lua->host) + ah_ms_of(seconds));
    return ah_lua_await(L, &p->waiter, 0, woken);
}

/* park:wake(value): true; false if nothing waits in it any more. */
static int park_wake(lua_State *L)
{
    park *p = luaL_checkudata(L, 1, PARK);

    lua_pushboolean(L, !p->over);
    if (p->over)
        return 1;
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, 1, 1);
    end_park(p);
    ah_task_waiter_done(&p->waiter);
    return 1;
}

/* ah._task_hooks(join, stuck), once */
static int set_hooks(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    if (lua_getfield(L, LUA_REGISTRYINDEX, AH_TASK_HOOKS) != LUA_TNIL)
        return luaL_error(L, "the hooks of tasks are set");
    lua_settop(L, 2);
    lua_createtable(L, 0, 2);
    lua_insert(L, 1);
    lua_setfield(L, 1, "stuck");
    lua_setfield(L, 1, "join");
    lua_setfield(L, LUA_REGISTRYINDEX, AH_TASK_HOOKS);
    return 0;
}

int ah_lua_join(lua_State *L)
{
    lua_settop(L, 0);
    if (lua_getfield(L, LUA_REGISTRYINDEX, AH_TASK_HOOKS) == LUA_TNIL)
        return 0;
    lua_getfield(L, -1, "join");
    lua_call(L, 0, 0);
    return 0;
}

void ah_lua_open_spawn(lua_State *L)
{
    static const luaL_Reg functions[] = {{"_task", new_task},        {"_stop", stop_task},
                                         {"_current", current_task}, {"_where", where_task},
                                         {"_tasks", all_tasks},      {"_park", new_park},
                                         {"_task_hooks", set_hooks}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"wait", park_wait}, {"wake", park_wake}, {NULL, NULL}};

    luaL_newmetatable(L, PARK);
    lua_pushcfunction(L, park_gc);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
