/* Reads the fields of loop_detector, each within its range, as ah_loop_detector_rules. The detector
 * is run/loop_detector.c; lua_agent_fields.c reads the other limits. */
#include "lua/lua_limits.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

static const char LOOP[] = "ah.run: loop_detector";

enum { MAX_EXEMPT = 64 << 10 }; /* bytes of the list of names */

static const ah_option loop_detector_rows[] = {
    {.name = "warn",
     .kinds = AH_OPT_INTEGER,
     .least = 2,
     .otherwise = "4",
     .to = AH_TO_INT(ah_loop_detector_rules, warn),
     .doc = "number of the first equal call that causes a warning"},
    {.name = "stop",
     .kinds = AH_OPT_INTEGER,
     .least = 2,
     .most = AH_LOOP_MOST / AH_LOOP_PATTERN,
     .otherwise = "6",
     .to = AH_TO_INT(ah_loop_detector_rules, stop),
     .doc = "number of the equal call that ends the run"},
    {.name = "window",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = AH_LOOP_MOST,
     .otherwise = "10",
     .to = AH_TO_INT(ah_loop_detector_rules, window),
     .doc = "number of earlier calls with which a call is compared; at least `stop` - 1"},
    {.name = "pattern_window",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = AH_LOOP_MOST,
     .otherwise = "20",
     .to = AH_TO_INT(ah_loop_detector_rules, pattern_window),
     .doc = "number of calls in which patterns are looked for; at least 3 * `stop` - 2"},
    {.name = "exempt",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "string[]",
     .doc = "tools whose calls are not counted, such as one that reports whether a job is ready"},
    {0},
};
const ah_subject ah_subject_loop_detector = {
    .what = "ah.run: loop_detector", .type = "ah.LoopDetector", .row = loop_detector_rows};

/* Returns a window. One that is given must be large enough for `stop`; the default is enlarged.
 * said: -1 if it is not given. */
static int window_of(lua_State *L, const char *name, int said, int otherwise, int least)
{
    if (said >= 0 && said < least)
        ah_lua_raise(L, AH_USAGE, "%s: field '%s' must be from %d to %d, found %d", LOOP, name,
                     least, AH_LOOP_MOST, said);
    return said >= 0 ? said : otherwise > least ? otherwise : least;
}

/* Returns the list on top (popped) as JSON. */
static ah_text *read_names(lua_State *L, const ah_mem *mem)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_EXEMPT);
    ah_text *names = NULL;
    ah_err err;

    for (lua_Integer i = 1, n = ah_lua_list_check(L, -2, "ah.run: loop_detector: exempt"); i <= n;
         i++) {
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

/* Reads the table on top. */
static void read_rules(lua_State *L, const ah_mem *mem, ah_loop_detector_rules *r, ah_text **exempt)
{
    ah_loop_detector_rules said = {
        .warn = r->warn, .stop = r->stop, .window = -1, .pattern_window = -1};

    ah_options_read(L, -1, &ah_subject_loop_detector, &said);
    r->warn = said.warn;
    r->stop = said.stop;
    r->window =
        window_of(L, "window", said.window, r->window, ah_loop_detector_least_window(r->stop));
    r->pattern_window = window_of(L, "pattern_window", said.pattern_window, r->pattern_window,
                                  ah_loop_detector_least_pattern_window(r->stop));
    if (lua_getfield(L, -1, "exempt") != LUA_TNIL) {
        ah_text_set(exempt, read_names(L, mem));
        r->exempt = ah_text_slice(*exempt);
    } else {
        lua_pop(L, 1);
    }
}

void ah_lua_read_loop(lua_State *L, int idx, const ah_mem *mem, ah_loop_detector_rules *rules,
                      ah_text **exempt)
{
    int type = lua_getfield(L, idx, "loop_detector");

    *rules = ah_loop_rules_default;
    if (type == LUA_TTABLE)
        read_rules(L, mem, rules, exempt);
    else if (type == LUA_TBOOLEAN && !lua_toboolean(L, -1))
        rules->stop = 0;
    else if (type != LUA_TNIL)
        ah_lua_raise(L, AH_USAGE,
                     "ah.run: field 'loop_detector' must be false or a table, found %s",
                     luaL_tolstring(L, -1, NULL));
    lua_pop(L, 1);
}
