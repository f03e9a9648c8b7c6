/* Globs: *, ? and [a-z] within a name, ** for any folders, {a,b}. Braces are expanded first, to
 * at most AH_FS_MAX_ALTERNATIVES. The results are matched without recursion, going back to the
 * last star only, so no pattern costs more than the product of its length and the path's. */
#include "base/json.h" /* UTF-8 */
#include "state/fs_store.h"

enum { MAX_TEXT = AH_FS_MAX_ALTERNATIVES * (AH_FS_MAX_PATTERN + 1) };

/* -- braces ---------------------------------------------------------------------------------- */

/* Returns the `}` of the `{` at p, with nesting; NULL: none. */
static const char *closing(const char *p, const char *end)
{
    int depth = 0;

    for (; p < end; p++) {
        depth += (*p == '{') - (*p == '}');
        if (depth == 0)
            return p;
    }
    return NULL;
}

/* Returns the end of the alternative that begins at p: a comma of this level, or the brace. */
static const char *alternative(const char *p, const char *end)
{
    int depth = 0;

    while (p < end && !(depth == 0 && *p == ',')) {
        depth += (*p == '{') - (*p == '}');
        p++;
    }
    return p;
}

static ah_status bad(ah_err *err, const char *what, ah_slice pattern)
{
    return ah_fs_err(err, AH_FS_BAD_PATTERN, "%s in the pattern '%.*s'", what, AH_FMT(pattern));
}

/* Appends the pattern, at most AH_FS_MAX_PATTERN long, once for each alternative of its first
 * {}. */
static ah_status write_out(ah_fs_glob_set *g, ah_slice pattern, const char *open, ah_err *err)
{
    const char *end = pattern.p + pattern.n, *close = closing(open, end), *at = open + 1;

    if (!close)
        return bad(err, "a '{' without its '}'", pattern);
    while (at <= close) {
        const char *stop = alternative(at, close);

        if (++g->n > AH_FS_MAX_ALTERNATIVES)
            return bad(err, "more than 64 alternatives", pattern);
        ah_buf_add(&g->text, pattern.p, (size_t)(open - pattern.p));
        ah_buf_add(&g->text, at, (size_t)(stop - at));
        ah_buf_add(&g->text, close + 1, (size_t)(end - close - 1));
        ah_buf_char(&g->text, '\0');
        at = stop + 1;
    }
    return AH_OK;
}

/* Takes the first pattern and puts it back at the end, unchanged or expanded. */
static ah_status turn(ah_fs_glob_set *g, bool *changed, ah_err *err)
{
    char first[AH_FS_MAX_PATTERN + 1];
    size_t n = strlen(g->text.data);
    const char *open;

    memcpy(first, g->text.data, n + 1);
    ah_buf_drop(&g->text, n + 1);
    if (!(open = memchr(first, '{', n))) {
        ah_buf_add(&g->text, first, n + 1);
        return AH_OK;
    }
    *changed = true;
    g->n--;
    return write_out(g, (ah_slice){first, n}, open, err);
}

static ah_status check_sets(const ah_fs_glob_set *g, ah_slice pattern, ah_err *err);

ah_status ah_fs_glob_init(ah_fs_glob_set *g, const ah_mem *mem, ah_slice pattern, ah_err *err)
{
    ah_status st = AH_OK;
    bool changed = true;

    *g = (ah_fs_glob_set){.n = 1};
    ah_buf_init(&g->text, mem, MAX_TEXT);
    if (pattern.n == 0 || pattern.n > AH_FS_MAX_PATTERN || memchr(pattern.p, '\0', pattern.n) ||
        !ah_utf8_valid(pattern))
        return ah_fs_err(err, AH_FS_BAD_PATTERN, "a pattern is UTF-8 text of 1 to %d bytes",
                         AH_FS_MAX_PATTERN);
    ah_buf_put(&g->text, pattern);
    ah_buf_char(&g->text, '\0');
    while (changed && st == AH_OK && ah_buf_ok(&g->text)) {
        changed = false;
        for (size_t i = g->n; i > 0 && st == AH_OK && ah_buf_ok(&g->text); i--)
            st = turn(g, &changed, err);
    }
    if (!ah_buf_ok(&g->text))
        return ah_err_nomem(err); /* MAX_TEXT has room for all */
    return st == AH_OK ? check_sets(g, pattern, err) : st;
}

void ah_fs_glob_clear(ah_fs_glob_set *g)
{
    ah_buf_clear(&g->text);
}

/* -- names ---------------------------------------------------------------------------------- */

/* Returns the length of the well-formed UTF-8 character at p. */
static size_t char_len(const char *p)
{
    unsigned char c = (unsigned char)*p;

    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Compares bytes, because UTF-8 keeps the order of characters. */
static int compare_chars(const char *a, const char *b)
{
    return ah_slice_cmp((ah_slice){a, char_len(a)}, (ah_slice){b, char_len(b)});
}

/* Returns the place after the `]` of the set that begins at p, or NULL. `]` may be its first
 * member. */
static const char *set_end(const char *p, const char *end)
{
    p += 1 + (p + 1 < end && p[1] == '!');
    if (p < end && *p == ']')
        p++;
    while (p < end && *p != ']')
        p++;
    return p < end ? p + 1 : NULL;
}

static bool in_set(const char *p, const char *end, const char *c)
{
    bool inverse = p[1] == '!', found = false;

    for (p += 1 + inverse, end--; p < end;) {
        const char *low = p, *high = p;

        p += char_len(p);
        if (p + 1 < end && *p == '-') {
            high = p + 1;
            p = high + char_len(high);
        }
        found = found || (compare_chars(low, c) <= 0 && compare_chars(c, high) <= 0);
    }
    return found != inverse;
}

/* True if the next character, `?` or set of the pattern matches the character at *s. Moves past
 * both. */
static bool match_char(const char **p, const char *end, const char **s)
{
    const char *at = *p, *c = *s;

    *s += char_len(c);
    if (*at == '[') {
        *p = set_end(at, end);
        return in_set(at, *p, c);
    }
    *p += char_len(at);
    return *at == '?' || compare_chars(at, c) == 0;
}

static bool match_name(ah_slice pattern, ah_slice name)
{
    const char *p = pattern.p, *p_end = p + pattern.n, *s = name.p, *s_end = s + name.n;
    const char *star = NULL, *from = NULL;

    if (name.p[0] == '.' && (pattern.n == 0 || pattern.p[0] != '.'))
        return false;
    while (s < s_end) {
        if (p < p_end && *p == '*') {
            star = ++p;
            from = s;
        } else if (p == p_end || !match_char(&p, p_end, &s)) {
            if (!star)
                return false;
            p = star;
            s = from += char_len(from);
        }
    }
    while (p < p_end && *p == '*')
        p++;
    return p == p_end;
}

/* -- paths ------------------------------------------------------------------------------------ */

static ah_slice first_name(ah_slice path)
{
    const char *slash = path.n ? memchr(path.p, '/', path.n) : NULL;

    return (ah_slice){path.p, slash ? (size_t)(slash - path.p) : path.n};
}

static ah_slice behind(ah_slice path, ah_slice name)
{
    size_t used = name.n + (name.n < path.n);

    return (ah_slice){path.p + used, path.n - used};
}

/* True if the path matches; with `leads`, if an entry below this folder may match. */
static bool match_path(ah_slice p, ah_slice s, bool leads)
{
    ah_slice star = {NULL, 0}, from = {NULL, 0};

    while (s.n) {
        ah_slice want = first_name(p), name = first_name(s);

        if (p.n && ah_slice_is(want, "**")) {
            star = p = behind(p, want);
            from = s;
        } else if (p.n && match_name(want, name)) {
            p = behind(p, want);
            s = behind(s, name);
        } else {
            if (!star.p || from.p[0] == '.') /* ** matches no hidden folder */
                return false;
            p = star;
            s = from = behind(from, first_name(from));
        }
    }
    if (leads)
        return p.n > 0 || star.p;
    while (p.n && ah_slice_is(first_name(p), "**"))
        p = behind(p, first_name(p));
    return p.n == 0;
}

static bool match_any(const ah_fs_glob_set *g, ah_slice path, bool leads)
{
    const char *p = g->text.data;

    for (size_t i = 0; i < g->n; i++, p += strlen(p) + 1)
        if (match_path(ah_slice_of(p), path, leads))
            return true;
    return false;
}

uint64_t ah_fs_glob_steps(const ah_fs_glob_set *g, ah_slice path)
{
    enum { CHARACTERS = 64 }; /* compared in a step */

    return 1 + (uint64_t)g->text.len * path.n / CHARACTERS;
}

bool ah_fs_glob_match(const ah_fs_glob_set *g, ah_slice path)
{
    return match_any(g, path, false);
}

bool ah_fs_glob_leads(const ah_fs_glob_set *g, ah_slice folder)
{
    return match_any(g, folder, true);
}

/* -- checking ---------------------------------------------------------------------------------- */

static ah_status check_sets(const ah_fs_glob_set *g, ah_slice pattern, ah_err *err)
{
    const char *p = g->text.data, *end = p + g->text.len;

    while (p < end) {
        const char *stop = p;

        while (*stop && *stop != '/')
            stop++;
        while (p && p < stop)
            p = *p == '[' ? set_end(p, stop) : p + 1;
        if (!p)
            return bad(err, "a '[' without its ']'", pattern);
        p++;
    }
    return AH_OK;
}
