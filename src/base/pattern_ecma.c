/* Translates ECMAScript's regular expressions (ECMA-262, with the "u" flag) to PCRE2 with the same
 * meaning: \s covers all Unicode spaces and U+FEFF, \d and \w are ASCII, `.` excludes the four line
 * terminators, $ matches only at the very end. Syntax that only PCRE2 has ((?R), \A, a++,
 * [[:alpha:]], (*VERB)) is refused, or kept as the text that it is in ECMAScript; so is syntax with
 * two meanings. The rule: everything that ECMAScript refuses under that flag is refused. The
 * lenient reading is that of browsers without the flag, where it is unambiguous: \- and \@ are -
 * and @, and a { that counts nothing is itself.
 *
 * PCRE2's own options for ECMAScript (ALT_BSUX, MATCH_UNSET_BACKREF, DOLLAR_ENDONLY,
 * ALLOW_EMPTY_CLASS) do not replace this. Measured with 20,000 random expressions (make
 * check-patterns): PCRE2 10.42 with them accepts 831 invalid ones, refuses 2,246 that this accepts,
 * mostly for names of properties, and matches 135 differently, or 406 with UCP. This translation
 * disagrees with JavaScript on none, and refuses 2,974 that PCRE2 cannot express.
 *
 * One pass over the text, without recursion; PCRE2 checks the result (pattern.c). */
#include "base/pattern.h"

enum {
    MAX_PATTERN = 65536, /* bytes */
    MAX_GROUPS = 1000,   /* groups, references and names */
    MAX_OPEN = 200,      /* nested groups; PCRE2 allows 250 */
    MAX_TIMES = 65535,   /* limit of a quantifier, as in PCRE2 */
    FEW_TIMES = 64       /* this many characters at once need no callout */
};

/* A callout that reports the place of the match (pattern.c). */
#define LOOK "(?C" AH_PATTERN_MOVED ")"

/* One more alternative, which never matches. Without it PCRE2 (10.42) considers an expression
 * anchored if a group of several alternatives that is never entered contains a ^. */
#define NOT_TIED "|(?!)"

#define EVERY     "\\x{0}-\\x{10ffff}"
#define DIGITS    "0-9"
#define NO_DIGITS "\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}"
#define WORDS     "0-9A-Za-z_"
#define NO_WORDS  "\\x{0}-\\x{2f}\\x{3a}-\\x{40}\\x{5b}-\\x{5e}\\x{60}\\x{7b}-\\x{10ffff}"
#define SPACES                                                                                     \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"           \
    "\\x{205f}\\x{3000}\\x{feff}"
#define NO_SPACES                                                                                  \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"               \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"                 \
    "\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

/* A group, with the facts that references to it need. The first one is the whole expression. */
typedef struct group {
    size_t parent, turn; /* turn: index of the parent's alternative that contains it */
    size_t alternatives; /* so far */
    bool closed, repeated, optional;
    bool repeatable;      /* the quantifier after it is allowed */
    bool takes, void_too; /* this alternative takes characters; an earlier one may take none */
} group;

/* \1 and \k<name> */
typedef struct reference {
    size_t capture, in, turn, at;
    bool
        behind; /* its group was closed before. If `before` is false, too: it is inside the group */
    bool before; /* its group opens later */
} reference;

typedef struct regex {
    ah_slice text;
    size_t at;
    ah_buf *out, *why;
    size_t n_names, n_groups, n_captures, n_refs, n_seen; /* seen: captures opened so far */
    size_t here, depth, last; /* innermost open group; depth; group just closed, or 0 */
    bool repeatable;          /* the part before may be repeated */
    bool took;                /* its alternative takes characters without this part */
    bool skips;               /* some group is never entered */
    bool lenient, syntax_only;
    ah_pattern_cost *cost; /* NULL: written without callouts */
    struct {
        ah_slice text;
        size_t capture;
    } names[MAX_GROUPS];
    group groups[MAX_GROUPS + 1];
    size_t captures[MAX_GROUPS + 1]; /* group of each capture */
    reference refs[MAX_GROUPS];
} regex;

static bool fail(regex *x, const char *words)
{
    ah_buf_fmt(x->why, "%s at character %zu", words, x->at + 1);
    return false;
}

/* Returns the byte n further on, or -1. */
static int peek(const regex *x, size_t n)
{
    return x->at + n < x->text.n ? (unsigned char)x->text.p[x->at + n] : -1;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static int hex(int c)
{
    return is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static void put_char(regex *x, uint32_t c)
{
    if (c < 0x80 && (is_digit((int)c) || is_letter((int)c)))
        ah_buf_char(x->out, (char)c);
    else
        ah_buf_fmt(x->out, "\\x{%x}", (unsigned)c);
}

/* True if c is half of a surrogate pair. */
static bool is_half(uint32_t c)
{
    return (c & ~0x7ffu) == 0xd800;
}

/* Returns the character here, well-formed UTF-8, and passes it. */
static uint32_t take_char(regex *x)
{
    uint32_t c = (unsigned char)x->text.p[x->at++];
    int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;

    if (more)
        c &= 0x3fu >> more;
    for (; more > 0 && x->at < x->text.n; more--)
        c = c << 6 | ((unsigned char)x->text.p[x->at++] & 0x3f);
    return c;
}

/* Reads n hexadecimal digits from `from` on; -1: not digits. */
static int32_t read_hex(const regex *x, size_t from, size_t n)
{
    int32_t v = 0;

    for (size_t i = 0; i < n; i++) {
        int h = hex(peek(x, from + i));

        if (h < 0)
            return -1;
        v = v * 16 + h;
    }
    return v;
}

/* Read escapes of one character. `at` is after the backslash and the letter. */

static bool take_braced(regex *x, uint32_t *c)
{
    uint32_t v = 0;
    int h;

    for (x->at++; (h = hex(peek(x, 0))) >= 0 && v <= 0x10ffff; x->at++)
        v = v * 16 + (uint32_t)h;
    if (peek(x, 0) != '}' || x->text.p[x->at - 1] == '{' || v > 0x10ffff)
        return fail(x, "no character of Unicode");
    x->at++;
    *c = v;
    return true;
}

static bool take_unicode(regex *x, uint32_t *c)
{
    int32_t high, low;

    if (peek(x, 0) == '{') {
        if (!take_braced(x, c))
            return false;
    } else {
        if ((high = read_hex(x, 0, 4)) < 0)
            return fail(x, "\\u without four hexadecimal digits");
        x->at += 4;
        *c = (uint32_t)high;
        low = (high & 0xfc00) == 0xd800 && peek(x, 0) == '\\' && peek(x, 1) == 'u'
                  ? read_hex(x, 2, 4)
                  : -1;
        if ((low & 0xfc00) == 0xdc00 && low > 0) {
            *c = 0x10000 + ((uint32_t)(high & 0x3ff) << 10) + (uint32_t)(low & 0x3ff);
            x->at += 6;
        }
    }
    return true;
}

static bool take_control(regex *x, uint32_t *c)
{
    if (!is_letter(peek(x, 0)))
        return fail(x, "\\c without a letter");
    *c = (uint32_t)peek(x, 0) & 31;
    x->at++;
    return true;
}

static bool take_byte(regex *x, uint32_t *c)
{
    int32_t v = read_hex(x, 0, 2);

    if (v < 0)
        return fail(x, "\\x without two hexadecimal digits");
    x->at += 2;
    *c = (uint32_t)v;
    return true;
}

/* True if a backslash before c can be dropped without a change of meaning. */
static bool is_itself(const regex *x, int c, bool in_class)
{
    return c < 0x80 && (x->lenient || strchr("^$\\.*+?()[]{}|/", c) || (in_class && c == '-'));
}

/* Reads the escape of one character, after its backslash. */
static bool take_escaped(regex *x, bool in_class, uint32_t *c)
{
    static const char from[] = "tnvfr", to[] = "\t\n\v\f\r";
    int letter = peek(x, 0);
    const char *f;

    if (letter < 0)
        return fail(x, "\\ at the end");
    if (!is_letter(letter) && !is_digit(letter)) {
        if (!is_itself(x, letter, in_class))
            return fail(x, "a \\ before a character that needs none");
        *c = take_char(x);
        return true;
    }
    x->at++;
    if ((f = memchr(from, letter, 5))) {
        *c = (uint32_t)to[f - from];
        return true;
    }
    if (letter == 'u')
        return take_unicode(x, c);
    if (letter == 'c')
        return take_control(x, c);
    if (letter == 'x')
        return take_byte(x, c);
    if (letter == '0' && !is_digit(peek(x, 0))) {
        *c = 0;
        return true;
    }
    x->at--;
    return fail(x, "an escape that ECMAScript does not know");
}

/* Sets of characters: \d and its like, properties */

static const struct {
    char letter;
    const char *set;
} sets[] = {
    {'d', DIGITS}, {'D', NO_DIGITS}, {'w', WORDS}, {'W', NO_WORDS}, {'s', SPACES}, {'S', NO_SPACES},
};

/* Returns the property's name, and passes its braces; .p NULL: missing. */
static ah_slice take_property(regex *x)
{
    ah_slice name = {x->text.p + x->at + 1, 0};
    int c;

    if (peek(x, 0) != '{')
        return (ah_slice){NULL, 0};
    while (is_letter(c = peek(x, name.n + 1)) || is_digit(c) || c == '_' || c == '=')
        name.n++;
    if (c != '}' || !name.n)
        return (ah_slice){NULL, 0};
    x->at += name.n + 2;
    return name;
}

/* Puts \p{...}, after its letter. */
static bool put_property(regex *x, bool inverse)
{
    size_t start = x->at;
    ah_slice name = take_property(x);

    if (name.p && ah_pattern_property(name, inverse, x->out))
        return true;
    x->at = start;
    return fail(x, "\\p without the name of a property of Unicode");
}

/* Puts the escape of a set; outside a class, between [ and ]. Returns -1: none, 0: refused. */
static int put_set(regex *x, bool in_class)
{
    int letter = peek(x, 1);

    if (letter == 'p' || letter == 'P') {
        x->at += 2;
        return put_property(x, letter == 'P');
    }
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (sets[i].letter != letter)
            continue;
        x->at += 2;
        ah_buf_str(x->out, in_class ? "" : "[");
        ah_buf_str(x->out, sets[i].set);
        ah_buf_str(x->out, in_class ? "" : "]");
        return 1;
    }
    return -1;
}

/* Classes */

/* Reads one member: *set if it was a set, which is then put; otherwise *c. */
static bool take_member(regex *x, uint32_t *c, bool *set)
{
    int put;

    *set = false;
    if (peek(x, 0) != '\\') {
        *c = take_char(x);
        return true;
    }
    if ((put = put_set(x, true)) >= 0) {
        *set = true;
        return put > 0;
    }
    x->at++;
    if (peek(x, 0) == 'b') {
        x->at++;
        *c = '\b';
        return true;
    }
    return take_escaped(x, true, c);
}

/* Leaves out halves of surrogate pairs, which no text contains. */
static void put_range(regex *x, uint32_t low, uint32_t high)
{
    low = is_half(low) ? 0xe000 : low;
    high = is_half(high) ? 0xd7ff : high;
    if (low > high)
        return;
    put_char(x, low);
    if (low < high) {
        ah_buf_char(x->out, '-');
        put_char(x, high);
    }
}

/* A set beside a hyphen makes no range: \w-z is refused, or, leniently, the set, a hyphen and
 * the z. Of the two, the one not yet put is not a set. */
static bool put_no_range(regex *x, size_t hyphen, const uint32_t *low, const uint32_t *high)
{
    if (!x->lenient) {
        x->at = hyphen;
        return fail(x, "a - beside a set of characters (write \\-)");
    }
    if (low)
        put_range(x, *low, *low);
    put_char(x, '-');
    if (high)
        put_range(x, *high, *high);
    return true;
}

/* `a` or `a-z` */
static bool put_members(regex *x)
{
    uint32_t low = 0, high = 0;
    bool set, to_set;
    size_t hyphen;

    if (!take_member(x, &low, &set))
        return false;
    if (peek(x, 0) != '-' || peek(x, 1) < 0 || peek(x, 1) == ']') {
        if (!set)
            put_range(x, low, low);
        return true;
    }
    hyphen = x->at++;
    if (!take_member(x, &high, &to_set))
        return false;
    if (set || to_set)
        return put_no_range(x, hyphen, set ? NULL : &low, to_set ? NULL : &high);
    if (high < low)
        return fail(x, "a range whose end is before its start");
    put_range(x, low, high);
    return true;
}

/* A class without members matches no character, and with ^ every one. PCRE2 has no such classes:
 * this puts the negation of the other one. */
static bool put_class(regex *x)
{
    size_t start = x->out->len, members;
    bool inverse = peek(x, 1) == '^';

    x->at += inverse ? 2 : 1;
    ah_buf_str(x->out, inverse ? "[^" : "[");
    members = x->out->len;
    while (peek(x, 0) >= 0 && peek(x, 0) != ']')
        if (!put_members(x))
            return false;
    if (peek(x, 0) < 0)
        return fail(x, "missing ] of a class");
    if (x->out->len == members) {
        ah_buf_reset(x->out, start);
        ah_buf_str(x->out, inverse ? "[" EVERY : "[^" EVERY);
    }
    x->at++;
    ah_buf_char(x->out, ']');
    if (x->cost && x->cost->widest < x->out->len - start)
        x->cost->widest = x->out->len - start;
    return x->repeatable = true;
}

/* Groups and references */

/* True if a name may not contain this character: beyond ASCII all may except signs, whose common
 * blocks are listed. */
static bool is_sign(uint32_t c)
{
    static const uint32_t signs[][2] = {
        {0x80, 0xa9},       {0xab, 0xb4},       {0xb6, 0xb6},     {0xb8, 0xb9},
        {0xbb, 0xbf},       {0xd7, 0xd7},       {0xf7, 0xf7},     {0x2c2, 0x2c5},
        {0x2d2, 0x2df},     {0x1ffd, 0x200b},   {0x200e, 0x203e}, {0x2041, 0x2053},
        {0x2055, 0x2070},   {0x2074, 0x207e},   {0x2080, 0x208e}, {0x20a0, 0x20c1},
        {0x2189, 0x2bff},   {0x2e00, 0x3004},   {0x3008, 0x3020}, {0x3200, 0x33ff},
        {0x4dc0, 0x4dff},   {0xe000, 0xf8ff},   {0xfe50, 0xfe6b}, {0xfeff, 0xff0f},
        {0xff1a, 0xff20},   {0xff3b, 0xff3e},   {0xff5b, 0xff64}, {0xffe0, 0xffff},
        {0x1f000, 0x1fbef}, {0xf0000, 0x10ffff}};

    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (c >= signs[i][0] && c <= signs[i][1])
            return true;
    return false;
}

/* Reads the group's name after "(?<", which ends before x->at, and passes its ">". */
static bool take_name(regex *x, ah_slice *name)
{
    size_t start = x->at;
    uint32_t c = 0;

    while (peek(x, 0) >= 0) {
        size_t before = x->at;

        c = take_char(x);
        if (c >= 0x80 ? is_sign(c)
                      : !is_letter((int)c) && !is_digit((int)c) && c != '_' && c != '$') {
            *name = (ah_slice){x->text.p + start, before - start};
            break;
        }
    }
    if (c != '>' || !name->n || is_digit(name->p[0])) {
        x->at = start;
        return fail(x, "a group without a name between < and >");
    }
    return true;
}

static size_t find_name(const regex *x, ah_slice name)
{
    for (size_t i = 0; i < x->n_names; i++)
        if (ah_slice_eq(x->names[i].text, name))
            return x->names[i].capture;
    return 0;
}

static bool is_capture(const regex *x)
{
    return peek(x, 1) != '?' || (peek(x, 2) == '<' && peek(x, 3) != '=' && peek(x, 3) != '!');
}

/* With x->at at the bracket of a capturing group: counts it and keeps its name. */
static bool note_capture(regex *x)
{
    ah_slice name;

    if (++x->n_captures > MAX_GROUPS)
        return fail(x, "more than 1000 groups");
    if (peek(x, 1) != '?')
        return true;
    x->at += 3;
    if (!take_name(x, &name))
        return false;
    if (find_name(x, name))
        return fail(x, "a name that two groups have");
    x->names[x->n_names].text = name;
    x->names[x->n_names++].capture = x->n_captures;
    x->at--;
    return true;
}

/* Counts and names the groups first, because references may precede them. */
static bool note_captures(regex *x)
{
    bool in_class = false;

    for (; x->at < x->text.n; x->at++) {
        int c = peek(x, 0);

        if (c == '\\')
            x->at++;
        else if (c == '[' || c == ']')
            in_class = c == '[';
        else if (c == '(' && !in_class && is_capture(x) && !note_capture(x))
            return false;
    }
    x->at = 0;
    return true;
}

static bool open_group(regex *x)
{
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!"};
    bool capture = is_capture(x), repeatable;
    ah_slice name, rest = {x->text.p + x->at, x->text.n - x->at};
    size_t n = 0;

    for (size_t i = 0; i < sizeof known / sizeof *known && !n; i++)
        if (ah_slice_begins(rest, known[i]))
            n = strlen(known[i]);
    if (!capture && !n)
        return fail(x, "a group that ECMAScript does not know");
    if (x->n_groups > MAX_GROUPS || ++x->depth > MAX_OPEN)
        return fail(x, "more groups than the limit (1000, 200 deep)");
    repeatable = capture || peek(x, 2) == ':' || (x->lenient && peek(x, 2) != '<');
    ah_buf_put(x->out, capture ? (ah_slice)AH_LIT("(") : (ah_slice){x->text.p + x->at, n});
    if (capture && peek(x, 1) == '?') {
        x->at += 3;
        take_name(x, &name);
    } else {
        x->at += capture ? 1 : n;
    }
    if (capture)
        x->captures[++x->n_seen] = x->n_groups;
    x->groups[x->n_groups] = (group){.parent = x->here,
                                     .turn = x->groups[x->here].alternatives,
                                     .repeatable = repeatable,
                                     .void_too = !capture && !ah_slice_begins(rest, "(?:")};
    x->here = x->n_groups++;
    x->repeatable = false;
    return true;
}

static void end_alternative(regex *x)
{
    x->groups[x->here].void_too |= !x->groups[x->here].takes;
    x->groups[x->here].takes = false;
}

static bool close_group(regex *x)
{
    if (!x->depth)
        return fail(x, "a ) that closes nothing");
    x->depth--;
    x->at++;
    ah_buf_char(x->out, ')');
    end_alternative(x);
    x->groups[x->here].closed = true;
    x->last = x->here;
    x->here = x->groups[x->here].parent;
    x->repeatable = x->groups[x->last].repeatable;
    x->took = x->groups[x->here].takes;
    x->groups[x->here].takes |= x->repeatable && !x->groups[x->last].void_too;
    return true;
}

static bool put_reference(regex *x, size_t capture, size_t at)
{
    if (!capture || capture > x->n_captures) {
        x->at = at;
        return fail(x, "a reference to a missing group");
    }
    if (x->n_refs == MAX_GROUPS)
        return fail(x, "more than 1000 references");
    x->refs[x->n_refs++] = (reference){
        .capture = capture,
        .in = x->here,
        .turn = x->groups[x->here].alternatives,
        .at = at,
        .before = capture > x->n_seen,
        .behind = capture <= x->n_seen && x->groups[x->captures[capture]].closed,
    };
    ah_buf_fmt(x->out, "\\g{%zu}", capture);
    if (x->cost)
        x->cost->refers = true;
    return x->repeatable = true;
}

/* True if the reference comes after its group in the same alternative. The group has then always
 * matched before it, in the same repetition. */
static bool follows(const regex *x, const reference *r, const group *g)
{
    size_t in = r->in, turn = r->turn;

    for (; in != g->parent && in; in = x->groups[in].parent)
        turn = x->groups[in].turn;
    return r->behind && !g->optional && in == g->parent && turn == g->turn;
}

/* Fails for references that PCRE2 matches differently. When a part is repeated, ECMAScript
 * forgets the captures in it, and PCRE2 does not. PCRE2 lets a group match nothing in one more
 * repetition, and ECMAScript does not. */
static bool judge_references(regex *x)
{
    for (size_t i = 0; i < x->n_refs; i++) {
        const reference *r = &x->refs[i];
        size_t at = x->captures[r->capture];
        const group *g = &x->groups[at];
        bool repeated = g->repeated && !r->behind && !r->before;

        while ((at = x->groups[at].parent))
            repeated |= x->groups[at].repeated;
        repeated = repeated && !follows(x, r, g);
        if (repeated || (r->behind && g->repeated && g->void_too)) {
            x->at = r->at;
            return fail(x,
                        "a reference to a group that is repeated otherwise than ECMAScript does");
        }
    }
    return true;
}

/* Terms */

/* Reads the number here; above MAX_TIMES it returns MAX_TIMES + 1. */
static size_t take_times(regex *x)
{
    size_t n = 0;

    for (; is_digit(peek(x, 0)); x->at++)
        n = n > MAX_TIMES ? n : n * 10 + (size_t)(peek(x, 0) - '0');
    return n;
}

/* Reads *, +, ?, {n}, {n,} or {n,m} as limits; false: not a quantifier. */
static bool take_quantifier(regex *x, size_t *least, size_t *most)
{
    size_t start = x->at;
    int c = peek(x, 0);

    x->at++;
    *least = c == '+';
    *most = c == '?' ? 1 : SIZE_MAX;
    if (c != '{')
        return true;
    if (is_digit(peek(x, 0))) {
        *least = *most = take_times(x);
        if (peek(x, 0) == ',') {
            x->at++;
            *most = is_digit(peek(x, 0)) ? take_times(x) : SIZE_MAX;
        }
        if (peek(x, 0) == '}') {
            x->at++;
            return true;
        }
    }
    x->at = start;
    return false;
}

/* Returns why the part before cannot be repeated this often, or NULL. */
static const char *wrong_times(const regex *x, size_t least, size_t most)
{
    bool many = least > MAX_TIMES || (most > MAX_TIMES && most != SIZE_MAX);

    return !x->repeatable            ? "nothing to repeat"
           : most < least            ? "a quantifier whose maximum is below its minimum"
           : many && !x->syntax_only ? "a quantifier of more than 65535"
                                     : NULL;
}

static bool put_quantifier(regex *x)
{
    size_t start = x->at, least, most;
    const char *why;

    if (!take_quantifier(x, &least, &most)) {
        if (!x->lenient)
            return fail(x, "a { without a count (write \\{)");
        x->at++;
        put_char(x, '{');
        x->last = 0;
        return x->repeatable = true;
    }
    if ((why = wrong_times(x, least, most))) {
        x->at = start;
        return fail(x, why);
    }
    if (peek(x, 0) == '?')
        x->at++;
    ah_buf_add(x->out, x->text.p + start, x->at - start);
    if (!least)
        x->groups[x->here].takes = x->took;
    if (x->last) {
        x->groups[x->last].repeated |= most > 1;
        x->groups[x->last].optional |= least == 0;
        x->skips |= most == 0;
    } else if (x->cost && most > FEW_TIMES) {
        ah_buf_str(x->out, LOOK);
        x->cost->least = x->cost->least > least ? x->cost->least : least;
    }
    x->last = 0;
    x->repeatable = false;
    return true;
}

static bool put_escape(regex *x)
{
    size_t start = x->at;
    int letter = peek(x, 1), set = put_set(x, false);
    ah_slice name;
    uint32_t c;

    x->repeatable = true;
    if (set >= 0)
        return set > 0;
    x->at++;
    if (letter == 'b' || letter == 'B') {
        x->at++;
        x->repeatable = false;
        ah_buf_fmt(x->out, "\\%c", letter);
        return true;
    }
    if (letter >= '1' && letter <= '9')
        return put_reference(x, take_times(x), start);
    if (letter == 'k' && peek(x, 1) == '<') {
        x->at += 2;
        return take_name(x, &name) && put_reference(x, find_name(x, name), start);
    }
    if (!take_escaped(x, false, &c))
        return false;
    if (is_half(c))
        ah_buf_str(x->out, "[^" EVERY "]");
    else
        put_char(x, c);
    return true;
}

static bool put_simple(regex *x)
{
    int c = peek(x, 0);

    if (!x->lenient && (c == ']' || c == '}'))
        return fail(x, c == ']' ? "a ] without a [ (write \\])" : "a } without a { (write \\})");
    if (c == '|') {
        end_alternative(x);
        x->groups[x->here].alternatives++;
    }
    x->repeatable = c != '|' && c != '^' && c != '$';
    if (!x->repeatable)
        ah_buf_char(x->out, (char)c);
    else if (c == '.')
        ah_buf_str(x->out, "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]");
    else
        put_char(x, take_char(x));
    x->at += !x->repeatable || c == '.';
    return true;
}

static bool put_atom(regex *x, int c)
{
    size_t refs = x->n_refs;
    bool put;

    x->last = 0;
    x->took = x->groups[x->here].takes;
    put = c == '[' ? put_class(x) : c == '\\' ? put_escape(x) : put_simple(x);
    x->groups[x->here].takes |= x->repeatable && x->n_refs == refs;
    return put;
}

static bool put_term(regex *x)
{
    int c = peek(x, 0);

    return c == '*' || c == '+' || c == '?' || c == '{' ? put_quantifier(x)
           : c == '('                                   ? open_group(x)
           : c == ')'                                   ? close_group(x)
                                                        : put_atom(x, c);
}

static bool translate(regex *x)
{
    if (x->text.n > MAX_PATTERN) {
        ah_buf_str(x->why, "it is longer than 65536 bytes");
        return false;
    }
    if (!note_captures(x))
        return false;
    while (x->at < x->text.n)
        if (!put_term(x))
            return false;
    if (x->depth)
        return fail(x, "missing )");
    ah_buf_str(x->out, x->skips ? NOT_TIED : "");
    return x->syntax_only || judge_references(x);
}

ah_status ah_pattern_translate(const ah_mem *mem, ah_slice text, unsigned how,
                               ah_pattern_cost *cost, ah_buf *out, ah_buf *why)
{
    regex *x = ah_alloc(mem, sizeof *x);
    ah_status st;

    if (!x)
        return AH_NOMEM;
    x->text = (ah_slice){text.p ? text.p : "", text.n};
    x->out = out;
    x->why = why;
    x->cost = cost;
    x->lenient = how & AH_PATTERN_LENIENT;
    x->syntax_only = how & AH_PATTERN_SYNTAX;
    x->n_groups = 1;
    st = translate(x) ? out->status : AH_PROMPT_VALIDATION;
    ah_free(mem, x);
    return st;
}
