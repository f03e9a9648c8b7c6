/* The last phase of the compiler, when all nodes exist: links references to nodes, refuses
 * cycles, computes what schemas in place accept, and finds defaults behind references and
 * completes them with their members' defaults. */
#include "schema/program.h"

enum {
    MAX_NAMED = 8, /* places of a cycle that its refusal names */
    MAX_PASSES = 7 /* each doubles the nesting of defaults */
};

/* Circles, and defaults behind references */

/* Returns the number of schemas that the op puts in place of its node, and lists them; some may
 * be NONE. */
static size_t in_place(const ah_schema *s, const op *o, uint32_t few[3], const uint32_t **list)
{
    *list = few;
    if (o->code == OP_ALL_OF || o->code == OP_ANY_OF || o->code == OP_ONE_OF) {
        *list = (const uint32_t *)s->links.at + o->list.first;
        return o->list.n;
    }
    if (o->code == OP_DEPEND_SCHEMAS) {
        *list = (const uint32_t *)s->links.at + o->patterns.first;
        return o->patterns.n;
    }
    few[0] = o->rest;
    few[1] = o->yes;
    few[2] = o->no;
    if (o->code == OP_IF && o->rest != NONE)
        return 3;
    return o->code == OP_REF || o->code == OP_DYNAMIC_REF || o->code == OP_NOT;
}

typedef enum visit { UNSEEN, OPEN, DONE } visit;

/* A node in progress: its current op, and the next schema of that op. */
typedef struct stop {
    uint32_t node, op;
    size_t next;
} stop;

typedef struct walk {
    compiler *c;
    unsigned char *state; /* one visit per node */
    table path;           /* of stops */
} walk;

static stop *stop_at(const walk *w, size_t i)
{
    return (stop *)w->path.at + i;
}

static ah_status refuse_circle(walk *w, uint32_t to)
{
    const char *where = node_at(w->c->s, to)->text.p;
    ah_buf *b = schema_refusal(w->c, where, (ah_slice){NULL, 0});
    size_t from = w->path.n, n;

    while (stop_at(w, from - 1)->node != to)
        from--;
    n = w->path.n - from;
    ah_buf_str(b, "leads back to itself without a step into the value: ");
    schema_put_place(w->c, b, where);
    for (size_t i = 0; i < n && i < MAX_NAMED; i++) {
        ah_buf_str(b, " -> ");
        schema_put_place(w->c, b, node_at(w->c->s, stop_at(w, from + i)->node)->text.p);
    }
    if (n > MAX_NAMED)
        ah_buf_fmt(b, " -> %zu more", n - MAX_NAMED);
    ah_buf_str(b, " -> ");
    schema_put_place(w->c, b, where);
    return schema_refused(w->c);
}

/* Returns the node's default, else the first default among the schemas of its $ref and allOf,
 * which must be known; .p NULL: none. */
static ah_slice default_of(const ah_schema *s, const node *n)
{
    ah_slice text = n->fallback;

    for (uint32_t i = n->first; i != NONE && !text.p; i = op_at(s, i)->next) {
        const op *o = op_at(s, i);

        if (o->code == OP_REF)
            text = node_at(s, o->rest)->fallback;
        for (size_t k = 0; o->code == OP_ALL_OF && k < o->list.n && !text.p; k++)
            text = node_at(s, link_at(s, o->list.first + k))->fallback;
    }
    return text;
}

/* Returns the types that the in-place schemas of a node leave; their own types are known. It may
 * contain types that the node does not accept, but never lacks one. */

static unsigned accepted_by_any(const ah_schema *s, range branches)
{
    unsigned types = 0;

    for (size_t i = 0; i < branches.n; i++)
        types |= node_at(s, link_at(s, branches.first + i))->accepts;
    return types;
}

static unsigned accepted_by_all(const ah_schema *s, range schemas)
{
    unsigned types = T_ANY;

    for (size_t i = 0; i < schemas.n; i++)
        types &= node_at(s, link_at(s, schemas.first + i))->accepts;
    return types;
}

static unsigned accepted(const ah_schema *s, const node *n)
{
    unsigned types = n->types;

    for (uint32_t i = n->first; i != NONE && types; i = op_at(s, i)->next) {
        const op *o = op_at(s, i);

        if (o->code == OP_ANY_OF || o->code == OP_ONE_OF)
            types &= accepted_by_any(s, o->list);
        else if (o->code == OP_ALL_OF)
            types &= accepted_by_all(s, o->list);
        else if (o->code == OP_REF)
            types &= node_at(s, o->rest)->accepts;
    }
    return types;
}

static bool is_alias(const ah_schema *s, const node *n)
{
    return n->types == T_ANY && n->first != NONE && n->first == n->last &&
           op_at(s, n->first)->code == OP_REF && !n->others && !n->composed &&
           node_at(s, op_at(s, n->first)->rest)->resource == n->resource;
}

static node_kind kind_of(const ah_schema *s, const node *n)
{
    if (n->types == T_ANY && n->first == NONE)
        return NODE_ANYTHING;
    if (is_alias(s, n))
        return NODE_ALIAS;
    for (uint32_t i = n->first; i != NONE; i = op_at(s, i)->next) {
        op_code code = op_at(s, i)->code;

        if (code > OP_FORMAT && code != OP_UNIQUE && code != OP_DEPEND_NAMES)
            return NODE_VISITED;
    }
    return n->others || n->composed ? NODE_VISITED : NODE_PLAIN;
}

/* Returns the next schema in place of the node, or NONE. */
static uint32_t next_in_place(const ah_schema *s, stop *at)
{
    for (; at->op != NONE; at->op = op_at(s, at->op)->next, at->next = 0) {
        uint32_t few[3];
        const uint32_t *list;
        size_t n = in_place(s, op_at(s, at->op), few, &list);

        while (at->next < n)
            if (list[at->next++] != NONE)
                return list[at->next - 1];
    }
    return NONE;
}

/* Sets the fields of a node that depend on the schemas in its place, which are settled. */
static void settle(ah_schema *s, node *n)
{
    const node *to;
    op *o;

    n->fallback = default_of(s, n);
    n->accepts = accepted(s, n);
    n->kind = kind_of(s, n);
    if (n->kind != NODE_ALIAS)
        return;
    o = op_at(s, n->first);
    to = node_at(s, o->rest);
    if (to->kind == NODE_ALIAS && !to->own_default)
        o->rest = op_at(s, to->first)->rest;
}

static ah_status enter_place(walk *w, uint32_t i)
{
    uint32_t at;

    if (w->state[i] == DONE)
        return AH_OK;
    if (w->state[i] == OPEN)
        return refuse_circle(w, i);
    if ((at = schema_extend(w->c->s->mem, &w->path, 1, sizeof(stop))) == NONE)
        return ah_err_nomem(w->c->err);
    *stop_at(w, at) = (stop){i, node_at(w->c->s, i)->first, 0};
    w->state[i] = OPEN;
    return AH_OK;
}

static ah_status follow_places(walk *w, uint32_t i)
{
    ah_status st = enter_place(w, i);

    while (w->path.n && st == AH_OK) {
        stop *at = stop_at(w, w->path.n - 1);
        uint32_t next = next_in_place(w->c->s, at);

        if (next != NONE) {
            st = enter_place(w, next);
        } else {
            settle(w->c->s, node_at(w->c->s, at->node));
            w->state[at->node] = DONE;
            w->path.n--;
        }
    }
    return st;
}

/* A schema that leads to itself in the same place would never end a check. */
static ah_status follow_all(compiler *c)
{
    walk w = {.c = c, .state = ah_alloc(c->s->mem, c->s->nodes.n)};
    ah_status st = w.state ? AH_OK : ah_err_nomem(c->err);

    for (size_t i = 0; i < c->s->nodes.n && st == AH_OK; i++)
        st = follow_places(&w, (uint32_t)i);
    ah_free(c->s->mem, w.state);
    ah_free(c->s->mem, w.path.at);
    return st;
}

/* Defaults */

/* Keeps the default as it will be inserted; *grown: it became longer. */
static ah_status keep_default(compiler *c, uint32_t i, const ah_buf *filled, bool *grown)
{
    node *n = node_at(c->s, i);

    if (ah_slice_eq(ah_buf_slice(filled), n->fallback))
        return AH_OK;
    *grown = true;
    return schema_make(c, n->text.p, ah_buf_slice(filled), &n->fallback);
}

static ah_status refuse_default(compiler *c, uint32_t i, const ah_faults *faults)
{
    ah_buf *b;

    /* a default of another schema that does not fit here, or one that is only a note */
    if (!node_at(c->s, i)->own_default || c->s->any_defaults) {
        node_at(c->s, i)->fallback = (ah_slice){NULL, 0};
        return AH_OK;
    }
    b = schema_refusal(c, node_at(c->s, i)->text.p, (ah_slice)AH_LIT("default"));
    ah_buf_str(b, "does not conform: ");
    ah_faults_print(faults, b);
    return schema_refused(c);
}

/* A handler relies on the default, so it must conform. */
static ah_status fill_default(compiler *c, uint32_t i, bool *grown)
{
    ah_schema *s = c->s;
    ah_slice text = node_at(s, i)->fallback;
    ah_faults faults;
    ah_buf filled;
    ah_status st;

    ah_faults_init(&faults, s->mem);
    ah_buf_init(&filled, s->mem, SCHEMA_TEXT);
    st = schema_run(s, i, text, &c->work, &faults, &filled);
    if (st == AH_BUDGET)
        st = schema_refuse(c, node_at(s, i)->text.p, "default", text,
                           "grows over 1 MiB or 512 levels with its own defaults");
    else if (st == AH_OK && faults.n)
        st = refuse_default(c, i, &faults);
    else
        st = st == AH_OK ? keep_default(c, i, &filled, grown) : ah_err_nomem(c->err);
    ah_buf_clear(&filled);
    ah_faults_clear(&faults);
    return st;
}

static bool has_default_of_target(const node *n)
{
    return n->kind == NODE_ALIAS && !n->own_default;
}

/* An alias without its own default shares its target's, completed or dropped. */
static void share_defaults(ah_schema *s)
{
    for (size_t i = 0; i < s->nodes.n; i++)
        if (has_default_of_target(node_at(s, i)))
            node_at(s, i)->fallback = node_at(s, op_at(s, node_at(s, i)->first)->rest)->fallback;
}

/* Repeats until no default grows, because defaults may contain others. */
static ah_status fill_defaults(compiler *c)
{
    ah_schema *s = c->s;
    ah_status st = AH_OK;
    bool grown = true;

    for (int pass = 0; grown && st == AH_OK; pass++) {
        grown = false;
        share_defaults(s);
        for (size_t i = s->nodes.n; i-- > 0 && st == AH_OK;) {
            bool more = false;

            if (node_at(s, i)->fallback.p && !has_default_of_target(node_at(s, i)))
                st = fill_default(c, (uint32_t)i, &more);
            grown |= more;
            if (more && pass == MAX_PASSES && st == AH_OK)
                return schema_refuse(c, node_at(s, i)->text.p, "default", node_at(s, i)->fallback,
                                     "holds itself without end, or is more than 64 defaults deep");
        }
    }
    share_defaults(s);
    return st;
}

ah_status schema_link(compiler *c)
{
    ah_status st = schema_lead_references(c);

    if (st == AH_OK)
        st = follow_all(c);
    return st == AH_OK ? fill_defaults(c) : st;
}
