/* The checker: walks a value's text beside the program, and tells what does not conform.
 * Here are the walk itself and the rules of lists and objects; rules of scalars are in
 * schema_scalar.c, those of schemas in the same place in schema_apply.c and
 * schema_branch.c, and how faults are told in schema_fault.c.
 *
 * A new rule is a line in `checks`. */
#include <stdlib.h>

#include "base/near.h"
#include "model/schema_checker.h"

enum { SEEN_INLINE = 128 }; /* properties of one object marked without memory */

static void put_near(ah_buf *b, const ah_near *near)
{
    if (!near->best.p)
        return;
    ah_buf_str(b, "; did you mean '");
    schema_put_found(b, near->best);
    ah_buf_str(b, "'?");
}

ah_slice schema_value_text(const subject *v)
{
    ah_json_reader r = v->inside;

    return ah_json_skip(&r, v->t);
}

void schema_stop(checker *c, const place *at, const char *rule, const char *words)
{
    int silent = c->silent;
    ah_buf *b;

    if (c->stopped)
        return;
    c->faults->n = c->faults->total = 0;
    ah_buf_reset(&c->faults->texts, 0);
    c->silent = 0;
    if ((b = schema_begin_fault(c, at, rule))) {
        ah_buf_str(b, words);
        schema_end_fault(c);
    }
    c->silent = silent;
    c->stopped = true;
}

bool schema_step(checker *c, const place *at)
{
    if (++c->steps > CHECK_STEPS)
        schema_stop(c, at, "steps", "takes more steps to check than are allowed");
    return !c->stopped && c->status == AH_OK;
}

static void check_false(checker *c, const op *o, subject *v)
{
    (void)o;
    schema_fault_found(c, v, "false", "is not allowed");
}

void schema_put_values(const ah_schema *s, ah_buf *b, range list, size_t *listed)
{
    for (size_t i = 0; i < list.n; i++, ++*listed) {
        if (*listed >= SCHEMA_LISTED)
            continue;
        if (*listed)
            ah_buf_str(b, ", ");
        schema_put_found(b, value_at(s, list.first + i)->text);
    }
}

void schema_end_list(ah_buf *b, size_t listed)
{
    if (listed > SCHEMA_LISTED)
        ah_buf_fmt(b, " and %zu more", listed - SCHEMA_LISTED);
}

/* Lists */

/* Items that a prefix or "items" speaks of are evaluated. */
static void check_array(checker *c, const op *o, subject *v)
{
    ah_json_reader r = v->inside;
    ah_json_token t;
    size_t n = 0;

    for (; (t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END; n++) {
        place at = {.up = v->at, .index = n};
        uint32_t i = n < o->list.n ? link_at(c->s, o->list.first + n) : o->rest;

        if (!schema_step(c, v->at))
            return;
        if (i == NONE) {
            ah_json_skip(&r, t);
        } else {
            schema_check_value(c, i, t, &r, &at);
            schema_mark(c, v, n);
        }
    }
    v->end = r;
    v->ended = true;
    schema_check_limits(c, o, v, n);
}

/* Objects */

static bool is_false(const ah_schema *s, uint32_t i)
{
    return i != NONE && node_at(s, i)->first != NONE && op_at(s, node_at(s, i)->first)->code == OP_FALSE;
}

typedef void name_fn(void *ud, ah_slice name);

/* The names that node i, and schemas in its place, have properties for. */
static void each_name(const ah_schema *s, uint32_t i, int depth, name_fn *f, void *ud)
{
    enum { DEEP = 8 };

    for (uint32_t o = depth < DEEP ? node_at(s, i)->first : NONE; o != NONE; o = op_at(s, o)->next) {
        const op *p = op_at(s, o);

        if (p->code == OP_OBJECT)
            for (size_t k = p->list.first; k < (size_t)p->list.first + p->list.n; k++)
                if (prop_at(s, k)->node != NONE)
                    f(ud, prop_at(s, k)->name);
        if (p->code == OP_ALL_OF || p->code == OP_ANY_OF || p->code == OP_ONE_OF)
            for (size_t k = 0; k < p->list.n; k++)
                each_name(s, link_at(s, p->list.first + k), depth + 1, f, ud);
        if (p->code == OP_REF || p->code == OP_DYNAMIC_REF || p->code == OP_DEPEND_SCHEMA)
            each_name(s, p->rest, depth + 1, f, ud);
        if (p->code == OP_IF && p->yes != NONE)
            each_name(s, p->yes, depth + 1, f, ud);
        if (p->code == OP_IF && p->no != NONE)
            each_name(s, p->no, depth + 1, f, ud);
    }
}

typedef struct names {
    ah_near near;
    ah_slice listed[SCHEMA_LISTED];
    size_t n, more;
    bool itself; /* named, but by a schema that did not fit */
} names;

static void add_name(void *ud, ah_slice name)
{
    names *k = ud;

    if (ah_slice_eq(name, k->near.to))
        k->itself = true;
    else
        ah_near_offer(&k->near, name);
    for (size_t i = 0; i < k->n; i++)
        if (ah_slice_eq(k->listed[i], name))
            return;
    if (k->n < SCHEMA_LISTED)
        k->listed[k->n++] = name;
    else
        k->more++;
}

void schema_fault_unknown(checker *c, uint32_t i, ah_slice name, const place *at, const char *rule)
{
    names known = {.near = {.to = name}};
    ah_buf *b = schema_begin_fault(c, at, rule);

    if (!b)
        return;
    each_name(c->s, i, 0, add_name, &known);
    if (known.itself)
        known.near.best.p = NULL;
    ah_buf_str(b, known.itself ? "does not belong here with this value or beside these members"
                               : "unknown property");
    put_near(b, &known.near);
    for (size_t k = 0; k < known.n; k++) {
        ah_buf_str(b, k ? ", " : known.near.best.p ? " known: " : "; known: ");
        schema_put_found(b, known.listed[k]);
    }
    schema_end_list(b, known.n + known.more);
    if (!known.n)
        ah_buf_str(b, "; none are known here");
    schema_end_fault(c);
}

ah_slice schema_plain(checker *c, ah_json_token t)
{
    if (!t.escaped)
        return t.raw;
    ah_buf_reset(&c->scratch, 0);
    ah_json_unescape(t.raw, &c->scratch);
    if (!ah_buf_ok(&c->scratch))
        c->status = c->scratch.status;
    return ah_buf_slice(&c->scratch);
}

/* An object under one OP_OBJECT. */
typedef struct walk {
    const op *o;
    subject *v;
    bool closed; /* members not named are faults */
} walk;

/* Checks the value by each pattern's schema whose pattern the name has. */
static bool check_patterns(checker *c, const walk *w, ah_json_token key, ah_json_token t,
                           const ah_json_reader *r, const place *at)
{
    size_t from = c->fills.n;
    bool any = false;

    for (size_t i = 0; i < w->o->patterns.n; i++) {
        size_t pair = w->o->patterns.first + 2 * i;
        ah_match found = ah_pattern_match(pattern_at(c->s, link_at(c->s, pair)), schema_plain(c, key));
        ah_json_reader copy = *r;
        size_t mid = c->fills.n;

        if (found == AH_MATCH_LIMIT)
            schema_stop(c, at, "patternProperties", "has a name that no pattern could be matched with");
        if (found == AH_MATCH_NOMEM)
            c->status = AH_NOMEM;
        if (found != AH_MATCH_YES)
            continue;
        any = true;
        schema_check_value(c, link_at(c->s, pair + 1), t, &copy, at);
        schema_merge_part(c, from, mid);
    }
    return any;
}

/* Checks the member's value and passes over it; the index of its prop, or NONE. */
static uint32_t check_member(checker *c, const walk *w, ah_json_token key, ah_json_reader *r, size_t n)
{
    place at = {.up = w->v->at, .key = key.raw, .escaped = key.escaped};
    uint32_t i = schema_find_prop(c->s, w->o->list, schema_plain(c, key));
    uint32_t by = i == NONE ? NONE : prop_at(c->s, i)->node;
    size_t from = c->fills.n, mid;
    ah_json_token t = ah_json_next(r);
    bool known = check_patterns(c, w, key, t, r, &at) || by != NONE;

    if (!known && w->closed)
        schema_fault_unknown(c, w->v->node, schema_plain(c, key), &at, "additionalProperties");
    else if (!known)
        by = w->o->rest;
    mid = c->fills.n;
    if (by == NONE)
        ah_json_skip(r, t);
    else
        schema_check_value(c, by, t, r, &at);
    schema_merge_part(c, from, mid);
    if (known || by != NONE)
        schema_mark(c, w->v, n);
    return i;
}

/* What the absent members bring: a fault, or a default before the closing brace. */
static void check_absent(checker *c, const op *o, const uint64_t *seen, const subject *v,
                         const char *brace)
{
    for (size_t i = 0; i < o->list.n; i++) {
        const prop *p = prop_at(c->s, o->list.first + i);
        place at = {.up = v->at, .key = p->name};
        ah_slice text;
        ah_buf *b;

        if (seen[i / 64] >> i % 64 & 1)
            continue;
        text = p->node == NONE ? (ah_slice){NULL, 0} : node_at(c->s, p->node)->fallback;
        if (p->required && (b = schema_begin_fault(c, &at, "required"))) {
            ah_buf_str(b, "is required");
            schema_end_fault(c);
        } else if (!p->required && text.p && c->filling && c->status == AH_OK) {
            schema_add_fill(
                c, (fill){.offset = (size_t)(brace - c->value.p), .name = p->name, .text = text});
        }
    }
}

/* Passes over a member that counts as absent, see ah_check_options; false: it does not. */
static bool leave_out(checker *c, const walk *w, ah_json_token key, ah_json_reader *r, size_t n)
{
    place at = {.up = w->v->at, .key = key.raw, .escaped = key.escaped};
    ah_json_reader behind = *r;
    ah_json_token t = ah_json_next(&behind);
    uint32_t i =
        t.kind == AH_JSON_NULL ? schema_find_prop(c->s, w->o->list, schema_plain(c, key)) : NONE;
    const prop *p = i == NONE ? NULL : prop_at(c->s, i);
    const char *start = key.raw.p - 1;
    subject v = {.t = t, .inside = behind, .at = &at};

    if (!p || p->required || p->node == NONE || schema_fits(c, p->node, &v, NULL))
        return false;
    if (c->filling)
        schema_add_fill(c, (fill){.offset = (size_t)(start - c->value.p),
                                  .dropped = (size_t)(t.raw.p + t.raw.n - start)});
    schema_mark(c, w->v, n);
    *r = behind;
    return true;
}

static void check_members(checker *c, const walk *w, uint64_t *seen)
{
    const op *o = w->o;
    subject *v = w->v;
    ah_json_reader r = v->inside;
    ah_json_token t;
    size_t n = 0, gone = 0;

    for (; (t = ah_json_next(&r)).kind == AH_JSON_KEY; n++) {
        uint32_t i;

        if (!schema_step(c, v->at))
            return;
        if (c->null_absent && leave_out(c, w, t, &r, n)) {
            gone++;
            continue;
        }
        if ((i = check_member(c, w, t, &r, n)) != NONE)
            seen[(i - o->list.first) / 64] |= (uint64_t)1 << (i - o->list.first) % 64;
    }
    v->end = r;
    v->ended = true;
    check_absent(c, o, seen, v, t.raw.p);
    schema_check_limits(c, o, v, n - gone);
}

static void check_object(checker *c, const op *o, subject *v)
{
    uint64_t few[SEEN_INLINE / 64] = {0}, *seen = few;
    bool alone = o->rest == NONE && o->named && c->extra == AH_EXTRA_FORBID && !v->company;
    walk w = {.o = o, .v = v, .closed = alone || is_false(c->s, o->rest)};

    if (v->marks)
        v->marks->named |= o->named;
    if (o->list.n > SEEN_INLINE && !(seen = ah_alloc(c->s->mem, (o->list.n / 64 + 1) * sizeof *seen))) {
        c->status = AH_NOMEM;
        return;
    }
    check_members(c, &w, seen);
    if (seen != few)
        ah_free(c->s->mem, seen);
}

static const struct {
    unsigned types; /* the rule says nothing of values of other types */
    check_fn *check;
} checks[] = {
    [OP_FALSE] = {T_ANY, check_false},
    [OP_CONST] = {T_ANY, schema_check_values},
    [OP_ENUM] = {T_ANY, schema_check_values},
    [OP_MINIMUM] = {T_NUMERIC, schema_check_bound},
    [OP_MAXIMUM] = {T_NUMERIC, schema_check_bound},
    [OP_ABOVE] = {T_NUMERIC, schema_check_bound},
    [OP_BELOW] = {T_NUMERIC, schema_check_bound},
    [OP_MULTIPLE] = {T_NUMERIC, schema_check_multiple},
    [OP_STRING] = {T_STRING, schema_check_string},
    [OP_PATTERN] = {T_STRING, schema_check_pattern},
    [OP_FORMAT] = {T_STRING, schema_check_format},
    [OP_ARRAY] = {T_ARRAY, check_array},
    [OP_UNIQUE] = {T_ARRAY, schema_check_unique},
    [OP_CONTAINS] = {T_ARRAY, schema_check_contains},
    [OP_OBJECT] = {T_OBJECT, check_object},
    [OP_NAMES] = {T_OBJECT, schema_check_names},
    [OP_DEPEND_NAMES] = {T_OBJECT, schema_check_depend_names},
    [OP_DEPEND_SCHEMA] = {T_OBJECT, schema_check_depend_schema},
    [OP_REF] = {T_ANY, schema_check_ref},
    [OP_DYNAMIC_REF] = {T_ANY, schema_check_dynamic_ref},
    [OP_ALL_OF] = {T_ANY, schema_check_all_of},
    [OP_ANY_OF] = {T_ANY, schema_check_any_of},
    [OP_ONE_OF] = {T_ANY, schema_check_one_of},
    [OP_NOT] = {T_ANY, schema_check_not},
    [OP_IF] = {T_ANY, schema_check_if},
    [OP_OTHER_ITEMS] = {T_ARRAY, schema_check_other_items},
    [OP_OTHER_PROPERTIES] = {T_OBJECT, schema_check_other_properties},
};

static unsigned type_of(subject *v)
{
    if (v->t.kind != AH_JSON_NUMBER)
        return schema_type_of_kind(v->t.kind);
    if (!schema_number(v->t.raw, &v->num))
        return T_HUGE;
    return v->num.n.is_int ? T_INTEGER : T_NUMBER;
}

/* A handler that asked for an integer gets one for 3.0, too. */
static void write_as_integer(checker *c, const subject *v)
{
    ah_slice raw = v->t.raw;

    if (memchr(raw.p, '.', raw.n) || memchr(raw.p, 'e', raw.n) || memchr(raw.p, 'E', raw.n) ||
        ah_slice_is(raw, "-0"))
        schema_add_fill(c, (fill){.offset = (size_t)(raw.p - c->value.p), .number = raw.n});
}

static void check_ops(checker *c, const node *n, subject *v)
{
    size_t from = c->fills.n;
    const op *o;

    if (c->filling && v->type == T_INTEGER && !(n->types & T_NUMBER))
        write_as_integer(c, v);
    for (uint32_t i = n->first; i != NONE && c->status == AH_OK && !c->stopped; i = o->next) {
        size_t mid = c->fills.n;

        o = op_at(c->s, i);
        if (checks[o->code].types & v->type)
            checks[o->code].check(c, o, v);
        schema_merge_part(c, from, mid);
    }
}

/* Node i with the members or items it evaluates kept book of, where that is asked for. */
static void check_marked(checker *c, uint32_t i, subject *v)
{
    const node *n = node_at(c->s, i);
    bool closes = c->extra == AH_EXTRA_FORBID && n->composed && !v->company && v->type == T_OBJECT;
    marks own = {0}, *outer = v->marks;

    v->company |= closes || n->others;
    if (closes || n->others)
        v->marks = &own;
    check_ops(c, n, v);
    if (closes && own.named)
        schema_forbid_unknown(c, i, v);
    v->marks = outer;
    if (outer && (closes || n->others))
        schema_marks_add(c, outer, &own);
    schema_marks_clear(c, &own);
}

static bool is_anything(const node *n)
{
    return n->types == T_ANY && n->first == NONE;
}

static void check_node(checker *c, uint32_t i, subject *v)
{
    const node *n = node_at(c->s, i);
    scope here = {.up = c->scope, .resource = n->resource};

    if (is_anything(n))
        return;
    if (!schema_step(c, v->at))
        return;
    if (c->depth == CHECK_DEPTH) {
        schema_stop(c, v->at, "$ref", "cannot be checked: the schema leads too deep (2048 schemas)");
        return;
    }
    if (!v->type)
        v->type = type_of(v);
    v->node = i;
    if (!c->scope || c->scope->resource != n->resource)
        c->scope = &here;
    c->depth++;
    if (!(n->types & v->type))
        schema_fault_type(c, v, n->types, "type");
    else if (v->marks || n->others || n->composed)
        check_marked(c, i, v);
    else
        check_ops(c, n, v);
    c->depth--;
    if (c->scope == &here)
        c->scope = here.up;
}

void schema_check_value(checker *c, uint32_t i, ah_json_token t, ah_json_reader *r, const place *at)
{
    subject v;

    if (is_anything(node_at(c->s, i))) {
        ah_json_skip(r, t);
        return;
    }
    v.t = t; /* not all at once: most of it is set when it is needed */
    v.inside = *r;
    v.at = at;
    v.ended = v.company = false;
    v.type = 0;
    v.marks = NULL;
    check_node(c, i, &v);
    if (v.ended)
        *r = v.end;
    else
        ah_json_skip(r, t);
}

void schema_check_in_place(checker *c, uint32_t i, subject *v, marks *m)
{
    subject w = *v;

    w.marks = m;
    check_node(c, i, &w);
    if (w.ended) {
        v->end = w.end;
        v->ended = true;
    }
}

static ah_status put_result(const checker *c, ah_buf *out)
{
    size_t start = out->len;

    schema_put_filled(c, out);
    if (!ah_buf_ok(out) || (c->fills.n == 0 && !c->edited))
        return out->status;
    return schema_is_too_deep((ah_slice){out->data + start, out->len - start}) ? AH_BUDGET : AH_OK;
}

static ah_status finish(checker *c, ah_buf *with_defaults)
{
    schema_sort_faults(c);
    if (c->status == AH_OK && c->edits.n == 0 && with_defaults && !c->faults->n)
        c->status = put_result(c, with_defaults);
    ah_free(c->s->mem, c->fills.at);
    ah_buf_clear(&c->scratch);
    return c->status;
}

/* One pass over the text. The caller frees c->edits. */
static ah_status pass(checker *c, uint32_t i, ah_slice text, ah_buf *with_defaults)
{
    ah_json_reader r = ah_json_read(text);

    c->value = text;
    c->filling = with_defaults != NULL;
    c->faults->n = c->faults->total = 0;
    ah_buf_reset(&c->faults->texts, 0);
    if (with_defaults)
        c->fill_max = with_defaults->max - with_defaults->len;
    /* canonical text is longer than its source only in numbers (1e20) */
    ah_buf_init(&c->scratch, c->s->mem, text.n > SIZE_MAX / 64 ? SIZE_MAX : text.n * 32 + 64);
    schema_check_value(c, i, ah_json_next(&r), &r, NULL);
    return finish(c, with_defaults);
}

ah_status schema_run(const ah_schema *s, uint32_t i, ah_slice text, ah_extra extra, ah_faults *faults,
                     ah_buf *with_defaults)
{
    checker c = {.s = s, .extra = extra, .faults = faults};

    return pass(&c, i, text, with_defaults);
}

ah_status ah_schema_check(const ah_schema *s, ah_slice text, ah_extra extra, ah_faults *faults,
                          ah_buf *with_defaults)
{
    return schema_run(s, 0, text, extra, faults, with_defaults);
}

/* Passes until nothing is left to coerce: what one changed, the next one checks. The last
 * one only checks. */
ah_status ah_schema_check_with(const ah_schema *s, ah_slice text, const ah_check_options *o,
                               ah_faults *faults, ah_buf *with_defaults)
{
    enum { PASSES = 8 };
    ah_buf now, before;
    ah_status st = AH_OK;
    bool again = o->coerce || o->empty_lists, edited = false;

    if (again && !o->coerce) { /* seldom needed */
        st = schema_run(s, 0, text, o->extra, faults, with_defaults);
        if (st != AH_OK || faults->n == 0)
            return st;
    }

    ah_buf_init(&now, s->mem, with_defaults ? with_defaults->max : text.n);
    ah_buf_init(&before, s->mem, now.max);
    for (int i = 0; again && i < PASSES && st == AH_OK; i++) {
        checker c = {.s = s,
                     .extra = o->extra,
                     .faults = faults,
                     .coercing = true,
                     .only_lists = !o->coerce,
                     .null_absent = o->null_absent,
                     .coerced = o->coerced};

        if ((st = pass(&c, 0, text, NULL)) == AH_OK && (again = c.edits.n > 0)) {
            ah_buf kept = before;

            before = now;
            now = kept;
            ah_buf_reset(&now, 0);
            schema_put_edited(&c, &now);
            text = ah_buf_slice(&now);
            st = now.status;
            edited = true;
        }
        ah_free(s->mem, c.edits.at);
    }
    if (st == AH_OK) {
        checker c = {.s = s,
                     .extra = o->extra,
                     .faults = faults,
                     .null_absent = o->null_absent,
                     .edited = edited};

        st = pass(&c, 0, text, with_defaults);
    }
    ah_buf_clear(&now);
    ah_buf_clear(&before);
    return st;
}
