/* Strategies in Lua: functions that see each answered call and say which tools come and
 * go (the contract is run/inject.h's). A strategy is function(m), or a table with `name`,
 * `tools`, `later`, `before(self, m)` and `after(self, m)`; what it returns after a call (a tool
 * or a list of tools) is added. docs/strategies.md tells it to those who write one. */
#include "lua/lua_inject.h"

#include <stdio.h>

#include "lua/lua_group.h"
#include "lua/lua_reply.h"
#include "lua/lua_search.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"
#include "run/run.h"

static const char CHANGES[] = "agenthost.changes";
static const char MOMENT[] = "agenthost.moment";

enum {
    MAX_STRATEGIES = 64,
    LEADERS = 2, /* of the core's, before those of the script: read_section, discover */
    MAX_NAME = 64,
    MAX_ARGS = 32 << 20,
    MAX_STATE = 1 << 20,
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

/* What is on top of the stack. */
static void remove_one(lua_State *L, const char *what, int at, ah_changes *c)
{
    const ah_tool *t = ah_lua_to_tool(L, -1);
    ah_slice name = t ? ah_text_slice(t->name) : (ah_slice){NULL, 0};
    ah_err err;

    if (!t && lua_type(L, -1) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "%s: names[%d] must be a tool or a tool's name, found %s", what, at,
                     luaL_typename(L, -1));
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
    for (lua_Integer i = 1, n = luaL_len(L, idx); i <= n; i++) {
        lua_geti(L, idx, i);
        remove_one(L, what, (int)i, c);
        lua_pop(L, 1);
    }
}

/* -- the moment: what a strategy sees --------------------------------------------------------- */

struct ah_lua_strategy {
    ah_lua *lua;
    int ref; /* the function, or the table */
    ah_text *by;
    ah_kept kept;
    char name[MAX_NAME + 16]; /* with what tells it from others of the name */
};

typedef struct moment {
    ah_run *run;
    const ah_call *call;
    ah_changes *out;           /* NULL: the call is not answered yet */
    struct ah_lua_strategy *s; /* NULL: a policy's */
    struct moment_box *box;    /* the script's hold on it */
} moment;

/* A script may keep it; once the strategy has returned or failed it is empty. */
typedef struct moment_box {
    moment *m;
} moment_box;

static moment *check_moment(lua_State *L)
{
    moment *m = ((moment_box *)luaL_checkudata(L, 1, MOMENT))->m;

    if (!m)
        ah_lua_raise(L, AH_USAGE, "strategy: the call it was asked about is over");
    return m;
}

/* Before a call nothing changes. */
static moment *check_changing(lua_State *L)
{
    moment *m = check_moment(L);

    if (!m->s)
        ah_lua_raise(L, AH_USAGE, "policy: only strategies change tools and texts");
    if (!m->out)
        ah_lua_raise(L, AH_USAGE, "strategy: nothing can be changed before a call, only after it");
    return m;
}

static int moment_add(lua_State *L)
{
    moment *m = check_changing(L);

    ah_lua_add_tools(L, 2, "strategy", m->out, m->s->by);
    return 0;
}

static int moment_replace(lua_State *L)
{
    moment *m = check_changing(L);
    size_t first = m->out->n;

    ah_lua_add_tools(L, 2, "strategy", m->out, m->s->by);
    for (size_t i = first; i < m->out->n; i++)
        m->out->item[i].kind = AH_CHANGE_REPLACE;
    return 0;
}

static int moment_remove(lua_State *L)
{
    ah_lua_remove_tools(L, 2, "strategy", check_changing(L)->out);
    return 0;
}

static ah_slice check_text(lua_State *L)
{
    ah_slice text;

    text.p = luaL_checklstring(L, 2, &text.n);
    if (!ah_utf8_valid(text))
        ah_lua_raise(L, AH_USAGE, "strategy: the text is not UTF-8");
    return text;
}

static int moment_note(lua_State *L)
{
    moment *m = check_changing(L);
    ah_err err;

    if (ah_changes_note(m->out, check_text(L), &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

static int moment_prompt(lua_State *L)
{
    moment *m = check_changing(L);
    ah_err err;

    if (ah_changes_prompt(m->out, check_text(L), &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

/* What it keeps, its own last word in this moment included; nothing yet is nil. */
static void push_state(lua_State *L, const moment *m)
{
    ah_slice state = {NULL, 0};

    if (!m->s)
        ah_lua_raise(L, AH_USAGE, "policy: only strategies have a state");
    for (size_t i = m->out ? m->out->n : 0; i > 0 && !state.p; i--)
        if (m->out->item[i - 1].kind == AH_CHANGE_STATE)
            state = ah_json_member(ah_text_slice(m->out->item[i - 1].text), "state");
    if (!state.p)
        state = ah_strategy_state(&m->s->kept, ah_run_transcript(m->run), m->s->name);
    if (!state.p || ah_json_kind_of(state) == AH_JSON_NULL)
        lua_pushnil(L);
    else
        ah_lua_push_json(L, state);
}

/* m.state = value */
static int moment_newindex(lua_State *L)
{
    moment *m = check_changing(L);
    const char *key = luaL_checkstring(L, 2);
    ah_buf *b = ah_lua_push_buf(L, MAX_STATE);
    ah_err err;

    if (strcmp(key, "state") != 0)
        ah_lua_raise(L, AH_USAGE, "strategy: only the field 'state' can be set, not '%.100s'", key);
    if (lua_isnil(L, 3))
        ah_buf_str(b, "null");
    else if (ah_lua_to_json(L, 3, b->mem, b, &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "strategy: state: %s", err.message);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    if (ah_changes_state(m->out, m->s->name, ah_buf_slice(b), &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_buf_clear(b);
    return 0;
}

static void push_names(lua_State *L, const ah_registry *r)
{
    lua_Integer n = 0;
    const ah_tool *t;

    lua_createtable(L, (int)r->live, 0);
    for (size_t at = 0; (t = ah_registry_next(r, &at)) != NULL;) {
        lua_pushlstring(L, t->name->data, t->name->len);
        lua_rawseti(L, -2, ++n);
    }
}

/* Of a call that nothing has looked at yet: as the model wrote them. Nil where they are no JSON. */
static void push_written(lua_State *L, const ah_mem *mem, ah_slice arguments)
{
    if (ah_json_check(mem, arguments, AH_JSON_MAX_DEPTH, NULL) == AH_OK)
        ah_lua_push_json(L, arguments);
    else
        lua_pushnil(L);
}

static void push_arguments(lua_State *L, const moment *m)
{
    const ah_call *c = m->call;

    if (c->args)
        ah_lua_push_json(L, ah_text_slice(c->args));
    else if (m->out)
        lua_pushnil(L);
    else
        push_written(L, c->overlay.mem, ah_text_slice(c->slot->arguments));
}

/* {tool, arguments, success} of one call; arguments nil where they were no JSON object. */
static void push_call(lua_State *L, const ah_mem *mem, ah_slice call, bool success)
{
    ah_slice name, arguments;
    const ah_json_wanted want[] = {{"name", &name}, {"arguments", &arguments}};
    ah_buf *b = ah_lua_push_buf(L, MAX_ARGS);

    ah_json_members(call, want, 2);
    lua_createtable(L, 0, 3);
    ah_lua_push_json(L, name);
    lua_setfield(L, -2, "tool");
    lua_pushboolean(L, success);
    lua_setfield(L, -2, "success");
    ah_json_string(arguments, b);
    push_written(L, mem, ah_buf_ok(b) ? ah_buf_slice(b) : (ah_slice){"", 0});
    lua_setfield(L, -2, "arguments");
    ah_buf_clear(b);
    lua_remove(L, -2);
}

/* Appends the calls of one assistant message to the list on top, as far as they are answered;
 * not those that a strategy has answered: they do not count. */
static void push_turn(lua_State *L, const ah_transcript *t, ah_slice assistant, size_t at)
{
    ah_json_reader r = ah_json_read(ah_json_member(assistant, "tool_calls"));
    ah_json_token token = ah_json_next(&r);

    token = ah_json_next(&r);
    for (size_t i = 0; token.kind == AH_JSON_OBJECT; i++, token = ah_json_next(&r)) {
        bool pending = at == t->n;
        ah_text *result = pending ? t->slot[i].result : t->entry[at + 1 + i].json;
        ah_slice call = ah_json_skip(&r, token);

        if (!result || ah_json_member(ah_text_slice(result), "refused").p)
            continue;
        push_call(L, t->mem, call,
                  ah_slice_is(ah_json_member(ah_text_slice(result), "success"), "true"));
        lua_rawseti(L, -2, luaL_len(L, -2) + 1);
    }
}

void ah_lua_push_calls(lua_State *L, const ah_transcript *t)
{
    luaL_checkstack(L, 8, "calls");
    lua_newtable(L);
    for (size_t i = 0; i < t->n; i++)
        if (t->entry[i].kind == AH_ENTRY_ASSISTANT)
            push_turn(L, t, ah_text_slice(t->entry[i].json), i);
    if (t->assistant)
        push_turn(L, t, ah_text_slice(t->assistant), t->n);
}

static void push_field(lua_State *L, const moment *m, const char *key)
{
    const ah_call *c = m->call;

    if (strcmp(key, "tool") == 0)
        lua_pushlstring(L, c->slot->name->data, c->slot->name->len);
    else if (strcmp(key, "call_id") == 0)
        lua_pushlstring(L, c->slot->id->data, c->slot->id->len);
    else if (strcmp(key, "arguments") == 0)
        push_arguments(L, m);
    else if (strcmp(key, "result") == 0 && c->content)
        lua_pushlstring(L, c->content->data, c->content->len);
    else if (strcmp(key, "result") == 0)
        lua_pushnil(L);
    else if (strcmp(key, "value") == 0)
        ah_lua_push_live(L, &c->live);
    else if (strcmp(key, "success") == 0)
        lua_pushboolean(L, c->success);
    else if (strcmp(key, "state") == 0)
        push_state(L, m);
    else if (strcmp(key, "tools") == 0)
        push_names(L, ah_run_registry(m->run));
    else if (strcmp(key, "iteration") == 0)
        lua_pushinteger(L, ah_run_iterations(m->run));
    else if (strcmp(key, "run") == 0)
        lua_pushinteger(L, ah_run_id(m->run));
    else if (strcmp(key, "calls") == 0)
        ah_lua_push_calls(L, ah_run_transcript(m->run));
    else if (strcmp(key, "history") == 0)
        ah_lua_push_messages(L, ah_run_transcript(m->run), ah_run_transcript(m->run)->n);
    else
        ah_lua_raise(L, AH_USAGE, "strategy: unknown field '%s'", key);
}

static int moment_index(lua_State *L)
{
    const char *key = luaL_checkstring(L, 2);

    luaL_checkudata(L, 1, MOMENT);
    if (luaL_getmetafield(L, 1, "methods") != LUA_TNIL && lua_getfield(L, -1, key) != LUA_TNIL)
        return 1;
    push_field(L, check_moment(L), key);
    return 1;
}

/* (function or table, method, moment) -- two results; the first is added where changes are taken */
static int call_with_moment(lua_State *L)
{
    const char *method = lua_touserdata(L, 2);
    moment *m = lua_touserdata(L, 3);
    moment_box *box = lua_newuserdatauv(L, sizeof *box, 0); /* -- f method m box */
    int nargs = 1;

    box->m = m;
    m->box = box;
    luaL_setmetatable(L, MOMENT);
    if (lua_istable(L, 1)) {
        lua_getfield(L, 1, method);
        lua_pushvalue(L, 1);
        nargs = 2;
    } else {
        lua_pushvalue(L, 1);
    }
    lua_pushvalue(L, 4);
    lua_call(L, nargs, 2);
    if (m->out && !lua_isnil(L, -2))
        ah_lua_add_tools(L, -2, "strategy", m->out, m->s->by);
    return 2;
}

/* As ah_lua_with_moment. */
static ah_status call_for(ah_lua *h, lua_State *L, const char *method, moment *m, ah_err *err)
{
    ah_status st;

    lua_pushcfunction(L, call_with_moment);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, (void *)(uintptr_t)method);
    lua_pushlightuserdata(L, m);
    st = ah_lua_call(h, L, 3, 2, err);
    if (m->box)
        m->box->m = NULL;
    if (st != AH_OK) {
        lua_pushnil(L);
        lua_pushnil(L);
    }
    return st;
}

ah_status ah_lua_with_moment(ah_lua *h, lua_State *L, const char *method, ah_run *run,
                             const ah_call *call, ah_err *err)
{
    moment m = {.run = run, .call = call};

    return call_for(h, L, method, &m, err);
}

static int box_gc(lua_State *L)
{
    moment_box *box = luaL_checkudata(L, 1, MOMENT);

    if (box->m)
        box->m->box = NULL;
    box->m = NULL;
    return 0;
}

/* -- a strategy ------------------------------------------------------------------------------------ */

/* Asks it; what it gave lies in two values on top, also on failure (nils). */
static ah_status ask(const char *method, moment *m, ah_err *err)
{
    const struct ah_lua_strategy *s = m->s;
    lua_State *L = s->lua->caller;
    char message[sizeof err->message];
    ah_status st;

    lua_rawgeti(L, LUA_REGISTRYINDEX, s->ref);
    if ((st = call_for(s->lua, L, method, m, err)) == AH_OK)
        return st;
    memcpy(message, err->message, sizeof message);
    return ah_err_set(err, st, "strategy '%s' failed: %.900s", s->name, message);
}

static ah_status after(void *ud, ah_run *run, const ah_call *call, ah_changes *out, ah_err *err)
{
    struct ah_lua_strategy *s = ud;
    moment m = {.run = run, .call = call, .out = out, .s = s};
    ah_status st;

    if (!lua_checkstack(s->lua->caller, ROOM))
        return ah_err_nomem(err);
    st = ask("after", &m, err);
    lua_pop(s->lua->caller, 2);
    return st;
}

/* What it gave before a call: a text for the model, or nothing. */
static ah_status read_answer(lua_State *L, const struct ah_lua_strategy *s, ah_buf *answer, ah_err *err)
{
    ah_slice text = {NULL, 0};

    if (lua_isnil(L, -2))
        return AH_OK;
    if (lua_type(L, -2) == LUA_TSTRING)
        text.p = lua_tolstring(L, -2, &text.n);
    if (!text.n || !ah_utf8_valid(text))
        return ah_err_set(
            err, AH_USAGE,
            "strategy '%s' failed: `before` returns nothing or a text for the model, not %s", s->name,
            text.p ? "an empty one or bytes" : luaL_typename(L, -2));
    ah_buf_put(answer, text);
    return AH_OK;
}

static ah_status before(void *ud, ah_run *run, const ah_call *call, ah_buf *answer, ah_err *err)
{
    struct ah_lua_strategy *s = ud;
    moment m = {.run = run, .call = call, .s = s};
    lua_State *L = s->lua->caller;
    ah_status st;

    if (!lua_checkstack(L, ROOM))
        return ah_err_nomem(err);
    if ((st = ask("before", &m, err)) == AH_OK)
        st = read_answer(L, s, answer, err);
    lua_pop(L, 2);
    return st;
}

static const struct ah_strategy_vt vt_before = {.before = before}, vt_after = {.after = after},
                                   vt_both = {.before = before, .after = after},
                                   vt_none = {.before = NULL};

void ah_lua_strategies_init(ah_lua_strategies *s, ah_lua *h)
{
    *s = (ah_lua_strategies){.lua = h};
}

void ah_lua_strategies_clear(ah_lua_strategies *s)
{
    if (!s->lua)
        return;
    for (size_t i = 0; i < s->n - s->led; i++) {
        ah_lua_unref(s->lua, &s->own[i].ref);
        ah_text_unref(s->own[i].by);
        ah_search_unref(s->item[s->led + i].search);
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

/* When the strategy on top is to be asked. */
static const struct ah_strategy_vt *read_methods(lua_State *L, int at)
{
    bool table = lua_istable(L, -1), early = table && has_method(L, "before");

    if (lua_isfunction(L, -1) || (table && !early && has_method(L, "after")))
        return &vt_after;
    if (!early && table && ah_lua_search_of(L, -1))
        return &vt_none;
    if (!early)
        ah_lua_raise(L, AH_USAGE,
                     "strategies[%d] must be a function or a table with a function `after` or `before`, "
                     "found %s",
                     at, luaL_typename(L, -1));
    return has_method(L, "after") ? &vt_both : &vt_before;
}

static bool is_taken(const ah_lua_strategies *s, const char *name)
{
    size_t i = 0;

    while (i < s->n && strcmp(s->own[i].name, name) != 0)
        i++;
    return i < s->n;
}

/* Its name, made fit for JSON and the log, and one that none before it has: `x`, `x_2` ... */
static void read_name(lua_State *L, const ah_lua_strategies *s, struct ah_lua_strategy *own, int at)
{
    char given[MAX_NAME + 1];
    ah_slice name = {NULL, 0};

    snprintf(given, sizeof given, "strategy_%d", at);
    if (lua_istable(L, -1) && ah_field_string(L, -1, "strategy", "name", &name))
        snprintf(given, sizeof given, "%.*s", AH_FMT(name));
    for (char *p = given; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", *p))
            *p = '_';
    snprintf(own->name, sizeof own->name, "%s", given);
    for (int i = 2; is_taken(s, own->name); i++)
        snprintf(own->name, sizeof own->name, "%s_%d", given, i);
}

/* The strategy on top of the stack (popped) as the next one. */
static void read_strategy(lua_State *L, ah_lua_strategies *s, int at)
{
    struct ah_lua_strategy *own = &s->own[s->n];
    const struct ah_strategy_vt *vt = read_methods(L, at);
    char by[MAX_NAME + 48];

    read_name(L, s, own, at);
    own->kept = (ah_kept){0};
    snprintf(by, sizeof by, "{\"strategy\":\"%s\"}", own->name);
    own->lua = s->lua;
    own->ref = LUA_NOREF;
    if (!(own->by = ah_text_new(&s->lua->mem, ah_slice_of(by))))
        ah_lua_raise_nomem(L);
    s->item[s->n++] = (ah_strategy){own->name, vt, own, ah_search_ref(ah_lua_search_of(L, -1))};
    own->ref = ah_lua_ref(L);
}

static void reserve_strategies(lua_State *L, ah_lua_strategies *s, size_t n)
{
    s->own = ah_alloc(&s->lua->mem, n * sizeof *s->own);
    s->item = ah_alloc(&s->lua->mem, (n + LEADERS) * sizeof *s->item);
    if (!s->own || !s->item)
        ah_lua_raise_nomem(L);
}

void ah_lua_strategies_read(lua_State *L, int idx, ah_lua_strategies *s)
{
    lua_Integer n;

    if (!ah_field_push(L, idx, "ah.run", "strategies", LUA_TTABLE))
        return;
    n = luaL_len(L, -1);
    if (n > MAX_STRATEGIES)
        ah_lua_raise(L, AH_USAGE, "ah.run: at most %d strategies, found %d", MAX_STRATEGIES, (int)n);
    if (n > 0)
        reserve_strategies(L, s, (size_t)n);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, -1, i);
        read_strategy(L, s, (int)i);
    }
    lua_pop(L, 1);
}

void ah_lua_strategies_tools(lua_State *L, const ah_lua_strategies *s, const char *field, ah_changes *c)
{
    char what[MAX_NAME + 48];

    for (size_t i = 0; i < s->n - s->led; i++) {
        int top = lua_gettop(L);

        snprintf(what, sizeof what, "strategy '%s'", s->own[i].name);
        if (lua_rawgeti(L, LUA_REGISTRYINDEX, s->own[i].ref) == LUA_TTABLE &&
            lua_getfield(L, -1, field) != LUA_TNIL)
            ah_lua_add_tools(L, -1, what, c, NULL);
        lua_settop(L, top);
    }
}

void ah_lua_strategies_defer(lua_State *L, const ah_lua_strategies *s, const ah_registry *r,
                             ah_transcript *t)
{
    ah_err err;

    for (size_t i = 0; i < s->n; i++)
        if (s->item[i].search &&
            ah_search_declare(s->item[i].search, s->item[i].name, r, t, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
}

void ah_lua_strategies_lead(lua_State *L, ah_lua_strategies *s, ah_strategy first)
{
    if (!s->item && !(s->item = ah_alloc(&s->lua->mem, LEADERS * sizeof *s->item)))
        ah_lua_raise_nomem(L);
    memmove(s->item + 1, s->item, s->n++ * sizeof *s->item);
    s->item[0] = first;
    s->led++;
}

void ah_lua_strategies_copy(lua_State *L, ah_lua_strategies *s, const ah_lua_strategies *from)
{
    if (from->n == from->led)
        return;
    reserve_strategies(L, s, from->n - from->led);
    for (size_t i = 0; i < from->n - from->led; i++) {
        s->own[i] = from->own[i];
        s->own[i].by = ah_text_ref(from->own[i].by);
        s->own[i].ref = LUA_NOREF;
        s->own[i].kept = (ah_kept){0};
        s->item[s->n++] = from->item[from->led + i];
        s->item[i].name = s->own[i].name;
        s->item[i].ud = &s->own[i];
        ah_search_ref(s->item[i].search);
        s->own[i].ref = ah_lua_copy_ref(L, from->own[i].ref);
    }
}

void ah_lua_rules_read(lua_State *L, int idx, ah_inject_rules *rules)
{
    static const char *const words[] = {"skip", "replace", "error"};
    ah_slice s;
    size_t i = 0;

    *rules = (ah_inject_rules){.max_tools = AH_MAX_TOOLS, .hint = true, .max_restarts = AH_MAX_RESTARTS};
    ah_field_count(L, idx, "ah.run", "max_tools", 0, &rules->max_tools);
    ah_field_count(L, idx, "ah.run", "max_restarts", 0, &rules->max_restarts);
    ah_field_bool(L, idx, "ah.run", "hint", &rules->hint);
    ah_field_bool(L, idx, "ah.run", "brief", &rules->brief);
    ah_field_bool(L, idx, "ah.run", "keep_picked", &rules->keep_picked);
    if (!ah_field_string(L, idx, "ah.run", "on_conflict", &s))
        return;
    while (i < 3 && !ah_slice_is(s, words[i]))
        i++;
    if (i == 3)
        ah_lua_raise(L, AH_USAGE,
                     "ah.run: field 'on_conflict' must be \"skip\", \"replace\" or \"error\", found "
                     "\"%.*s\"",
                     AH_FMT(s));
    rules->on_conflict = (ah_conflict)i;
}

/* -- ah.metrics ----------------------------------------------------------------------------------- */

/* ah.metrics(): the host's counters, by name. */
static int metrics(lua_State *L)
{
    const ah_host *host = ah_lua_of(L)->host;

    lua_createtable(L, 0, AH_METRICS);
    for (int m = 0; m < AH_METRICS; m++) {
        lua_pushinteger(L, host->metrics.count[m]);
        lua_setfield(L, -2, ah_metric_name((ah_metric)m));
    }
    return 1;
}

void ah_lua_open_inject(lua_State *L)
{
    static const luaL_Reg changes_meta[] = {{"__gc", changes_gc}, {NULL, NULL}};
    static const luaL_Reg moment_meta[] = {
        {"__gc", box_gc}, {"__index", moment_index}, {"__newindex", moment_newindex}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"add", moment_add},       {"replace", moment_replace},
                                       {"remove", moment_remove}, {"note", moment_note},
                                       {"prompt", moment_prompt}, {NULL, NULL}};

    luaL_newmetatable(L, CHANGES);
    luaL_setfuncs(L, changes_meta, 0);
    luaL_newmetatable(L, MOMENT);
    luaL_setfuncs(L, moment_meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "methods");
    lua_pop(L, 2);
    lua_pushcfunction(L, metrics);
    lua_setfield(L, -2, "metrics");
}
