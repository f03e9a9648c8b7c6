/* Rules that consist of other schemas: those for the same value (allOf, if, $ref, ...), those for
 * members and items that no other rule evaluated, and counting (contains). anyOf and oneOf are in
 * branch.c.
 *
 * Evaluated members and items are bits by index. They are recorded only if an unevaluated* rule,
 * or AH_EXTRA_FORBID, needs them. Those of a branch count only if the branch fits. */
#include "schema/checker.h"

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
    if (words_of(from) >= STEP_ITEMS)
        schema_spend(c, NULL, words_of(from) / STEP_ITEMS);
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

typedef struct all_walk {
    frame f;
    const op *o;
    subject *v;
    size_t i, from, mid; /* fills: of all schemas; of the current one */
} all_walk;

static void step_all_of(checker *c, frame *f)
{
    all_walk *w = (all_walk *)(void *)f;

    schema_merge_part(c, w->from, w->mid);
    while (w->i < w->o->list.n && c->status == AH_OK && !c->stopped) {
        w->mid = c->fills.n;
        schema_check_in_place(c, link_at(c->s, w->o->list.first + w->i++), w->v, w->v->marks);
        if (c->top != f)
            return;
        schema_merge_part(c, w->from, w->mid);
    }
    schema_pop(c);
}

void schema_check_all_of(checker *c, const op *o, subject *v)
{
    all_walk *w = schema_push(c, sizeof *w, step_all_of);

    if (!w)
        return;
    *w = (all_walk){.f = w->f, .o = o, .v = v, .from = c->fills.n, .mid = c->fills.n};
}

void schema_begin_trial(checker *c, trial *t)
{
    *t = (trial){c->distance, c->filling};
    c->silent++;
}

size_t schema_end_trial(checker *c, const trial *t)
{
    size_t d = c->distance - t->distance;

    c->silent--;
    c->distance = t->distance;
    c->filling = t->filling;
    return d;
}

/* A schema that is only tried: for `not` and `if`. */
typedef struct try_walk {
    frame f;
    const op *o;
    subject *v;
    trial trial;
    marks own;
} try_walk;

static void begin_try(checker *c, const op *o, subject *v, bool marked,
                      void (*step)(checker *c, frame *f))
{
    try_walk *w = schema_push(c, sizeof *w, step);

    if (!w)
        return;
    *w = (try_walk){.f = w->f, .o = o, .v = v};
    schema_begin_trial(c, &w->trial);
    c->filling = false;
    schema_check_in_place(c, o->rest, v, marked ? &w->own : NULL);
}

static void step_not(checker *c, frame *f)
{
    const try_walk *w = (try_walk *)(void *)f;

    if (schema_end_trial(c, &w->trial) == 0 && !c->stopped)
        schema_fault_found(c, w->v, "not", "must not match the schema of `not`");
    schema_pop(c);
}

void schema_check_not(checker *c, const op *o, subject *v)
{
    begin_try(c, o, v, false, step_not);
}

static void step_if(checker *c, frame *f)
{
    try_walk *w = (try_walk *)(void *)f;
    subject *v = w->v;
    bool holds = schema_end_trial(c, &w->trial) == 0;
    uint32_t then = holds ? w->o->yes : w->o->no;
    reason why = {.kind = holds ? WHY_THEN : WHY_ELSE, .node = w->o->rest};

    if (holds && v->marks)
        schema_marks_add(c, v->marks, &w->own);
    schema_marks_clear(c, &w->own);
    schema_pop(c);
    if (then != NONE && !c->stopped)
        schema_check_because(c, then, v, v->marks, &why);
}

void schema_check_if(checker *c, const op *o, subject *v)
{
    if (o->rest != NONE)
        begin_try(c, o, v, v->marks != NULL, step_if);
}

/* Parts of the value */

static void fault_contains(checker *c, const op *o, const subject *v, size_t n)
{
    bool few = n < o->min;
    size_t limit = few ? o->min : o->max;
    ah_buf *b = schema_begin_fault(
        c, v->at, few ? (o->min == 1 ? "contains" : "minContains") : "maxContains");

    if (!b)
        return;
    ah_buf_fmt(b, "must have at %s %zu item%s matching `contains`, found %zu",
               few ? "least" : "most", limit, limit == 1 ? "" : "s", n);
    schema_end_fault(c);
}

typedef struct contains_walk {
    frame f;
    const op *o;
    subject *v;
    ah_json_reader r; /* after the item's token */
    place at;
    subject item;
    trial trial;
    bool trying;
    size_t n, fits;
} contains_walk;

static void end_item(checker *c, contains_walk *w)
{
    bool holds = schema_end_trial(c, &w->trial) == 0;

    w->fits += holds;
    if (holds && w->o->evaluates)
        schema_mark(c, w->v, w->at.index);
    if (w->item.ended)
        w->r = w->item.end;
    else
        schema_skip(c, &w->r, w->item.t);
    w->trying = false;
}

static void try_item(checker *c, contains_walk *w, ah_json_token t)
{
    w->at.index = w->n++;
    w->item = (subject){.t = t, .inside = w->r, .at = &w->at};
    w->trying = true;
    schema_begin_trial(c, &w->trial);
    c->filling = false;
    schema_check_in_place(c, w->o->rest, &w->item, NULL);
}

static void step_contains(checker *c, frame *f)
{
    contains_walk *w = (contains_walk *)(void *)f;
    ah_json_token t;

    do {
        if (w->trying)
            end_item(c, w);
        if (!schema_step(c, w->v->at))
            break;
        if ((t = ah_json_next(&w->r)).kind == AH_JSON_ARRAY_END) {
            if (w->fits < w->o->min || w->fits > w->o->max)
                fault_contains(c, w->o, w->v, w->fits);
            break;
        }
        try_item(c, w, t);
    } while (c->top == f);
    if (c->top == f)
        schema_pop(c);
}

void schema_check_contains(checker *c, const op *o, subject *v)
{
    contains_walk *w = o->rest == NONE ? NULL : schema_push(c, sizeof *w, step_contains);

    if (!w)
        return;
    *w = (contains_walk){.f = w->f, .o = o, .v = v, .r = v->inside, .at = {.up = v->at}};
}

/* Members or items in sequence: property names, and those not yet evaluated. */
typedef struct each_walk {
    frame f;
    const op *o;
    subject *v;
    ah_json_reader r, name;
    place at;
    size_t n;
    bool naming;
} each_walk;

static void begin_each(checker *c, const op *o, subject *v, void (*step)(checker *c, frame *f))
{
    each_walk *w = schema_push(c, sizeof *w, step);

    if (!w)
        return;
    *w = (each_walk){
        .f = w->f, .o = o, .v = v, .r = v->inside, .at = {.up = v->at}, .naming = c->naming};
}

static void step_names(checker *c, frame *f)
{
    each_walk *w = (each_walk *)(void *)f;

    do {
        ah_json_token t = ah_json_next(&w->r);

        c->naming = w->naming;
        if (t.kind != AH_JSON_KEY || !schema_step(c, w->v->at)) {
            schema_pop(c);
            return;
        }
        w->at.key = t.raw;
        w->at.escaped = t.escaped;
        t.kind = AH_JSON_STRING;
        w->name = w->r;
        schema_skip(c, &w->r, ah_json_next(&w->r));
        c->naming = true;
        schema_check_value(c, w->o->rest, t, &w->name, &w->at);
    } while (c->top == f);
}

void schema_check_names(checker *c, const op *o, subject *v)
{
    begin_each(c, o, v, step_names);
}

static void step_other_items(checker *c, frame *f)
{
    each_walk *w = (each_walk *)(void *)f;

    do {
        ah_json_token t = ah_json_next(&w->r);

        if (t.kind == AH_JSON_ARRAY_END || !schema_step(c, w->v->at)) {
            w->v->marks->all = true;
            schema_pop(c);
            return;
        }
        w->at.index = w->n++;
        if (marked(w->v->marks, w->at.index))
            schema_skip(c, &w->r, t);
        else
            schema_check_value(c, w->o->rest, t, &w->r, &w->at);
    } while (c->top == f);
}

void schema_check_other_items(checker *c, const op *o, subject *v)
{
    begin_each(c, o, v, step_other_items);
}

static bool is_false(const ah_schema *s, uint32_t i)
{
    return node_at(s, i)->first != NONE && op_at(s, node_at(s, i)->first)->code == OP_FALSE;
}

/* Reports members that no rule has evaluated. */
static void forbid_others(checker *c, uint32_t i, const subject *v, const char *rule)
{
    ah_json_reader r = v->inside;
    ah_json_token key;

    for (size_t n = 0; (key = ah_json_next(&r)).kind == AH_JSON_KEY && schema_step(c, v->at); n++) {
        place at = {.up = v->at, .key = key.raw, .escaped = key.escaped};

        schema_skip(c, &r, ah_json_next(&r));
        if (!marked(v->marks, n))
            schema_fault_unknown(c, i, schema_plain(c, key.raw, key.escaped), &at, rule);
    }
}

static void step_other_properties(checker *c, frame *f)
{
    each_walk *w = (each_walk *)(void *)f;

    do {
        ah_json_token key = ah_json_next(&w->r), t;

        if (key.kind != AH_JSON_KEY || !schema_step(c, w->v->at)) {
            w->v->marks->all = true;
            schema_pop(c);
            return;
        }
        w->at.key = key.raw;
        w->at.escaped = key.escaped;
        t = ah_json_next(&w->r);
        if (marked(w->v->marks, w->n++))
            schema_skip(c, &w->r, t);
        else
            schema_check_value(c, w->o->rest, t, &w->r, &w->at);
    } while (c->top == f);
}

void schema_check_other_properties(checker *c, const op *o, subject *v)
{
    if (o->rest != NONE && !is_false(c->s, o->rest)) {
        begin_each(c, o, v, step_other_properties);
        return;
    }
    forbid_others(c, v->node, v, "unevaluatedProperties");
    v->marks->all = true;
}

void schema_forbid_unknown(checker *c, uint32_t i, const subject *v)
{
    forbid_others(c, i, v, "additionalProperties");
}
