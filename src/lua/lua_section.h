/* Sections as scripts see them. */
#ifndef AH_LUA_SECTION_H
#define AH_LUA_SECTION_H

#include "lua/lua_state.h"
#include "prompt/section.h"

/* The section at idx, or NULL where there is something else. Borrowed. */
ah_section *ah_lua_to_section(lua_State *L, int idx);
/* Pushes an object for the section; two objects of one section are equal. */
void ah_lua_push_section(lua_State *L, ah_section *section);
/* Pushes a light array of the sections in the first *n places of the table at idx, borrowed
 * from it. Raises AH_PROMPT_VALIDATION for what is no section. */
ah_section **ah_lua_section_list(lua_State *L, int idx, const char *what, size_t n);
/* Pushes what holds a declaration's sections, and gives how many: the table itself for its
 * array part, or its field `name`. Raises AH_USAGE where it has both. */
size_t ah_lua_push_sections(lua_State *L, int idx, const char *what, const char *name);

void ah_lua_open_section(lua_State *L); /* section, tools_section */

#endif
