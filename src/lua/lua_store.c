/* ah.store: a store as an object, for scripts that give it to agents, list its open asks and
 * respond to them. What it does is in host/store_asks.h; this file converts. */
#include "lua/lua_step.h"
#include "lua/lua_store.h"

#include <stdlib.h>

#include "host/ask.h"
#include "host/store_asks.h"
#include "host/store_changes.h"
#include "host/store_replay.h"
#include "host/store_spent.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_options.h"
#include "lua/lua_state.h"
#include "lua/lua_store_keep.h"
#include "lua/lua_store_look.h"
#include "lua/lua_value.h"

static const char STORE[] = "agenthost.store";

enum { MAX_LIST = 256 << 20 /* bytes of a list as JSON */ };

/* -- ah.store ------------------------------------------------------------------------------------
 */

typedef enum engine { SQLITE, MEMORY } engine;

typedef struct store_fields {
    ah_slice path, name;
    engine engine;
    ah_store_sync sync;
    bool bytes, force;
} store_fields;

static const ah_option store_rows[] = {
    {.name = "path",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(store_fields, path),
     .doc = "the file, which is made if it is missing; needed unless there is a "
            "`name`, or `engine` is `memory`"},
    {.name = "engine",
     .kinds = AH_OPT_STRING,
     .words = "sqlite memory",
     .otherwise = "\"sqlite\"",
     .to = AH_TO_WORD(store_fields, engine),
     .doc = "`memory`: nothing outlives the object and its agents"},
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(store_fields, name),
     .doc = "in place of a path: of an open store of the program "
            "([engines in C](embedding.md#a-store-of-your-own)), or of one in memory"},
    {.name = "sync",
     .kinds = AH_OPT_STRING,
     .words = "process effects full",
     .otherwise = "\"process\"",
     .to = AH_TO_WORD(store_fields, sync),
     .doc = "what is forced to the disk, to survive a loss of power: nothing at once, records "
            "before an effect outside, or all; the end of the process loses nothing"},
    {.name = "bytes",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(store_fields, bytes),
     .doc = "keeps the bytes of requests and responses, too, so that "
            "[replay](#replay) names a difference by its place in the JSON"},
    {.name = "force",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(store_fields, force),
     .doc = "also on a network filesystem, where two machines may damage the file"},
    {0},
};
const ah_subject ah_subject_store = {.what = "ah.store",
                                     .type = "ah.StoreConfig",
                                     .doc = "where [conversations last](stores.md)",
                                     .row = store_rows};

static void read_table(lua_State *L, int idx, ah_store_options *o)
{
    store_fields f = {0};

    ah_options_read(L, idx, &ah_subject_store, &f);
    if (f.engine == SQLITE && !f.path.p && !f.name.p)
        ah_lua_raise(L, AH_USAGE,
                     "ah.store: path is missing: the file of the store, or give engine "
                     "= \"memory\"");
    if (f.engine == MEMORY && f.path.p)
        ah_lua_raise(L, AH_USAGE, "ah.store: engine = \"memory\" has no path");
    if (f.path.p && f.name.p)
        ah_lua_raise(L, AH_USAGE, "ah.store: a store with a path has no name");
    *o = (ah_store_options){.path = f.path,
                            .name = f.name,
                            .sync = f.sync,
                            .bytes = f.bytes,
                            .force = f.force,
                            .create = f.path.p || f.engine == MEMORY};
}

static void check_path(lua_State *L, ah_slice path)
{
    if (path.p && (path.n == 0 || memchr(path.p, '\0', path.n)))
        ah_lua_raise(L, AH_USAGE, "ah.store: the path must have at least 1 byte, and no NUL");
}

static ah_open_store *store_at(lua_State *L, int idx)
{
    ah_open_store **box = luaL_testudata(L, idx, STORE);

    if (box && !*box)
        ah_lua_raise(L, AH_USAGE, "the store is closed");
    return box ? *box : NULL;
}

/* The path of the host's own store; NULL: it has none. */
static const char *path_of_host(const ah_lua *h)
{
    const char *env = getenv("AGENTHOST_STORE");

    return h->host->store ? h->host->store->data : env && *env ? env : NULL;
}

ah_status ah_lua_to_store(lua_State *L, int idx, ah_open_store **out, ah_err *err)
{
    ah_lua *h = ah_lua_of(L);
    ah_store_options o = {.create = true};
    ah_open_store *open = store_at(L, idx);
    int type = lua_type(L, idx);

    if (open) {
        *out = ah_open_store_ref(open);
        return AH_OK;
    }
    if (type == LUA_TSTRING)
        o.path.p = lua_tolstring(L, idx, &o.path.n);
    else if (type == LUA_TTABLE)
        read_table(L, lua_absindex(L, idx), &o);
    else if (type == LUA_TNIL)
        o.path = ah_slice_of(path_of_host(h));
    else
        ah_lua_raise(L, AH_USAGE, "store: expected a path, a store or a table of fields, found %s",
                     luaL_typename(L, idx));
    check_path(L, o.path);
    if (type == LUA_TNIL && !o.path.p) {
        *out = NULL;
        return AH_OK;
    }
    return ah_open_store_new(h->host, &o, out, err);
}

ah_open_store **ah_lua_push_held_store(lua_State *L)
{
    ah_open_store **box = lua_newuserdatauv(L, sizeof *box, 0);

    *box = NULL;
    luaL_setmetatable(L, STORE);
    return box;
}

void ah_lua_push_store(lua_State *L, ah_open_store *s)
{
    *ah_lua_push_held_store(L) = ah_open_store_ref(s);
}

static int fail(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

/* ah.store(path | { path, engine, name, sync, ... }): a store, or nil and an error */
static int new_store(lua_State *L)
{
    ah_open_store **box;
    ah_err err;

    ah_lua_no_step(L, "ah.store");
    lua_settop(L, 1);
    if (lua_isnil(L, 1))
        return ah_lua_raise(L, AH_USAGE,
                            "ah.store: expected a path or a table of fields, found "
                            "nothing: write ah.store \"work.db\"");
    box = ah_lua_push_held_store(L);
    return ah_lua_to_store(L, 1, box, &err) == AH_OK ? 1 : fail(L, &err);
}

/* -- its methods ---------------------------------------------------------------------------------
 */

ah_open_store *ah_lua_check_store(lua_State *L)
{
    ah_lua_no_step(L, "a store");
    luaL_checkudata(L, 1, STORE);
    return store_at(L, 1);
}

ah_slice ah_lua_store_text(lua_State *L, int idx, const char *method, const char *what)
{
    ah_slice s = {NULL, 0};

    if (lua_type(L, idx) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "%s: %s must be a string, found %s", method, what,
                     lua_isnone(L, idx) ? "nothing" : luaL_typename(L, idx));
    s.p = lua_tolstring(L, idx, &s.n);
    if (!ah_utf8_valid(s))
        ah_lua_raise(L, AH_USAGE, "%s: %s is not UTF-8", method, what);
    return s;
}

typedef ah_status (*lister)(ah_host *h, ah_open_store *s, ah_slice text, ah_buf *out, ah_err *err);

static int push_list(lua_State *L, lister list, ah_slice text)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_buf *out = ah_lua_push_buf(L, MAX_LIST);
    ah_err err;

    lua_toclose(L, -1);
    if (list(ah_lua_of(L)->host, s, text, out, &err) != AH_OK)
        return fail(L, &err);
    ah_lua_push_json(L, ah_buf_slice(out));
    return 1;
}

typedef struct asks_fields {
    ah_slice id;
} asks_fields;

static const ah_option asks_rows[] = {
    {.name = "id",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(asks_fields, id),
     .doc = "only those of conversations whose ids begin so"},
    {0},
};
const ah_subject ah_subject_store_asks = {
    .what = "store:asks", .type = "ah.StoreAsksOptions", .row = asks_rows};

/* store:asks { id }: the open asks of the store's conversations, or nil and an error */
static int store_asks(lua_State *L)
{
    asks_fields f = {0};

    ah_lua_check_store(L);
    lua_settop(L, 2);
    if (!lua_isnil(L, 2))
        ah_options_read(L, 2, &ah_subject_store_asks, &f);
    return push_list(L, ah_open_store_asks, f.id.p ? f.id : ah_slice_of(""));
}

static int done(lua_State *L, ah_status st, const ah_err *err)
{
    if (st != AH_OK)
        return fail(L, err);
    lua_pushboolean(L, true);
    return 1;
}

typedef struct respond_fields {
    ah_slice by;
} respond_fields;

static const ah_option respond_rows[] = {
    {.name = "by",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(respond_fields, by),
     .doc = "the name of the person that responds; it is recorded"},
    {0},
};
const ah_subject ah_subject_respond = {
    .what = "store:respond", .type = "ah.RespondOptions", .row = respond_rows};

/* store:respond(conversation, ask, response, { by }): true, or nil and an error */
static int store_respond(lua_State *L)
{
    static const char here[] = "store:respond";
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice conversation = ah_lua_store_text(L, 2, here, "the conversation"),
             ask = ah_lua_store_text(L, 3, here, "the ask");
    respond_fields f = {0};
    ah_buf *response;
    ah_status st;
    ah_err err;

    lua_settop(L, 5);
    if (lua_isnil(L, 4))
        return ah_lua_raise(L, AH_USAGE,
                            "store:respond: the response is missing: true or false for "
                            "an approval, else a value of the ask's schema");
    if (!lua_isnil(L, 5))
        ah_options_read(L, 5, &ah_subject_respond, &f);
    response = ah_lua_push_buf(L, AH_MAX_RESPONSE);
    lua_toclose(L, -1);
    st = ah_lua_to_json(L, 4, response->mem, response, &err);
    if (st == AH_OK)
        st = ah_open_store_respond(ah_lua_of(L)->host, s, conversation, ask, ah_buf_slice(response),
                                   f.by, &err);
    return done(L, st, &err);
}

/* store:cancel(conversation): true, or nil and an error */
static int store_cancel(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice conversation = ah_lua_store_text(L, 2, "store:cancel", "the conversation");
    ah_err err;

    return done(L, ah_open_store_cancel(ah_lua_of(L)->host, s, conversation, &err), &err);
}

/* store:send(conversation, text): true, or nil and an error */
static int store_send(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice conversation = ah_lua_store_text(L, 2, "store:send", "the conversation"),
             text = ah_lua_store_text(L, 3, "store:send", "the text");
    ah_err err;

    return done(L, ah_open_store_send(ah_lua_of(L)->host, s, conversation, text, &err), &err);
}

/* Returns the number of a turn. */
static int64_t turn_at(lua_State *L, int idx)
{
    int is = 0;
    lua_Integer turn = lua_tointegerx(L, idx, &is);

    if (!is || turn < 1)
        ah_lua_raise(L, AH_USAGE, "store:changes: a turn is a number from 1, found %s",
                     luaL_tolstring(L, idx, NULL));
    return turn;
}

/* store:changes(conversation, turn, last): what the turns changed, or nil and an error */
static int store_changes(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice conversation = ah_lua_store_text(L, 2, "store:changes", "the conversation");
    int64_t first = lua_isnoneornil(L, 3) ? 0 : turn_at(L, 3);
    int64_t last = lua_isnoneornil(L, 4) ? first : turn_at(L, 4);
    ah_buf *out;
    ah_err err;

    if (last < first || (!first && last))
        return ah_lua_raise(L, AH_USAGE, "store:changes: the last turn is before the first");
    out = ah_lua_push_buf(L, MAX_LIST);
    lua_toclose(L, -1);
    if (ah_open_store_changes(ah_lua_of(L)->host, s, conversation, first, last, out, &err) != AH_OK)
        return fail(L, &err);
    ah_lua_push_json(L, ah_buf_slice(out));
    return 1;
}

/* store:replay(conversation): the outcome, or nil and an error */
static int store_replay(lua_State *L)
{
    return push_list(L, ah_open_store_replay,
                     ah_lua_store_text(L, 2, "store:replay", "the conversation"));
}

static int store_close(lua_State *L)
{
    ah_open_store **box = luaL_checkudata(L, 1, STORE), *s = *box;

    *box = NULL;
    ah_open_store_unref(s);
    return 0;
}

static int store_gc(lua_State *L)
{
    store_close(L);
    return ah_lua_retire(L);
}

static int store_tostring(lua_State *L)
{
    ah_open_store **box = luaL_checkudata(L, 1, STORE);
    ah_slice path = *box ? ah_open_store_path(*box) : (ah_slice){NULL, 0};

    if (*box && !path.p)
        path = ah_open_store_name(*box);
    if (!*box)
        lua_pushliteral(L, "store (closed)");
    else if (path.p)
        lua_pushfstring(L, "store %s", lua_pushlstring(L, path.p, path.n));
    else
        lua_pushliteral(L, "store (memory)");
    return 1;
}

/* Upvalue 1: the methods. */
static int store_index(lua_State *L)
{
    ah_open_store **box = luaL_checkudata(L, 1, STORE);
    ah_slice path;

    if (lua_type(L, 2) != LUA_TSTRING || strcmp(lua_tostring(L, 2), "path") != 0) {
        lua_pushvalue(L, 2);
        lua_gettable(L, lua_upvalueindex(1));
        return 1;
    }
    path = *box ? ah_open_store_path(*box) : (ah_slice){NULL, 0};
    if (path.p)
        lua_pushlstring(L, path.p, path.n);
    else
        lua_pushnil(L);
    return 1;
}

/* -- for the programs of the command -------------------------------------------------------------
 */

/* _conversations(store, prefix): a list of { conversation, changed, messages, label } */
static int conversations(lua_State *L)
{
    return push_list(L, ah_open_store_conversations,
                     ah_lua_store_text(L, 2, "_conversations", "the prefix"));
}

/* _spent(store, seconds since 1970): a list of { id, folder, spent, lately, damaged }; lately:
 * since then */
static int spent(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    lua_Number since = luaL_checknumber(L, 2);
    ah_buf *out = ah_lua_push_buf(L, MAX_LIST);
    ah_err err;

    lua_toclose(L, -1);
    if (ah_open_store_spent(ah_lua_of(L)->host, s, (int64_t)(since * 1000), out, &err) != AH_OK)
        return fail(L, &err);
    ah_lua_push_json(L, ah_buf_slice(out));
    return 1;
}

/* _opened(store, conversation): the record `opened` */
static int opened(lua_State *L)
{
    return push_list(L, ah_open_store_opened,
                     ah_lua_store_text(L, 2, "_opened", "the conversation"));
}

/* _unfinished(store, conversation): true if it has an unfinished run */
static int unfinished(lua_State *L)
{
    return push_list(L, ah_open_store_unfinished,
                     ah_lua_store_text(L, 2, "_unfinished", "the conversation"));
}

void ah_lua_open_store(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", store_gc}, {"__close", store_close}, {"__tostring", store_tostring}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"close", store_close},
                                       {"asks", store_asks},
                                       {"respond", store_respond},
                                       {"cancel", store_cancel},
                                       {"send", store_send},
                                       {"changes", store_changes},
                                       {"conversations", ah_lua_store_conversations},
                                       {"records", ah_lua_store_records},
                                       {"search", ah_lua_store_search},
                                       {"subscribe", ah_lua_store_subscribe},
                                       {"replay", store_replay},
                                       {"export", ah_lua_store_export},
                                       {"import", ah_lua_store_import},
                                       {"delete", ah_lua_store_delete},
                                       {"verify", ah_lua_store_verify},
                                       {"stat", ah_lua_store_stat},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {{"store", new_store},
                                         {"_conversations", conversations},
                                         {"_spent", spent},
                                         {"_opened", opened},
                                         {"_unfinished", unfinished},
                                         {"_store_remove", ah_lua_store_remove},
                                         {"_store_erase", ah_lua_store_erase},
                                         {"_store_purge", ah_lua_store_purge},
                                         {NULL, NULL}};

    ah_lua_open_store_look(L);
    luaL_newmetatable(L, STORE);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "store");
    lua_pushcclosure(L, store_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
