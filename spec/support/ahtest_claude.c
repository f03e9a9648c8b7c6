/* ahtest.claude: the protocol of the `claude` command (wire/claude.h) without a command.
 *
 *   c = claude(relists)   c:fits(request)   c:ask(request)   c:interrupt()
 *   c:line(text) -> { event, hold, ended, warning } or nil, message, HTTP status
 *   c:out() -> what was to be written since the last time */
#include "ahtest.h"

#include "wire/claude.h"

#define CLAUDE "ahtest.claude"

static ah_claude *check(lua_State *L)
{
    return luaL_checkudata(L, 1, CLAUDE);
}

static ah_slice check_text(lua_State *L)
{
    ah_slice s;

    s.p = luaL_checklstring(L, 2, &s.n);
    return s;
}

static int failed(lua_State *L, const ah_err *err)
{
    lua_pushnil(L);
    lua_pushstring(L, err->message);
    lua_pushinteger(L, err->http_status);
    return 3;
}

static int new_claude(lua_State *L)
{
    bool relists = lua_toboolean(L, 1);

    ah_claude_init(lua_newuserdatauv(L, sizeof(ah_claude), 0), &ah_mem_libc, relists);
    luaL_setmetatable(L, CLAUDE);
    return 1;
}

static int claude_fits(lua_State *L)
{
    lua_pushboolean(L, ah_claude_fits(check(L), check_text(L)));
    return 1;
}

static int claude_ask(lua_State *L)
{
    ah_err err;

    if (ah_claude_ask(check(L), check_text(L), &err) != AH_OK)
        return failed(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

static int claude_interrupt(lua_State *L)
{
    ah_err err;

    lua_pushboolean(L, ah_claude_interrupt(check(L), &err) == AH_OK);
    return 1;
}

static int claude_line(lua_State *L)
{
    ah_claude_news news;
    ah_err err;

    if (ah_claude_line(check(L), check_text(L), &news, &err) != AH_OK)
        return failed(L, &err);
    lua_newtable(L);
    if (news.event[0].p) {
        lua_pushlstring(L, news.event[0].p, news.event[0].n);
        lua_pushlstring(L, news.event[1].p ? news.event[1].p : "", news.event[1].n);
        lua_concat(L, 2);
        lua_setfield(L, -2, "event");
    }
    lua_pushboolean(L, news.hold);
    lua_setfield(L, -2, "hold");
    lua_pushboolean(L, news.ended);
    lua_setfield(L, -2, "ended");
    lua_pushstring(L, news.warning);
    lua_setfield(L, -2, "warning");
    return 1;
}

static int claude_out(lua_State *L)
{
    ah_claude *c = check(L);

    lua_pushlstring(L, ah_buf_slice(&c->out).p, c->out.len);
    ah_buf_reset(&c->out, 0);
    return 1;
}

static int claude_gc(lua_State *L)
{
    ah_claude_clear(check(L));
    return 0;
}

void ahtest_open_claude(lua_State *L)
{
    static const luaL_Reg methods[] = {{"fits", claude_fits}, {"ask", claude_ask},
                                       {"line", claude_line}, {"interrupt", claude_interrupt},
                                       {"out", claude_out},   {NULL, NULL}};

    luaL_newmetatable(L, CLAUDE);
    lua_pushcfunction(L, claude_gc);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_claude);
    lua_setfield(L, -2, "claude");
}
