/* All subjects of options, and ah._options, which shows their rows to generators of annotations and
 * docs. */
#include <lauxlib.h>

#include "base/slice.h"
#include "lua/lua_modules.h"
#include "lua/lua_open.h"
#include "lua/lua_options.h"
#include "lua/lua_sources.h"

#define AH_SUBJECT_OF(name) &ah_subject_##name,
static const ah_subject *const subjects[] = {AH_SUBJECTS(AH_SUBJECT_OF) NULL};

const ah_subject *ah_subject_of_type(const char *type)
{
    int i = 0;

    while (subjects[i] && strcmp(subjects[i]->type, type) != 0)
        i++;
    return subjects[i];
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    if (!text)
        return;
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

static void push_kinds(lua_State *L, unsigned kinds)
{
    lua_newtable(L);
    for (int i = 0, n = 0; i < AH_OPT_KINDS; i++) {
        if (!(kinds >> i & 1))
            continue;
        lua_pushstring(L, ah_option_kind_name[i]);
        lua_rawseti(L, -2, ++n);
    }
}

static void push_row(lua_State *L, const ah_option *o)
{
    lua_newtable(L);
    set_text(L, "name", o->name);
    push_kinds(L, o->kinds);
    lua_setfield(L, -2, "kinds");
    if (o->least != 0 || o->most != 0)
        set_number(L, "least", o->least);
    if (o->most != 0)
        set_number(L, "most", o->most);
    set_text(L, "words", o->words);
    set_text(L, "otherwise", o->otherwise);
    set_text(L, "unit", o->unit);
    set_text(L, "is", o->is);
    set_text(L, "type", o->type);
    set_text(L, "doc", o->doc);
    lua_pushboolean(L, o->needed);
    lua_setfield(L, -2, "needed");
    lua_pushboolean(L, o->where & AH_IN_JSON);
    lua_setfield(L, -2, "json");
    lua_pushboolean(L, (o->where & AH_IN_SETTINGS) != 0);
    lua_setfield(L, -2, "settings");
}

static void push_subject(lua_State *L, const ah_subject *s)
{
    lua_newtable(L);
    set_text(L, "what", s->what);
    set_text(L, "type", s->type);
    set_text(L, "doc", s->doc);
    set_text(L, "list", s->list);
    set_text(L, "base", s->base ? s->base->type : NULL);
    lua_newtable(L);
    for (int k = 0; s->row[k].name; k++) {
        push_row(L, &s->row[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "rows");
}

/* A module of the library's Lua makes its readers when it is loaded. */
static void load_those_with_readers(lua_State *L)
{
    static const ah_slice sign = AH_LIT("ah._reader {");

    for (const ah_lua_source *s = ah_lua_sources; s->name; s++) {
        if (!ah_slice_find((ah_slice){s->text, s->len}, sign))
            continue;
        lua_pushcfunction(L, ah_lua_load_module_once);
        lua_pushstring(L, s->name);
        lua_call(L, 1, 0);
    }
}

/* Pushes the subject of a type, of those that need no module of the library; else nil. */
static int show_one(lua_State *L)
{
    const ah_subject *s = ah_subject_of_type(lua_tostring(L, 1));

    if (s)
        push_subject(L, s);
    else
        lua_pushnil(L);
    return 1;
}

/* ah._options(): a list of the subjects, { what, type, doc, list, rows = { { name, kinds, ... } }
 * }; ah._options(type): the subject of this type alone. The list loads modules, one subject none.
 */
static int show(lua_State *L)
{
    const ah_subject *s;
    int n = 0;

    if (lua_type(L, 1) == LUA_TSTRING)
        return show_one(L);
    load_those_with_readers(L);
    lua_newtable(L);
    for (int i = 0; subjects[i]; i++) {
        push_subject(L, subjects[i]);
        lua_rawseti(L, -2, ++n);
    }
    for (int i = 1; (s = ah_reader_subject(L, i)); i++) {
        push_subject(L, s);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

void ah_lua_open_subjects(lua_State *L)
{
    lua_pushcfunction(L, show);
    lua_setfield(L, -2, "_options");
}
