/* Web addresses: URIs and IRIs (RFC 3986, RFC 3987), their references, and their templates (RFC
 * 6570). Each is split by its grammar; nothing is looked up. A host that is not an address in
 * brackets may be any name of the grammar. */
#include "schema/format.h"

/* Parts of an address in which a character may appear. */
enum {
    IN_NAME = 1,     /* a host, and all following parts */
    IN_USER = 2,     /* with : */
    IN_PATH = 4,     /* with @, too */
    IN_QUERY = 8,    /* with / and ?, too */
    ANY_SCRIPT = 16, /* IRIs */
    PRIVATE = 32     /* private use characters, in queries of IRIs */
};

static bool is_plain(char c, unsigned where)
{
    return schema_is_alpha(c) || schema_is_digit(c) || schema_is_in(c, "-._~!$&'()*+,;=") ||
           (c == ':' && where & (IN_USER | IN_PATH | IN_QUERY)) ||
           (c == '@' && where & (IN_PATH | IN_QUERY)) ||
           ((c == '/' || c == '?') && where & IN_QUERY);
}

static bool is_foreign(uint32_t c, unsigned where)
{
    if ((c >= 0xe000 && c <= 0xf8ff) || c >= 0xf0000)
        return where & PRIVATE && (c & 0xfffe) != 0xfffe;
    return where & ANY_SCRIPT && c >= 0xa0 && !(c >= 0xfdd0 && c <= 0xfdef) &&
           !(c >= 0xfff0 && c <= 0xffff) && (c & 0xfffe) != 0xfffe &&
           !(c >= 0xe0000 && c <= 0xe0fff);
}

static bool is_percent(ah_slice s, size_t i)
{
    return s.n - i >= 3 && s.p[i] == '%' && schema_is_hex(s.p[i + 1]) && schema_is_hex(s.p[i + 2]);
}

static bool holds_only(ah_slice s, unsigned where)
{
    for (size_t i = 0; i < s.n;) {
        size_t n = schema_char_length(s, i);

        if (s.p[i] == '%' ? !is_percent(s, i)
            : n == 1      ? !is_plain(s.p[i], where)
                          : !is_foreign(schema_char_at(s, i), where))
            return false;
        i += n;
    }
    return true;
}

/* Cuts off and returns the text before the first of these characters. */
static ah_slice cut_at(ah_slice *s, const char *set)
{
    ah_slice before = {s->p, 0};

    while (before.n < s->n && !schema_is_in(s->p[before.n], set))
        before.n++;
    *s = schema_from(*s, before.n);
    return before;
}

/* True for v1.something: an address of a future kind. */
static bool is_future(ah_slice s)
{
    size_t n = 1;

    if (s.n < 4 || (s.p[0] | 32) != 'v')
        return false;
    while (n < s.n && schema_is_hex(s.p[n]))
        n++;
    return n > 1 && n + 1 < s.n && s.p[n] == '.' && !memchr(s.p, '%', s.n) &&
           holds_only(schema_from(s, n + 1), IN_USER);
}

static bool is_port(ah_slice s)
{
    if (s.n && s.p[0] != ':')
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!schema_is_digit(s.p[i]))
            return false;
    return true;
}

static bool is_authority(ah_slice s, unsigned script)
{
    ah_slice rest = s, user = cut_at(&rest, "@"), host;

    if (rest.n) {
        if (!holds_only(user, IN_USER | script))
            return false;
        s = schema_from(rest, 1);
    }
    if (s.n && s.p[0] == '[') {
        s = schema_from(s, 1);
        host = cut_at(&s, "]");
        return s.n && (schema_is_ipv6(host) || is_future(host)) && is_port(schema_from(s, 1));
    }
    host = cut_at(&s, ":");
    return holds_only(host, IN_NAME | script) && is_port(s);
}

/* Returns the length of the scheme, or 0. */
static size_t scheme_of(ah_slice s)
{
    size_t n = 0;

    while (n < s.n && (schema_is_alpha(s.p[n]) ||
                       (n && (schema_is_digit(s.p[n]) || schema_is_in(s.p[n], "+-.")))))
        n++;
    return n < s.n && s.p[n] == ':' ? n : 0;
}

/* True for path, query and fragment, after an authority or without one. */
static bool is_path(ah_slice s, unsigned script)
{
    ah_slice path = cut_at(&s, "?#"), query;

    for (size_t i = 0; i < path.n; i++) {
        ah_slice rest = schema_from(path, i), segment = cut_at(&rest, "/");

        if (!holds_only(segment, IN_PATH | script))
            return false;
        i += segment.n;
    }
    if (s.n && s.p[0] == '?') {
        s = schema_from(s, 1);
        query = cut_at(&s, "#");
        if (!holds_only(query, IN_QUERY | script | (script ? PRIVATE : 0)))
            return false;
    }
    return s.n == 0 || holds_only(schema_from(s, 1), IN_QUERY | script);
}

static bool is_address(ah_slice s, unsigned script, bool relative)
{
    size_t scheme = scheme_of(s);
    ah_slice rest = s, first = cut_at(&rest, "/?#");

    if (scheme)
        s = schema_from(s, scheme + 1);
    else if (!relative || (first.n && memchr(first.p, ':', first.n)))
        return false;
    if (ah_slice_begins(s, "//")) {
        s = schema_from(s, 2);
        if (!is_authority(cut_at(&s, "/?#"), script))
            return false;
    }
    return is_path(s, script);
}

bool schema_is_uri(ah_slice s)
{
    return is_address(s, 0, false);
}

bool schema_is_uri_reference(ah_slice s)
{
    return is_address(s, 0, true);
}

bool schema_is_iri(ah_slice s)
{
    return is_address(s, ANY_SCRIPT, false);
}

bool schema_is_iri_reference(ah_slice s)
{
    return is_address(s, ANY_SCRIPT, true);
}

/* Templates */

/* True for a, a.b, %41: letters, digits and _ in parts. */
static bool is_variable(ah_slice s)
{
    bool part = false;

    for (size_t i = 0; i < s.n; i++) {
        bool percent = is_percent(s, i);

        if (s.p[i] == '.'
                ? !part
                : !(percent || s.p[i] == '_' || schema_is_alpha(s.p[i]) || schema_is_digit(s.p[i])))
            return false;
        part = s.p[i] != '.';
        i += percent ? 2 : 0;
    }
    return part;
}

/* True for a variable with :n (1 to 9999) or a star. */
static bool is_varspec(ah_slice s)
{
    ah_slice name = cut_at(&s, ":*");

    if (!is_variable(name))
        return false;
    if (s.n <= 1)
        return s.n == 0 || s.p[0] == '*';
    if (s.p[0] != ':' || s.n > 5 || s.p[1] == '0')
        return false;
    return is_port(s);
}

/* True if the text between braces is an expression. The operators = , ! @ | are reserved,
 * without a meaning yet. */
static bool is_expression(ah_slice s)
{
    if (s.n && schema_is_in(s.p[0], "+#./;?&=,!@|"))
        s = schema_from(s, 1);
    for (;;) {
        if (!is_varspec(cut_at(&s, ",")))
            return false;
        if (s.n == 0)
            return true;
        s = schema_from(s, 1);
    }
}

static bool is_literal(ah_slice s, size_t i)
{
    unsigned char c = (unsigned char)s.p[i];

    if (c >= 0x80)
        return is_foreign(schema_char_at(s, i), ANY_SCRIPT | PRIVATE);
    return c == '%' ? is_percent(s, i) : c > ' ' && c != 0x7f && !strchr("\"<>\\^`{|}", c);
}

bool schema_is_uri_template(ah_slice s)
{
    while (s.n) {
        if (s.p[0] == '{') {
            ah_slice inside;

            s = schema_from(s, 1);
            inside = cut_at(&s, "}");
            if (s.n == 0 || !is_expression(inside))
                return false;
            s = schema_from(s, 1);
        } else if (is_literal(s, 0)) {
            s = schema_from(s, schema_char_length(s, 0));
        } else {
            return false;
        }
    }
    return true;
}
