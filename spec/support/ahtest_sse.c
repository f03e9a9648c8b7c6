/* ahtest.sse_feed: the event-stream parser for the specs.
 *
 *   sse_feed(options, chunk, ...) -> events, one line each | nil, message, code
 *
 * An event is written `name|data` with backslash, \n and \r escaped, as in spec/data/sse.
 * Options: max (bytes of one event), fail (the n-th allocation and all later ones fail), open
 * (true: the parser does not get the stream's end). A block that the parser does not free is a
 * Lua error. */
#include <stdint.h>
#include <stdlib.h>

#include "support/ahtest.h"
#include "wire/sse.h"

typedef struct probe {
    ah_sse sse;
    ah_buf out;
    ah_mem mem; /* the parser's: counts and fails */
    long blocks, until_failure;
} probe;

#define PROBE "ahtest.sse"

static void *counting(void *ud, void *ptr, size_t size)
{
    probe *p = ud;
    void *block;

    if (size == 0) {
        p->blocks -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (p->until_failure > 0 && --p->until_failure == 0) {
        p->until_failure = 1; /* and all later ones */
        return NULL;
    }
    block = realloc(ptr, size);
    p->blocks += block && !ptr;
    return block;
}

static int clear(lua_State *L)
{
    probe *p = luaL_checkudata(L, 1, PROBE);

    ah_sse_clear(&p->sse);
    ah_buf_clear(&p->out);
    return 0;
}

static probe *push_probe(lua_State *L, size_t max, long fail)
{
    probe *p = lua_newuserdatauv(L, sizeof *p, 0); /* -- probe */

    *p = (probe){.mem = {.fn = counting, .ud = p}, .until_failure = fail};
    ah_sse_init(&p->sse, &p->mem, max);
    ah_buf_init(&p->out, &ah_mem_libc, SIZE_MAX);
    if (luaL_newmetatable(L, PROBE)) { /* -- probe, metatable */
        lua_pushcfunction(L, clear);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2); /* -- probe */
    return p;
}

static void escape(ah_buf *out, ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        switch (s.p[i]) {
        case '\n':
            ah_buf_str(out, "\\n");
            break;
        case '\r':
            ah_buf_str(out, "\\r");
            break;
        case '\\':
            ah_buf_str(out, "\\\\");
            break;
        default:
            ah_buf_char(out, s.p[i]);
        }
}

static ah_status on_event(void *ud, ah_slice event, ah_slice data, ah_err *err)
{
    probe *p = ud;

    escape(&p->out, event);
    ah_buf_char(&p->out, '|');
    escape(&p->out, data);
    ah_buf_char(&p->out, '\n');
    return ah_slice_is(data, "stop!") ? ah_err_set(err, AH_CANCELLED, "stopped") : AH_OK;
}

static lua_Integer option(lua_State *L, const char *name, lua_Integer otherwise)
{
    lua_Integer n;

    lua_getfield(L, 1, name);
    n = luaL_optinteger(L, -1, otherwise);
    lua_pop(L, 1);
    return n;
}

static bool flag(lua_State *L, const char *name)
{
    bool is;

    lua_getfield(L, 1, name);
    is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

static int sse_feed(lua_State *L)
{
    int last = lua_gettop(L);
    lua_Integer max = (luaL_checktype(L, 1, LUA_TTABLE), option(L, "max", 1 << 20));
    bool open = flag(L, "open");
    probe *p = push_probe(L, (size_t)max, (long)option(L, "fail", 0)); /* -- probe */
    ah_status st = AH_OK;
    ah_err err = {0};

    for (int i = 2; i <= last && st == AH_OK; i++) {
        ah_slice chunk;

        chunk.p = luaL_checklstring(L, i, &chunk.n);
        st = ah_sse_feed(&p->sse, chunk, on_event, p, &err);
    }
    if (st == AH_OK && !open)
        st = ah_sse_end(&p->sse, on_event, p, &err);
    ah_sse_clear(&p->sse);
    if (p->blocks)
        return luaL_error(L, "%d blocks were not freed", (int)p->blocks);
    lua_pushlstring(L, p->out.data ? p->out.data : "", p->out.len); /* -- probe, events */
    if (st == AH_OK)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, err.message);
    lua_pushstring(L, ah_status_name(st));
    lua_pushvalue(L, -4); /* -- probe, events, nil, message, code, events */
    return 4;
}

void ahtest_open_sse(lua_State *L)
{
    lua_pushcfunction(L, sse_feed);
    lua_setfield(L, -2, "sse_feed");
}
