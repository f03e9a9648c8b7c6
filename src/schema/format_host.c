/* Host names (RFC 1123), also in other scripts (RFC 5890 to 5893), host addresses (RFC 4291), and
 * email addresses (RFC 5321, RFC 6531).
 *
 * The characters of names in other scripts depend on Unicode properties and on their neighbours.
 * PCRE2 knows the properties, so an expression in ECMAScript's syntax states all the rules;
 * without PCRE2 all characters are accepted. The rules: a character is a letter, digit or mark
 * that Unicode's foldings do not change (RFC 5892, 2), or an exception, some of them only beside
 * others (appendix A); a right-to-left label must have a definite direction (RFC 5893). Not
 * checked: form NFC, and which letters join outside the Arabic and Syriac scripts. */
#include "schema/format.h"

enum {
    MAX_LABEL = 63,
    MAX_NAME = 253,
    MAX_LOCAL = 64,    /* bytes, with quotes */
    MAX_ADDRESS = 254, /* of email, without angle brackets: RFC 5321, 4.5.3.1.3 */
    NAME_STEPS = 2000  /* steps to compile the expression */
};

/* Letters, marks and digits that their compatibility form would replace (RFC 5892, 2.2), as of
 * Unicode 14; letters with another case are found by that property. */
#define UNSTABLE                                                                                   \
    "\\u00aa-\\u00ba\\u0133\\u0140\\u01c6-\\u01cc\\u01f3\\u02b0-\\u02b8\\u02e0-\\u02e4"            \
    "\\u0340\\u0341\\u0343\\u0344\\u0374\\u037a\\u03d2-\\u03d4\\u03f2\\u0675-\\u0678"              \
    "\\u0958-\\u095f\\u09dc-\\u09df\\u0a33\\u0a36\\u0a59-\\u0a5b\\u0a5e\\u0b5c\\u0b5d\\u0e33"      \
    "\\u0eb3\\u0edc\\u0edd\\u0f43\\u0f4d\\u0f52\\u0f57\\u0f5c\\u0f69\\u0f73\\u0f75-\\u0f79"        \
    "\\u0f81\\u0f93\\u0f9d\\u0fa2\\u0fa7\\u0fac\\u0fb9\\u10fc\\u1d2c-\\u1d2e\\u1d30-\\u1d3a"       \
    "\\u1d3c-\\u1d4d\\u1d4f-\\u1d6a\\u1d78\\u1d9b-\\u1dbf\\u1f71\\u1f73\\u1f75\\u1f77\\u1f79"      \
    "\\u1f7b\\u1f7d\\u1fbe\\u1fd3\\u1fe3\\u2071-\\u209c\\u2102-\\u2149\\u2c7c\\u2c7d\\u2d6f"       \
    "\\u309f\\u30ff\\u3131-\\u318e\\ua69c\\ua69d\\ua770\\ua7f2-\\ua7f4\\ua7f8\\ua7f9"              \
    "\\uab5c-\\uab5f\\uab69\\uf900-\\ufa0d\\ufa10\\ufa12\\ufa15-\\ufa1e\\ufa20\\ufa22"             \
    "\\ufa25\\ufa26\\ufa2a-\\ufb1d\\ufb1f-\\ufdfb\\ufe70-\\ufe72\\ufe74-\\uffdc"                   \
    "\\u{10781}-\\u{107ba}\\u{1d400}-\\u{1d7ff}\\u{1ee00}-\\u{1fbf9}\\u{2f800}-\\u{2fa1d}"
/* Blocks (2.4), old Hangul (2.9) and exceptions (2.6) that names may not contain. */
#define DISALLOWED                                                                                 \
    "\\u20d0-\\u20ff\\u{1d100}-\\u{1d1ff}\\u{1d200}-\\u{1d24f}\\u1100-\\u11ff\\ua960-\\ua97f"      \
    "\\ud7b0-\\ud7ff\\u0640\\u07fa\\u302e\\u302f\\u3031-\\u3035\\u303b"
/* Characters of the canonical combining class 9. */
#define VIRAMAS                                                                                    \
    "\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d3b\\u0d3c\\u0d4d\\u0dca\\u0e3a"  \
    "\\u0eba\\u0f84\\u1039\\u103a\\u1714\\u1715\\u1734\\u17d2\\u1a60\\u1b44\\u1baa\\u1bab"         \
    "\\u1bf2\\u1bf3\\u2d7f\\ua806\\ua82c\\ua8c4\\ua953\\ua9c0\\uaaf6\\uabed\\u{10a3f}\\u{11046}"   \
    "\\u{11070}\\u{1107f}\\u{110b9}\\u{11133}\\u{11134}\\u{111c0}\\u{11235}\\u{112ea}\\u{1134d}"   \
    "\\u{11442}\\u{114c2}\\u{115bf}\\u{1163f}\\u{116b6}\\u{1172b}\\u{11839}\\u{1193d}\\u{1193e}"   \
    "\\u{119e0}\\u{11a34}\\u{11a47}\\u{11a99}\\u{11c3f}\\u{11d44}\\u{11d45}\\u{11d97}"
/* A letter that joins the one before it; and one that joins the one after it, too. */
#define JOINED                                                                                     \
    "(?![\\u0621\\u0674])(?=\\p{L})[\\p{sc=Arab}\\p{sc=Syrc}\\p{sc=Nkoo}\\p{sc=Mong}\\p{sc=Mand}"  \
    "\\p{sc=Adlm}]"
#define JOINS                                                                                      \
    "(?![\\u0621-\\u0625\\u0627\\u0629\\u062f-\\u0632\\u0648\\u0671-\\u0677\\u0688-\\u0699\\u06c0" \
    "\\u06c3-\\u06cb\\u06cd\\u06cf\\u06d2\\u06d3\\u06d5\\u06ee\\u06ef\\u0710\\u0715-"              \
    "\\u0719\\u071e"                                                                               \
    "\\u0728\\u072a\\u072c\\u072f])" JOINED
/* The neighbours that exceptions require. */
#define BESIDE                                                                                     \
    "(?<=[" VIRAMAS "])[\\u200c\\u200d]|" JOINS "\\p{Mn}*\\u200c(?=\\p{Mn}*" JOINED ")|"           \
    "(?<=l)\\u00b7(?=l)|\\u0375(?=\\p{sc=Grek})|(?<=\\p{sc=Hebr})[\\u05f3\\u05f4]|\\u30fb"
#define CHARACTER                                                                                  \
    "(?:[a-z0-9\\-\\u00df\\u03c2\\u06fd\\u06fe\\u0f0b\\u3007]|" BESIDE "|"                         \
    "(?![" UNSTABLE DISALLOWED                                                                     \
    "\\p{CWCF}\\p{DI}])[\\p{Ll}\\p{Lu}\\p{Lo}\\p{Lm}\\p{Mn}\\p{Mc}\\p{Nd}])"
/* No mark first, digits of one kind, a Katakana middle dot only beside its scripts. */
#define LABEL                                                                                      \
    "(?!\\p{M}|[^.]*[\\u0660-\\u0669][^.]*[\\u06f0-\\u06f9]|"                                      \
    "[^.]*[\\u06f0-\\u06f9][^.]*[\\u0660-\\u0669])"                                                \
    "(?:(?=[^.]*[\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Hani}])|(?![^.]*\\u30fb))" CHARACTER "+"

/* Directions: right-to-left characters, with their marks and digits; other digits; neutral
 * characters. */
#define LEFT                                                                                       \
    "\\u0590-\\u06ef\\u06fa-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufeff\\u{10800}-\\u{10fff}\\u{1e800}-" \
    "\\u{1efff}"
#define DIGITS_LEFT "\\u0660-\\u0669\\u{10d30}-\\u{10d39}\\u{10e60}-\\u{10e7e}"
#define DIGITS      "0-9\\u06f0-\\u06f9"
#define NEITHER     "\\-\\u00b7\\u0375\\u30fb\\u200c\\u200d"
#define LEFT_LABEL                                                                                 \
    "(?![" DIGITS DIGITS_LEFT "\\p{Mn}]|[^.]*[" DIGITS "][^.]*[" DIGITS_LEFT "]|"                  \
    "[^.]*[" DIGITS_LEFT "][^.]*[" DIGITS "])[" LEFT "](?:[" LEFT DIGITS NEITHER                   \
    "\\p{Mn}]*[" LEFT DIGITS "])?\\p{Mn}*"
#define RIGHT_LABEL                                                                                \
    "[^." LEFT DIGITS NEITHER "\\p{Mn}](?:[^." LEFT "]*[^." LEFT NEITHER "\\p{Mn}])?\\p{Mn}*"
#define DIRECTED "(?:" LEFT_LABEL "|" RIGHT_LABEL ")"

/* Each part once: compilers need not accept literals of more than 4095 bytes. */
static const char name_expression[] =
    "^(?:(?!.*(?!\\p{Mn})[" LEFT "])|(?=(?:" DIRECTED "(?:\\.|$))+$))(?:" LABEL "(?:\\.|$))+$";

/* Punycode (RFC 3492) */

enum { BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700, FIRST_BIAS = 72, FIRST = 0x80 };

/* A label as characters. */
typedef struct label {
    uint32_t at[MAX_LABEL];
    size_t n;
} label;

static uint32_t adapt(uint32_t delta, size_t n, bool first)
{
    uint32_t k = 0;

    delta = first ? delta / DAMP : delta / 2;
    for (delta += delta / (uint32_t)n; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE)
        delta /= BASE - T_MIN;
    return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

static uint32_t threshold(uint32_t k, uint32_t bias)
{
    return k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
}

static int value_of(char c)
{
    return schema_is_digit(c) ? c - '0' + 26 : schema_is_alpha(c) ? (c | 32) - 'a' : -1;
}

/* Reads a number of variable length and adds it to *i; false: none. */
static bool take_number(ah_slice *s, uint32_t bias, uint32_t *i)
{
    enum { MOST = 1 << 26 }; /* more than any position of a character in a label */
    uint32_t weight = 1;

    for (uint32_t k = BASE;; k += BASE) {
        int digit = s->n ? value_of(s->p[0]) : -1;
        uint32_t t = threshold(k, bias);

        if (digit < 0 || weight > MOST || (*i += (uint32_t)digit * weight) > MOST)
            return false;
        *s = schema_from(*s, 1);
        if ((uint32_t)digit < t)
            return true;
        weight *= BASE - t;
    }
}

/* Decodes the text after "xn--" (Punycode); false: malformed or too long. */
static bool decode(ah_slice s, label *out)
{
    uint32_t c = FIRST, i = 0, bias = FIRST_BIAS, before;
    size_t plain = s.n;

    out->n = 0;
    while (plain > 0 && s.p[plain - 1] != '-')
        plain--;
    for (size_t k = 0; k + 1 < plain; k++)
        out->at[out->n++] = (unsigned char)s.p[k];
    for (s = schema_from(s, plain); s.n; i++) {
        before = i;
        if (out->n == MAX_LABEL || !take_number(&s, bias, &i))
            return false;
        bias = adapt(i - before, out->n + 1, before == 0);
        c += i / (uint32_t)(out->n + 1);
        i %= (uint32_t)(out->n + 1);
        if (c > 0x10ffff || (c & ~0x7ffu) == 0xd800)
            return false;
        memmove(out->at + i + 1, out->at + i, (out->n - i) * sizeof *out->at);
        out->at[i] = c;
        out->n++;
    }
    return true;
}

/* Characters of an encoded label, as far as there is room. */
typedef struct encoded {
    char at[MAX_LABEL];
    size_t n;
    bool full;
} encoded;

static void put_digit(encoded *e, uint32_t digit)
{
    e->full |= e->n == sizeof e->at;
    if (!e->full)
        e->at[e->n++] = (char)(digit < 26 ? 'a' + (char)digit : '0' + (char)(digit - 26));
}

static void put_number(encoded *e, uint32_t q, uint32_t bias)
{
    uint32_t t, k = BASE;

    for (; q >= (t = threshold(k, bias)); k += BASE) {
        put_digit(e, t + (q - t) % (BASE - t));
        q = (q - t) / (BASE - t);
    }
    put_digit(e, q);
}

static uint32_t next_character(const label *l, uint32_t from)
{
    uint32_t least = UINT32_MAX;

    for (size_t i = 0; i < l->n; i++)
        if (l->at[i] >= from && l->at[i] < least)
            least = l->at[i];
    return least;
}

/* Encodes the part after "xn--". The label has at least one character beyond ASCII. */
static void encode(const label *l, encoded *e)
{
    uint32_t c = FIRST, delta = 0, bias = FIRST_BIAS;
    size_t done = 0, plain;

    *e = (encoded){.n = 0};
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i] < FIRST)
            e->at[e->n++] = (char)l->at[i];
    plain = done = e->n;
    if (plain && e->n < sizeof e->at)
        e->at[e->n++] = '-';
    for (; done < l->n && !e->full; c++, delta++) {
        uint32_t next = next_character(l, c);

        delta += (next - c) * (uint32_t)(done + 1);
        c = next;
        for (size_t i = 0; i < l->n; i++) {
            delta += l->at[i] < c;
            if (l->at[i] != c)
                continue;
            put_number(e, delta, bias);
            bias = adapt(delta, done + 1, done == plain);
            delta = 0;
            done++;
        }
    }
}

/* Names */

enum {
    FOREIGN = 1,
    /* accepts other scripts unencoded */ WIDE_DOTS = 2 /* accepts their full stops */
};

/* A name, label by label. */
typedef struct name {
    ah_buf text;  /* its decoded text */
    bool foreign; /* it contains characters beyond ASCII */
    size_t ascii; /* its length in ASCII */
} name;

static bool has_good_hyphens(const label *l)
{
    return l->n && l->at[0] != '-' && l->at[l->n - 1] != '-' &&
           !(l->n >= 4 && l->at[2] == '-' && l->at[3] == '-');
}

static void put_label(name *x, const label *l)
{
    char c[4];

    for (size_t i = 0; i < l->n; i++)
        ah_buf_add(&x->text, c, ah_utf8_put(l->at[i], c));
}

/* Adds a label "xn--..." in lower case; it must be the only encoding of its text. */
static bool add_encoded(name *x, ah_slice s)
{
    label l;
    encoded e;

    s = schema_from(s, 4);
    if (!decode(s, &l) || next_character(&l, FIRST) == UINT32_MAX || !has_good_hyphens(&l))
        return false;
    encode(&l, &e);
    x->foreign = true;
    put_label(x, &l);
    return !e.full && ah_slice_eq((ah_slice){e.at, e.n}, s);
}

/* Adds letters, digits, and hyphens between them. */
static bool add_plain(name *x, const label *l, unsigned how)
{
    char small[MAX_LABEL] = {0};

    for (size_t i = 0; i < l->n; i++) {
        char c = (char)l->at[i];

        if (!schema_is_alpha(c) && !schema_is_digit(c) && c != '-')
            return false;
        small[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    x->ascii += l->n;
    if (l->n > 4 && memcmp(small, "xn--", 4) == 0)
        return small[l->n - 1] != '-' && add_encoded(x, (ah_slice){small, l->n});
    ah_buf_add(&x->text, small, l->n);
    return how & FOREIGN ? has_good_hyphens(l) : l->n && small[0] != '-' && small[l->n - 1] != '-';
}

static bool add_label(name *x, ah_slice s, unsigned how)
{
    label l = {.n = 0};
    encoded e;

    for (size_t i = 0; i < s.n; i += schema_char_length(s, i)) {
        if (l.n == MAX_LABEL)
            return false;
        l.at[l.n++] = schema_char_at(s, i);
    }
    if (next_character(&l, FIRST) == UINT32_MAX)
        return add_plain(x, &l, how);
    if (!(how & FOREIGN) || !has_good_hyphens(&l))
        return false;
    encode(&l, &e);
    x->foreign = true;
    x->ascii += 4 + e.n;
    put_label(x, &l);
    return !e.full && 4 + e.n <= MAX_LABEL;
}

/* Returns the length of the full stop here, or 0. */
static size_t dot_at(ah_slice s, size_t i, unsigned how)
{
    uint32_t c = schema_char_at(s, i);

    if (c == '.')
        return 1;
    return how & WIDE_DOTS && (c == 0x3002 || c == 0xff0e || c == 0xff61) ? 3 : 0;
}

static bool add_labels(name *x, ah_slice s, unsigned how)
{
    size_t start = 0, dot;

    for (size_t i = 0; i < s.n; i += dot ? dot : schema_char_length(s, i)) {
        if (!(dot = dot_at(s, i, how)))
            continue;
        if (!add_label(x, (ah_slice){s.p + start, i - start}, how))
            return false;
        ah_buf_char(&x->text, '.');
        x->ascii++;
        start = i + dot;
    }
    return add_label(x, schema_from(s, start), how) && x->ascii <= MAX_NAME;
}

/* Compiles the expression for names; it stays NULL in builds without PCRE2. */
static ah_status prepare(const format_asker *a)
{
    ah_status st;
    ah_buf why;

    ah_buf_init(&why, a->mem, 256);
    st = ah_pattern_new(a->mem, ah_slice_of(name_expression), 0, a->names, &why);
    (void)ah_buf_ok(&why); /* its content is not used */
    ah_buf_clear(&why);
    return st == AH_NOMEM ? AH_NOMEM : AH_OK;
}

static ah_match judge_characters(const format_asker *a, ah_slice text)
{
    ah_match m;

    if (!*a->names && !ah_work_do(a->work, NAME_STEPS))
        return AH_MATCH_ENDED;
    if (!*a->names && prepare(a) != AH_OK)
        return AH_MATCH_NOMEM;
    if (!*a->names)
        return AH_MATCH_YES;
    m = ah_pattern_match(*a->names, text, a->work);
    return m == AH_MATCH_LIMIT ? AH_MATCH_NO : m;
}

static ah_match is_name(const format_asker *a, ah_slice s, unsigned how)
{
    name x = {.foreign = false};
    ah_match m = AH_MATCH_NO;

    if (s.n > MAX_NAME * 4)
        return AH_MATCH_NO;
    ah_buf_init(&x.text, a->mem, MAX_NAME * 4);
    if (add_labels(&x, s, how))
        m = x.text.status == AH_NOMEM ? AH_MATCH_NOMEM
            : x.foreign               ? judge_characters(a, ah_buf_slice(&x.text))
                                      : AH_MATCH_YES;
    (void)ah_buf_ok(&x.text);
    ah_buf_clear(&x.text);
    return m;
}

ah_match schema_is_hostname(const format_asker *a, ah_slice s)
{
    return is_name(a, s, 0);
}

ah_match schema_is_idn_hostname(const format_asker *a, ah_slice s)
{
    return is_name(a, s, FOREIGN | WIDE_DOTS);
}

/* Addresses */

/* Returns the length of a number at the beginning, of one to three digits and at most 255;
 * otherwise 0. */
static size_t byte_at(ah_slice s, bool zeros)
{
    size_t n = 0;
    int v = 0;

    for (; n < s.n && n < 4 && schema_is_digit(s.p[n]); n++)
        v = v * 10 + (s.p[n] - '0');
    return n > 3 || v > 255 || (n > 1 && s.p[0] == '0' && !zeros) ? 0 : n;
}

static bool is_four_bytes(ah_slice s, bool zeros)
{
    for (int part = 0; part < 4; part++) {
        size_t n = byte_at(s, zeros);

        if (!n || (part < 3 && (s.n == n || s.p[n] != '.')))
            return false;
        s = schema_from(s, part < 3 ? n + 1 : n);
    }
    return s.n == 0;
}

bool schema_is_ipv4(ah_slice s)
{
    return is_four_bytes(s, false);
}

bool schema_is_ipv6(ah_slice s)
{
    bool gap = ah_slice_begins(s, "::");
    int groups = 0;

    s = gap ? schema_from(s, 2) : s;
    while (s.n) {
        size_t n = 0;

        while (n < s.n && schema_is_hex(s.p[n]))
            n++;
        if (n < s.n && s.p[n] == '.')
            return schema_is_ipv4(s) && (gap ? groups <= 5 : groups == 6);
        if (n == 0 || n > 4 || ++groups > 8)
            return false;
        s = schema_from(s, n);
        if (s.n == 0)
            break;
        if (s.p[0] != ':' || s.n == 1)
            return false;
        s = schema_from(s, 1);
        if (s.p[0] == ':') {
            if (gap)
                return false;
            gap = true;
            s = schema_from(s, 1);
        }
    }
    return gap ? groups <= 7 : groups == 8;
}

/* Email */

/* Returns the length of a quoted part at the beginning, with its quotes; 0: none. */
static size_t quoted_length(ah_slice s, bool any_script)
{
    for (size_t i = 1; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c == '"')
            return i + 1;
        if (c == '\\' && ++i < s.n)
            c = (unsigned char)s.p[i];
        if (c < ' ' || c == 0x7f || (c >= 0x80 && (!any_script || s.p[i - 1] == '\\')))
            return 0;
    }
    return 0;
}

/* Returns the length of words with single dots between them at the beginning, or 0. */
static size_t dotted_length(ah_slice s, bool any_script)
{
    char before = '.';
    size_t i = 0;

    for (; i < s.n && s.p[i] != '@'; before = s.p[i++]) {
        char c = s.p[i];

        if (c == '.' ? before == '.'
                     : !(schema_is_alpha(c) || schema_is_digit(c) ||
                         schema_is_in(c, "!#$%&'*+-/=?^_`{|}~") ||
                         (any_script && (unsigned char)c >= 0x80)))
            return 0;
    }
    return before == '.' ? 0 : i;
}

/* True for [127.0.0.1] or [IPv6:::1]; no other kind is registered. */
static bool is_address(ah_slice s)
{
    static const char tag[] = "ipv6:";
    size_t n = 0;

    if (s.n < 3 || s.p[s.n - 1] != ']')
        return false;
    s = (ah_slice){s.p + 1, s.n - 2};
    while (tag[n] && n < s.n && (schema_is_alpha(s.p[n]) ? s.p[n] | 32 : s.p[n]) == tag[n])
        n++;
    return tag[n] ? is_four_bytes(s, true) : schema_is_ipv6(schema_from(s, n));
}

static ah_match is_mailbox(const format_asker *a, ah_slice s, unsigned how)
{
    bool quoted = s.n && s.p[0] == '"', any_script = how & FOREIGN;
    size_t local = quoted ? quoted_length(s, any_script) : dotted_length(s, any_script);

    if (local == 0 || local > MAX_LOCAL || local + 1 >= s.n || s.p[local] != '@' ||
        (!any_script && s.n > MAX_ADDRESS))
        return AH_MATCH_NO;
    s = schema_from(s, local + 1);
    if (s.p[0] == '[')
        return is_address(s) ? AH_MATCH_YES : AH_MATCH_NO;
    return is_name(a, s, how);
}

ah_match schema_is_email(const format_asker *a, ah_slice s)
{
    return is_mailbox(a, s, 0);
}

ah_match schema_is_idn_email(const format_asker *a, ah_slice s)
{
    return is_mailbox(a, s, FOREIGN);
}
