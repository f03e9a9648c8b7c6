/* Rules made of other schemas: those that look at the same value (allOf, if, $ref, ...),
 * those that look at what no other rule looked at, and what a rule counts (contains).
 * anyOf and oneOf are in schema_branch.c.
 *
 * Members and items that were evaluated are bits by index, kept only where an
 * unevaluated* rule, or unknown members being forbidden, asks for them. What a branch
 * evaluated counts only where the branch fits. */
#include "model/schema_checker.h"

/* Marks */

static uint64_t *bits_of(const marks *m)
{
    return m->bits ? m->bits : (uint64_t *)m->few;
}

static size_t words_of(const marks *m)
{
    return m->bits ? m->words : MARKS_INLINE;
}

static bool make_room(checker *c, marks *m, size_t words)
{
    size_t n = words_of(m) * 2 > words ? words_of(m) * 2 : words;
    uint64_t *bits;

    if (words <= words_of(m))
        return true;
    if (!(bits = ah_alloc(c->s->mem, n * sizeof *bits))) {
        c->status = AH_NOMEM;
        return false;
    }
    memcpy(bits, bits_of(m), words_of(m) * sizeof *bits);
    ah_free(c->s->mem, m->bits);
    m->bits = bits;
    m->words = n;
    return true;
}

void schema_mark(checker *c, subject *v, size_t i)
{
    marks *m = v->marks;

    if (m && !m->all && make_room(c, m, i / 64 + 1))
        bits_of(m)[i / 64] |= (uint64_t)1 << i % 64;
}

static bool marked(const marks *m, size_t i)
{
    return m->all || (i / 64 < words_of(m) && bits_of(m)[i / 64] >> i % 64 & 1);
}

void schema_marks_add(checker *c, marks *to, const marks *from)
{
    to->all |= from->all;
    to->named |= from->named;
    if (!make_room(c, to, words_of(from)))
        return;
    for (size_t i = 0; i < words_of(from); i++)
        bits_of(to)[i] |= bits_of(from)[i];
}

void schema_marks_clear(const checker *c, marks *m)
{
    ah_free(c->s->mem, m->bits);
    *m = (marks){0};
}

/* One schema in place */

void schema_check_ref(checker *c, const op *o, subject *v)
{
    schema_check_in_place(c, o->rest, v, v->marks);
}

/* The outermost schema on the way that has this dynamic anchor. */
void schema_check_dynamic_ref(checker *c, const op *o, subject *v)
{
    uint32_t to = o->rest;

    for (const scope *s = o->literal.p ? c->scope : NULL; s; s = s->up) {
        const anchor *a = schema_find_anchor(c->s, s->resource, o->literal);

        if (a && a->dynamic)
            to = a->node;
    }
    schema_check_in_place(c, to, v, v->marks);
}

void schema_check_all_of(checker *c, const op *o, subject *v)
{
    size_t from = c->fills.n;

    for (size_t i = 0; i < o->list.n && c->status == AH_OK; i++) {
        size_t mid = c->fills.n;

        schema_check_in_place(c, link_at(c->s, o->list.first + i), v, v->marks);
        schema_merge_part(c, from, mid);
    }
}

size_t schema_distance(checker *c, uint32_t i, subject *v, marks *m)
{
    size_t before = c->distance, d;

    c->silent++;
    schema_check_in_place(c, i, v, m);
    c->silent--;
    d = c->distance - before;
    c->distance = before;
    return d;
}

bool schema_fits(checker *c, uint32_t i, subject *v, marks *m)
{
    bool filling = c->filling;
    size_t d;

    c->filling = false;
    d = schema_distance(c, i, v, m);
    c->filling = filling;
    return d == 0;
}

void schema_check_not(checker *c, const op *o, subject *v)
{
    if (schema_fits(c, o->rest, v, NULL) && !c->stopped)
        schema_fault_found(c, v, "not", "must not be what `not` says");
}

void schema_check_if(checker *c, const op *o, subject *v)
{
    marks own = {0};
    bool holds;
    uint32_t then;

    if (o->rest == NONE)
        return;
    holds = schema_fits(c, o->rest, v, v->marks ? &own : NULL);
    then = holds ? o->yes : o->no;
    if (holds && v->marks)
        schema_marks_add(c, v->marks, &own);
    schema_marks_clear(c, &own);
    if (then != NONE)
        schema_check_in_place(c, then, v, v->marks);
}

/* Dependencies */

static bool has_member(checker *c, const subject *v, ah_slice name)
{
    ah_json_reader r = v->inside;
    ah_json_token key;

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY && schema_step(c, v->at)) {
        if (ah_slice_eq(schema_plain(c, key), name))
            return true;
        ah_json_skip(&r, ah_json_next(&r));
    }
    return false;
}

void schema_check_depend_names(checker *c, const op *o, subject *v)
{
    if (!has_member(c, v, o->literal))
        return;
    for (size_t i = o->list.first; i < (size_t)o->list.first + o->list.n; i++) {
        place at = {.up = v->at, .key = prop_at(c->s, i)->name};
        ah_buf *b;

        if (has_member(c, v, at.key) || !(b = schema_begin_fault(c, &at, "dependentRequired")))
            continue;
        ah_buf_str(b, "is required beside '");
        schema_put_found(b, o->literal);
        ah_buf_char(b, '\'');
        schema_end_fault(c);
    }
}

void schema_check_depend_schema(checker *c, const op *o, subject *v)
{
    if (has_member(c, v, o->literal))
        schema_check_in_place(c, o->rest, v, v->marks);
}

/* Parts of the value */

static void fault_contains(checker *c, const op *o, const subject *v, size_t n)
{
    bool few = n < o->min;
    size_t limit = few ? o->min : o->max;
    ah_buf *b =
        schema_begin_fault(c, v->at, few ? (o->min == 1 ? "contains" : "minContains") : "maxContains");

    if (!b)
        return;
    ah_buf_fmt(b, "must have at %s %zu item%s such as `contains` wants, found %zu",
               few ? "least" : "most", limit, limit == 1 ? "" : "s", n);
    schema_end_fault(c);
}

void schema_check_contains(checker *c, const op *o, subject *v)
{
    ah_json_reader r = v->inside;
    ah_json_token t;
    size_t fits = 0;

    if (o->rest == NONE)
        return;
    for (size_t i = 0; (t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END; i++) {
        place at = {.up = v->at, .index = i};
        subject item = {.t = t, .inside = r, .at = &at};
        bool holds = !c->stopped && schema_fits(c, o->rest, &item, NULL);

        fits += holds;
        if (holds)
            schema_mark(c, v, i);
        ah_json_skip(&r, t);
    }
    if (!c->stopped && (fits < o->min || fits > o->max))
        fault_contains(c, o, v, fits);
}

void schema_check_names(checker *c, const op *o, subject *v)
{
    ah_json_reader r = v->inside;
    ah_json_token key;
    bool naming = c->naming;

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY && schema_step(c, v->at)) {
        place at = {.up = v->at, .key = key.raw, .escaped = key.escaped};
        ah_json_reader name = r;
        ah_json_token t = key;

        t.kind = AH_JSON_STRING;
        c->naming = true;
        schema_check_value(c, o->rest, t, &name, &at);
        c->naming = naming;
        ah_json_skip(&r, ah_json_next(&r));
    }
}

void schema_check_other_items(checker *c, const op *o, subject *v)
{
    ah_json_reader r = v->inside;
    ah_json_token t;

    for (size_t i = 0; (t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END; i++) {
        place at = {.up = v->at, .index = i};

        if (!schema_step(c, v->at))
            return;
        if (marked(v->marks, i))
            ah_json_skip(&r, t);
        else
            schema_check_value(c, o->rest, t, &r, &at);
    }
    v->marks->all = true;
}

static bool is_false(const ah_schema *s, uint32_t i)
{
    return node_at(s, i)->first != NONE && op_at(s, node_at(s, i)->first)->code == OP_FALSE;
}

/* Members that nothing has evaluated: `rest` for them, or a fault where it is NONE. */
static void check_others(checker *c, uint32_t i, const subject *v, uint32_t rest, const char *rule)
{
    bool closed = rest == NONE || is_false(c->s, rest);
    ah_json_reader r = v->inside;
    ah_json_token key;

    for (size_t n = 0; (key = ah_json_next(&r)).kind == AH_JSON_KEY && schema_step(c, v->at); n++) {
        place at = {.up = v->at, .key = key.raw, .escaped = key.escaped};
        ah_json_token t = ah_json_next(&r);

        if (marked(v->marks, n) || closed) {
            ah_json_skip(&r, t);
            if (!marked(v->marks, n))
                schema_fault_unknown(c, i, schema_plain(c, key), &at, rule);
        } else {
            schema_check_value(c, rest, t, &r, &at);
        }
    }
}

void schema_check_other_properties(checker *c, const op *o, subject *v)
{
    check_others(c, v->node, v, o->rest, "unevaluatedProperties");
    v->marks->all = true;
}

void schema_forbid_unknown(checker *c, uint32_t i, const subject *v)
{
    check_others(c, i, v, NONE, "additionalProperties");
}
