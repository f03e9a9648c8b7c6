/* The staged files of the call in which Lua code runs now (state/fs_staged.h keeps them), and lists
 * of changes. */
#include "lua/lua_staged.h"

#include "lua/lua_error.h"
#include "lua/lua_now.h"
#include "lua/lua_step.h"
#include "lua/lua_value.h"

enum { MAX_LIST = 256 << 20 };

ah_fs *ah_lua_staged(lua_State *L, ah_fs *fs, bool change)
{
    ah_overlay *o = ah_lua_overlay(L);
    ah_err err;

    ah_lua_no_replay(L, change ? "a change of files" : "a look at files");
    if (change)
        ah_lua_no_change(L);
    else
        ah_lua_no_reducer(L);
    if (!(fs = ah_fs_staged_in(&ah_lua_of(L)->mem, o, fs, &err)))
        ah_lua_raise_err(L, &err);
    return fs;
}

void ah_lua_begin_changes(lua_State *L, ah_change_list *l)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_LIST);

    ah_change_list_begin(l, &ah_lua_of(L)->mem, b);
}

int ah_lua_end_changes(lua_State *L, ah_change_list *l)
{
    ah_err err;

    ah_change_list_end(l);
    if (!ah_buf_ok(l->out)) {
        ah_buf_error(l->out, "the list of changes", &err);
        return ah_lua_raise_err(L, &err);
    }
    ah_lua_push_json(L, ah_buf_slice(l->out));
    ah_buf_clear(l->out);
    lua_remove(L, -2);
    return 1;
}

int ah_lua_push_staged_changes(lua_State *L, const ah_overlay *o)
{
    ah_change_list l;

    ah_lua_begin_changes(L, &l);
    ah_overlay_show(o, &l);
    return ah_lua_end_changes(L, &l);
}
