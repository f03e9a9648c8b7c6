/* A document against tables, in one pass and without memory but for the words of a fault; see
 * shape.h. The recursion follows the tables, not the document. */
#include "wire/shape.h"

#include "base/json_chars.h"

const ah_shape ah_no_error = {.kinds = AH_IS_NULL};

/* Where we are: a list up to the top, each in the frame of its call. */
typedef struct place {
    const struct place *up;
    const char *name; /* of the member; NULL: an item */
    size_t index;
} place;

typedef struct check {
    size_t halves; /* not yet found in a piece */
    ah_buf *said;
} check;

/* -- words --------------------------------------------------------------------------------- */

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

static bool refuse(check *c, const place *at, const ah_shape *s, ah_json_token t)
{
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

static bool is_count(ah_slice literal)
{
    ah_json_num n;

    return ah_json_number(literal, &n) && n.is_int && n.i >= 0;
}

static bool is_of(unsigned kinds, ah_json_token t)
{
    switch (t.kind) {
    case AH_JSON_NULL:
        return kinds & AH_IS_NULL;
    case AH_JSON_FALSE:
    case AH_JSON_TRUE:
        return kinds & AH_IS_BOOLEAN;
    case AH_JSON_NUMBER:
        return kinds & AH_IS_COUNT && is_count(t.raw);
    case AH_JSON_STRING:
    case AH_JSON_KEY:
        return kinds & (AH_IS_STRING | AH_IS_PIECE) || (kinds & AH_IS_NAME && t.raw.n);
    case AH_JSON_ARRAY:
        return kinds & AH_IS_ARRAY;
    case AH_JSON_OBJECT:
        return kinds & AH_IS_OBJECT;
    case AH_JSON_END:
    case AH_JSON_ARRAY_END:
    case AH_JSON_OBJECT_END:
        break;
    }
    return false;
}

static bool is_word(const char *const *words, ah_json_token t)
{
    for (; *words; words++)
        if (ah_json_token_is(t, *words))
            return true;
    return false;
}

/* The \uXXXX at p, or -1. */
static int escape_at(const char *p, const char *end)
{
    return end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? ah_json_hex4(p + 2, end) : -1;
}

/* Does the string end with half of a pair? An escaped backslash before a u makes none. */
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

static bool fits(check *c, const ah_shape *s, const place *at, ah_json_token t, ah_json_reader *r);

static bool fits_items(check *c, const ah_shape *items, const place *up, ah_json_reader *r)
{
    place at = {.up = up};
    ah_json_token t = ah_json_next(r);

    for (; t.kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_END; t = ah_json_next(r), at.index++)
        if (!fits(c, items, &at, t, r))
            return false;
    return true;
}

/* The member of that name, and its number. */
static const ah_shape_member *find(const ah_shape_member *m, ah_json_token key, size_t *number)
{
    *number = 0;
    for (; m && m->name; m++, ++*number)
        if ((key.escaped || (key.raw.n && *key.raw.p == *m->name)) && ah_json_token_is(key, m->name))
            return m;
    return NULL;
}

static bool fits_members(check *c, const ah_shape *s, const place *up, ah_json_reader *r)
{
    const ah_json_token none = {.kind = AH_JSON_END};
    ah_json_token key = ah_json_next(r);
    unsigned seen = 0;
    size_t n;

    for (; key.kind == AH_JSON_KEY; key = ah_json_next(r)) {
        const ah_shape_member *m = find(s->member, key, &n);
        place at = {.up = up, .name = m ? m->name : NULL};
        ah_json_token t = ah_json_next(r);

        if (!m)
            ah_json_skip(r, t);
        else if (!fits(c, m->is, &at, t, r))
            return false;
        seen |= m ? 1u << n : 0;
    }
    n = 0;
    for (const ah_shape_member *m = s->member; m && m->name; m++, n++)
        if (m->needed && !(seen >> n & 1))
            return refuse(c, &(place){.up = up, .name = m->name}, m->is, none);
    return true;
}

/* The case that the object is, NULL: none that is ours. False: what says so is no word. */
static bool find_case(check *c, const ah_shape *s, const place *up, ah_slice object,
                      const ah_shape **out)
{
    static const ah_shape word = {.kinds = AH_IS_STRING};
    ah_slice value = ah_json_member(object, s->by);
    ah_json_reader r = ah_json_read(value);
    ah_json_token t = ah_json_next(&r);

    *out = NULL;
    for (const ah_shape_case *one = s->cases; one->word; one++)
        if (value.p ? ah_json_token_is(t, one->word) : !*one->word) {
            *out = one->is;
            return true;
        }
    if (t.kind == AH_JSON_STRING)
        return true;
    return refuse(c, &(place){.up = up, .name = s->by}, &word, t);
}

static bool fits_object(check *c, const ah_shape *s, const place *at, ah_json_token t, ah_json_reader *r)
{
    ah_slice object = {t.raw.p, (size_t)(r->end - t.raw.p)};
    ah_json_reader again = *r;
    const ah_shape *is = NULL;

    if (s->by && !find_case(c, s, at, object, &is))
        return false;
    if (is && is->by && !fits_object(c, is, at, t, &again)) /* a case with cases of its own */
        return false;
    if (is && !is->by && !fits_members(c, is, at, &again))
        return false;
    if (!s->member) {
        ah_json_skip(r, t);
        return true;
    }
    return fits_members(c, s, at, r);
}

static bool fits(check *c, const ah_shape *s, const place *at, ah_json_token t, ah_json_reader *r)
{
    if (s->kinds && !is_of(s->kinds, t))
        return refuse(c, at, s, t);
    if (t.kind == AH_JSON_STRING && s->words && !is_word(s->words, t))
        return refuse(c, at, s, t);
    if (t.kind == AH_JSON_STRING && s->kinds & AH_IS_PIECE && c->halves)
        c->halves -= halves_of(t.raw);
    if (t.kind == AH_JSON_ARRAY && s->items)
        return fits_items(c, s->items, at, r);
    if (t.kind == AH_JSON_OBJECT && (s->member || s->by))
        return fits_object(c, s, at, t, r);
    ah_json_skip(r, t);
    return true;
}

bool ah_shape_fits(const ah_shape *shape, ah_slice doc, size_t halves, ah_buf *said)
{
    check c = {.halves = halves, .said = said};
    ah_json_reader r = ah_json_read(doc);

    return fits(&c, shape, NULL, ah_json_next(&r), &r) && c.halves == 0;
}
