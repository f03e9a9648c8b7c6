/* Both texts are walked side by side, and the walk goes down into the first pair that differs: the
 * depth of JSON, which its check limits, is the number of rounds. */
#include "journal/json_place.h"

/* A walk over the items of an array, or the members of an object. */
typedef struct walk {
    ah_json_reader r;
    bool object, over;
    ah_json_token key;
    ah_slice value;
} walk;

static walk walk_into(ah_slice json)
{
    walk w = {.r = ah_json_read(json)};
    ah_json_kind kind = ah_json_next(&w.r).kind;

    w.object = kind == AH_JSON_OBJECT;
    w.over = kind != AH_JSON_OBJECT && kind != AH_JSON_ARRAY;
    return w;
}

static void next(walk *w)
{
    ah_json_token t = {0};

    w->value = (ah_slice){NULL, 0};
    if (!w->over)
        t = ah_json_next(&w->r);
    w->over = w->over || t.kind == AH_JSON_OBJECT_END || t.kind == AH_JSON_ARRAY_END;
    if (w->over)
        return;
    w->key = t;
    w->value = ah_json_skip(&w->r, w->object ? ah_json_next(&w->r) : t);
}

static void put_key(ah_buf *out, ah_slice raw)
{
    for (size_t i = 0; i < raw.n; i++)
        if (raw.p[i] == '~')
            ah_buf_str(out, "~0");
        else if (raw.p[i] == '/')
            ah_buf_str(out, "~1");
        else
            ah_buf_char(out, raw.p[i]);
}

static void put_step(ah_buf *out, const walk *w, size_t index)
{
    ah_buf_char(out, '/');
    if (w->object)
        put_key(out, w->key.raw);
    else
        ah_buf_fmt(out, "%zu", index);
}

/* Replaces both values by the first pair of their parts that differ. False: they have no parts that
 * can be compared. */
static bool go_down(ah_slice *a, ah_slice *b, ah_buf *pointer)
{
    walk v = walk_into(*a), w = walk_into(*b);

    if (v.over || w.over || v.object != w.object)
        return false;
    for (size_t i = 0;; i++) {
        next(&v);
        next(&w);
        if (v.over && w.over)
            return false;
        if (v.over || w.over || (v.object && !ah_slice_eq(v.key.raw, w.key.raw))) {
            put_step(pointer, v.over ? &w : &v, i);
            *a = v.value;
            *b = v.over || w.over ? w.value : (ah_slice){NULL, 0};
            return true;
        }
        if (ah_slice_eq(v.value, w.value))
            continue;
        put_step(pointer, &v, i);
        *a = v.value;
        *b = w.value;
        return true;
    }
}

bool ah_json_place(ah_slice a, ah_slice b, ah_buf *pointer, ah_slice *was, ah_slice *now)
{
    bool differ = !ah_slice_eq(a, b);

    while (differ && a.p && b.p && go_down(&a, &b, pointer))
        continue;
    *was = a;
    *now = b;
    return differ;
}
