/* Persistent lists: cells that share all older cells. */
#include "state/list.h"

ah_cell *ah_cell_ref(ah_cell *c)
{
    if (c)
        c->refs++;
    return c;
}

void ah_cell_unref(const ah_mem *mem, ah_cell *c)
{
    while (c && --c->refs == 0) {
        ah_cell *below = c->below;

        ah_text_unref(c->value);
        ah_free(mem, c);
        c = below;
    }
}

bool ah_list_append(ah_list *l, ah_text *value)
{
    ah_cell *c = ah_alloc(l->mem, sizeof *c);

    if (!c)
        return false;
    *c = (ah_cell){1, ah_text_ref(value), l->head, ah_list_length(l->head) + 1};
    l->head = c;
    return true;
}

void ah_list_set(ah_list *l, ah_cell *head)
{
    ah_cell *old = l->head;

    l->head = head;
    ah_cell_unref(l->mem, old);
}

/* Returns the newer values, the newest first. */
static ah_text **values_above(const ah_list *l, size_t n)
{
    ah_text **v = ah_alloc(l->mem, (n + 1) * sizeof *v);
    const ah_cell *c = l->head;

    for (size_t i = 0; v && i < n; i++, c = c->below)
        v[i] = c->value;
    return v;
}

bool ah_list_replace(ah_list *l, size_t at, ah_text *value)
{
    size_t newer = ah_list_length(l->head) - at - 1;
    ah_text **v = values_above(l, newer);
    ah_list made = {.mem = l->mem};
    ah_cell *c = l->head;
    bool ok = v != NULL;

    while (c && c->n > at)
        c = c->below;
    made.head = ah_cell_ref(c);
    ok = ok && ah_list_append(&made, value);
    for (size_t i = newer; ok && i > 0; i--)
        ok = ah_list_append(&made, v[i - 1]);
    if (ok)
        ah_list_set(l, ah_cell_ref(made.head));
    ah_list_set(&made, NULL);
    ah_free(l->mem, v);
    return ok;
}

void ah_list_print_newest(const ah_mem *mem, const ah_cell *head, size_t keep, ah_buf *out)
{
    size_t n = ah_list_length(head) - keep;
    const ah_text **v = ah_alloc(mem, (n + 1) * sizeof *v);

    if (!v)
        out->status = AH_NOMEM;
    for (size_t i = n; v && i > 0; i--, head = head->below)
        v[i - 1] = head->value;
    for (size_t i = 0; v && i < n; i++) {
        if (i)
            ah_buf_char(out, ',');
        ah_buf_put(out, ah_text_slice(v[i]));
    }
    ah_free(mem, v);
}

void ah_list_print(const ah_mem *mem, const ah_cell *head, ah_buf *out)
{
    ah_buf_char(out, '[');
    ah_list_print_newest(mem, head, 0, out);
    ah_buf_char(out, ']');
}
