/* Matches regular expressions with the library, and with PCRE2's own options for ECMAScript;
 * spec/patterns/patterns.lua compares both.
 *   pattern(text, subjects, syntax) -> "10..." a digit for each subject ("?": unknown), or nil,
 *     reason. With `syntax` nothing is matched.
 *   pcre2_pattern(text, subjects, ucp) -> the same of PCRE2; nil in a build without it */
#include "base/mem.h"
#include "base/pattern.h"
#include "support/ahtest.h"

#ifdef AH_WITH_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

static ah_slice subject_at(lua_State *L, lua_Integer i)
{
    ah_slice s;

    lua_rawgeti(L, 2, i);
    s.p = luaL_checklstring(L, -1, &s.n);
    lua_pop(L, 1); /* the table keeps it alive */
    return s;
}

static char match_one(ah_pattern *p, ah_slice text)
{
    ah_work work = ah_work_of(20000000, NULL);
    ah_match m = ah_pattern_match(p, text, &work);

    return m == AH_MATCH_YES ? '1' : m == AH_MATCH_NO ? '0' : '?';
}

static int pattern(lua_State *L)
{
    const ah_mem *mem = &ah_mem_libc;
    ah_pattern *p = NULL;
    ah_slice text;
    ah_buf why, out;
    ah_status st;
    bool syntax = lua_toboolean(L, 3);

    text.p = luaL_checklstring(L, 1, &text.n);
    ah_buf_init(&why, mem, 4096);
    ah_buf_init(&out, mem, 4 << 20);
    st = syntax ? ah_pattern_translate(mem, text, AH_PATTERN_SYNTAX, NULL, &out, &why)
                : ah_pattern_new(mem, text, 0, &p, &why);
    ah_buf_reset(&out, 0);
    for (lua_Integer i = 1; p && i <= (lua_Integer)lua_rawlen(L, 2); i++)
        ah_buf_char(&out, match_one(p, subject_at(L, i)));
    if (st == AH_OK)
        lua_pushlstring(L, out.data ? out.data : "", out.len);
    else
        lua_pushnil(L);
    lua_pushlstring(L, why.data ? why.data : "", why.len);
    ah_pattern_free(p);
    ah_buf_clear(&why);
    ah_buf_clear(&out);
    return 2;
}

#ifdef AH_WITH_PCRE2
/* Compiles with all of PCRE2's options for ECMAScript's meaning; with `ucp` its classes are
 * Unicode's, except \d and \w if PCRE2 can leave them ASCII. */
static pcre2_code *compile_as_it_is(ah_slice text, bool ucp, pcre2_compile_context *c)
{
    uint32_t options = PCRE2_UTF | PCRE2_ALT_BSUX | PCRE2_MATCH_UNSET_BACKREF |
                       PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_NEVER_BACKSLASH_C |
                       (ucp ? PCRE2_UCP : 0);
    uint32_t extra = PCRE2_EXTRA_ALT_BSUX;
    PCRE2_SIZE at;
    int code;

#ifdef PCRE2_EXTRA_ASCII_BSW
    extra |= PCRE2_EXTRA_ASCII_BSD | PCRE2_EXTRA_ASCII_BSW;
#endif
    pcre2_set_compile_extra_options(c, extra);
    pcre2_set_newline(c, PCRE2_NEWLINE_ANY);
    return pcre2_compile((PCRE2_SPTR)text.p, text.n, options, &code, &at, c);
}

static int pcre2_pattern(lua_State *L)
{
    pcre2_compile_context *c = pcre2_compile_context_create(NULL);
    pcre2_code *code;
    pcre2_match_data *data;
    ah_slice text;
    char verdict[64];
    size_t n = (size_t)lua_rawlen(L, 2);

    text.p = luaL_checklstring(L, 1, &text.n);
    luaL_argcheck(L, n <= sizeof verdict, 2, "too many");
    code = compile_as_it_is(text, lua_toboolean(L, 3), c);
    data = code ? pcre2_match_data_create_from_pattern(code, NULL) : NULL;
    for (size_t i = 0; data && i < n; i++) {
        ah_slice s = subject_at(L, (lua_Integer)i + 1);
        int m = pcre2_match(code, (PCRE2_SPTR)s.p, s.n, 0, 0, data, NULL);

        verdict[i] = m >= 0 ? '1' : m == PCRE2_ERROR_NOMATCH ? '0' : '?';
    }
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    pcre2_compile_context_free(c);
    if (data)
        lua_pushlstring(L, verdict, n);
    else
        lua_pushnil(L);
    return 1;
}
#endif

void ahtest_open_pattern(lua_State *L)
{
    static const luaL_Reg functions[] = {{"pattern", pattern},
#ifdef AH_WITH_PCRE2
                                         {"pcre2_pattern", pcre2_pattern},
#endif
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
