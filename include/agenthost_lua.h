/* agenthost for programs that bring their own lua_State (Lua 5.4). */
#ifndef AGENTHOST_LUA_H
#define AGENTHOST_LUA_H

#include <lua.h>

#include "agenthost.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the library in L and pushes its table, as `require "agenthost"` does. Raises if another
 * copy of agenthost is open in L already. */
AH_API int luaopen_agenthost(lua_State *L);
/* Opens "agenthost.testing"; stock Lua finds it by this name. Once agenthost is open,
 * package.preload has the module. */
AH_API int luaopen_agenthost_testing(lua_State *L);

/* The copy of Lua that the program uses, to be compared with the library's. */
typedef struct ah_lua_copy {
    int version;           /* LUA_VERSION_NUM */
    void (*address)(void); /* the address of lua_newstate */
} ah_lua_copy;

/* Called only by ah_attach. Programs call ah_attach. */
AH_API ah_status ah_attach_copy(lua_State *L, const ah_lua_copy *copy, const ah_config *cfg,
                                ah_host **out, const char **why);

/* Makes a host of the caller's Lua state: all functions of agenthost.h work with it, and `require
 * "agenthost"` in L finds the library. cfg is that of ah_open; its allocator serves the core, while
 * Lua keeps its own (max_memory is refused). The host lives as long as L: lua_close ends it.
 * ah_close before that is optional; it closes only what the program opened, and ah_attach may then
 * be called again. L may be any thread of the state, which must not run meanwhile except in the
 * call that came from it.
 *
 * On failure *out is unchanged, and *why (why may be NULL) is a static text:
 *  AH_USAGE   L belongs to another copy of Lua than the library's (a program with its own Lua
 *             beside the shared one: link both to the same) or to another version, and was
 *             not touched; another copy of the library opened agenthost in L; agenthost is
 *             open already and cfg comes too late; or cfg is invalid
 *  AH_NOMEM, AH_INTERNAL   as for ah_open */
static inline ah_status ah_attach(lua_State *L, const ah_config *cfg, ah_host **out,
                                  const char **why)
{
    ah_lua_copy copy;

    copy.version = LUA_VERSION_NUM;
    copy.address = (void (*)(void))lua_newstate;
    return ah_attach_copy(L, &copy, cfg, out, why);
}

#ifdef __cplusplus
}
#endif

#endif
