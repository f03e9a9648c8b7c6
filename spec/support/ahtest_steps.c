/* Between the recorder of an agent and its keeper, for the specs of steps:
 *   die(agent, n): the process dies when it would record the n-th record of steps from now on: this
 *       record and all later ones are lost, no wait for a record ends, and the run is cancelled.
 *       n 0: it dies never. Returns an object:
 *   tap:dead(): true if it has died.
 *   tap:fail(): from now on no wait for the record of a step succeeds. */
#include <string.h>

#include "host/driver.h"
#include "lua/lua_agent.h"
#include "lua/lua_host.h"
#include "run/run.h"
#include "run/step.h"
#include "support/ahtest.h"

static const char TAP[] = "ahtest.tap";

typedef struct tap {
    ah_job job; /* first */
    ah_record_sink to;
    ah_lua_agent *agent;
    lua_Integer n, die;
    bool dead, fails;
    ah_call *call; /* the wait that fails */
    uint32_t id;
} tap;

static void put(void *ud, ah_record_kind kind, ah_slice said, ah_slice kept)
{
    tap *t = ud;

    if (kind == AH_RECORD_STEP || kind == AH_RECORD_STEP_STARTED)
        t->n++;
    if (t->die && t->n == t->die && !t->dead) {
        t->dead = true;
        ah_job_post(t->agent->lua->host, &t->job);
    }
    if (!t->dead)
        t->to.put(t->to.ud, kind, said, kept);
}

static void flush(void *ud, ah_run *run, ah_call *call, uint32_t id, bool effect)
{
    tap *t = ud;

    if (t->fails && call && id >> 30) {
        t->call = call;
        t->id = id;
        ah_job_post(t->agent->lua->host, &t->job);
    } else if (!t->dead) {
        t->to.flush(t->to.ud, run, call, id, effect);
    }
}

static void forget(void *ud, ah_run *run, ah_call *call)
{
    tap *t = ud;

    t->call = NULL;
    t->to.forget(t->to.ud, run, call);
}

/* Ends the run. It waits for no record of its end, which would be lost. */
static void on_job(ah_job *job)
{
    tap *t = (tap *)(void *)job;
    ah_driver_run *run = ah_lua_agent_at_work(t->agent);
    ah_err err;

    if (t->dead && run) {
        t->agent->stream.recorder.broken = AH_CANCELLED;
        ah_driver_run_cancel(run, AH_CANCELLED, "the process has died");
    } else if (t->call) {
        ah_err_set(&err, AH_STORE, "the disk is full");
        ah_run_recorded(t->call->run, t->call, t->id, &err);
    }
}

static int is_dead(lua_State *L)
{
    lua_pushboolean(L, ((tap *)luaL_checkudata(L, 1, TAP))->dead);
    return 1;
}

static int fail(lua_State *L)
{
    ((tap *)luaL_checkudata(L, 1, TAP))->fails = true;
    return 0;
}

static int die(lua_State *L)
{
    ah_lua_agent *a = ah_lua_to_agent(L, 1);
    lua_Integer n = luaL_optinteger(L, 2, 0);
    tap *t;

    luaL_argcheck(L, a && a->stream.bound, 1, "no agent with a store");
    t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (tap){.job.fn = on_job, .to = a->stream.recorder.sink, .agent = a, .die = n};
    luaL_setmetatable(L, TAP);
    lua_pushvalue(L, -1);
    luaL_ref(L, LUA_REGISTRYINDEX); /* it stays to the end */
    a->stream.recorder.sink = (ah_record_sink){put, flush, forget, t};
    return 1;
}

/* reenter(on): from now on as with AGENTHOST_REENTER=always. */
static int reenter(lua_State *L)
{
    ah_lua_of(L)->reenter = lua_toboolean(L, 1);
    return 0;
}

void ahtest_open_steps(lua_State *L)
{
    static const luaL_Reg methods[] = {{"dead", is_dead}, {"fail", fail}, {NULL, NULL}};

    luaL_newmetatable(L, TAP);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, die);
    lua_setfield(L, -2, "die");
    lua_pushcfunction(L, reenter);
    lua_setfield(L, -2, "reenter");
}
