/* A check under way, shared by the files of src/schema that check and by nobody else.
 *
 * A value is walked as text, beside the program: no tree. Every schema entered counts
 * against a depth, and all that is done against a number of steps, matches of patterns included;
 * where one is reached, the check stops with one fault that says so, whatever the schema would have
 * made of it. It stops so, too, where its caller interrupts it.
 *
 * What is under way stands on a stack of the checker's own, on the heap: how deep a value or a
 * schema is says nothing of the C stack. The rule: no step of a frame calls another one's. It
 * pushes what is to be done and returns, and is called again when that is done; it sees by c->top
 * whether there was anything to push. */
#ifndef AH_SCHEMA_CHECKER_H
#define AH_SCHEMA_CHECKER_H

#include <stdalign.h>

#include "base/work.h"
#include "schema/program.h"

enum {
    CHECK_DEPTH = 32768, /* schemas within schemas, references followed included */
    STEP_BYTES = 64,     /* read again, in a step */
    STEP_TOKENS = 16,    /* bytes likewise, token by token */
    STEP_DIGITS = 8,     /* of a number, or bytes of a string that are unescaped */
    STEP_ITEMS = 8,      /* looked at in a table, in a step */
    STEP_FAULT = 16,     /* to report one */
    MARKS_INLINE = 2
};

typedef struct fill { /* what to do at value[offset] */
    size_t offset;
    size_t number;       /* length of a whole number, to be written as digits: 3.0 as 3 */
    size_t dropped;      /* length of a member that is left out */
    ah_slice name, text; /* else a default to insert before it */
} fill;

/* A position in a value: a chain through the frames. */
typedef struct place {
    const struct place *up;
    ah_slice key; /* .p NULL: an index */
    bool escaped; /* key is as in the text */
    size_t index;
} place;

/* The resources entered on the way, for $dynamicRef, each once, since the outermost counts: a chain
 * through the frames (scope.c). */
typedef struct scope {
    struct scope *up;
    uint32_t resource;
    uint32_t found;  /* of the dynamic anchors' names, the first that was found in it, or NONE */
    uint64_t number; /* of all that were entered, from 1 */
} scope;

typedef struct answer answer;

/* The members or items of a value that were evaluated, by their index. */
typedef struct marks {
    uint64_t few[MARKS_INLINE], *bits; /* NULL: few */
    size_t words;
    bool all;
    bool named; /* some schema in place has "properties" */
} marks;

typedef struct edit { /* a coercion: value[offset, offset + n) between these two, or replaced */
    size_t offset, n;
    ah_slice by; /* .p NULL: the value itself in brackets */
} edit;

typedef struct subject subject;
typedef struct checker checker;

/* The reason why the rules of a schema hold for a value: reported with faults of the value and its
 * members. */
typedef struct reason {
    enum {
        WHY_THEN,   /* it fits the node, which is an `if`; */
        WHY_ELSE,   /* it does not */
        WHY_BRANCH, /* the node is the branch that it comes nearest to */
        WHY_MEMBER  /* it has this member */
    } kind;
    uint32_t node;
    ah_slice member;
    const struct reason *up; /* both are set when it comes to hold */
    const subject *v;
} reason;

/* The head of each frame. `step` does the next part of it, and pops it at its end; where the check
 * has stopped, it pops it soon. */
typedef struct frame {
    struct frame *below;
    void (*step)(checker *c, struct frame *f);
} frame;

typedef struct block { /* frames one behind the other, which never move */
    struct block *below, *above;
    char *left;        /* where the block below was left */
    char *first, *end; /* of its frames */
} block;

struct checker {
    const ah_schema *s;
    ah_slice value;
    ah_extra extra;
    ah_faults *faults;
    size_t distance;       /* weight of the faults so far, the silent ones too */
    const subject *branch; /* whose branches are tried, the innermost; or NULL */
    int silent;            /* above 0: faults are counted, not reported */
    int depth;
    ah_work *work;
    bool stopped; /* a limit was reached; its fault is reported */
    frame *top;   /* NULL: nothing is under way */
    block *block;
    char *room; /* in the block, for the next frame */
    bool filling;
    bool coercing, only_lists; /* only_lists: only {} as [] */
    bool null_absent;
    bool edited;     /* the value is not the one that was checked to be JSON */
    ah_buf *coerced; /* descriptions of the coercions; may be NULL */
    table edits;     /* edit, by offset */
    bool naming;     /* the value is a property's name */
    scope *scope;
    uint64_t *entered;             /* bits: resources that are in the chain; NULL: nobody asks */
    answer *answers;               /* of the dynamic anchors' names */
    uint64_t scopes;               /* entered so far */
    const reason *why;             /* the innermost reason, or NULL */
    const place *told_at;          /* of the fault under way */
    size_t telling;                /* the fault under way, in faults->item */
    uint64_t ranks[AH_MAX_FAULTS]; /* of the faults: their order in the report */
    table fills;                   /* fill, by offset, then by name */
    table recalled;                /* of branches that were tried */
    size_t sorted;                 /* of these; above 0 while their branches are told */
    size_t filled, fill_max;       /* bytes */
    ah_pattern *names;             /* of hosts, in other scripts; NULL until it is needed */
    ah_buf scratch; /* an unescaped string, or a canonical value: never both in use */
    ah_status status;
};

/* A value under check. */
struct subject {
    ah_json_token t;
    ah_json_reader inside; /* just behind t */
    ah_json_reader end;    /* behind the value, once `ended` */
    bool ended;
    bool company; /* other schemas report the unknown members */
    unsigned type;
    uint32_t node; /* whose rules are checked */
    number num;
    const place *at;
    marks *marks; /* NULL: nobody asks */
};

typedef void check_fn(checker *c, const op *o, subject *v);

/* Frames (stack.c) */

/* Begins with a block in the caller's memory, aligned for anything. */
void schema_first_block(checker *c, void *memory, size_t size);
bool schema_next_block(checker *c);
/* A frame of `size` bytes on top, its head filled; NULL when out of memory. */
static inline void *schema_push(checker *c, size_t size, void (*step)(checker *c, frame *f))
{
    frame *f;

    size = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if ((size_t)(c->block->end - c->room) < size && !schema_next_block(c))
        return NULL;
    f = (frame *)(void *)c->room;
    c->room += size;
    *f = (frame){c->top, step};
    return c->top = f;
}
void schema_leave_block(checker *c);
static inline void schema_pop(checker *c)
{
    c->room = (char *)c->top;
    c->top = c->top->below;
    if (c->room == c->block->first)
        schema_leave_block(c);
}
/* Steps until no frame is left. */
void schema_drain(checker *c);
void schema_free_frames(checker *c);

/* Checks the value that begins with t, just read from *r, and passes over it. May push, as may the
 * next: r, at, v and m live until that is done. */
void schema_check_value(checker *c, uint32_t i, ah_json_token t, ah_json_reader *r,
                        const place *at);
/* The same value by another schema. */
void schema_check_in_place(checker *c, uint32_t i, subject *v, marks *m);

/* Brackets a silent check around schema_check_in_place: whether a value fits, without reported
 * faults. */
typedef struct trial {
    size_t distance;
    bool filling;
} trial;
void schema_begin_trial(checker *c, trial *t);
/* Returns the weight of the faults; 0: the value fits. */
size_t schema_end_trial(checker *c, const trial *t);

/* The work has ended, in a match with the pattern where its .p is not NULL: stops the check. */
void schema_stop_work(checker *c, const place *at, const char *rule, ah_slice pattern);
/* n more steps; false where the check has stopped. */
static inline bool schema_spend(checker *c, const place *at, uint64_t n)
{
    if (!ah_work_do(c->work, n) && !c->stopped)
        schema_stop_work(c, at, "steps", (ah_slice){NULL, 0});
    return !c->stopped && c->status == AH_OK;
}
static inline bool schema_step(checker *c, const place *at)
{
    return schema_spend(c, at, 1);
}
/* Passes over the rest of the value of t, which was just read. */
void schema_skip_rest(checker *c, ah_json_reader *r, ah_json_token t);
static inline void schema_skip(checker *c, ah_json_reader *r, ah_json_token t)
{
    if (t.kind == AH_JSON_ARRAY || t.kind == AH_JSON_OBJECT)
        schema_skip_rest(c, r, t);
}
/* Stops the check with one fault: the words, and behind them what, where its .p is not NULL. */
void schema_stop(checker *c, const place *at, const char *rule, const char *words, ah_slice what);
ah_slice schema_value_text(const subject *v);
void schema_put_pointer(ah_buf *b, const place *at);
/* A key or string without its escapes; valid until scratch is used again. */
ah_slice schema_unescape(checker *c, ah_slice raw);
static inline ah_slice schema_plain(checker *c, ah_slice raw, bool escaped)
{
    return escaped ? schema_unescape(c, raw) : raw;
}

/* Faults (fault.c) */

/* Begins a fault; the caller adds its words and calls end. NULL: not wanted (silent, too
 * many) or out of memory. */
ah_buf *schema_begin_fault(checker *c, const place *at, const char *rule);
void schema_end_fault(checker *c);
void schema_sort_faults(checker *c);
void schema_end_found(checker *c, ah_buf *b, const subject *v); /* ", found ..." */
/* The same, before more is added. */
void schema_put_what(const checker *c, ah_buf *b, const subject *v);
void schema_fault_found(checker *c, const subject *v, const char *rule, const char *words);
void schema_fault_type(checker *c, const subject *v, unsigned types, const char *rule);
void schema_put_values(const ah_schema *s, ah_buf *b, range list, size_t *listed);
void schema_end_list(ah_buf *b, size_t listed);
/* "unknown property; did you mean 'name'? known: limit, name", of what node i and those
 * in its place name. */
void schema_fault_unknown(checker *c, uint32_t i, ah_slice name, const place *at, const char *rule);

/* Reasons and hints (reason.c) */

/* schema_check_in_place of node i, with its faults told with the reason why. */
void schema_check_because(checker *c, uint32_t i, subject *v, marks *m, const reason *why);
/* " (because kind is "file")", where there is a reason for faults at this place. */
void schema_put_reason(checker *c, ah_buf *b, const place *at);
/* "; leave the quotes out" and its like, where the string says a value of one of the types; else
 * NULL. */
const char *schema_string_hint(checker *c, const subject *v, unsigned types);
/* "; leave it out instead", where the value is null and a member that nothing requires. */
void schema_put_null_hint(const checker *c, ah_buf *b, const subject *v);
/* "; did you mean it by 'Path'?", where a member that is not declared has a name near this one. */
void schema_put_misspelt(const checker *c, ah_buf *b, const subject *v, range declared,
                         ah_slice name);
/* The node by which the value at this place is checked (of several the outermost), or NONE. */
uint32_t schema_outermost(const checker *c, const place *at);
/* The constant that the value comes nearest to; zero it, offer all lists, end the fault. */
typedef struct guess {
    ah_near near;
    ah_slice text; /* .p NULL: none is near */
    size_t looks;
} guess;
void schema_guess(checker *c, guess *g, const subject *v, range list);
void schema_end_guessed(checker *c, ah_buf *b, const subject *v, const guess *g);
/* Scopes (scope.c) */

/* Room for them, where the schema asks for them. False: out of memory. */
bool schema_begin_scopes(checker *c);
void schema_end_scopes(const checker *c);
/* Enters the resource, which is left when `here` is. */
void schema_enter_scope(checker *c, uint32_t resource, scope *here);
void schema_leave_scope(checker *c);

/* Marks (apply.c) */
void schema_mark(checker *c, subject *v, size_t i);
void schema_marks_add(checker *c, marks *to, const marks *from);
void schema_marks_clear(const checker *c, marks *m);

/* Rules of in-place schemas (apply.c, branch.c, depend.c) */
check_fn schema_check_ref, schema_check_dynamic_ref, schema_check_all_of, schema_check_any_of,
    schema_check_one_of, schema_check_not, schema_check_if, schema_check_depend_names,
    schema_check_depend_schemas, schema_check_contains, schema_check_names,
    schema_check_other_items, schema_check_other_properties;
/* The results of the branches of an anyOf or oneOf. */
typedef struct branches {
    size_t best; /* distance of the nearest */
    uint32_t nearest;
    size_t fits, first, second; /* number of branches that fit, and the index of two */
} branches;

/* Results of branches that were tried (recall.c), for an op without a fit inside a branch of
 * another one: they are not tried again when that branch is reported. */
typedef struct recalled recalled;

/* Keeps the results of the op's branches for this value. */
void schema_keep_branches(checker *c, const op *o, const subject *v, const branches *b);
/* Checks the value by the nearest branch, to report its faults, with the kept results, and with the
 * reason why it is the nearest, or NULL. */
void schema_tell_branch(checker *c, uint32_t nearest, subject *v, const reason *why);
/* True: *b has the kept results. */
bool schema_recall_branches(const checker *c, const op *o, const subject *v, branches *b);

/* Adds the weight of a value that is not its constant: more where that tells branches apart. */
void schema_weigh_constant(checker *c, const subject *v);
void schema_forbid_unknown(checker *c, uint32_t i, const subject *v);

/* Rules of scalars (scalar.c) */

/* True if v equals one of the values. If it is a number, v->num is set. Uses scratch. */
bool schema_is_one_of(checker *c, const subject *v, range values);
check_fn schema_check_values, schema_check_bound, schema_check_multiple, schema_check_string,
    schema_check_pattern, schema_check_format, schema_check_unique;
void schema_check_limits(checker *c, const op *o, const subject *v, size_t n);

/* Coercions (coerce.c) */

/* True if a value of another type can be taken as one of these types; records the edit. */
bool schema_coerce(checker *c, const subject *v, unsigned types);
/* The value with its edits, appended to out. */
void schema_put_edited(const checker *c, ah_buf *out);

/* Defaults (fill.c) */
void schema_add_fill(checker *c, fill f);
/* Merges two runs of fills, each sorted: [from, mid) and those behind. */
void schema_merge_fills(checker *c, size_t from, size_t mid);
/* The same after a part that began at mid, if both runs have any. */
static inline void schema_merge_part(checker *c, size_t from, size_t mid)
{
    if (mid > from && c->fills.n > mid && c->status == AH_OK)
        schema_merge_fills(c, from, mid);
}
void schema_put_filled(const checker *c, ah_buf *out);
/* True if the text has more than AH_JSON_MAX_DEPTH nested containers. */
bool schema_is_too_deep(ah_slice text);

#endif
