/* Reads words of a search. */
#include "io/store_query.h"

static bool is_separator(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* True if a text may have a word: FTS5 decides for characters beyond ASCII. */
static bool has_word(ah_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i], lower = c | 0x20;

        if (c >= 0x80 || (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z'))
            return true;
    }
    return false;
}

/* Takes the next word, or what is between quotes. A quote without another one reaches to the end.
 * False: there is none. */
static bool next_term(ah_slice *rest, ah_slice *term, bool *prefix)
{
    const char *p = rest->p, *end = p + rest->n;
    bool quoted;

    while (p < end && is_separator(*p))
        p++;
    if (p == end)
        return false;
    quoted = *p == '"';
    term->p = p += quoted;
    while (p < end && *p != '"' && (quoted || !is_separator(*p)))
        p++;
    term->n = (size_t)(p - term->p);
    p += quoted && p < end;
    *prefix = quoted ? p < end && *p == '*' : term->n > 0 && term->p[term->n - 1] == '*';
    p += quoted && *prefix;
    *rest = (ah_slice){p, (size_t)(end - p)};
    return true;
}

/* A string of FTS5 ends at a quote that is not doubled, and the expression at a NUL. */
static void put_term(ah_buf *out, ah_slice term, bool prefix)
{
    ah_buf_char(out, '"');
    for (size_t i = 0; i < term.n; i++) {
        if (term.p[i] == '"')
            ah_buf_char(out, '"');
        ah_buf_char(out, is_separator(term.p[i]) ? ' ' : term.p[i]);
    }
    ah_buf_str(out, prefix ? "\"* " : "\" ");
}

ah_status ah_store_match_read(ah_slice words, ah_store_match *out, ah_err *err)
{
    ah_slice term;
    bool prefix;

    out->n = 0;
    ah_buf_init(&out->text, &ah_mem_libc, SIZE_MAX);
    if (words.n > AH_STORE_QUERY_BYTES)
        return ah_err_set(err, AH_USAGE, "the words to search for have %zu bytes, %d are the most",
                          words.n, AH_STORE_QUERY_BYTES);
    while (next_term(&words, &term, &prefix)) {
        if (!has_word(term))
            continue;
        if (out->n == AH_STORE_QUERY_TERMS)
            return ah_err_set(err, AH_USAGE, "there are more than %d words to search for",
                              AH_STORE_QUERY_TERMS);
        put_term(&out->text, term, prefix);
        out->end[out->n++] = out->text.len;
    }
    if (!ah_buf_ok(&out->text))
        return ah_err_nomem(err);
    return out->n ? AH_OK
                  : ah_err_set(err, AH_USAGE,
                               "there is no word to search for: a word has letters "
                               "or digits");
}

void ah_store_match_clear(ah_store_match *m)
{
    ah_buf_clear(&m->text);
}

ah_slice ah_store_match_term(const ah_store_match *m, size_t i)
{
    size_t from = i ? m->end[i - 1] : 0;

    return (ah_slice){m->text.data + from, m->end[i] - from};
}
