/* Prompts as scripts see them, and what a run is told of its prompt. */
#ifndef AH_LUA_PROMPT_H
#define AH_LUA_PROMPT_H

#include "lua/lua_state.h"
#include "prompt/prompt.h"

/* The prompt at idx, or NULL where there is something else. Borrowed. */
ah_prompt *ah_lua_to_prompt(lua_State *L, int idx);
/* Makes a prompt of def into an object, which is pushed. Raises. */
ah_prompt *ah_lua_new_prompt(lua_State *L, const ah_prompt_def *def);
/* Pushes the prompt of a binding, which is the one that rendering the same parameters uses. */
void ah_lua_push_prompt(lua_State *L, ah_binding *b);
/* Pushes what a binding comes to where nothing is opened. Raises. */
void ah_lua_push_rendered(lua_State *L, ah_binding *b);
/* Pushes the prompt with the overrides at idx. Raises. */
ah_prompt *ah_lua_override_prompt(lua_State *L, ah_prompt *p, int idx, const char *what,
                                  const ah_log *log);
/* Pushes the value at idx (nil: an empty table) as the JSON text of parameters. Raises
 * AH_PROMPT_RENDER for what cannot be that. */
ah_slice ah_lua_push_params(lua_State *L, int idx, const char *what);

void ah_lua_open_prompt(lua_State *L); /* prompt */

#endif
