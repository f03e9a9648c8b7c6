/* ah.filesystem: files under a root, for handlers. An object owns one reference to an ah_fs, which
 * may be an overlay (state/fs.h describes the operations). Failures of the system are returned as
 * nil, err with err.reason; wrong types are raised. */
#include "lua/lua_fs.h"

#include "base/near.h"
#include "io/clock.h"
#include "io/disk.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_named.h"
#include "lua/lua_now.h"
#include "lua/lua_staged.h"
#include "lua/lua_step.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

#define FS    "agenthost.filesystem"
#define FOUND "agenthost.filesystem.found"

enum {
    LISTED = 1000,         /* default of `max` */
    MATCHED = 200,         /* default of `max` in a search */
    LINES_BYTES = 1 << 20, /* of lines, default of `max_bytes`; LINE_WIDTH: maximum of `width` */
    LINE_WIDTH = 2000,
    MAX_NAME = 200,       /* bytes of `name` */
    MAX_ALLOW = 64 << 10, /* bytes of the names in `allow` */
    MAX_OVERLAYS = 16     /* on each other; each takes stack */
};

/* -- objects ----------------------------------------------------------------------------- */

/* Pushes an object for a file system. The caller sets the slot to a reference that the object then
 * owns. Raises when out of memory. */
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

/* Returns the file system with which the current code works for the object at 1. */
static ah_fs *check_files(lua_State *L)
{
    return ah_lua_staged(L, ah_lua_check_fs(L, 1), false);
}

/* Returns the file system below all overlays. */
static ah_fs *root_of(ah_fs *fs)
{
    while (ah_fs_below(fs))
        fs = ah_fs_below(fs);
    return fs;
}

/* Likewise for a change. Raises if changes cannot be recorded any more. */
static ah_fs *check_changes(lua_State *L)
{
    ah_fs *fs = ah_lua_check_fs(L, 1);
    ah_err err;

    if (ah_lua_named_check(ah_lua_named_files(ah_lua_of(L), root_of(fs)), &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    return ah_lua_staged(L, fs, true);
}

/* -- names in records ---------------------------------------------------------------------- */

static void remove_name(ah_lua *h, const ah_fs *fs)
{
    size_t i = 0;

    while (i < h->names.n && h->name[i].object != fs)
        i++;
    if (i == h->names.n)
        return;
    memmove(h->name + i, h->name + i + 1, (--h->names.n - i) * sizeof *h->name);
}

/* Lists the filesystem under its name, which it takes; NULL: memory is out. */
static ah_status add_name(ah_lua *h, ah_fs *fs, ah_text *name, ah_err *err)
{
    ah_staged_name *list =
        name ? ah_grow(&h->mem, h->name, &h->cap_names, h->names.n + 1, sizeof *list) : NULL;

    ah_text_set(&fs->name, name);
    if (!list)
        return ah_err_nomem(err);
    h->name = list;
    h->names.item = list;
    list[h->names.n++] = (ah_staged_name){AH_STAGED_FILES, ah_text_slice(name), fs};
    return AH_OK;
}

/* A folder of the machine is known by its path, unless that is unknown or no text. */
static ah_status name_folder(ah_lua *h, ah_fs *fs, ah_err *err)
{
    ah_text *root = fs->folder[1];

    if (!root || !ah_utf8_valid(ah_text_slice(root)))
        return AH_OK;
    return add_name(h, fs, ah_text_ref(root), err);
}

static bool is_taken(const ah_lua *h, ah_slice name)
{
    for (size_t i = 0; i < h->names.n; i++)
        if (ah_slice_eq(h->name[i].name, name))
            return true;
    return false;
}

/* Raises unless memory can have this name. A filesystem that is garbage gives up its name. */
static void check_name(lua_State *L, ah_slice name)
{
    const ah_lua *h = ah_lua_of(L);
    bool ok = name.n > 0 && name.n <= MAX_NAME && ah_utf8_valid(name);

    for (size_t i = 0; ok && i < name.n; i++)
        ok = (unsigned char)name.p[i] >= ' ' && name.p[i] != 0x7f && name.p[i] != '/';
    if (!ok)
        ah_lua_raise(L, AH_USAGE,
                     "ah.filesystem: name must be a text of 1 to %d bytes without '/' and control "
                     "characters",
                     MAX_NAME);
    if (is_taken(h, name))
        lua_gc(L, LUA_GCCOLLECT);
    if (is_taken(h, name))
        ah_lua_raise(L, AH_USAGE,
                     "ah.filesystem: another filesystem named '%.*s' is open: close it, or give "
                     "another name",
                     AH_FMT(name));
}

static int fs_close(lua_State *L)
{
    ah_fs **box = luaL_checkudata(L, 1, FS);
    ah_lua *h = ah_lua_known(L);
    ah_fs *fs = *box;

    *box = NULL;
    if (fs && h) {
        ah_lua_named_close(ah_lua_named_files(h, fs));
        remove_name(h, fs);
    }
    ah_fs_unref(fs);
    return 0;
}

/* -- nil err */
static int fails(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

/* A change outside of calls is recorded at once, where the files have a store. */
static void changed(lua_State *L)
{
    if (!ah_lua_overlay(L))
        ah_lua_named_note(ah_lua_of(L), NULL, false);
}

/* -- true, or nil err, after a change */
static int answer(lua_State *L, ah_status st, const ah_err *err)
{
    changed(L);
    if (st != AH_OK)
        return fails(L, err);
    lua_pushboolean(L, true);
    return 1;
}

/* -- steps of durable handlers --------------------------------------------------------------- */

/* Returns the number of overlays over a folder of the machine, in a durable handler, and where the
 * folder is; -1: what the code gets from the object at 1 is no step. */
static int overlays_of(lua_State *L, const char **folder)
{
    ah_fs **box = luaL_testudata(L, 1, FS), *root = box && *box ? root_of(*box) : NULL;
    int n = 0;

    if (!root || !root->machine || !ah_lua_durable(L))
        return -1;
    for (ah_fs *fs = *box; fs != root; fs = ah_fs_below(fs))
        n++;
    *folder = root->folder[1] ? root->folder[1]->data : "";
    return n;
}

/* Calls plain(L), in a durable handler as a step of files of the machine: the function `name` of
 * steps.lua is given what distinguishes the files from others before the arguments. */
static int as_step(lua_State *L, const char *name, lua_CFunction plain)
{
    const char *folder;
    int n = overlays_of(L, &folder);

    if (n < 0)
        return plain(L);
    if (n)
        lua_pushfstring(L, "%s +%d", folder, n);
    else
        lua_pushstring(L, folder);
    lua_insert(L, 1);
    return ah_lua_through_step(L, name, plain);
}

/* Likewise for a look at the path at 2, which is no step if the handler itself has put there what
 * it sees. */
static int look_as_step(lua_State *L, const char *name, lua_CFunction plain)
{
    const char *folder;

    if (!ah_lua_replays(L) && overlays_of(L, &folder) >= 0 && lua_type(L, 2) == LUA_TSTRING) {
        ah_slice path;

        path.p = lua_tolstring(L, 2, &path.n);
        if (ah_fs_is_own(check_files(L), path))
            return plain(L);
    }
    return as_step(L, name, plain);
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

/* Reads the options at arg, if there are any. */
static void read_options(lua_State *L, int arg, const ah_subject *s, void *to)
{
    lua_settop(L, arg);
    if (!lua_isnil(L, arg))
        ah_options_read(L, arg, s, to);
}

/* -- options of methods ------------------------------------------------------------------------ */

typedef struct part {
    double offset, limit;
} part;

static const ah_option fs_read_rows[] = {
    {.name = "offset",
     .kinds = AH_OPT_NUMBER,
     .most = AH_OPT_MOST,
     .otherwise = "0",
     .unit = "bytes",
     .to = AH_TO_DOUBLE(part, offset),
     .doc = "before it"},
    {.name = "limit",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .otherwise = "all",
     .unit = "bytes",
     .to = AH_TO_DOUBLE(part, limit),
     .doc = "of it"},
    {0},
};
const ah_subject ah_subject_fs_read = {
    .what = "filesystem:read", .type = "ah.ReadPart", .doc = "part of a file", .row = fs_read_rows};

static const ah_option fs_edit_rows[] = {
    {.name = "all",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(ah_fs_edit, all),
     .doc = "every place, and not the only one"},
    {0},
};
const ah_subject ah_subject_fs_edit = {
    .what = "filesystem:edit", .type = "ah.EditOptions", .row = fs_edit_rows};

/* The option of a method that has only one. */
typedef struct flag {
    bool on;
} flag;

static const ah_option fs_delete_rows[] = {
    {.name = "recursive",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(flag, on),
     .doc = "with what is in the folder"},
    {0},
};
const ah_subject ah_subject_fs_delete = {
    .what = "filesystem:delete", .type = "ah.DeleteOptions", .row = fs_delete_rows};

static const ah_option fs_rename_rows[] = {
    {.name = "replace",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(flag, on),
     .doc = "a file may take the place of a file"},
    {0},
};
const ah_subject ah_subject_fs_rename = {
    .what = "filesystem:rename", .type = "ah.RenameOptions", .row = fs_rename_rows};

typedef struct looked {
    ah_slice path;
    int max;
    bool gitignore;
} looked;

#define GITIGNORE(of)                                                                              \
    {                                                                                              \
        .name = "gitignore", .kinds = AH_OPT_BOOLEAN, .otherwise = "false",                        \
        .to = AH_TO_BOOL(of, gitignore), .doc = "without what files `.gitignore` leave out"        \
    }

static const ah_option fs_list_rows[] = {
    {.name = "max",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "1000",
     .to = AH_TO_INT(looked, max),
     .doc = "how many are given"},
    GITIGNORE(looked),
    {0},
};
const ah_subject ah_subject_fs_list = {
    .what = "filesystem:list", .type = "ah.ListOptions", .row = fs_list_rows};

static const ah_option fs_glob_rows[] = {
    {.name = "path",
     .kinds = AH_OPT_STRING,
     .otherwise = "the root",
     .to = AH_TO_SLICE(looked, path),
     .doc = "the folder to look in"},
    {.name = "max",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "1000",
     .to = AH_TO_INT(looked, max),
     .doc = "how many are given"},
    GITIGNORE(looked),
    {0},
};
const ah_subject ah_subject_fs_glob = {
    .what = "filesystem:glob", .type = "ah.GlobOptions", .row = fs_glob_rows};

typedef struct searched {
    ah_fs_grep what;
    int max;
    bool gitignore;
} searched;

static const ah_option fs_grep_rows[] = {
    {.name = "path",
     .kinds = AH_OPT_STRING,
     .otherwise = "the root",
     .to = AH_TO_SLICE(searched, what.in),
     .doc = "a file or folder"},
    {.name = "glob",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_SLICE(searched, what.glob),
     .doc = "of the files"},
    {.name = "plain",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(searched, what.plain),
     .doc = "the pattern is the text itself"},
    {.name = "ignore_case",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(searched, what.ignore_case),
     .doc = "of letters; without PCRE2, of ASCII letters"},
    {.name = "context",
     .kinds = AH_OPT_INTEGER,
     .most = AH_FS_MAX_CONTEXT,
     .otherwise = "0",
     .to = AH_TO_SIZE(searched, what.context),
     .doc = "lines before and after each"},
    {.name = "count",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(searched, what.count),
     .doc = "how many a file has, in place of the lines"},
    {.name = "max",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "200",
     .to = AH_TO_INT(searched, max),
     .doc = "how many are given"},
    GITIGNORE(searched),
    {0},
};
const ah_subject ah_subject_fs_grep = {
    .what = "filesystem:grep", .type = "ah.GrepOptions", .row = fs_grep_rows};

typedef struct wanted {
    ah_fs_lines lines;
    double first;
    bool last;
    int max;
} wanted;

static const ah_option fs_lines_rows[] = {
    {.name = "first",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .otherwise = "1",
     .to = AH_TO_DOUBLE(wanted, first),
     .doc = "number of the first line"},
    {.name = "last",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(wanted, last),
     .doc = "the last lines"},
    {.name = "max",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "1000",
     .to = AH_TO_INT(wanted, max),
     .doc = "how many are given"},
    {.name = "max_bytes",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .otherwise = "1048576",
     .unit = "bytes",
     .to = AH_TO_SIZE(wanted, lines.max_bytes),
     .doc = "after which they end"},
    {.name = "width",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .most = LINES_BYTES,
     .otherwise = "2000",
     .unit = "bytes",
     .to = AH_TO_SIZE(wanted, lines.width),
     .doc = "of a line"},
    {0},
};
const ah_subject ah_subject_fs_lines = {
    .what = "filesystem:lines", .type = "ah.LinesOptions", .row = fs_lines_rows};

/* -- reading and writing ---------------------------------------------------------------------- */

/* -- { size, next }: of the file; the offset of the next part */
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
static int plain_read(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_slice path = text_arg(L, 2);
    part p = {.limit = AH_FS_WHOLE};
    ah_fs_info info;
    ah_err err;
    ah_buf *b;

    read_options(L, 3, &ah_subject_fs_read, &p);
    b = ah_lua_push_buf(L, SIZE_MAX); /* the file system limits it */
    if (ah_fs_read(fs, path, (uint64_t)p.offset, (size_t)p.limit, b, &info, &err) != AH_OK)
        return fails(L, &err);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    push_extent(L, info.size, (uint64_t)p.offset + b->len);
    ah_buf_clear(b);
    return 2;
}

static int fs_read(lua_State *L)
{
    return look_as_step(L, "file_read", plain_read);
}

static int fs_write(lua_State *L)
{
    ah_fs *fs = check_changes(L);
    ah_slice path = text_arg(L, 2), text = text_arg(L, 3);
    ah_err err;

    return answer(L, ah_fs_write(fs, path, text, &err), &err);
}

static int fs_append(lua_State *L)
{
    ah_fs *fs = check_changes(L);
    ah_slice path = text_arg(L, 2), text = text_arg(L, 3);
    ah_err err;

    return answer(L, ah_fs_append(fs, path, text, &err), &err);
}

/* fs:edit(path, old, new, { all }) -> number of places */
static int fs_edit(lua_State *L)
{
    ah_fs *fs = check_changes(L);
    ah_slice path = text_arg(L, 2);
    ah_fs_edit edit = {.old = text_arg(L, 3), .with = text_arg(L, 4)};
    size_t count;
    ah_err err;

    read_options(L, 5, &ah_subject_fs_edit, &edit);
    if (ah_fs_replace(fs, path, &edit, &count, &err) != AH_OK)
        return fails(L, &err);
    changed(L);
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

static int fs_mkdir(lua_State *L)
{
    ah_fs *fs = check_changes(L);
    ah_err err;

    return answer(L, ah_fs_mkdir(fs, text_arg(L, 2), &err), &err);
}

static int fs_delete(lua_State *L)
{
    ah_fs *fs = check_changes(L);
    ah_slice path = text_arg(L, 2);
    flag recursive = {false};
    ah_err err;

    read_options(L, 3, &ah_subject_fs_delete, &recursive);
    return answer(L, ah_fs_delete(fs, path, recursive.on, &err), &err);
}

static int fs_rename(lua_State *L)
{
    ah_fs *fs = check_changes(L);
    ah_slice from = text_arg(L, 2), to = text_arg(L, 3);
    flag replace = {false};
    ah_err err;

    read_options(L, 4, &ah_subject_fs_rename, &replace);
    return answer(L, ah_fs_rename(fs, from, to, replace.on, &err), &err);
}

/* -- looking ----------------------------------------------------------------------------------- */

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
static int plain_stat(lua_State *L)
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

static int fs_stat(lua_State *L)
{
    return look_as_step(L, "file_stat", plain_stat);
}

static int plain_exists(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_fs_info info;
    ah_err err;

    if (ah_fs_stat(fs, path_or_root(L, 2), &info, &err) != AH_OK)
        return fails(L, &err);
    lua_pushboolean(L, info.kind != AH_FS_ABSENT);
    return 1;
}

static int fs_exists(lua_State *L)
{
    return look_as_step(L, "file_exists", plain_exists);
}

static int found_gc(lua_State *L)
{
    ah_fs_items_clear(luaL_checkudata(L, 1, FOUND));
    return 0;
}

/* -- found: freed by the collector after a raise */
static ah_fs_items *push_found(lua_State *L, int max)
{
    ah_fs_items *f = lua_newuserdatauv(L, sizeof *f, 0);

    ah_fs_items_init(f, &ah_lua_of(L)->mem, (size_t)max);
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

static void push_items(lua_State *L, const ah_fs_items *f,
                       void (*push)(lua_State *, const ah_fs_item *))
{
    lua_createtable(L, (int)f->n, 2);
    for (size_t i = 0; i < f->n; i++) {
        push(L, &f->item[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* Pushes the list of results, with fields that say whether something is missing. */
static int push_list(lua_State *L, ah_fs_items *f, void (*push)(lua_State *, const ah_fs_item *))
{
    push_items(L, f, push);
    if (f->truncated) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "truncated");
    }
    push_number(L, "skipped", f->skipped);
    push_number(L, "left_out", f->left_out);
    ah_fs_items_clear(f);
    return 1;
}

static void push_count(lua_State *L, const ah_fs_item *item)
{
    lua_createtable(L, 0, 2);
    push_text(L, item->name);
    lua_setfield(L, -2, "path");
    lua_pushinteger(L, (lua_Integer)item->line);
    lua_setfield(L, -2, "count");
}

/* -- ... list -> the list, with a field `ignored` unless that is empty or NULL */
static int with_ignored(lua_State *L, ah_fs_items *ignored)
{
    if (ignored && ignored->n) {
        push_items(L, ignored, push_count);
        lua_setfield(L, -2, "ignored");
        ah_fs_items_clear(ignored);
    }
    return 1;
}

/* fs:list(path, { max, gitignore }) -> { { name, type, size } ... } */
static int plain_list(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_slice path = path_or_root(L, 2);
    looked o = {.max = LISTED};
    ah_fs_items *f, *ignored;
    ah_err err;

    read_options(L, 3, &ah_subject_fs_list, &o);
    ignored = o.gitignore ? push_found(L, LISTED) : NULL;
    f = push_found(L, o.max);
    if (ah_fs_list(fs, path, ignored, f, &err) != AH_OK)
        return fails(L, &err);
    push_list(L, f, push_entry);
    return with_ignored(L, ignored);
}

static int fs_list(lua_State *L)
{
    return as_step(L, "file_list", plain_list);
}

/* fs:glob(pattern, { path, max, gitignore }) -> { path ... } */
static int plain_glob(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_slice pattern = text_arg(L, 2);
    looked o = {.path = AH_LIT(""), .max = LISTED};
    ah_fs_items *f, *ignored;
    ah_err err;

    read_options(L, 3, &ah_subject_fs_glob, &o);
    ignored = o.gitignore ? push_found(L, LISTED) : NULL;
    f = push_found(L, o.max);
    if (ah_fs_glob(fs, o.path, pattern, ignored, f, &err) != AH_OK)
        return fails(L, &err);
    push_list(L, f, push_path);
    return with_ignored(L, ignored);
}

static int fs_glob(lua_State *L)
{
    return as_step(L, "file_glob", plain_glob);
}

/* fs:grep(pattern, { path, glob, plain, ignore_case, context, count, max, gitignore })
 *   -> { { path, line, text, beside } ... }, or { { path, count } ... } */
static int plain_grep(lua_State *L)
{
    ah_fs *fs = check_files(L);
    searched o = {.what = {.pattern = text_arg(L, 2), .in = AH_LIT("")}, .max = MATCHED};
    ah_fs_items *f, *ignored;
    ah_err err;

    read_options(L, 3, &ah_subject_fs_grep, &o);
    ignored = o.gitignore ? push_found(L, LISTED) : NULL;
    f = push_found(L, o.max);
    if (ah_fs_search(fs, &o.what, ignored, f, &err) != AH_OK)
        return fails(L, &err);
    push_list(L, f, o.what.count ? push_count : push_match);
    return with_ignored(L, ignored);
}

static int fs_grep(lua_State *L)
{
    return as_step(L, "file_grep", plain_grep);
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

/* fs:lines(path, { first, last, max, max_bytes, width }) -> { { line, text, size } ... } */
static int plain_lines(lua_State *L)
{
    ah_fs *fs = check_files(L);
    ah_slice path = text_arg(L, 2);
    wanted o = {
        .lines = {.max_bytes = LINES_BYTES, .width = LINE_WIDTH}, .first = 1, .max = LISTED};
    ah_fs_lines *want = &o.lines;
    ah_fs_items *f;
    ah_err err;

    read_options(L, 3, &ah_subject_fs_lines, &o);
    want->first = o.last ? 0 : (uint64_t)o.first;
    f = push_found(L, o.max);
    if (ah_fs_read_lines(fs, path, want, f, &err) != AH_OK)
        return fails(L, &err);
    push_list(L, f, push_line);
    lua_pushinteger(L, (lua_Integer)want->total);
    lua_setfield(L, -2, "total");
    lua_pushinteger(L, (lua_Integer)want->size);
    lua_setfield(L, -2, "size");
    set_flag(L, "binary", want->binary);
    set_flag(L, "truncated", want->stopped);
    set_flag(L, "crlf", want->crlf);
    set_flag(L, "malformed", want->malformed);
    return 1;
}

static int fs_lines(lua_State *L)
{
    return look_as_step(L, "file_lines", plain_lines);
}

/* -- overlays ---------------------------------------------------------------------------------- */

/* An overlay is made on the file system itself, even in a call: the call's own overlay of the file
 * system is below its view of this overlay. */
static int fs_overlay(lua_State *L)
{
    ah_fs *fs = ah_lua_check_fs(L, 1), **box = push_fs(L);
    int levels = 0;
    ah_err err;

    for (ah_fs *at = fs; at; at = ah_fs_below(at))
        levels++;
    if (levels > MAX_OVERLAYS)
        return ah_lua_raise(L, AH_USAGE, "filesystem:overlay: more than %d nested overlays",
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

/* fs:commit(): applies all changes or, on failure, none; the overlay is then unchanged and may be
 * dropped. In a call it is part of the call's changes. */
static int fs_commit(lua_State *L)
{
    ah_fs *fs = check_overlay(L), *here = ah_lua_staged(L, fs, true);
    ah_err err;

    return answer(L, here == fs ? commit_now(fs, &err) : ah_fs_view_commit(here, &err), &err);
}

static int fs_drop(lua_State *L)
{
    ah_fs *fs = check_overlay(L), *here = ah_lua_staged(L, fs, true);

    if (here == fs)
        ah_fs_drop(fs);
    else
        ah_fs_view_drop(here);
    return 0;
}

/* overlay:changes(): what is in the overlay, compared with the filesystem below it */
static int fs_changes(lua_State *L)
{
    ah_fs *here = ah_lua_staged(L, check_overlay(L), false);
    ah_change_list l;

    ah_lua_begin_changes(L, &l);
    ah_fs_show(here, true, &l);
    return ah_lua_end_changes(L, &l);
}

/* -- ah.filesystem ----------------------------------------------------------------------------- */

static void refuse_name(lua_State *L, ah_slice name)
{
    ah_near near = {.to = name};

    for (size_t i = 0; ah_fs_refused_name(i); i++)
        ah_near_offer(&near, ah_slice_of(ah_fs_refused_name(i)));
    if (near.best.p)
        ah_lua_raise(L, AH_USAGE,
                     "ah.filesystem: allow: '%.*s' is not refused (did you mean '%.*s'?)",
                     AH_FMT(name), AH_FMT(near.best));
    ah_lua_raise(L, AH_USAGE, "ah.filesystem: allow: '%.*s' is not refused", AH_FMT(name));
}

/* -- names: those of `allow`, in a buffer that the collector frees; nil: none */
static void read_allow(lua_State *L, ah_buf *names)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, 1, "ah.filesystem", "allow", &n))
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
        ah_lua_raise(L, AH_USAGE, "ah.filesystem: allow has more than %d bytes of names",
                     MAX_ALLOW);
}

/* Writes files in the order of Lua's table, which does not matter: no two have the same path. */
static void write_files(lua_State *L, ah_fs *fs)
{
    ah_err err;

    if (lua_getfield(L, 1, "files") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
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

/* Opens the file system of the options with the allowed names: in the folder `root`, or in memory
 * (root NULL). */
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

/* Gives the files the store of the field `store`, if there is one. They are then as they were
 * there, if they were. */
static ah_status read_store(lua_State *L, ah_fs *fs, ah_slice name, ah_err *err)
{
    ah_status st = AH_OK;

    if (lua_getfield(L, 1, "store") != LUA_TNIL) {
        ah_lua_named *n = ah_lua_named_new_files(L, name, fs);

        if ((st = ah_lua_named_read(L, n, -1, err)) != AH_OK)
            ah_lua_named_close(n);
    }
    lua_pop(L, 1);
    return st;
}

/* name.p NULL: none. */
static int new_memory(lua_State *L, const ah_fs_options *o, const ah_buf *allowed, ah_slice name)
{

    ah_fs_options writable = *o;
    ah_lua *h = ah_lua_of(L);
    ah_fs **box;
    ah_err err;

    if (name.p)
        check_name(L, name);
    box = push_fs(L);
    writable.read_only = false;
    if (open_fs(L, &writable, allowed, NULL, box, &err) != AH_OK)
        return fails(L, &err);
    if (name.p && add_name(h, *box, ah_text_new(&h->mem, name), &err) != AH_OK)
        return fails(L, &err);
    write_files(L, *box);
    if (read_store(L, *box, name, &err) != AH_OK)
        return fails(L, &err);
    changed(L);
    if (o->read_only)
        ah_fs_seal(*box);
    return 1;
}

typedef struct settings {
    ah_fs_options o;
    ah_slice root, name;
    bool memory, sync;
} settings;

static const ah_option filesystem_rows[] = {
    {.name = "root",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(settings, root),
     .doc = "a folder of the machine, which must exist; a symbolic link may name it"},
    {.name = "memory",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(settings, memory),
     .doc = "keeps the files in memory; without `store` they are gone with the object"},
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(settings, name),
     .doc = "of files in memory, unique in the process: [stores](#files-and-stores) know them by "
            "it"},
    {.name = "store",
     .kinds = AH_OPT_ANY,
     .is = "path, store or table",
     .type = "string|ah.Store|ah.StoreConfig",
     .doc = "keeps the files in memory; with `name`"},
    {.name = "files",
     .kinds = AH_OPT_TABLE,
     .type = "table<string, string>",
     .doc = "files in memory: texts by path; with `store`, those of a new one"},
    {.name = "read_only",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(settings, o.read_only),
     .doc = "nothing can be changed"},
    {.name = "allow",
     .kinds = AH_OPT_LIST,
     .otherwise = "empty",
     .is = "list of strings",
     .type = "string[]",
     .doc = "[refused names](filesystem.md#names-that-are-refused) that may be written all the "
            "same"},
    {.name = "sync",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "true",
     .to = AH_TO_BOOL(settings, sync),
     .doc = "forces each file to the disk before it takes its place. Without it, a power failure "
            "may lose or empty the latest writes"},
    {.name = "max_file",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "8388608",
     .to = AH_TO_SIZE(settings, o.max_file),
     .doc = "size of a file that is written, or read whole"},
    {.name = "max_total",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "67108864",
     .to = AH_TO_SIZE(settings, o.max_total),
     .doc = "size of all files in memory, or of the changes in an overlay"},
    {.name = "max_files",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .otherwise = "10000",
     .to = AH_TO_SIZE(settings, o.max_files),
     .doc = "entries of a folder, a walk, the memory or an overlay"},
    {.name = "max_depth",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = AH_FS_MAX_DEPTH,
     .otherwise = "32",
     .to = AH_TO_INT(settings, o.max_depth),
     .doc = "names in a path"},
    {0},
};
const ah_subject ah_subject_filesystem = {
    .what = "ah.filesystem", .type = "ah.FilesystemConfig", .row = filesystem_rows};

static int new_filesystem(lua_State *L)
{
    settings f = {.o = {.interrupt = &ah_lua_of(L)->interrupt,
                        .hidden = &ah_lua_of(L)->host->hidden,
                        .clock_ns = ah_clock_ns},
                  .sync = true};
    ah_buf *allowed;
    ah_fs **box;
    ah_err err;

    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_filesystem, &f);
    f.o.no_sync = !f.sync;
    f.memory = f.memory || lua_getfield(L, 1, "files") != LUA_TNIL;
    allowed = ah_lua_push_buf(L, MAX_ALLOW);
    read_allow(L, allowed);
    if (f.memory == (f.root.p != NULL))
        return ah_lua_raise(L, AH_USAGE,
                            "ah.filesystem: give either a root, or memory = true or files");
    if (f.name.p && !f.memory)
        return ah_lua_raise(L, AH_USAGE,
                            "ah.filesystem: name is for files in memory: a folder is known by its "
                            "path");
    if (lua_getfield(L, 1, "store") != LUA_TNIL && !f.name.p)
        return ah_lua_raise(L, AH_USAGE,
                            "ah.filesystem: a store keeps files in memory by their name: give "
                            "`name`");
    lua_pop(L, 1);
    if (f.memory)
        return new_memory(L, &f.o, allowed, f.name);
    if (memchr(f.root.p, '\0', f.root.n) || f.root.n == 0)
        return ah_lua_raise(L, AH_USAGE, "ah.filesystem: root is no path");
    box = push_fs(L);
    if (open_fs(L, &f.o, allowed, f.root.p, box, &err) != AH_OK ||
        name_folder(ah_lua_of(L), *box, &err) != AH_OK)
        return fails(L, &err);
    return 1;
}

static const luaL_Reg methods[] = {
    {"read", fs_read},     {"lines", fs_lines},     {"write", fs_write},   {"append", fs_append},
    {"edit", fs_edit},     {"list", fs_list},       {"glob", fs_glob},     {"grep", fs_grep},
    {"stat", fs_stat},     {"exists", fs_exists},   {"mkdir", fs_mkdir},   {"delete", fs_delete},
    {"rename", fs_rename}, {"overlay", fs_overlay}, {"commit", fs_commit}, {"drop", fs_drop},
    {"close", fs_close},   {"changes", fs_changes}, {NULL, NULL}};

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
