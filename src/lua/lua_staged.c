/* File systems take part in a call's transaction (seed 002, Runtime Dispatch). A participant holds
 * the call's own file system, made on first use, and commits it in the order of the request. For a
 * file system this is an overlay. For an overlay of a script it is a view, and the file system
 * below takes part first. File systems of nested calls are on top of those of the calls around
 * them. state/fs.h describes conflicts with changes by others. */
#include "lua/lua_staged.h"

#include "io/disk.h"
#include "lua/lua_error.h"
#include "lua/lua_now.h"

typedef struct staged {
    ah_participant part; /* key: the file system */
    const ah_mem *mem;
    ah_fs *fs; /* the call's own */
} staged;

static void free_staged(staged *s)
{
    ah_fs_end(s->fs);
    ah_fs_unref(s->fs);
    ah_free(s->mem, s);
}

/* -- its end ------------------------------------------------------------------------------ */

static ah_status prepare(ah_participant *p, ah_overlay *below, ah_err *err)
{
    (void)below; /* its file system exists already, below this one */
    return ah_fs_prepare(((staged *)(void *)p)->fs, err);
}

static bool is_of_host(const staged *s)
{
    return ah_fs_folder(ah_fs_below(s->fs), NULL) >= 0;
}

/* Puts files of a folder of the machine into place before other changes are made, since a failure
 * here fails the call. */
static ah_status finish(ah_participant *p, ah_overlay *below, ah_err *err)
{
    staged *s = (staged *)(void *)p;

    (void)below;
    return is_of_host(s) ? ah_fs_commit(s->fs, err) : AH_OK;
}

/* Nothing runs between prepare and commit, so that committing to memory and overlays cannot
 * fail. */
static void commit(ah_participant *p, ah_overlay *below)
{
    staged *s = (staged *)(void *)p;
    ah_err ignored;

    (void)below;
    if (!is_of_host(s))
        (void)ah_fs_commit(s->fs, &ignored);
    free_staged(s);
}

static void drop(ah_participant *p)
{
    free_staged((staged *)(void *)p);
}

static const ah_participant_vt staged_vt = {
    .prepare = prepare, .finish = finish, .commit = commit, .drop = drop};

/* -- its beginning -------------------------------------------------------------------------- */

/* Takes `over`; returns NULL with *err filled on failure. */
static staged *join(const ah_mem *mem, ah_overlay *o, ah_fs *fs, ah_fs *over, ah_err *err)
{
    staged *s = ah_alloc(mem, sizeof *s);

    if (!s) {
        ah_fs_unref(over);
        ah_err_nomem(err);
        return NULL;
    }
    *s = (staged){.part = {.vt = &staged_vt, .key = fs}, .mem = mem, .fs = over};
    if (ah_overlay_join(o, &s->part, err) == AH_OK)
        return s;
    free_staged(s);
    return NULL;
}

/* The recursion is as deep as the nesting of runs and of overlays. o NULL: the file system
 * itself. */
ah_fs *ah_lua_staged_in(const ah_mem *mem, ah_overlay *o, ah_fs *fs, ah_err *err)
{
    staged *s = (staged *)(void *)ah_overlay_find(o, fs);
    ah_fs *around, *base = NULL, *over;
    ah_status st;

    if (!o || s)
        return s ? s->fs : fs;
    if (!(around = ah_lua_staged_in(mem, ah_overlay_below(o), fs, err)) ||
        (ah_fs_below(fs) && !(base = ah_lua_staged_in(mem, o, ah_fs_below(fs), err))))
        return NULL;
    st = base ? ah_fs_view_new(around, base, &over, err) : ah_fs_overlay_new(around, &over, err);
    s = st == AH_OK ? join(mem, o, fs, over, err) : NULL;
    return s ? s->fs : NULL;
}

ah_fs *ah_lua_staged(lua_State *L, ah_fs *fs)
{
    ah_overlay *o = ah_lua_overlay(L);
    ah_err err;

    ah_lua_no_reducer(L);
    if (!(fs = ah_lua_staged_in(&ah_lua_of(L)->mem, o, fs, &err)))
        ah_lua_raise_err(L, &err);
    return fs;
}
