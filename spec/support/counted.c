/* Counts the basic blocks that are executed, in a build whose C files were compiled with
 * -fsanitize-coverage=trace-pc. The number is the same on every machine and under any load. Is
 * preloaded, so that the libraries find the function that they call; as a Lua module it is a
 * function that returns the count. */
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

void __sanitizer_cov_trace_pc(void);
int luaopen_counted(lua_State *L);

static uint64_t count;

__attribute__((visibility("default"))) void __sanitizer_cov_trace_pc(void)
{
    count++;
}

static int counted(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

__attribute__((visibility("default"))) int luaopen_counted(lua_State *L)
{
    lua_pushcfunction(L, counted);
    return 1;
}
