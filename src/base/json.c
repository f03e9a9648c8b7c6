/* Checked JSON: the reader, members, strings and numbers in it, small writers, and UTF-8. On
 * checked text nothing fails, and only a given ah_buf allocates.
 *
 * json_check.c checks text from outside; json_canon.c makes canonical text. */
#include "base/json.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_walk.h"

enum {
    SIGNIFICANT = 800, /* digits that can affect a double: halfway cases have at most 767 */
    MAX_EXPONENT = 20000
};

size_t ah_utf8_len(const char *s, const char *end)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > (size_t)(end - s))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90)) /* overlong */
        return 0;
    if ((p[0] == 0xed && p[1] >= 0xa0) ||
        (p[0] == 0xf4 && p[1] >= 0x90)) /* surrogate, or too large */
        return 0;
    return n;
}

size_t ah_utf8_put(unsigned c, char out[4])
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n > 1 ? n : 0] | c);
    return n;
}

static const char *skip_ascii(const char *p, const char *end)
{
    for (uint64_t w; end - p >= 8; p += 8) {
        memcpy(&w, p, 8);
        if (w & 0x8080808080808080u)
            break;
    }
    while (p < end && (unsigned char)*p < 0x80)
        p++;
    return p;
}

bool ah_utf8_valid(ah_slice s)
{
    const char *p = s.n ? s.p : "", *end = p + s.n;

    while ((p = skip_ascii(p, end)) < end) {
        size_t n = ah_utf8_len(p, end);

        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

void ah_utf8_repair(ah_slice s, ah_buf *out)
{
    const char *p = s.n ? s.p : "", *from = p, *end = p + s.n;

    while (p < end) {
        size_t n = ah_utf8_len(p, end);

        if (n) {
            p += n;
            continue;
        }
        ah_buf_add(out, from, (size_t)(p - from));
        ah_buf_str(out, "\xef\xbf\xbd");
        from = ++p;
    }
    ah_buf_add(out, from, (size_t)(end - from));
}

static const char *skip_blanks(const char *p, const char *end)
{
    const uint64_t blanks = 0x2020202020202020u;

    for (uint64_t w; LOWEST_FIRST && end - p >= 8; p += 8) {
        memcpy(&w, p, 8);
        if (w != blanks)
            return p + __builtin_ctzll(w ^ blanks) / 8;
    }
    while (p < end && *p == ' ')
        p++;
    return p;
}

/* Most white space is one blank, or a line end with an indentation. */
const char *ah_json_skip_white(const char *p, const char *end)
{
    while (p < end && is_white(*p))
        p = skip_blanks(p + 1, end);
    return p;
}

int ah_json_hex4(const char *p, const char *end)
{
    int v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i], lower = (char)(c | 0x20);

        if (is_digit(c))
            v = v * 16 + (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            v = v * 16 + (lower - 'a' + 10);
        else
            return -1;
    }
    return v;
}

int ah_json_low_surrogate(const char *p, const char *end)
{
    int c = end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? ah_json_hex4(p + 2, end) : -1;

    return is_low_surrogate(c) ? c : -1;
}

size_t ah_json_unescape_one(const char **pp, const char *end, char out[4])
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *p = *pp + 1, *f;
    char c = p < end ? *p++ : '\\';
    int u, low;

    if (c != 'u') {
        *pp = p;
        f = memchr(from, c, 5);
        out[0] = f ? to[f - from] : c;
        return 1;
    }
    if ((u = ah_json_hex4(p, end)) < 0) { /* impossible in checked text */
        *pp = end;
        return ah_utf8_put(0xfffd, out);
    }
    p += 4;
    if (is_high_surrogate(u) && (low = ah_json_low_surrogate(p, end)) >= 0) {
        u = 0x10000 + ((u & 0x3ff) << 10) + (low & 0x3ff);
        p += 6;
    }
    *pp = p;
    return ah_utf8_put((unsigned)u, out);
}

const char *ah_json_far_string_end(const char *p, const char *near, const char *end, bool *escaped)
{
    const char *quote = memchr(near, '"', (size_t)(end - near)), *slash;

    while (quote && (slash = memchr(p, '\\', (size_t)(quote - p)))) {
        *escaped = true;
        if (end - slash < 2)
            return end;
        p = slash + 2;
        if (quote < p) /* an escaped quote */
            quote = memchr(p, '"', (size_t)(end - p));
    }
    return quote ? quote : end;
}

static inline ah_json_token read_string_or_key(ah_json_reader *r)
{
    ah_json_token t = read_string(r);

    if (pass_colon(r))
        t.kind = AH_JSON_KEY;
    return t;
}

static ah_json_token read_word(ah_json_reader *r, ah_json_kind kind)
{
    const char *from = r->p;

    r->p = word_end(from, r->end);
    return (ah_json_token){.kind = kind, .raw = {from, (size_t)(r->p - from)}};
}

static ah_json_token read_bracket(ah_json_reader *r, ah_json_kind kind)
{
    return (ah_json_token){.kind = kind, .raw = {r->p++, 1}};
}

ah_json_reader ah_json_read(ah_slice checked)
{
    const char *p = checked.p ? checked.p : "", *end = p + checked.n;

    return (ah_json_reader){.p = skip_white(p, end), .end = end};
}

/* Returns the kind of the token that begins with this character. */
static inline ah_json_kind kind_at(char c)
{
    switch (c) {
    case '{':
        return AH_JSON_OBJECT;
    case '}':
        return AH_JSON_OBJECT_END;
    case '[':
        return AH_JSON_ARRAY;
    case ']':
        return AH_JSON_ARRAY_END;
    case '"':
        return AH_JSON_STRING;
    case 't':
        return AH_JSON_TRUE;
    case 'f':
        return AH_JSON_FALSE;
    case 'n':
        return AH_JSON_NULL;
    default:
        return AH_JSON_NUMBER;
    }
}

ah_json_token ah_json_next(ah_json_reader *r)
{
    const char *p = r->p;
    ah_json_kind kind;

    while (p < r->end && (is_white(*p) || *p == ',' || *p == ':'))
        p++;
    r->p = p;
    if (p == r->end)
        return (ah_json_token){.kind = AH_JSON_END, .raw = {r->p, 0}};
    kind = kind_at(*p);
    if (kind == AH_JSON_STRING)
        return read_string_or_key(r);
    return kind >= AH_JSON_ARRAY ? read_bracket(r, kind) : read_word(r, kind);
}

void ah_json_leave(ah_json_reader *r)
{
    bool escaped;

    for (size_t open = 1; open > 0 && r->p < r->end; r->p++) {
        switch (*r->p) {
        case '{':
        case '[':
            open++;
            break;
        case '}':
        case ']':
            open--;
            break;
        case '"':
            if ((r->p = string_end(r->p + 1, r->end, &escaped)) == r->end)
                return;
            break;
        default:
            break;
        }
    }
}

ah_slice ah_json_skip(ah_json_reader *r, ah_json_token t)
{
    if (t.kind == AH_JSON_STRING || t.kind == AH_JSON_KEY) {
        size_t left = (size_t)(r->end - t.raw.p);

        return (ah_slice){t.raw.p - 1, 1 + (t.raw.n < left ? t.raw.n + 1 : left)};
    }
    if (t.kind != AH_JSON_OBJECT && t.kind != AH_JSON_ARRAY)
        return t.raw;
    ah_json_leave(r);
    return (ah_slice){t.raw.p, (size_t)(r->p - t.raw.p)};
}

ah_json_kind ah_json_kind_of(ah_slice checked)
{
    ah_json_reader r = ah_json_read(checked);

    return r.p < r.end ? kind_at(*r.p) : AH_JSON_END;
}

/* Returns the token of a string; if it is not one, a token without a kind. */
static inline ah_json_token string_token(ah_slice value)
{
    ah_json_reader r = ah_json_read(value);

    if (r.p < r.end && *r.p == '"')
        return read_string(&r);
    return (ah_json_token){.kind = AH_JSON_END};
}

bool ah_json_spells(ah_slice raw, const char *lit)
{
    unescaped u = unescaping(raw);
    int c;

    while ((c = next_byte(&u)) > 0 && c == (unsigned char)*lit)
        lit++;
    return c < 0 && !*lit;
}

/* Most comparisons fail at the first byte. */
static inline bool key_is(ah_json_token t, const char *key)
{
    if (t.escaped)
        return ah_json_spells(t.raw, key);
    if (!t.raw.n)
        return !*key;
    return *t.raw.p == *key && strncmp(t.raw.p, key, t.raw.n) == 0 &&
           strlen(key) == t.raw.n; /* unchecked text may contain NUL */
}

ah_slice ah_json_member(ah_slice checked_object, const char *key)
{
    ah_json_reader r = ah_json_read(checked_object);
    ah_json_token t;

    if (!enter(&r, '{'))
        return (ah_slice){0};
    for (; next_key(&r, &t); pass_value(&r))
        if (key_is(t, key))
            return pass_value(&r);
    return (ah_slice){0};
}

bool ah_json_has_one(ah_slice checked)
{
    ah_json_reader r = ah_json_read(checked);
    ah_json_token t;

    if (!enter(&r, '{') || !next_key(&r, &t))
        return false;
    pass_value(&r);
    return !next_key(&r, &t);
}

bool ah_json_has_string(ah_slice checked, ah_slice raw)
{
    ah_json_reader r = ah_json_read(checked);
    ah_json_token t = ah_json_next(&r);

    if (t.kind != AH_JSON_ARRAY)
        return false;
    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r))
        if (ah_slice_eq(t.raw, raw))
            return true;
    return false;
}

void ah_json_rest_members(ah_json_reader *r, const ah_json_slot *want, size_t n)
{
    ah_json_token t;

    for (size_t i = 0; i < n; i++)
        *want[i].value = (ah_slice){0};
    while (next_key(r, &t)) {
        ah_slice value = pass_value(r);
        size_t i = 0;

        while (i < n && !key_is(t, want[i].key))
            i++;
        if (i < n)
            *want[i].value = value;
    }
}

bool ah_json_members(ah_slice checked_object, const ah_json_slot *want, size_t n)
{
    ah_json_reader r = ah_json_read(checked_object), none = ah_json_read((ah_slice){NULL, 0});
    bool is_object = enter(&r, '{');

    ah_json_rest_members(is_object ? &r : &none, want, n);
    return is_object;
}

void ah_json_unescape(ah_slice raw, ah_buf *out)
{
    const char *p = raw.n ? raw.p : "", *end = p + raw.n, *slash;
    char c[4];

    while (p < end && (slash = memchr(p, '\\', (size_t)(end - p)))) {
        ah_buf_add(out, p, (size_t)(slash - p));
        p = slash;
        ah_buf_add(out, c, ah_json_unescape_one(&p, end, c));
    }
    ah_buf_add(out, p, (size_t)(end - p));
}

bool ah_json_string(ah_slice value, ah_buf *out)
{
    ah_json_token t = string_token(value);

    if (t.kind != AH_JSON_STRING)
        return false;
    if (t.escaped)
        ah_json_unescape(t.raw, out);
    else
        ah_buf_put(out, t.raw);
    return true;
}

bool ah_json_string_is(ah_slice value, const char *lit)
{
    return ah_json_token_is(string_token(value), lit);
}

/* Escapes as cJSON's printer does, so that both give equal canonical text. */
static void put_escape(ah_buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *f = c ? memchr(from, c, 7) : NULL;

    if (f) {
        ah_buf_char(b, '\\');
        ah_buf_char(b, to[f - from]);
    } else {
        ah_buf_fmt(b, "\\u%04x", c);
    }
}

void ah_json_put_string(ah_buf *b, ah_slice s)
{
    const char *p = s.n ? s.p : "", *end = p + s.n;

    ah_buf_char(b, '"');
    while (p < end) {
        const char *from = p;

        do
            p = skip_plain(p, end);
        while (p < end && (unsigned char)*p >= 0x80 && ++p < end);
        ah_buf_add(b, from, (size_t)(p - from));
        if (p < end)
            put_escape(b, (unsigned char)*p++);
    }
    ah_buf_char(b, '"');
}

/* A value never ends with '{', so the last byte says if it is the first member. */
void ah_json_add_name(ah_buf *object, const char *name)
{
    if (object->len && object->data[object->len - 1] != '{')
        ah_buf_char(object, ',');
    ah_buf_char(object, '"');
    ah_buf_str(object, name);
    ah_buf_str(object, "\":");
}

void ah_json_add(ah_buf *object, const char *name, ah_slice json)
{
    if (!json.p)
        return;
    ah_json_add_name(object, name);
    ah_buf_put(object, json);
}

void ah_json_add_string(ah_buf *object, const char *name, ah_slice text)
{
    if (!text.p)
        return;
    ah_json_add_name(object, name);
    ah_json_put_string(object, text);
}

void ah_json_add_int(ah_buf *object, const char *name, int64_t v)
{
    ah_json_add_name(object, name);
    ah_buf_int(object, v);
}

/* Writes into the error itself and needs no memory. `value` is JSON unless is_text. */
static void put_detail(ah_err *err, const char *name, ah_slice value, bool is_text)
{
    size_t n = strlen(err->details);
    ah_buf b = {.mem = &ah_mem_libc,
                .data = err->details,
                .len = n ? n - 1 : 0,
                .cap = sizeof err->details - 1,
                .max = sizeof err->details - 1};

    ah_buf_char(&b, n ? ',' : '{');
    ah_json_put_string(&b, ah_slice_of(name));
    ah_buf_char(&b, ':');
    if (is_text)
        ah_json_put_string(&b, value);
    else
        ah_buf_put(&b, value);
    ah_buf_char(&b, '}');
    if (ah_buf_ok(&b)) {
        err->details[b.len] = '\0';
        return;
    }
    err->details[n] = '\0';
    if (n)
        err->details[n - 1] = '}';
}

void ah_json_detail(ah_err *err, const char *name, ah_slice value)
{
    put_detail(err, name, value, true);
}

void ah_json_detail_int(ah_err *err, const char *name, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%lld", (long long)value);
    put_detail(err, name, ah_slice_of(digits), false);
}

ah_slice ah_json_detail_of(const ah_err *err, const char *name)
{
    ah_slice value = ah_json_member(ah_slice_of(err->details), name);

    return ah_json_kind_of(value) == AH_JSON_STRING ? ah_json_inside(value) : (ah_slice){NULL, 0};
}

/* Reads a literal that fits and is not "-0", which is a float. */
static bool read_int(ah_slice lit, int64_t *out)
{
    bool negative = lit.n && lit.p[0] == '-';
    uint64_t u = 0, max = (uint64_t)INT64_MAX + negative;

    for (size_t i = negative; i < lit.n; i++) {
        uint64_t d = (uint64_t)(lit.p[i] - '0');

        if (!is_digit(lit.p[i]) || u > (max - d) / 10)
            return false;
        u = u * 10 + d;
    }
    if (negative && u == 0)
        return false;
    *out = negative ? (int64_t)(0 - u) : (int64_t)u;
    return lit.n > negative;
}

/* Reads the exponent after 'e', limited to values beyond any count of digits. */
static int64_t read_exponent(const char *p, const char *end)
{
    bool negative = p < end && *p == '-';
    int64_t v = 0;

    for (p += p < end && !is_digit(*p); p < end && is_digit(*p); p++)
        if (v < INT64_MAX / 1000)
            v = v * 10 + (*p - '0');
    return negative ? -v : v;
}

/* Returns the value of the literal, rewritten with an exponent and without a point, because
 * strtod expects the locale's point. Digits that do not fit become a single 1, unless all are 0. */
static double read_float(ah_slice lit)
{
    const char *p = lit.n ? lit.p : "", *end = p + lit.n;
    char s[SIGNIFICANT + 32];
    size_t n = 0, most = SIGNIFICANT;
    int64_t e = 0;
    bool point = false, more = false;

    if (lit.n && *p == '-') {
        s[n++] = *p++;
        most++;
    }
    for (; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        e -= point;
        if (n < most) {
            if (*p != '0' || (n && is_digit(s[n - 1])))
                s[n++] = *p;
        } else {
            e++;
            more |= *p != '0';
        }
    }
    if (more) {
        s[n++] = '1';
        e--;
    }
    if (p < end)
        e += read_exponent(p + 1, end);
    e = e > MAX_EXPONENT ? MAX_EXPONENT : e < -MAX_EXPONENT ? -MAX_EXPONENT : e;
    snprintf(s + n, sizeof s - n, "%se%d", n && is_digit(s[n - 1]) ? "" : "0", (int)e);
    return strtod(s, NULL);
}

bool ah_json_number(ah_slice literal, ah_json_num *out)
{
    *out = (ah_json_num){0};
    if (!literal.n)
        return false;
    if (read_int(literal, &out->i)) {
        out->is_int = true;
        out->d = (double)out->i;
        return true;
    }
    out->i = 0;
    out->d = read_float(literal);
    return out->d <= DBL_MAX && out->d >= -DBL_MAX;
}

/* Prints "%g" with '.' in place of the locale's point (of any bytes), and never like an integer. */
static void print_double(char *out, size_t size, int digits, double d)
{
    char s[48];
    const char *between = "";
    size_t whole, point;

    snprintf(s, sizeof s, "%.*g", digits, d);
    whole = strspn(s, "-0123456789");
    point = strcspn(s + whole, "0123456789e");
    if (point)
        between = ".";
    else if (!s[whole])
        between = ".0";
    snprintf(out, size, "%.*s%s%s", (int)whole, s, between, s + whole + point);
}

void ah_json_put_double(ah_buf *b, double d)
{
    int digits = d < DBL_MIN && d > -DBL_MIN ? 1 : 15; /* subnormals have fewer */
    ah_json_num back;
    char s[48];

    do
        print_double(s, sizeof s, digits, d);
    while (digits++ < 17 && (!ah_json_number(ah_slice_of(s), &back) || back.d != d));
    ah_buf_str(b, s);
}
