/* Books: the tools of registries. A call works on a copy and keeps its changes, to repeat them if
 * another call has changed the registry meanwhile; the call fails if a name is taken by then. The
 * agents that use the registry are notified with the call's commit. */
#include "lua/lua_book.h"

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_now.h"
#include "lua/lua_post.h"

typedef enum act { PUT, REPLACE, REMOVE, PICK, CLEAR_PICKED } act;

typedef struct op {
    struct op *next;
    act what;
    ah_tool *tool;  /* PUT, REPLACE: as given by the script */
    ah_tool *brief; /* PUT, REPLACE: as declared until it is picked */
    ah_text *name;  /* REMOVE, PICK */
    bool made;      /* REMOVE: the tool existed */
} op;

typedef struct page {
    ah_participant part; /* key: the book */
    ah_book *of;
    int ref; /* reference to its object */
    ah_registry *core, *next;
    uint64_t version; /* of core */
    uint64_t seen;    /* version of the registry that was copied */
    op *first;
    ah_post *posts; /* for the agents, after prepare */
} page;

/* -- registries ------------------------------------------------------------------------- */

static void free_core(const ah_mem *mem, ah_registry *r)
{
    if (r)
        ah_registry_clear(r);
    ah_free(mem, r);
}

static ah_registry *new_core(const ah_mem *mem)
{
    ah_registry *r = ah_alloc(mem, sizeof *r);

    if (r)
        ah_registry_init(r, mem);
    return r;
}

/* Returns a copy of the registry with its picks; NULL: *err is filled. */
static ah_registry *copy_core(const ah_mem *mem, const ah_registry *from, ah_err *err)
{
    ah_registry *r = new_core(mem);

    if (!r) {
        ah_err_nomem(err);
        return NULL;
    }
    if (ah_registry_copy(r, from, err) != AH_OK) {
        free_core(mem, r);
        return NULL;
    }
    for (size_t i = 0; i < from->n; i++)
        if (from->slot[i].brief)
            ah_registry_pick(r, ah_text_slice(from->slot[i].name));
    return r;
}

ah_book *ah_book_push(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_book *b = lua_newuserdatauv(L, sizeof *b, AH_BOOK_AGENTS);

    *b = (ah_book){.lua = h};
    luaL_setmetatable(L, AH_BOOK);
    if (!(b->core = new_core(&h->mem)))
        ah_lua_raise_nomem(L);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_setiuservalue(L, -2, AH_BOOK_AGENTS);
    return b;
}

void ah_book_clear(ah_book *b)
{
    if (b->core)
        free_core(&b->lua->mem, b->core);
    b->core = NULL;
}

/* -- changes ------------------------------------------------------------------------------ */

static void free_op(const ah_mem *mem, op *p)
{
    ah_tool_unref(p->tool);
    ah_tool_unref(p->brief);
    ah_text_unref(p->name);
    ah_free(mem, p);
}

static ah_slice name_of(const op *p)
{
    return ah_text_slice(p->name ? p->name : p->tool->name);
}

static ah_status refuse_second(const ah_tool *there, const ah_tool *tool, ah_err *err)
{
    char words[sizeof err->message];

    if (!err)
        return AH_PROMPT_VALIDATION;
    ah_tool_twice(there, tool, err);
    ah_print(words, sizeof words, "registry: %s; replace it with registry:replace", err->message);
    memcpy(err->message, words, sizeof words);
    return AH_PROMPT_VALIDATION;
}

static ah_status apply(ah_registry *r, op *p, ah_err *err)
{
    ah_slice name = p->what == CLEAR_PICKED ? (ah_slice){NULL, 0} : name_of(p);
    const ah_tool *there;
    ah_status st = AH_OK;

    switch (p->what) {
    case PUT:
        there = ah_registry_find(r, name);
        st = there ? refuse_second(there, p->brief, err) : ah_registry_put(r, p->brief, err);
        break;
    case REPLACE:
        st = ah_registry_put(r, p->brief, err);
        break;
    case REMOVE:
        p->made = ah_registry_remove(r, name);
        break;
    case PICK:
        ah_registry_pick(r, name);
        break;
    case CLEAR_PICKED:
        for (size_t i = 0; i < r->n; i++)
            ah_registry_unpick(r, ah_text_slice(r->slot[i].name));
        break;
    }
    ah_registry_settle(r);
    return st;
}

/* -- notifying agents ----------------------------------------------------------------------- */

static bool is_told(const op *p)
{
    return p->what == PUT || p->what == REPLACE || (p->what == REMOVE && p->made);
}

/* Pushes the change of an agent that corresponds to the operation. */
static ah_changes *push_change(lua_State *L, const ah_mem *mem, const op *p)
{
    ah_changes *c = ah_lua_push_changes(L, mem);
    ah_text *by = ah_text_new(mem, ah_slice_of("{\"script\":\"registry\"}"));
    ah_status st;
    ah_err err;

    if (!by)
        ah_lua_raise_nomem(L);
    if (p->what == PUT)
        st = ah_changes_add(c, p->tool, by, &err);
    else if (p->what == REPLACE)
        st = ah_changes_replace(c, p->tool, by, &err);
    else
        st = ah_changes_remove(c, name_of(p), &err);
    ah_text_unref(by);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
    return c;
}

/* Pushes a list of the agents of the book at idx. A copy, since changing an agent may add agents to
 * the book. */
static void push_agents(lua_State *L, int idx)
{
    lua_newtable(L);
    lua_getiuservalue(L, idx, AH_BOOK_AGENTS);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_rawseti(L, -5, luaL_len(L, -5) + 1);
    }
    lua_pop(L, 1);
}

/* Passes the operation to the agents of the book at 1; list NULL: at once. */
static void tell_agents(lua_State *L, const ah_mem *mem, const op *p, ah_post **list)
{
    int top = lua_gettop(L);

    push_agents(L, 1);
    for (lua_Integer i = 1, n = luaL_len(L, top + 1); i <= n; i++) {
        ah_changes *c = push_change(L, mem, p);

        lua_geti(L, top + 1, i);
        if (list)
            ah_post_change(L, lua_gettop(L), c, list);
        else
            ah_lua_change(L, lua_gettop(L), c);
        lua_settop(L, top + 1);
    }
    lua_settop(L, top);
}

/* (book, page) */
static int collect_posts(lua_State *L)
{
    page *p = lua_touserdata(L, 2);

    luaL_checkstack(L, 12, "registry");
    for (const op *at = p->first; at; at = at->next)
        if (is_told(at))
            tell_agents(L, &p->of->lua->mem, at, &p->posts);
    return 0;
}

static ah_status make_posts(page *p, ah_err *err)
{
    ah_lua *h = p->of->lua;
    lua_State *L = h->caller;
    ah_status st;

    if (!lua_checkstack(L, 4))
        return ah_err_nomem(err);
    lua_pushcfunction(L, collect_posts);
    lua_rawgeti(L, LUA_REGISTRYINDEX, p->ref);
    lua_pushlightuserdata(L, p);
    st = ah_lua_call(h, L, 2, 0, err);
    return st == AH_OK ? ah_post_try(p->posts, err) : st;
}

/* -- in a call -------------------------------------------------------------------------------- */

static const ah_participant_vt page_vt;

/* Returns the page of o or of the nearest overlay below it; NULL: none has one. */
static page *find_page(const ah_overlay *o, const ah_book *b)
{
    page *p = NULL;

    for (; o && !p; o = ah_overlay_below(o))
        p = (page *)(void *)ah_overlay_find(o, b);
    return p;
}

const ah_registry *ah_book_seen(lua_State *L, const ah_book *b)
{
    const page *p = find_page(ah_lua_overlay(L), b);

    return p ? p->core : b->core;
}

static void free_page(page *p)
{
    ah_lua *h = p->of->lua;

    for (op *at = p->first, *next; at; at = next) {
        next = at->next;
        free_op(&h->mem, at);
    }
    free_core(&h->mem, p->core);
    free_core(&h->mem, p->next);
    ah_lua_unref(h, &p->ref);
    ah_free(&h->mem, p);
}

/* Finds or makes the page of this overlay; the caller sets its object. */
static page *join(ah_overlay *o, ah_book *b, ah_err *err)
{
    page *p = (page *)(void *)ah_overlay_find(o, b), *around;

    if (p)
        return p;
    if (!(p = ah_alloc(&b->lua->mem, sizeof *p))) {
        ah_err_nomem(err);
        return NULL;
    }
    around = find_page(ah_overlay_below(o), b);
    *p = (page){.part = {.vt = &page_vt, .key = b}, .of = b, .ref = LUA_NOREF};
    p->version = p->seen = around ? around->version : b->version;
    p->core = copy_core(&b->lua->mem, around ? around->core : b->core, err);
    if (p->core && ah_overlay_join(o, &p->part, err) == AH_OK)
        return p;
    free_page(p);
    return NULL;
}

/* Repeats the page's changes on the current registry if that has changed since. */
static ah_status rebase(page *p, const ah_registry *on, uint64_t version, ah_err *err)
{
    ah_status st = AH_OK;

    if (version == p->seen)
        return AH_OK;
    if (!(p->next = copy_core(&p->of->lua->mem, on, err)))
        return err->status;
    p->version = ++p->of->last;
    for (op *at = p->first; at && st == AH_OK; at = at->next)
        st = apply(p->next, at, err);
    return st;
}

static ah_status prepare(ah_participant *part, ah_overlay *below, ah_err *err)
{
    page *p = (page *)(void *)part, *to = below ? join(below, p->of, err) : NULL;
    ah_status st;

    if (below && !to)
        return err->status;
    st = rebase(p, to ? to->core : p->of->core, to ? to->version : p->of->version, err);
    return st == AH_OK && !to ? make_posts(p, err) : st;
}

static void hand_over(page *p, ah_registry **core, uint64_t *version)
{
    ah_registry **from = p->next ? &p->next : &p->core, *old = *core;

    *core = *from;
    *from = old;
    *version = p->version;
}

static void commit(ah_participant *part, ah_overlay *below)
{
    page *p = (page *)(void *)part, *to = (page *)(void *)ah_overlay_find(below, p->of);
    op **last;

    if (!to) {
        hand_over(p, &p->of->core, &p->of->version);
        return;
    }
    hand_over(p, &to->core, &to->version);
    for (last = &to->first; *last;)
        last = &(*last)->next;
    *last = p->first;
    p->first = NULL;
    if (to->ref == LUA_NOREF) {
        to->ref = p->ref;
        p->ref = LUA_NOREF;
    }
}

static void committed(ah_participant *part, ah_overlay *below)
{
    page *p = (page *)(void *)part;

    (void)below;
    ah_post_tell(&p->posts);
    free_page(p);
}

static void drop(ah_participant *part)
{
    page *p = (page *)(void *)part;

    ah_post_undo(&p->posts);
    free_page(p);
}

static const ah_participant_vt page_vt = {
    .prepare = prepare, .commit = commit, .committed = committed, .drop = drop};

/* -- for scripts ------------------------------------------------------------------------------- */

static const char OP[] = "agenthost.registry.change";

static int op_gc(lua_State *L)
{
    op **box = luaL_checkudata(L, 1, OP);

    if (*box)
        free_op(&ah_lua_of(L)->mem, *box);
    *box = NULL;
    return 0;
}

/* -- box: the collector frees the operation unless a call keeps it */
static op *push_op(lua_State *L, act what)
{
    static const luaL_Reg meta[] = {{"__gc", op_gc}, {NULL, NULL}};
    op **box = lua_newuserdatauv(L, sizeof *box, 0);

    *box = NULL;
    if (luaL_newmetatable(L, OP))
        luaL_setfuncs(L, meta, 0);
    lua_setmetatable(L, -2);
    if (!(*box = ah_alloc(&ah_lua_of(L)->mem, sizeof **box)))
        ah_lua_raise_nomem(L);
    **box = (op){.what = what};
    return *box;
}

static void change_now(lua_State *L, ah_book *b, op *made)
{
    ah_err err;

    b->version = ++b->last;
    if (apply(b->core, made, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    if (is_told(made))
        tell_agents(L, &b->lua->mem, made, NULL);
}

static void change_in_call(lua_State *L, ah_overlay *o, ah_book *b, op **box)
{
    ah_err err;
    page *p = join(o, b, &err);
    op **last;

    if (!p || apply(p->core, *box, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    p->version = ++b->last;
    for (last = &p->first; *last;)
        last = &(*last)->next;
    *last = *box;
    *box = NULL;
    if (p->ref != LUA_NOREF)
        return;
    lua_pushvalue(L, 1);
    p->ref = ah_lua_ref(L);
}

/* Applies the operation on top (popped) to the book at 1. */
static void change(lua_State *L)
{
    ah_book *b = luaL_checkudata(L, 1, AH_BOOK);
    op **box = luaL_checkudata(L, -1, OP);
    ah_overlay *o = ah_lua_overlay(L);

    ah_lua_no_change(L);
    luaL_checkstack(L, 16, "registry");
    if (o)
        change_in_call(L, o, b, box);
    else
        change_now(L, b, *box);
    lua_pop(L, 1);
}

void ah_book_put(lua_State *L, ah_tool *tool, bool replace)
{
    op *p = push_op(L, replace ? REPLACE : PUT);
    ah_err err;

    p->tool = ah_tool_ref(tool);
    if (ah_tool_brief(tool, &p->brief, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    change(L);
}

static void change_named(lua_State *L, act what, ah_slice name)
{
    op *p = push_op(L, what);

    if (!(p->name = ah_text_new(&ah_lua_of(L)->mem, name)))
        ah_lua_raise_nomem(L);
    change(L);
}

/* Records the removal even if there is no such tool, since another call may add it before the
 * commit. Returns true if the tool exists now. */
bool ah_book_remove(lua_State *L, ah_slice name)
{
    const ah_book *b = luaL_checkudata(L, 1, AH_BOOK);
    bool there = ah_registry_find(ah_book_seen(L, b), name) != NULL;

    change_named(L, REMOVE, name);
    return there;
}

void ah_book_pick(lua_State *L, ah_slice name)
{
    change_named(L, PICK, name);
}

void ah_book_clear_picked(lua_State *L)
{
    push_op(L, CLEAR_PICKED);
    change(L);
}

/* -- before a run ------------------------------------------------------------------------------ */

/* Delivers the changes of the outermost call first. The recursion is as deep as the nesting of
 * runs. */
static void deliver(lua_State *L, ah_overlay *o, const ah_book *b, int idx)
{
    const page *p = (page *)(void *)ah_overlay_find(o, b);
    ah_post *posts = NULL;
    ah_err err;

    if (!o)
        return;
    deliver(L, ah_overlay_below(o), b, idx);
    if (!p || !p->first)
        return;
    for (const op *at = p->first; at; at = at->next)
        if (is_told(at)) {
            ah_post_change(L, idx, push_change(L, &b->lua->mem, at), &posts);
            lua_pop(L, 1);
        }
    if (ah_post_try(posts, &err) == AH_OK) {
        ah_post_tell(&posts);
        return;
    }
    ah_post_undo(&posts);
    ah_lua_raise_err(L, &err);
}

void ah_book_deliver(lua_State *L, int idx)
{
    const ah_book *b;

    lua_getiuservalue(L, idx, AH_AGENT_REGISTRY);
    b = luaL_testudata(L, -1, AH_BOOK);
    if (b)
        deliver(L, ah_lua_overlay(L), b, idx);
    lua_pop(L, 1);
}
