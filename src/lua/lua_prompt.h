/* Prompts in Lua: their objects, and prompts as a run renders them. An object owns one reference to
 * its prompt and one to the binding that was rendered last. Rendering calls functions of the script
 * and may raise. Callers: its floor. */
#ifndef AH_LUA_PROMPT_H
#define AH_LUA_PROMPT_H

#include "lua/lua_state.h"
#include "prompt/prompt.h"

/* Returns the prompt at idx, borrowed, or NULL for any other value. */
ah_prompt *ah_lua_to_prompt(lua_State *L, int idx);
/* Makes and pushes a prompt from def. Raises. */
ah_prompt *ah_lua_new_prompt(lua_State *L, const ah_prompt_def *def);
/* Pushes the prompt of a binding, with the binding as the last rendered one. */
void ah_lua_push_prompt(lua_State *L, ah_binding *b);
/* Pushes the rendered prompt with every section at its own visibility. Raises. */
void ah_lua_push_rendered(lua_State *L, ah_binding *b);
/* Pushes the prompt with the overrides at idx. Raises. */
ah_prompt *ah_lua_override_prompt(lua_State *L, ah_prompt *p, int idx, const char *what,
                                  const ah_log *log);
/* Pushes the value at idx (nil: an empty table) as the JSON text of parameters. Raises
 * AH_PROMPT_RENDER if it cannot be that. */
ah_slice ah_lua_push_params(lua_State *L, int idx, const char *what);

void ah_lua_open_prompt(lua_State *L); /* sets ah.prompt */

#endif
