/* ah._later(f, seconds): calls f soon, in a task of its own, which may wait. The task is ended
 * after that many seconds, by stop(), or with the host. Errors of f are logged. */
#include "lua/lua_later.h"

#include "base/seconds.h"
#include "lua/lua_host.h"
#include "lua/lua_task.h"

static const char LATER[] = "agenthost.later";

/* Held as long as its task, which keeps it: an object made by a finalizer is not finalized
 * itself. */
typedef struct later {
    ah_lua_object held;
    ah_task *task; /* NULL: it has ended */
    ah_timer timer;
    ah_job job; /* ends it in a job, since closing calls functions, which a timer must not */
} later;

static void forget(later *l)
{
    ah_lua_let_go(&l->held);
    ah_timer_unset(&l->timer);
    ah_job_cancel(&l->job);
}

/* The task frees itself. */
static void ended(ah_task *t)
{
    later *l = t->ud;

    l->task = NULL;
    forget(l);
}

static void settled(ah_task *t, int nresults)
{
    (void)nresults;
    ended(t);
}

static void failed(ah_task *t, const ah_err *err)
{
    (void)err;
    ended(t);
}

static void drop(ah_lua_object *o)
{
    forget((later *)(void *)((char *)o - offsetof(later, held)));
}

static void stop(later *l)
{
    ah_task *t = l->task;

    l->task = NULL;
    forget(l);
    if (t)
        ah_task_stop(t);
}

static void on_job(ah_job *job)
{
    stop((later *)(void *)((char *)job - offsetof(later, job)));
}

static void timed_out(ah_timer *timer)
{
    later *l = (later *)(void *)((char *)timer - offsetof(later, timer));

    if (l->task)
        ah_job_post(l->task->lua->host, &l->job);
}

static int later_stop(lua_State *L)
{
    stop(luaL_checkudata(L, 1, LATER));
    return 0;
}

/* seconds: 0 or nil for no limit. */
static int new_later(lua_State *L)
{
    double seconds = luaL_optnumber(L, 2, 0);
    ah_lua *h = ah_lua_of(L);
    later *l;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    l = lua_newuserdatauv(L, sizeof *l, 0);
    *l = (later){.held.drop = drop, .timer.fn = timed_out, .job.fn = on_job};
    luaL_setmetatable(L, LATER);
    lua_insert(L, 1); /* -- later f */
    l->task = ah_task_new(h, L, 0, NULL);
    l->task->settled = settled;
    l->task->failed = failed;
    l->task->ud = l;
    lua_pushvalue(L, 1);
    ah_task_keep(L, l->task);
    ah_lua_hold(h, &l->held);
    if (seconds > 0)
        ah_timer_set(h->host->loop, &l->timer, ah_host_now(h->host) + ah_ms_of(seconds));
    ah_job_post(h->host, &l->task->job);
    return 1;
}

void ah_lua_open_later(lua_State *L)
{
    static const luaL_Reg methods[] = {{"stop", later_stop}, {NULL, NULL}};

    luaL_newmetatable(L, LATER);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_later);
    lua_setfield(L, -2, "_later");
}
