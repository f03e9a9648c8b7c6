/* Counts Lua's memory: an allocator that keeps the heap within max_memory of the config, and the
 * code that is entered within its fences. A state of our own always has it. Over another's
 * allocator it is put in place while the outermost fence is entered, and begins with the heap's
 * size from Lua. It runs in the middle of Lua's work, so it never raises. Callers: its floor. */
#ifndef AH_LUA_MEMORY_H
#define AH_LUA_MEMORY_H

#include "lua/lua_state.h"

/* A lua_Alloc whose ud is an ah_lua_memory. */
void *ah_lua_alloc(void *ud, void *ptr, size_t old, size_t size);

/* Returns the memory counter of this state; NULL: its allocator is not ours. */
ah_lua_memory *ah_lua_memory_of(lua_State *L);

/* Put the fence in place, inside those already entered, and remove it. */
void ah_lua_memory_enter(ah_lua *h, struct ah_fence *f);
void ah_lua_memory_leave(lua_State *L, struct ah_fence *f);

#endif
