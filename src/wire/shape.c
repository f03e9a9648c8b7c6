/* Checks a document against tables, in one pass, allocating only the error text; see shape.h. The
 * recursion follows the tables, not the document. */
#include "wire/shape.h"

#include "base/json_walk.h"

const ah_shape ah_no_error = {.kinds = AH_IS_NULL};

/* The current place: a list up to the root, each item in the stack frame of its call. */
typedef struct place {
    const struct place *up;
    const char *name; /* name of the member; NULL: an item of an array */
    size_t index;
} place;

typedef struct check {
    size_t halves; /* halves not yet found in a piece */
    ah_shape_values *found;
    ah_buf *said;
} check;

/* -- error texts --------------------------------------------------------------------------- */

static void put_place(ah_buf *b, const place *at)
{
    if (!at)
        return;
    put_place(b, at->up);
    if (!at->name)
        ah_buf_fmt(b, "[%zu]", at->index);
    else
        ah_buf_fmt(b, b->len ? ".%s" : "%s", at->name);
}

static void put_kinds(ah_buf *b, unsigned kinds)
{
    static const struct {
        unsigned kinds;
        const char *words;
    } names[] = {{AH_IS_STRING | AH_IS_PIECE, "a string"},
                 {AH_IS_NAME, "a string that is not empty"},
                 {AH_IS_COUNT, "an integer of 0 or more"},
                 {AH_IS_BOOLEAN, "a boolean"},
                 {AH_IS_ARRAY, "an array"},
                 {AH_IS_OBJECT, "an object"},
                 {AH_IS_NULL, "null"}};
    enum { NAMES = sizeof names / sizeof *names };

    for (size_t i = 0, said = 0; i < NAMES; i++) {
        if (!(kinds & names[i].kinds))
            continue;
        kinds &= ~names[i].kinds;
        ah_buf_str(b, !said++ ? "" : kinds ? ", " : " or ");
        ah_buf_str(b, names[i].words);
    }
}

static const char *found_words(ah_json_token t)
{
    switch (t.kind) {
    case AH_JSON_NULL:
        return "null";
    case AH_JSON_FALSE:
    case AH_JSON_TRUE:
        return "a boolean";
    case AH_JSON_NUMBER:
        return "a number";
    case AH_JSON_STRING:
    case AH_JSON_KEY:
        return t.raw.n ? "a string" : "an empty string";
    case AH_JSON_ARRAY:
        return "an array";
    case AH_JSON_OBJECT:
        return "an object";
    case AH_JSON_END:
    case AH_JSON_ARRAY_END:
    case AH_JSON_OBJECT_END:
        break;
    }
    return "nothing";
}

/* Writes the error for the value before r, which does not fit s; r NULL: the value is absent.
 * Returns false. */
static bool refuse(check *c, const place *at, const ah_shape *s, const ah_json_reader *r)
{
    ah_json_reader here = r ? *r : ah_json_read((ah_slice){NULL, 0});
    ah_json_token t = ah_json_next(&here);

    put_place(c->said, at);
    if (!c->said->len)
        ah_buf_str(c->said, "it");
    ah_buf_str(c->said, " must be ");
    if (s->words && t.kind == AH_JSON_STRING)
        for (size_t i = 0; s->words[i]; i++)
            ah_buf_fmt(c->said, i ? " or '%s'" : "'%s'", s->words[i]);
    else
        put_kinds(c->said, s->kinds);
    ah_buf_fmt(c->said, ", found %s",
               s->words && t.kind == AH_JSON_STRING ? "another word" : found_words(t));
    return false;
}

/* -- kinds --------------------------------------------------------------------------------- */

/* Most counts have one digit. */
static bool is_count(ah_slice literal)
{
    ah_json_num n;

    return literal.n == 1 || (ah_json_number(literal, &n) && n.is_int && n.i >= 0);
}

/* The kinds of a value that begins with this character. */
static unsigned kinds_at(char first)
{
    switch (first) {
    case 'n':
        return AH_IS_NULL;
    case 't':
    case 'f':
        return AH_IS_BOOLEAN;
    case '"':
        return AH_IS_STRING | AH_IS_NAME | AH_IS_PIECE;
    case '[':
        return AH_IS_ARRAY;
    case '{':
        return AH_IS_OBJECT;
    default:
        return AH_IS_COUNT;
    }
}

static bool is_word(const char *const *words, ah_slice string)
{
    for (; *words; words++)
        if (ah_json_string_is(string, *words))
            return true;
    return false;
}

/* The code of the \uXXXX at p, or -1. */
static int escape_at(const char *p, const char *end)
{
    return end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? ah_json_hex4(p + 2, end) : -1;
}

/* True if the string ends with half of a pair. An escaped backslash before a u is no escape. */
static bool ends_cut(ah_slice raw)
{
    const char *p = raw.p + raw.n - 6;
    size_t slashes = 0;

    if (raw.n < 6 || !is_high_surrogate(escape_at(p, raw.p + raw.n)))
        return false;
    while (p > raw.p && *--p == '\\')
        slashes++;
    return slashes % 2 == 0;
}

static size_t halves_of(ah_slice raw)
{
    return (size_t)(is_low_surrogate(escape_at(raw.p, raw.p + raw.n)) + ends_cut(raw));
}

/* -- walking ------------------------------------------------------------------------------- */

static bool fits(check *c, const ah_shape *s, const place *at, ah_json_reader *r);

static bool fits_items(check *c, const ah_shape *items, const place *up, ah_json_reader *r)
{
    place at = {.up = up};

    for (; next_item(r); at.index++)
        if (!fits(c, items, &at, r))
            return false;
    return true;
}

static bool says(ah_json_token t, ah_slice word)
{
    if (t.escaped)
        return ah_json_spells(t.raw, word.p);
    return t.raw.n == word.n &&
           (!word.n || (*t.raw.p == *word.p && memcmp(t.raw.p, word.p, word.n) == 0));
}

static const ah_shape_member *find(const ah_shape_member *m, ah_json_token key)
{
    for (; m && m->name.p; m++)
        if (says(key, m->name))
            return m;
    return NULL;
}

static bool fits_members(check *c, const ah_shape *s, const place *up, ah_json_reader *r)
{
    const ah_shape_member *m;
    ah_json_token key;
    unsigned seen = 0;

    while (next_key(r, &key)) {
        const char *from = r->p;

        if (!(m = find(s->member, key))) {
            pass_value(r);
            continue;
        }
        seen |= 1u << (m - s->member);
        if (!fits(c, m->is, &(place){.up = up, .name = m->name.p}, r))
            return false;
        if (m->slot && c->found)
            c->found->slot[m->slot] = (ah_slice){from, (size_t)(r->p - from)};
    }
    for (m = s->member; m && m->name.p; m++)
        if (m->needed && !(seen >> (m - s->member) & 1))
            return refuse(c, &(place){.up = up, .name = m->name.p}, m->is, NULL);
    return true;
}

/* Moves to the value of that member of the object that r is in; false: it is absent. */
static bool find_member(ah_json_reader *r, const char *name)
{
    ah_json_token key;

    for (; next_key(r, &key); pass_value(r))
        if (ah_json_token_is(key, name))
            return true;
    return false;
}

/* Sets *out to the object's case, NULL: a word of no case. False: the word is absent or no
 * string. */
static bool find_case(check *c, const ah_shape *s, const place *up, ah_json_reader r,
                      const ah_shape **out)
{
    static const ah_shape word = {.kinds = AH_IS_STRING};
    bool said = find_member(&r, s->by);
    ah_json_reader value = r;
    ah_json_token t = said ? ah_json_next(&r) : (ah_json_token){.kind = AH_JSON_END};

    *out = NULL;
    if (said && t.kind != AH_JSON_STRING)
        return refuse(c, &(place){.up = up, .name = s->by}, &word, &value);
    for (const ah_shape_case *one = s->cases; one->word.p; one++)
        if (says(t, one->word)) {
            *out = one->is;
            return true;
        }
    return said || refuse(c, &(place){.up = up, .name = s->by}, &word, NULL);
}

static bool fits_object(check *c, const ah_shape *s, const place *at, ah_json_reader *r)
{
    ah_json_reader again = *r;
    const ah_shape *is = NULL;

    if (s->by && !find_case(c, s, at, *r, &is))
        return false;
    if (is && !s->member)
        return fits_object(c, is, at, r);
    if (is && !fits_object(c, is, at, &again))
        return false;
    return fits_members(c, s, at, r);
}

/* True if the text of a value of one of these kinds satisfies s. */
static bool fits_text(check *c, const ah_shape *s, unsigned kinds, ah_slice value)
{
    if (kinds & AH_IS_COUNT)
        return is_count(value);
    if (kinds == AH_IS_NAME)
        return value.n > 2;
    if (kinds & AH_IS_PIECE && c->halves)
        c->halves -= halves_of(ah_json_inside(value));
    return !s->words || *value.p != '"' || is_word(s->words, value);
}

/* Checks the value before r. */
static bool fits(check *c, const ah_shape *s, const place *at, ah_json_reader *r)
{
    ah_json_reader here = *r;
    unsigned kinds = s->kinds & kinds_at(*r->p);

    if (s->kinds && !kinds)
        return refuse(c, at, s, &here);
    if (s->items && enter(r, '['))
        return fits_items(c, s->items, at, r);
    if ((s->member || s->by) && enter(r, '{'))
        return fits_object(c, s, at, r);
    return fits_text(c, s, kinds, pass_value(r)) || refuse(c, at, s, &here);
}

bool ah_shape_fits(const ah_shape *shape, ah_slice doc, size_t halves, ah_shape_values *found,
                   ah_buf *said)
{
    check c = {.halves = halves, .found = found, .said = said};
    ah_json_reader r = ah_json_read(doc);

    if (found)
        *found = (ah_shape_values){0};
    return fits(&c, shape, NULL, &r) && c.halves == 0;
}
