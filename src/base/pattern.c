/* ah_pattern: PCRE2 with limits on steps, depth and memory. pattern_ecma.c translates expressions
 * from ECMAScript's syntax first. A build without PCRE2 refuses every expression.
 *
 * The rule: no match takes longer than the steps that it counts in its caller's work. PCRE2 does
 * not report its work. So a match begins with a low limit on backtracking, which is paid in
 * advance; if that is not enough, it starts again from its last beginning with four times the
 * limit. A callout counts two things that no limit of PCRE2 counts: the places where a match may
 * begin, and the characters that a repeat passes over. Short texts, with expressions that are
 * anchored at the beginning, need no callout. */
#include "base/pattern.h"

#include <stdio.h>

#include "base/text.h"

#ifdef AH_WITH_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    FIRST_LIMIT = 64, /* backtracking steps; enough for most matches */
    LAST_LIMIT = 1 << 20,
    GROWTH = 4,
    MATCH_DEPTH = 10000,
    MATCH_KIB = 8192,
    MAX_WORDS = 4 << 20,
    SHORT = 512,     /* bytes of a text that needs no callouts */
    PER_STEP = 8,    /* backtracking steps per step of work */
    MOVES = 64,      /* characters passed over per step of work */
    WIDE_CLASS = 64, /* bytes of a class that cost as much as one more character */
    WIDE_STEP =
        256, /* bytes of a class, or characters, that cost as much as one more backtracking step */
    FRAME = 1024 /* bytes copied in a backtracking step that cost as much as one more step */
};

struct ah_pattern {
    const ah_mem *mem;
    pcre2_general_context *general;
    pcre2_compile_context *compiling;
    pcre2_match_context *limits;
    pcre2_match_data *data;
    pcre2_code *code;    /* without callouts */
    pcre2_code *counted; /* with callouts; made when first needed */
    ah_text *text;       /* as ECMAScript writes it */
    unsigned how;        /* AH_PATTERN_* */
    bool anchored;
    ah_pattern_cost cost;
    size_t frame; /* bytes that each backtracking step copies */
};

/* A match in progress. */
typedef struct trying {
    ah_work *work;
    uint64_t price;   /* of one beginning, in steps */
    size_t begin, at; /* the last beginning; the place at the last callout */
    uint64_t moved;   /* weighted characters passed over, not yet counted */
    uint64_t weight;
} trying;

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
    pcre2_code_free(p->counted);
    ah_text_unref(p->text);
    pcre2_match_context_free(p->limits);
    pcre2_compile_context_free(p->compiling);
    pcre2_general_context_free(p->general);
    ah_free(p->mem, p);
}

ah_slice ah_pattern_text(const ah_pattern *p)
{
    return ah_text_slice(p->text);
}

static bool prepare(ah_pattern *p)
{
    if (!(p->general = pcre2_general_context_create(take, give, (void *)p->mem)) ||
        !(p->compiling = pcre2_compile_context_create(p->general)) ||
        !(p->limits = pcre2_match_context_create(p->general)))
        return false;
    pcre2_set_depth_limit(p->limits, MATCH_DEPTH);
    pcre2_set_heap_limit(p->limits, MATCH_KIB);
    return true;
}

/* Appends the reason why PCRE2 refuses a translated expression. PCRE2's numbers and messages for
 * lookbehinds differ between releases; these do not. */
static ah_status say(ah_buf *why, int code)
{
    enum { LOOKBEHIND_VARIES_TOO_MUCH = 200 }; /* since 10.43 */
    PCRE2_UCHAR words[160];

    switch (code) {
    case PCRE2_ERROR_HEAP_FAILED:
        return AH_NOMEM;
    case PCRE2_ERROR_LOOKBEHIND_NOT_FIXED_LENGTH:
    case PCRE2_ERROR_LOOKBEHIND_TOO_COMPLICATED:
    case PCRE2_ERROR_LOOKBEHIND_TOO_LONG:
    case LOOKBEHIND_VARIES_TOO_MUCH:
        ah_buf_str(why, "a lookbehind that may be of any length");
        break;
    default:
        pcre2_get_error_message(code, words, sizeof words);
        ah_buf_str(why, (const char *)words);
    }
    return AH_PROMPT_VALIDATION;
}

/* Returns the option for an expression with lookarounds or references back: for these PCRE2
 * (10.42) computes the start and the least length of matches wrongly, and must not use them. In
 * translated syntax these characters have no other meaning. */
static uint32_t looks_option(ah_slice words)
{
    static const char *const looks[] = {"(?=", "(?!", "(?<", "\\g{"};

    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (ah_slice_find(words, ah_slice_of(looks[i])))
            return PCRE2_NO_START_OPTIMIZE;
    return 0;
}

static ah_status compile_words(ah_pattern *p, ah_slice words, pcre2_code **out, ah_buf *why)
{
    const uint32_t options = (p->how & AH_PATTERN_ANY_CASE ? PCRE2_CASELESS : 0) | PCRE2_UTF |
                             PCRE2_MATCH_UNSET_BACKREF | PCRE2_DOLLAR_ENDONLY |
                             PCRE2_NEVER_BACKSLASH_C | looks_option(words);
    PCRE2_SIZE at = 0;
    int code = 0;

    *out = pcre2_compile((PCRE2_SPTR)words.p, words.n, options, &code, &at, p->compiling);
    return *out ? AH_OK : say(why, code);
}

static ah_status compile(ah_pattern *p, ah_buf *why)
{
    ah_status st;
    ah_buf words;

    ah_buf_init(&words, p->mem, MAX_WORDS);
    st = ah_pattern_translate(p->mem, ah_text_slice(p->text), p->how, NULL, &words, why);
    if (st == AH_OK)
        st = compile_words(p, ah_buf_slice(&words), &p->code, why);
    ah_buf_clear(&words);
    if (st == AH_OK && !(p->data = pcre2_match_data_create_from_pattern(p->code, p->general)))
        st = AH_NOMEM;
    return st;
}

/* Compiles the same expression with a callout at its beginning and after each part that may pass
 * over many characters. An expression too large for that is not used. */
static ah_status compile_counted(ah_pattern *p)
{
    ah_status st;
    ah_buf words, why;

    ah_buf_init(&words, p->mem, MAX_WORDS);
    ah_buf_init(&why, p->mem, 256);
    ah_buf_str(&words, "(?C1)(?:");
    p->cost = (ah_pattern_cost){0};
    st = ah_pattern_translate(p->mem, ah_text_slice(p->text), p->how, &p->cost, &words, &why);
    ah_buf_char(&words, ')');
    if (st == AH_OK)
        st = words.status == AH_OK ? compile_words(p, ah_buf_slice(&words), &p->counted, &why)
                                   : words.status;
    ah_buf_clear(&why);
    ah_buf_clear(&words);
    return st;
}

static void ask_code(ah_pattern *p)
{
    uint32_t options = 0;

    pcre2_pattern_info(p->code, PCRE2_INFO_ALLOPTIONS, &options);
    pcre2_pattern_info(p->code, PCRE2_INFO_FRAMESIZE, &p->frame);
    p->anchored = options & PCRE2_ANCHORED;
}

ah_status ah_pattern_new(const ah_mem *mem, ah_slice text, unsigned how, ah_pattern **out,
                         ah_buf *why)
{
    ah_pattern *p = ah_alloc(mem, sizeof *p);
    ah_status st = AH_NOMEM;

    if (!p)
        return AH_NOMEM;
    p->mem = mem;
    p->how = how;
    if ((p->text = ah_text_new(mem, text)) && prepare(p))
        st = compile(p, why);
    if (st == AH_OK) {
        ask_code(p);
        *out = p;
    } else {
        ah_pattern_free(p);
    }
    return st;
}

/* Called at each beginning, and after parts that pass over characters. */
static int look(pcre2_callout_block *b, void *ud)
{
    trying *t = ud;
    uint64_t steps = 0;

    if (b->callout_number == 1) {
        t->begin = t->at = b->start_match;
        steps = t->price;
    } else {
        t->moved += t->weight * (b->current_position > t->at ? b->current_position - t->at
                                                             : t->at - b->current_position);
        t->at = b->current_position;
    }
    steps += t->moved / MOVES;
    t->moved %= MOVES;
    return ah_work_do(t->work, steps) ? 0 : PCRE2_ERROR_CALLOUT;
}

/* Returns the most steps that this much backtracking may cost. */
static uint64_t price_of(const ah_pattern *p, size_t n, uint32_t limit)
{
    size_t each = 1 + p->cost.widest / WIDE_STEP + p->cost.least / WIDE_STEP + p->frame / FRAME +
                  (p->cost.refers ? n / WIDE_STEP : 0);

    return (uint64_t)(limit / PER_STEP) * each;
}

static ah_match judge(int n)
{
    return n >= 0                      ? AH_MATCH_YES
           : n == PCRE2_ERROR_NOMATCH  ? AH_MATCH_NO
           : n == PCRE2_ERROR_NOMEMORY ? AH_MATCH_NOMEM
           : n == PCRE2_ERROR_CALLOUT  ? AH_MATCH_ENDED
                                       : AH_MATCH_LIMIT;
}

static ah_match match_counted(ah_pattern *p, ah_slice text, uint32_t limit, ah_work *work)
{
    trying t = {.work = work, .weight = 1 + p->cost.widest / WIDE_CLASS};
    int n = PCRE2_ERROR_MATCHLIMIT;

    pcre2_set_callout(p->limits, look, &t);
    for (; n == PCRE2_ERROR_MATCHLIMIT && limit <= LAST_LIMIT; limit *= GROWTH) {
        t.price = price_of(p, text.n, limit);
        pcre2_set_match_limit(p->limits, limit);
        n = pcre2_match(p->counted, (PCRE2_SPTR)text.p, text.n, t.begin, PCRE2_NO_UTF_CHECK,
                        p->data, p->limits);
    }
    pcre2_set_callout(p->limits, NULL, NULL);
    return judge(n);
}

ah_match ah_pattern_match(ah_pattern *p, ah_slice text, ah_work *work)
{
    uint32_t limit = FIRST_LIMIT;
    ah_status st = AH_OK;
    int n;

    text.p = text.p ? text.p : "";
    if (p->anchored && text.n <= SHORT) {
        if (!ah_work_do(work, FIRST_LIMIT / PER_STEP))
            return AH_MATCH_ENDED;
        pcre2_set_match_limit(p->limits, limit);
        n = pcre2_match(p->code, (PCRE2_SPTR)text.p, text.n, 0, PCRE2_NO_UTF_CHECK, p->data,
                        p->limits);
        if (n != PCRE2_ERROR_MATCHLIMIT)
            return judge(n);
        limit *= GROWTH;
    }
    if (!p->counted && (st = compile_counted(p)) != AH_OK)
        return st == AH_NOMEM ? AH_MATCH_NOMEM : AH_MATCH_LIMIT;
    return match_counted(p, text, limit, work);
}

bool ah_pattern_supported(void)
{
    return true;
}

const char *ah_pattern_version(char *out, size_t size)
{
    char words[64] = "";

    pcre2_config(PCRE2_CONFIG_VERSION, words); /* "10.42 2022-12-11" */
    snprintf(out, size, "%.*s", (int)strcspn(words, " "), words);
    return out;
}

#else

ah_status ah_pattern_new(const ah_mem *mem, ah_slice text, unsigned how, ah_pattern **out,
                         ah_buf *why)
{
    (void)mem;
    (void)text;
    (void)how;
    (void)out;
    ah_buf_str(why, "this build has no regular expressions (install libpcre2-dev and build again)");
    return AH_PROMPT_VALIDATION;
}

void ah_pattern_free(ah_pattern *p)
{
    (void)p;
}

ah_slice ah_pattern_text(const ah_pattern *p)
{
    (void)p;
    return (ah_slice){NULL, 0};
}

ah_match ah_pattern_match(ah_pattern *p, ah_slice text, ah_work *work)
{
    (void)p;
    (void)text;
    (void)work;
    return AH_MATCH_LIMIT;
}

bool ah_pattern_supported(void)
{
    return false;
}

const char *ah_pattern_version(char *out, size_t size)
{
    snprintf(out, size, "none");
    return out;
}

#endif
