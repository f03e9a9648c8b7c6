/* Defaults of missing members, members that count as missing, and integers written otherwise:
 * recorded by position while a value is checked, and written between its bytes if it conforms. */
#include "schema/checker.h"

static fill *fill_at(const checker *c, size_t i)
{
    return (fill *)c->fills.at + i;
}

void schema_add_fill(checker *c, fill f)
{
    uint32_t i;

    c->filled += f.name.n + f.text.n + 4;
    if (c->filled > c->fill_max) {
        c->status = AH_BUDGET;
        return;
    }
    if ((i = schema_extend(c->s->mem, &c->fills, 1, sizeof(fill))) == NONE)
        c->status = AH_NOMEM;
    else
        *fill_at(c, i) = f;
}

static int compare_fills(const fill *a, const fill *b)
{
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return ah_slice_cmp(a->name, b->name);
}

/* Of equal ones the earlier stays; there are two only if several rules of a schema fill the same
 * value. */
void schema_merge_fills(checker *c, size_t from, size_t mid)
{
    size_t n = c->fills.n - mid, i = from, j = 0, to;
    size_t kept = mid - from;
    fill *late, *early;

    if (compare_fills(fill_at(c, mid - 1), fill_at(c, mid)) < 0 ||
        !schema_spend(c, NULL, (n + kept) / STEP_ITEMS))
        return;
    if (!(late = ah_alloc(c->s->mem, (n + kept) * sizeof *late))) {
        c->status = AH_NOMEM;
        return;
    }
    memcpy(late, fill_at(c, mid), n * sizeof *late);
    early = late + n;
    memcpy(early, fill_at(c, from), kept * sizeof *early);
    for (to = from, i = 0; i < kept || j < n; to++) {
        int order = i == kept ? 1 : j == n ? -1 : compare_fills(early + i, late + j);

        *fill_at(c, to) = order <= 0 ? early[i++] : late[j++];
        if (order == 0)
            j++;
    }
    c->fills.n = to;
    ah_free(c->s->mem, late);
}

static void put_integer(ah_buf *out, ah_slice literal)
{
    number n;

    schema_number(literal, &n);
    ah_buf_int(out, n.n.i);
}

/* Returns the last non-blank byte of the object so far. */
static char last_of(const ah_buf *out)
{
    size_t n = ah_buf_ok(out) ? out->len : 0;

    while (n > 0 && ah_is_blank(out->data[n - 1]))
        n--;
    return n > 0 ? out->data[n - 1] : '{';
}

/* Removes the member with a comma: the one before it, or, if it comes first, the one after it. */
static size_t drop(const checker *c, ah_buf *out, size_t behind)
{
    if (last_of(out) == ',') {
        while (out->data[--out->len] != ',')
            ;
        return behind;
    }
    while (ah_is_blank(c->value.p[behind]))
        behind++;
    return behind + (c->value.p[behind] == ',');
}

static void put_default(ah_buf *out, const fill *f)
{
    if (last_of(out) != '{')
        ah_buf_char(out, ',');
    ah_json_put_string(out, f->name);
    ah_buf_char(out, ':');
    ah_buf_put(out, f->text);
}

void schema_put_filled(const checker *c, ah_buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < c->fills.n; i++) {
        const fill *f = fill_at(c, i);

        ah_buf_add(out, c->value.p + from, f->offset - from);
        from = f->offset + f->number;
        if (f->number)
            put_integer(out, (ah_slice){c->value.p + f->offset, f->number});
        else if (f->dropped)
            from = drop(c, out, f->offset + f->dropped);
        else
            put_default(out, f);
    }
    ah_buf_add(out, c->value.p + from, c->value.n - from);
}

/* Defaults, and lists around values, add levels of nesting. */
bool schema_is_too_deep(ah_slice text)
{
    ah_json_reader r = ah_json_read(text);
    ah_json_token t;
    int depth = 0;

    while ((t = ah_json_next(&r)).kind != AH_JSON_END && depth <= AH_JSON_MAX_DEPTH) {
        depth += t.kind == AH_JSON_ARRAY || t.kind == AH_JSON_OBJECT;
        depth -= t.kind == AH_JSON_ARRAY_END || t.kind == AH_JSON_OBJECT_END;
    }
    return depth > AH_JSON_MAX_DEPTH;
}
