/* Overlays and their two ends, commit and drop. */
#include "state/overlay.h"

/* -- anchors ------------------------------------------------------------------------ */

ah_anchor *ah_anchor_ref(ah_anchor *a)
{
    if (a)
        a->refs++;
    return a;
}

void ah_anchor_unref(ah_anchor *a)
{
    if (a && --a->refs == 0)
        ah_free(a->mem, a);
}

/* -- while the call is at work ------------------------------------------------------- */

void ah_overlay_init(ah_overlay *o, const ah_mem *mem, ah_anchor *below)
{
    *o = (ah_overlay){.mem = mem, .below = ah_anchor_ref(below)};
}

static ah_status check_open(const ah_overlay *o, ah_err *err)
{
    return o->closed ? ah_err_set(err, AH_USAGE, "the call is over: nothing can be changed in it")
                     : AH_OK;
}

ah_status ah_overlay_stage(ah_overlay *o, ah_entry_kind kind, ah_text *json, ah_err *err)
{
    ah_status st = json ? check_open(o, err) : ah_err_nomem(err);
    ah_entry *e = st == AH_OK ? ah_grow(o->mem, o->staged, &o->cap, o->n + 1, sizeof *e) : NULL;

    if (!e) {
        ah_text_unref(json);
        return st == AH_OK ? ah_err_nomem(err) : st;
    }
    o->staged = e;
    e[o->n++] = (ah_entry){.kind = kind, .json = json};
    return AH_OK;
}

ah_status ah_overlay_join(ah_overlay *o, ah_participant *p, ah_err *err)
{
    ah_participant **last = &o->first;
    ah_status st = check_open(o, err);

    if (st != AH_OK)
        return st;
    while (*last)
        last = &(*last)->next;
    p->in = o;
    p->next = NULL;
    *last = p;
    return AH_OK;
}

ah_participant *ah_overlay_part(ah_overlay *o, const ah_participant_vt *vt, const void *key,
                                size_t size, ah_err *err)
{
    ah_participant *p = ah_overlay_find(o, key);

    if (p)
        return p;
    if (!(p = ah_alloc(o->mem, size))) {
        ah_err_nomem(err);
        return NULL;
    }
    p->vt = vt;
    p->key = key;
    if (ah_overlay_join(o, p, err) == AH_OK)
        return p;
    ah_free(o->mem, p);
    return NULL;
}

ah_status ah_overlay_anchor(ah_overlay *o, ah_anchor **out, ah_err *err)
{
    ah_status st = check_open(o, err);

    if (st != AH_OK)
        return st;
    if (!o->anchor) {
        if (!(o->anchor = ah_alloc(o->mem, sizeof *o->anchor)))
            return ah_err_nomem(err);
        *o->anchor = (ah_anchor){.mem = o->mem, .refs = 1, .overlay = o};
    }
    *out = ah_anchor_ref(o->anchor);
    return AH_OK;
}

ah_participant *ah_overlay_find(const ah_overlay *o, const void *key)
{
    ah_participant *p = o ? o->first : NULL;

    while (p && p->key != key)
        p = p->next;
    return p;
}

ah_overlay *ah_overlay_below(const ah_overlay *o)
{
    return o->below ? o->below->overlay : NULL;
}

/* -- its end -------------------------------------------------------------------------- */

static void forget_entries(ah_overlay *o)
{
    for (size_t i = 0; i < o->n; i++)
        ah_text_unref(o->staged[i].json);
    ah_free(o->mem, o->staged);
    o->staged = NULL;
    o->n = o->cap = 0;
}

/* Called when the participants have left. */
static void leave(ah_overlay *o)
{
    o->closed = true;
    o->first = NULL;
    forget_entries(o);
    if (o->anchor)
        o->anchor->overlay = NULL;
    ah_anchor_unref(o->anchor);
    ah_anchor_unref(o->below);
    o->anchor = o->below = NULL;
}

static ah_participant *reversed(ah_participant *p)
{
    ah_participant *out = NULL;

    for (ah_participant *next; p; p = next) {
        next = p->next;
        p->next = out;
        out = p;
    }
    return out;
}

void ah_overlay_drop(ah_overlay *o)
{
    ah_participant *p = reversed(o->first);

    if (!o->mem)
        return;
    o->closed = true;
    o->first = NULL;
    for (ah_participant *next; p; p = next) {
        next = p->next;
        p->vt->drop(p);
    }
    leave(o);
}

static ah_status stage_entries(const ah_overlay *o, ah_transcript *t, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < o->n && st == AH_OK; i++)
        st = ah_transcript_stage(t, o->staged[i].kind, ah_text_ref(o->staged[i].json), err);
    return st;
}

static ah_status prepare_part(ah_participant *p, ah_overlay *below, ah_err *err)
{
    if (p->prepared)
        return p->vt->again(p, below, err);
    return p->vt->prepare ? p->vt->prepare(p, below, err) : AH_OK;
}

static ah_status prepare(ah_overlay *o, ah_transcript *t, ah_err *err)
{
    ah_overlay *below = ah_overlay_below(o);
    ah_status st = stage_entries(o, t, err);

    if (st == AH_OK && o->below && !below && o->first)
        st = ah_err_set(err, AH_CANCELLED, "the call in which this run was started is over");
    for (ah_participant *p = o->first; p && st == AH_OK; p = p->next)
        st = prepare_part(p, below, err);
    for (ah_participant *p = o->first; p && st == AH_OK; p = p->next)
        if (p->vt->finish)
            st = p->vt->finish(p, below, err);
    return st;
}

static void commit(ah_overlay *o)
{
    ah_overlay *below = ah_overlay_below(o);
    ah_participant *told = NULL, **last = &told;

    for (ah_participant *p = o->first, *next; p; p = next) {
        next = p->next;
        if (p->vt->committed) {
            *last = p;
            last = &p->next;
        }
        p->vt->commit(p, below);
    }
    *last = NULL;
    for (ah_participant *p = told, *next; p; p = next) {
        next = p->next;
        p->vt->committed(p, below);
    }
}

bool ah_overlay_outside(const ah_overlay *o)
{
    const ah_participant *p = o->first;

    while (p && !(p->vt->outside && p->vt->outside(p)))
        p = p->next;
    return p != NULL;
}

ah_status ah_overlay_prepare(ah_overlay *o, ah_err *err)
{
    ah_overlay *below = ah_overlay_below(o);
    ah_status st = AH_OK;

    o->closed = true;
    for (ah_participant *p = o->first; p && st == AH_OK; p = p->next)
        if (p->vt->again) {
            st = p->vt->prepare(p, below, err);
            p->prepared = true;
        }
    if (st != AH_OK)
        ah_overlay_drop(o);
    return st;
}

ah_status ah_overlay_commit(ah_overlay *o, ah_transcript *t, ah_err *err)
{
    size_t before = ah_transcript_mark(t, true);
    ah_status st;

    o->closed = true;
    if ((st = prepare(o, t, err)) != AH_OK) {
        ah_transcript_take_back(t, true, before);
        ah_overlay_drop(o);
        return st;
    }
    commit(o);
    leave(o);
    return AH_OK;
}

/* -- for records ----------------------------------------------------------------------- */

typedef bool (*put_fn)(ah_participant *p, const ah_staged_names *names, ah_buf *out);

/* Appends what `put` appends for p, after a comma unless it is the first since `start`. */
static bool put_next(ah_participant *p, put_fn put, const ah_staged_names *names, size_t start,
                     ah_buf *out)
{
    size_t before = out->len, after;
    bool ok;

    if (before > start)
        ah_buf_char(out, ',');
    after = out->len;
    ok = put(p, names, out);
    if (ah_buf_ok(out) && out->len == after)
        ah_buf_reset(out, before);
    return ok;
}

/* Appends "<list>":[items] for all participants that write this list; nothing if it is empty. */
static bool put_list(const ah_overlay *o, const char *list, const ah_staged_names *names,
                     size_t from, ah_buf *out)
{
    size_t before = out->len, start;
    bool ok = true;

    ah_buf_fmt(out, "%s\"%s\":[", before > from ? "," : "", list);
    start = out->len;
    for (ah_participant *p = o->first; p && ok; p = p->next)
        if (p->vt->list && strcmp(p->vt->list, list) == 0)
            ok = put_next(p, p->vt->print, names, start, out);
    if (ah_buf_ok(out) && out->len == start)
        ah_buf_reset(out, before);
    else
        ah_buf_char(out, ']');
    return ok;
}

static void put_entries(const ah_overlay *o, ah_buf *out)
{
    for (size_t i = 0; i < o->n; i++) {
        ah_buf_str(out, i ? "," : "\"entries\":[");
        ah_buf_put(out, ah_text_slice(o->staged[i].json));
    }
    if (o->n)
        ah_buf_char(out, ']');
}

bool ah_overlay_print(const ah_overlay *o, const ah_staged_names *names, ah_buf *out)
{
    static const char *const lists[] = {AH_STAGED_SESSION, AH_STAGED_FILES, AH_STAGED_ENTITIES};
    size_t from = out->len;
    bool ok = true;

    for (const ah_participant *p = o->first; p && ok; p = p->next)
        ok = p->vt->list && p->vt->print;
    put_entries(o, out);
    for (size_t i = 0; ok && i < sizeof lists / sizeof *lists; i++)
        ok = put_list(o, lists[i], names, from, out);
    if (!ok && ah_buf_ok(out))
        ah_buf_reset(out, from);
    return ok;
}

bool ah_overlay_print_settled(const ah_overlay *o, ah_buf *out, ah_buf *kept)
{
    size_t from = out->len, start, before, end;

    ah_buf_char(out, '[');
    ah_buf_char(kept, '[');
    start = out->len;
    for (ah_participant *p = o->first; p; p = p->next) {
        if (!p->vt->settle)
            continue;
        before = out->len;
        ah_buf_str(out, before > start ? "," : "");
        ah_buf_str(kept, before > start ? "," : "");
        end = out->len;
        p->vt->settle(p, out, kept);
        if (ah_buf_ok(out) && ah_buf_ok(kept) && out->len == end) {
            kept->len -= end - before; /* the comma */
            out->len = before;
        }
    }
    ah_buf_char(out, ']');
    ah_buf_char(kept, ']');
    if (!ah_buf_ok(out) || !ah_buf_ok(kept) || out->len > start + 1)
        return true;
    ah_buf_reset(out, from);
    kept->len -= 2;
    return false;
}

void ah_overlay_pin(ah_overlay *o)
{
    for (ah_participant *p = o->first; p; p = p->next)
        if (p->vt->pin)
            p->vt->pin(p);
}

void ah_overlay_show(const ah_overlay *o, ah_change_list *l)
{
    static const char *const lists[] = {AH_STAGED_FILES, AH_STAGED_SESSION, AH_STAGED_ENTITIES};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (ah_participant *p = o->first; p; p = p->next)
            if (p->vt->show && strcmp(p->vt->list, lists[i]) == 0)
                p->vt->show(p, l);
}
