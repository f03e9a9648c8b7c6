/* Planted faults that the checking build (AH_CHECKING, AddressSanitizer) must find. Each mistake
 * was made once. A fault ends its program, so each is run in a program of its own. */
#include <stdlib.h>

#include "base/buf.h"
#include "support/ahtest.h"

/* Clears a buffer that was too small, without a check of whether it was. */
static void drop_full(void)
{
    ah_buf b;

    ah_buf_init(&b, &ah_mem_libc, 8);
    ah_buf_str(&b, "more than eight");
    ah_buf_clear(&b);
}

/* Reads such a buffer as if it were complete: the text beyond its limit is lost unnoticed. */
static void read_full(void)
{
    ah_buf b;

    ah_buf_init(&b, &ah_mem_libc, 8);
    ah_buf_str(&b, "more than eight");
    if (ah_buf_slice(&b).n > 8)
        abort();
    (void)ah_buf_ok(&b);
    ah_buf_clear(&b);
}

/* Reserves room for three and writes four: doubling would hide it. */
static void put_beyond(void)
{
    size_t cap = 0;
    int64_t *volatile list = ah_grow(&ah_mem_libc, NULL, &cap, 3, sizeof *list);

    for (int i = 0; list && i < 4; i++)
        list[i] = i;
    ah_free(&ah_mem_libc, list);
}

/* plant(name): commits the fault. */
static int plant(lua_State *L)
{
    static const char *const names[] = {"drop", "read", "beyond", NULL};
    static void (*const faults[])(void) = {drop_full, read_full, put_beyond};

    faults[luaL_checkoption(L, 1, NULL, names)]();
    return 0;
}

void ahtest_open_plant(lua_State *L)
{
#ifdef AH_CHECKING
    lua_pushboolean(L, true);
#else
    lua_pushboolean(L, false);
#endif
    lua_setfield(L, -2, "checking");
    lua_pushcfunction(L, plant);
    lua_setfield(L, -2, "plant");
}
