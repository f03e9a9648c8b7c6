/* Lua files that are data: a chunk of text that returns one value. It runs in a Lua state of its
 * own without libraries, globals and metatables, so it has nothing to call, catch or keep. A hook
 * ends it when its time is over; the allocator limits its memory. It has no connection to a
 * script's state. */
#include "lua/lua_data.h"

#include "io/clock.h"
#include "lua/lua_value.h"

enum {
    STEPS = 10, /* instructions between looks: one may compare or join megabytes */
    SECONDS = 2
};
static const size_t MAX_MEMORY = (size_t)64 << 20;

typedef struct bounds {
    const ah_mem *mem;
    size_t used;
    bool refused; /* an allocation beyond MAX_MEMORY was refused */
    int64_t until;
} bounds;

static void *allocate(void *ud, void *block, size_t old, size_t size)
{
    bounds *b = ud;
    void *p;

    if (!block)
        old = 0; /* without a block, `old` is a kind of object */
    if (size > old && size - old > MAX_MEMORY - b->used) {
        b->refused = true;
        return NULL;
    }
    p = ah_resize(b->mem, block, size);
    if (p || size == 0)
        b->used = b->used - old + size;
    return p;
}

static bounds *bounds_of(lua_State *L)
{
    void *ud;

    lua_getallocf(L, &ud);
    return ud;
}

static void look_at_clock(lua_State *L, lua_Debug *ar)
{
    const bounds *b = bounds_of(L);

    (void)ar;
    if (ah_clock_ns() >= b->until)
        luaL_error(L, "takes longer than %d seconds", SECONDS);
}

/* Removes a byte order mark and a first line that begins with #, as Lua does when it reads
 * files. */
static ah_slice body_of(ah_slice text)
{
    const char *end;

    if (ah_slice_begins(text, "\xef\xbb\xbf"))
        text = (ah_slice){text.p + 3, text.n - 3};
    if (text.n && text.p[0] == '#') {
        end = memchr(text.p, '\n', text.n);
        text = end ? (ah_slice){end, text.n - (size_t)(end - text.p)} : (ah_slice){text.p, 0};
    }
    return text;
}

typedef struct chunk {
    ah_slice text;
    const char *name;
} chunk;

/* (chunk) -> its value. Called under lua_pcall, because reading may raise. */
static int run(lua_State *L)
{
    const chunk *c = lua_touserdata(L, 1);
    ah_slice body = body_of(c->text);
    const char *name = lua_pushfstring(L, "@%s", c->name);

    lua_sethook(L, look_at_clock, LUA_MASKCOUNT, STEPS);
    if (luaL_loadbufferx(L, body.p, body.n, name, "t") != LUA_OK)
        return lua_error(L);
    lua_newtable(L);
    lua_setupvalue(L, -2, 1);
    lua_call(L, 0, 1);
    lua_sethook(L, NULL, 0, 0);
    return 1;
}

static ah_status failed(lua_State *L, int rc, ah_err *err)
{
    const bounds *b = bounds_of(L);
    const char *words = lua_tostring(L, -1);

    if (rc == LUA_ERRMEM && !b->refused)
        return ah_err_nomem(err);
    if (rc == LUA_ERRMEM)
        return ah_err_set(err, AH_USAGE, "takes more than %zu bytes of memory", MAX_MEMORY);
    return ah_err_set(err, AH_USAGE, "%s", words ? words : "an error that is no text");
}

ah_status ah_lua_data(const ah_mem *mem, const char *name, ah_slice text, ah_buf *json, ah_err *err)
{
    bounds b = {.mem = mem};
    chunk c = {text, name};
    lua_State *L = lua_newstate(allocate, &b);
    ah_status st;
    int rc;

    if (!L)
        return ah_err_nomem(err);
    b.until = ah_clock_ns() + SECONDS * (int64_t)1000000000;
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &c);
    rc = lua_pcall(L, 1, 1, 0);
    if (rc == LUA_OK)
        st = ah_lua_to_json(L, -1, mem, json, err);
    else
        st = failed(L, rc, err);
    lua_close(L);
    return st;
}
