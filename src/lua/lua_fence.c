/* Enters and leaves fences, and guards os.exit in them. lua_memory.c counts memory, lua_watch.c
 * limits time. */
#include "lua/lua_fence.h"

#include <lualib.h>

#include "lua/lua_error.h"
#include "lua/lua_memory.h"
#include "lua/lua_task.h"

enum { CLOSE_GRACE_BYTES = 1 << 20 };

/* -- memory ------------------------------------------------------------------------- */

ah_fence *ah_fence_counted(ah_fence *f)
{
    return f->shares ? f->shares : f;
}

size_t ah_fence_widen(ah_fence *f)
{
    ah_fence *counted = ah_fence_counted(f);
    size_t before = counted->memory;

    if (!before)
        return 0;
    if (counted->used > (int64_t)before)
        counted->memory = (size_t)counted->used;
    counted->memory += CLOSE_GRACE_BYTES;
    return before;
}

void ah_fence_narrow(ah_fence *f, size_t memory)
{
    ah_fence_counted(f)->memory = memory;
}

/* -- os.exit ------------------------------------------------------------------------------ */

static const char OS, NAME, GUARD; /* registry keys of: the table os, "exit", the guard */

enum {
    REAL = 1,
    SAVED = 2
}; /* upvalues of the guard: os.exit when opened; os.exit as found on entry */

static int guarded_exit(lua_State *L)
{
    const ah_task *t = ah_lua_of(L)->running;

    if (t && t->fence.no_exit)
        return ah_lua_raise(
            L, AH_USAGE,
            "os.exit would end the whole program and is refused in a tool's handler; "
            "return a value, return nil and a message, or raise an error");
    lua_pushvalue(L, lua_upvalueindex(REAL));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

void ah_lua_open_fence(lua_State *L)
{
    int top = lua_gettop(L);

    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE); /* -- loaded */
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &GUARD) == LUA_TNIL &&
        lua_getfield(L, top + 1, LUA_OSLIBNAME) == LUA_TTABLE) { /* -- loaded nil os */
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &OS);
        lua_pushliteral(L, "exit");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &NAME);
        lua_rawget(L, -2); /* -- loaded nil os exit */
        lua_pushnil(L);
        lua_pushcclosure(L, guarded_exit, 2);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &GUARD);
    }
    lua_settop(L, top);
}

/* -- guard os name exit    `exit` is the present os.exit. If there is no guard, pushes nothing and
 * returns false. */
static bool push_exit(lua_State *L)
{
    if (!lua_checkstack(L, 6) || lua_rawgetp(L, LUA_REGISTRYINDEX, &GUARD) == LUA_TNIL)
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &OS);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &NAME);
    lua_pushvalue(L, -1);
    lua_rawget(L, -3);
    return true;
}

/* Changes only values of existing keys, which takes no memory. */
static bool put_guard(lua_State *L)
{
    int top = lua_gettop(L);
    bool put = push_exit(L) && !lua_isnil(L, -1) && !lua_rawequal(L, -1, -4);

    if (put) {                             /* -- guard os name exit */
        lua_setupvalue(L, top + 1, SAVED); /* -- guard os name */
        lua_pushvalue(L, top + 1);
        lua_rawset(L, top + 2);
    }
    lua_settop(L, top);
    return put;
}

/* Restores os.exit, unless the code has replaced the guard by a function of its own. */
static void take_guard(lua_State *L)
{
    int top = lua_gettop(L);

    if (push_exit(L) && lua_rawequal(L, -1, -4)) {
        lua_pop(L, 1); /* -- guard os name */
        lua_getupvalue(L, top + 1, SAVED);
        lua_rawset(L, top + 2);
    }
    lua_settop(L, top);
}

void ah_lua_guard_exit(lua_State *L)
{
    ah_lua_open_fence(L);
    put_guard(L);
}

/* -- entering and leaving ------------------------------------------------------------------- */

/* True if code of the same call is around f: what f takes is counted there. */
static bool is_within(const ah_lua *h, ah_fence *f)
{
    const ah_lua_memory *m = ah_lua_memory_of(h->main);
    ah_fence *outer = m ? m->fence : NULL;

    while (outer && ah_fence_counted(outer) != ah_fence_counted(f))
        outer = outer->outer;
    return outer != NULL;
}

void ah_fence_enter(ah_lua *h, ah_fence *f)
{
    f->outer = NULL;
    if (!ah_fence_counted(f)->memory || is_within(h, f))
        return;
    f->entered = true;
    f->guards = f->no_exit && put_guard(h->caller);
    ah_lua_memory_enter(h, f);
}

void ah_fence_leave(ah_lua *h, ah_fence *f)
{
    if (!f->entered)
        return;
    f->entered = false;
    ah_lua_memory_leave(h->main, f);
    if (f->guards)
        take_guard(h->caller);
}

/* Only the outermost of the entered fences can have replaced another allocator. */
ah_fence *ah_fence_lift(ah_lua *h)
{
    ah_lua_memory *m = ah_lua_memory_of(h->main);
    ah_fence *inner = m ? m->fence : NULL;

    for (ah_fence *f = inner; f; f = f->outer)
        if (f->guards)
            take_guard(h->caller);
    if (m)
        m->fence = NULL;
    return inner;
}

void ah_fence_put(ah_lua *h, ah_fence *inner)
{
    ah_lua_memory *m = ah_lua_memory_of(h->main);

    if (!inner || !m)
        return;
    m->fence = inner;
    for (ah_fence *f = inner; f; f = f->outer)
        if (f->no_exit)
            f->guards = put_guard(h->caller);
}

/* Returns the fence that refused the memory, f or one around it; NULL: none did. */
static const ah_fence *refuser(const ah_fence *f, bool heap)
{
    for (; f; f = f->outer) {
        const ah_fence *by = f->shares ? f->shares : f;

        if (by->asked || (heap && by->heap_max))
            return by;
    }
    return NULL;
}

/* Only errors for the author of a tool name the limit of the whole heap; others are a plain out of
 * memory. */
bool ah_fence_failed(const ah_fence *f, int status, ah_err *err)
{
    const ah_fence *by = status == LUA_ERRMEM ? refuser(f, f->advice != NULL) : NULL;

    if (by && by->asked)
        ah_err_set(err, AH_INTERNAL,
                   "its code would have taken %lld bytes of memory; the limit is %zu%s",
                   (long long)by->asked, by->memory, by->advice ? by->advice : "");
    else if (by)
        ah_err_set(
            err, AH_INTERNAL,
            "there was no memory left for its code: all of Lua may have %zu bytes here; that is "
            "max_memory of the host's configuration, where a program sets another one",
            by->heap_max);
    return by != NULL;
}
