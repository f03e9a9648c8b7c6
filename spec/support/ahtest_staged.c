/* ahtest: a call and what it can change, without a run: the specs stage changes, write them down,
 * and put them back into a call of another world.
 *
 *   staged_world(root, sync) -> w    a session, the filesystem "notes" in memory and, with a root,
 *                              "work" in this folder; a registry with the tool "known"
 *   w:event(type, json)  w:append(slice, json)  w:set(slice, json ...)  w:note(text)
 *   w:file(name, operation, path, text, text)   write append edit edit_all delete rename mkdir read
 *   w:change(kind, text, more)  w:tool(kind, name)
 *   w:print() -> json          w:restage(json)
 *   w:prepare() -> files       the list of files that is about to change, or nil; then w:commit()
 *   w:commit()                 ends the call and begins the next one
 *   w:settled(files) -> fate, path, n; text
 *   w:ended(settled, staged) -> kind, said    ah_call_end_applying
 *   w:state() -> text          the session, the files in memory, the transcript, the changes
 *   w:fail(n)                  the n-th allocation from now on fails, and all later ones; 0: none
 *   w:live() -> n              number of blocks in use
 *   w:close()
 *
 * Functions that can fail return true, or nil, the status and the message. */
#include <stdlib.h>

#include "io/disk.h"
#include "run/restage.h"
#include "run/config.h"
#include "state/fs_staged.h"
#include "support/ahtest.h"

static const char WORLD[] = "ahtest.staged";

typedef struct world {
    ah_mem mem;
    long live, fail_in; /* fail_in 0: no allocation fails */
    bool failing;
    ah_session *session;
    ah_fs *fs[2];
    ah_staged_name name[2];
    ah_staged_names names;
    ah_registry registry;
    ah_transcript *transcript;
    ah_changes made; /* changes of committed calls, in order */
    ah_run_config cfg;
    ah_slot slot;
    ah_call call;
    bool begun;
} world;

/* -- memory ----------------------------------------------------------------------------------- */

static void *count_memory(void *ud, void *ptr, size_t size)
{
    world *w = ud;
    void *p;

    if (size == 0) {
        w->live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (w->fail_in > 0 && --w->fail_in == 0)
        w->failing = true;
    if (w->failing)
        return NULL;
    if ((p = realloc(ptr, size)) && !ptr)
        w->live++;
    return p;
}

/* -- the world ----------------------------------------------------------------------------------
 */

static ah_status append_value(void *ud, ah_slice slice, const ah_session_event *e, ah_list *list,
                              ah_err *err)
{
    (void)ud;
    (void)slice;
    if (!e->value)
        return AH_OK;
    return ah_list_append(list, e->value) ? AH_OK : ah_err_nomem(err);
}

/* Depends on the slice: the number of events so far. */
static ah_status count_events(void *ud, ah_slice slice, const ah_session_event *e, ah_list *list,
                              ah_err *err)
{
    world *w = ud;
    char digits[24];
    ah_text *n;
    bool ok;

    (void)slice;
    (void)e;
    ah_print(digits, sizeof digits, "%ld", list->head ? atol(list->head->value->data) + 1 : 1);
    n = ah_text_new(&w->mem, ah_slice_of(digits));
    ah_list_set(list, NULL);
    ok = n && ah_list_append(list, n);
    ah_text_unref(n);
    return ok ? AH_OK : ah_err_nomem(err);
}

static ah_status make_session(world *w, ah_err *err)
{
    const ah_slice_options log = {.policy = AH_POLICY_LOG};
    int item = 0, total = 0, kept = 0, add = 0;
    ah_status st = AH_OK;

    if (!(w->session = ah_session_new(&w->mem, NULL)))
        return ah_err_nomem(err);
    if ((st = ah_session_type(w->session, ah_slice_of("Item"), NULL, &item, err)) == AH_OK &&
        (st = ah_session_type(w->session, ah_slice_of("Total"), NULL, &total, err)) == AH_OK &&
        (st = ah_session_type(w->session, ah_slice_of("Kept"), NULL, &kept, err)) == AH_OK &&
        (st = ah_session_type(w->session, ah_slice_of("Add"), NULL, &add, err)) == AH_OK &&
        (st = ah_session_keep(w->session, item, NULL, err)) == AH_OK &&
        (st = ah_session_keep(w->session, total, NULL, err)) == AH_OK &&
        (st = ah_session_keep(w->session, kept, &log, err)) == AH_OK &&
        (st = ah_session_reduce(w->session, item, add, append_value, (ah_value){0}, err)) ==
            AH_OK &&
        (st = ah_session_reduce(w->session, kept, add, append_value, (ah_value){0}, err)) == AH_OK)
        st = ah_session_reduce(w->session, total, add, count_events, (ah_value){.p = w}, err);
    return st;
}

static ah_status make_tool(world *w, const char *name, ah_tool **out, ah_err *err)
{
    ah_tool_def def = {
        .name = ah_slice_of(name), .description = ah_slice_of("Does it."), .no_handler = true};

    return ah_tool_new(&w->mem, &def, out, err);
}

static ah_status make_files(world *w, const char *root, bool sync, ah_err *err)
{
    const ah_fs_options options = {.no_sync = !sync};
    ah_status st = ah_fs_memory_new(&w->mem, NULL, &w->fs[0], err);

    if (st == AH_OK && root)
        st = ah_fs_host_new(&w->mem, root, &options, &w->fs[1], err);
    for (size_t i = 0; st == AH_OK && i < 2 && w->fs[i]; i++)
        w->name[w->names.n++] =
            (ah_staged_name){AH_STAGED_FILES, ah_slice_of(i ? "work" : "notes"), w->fs[i]};
    w->names.item = w->name;
    return st;
}

static void begin(world *w)
{
    ah_call_init(&w->call, (struct ah_run *)(void *)&w->cfg, &w->mem, &w->slot, 0, NULL);
    w->begun = true;
}

static int close_world(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);

    w->failing = false;
    w->fail_in = 0;
    if (w->begun)
        ah_call_clear(&w->call);
    w->begun = false;
    ah_changes_clear(&w->made);
    ah_registry_clear(&w->registry);
    ah_transcript_unref(w->transcript);
    ah_session_unref(w->session);
    ah_fs_unref(w->fs[0]);
    ah_fs_unref(w->fs[1]);
    w->transcript = NULL;
    w->session = NULL;
    w->fs[0] = w->fs[1] = NULL;
    lua_pushinteger(L, w->live);
    return 1;
}

static int new_world(lua_State *L)
{
    const char *root = luaL_optstring(L, 1, NULL);
    world *w = lua_newuserdatauv(L, sizeof *w, 0);
    ah_tool *known = NULL;
    ah_err err = {.status = AH_OK};
    ah_status st;

    *w = (world){.mem = {count_memory, w}};
    ah_registry_init(&w->registry, &w->mem);
    ah_changes_init(&w->made, &w->mem);
    luaL_setmetatable(L, WORLD);
    w->transcript = ah_transcript_new(&w->mem);
    st = make_session(w, &err);
    if (st == AH_OK)
        st = make_files(w, root, lua_toboolean(L, 2), &err);
    if (st == AH_OK)
        st = make_tool(w, "known", &known, &err);
    if (st == AH_OK)
        st = ah_registry_add(&w->registry, known, &err);
    ah_tool_unref(known);
    if (st != AH_OK)
        return luaL_error(L, "%s", err.message);
    w->cfg = (ah_run_config){.mem = &w->mem,
                             .session = w->session,
                             .registry = &w->registry,
                             .transcript = w->transcript,
                             .names = &w->names};
    begin(w);
    return 1;
}

static int outcome(lua_State *L, ah_status st, const ah_err *err)
{
    lua_pushboolean(L, true);
    if (st == AH_OK)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, ah_status_name(st));
    lua_pushstring(L, err->message);
    return 3;
}

static ah_slice check_slice(lua_State *L, int idx)
{
    ah_slice s;

    s.p = luaL_checklstring(L, idx, &s.n);
    return s;
}

static ah_text *check_text(lua_State *L, world *w, int idx)
{
    return lua_isnoneornil(L, idx) ? NULL : ah_text_new(&w->mem, check_slice(L, idx));
}

/* -- staging ------------------------------------------------------------------------------------
 */

static int send_event(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_text *value = check_text(L, w, 3);
    ah_err err;
    ah_status st = ah_session_dispatch(w->session, &w->call.overlay,
                                       ah_session_find(w->session, check_slice(L, 2)), value, &err);

    ah_text_unref(value);
    return outcome(L, st, &err);
}

static int append(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_text *value = check_text(L, w, 3);
    ah_err err;
    ah_status st = ah_session_append(w->session, &w->call.overlay,
                                     ah_session_find(w->session, check_slice(L, 2)), value, &err);

    ah_text_unref(value);
    return outcome(L, st, &err);
}

static int set(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_list list = {.mem = &w->mem};
    ah_err err;

    for (int i = 3; i <= lua_gettop(L); i++) {
        ah_text *value = check_text(L, w, i);

        ah_list_append(&list, value);
        ah_text_unref(value);
    }
    return outcome(L,
                   ah_session_set(w->session, &w->call.overlay,
                                  ah_session_find(w->session, check_slice(L, 2)), list.head, &err),
                   &err);
}

static int note(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_err err;

    return outcome(L,
                   ah_overlay_stage(&w->call.overlay, AH_ENTRY_NOTE,
                                    ah_entry_text(&w->mem, AH_ENTRY_NOTE, check_slice(L, 2), 0),
                                    &err),
                   &err);
}

static ah_status change_file(ah_fs *fs, const char *what, ah_slice path, ah_slice text,
                             ah_slice with, ah_err *err)
{
    const ah_fs_edit edit = {text, with, strcmp(what, "edit_all") == 0};
    ah_buf b;
    size_t n;
    ah_status st;

    if (strcmp(what, "write") == 0)
        return ah_fs_write(fs, path, text, err);
    if (strcmp(what, "append") == 0)
        return ah_fs_append(fs, path, text, err);
    if (strncmp(what, "edit", 4) == 0)
        return ah_fs_replace(fs, path, &edit, &n, err);
    if (strcmp(what, "delete") == 0)
        return ah_fs_delete(fs, path, true, err);
    if (strcmp(what, "rename") == 0)
        return ah_fs_rename(fs, path, text, true, err);
    if (strcmp(what, "mkdir") == 0)
        return ah_fs_mkdir(fs, path, err);
    ah_buf_init(&b, fs->mem, 1 << 20);
    st = ah_fs_read(fs, path, 0, AH_FS_WHOLE, &b, NULL, err);
    ah_buf_clear(&b);
    return st;
}

static ah_fs *check_fs(lua_State *L, world *w, int idx)
{
    return w->fs[strcmp(luaL_checkstring(L, idx), "work") == 0];
}

static int file(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_slice text = {luaL_optstring(L, 5, ""), 0}, with = {luaL_optstring(L, 6, ""), 0};
    ah_fs *fs;
    ah_err err;

    text.n = lua_isnoneornil(L, 5) ? 0 : (size_t)lua_rawlen(L, 5);
    with.n = lua_isnoneornil(L, 6) ? 0 : (size_t)lua_rawlen(L, 6);
    fs = ah_fs_staged_in(&w->mem, &w->call.overlay, check_fs(L, w, 2), &err);
    return outcome(L,
                   fs ? change_file(fs, luaL_checkstring(L, 3), check_slice(L, 4), text, with, &err)
                      : err.status,
                   &err);
}

static ah_status add_change(ah_changes *c, const char *kind, ah_slice text, ah_slice more,
                            ah_err *err)
{
    ah_text *by = NULL;
    ah_status st;

    if (strcmp(kind, "note") == 0)
        return ah_changes_note(c, text, err);
    if (strcmp(kind, "remove") == 0)
        return ah_changes_remove(c, text, err);
    if (strcmp(kind, "show") == 0)
        return ah_changes_show(c, text, err);
    if (strcmp(kind, "hide") == 0)
        return ah_changes_hide(c, text, err);
    if (strcmp(kind, "state") == 0)
        return ah_changes_state(c, "plan", text, err);
    if (strcmp(kind, "settings") == 0)
        return ah_changes_settings(c, text, err);
    if (strcmp(kind, "prompt") != 0)
        return ah_changes_pick(c, strcmp(kind, "pick") == 0, text, err);
    by = more.p ? ah_text_new(c->mem, more) : NULL;
    st = ah_changes_prompt(c, text, by, err);
    ah_text_unref(by);
    return st;
}

static int change(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_slice more = ah_slice_of(luaL_optstring(L, 4, NULL));
    ah_err err;

    return outcome(
        L, add_change(&w->call.changes, luaL_checkstring(L, 2), check_slice(L, 3), more, &err),
        &err);
}

/* A tool of the registry, or a new one. */
static int change_tool(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    const char *name = luaL_checkstring(L, 3);
    ah_tool *tool = ah_tool_ref(ah_registry_find(&w->registry, ah_slice_of(name)));
    ah_err err;
    ah_status st = tool ? AH_OK : make_tool(w, name, &tool, &err);

    if (st == AH_OK)
        st = (strcmp(luaL_checkstring(L, 2), "add") == 0 ? ah_changes_add : ah_changes_replace)(
            &w->call.changes, tool, NULL, &err);
    ah_tool_unref(tool);
    return outcome(L, st, &err);
}

/* -- writing down, putting back, committing -------------------------------------------------------
 */

static int push_buf(lua_State *L, ah_buf *b)
{
    if (ah_buf_ok(b))
        lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    else
        lua_pushnil(L);
    ah_buf_clear(b);
    return 1;
}

static int print_staged(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_buf b;

    ah_buf_init(&b, &w->mem, 64 << 20);
    ah_call_print_staged(&w->call, &b);
    return push_buf(L, &b);
}

static int restage(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_err err;

    return outcome(L, ah_call_restage(&w->call, check_slice(L, 2), &err), &err);
}

/* prepare(): the list `files` and the kept part of `settled`; nil: no files of the machine */
static int prepare(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_err err;
    ah_buf b, kept;
    ah_status st = ah_overlay_prepare(&w->call.overlay, &err);

    if (st != AH_OK)
        return outcome(L, st, &err);
    ah_buf_init(&b, &w->mem, 64 << 20);
    ah_buf_init(&kept, &w->mem, 64 << 20);
    if (ah_overlay_print_settled(&w->call.overlay, &b, &kept))
        return push_buf(L, &b) + push_buf(L, &kept);
    ah_buf_clear(&b);
    ah_buf_clear(&kept);
    lua_pushnil(L);
    return 1;
}

/* The changes of the call are kept for `state`. */
static int commit(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_err err;
    ah_status st = ah_overlay_commit(&w->call.overlay, w->transcript, &err);

    if (st == AH_OK)
        ah_transcript_commit(w->transcript);
    if (st == AH_OK && w->call.changes.n) {
        ah_changes_clear(&w->made);
        w->made = w->call.changes;
        ah_changes_init(&w->call.changes, &w->mem);
    }
    ah_call_clear(&w->call);
    begin(w);
    return outcome(L, st, &err);
}

static int settled(lua_State *L)
{
    static const char *const fates[] = {
        [AH_FS_APPLIED] = "applied", [AH_FS_NOT_APPLIED] = "not_applied", [AH_FS_MIXED] = "mixed"};
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_slice files = check_slice(L, 2);
    ah_fs_outcome out;
    ah_err err;
    ah_buf b;
    ah_status st = ah_json_check_err(&w->mem, files, "the list", &err);

    if (st == AH_OK)
        st = ah_fs_settled(w->fs[1] ? w->fs[1] : w->fs[0], files, &out, &err);
    if (st != AH_OK)
        return outcome(L, st, &err);
    lua_pushstring(L, fates[out.fate]);
    lua_pushlstring(L, out.path.s, out.path.n);
    lua_pushinteger(L, (lua_Integer)out.n);
    ah_buf_init(&b, &w->mem, 4 << 10);
    ah_fs_say_fate(&out, &b);
    push_buf(L, &b);
    return 4;
}

static int ended(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_slice staged = {NULL, 0};
    ah_record_kind kind;
    ah_buf b;
    ah_err err;
    ah_status st;

    ah_buf_init(&b, &w->mem, 64 << 20);
    if (!lua_isnoneornil(L, 3))
        staged = check_slice(L, 3);
    st = ah_call_end_applying(&w->mem, &w->names, check_slice(L, 2), staged, 0, &kind, &b, &err);
    if (st != AH_OK) {
        ah_buf_clear(&b);
        return outcome(L, st, &err);
    }
    lua_pushstring(L, ah_record_name(kind));
    return 1 + push_buf(L, &b);
}

/* -- looking -------------------------------------------------------------------------------------
 */

static void put_tree(ah_fs *fs, ah_buf *b)
{
    ah_fs_items all;
    ah_err err;

    ah_fs_items_init(&all, fs->mem, 1000);
    (void)ah_fs_glob(fs, ah_slice_of(""), ah_slice_of("**"), NULL, &all, &err);
    for (size_t i = 0; i < all.n; i++) {
        ah_slice path = ah_text_slice(all.item[i].name);

        ah_buf_fmt(b, "\n%.*s:", AH_FMT(path));
        if (all.item[i].kind == AH_FS_FILE)
            (void)fs->store->read(fs, path, 0, 1 << 20, b, &(ah_fs_info){0}, &err);
    }
    ah_fs_items_clear(&all);
}

static int state(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);
    ah_buf b;

    ah_buf_init(&b, &w->mem, 64 << 20);
    ah_session_print(w->session, NULL, &b);
    put_tree(w->fs[0], &b);
    if (w->fs[1])
        put_tree(w->fs[1], &b);
    ah_buf_char(&b, '\n');
    ah_transcript_print(w->transcript, &b);
    ah_buf_char(&b, '\n');
    ah_changes_print(&w->made, &b);
    return push_buf(L, &b);
}

static int fail(lua_State *L)
{
    world *w = luaL_checkudata(L, 1, WORLD);

    w->fail_in = (long)luaL_checkinteger(L, 2);
    w->failing = false;
    return 0;
}

static int live(lua_State *L)
{
    const world *w = luaL_checkudata(L, 1, WORLD);

    lua_pushinteger(L, w->live);
    return 1;
}

void ahtest_open_staged(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"event", send_event}, {"append", append},      {"set", set},
        {"note", note},        {"file", file},          {"change", change},
        {"tool", change_tool}, {"print", print_staged}, {"restage", restage},
        {"prepare", prepare},  {"commit", commit},      {"settled", settled},
        {"ended", ended},      {"state", state},        {"fail", fail},
        {"live", live},        {"close", close_world},  {"__gc", close_world},
        {NULL, NULL}};

    luaL_newmetatable(L, WORLD);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_world);
    lua_setfield(L, -2, "staged_world");
}
