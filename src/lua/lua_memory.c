/* An allocator around another one, only for Lua's blocks: memory of the core is not counted. */
#include "lua/lua_memory.h"

#include "lua/lua_fence.h"
#include "lua/lua_watch.h"

enum { LARGE = 256 << 10 }; /* bytes of a block on which a call into C may work for long */

/* Objects fail at the limit, after a collection. Blocks without a type may be buffers of string
 * functions, which would give up at once, so they get a quarter more: the garbage is then collected
 * when the string is made from the buffer. */
static bool is_fenced(const ah_lua_memory *m, const ah_fence *f, bool typed, int64_t more)
{
    int64_t limit = (int64_t)f->memory + (typed ? 0 : (int64_t)f->memory / 4);

    return f->used + more > limit && m->used + more - f->before > limit;
}

/* Returns the fence that refuses the block; NULL: none does. */
static ah_fence *too_small(const ah_lua_memory *m, bool typed, int64_t more)
{
    for (ah_fence *f = m->fence; f; f = f->outer) {
        ah_fence *c = ah_fence_counted(f);

        if (c->used + more > (int64_t)c->memory && is_fenced(m, c, typed, more))
            return c;
    }
    return NULL;
}

static void forget(ah_fence *f)
{
    for (; f; f = f->outer) {
        ah_fence *c = ah_fence_counted(f);

        c->asked = 0;
        c->heap_max = 0;
    }
}

/* Each refusal costs a collection, and code may try again many times between two looks at the
 * clock: so the clock is read soon. */
static void *refuse(ah_lua_memory *m, ah_fence *f, int64_t more)
{
    forget(m->fence);
    f->asked = f->used + more;
    ah_watch_soon(m->lua, false);
    return NULL;
}

static void count(ah_lua_memory *m, int64_t more)
{
    int64_t heap = m->used += more;

    for (ah_fence *f = m->fence; f; f = f->outer) {
        ah_fence *c = ah_fence_counted(f);
        int64_t used = c->used + more;

        c->used = used > 0 ? used : 0;
        if (heap < c->before)
            c->before = heap;
    }
}

/* Fails for lack of memory or at the limit of the whole heap. */
static void *fail(const ah_lua_memory *m, int64_t more)
{
    forget(m->fence);
    if (m->fence && m->max && m->used + more > (int64_t)m->max)
        ah_fence_counted(m->fence)->heap_max = m->max;
    return NULL;
}

/* Shrinking a block never fails for a limit. */
void *ah_lua_alloc(void *ud, void *ptr, size_t old, size_t size)
{
    ah_lua_memory *m = ud;
    int64_t more = (int64_t)size - (int64_t)(ptr ? old : 0);
    void *p;

    if (more > 0) {
        bool typed = !ptr && old != 0; /* without a block, `old` is the type of the new object */
        ah_fence *f = too_small(m, typed, more);

        if (f)
            return refuse(m, f, more);
        if (m->max && m->used + more > (int64_t)m->max)
            return fail(m, more);
        if (size >= LARGE)
            ah_watch_soon(m->lua, true);
    }
    p = m->alloc(m->ud, ptr, old, size);
    if (!p && size)
        return fail(m, more);
    count(m, more);
    return p;
}

static int64_t heap_size(lua_State *L)
{
    return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + lua_gc(L, LUA_GCCOUNTB);
}

ah_lua_memory *ah_lua_memory_of(lua_State *L)
{
    void *ud;

    return lua_getallocf(L, &ud) == ah_lua_alloc ? ud : NULL;
}

void ah_lua_memory_enter(ah_lua *h, ah_fence *f)
{
    lua_State *L = h->main;
    ah_fence *c = ah_fence_counted(f);
    void *ud;
    lua_Alloc alloc = lua_getallocf(L, &ud);

    f->laid = alloc != ah_lua_alloc;
    f->heap = f->laid ? &h->memory : ud;
    if (f->laid) {
        h->memory = (ah_lua_memory){.alloc = alloc, .ud = ud, .used = heap_size(L)};
        lua_setallocf(L, ah_lua_alloc, &h->memory);
    }
    f->heap->lua = h;
    if (!c->began)
        c->before = f->heap->used;
    c->began = true;
    f->outer = f->heap->fence;
    f->heap->fence = f;
}

void ah_lua_memory_leave(lua_State *L, ah_fence *f)
{
    f->heap->fence = f->outer;
    if (f->laid)
        lua_setallocf(L, f->heap->alloc, f->heap->ud);
}
