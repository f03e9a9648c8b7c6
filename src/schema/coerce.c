/* Coercions, on request: text that reads as a number or a boolean, and a single value where a
 * list is expected; or only {} as an empty list, for Lua. They are recorded at wrong types,
 * written into the text after the pass, and described. Nothing else is guessed. */
#include "schema/checker.h"

/* Returns the JSON text of the value read as one of the types; .p NULL: impossible. */
static ah_slice meant(const checker *c, const subject *v, unsigned types)
{
    ah_slice none = {NULL, 0}, raw = v->t.raw;
    ah_json_fault fault;
    number n;
    bool held;

    if (c->only_lists)
        return types & T_ARRAY && ah_slice_is(schema_value_text(v), "{}") ? ah_slice_of("[]")
                                                                          : none;
    if (v->t.kind != AH_JSON_STRING || v->t.escaped)
        return none;
    if (ah_slice_is(raw, "true") || ah_slice_is(raw, "false"))
        return types & T_BOOLEAN ? raw : none;
    if (!(types & (T_INTEGER | T_NUMBER)) || raw.n == 0 || strchr(" \t", raw.p[0]) ||
        strchr(" \t", raw.p[raw.n - 1]) || ah_json_check(c->s->mem, raw, 1, &fault) != AH_OK ||
        ah_json_kind_of(raw) != AH_JSON_NUMBER)
        return none;
    held = schema_number(raw, &n);
    return held && types & (n.n.is_int ? T_INTEGER : T_NUMBER) ? raw : none;
}

static void tell(checker *c, const subject *v, ah_slice text, ah_slice by)
{
    ah_buf *b = c->coerced;

    if (!b)
        return;
    if (b->len)
        ah_buf_str(b, "; ");
    schema_put_pointer(b, v->at);
    ah_buf_str(b, v->at ? ": took " : "took ");
    schema_put_found(b, text);
    ah_buf_str(b, by.p ? " as " : " as a list of it");
    if (by.p)
        ah_buf_put(b, by);
}

bool schema_coerce(checker *c, const subject *v, unsigned types)
{
    const edit *last = c->edits.n ? (edit *)c->edits.at + c->edits.n - 1 : NULL;
    ah_slice text, by;
    size_t offset;
    uint32_t i;

    if (c->silent || c->stopped || c->naming)
        return false;
    text = schema_value_text(v);
    if (!schema_spend(c, v->at, text.n / STEP_BYTES))
        return true;
    by = meant(c, v, types);
    if (!by.p && (c->only_lists || !(types & T_ARRAY) || schema_string_hint(c, v, T_ARRAY)))
        return false; /* a list in quotes is not coerced */
    offset = (size_t)(text.p - c->value.p);
    if (last &&
        offset <
            last->offset + last->n) /* recorded already, or inside an edit: the next pass sees it */
        return true;
    if ((i = schema_extend(c->s->mem, &c->edits, 1, sizeof(edit))) == NONE) {
        c->status = AH_NOMEM;
        return true;
    }
    ((edit *)c->edits.at)[i] = (edit){.offset = offset, .n = text.n, .by = by};
    tell(c, v, text, by);
    return true;
}

void schema_put_edited(const checker *c, ah_buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < c->edits.n; i++) {
        const edit *e = (const edit *)c->edits.at + i;
        ah_slice whole = {c->value.p + e->offset, e->n};

        ah_buf_add(out, c->value.p + from, e->offset - from);
        if (!e->by.p)
            ah_buf_char(out, '[');
        ah_buf_put(out, e->by.p ? e->by : whole);
        if (!e->by.p)
            ah_buf_char(out, ']');
        from = e->offset + e->n;
    }
    ah_buf_add(out, c->value.p + from, c->value.n - from);
}
