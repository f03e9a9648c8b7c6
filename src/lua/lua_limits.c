/* The fields of loop_detector become ah_loop_rules, each within its range. What the detector does
 * is run/loop_detector.c's, and the other limits are read in lua_agent_fields.c. */
#include "lua/lua_limits.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_value.h"

static const char LOOP[] = "ah.run: loop_detector";

enum { MAX_EXEMPT = 64 << 10 }; /* bytes of the list of names */

static void check_range(lua_State *L, const char *name, int found, int least, int most)
{
    if (found < least || found > most)
        ah_lua_raise(L, AH_USAGE, "%s: field '%s' must be from %d to %d, found %d", LOOP, name, least,
                     most, found);
}

/* The field, or `otherwise`, but no less than what makes `stop` possible. */
static int read_window(lua_State *L, const char *name, int otherwise, int least)
{
    int window = otherwise > least ? otherwise : least;

    ah_field_count(L, -1, LOOP, name, 1, &window);
    check_range(L, name, window, least, AH_LOOP_MOST);
    return window;
}

/* The list on top (popped) as JSON. */
static ah_text *read_names(lua_State *L, const ah_mem *mem)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_EXEMPT);
    ah_text *names = NULL;
    ah_err err;

    for (lua_Integer i = 1, n = ah_list_check(L, -2, "ah.run: loop_detector: exempt"); i <= n; i++) {
        if (lua_geti(L, -2, i) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "%s: exempt[%d] must be the name of a tool, found %s", LOOP,
                         (int)i, luaL_typename(L, -1));
        lua_pop(L, 1);
    }
    if (ah_lua_to_json(L, -2, mem, b, &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "%s: exempt: %s", LOOP, err.message);
    if (ah_text_from_buf(b, "exempt", &names, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_pop(L, 2);
    return names;
}

/* The table on top. */
static void read_rules(lua_State *L, const ah_mem *mem, ah_loop_rules *r, ah_text **exempt)
{
    static const char *const known[] = {"warn", "stop", "window", "pattern_window", "exempt", NULL};

    ah_fields_check(L, -1, LOOP, known, false);
    ah_field_count(L, -1, LOOP, "stop", 2, &r->stop);
    check_range(L, "stop", r->stop, 2, AH_LOOP_MOST / AH_LOOP_PATTERN);
    ah_field_count(L, -1, LOOP, "warn", 2, &r->warn);
    r->window = read_window(L, "window", r->window, ah_loop_least_window(r->stop));
    r->pattern_window =
        read_window(L, "pattern_window", r->pattern_window, ah_loop_least_pattern_window(r->stop));
    if (ah_field_push(L, -1, LOOP, "exempt", LUA_TTABLE)) {
        ah_text_set(exempt, read_names(L, mem));
        r->exempt = ah_text_slice(*exempt);
    }
}

void ah_lua_read_loop(lua_State *L, int idx, const ah_mem *mem, ah_loop_rules *rules, ah_text **exempt)
{
    int type = lua_getfield(L, idx, "loop_detector");

    *rules = ah_loop_rules_default;
    if (type == LUA_TTABLE)
        read_rules(L, mem, rules, exempt);
    else if (type == LUA_TBOOLEAN && !lua_toboolean(L, -1))
        rules->stop = 0;
    else if (type != LUA_TNIL)
        ah_lua_raise(L, AH_USAGE, "ah.run: field 'loop_detector' must be false or a table, found %s",
                     luaL_tolstring(L, -1, NULL));
    lua_pop(L, 1);
}
