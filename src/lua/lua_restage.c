/* Folders are opened by the paths in the record, so that it does not matter which filesystems the
 * script has open. Tools are those that the script has in reserve. */
#include "lua/lua_restage.h"

#include "base/json.h"
#include "io/clock.h"
#include "io/disk.h"
#include "lua/lua_agent.h"
#include "lua/lua_host.h"
#include "lua/lua_inject.h"
#include "run/restage.h"
#include "state/fs.h"

enum { MAX_SAID = 1 << 30 };

/* -- tools ------------------------------------------------------------------------------------ */

typedef struct wanted {
    const ah_lua_agent *agent;
    ah_slice name;
    ah_tool *found; /* held by the script's table, or by the changes until the next collection */
} wanted;

static void look(lua_State *L, wanted *w, const char *field)
{
    ah_changes *all = ah_lua_push_changes(L, &w->agent->lua->mem);

    ah_lua_strategies_tools(L, &w->agent->strategies, field, all);
    for (size_t i = 0; i < all->n && !w->found; i++)
        if (ah_slice_eq(ah_text_slice(all->item[i].tool->name), w->name))
            w->found = all->item[i].tool;
}

/* (wanted) */
static int look_in_strategies(lua_State *L)
{
    wanted *w = lua_touserdata(L, 1);

    look(L, w, "tools");
    if (!w->found)
        look(L, w, "later");
    return 0;
}

/* Tools that cannot be read count as missing. */
static ah_tool *find_in_strategies(const ah_lua_agent *a, ah_slice name)
{
    wanted w = {.agent = a, .name = name};
    lua_State *L = a->lua->caller;
    ah_err ignored;

    if (!a->strategies.n_own || !lua_checkstack(L, 2))
        return NULL;
    lua_pushcfunction(L, look_in_strategies);
    lua_pushlightuserdata(L, &w);
    if (ah_lua_call_as(a->lua, AH_CALLEE_STRATEGY, L, 1, 0, &ignored) != AH_OK)
        return NULL;
    return w.found;
}

ah_tool *ah_lua_find_tool(void *ud, ah_slice name)
{
    const ah_lua_agent *a = ah_lua_agent_of_run(ud);
    ah_tool *t = NULL;

    if (a && a->prompt.binding)
        t = ah_prompt_tool(ah_binding_prompt(a->prompt.binding), name);
    return t || !a ? t : find_in_strategies(a, name);
}

/* -- files that were being applied ------------------------------------------------------------- */

typedef struct folders {
    ah_lua *lua;
    ah_staged_name *item;
    size_t n, cap;
    ah_buf root;
} folders;

static void close_folders(folders *f)
{
    for (size_t i = 0; i < f->n; i++)
        ah_fs_unref(f->item[i].object);
    ah_free(&f->lua->mem, f->item);
    ah_buf_clear(&f->root);
}

static bool is_open(const folders *f, ah_slice root)
{
    for (size_t i = 0; i < f->n; i++)
        if (ah_slice_eq(f->item[i].name, root))
            return true;
    return false;
}

/* Opens the folder in f->root, unless it is open. One that cannot be opened is left out. */
static ah_status open_folder(folders *f, ah_err *err)
{
    const ah_fs_options o = {.interrupt = &f->lua->interrupt,
                             .hidden = &f->lua->host->hidden,
                             .clock_ns = ah_clock_ns,
                             .max_depth = AH_FS_MAX_DEPTH};
    ah_slice root = ah_buf_slice(&f->root);
    ah_staged_name *list;
    ah_fs *fs = NULL;
    ah_status st;

    if (!root.n || memchr(root.p, '\0', root.n) || is_open(f, root))
        return AH_OK;
    ah_buf_char(&f->root, '\0');
    if (!ah_buf_ok(&f->root) ||
        !(list = ah_grow(&f->lua->mem, f->item, &f->cap, f->n + 1, sizeof *list)))
        return ah_err_nomem(err);
    f->item = list;
    st = ah_fs_host_new(&f->lua->mem, f->root.data, &o, &fs, err);
    if (st == AH_OK)
        list[f->n++] = (ah_staged_name){AH_STAGED_FILES, ah_text_slice(fs->folder[0]), fs};
    return st == AH_NOMEM ? st : AH_OK;
}

/* Opens the folders of a list { root, path, before, after }, which the fold has checked. */
static ah_status open_folders(folders *f, ah_slice files, ah_err *err)
{
    ah_json_reader it = ah_json_read(files);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        ah_buf_reset(&f->root, 0);
        ah_json_string(ah_json_member(ah_json_skip(&it, t), "root"), &f->root);
        st = ah_buf_ok(&f->root) ? open_folder(f, err) : ah_buf_error(&f->root, "a path", err);
    }
    return st;
}

/* The recorder is not bound to a conversation yet. */
static void put(const ah_lua *h, const ah_record_sink *to, ah_record_kind kind, ah_buf *said)
{
    if (h->host->secrets.n)
        said->len = ah_secrets_redact_json(&h->host->secrets, said->data, said->len);
    to->put(to->ud, kind, ah_buf_slice(said), (ah_slice){NULL, 0});
}

ah_status ah_lua_end_applying(ah_lua *h, const ah_record_sink *to, const ah_fold *f, ah_err *err)
{
    const ah_call_history *c = &f->history.call[f->applying - 1];
    ah_slice settled = ah_text_slice(c->settled);
    folders open = {.lua = h};
    ah_staged_names names;
    ah_record_kind kind;
    ah_status st;
    ah_buf said;

    ah_buf_init(&open.root, &h->mem, settled.n + 1);
    ah_buf_init(&said, &h->mem, MAX_SAID);
    st = open_folders(&open, ah_json_member(settled, "files"), err);
    names = (ah_staged_names){.item = open.item, .n = open.n};
    if (st == AH_OK)
        st = ah_call_end_applying(&h->mem, &names, settled,
                                  c->finished ? ah_text_slice(c->staged) : (ah_slice){NULL, 0},
                                  ah_host_wall(h->host), &kind, &said, err);
    if (st == AH_OK && !ah_buf_ok(&said))
        st = ah_buf_error(&said, "the end of a call", err);
    if (st == AH_OK)
        put(h, to, kind, &said);
    ah_buf_clear(&said);
    close_folders(&open);
    return st;
}
