/* agenthost for programs that have a lua_State of their own (Lua 5.4). The general part of
 * agenthost.h holds here, too. */
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
/* Opens the module of `require "agenthost.testing"`, under the name that stock Lua looks for.
 * Once agenthost is open, package.preload has it. */
AH_API int luaopen_agenthost_testing(lua_State *L);

/* Identifies the copy of Lua that the program uses. */
typedef struct ah_lua_copy {
    int version;           /* LUA_VERSION_NUM */
    void (*address)(void); /* address of lua_newstate */
} ah_lua_copy;

/* For ah_attach only. */
AH_API ah_status ah_attach_copy(lua_State *L, const ah_lua_copy *copy, const ah_config *cfg,
                                ah_host **out, const char **why);

/* Makes a host of the caller's Lua state: all of agenthost.h works with it, and `require
 * "agenthost"` in L finds the library. cfg is as for ah_open; its allocator serves the core, and
 * Lua keeps its own, so max_memory is refused. L may be any thread of the state. The state must not
 * run meanwhile, except the call that led here.
 *
 * The host lives as long as the state: lua_close ends it. An earlier ah_close is not needed. It
 * closes only what the program opened, and ah_attach may be called again.
 *
 * On failure *out is untouched, and *why (why may be NULL) is a static text:
 *   AH_USAGE   L belongs to another copy or version of Lua than the library's, for example one that
 *              is linked statically beside the shared one, and was not touched: link both to the
 *              same. Or another copy of agenthost is open in L. Or agenthost is open in L and cfg
 *              is not NULL: it comes too late. Or cfg is invalid.
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
