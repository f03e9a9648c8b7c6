/* anyOf and oneOf: which branches fit, and if none does, which one to report.
 *
 * The nearest branch is the one whose faults weigh least; of equals, the first. A fault weighs
 * 1, and a constant (const, enum) 3; in a direct member of the value a constant weighs more than
 * everything else together, because such members distinguish the branches. If no branch has the
 * value of that member, the fault lists all of its allowed values. */
#include "schema/checker.h"

enum {
    TAG = 1 << 20,
    MOST_WITHIN = 10,
    DEEP = 8,
    LOOKS = 256 /* rules examined, to find the values of one tag */
};

void schema_weigh_constant(checker *c, const subject *v)
{
    if (c->branch)
        c->distance += v->at && v->at->up == c->branch->at ? TAG : 2;
}

/* True if all branches only list values; they are then reported as one list. */
static bool only_values(const ah_schema *s, range list)
{
    for (size_t i = 0; i < list.n; i++) {
        const node *n = node_at(s, link_at(s, list.first + i));

        if (n->first == NONE || n->first != n->last || op_at(s, n->first)->code > OP_ENUM ||
            op_at(s, n->first)->code == OP_FALSE)
            return false;
    }
    return true;
}

static void fault_values(checker *c, const op *o, const subject *v, const char *rule)
{
    ah_buf *b;
    guess g = {.looks = 0};
    size_t listed = 0;

    schema_weigh_constant(c, v);
    if (!(b = schema_begin_fault(c, v->at, rule)))
        return;
    ah_buf_str(b, "must be one of ");
    for (size_t i = 0; i < o->list.n; i++) {
        range values = op_at(c->s, node_at(c->s, link_at(c->s, o->list.first + i))->first)->list;

        schema_put_values(c->s, b, values, &listed);
        schema_guess(c, &g, v, values);
    }
    schema_end_list(b, listed);
    schema_end_guessed(c, b, v, &g);
}

/* An anyOf or oneOf in progress. */
typedef struct branch_walk {
    frame f;
    const op *o;
    subject *v;
    branches b;
    size_t i;            /* the current branch, or the next one */
    bool trying;         /* the following fields belong to the current branch */
    size_t mark, bytes;  /* state of the fills before it */
    size_t kept, before; /* number of kept results before all branches, and before this one */
    const subject *outer;
    trial trial;
    marks own;
} branch_walk;

/* Ends a branch. Its defaults count if it is the first that fits. */
static void end_branch(checker *c, branch_walk *w)
{
    size_t d = schema_end_trial(c, &w->trial);
    branches *b = &w->b;

    c->branch = w->outer;
    if (d == 0 && w->v->marks)
        schema_marks_add(c, w->v->marks, &w->own);
    if (w->v->marks)
        schema_marks_clear(c, &w->own);
    if (d > 0 || b->fits > 0) {
        c->fills.n = w->mark;
        c->filled = w->bytes;
    }
    if (d == 0) {
        *(b->fits == 0 ? &b->first : &b->second) = w->i;
        b->fits++;
    } else if (d < b->best) {
        b->best = d;
        b->nearest = link_at(c->s, w->o->list.first + w->i);
    } else if (!c->sorted) {
        c->recalled.n = w->before;
    }
    w->trying = false;
    w->i++;
}

static void begin_branch(checker *c, branch_walk *w)
{
    uint32_t branch = link_at(c->s, w->o->list.first + w->i);

    if (!schema_step(c, w->v->at) || !(node_at(c->s, branch)->accepts & w->v->type)) {
        w->i++;
        return;
    }
    w->trying = true;
    w->before = c->recalled.n;
    w->mark = c->fills.n;
    w->bytes = c->filled;
    w->outer = c->branch;
    c->branch = w->v;
    schema_begin_trial(c, &w->trial);
    schema_check_in_place(c, branch, w->v, w->v->marks ? &w->own : NULL);
}

/* Tries the branches until the result is certain; true: done. */
static inline bool try_branches(checker *c, branch_walk *w, size_t enough)
{
    while (c->top == &w->f) {
        if (w->trying)
            end_branch(c, w);
        if (w->i == w->o->list.n || w->b.fits >= enough || c->stopped || c->status != AH_OK)
            return true;
        begin_branch(c, w);
    }
    return false;
}

static void begin_branches(checker *c, const op *o, subject *v, void (*step)(checker *c, frame *f))
{
    branch_walk *w = schema_push(c, sizeof *w, step);

    if (!w)
        return;
    if (!c->silent && !c->sorted)
        c->recalled.n = 0;
    w->o = o;
    w->v = v;
    w->b = (branches){.best = SIZE_MAX, .nearest = NONE};
    w->i = schema_recall_branches(c, o, v, &w->b) ? o->list.n : 0;
    w->kept = c->recalled.n;
    w->trying = false;
    w->own = (marks){0};
}

/* Returns the values that the schema allows for its member of this name; .n is 0 if it lists
 * none, or if *left examined rules are not enough to find them. */
static range find_tag_values(const ah_schema *s, uint32_t i, ah_slice name, int depth, size_t *left)
{
    range found = {0, 0};

    for (uint32_t k = depth < DEEP ? node_at(s, i)->first : NONE; k != NONE && !found.n && *left;
         --*left) {
        const op *o = op_at(s, k);
        uint32_t p = o->code == OP_OBJECT ? schema_find_prop(s, o->list, name) : NONE;
        uint32_t to = p == NONE ? NONE : prop_at(s, p)->node, list;

        if (to != NONE && ((list = schema_find_op(s, to, OP_CONST)) != NONE ||
                           (list = schema_find_op(s, to, OP_ENUM)) != NONE))
            found = op_at(s, list)->list;
        if (o->code == OP_REF)
            found = find_tag_values(s, o->rest, name, depth + 1, left);
        for (size_t b = 0; o->code == OP_ALL_OF && b < o->list.n && !found.n && *left; b++)
            found = find_tag_values(s, link_at(s, o->list.first + b), name, depth + 1, left);
        k = o->next;
        if (!*left)
            break;
    }
    return found;
}

static range tag_values(checker *c, uint32_t i, ah_slice name)
{
    size_t left = LOOKS;
    range values = find_tag_values(c->s, i, name, 0, &left);

    ah_work_do(c->work,
               1 + (LOOKS - left) / STEP_ITEMS); /* the next step notices the end of the work */
    return values;
}

/* True if every branch for objects lists values for the member, and none lists this value. */
static bool is_wrong_tag(checker *c, const op *o, const subject *member, ah_slice name)
{
    for (size_t i = 0; i < o->list.n; i++) {
        uint32_t branch = link_at(c->s, o->list.first + i);
        range values = tag_values(c, branch, name);

        if (node_at(c->s, branch)->accepts & T_OBJECT &&
            (!values.n || schema_is_one_of(c, member, values)))
            return false;
    }
    return true;
}

static void fault_tag(checker *c, const op *o, const subject *member, ah_slice name)
{
    ah_buf *b = schema_begin_fault(c, member->at, o->code == OP_ANY_OF ? "anyOf" : "oneOf");
    guess g = {.looks = 0};
    size_t listed = 0;

    if (!b)
        return;
    ah_buf_str(b, "must be one of ");
    for (size_t i = 0; i < o->list.n; i++) {
        uint32_t branch = link_at(c->s, o->list.first + i);
        range values = {0, 0};

        if (node_at(c->s, branch)->accepts & T_OBJECT)
            values = tag_values(c, branch, name);
        schema_put_values(c->s, b, values, &listed);
        schema_guess(c, &g, member, values);
    }
    schema_end_list(b, listed);
    schema_end_guessed(c, b, member, &g);
}

/* Reports the first member whose value is the tag of no branch, with all allowed values. False:
 * there is none. */
static bool fault_tags(checker *c, const op *o, const subject *v)
{
    ah_json_reader r = v->inside;
    ah_json_token key;

    while (v->type == T_OBJECT && (key = ah_json_next(&r)).kind == AH_JSON_KEY &&
           schema_step(c, v->at)) {
        place at = {.up = v->at, .key = key.raw, .escaped = key.escaped};
        ah_json_token t = ah_json_next(&r);
        subject member = {.t = t, .inside = r, .at = &at};

        schema_skip(c, &r, t);
        if (t.kind == AH_JSON_NUMBER)
            schema_number(t.raw, &member.num);
        if (!key.escaped && is_wrong_tag(c, o, &member, key.raw)) {
            fault_tag(c, o, &member, key.raw);
            return true;
        }
    }
    return false;
}

/* Reports the faults of the nearest branch. A branch of another type (also null) is far from any
 * value; if all are, the types are reported. */
static void fault_branches(checker *c, const op *o, subject *v, const branches *b)
{
    const char *rule = o->code == OP_ANY_OF ? "anyOf" : "oneOf";
    unsigned types = 0;

    schema_spend(c, v->at, o->list.n / STEP_ITEMS);
    for (size_t i = 0; i < o->list.n; i++)
        types |= node_at(c->s, link_at(c->s, o->list.first + i))->accepts;
    if (only_values(c->s, o->list))
        fault_values(c, o, v, rule);
    else if (b->nearest == NONE)
        schema_fault_type(c, v, types, rule);
    else if (c->silent)
        c->distance += b->best < MOST_WITHIN ? b->best : MOST_WITHIN;
    else if (b->best < TAG)
        schema_tell_branch(c, b->nearest, v, &(reason){.kind = WHY_BRANCH, .node = b->nearest});
    else if (!fault_tags(c, o, v) && !c->stopped)
        schema_tell_branch(c, b->nearest, v, NULL);
}

/* Keeps the results if none fits inside a branch of another anyOf or oneOf, whose report may
 * need them. */
static void end_branches(checker *c, const branch_walk *w)
{
    bool told = w->b.fits == 0 && (c->branch || !c->silent);

    if (!told && !c->sorted)
        c->recalled.n = w->kept;
    else if (told && c->branch && w->b.nearest != NONE)
        schema_keep_branches(c, w->o, w->v, &w->b);
    schema_pop(c);
}

static void step_any_of(checker *c, frame *f)
{
    branch_walk *w = (branch_walk *)(void *)f;
    size_t enough = w->v->marks ? SIZE_MAX : 1;
    const op *o = w->o;
    subject *v = w->v;
    branches b;

    if (!try_branches(c, w, enough))
        return;
    b = w->b;
    end_branches(c, w);
    if (b.fits == 0 && !c->stopped)
        fault_branches(c, o, v, &b);
}

void schema_check_any_of(checker *c, const op *o, subject *v)
{
    begin_branches(c, o, v, step_any_of);
}

static void fault_two(checker *c, const op *o, const subject *v, const branches *b)
{
    ah_buf *f = schema_begin_fault(c, v->at, "oneOf");

    if (!f)
        return;
    ah_buf_fmt(f, "must fit exactly one of %u forms, but fits numbers %zu and %zu", o->list.n,
               b->first + 1, b->second + 1);
    schema_end_found(c, f, v);
}

static void step_one_of(checker *c, frame *f)
{
    branch_walk *w = (branch_walk *)(void *)f;
    const op *o = w->o;
    subject *v = w->v;
    branches b;

    if (!try_branches(c, w, 2))
        return;
    b = w->b;
    end_branches(c, w);
    if (c->stopped || b.fits == 1)
        return;
    if (b.fits == 0)
        fault_branches(c, o, v, &b);
    else
        fault_two(c, o, v, &b);
}

void schema_check_one_of(checker *c, const op *o, subject *v)
{
    begin_branches(c, o, v, step_one_of);
}
