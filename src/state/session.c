/* Reading and writing sessions: layers of overlays, the session's own layer, and commit. */
#include "state/session_state.h"

/* -- life --------------------------------------------------------------------------------- */

ah_session *ah_session_new(const ah_mem *mem, ah_session *parent)
{
    ah_session *s = ah_alloc(mem, sizeof *s);

    if (!s)
        return NULL;
    *s = (ah_session){.mem = mem, .refs = 1, .own.mem = mem};
    if (parent) {
        s->types = parent->types;
        s->types->refs++;
    } else if (!(s->types = ah_catalog_new(mem))) {
        ah_free(mem, s);
        return NULL;
    }
    s->parent = ah_session_ref(parent);
    return s;
}

ah_session *ah_session_ref(ah_session *s)
{
    if (s)
        s->refs++;
    return s;
}

static void free_changes(const ah_mem *mem, change *c)
{
    while (c) {
        change *next = c->next;

        ah_text_unref(c->value);
        ah_cell_unref(mem, c->head);
        ah_session_unref(c->session);
        ah_free(mem, c);
        c = next;
    }
}

static void clear_layer(layer *l)
{
    for (size_t i = 0; i < l->n; i++) {
        ah_cell_unref(l->mem, l->touched[i].base);
        ah_cell_unref(l->mem, l->touched[i].head);
        if (l->part.in)
            ah_session_unref(l->touched[i].session);
    }
    ah_free(l->mem, l->touched);
    l->touched = NULL;
    l->n = l->cap = 0;
    free_changes(l->mem, l->first);
    l->first = NULL;
}

void ah_session_unref(ah_session *s)
{
    while (s && --s->refs == 0) { /* a loop, because a family may be deep */
        ah_session *parent = s->parent;

        clear_layer(&s->own);
        ah_catalog_unref(s->types);
        ah_free(s->mem, s);
        s = parent;
    }
}

ah_session *ah_session_root(ah_session *s)
{
    while (s->parent)
        s = s->parent;
    return s;
}

bool ah_session_claim(ah_session *s)
{
    bool was = s->claimed;

    s->claimed = true;
    return !was;
}

void ah_session_unclaim(ah_session *s)
{
    s->claimed = false;
}

const ah_mem *ah_session_mem(const ah_session *s)
{
    return s->mem;
}

/* -- reading ------------------------------------------------------------------------------- */

static touched *find_touched(const layer *l, const ah_session *s, int slice)
{
    for (size_t i = 0; l && i < l->n; i++)
        if (l->touched[i].slice == slice && l->touched[i].session == s)
            return &l->touched[i];
    return NULL;
}

static layer *find_layer(const ah_session *s, const ah_overlay *o)
{
    return (layer *)(void *)ah_overlay_find(o, s->types);
}

ah_cell *ah_session_head(const ah_session *s, const ah_overlay *o, int slice)
{
    const touched *t;

    for (; s; s = s->parent) {
        for (const ah_overlay *in = o; in; in = ah_overlay_below(in))
            if ((t = find_touched(find_layer(s, in), s, slice)))
                return t->head;
        if ((t = find_touched(&s->own, s, slice)))
            return t->head;
    }
    return NULL;
}

/* -- layers ---------------------------------------------------------------------------------- */

static const ah_participant_vt layer_vt;

static layer *join(ah_session *s, ah_overlay *o, ah_err *err)
{
    layer *l = (layer *)(void *)ah_overlay_part(o, &layer_vt, s->types, sizeof *l, err);

    if (l && !l->last) {
        l->mem = o->mem;
        l->last = &l->first;
    }
    return l;
}

/* Makes room: the next n slices can then be touched without failing. */
static bool reserve(layer *l, size_t n)
{
    touched *t = n ? ah_grow(l->mem, l->touched, &l->cap, l->n + n, sizeof *t) : NULL;

    if (t)
        l->touched = t;
    return t || !n;
}

static touched *touch(layer *l, ah_session *s, int slice)
{
    ah_overlay *o = l->part.in;
    touched *t = find_touched(l, s, slice);
    ah_cell *base, *head;

    if (t)
        return t;
    base = o ? ah_session_head(s, ah_overlay_below(o), slice) : NULL;
    head = ah_session_head(s, o, slice);
    t = &l->touched[l->n++];
    *t = (touched){o ? ah_session_ref(s) : s, slice, ah_cell_ref(base), ah_cell_ref(head)};
    return t;
}

/* Takes head. */
static void set_head(layer *l, ah_session *s, int slice, ah_cell *head)
{
    touched *t = touch(l, s, slice);
    ah_cell *old = t->head;

    t->head = head;
    ah_cell_unref(l->mem, old);
}

ah_session *ah_session_copy(const ah_session *from)
{
    ah_session *s = ah_alloc(from->mem, sizeof *s);

    if (!s)
        return NULL;
    *s = (ah_session){.mem = from->mem, .refs = 1, .types = from->types, .own.mem = from->mem};
    s->types->refs++;
    s->parent = ah_session_ref(from->parent);
    if (!reserve(&s->own, from->own.n)) {
        ah_session_unref(s);
        return NULL;
    }
    for (size_t i = 0; i < from->own.n; i++)
        s->own.touched[s->own.n++] = (touched){.session = s,
                                               .slice = from->own.touched[i].slice,
                                               .head = ah_cell_ref(from->own.touched[i].head)};
    return s;
}

/* -- writing ----------------------------------------------------------------------------------- */

static void drop_edits(const ah_mem *mem, ah_edit *edit, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ah_cell_unref(mem, edit[i].head);
}

/* Sets all heads, or none without memory. The heads of logs are set in the session's own layer.
 * Takes the heads. */
static ah_status write(layer *l, ah_session *s, ah_edit *edit, size_t n, ah_err *err)
{
    if (!reserve(l, n) || !reserve(&s->own, n)) {
        drop_edits(s->mem, edit, n);
        return ah_err_nomem(err);
    }
    for (size_t i = 0; i < n; i++)
        set_head(ah_session_is_log(s, edit[i].slice) ? &s->own : l, s, edit[i].slice, edit[i].head);
    return AH_OK;
}

/* Writes, and keeps the changes behind it: NULL if nothing is to be repeated, because there is
 * no overlay. Takes heads and changes. */
static ah_status apply(ah_session *s, ah_overlay *o, ah_edit *edit, size_t n, change *made,
                       ah_err *err)
{
    layer *l = made ? join(s, o, err) : &s->own;
    ah_status st;

    if (!l) {
        drop_edits(s->mem, edit, n);
        st = err->status;
    } else {
        st = write(l, s, edit, n, err);
    }
    if (st != AH_OK) {
        free_changes(s->mem, made);
        return st;
    }
    if (made)
        for (*l->last = made; *l->last;)
            l->last = &(*l->last)->next;
    return AH_OK;
}

static change *new_change(ah_session *s, change c)
{
    change *made = ah_alloc(s->mem, sizeof *made);

    if (!made)
        return NULL;
    *made = c;
    made->session = ah_session_ref(s);
    ah_text_ref(c.value);
    ah_cell_ref(c.head);
    return made;
}

static ah_status reduce(ah_session *s, ah_overlay *o, const rule *r, const ah_session_event *e,
                        ah_edit *edit, ah_err *err)
{
    ah_slice name = ah_session_name(s, r->slice);
    ah_list list = {.mem = s->mem, .head = ah_cell_ref(ah_session_head(s, o, r->slice))};
    ah_status st = r->fn(r->ud.p, name, e, &list, err);

    *edit = (ah_edit){r->slice, list.head};
    return st;
}

/* Runs the reducers of the event; *n edits were made, also on failure. After a conflict (again)
 * logs are left out: they have the event already. */
static ah_status reduce_all(ah_session *s, ah_overlay *o, int id, ah_text *value, bool again,
                            ah_edit *edit, size_t *n, ah_err *err)
{
    ah_session_event e = {ah_session_name(s, id), value};
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && i < s->types->kind[id].n; i++) {
        rule r = s->types->kind[id].rule[i];

        if (!again || !ah_session_is_log(s, r.slice))
            st = reduce(s, o, &r, &e, &edit[(*n)++], err);
    }
    return st;
}

static ah_edit *new_edits(const ah_session *s, int id)
{
    return ah_alloc(s->mem, (s->types->kind[id].n + 1) * sizeof(ah_edit));
}

static bool any_state(const ah_session *s, const ah_edit *edit, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!ah_session_is_log(s, edit[i].slice))
            return true;
    return false;
}

static ah_status dispatch(ah_session *s, ah_overlay *o, int id, ah_text *value, bool again,
                          ah_err *err)
{
    ah_edit *edit = new_edits(s, id);
    change *made = NULL;
    size_t n = 0;
    ah_status st = edit ? reduce_all(s, o, id, value, again, edit, &n, err) : ah_err_nomem(err);

    if (st == AH_OK && o && any_state(s, edit, n) &&
        !(made = new_change(s, (change){.what = CHANGE_EVENT, .id = id, .value = value})))
        st = ah_err_nomem(err);
    if (st == AH_OK)
        st = apply(s, o, edit, n, made, err);
    else
        drop_edits(s->mem, edit, n);
    ah_free(s->mem, edit);
    return st;
}

ah_status ah_session_dispatch(ah_session *s, ah_overlay *o, int id, ah_text *value, ah_err *err)
{
    return dispatch(s, o, id, value, false, err);
}

ah_status ah_session_dispatch_again(ah_session *s, ah_overlay *o, int id, ah_text *value,
                                    ah_err *err)
{
    return dispatch(s, o, id, value, true, err);
}

ah_status ah_session_append(ah_session *s, ah_overlay *o, int slice, ah_text *value, ah_err *err)
{
    ah_list list = {.mem = s->mem, .head = ah_cell_ref(ah_session_head(s, o, slice))};
    ah_edit edit;
    change *made = NULL;
    bool ok = ah_list_append(&list, value);

    edit = (ah_edit){slice, list.head};
    if (ok && o && !ah_session_is_log(s, slice))
        ok = (made = new_change(s, (change){.what = CHANGE_APPEND, .id = slice, .value = value})) !=
             NULL;
    if (ok)
        return apply(s, o, &edit, 1, made, err);
    drop_edits(s->mem, &edit, 1);
    return ah_err_nomem(err);
}

ah_status ah_session_set(ah_session *s, ah_overlay *o, int slice, ah_cell *head, ah_err *err)
{
    ah_edit edit = {slice, head};

    return ah_session_set_all(s, o, &edit, 1, err);
}

ah_status ah_session_set_all(ah_session *s, ah_overlay *o, ah_edit *edit, size_t n, ah_err *err)
{
    change *made = NULL, **last = &made;
    bool ok = true;

    for (size_t i = 0; ok && o && i < n; i++)
        if (!ah_session_is_log(s, edit[i].slice)) {
            change c = {.what = CHANGE_SET, .id = edit[i].slice, .head = edit[i].head};

            if ((ok = (*last = new_change(s, c)) != NULL))
                last = &(*last)->next;
        }
    if (ok)
        return apply(s, o, edit, n, made, err);
    free_changes(s->mem, made);
    drop_edits(s->mem, edit, n);
    return ah_err_nomem(err);
}

ah_status ah_session_take(ah_session *s, ah_overlay *o, ah_slice type, ah_slice json, ah_err *err)
{
    int id = type.p ? ah_session_find(s, type) : -1;
    ah_text *value = NULL;
    ah_status st = AH_OK;

    if (id >= 0 && json.p)
        st = ah_session_check(s, id, json, &value, err);
    if (id >= 0 && st == AH_OK)
        st = ah_session_dispatch(s, o, id, value, err);
    ah_text_unref(value);
    return st;
}

/* -- commit and drop --------------------------------------------------------------------------- */

static ah_status event_again(layer *l, const change *c, ah_err *err)
{
    ah_session *s = c->session;
    ah_edit *edit = new_edits(s, c->id);
    size_t n = 0;
    ah_status st =
        edit ? reduce_all(s, l->part.in, c->id, c->value, true, edit, &n, err) : ah_err_nomem(err);

    if (st == AH_OK)
        st = write(l, s, edit, n, err);
    else
        drop_edits(s->mem, edit, n);
    ah_free(s->mem, edit);
    return st;
}

static ah_status do_again(layer *l, const change *c, ah_err *err)
{
    ah_session *s = c->session;
    ah_list list = {.mem = s->mem, .head = ah_cell_ref(c->head)};
    ah_edit edit;

    if (c->what == CHANGE_EVENT)
        return event_again(l, c, err);
    if (c->what == CHANGE_APPEND) {
        list.head = ah_cell_ref(ah_session_head(s, l->part.in, c->id));
        if (!ah_list_append(&list, c->value)) {
            ah_list_set(&list, NULL);
            return ah_err_nomem(err);
        }
    }
    edit = (ah_edit){c->id, list.head};
    return write(l, s, &edit, 1, err);
}

/* Returns a slice that others have changed since, or NULL. */
static const touched *find_conflict(const layer *l, const ah_overlay *below)
{
    for (size_t i = 0; i < l->n; i++) {
        const touched *t = &l->touched[i];

        if (t->base != ah_session_head(t->session, below, t->slice))
            return t;
    }
    return NULL;
}

static ah_status refuse_conflict(const touched *t, ah_err *err)
{
    return ah_err_set(err, AH_CONFLICT,
                      "slice '%.*s' was changed meanwhile by another call: look at it again and "
                      "repeat",
                      AH_FMT(ah_session_name(t->session, t->slice)));
}

/* Repeats all changes, in order, on the present slices. */
static ah_status start_again(layer *l, ah_err *err)
{
    touched *old = l->touched;
    size_t n = l->n;
    ah_status st = AH_OK;

    l->touched = NULL; /* slices are read as if this layer had changed nothing */
    l->n = l->cap = 0;
    for (const change *c = l->first; c && st == AH_OK; c = c->next)
        st = do_again(l, c, err);
    for (size_t i = 0; i < n; i++) {
        ah_cell_unref(l->mem, old[i].base);
        ah_cell_unref(l->mem, old[i].head);
        ah_session_unref(old[i].session);
    }
    ah_free(l->mem, old);
    return st;
}

static ah_status prepare_layer(ah_participant *p, ah_overlay *below, ah_err *err)
{
    layer *l = (layer *)(void *)p, *to = NULL;
    const touched *t = find_conflict(l, below);
    ah_status st = AH_OK;
    bool ok = true;

    if (t)
        st = l->pinned ? refuse_conflict(t, err) : start_again(l, err);
    if (st != AH_OK || l->n == 0)
        return st;
    if (below && !(to = join(l->touched[0].session, below, err)))
        return err->status;
    for (size_t i = 0; ok && i < l->n; i++)
        ok = reserve(to ? to : &l->touched[i].session->own, l->n);
    return ok ? AH_OK : ah_err_nomem(err);
}

static void drop_layer(ah_participant *p)
{
    layer *l = (layer *)(void *)p;

    clear_layer(l);
    ah_free(l->mem, l);
}

static void commit_layer(ah_participant *p, ah_overlay *below)
{
    layer *l = (layer *)(void *)p, *to = NULL;

    for (size_t i = 0; i < l->n; i++) {
        touched *t = &l->touched[i];

        to = below ? find_layer(t->session, below) : &t->session->own;
        set_head(to, t->session, t->slice, ah_cell_ref(t->head));
    }
    if (to && below && l->first) {
        *to->last = l->first;
        to->last = l->last;
        l->first = NULL;
    }
    if (to && below)
        to->pinned |= l->pinned;
    drop_layer(p);
}

static void show_layer(ah_participant *p, ah_change_list *l)
{
    const layer *own = (const layer *)(const void *)p;

    for (size_t i = 0; i < own->n; i++) {
        const touched *t = &own->touched[i];

        ah_change_list_slice(l, ah_session_name(t->session, t->slice), t->base, t->head);
    }
}

static void pin_layer(ah_participant *p)
{
    ((layer *)(void *)p)->pinned = true;
}

static const ah_participant_vt layer_vt = {.prepare = prepare_layer,
                                           .commit = commit_layer,
                                           .drop = drop_layer,
                                           .again = prepare_layer,
                                           .list = AH_STAGED_SESSION,
                                           .print = ah_session_print_layer,
                                           .show = show_layer,
                                           .pin = pin_layer};
