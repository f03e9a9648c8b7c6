/* A check in progress, shared by the checking files of src/schema. It owns its frames, edits and
 * fills, and borrows the value and the schema. Callers: its floor. */
#ifndef AH_SCHEMA_CHECKER_H
#define AH_SCHEMA_CHECKER_H

#include <stdalign.h>

#include "base/work.h"
#include "schema/program.h"

/* The value is walked as text beside the program; no tree is built. Each schema entered counts
 * against a depth limit, and all work, pattern matches included, against a limit of steps. At a
 * limit, or when the caller interrupts it, the check stops with one fault that reports this,
 * whatever the schema would decide.
 *
 * The frames of a check are on a stack of the checker's own, on the heap, so the C stack does
 * not grow with the depth of a value or a schema. The rule: a step of a frame never calls
 * another frame's step. It pushes a frame and returns, and is called again when that frame is
 * done; c->top shows whether anything was pushed. */

enum {
    CHECK_DEPTH = 32768, /* limit of nested schemas, followed references included */
    STEP_BYTES = 64,     /* bytes read again, per step */
    STEP_TOKENS = 16,    /* likewise, token by token */
    STEP_DIGITS = 8,     /* digits of a number, or unescaped bytes of a string, per step */
    STEP_ITEMS = 8,      /* items compared in a table, per step */
    STEP_FAULT = 16,     /* steps to report a fault */
    MARKS_INLINE = 2
};

typedef struct fill { /* an edit at value[offset] */
    size_t offset;
    size_t number;       /* length of a whole number to be written as digits: 3.0 as 3 */
    size_t dropped;      /* length of a member to leave out */
    ah_slice name, text; /* otherwise: a default to insert before it */
} fill;

/* A position in a value; a chain through the frames. */
typedef struct place {
    const struct place *up;
    ah_slice key; /* .p NULL: the position is an index */
    bool escaped; /* the key has escapes, as in the text */
    size_t index;
} place;

/* The resources entered so far, for $dynamicRef; each only once, because the outermost counts. A
 * chain through the frames (scope.c). */
typedef struct scope {
    struct scope *up;
    uint32_t resource;
    uint32_t found;  /* the first name of a dynamic anchor found in it, or NONE */
    uint64_t number; /* counts all scopes entered, from 1 */
} scope;

typedef struct answer answer;

/* The evaluated members or items of a value, as bits by index. */
typedef struct marks {
    uint64_t few[MARKS_INLINE], *bits; /* bits is NULL for small values */
    size_t words;
    bool all;
    bool named; /* some schema in place has "properties" */
} marks;

typedef struct edit { /* a coercion: value[offset, offset + n) is put in brackets, or replaced */
    size_t offset, n;
    ah_slice by; /* .p NULL: the value itself in brackets */
} edit;

typedef struct subject subject;
typedef struct checker checker;

/* The reason why rules of a schema apply to a value. Faults of the value and of its members
 * report it. */
typedef struct reason {
    enum {
        WHY_THEN,   /* the value fits the node, which is an `if` */
        WHY_ELSE,   /* the value does not fit that node */
        WHY_BRANCH, /* the node is the nearest branch */
        WHY_MEMBER  /* the value has this member */
    } kind;
    uint32_t node;
    ah_slice member;
    const struct reason *up; /* both are set when it applies */
    const subject *v;
} reason;

/* The head of each frame. `step` does its next part, and pops it at its end, or soon after the
 * check has stopped. */
typedef struct frame {
    struct frame *below;
    void (*step)(checker *c, struct frame *f);
} frame;

typedef struct block { /* consecutive frames, which never move */
    struct block *below, *above;
    char *left;        /* end of the used part of the block below */
    char *first, *end; /* room for its frames */
} block;

struct checker {
    const ah_schema *s;
    ah_slice value;
    ah_extra extra;
    ah_faults *faults;
    size_t distance;       /* weight of the faults so far, silent ones too */
    const subject *branch; /* innermost value whose branches are tried; or NULL */
    int silent;            /* above 0: faults are counted, not reported */
    int depth;
    ah_work *work;
    bool stopped; /* a limit was reached, and its fault is reported */
    frame *top;   /* NULL: the check is done */
    block *block;
    char *room; /* place in the block for the next frame */
    bool filling;
    bool coercing, only_lists; /* only_lists: coerces only {} to [] */
    bool null_absent;
    bool edited;     /* the value is no longer the text that was checked as JSON */
    ah_buf *coerced; /* descriptions of the coercions; may be NULL */
    table edits;     /* edit, by offset */
    bool naming;     /* the value is a property's name */
    scope *scope;
    uint64_t *entered;             /* bits of the resources in the chain; NULL: not needed */
    answer *answers;               /* one for each name of a dynamic anchor */
    uint64_t scopes;               /* number of scopes entered */
    const reason *why;             /* the innermost reason, or NULL */
    const place *told_at;          /* place of the current fault */
    size_t telling;                /* the current fault, an index of faults->item */
    uint64_t ranks[AH_MAX_FAULTS]; /* ranks of the faults: their order in the report */
    table fills;                   /* fill, by offset, then by name */
    table recalled;                /* results of branches that were tried */
    size_t sorted; /* number of sorted results; above 0 while their branches are reported */
    size_t filled, fill_max; /* limit and use of the fills, in bytes */
    ah_pattern *names;       /* expression for host names in other scripts; NULL until needed */
    ah_buf scratch;          /* an unescaped string, or a canonical value; never both */
    ah_status status;
};

/* A value under check. */
struct subject {
    ah_json_token t;
    ah_json_reader inside; /* just after t */
    ah_json_reader end;    /* after the value, once `ended` */
    bool ended;
    bool company; /* other schemas report unknown members */
    unsigned type;
    uint32_t node; /* the node whose rules are checked */
    number num;
    const place *at;
    marks *marks; /* NULL: not needed */
};

typedef void check_fn(checker *c, const op *o, subject *v);

/* Frames (stack.c) */

/* Begins with a block in the caller's memory, aligned for any type. */
void schema_first_block(checker *c, void *memory, size_t size);
bool schema_next_block(checker *c);
/* Pushes a frame of `size` bytes and fills its head; NULL: out of memory. */
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
/* Calls steps until no frame is left. */
void schema_drain(checker *c);
void schema_free_frames(checker *c);

/* Checks the value that begins with t, just read from *r, and moves r past it. It may push
 * frames, as may the next function; r, at, v and m must live until these are done. */
void schema_check_value(checker *c, uint32_t i, ah_json_token t, ah_json_reader *r,
                        const place *at);
/* Checks the same value against another schema. */
void schema_check_in_place(checker *c, uint32_t i, subject *v, marks *m);

/* A silent check around schema_check_in_place: finds whether a value fits, without reported
 * faults. */
typedef struct trial {
    size_t distance;
    bool filling;
} trial;
void schema_begin_trial(checker *c, trial *t);
/* Ends the trial and returns the weight of its faults; 0: the value fits. */
size_t schema_end_trial(checker *c, const trial *t);

/* Stops the check because its work has ended, in a match with the pattern if its .p is not NULL. */
void schema_stop_work(checker *c, const place *at, const char *rule, ah_slice pattern);
/* Counts n steps; false once the check has stopped. */
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
/* Skips the rest of the value of t, which was just read. */
void schema_skip_rest(checker *c, ah_json_reader *r, ah_json_token t);
static inline void schema_skip(checker *c, ah_json_reader *r, ah_json_token t)
{
    if (t.kind == AH_JSON_ARRAY || t.kind == AH_JSON_OBJECT)
        schema_skip_rest(c, r, t);
}
/* Stops the check with one fault: the words, followed by `what` if its .p is not NULL. */
void schema_stop(checker *c, const place *at, const char *rule, const char *words, ah_slice what);
ah_slice schema_value_text(const subject *v);
void schema_put_pointer(ah_buf *b, const place *at);
/* Returns a key or string without escapes; valid until scratch is used again. */
ah_slice schema_unescape(checker *c, ah_slice raw);
static inline ah_slice schema_plain(checker *c, ah_slice raw, bool escaped)
{
    return escaped ? schema_unescape(c, raw) : raw;
}

/* Faults (fault.c) */

/* Begins a fault; the caller appends its message and calls end. NULL: not wanted (silent, too
 * many), or out of memory. */
ah_buf *schema_begin_fault(checker *c, const place *at, const char *rule);
void schema_end_fault(checker *c);
void schema_sort_faults(checker *c);
void schema_end_found(checker *c, ah_buf *b, const subject *v); /* ends it with ", found ..." */
/* Appends the found value, before further text. */
void schema_put_what(const checker *c, ah_buf *b, const subject *v);
void schema_fault_found(checker *c, const subject *v, const char *rule, const char *words);
void schema_fault_type(checker *c, const subject *v, unsigned types, const char *rule);
void schema_put_values(const ah_schema *s, ah_buf *b, range list, size_t *listed);
void schema_end_list(ah_buf *b, size_t listed);
/* Reports "unknown property; did you mean 'name'? known: limit, name", with the names of node i
 * and of the schemas in its place. */
void schema_fault_unknown(checker *c, uint32_t i, ah_slice name, const place *at, const char *rule);

/* Reasons and hints (reason.c) */

/* schema_check_in_place of node i; its faults report the reason. */
void schema_check_because(checker *c, uint32_t i, subject *v, marks *m, const reason *why);
/* Appends " (because kind is "file")" if faults at this place have a reason. */
void schema_put_reason(checker *c, ah_buf *b, const place *at);
/* Returns "; leave the quotes out" or the like if the string contains a value of one of the
 * types; otherwise NULL. */
const char *schema_string_hint(checker *c, const subject *v, unsigned types);
/* Appends "; leave it out instead" if the value is null and an optional member. */
void schema_put_null_hint(const checker *c, ah_buf *b, const subject *v);
/* Appends "; did you mean it by 'Path'?" if an undeclared member has a name near this one. */
void schema_put_misspelt(const checker *c, ah_buf *b, const subject *v, range declared,
                         ah_slice name);
/* Returns the node that checks the value at this place (the outermost of several), or NONE. */
uint32_t schema_outermost(const checker *c, const place *at);
/* The constant nearest to a value: zero it, offer all lists, end the fault. */
typedef struct guess {
    ah_near near;
    ah_slice text; /* .p NULL: none is near */
    size_t looks;
} guess;
void schema_guess(checker *c, guess *g, const subject *v, range list);
void schema_end_guessed(checker *c, ah_buf *b, const subject *v, const guess *g);
/* Scopes (scope.c) */

/* Makes room for them if the schema needs them. False: out of memory. */
bool schema_begin_scopes(checker *c);
void schema_end_scopes(const checker *c);
/* Enters the resource; it is left together with `here`. */
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
    size_t best; /* weight of the nearest branch's faults */
    uint32_t nearest;
    size_t fits, first, second; /* number of branches that fit, and the indices of two of them */
} branches;

/* Results of tried branches (recall.c), for an anyOf or oneOf without a fit inside a branch of
 * another one. They spare a second try when that branch is reported. */
typedef struct recalled recalled;

/* Keeps the results of the op's branches for this value. */
void schema_keep_branches(checker *c, const op *o, const subject *v, const branches *b);
/* Checks the value against the nearest branch with the kept results, to report its faults; `why`
 * is the reason why it is the nearest, or NULL. */
void schema_tell_branch(checker *c, uint32_t nearest, subject *v, const reason *why);
/* Returns true and sets *b if results were kept. */
bool schema_recall_branches(const checker *c, const op *o, const subject *v, branches *b);

/* Adds the weight of a value that differs from its constant; more if the constant distinguishes
 * branches. */
void schema_weigh_constant(checker *c, const subject *v);
void schema_forbid_unknown(checker *c, uint32_t i, const subject *v);

/* Rules of scalars (scalar.c) */

/* True if v equals one of the values. If it is a number, it sets v->num. Uses scratch. */
bool schema_is_one_of(checker *c, const subject *v, range values);
check_fn schema_check_values, schema_check_bound, schema_check_multiple, schema_check_string,
    schema_check_pattern, schema_check_format, schema_check_unique;
void schema_check_limits(checker *c, const op *o, const subject *v, size_t n);

/* Coercions (coerce.c) */

/* True if the value can be coerced to one of these types; records the edit. */
bool schema_coerce(checker *c, const subject *v, unsigned types);
/* Appends the value with its edits. */
void schema_put_edited(const checker *c, ah_buf *out);

/* Defaults (fill.c) */
void schema_add_fill(checker *c, fill f);
/* Merges two runs of fills, each sorted: [from, mid) and the rest. */
void schema_merge_fills(checker *c, size_t from, size_t mid);
/* Merges likewise after a part that began at mid, if both runs are non-empty. */
static inline void schema_merge_part(checker *c, size_t from, size_t mid)
{
    if (mid > from && c->fills.n > mid && c->status == AH_OK)
        schema_merge_fills(c, from, mid);
}
void schema_put_filled(const checker *c, ah_buf *out);
/* True if the text has more than AH_JSON_MAX_DEPTH nested containers. */
bool schema_is_too_deep(ah_slice text);

#endif
