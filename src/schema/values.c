/* The values of a const or an enum. A sorted order allows a binary search; the values stay in
 * the order of the text, which messages use. */
#include <stdlib.h>

#include "schema/program.h"

typedef struct sorted {
    value v;
    uint32_t i;
} sorted;

static int compare_values(const void *a, const void *b)
{
    const value *x = &((const sorted *)a)->v, *y = &((const sorted *)b)->v;

    if (x->t.kind != y->t.kind)
        return x->t.kind < y->t.kind ? -1 : 1;
    return x->t.kind == AH_JSON_NUMBER ? schema_compare_numbers(x->num, y->num)
                                       : schema_compare_canonical(x->text, y->text);
}

bool schema_sort_values(ah_schema *s, range values)
{
    sorted *list = values.n > 1 ? ah_resize(s->mem, NULL, values.n * sizeof *list) : NULL;

    if (values.n > 1 && !list)
        return false;
    for (uint32_t i = 0; i < values.n && list; i++)
        list[i] = (sorted){*value_at(s, values.first + i), i};
    if (list)
        qsort(list, values.n, sizeof *list, compare_values);
    for (uint32_t i = 0; i < values.n; i++)
        value_at(s, values.first + i)->sorted = list ? list[i].i : i;
    ah_free(s->mem, list);
    return true;
}
