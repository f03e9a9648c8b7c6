/* Finds schemas: their places for refusals, their addresses, and the targets of references.
 *
 * A reference leads to a given document, to an $id in one, or to a metaschema; otherwise it is
 * an error. A document is compiled when the first reference leads to it. All names in references
 * are found by an index, so a reference takes time in its own length. */
#include "schema/program.h"

/* Places */

static const document *document_of(const ah_schema *s, const char *where)
{
    for (size_t i = 0; i < s->documents.n; i++) {
        const document *d = document_at(s, i);

        if (d->text && where >= d->text->data && where <= d->text->data + d->text->len)
            return d;
    }
    return document_at(s, 0);
}

/* Steps from a value's text to the child that contains `where`; false if it is the value itself. */
static bool step(ah_buf *b, ah_slice *at, const char *where)
{
    ah_json_reader r = ah_json_read(*at);
    ah_json_token t = ah_json_next(&r), key = {0};
    size_t i = 0;

    if (at->p == where || (t.kind != AH_JSON_OBJECT && t.kind != AH_JSON_ARRAY))
        return false;
    for (; (t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_OBJECT_END; i++) {
        if ((key = t).kind == AH_JSON_KEY)
            t = ah_json_next(&r);
        *at = ah_json_skip(&r, t);
        if (where < at->p + at->n)
            break;
    }
    if (key.kind == AH_JSON_KEY) {
        schema_put_key(b, key.raw);
    } else {
        ah_buf_char(b, '/');
        ah_buf_int(b, (int64_t)i);
    }
    return true;
}

/* Puts the document's address and the pointer in it, cut; nothing for the root of the schema. */
static bool put_place(compiler *c, ah_buf *b, const char *where)
{
    const document *d = document_of(c->s, where);
    ah_slice at = ah_text_slice(d->text);
    size_t start = schema_begin_part(b, SCHEMA_POINTER);

    if (d->uri.n) {
        ah_buf_put(b, d->uri);
        ah_buf_char(b, '#');
    }
    while (step(b, &at, where))
        ;
    schema_end_part(b, start);
    b->max = SCHEMA_MESSAGE - 8; /* ah_err also stores a NUL, and a cut is marked */
    return b->len > start;
}

void schema_put_place(compiler *c, ah_buf *b, const char *where)
{
    if (!put_place(c, b, where))
        ah_buf_str(b, "the root");
}

ah_buf *schema_refusal(compiler *c, const char *where, ah_slice name)
{
    ah_buf *b = &c->message;

    ah_buf_reset(b, 0);
    b->max = SCHEMA_MESSAGE;
    ah_buf_str(b, "schema: ");
    if (name.p) {
        ah_buf_str(b, "keyword '");
        schema_put_found(b, name);
        ah_buf_str(b, "' at ");
    }
    ah_buf_str(b, put_place(c, b, where) ? " " : "the root ");
    return b;
}

ah_status schema_refused(compiler *c)
{
    ah_slice words = schema_end_part(&c->message, 0);

    if (!ah_buf_ok(&c->message))
        return ah_err_nomem(c->err);
    return ah_err_set(c->err, AH_PROMPT_VALIDATION, "%.*s", AH_FMT(words));
}

ah_status schema_refuse(compiler *c, const char *where, const char *name, ah_slice found,
                        const char *want)
{
    ah_buf *b = schema_refusal(c, where, ah_slice_of(name));

    ah_buf_str(b, want);
    ah_buf_str(b, ", found ");
    schema_put_found(b, found);
    return schema_refused(c);
}

/* Schemas with addresses */

ah_status schema_refuse_twice(compiler *c, const char *where, const char *keyword, ah_slice name,
                              const char *other)
{
    ah_buf *b = schema_refusal(c, where, ah_slice_of(keyword));

    ah_buf_str(b, "is not the only one of its name: ");
    schema_put_found(b, name);
    ah_buf_str(b, " is also at ");
    schema_put_place(c, b, other);
    return schema_refused(c);
}

ah_status schema_make(compiler *c, const char *where, ah_slice text, ah_slice *kept)
{
    c->made += text.n;
    if (c->made > SCHEMA_MADE)
        return schema_refuse(
            c, where, NULL, text,
            "makes the addresses or the defaults of the schema longer than 16 MiB");
    *kept = schema_keep(c->s, text);
    return kept->p ? AH_OK : ah_err_nomem(c->err);
}

/* Two schemas may have the same address only with the same text, in two documents: a schema may
 * be among its own documents. `text` is that of the schema that gets the address in c->uri. */
static ah_status check_address(compiler *c, ah_slice text)
{
    const shelf *f = c->shelf;
    ah_slice address = ah_buf_slice(&c->uri), other;
    uint32_t i = schema_index_find(&c->resources, (schema_key){.text = address});

    if (i != NONE) {
        const resource *same = resource_at(c->s, i);

        other = node_at(c->s, same->node)->text;
        return other.p == text.p || (same->document != c->document && ah_slice_eq(other, text))
                   ? AH_OK
                   : schema_refuse_twice(c, text.p, "$id", address, other.p);
    }
    if (f->s != c->s || (i = schema_shelf_root(c, address)) == NONE)
        return AH_OK;
    other = ah_text_slice(document_at(f->s, i)->text);
    return ah_slice_eq(other, text) ? AH_OK
                                    : schema_refuse_twice(c, other.p, "$id", address, text.p);
}

static ah_status enter_resource(compiler *c, uint32_t root, ah_slice kept)
{
    schema_key key = {.text = kept};
    ah_schema *s = c->s;
    uint32_t i = schema_extend(s->mem, &s->resources, 1, sizeof(resource));

    if (i == NONE || (kept.n && schema_index_find(&c->resources, key) == NONE &&
                      !schema_index_put(s->mem, &c->resources, key, i)))
        return ah_err_nomem(c->err);
    *resource_at(s, i) = (resource){.uri = kept, .node = root, .document = c->document};
    c->resource = i;
    return AH_OK;
}

ah_status schema_open_resource(compiler *c, uint32_t root, ah_slice text, ah_slice id,
                               ah_slice base)
{
    ah_slice kept;
    ah_status st;

    ah_buf_reset(&c->uri, 0);
    schema_resolve_uri(base, id, &c->uri);
    if (!ah_buf_ok(&c->uri))
        return ah_err_nomem(c->err);
    if (c->uri.len > SCHEMA_ADDRESS)
        return schema_refuse(c, text.p, "$id", id, "makes an address of more than 4096 bytes");
    if (c->uri.len && (st = check_address(c, text)) != AH_OK)
        return st;
    if ((st = schema_make(c, text.p, ah_buf_slice(&c->uri), &kept)) != AH_OK)
        return st;
    return enter_resource(c, root, kept);
}

ah_status schema_add_anchor(compiler *c, uint32_t i, const char *keyword, ah_slice name,
                            bool dynamic)
{
    ah_schema *s = c->s;
    const anchor *same = schema_find_anchor(s, c->resource, name);
    uint32_t a;

    if (same)
        return schema_refuse_twice(c, node_at(s, i)->text.p, keyword, name,
                                   node_at(s, same->node)->text.p);
    a = schema_extend(s->mem, &s->anchors, 1, sizeof(anchor));
    if (a == NONE ||
        !schema_index_put(s->mem, &s->anchor_index, (schema_key){{c->resource}, name}, a))
        return ah_err_nomem(c->err);
    *anchor_at(s, a) = (anchor){c->resource, name, i, dynamic};
    return AH_OK;
}

static ah_status compile_found(compiler *c, uint32_t i)
{
    return i == NONE || document_at(c->s, i)->nodes.n ? AH_OK : schema_compile_document(c, i);
}

/* Finds the resource with the address in c->to, or NONE. */
static ah_status find_resource(compiler *c, uint32_t *out)
{
    ah_slice address = ah_buf_slice(&c->to);
    uint32_t found;
    ah_status st = AH_OK;

    *out = schema_index_find(&c->resources, (schema_key){.text = address});
    for (int deep = 0; deep < 2 && *out == NONE && st == AH_OK; deep++) {
        if ((st = schema_shelf_find(c, address, deep, &found)) == AH_OK)
            st = compile_found(c, found);
        *out = schema_index_find(&c->resources, (schema_key){.text = address});
    }
    return st;
}

/* Places */

enum { PLACE_ALONE, PLACE_NAMED, PLACE_LISTED, PLACE_KINDS };

static schema_key place_key(uint32_t parent, uint32_t keyword, uint32_t item, ah_slice name)
{
    uint32_t kind = item != NONE ? PLACE_LISTED : name.p ? PLACE_NAMED : PLACE_ALONE;

    return (schema_key){{parent, keyword * PLACE_KINDS + kind, item}, name};
}

/* Pointers are followed from node to node by the origins of nodes. */
static bool enter_places(compiler *c, document *d)
{
    for (uint32_t i = d->nodes.first; i < d->nodes.first + d->nodes.n && !d->placed; i++) {
        const origin *o = (const origin *)c->origins.at + i;

        if (o->parent != NONE &&
            !schema_index_put(c->s->mem, &c->places,
                              place_key(o->parent, o->keyword, o->item, o->name), i))
            return false;
    }
    d->placed = true;
    return true;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* Puts the first segment of a pointer into c->segment, NUL-terminated and without %xx, ~0 and
 * ~1. */
static const char *take_segment(compiler *c, ah_slice *rest)
{
    ah_buf *b = &c->segment;
    ah_slice s;

    *rest = (ah_slice){rest->p + 1, rest->n - 1};
    s = schema_cut(rest, "/");

    ah_buf_reset(b, 0);
    for (size_t i = 0; i < s.n; i++) {
        char byte = s.p[i];

        if (byte == '%' && i + 2 < s.n && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0) {
            byte = (char)(hex(s.p[i + 1]) * 16 + hex(s.p[i + 2]));
            i += 2;
        }
        if (byte == '~' && i + 1 < s.n && (s.p[i + 1] == '0' || s.p[i + 1] == '1'))
            byte = s.p[++i] == '0' ? '~' : '/';
        ah_buf_char(b, byte);
    }
    ah_buf_char(b, '\0');
    return ah_buf_ok(b) ? b->data : NULL;
}

/* Returns a list's index in a pointer, or NONE. */
static uint32_t item_of(const char *segment)
{
    size_t n = strlen(segment);
    uint32_t i = 0;

    if (n == 0 || n > 9 || strspn(segment, "0123456789") != n || (n > 1 && segment[0] == '0'))
        return NONE;
    for (size_t k = 0; k < n; k++)
        i = i * 10 + (uint32_t)(segment[k] - '0');
    return i;
}

/* Returns the node that the head of *pointer leads to from node i, or NONE: a keyword, and for
 * most keywords a name or an index. */
static uint32_t follow_step(compiler *c, uint32_t i, ah_slice *pointer)
{
    const char *segment = take_segment(c, pointer);
    uint32_t keyword = segment ? schema_keyword_named(ah_slice_of(segment)) : NONE, to, item;

    if (keyword == NONE)
        return NONE;
    to = schema_index_find(&c->places, place_key(i, keyword, NONE, (ah_slice){NULL, 0}));
    if (to != NONE || !pointer->n || !(segment = take_segment(c, pointer)))
        return to;
    to = schema_index_find(&c->places,
                           place_key(i, keyword, NONE, (ah_slice){segment, c->segment.len - 1}));
    if (to == NONE && (item = item_of(segment)) != NONE)
        to = schema_index_find(&c->places, place_key(i, keyword, item, (ah_slice){NULL, 0}));
    return to;
}

static uint32_t follow_pointer(compiler *c, uint32_t from, ah_slice pointer)
{
    const resource *r = resource_at(c->s, from);
    uint32_t at = r->node;

    if (pointer.n && !enter_places(c, document_at(c->s, r->document))) {
        c->segment.status = AH_NOMEM;
        return NONE;
    }
    while (at != NONE && pointer.n)
        at = follow_step(c, at, &pointer);
    return at;
}

/* References */

/* Finds the resource that a reference from this node names, by its address if it has one. */
static ah_status follow_address(compiler *c, uint32_t i, ah_slice address, uint32_t *in)
{
    *in = node_at(c->s, i)->resource;
    if (!address.n)
        return AH_OK;
    ah_buf_reset(&c->to, 0);
    schema_resolve_uri(resource_at(c->s, *in)->uri, address, &c->to);
    return ah_buf_ok(&c->to) ? find_resource(c, in) : ah_err_nomem(c->err);
}

/* Sets the op to look up the outermost anchor of this name, by the name's number. */
static void ask_for(compiler *c, op *o, ah_slice name)
{
    schema_key key = {.text = name};

    o->literal = name;
    o->name = schema_index_find(&c->names, key);
    if (o->name != NONE)
        return;
    o->name = c->s->dynamic_names++;
    if (!schema_index_put(c->s->mem, &c->names, key, o->name))
        c->segment.status = AH_NOMEM;
}

/* Returns the node to which the reference leads in the resource, or NONE. */
static uint32_t follow_fragment(compiler *c, const reference *r, uint32_t in, ah_slice fragment)
{
    bool recursive = strcmp(r->keyword, "$recursiveRef") == 0;
    op *o = op_at(c->s, r->op);
    const anchor *a;

    if ((fragment.n == 0 && !recursive) || (fragment.n && fragment.p[0] == '/'))
        return follow_pointer(c, in, fragment);
    in = node_at(c->s, resource_at(c->s, in)->node)->resource; /* a document's root may have two */
    if (!(a = schema_find_anchor(c->s, in, fragment)))
        return recursive ? resource_at(c->s, in)->node : NONE;
    if (a->dynamic && o->code == OP_DYNAMIC_REF)
        ask_for(c, o, a->name);
    return a->node;
}

static ah_status refuse_reference(compiler *c, const reference *r, ah_slice text)
{
    ah_buf *b = schema_refusal(c, node_at(c->s, r->node)->text.p, ah_slice_of(r->keyword));

    ah_buf_str(b, "leads to no schema: ");
    schema_put_found(b, text);
    return schema_refused(c);
}

static ah_status link_reference(compiler *c, reference r)
{
    ah_json_reader reader = ah_json_read(r.value);
    ah_json_token t = ah_json_next(&reader);
    ah_slice fragment = t.raw, address;
    uint32_t in, to;
    ah_status st;

    if (t.escaped) {
        ah_buf_reset(&c->segment, 0);
        ah_json_unescape(t.raw, &c->segment);
        if (!ah_buf_ok(&c->segment) || !(fragment = schema_keep(c->s, ah_buf_slice(&c->segment))).p)
            return ah_err_nomem(c->err);
    }
    t.raw = fragment;
    address = schema_cut(&fragment, "#");
    if (fragment.n)
        fragment = (ah_slice){fragment.p + 1, fragment.n - 1};
    if ((st = follow_address(c, r.node, address, &in)) != AH_OK)
        return st;
    to = in == NONE ? NONE : follow_fragment(c, &r, in, fragment);
    if (!ah_buf_ok(&c->segment))
        return ah_err_nomem(c->err);
    op_at(c->s, r.op)->rest = to;
    return to == NONE ? refuse_reference(c, &r, t.raw) : AH_OK;
}

/* Links all references; documents that they lead to may add more. */
ah_status schema_lead_references(compiler *c)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < c->refs.n && st == AH_OK; i++)
        st = link_reference(c, ((reference *)c->refs.at)[i]);
    return st;
}
