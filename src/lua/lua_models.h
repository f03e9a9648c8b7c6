/* Names and rows of models that scripts and programs give (lua_models.c). */
#ifndef AH_LUA_MODELS_H
#define AH_LUA_MODELS_H

#include <lua.h>

/* Pushes what the alias at idx stands for, or the name itself. */
void ah_lua_push_model(lua_State *L, int idx);

/* A function of Lua: takes in what the JSON text (of C) at 1 says, as settings have it. */
int ah_lua_set_models(lua_State *L);

void ah_lua_open_models(lua_State *L); /* alias, _aliases */

#endif
