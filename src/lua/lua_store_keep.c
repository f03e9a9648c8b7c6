/* store:export, store:import, store:delete, store:verify and store:stat. What they do is in
 * host/store_keep.h and host/store_export.h; this file converts. */
#include "lua/lua_store_keep.h"

#include "host/store_export.h"
#include "host/store_keep.h"
#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_options.h"
#include "lua/lua_store.h"
#include "lua/lua_value.h"

enum { MAX_EXPORT = 1 << 30, MAX_RESULT = 256 << 20 };

static int fail(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

/* Returns the string at 2. */
static ah_slice check_text(lua_State *L, const char *method, const char *what)
{
    ah_slice s;

    if (lua_type(L, 2) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "%s: %s must be a string, found %s", method, what,
                     luaL_typename(L, 2));
    s.p = lua_tolstring(L, 2, &s.n);
    return s;
}

static ah_buf *push_result(lua_State *L, size_t most)
{
    ah_buf *out = ah_lua_push_buf(L, most);

    lua_toclose(L, -1);
    return out;
}

/* Pushes the value of the JSON, or nil and the error. */
static int give(lua_State *L, ah_status st, const ah_buf *out, const ah_err *err)
{
    if (st != AH_OK)
        return fail(L, err);
    ah_lua_push_json(L, ah_buf_slice(out));
    return 1;
}

static int done(lua_State *L, ah_status st, const ah_err *err)
{
    if (st != AH_OK)
        return fail(L, err);
    lua_pushboolean(L, true);
    return 1;
}

/* -- export and import ---------------------------------------------------------------------------
 */

typedef struct export_fields {
    bool kept;
} export_fields;

static const ah_option export_rows[] = {
    {.name = "kept",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(export_fields, kept),
     .doc = "with what is [kept](journal.md#classes-of-data), and not only said; an unfinished run "
            "can go on only with it"},
    {0},
};
const ah_subject ah_subject_export = {
    .what = "store:export", .type = "ah.ExportOptions", .row = export_rows};

/* store:export(id, { kept }): the stream as text, or nil and an error */
int ah_lua_store_export(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice id = check_text(L, "store:export", "the conversation");
    export_fields f = {false};
    ah_buf *out;
    ah_err err;

    lua_settop(L, 3);
    if (!lua_isnil(L, 3))
        ah_options_read(L, 3, &ah_subject_export, &f);
    out = push_result(L, MAX_EXPORT);
    if (ah_open_store_export(ah_lua_of(L)->host, s, id, f.kept, out, &err) != AH_OK)
        return fail(L, &err);
    lua_pushlstring(L, ah_buf_slice(out).p, out->len);
    return 1;
}

typedef struct import_fields {
    ah_slice id;
} import_fields;

static const ah_option import_rows[] = {
    {.name = "id",
     .kinds = AH_OPT_STRING,
     .otherwise = "that of the export",
     .to = AH_TO_HELD(import_fields, id),
     .doc = "the id that the conversation gets"},
    {0},
};
const ah_subject ah_subject_import = {
    .what = "store:import", .type = "ah.ImportOptions", .row = import_rows};

/* store:import(text, { id }): { id, records, erased, head }, or nil and an error */
int ah_lua_store_import(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice text = check_text(L, "store:import", "the export");
    import_fields f = {{NULL, 0}};
    ah_buf *out;
    ah_err err;

    lua_settop(L, 3);
    if (!lua_isnil(L, 3))
        ah_options_read(L, 3, &ah_subject_import, &f);
    out = push_result(L, MAX_RESULT);
    return give(L, ah_open_store_import(ah_lua_of(L)->host, s, text, f.id, out, &err), out, &err);
}

/* -- deleting ------------------------------------------------------------------------------------
 */

/* store:delete(id): true, or nil and an error */
int ah_lua_store_delete(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice id = check_text(L, "store:delete", "the conversation");
    ah_err err;
    ah_status st = ah_open_store_remove(s, id, &err);

    if (st == AH_OK)
        st = ah_open_store_purge(s, &err);
    return done(L, st, &err);
}

/* _store_remove(store, id): as store:delete, but some of it may stay until _store_purge */
int ah_lua_store_remove(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice id = check_text(L, "_store_remove", "the conversation");
    ah_err err;

    return done(L, ah_open_store_remove(s, id, &err), &err);
}

/* _store_purge(store): true, or nil and an error */
int ah_lua_store_purge(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_err err;

    return done(L, ah_open_store_purge(s, &err), &err);
}

/* _store_erase(store, id, older): the number of records, or nil and an error */
int ah_lua_store_erase(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice id = check_text(L, "_store_erase", "the conversation");
    int64_t n = 0;
    ah_err err;

    if (ah_open_store_erase(s, id, luaL_checkinteger(L, 3), &n, &err) != AH_OK)
        return fail(L, &err);
    lua_pushinteger(L, n);
    return 1;
}

/* -- verifying and measuring ---------------------------------------------------------------------
 */

typedef struct verify_fields {
    ah_slice head;
} verify_fields;

static const ah_option verify_rows[] = {
    {.name = "head",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(verify_fields, head),
     .doc = "a head that was noted before, with which cuts and forgeries are found"},
    {0},
};
const ah_subject ah_subject_verify = {
    .what = "store:verify", .type = "ah.VerifyOptions", .row = verify_rows};

/* store:verify(id, { head }): a table of the result, or nil and an error */
int ah_lua_store_verify(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_slice id = check_text(L, "store:verify", "the conversation");
    verify_fields f = {{NULL, 0}};
    ah_buf *out;
    ah_err err;

    lua_settop(L, 3);
    if (!lua_isnil(L, 3))
        ah_options_read(L, 3, &ah_subject_verify, &f);
    out = push_result(L, MAX_RESULT);
    return give(L, ah_open_store_verify(s, id, f.head, out, &err), out, &err);
}

/* store:stat(): a table of sizes, or nil and an error */
int ah_lua_store_stat(lua_State *L)
{
    ah_open_store *s = ah_lua_check_store(L);
    ah_buf *out = push_result(L, MAX_RESULT);
    ah_err err;

    return give(L, ah_open_store_stat(ah_lua_of(L)->host, s, out, &err), out, &err);
}
