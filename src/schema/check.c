/* The checker: walks a value's text beside the program and reports faults. This file has the walk
 * and the rules of lists and objects. Rules of scalars are in scalar.c, those of schemas in place
 * in apply.c and branch.c, and the reporting of faults in fault.c.
 *
 * A new rule is a line in `checks`. */
#include "schema/checker.h"

enum {
    SEEN_INLINE = 128, /* properties of an object marked without allocation */
    FIRST_BLOCK = 4096 /* bytes of frames without allocation */
};

ah_slice schema_value_text(const subject *v)
{
    ah_json_reader r = v->inside;

    return ah_json_skip(&r, v->t);
}

void schema_stop(checker *c, const place *at, const char *rule, const char *words, ah_slice what)
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
        if (what.p)
            schema_put_found(b, what);
        schema_end_fault(c);
    }
    c->silent = silent;
    c->stopped = true;
}

void schema_stop_work(checker *c, const place *at, const char *rule, ah_slice pattern)
{
    static const char *const words[][2] = {
        {"takes more steps to check than are allowed",
         "takes more steps to check than are allowed; it was matched with the pattern "},
        {"could not be checked to the end: the time for it is over",
         "could not be checked to the end: the time for it is over; it was matched with the "
         "pattern "}};
    bool interrupted = c->work->end == AH_WORK_STOPPED;

    schema_stop(c, at, rule, words[interrupted][pattern.p != NULL], pattern);
    if (interrupted && c->status == AH_OK)
        c->status = AH_CANCELLED;
}

void schema_skip_rest(checker *c, ah_json_reader *r, ah_json_token t)
{
    ah_slice text = ah_json_skip(r, t);

    if (text.n >= STEP_BYTES)
        schema_spend(c, NULL, text.n / STEP_BYTES);
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

typedef struct array_walk {
    frame f;
    const op *o;
    subject *v;
    ah_json_reader r;
    size_t n;
    place at;
} array_walk;

static void end_array(checker *c, const array_walk *w)
{
    w->v->end = w->r;
    w->v->ended = true;
    if (w->n < w->o->min || w->n > w->o->max)
        schema_check_limits(c, w->o, w->v, w->n);
    schema_pop(c);
}

/* Items that a prefix or "items" covers are evaluated. */
static void step_array(checker *c, frame *f)
{
    array_walk *w = (array_walk *)(void *)f;
    const op *o = w->o;

    do {
        ah_json_token t = ah_json_next(&w->r);
        uint32_t i = w->n < o->list.n ? link_at(c->s, o->list.first + w->n) : o->rest;

        if (t.kind == AH_JSON_ARRAY_END) {
            end_array(c, w);
        } else if (!schema_step(c, w->v->at)) {
            schema_pop(c);
        } else {
            w->at.index = w->n++;
            if (i != NONE && w->v->marks)
                schema_mark(c, w->v, w->at.index);
            if (i == NONE)
                schema_skip(c, &w->r, t);
            else
                schema_check_value(c, i, t, &w->r, &w->at);
        }
    } while (c->top == f);
}

static void check_array(checker *c, const op *o, subject *v)
{
    array_walk *w = schema_push(c, sizeof *w, step_array);

    if (!w)
        return;
    w->o = o;
    w->v = v;
    w->r = v->inside;
    w->n = 0;
    w->at = (place){.up = v->at};
}

/* Objects */

static bool is_false(const ah_schema *s, uint32_t i)
{
    return i != NONE && node_at(s, i)->first != NONE &&
           op_at(s, node_at(s, i)->first)->code == OP_FALSE;
}

typedef struct names {
    ah_near near;
    ah_slice listed[SCHEMA_LISTED];
    size_t n, more;
    bool itself; /* named, but by a schema that did not fit */
    size_t left; /* schemas and names still to examine: schemas in place may be without end */
} names;

static void add_name(names *k, ah_slice name)
{
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

static void add_members(names *k, const ah_schema *s, range in)
{
    for (size_t i = in.first; i < (size_t)in.first + in.n && k->left; i++, k->left--)
        if (prop_at(s, i)->node != NONE)
            add_name(k, prop_at(s, i)->name);
}

/* Adds the names for which node i, and schemas in its place, have properties. */
static void add_names(names *k, const ah_schema *s, uint32_t i, int depth)
{
    enum { DEEP = 8 };

    for (uint32_t o = depth < DEEP && k->left ? node_at(s, i)->first : NONE; o != NONE;
         o = op_at(s, o)->next) {
        const op *p = op_at(s, o);

        k->left -= k->left > 0;
        if (p->code == OP_OBJECT)
            add_members(k, s, p->list);
        if (p->code == OP_ALL_OF || p->code == OP_ANY_OF || p->code == OP_ONE_OF)
            for (size_t n = 0; n < p->list.n && k->left; n++)
                add_names(k, s, link_at(s, p->list.first + n), depth + 1);
        if (p->code == OP_REF || p->code == OP_DYNAMIC_REF)
            add_names(k, s, p->rest, depth + 1);
        for (size_t n = 0; p->code == OP_DEPEND_SCHEMAS && n < p->patterns.n && k->left; n++)
            add_names(k, s, link_at(s, p->patterns.first + n), depth + 1);
        if (p->code == OP_IF && p->yes != NONE)
            add_names(k, s, p->yes, depth + 1);
        if (p->code == OP_IF && p->no != NONE)
            add_names(k, s, p->no, depth + 1);
    }
}

void schema_fault_unknown(checker *c, uint32_t i, ah_slice name, const place *at, const char *rule)
{
    enum { LOOKS = 4000, STEPS_A_LOOK = 40 };
    names known = {.near = {.to = name}, .left = LOOKS};
    ah_buf *b = schema_begin_fault(c, at, rule);

    if (!b)
        return;
    add_names(&known, c->s, i, 0);
    if (known.itself)
        known.near.best.p = NULL;
    ah_buf_str(b, known.itself ? "does not belong here with this value or beside these members"
                               : "unknown property");
    schema_put_near(b, &known.near);
    for (size_t k = 0; k < known.n; k++) {
        ah_buf_str(b, k ? ", " : known.near.best.p ? " known: " : "; known: ");
        schema_put_found(b, known.listed[k]);
    }
    schema_end_list(b, known.n + known.more);
    if (!known.n)
        ah_buf_str(b, "; none are known here");
    schema_end_fault(c);
    schema_spend(c, at, (LOOKS - known.left) * STEPS_A_LOOK);
}

ah_slice schema_unescape(checker *c, ah_slice raw)
{
    schema_spend(c, NULL, raw.n / STEP_DIGITS);
    ah_buf_reset(&c->scratch, 0);
    ah_json_unescape(raw, &c->scratch);
    if (!ah_buf_ok(&c->scratch))
        c->status = c->scratch.status;
    return ah_buf_slice(&c->scratch);
}

/* An object under an OP_OBJECT. */
typedef struct object_walk object_walk;
struct object_walk {
    frame f;
    const op *o;
    subject *v;
    bool closed;                              /* unnamed members are faults */
    bool known;                               /* some rule applies to the current member */
    void (*next)(checker *c, object_walk *w); /* what the next step does; NULL: the next member */
    ah_json_reader r;                         /* after the key, then after the value */
    ah_json_reader inside, copy; /* after the value's token; a copy of it for a pattern */
    ah_json_token t;             /* token of the current member's value */
    place at;                    /* place of the member, with its key */
    uint32_t prop;               /* its prop, or NONE */
    size_t pattern;              /* the pattern to try next */
    size_t n, gone;   /* number of members so far; number of those that count as missing */
    size_t from, mid; /* fills: start of the member's; start of the current ones */
    trial trial;      /* of a null that may count as missing */
    uint64_t few[SEEN_INLINE / 64], *seen;
};

static inline ah_slice name_of(checker *c, const object_walk *w)
{
    return schema_plain(c, w->at.key, w->at.escaped);
}

/* The last step for a member whose token is t: its value is checked against its own node, or the
 * node of members without one. */
static inline void check_named(checker *c, object_walk *w, ah_json_token t)
{
    size_t i = w->prop - w->o->list.first;
    uint32_t by = NONE;

    if (w->prop != NONE) {
        by = prop_at(c->s, w->prop)->node;
        w->seen[i / 64] |= (uint64_t)1 << i % 64;
    }
    if (!w->known && w->closed)
        schema_fault_unknown(c, w->v->node, name_of(c, w), &w->at, "additionalProperties");
    else if (!w->known)
        by = w->o->rest;
    if (w->v->marks && (w->known || by != NONE))
        schema_mark(c, w->v, w->n);
    w->n++;
    if (by == NONE)
        schema_skip(c, &w->r, t);
    else
        schema_check_value(c, by, t, &w->r, &w->at);
}

/* Called after patterns have added fills. */
static void end_member(checker *c, object_walk *w)
{
    schema_merge_part(c, w->from, w->mid);
    w->next = NULL;
}

static bool has_pattern(checker *c, const object_walk *w, size_t pair)
{
    ah_slice name = name_of(c, w);
    ah_match found = ah_pattern_match(pattern_at(c->s, link_at(c->s, pair)), name, c->work);

    if (found == AH_MATCH_LIMIT)
        schema_stop(c, &w->at, "patternProperties",
                    "has a name that could not be matched within the limits with the pattern ",
                    ah_pattern_text(pattern_at(c->s, link_at(c->s, pair))));
    if (found == AH_MATCH_ENDED)
        schema_stop_work(c, &w->at, "patternProperties",
                         ah_pattern_text(pattern_at(c->s, link_at(c->s, pair))));
    if (found == AH_MATCH_NOMEM)
        c->status = AH_NOMEM;
    return found == AH_MATCH_YES;
}

/* Checks the value against the schema of each pattern that matches the name. */
static void check_patterns(checker *c, object_walk *w)
{
    schema_merge_part(c, w->from, w->mid);
    while (w->pattern < w->o->patterns.n && schema_step(c, &w->at)) {
        size_t pair = w->o->patterns.first + 2 * w->pattern++;

        if (!has_pattern(c, w, pair))
            continue;
        w->known = true;
        w->copy = w->inside;
        w->mid = c->fills.n;
        schema_check_value(c, link_at(c->s, pair + 1), w->t, &w->copy, &w->at);
        if (c->top != &w->f)
            return;
        schema_merge_part(c, w->from, w->mid);
    }
    w->mid = c->fills.n;
    w->next = end_member;
    w->r = w->inside;
    check_named(c, w, w->t);
}

static void check_matched(checker *c, object_walk *w)
{
    w->inside = w->r;
    w->t = ah_json_next(&w->inside);
    w->from = w->mid = c->fills.n;
    w->pattern = 0;
    w->next = check_patterns;
    check_patterns(c, w);
}

static inline void check_member(checker *c, object_walk *w)
{
    w->known = w->prop != NONE && prop_at(c->s, w->prop)->node != NONE;
    if (w->o->patterns.n)
        check_matched(c, w);
    else
        check_named(c, w, ah_json_next(&w->r));
}

/* Reports missing required members; adds the defaults of others before the closing brace. */
static void check_absent(checker *c, const object_walk *w, const char *brace)
{
    const op *o = w->o;
    const uint64_t *seen = w->seen;
    const subject *v = w->v;

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
            if (!w->closed) /* otherwise it is reported as unknown */
                schema_put_misspelt(c, b, v, o->list, p->name);
            schema_end_fault(c);
        } else if (!p->required && text.p && c->filling && c->status == AH_OK) {
            schema_add_fill(
                c, (fill){.offset = (size_t)(brace - c->value.p), .name = p->name, .text = text});
        }
    }
}

/* Drops a null that does not fit its schema; one that fits is checked as any other member. */
static void end_lost(checker *c, object_walk *w)
{
    const char *start = w->at.key.p - 1;
    bool fits = schema_end_trial(c, &w->trial) == 0;

    w->next = NULL;
    if (fits) {
        check_member(c, w);
        return;
    }
    if (c->filling)
        schema_add_fill(c, (fill){.offset = (size_t)(start - c->value.p),
                                  .dropped = (size_t)(w->t.raw.p + w->t.raw.n - start)});
    schema_mark(c, w->v, w->n++);
    w->r = w->inside;
    w->gone++;
}

/* True for a member that may count as missing, see ah_check_options. */
static bool may_be_lost(const checker *c, object_walk *w)
{
    const prop *p = w->prop == NONE ? NULL : prop_at(c->s, w->prop);

    w->inside = w->r;
    w->t = ah_json_next(&w->inside);
    return w->t.kind == AH_JSON_NULL && p && !p->required && p->node != NONE;
}

typedef struct lost_walk {
    frame f;
    subject v;
} lost_walk;

/* Tries the null. */
static void step_lost(checker *c, frame *f)
{
    (void)f;
    schema_pop(c);
}

static void try_lost(checker *c, object_walk *w)
{
    lost_walk *l = schema_push(c, sizeof *l, step_lost);

    if (!l)
        return;
    l->v = (subject){.t = w->t, .inside = w->inside, .at = &w->at};
    w->next = end_lost;
    schema_begin_trial(c, &w->trial);
    c->filling = false;
    schema_check_in_place(c, prop_at(c->s, w->prop)->node, &l->v, NULL);
}

static void end_object(checker *c, object_walk *w, ah_json_token brace)
{
    w->v->end = w->r;
    w->v->ended = true;
    if (w->o->list.n >= STEP_ITEMS)
        schema_spend(c, w->v->at, w->o->list.n / STEP_ITEMS);
    check_absent(c, w, brace.raw.p);
    if (w->n - w->gone < w->o->min || w->n - w->gone > w->o->max)
        schema_check_limits(c, w->o, w->v, w->n - w->gone);
}

static void leave_object(checker *c, object_walk *w)
{
    if (w->seen != w->few)
        ah_free(c->s->mem, w->seen);
    schema_pop(c);
}

static inline void next_member(checker *c, object_walk *w)
{
    ah_json_token key = ah_json_next(&w->r);

    if (!schema_step(c, w->v->at)) {
        leave_object(c, w);
        return;
    }
    if (key.kind != AH_JSON_KEY) {
        end_object(c, w, key);
        leave_object(c, w);
        return;
    }
    w->at.key = key.raw;
    w->at.escaped = key.escaped;
    w->prop = schema_find_prop(c->s, w->o->list, name_of(c, w));
    if (c->null_absent && may_be_lost(c, w))
        try_lost(c, w);
    else
        check_member(c, w);
}

static void step_object(checker *c, frame *f)
{
    object_walk *w = (object_walk *)(void *)f;

    do {
        if (w->next)
            w->next(c, w);
        else
            next_member(c, w);
    } while (c->top == f);
}

static void check_object(checker *c, const op *o, subject *v)
{
    bool alone = o->rest == NONE && o->named && c->extra == AH_EXTRA_FORBID && !v->company;
    object_walk *w = schema_push(c, sizeof *w, step_object);

    if (!w)
        return;
    w->o = o;
    w->v = v;
    w->closed = alone || is_false(c->s, o->rest);
    w->next = NULL;
    w->r = v->inside;
    w->at.up = v->at;
    w->n = w->gone = 0;
    memset(w->few, 0, sizeof w->few);
    w->seen = w->few;
    if (v->marks)
        v->marks->named |= o->named;
    if (o->list.n > SEEN_INLINE &&
        (!schema_spend(c, v->at, o->list.n / STEP_ITEMS) ||
         !(w->seen = ah_alloc(c->s->mem, (o->list.n / 64 + 1) * sizeof *w->seen)))) {
        c->status = c->stopped ? c->status : AH_NOMEM;
        schema_pop(c);
        return;
    }
}

static const struct {
    unsigned types; /* types that the rule applies to */
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
    [OP_DEPEND_SCHEMAS] = {T_OBJECT, schema_check_depend_schemas},
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

static unsigned type_of_number(checker *c, subject *v)
{
    if (v->t.raw.n >= STEP_BYTES)
        schema_spend(c, v->at, v->t.raw.n / STEP_DIGITS);
    if (!schema_number(v->t.raw, &v->num))
        return T_HUGE;
    return v->num.n.is_int ? T_INTEGER : T_NUMBER;
}

/* Writes 3.0 as an integer, for handlers that asked for one. */
static void write_as_integer(checker *c, const subject *v)
{
    ah_slice raw = v->t.raw;

    if (memchr(raw.p, '.', raw.n) || memchr(raw.p, 'e', raw.n) || memchr(raw.p, 'E', raw.n) ||
        ah_slice_is(raw, "-0"))
        schema_add_fill(c, (fill){.offset = (size_t)(raw.p - c->value.p), .number = raw.n});
}

/* Begins node i; false if nothing more is to do. */
static inline __attribute__((always_inline)) bool enter(checker *c, uint32_t i, subject *v)
{
    const node *n = node_at(c->s, i);

    if (!schema_step(c, v->at))
        return false;
    if (c->depth == CHECK_DEPTH) {
        schema_stop(c, v->at, "$ref",
                    "cannot be checked: the schema leads too deep (32768 schemas)",
                    (ah_slice){NULL, 0});
        return false;
    }
    if (!v->type)
        v->type =
            v->t.kind == AH_JSON_NUMBER ? type_of_number(c, v) : schema_type_of_kind(v->t.kind);
    v->node = i;
    if (!(n->types & v->type))
        schema_fault_type(c, v, n->types, "type");
    else if (c->filling && v->type == T_INTEGER && !(n->types & T_NUMBER))
        write_as_integer(c, v);
    return n->types & v->type;
}

/* Checks the rules of a node that concern the value alone. */
static inline __attribute__((always_inline)) void check_plain(checker *c, uint32_t i, subject *v)
{
    const op *o;

    if (!enter(c, i, v))
        return;
    for (uint32_t k = node_at(c->s, i)->first; k != NONE && c->status == AH_OK && !c->stopped;
         k = o->next) {
        o = op_at(c->s, k);
        if (checks[o->code].types & v->type)
            checks[o->code].check(c, o, v);
    }
}

/* A node in progress. */
typedef struct visit {
    frame f;
    subject v;
    subject *back;     /* subject that v copies; NULL: none, */
    ah_json_reader *r; /* then this reader moves past the value */
    scope here;
    uint32_t op;       /* next rule */
    bool keeps;        /* records the members or items that it evaluates */
    bool closes;       /* reports those that no rule evaluates */
    marks own, *outer; /* records, if `keeps` */
    size_t from, mid;  /* fills: start of the node's; start of the current rule's */
} visit;

static inline void end_visit(checker *c, visit *w)
{
    if (!w->back && w->v.ended)
        *w->r = w->v.end;
    else if (!w->back)
        schema_skip(c, w->r, w->v.t);
    else if (w->v.ended)
        w->back->end = w->v.end;
    if (w->back)
        w->back->ended |= w->v.ended;
    schema_pop(c);
}

static void leave(checker *c, visit *w)
{
    if (w->keeps) {
        if (w->closes && w->own.named)
            schema_forbid_unknown(c, w->v.node, &w->v);
        if (w->outer)
            schema_marks_add(c, w->outer, &w->own);
        schema_marks_clear(c, &w->own);
    }
    c->depth--;
    if (c->scope == &w->here)
        schema_leave_scope(c);
    end_visit(c, w);
}

static void step_visit(checker *c, frame *f)
{
    visit *w = (visit *)(void *)f;

    schema_merge_part(c, w->from, w->mid);
    while (w->op != NONE && c->status == AH_OK && !c->stopped) {
        const op *o = op_at(c->s, w->op);

        w->op = o->next;
        if (!(checks[o->code].types & w->v.type))
            continue;
        w->mid = c->fills.n;
        checks[o->code].check(c, o, &w->v);
        if (c->top != f)
            return;
        schema_merge_part(c, w->from, w->mid);
    }
    leave(c, w);
}

/* Prepares records of the members or items that node i evaluates, if needed. */
static void keep_book(checker *c, const node *n, visit *w)
{
    w->closes =
        c->extra == AH_EXTRA_FORBID && n->composed && !w->v.company && w->v.type == T_OBJECT;
    w->keeps = w->closes || n->others;
    w->v.company |= w->keeps;
    w->outer = w->v.marks;
    if (!w->keeps)
        return;
    w->own = (marks){0};
    w->v.marks = &w->own;
}

/* False: the node is done. */
static inline bool begin_visit(checker *c, uint32_t i, visit *w)
{
    const node *n = node_at(c->s, i);

    w->from = w->mid = c->fills.n;
    w->op = n->first;
    w->keeps = w->closes = false;
    if (!enter(c, i, &w->v)) {
        end_visit(c, w);
        return false;
    }
    if (c->entered)
        schema_enter_scope(c, n->resource, &w->here);
    c->depth++;
    if (w->v.marks || n->others || n->composed)
        keep_book(c, n, w);
    return true;
}

uint32_t schema_outermost(const checker *c, const place *at)
{
    uint32_t found = NONE;

    for (const frame *f = c->top; f; f = f->below) {
        const visit *w = (const visit *)(const void *)f;

        if (f->step == step_visit && w->v.at == at)
            found = w->v.node;
    }
    return found;
}

static void begin_subject(subject *v, ah_json_token t, const ah_json_reader *r, const place *at)
{
    v->t = t; /* sets single fields only: most others are set when they are needed */
    v->inside = *r;
    v->at = at;
    v->ended = v->company = false;
    v->type = 0;
    v->marks = NULL;
}

static uint32_t target_of(const checker *c, uint32_t alias)
{
    return op_at(c->s, node_at(c->s, alias)->first)->rest;
}

void schema_check_value(checker *c, uint32_t i, ah_json_token t, ah_json_reader *r, const place *at)
{
    node_kind kind = node_at(c->s, i)->kind;
    subject v;
    visit *w;

    if (kind == NODE_ALIAS) {
        i = target_of(c, i);
        kind = node_at(c->s, i)->kind;
    }
    if (kind == NODE_PLAIN) {
        begin_subject(&v, t, r, at);
        check_plain(c, i, &v);
    }
    if (kind <= NODE_PLAIN) {
        schema_skip(c, r, t);
    } else if ((w = schema_push(c, sizeof *w, step_visit))) {
        begin_subject(&w->v, t, r, at);
        w->back = NULL;
        w->r = r;
        if (begin_visit(c, i, w)) /* this steps no other frame; pushed frames wait */
            step_visit(c, &w->f);
    }
}

void schema_check_in_place(checker *c, uint32_t i, subject *v, marks *m)
{
    node_kind kind = node_at(c->s, i)->kind;
    uint32_t outer = v->node;
    visit *w;

    if (kind == NODE_ALIAS) {
        i = target_of(c, i);
        kind = node_at(c->s, i)->kind;
    }
    if (kind == NODE_PLAIN) {
        check_plain(c, i, v);
        v->node = outer;
    } else if (kind > NODE_PLAIN && (w = schema_push(c, sizeof *w, step_visit))) {
        w->v = *v;
        w->v.marks = m;
        w->back = v;
        begin_visit(c, i, w);
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
    ah_pattern_free(c->names);
    ah_free(c->s->mem, c->recalled.at);
    ah_buf_clear(&c->scratch);
    return c->status;
}

/* One pass over the text. The caller frees c->edits. */
static ah_status pass(checker *c, uint32_t i, ah_slice text, ah_buf *with_defaults)
{
    alignas(max_align_t) char first[FIRST_BLOCK];
    ah_json_reader r = ah_json_read(text);

    c->value = text;
    c->filling = with_defaults != NULL;
    c->faults->n = c->faults->total = 0;
    ah_buf_reset(&c->faults->texts, 0);
    if (with_defaults)
        c->fill_max = with_defaults->max - with_defaults->len;
    /* canonical text is longer than its source only for numbers (1e20) */
    ah_buf_init(&c->scratch, c->s->mem, text.n > SIZE_MAX / 64 ? SIZE_MAX : text.n * 32 + 64);
    schema_first_block(c, first, sizeof first);
    if (schema_begin_scopes(c))
        schema_check_value(c, i, ah_json_next(&r), &r, NULL);
    schema_drain(c);
    schema_end_scopes(c);
    schema_free_frames(c);
    return finish(c, with_defaults);
}

ah_status schema_run(const ah_schema *s, uint32_t i, ah_slice text, ah_work *work,
                     ah_faults *faults, ah_buf *with_defaults)
{
    checker c = {.s = s, .extra = AH_EXTRA_SCHEMA, .faults = faults, .work = work};

    return pass(&c, i, text, with_defaults);
}

static ah_status check_once(const ah_schema *s, ah_slice text, const ah_check_options *o,
                            ah_work *work, bool edited, ah_faults *faults, ah_buf *with_defaults)
{
    checker c = {.s = s,
                 .extra = o->extra,
                 .faults = faults,
                 .null_absent = o->null_absent,
                 .edited = edited,
                 .work = work};

    return pass(&c, 0, text, with_defaults);
}

ah_status ah_schema_check(const ah_schema *s, ah_slice text, ah_extra extra, ah_faults *faults,
                          ah_buf *with_defaults)
{
    return ah_schema_check_with(s, text, &(ah_check_options){.extra = extra}, faults,
                                with_defaults);
}

/* A text that is coerced in passes: each pass checks the changes of the one before. */
typedef struct coercion {
    ah_slice text;
    ah_buf now, before; /* text of this pass, and of the last one */
    bool edited;
} coercion;

/* One pass; *again: it changed the text. */
static ah_status coerce(const ah_schema *s, coercion *k, const ah_check_options *o, ah_work *work,
                        ah_faults *faults, bool *again)
{
    checker c = {.s = s,
                 .extra = o->extra,
                 .faults = faults,
                 .coercing = true,
                 .only_lists = !o->coerce,
                 .null_absent = o->null_absent,
                 .coerced = o->coerced,
                 .work = work};
    ah_status st = pass(&c, 0, k->text, NULL);

    *again = c.edits.n > 0;
    if (st == AH_OK && *again) {
        ah_buf kept = k->before;

        k->before = k->now;
        k->now = kept;
        ah_buf_reset(&k->now, 0);
        schema_put_edited(&c, &k->now);
        k->text = ah_buf_slice(&k->now);
        k->edited = true;
        st = k->now.status;
    }
    ah_free(s->mem, c.edits.at);
    return st;
}

/* Repeats passes until nothing is left to coerce; the last one only checks. All of them are one
 * work. */
static ah_status check_coerced(const ah_schema *s, ah_slice text, const ah_check_options *o,
                               ah_work *work, ah_faults *faults, ah_buf *with_defaults)
{
    enum { PASSES = 8 };
    coercion k = {.text = text};
    ah_status st = AH_OK;
    bool again = true;

    ah_buf_init(&k.now, s->mem, with_defaults ? with_defaults->max : text.n);
    ah_buf_init(&k.before, s->mem, k.now.max);
    for (int i = 0; again && i < PASSES && st == AH_OK; i++)
        st = coerce(s, &k, o, work, faults, &again);
    if (st == AH_OK)
        st = check_once(s, k.text, o, work, k.edited, faults, with_defaults);
    ah_buf_clear(&k.now);
    ah_buf_clear(&k.before);
    return st;
}

ah_status ah_schema_check_with(const ah_schema *s, ah_slice text, const ah_check_options *o,
                               ah_faults *faults, ah_buf *with_defaults)
{
    ah_work work = ah_work_of(SCHEMA_STEPS, o->interrupt);
    ah_status st;

    if (!o->coerce) { /* empty objects for lists are rare */
        st = check_once(s, text, o, &work, false, faults, with_defaults);
        if (st != AH_OK || faults->n == 0 || !o->empty_lists || work.end != AH_WORK_GOES_ON)
            return st;
    }
    return check_coerced(s, text, o, &work, faults, with_defaults);
}
