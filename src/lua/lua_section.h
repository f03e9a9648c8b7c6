/* Sections in Lua. An object owns one reference to its section; lists of sections are borrowed from
 * their table. Callers: its floor. */
#ifndef AH_LUA_SECTION_H
#define AH_LUA_SECTION_H

#include "lua/lua_state.h"
#include "prompt/section.h"

/* Returns the section at idx, borrowed, or NULL for any other value. */
ah_section *ah_lua_to_section(lua_State *L, int idx);
/* Pushes an object for the section. Two objects of one section are equal. */
void ah_lua_push_section(lua_State *L, ah_section *section);
/* Pushes an array (a userdata) of the sections in the first n places of the table at idx, borrowed
 * from that. Raises AH_PROMPT_VALIDATION if one is no section. */
ah_section **ah_lua_section_list(lua_State *L, int idx, const char *what, size_t n);
/* Pushes the table with a declaration's sections, which is the table itself (array part) or its
 * field `name`, and returns their number. Raises AH_USAGE if there are both. */
size_t ah_lua_push_sections(lua_State *L, int idx, const char *what, const char *name);

void ah_lua_open_section(lua_State *L); /* sets section, tools_section */

#endif
