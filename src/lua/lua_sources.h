/* Sources of the Lua half of agenthost, compiled in: static data that the Makefile makes from
 * lua/agenthost. Callers: its floor. */
#ifndef AH_LUA_SOURCES_H
#define AH_LUA_SOURCES_H

#include <stddef.h>

typedef struct ah_lua_source {
    const char *name; /* "agenthost.x"; NULL ends the list */
    const char *text;
    size_t len;
} ah_lua_source;

extern const ah_lua_source ah_lua_sources[];

#endif
