/* Where things are: refusals that name the place, addresses of schemas, and references
 * that are led to them.
 *
 * Addresses follow RFC 3986 without ever being opened: a reference leads to a document
 * that was given, to an $id in one, or nowhere, which is an error. */
#include <stdlib.h>

#include "model/schema_program.h"

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

/* Steps from a value's text to the child that holds `where`; false where it is the value. */
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

/* The document's address and the pointer in it, cut; nothing for the root of the schema. */
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
    b->max = SCHEMA_MESSAGE - 8; /* ah_err holds a NUL more, and a cut is marked */
    return b->len > start;
}

void schema_put_place(compiler *c, ah_buf *b, uint32_t i)
{
    if (!put_place(c, b, node_at(c->s, i)->text.p))
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

/* Addresses */

typedef struct uri {
    ah_slice scheme, authority, path, query; /* .p NULL: absent */
} uri;

static ah_slice cut(ah_slice *rest, const char *stops)
{
    ah_slice head = {rest->p, 0};

    while (head.n < rest->n && !strchr(stops, rest->p[head.n]))
        head.n++;
    rest->p += head.n;
    rest->n -= head.n;
    return head;
}

static uri uri_of(ah_slice s)
{
    ah_slice rest = {s.p ? s.p : "", s.n}, head;
    uri u = {0};

    head = cut(&rest, ":/?#");
    if (rest.n && rest.p[0] == ':' && head.n) {
        u.scheme = head;
        rest = (ah_slice){rest.p + 1, rest.n - 1};
    } else {
        rest = (ah_slice){s.p ? s.p : "", s.n};
    }
    if (rest.n >= 2 && rest.p[0] == '/' && rest.p[1] == '/') {
        rest = (ah_slice){rest.p + 2, rest.n - 2};
        u.authority = cut(&rest, "/?#");
    }
    u.path = cut(&rest, "?#");
    if (rest.n && rest.p[0] == '?') {
        rest = (ah_slice){rest.p + 1, rest.n - 1};
        u.query = cut(&rest, "#");
    }
    return u;
}

/* RFC 3986, 5.2.4, in place behind `start`. */
static void remove_dots(ah_buf *b, size_t start)
{
    size_t to = start, i = start;

    while (i < b->len) {
        size_t end = i + 1, n;

        while (end < b->len && b->data[end] != '/')
            end++;
        n = end - i;
        if ((n == 2 && memcmp(b->data + i, "/.", 2) == 0) ||
            (n == 3 && memcmp(b->data + i, "/..", 3) == 0)) {
            while (n == 3 && to > start && b->data[--to] != '/')
                ;
            if (end == b->len)
                b->data[to++] = '/';
        } else {
            memmove(b->data + to, b->data + i, n);
            to += n;
        }
        i = end;
    }
    b->len = to;
}

static void put_path(ah_buf *out, uri base, uri ref)
{
    size_t start = out->len, keep = base.path.n;

    if (ref.path.n && ref.path.p[0] != '/' && !ref.scheme.p && !ref.authority.p) {
        while (keep && base.path.p[keep - 1] != '/')
            keep--;
        if (!keep && base.authority.p)
            ah_buf_char(out, '/');
        ah_buf_add(out, base.path.p, keep);
    }
    ah_buf_put(out, ref.path);
    if (ah_buf_ok(out) && out->len > start && out->data[start] == '/')
        remove_dots(out, start);
}

/* Reference resolution of RFC 3986, section 5.2, appended to out. */
static void resolve_uri(ah_slice base_text, ah_slice ref_text, ah_buf *out)
{
    uri base = uri_of(base_text), ref = uri_of(ref_text);
    bool own = ref.scheme.p || ref.authority.p;
    ah_slice scheme = ref.scheme.p ? ref.scheme : base.scheme;
    ah_slice authority = own ? ref.authority : base.authority;
    ah_slice query = own || ref.path.n || ref.query.p ? ref.query : base.query;

    if (scheme.p) {
        ah_buf_put(out, scheme);
        ah_buf_char(out, ':');
    }
    if (authority.p) {
        ah_buf_str(out, "//");
        ah_buf_put(out, authority);
    }
    if (own || ref.path.n)
        put_path(out, base, ref);
    else
        ah_buf_put(out, base.path);
    if (query.p) {
        ah_buf_char(out, '?');
        ah_buf_put(out, query);
    }
}

/* The resource of this address, or NONE. */
static uint32_t find_resource(const ah_schema *s, ah_slice address)
{
    for (size_t i = s->resources.n; i-- > 0;)
        if (ah_slice_eq(resource_at(s, i)->uri, address))
            return (uint32_t)i;
    return NONE;
}

/* `where` is the beginning of the schema that has it second. */
static ah_status refuse_twice(compiler *c, const char *where, const char *keyword, ah_slice name,
                              uint32_t other)
{
    ah_buf *b = schema_refusal(c, where, ah_slice_of(keyword));

    ah_buf_str(b, "is not the only one of its name: ");
    schema_put_found(b, name);
    ah_buf_str(b, " is also at ");
    schema_put_place(c, b, other);
    return schema_refused(c);
}

/* An address may be given twice only to the same text: as a document's and by its $id, or
 * where a schema is among its own documents. */
ah_status schema_open_resource(compiler *c, uint32_t root, ah_slice text, ah_slice id, ah_slice base)
{
    ah_schema *s = c->s;
    uint32_t same, i;
    ah_slice kept;

    ah_buf_reset(&c->uri, 0);
    resolve_uri(base, id, &c->uri);
    if (!ah_buf_ok(&c->uri))
        return ah_err_nomem(c->err);
    same = c->uri.len ? find_resource(s, ah_buf_slice(&c->uri)) : NONE;
    if (same != NONE && !ah_slice_eq(node_at(s, resource_at(s, same)->node)->text, text))
        return refuse_twice(c, text.p, "$id", resource_at(s, same)->uri, resource_at(s, same)->node);
    i = schema_extend(s->mem, &s->resources, 1, sizeof(resource));
    if (i == NONE || !(kept = schema_keep(s, ah_buf_slice(&c->uri))).p)
        return ah_err_nomem(c->err);
    *resource_at(s, i) = (resource){.uri = kept, .node = root};
    c->resource = i;
    return AH_OK;
}

/* References */

static int hex(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* One segment of a pointer into c->segment, NUL-terminated, without %xx, ~0 and ~1. */
static const char *take_segment(compiler *c, ah_slice *rest)
{
    ah_buf *b = &c->segment;
    ah_slice s = cut(rest, "/");

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

static ah_slice item_at(ah_slice array, const char *index)
{
    ah_json_reader r = ah_json_read(array);
    ah_json_token t = ah_json_next(&r);
    size_t n = strlen(index);
    uint64_t left = 0;

    if (n == 0 || n > 9 || strspn(index, "0123456789") != n || (n > 1 && index[0] == '0'))
        return (ah_slice){0};
    for (size_t i = 0; i < n; i++)
        left = left * 10 + (uint64_t)(index[i] - '0');
    while ((t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END) {
        ah_slice item = ah_json_skip(&r, t);

        if (left-- == 0)
            return item;
    }
    return (ah_slice){0};
}

/* The node whose text begins at p, or NONE: nodes stand in the order of their document. */
static uint32_t find_node(const ah_schema *s, const char *p)
{
    range in = document_of(s, p)->nodes;
    size_t low = in.first, high = (size_t)in.first + in.n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (node_at(s, mid)->text.p == p)
            return (uint32_t)mid;
        if (p < node_at(s, mid)->text.p)
            high = mid;
        else
            low = mid + 1;
    }
    return NONE;
}

static uint32_t follow_pointer(compiler *c, uint32_t from, ah_slice pointer)
{
    ah_slice at = node_at(c->s, resource_at(c->s, from)->node)->text;

    while (at.p && pointer.n) {
        const char *segment;

        pointer = (ah_slice){pointer.p + 1, pointer.n - 1};
        if (!(segment = take_segment(c, &pointer)))
            return NONE;
        at = ah_json_kind_of(at) == AH_JSON_ARRAY ? item_at(at, segment) : ah_json_member(at, segment);
    }
    return at.p ? find_node(c->s, at.p) : NONE;
}

/* Where the reference leads, or NONE. */
static uint32_t follow(compiler *c, const reference *r, ah_slice text)
{
    ah_slice fragment = text, address = cut(&fragment, "#");
    uint32_t in = node_at(c->s, r->node)->resource;
    const anchor *a;

    if (fragment.n)
        fragment = (ah_slice){fragment.p + 1, fragment.n - 1};
    if (address.n) {
        ah_buf_reset(&c->uri, 0);
        resolve_uri(resource_at(c->s, in)->uri, address, &c->uri);
        in = find_resource(c->s, ah_buf_slice(&c->uri));
    }
    if (in == NONE)
        return NONE;
    if (fragment.n == 0 || fragment.p[0] == '/')
        return follow_pointer(c, in, fragment);
    if (!(a = schema_find_anchor(c->s, in, fragment)))
        return NONE;
    if (a->dynamic && op_at(c->s, r->op)->code == OP_DYNAMIC_REF)
        op_at(c->s, r->op)->literal = a->name;
    return a->node;
}

static ah_status link_reference(compiler *c, const reference *r)
{
    bool dynamic = op_at(c->s, r->op)->code == OP_DYNAMIC_REF;
    ah_json_reader reader = ah_json_read(r->value);
    ah_json_token t = ah_json_next(&reader);
    ah_slice text = t.raw;
    uint32_t to;
    ah_buf *b;

    if (t.escaped) {
        ah_buf_reset(&c->segment, 0);
        ah_json_unescape(t.raw, &c->segment);
        text = schema_keep(c->s, ah_buf_slice(&c->segment));
        if (!text.p || !ah_buf_ok(&c->segment))
            return ah_err_nomem(c->err);
    }
    to = follow(c, r, text);
    if (!ah_buf_ok(&c->uri) || !ah_buf_ok(&c->segment))
        return ah_err_nomem(c->err);
    if (to != NONE) {
        op_at(c->s, r->op)->rest = to;
        return AH_OK;
    }
    b = schema_refusal(c, node_at(c->s, r->node)->text.p, ah_slice_of(dynamic ? "$dynamicRef" : "$ref"));
    ah_buf_str(b, "leads to no schema: ");
    schema_put_found(b, text);
    return schema_refused(c);
}

static ah_status sort_anchors(compiler *c)
{
    ah_schema *s = c->s;

    if (s->anchors.n)
        qsort(s->anchors.at, s->anchors.n, sizeof(anchor), schema_compare_anchors);
    for (size_t i = 1; i < s->anchors.n; i++) {
        const anchor *a = anchor_at(s, i - 1), *b = anchor_at(s, i);

        if (schema_compare_anchors(a, b) == 0)
            return refuse_twice(c, node_at(s, b->node)->text.p,
                                b->dynamic ? "$dynamicAnchor" : "$anchor", b->name, a->node);
    }
    return AH_OK;
}

ah_status schema_lead_references(compiler *c)
{
    ah_status st = sort_anchors(c);

    for (size_t i = 0; i < c->refs.n && st == AH_OK; i++)
        st = link_reference(c, (reference *)c->refs.at + i);
    return st;
}
