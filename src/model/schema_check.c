/* Checking a value against a schema's program: by walking the value's text with
 * ah_json_reader beside the program, without a tree; recursion goes no deeper than
 * the schema. On the way it counts and tells the faults, and notes the defaults to
 * fill in. Nothing of the schema is changed; what a keyword may say is in schema.c. */
#include "model/schema.h"

#include "model/schema_faults.h"
#include "model/schema_program.h"

enum {
    MAX_LISTED = 12,  /* values or names in a message */
    SEEN_INLINE = 128 /* properties of one object marked without memory */
};

#define TWO_63 9223372036854775808.0

bool ah_schema_number(ah_slice literal, ah_json_num *num)
{
    if (!ah_json_number(literal, num))
        return false;
    if (!num->is_int && num->d >= -TWO_63 && num->d < TWO_63 && (double)(int64_t)num->d == num->d) {
        num->is_int = true;
        num->i = (int64_t)num->d;
    }
    return true;
}

static int compare_int_double(int64_t i, double d)
{
    int64_t whole;

    if (d >= TWO_63)
        return -1;
    if (d < -TWO_63)
        return 1;
    whole = (int64_t)d;
    if (i != whole)
        return i < whole ? -1 : 1;
    return (d < (double)whole) - (d > (double)whole);
}

static int compare_numbers(ah_json_num a, ah_json_num b)
{
    if (a.is_int && b.is_int)
        return (a.i > b.i) - (a.i < b.i);
    if (a.is_int)
        return compare_int_double(a.i, b.d);
    if (b.is_int)
        return -compare_int_double(b.i, a.d);
    return (a.d > b.d) - (a.d < b.d);
}

/* A double of 2^63 and more is m * 2^e: exact, and no longer than its exponent. */
static bool is_big_multiple(double d, uint64_t of)
{
    int e = 0;
    uint64_t r;

    for (d = d < 0 ? -d : d; d >= TWO_63; d /= 2)
        e++;
    for (r = (uint64_t)d % of; e > 0; e--)
        r = r * 2 % of;
    return r == 0;
}

static bool is_multiple(ah_json_num n, int64_t of)
{
    if (n.is_int)
        return n.i % of == 0;
    return (n.d >= TWO_63 || n.d < -TWO_63) && is_big_multiple(n.d, (uint64_t)of);
}

/* A default to insert before value[offset]. */
typedef struct fill {
    size_t offset;
    ah_slice name, text;
    bool first; /* nothing stands before it in its object */
} fill;

typedef struct checker {
    const ah_schema *s;
    ah_slice value;
    ah_extra extra;
    ah_faults *faults;
    size_t distance; /* faults so far, the silent ones too */
    int silent;      /* above 0: faults are counted, not told */
    bool filling;
    fill *fills; /* by offset, then by name */
    size_t n_fills, cap_fills;
    size_t filled, fill_max; /* bytes */
    ah_buf scratch;          /* an unescaped key, or a canonical value: never both in use */
    ah_status status;
} checker;

/* A value under check. */
typedef struct subject {
    ah_json_token t;
    ah_json_reader inside; /* just behind t */
    ah_json_reader end;    /* behind the value, once `ended` */
    bool ended;
    unsigned type;
    ah_json_num num;
    const place *at;
} subject;

static ah_slice text_of(const subject *v)
{
    ah_json_reader r = v->inside;

    return ah_json_skip(&r, v->t);
}

/* ah_fault_begin, where a fault is to be told and not only counted. */
static ah_buf *begin_fault(checker *c, const place *at, const char *rule)
{
    ah_buf *b;

    c->distance++;
    if (c->silent)
        return NULL;
    b = ah_fault_begin(c->faults, at, rule);
    if (!ah_buf_ok(&c->faults->texts))
        c->status = c->faults->texts.status;
    return b;
}

static void end_found(checker *c, ah_buf *b, const subject *v)
{
    ah_buf_str(b, ", found ");
    ah_words_found(b, text_of(v));
    ah_fault_end(c->faults);
}

/* A fault whose words are only text and the value. */
static void fault_found(checker *c, const subject *v, const char *rule, const char *words)
{
    ah_buf *b = begin_fault(c, v->at, rule);

    if (!b)
        return;
    ah_buf_str(b, words);
    end_found(c, b, v);
}

static void fault_type(checker *c, const subject *v, unsigned types, const char *rule)
{
    bool whole = types & T_INTEGER && !(types & T_NUMBER);
    ah_buf *b = begin_fault(c, v->at, rule);

    if (!b)
        return;
    ah_buf_str(b, "must be ");
    ah_words_types(b, types);
    if (whole && v->type & (T_NUMBER | T_HUGE) && (v->num.d >= TWO_63 || v->num.d < -TWO_63))
        ah_buf_str(b, " of at most 64 bits");
    else if (types & T_NUMBER && v->type == T_HUGE)
        ah_buf_str(b, " within the range of a double");
    end_found(c, b, v);
}

static void check_node(checker *c, uint32_t i, ah_json_token t, ah_json_reader *r, const place *at);

static void check_false(checker *c, const op *o, subject *v)
{
    (void)o;
    fault_found(c, v, "false", "is not allowed");
}

/* Both texts are canonical, so only numbers may be written in two ways. */
static bool same_canonical(ah_slice a, ah_slice b)
{
    ah_json_reader ra = ah_json_read(a), rb = ah_json_read(b);

    for (;;) {
        ah_json_token x = ah_json_next(&ra), y = ah_json_next(&rb);
        ah_json_num m, n;

        if (x.kind != y.kind)
            return false;
        if (x.kind == AH_JSON_END)
            return true;
        if (ah_slice_eq(x.raw, y.raw))
            continue;
        if (x.kind != AH_JSON_NUMBER || !ah_schema_number(x.raw, &m) || !ah_schema_number(y.raw, &n) ||
            compare_numbers(m, n) != 0)
            return false;
    }
}

/* The value's canonical text; made once, kept in *canon. */
static ah_slice canonical(checker *c, const subject *v, ah_slice *canon)
{
    ah_slice text;
    ah_status st;

    if (canon->p)
        return *canon;
    text = text_of(v);
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
        return v->type == T_HUGE ? ah_slice_eq(v->t.raw, to->t.raw)
                                 : compare_numbers(v->num, to->num) == 0;
    if (v->t.kind == AH_JSON_STRING && !v->t.escaped && !to->t.escaped)
        return ah_slice_eq(v->t.raw, to->t.raw);
    if (v->t.kind == AH_JSON_STRING || v->t.kind == AH_JSON_ARRAY || v->t.kind == AH_JSON_OBJECT)
        return same_canonical(canonical(c, v, canon), to->text);
    return true; /* null, false, true */
}

static void put_value_list(const ah_schema *s, ah_buf *b, range list, size_t *listed)
{
    for (size_t i = 0; i < list.n; i++, ++*listed) {
        if (*listed >= MAX_LISTED)
            continue;
        if (*listed)
            ah_buf_str(b, ", ");
        ah_words_found(b, value_at(s, list.first + i)->text);
    }
}

static void end_list(ah_buf *b, size_t listed)
{
    if (listed > MAX_LISTED)
        ah_buf_fmt(b, " and %zu more", listed - MAX_LISTED);
}

static void check_values(checker *c, const op *o, subject *v)
{
    bool one = o->code == OP_CONST;
    ah_slice canon = {NULL, 0};
    size_t listed = 0;
    ah_buf *b;

    for (size_t i = 0; i < o->list.n; i++)
        if (equals(c, v, value_at(c->s, o->list.first + i), &canon))
            return;
    if (o->list.n == 1)
        c->distance += 2; /* a tag tells the branches of an anyOf apart */
    if (!(b = begin_fault(c, v->at, one ? "const" : "enum")))
        return;
    ah_buf_str(b, one ? "must be " : "must be one of ");
    put_value_list(c->s, b, o->list, &listed);
    end_list(b, listed);
    end_found(c, b, v);
}

static void check_bound(checker *c, const op *o, subject *v)
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
    int order = compare_numbers(v->num, o->num);
    ah_buf *b;

    if (order >= says[o->code].from && order <= says[o->code].to)
        return;
    if (!(b = begin_fault(c, v->at, says[o->code].rule)))
        return;
    ah_buf_fmt(b, "must be %s ", says[o->code].words);
    ah_words_found(b, o->literal);
    end_found(c, b, v);
}

static void check_multiple(checker *c, const op *o, subject *v)
{
    ah_buf *b;

    if (v->type != T_HUGE && is_multiple(v->num, o->num.i))
        return;
    if (!(b = begin_fault(c, v->at, "multipleOf")))
        return;
    ah_buf_str(b, "must be a multiple of ");
    ah_words_found(b, o->literal);
    end_found(c, b, v);
}

static void check_limits(checker *c, const op *o, const subject *v, size_t n)
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
    if (!(b = begin_fault(c, v->at, few ? says[o->code].least : says[o->code].most)))
        return;
    ah_buf_fmt(b, "must %s at %s %zu %s, found %zu", says[o->code].verb, few ? "least" : "most", limit,
               limit == 1 ? says[o->code].one : says[o->code].many, n);
    ah_fault_end(c->faults);
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

static void check_string(checker *c, const op *o, subject *v)
{
    size_t bytes = v->t.raw.n; /* a character takes 1 to 12 of them */

    if (bytes > o->max || bytes / 12 < o->min)
        check_limits(c, o, v, count_characters(v->t));
}

static void check_array(checker *c, const op *o, subject *v)
{
    ah_json_reader r = v->inside;
    ah_json_token t;
    size_t n = 0;

    for (; (t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END; n++) {
        place at = {.up = v->at, .index = n};

        if (o->rest == NONE)
            ah_json_skip(&r, t);
        else
            check_node(c, o->rest, t, &r, &at);
    }
    v->end = r;
    v->ended = true;
    check_limits(c, o, v, n);
}

static bool is_false(const ah_schema *s, uint32_t i)
{
    return i != NONE && node_at(s, i)->first != NONE && op_at(s, node_at(s, i)->first)->code == OP_FALSE;
}

/* "unknown property; did you mean 'name'? known: limit, name" */
static void fault_unknown(checker *c, const op *o, ah_slice name, const place *at)
{
    ah_near near = {.to = name};
    ah_buf *b = begin_fault(c, at, "additionalProperties");
    size_t listed = 0;

    if (!b)
        return;
    for (size_t i = o->list.first; i < (size_t)o->list.first + o->list.n; i++)
        if (prop_at(c->s, i)->node != NONE)
            ah_near_offer(&near, prop_at(c->s, i)->name);
    ah_buf_str(b, "unknown property");
    ah_words_near(b, &near);
    for (size_t i = o->list.first; i < (size_t)o->list.first + o->list.n; i++) {
        if (prop_at(c->s, i)->node == NONE || ++listed > MAX_LISTED)
            continue;
        ah_buf_str(b, listed > 1 ? ", " : near.best.p ? " known: " : "; known: ");
        ah_words_found(b, prop_at(c->s, i)->name);
    }
    end_list(b, listed);
    if (!listed)
        ah_buf_str(b, "; none are known here");
    ah_fault_end(c->faults);
}

static ah_slice name_of_key(checker *c, ah_json_token key)
{
    if (!key.escaped)
        return key.raw;
    ah_buf_reset(&c->scratch, 0);
    ah_json_unescape(key.raw, &c->scratch);
    if (!ah_buf_ok(&c->scratch))
        c->status = c->scratch.status;
    return ah_buf_slice(&c->scratch);
}

/* Checks the member's value and passes over it; the index of its prop, or NONE. */
static uint32_t check_member(checker *c, const op *o, ah_json_token key, ah_json_reader *r,
                             const place *up)
{
    place at = {.up = up, .key = key.raw, .escaped = key.escaped};
    ah_slice name = name_of_key(c, key);
    uint32_t i = ah_schema_find_prop(c->s, o->list, name);
    uint32_t declared = i == NONE ? NONE : prop_at(c->s, i)->node;
    bool forbid = o->rest == NONE ? o->named && c->extra == AH_EXTRA_FORBID : is_false(c->s, o->rest);
    ah_json_token t = ah_json_next(r);

    if (declared != NONE) {
        check_node(c, declared, t, r, &at);
        return i;
    }
    if (forbid)
        fault_unknown(c, o, name, &at);
    if (forbid || o->rest == NONE)
        ah_json_skip(r, t);
    else
        check_node(c, o->rest, t, r, &at);
    return i;
}

static void add_fill(checker *c, fill f)
{
    fill *grown;

    c->filled += f.name.n + f.text.n + 4; /* quotes, colon, comma */
    if (c->filled > c->fill_max) {
        c->status = AH_BUDGET;
        return;
    }
    if (!(grown = ah_grow(c->s->mem, c->fills, &c->cap_fills, c->n_fills + 1, sizeof f))) {
        c->status = AH_NOMEM;
        return;
    }
    c->fills = grown;
    c->fills[c->n_fills++] = f;
}

/* What the absent members bring: a fault, or a default before the closing brace. */
static void check_absent(checker *c, const op *o, const uint64_t *seen, const subject *v,
                         const char *brace, size_t n)
{
    for (size_t i = 0; i < o->list.n; i++) {
        const prop *p = prop_at(c->s, o->list.first + i);
        ah_slice text = p->node == NONE ? (ah_slice){NULL, 0} : node_at(c->s, p->node)->fallback;
        place at = {.up = v->at, .key = p->name};
        ah_buf *b;

        if (seen[i / 64] >> i % 64 & 1)
            continue;
        if (p->required && (b = begin_fault(c, &at, "required"))) {
            ah_buf_str(b, "is required");
            ah_fault_end(c->faults);
        } else if (!p->required && text.p && c->filling && c->status == AH_OK) {
            add_fill(c, (fill){(size_t)(brace - c->value.p), p->name, text, n == 0});
        }
    }
}

static void check_object(checker *c, const op *o, subject *v)
{
    uint64_t few[SEEN_INLINE / 64] = {0}, *seen = few;
    ah_json_reader r = v->inside;
    ah_json_token t;
    size_t n = 0;

    if (o->list.n > SEEN_INLINE && !(seen = ah_alloc(c->s->mem, (o->list.n / 64 + 1) * sizeof *seen))) {
        c->status = AH_NOMEM;
        return;
    }
    for (; (t = ah_json_next(&r)).kind == AH_JSON_KEY; n++) {
        uint32_t i = check_member(c, o, t, &r, v->at);

        if (i != NONE)
            seen[(i - o->list.first) / 64] |= (uint64_t)1 << (i - o->list.first) % 64;
    }
    v->end = r;
    v->ended = true;
    check_absent(c, o, seen, v, t.raw.p, n);
    check_limits(c, o, v, n);
    if (seen != few)
        ah_free(c->s->mem, seen);
}

/* Do all branches only list values? Then they are one list, for the words. */
static bool only_values(const ah_schema *s, range branches)
{
    for (size_t i = 0; i < branches.n; i++) {
        const node *n = node_at(s, link_at(s, branches.first + i));

        if (n->first == NONE || n->first != n->last)
            return false;
        if (op_at(s, n->first)->code != OP_CONST && op_at(s, n->first)->code != OP_ENUM)
            return false;
    }
    return true;
}

static void fault_values(checker *c, const op *o, const subject *v)
{
    ah_buf *b = begin_fault(c, v->at, "anyOf");
    size_t listed = 0;

    if (!b)
        return;
    ah_buf_str(b, "must be one of ");
    for (size_t i = 0; i < o->list.n; i++) {
        const node *n = node_at(c->s, link_at(c->s, o->list.first + i));
        put_value_list(c->s, b, op_at(c->s, n->first)->list, &listed);
    }
    end_list(b, listed);
    end_found(c, b, v);
}

/* Faults of the value under a node, counted without telling. */
static size_t distance(checker *c, uint32_t i, subject *v)
{
    size_t before = c->distance, d;

    v->end = v->inside;
    c->silent++;
    check_node(c, i, v->t, &v->end, v->at);
    c->silent--;
    v->ended = true;
    d = c->distance - before;
    c->distance = before;
    return d;
}

/* Tells the faults of the branch that came nearest. A branch of another type (null
 * among them) is far away from any; where all are, the types are what to tell. */
static void check_any_of(checker *c, const op *o, subject *v)
{
    size_t best = SIZE_MAX, mark = c->n_fills, bytes = c->filled;
    uint32_t nearest = NONE;
    ah_json_reader r = v->inside;

    for (size_t i = 0; i < o->list.n; i++) {
        uint32_t branch = link_at(c->s, o->list.first + i);
        size_t d;

        if (!(node_at(c->s, branch)->accepts & v->type))
            continue;
        if ((d = distance(c, branch, v)) == 0)
            return;
        c->n_fills = mark;
        c->filled = bytes;
        if (d < best) {
            best = d;
            nearest = branch;
        }
    }
    if (only_values(c->s, o->list))
        fault_values(c, o, v);
    else if (nearest == NONE)
        fault_type(c, v, ah_schema_accepted(c->s, o->list), "anyOf");
    else if (c->silent)
        c->distance += best;
    else
        check_node(c, nearest, v->t, &r, v->at);
}

static const struct {
    unsigned types; /* the rule says nothing of values of other types */
    void (*check)(checker *c, const op *o, subject *v);
} checks[] = {
    [OP_FALSE] = {T_ANY, check_false},       [OP_CONST] = {T_ANY, check_values},
    [OP_ENUM] = {T_ANY, check_values},       [OP_MINIMUM] = {T_NUMERIC, check_bound},
    [OP_MAXIMUM] = {T_NUMERIC, check_bound}, [OP_ABOVE] = {T_NUMERIC, check_bound},
    [OP_BELOW] = {T_NUMERIC, check_bound},   [OP_MULTIPLE] = {T_NUMERIC, check_multiple},
    [OP_STRING] = {T_STRING, check_string},  [OP_ARRAY] = {T_ARRAY, check_array},
    [OP_OBJECT] = {T_OBJECT, check_object},  [OP_ANY_OF] = {T_ANY, check_any_of},
};

static int compare_fills(const fill *a, const fill *b)
{
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return ah_slice_cmp(a->name, b->name);
}

/* Fills [from, mid) and [mid, end) are sorted each: makes them one, of equal ones
 * the earlier. Two only where several rules of one schema fill the same value. */
static void merge_fills(checker *c, size_t from, size_t mid)
{
    size_t n_early = mid - from, n_late = c->n_fills - mid, i = 0, j = 0, to = from;
    fill *early, *late;

    if (compare_fills(&c->fills[mid - 1], &c->fills[mid]) < 0)
        return;
    if (!(early = ah_alloc(c->s->mem, (n_early + n_late) * sizeof *early))) {
        c->status = AH_NOMEM;
        return;
    }
    memcpy(early, c->fills + from, (n_early + n_late) * sizeof *early);
    late = early + n_early;
    while (i < n_early || j < n_late) {
        int order = i == n_early ? 1 : j == n_late ? -1 : compare_fills(&early[i], &late[j]);

        c->fills[to++] = order <= 0 ? early[i++] : late[j++];
        j += order == 0;
    }
    c->n_fills = to;
    ah_free(c->s->mem, early);
}

static unsigned type_of(subject *v)
{
    if (v->t.kind != AH_JSON_NUMBER)
        return ah_schema_type_of(v->t.kind);
    if (!ah_schema_number(v->t.raw, &v->num))
        return T_HUGE;
    return v->num.is_int ? T_INTEGER : T_NUMBER;
}

static void check_ops(checker *c, const node *n, subject *v)
{
    size_t from = c->n_fills;
    const op *o;

    for (uint32_t i = n->first; i != NONE && c->status == AH_OK; i = o->next) {
        size_t mid = c->n_fills;

        o = op_at(c->s, i);
        if (checks[o->code].types & v->type)
            checks[o->code].check(c, o, v);
        if (mid > from && c->n_fills > mid)
            merge_fills(c, from, mid);
    }
}

/* Checks the value that begins with t, just read from r, and passes over it. */
static void check_node(checker *c, uint32_t i, ah_json_token t, ah_json_reader *r, const place *at)
{
    const node *n = node_at(c->s, i);
    subject v = {.t = t, .inside = *r, .at = at};

    if (n->types != T_ANY || n->first != NONE) {
        v.type = type_of(&v);
        if (n->types & v.type)
            check_ops(c, n, &v);
        else
            fault_type(c, &v, n->types, "type");
    }
    if (v.ended)
        *r = v.end;
    else
        ah_json_skip(r, t);
}

static void put_filled(const checker *c, ah_buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < c->n_fills; i++) {
        const fill *f = &c->fills[i];
        bool more = i > 0 && c->fills[i - 1].offset == f->offset;

        ah_buf_add(out, c->value.p + from, f->offset - from);
        from = f->offset;
        if (more || !f->first)
            ah_buf_char(out, ',');
        ah_json_put_string(out, f->name);
        ah_buf_char(out, ':');
        ah_buf_put(out, f->text);
    }
    ah_buf_add(out, c->value.p + from, c->value.n - from);
}

ah_status ah_schema_check_at(const ah_schema *s, uint32_t i, ah_slice text, ah_extra extra,
                             ah_faults *faults, ah_buf *with_defaults)
{
    checker c = {
        .s = s, .value = text, .extra = extra, .faults = faults, .filling = with_defaults != NULL};
    ah_json_reader r = ah_json_read(text);

    faults->n = faults->total = 0;
    ah_buf_reset(&faults->texts, 0);
    if (with_defaults)
        c.fill_max = with_defaults->max - with_defaults->len;
    /* canonical text is longer than its source only in numbers (1e20) */
    ah_buf_init(&c.scratch, s->mem, text.n > SIZE_MAX / 64 ? SIZE_MAX : text.n * 32 + 64);
    check_node(&c, i, ah_json_next(&r), &r, NULL);
    if (c.status == AH_OK && with_defaults && !faults->n) {
        put_filled(&c, with_defaults);
        c.status = with_defaults->status;
    }
    ah_free(s->mem, c.fills);
    ah_buf_clear(&c.scratch);
    return c.status;
}

ah_status ah_schema_check(const ah_schema *s, ah_slice text, ah_extra extra, ah_faults *faults,
                          ah_buf *with_defaults)
{
    return ah_schema_check_at(s, 0, text, extra, faults, with_defaults);
}
