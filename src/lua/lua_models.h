/* Names and rows of models that scripts and programs give (lua_models.c). The host owns the rows;
 * the aliases are in the registry of the Lua state. Callers: its floor. */
#ifndef AH_LUA_MODELS_H
#define AH_LUA_MODELS_H

#include <lua.h>

/* Pushes the model that the alias at idx stands for, or the name itself. */
void ah_lua_push_model(lua_State *L, int idx);

/* A Lua function: takes the rows of models in the JSON text (of C) at 1, in the form of
 * settings. */
int ah_lua_set_models(lua_State *L);

void ah_lua_open_models(lua_State *L); /* sets alias, _aliases */

#endif
