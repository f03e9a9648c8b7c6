/* The only reader of tables whose fields are rows. */
#include "lua/lua_options.h"

#include <stdio.h>
#include <string.h>

#include "base/lent.h"
#include "base/seconds.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"

const char *const ah_option_kind_name[AH_OPT_KINDS] = {
    "boolean", "integer", "number", "string", "list", "table", "function", "object", "any"};

/* -- reading ----------------------------------------------------------------------------- */

static bool is_of(lua_State *L, unsigned kinds)
{
    switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN:
        return kinds & AH_OPT_BOOLEAN;
    case LUA_TNUMBER:
        return kinds & AH_OPT_NUMBER || (kinds & AH_OPT_INTEGER && lua_isinteger(L, -1));
    case LUA_TSTRING:
        return kinds & AH_OPT_STRING;
    case LUA_TTABLE:
        return kinds & (AH_OPT_LIST | AH_OPT_TABLE);
    case LUA_TFUNCTION:
        return kinds & AH_OPT_FUNCTION;
    default:
        return false;
    }
}

/* Returns the text between two of several alternatives; `left` follow. */
static const char *between(unsigned left)
{
    return left > 1 ? ", " : left ? " or " : "";
}

/* Appends "skip", "replace": each word in quotes; `left` kinds follow. */
static void add_words(luaL_Buffer *b, const char *words, unsigned left)
{
    for (const char *p = words; *p; p++)
        left += *p == ' ';
    luaL_addchar(b, '"');
    for (; *words; words++) {
        if (*words != ' ') {
            luaL_addchar(b, *words);
            continue;
        }
        luaL_addchar(b, '"');
        luaL_addstring(b, between(left--));
        luaL_addchar(b, '"');
    }
    luaL_addchar(b, '"');
    luaL_addstring(b, between(left));
}

/* Pushes and returns "a string or a list, { ... }". */
static const char *push_wanted(lua_State *L, const ah_option *o)
{
    luaL_Buffer b;

    luaL_buffinit(L, &b);
    for (unsigned i = 0, left; i < AH_OPT_KINDS; i++) {
        unsigned kind = o->kinds & (1U << i);

        left = 0;
        for (unsigned k = i + 1; k < AH_OPT_KINDS; k++)
            left += o->kinds >> k & 1;
        if (kind == AH_OPT_STRING && o->words) {
            add_words(&b, o->words, left);
        } else if (kind) {
            luaL_addstring(&b, kind == AH_OPT_INTEGER ? "an " : "a ");
            luaL_addstring(&b, ah_option_kind_name[i]);
            luaL_addstring(&b, kind & (AH_OPT_LIST | AH_OPT_TABLE) ? ", { ... }" : "");
            luaL_addstring(&b, between(left));
        }
    }
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

/* Returns a description of the value on top: a number if one is wanted, a string if words are,
 * "agenthost.tool" rather than "userdata". May push. */
static const char *push_found(lua_State *L, const ah_option *o)
{
    int type = lua_type(L, -1);

    if (type == LUA_TNUMBER && o->kinds & (AH_OPT_NUMBER | AH_OPT_INTEGER))
        return luaL_tolstring(L, -1, NULL);
    if (type == LUA_TSTRING && o->words)
        return lua_pushfstring(L, "\"%s\"", lua_tostring(L, -1));
    if (type == LUA_TUSERDATA && luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
        return lua_tostring(L, -1);
    return luaL_typename(L, -1);
}

static double most_of(const ah_option *o)
{
    bool is_int = (o->to & ((1U << AH_STORE_BITS) - 1)) == AH_STORE_INT;

    return o->most != 0 ? o->most : is_int ? INT_MAX : AH_OPT_MOST;
}

static bool is_in_range(lua_State *L, const ah_option *o)
{
    double v = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : o->least;

    return (o->least == 0 && o->most == 0) || (v >= o->least && v <= most_of(o));
}

/* Pushes and returns " of at least 1" or " from 2 to 33"; "" if there is no range, or if other
 * kinds than numbers are allowed. */
static const char *push_range(lua_State *L, const ah_option *o)
{
    bool over = lua_type(L, -1) == LUA_TNUMBER && lua_tonumber(L, -1) > most_of(o);
    bool alone = o->kinds == AH_OPT_INTEGER || o->kinds == AH_OPT_NUMBER;
    bool both = o->most != 0 && o->most < INT_MAX;
    char text[64] = "";

    if ((o->least == 0 && o->most == 0) || (!alone && is_in_range(L, o)))
        ;
    else if (both)
        snprintf(text, sizeof text, " from %.10g to %.10g", o->least, o->most);
    else
        snprintf(text, sizeof text, " of at %s %.10g", over ? "most" : "least",
                 over ? most_of(o) : o->least);
    lua_pushstring(L, text);
    return lua_tostring(L, -1);
}

static void refuse(lua_State *L, const char *what, const ah_option *o)
{
    const char *range, *found;
    int value = lua_gettop(L);

    luaL_checkstack(L, 8, what);
    range = push_range(L, o);
    lua_pushvalue(L, value);
    found = push_found(L, o);
    ah_lua_raise(L, AH_USAGE, "%s: field '%s' must be %s%s, found %s", what, o->name,
                 push_wanted(L, o), range, found);
}

/* Returns the number of the word that equals the string on top, or -1. */
static int word_at(lua_State *L, const char *words)
{
    ah_slice found;
    size_t n;

    found.p = lua_tolstring(L, -1, &found.n);
    for (int i = 0; *words; i++, words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (found.n == n && memcmp(found.p, words, n) == 0)
            return i;
    }
    return -1;
}

static bool is_word(lua_State *L, const ah_option *o)
{
    return !o->words || lua_type(L, -1) != LUA_TSTRING || word_at(L, o->words) >= 0;
}

static void check(lua_State *L, const char *what, const ah_option *o)
{
    if (o->kinds & (AH_OPT_OBJECT | AH_OPT_ANY))
        return;
    if (!is_of(L, o->kinds) || !is_in_range(L, o) || !is_word(L, o))
        refuse(L, what, o);
    if (lua_istable(L, -1) && !(o->kinds & AH_OPT_TABLE)) {
        lua_pushfstring(L, "%s: %s", what, o->name);
        ah_lua_list_check(L, -2, lua_tostring(L, -1));
        lua_pop(L, 1);
    }
}

/* For a row with several kinds, stores only values of the kind that it stores. */
static void store(lua_State *L, const ah_option *o, void *to)
{
    char *at = (char *)to + (o->to >> AH_STORE_BITS);
    unsigned how = o->to & ((1U << AH_STORE_BITS) - 1);

    if (how == AH_STORE_BOOL && lua_isboolean(L, -1)) {
        *(bool *)at = lua_toboolean(L, -1);
    } else if ((how == AH_STORE_SLICE || how == AH_STORE_HELD) && lua_type(L, -1) == LUA_TSTRING) {
        ah_slice s;

        s.p = lua_tolstring(L, -1, &s.n);
        *(ah_slice *)at = how == AH_STORE_SLICE ? ah_lend(s) : s;
    } else if (how == AH_STORE_SECOND && lua_type(L, -1) == LUA_TSTRING) {
        *(bool *)at = word_at(L, o->words) == 1;
    } else if (how == AH_STORE_WORD && lua_type(L, -1) == LUA_TSTRING) {
        int word = word_at(L, o->words);

        memcpy(at, &word, sizeof word);
    } else if (lua_type(L, -1) == LUA_TNUMBER) {
        if (how == AH_STORE_INT)
            *(int *)at = (int)lua_tointeger(L, -1);
        else if (how == AH_STORE_SIZE)
            *(size_t *)at = (size_t)lua_tonumber(L, -1);
        else if (how == AH_STORE_DOUBLE)
            *(double *)at = lua_tonumber(L, -1);
        else if (how == AH_STORE_MS)
            *(int64_t *)at = ah_ms_of(lua_tonumber(L, -1));
    }
}

static void list_names(const ah_subject *s, const char **known)
{
    size_t n = 0;

    for (; s; s = s->base)
        for (const ah_option *o = s->row; o->name; o++)
            known[n++] = o->name;
    known[n] = NULL;
}

static void read_row(lua_State *L, int idx, const char *what, const ah_option *o, void *to)
{
    lua_getfield(L, idx, o->name);
    check(L, what, o);
    if (to && o->to)
        store(L, o, to);
    lua_pop(L, 1);
}

static void check_there(lua_State *L, const ah_subject *s, const char *what, const ah_option *o)
{
    bool told = !s->declares && o->doc;

    if (o->needed)
        ah_lua_raise(L, s->declares ? AH_PROMPT_VALIDATION : AH_USAGE,
                     "%s: field '%s' is missing%s%s", what, o->name, told ? ": " : "",
                     told ? o->doc : "");
}

void ah_options_read_as(lua_State *L, int idx, const ah_subject *s, const char *what, void *to)
{
    const char *known[AH_MOST_OPTIONS + 1];
    uint64_t there;

    list_names(s, known);
    idx = lua_absindex(L, idx);
    there = ah_lua_fields_check(L, idx, what, known, s->list != NULL);
    luaL_checkstack(L, 4, what);
    for (const ah_subject *part = s; part; part = part->base)
        for (const ah_option *o = part->row; o->name; o++, there >>= 1)
            if (there & 1)
                read_row(L, idx, what, o, to);
            else
                check_there(L, s, what, o);
}

const char *ah_options_out_of(lua_State *L, int idx, const ah_subject *s, unsigned where)
{
    idx = lua_absindex(L, idx);
    for (; s; s = s->base)
        for (const ah_option *o = s->row; o->name; o++) {
            bool out = !(o->where & where) && lua_getfield(L, idx, o->name) != LUA_TNIL;

            if (!(o->where & where))
                lua_pop(L, 1);
            if (out)
                return o->name;
        }
    return NULL;
}

void ah_options_take(lua_State *L, int idx, const ah_subject *s, void *to)
{
    idx = lua_absindex(L, idx);
    luaL_checkstack(L, 4, s->what);
    for (; s; s = s->base)
        for (const ah_option *o = s->row; o->name; o++) {
            if (!o->to)
                continue;
            lua_getfield(L, idx, o->name);
            store(L, o, to);
            lua_pop(L, 1);
        }
}

void ah_options_read(lua_State *L, int idx, const ah_subject *s, void *to)
{
    ah_options_read_as(L, idx, s, s->what, to);
}
