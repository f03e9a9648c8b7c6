/* ahtest: the pure parts of terminals, for the specs.
 *
 *   keys({ bytes | false, ... }, max_paste) -> { event, ... }
 *       chunks as they are read; false: nothing came for a time. An event is
 *       "ctrl+alt+shift+name text" or "paste text", with "cut " before it if it was cut
 *   area(columns, rows)
 *     area:live({ line, ... }, line, column) -> the bytes to write (line, from 1, and column,
 *     from 0, are the cursor's)
 *     area:print(text)                       -> the bytes to write
 *     area:resize(columns, rows, reflows)    -> the bytes to write */
#include <stdio.h>

#include "base/area.h"
#include "base/harmless.h"
#include "base/keys.h"
#include "support/ahtest.h"

#define AREA "ahtest.area"
#define KEYS "ahtest.keys"

enum { MAX_OUT = 1 << 22 };

static int keys_gc(lua_State *L)
{
    ah_keys_clear(luaL_checkudata(L, 1, KEYS));
    return 0;
}

static void push_event(lua_State *L, ah_keys *k, ah_keys_event e, const ah_key *key)
{
    ah_buf b;

    ah_buf_init(&b, &ah_mem_libc, MAX_OUT);
    if (e == AH_KEYS_PASTE) {
        bool cut = ah_keys_pasted(k, &b);

        lua_pushfstring(L, "%spaste ", cut ? "cut " : "");
    } else {
        ah_buf_fmt(&b, "%s%s%s%s%s %s", key->ctrl ? "ctrl+" : "", key->alt ? "alt+" : "",
                   key->shift ? "shift+" : "", key->super ? "super+" : "", key->name, key->text);
        lua_pushliteral(L, "");
    }
    (void)ah_buf_ok(&b);
    lua_pushlstring(L, ah_buf_slice(&b).p, b.len);
    ah_buf_clear(&b);
    lua_concat(L, 2);
    lua_seti(L, 3, luaL_len(L, 3) + 1);
}

static int keys(lua_State *L)
{
    ah_keys *k;
    ah_key key;
    ah_keys_event e;

    lua_settop(L, 2);
    lua_newtable(L);
    k = lua_newuserdatauv(L, sizeof *k, 0);
    ah_keys_init(k, &ah_mem_libc, (size_t)luaL_optinteger(L, 2, 1 << 20));
    if (luaL_newmetatable(L, KEYS)) {
        lua_pushcfunction(L, keys_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2); /* -- chunks max list k */
    for (lua_Integer i = 1, n = luaL_len(L, 1); i <= n; i++, lua_settop(L, 4)) {
        ah_slice in = {NULL, 0};

        lua_geti(L, 1, i);
        if (lua_isstring(L, -1))
            in.p = lua_tolstring(L, -1, &in.n);
        else if ((e = ah_keys_quiet(k, &key)) != AH_KEYS_NOTHING)
            push_event(L, k, e, &key);
        lua_settop(L, 4);
        while ((e = ah_keys_next(k, &in, &key)) != AH_KEYS_NOTHING)
            push_event(L, k, e, &key);
    }
    lua_settop(L, 3);
    return 1;
}

/* -- areas ------------------------------------------------------------------------------------ */

typedef struct area {
    ah_area area;
    ah_buf text, out;
} area;

static int area_gc(lua_State *L)
{
    area *a = luaL_checkudata(L, 1, AREA);

    ah_area_clear(&a->area);
    ah_buf_clear(&a->text);
    ah_buf_clear(&a->out);
    return 0;
}

static int written(lua_State *L, area *a)
{
    ah_area_draw(&a->area, &a->out);
    luaL_argcheck(L, ah_buf_ok(&a->out), 1, "too much is written");
    lua_pushlstring(L, ah_buf_slice(&a->out).p, a->out.len);
    ah_buf_reset(&a->out, 0);
    return 1;
}

static void harmless(lua_State *L, int idx, bool lines, ah_buf *out)
{
    ah_slice text;

    text.p = luaL_checklstring(L, idx, &text.n);
    ah_harmless(text, lines, out);
}

static int area_live(lua_State *L)
{
    area *a = luaL_checkudata(L, 1, AREA);

    ah_area_erase(&a->area, &a->out);
    ah_buf_reset(&a->area.text, 0);
    for (lua_Integer i = 1, n = luaL_len(L, 2); i <= n; i++, lua_pop(L, 1)) {
        lua_geti(L, 2, i);
        harmless(L, -1, false, &a->area.text);
        ah_buf_char(&a->area.text, '\n');
    }
    a->area.cursor = !lua_isnoneornil(L, 3);
    a->area.cursor_line = (size_t)luaL_optinteger(L, 3, 1) - 1;
    a->area.cursor_column = (size_t)luaL_optinteger(L, 4, 0);
    return written(L, a);
}

static int area_print(lua_State *L)
{
    area *a = luaL_checkudata(L, 1, AREA);

    ah_buf_reset(&a->text, 0);
    harmless(L, 2, true, &a->text);
    ah_area_print(&a->area, ah_buf_slice(&a->text), &a->out);
    return written(L, a);
}

static int area_resize(lua_State *L)
{
    area *a = luaL_checkudata(L, 1, AREA);

    ah_area_resize(&a->area, (unsigned)luaL_checkinteger(L, 2), (unsigned)luaL_checkinteger(L, 3),
                   lua_toboolean(L, 4));
    return written(L, a);
}

static int new_area(lua_State *L)
{
    area *a = lua_newuserdatauv(L, sizeof *a, 0);

    ah_area_init(&a->area, &ah_mem_libc);
    ah_buf_init(&a->text, &ah_mem_libc, MAX_OUT);
    ah_buf_init(&a->out, &ah_mem_libc, MAX_OUT);
    luaL_setmetatable(L, AREA);
    ah_area_resize(&a->area, (unsigned)luaL_checkinteger(L, 1), (unsigned)luaL_checkinteger(L, 2),
                   false);
    return 1;
}

void ahtest_open_terminal(lua_State *L)
{
    static const luaL_Reg methods[] = {{"live", area_live},
                                       {"print", area_print},
                                       {"resize", area_resize},
                                       {"__gc", area_gc},
                                       {NULL, NULL}};

    luaL_newmetatable(L, AREA);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, keys);
    lua_setfield(L, -2, "keys");
    lua_pushcfunction(L, new_area);
    lua_setfield(L, -2, "area");
}
