/* Makes tables of events, only here, and calls observers by ah_lua_call_as: an observer cannot
 * wait, and its error is reported as a warning. */
#include "lua/lua_observe.h"

#include <stdio.h>

#include "base/near.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_task.h"
#include "lua/lua_value.h"

/* -- events as tables ------------------------------------------------------------------ */

static void push_field(lua_State *L, const ah_field *f)
{
    switch (f->kind) {
    case AH_FIELD_STR:
        lua_pushlstring(L, f->s.p ? f->s.p : "", f->s.n);
        break;
    case AH_FIELD_INT:
        lua_pushinteger(L, f->i);
        break;
    case AH_FIELD_NUM:
        lua_pushnumber(L, f->d);
        break;
    case AH_FIELD_BOOL:
        lua_pushboolean(L, f->i != 0);
        break;
    case AH_FIELD_JSON:
        ah_lua_push_json(L, f->s);
        break;
    }
}

void ah_lua_push_event(lua_State *L, const ah_notice *e)
{
    lua_createtable(L, 0, (e->parent ? 4 : 3) + (int)e->n);
    lua_pushstring(L, ah_event_name(e->type));
    lua_setfield(L, -2, "type");
    if (e->run) {
        lua_pushinteger(L, e->run);
        lua_setfield(L, -2, "run");
    }
    if (e->parent) {
        lua_pushinteger(L, e->parent);
        lua_setfield(L, -2, "parent");
    }
    lua_pushnumber(L, (double)e->time / 1000);
    lua_setfield(L, -2, "time");
    for (size_t i = 0; i < e->n; i++) {
        push_field(L, &e->field[i]);
        lua_setfield(L, -2, e->field[i].name);
    }
}

/* (observer, event): calls the function for it. */
static int call_on(lua_State *L)
{
    const ah_observer *o = lua_touserdata(L, 1);
    const ah_notice *e = lua_touserdata(L, 2);

    if (lua_rawgeti(L, LUA_REGISTRYINDEX, o->on) == LUA_TTABLE)
        lua_getfield(L, -1, ah_event_name(e->type));
    ah_lua_push_event(L, e);
    lua_call(L, 1, 0);
    return 0;
}

static unsigned watched_by(const ah_watcher *w)
{
    if (!w->event)
        return 0;
    return w->content ? ~0u : ~(1u << AH_EVENT_CONTENT);
}

void ah_observer_event(ah_observer *o, ah_run *run, ah_agent *agent, const ah_notice *e)
{
    lua_State *L = o->lua->caller;
    char words[1200];
    ah_err err;

    if (o->watched >> e->type & 1)
        o->lua->program->watch(o->lua->embed, agent, e);
    if (o->queues)
        ah_event_hub_put(o->queues, e);
    if (!(o->types >> e->type & 1) || o->failing || !lua_checkstack(L, 4))
        return;
    lua_pushcfunction(L, call_on);
    lua_pushlightuserdata(L, o);
    lua_pushlightuserdata(L, (void *)(uintptr_t)e);
    if (ah_lua_call_as(o->lua, AH_CALLEE_OBSERVER, L, 2, 0, &err) == AH_OK)
        return;
    ah_print(words, sizeof words, "the observer of '%s' failed: %s", ah_event_name(e->type),
             err.message);
    o->failing = e->type == AH_EVENT_WARNING;
    if (!o->failing)
        ah_run_warn(run, ah_slice_of(words));
    o->failing = false;
}

/* -- records ----------------------------------------------------------------------------- */

/* (observer, level, line) */
static int call_log(lua_State *L)
{
    const ah_observer *o = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, o->log);
    lua_pushstring(L, lua_touserdata(L, 2));
    lua_pushstring(L, lua_touserdata(L, 3));
    lua_call(L, 2, 0);
    return 0;
}

static void on_record(void *ud, ah_log_level level, const char *line)
{
    ah_observer *o = ud;
    lua_State *L = o->lua->caller;
    ah_log_fn fn = o->records.fn;
    ah_err err;

    if (!lua_checkstack(L, 5))
        return;
    o->records.fn = NULL; /* errors in it are not logged to it */
    lua_pushcfunction(L, call_log);
    lua_pushlightuserdata(L, o);
    lua_pushlightuserdata(L, (void *)(uintptr_t)ah_log_level_name(level));
    lua_pushlightuserdata(L, (void *)(uintptr_t)line);
    if (ah_lua_call_as(o->lua, AH_CALLEE_LOG, L, 3, 0, &err) != AH_OK && !o->log_failed) {
        o->log_failed = true; /* reported only once, since it may fail for every record */
        ah_log_put(&o->lua->host->log, AH_LOG_WARNING, "the `log` function of a run failed: %s",
                   err.message);
    }
    o->records.fn = fn;
}

/* -- reading the fields ------------------------------------------------------------------------ */

/* Foreign names of events. */
static const struct {
    const char *found, *meant;
} called[] = {{"text", "content"},
              {"delta", "content"},
              {"token", "content"},
              {"text_delta", "content"},
              {"message", "content"},
              {"tool_call", "tool_started"},
              {"tool_start", "tool_started"},
              {"tool_use", "tool_started"},
              {"tool_end", "tool_invoked"},
              {"tool_result", "tool_invoked"},
              {"tool_output", "tool_invoked"},
              {"end", "done"},
              {"finish", "done"},
              {"complete", "done"},
              {"error", "done"},
              {"step", "tool_loop_iteration"},
              {"iteration", "tool_loop_iteration"}};

static ah_slice meant_by(ah_slice key)
{
    for (size_t i = 0; i < sizeof called / sizeof *called; i++)
        if (ah_slice_is(key, called[i].found))
            return ah_slice_of(called[i].meant);
    return (ah_slice){NULL, 0};
}

static void refuse_event(lua_State *L, ah_slice key, const char *what)
{
    ah_near near = {.to = key, .best = meant_by(key)};

    for (int i = 0; i < AH_EVENT_TYPES && !meant_by(key).p; i++)
        ah_near_offer(&near, ah_slice_of(ah_event_name((ah_event_type)i)));
    ah_lua_raise(L, AH_USAGE, "%s: there is no event '%.*s'%s%.*s%s", what, AH_FMT(key),
                 near.best.p ? " (did you mean '" : "; docs/reference/events.md lists them",
                 AH_FMT(near.best), near.best.p ? "'?)" : "");
}

ah_event_type ah_lua_event_type(lua_State *L, ah_slice name, const char *what)
{
    ah_event_type type = ah_event_type_of(name);

    if (type == AH_EVENT_TYPES)
        refuse_event(L, name, what);
    return type;
}

static void read_table(lua_State *L, ah_observer *o)
{
    lua_pushnil(L);
    while (lua_next(L, -2)) { /* -- on key value */
        ah_slice key;
        ah_event_type type;

        if (lua_type(L, -2) != LUA_TSTRING)
            ah_lua_raise(
                L, AH_USAGE,
                "on: found a value without a name; write on = function(event) ... end for all "
                "events, or on = { content = function(event) ... end } for some");
        key.p = lua_tolstring(L, -2, &key.n);
        type = ah_lua_event_type(L, key, "on");
        if (!lua_isfunction(L, -1))
            ah_lua_raise(L, AH_USAGE, "on: '%.*s' must be a function, found %s", AH_FMT(key),
                         luaL_typename(L, -1));
        o->types |= 1u << type;
        lua_pop(L, 1);
    }
}

static void read_on(lua_State *L, int idx, ah_observer *o)
{
    int type = lua_getfield(L, idx, "on");

    if (type == LUA_TFUNCTION)
        o->types = ~0u;
    else if (type == LUA_TTABLE)
        read_table(L, o);
    else if (type != LUA_TNIL)
        ah_lua_raise(L, AH_USAGE, "field 'on' must be a function or a table of functions, found %s",
                     luaL_typename(L, -1));
    if (type == LUA_TNIL)
        lua_pop(L, 1);
    else
        o->on = ah_lua_ref(L);
}

void ah_observer_init(ah_observer *o, ah_lua *h)
{
    *o = (ah_observer){.lua = h,
                       .on = LUA_NOREF,
                       .log = LUA_NOREF,
                       .watched = watched_by(&h->host->cfg.watcher),
                       .records = h->host->log};
}

void ah_observer_copy(lua_State *L, ah_observer *o, const ah_observer *from)
{
    o->on = ah_lua_copy_ref(L, from->on);
    o->log = ah_lua_copy_ref(L, from->log);
    o->types = from->types;
    o->records = from->records;
    if (o->log != LUA_NOREF)
        o->records.ud = o;
}

void ah_observer_clear(ah_observer *o)
{
    if (!o->lua)
        return;
    ah_lua_unref(o->lua, &o->on);
    ah_lua_unref(o->lua, &o->log);
    ah_event_hub_end(o->queues);
    o->queues = NULL;
    o->types = o->watched = 0;
    o->records.fn = NULL;
}

void ah_observer_read(lua_State *L, int idx, ah_observer *o)
{
    read_on(L, idx, o);
    if (!ah_lua_field_push(L, idx, "ah.run", "log", LUA_TFUNCTION))
        return;
    o->log = ah_lua_ref(L);
    o->records = (ah_log){
        .level = AH_LOG_DEBUG, .fn = on_record, .ud = o, .secrets = &o->lua->host->secrets};
}

/* -- ah.metrics ---------------------------------------------------------------------------- */

/* ah.metrics(): the host's counters, by name. */
static int metrics(lua_State *L)
{
    const ah_host *host = ah_lua_of(L)->host;

    lua_createtable(L, 0, AH_METRICS);
    for (int m = 0; m < AH_METRICS; m++) {
        lua_pushinteger(L, host->metrics.count[m]);
        lua_setfield(L, -2, ah_metric_name((ah_metric)m));
    }
    return 1;
}

/* -- progress of ah.map ------------------------------------------------------------------------ */

/* Emits an event of the run in whose handler the code is, else one without a run to the host's
 * watcher. A run whose code is being stopped gets no event. */
static void emit(ah_lua *h, ah_event_type type, const ah_field *field, size_t n)
{
    const ah_task *t = h->actor;
    ah_notice e = {.type = type, .time = ah_host_wall(h->host), .field = field, .n = n};

    if (t && t->job.of && !t->watch.closing)
        ah_run_emit(ah_driver_run_run(t->job.of), type, field, n);
    else if (!(t && t->job.of) && h->host->cfg.watcher.event)
        h->program->watch(h->embed, NULL, &e);
}

/* ah._map_progress(map, total, done, running, failed, tokens, seconds, ended, cost, left): cost and
 * left may be nil. */
static int map_progress(lua_State *L)
{
    static const char *const counts[] = {"map", "total", "done", "running", "failed", "tokens"};
    enum { COUNTS = sizeof counts / sizeof *counts };
    ah_field field[COUNTS + 4];
    size_t n = 0;

    for (int i = 0; i < COUNTS; i++)
        field[n++] = (ah_field)AH_F_INT(counts[i], luaL_checkinteger(L, i + 1));
    field[n++] = (ah_field)AH_F_NUM("seconds", luaL_checknumber(L, COUNTS + 1));
    field[n++] = (ah_field)AH_F_BOOL("ended", lua_toboolean(L, COUNTS + 2));
    if (lua_isnumber(L, COUNTS + 3))
        field[n++] = (ah_field)AH_F_NUM("cost", lua_tonumber(L, COUNTS + 3));
    if (lua_isnumber(L, COUNTS + 4))
        field[n++] = (ah_field)AH_F_NUM("left", lua_tonumber(L, COUNTS + 4));
    emit(ah_lua_of(L), AH_EVENT_MAP_PROGRESS, field, n);
    return 0;
}

void ah_lua_open_metrics(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"metrics", metrics}, {"_map_progress", map_progress}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
