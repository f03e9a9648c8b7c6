/* ah_json_hash: one number for a JSON value, independent of the order of members, of escapes and
 * of white space. It builds nothing and cannot fail. It is not cryptographic: collisions are
 * easy to make on purpose. */
#include "base/json.h"

#include "base/json_chars.h"

static const uint64_t START = 14695981039346656037u;

/* FNV-1a */
static inline uint64_t add_byte(uint64_t h, unsigned char c)
{
    return (h ^ c) * 1099511628211u;
}

/* Spreads a number over all its bits, so that different summands give different sums. */
static inline uint64_t spread(uint64_t h)
{
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static uint64_t hash_plain(uint64_t h, ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        h = add_byte(h, (unsigned char)s.p[i]);
    return h;
}

static uint64_t hash_string(uint64_t h, const ah_json_token *t)
{
    unescaped u = unescaping(t->raw);

    if (!t->escaped)
        return hash_plain(h, t->raw);
    for (int c; (c = next_byte(&u)) >= 0;)
        h = add_byte(h, (unsigned char)c);
    return h;
}

static bool is_integer(ah_slice literal)
{
    size_t i = 0;

    while (i < literal.n && (is_digit(literal.p[i]) || literal.p[i] == '-'))
        i++;
    return i == literal.n && !ah_slice_is(literal, "-0");
}

/* An integer has one spelling; a literal that is a float in canonical text counts as a double. */
static uint64_t hash_number(uint64_t h, ah_slice literal)
{
    ah_json_num num;

    if (is_integer(literal))
        return hash_plain(h, literal);
    ah_json_number(literal, &num);
    return hash_plain(h, (ah_slice){(const char *)&num.d, sizeof num.d});
}

/* Hashes the value whose first token is t; the recursion is as deep as checked text. */
static uint64_t hash_value(ah_json_reader *r, ah_json_token t)
{
    uint64_t h = add_byte(START, (unsigned char)t.kind), members = 0, key;

    switch (t.kind) {
    case AH_JSON_OBJECT:
        for (t = ah_json_next(r); t.kind == AH_JSON_KEY; t = ah_json_next(r)) {
            key = hash_string(START, &t);
            members += spread(spread(key) + hash_value(r, ah_json_next(r)));
        }
        return spread(h + members);
    case AH_JSON_ARRAY:
        for (t = ah_json_next(r); t.kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_END;
             t = ah_json_next(r))
            h = spread(h + hash_value(r, t));
        return spread(h);
    case AH_JSON_STRING:
        return spread(hash_string(h, &t));
    case AH_JSON_NUMBER:
        return spread(hash_number(h, t.raw));
    default:
        return spread(h);
    }
}

uint64_t ah_json_hash(ah_slice checked)
{
    ah_json_reader r = ah_json_read(checked);

    return hash_value(&r, ah_json_next(&r));
}
