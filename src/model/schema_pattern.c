/* ah_pattern: PCRE2 with limits on steps, depth and memory, so that no expression and no
 * text costs more than a bounded time. What it is given is in its own words already, put
 * into them from ECMAScript's by schema_ecma.c. Built without PCRE2, every expression is refused; nothing is half-matched. */
#include "model/schema_pattern.h"

#include <stdio.h>

#ifdef AH_WITH_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { MATCH_STEPS = 1000000, MATCH_DEPTH = 10000, MATCH_KIB = 8192, MAX_WORDS = 4 << 20 };

struct ah_pattern {
    const ah_mem *mem;
    pcre2_general_context *general;
    pcre2_compile_context *compiling;
    pcre2_match_context *limits;
    pcre2_match_data *data;
    pcre2_code *code;
};

static void *take(PCRE2_SIZE size, void *mem)
{
    return ah_resize(mem, NULL, size ? size : 1);
}

static void give(void *p, void *mem)
{
    ah_free(mem, p);
}

void ah_pattern_free(ah_pattern *p)
{
    if (!p)
        return;
    pcre2_match_data_free(p->data);
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    pcre2_compile_context_free(p->compiling);
    pcre2_general_context_free(p->general);
    ah_free(p->mem, p);
}

static bool prepare(ah_pattern *p)
{
    if (!(p->general = pcre2_general_context_create(take, give, (void *)p->mem)) ||
        !(p->compiling = pcre2_compile_context_create(p->general)) ||
        !(p->limits = pcre2_match_context_create(p->general)))
        return false;
    pcre2_set_match_limit(p->limits, MATCH_STEPS);
    pcre2_set_depth_limit(p->limits, MATCH_DEPTH);
    pcre2_set_heap_limit(p->limits, MATCH_KIB);
    return true;
}

static ah_status say(ah_buf *why, int code)
{
    PCRE2_UCHAR words[160];

    if (code == PCRE2_ERROR_HEAP_FAILED)
        return AH_NOMEM;
    pcre2_get_error_message(code, words, sizeof words);
    ah_buf_str(why, (const char *)words);
    return AH_PROMPT_VALIDATION;
}

static ah_status compile(ah_pattern *p, ah_slice text, bool any_case, ah_buf *why)
{
    const uint32_t options = (any_case ? PCRE2_CASELESS : 0) | PCRE2_UTF | PCRE2_MATCH_UNSET_BACKREF |
                             PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    PCRE2_SIZE at = 0;
    int code = 0;

    if (!prepare(p))
        return AH_NOMEM;
    p->code = pcre2_compile((PCRE2_SPTR)text.p, text.n, options, &code, &at, p->compiling);
    if (!p->code)
        return say(why, code);
    p->data = pcre2_match_data_create_from_pattern(p->code, p->general);
    return p->data ? AH_OK : AH_NOMEM;
}

ah_status ah_pattern_new(const ah_mem *mem, ah_slice text, bool any_case, ah_pattern **out, ah_buf *why)
{
    ah_pattern *p = ah_alloc(mem, sizeof *p);
    ah_status st;
    ah_buf words;

    if (!p)
        return AH_NOMEM;
    p->mem = mem;
    ah_buf_init(&words, mem, MAX_WORDS);
    st = ah_pattern_translate(mem, text, &words, why);
    if (st == AH_OK)
        st = compile(p, ah_buf_slice(&words), any_case, why);
    ah_buf_clear(&words);
    if (st == AH_OK)
        *out = p;
    else
        ah_pattern_free(p);
    return st;
}

ah_match ah_pattern_match(ah_pattern *p, ah_slice text)
{
    int n = pcre2_match(p->code, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, 0, PCRE2_NO_UTF_CHECK,
                        p->data, p->limits);

    if (n >= 0)
        return AH_MATCH_YES;
    if (n == PCRE2_ERROR_NOMATCH)
        return AH_MATCH_NO;
    return n == PCRE2_ERROR_NOMEMORY ? AH_MATCH_NOMEM : AH_MATCH_LIMIT;
}

const char *ah_pattern_version(char *out, size_t size)
{
    char words[64] = "";

    pcre2_config(PCRE2_CONFIG_VERSION, words); /* "10.42 2022-12-11" */
    snprintf(out, size, "%.*s", (int)strcspn(words, " "), words);
    return out;
}

#else

ah_status ah_pattern_new(const ah_mem *mem, ah_slice text, bool any_case, ah_pattern **out, ah_buf *why)
{
    (void)mem;
    (void)text;
    (void)any_case;
    (void)out;
    ah_buf_str(why, "this build has no regular expressions (install libpcre2-dev and build again)");
    return AH_PROMPT_VALIDATION;
}

void ah_pattern_free(ah_pattern *p)
{
    (void)p;
}

ah_match ah_pattern_match(ah_pattern *p, ah_slice text)
{
    (void)p;
    (void)text;
    return AH_MATCH_LIMIT;
}

const char *ah_pattern_version(char *out, size_t size)
{
    snprintf(out, size, "none");
    return out;
}

#endif
