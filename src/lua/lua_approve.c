/* Approvals: a call that a policy wants approved waits for `approve`, which is a task. */
#include "lua/lua_approve.h"

#include "lua/lua_hooks.h"
#include "lua/lua_value.h"

enum { MAX_CHANGED = 16 << 20 };

static void end_asking(ah_task *t, bool approved, ah_slice args, ah_slice why)
{
    ah_call *call = t->ud;

    call->task = NULL;
    ah_call_approved(call, approved, args, why, ah_host_now(t->lua->host));
    ah_driven_wake(t->job.of);
}

/* true[, arguments] or false[, why] */
static void approved(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;
    int first = lua_gettop(L) - nresults + 1;
    bool yes = nresults > 0 && lua_toboolean(L, first);
    ah_slice why = {NULL, 0}, args = {NULL, 0};
    ah_buf *b = ah_lua_push_buf(L, MAX_CHANGED);
    ah_err err;

    luaL_checkstack(L, 8, "an approval");
    if (!yes && nresults > 1 && ah_lua_put_reason(L, first + 1, b)) {
        if (!ah_buf_ok(b))
            ah_lua_raise_nomem(L);
        why = ah_buf_slice(b);
    }
    if (yes && nresults > 1 && !lua_isnil(L, first + 1)) {
        if (ah_lua_to_json(L, first + 1, b->mem, b, &err) != AH_OK) {
            end_asking(t, false, args, ah_slice_of(err.message));
            return;
        }
        args = ah_buf_slice(b);
    }
    end_asking(t, yes, args, why);
    ah_buf_clear(b);
}

static void not_approved(ah_task *t, const ah_err *err)
{
    ah_slice why = ah_slice_of(err->message);

    end_asking(t, false, (ah_slice){NULL, 0}, ah_utf8_valid(why) ? why : ah_slice_of("it failed"));
}

typedef struct asking {
    ah_lua_hooks *hooks;
    ah_call *call;
    ah_slice why;
} asking;

/* (asking): a task for approve { name, id, arguments, parent_call, reason, run } */
static int make_asking(lua_State *L)
{
    const asking *a = lua_touserdata(L, 1);
    const ah_slot *slot = a->call->slot;
    ah_task *t;

    lua_rawgeti(L, LUA_REGISTRYINDEX, a->hooks->approve);
    lua_createtable(L, 0, 6);
    lua_pushlstring(L, slot->name->data, slot->name->len);
    lua_setfield(L, -2, "name");
    lua_pushlstring(L, slot->id->data, slot->id->len);
    lua_setfield(L, -2, "id");
    if (a->call->parent_call) {
        lua_pushlstring(L, a->call->parent_call->data, a->call->parent_call->len);
        lua_setfield(L, -2, "parent_call");
    }
    ah_lua_push_json(L, ah_text_slice(a->call->args));
    lua_setfield(L, -2, "arguments");
    lua_pushlstring(L, a->why.p, a->why.n);
    lua_setfield(L, -2, "reason");
    lua_pushinteger(L, ah_run_id(a->call->run));
    lua_setfield(L, -2, "run");
    t = ah_task_new(a->hooks->lua, L, 1, ah_run_owner(a->call->run));
    t->settled = approved;
    t->failed = not_approved;
    t->ud = a->call;
    a->call->task = t;
    return 0;
}

void ah_lua_approve(void *ud, ah_call *call, ah_slice why)
{
    ah_lua_hooks *s = ud;
    asking a = {s, call, why};
    lua_State *L = s->lua->caller;
    ah_err err;

    lua_pushcfunction(L, make_asking);
    lua_pushlightuserdata(L, &a);
    if (ah_lua_call(s->lua, L, 1, 0, &err) == AH_OK || call->task) /* made, if late */
        ah_task_begin(call->task);
    else
        ah_call_approved(call, false, (ah_slice){NULL, 0}, ah_slice_of(err.message),
                         ah_host_now(s->lua->host));
}

void ah_lua_stop_approving(void *ud, ah_call *call)
{
    ah_task *t = call->task;

    (void)ud;
    call->task = NULL;
    if (t)
        ah_task_stop(t);
}
