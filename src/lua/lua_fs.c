/* ah.filesystem: files under a root, for handlers. An object owns one reference to an ah_fs
 * (state/fs.h says what each operation does); an overlay is such an object, too. What the
 * world refuses comes back as nil, err with err.reason; wrong types are raised. */
#include "lua/lua_fs.h"

#include "base/near.h"
#include "io/clock.h"
#include "io/disk.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_staged.h"
#include "lua/lua_value.h"

#define FS    "agenthost.filesystem"
#define FOUND "agenthost.filesystem.found"

enum {
    LISTED = 1000,         /* unless `max` says otherwise */
    MATCHED = 200,         /* likewise, of a search */
    LINES_BYTES = 1 << 20, /* of lines, unless `max_bytes` does; the most for `width` */
    LINE_WIDTH = 2000,
    MAX_ALLOW = 64 << 10, /* bytes of the names in `allow` */
    MAX_OVERLAYS = 16     /* upon each other; each takes stack */
};

/* -- objects ----------------------------------------------------------------------------- */

/* Pushes an object that will hold a file system; fill the slot with a reference that the
 * object is to own. Raises when out of memory. */
static ah_fs **push_fs(lua_State *L)
{
    ah_fs **box = lua_newuserdatauv(L, sizeof *box, 0);

    *box = NULL;
    luaL_setmetatable(L, FS);
    return box;
}

ah_fs *ah_lua_check_fs(lua_State *L, int idx)
{
    ah_fs **box = luaL_checkudata(L, idx, FS);

    luaL_argcheck(L, *box, idx, "the filesystem is closed");
    return *box;
}

/* Of the object at 1, where code that runs now is to work with it. */
static ah_fs *check_files(lua_State *L)
{
    return ah_lua_staged(L, ah_lua_check_fs(L, 1));
}

static int fs_close(lua_State *L)
{
    ah_fs **box = luaL_checkudata(L, 1, FS);
    ah_fs *fs = *box;

    *box = NULL;
    ah_fs_unref(fs);
    return 0;
}

/* nil, err */
static int fails(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

/* true, or nil, err */
static int answer(lua_State *L, ah_status st, const ah_err *err)
{
    if (st != AH_OK)
        return fails(L, err);
    lua_pushboolean(L, true);
    return 1;
}

static ah_slice text_arg(lua_State *L, int arg)
{
    ah_slice s;

    s.p = luaL_checklstring(L, arg, &s.n);
    return s;
}

static ah_slice path_or_root(lua_State *L, int arg)
{
    return lua_isnoneornil(L, arg) ? ah_slice_of("") : text_arg(L, arg);
}

/* The table of options at arg, or an empty one there. */
static void check_options(lua_State *L, int arg, const char *what, const char *const *known)
{
    lua_settop(L, arg);
    if (lua_isnil(L, arg)) {
        lua_newtable(L);
        lua_replace(L, arg);
    }
    ah_fields_check(L, arg, what, known, false);
}

static bool flag_option(lua_State *L, int arg, const char *what, const char *name)
{
    bool on = false;

    ah_field_bool(L, arg, what, name, &on);
    return on;
}

/* -- reading and writing ---------------------------------------------------------------------- */

/* -- { size, next }: of the file, and where the next part begins */
static void push_extent(lua_State *L, uint64_t size, uint64_t upto)
{
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (lua_Integer)size);
    lua_setfield(L, -2, "size");
    if (upto < size) {
        lua_pushinteger(L, (lua_Integer)upto);
        lua_setfield(L, -2, "next");
    }
}

/* fs:read(path, { offset, limit }) -> text, { size, next } */
static int fs_read(lua_State *L)
{
    static const char *const known[] = {"offset", "limit", NULL};
    ah_fs *fs = check_files(L);
    ah_slice path = text_arg(L, 2);
    double offset = 0, limit = AH_FS_WHOLE;
    ah_fs_info info;
    ah_err err;
    ah_buf *b;

    check_options(L, 3, "filesystem:read", known);
    ah_field_number(L, 3, "filesystem:read", "offset", 0, &offset);
    ah_field_number(L, 3, "filesystem:read", "limit", 1, &limit);
    b = ah_lua_push_buf(L, SIZE_MAX); /* the file system has its limit */
    if (ah_fs_read(fs, path, (uint64_t)offset, (size_t)limit, b, &info, &err) != AH_OK)
        return fails(L, &err);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    push_extent(L, info.size, (uint64_t)offset + b->len);
    ah_buf_clear(b);
    return 2;
}

static int fs_write(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_slice path = text_arg(L, 2), text = text_arg(L, 3);
    ah_err err;

    return answer(L, ah_fs_write(fs, path, text, &err), &err);
}

static int fs_append(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_slice path = text_arg(L, 2), text = text_arg(L, 3);
    ah_err err;

    return answer(L, ah_fs_append(fs, path, text, &err), &err);
}

/* fs:edit(path, old, new, { all }) -> how many places */
static int fs_edit(lua_State *L)
{
    static const char *const known[] = {"all", NULL};
    ah_fs *fs = check_files(L);
    ah_slice path = text_arg(L, 2);
    ah_fs_edit edit = {.old = text_arg(L, 3), .with = text_arg(L, 4)};
    size_t count;
    ah_err err;

    check_options(L, 5, "filesystem:edit", known);
    edit.all = flag_option(L, 5, "filesystem:edit", "all");
    if (ah_fs_replace(fs, path, &edit, &count, &err) != AH_OK)
        return fails(L, &err);
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

static int fs_mkdir(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_err err;

    return answer(L, ah_fs_mkdir(fs, text_arg(L, 2), &err), &err);
}

static int fs_delete(lua_State *L)
{
    static const char *const known[] = {"recursive", NULL};
    ah_fs *fs = check_files(L);
    ah_slice path = text_arg(L, 2);
    ah_err err;

    check_options(L, 3, "filesystem:delete", known);
    return answer(L, ah_fs_delete(fs, path, flag_option(L, 3, "filesystem:delete", "recursive"), &err),
                  &err);
}

static int fs_rename(lua_State *L)
{
    static const char *const known[] = {"replace", NULL};
    ah_fs *fs = check_files(L);
    ah_slice from = text_arg(L, 2), to = text_arg(L, 3);
    ah_err err;

    check_options(L, 4, "filesystem:rename", known);
    return answer(L, ah_fs_rename(fs, from, to, flag_option(L, 4, "filesystem:rename", "replace"), &err),
                  &err);
}

/* -- looking ------------------------------------------------------------------------------------ */

static void push_kind(lua_State *L, ah_fs_kind kind, uint64_t size)
{
    lua_pushstring(L, ah_fs_kind_name(kind));
    lua_setfield(L, -2, "type");
    if (kind == AH_FS_FILE) {
        lua_pushinteger(L, (lua_Integer)size);
        lua_setfield(L, -2, "size");
    }
}

/* fs:stat(path) -> { type, size, modified } */
static int fs_stat(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_slice path = path_or_root(L, 2);
    ah_fs_info info;
    ah_err err;

    if (ah_fs_stat(fs, path, &info, &err) != AH_OK)
        return fails(L, &err);
    if (info.kind == AH_FS_ABSENT) {
        ah_fs_absent(fs, path, &err);
        return fails(L, &err);
    }
    lua_createtable(L, 0, 3);
    push_kind(L, info.kind, info.size);
    if (info.modified_ms != AH_FS_NO_TIME) {
        lua_pushnumber(L, (lua_Number)info.modified_ms / 1000);
        lua_setfield(L, -2, "modified");
    }
    return 1;
}

static int fs_exists(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_fs_info info;
    ah_err err;

    if (ah_fs_stat(fs, path_or_root(L, 2), &info, &err) != AH_OK)
        return fails(L, &err);
    lua_pushboolean(L, info.kind != AH_FS_ABSENT);
    return 1;
}

static int found_gc(lua_State *L)
{
    ah_fs_found_clear(luaL_checkudata(L, 1, FOUND));
    return 0;
}

/* -- found: freed by Lua, whatever is raised */
static ah_fs_found *push_found(lua_State *L, int options, const char *what, int max)
{
    ah_fs_found *f;

    ah_field_count(L, options, what, "max", 1, &max);
    f = lua_newuserdatauv(L, sizeof *f, 0);
    ah_fs_found_init(f, &ah_lua_of(L)->mem, (size_t)max);
    luaL_setmetatable(L, FOUND);
    return f;
}

static void push_text(lua_State *L, const ah_text *t)
{
    lua_pushlstring(L, t->data, t->len);
}

static void push_entry(lua_State *L, const ah_fs_item *item)
{
    lua_createtable(L, 0, 3);
    push_text(L, item->name);
    lua_setfield(L, -2, "name");
    push_kind(L, item->kind, item->size);
}

static void push_path(lua_State *L, const ah_fs_item *item)
{
    push_text(L, item->name);
}

static void push_match(lua_State *L, const ah_fs_item *item)
{
    lua_createtable(L, 0, 3);
    push_text(L, item->name);
    lua_setfield(L, -2, "path");
    lua_pushinteger(L, (lua_Integer)item->line);
    lua_setfield(L, -2, "line");
    push_text(L, item->text);
    lua_setfield(L, -2, "text");
    if (item->beside) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "beside");
    }
}

static void push_number(lua_State *L, const char *name, size_t n)
{
    if (!n)
        return;
    lua_pushinteger(L, (lua_Integer)n);
    lua_setfield(L, -2, name);
}

/* The list of what was found, with what is to be said of what was not. */
static int push_list(lua_State *L, ah_fs_found *f, void (*push)(lua_State *, const ah_fs_item *))
{
    lua_createtable(L, (int)f->n, 2);
    for (size_t i = 0; i < f->n; i++) {
        push(L, &f->item[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    if (f->truncated) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "truncated");
    }
    push_number(L, "skipped", f->skipped);
    push_number(L, "left_out", f->left_out);
    ah_fs_found_clear(f);
    return 1;
}

/* fs:list(path, { max }) -> { { name, type, size } ... } */
static int fs_list(lua_State *L)
{
    static const char *const known[] = {"max", NULL};
    ah_fs *fs = check_files(L);
    ah_slice path = path_or_root(L, 2);
    ah_fs_found *f;
    ah_err err;

    check_options(L, 3, "filesystem:list", known);
    f = push_found(L, 3, "filesystem:list", LISTED);
    if (ah_fs_list(fs, path, f, &err) != AH_OK)
        return fails(L, &err);
    return push_list(L, f, push_entry);
}

/* fs:glob(pattern, { path, max }) -> { path ... } */
static int fs_glob(lua_State *L)
{
    static const char *const known[] = {"path", "max", NULL};
    ah_fs *fs = check_files(L);
    ah_slice pattern = text_arg(L, 2), path = ah_slice_of("");
    ah_fs_found *f;
    ah_err err;

    check_options(L, 3, "filesystem:glob", known);
    ah_field_string(L, 3, "filesystem:glob", "path", &path);
    f = push_found(L, 3, "filesystem:glob", LISTED);
    if (ah_fs_glob(fs, path, pattern, f, &err) != AH_OK)
        return fails(L, &err);
    return push_list(L, f, push_path);
}

static void push_count(lua_State *L, const ah_fs_item *item)
{
    lua_createtable(L, 0, 2);
    push_text(L, item->name);
    lua_setfield(L, -2, "path");
    lua_pushinteger(L, (lua_Integer)item->line);
    lua_setfield(L, -2, "count");
}

static void read_around(lua_State *L, ah_fs_grep *what)
{
    int context = 0;

    ah_field_bool(L, 3, "filesystem:grep", "plain", &what->plain);
    ah_field_bool(L, 3, "filesystem:grep", "ignore_case", &what->ignore_case);
    ah_field_bool(L, 3, "filesystem:grep", "count", &what->count);
    ah_field_count(L, 3, "filesystem:grep", "context", 0, &context);
    if (context > AH_FS_MAX_CONTEXT)
        ah_lua_raise(L, AH_USAGE, "filesystem:grep: context is at most %d", AH_FS_MAX_CONTEXT);
    what->context = (size_t)context;
}

/* fs:grep(pattern, { path, glob, plain, ignore_case, context, count, max })
 *   -> { { path, line, text, beside } ... }, or { { path, count } ... } */
static int fs_grep(lua_State *L)
{
    static const char *const known[] = {"path",    "glob",  "plain", "ignore_case",
                                        "context", "count", "max",   NULL};
    ah_fs *fs = check_files(L);
    ah_fs_grep what = {.pattern = text_arg(L, 2), .in = AH_LIT("")};
    ah_fs_found *f;
    ah_err err;

    check_options(L, 3, "filesystem:grep", known);
    ah_field_string(L, 3, "filesystem:grep", "path", &what.in);
    ah_field_string(L, 3, "filesystem:grep", "glob", &what.glob);
    read_around(L, &what);
    f = push_found(L, 3, "filesystem:grep", MATCHED);
    if (ah_fs_search(fs, &what, f, &err) != AH_OK)
        return fails(L, &err);
    return push_list(L, f, what.count ? push_count : push_match);
}

static void push_line(lua_State *L, const ah_fs_item *item)
{
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, (lua_Integer)item->line);
    lua_setfield(L, -2, "line");
    push_text(L, item->text);
    lua_setfield(L, -2, "text");
    lua_pushinteger(L, (lua_Integer)item->size);
    lua_setfield(L, -2, "size");
}

static void set_flag(lua_State *L, const char *name, bool on)
{
    if (!on)
        return;
    lua_pushboolean(L, true);
    lua_setfield(L, -2, name);
}

static void read_wanted(lua_State *L, ah_fs_lines *want)
{
    double first = 1, bytes = LINES_BYTES, width = LINE_WIDTH;
    bool last = false;

    ah_field_number(L, 3, "filesystem:lines", "first", 1, &first);
    ah_field_bool(L, 3, "filesystem:lines", "last", &last);
    ah_field_number(L, 3, "filesystem:lines", "max_bytes", 1, &bytes);
    ah_field_number(L, 3, "filesystem:lines", "width", 1, &width);
    if (width > LINES_BYTES)
        ah_lua_raise(L, AH_USAGE, "filesystem:lines: width is at most %d", LINES_BYTES);
    want->first = last ? 0 : (uint64_t)first;
    want->max_bytes = (size_t)bytes;
    want->width = (size_t)width;
}

/* fs:lines(path, { first, last, max, max_bytes, width }) -> { { line, text, size } ... } */
static int fs_lines(lua_State *L)
{
    static const char *const known[] = {"first", "last", "max", "max_bytes", "width", NULL};
    ah_fs *fs = check_files(L);
    ah_slice path = text_arg(L, 2);
    ah_fs_lines want = {0};
    ah_fs_found *f;
    ah_err err;

    check_options(L, 3, "filesystem:lines", known);
    read_wanted(L, &want);
    f = push_found(L, 3, "filesystem:lines", LISTED);
    if (ah_fs_read_lines(fs, path, &want, f, &err) != AH_OK)
        return fails(L, &err);
    push_list(L, f, push_line);
    lua_pushinteger(L, (lua_Integer)want.total);
    lua_setfield(L, -2, "total");
    lua_pushinteger(L, (lua_Integer)want.size);
    lua_setfield(L, -2, "size");
    set_flag(L, "binary", want.binary);
    set_flag(L, "truncated", want.stopped);
    set_flag(L, "crlf", want.crlf);
    set_flag(L, "malformed", want.malformed);
    return 1;
}

/* -- overlays ------------------------------------------------------------------------------------- */

/* An overlay is on the file system itself, wherever it is made: what code of a call has of that is
 * below what it has of the overlay. */
static int fs_overlay(lua_State *L)
{
    ah_fs *fs = ah_lua_check_fs(L, 1), **box = push_fs(L);
    int levels = 0;
    ah_err err;

    for (ah_fs *at = fs; at; at = ah_fs_below(at))
        levels++;
    if (levels > MAX_OVERLAYS)
        return ah_lua_raise(L, AH_USAGE, "filesystem:overlay: more than %d overlays upon each other",
                            MAX_OVERLAYS);
    if (ah_fs_overlay_new(fs, box, &err) != AH_OK)
        return fails(L, &err);
    return 1;
}

static ah_fs *check_overlay(lua_State *L)
{
    ah_fs *fs = ah_lua_check_fs(L, 1);

    luaL_argcheck(L, ah_fs_below(fs), 1, "an overlay is expected, made by filesystem:overlay()");
    return fs;
}

static ah_status commit_now(ah_fs *fs, ah_err *err)
{
    ah_status st = ah_fs_prepare(fs, err);

    return st == AH_OK ? ah_fs_commit(fs, err) : st;
}

/* All of it or, where it fails, nothing: the overlay is as before and may be dropped. In a call it
 * is part of what that does. */
static int fs_commit(lua_State *L)
{
    ah_fs *fs = check_overlay(L), *here = ah_lua_staged(L, fs);
    ah_err err;

    return answer(L, here == fs ? commit_now(fs, &err) : ah_fs_view_commit(here, &err), &err);
}

static int fs_drop(lua_State *L)
{
    ah_fs *fs = check_overlay(L), *here = ah_lua_staged(L, fs);

    if (here == fs)
        ah_fs_drop(fs);
    else
        ah_fs_view_drop(here);
    return 0;
}

/* -- ah.filesystem ---------------------------------------------------------------------------------- */

static void refuse_name(lua_State *L, ah_slice name)
{
    ah_near near = {.to = name};

    for (size_t i = 0; ah_fs_refused_name(i); i++)
        ah_near_offer(&near, ah_slice_of(ah_fs_refused_name(i)));
    if (near.best.p)
        ah_lua_raise(L, AH_USAGE, "ah.filesystem: allow: '%.*s' is not refused (did you mean '%.*s'?)",
                     AH_FMT(name), AH_FMT(near.best));
    ah_lua_raise(L, AH_USAGE, "ah.filesystem: allow: '%.*s' is not refused", AH_FMT(name));
}

/* -- names: of `allow`, in a buffer that Lua frees; nil: none */
static void read_allow(lua_State *L, ah_buf *names)
{
    lua_Integer n;

    if (!ah_field_list(L, 1, "ah.filesystem", "allow", &n))
        return;
    for (lua_Integer i = 1; i <= n; i++) {
        ah_slice name;

        lua_geti(L, -1, i);
        if (lua_type(L, -1) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "ah.filesystem: allow must be a list of strings");
        name.p = lua_tolstring(L, -1, &name.n);
        if (!ah_fs_is_refused(name))
            refuse_name(L, name);
        ah_buf_put(names, name);
        ah_buf_char(names, '/');
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (names->status == AH_NOMEM)
        ah_lua_raise_nomem(L);
    if (!ah_buf_ok(names))
        ah_lua_raise(L, AH_USAGE, "ah.filesystem: allow has more than %d bytes of names", MAX_ALLOW);
}

static void read_size(lua_State *L, const char *name, size_t *out)
{
    double v;

    if (ah_field_number(L, 1, "ah.filesystem", name, 1, &v))
        *out = (size_t)v;
}

static void read_settings(lua_State *L, ah_fs_options *o)
{
    bool sync = true;

    ah_field_bool(L, 1, "ah.filesystem", "read_only", &o->read_only);
    ah_field_bool(L, 1, "ah.filesystem", "sync", &sync);
    o->no_sync = !sync;
    read_size(L, "max_file", &o->max_file);
    read_size(L, "max_total", &o->max_total);
    read_size(L, "max_files", &o->max_files);
    ah_field_count(L, 1, "ah.filesystem", "max_depth", 1, &o->max_depth);
    if (o->max_depth > AH_FS_MAX_DEPTH)
        ah_lua_raise(L, AH_USAGE, "ah.filesystem: max_depth is at most %d", AH_FS_MAX_DEPTH);
}

/* In the order of Lua's table, which does not matter: no two have the same path. */
static void write_files(lua_State *L, ah_fs *fs)
{
    ah_err err;

    if (!ah_field_push(L, 1, "ah.filesystem", "files", LUA_TTABLE))
        return;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        ah_slice path, text;

        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "ah.filesystem: files must be texts by their path");
        path.p = lua_tolstring(L, -2, &path.n);
        text.p = lua_tolstring(L, -1, &text.n);
        err.status = ah_fs_write(fs, path, text, &err);
        if (err.status == AH_NOMEM)
            ah_lua_raise_nomem(L);
        if (err.status != AH_OK)
            ah_lua_raise(L, AH_USAGE, "ah.filesystem: files: %s", err.message);
    }
    lua_pop(L, 1);
}

/* The file system of the options, with the names that are allowed: in a folder, or root NULL. */
static ah_status open_fs(lua_State *L, ah_fs_options *o, const ah_buf *allowed, const char *root,
                         ah_fs **out, ah_err *err)
{
    const ah_mem *mem = &ah_lua_of(L)->mem;
    ah_status st;

    if (allowed->len && !(o->allow = ah_text_new(mem, ah_buf_slice(allowed))))
        return ah_err_nomem(err);
    st = root ? ah_fs_host_new(mem, root, o, out, err) : ah_fs_memory_new(mem, o, out, err);
    ah_text_unref(o->allow);
    return st;
}

static int new_memory(lua_State *L, const ah_fs_options *o, const ah_buf *allowed)
{
    ah_fs_options writable = *o;
    ah_fs **box = push_fs(L);
    ah_err err;

    writable.read_only = false;
    if (open_fs(L, &writable, allowed, NULL, box, &err) != AH_OK)
        return fails(L, &err);
    write_files(L, *box);
    if (o->read_only)
        ah_fs_seal(*box);
    return 1;
}

static int new_filesystem(lua_State *L)
{
    static const char *const known[] = {"root",      "memory",    "files",    "read_only",
                                        "allow",     "sync",      "max_file", "max_total",
                                        "max_files", "max_depth", NULL};
    ah_fs_options o = {.interrupt = &ah_lua_of(L)->interrupt, .clock_ns = ah_clock_ns};
    ah_slice root = {NULL, 0};
    bool memory = false;
    ah_buf *allowed;
    ah_fs **box;
    ah_err err;

    lua_settop(L, 1);
    ah_fields_check(L, 1, "ah.filesystem", known, false);
    ah_field_string(L, 1, "ah.filesystem", "root", &root);
    ah_field_bool(L, 1, "ah.filesystem", "memory", &memory);
    memory = memory || lua_getfield(L, 1, "files") != LUA_TNIL;
    read_settings(L, &o);
    allowed = ah_lua_push_buf(L, MAX_ALLOW);
    read_allow(L, allowed);
    if (memory == (root.p != NULL))
        return ah_lua_raise(L, AH_USAGE, "ah.filesystem: give either a root, or memory = true or files");
    if (memory)
        return new_memory(L, &o, allowed);
    if (memchr(root.p, '\0', root.n) || root.n == 0)
        return ah_lua_raise(L, AH_USAGE, "ah.filesystem: root is no path");
    box = push_fs(L);
    if (open_fs(L, &o, allowed, root.p, box, &err) != AH_OK)
        return fails(L, &err);
    return 1;
}

static const luaL_Reg methods[] = {{"read", fs_read},     {"lines", fs_lines},     {"write", fs_write},
                                   {"append", fs_append}, {"edit", fs_edit},       {"list", fs_list},
                                   {"glob", fs_glob},     {"grep", fs_grep},       {"stat", fs_stat},
                                   {"exists", fs_exists}, {"mkdir", fs_mkdir},     {"delete", fs_delete},
                                   {"rename", fs_rename}, {"overlay", fs_overlay}, {"commit", fs_commit},
                                   {"drop", fs_drop},     {"close", fs_close},     {NULL, NULL}};

void ah_lua_open_fs(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", fs_close}, {"__close", fs_close}, {NULL, NULL}};

    luaL_newmetatable(L, FS); /* -- ah meta */
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "filesystem");
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, FS);
    lua_setfield(L, -2, "__metatable");
    luaL_newmetatable(L, FOUND);
    lua_pushcfunction(L, found_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 2); /* -- ah */
    lua_pushcfunction(L, new_filesystem);
    lua_setfield(L, -2, "filesystem");
}
