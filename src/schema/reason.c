/* Text that helps a model to fix a fault: why a rule applies here (the condition of a then, the
 * tag of a branch, the member that requires others), and the value that was surely meant
 * (without quotes, spelled otherwise, no member at all). Hints appear only if the written value
 * allows exactly one reading that fits. */
#include "schema/checker.h"

enum {
    MOST_TOLD = 3, /* members of a condition that are shown */
    DEEP = 4,      /* nested schemas in a condition */
    DEEP_IN_PLACE = 8,
    LOOKS = 1000, /* rules, members and values examined for one fault */
    STEPS_A_NEAR = 40
};

/* Reasons */

typedef struct because_walk {
    frame f;
    reason why;
} because_walk;

static void step_because(checker *c, frame *f)
{
    c->why = ((because_walk *)(void *)f)->why.up;
    schema_pop(c);
}

void schema_check_because(checker *c, uint32_t i, subject *v, marks *m, const reason *why)
{
    because_walk *w = c->silent ? NULL : schema_push(c, sizeof *w, step_because);

    if (w) {
        w->why = *why;
        w->why.up = c->why;
        w->why.v = v;
        c->why = &w->why;
    }
    schema_check_in_place(c, i, v, m);
}

/* The members that a condition examines, as they are shown. */
typedef struct telling {
    checker *c;
    const subject *v;
    ah_buf *b;
    bool tags; /* only constants */
    size_t told, left;
} telling;

static bool is_key(const telling *t, ah_json_token key, ah_slice name)
{
    ah_buf plain;
    bool same;

    if (!key.escaped)
        return ah_slice_eq(key.raw, name);
    ah_buf_init(&plain, t->c->s->mem, key.raw.n);
    ah_json_unescape(key.raw, &plain);
    if (!ah_buf_ok(&plain))
        t->c->status = plain.status;
    same = ah_slice_eq(ah_buf_slice(&plain), name);
    ah_buf_clear(&plain);
    return same;
}

/* Returns the text of a member, or .p NULL. */
static ah_slice find_member(telling *t, ah_slice name)
{
    ah_json_reader r = t->v->inside;
    ah_json_token key;

    while (t->left && (key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice text = ah_json_skip(&r, ah_json_next(&r));

        t->left--;
        ah_work_do(t->c->work,
                   1 + text.n / STEP_BYTES); /* the next step notices the end of the work */
        if (is_key(t, key, name))
            return text;
    }
    return (ah_slice){NULL, 0};
}

static bool is_tag(const ah_schema *s, uint32_t i)
{
    uint32_t o = schema_find_op(s, i, OP_CONST);

    if (o == NONE)
        o = schema_find_op(s, i, OP_ENUM);
    return o != NONE && op_at(s, o)->list.n == 1;
}

static void tell_member(telling *t, const prop *p)
{
    bool any = p->node == NONE || node_at(t->c->s, p->node)->kind == NODE_ANYTHING;
    ah_slice text;

    if (t->tags && (p->node == NONE || !is_tag(t->c->s, p->node)))
        return;
    text = find_member(t, p->name);
    if (!t->left || (t->tags && !text.p))
        return;
    ah_buf_str(t->b, t->told++ ? " and " : " (because ");
    schema_put_found(t->b, p->name);
    ah_buf_str(t->b, !text.p ? " is missing" : any ? " is there" : " is ");
    if (text.p && !any)
        schema_put_found(t->b, text);
}

static void tell_members(telling *t, uint32_t i, int depth)
{
    const ah_schema *s = t->c->s;
    const op *o;

    for (uint32_t k = depth < DEEP ? node_at(s, i)->first : NONE; k != NONE && t->left;
         k = o->next) {
        o = op_at(s, k);
        t->left--;
        for (size_t p = 0; o->code == OP_OBJECT && p < o->list.n && t->told < MOST_TOLD && t->left;
             p++)
            tell_member(t, prop_at(s, o->list.first + p));
        if (o->code == OP_ALL_OF || (!t->tags && (o->code == OP_ANY_OF || o->code == OP_ONE_OF)))
            for (size_t n = 0; n < o->list.n && t->left; n++)
                tell_members(t, link_at(s, o->list.first + n), depth + 1);
        if (o->code == OP_REF || (o->code == OP_NOT && !t->tags))
            tell_members(t, o->rest, depth + 1);
    }
}

static bool is_about(const reason *why, const place *at)
{
    return why->v->at == at || (at && why->v->at == at->up);
}

void schema_put_reason(checker *c, ah_buf *b, const place *at)
{
    const reason *why = c->why;
    telling t = {.c = c, .b = b, .left = LOOKS};

    while (why && !is_about(why, at))
        why = why->up;
    if (!why)
        return;
    t.v = why->v;
    t.tags = why->kind == WHY_BRANCH;
    if (why->kind == WHY_MEMBER) {
        ah_buf_str(b, " (because ");
        schema_put_found(b, why->member);
        ah_buf_str(b, " is there");
        t.told = 1;
    } else if (why->v->type == T_OBJECT) {
        tell_members(&t, why->node, 0);
    }
    if (!t.told && !t.tags)
        ah_buf_str(b,
                   why->kind == WHY_THEN ? " (because `if` holds" : " (because `if` does not hold");
    if (t.told || !t.tags)
        ah_buf_char(b, ')');
}

/* Hints */

/* True for text that is JSON of one of the types. */
static bool is_json_of(const checker *c, ah_slice text, unsigned types)
{
    ah_json_fault fault;
    number n;
    unsigned type;

    text = ah_slice_trim(text);
    ah_work_do(c->work, text.n / STEP_TOKENS);
    if (!text.n || ah_json_check(c->s->mem, text, AH_JSON_MAX_DEPTH, &fault) != AH_OK)
        return false;
    type = schema_type_of_kind(ah_json_kind_of(text));
    if (type == T_NUMBER)
        type = schema_number(text, &n) && n.n.is_int ? T_INTEGER : T_NUMBER;
    return types & type;
}

/* Ignores case. */
static bool is_word(ah_slice text, const char *word)
{
    size_t n = 0;

    while (n < text.n && word[n] && (text.p[n] | 32) == word[n])
        n++;
    return n == text.n && !word[n];
}

static const char *hint_of_text(const checker *c, ah_slice text, unsigned types)
{
    if (is_json_of(c, text, types & (T_ARRAY | T_OBJECT)))
        return "; it is JSON in a string: send the value itself, without quotes";
    if (is_json_of(c, text, types))
        return "; send it without quotes";
    if (types & T_BOOLEAN && (is_word(text, "true") || is_word(text, "false")))
        return "; write true or false, without quotes";
    return NULL;
}

const char *schema_string_hint(checker *c, const subject *v, unsigned types)
{
    const char *hint = NULL;
    ah_buf plain;

    if (v->t.kind != AH_JSON_STRING || c->naming)
        return NULL;
    ah_buf_init(&plain, c->s->mem, v->t.raw.n);
    if (v->t.escaped)
        ah_json_unescape(v->t.raw, &plain);
    ah_work_do(c->work, v->t.raw.n / STEP_DIGITS);
    if (ah_buf_ok(&plain))
        hint = hint_of_text(c, v->t.escaped ? ah_buf_slice(&plain) : v->t.raw, types);
    else
        c->status = plain.status;
    ah_buf_clear(&plain);
    return hint;
}

static bool is_needed(const ah_schema *s, const op *o, ah_slice name)
{
    uint32_t p = o->code == OP_OBJECT || o->code == OP_DEPEND_NAMES
                     ? schema_find_prop(s, o->list, name)
                     : NONE;
    bool found = p != NONE && prop_at(s, p)->required;

    for (size_t i = 0; o->code == OP_DEPEND_NAMES && p != NONE && !found && i < o->patterns.n; i++)
        found = link_at(s, o->patterns.first + 2 * i + 1) == p - o->list.first;
    return found;
}

/* True if node i, or a schema in its place, requires the member under any condition. */
static bool requires(const ah_schema *s, uint32_t i, ah_slice name, int depth, size_t *left)
{
    const op *o;
    bool found = false;

    for (uint32_t k = depth < DEEP_IN_PLACE ? node_at(s, i)->first : NONE;
         k != NONE && !found && *left; k = o->next) {
        uint32_t to[] = {NONE, NONE, NONE};
        range all = {0};

        o = op_at(s, k);
        --*left;
        found = is_needed(s, o, name);
        if (o->code == OP_REF || o->code == OP_DYNAMIC_REF)
            to[0] = o->rest;
        if (o->code == OP_IF)
            to[1] = o->yes, to[2] = o->no;
        if (o->code == OP_ALL_OF || o->code == OP_ANY_OF || o->code == OP_ONE_OF)
            all = o->list;
        if (o->code == OP_DEPEND_SCHEMAS)
            all = o->patterns;
        for (size_t n = 0; n < 3 && !found; n++)
        found = to[n] != NONE && requires(s, to[n], name, depth + 1, left);
        for (size_t n = 0; n < all.n && !found && *left; n++)
        found = requires(s, link_at(s, all.first + n), name, depth + 1, left);
    }
    return found;
}

/* For a null that may be left out as a member. */
void schema_put_null_hint(const checker *c, ah_buf *b, const subject *v)
{
    size_t left = LOOKS;
    uint32_t i = NONE;

    if (v->t.kind != AH_JSON_NULL || !v->at || !v->at->key.p || v->at->escaped || c->naming)
        return;
    i = schema_outermost(c, v->at->up);
    if (i != NONE && !requires(c->s, i, v->at->key, 0, &left) && left)
        ah_buf_str(b, "; leave it out instead");
    ah_work_do(c->work,
               1 + (LOOKS - left) / STEP_ITEMS); /* the next step notices the end of the work */
}

void schema_put_misspelt(const checker *c, ah_buf *b, const subject *v, range declared,
                         ah_slice name)
{
    ah_near near = {.to = name};
    ah_json_reader r = v->inside;
    ah_json_token key;

    for (size_t n = 0; n < LOOKS && (key = ah_json_next(&r)).kind == AH_JSON_KEY; n++) {
        ah_slice text = ah_json_skip(&r, ah_json_next(&r));

        if (!key.escaped && schema_find_prop(c->s, declared, key.raw) == NONE)
            ah_near_offer(&near, key.raw);
        ah_work_do(c->work, STEPS_A_NEAR + text.n / STEP_BYTES);
    }
    if (!near.best.p)
        return;
    ah_buf_str(b, "; found a similar name, '");
    schema_put_found(b, near.best);
    ah_buf_str(b, "'");
}

/* Returns a constant without the quotes of a string, or .p NULL. */
static ah_slice plain_of(ah_json_token t, ah_slice text)
{
    ah_slice none = {NULL, 0};

    return t.kind == AH_JSON_STRING                              ? t.raw
           : t.kind == AH_JSON_ARRAY || t.kind == AH_JSON_OBJECT ? none
                                                                 : text;
}

void schema_guess(checker *c, guess *g, const subject *v, range list)
{
    if (!g->near.to.p)
        g->near.to = plain_of(v->t, v->t.raw);
    for (size_t i = 0; i < list.n && g->looks < LOOKS && g->near.to.p; i++, g->looks++) {
        const value *to = value_at(c->s, list.first + i);
        const char *before = g->near.best.p;

        ah_near_offer(&g->near, plain_of(to->t, to->text));
        if (g->near.best.p != before)
            g->text = to->text;
        ah_work_do(c->work, STEPS_A_NEAR);
    }
}

void schema_end_guessed(checker *c, ah_buf *b, const subject *v, const guess *g)
{
    schema_put_what(c, b, v);
    if (g->text.p) {
        ah_buf_str(b, "; did you mean ");
        schema_put_found(b, g->text);
        ah_buf_char(b, '?');
    }
    schema_end_fault(c);
}
