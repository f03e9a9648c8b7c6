/* ah.entity: classes of objects whose methods can be tools. An instance is a plain table with the
 * class's metatable; C recognises it only by the metatable, never by its fields. The class is a
 * userdata that keeps its functions as user values and owns the core's class.
 * Callers: its floor. */
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

/* User values of a class: the members of instances, their metatable, the source of the id (a name
 * or a function), the names of the fields that are shown (or nil), find (or nil), and the name of
 * each tool's method. */
enum {
    AH_ENTITY_MEMBERS = 1,
    AH_ENTITY_META,
    AH_ENTITY_ID_OF,
    AH_ENTITY_FIELDS,
    AH_ENTITY_FIND,
    AH_ENTITY_METHODS,
    AH_ENTITY_STATE, /* list of the fields that are recorded; nil: not given */
    AH_ENTITY_VALUES = AH_ENTITY_STATE
};

/* Pushes and returns the class of the instance at idx; for other values pushes nothing and returns
 * NULL. Does not raise, allocate or call anything. */
const ah_lua_entity *ah_lua_push_entity_of(lua_State *L, int idx);
/* Pushes and returns the latest class of that name; if there is none, pushes nothing and returns
 * NULL. */
const ah_lua_entity *ah_lua_push_entity_named(lua_State *L, ah_slice name);
/* Sets *out to a new text, the id of the instance at idx, whose class is at `class`. Returns
 * AH_INVALID_TOOL_PROVIDER, with the message of seed 001, if it has no valid id. May call the
 * script; never raises. */
ah_status ah_lua_entity_id(ah_lua *h, lua_State *L, int class, int idx, ah_text **out, ah_err *err);
/* Sets *out to the next entity of the referenced value, which is one entity or a list of them: see
 * ah_value. */
ah_status ah_lua_next_entity(ah_lua *h, int ref, size_t *at, ah_entity *out, ah_err *err);

/* The functions by which the core calls methods (lua_entity_call.c). */
extern const ah_entity_vt ah_lua_entity_vt;
/* Pushes the functions that copy and restore the instance at idx: its own snapshot and restore, or
 * ours, which copy at most 10,000 values. For other values pushes nothing and returns false. */
bool ah_lua_push_entity_undo(lua_State *L, int idx);
/* Pushes the instance as it was when our function made the copy at the absolute index: new tables
 * with its members. */
void ah_lua_push_entity_copied(lua_State *L, int copy);

/* Writes the instance on top as JSON (lua_entity_json.c). */
ah_status ah_lua_put_entity(lua_State *L, ah_lua_json *j);

void ah_lua_open_entity(lua_State *L); /* sets entity, is_provider, tools_of */

#endif
