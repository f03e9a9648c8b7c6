/* The documents given with a schema, by address. A document is read only when a reference may
 * lead to it: first given addresses and those in roots are searched, then, without a result, the
 * addresses of all inner schemas. So a document that no reference needs may contain anything. */
#include "schema/program.h"

/* Keeps addresses of roots and of inner schemas apart. */
static schema_key key_of(ah_slice address, bool deep)
{
    return (schema_key){{deep}, address};
}

/* The first document with an address keeps it. */
static ah_status put_address(compiler *c, ah_slice address, bool deep, uint32_t i)
{
    shelf *f = c->shelf;
    ah_slice kept;
    ah_status st;

    if (!address.n || schema_index_find(&f->index, key_of(address, deep)) != NONE)
        return AH_OK;
    if ((st = schema_make(c, document_at(f->s, 0)->text->data, address, &kept)) != AH_OK)
        return st;
    return schema_index_put(c->s->mem, &f->index, key_of(kept, deep), i) ? AH_OK
                                                                         : ah_err_nomem(c->err);
}

/* Puts `id`, resolved in its document, into c->address. */
static ah_status put_resolved(compiler *c, ah_slice base, ah_slice id, uint32_t i)
{
    ah_buf_reset(&c->address, 0);
    schema_resolve_uri(base, id, &c->address);
    if (!ah_buf_ok(&c->address))
        return ah_err_nomem(c->err);
    return put_address(c, ah_buf_slice(&c->address), false, i);
}

static ah_status put_id(compiler *c, uint32_t i)
{
    const document *d = document_at(c->shelf->s, i);
    ah_slice id = ah_json_member(ah_text_slice(d->text), "$id");

    if (ah_json_kind_of(id) != AH_JSON_STRING)
        return AH_OK;
    ah_buf_reset(&c->segment, 0);
    ah_json_string(id, &c->segment);
    return ah_buf_ok(&c->segment) ? put_resolved(c, d->uri, ah_buf_slice(&c->segment), i)
                                  : ah_err_nomem(c->err);
}

ah_status schema_shelf_fill(compiler *c)
{
    const shelf *f = c->shelf;
    ah_status st = AH_OK;

    for (uint32_t i = 1; i < f->s->given && st == AH_OK; i++)
        st = put_resolved(c, (ah_slice)AH_LIT(""), document_at(f->s, i)->uri, i);
    for (uint32_t i = 1; i < f->s->given && st == AH_OK; i++)
        st = put_id(c, i);
    return st;
}

/* Enters the addresses of all schemas in the document, as far as it compiles. */
static ah_status look_into(compiler *c, uint32_t i)
{
    const document *d = document_at(c->shelf->s, i);
    ah_err why = {0};
    compiler inner;
    ah_schema *s;
    ah_status st = schema_of_document(c->s, d, &s);

    if (st != AH_OK)
        return ah_err_nomem(c->err);
    schema_begin_compiler(&inner, s, c->shelf, &why);
    inner.of_root = c->of_root;
    st = schema_compile_document(&inner, 0);
    schema_end_compiler(&inner);
    st = st == AH_NOMEM ? ah_err_nomem(c->err) : AH_OK;
    for (size_t k = 0; k < s->resources.n && st == AH_OK; k++)
        st = put_address(c, resource_at(s, k)->uri, true, i);
    ah_schema_unref(s);
    return st;
}

static ah_status fill_deep(compiler *c)
{
    shelf *f = c->shelf;
    ah_status st = AH_OK;

    if (f->deep)
        return AH_OK;
    f->deep = true;
    for (uint32_t i = 1; i < f->s->given && st == AH_OK; i++)
        if (!document_at(f->s, i)->nodes.n)
            st = look_into(c, i);
    return st;
}

uint32_t schema_shelf_root(const compiler *c, ah_slice address)
{
    if (address.n && address.p[address.n - 1] == '#')
        address.n--;
    return schema_index_find(&c->shelf->index, key_of(address, false));
}

/* Makes a built-in metaschema a document of the schema. */
static ah_status add_metaschema(compiler *c, const schema_metaschema *m, uint32_t *out)
{
    ah_schema *s = c->s;
    uint32_t i = schema_extend(s->mem, &s->documents, 1, sizeof(document));

    if (i == NONE || !(document_at(s, i)->text = ah_text_new(s->mem, m->text)))
        return ah_err_nomem(c->err);
    document_at(s, i)->uri = m->uri;
    *out = i;
    return AH_OK;
}

ah_status schema_shelf_find(compiler *c, ah_slice address, bool deep, uint32_t *out)
{
    const schema_metaschema *m;
    ah_status st = deep ? fill_deep(c) : AH_OK;

    if (st != AH_OK)
        return st;
    *out = schema_index_find(&c->shelf->index, key_of(address, deep));
    if (*out == NONE && !deep && (m = schema_find_metaschema(address)))
        return add_metaschema(c, m, out);
    return AH_OK;
}

void schema_shelf_clear(shelf *f)
{
    schema_index_clear(f->s->mem, &f->index);
}
