/* anyOf and oneOf: which branches fit, and where none does, which one to speak of.
 *
 * The nearest branch is the one whose faults weigh least, the first of equals. A fault
 * weighs 1, but a constant (const, enum) weighs 3, and in a direct member of the value
 * more than all else together: such members tell the branches apart. Where no branch has
 * the value of that member, the fault is all the values that it may have. */
#include "model/schema_checker.h"

enum { TAG = 1 << 20, MOST_WITHIN = 10, DEEP = 8 };

void schema_weigh_constant(checker *c, const subject *v)
{
    if (c->branch)
        c->distance += v->at && v->at->up == c->branch->at ? TAG : 2;
}

/* Do all branches only list values? Then they are one list, for the words. */
static bool only_values(const ah_schema *s, range branches)
{
    for (size_t i = 0; i < branches.n; i++) {
        const node *n = node_at(s, link_at(s, branches.first + i));

        if (n->first == NONE || n->first != n->last || op_at(s, n->first)->code > OP_ENUM ||
            op_at(s, n->first)->code == OP_FALSE)
            return false;
    }
    return true;
}

static void fault_values(checker *c, const op *o, const subject *v, const char *rule)
{
    ah_buf *b;
    size_t listed = 0;

    schema_weigh_constant(c, v);
    if (!(b = schema_begin_fault(c, v->at, rule)))
        return;
    ah_buf_str(b, "must be one of ");
    for (size_t i = 0; i < o->list.n; i++) {
        const node *n = node_at(c->s, link_at(c->s, o->list.first + i));
        schema_put_values(c->s, b, op_at(c->s, n->first)->list, &listed);
    }
    schema_end_list(b, listed);
    schema_end_found(c, b, v);
}

/* What the branches of an anyOf or oneOf came to. */
typedef struct branches {
    size_t best; /* distance of the nearest */
    uint32_t nearest;
    size_t fits, first, second; /* how many fit, and which */
} branches;

/* One branch; its defaults count where it is the first that fits. */
static void try_branch(checker *c, const op *o, subject *v, size_t i, branches *b)
{
    uint32_t branch = link_at(c->s, o->list.first + i);
    size_t mark = c->fills.n, bytes = c->filled, d;
    const subject *outer = c->branch;
    marks own = {0};

    if (!(node_at(c->s, branch)->accepts & v->type))
        return;
    c->branch = v;
    d = schema_distance(c, branch, v, v->marks ? &own : NULL);
    c->branch = outer;
    if (d == 0 && v->marks)
        schema_marks_add(c, v->marks, &own);
    schema_marks_clear(c, &own);
    if (d > 0 || b->fits > 0) {
        c->fills.n = mark;
        c->filled = bytes;
    }
    if (d == 0) {
        *(b->fits == 0 ? &b->first : &b->second) = i;
        b->fits++;
    } else if (d < b->best) {
        b->best = d;
        b->nearest = branch;
    }
}

/* The values that the schema allows its member of this name, .n 0 where it lists none. */
static range tag_values(const ah_schema *s, uint32_t i, ah_slice name, int depth)
{
    range found = {0, 0};

    for (uint32_t k = depth < DEEP ? node_at(s, i)->first : NONE; k != NONE && !found.n;) {
        const op *o = op_at(s, k);
        uint32_t p = o->code == OP_OBJECT ? schema_find_prop(s, o->list, name) : NONE;
        uint32_t to = p == NONE ? NONE : prop_at(s, p)->node, list;

        if (to != NONE && ((list = schema_find_op(s, to, OP_CONST)) != NONE ||
                           (list = schema_find_op(s, to, OP_ENUM)) != NONE))
            found = op_at(s, list)->list;
        if (o->code == OP_REF)
            found = tag_values(s, o->rest, name, depth + 1);
        for (size_t b = 0; o->code == OP_ALL_OF && b < o->list.n && !found.n; b++)
            found = tag_values(s, link_at(s, o->list.first + b), name, depth + 1);
        k = o->next;
    }
    return found;
}

/* Do all branches for objects list what the member may be, and none what it is? */
static bool is_wrong_tag(checker *c, const op *o, const subject *member, ah_slice name)
{
    for (size_t i = 0; i < o->list.n; i++) {
        uint32_t branch = link_at(c->s, o->list.first + i);
        range values = tag_values(c->s, branch, name, 0);

        if (node_at(c->s, branch)->accepts & T_OBJECT &&
            (!values.n || schema_is_one_of(c, member, values)))
            return false;
    }
    return true;
}

static void fault_tag(checker *c, const op *o, const subject *member, ah_slice name)
{
    ah_buf *b = schema_begin_fault(c, member->at, o->code == OP_ANY_OF ? "anyOf" : "oneOf");
    size_t listed = 0;

    if (!b)
        return;
    ah_buf_str(b, "must be one of ");
    for (size_t i = 0; i < o->list.n; i++) {
        uint32_t branch = link_at(c->s, o->list.first + i);

        if (node_at(c->s, branch)->accepts & T_OBJECT)
            schema_put_values(c->s, b, tag_values(c->s, branch, name, 0), &listed);
    }
    schema_end_list(b, listed);
    schema_end_found(c, b, member);
}

/* Where every branch failed for its tag: tells all that the first such member may be. */
static bool fault_tags(checker *c, const op *o, const subject *v)
{
    ah_json_reader r = v->inside;
    ah_json_token key;

    while (v->type == T_OBJECT && (key = ah_json_next(&r)).kind == AH_JSON_KEY &&
           schema_step(c, v->at)) {
        place at = {.up = v->at, .key = key.raw, .escaped = key.escaped};
        ah_json_token t = ah_json_next(&r);
        subject member = {.t = t, .inside = r, .at = &at};

        ah_json_skip(&r, t);
        if (t.kind == AH_JSON_NUMBER)
            schema_number(t.raw, &member.num);
        if (!key.escaped && is_wrong_tag(c, o, &member, key.raw)) {
            fault_tag(c, o, &member, key.raw);
            return true;
        }
    }
    return false;
}

/* Tells the faults of the branch that came nearest. A branch of another type (null
 * among them) is far away from any; where all are, the types are what to tell. */
static void fault_branches(checker *c, const op *o, subject *v, const branches *b)
{
    const char *rule = o->code == OP_ANY_OF ? "anyOf" : "oneOf";
    unsigned types = 0;

    for (size_t i = 0; i < o->list.n; i++)
        types |= node_at(c->s, link_at(c->s, o->list.first + i))->accepts;
    if (only_values(c->s, o->list))
        fault_values(c, o, v, rule);
    else if (b->nearest == NONE)
        schema_fault_type(c, v, types, rule);
    else if (c->silent)
        c->distance += b->best < MOST_WITHIN ? b->best : MOST_WITHIN;
    else if (b->best < TAG || !fault_tags(c, o, v))
        schema_check_in_place(c, b->nearest, v, NULL);
}

void schema_check_any_of(checker *c, const op *o, subject *v)
{
    branches b = {.best = SIZE_MAX, .nearest = NONE};

    for (size_t i = 0; i < o->list.n && !(b.fits && !v->marks) && !c->stopped; i++)
        try_branch(c, o, v, i, &b);
    if (b.fits == 0 && !c->stopped)
        fault_branches(c, o, v, &b);
}

void schema_check_one_of(checker *c, const op *o, subject *v)
{
    branches b = {.best = SIZE_MAX, .nearest = NONE};
    ah_buf *f;

    for (size_t i = 0; i < o->list.n && b.fits < 2 && !c->stopped; i++)
        try_branch(c, o, v, i, &b);
    if (c->stopped || b.fits == 1)
        return;
    if (b.fits == 0) {
        fault_branches(c, o, v, &b);
    } else if ((f = schema_begin_fault(c, v->at, "oneOf"))) {
        ah_buf_fmt(f, "must fit exactly one of %u forms, but fits numbers %zu and %zu", o->list.n,
                   b.first + 1, b.second + 1);
        schema_end_found(c, f, v);
    }
}
