/* Strategies in Lua, functions that see each answered call and add or remove tools (contract:
 * run/inject.h), and changes read from Lua values. A strategy is function(m), or a table with
 * `name`, `tools`, `later`, `before(self, m)` and `after(self, m)`. Its result after a call, a tool
 * or a list of tools, is added. The moment m is in lua_moment.c. */
#include "lua/lua_inject.h"

#include <stdio.h>

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_group.h"
#include "lua/lua_moment.h"
#include "lua/lua_search.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"

static const char CHANGES[] = "agenthost.changes";

enum {
    MAX_STRATEGIES = 64,
    LEADERS = 3, /* strategies of the core in front: pick_tools, read_section, discover */
    MAX_NAME = 64,
    ROOM = 8
};

/* -- changes from Lua values -------------------------------------------------------------- */

static int changes_gc(lua_State *L)
{
    ah_changes_clear(lua_touserdata(L, 1));
    return 0;
}

ah_changes *ah_lua_push_changes(lua_State *L, const ah_mem *mem)
{
    ah_changes *c = lua_newuserdatauv(L, sizeof *c, 0);

    ah_changes_init(c, mem);
    luaL_setmetatable(L, CHANGES);
    return c;
}

void ah_lua_add_tools(lua_State *L, int idx, const char *what, ah_changes *c, ah_text *by)
{
    ah_err err;

    ah_lua_push_flat_tools(L, idx, what); /* -- list */
    for (lua_Integer i = 1, n = luaL_len(L, -1); i <= n; i++) {
        lua_geti(L, -1, i);
        if (ah_changes_add(c, ah_lua_to_tool(L, -1), by, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Adds the removal of the tool on top of the stack (an object or a name) to *c. Raises. */
static void remove_one(lua_State *L, const char *what, int at, ah_changes *c)
{
    const ah_tool *t = ah_lua_to_tool(L, -1);
    ah_slice name = t ? ah_text_slice(t->name) : (ah_slice){NULL, 0};
    ah_err err;

    if (!t && lua_type(L, -1) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "%s: names[%d] must be a tool or a tool's name, found %s", what,
                     at, luaL_typename(L, -1));
    if (!t)
        name.p = lua_tolstring(L, -1, &name.n);
    if (ah_changes_remove(c, name, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

void ah_lua_remove_tools(lua_State *L, int idx, const char *what, ah_changes *c)
{
    idx = lua_absindex(L, idx);
    if (lua_type(L, idx) != LUA_TTABLE) {
        lua_pushvalue(L, idx);
        remove_one(L, what, 1, c);
        lua_pop(L, 1);
        return;
    }
    for (lua_Integer i = 1, n = ah_lua_list_check(L, idx, what); i <= n; i++) {
        lua_geti(L, idx, i);
        remove_one(L, what, (int)i, c);
        lua_pop(L, 1);
    }
}

/* -- a strategy ------------------------------------------------------------------------------- */

struct ah_lua_strategy {
    ah_lua *lua;
    int ref; /* reference: the function or the table */
    ah_text *by;
    ah_strategy_cursor kept;
    const struct ah_strategy_vt *vt; /* NULL: it has no methods, only a set */
    ah_search *search;               /* its set of tools to be found; NULL: none */
    char name[MAX_NAME + 16];        /* with a number if the name is not unique */
};

/* Calls the strategy's method; pushes its two results (nils on failure). */
static ah_status ask(struct ah_lua_strategy *s, const char *method, ah_moment m, ah_err *err)
{
    lua_State *L = s->lua->caller;
    char message[sizeof err->message];
    ah_status st;

    m.strategy = s->name;
    m.by = s->by;
    m.kept = &s->kept;
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->ref);
    if ((st = ah_lua_with_moment(s->lua, L, method, &m, err)) == AH_OK)
        return st;
    memcpy(message, err->message, sizeof message);
    return ah_err_set(err, st, "strategy '%s' failed: %s", s->name, message);
}

static ah_status after(void *ud, ah_run *run, const ah_call *call, ah_changes *out, ah_err *err)
{
    struct ah_lua_strategy *s = ud;
    ah_status st;

    if (!lua_checkstack(s->lua->caller, ROOM))
        return ah_err_nomem(err);
    st = ask(s, "after", (ah_moment){.run = run, .call = call, .out = out}, err);
    lua_pop(s->lua->caller, 2);
    return st;
}

/* Reads the first of the two results of `before`: a text for the model, appended to answer, or
 * nil. */
static ah_status read_answer(lua_State *L, const struct ah_lua_strategy *s, ah_buf *answer,
                             ah_err *err)
{
    ah_slice text = {NULL, 0};

    if (lua_isnil(L, -2))
        return AH_OK;
    if (lua_type(L, -2) == LUA_TSTRING)
        text.p = lua_tolstring(L, -2, &text.n);
    if (!text.n || !ah_utf8_valid(text))
        return ah_err_set(
            err, AH_USAGE,
            "strategy '%s' failed: `before` returns nothing or a text for the model, not %s",
            s->name, text.p ? "an empty one or bytes" : luaL_typename(L, -2));
    ah_buf_put(answer, text);
    return AH_OK;
}

/* Calls `before`, which cannot change anything. */
static ah_status before(void *ud, ah_run *run, const ah_call *call, ah_buf *answer, ah_changes *out,
                        ah_err *err)
{
    struct ah_lua_strategy *s = ud;
    lua_State *L = s->lua->caller;
    ah_status st;

    (void)out;
    if (!lua_checkstack(L, ROOM))
        return ah_err_nomem(err);
    if ((st = ask(s, "before", (ah_moment){.run = run, .call = call}, err)) == AH_OK)
        st = read_answer(L, s, answer, err);
    lua_pop(L, 2);
    return st;
}

static const struct ah_strategy_vt vt_before = {.before = before}, vt_after = {.after = after},
                                   vt_both = {.before = before, .after = after};

void ah_lua_strategies_init(ah_lua_strategies *s, ah_lua *h)
{
    *s = (ah_lua_strategies){.lua = h};
}

void ah_lua_strategies_clear(ah_lua_strategies *s)
{
    if (!s->lua)
        return;
    for (size_t i = 0; i < s->n_own; i++) {
        ah_lua_unref(s->lua, &s->own[i].ref);
        ah_text_unref(s->own[i].by);
        ah_search_unref(s->own[i].search);
    }
    ah_free(&s->lua->mem, s->own);
    ah_free(&s->lua->mem, s->item);
    ah_lua_strategies_init(s, s->lua);
}

static bool has_method(lua_State *L, const char *name)
{
    bool has = lua_getfield(L, -1, name) == LUA_TFUNCTION;

    lua_pop(L, 1);
    return has;
}

/* Returns the functions with which the strategy on top is called; NULL: none. */
static const struct ah_strategy_vt *read_methods(lua_State *L, int at)
{
    bool table = lua_istable(L, -1), early = table && has_method(L, "before");

    if (lua_isfunction(L, -1) || (table && !early && has_method(L, "after")))
        return &vt_after;
    if (!early && table && ah_lua_search_of(L, -1))
        return NULL;
    if (!early)
        ah_lua_raise(
            L, AH_USAGE,
            "strategies[%d] must be a function or a table with a function `after` or `before`, "
            "found %s",
            at, luaL_typename(L, -1));
    return has_method(L, "after") ? &vt_both : &vt_before;
}

static bool is_taken(const ah_lua_strategies *s, const char *name)
{
    size_t i = 0;

    while (i < s->n_own && strcmp(s->own[i].name, name) != 0)
        i++;
    return i < s->n_own;
}

/* Reads the strategy's name, made fit for JSON and the log, and unique among those before it: `x`,
 * `x_2` ... */
static void read_name(lua_State *L, const ah_lua_strategies *s, struct ah_lua_strategy *own, int at)
{
    char given[MAX_NAME + 1];
    ah_slice name = {NULL, 0};

    snprintf(given, sizeof given, "strategy_%d", at);
    if (lua_istable(L, -1) && ah_lua_field_string(L, -1, "strategy", "name", &name))
        snprintf(given, sizeof given, "%.*s", AH_FMT(name));
    for (char *p = given; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", *p))
            *p = '_';
    snprintf(own->name, sizeof own->name, "%s", given);
    for (int i = 2; is_taken(s, own->name); i++)
        snprintf(own->name, sizeof own->name, "%s_%d", given, i);
}

/* Adds the strategy to the run. One with methods and a set counts as two strategies of one name. */
static void add_items(ah_lua_strategies *s, struct ah_lua_strategy *own)
{
    if (own->vt)
        s->item[s->n++] = (ah_strategy){own->name, own->vt, own};
    if (own->search)
        s->item[s->n++] = ah_search_strategy(own->search, own->name);
}

/* Reads the strategy on top of the stack (popped) as the next one. */
static void read_strategy(lua_State *L, ah_lua_strategies *s, int at)
{
    struct ah_lua_strategy *own = &s->own[s->n_own];
    char by[MAX_NAME + 48];

    own->vt = read_methods(L, at);
    read_name(L, s, own, at);
    own->kept = (ah_strategy_cursor){0};
    snprintf(by, sizeof by, "{\"strategy\":\"%s\"}", own->name);
    own->lua = s->lua;
    own->ref = LUA_NOREF;
    if (!(own->by = ah_text_new(&s->lua->mem, ah_slice_of(by))))
        ah_lua_raise_nomem(L);
    own->search = ah_search_ref(ah_lua_search_of(L, -1));
    s->n_own++;
    add_items(s, own);
    own->ref = ah_lua_ref(L);
}

static void reserve_strategies(lua_State *L, ah_lua_strategies *s, size_t n)
{
    s->own = ah_alloc(&s->lua->mem, n * sizeof *s->own);
    s->item = ah_alloc(&s->lua->mem, (2 * n + LEADERS) * sizeof *s->item);
    if (!s->own || !s->item)
        ah_lua_raise_nomem(L);
}

void ah_lua_strategies_read(lua_State *L, int idx, ah_lua_strategies *s)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, idx, "ah.run", "strategies", &n))
        return;
    if (n > MAX_STRATEGIES)
        ah_lua_raise(L, AH_USAGE, "ah.run: at most %d strategies, found %d", MAX_STRATEGIES,
                     (int)n);
    if (n > 0)
        reserve_strategies(L, s, (size_t)n);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, -1, i);
        read_strategy(L, s, (int)i);
    }
    lua_pop(L, 1);
}

void ah_lua_strategies_tools(lua_State *L, const ah_lua_strategies *s, const char *field,
                             ah_changes *c)
{
    char what[MAX_NAME + 48];

    for (size_t i = 0; i < s->n_own; i++) {
        int top = lua_gettop(L);

        snprintf(what, sizeof what, "strategy '%s'", s->own[i].name);
        if (lua_rawgeti(L, LUA_REGISTRYINDEX, s->own[i].ref) == LUA_TTABLE &&
            lua_getfield(L, -1, field) != LUA_TNIL)
            ah_lua_add_tools(L, -1, what, c, NULL);
        lua_settop(L, top);
    }
}

/* Replaces the tool by a copy with the words on top behind its description; keeps the tool if that
 * would be too long. */
static void add_words(lua_State *L, ah_tool **tool)
{
    ah_buf *b = ah_lua_push_buf(L, AH_TOOL_MAX_DESCRIPTION);
    ah_tool *told = NULL;
    ah_err err;

    ah_json_string(ah_json_member(ah_text_slice((*tool)->spec), "description"), b);
    ah_buf_str(b, "\n\n");
    ah_buf_str(b, lua_tostring(L, -2));
    if (!ah_buf_ok(b) && b->status != AH_BUDGET)
        ah_lua_raise_nomem(L);
    if (ah_buf_ok(b) && ah_tool_describe(*tool, ah_buf_slice(b), &told, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    if (told) {
        ah_tool_unref(*tool);
        *tool = told;
    }
    lua_pop(L, 1);
}

/* Pushes the field `describe` of the strategy; without it pushes nothing and returns false. */
static bool push_described(lua_State *L, const struct ah_lua_strategy *s)
{
    if (lua_rawgeti(L, LUA_REGISTRYINDEX, s->ref) != LUA_TTABLE ||
        lua_getfield(L, -1, "describe") == LUA_TNIL)
        return false;
    if (!lua_istable(L, -1))
        ah_lua_raise(L, AH_USAGE,
                     "strategy '%s': field 'describe' must be { tool = words }, found a %s",
                     s->name, luaL_typename(L, -1));
    return true;
}

/* True if a continued conversation already has the tool, stale and with the same specification: it
 * was added in mid-conversation, where strategies describe nothing. */
static bool is_there_as_it_is(lua_State *L, const ah_registry *r, ah_tool *tool)
{
    const ah_tool *there = ah_registry_find(r, ah_text_slice(tool->name));
    ah_tool *brief = NULL;
    bool same;
    ah_err err;

    if (!there || !there->stale)
        return false;
    if (ah_tool_brief(tool, &brief, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    same = ah_slice_eq(ah_text_slice(there->spec), ah_text_slice(tool->spec)) ||
           ah_slice_eq(ah_text_slice(there->spec), ah_text_slice(brief->spec));
    ah_tool_unref(brief);
    return same;
}

void ah_lua_strategies_describe(lua_State *L, const ah_lua_strategies *s, const ah_registry *r,
                                ah_changes *c)
{
    int top = lua_gettop(L);

    for (size_t i = 0; i < s->n_own; i++, lua_settop(L, top))
        for (size_t k = 0; push_described(L, &s->own[i]) && k < c->n; k++, lua_settop(L, top)) {
            const ah_text *name = c->item[k].tool->name;

            lua_pushlstring(L, name->data, name->len);
            if (lua_gettable(L, -2) == LUA_TSTRING && !is_there_as_it_is(L, r, c->item[k].tool))
                add_words(L, &c->item[k].tool);
        }
}

void ah_lua_strategies_defer(lua_State *L, const ah_lua_strategies *s, const ah_registry *r,
                             ah_transcript *t)
{
    ah_err err;

    for (size_t i = 0; i < s->n_own; i++)
        if (s->own[i].search &&
            ah_search_declare(s->own[i].search, s->own[i].name, r, t, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
}

void ah_lua_strategies_lead(lua_State *L, ah_lua_strategies *s, ah_strategy first)
{
    if (!s->item && !(s->item = ah_alloc(&s->lua->mem, LEADERS * sizeof *s->item)))
        ah_lua_raise_nomem(L);
    memmove(s->item + 1, s->item, s->n++ * sizeof *s->item);
    s->item[0] = first;
}

void ah_lua_strategies_copy(lua_State *L, ah_lua_strategies *s, const ah_lua_strategies *from)
{
    if (!from->n_own)
        return;
    reserve_strategies(L, s, from->n_own);
    for (size_t i = 0; i < from->n_own; i++) {
        s->own[i] = from->own[i];
        s->own[i].by = ah_text_ref(from->own[i].by);
        s->own[i].ref = LUA_NOREF;
        s->own[i].kept = (ah_strategy_cursor){0};
        ah_search_ref(s->own[i].search);
        s->n_own++;
        add_items(s, &s->own[i]);
        s->own[i].ref = ah_lua_copy_ref(L, from->own[i].ref);
    }
}

void ah_lua_open_inject(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", changes_gc}, {NULL, NULL}};

    luaL_newmetatable(L, CHANGES);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
}
