/* Records of conversations for the specs:
 *   store_records(store, stream) -> { { kind, said, kept }, ... }; kept may be absent
 *   store_fill(store, stream, records, n): appends the first n records to a new stream
 *   tap(agent, options): between the agent's recorder and its keeper. options: log (a list that
 *       gets "put KIND", "flush", "flush effect", "forget" in order), fail (the number of the flush
 *       that fails; from it on nothing is appended), hold (the number of the flush that never
 *       ends) */
#include <stdlib.h>
#include <string.h>

#include "host/driver.h"
#include "lua/lua_agent.h"
#include "lua/lua_store.h"
#include "support/ahtest.h"

/* -- streams ----------------------------------------------------------------------------------- */

static void set_slice(lua_State *L, const char *name, ah_slice s)
{
    if (!s.p)
        return;
    lua_pushlstring(L, s.p, s.n);
    lua_setfield(L, -2, name);
}

static ah_status push_record(void *ud, const ah_store_record *r, ah_err *err)
{
    lua_State *L = ud;

    (void)err;
    lua_newtable(L);
    set_slice(L, "kind", r->kind);
    set_slice(L, "said", r->said);
    set_slice(L, "kept", r->kept);
    lua_seti(L, -2, luaL_len(L, -2) + 1);
    return AH_OK;
}

static ah_open_store *open_store(lua_State *L)
{
    ah_open_store *out = NULL;
    ah_err err;

    if (ah_lua_to_store(L, 1, &out, &err) != AH_OK)
        luaL_error(L, "%s", err.message);
    return out;
}

static int store_records(lua_State *L)
{
    ah_open_store *open = open_store(L);
    ah_store *s = ah_open_store_engine(open);
    ah_err err;
    ah_status st;

    lua_newtable(L);
    st = s->vt->read(s, ah_slice_of(luaL_checkstring(L, 2)), 1, push_record, L, &err);
    ah_open_store_unref(open);
    return st == AH_OK ? 1 : luaL_error(L, "%s", err.message);
}

static ah_slice field(lua_State *L, const char *name)
{
    ah_slice s = {NULL, 0};

    if (lua_getfield(L, -1, name) == LUA_TSTRING)
        s.p = lua_tolstring(L, -1, &s.n);
    lua_pop(L, 1);
    return s;
}

typedef struct filling {
    ah_store_append append; /* first */
    ah_err err;
    bool done;
} filling;

static void filled(ah_store_append *a, const ah_err *err)
{
    filling *f = (filling *)(void *)a;

    f->err = *err;
    f->done = true;
}

static ah_err append(ah_store *s, const ah_store_batch *batch)
{
    filling f = {.append = {.batch = batch, .n = 1, .done = filled}};

    s->vt->append(s, &f.append);
    while (!f.done) {
        s->vt->wait(s);
        s->vt->poll(s);
    }
    return f.err;
}

static int store_fill(lua_State *L)
{
    ah_open_store *open = open_store(L);
    ah_store *s = ah_open_store_engine(open);
    size_t n = (size_t)luaL_checkinteger(L, 4);
    ah_store_record *record = calloc(n + 1, sizeof *record);
    ah_store_batch batch = {
        .stream = ah_slice_of(luaL_checkstring(L, 2)), .record = record, .n = n};
    ah_err err = {0};

    for (size_t i = 0; i < n; i++) {
        lua_geti(L, 3, (lua_Integer)i + 1);
        record[i] = (ah_store_record){.number = (int64_t)i + 1,
                                      .time = 1000 + (int64_t)i,
                                      .kind = field(L, "kind"),
                                      .said = field(L, "said"),
                                      .kept = field(L, "kept")};
        lua_pop(L, 1);
    }
    if (s->vt->hold(s, batch.stream, false, &batch.fence, &err) == AH_OK) {
        err = append(s, &batch);
        s->vt->release(s, batch.stream);
    }
    free(record);
    ah_open_store_unref(open);
    return err.status == AH_OK ? 0 : luaL_error(L, "%s", err.message);
}

/* -- between recorder and keeper ------------------------------------------------------------------
 */

typedef struct tap {
    ah_job job; /* first */
    ah_record_sink to;
    lua_State *L;
    ah_host *host;
    int log;
    lua_Integer flushes, fail, hold;
    ah_run *run;
    ah_call *call;
    uint32_t id;
} tap;

static void note(tap *t, const char *what, const char *more)
{
    lua_rawgeti(t->L, LUA_REGISTRYINDEX, t->log);
    if (lua_istable(t->L, -1)) {
        lua_pushfstring(t->L, "%s%s", what, more);
        lua_seti(t->L, -2, luaL_len(t->L, -2) + 1);
    }
    lua_pop(t->L, 1);
}

static bool is_broken(const tap *t)
{
    return t->fail && t->flushes >= t->fail;
}

static void put(void *ud, ah_record_kind kind, ah_slice said, ah_slice kept)
{
    tap *t = ud;

    note(t, "put ", ah_record_name(kind));
    if (!is_broken(t))
        t->to.put(t->to.ud, kind, said, kept);
}

static void tell(ah_job *job)
{
    tap *t = (tap *)(void *)job;
    ah_err err;

    if (!t->run)
        return;
    ah_err_set(&err, AH_STORE, "the disk is full");
    ah_run_recorded(t->run, t->call, t->id, &err);
}

static void flush(void *ud, ah_run *run, ah_call *call, uint32_t id, bool effect)
{
    tap *t = ud;

    note(t, "flush", effect ? " effect" : "");
    t->flushes++;
    if (t->flushes == t->hold)
        return;
    if (!is_broken(t)) {
        t->to.flush(t->to.ud, run, call, id, effect);
        return;
    }
    t->run = run;
    t->call = call;
    t->id = id;
    ah_job_post(t->host, &t->job);
}

static void forget(void *ud, ah_run *run, ah_call *call)
{
    tap *t = ud;

    note(t, "forget", "");
    t->run = NULL;
    t->to.forget(t->to.ud, run, call);
}

static lua_Integer number(lua_State *L, const char *name)
{
    lua_Integer n = lua_getfield(L, 2, name) == LUA_TNIL ? 0 : lua_tointeger(L, -1);

    lua_pop(L, 1);
    return n;
}

static int tap_agent(lua_State *L)
{
    ah_lua_agent *a = ah_lua_to_agent(L, 1);
    tap *t;

    luaL_argcheck(L, a && a->stream.bound, 1, "no agent with a store");
    t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (tap){.job.fn = tell,
               .to = a->stream.recorder.sink,
               .host = a->lua->host,
               .fail = number(L, "fail"),
               .hold = number(L, "hold")};
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    t->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    lua_getfield(L, 2, "log");
    t->log = luaL_ref(L, LUA_REGISTRYINDEX);
    luaL_ref(L, LUA_REGISTRYINDEX); /* it stays to the end */
    a->stream.recorder.sink = (ah_record_sink){put, flush, forget, t};
    return 0;
}

void ahtest_open_record(lua_State *L)
{
    lua_pushcfunction(L, store_records);
    lua_setfield(L, -2, "store_records");
    lua_pushcfunction(L, store_fill);
    lua_setfield(L, -2, "store_fill");
    lua_pushcfunction(L, tap_agent);
    lua_setfield(L, -2, "tap");
}
