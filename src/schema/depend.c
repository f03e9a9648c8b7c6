/* Rules that apply if a member is present: others are then required (dependentRequired), or the
 * object must fit a schema (dependentSchemas). All of them read the object once. */
#include "schema/checker.h"

enum { PRESENT_INLINE = 2 };

/* The names of an op that are members of the object, as bits by position in its list. */
typedef struct present {
    uint64_t few[PRESENT_INLINE], *bits; /* bits is NULL for few names */
} present;

static uint64_t *bits_of(present *p)
{
    return p->bits ? p->bits : p->few;
}

static bool is_present(present *p, size_t i)
{
    return bits_of(p)[i / 64] >> i % 64 & 1;
}

/* False: the check has stopped. */
static bool make_room(checker *c, const subject *v, size_t n, present *p)
{
    *p = (present){.bits = NULL};
    if (n <= PRESENT_INLINE * (size_t)64)
        return true;
    if (!schema_spend(c, v->at, n / STEP_ITEMS))
        return false;
    if (!(p->bits = ah_alloc(c->s->mem, (n / 64 + 1) * sizeof *p->bits)))
        c->status = AH_NOMEM;
    return p->bits != NULL;
}

static bool find_present(checker *c, const op *o, const subject *v, present *p)
{
    ah_json_reader r = v->inside;
    ah_json_token key;

    if (!make_room(c, v, o->list.n, p))
        return false;
    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY && schema_step(c, v->at)) {
        uint32_t i = schema_find_prop(c->s, o->list, schema_plain(c, key.raw, key.escaped));

        if (i != NONE)
            bits_of(p)[(i - o->list.first) / 64] |= (uint64_t)1 << (i - o->list.first) % 64;
        schema_skip(c, &r, ah_json_next(&r));
    }
    return !c->stopped && c->status == AH_OK;
}

static void fault_needed(checker *c, const op *o, const subject *v, uint32_t one, uint32_t needed)
{
    place at = {.up = v->at, .key = prop_at(c->s, o->list.first + needed)->name};
    ah_buf *b = schema_begin_fault(c, &at, "dependentRequired");

    if (!b)
        return;
    ah_buf_str(b, "is required beside '");
    schema_put_found(b, prop_at(c->s, o->list.first + one)->name);
    ah_buf_char(b, '\'');
    schema_end_fault(c);
}

void schema_check_depend_names(checker *c, const op *o, subject *v)
{
    present p;

    if (find_present(c, o, v, &p) && schema_spend(c, v->at, o->patterns.n / STEP_ITEMS)) {
        for (size_t i = 0; i < o->patterns.n && !c->stopped; i++) {
            uint32_t one = link_at(c->s, o->patterns.first + 2 * i);
            uint32_t needed = link_at(c->s, o->patterns.first + 2 * i + 1);

            if (is_present(&p, one) && !is_present(&p, needed))
                fault_needed(c, o, v, one, needed);
        }
    }
    ah_free(c->s->mem, p.bits);
}

typedef struct depend_walk {
    frame f;
    const op *o;
    subject *v;
    size_t i, from, mid; /* the next name; fills: of all, of the current one */
    present present;
} depend_walk;

static void step_depend(checker *c, frame *f)
{
    depend_walk *w = (depend_walk *)(void *)f;

    schema_merge_part(c, w->from, w->mid);
    while (w->i < w->o->list.n && c->status == AH_OK && !c->stopped) {
        size_t i = w->i++;

        if (!is_present(&w->present, i))
            continue;
        w->mid = c->fills.n;
        schema_check_because(
            c, link_at(c->s, w->o->patterns.first + i), w->v, w->v->marks,
            &(reason){.kind = WHY_MEMBER, .member = prop_at(c->s, w->o->list.first + i)->name});
        if (c->top != f)
            return;
        schema_merge_part(c, w->from, w->mid);
    }
    ah_free(c->s->mem, w->present.bits);
    schema_pop(c);
}

void schema_check_depend_schemas(checker *c, const op *o, subject *v)
{
    depend_walk *w = schema_push(c, sizeof *w, step_depend);

    if (!w)
        return;
    *w = (depend_walk){.f = w->f, .o = o, .v = v, .from = c->fills.n, .mid = c->fills.n};
    if (find_present(c, o, v, &w->present))
        return;
    ah_free(c->s->mem, w->present.bits);
    schema_pop(c);
}
