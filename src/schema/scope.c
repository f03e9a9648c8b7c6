/* $dynamicRef: finds the outermost of the entered resources that has the dynamic anchor.
 *
 * A resource that is entered again is not the outermost, so each is in the chain once. The
 * target of a name is looked up once and holds until its resource is left. That no resource has
 * the name holds until another one is entered or left. */
#include "schema/checker.h"

struct answer {
    const scope *at; /* scope that has the anchor; NULL: unknown */
    uint32_t node;   /* its node */
    uint32_t next;   /* next name that was found in the same scope */
    uint64_t none;   /* number of a scope up to which none has it, or 0 */
};

bool schema_begin_scopes(checker *c)
{
    const ah_schema *s = c->s;

    if (!s->dynamic_names)
        return true;
    c->entered = ah_alloc(s->mem, (s->resources.n / 64 + 1) * sizeof *c->entered);
    c->answers = ah_alloc(s->mem, s->dynamic_names * sizeof *c->answers);
    if (!c->entered || !c->answers)
        c->status = AH_NOMEM;
    return c->status == AH_OK;
}

void schema_end_scopes(const checker *c)
{
    ah_free(c->s->mem, c->entered);
    ah_free(c->s->mem, c->answers);
}

void schema_enter_scope(checker *c, uint32_t i, scope *here)
{
    uint64_t bit = (uint64_t)1 << i % 64;

    if (c->entered[i / 64] & bit)
        return;
    c->entered[i / 64] |= bit;
    *here = (scope){.up = c->scope, .resource = i, .found = NONE, .number = ++c->scopes};
    c->scope = here;
}

void schema_leave_scope(checker *c)
{
    uint32_t i = c->scope->resource;

    for (uint32_t k = c->scope->found; k != NONE; k = c->answers[k].next)
        c->answers[k].at = NULL;
    c->entered[i / 64] &= ~((uint64_t)1 << i % 64);
    c->scope = c->scope->up;
}

/* Searches the whole chain. */
static void look(checker *c, const op *o, const subject *v)
{
    answer *a = &c->answers[o->name];
    scope *at = NULL;

    if (!c->scope || a->none == c->scope->number)
        return;
    for (scope *s = c->scope; s && schema_step(c, v->at); s = s->up) {
        const anchor *found = schema_find_anchor(c->s, s->resource, o->literal);

        if (found && found->dynamic) {
            a->node = found->node;
            at = s;
        }
    }
    if (!(a->at = at)) {
        a->none = c->scope->number;
        return;
    }
    a->next = at->found;
    at->found = o->name;
}

void schema_check_dynamic_ref(checker *c, const op *o, subject *v)
{
    uint32_t to = o->rest;

    if (o->literal.p) {
        if (!c->answers[o->name].at)
            look(c, o, v);
        if (c->answers[o->name].at)
            to = c->answers[o->name].node;
    }
    schema_check_in_place(c, to, v, v->marks);
}
