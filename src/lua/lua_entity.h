/* ah.entity: classes whose instances' methods can be tools. An instance is a plain table with
 * the class's metatable, by which C knows it: never by its fields. */
#ifndef AH_LUA_ENTITY_H
#define AH_LUA_ENTITY_H

#include "lua/lua_state.h"
#include "lua/lua_value.h"
#include "model/entity.h"

/* A class: a userdata. */
typedef struct ah_lua_entity {
    ah_entity_class *core;
    bool stateless;
} ah_lua_entity;

/* User values of its object: the members of instances, their metatable, the source of the id (a
 * name or a function), the names of the fields that are shown (or nil), find (or nil), and the name
 * of each tool's method. */
enum {
    AH_ENTITY_MEMBERS = 1,
    AH_ENTITY_META,
    AH_ENTITY_ID_OF,
    AH_ENTITY_FIELDS,
    AH_ENTITY_FIND,
    AH_ENTITY_METHODS,
    AH_ENTITY_VALUES = AH_ENTITY_METHODS
};

/* Pushes the class whose instance is at idx and returns it; else pushes nothing: NULL. Neither
 * raises nor allocates, and calls nothing. */
const ah_lua_entity *ah_lua_push_entity_of(lua_State *L, int idx);
/* Pushes the latest class of that name and returns it; else pushes nothing: NULL. */
const ah_lua_entity *ah_lua_push_entity_named(lua_State *L, ah_slice name);
/* Sets *out to the id of the instance at idx, whose class is at `class`. AH_INVALID_TOOL_PROVIDER,
 * in the words of seed 001, if it has none. May call the script; never raises. */
ah_status ah_lua_entity_id(ah_lua *h, lua_State *L, int class, int idx, ah_text **out, ah_err *err);
/* Sets *out to the next entity of the value behind a reference, which is one or a list of them: see
 * ah_value. */
ah_status ah_lua_next_entity(ah_lua *h, int ref, size_t *at, ah_entity *out, ah_err *err);

/* Functions by which the core calls methods (lua_entity_call.c). */
extern const ah_entity_vt ah_lua_entity_vt;
/* Pushes the functions that copy and restore the instance on top: its own snapshot and restore, or
 * ours, which copy up to 10,000 values. Pushes nothing and returns false if it is no instance. */
bool ah_lua_push_entity_undo(lua_State *L, int idx);

/* Writes the instance on top as JSON (lua_entity_json.c). */
ah_status ah_lua_put_entity(lua_State *L, ah_lua_json *j);

void ah_lua_open_entity(lua_State *L); /* entity, is_provider, tools_of */

#endif
