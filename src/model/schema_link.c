/* The last part of the compiler, when all nodes are there: references led to their nodes,
 * circles refused, what in-place schemas accept worked out, and defaults found behind
 * references and filled with the defaults of what they hold. */
#include "model/schema_program.h"

enum {
    MAX_CHAIN = 512, /* schemas in one place, each leading to the next; bounds the recursion */
    MAX_NAMED = 8,   /* of a circle's places, in its refusal */
    MAX_PASSES = 7   /* each doubles the levels of defaults within defaults */
};

/* Circles, and defaults behind references */

/* The schemas that the op puts in the place of its node, NONE among them: how many. */
static size_t in_place(const ah_schema *s, const op *o, uint32_t few[3], const uint32_t **list)
{
    *list = few;
    if (o->code == OP_ALL_OF || o->code == OP_ANY_OF || o->code == OP_ONE_OF) {
        *list = (const uint32_t *)s->links.at + o->list.first;
        return o->list.n;
    }
    few[0] = o->rest;
    few[1] = o->yes;
    few[2] = o->no;
    if (o->code == OP_IF && o->rest != NONE)
        return 3;
    return o->code == OP_REF || o->code == OP_DYNAMIC_REF || o->code == OP_NOT ||
           o->code == OP_DEPEND_SCHEMA;
}

typedef enum visit { UNSEEN, OPEN, DONE } visit;

typedef struct walk {
    compiler *c;
    unsigned char *state; /* visit, of each node */
    uint32_t path[MAX_CHAIN];
    size_t depth;
} walk;

static ah_status refuse_circle(walk *w, uint32_t to)
{
    ah_buf *b = schema_refusal(w->c, node_at(w->c->s, to)->text.p, (ah_slice){NULL, 0});
    size_t from = w->depth, n;

    while (w->path[from - 1] != to)
        from--;
    n = w->depth - from;
    ah_buf_str(b, "leads back to itself without a step into the value: ");
    schema_put_place(w->c, b, to);
    for (size_t i = 0; i < n && i < MAX_NAMED; i++) {
        ah_buf_str(b, " -> ");
        schema_put_place(w->c, b, w->path[from + i]);
    }
    if (n > MAX_NAMED)
        ah_buf_fmt(b, " -> %zu more", n - MAX_NAMED);
    ah_buf_str(b, " -> ");
    schema_put_place(w->c, b, to);
    return schema_refused(w->c);
}

/* A schema without a default has the first of those in its place, which have theirs by now. */
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

static ah_status follow_places(walk *w, uint32_t i)
{
    const ah_schema *s = w->c->s;
    ah_status st = AH_OK;

    if (w->state[i] == DONE)
        return AH_OK;
    if (w->state[i] == OPEN)
        return refuse_circle(w, i);
    if (w->depth == MAX_CHAIN)
        return schema_refuse(w->c, node_at(s, i)->text.p, NULL, node_at(s, i)->text,
                             "is the end of a chain of more than 512 schemas in one place");
    w->state[i] = OPEN;
    w->path[w->depth++] = i;
    for (uint32_t o = node_at(s, i)->first; o != NONE && st == AH_OK; o = op_at(s, o)->next) {
        uint32_t few[3];
        const uint32_t *list;
        size_t n = in_place(s, op_at(s, o), few, &list);

        for (size_t k = 0; k < n && st == AH_OK; k++)
            if (list[k] != NONE)
                st = follow_places(w, list[k]);
    }
    if (st == AH_OK)
        node_at(s, i)->fallback = default_of(s, node_at(s, i));
    w->depth--;
    w->state[i] = DONE;
    return st;
}

/* A schema that leads back to itself in the same place would be checked without end. */
static ah_status follow_all(compiler *c)
{
    walk w = {.c = c, .state = ah_alloc(c->s->mem, c->s->nodes.n)};
    ah_status st = w.state ? AH_OK : ah_err_nomem(c->err);

    for (size_t i = 0; i < c->s->nodes.n && st == AH_OK; i++)
        st = follow_places(&w, (uint32_t)i);
    ah_free(c->s->mem, w.state);
    return st;
}

/* What types a node's in-place schemas leave. Never fewer than it takes in truth. */

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

static void accept_types(ah_schema *s)
{
    enum { PASSES = 3 }; /* chains of references longer than that lose only words */

    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = s->nodes.n; i-- > 0;)
            node_at(s, i)->accepts = accepted(s, node_at(s, i));
}

/* Defaults */

/* Keeps the default as it will be inserted, and tells where it has grown. */
static bool keep_default(ah_schema *s, uint32_t i, const ah_buf *filled, bool *grown)
{
    ah_slice kept;

    if (ah_slice_eq(ah_buf_slice(filled), node_at(s, i)->fallback))
        return true;
    *grown = true;
    kept = schema_keep(s, ah_buf_slice(filled));
    node_at(s, i)->fallback = kept;
    return kept.p != NULL;
}

static ah_status refuse_default(compiler *c, uint32_t i, const ah_faults *faults)
{
    ah_buf *b;

    if (!ah_json_member(node_at(c->s, i)->text, "default").p) { /* another's, which does not fit here */
        node_at(c->s, i)->fallback = (ah_slice){NULL, 0};
        return AH_OK;
    }
    b = schema_refusal(c, node_at(c->s, i)->text.p, (ah_slice)AH_LIT("default"));
    ah_buf_str(b, "does not conform: ");
    ah_faults_print(faults, b);
    return schema_refused(c);
}

/* A default stands in for the value a handler relies on, so it must conform. */
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
    else if (st != AH_OK || !keep_default(s, i, &filled, grown))
        st = ah_err_nomem(c->err);
    ah_buf_clear(&filled);
    ah_faults_clear(&faults);
    return st;
}

/* Until none has grown: a default may hold what another one fills. */
static ah_status fill_defaults(compiler *c)
{
    ah_schema *s = c->s;
    ah_status st = AH_OK;
    bool grown = true;

    for (int pass = 0; grown && st == AH_OK; pass++) {
        grown = false;
        for (size_t i = s->nodes.n; i-- > 0 && st == AH_OK;) {
            bool more = false;

            if (node_at(s, i)->fallback.p)
                st = fill_default(c, (uint32_t)i, &more);
            grown |= more;
            if (more && pass == MAX_PASSES && st == AH_OK)
                return schema_refuse(c, node_at(s, i)->text.p, "default", node_at(s, i)->fallback,
                                     "holds itself without end, or is more than 64 defaults deep");
        }
    }
    return st;
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

ah_status schema_link(compiler *c)
{
    ah_status st = schema_lead_references(c);

    if (st == AH_OK)
        st = follow_all(c);
    if (st != AH_OK)
        return st;
    accept_types(c->s);
    for (size_t i = 0; i < c->s->nodes.n; i++)
        node_at(c->s, i)->kind = kind_of(c->s, node_at(c->s, i));
    return fill_defaults(c);
}
