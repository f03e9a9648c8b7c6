/* Rules that look at a value by itself: constants, numbers, strings, and whether the
 * items of a list differ. Values are compared by what they mean, in canonical text. */
#include <stdlib.h>

#include "model/schema_checker.h"

static int compare_tokens(ah_json_token x, ah_json_token y)
{
    number m, n;

    if (x.kind != y.kind)
        return x.kind < y.kind ? -1 : 1;
    if (x.kind != AH_JSON_NUMBER)
        return ah_slice_cmp(x.raw, y.raw);
    schema_number(x.raw, &m);
    schema_number(y.raw, &n);
    return schema_compare_numbers(m, n);
}

/* Both texts are canonical, so only numbers may be written in two ways. Any order. */
static int compare_canonical(ah_slice a, ah_slice b)
{
    ah_json_reader ra = ah_json_read(a), rb = ah_json_read(b);

    for (;;) {
        ah_json_token x = ah_json_next(&ra), y = ah_json_next(&rb);
        int order = compare_tokens(x, y);

        if (order || x.kind == AH_JSON_END)
            return order;
    }
}

/* The value's canonical text; made once, kept in *canon. */
static ah_slice canonical(checker *c, const subject *v, ah_slice *canon)
{
    ah_slice text;
    ah_status st;

    if (canon->p)
        return *canon;
    text = schema_value_text(v);
    ah_buf_reset(&c->scratch, 0);
    if ((st = ah_json_canon(c->s->mem, text, &c->scratch)) != AH_OK || !ah_buf_ok(&c->scratch))
        c->status = st != AH_OK ? st : c->scratch.status;
    return *canon = ah_buf_slice(&c->scratch);
}

static bool equals(checker *c, const subject *v, const value *to, ah_slice *canon)
{
    if (v->t.kind != to->t.kind)
        return false;
    if (v->t.kind == AH_JSON_NUMBER)
        return schema_compare_numbers(v->num, to->num) == 0;
    if (v->t.kind == AH_JSON_STRING && !v->t.escaped && !to->t.escaped)
        return ah_slice_eq(v->t.raw, to->t.raw);
    if (v->t.kind == AH_JSON_STRING || v->t.kind == AH_JSON_ARRAY || v->t.kind == AH_JSON_OBJECT)
        return compare_canonical(canonical(c, v, canon), to->text) == 0;
    return true; /* null, false, true */
}

bool schema_is_one_of(checker *c, const subject *v, range values)
{
    ah_slice canon = {NULL, 0};

    for (size_t i = 0; i < values.n; i++)
        if (equals(c, v, value_at(c->s, values.first + i), &canon))
            return true;
    return false;
}

void schema_check_values(checker *c, const op *o, subject *v)
{
    bool one = o->code == OP_CONST;
    size_t listed = 0;
    ah_buf *b;

    if (schema_is_one_of(c, v, o->list))
        return;
    schema_weigh_constant(c, v);
    if (!(b = schema_begin_fault(c, v->at, one ? "const" : "enum")))
        return;
    ah_buf_str(b, one ? "must be " : "must be one of ");
    schema_put_values(c->s, b, o->list, &listed);
    schema_end_list(b, listed);
    schema_end_found(c, b, v);
}

void schema_check_bound(checker *c, const op *o, subject *v)
{
    static const struct {
        const char *rule, *words;
        int from, to; /* what comparing value and bound may give */
    } says[] = {
        [OP_MINIMUM] = {"minimum", "at least", 0, 1},
        [OP_MAXIMUM] = {"maximum", "at most", -1, 0},
        [OP_ABOVE] = {"exclusiveMinimum", "more than", 1, 1},
        [OP_BELOW] = {"exclusiveMaximum", "less than", -1, -1},
    };
    int order = schema_compare_numbers(v->num, o->num);
    ah_buf *b;

    if (order >= says[o->code].from && order <= says[o->code].to)
        return;
    if (!(b = schema_begin_fault(c, v->at, says[o->code].rule)))
        return;
    ah_buf_fmt(b, "must be %s ", says[o->code].words);
    schema_put_found(b, o->num.literal);
    schema_end_found(c, b, v);
}

void schema_check_multiple(checker *c, const op *o, subject *v)
{
    ah_buf *b;

    if (schema_is_multiple(v->t.raw, o->num.literal))
        return;
    if (!(b = schema_begin_fault(c, v->at, "multipleOf")))
        return;
    ah_buf_str(b, "must be a multiple of ");
    schema_put_found(b, o->num.literal);
    schema_end_found(c, b, v);
}

void schema_check_limits(checker *c, const op *o, const subject *v, size_t n)
{
    static const struct {
        const char *least, *most, *verb, *one, *many;
    } says[] = {
        [OP_STRING] = {"minLength", "maxLength", "be", "character long", "characters long"},
        [OP_ARRAY] = {"minItems", "maxItems", "have", "item", "items"},
        [OP_OBJECT] = {"minProperties", "maxProperties", "have", "property", "properties"},
    };
    bool few = n < o->min;
    size_t limit = few ? o->min : o->max;
    ah_buf *b;

    if (n >= o->min && n <= o->max)
        return;
    if (!(b = schema_begin_fault(c, v->at, few ? says[o->code].least : says[o->code].most)))
        return;
    ah_buf_fmt(b, "must %s at %s %zu %s, found %zu", says[o->code].verb, few ? "least" : "most", limit,
               limit == 1 ? says[o->code].one : says[o->code].many, n);
    schema_end_fault(c);
}

/* Length of an escape in checked text, a pair of surrogates as one. */
static size_t escape_length(const char *p)
{
    if (p[1] != 'u')
        return 2;
    return (p[2] == 'd' || p[2] == 'D') && strchr("89abAB", p[3]) ? 12 : 6;
}

static size_t count_characters(ah_json_token t)
{
    size_t n = 0;

    if (!t.escaped) {
        for (size_t i = 0; i < t.raw.n; i++)
            n += ((unsigned char)t.raw.p[i] & 0xc0) != 0x80;
        return n;
    }
    for (size_t i = 0; i < t.raw.n;) {
        if (t.raw.p[i] == '\\') {
            i += escape_length(t.raw.p + i);
            n++;
        } else {
            n += ((unsigned char)t.raw.p[i++] & 0xc0) != 0x80;
        }
    }
    return n;
}

void schema_check_string(checker *c, const op *o, subject *v)
{
    size_t bytes = v->t.raw.n; /* a character takes 1 to 12 of them */

    if (bytes > o->max || bytes / 12 < o->min)
        schema_check_limits(c, o, v, count_characters(v->t));
}

void schema_check_pattern(checker *c, const op *o, subject *v)
{
    ah_match found = ah_pattern_match(pattern_at(c->s, o->rest), schema_plain(c, v->t));
    ah_buf *b;

    if (found == AH_MATCH_LIMIT)
        schema_stop(c, v->at, "pattern", "could not be matched with the pattern within the limits");
    if (found == AH_MATCH_NOMEM)
        c->status = AH_NOMEM;
    if (found != AH_MATCH_NO || !(b = schema_begin_fault(c, v->at, "pattern")))
        return;
    ah_buf_str(b, "must match the pattern ");
    schema_put_found(b, o->literal);
    schema_end_found(c, b, v);
}

void schema_check_format(checker *c, const op *o, subject *v)
{
    ah_buf *b;

    if (schema_has_format(c->s->mem, o->rest, schema_plain(c, v->t)) ||
        !(b = schema_begin_fault(c, v->at, "format")))
        return;
    ah_buf_fmt(b, "must be %s", schema_format_words(o->rest));
    schema_end_found(c, b, v);
}

/* uniqueItems */

typedef struct item {
    ah_slice text; /* canonical */
    size_t index;
} item;

static int compare_items(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = compare_canonical(x->text, y->text);

    return order ? order : x->index < y->index ? -1 : 1;
}

static void fault_same(checker *c, const subject *v, const item *a)
{
    ah_buf *b = schema_begin_fault(c, v->at, "uniqueItems");

    if (!b)
        return;
    ah_buf_fmt(b, "must have no item twice, found items %zu and %zu both ", a[0].index, a[1].index);
    schema_put_found(b, a[0].text);
    schema_end_fault(c);
}

static bool list_items(const checker *c, table *items, ah_slice array)
{
    ah_json_reader r = ah_json_read(array);
    ah_json_token t = ah_json_next(&r);

    while ((t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END) {
        uint32_t i = schema_extend(c->s->mem, items, 1, sizeof(item));

        if (i == NONE)
            return false;
        ((item *)items->at)[i] = (item){ah_json_skip(&r, t), i};
    }
    return true;
}

void schema_check_unique(checker *c, const op *o, subject *v)
{
    ah_slice canon = {NULL, 0};
    table items = {0};
    item *list;

    (void)o;
    canonical(c, v, &canon);
    if (c->status != AH_OK)
        return;
    if (!list_items(c, &items, canon)) {
        c->status = AH_NOMEM;
    } else if ((list = items.at)) {
        c->steps += items.n;
        qsort(list, items.n, sizeof *list, compare_items);
        for (size_t i = 1; i < items.n; i++) {
            if (compare_canonical(list[i - 1].text, list[i].text) == 0) {
                fault_same(c, v, list + i - 1);
                break;
            }
        }
    }
    ah_free(c->s->mem, items.at);
}
