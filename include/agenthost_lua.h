/* agenthost for programs that bring their own lua_State (Lua 5.4). */
#ifndef AGENTHOST_LUA_H
#define AGENTHOST_LUA_H

#include <lua.h>

#include "agenthost.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the library in L and pushes its table, as `require "agenthost"` does. Raises where
 * another copy of agenthost is open in L already. */
AH_API int luaopen_agenthost(lua_State *L);
/* require "agenthost.testing", where stock Lua looks for it. Once agenthost is open,
 * package.preload has it. */
AH_API int luaopen_agenthost_testing(lua_State *L);

/* The copy of Lua that the program uses, to be compared with the library's. */
typedef struct ah_lua_copy {
    int version;           /* LUA_VERSION_NUM */
    void (*address)(void); /* of lua_newstate */
} ah_lua_copy;

/* Called by ah_attach alone. Programs call ah_attach. */
AH_API ah_status ah_attach_copy(lua_State *L, const ah_lua_copy *copy, const ah_config *cfg,
                                ah_host **out, const char **why);

/* Makes a host of the caller's Lua state: everything of agenthost.h works with it, and
 * `require "agenthost"` in L finds the library. cfg as for ah_open; its allocator serves the
 * core, Lua keeps its own (max_memory is refused). The host lives as long as L: lua_close ends
 * it, ah_close before that (not needed) closes only what the program opened, after which
 * ah_attach may be called again. L may be any thread of the state, which must not be running
 * meanwhile but for the call that came from it.
 *
 * On failure *out is untouched, and *why (why may be NULL) has static words for it:
 *   AH_USAGE   L is of another copy of Lua than the library's (a program with a Lua of its own
 *              beside the shared one: link both to the same), or of another version, and was
 *              not touched; agenthost was opened in L by another copy of the library, or is
 *              open already and cfg comes too late; or cfg is none
 *   AH_NOMEM, AH_INTERNAL   as ah_open */
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
