/* Two readers walk the texts token by token, beside the path to their place; no tree is built.
 * Both texts are canonical, so keys are sorted, and a member of only one of them shows at once. */
#include "base/differ.h"

/* A container in both texts. */
typedef struct frame {
    size_t path; /* length of the pointer to it */
    size_t next; /* arrays: the index of the next element */
    bool array;
} frame;

typedef struct walk {
    ah_json_reader a, b;
    ah_buf *path;
    frame at[AH_JSON_MAX_DEPTH];
    int depth;
} walk;

static bool is_end(ah_json_token t)
{
    return t.kind == AH_JSON_ARRAY_END || t.kind == AH_JSON_OBJECT_END || t.kind == AH_JSON_END;
}

/* RFC 6901: "~" and "/" are escaped. */
static void step_to_key(walk *w, ah_slice raw)
{
    ah_buf_reset(w->path, w->at[w->depth - 1].path);
    ah_buf_char(w->path, '/');
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] == '~' || raw.p[i] == '/')
            ah_buf_str(w->path, raw.p[i] == '~' ? "~0" : "~1");
        else
            ah_buf_char(w->path, raw.p[i]);
    }
}

static void step_to_index(walk *w)
{
    frame *f = &w->at[w->depth - 1];

    ah_buf_reset(w->path, f->path);
    ah_buf_fmt(w->path, "/%zu", f->next++);
}

/* Returns the value that begins with t, or that of the member whose key is t. */
static ah_slice value_at(ah_json_reader *r, ah_json_token t)
{
    if (t.kind == AH_JSON_KEY)
        t = ah_json_next(r);
    return is_end(t) ? (ah_slice){NULL, 0} : ah_json_skip(r, t);
}

/* Only one text has this member: the lesser key, because keys are sorted. */
static void part_at_key(walk *w, ah_json_token ta, ah_json_token tb, ah_difference *out)
{
    size_t n = ta.raw.n < tb.raw.n ? ta.raw.n : tb.raw.n;
    int order = memcmp(ta.raw.p, tb.raw.p, n);
    bool a_has = tb.kind != AH_JSON_KEY ||
                 (ta.kind == AH_JSON_KEY && (order < 0 || (order == 0 && ta.raw.n < tb.raw.n)));

    step_to_key(w, a_has ? ta.raw : tb.raw);
    *out = (ah_difference){{NULL, 0}, {NULL, 0}};
    if (a_has)
        out->a = value_at(&w->a, ta);
    else
        out->b = value_at(&w->b, tb);
}

/* After a value: leaves the containers that end with it; they end in both texts. */
static void enter_or_leave(walk *w, ah_json_token t)
{
    if (t.kind == AH_JSON_ARRAY || t.kind == AH_JSON_OBJECT)
        w->at[w->depth++] = (frame){w->path->len, 0, t.kind == AH_JSON_ARRAY};
    else if (is_end(t) && w->depth > 0)
        w->depth--;
}

/* Returns true at a difference. *done: both texts have ended. */
static bool step(walk *w, ah_difference *out, bool *done)
{
    ah_json_token ta = ah_json_next(&w->a), tb = ah_json_next(&w->b);
    bool key = ta.kind == AH_JSON_KEY || tb.kind == AH_JSON_KEY;
    bool same = ta.kind == tb.kind && ah_slice_eq(ta.raw, tb.raw);

    if (key && !same) {
        part_at_key(w, ta, tb, out);
        return true;
    }
    if (key)
        step_to_key(w, ta.raw);
    else if (w->depth > 0 && w->at[w->depth - 1].array && !(is_end(ta) && is_end(tb)))
        step_to_index(w);
    if (!same) {
        *out = (ah_difference){value_at(&w->a, ta), value_at(&w->b, tb)};
        return true;
    }
    enter_or_leave(w, ta);
    *done = w->depth == 0 && ta.kind != AH_JSON_KEY;
    return false;
}

bool ah_json_differ(ah_slice a, ah_slice b, ah_buf *path, ah_difference *out)
{
    walk w = {.a = ah_json_read(a), .b = ah_json_read(b), .path = path};
    bool done = false;

    while (!done)
        if (step(&w, out, &done))
            return true;
    return false;
}
