/* Rules for a single value: constants, numbers, strings, and uniqueItems. Values are compared by
 * meaning, in canonical text. */
#include "schema/checker.h"

enum {
    TREE_BYTES = 2 /* bytes made canonical in a step */
};

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

int schema_compare_canonical(ah_slice a, ah_slice b)
{
    ah_json_reader ra = ah_json_read(a), rb = ah_json_read(b);

    for (;;) {
        ah_json_token x = ah_json_next(&ra), y = ah_json_next(&rb);
        int order = compare_tokens(x, y);

        if (order || x.kind == AH_JSON_END)
            return order;
    }
}

/* Returns the value's canonical text; made once, kept in *canon. */
static ah_slice canonical(checker *c, const subject *v, ah_slice *canon)
{
    ah_slice text;
    ah_status st;

    if (canon->p)
        return *canon;
    text = schema_value_text(v);
    ah_buf_reset(&c->scratch, 0);
    if (!schema_spend(c, v->at, text.n / TREE_BYTES))
        return *canon = (ah_slice){"", 0};
    if ((st = ah_json_canon(c->s->mem, text, &c->scratch)) != AH_OK || !ah_buf_ok(&c->scratch))
        c->status = st != AH_OK ? st : c->scratch.status;
    return *canon = ah_buf_slice(&c->scratch);
}

/* Compares the value with another one, in the order of schema_compare_values. */
static int compare_with(checker *c, const subject *v, const value *to, ah_slice *canon)
{
    if (v->t.kind != to->t.kind)
        return v->t.kind < to->t.kind ? -1 : 1;
    if (v->t.kind == AH_JSON_NUMBER)
        return schema_compare_numbers(v->num, to->num);
    if (v->t.kind == AH_JSON_STRING && !v->t.escaped)
        return ah_slice_cmp(v->t.raw, to->t.raw);
    if (v->t.kind == AH_JSON_STRING || v->t.kind == AH_JSON_ARRAY || v->t.kind == AH_JSON_OBJECT)
        return schema_compare_canonical(canonical(c, v, canon), to->text);
    return 0; /* null, false, true */
}

/* Counts the steps of comparing v with `to`, as long numbers are read again. False: the check
 * has stopped. */
static bool spend_comparison(checker *c, const subject *v, const value *to, ah_slice canon)
{
    size_t n = canon.n < to->text.n ? canon.n : to->text.n;

    return schema_spend(c, v->at,
                        1 + n / STEP_TOKENS +
                            (v->t.kind == AH_JSON_NUMBER ? v->t.raw.n / STEP_DIGITS : 0));
}

bool schema_is_one_of(checker *c, const subject *v, range values)
{
    ah_slice canon = {NULL, 0};
    size_t low = 0, high = values.n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const value *to = value_at(c->s, values.first + value_at(c->s, values.first + mid)->sorted);
        int order = compare_with(c, v, to, &canon);

        if (order == 0 && c->status == AH_OK)
            return true;
        if (!spend_comparison(c, v, to, canon))
            return false;
        *(order < 0 ? &high : &low) = order < 0 ? mid : mid + 1;
    }
    return false;
}

void schema_check_values(checker *c, const op *o, subject *v)
{
    bool one = o->code == OP_CONST;
    guess g = {.looks = 0};
    size_t listed = 0;
    ah_buf *b;

    if (schema_is_one_of(c, v, o->list))
        return;
    schema_weigh_constant(c, v);
    if (!(b = schema_begin_fault(c, v->at, one ? "const" : "enum")))
        return;
    ah_buf_str(b, one ? "must be " : o->list.n ? "must be one of " : "must be one of no values");
    schema_put_values(c->s, b, o->list, &listed);
    schema_end_list(b, listed);
    if (o->list.n > 1)
        schema_guess(c, &g, v, o->list);
    schema_end_guessed(c, b, v, &g);
}

void schema_check_bound(checker *c, const op *o, subject *v)
{
    static const struct {
        const char *rule, *words;
        int from, to; /* allowed results of comparing value and limit */
    } says[] = {
        [OP_MINIMUM] = {"minimum", "at least", 0, 1},
        [OP_MAXIMUM] = {"maximum", "at most", -1, 0},
        [OP_ABOVE] = {"exclusiveMinimum", "more than", 1, 1},
        [OP_BELOW] = {"exclusiveMaximum", "less than", -1, -1},
    };
    int order = schema_compare_numbers(v->num, o->num);
    ah_buf *b;

    if (v->t.raw.n >= STEP_BYTES)
        schema_spend(c, v->at, v->t.raw.n / STEP_DIGITS);
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

    if (!schema_spend(c, v->at, v->t.raw.n / STEP_DIGITS) ||
        schema_is_multiple(v->t.raw, o->num.literal))
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
    ah_buf_fmt(b, "must %s at %s %zu %s, found %zu", says[o->code].verb, few ? "least" : "most",
               limit, limit == 1 ? says[o->code].one : says[o->code].many, n);
    schema_end_fault(c);
}

/* Returns the length of an escape in checked text; a surrogate pair is one. */
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
    size_t bytes = v->t.raw.n; /* 1 to 12 bytes per character */

    if (bytes <= o->max && bytes / 12 >= o->min)
        return;
    if (bytes < STEP_BYTES || schema_spend(c, v->at, bytes / STEP_BYTES))
        schema_check_limits(c, o, v, count_characters(v->t));
}

void schema_check_pattern(checker *c, const op *o, subject *v)
{
    ah_match found = ah_pattern_match(pattern_at(c->s, o->rest),
                                      schema_plain(c, v->t.raw, v->t.escaped), c->work);
    ah_buf *b;

    if (found == AH_MATCH_LIMIT)
        schema_stop(c, v->at, "pattern", "could not be matched within the limits with the pattern ",
                    o->literal);
    if (found == AH_MATCH_ENDED)
        schema_stop_work(c, v->at, "pattern", o->literal);
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
    ah_match found = schema_has_format(c->s->mem, o->rest, schema_plain(c, v->t.raw, v->t.escaped),
                                       c->work, &c->names);
    ah_buf *b;

    if (found == AH_MATCH_ENDED)
        schema_stop_work(c, v->at, "format", (ah_slice){NULL, 0});
    if (found == AH_MATCH_NOMEM)
        c->status = AH_NOMEM;
    if (found != AH_MATCH_NO || !(b = schema_begin_fault(c, v->at, "format")))
        return;
    ah_buf_fmt(b, "must be %s", schema_format_words(o->rest));
    schema_end_found(c, b, v);
}

/* uniqueItems */

typedef struct item {
    ah_slice text; /* canonical */
    size_t index;
} item;

/* Compares canonical texts. The bytes read are counted; once the work has ended, all are equal. */
static int compare_items(checker *c, const subject *v, const item *a, const item *b)
{
    size_t n = a->text.n < b->text.n ? a->text.n : b->text.n;

    return schema_spend(c, v->at, 1 + n / STEP_BYTES) ? schema_compare_canonical(a->text, b->text)
                                                      : 0;
}

/* Merges [low, mid) and [mid, high) into `to`; of equal items the first of the list comes first. */
static void merge_runs(checker *c, const subject *v, const item *from, item *to, const size_t at[3])
{
    size_t i = at[0], j = at[1];

    for (size_t k = at[0]; k < at[2]; k++) {
        bool first = j == at[2] || (i < at[1] && compare_items(c, v, from + i, from + j) <= 0);

        to[k] = first ? from[i++] : from[j++];
    }
}

/* Sorts by merging, because qsort can neither be counted nor stopped. Returns `list` or `other`,
 * which holds the result. */
static item *sort_items(checker *c, const subject *v, item *list, item *other, size_t n)
{
    for (size_t run = 1; run < n && !c->stopped; run *= 2) {
        item *from = list;

        for (size_t i = 0; i < n && !c->stopped; i += 2 * run) {
            size_t at[3] = {i, i + run < n ? i + run : n, i + 2 * run < n ? i + 2 * run : n};

            merge_runs(c, v, from, other, at);
        }
        list = other;
        other = from;
    }
    return list;
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

static void find_same(checker *c, const subject *v, const table *items)
{
    item *other = ah_resize(c->s->mem, NULL, items->n * sizeof *other), *list;

    if (!other) {
        c->status = AH_NOMEM;
        return;
    }
    list = sort_items(c, v, items->at, other, items->n);
    for (size_t i = 1; i < items->n && !c->stopped; i++) {
        if (compare_items(c, v, list + i - 1, list + i) == 0 && !c->stopped) {
            fault_same(c, v, list + i - 1);
            break;
        }
    }
    ah_free(c->s->mem, other);
}

void schema_check_unique(checker *c, const op *o, subject *v)
{
    ah_slice canon = {NULL, 0};
    table items = {0};

    (void)o;
    canonical(c, v, &canon);
    if (c->status != AH_OK || c->stopped)
        return;
    if (!list_items(c, &items, canon))
        c->status = AH_NOMEM;
    else if (items.n > 1)
        find_same(c, v, &items);
    ah_free(c->s->mem, items.at);
}
