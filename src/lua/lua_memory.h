/* The one place where Lua's memory is counted: an allocator that keeps its heap within
 * max_memory of the config and the code of a tool within the tool's fence. A state of our own
 * has it always; over another's allocator it is laid while a fenced task is resumed, and the
 * heap's size is asked of Lua then. */
#ifndef AH_LUA_MEMORY_H
#define AH_LUA_MEMORY_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ah_lua_memory {
    lua_Alloc alloc; /* who is asked, with ud */
    void *ud;
    size_t max;             /* bytes of the whole heap; 0: any */
    int64_t used;           /* bytes of the whole heap */
    struct ah_fence *fence; /* of the task that is resumed; NULL: none */
} ah_lua_memory;

/* A lua_Alloc whose ud is an ah_lua_memory. */
void *ah_lua_alloc(void *ud, void *ptr, size_t old, size_t size);

/* Puts the fence in place, and takes it away. `own` is for a state whose allocator is another. */
void ah_lua_memory_enter(lua_State *L, ah_lua_memory *own, struct ah_fence *f);
void ah_lua_memory_leave(lua_State *L, struct ah_fence *f);

#endif
