/* An allocator around another one, for Lua's blocks alone: what the core allocates for itself is
 * not counted. A block that shrinks never fails. */
#include "lua/lua_memory.h"

#include "lua/lua_fence.h"

/* Objects fail at the limit, after a collection. Blocks without a type may be buffers of
 * string functions, which give up at once: a quarter more lets the garbage be collected
 * for the string that such a buffer becomes. */
static bool is_fenced(const ah_lua_memory *m, bool typed, int64_t more)
{
    const ah_fence *f = m->fence;
    int64_t limit = (int64_t)f->memory + (typed ? 0 : (int64_t)f->memory / 4);

    return f->used + more > limit && m->used + more - f->before > limit;
}

/* Each refusal costs a collection: code that goes on in spite of them would have thousands
 * between two looks at the clock. */
static void *refuse(ah_fence *f, int64_t more)
{
    f->asked = f->used + more;
    f->heap_max = 0;
    if (lua_gethook(f->thread) == f->hook)
        lua_sethook(f->thread, f->hook, LUA_MASKCOUNT, 1);
    return NULL;
}

static void count(ah_lua_memory *m, int64_t more)
{
    ah_fence *f = m->fence;

    m->used += more;
    if (!f)
        return;
    f->used = f->used + more > 0 ? f->used + more : 0;
    if (m->used < f->before)
        f->before = m->used;
}

/* What shrinks never fails. */
void *ah_lua_alloc(void *ud, void *ptr, size_t old, size_t size)
{
    ah_lua_memory *m = ud;
    bool typed = !ptr && old != 0; /* then `old` is the type of what is made */
    int64_t more = (int64_t)size - (int64_t)(ptr ? old : 0);
    void *p = NULL;

    if (more > 0 && m->fence && is_fenced(m, typed, more))
        return refuse(m->fence, more);
    if (more <= 0 || !m->max || m->used + more <= (int64_t)m->max)
        p = m->alloc(m->ud, ptr, old, size);
    if (p || !size) {
        count(m, more);
    } else if (m->fence) {
        m->fence->asked = 0;
        m->fence->heap_max = m->max && m->used + more > (int64_t)m->max ? m->max : 0;
    }
    return p;
}

static int64_t heap_size(lua_State *L)
{
    return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + lua_gc(L, LUA_GCCOUNTB);
}

void ah_lua_memory_enter(lua_State *L, ah_lua_memory *own, ah_fence *f)
{
    void *ud;
    lua_Alloc alloc = lua_getallocf(L, &ud);

    f->laid = alloc != ah_lua_alloc;
    f->heap = f->laid ? own : ud;
    if (f->laid) {
        *own = (ah_lua_memory){.alloc = alloc, .ud = ud, .used = heap_size(L)};
        lua_setallocf(L, ah_lua_alloc, own);
    }
    if (!f->began)
        f->before = f->heap->used;
    f->began = true;
    f->heap->fence = f;
}

void ah_lua_memory_leave(lua_State *L, ah_fence *f)
{
    f->heap->fence = NULL;
    if (f->laid)
        lua_setallocf(L, f->heap->alloc, f->heap->ud);
}
