/* store:conversations, store:records, store:search and store:subscribe. What they read is in
 * host/store_look.h and host/store_search.h; this file converts. A subscription lasts until it is
 * closed, even without references. A search first waits until its store is indexed. */
#include "lua/lua_store_look.h"

#include "host/store_look.h"
#include "host/store_search.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_options.h"
#include "lua/lua_store.h"
#include "lua/lua_task.h"
#include "lua/lua_value.h"
#include "model/record.h"

static const char SUBSCRIPTION[] = "agenthost.subscription", WAIT[] = "agenthost.search_wait";

enum {
    MAX_PAGE = (2 * AH_STORE_MAX_RECORD) + (1 << 20), /* bytes of a list as JSON */
    MOST_LISTED = 1000000,
    MOST_FOUND = 10000,
    MOST_MEMBERS = 64,
    WATCHED = 1000 /* conversations that a subscription compares */
};

/* -- store:conversations -------------------------------------------------------------------------
 */

typedef struct list_fields {
    ah_slice prefix, folder, state;
    bool waiting;
    size_t limit;
} list_fields;

static const ah_option list_rows[] = {
    {.name = "prefix",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(list_fields, prefix),
     .doc = "only those whose ids begin so"},
    {.name = "folder",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(list_fields, folder),
     .doc = "only those of this working folder, an absolute path"},
    {.name = "state",
     .kinds = AH_OPT_STRING,
     .words = "idle running waiting",
     .to = AH_TO_HELD(list_fields, state),
     .doc = "only those in this state"},
    {.name = "waiting",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(list_fields, waiting),
     .doc = "only those that wait for the response to an ask"},
    {.name = "limit",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = MOST_LISTED,
     .otherwise = "1000",
     .to = AH_TO_SIZE(list_fields, limit),
     .doc = "at most so many, the newest"},
    {0},
};
const ah_subject ah_subject_conversations = {
    .what = "store:conversations", .type = "ah.ConversationsOptions", .row = list_rows};

static int fail(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

/* store:conversations { prefix, folder, state, waiting, limit }: a list, or nil and an error */
int ah_lua_store_conversations(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    list_fields f = {.limit = WATCHED};
    ah_conversations_query q;
    ah_buf *out;
    ah_err err;

    lua_settop(L, 2);
    if (!lua_isnil(L, 2))
        ah_options_read(L, 2, &ah_subject_conversations, &f);
    q = (ah_conversations_query){.prefix = f.prefix,
                                 .folder = f.folder,
                                 .state = f.state,
                                 .waiting = f.waiting,
                                 .limit = f.limit};
    out = ah_lua_push_buf(L, MAX_PAGE);
    lua_toclose(L, -1);
    if (ah_open_store_list(ah_lua_of(L)->host, s, &q, out, &err) != AH_OK)
        return fail(L, &err);
    ah_lua_push_json(L, ah_buf_slice(out));
    return 1;
}

/* -- store:search --------------------------------------------------------------------------------
 */

typedef struct search_fields {
    ah_slice folder;
    bool best;
    size_t limit;
} search_fields;

static const ah_option search_rows[] = {
    {.name = "best",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(search_fields, best),
     .doc = "the best hits first, of the newest 10,000; else the newest first"},
    {.name = "folder",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(search_fields, folder),
     .doc = "only in conversations of this working folder, an absolute path"},
    {.name = "limit",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = MOST_FOUND,
     .otherwise = "20",
     .to = AH_TO_SIZE(search_fields, limit),
     .doc = "at most so many hits"},
    {0},
};
const ah_subject ah_subject_store_search = {
    .what = "store:search", .type = "ah.StoreSearchOptions", .row = search_rows};

/* The wait of a search. */
typedef struct search_wait {
    ah_task_waiter waiter;
    ah_search_wait index;
} search_wait;

static int search_wait_gc(lua_State *L)
{
    ah_search_wait_end(&((search_wait *)luaL_checkudata(L, 1, WAIT))->index);
    return ah_lua_retire(L);
}

static void leave_search(ah_task_waiter *waiter)
{
    ah_search_wait_end(
        &((search_wait *)(void *)((char *)waiter - offsetof(search_wait, waiter)))->index);
}

static void on_indexed(ah_search_wait *index)
{
    ah_task_waiter_done(
        &((search_wait *)(void *)((char *)index - offsetof(search_wait, index)))->waiter);
}

/* -- wait */
static search_wait *push_search_wait(lua_State *L)
{
    search_wait *w = lua_newuserdatauv(L, sizeof *w, 0);

    *w = (search_wait){.waiter.leave = leave_search};
    luaL_setmetatable(L, WAIT);
    return w;
}

/* Reads the arguments (store, words, options), which keep its texts. */
static void read_search(lua_State *L, ah_search_query *out)
{
    search_fields f = {.limit = 20};

    out->words = ah_lua_store_text(L, 2, "store:search", "the words");
    if (!lua_isnil(L, 3))
        ah_options_read(L, 3, &ah_subject_store_search, &f);
    out->folder = f.folder;
    out->best = f.best;
    out->limit = f.limit;
}

/* Searches the store s. */
static int search_store(lua_State *L, ah_open_store *s)
{
    ah_search_query q;
    ah_buf *out;
    ah_err err;

    read_search(L, &q);
    out = ah_lua_push_buf(L, MAX_PAGE);
    lua_toclose(L, -1);
    if (ah_open_store_search(ah_lua_of(L)->host, s, &q, out, &err) != AH_OK)
        return fail(L, &err);
    ah_lua_push_json(L, ah_buf_slice(out));
    return 1;
}

/* (store, words, options, wait) */
static int search_indexed(lua_State *L, int status, lua_KContext ctx)
{
    search_wait *w = lua_touserdata(L, 4);
    ah_err err = w->index.err;
    int n;

    (void)status;
    (void)ctx;
    n = err.status == AH_OK ? search_store(L, w->index.store) : fail(L, &err);
    ah_search_wait_end(&w->index);
    return n;
}

/* store:search(words, { best, folder, limit }): a list of hits, or nil and an error. Where it may
 * not wait, it indexes what is missing itself. */
int ah_lua_store_search(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_search_query q;
    search_wait *w;

    lua_settop(L, 3);
    read_search(L, &q); /* for its errors: the table may change during the wait */
    if (!ah_lua_may_linger(L))
        return search_store(L, s);
    w = push_search_wait(L);
    ah_task_waiter_keep(L, &w->waiter);
    if (ah_search_wait_begin(&w->index, s, on_indexed))
        return ah_lua_await(L, &w->waiter, 0, search_indexed);
    ah_task_waiter_done(&w->waiter);
    return search_store(L, s);
}

/* -- store:records -------------------------------------------------------------------------------
 */

typedef struct records_fields {
    double from, to;
    bool kept;
} records_fields;

static const ah_option records_rows[] = {
    {.name = "from",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "1",
     .to = AH_TO_DOUBLE(records_fields, from),
     .doc = "number of the first record"},
    {.name = "to",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "the last one",
     .to = AH_TO_DOUBLE(records_fields, to),
     .doc = "number of the last record"},
    {.name = "kinds",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "string[]",
     .otherwise = "all",
     .doc = "only records of these [kinds](journal.md#kinds)"},
    {.name = "members",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "string[]",
     .otherwise = "all",
     .doc = "only these members of `said`, which is faster"},
    {.name = "kept",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(records_fields, kept),
     .doc = "with what is [kept](journal.md#classes-of-data), and not only said"},
    {0},
};
const ah_subject ah_subject_records = {
    .what = "store:records", .type = "ah.RecordsOptions", .row = records_rows};

/* A reading, as userdata. Its user values are the page that is being given, and a table with the
 * names of the members. */
typedef struct reading {
    int64_t from, to; /* from: 0: the page is the last one */
    uint64_t kinds;
    bool kept;
    lua_Integer at; /* in the page */
    size_t n;
    ah_slice member[MOST_MEMBERS];
} reading;

static uint64_t kind_bit(lua_State *L, int idx)
{
    size_t n;
    const char *p = lua_type(L, idx) == LUA_TSTRING ? lua_tolstring(L, idx, &n) : NULL;
    ah_record_kind kind = p ? ah_record_kind_of((ah_slice){p, n}) : AH_RECORD_KINDS;

    if (kind == AH_RECORD_KINDS)
        ah_lua_raise(L, AH_USAGE, "store:records: kinds: there is no kind of records '%s'",
                     p ? p : luaL_typename(L, idx));
    return (uint64_t)1 << kind;
}

/* Returns bits of the kinds in the table at idx; 0: all. */
static uint64_t read_kinds(lua_State *L, int idx)
{
    uint64_t bits = 0;
    lua_Integer n;

    if (!ah_lua_field_list(L, idx, "store:records", "kinds", &n))
        return 0;
    if (n == 0)
        ah_lua_raise(L, AH_USAGE, "store:records: kinds is empty: leave it out for all kinds");
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        bits |= kind_bit(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return bits;
}

/* Reads the names of members in the table at idx into the reading at `at`; none: all. */
static void read_members(lua_State *L, int idx, reading *r, int at)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, idx, "store:records", "members", &n))
        return;
    if (n == 0 || n > MOST_MEMBERS)
        ah_lua_raise(L, AH_USAGE, "store:records: members has %d names, expected 1 to %d", (int)n,
                     MOST_MEMBERS);
    lua_createtable(L, (int)n, 0); /* -- list names */
    for (lua_Integer i = 1; i <= n; i++) {
        ah_slice *name = &r->member[i - 1];

        if (lua_rawgeti(L, -2, i) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "store:records: members[%d] must be a string, found %s",
                         (int)i, luaL_typename(L, -1));
        name->p = lua_tolstring(L, -1, &name->n);
        lua_rawseti(L, -2, i);
    }
    lua_setiuservalue(L, at, 2);
    lua_pop(L, 1);
    r->n = (size_t)n;
}

/* Reads the next page of the stream named at `name` into the user value of r, which is at `at`. */
static ah_status read_page(lua_State *L, ah_open_store *s, int name, reading *r, int at,
                           ah_err *err)
{
    ah_records_query q = {.from = r->from,
                          .to = r->to,
                          .kinds = r->kinds,
                          .member = r->member,
                          .members = r->n,
                          .kept = r->kept};
    ah_buf *out;
    ah_status st;

    q.stream.p = lua_tolstring(L, name, &q.stream.n);
    out = ah_lua_push_buf(L, MAX_PAGE);
    lua_toclose(L, -1);
    st = ah_open_store_records(ah_lua_of(L)->host, s, &q, out, &r->from, err);
    if (st != AH_OK)
        return st;
    ah_lua_push_json(L, ah_buf_slice(out));
    lua_setiuservalue(L, at, 1);
    r->at = 0;
    lua_closeslot(L, -1);
    lua_pop(L, 1);
    return AH_OK;
}

/* Upvalues: the store, the id, the reading. */
static int next_record(lua_State *L)
{
    reading *r = lua_touserdata(L, lua_upvalueindex(3));
    ah_err err;

    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, lua_upvalueindex(3));
    for (;;) {
        lua_getiuservalue(L, 3, 1);
        if (lua_rawgeti(L, -1, ++r->at) != LUA_TNIL)
            return 1;
        lua_settop(L, 3);
        if (!r->from)
            return 0;
        if (read_page(L, ah_lua_check_store(L), 2, r, 3, &err) != AH_OK)
            return ah_lua_raise_err(L, &err);
    }
}

/* store:records(id, { from, to, kinds, members, kept }): an iterator of records, or nil and an
 * error */
int ah_lua_store_records(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    records_fields f = {.from = 1, .to = AH_OPT_MOST};
    reading *r;
    ah_err err;

    lua_settop(L, 3);
    if (lua_type(L, 2) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "store:records: the conversation must be a string, found %s",
                     luaL_typename(L, 2));
    r = lua_newuserdatauv(L, sizeof *r, 2);
    *r = (reading){0};
    if (!lua_isnil(L, 3)) {
        ah_options_read(L, 3, &ah_subject_records, &f);
        r->kinds = read_kinds(L, 3);
        read_members(L, 3, r, 4);
    }
    r->from = (int64_t)f.from;
    r->to = (int64_t)f.to;
    r->kept = f.kept;
    if (read_page(L, s, 2, r, 4, &err) != AH_OK)
        return fail(L, &err);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 4);
    lua_pushcclosure(L, next_record, 3);
    return 1;
}

/* -- store:subscribe -----------------------------------------------------------------------------
 */

/* Its user value is a table from id to what was known of the conversation, as text. */
typedef struct subscription {
    ah_store_watcher watcher;
    ah_lua *lua;
    ah_open_store *store; /* NULL: closed */
    int fn, self;         /* references */
} subscription;

static subscription *to_subscription(lua_State *L)
{
    return luaL_checkudata(L, 1, SUBSCRIPTION);
}

static int subscription_close(lua_State *L)
{
    subscription *s = to_subscription(L);
    ah_open_store *store = s->store;

    ah_open_store_unwatch(&s->watcher);
    s->store = NULL;
    ah_open_store_unref(store);
    ah_lua_unref(s->lua, &s->fn);
    ah_lua_unref(s->lua, &s->self);
    return 0;
}

static int subscription_gc(lua_State *L)
{
    subscription_close(L);
    return ah_lua_retire(L);
}

static int subscription_tostring(lua_State *L)
{
    lua_pushstring(L, to_subscription(L)->store ? "subscription" : "subscription (closed)");
    return 1;
}

/* Pushes the conversations that were changed last. -- buffer list */
static ah_status push_newest(lua_State *L, const subscription *s, ah_err *err)
{
    ah_conversations_query q = {.brief = true, .limit = WATCHED};
    ah_buf *out = ah_lua_push_buf(L, MAX_PAGE);
    ah_status st;

    lua_toclose(L, -1);
    st = ah_open_store_list(s->lua->host, s->store, &q, out, err);
    if (st == AH_OK)
        ah_lua_push_json(L, ah_buf_slice(out));
    return st;
}

/* Pushes what is compared of the conversation on top: number, state, asks. -- text */
static void push_mark(lua_State *L)
{
    int at = lua_gettop(L);
    luaL_Buffer b;

    lua_getfield(L, at, "waiting");
    lua_getfield(L, at, "number");
    lua_getfield(L, at, "state");
    luaL_buffinit(L, &b);
    lua_pushvalue(L, at + 2);
    luaL_addvalue(&b);
    if (!lua_isnil(L, at + 3)) {
        luaL_addchar(&b, '\n');
        lua_pushvalue(L, at + 3);
        luaL_addvalue(&b);
    }
    for (lua_Integer i = 1; lua_rawgeti(L, at + 1, i) == LUA_TSTRING; i++) {
        luaL_addchar(&b, '\n');
        luaL_addvalue(&b);
    }
    lua_pop(L, 1);
    luaL_pushresult(&b);
    lua_replace(L, at + 1);
    lua_settop(L, at + 1);
}

/* True if the conversation on top has changed; notes it as known in the table at `known`. */
static bool note(lua_State *L, int known)
{
    bool changed;

    push_mark(L);
    lua_getfield(L, -2, "id");
    lua_pushvalue(L, -1);
    lua_rawget(L, known); /* -- mark id before */
    changed = !lua_rawequal(L, -1, -3);
    lua_pop(L, 1);
    lua_pushvalue(L, -2);
    lua_rawset(L, known);
    lua_pop(L, 1);
    return changed;
}

/* (subscription): calls fn for each changed conversation, the one changed first first. */
static int call_changed(lua_State *L)
{
    subscription *s = to_subscription(L);
    ah_err err;

    lua_getiuservalue(L, 1, 1);           /* at 2 */
    if (push_newest(L, s, &err) != AH_OK) /* list at 4 */
        ah_lua_raise_err(L, &err);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, 4); i >= 1 && s->store; i--) {
        lua_rawgeti(L, 4, i);
        if (note(L, 2)) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, s->fn);
            lua_insert(L, -2);
            lua_call(L, 1, 0);
        }
        lua_settop(L, 4);
    }
    return 0;
}

static void on_news(ah_store_watcher *w)
{
    subscription *s = (subscription *)(void *)((char *)w - offsetof(subscription, watcher));
    ah_lua *h = s->lua;
    lua_State *L = h->caller;
    char where[AH_PLACE] = "?";
    ah_err err;

    if (!lua_checkstack(L, 4))
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->fn);
    ah_lua_defined(L, -1, where, sizeof where);
    lua_pop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->self); /* keeps it while its function runs */
    lua_pushcfunction(L, call_changed);
    lua_pushvalue(L, -2);
    if (ah_lua_call_as(h, AH_CALLEE_OBSERVER, L, 1, 0, &err) != AH_OK)
        ah_log_put(&h->host->log, AH_LOG_WARNING, "the function of store:subscribe (%s) failed: %s",
                   where, err.message);
    lua_pop(L, 1);
}

/* (store, fn, subscription): what is there now is known. */
static ah_status note_all(lua_State *L, const subscription *s, ah_err *err)
{
    ah_status st;

    lua_newtable(L);             /* at 4 */
    st = push_newest(L, s, err); /* list at 6 */
    if (st != AH_OK)
        return st;
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, 6); i >= 1; i--) {
        lua_rawgeti(L, 6, i);
        note(L, 4);
        lua_settop(L, 6);
    }
    lua_pushvalue(L, 4);
    lua_setiuservalue(L, 3, 1);
    return AH_OK;
}

/* store:subscribe(fn): an object that ends it with close, or nil and an error */
int ah_lua_store_subscribe(lua_State *L)
{
    ah_open_store *store = ah_lua_check_store(L);
    subscription *s;
    ah_err err;

    lua_settop(L, 2);
    if (!lua_isfunction(L, 2))
        ah_lua_raise(L, AH_USAGE, "store:subscribe: expected a function(conversation), found %s",
                     luaL_typename(L, 2));
    s = lua_newuserdatauv(L, sizeof *s, 1);
    *s = (subscription){.watcher = {.fn = on_news, .records = true},
                        .lua = ah_lua_of(L),
                        .fn = LUA_NOREF,
                        .self = LUA_NOREF};
    luaL_setmetatable(L, SUBSCRIPTION);
    s->store = ah_open_store_ref(store);
    if (note_all(L, s, &err) != AH_OK)
        return fail(L, &err);
    lua_pushvalue(L, 2);
    s->fn = ah_lua_ref(L);
    lua_pushvalue(L, 3);
    s->self = ah_lua_ref(L);
    ah_open_store_watch(store, &s->watcher);
    lua_pushvalue(L, 3);
    return 1;
}

void ah_lua_open_store_look(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", subscription_gc},
                                    {"__close", subscription_close},
                                    {"__tostring", subscription_tostring},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {{"close", subscription_close}, {NULL, NULL}};
    static const luaL_Reg wait_meta[] = {{"__gc", search_wait_gc}, {NULL, NULL}};

    luaL_newmetatable(L, WAIT);
    luaL_setfuncs(L, wait_meta, 0);
    lua_pop(L, 1);
    luaL_newmetatable(L, SUBSCRIPTION);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "subscription");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
