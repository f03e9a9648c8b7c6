/* The task of `on_lost`. It is call->task while it runs. */
#include "lua/lua_lost.h"

#include "lua/lua_error.h"
#include "lua/lua_hooks.h"
#include "lua/lua_host.h"
#include "lua/lua_task.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"

enum { MAX_VALUE = 64 << 20 };

typedef struct search {
    ah_lua *lua;
    ah_call *call;
    ah_slice key, arguments; /* while the task is made */
    ah_task *task;
} search;

/* Ends the search. `value`: checked JSON; .p NULL: none. */
static void end(search *s, ah_found how, ah_slice value)
{
    ah_lua *h = s->lua;
    ah_call *call = s->call;

    call->task = NULL;
    ah_free(&h->mem, s);
    ah_call_found(call, how, value, ah_host_now(h->host));
    ah_driver_run_wake(ah_run_owner(call->run));
}

static void warn(const search *s, const char *why)
{
    char words[AH_MAX_MESSAGE + 200];

    ah_print(words, sizeof words,
             "`on_lost` of tool '%s' failed, and the outcome of the call stays unknown: %s",
             s->call->slot->name->data, why);
    ah_run_warn(s->call->run, ah_slice_of(words));
}

/* Results: true, value: it has happened; false: it has not; nil: unknown. */
static void settled(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;
    int first = lua_gettop(L) - nresults + 1;
    search *s = t->ud;
    ah_found how = AH_FOUND_UNKNOWN;
    ah_slice value = {NULL, 0};
    ah_buf *b;
    ah_err err;

    lua_settop(L, first + 1);
    b = ah_lua_push_buf(L, MAX_VALUE);
    if (lua_isboolean(L, first))
        how = lua_toboolean(L, first) ? AH_FOUND_DONE : AH_FOUND_UNDONE;
    else if (!lua_isnil(L, first))
        warn(s, "it must return true and the result, false, or nil");
    if (how == AH_FOUND_DONE && !lua_isnil(L, first + 1)) {
        if (ah_lua_to_json(L, first + 1, b->mem, b, &err) == AH_OK) {
            value = ah_buf_slice(b);
        } else {
            warn(s, err.message);
            how = AH_FOUND_UNKNOWN;
        }
    }
    t->told = true; /* nothing raises from here on */
    t->over = true;
    end(s, how, value);
}

static void failed(ah_task *t, const ah_err *err)
{
    search *s = t->ud;

    warn(s, err->message);
    t->over = true;
    end(s, AH_FOUND_UNKNOWN, (ah_slice){NULL, 0});
}

/* (search): makes the task for on_lost(key, arguments) */
static int make_task(lua_State *L)
{
    search *s = lua_touserdata(L, 1);
    ah_task *t;

    ah_lua_push_on_lost(L, s->call->tool);
    if (!lua_isfunction(L, -1))
        return 0;
    lua_pushlstring(L, s->key.p ? s->key.p : "", s->key.n);
    ah_lua_push_json(L, s->arguments.p ? s->arguments : ah_slice_of("{}"));
    t = ah_task_new(s->lua, L, 2, ah_run_owner(s->call->run));
    t->settled = settled;
    t->failed = failed;
    t->ud = s;
    s->task = t;
    return 0;
}

void ah_lua_find_lost(void *ud, ah_call *call, ah_slice key, ah_slice arguments)
{
    ah_lua *h = ((const ah_lua_hooks *)ud)->lua;
    lua_State *L = h->caller;
    search *s;
    ah_err err;

    if (call->tool->on_lost == AH_LOST_ASK) {
        h->runs->ask_lost(h, call, arguments);
        return;
    }
    s = ah_alloc(&h->mem, sizeof *s);
    if (!s) {
        ah_call_found(call, AH_FOUND_UNKNOWN, (ah_slice){NULL, 0}, ah_host_now(h->host));
        return;
    }
    *s = (search){.lua = h, .call = call, .key = key, .arguments = arguments};
    call->task = s;
    ah_err_set(&err, AH_INTERNAL, "the tool has no function");
    if (lua_checkstack(L, 4)) {
        lua_pushcfunction(L, make_task);
        lua_pushlightuserdata(L, s);
        ah_lua_call(h, L, 1, 0, &err);
    }
    if (s->task) { /* the task exists, even if making it took too long */
        ah_task_begin(s->task);
        return;
    }
    warn(s, err.message);
    end(s, AH_FOUND_UNKNOWN, (ah_slice){NULL, 0});
}

void ah_lua_stop_lost(void *ud, ah_call *call)
{
    search *s = call->task;
    ah_task *t;

    if (call->tool->on_lost == AH_LOST_ASK) {
        ((const ah_lua_hooks *)ud)->lua->runs->stop_ask_lost(call);
        return;
    }
    if (!s)
        return;
    t = s->task;
    call->task = NULL;
    ah_free(&s->lua->mem, s);
    if (t)
        ah_task_stop(t);
}
