/* Faults for the report: place, rule and message. The most useful ones are kept and come first,
 * independent of the order in which they were found: see `classes`. */
#include "schema/checker.h"

/* Classes of rules, in the order in which a model should fix their faults. Within a class,
 * faults nearer to the root come first, then those found first. Rules without a class are
 * VALUES. */
enum { SHAPE, VALUES, LIMITS };

static const struct {
    unsigned class;
    const char *rules;
} classes[] = {
    {SHAPE, " type required additionalProperties unevaluatedProperties unevaluatedItems false "
            "dependentRequired anyOf oneOf "},
    {LIMITS,
     " minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems "
     "maxItems uniqueItems contains minContains maxContains minProperties maxProperties "},
};

static uint64_t class_of(const char *rule)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (ah_slice_among(ah_slice_of(rule), classes[i].rules))
            return classes[i].class;
    return VALUES;
}

/* All ranks differ: class, depth (at most 2048), and the number of faults found before. */
static uint64_t rank_of(const place *at, const char *rule, size_t found)
{
    uint64_t rank = class_of(rule) << 12;

    for (; at; at = at->up)
        rank++;
    return rank << 40 | found;
}

static void put_step(ah_buf *b, const place *at)
{
    ah_buf plain;

    if (!at->key.p) {
        ah_buf_char(b, '/');
        ah_buf_int(b, (int64_t)at->index);
        return;
    }
    if (!at->escaped) {
        schema_put_key(b, at->key);
        return;
    }
    ah_buf_init(&plain, b->mem, at->key.n);
    ah_json_unescape(at->key, &plain);
    schema_put_key(b, ah_buf_slice(&plain));
    ah_buf_clear(&plain);
}

/* Appends the pointer from the root. One step beyond JSON's depth limit is possible: into a
 * property's name. */
void schema_put_pointer(ah_buf *b, const place *at)
{
    const place *way[AH_JSON_MAX_DEPTH + 1];
    size_t n = 0;

    for (; at && n < sizeof way / sizeof *way; at = at->up)
        way[n++] = at;
    while (n > 0)
        put_step(b, way[--n]);
}

/* Finds the place for a fault of this rank: at the end, or, if the list is full, that of the
 * fault with the last rank. False: this fault ranks last. */
static bool take_place(checker *c, uint64_t rank)
{
    size_t last = 0;

    c->telling = c->faults->n;
    if (c->telling < AH_MAX_FAULTS)
        return true;
    for (size_t i = 1; i < AH_MAX_FAULTS; i++)
        if (c->ranks[i] > c->ranks[last])
            last = i;
    c->telling = last;
    return rank < c->ranks[last];
}

/* Each fault reserves its part of the room at once, because slices into it must not move. */
static ah_buf *begin_words(checker *c)
{
    enum { PART = SCHEMA_FAULT_ROOM / AH_MAX_FAULTS };
    ah_buf *b = &c->faults->texts;

    b->max = SCHEMA_FAULT_ROOM;
    if (c->faults->n == 0)
        ah_buf_reset(b, 0);
    if (c->faults->n == 0 && !ah_buf_room(b, SCHEMA_FAULT_ROOM)) {
        c->status = AH_NOMEM;
        return NULL;
    }
    ah_buf_reset(b, c->telling * PART);
    return b;
}

ah_buf *schema_begin_fault(checker *c, const place *at, const char *rule)
{
    uint64_t rank;
    size_t start;
    ah_fault *fault;
    ah_buf *b;

    c->distance++;
    if (c->silent || c->stopped)
        return NULL;
    c->faults->total++;
    ah_work_do(c->work, STEP_FAULT); /* the next step notices the end of the work */
    rank = rank_of(at, rule, c->faults->total);
    if (!take_place(c, rank) || !(b = begin_words(c)))
        return NULL;
    c->ranks[c->telling] = rank;
    c->told_at = at;
    fault = c->faults->item + c->telling;
    start = schema_begin_part(b, SCHEMA_POINTER);
    schema_put_pointer(b, at);
    fault->pointer = schema_end_part(b, start);
    fault->rule = ah_slice_of(rule);
    fault->message.n =
        schema_begin_part(b, SCHEMA_MESSAGE); /* the message's start, until the fault ends */
    if (c->naming)
        ah_buf_str(b, "its name ");
    return b;
}

void schema_end_fault(checker *c)
{
    ah_fault *fault = c->faults->item + c->telling;

    if (c->why)
        schema_put_reason(c, &c->faults->texts, c->told_at);
    fault->message = schema_end_part(&c->faults->texts, fault->message.n);
    c->faults->n += c->telling == c->faults->n;
}

void schema_sort_faults(checker *c)
{
    ah_fault *item = c->faults->item;

    for (size_t i = 1; i < c->faults->n; i++) {
        for (size_t k = i; k > 0 && c->ranks[k] < c->ranks[k - 1]; k--) {
            ah_fault f = item[k];
            uint64_t rank = c->ranks[k];

            item[k] = item[k - 1];
            c->ranks[k] = c->ranks[k - 1];
            item[k - 1] = f;
            c->ranks[k - 1] = rank;
        }
    }
}

void schema_put_what(const checker *c, ah_buf *b, const subject *v)
{
    ah_buf_str(b, ", found ");
    schema_put_found(b, schema_value_text(v));
    schema_put_null_hint(c, b, v);
}

void schema_end_found(checker *c, ah_buf *b, const subject *v)
{
    schema_put_what(c, b, v);
    schema_end_fault(c);
}

/* Reports a fault with fixed words and the found value. */
void schema_fault_found(checker *c, const subject *v, const char *rule, const char *words)
{
    ah_buf *b = schema_begin_fault(c, v->at, rule);

    if (!b)
        return;
    ah_buf_str(b, words);
    schema_end_found(c, b, v);
}

void schema_fault_type(checker *c, const subject *v, unsigned types, const char *rule)
{
    bool whole = types & T_INTEGER && !(types & T_NUMBER);
    const char *hint;
    ah_buf *b;

    if ((c->coercing && schema_coerce(c, v, types)) || !(b = schema_begin_fault(c, v->at, rule)))
        return;
    ah_buf_str(b, "must be ");
    schema_put_types(b, types);
    if (whole && v->type & (T_NUMBER | T_HUGE) && (v->num.n.d >= TWO_63 || v->num.n.d < -TWO_63))
        ah_buf_str(b, " of at most 64 bits");
    else if (types & T_NUMBER && v->type == T_HUGE)
        ah_buf_str(b, " within the range of a double");
    schema_put_what(c, b, v);
    if ((hint = schema_string_hint(c, v, types)))
        ah_buf_str(b, hint);
    schema_end_fault(c);
}
