/* Writes one file per result, named after its call, so that equal calls give equal names. The
 * script's file system decides what may be written and how much; a refused result is not kept. */
#include "lua/lua_keep.h"

#include "lua/lua_fs.h"
#include "lua/lua_host.h"
#include "lua/lua_resources.h"
#include "lua/lua_staged.h"

enum { MAX_ID = 100, MAX_SAME = 100 }; /* bytes of an id in a name; files per id */

typedef struct keeping {
    int container;
    const ah_call *call;
    ah_overlay *o;
    ah_slice whole;
    ah_buf *path;
    ah_status st;
    ah_err *err;
} keeping;

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static void put_path(ah_buf *b, ah_slice id, int n)
{
    ah_buf_reset(b, 0);
    ah_buf_str(b, "tool-output/");
    for (size_t i = 0; i < id.n && i < MAX_ID; i++)
        ah_buf_char(b, is_plain(id.p[i]) ? id.p[i] : '_');
    if (n > 1)
        ah_buf_fmt(b, "-%d", n);
    ah_buf_str(b, ".txt");
}

/* Chooses the first free path, since another conversation may have had a call of this id. */
static ah_status choose(ah_fs *fs, ah_slice id, ah_buf *path, ah_err *err)
{
    ah_fs_info info = {.kind = AH_FS_FILE};
    ah_status st = AH_OK;

    for (int n = 1; n <= MAX_SAME && st == AH_OK && info.kind != AH_FS_ABSENT; n++) {
        put_path(path, id, n);
        st = ah_buf_ok(path) ? ah_fs_stat(fs, ah_buf_slice(path), &info, err)
                             : ah_buf_error(path, "the path", err);
    }
    if (st == AH_OK && info.kind != AH_FS_ABSENT)
        st = ah_err_set(err, AH_TOOL_VALIDATION, "there are %d files of this call", MAX_SAME);
    return st;
}

/* (keeping) */
static int keep(lua_State *L)
{
    keeping *k = lua_touserdata(L, 1);
    ah_fs *fs;

    ah_lua_push_files(L, k->container);
    if (lua_isnil(L, -1))
        return 0;
    fs = ah_fs_staged_in(&ah_lua_of(L)->mem, k->o, ah_lua_check_fs(L, -1), k->err);
    k->st = fs ? choose(fs, ah_text_slice(k->call->slot->id), k->path, k->err) : k->err->status;
    if (k->st == AH_OK)
        k->st = ah_fs_write(fs, ah_buf_slice(k->path), k->whole, k->err);
    return 0;
}

ah_status ah_lua_keep(ah_lua *h, int container, const ah_call *call, ah_overlay *o, ah_slice whole,
                      ah_buf *path, ah_err *err)
{
    keeping k = {container, call, o, whole, path, AH_OK, err};
    lua_State *L = h->caller;
    ah_status st;

    if (!lua_checkstack(L, 3))
        return ah_err_nomem(err);
    lua_pushcfunction(L, keep);
    lua_pushlightuserdata(L, &k);
    st = ah_lua_call(h, L, 1, 0, err);
    return st == AH_OK ? k.st : st;
}
