/* Lets the library's own Lua declare tables of options. ah._reader takes such a subject
 * (base/option.h) as a Lua table and returns its reader, which works like a reader of a C subject.
 * ah._options lists the subjects of C and of Lua. */
#include <lauxlib.h>

#include "lua/lua_open.h"
#include "lua/lua_options.h"

/* A reader; its user value keeps its texts. */
typedef struct reader {
    ah_subject subject;
    ah_option row[]; /* the last one has no name */
} reader;

static const char READERS[] =
    "agenthost.readers"; /* registry: a list of readers; also type -> place */

enum { SUBJECT = 1, TEXTS, DEFAULTS, READER, ROWS }; /* stack of make_reader */

/* Returns the text on top (popped), and keeps it. */
static const char *hold(lua_State *L)
{
    const char *text = lua_tostring(L, -1);

    lua_pushboolean(L, 1);
    lua_rawset(L, TEXTS);
    return text;
}

/* Returns the text in a field of the table on top. */
static const char *text_of(lua_State *L, const char *name)
{
    int type = lua_getfield(L, -1, name);

    if (type == LUA_TSTRING)
        return hold(L);
    if (type != LUA_TNIL)
        luaL_error(L, "'%s' of a row is no text", name);
    lua_pop(L, 1);
    return NULL;
}

static double number_of(lua_State *L, const char *name)
{
    double n;

    lua_getfield(L, -1, name);
    n = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return n;
}

static unsigned kind_of(lua_State *L, ah_slice word)
{
    for (unsigned i = 0; i < AH_OPT_KINDS; i++)
        if (ah_slice_is(word, ah_option_kind_name[i]))
            return 1U << i;
    return (unsigned)luaL_error(L, "'%s' is no kind of option", lua_pushlstring(L, word.p, word.n));
}

/* Returns the bits of the kinds named in `words`, such as "string list". */
static unsigned kinds_of(lua_State *L, const char *words)
{
    unsigned kinds = 0;
    size_t n;

    for (; words && *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        kinds |= kind_of(L, (ah_slice){words, n});
    }
    return kinds ? kinds : (unsigned)luaL_error(L, "an option without kinds");
}

/* Returns the default as pages show it, unless the row has a text for that. */
static const char *show_default(lua_State *L)
{
    int type = lua_getfield(L, -1, "default");

    if (type == LUA_TNIL || type == LUA_TTABLE) {
        lua_pop(L, 1);
        return NULL;
    }
    luaL_tolstring(L, -1, NULL);
    if (type == LUA_TSTRING)
        lua_pushfstring(L, "`\"%s\"`", lua_tostring(L, -1));
    else
        lua_pushvalue(L, -1);
    lua_replace(L, -3);
    lua_pop(L, 1);
    return hold(L);
}

/* Reads the row on top. */
static void read_row(lua_State *L, ah_option *o)
{
    if (!(o->name = text_of(L, "name")))
        luaL_error(L, "an option without a name");
    o->kinds = kinds_of(L, text_of(L, "kinds"));
    o->least = number_of(L, "least");
    o->most = number_of(L, "most");
    o->words = text_of(L, "words");
    o->otherwise = text_of(L, "otherwise");
    o->unit = text_of(L, "unit");
    o->is = text_of(L, "is");
    o->type = text_of(L, "type");
    o->doc = text_of(L, "doc");
    lua_getfield(L, -1, "needed");
    o->needed = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (!o->otherwise)
        o->otherwise = show_default(L);
}

/* Lists the reader on top in ah._options; it replaces one of the same type. */
static void note(lua_State *L, const char *type)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, READERS);
    if (lua_getfield(L, -1, type) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1) + 1);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, type);
    }
    lua_pushvalue(L, -3); /* -- reader readers place reader */
    lua_settable(L, -3);
    lua_pop(L, 1);
}

/* (table, what or nil), with the reader and its defaults as upvalues -> a new table with the
 * fields */
static int read(lua_State *L)
{
    const reader *r = lua_touserdata(L, lua_upvalueindex(1));

    lua_settop(L, 2);
    ah_options_read_as(L, 1, &r->subject, luaL_optstring(L, 2, r->subject.what), NULL);
    for (lua_pushnil(L); lua_next(L, lua_upvalueindex(2));) { /* -- table what name default */
        lua_pushvalue(L, -2);
        if (lua_rawget(L, 1) == LUA_TNIL) {
            lua_pushvalue(L, -3);
            lua_pushvalue(L, -3);
            lua_rawset(L, 1);
        }
        lua_pop(L, 2);
    }
    lua_settop(L, 1);
    return 1;
}

/* Pushes a reader of the subject, with rows still to be filled. */
static reader *push_reader(lua_State *L, size_t n)
{
    size_t size = sizeof(reader) + (n + 1) * sizeof(ah_option);
    reader *r = lua_newuserdatauv(L, size, 1);

    memset(r, 0, size);
    lua_pushvalue(L, TEXTS);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, SUBJECT);
    r->subject.what = text_of(L, "what");
    r->subject.type = text_of(L, "type");
    r->subject.doc = text_of(L, "doc");
    r->subject.list = text_of(L, "list");
    r->subject.row = r->row;
    lua_pop(L, 1);
    luaL_argcheck(L, r->subject.what && r->subject.type, 1, "no subject");
    return r;
}

/* ah._reader "ah.Annotations": a reader of a subject of C. */
static int reader_of_type(lua_State *L)
{
    const ah_subject *s = ah_subject_of_type(lua_tostring(L, 1));
    reader *r = lua_newuserdatauv(L, sizeof *r, 0);

    luaL_argcheck(L, s, 1, "no subject has that type");
    r->subject = *s;
    lua_newtable(L);
    lua_pushcclosure(L, read, 2);
    return 1;
}

/* ah._reader { what, type, doc, list, rows = { { name, kinds = "string list", least, most, words,
 * default, otherwise, unit, is, type, doc, needed } } }: returns read(table, what) -> a new table,
 * with the defaults of absent fields. */
static int make_reader(lua_State *L)
{
    lua_Integer n;
    reader *r;

    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING)
        return reader_of_type(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_newtable(L); /* texts */
    lua_newtable(L); /* defaults */
    lua_getfield(L, SUBJECT, "rows");
    n = luaL_len(L, -1);
    luaL_argcheck(L, n <= AH_MOST_OPTIONS, 1, "too many rows");
    r = push_reader(L, (size_t)n);
    lua_insert(L, READER);
    for (lua_Integer i = 0; i < n; i++) {
        lua_geti(L, ROWS, i + 1);
        read_row(L, &r->row[i]);
        lua_getfield(L, -1, "default");
        lua_setfield(L, DEFAULTS, r->row[i].name);
        lua_pop(L, 1);
    }
    lua_settop(L, READER);
    note(L, r->subject.type);
    lua_insert(L, DEFAULTS);
    lua_pushcclosure(L, read, 2);
    return 1;
}

const ah_subject *ah_reader_subject(lua_State *L, int n)
{
    const reader *r;

    luaL_getsubtable(L, LUA_REGISTRYINDEX, READERS);
    lua_rawgeti(L, -1, n);
    r = lua_touserdata(L, -1);
    lua_pop(L, 2);
    return r ? &r->subject : NULL;
}

void ah_lua_open_reader(lua_State *L)
{
    lua_pushcfunction(L, make_reader);
    lua_setfield(L, -2, "_reader");
}
