/* Keeps the results of branches for the report of a branch.
 *
 * An anyOf without a fit is reported by its nearest branch, which is checked once more for its
 * faults. An anyOf inside that branch would try its branches again as well, and so on at each
 * level. So the results of silent checks are kept for the branches that are nearest so far, and
 * used when these are reported. Nothing is kept if the resources entered so far may change the
 * target of a reference. */
#include <stdlib.h>

#include "schema/checker.h"

enum { MOST = 1 << 16 }; /* more results are not kept; their branches are tried again */

struct recalled {
    const op *o;
    const char *value; /* in the text */
    bool company;      /* see subject */
    branches b;
};

static int compare(const void *a, const void *b)
{
    const recalled *x = a, *y = b;

    if (x->o != y->o)
        return x->o < y->o ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->company - y->company;
}

void schema_keep_branches(checker *c, const op *o, const subject *v, const branches *b)
{
    uint32_t i;

    if (c->entered || c->sorted || c->recalled.n == MOST)
        return;
    if ((i = schema_extend(c->s->mem, &c->recalled, 1, sizeof(recalled))) == NONE)
        c->status = AH_NOMEM;
    else
        ((recalled *)c->recalled.at)[i] = (recalled){o, v->t.raw.p, v->company, *b};
}

bool schema_recall_branches(const checker *c, const op *o, const subject *v, branches *b)
{
    recalled wanted = {.o = o, .value = v->t.raw.p, .company = v->company};
    const recalled *found = c->sorted && !c->silent ? bsearch(&wanted, c->recalled.at, c->sorted,
                                                              sizeof(recalled), compare)
                                                    : NULL;

    if (found)
        *b = found->b;
    return found != NULL;
}

typedef struct tell_walk {
    frame f;
} tell_walk;

static void end_tell(checker *c, frame *f)
{
    (void)f;
    c->recalled.n = c->sorted = 0;
    schema_pop(c);
}

void schema_tell_branch(checker *c, uint32_t nearest, subject *v, const reason *why)
{
    if (!c->sorted && c->recalled.n) {
        if (!schema_push(c, sizeof(tell_walk), end_tell))
            return;
        qsort(c->recalled.at, c->recalled.n, sizeof(recalled), compare);
        c->sorted = c->recalled.n;
    }
    if (why)
        schema_check_because(c, nearest, v, NULL, why);
    else
        schema_check_in_place(c, nearest, v, NULL);
}
