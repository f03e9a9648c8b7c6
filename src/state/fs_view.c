/* Views: a call's view of an overlay that it did not make. Its own changes are over those of the
 * overlay, and below both is the call's view of the file system under the overlay. So it also sees
 * in the overlay what it wrote below.
 *
 *    the view (the call's changes)  ->  window (the overlay's content)  ->  the call's own base
 *
 * A window stores nothing: it shows the changes of an overlay, and of the views of the calls
 * around, over another base than theirs. If the call commits or drops the overlay, the content
 * of the view is moved or discarded, and the window is hidden; the overlay itself is emptied
 * with the call's commit. */
#include "state/fs_view.h"

enum { MAX_LAYERS = 16 }; /* views of nested calls on one overlay, and the overlay */

typedef struct window {
    ah_fs fs; /* below: the base */
    ah_fs *of;
    bool hidden;
} window;

static const ah_fs_store window_store;

static window *window_of(const ah_fs *below)
{
    return below && below->store == &window_store ? (window *)(void *)(uintptr_t)below : NULL;
}

/* -- looking through --------------------------------------------------------------------- */

/* Puts the layers that the window shows into `out`, the uppermost first; returns their number. */
static size_t layers_of(const window *w, const ah_fs_tree **out)
{
    size_t n = 0;

    while (w && !w->hidden && n < MAX_LAYERS) {
        out[n] = (const ah_fs_tree *)w->of;
        w = window_of(out[n++]->fs.below);
    }
    return n;
}

/* Makes the layers overlays of each other and of the window's base; they own nothing. */
static ah_fs *look_through(ah_fs *fs, ah_fs_tree *face)
{
    const ah_fs_tree *layer[MAX_LAYERS];
    size_t n = layers_of((window *)fs, layer);

    for (size_t i = 0; i < n; i++) {
        face[i] = *layer[i];
        face[i].fs.below = i + 1 < n ? &face[i + 1].fs : fs->below;
    }
    return n ? &face[0].fs : fs->below;
}

static ah_status window_stat(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err)
{
    ah_fs_tree face[MAX_LAYERS];
    ah_fs *at = look_through(fs, face);

    return at->store->stat(at, path, out, err);
}

static ah_status window_read(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                             ah_fs_info *info, ah_err *err)
{
    ah_fs_tree face[MAX_LAYERS];
    ah_fs *at = look_through(fs, face);

    return at->store->read(at, path, offset, limit, out, info, err);
}

static ah_status window_list(ah_fs *fs, ah_slice path, ah_fs_items *out, ah_err *err)
{
    ah_fs_tree face[MAX_LAYERS];
    ah_fs *at = look_through(fs, face);

    return at->store->list(at, path, out, err);
}

static void window_free(ah_fs *fs)
{
    ah_fs_unref(((window *)fs)->of);
    ah_fs_unref(fs->below);
    ah_free(fs->mem, fs);
}

/* Nothing is committed into a window, because the view knows the receiver of its changes. */
static const ah_fs_store window_store = {
    .stat = window_stat,
    .read = window_read,
    .list = window_list,
    .free = window_free,
};

/* -- asking ---------------------------------------------------------------------------------- */

/* Returns the number of edits of everything that the window shows: a sum, because no layer's
 * number decreases. */
static uint64_t edits_of(const window *w)
{
    const ah_fs_tree *layer[MAX_LAYERS];
    uint64_t sum = 0;

    for (size_t i = layers_of(w, layer); i > 0; i--)
        sum += layer[i - 1]->edits;
    return sum;
}

static bool decides(const ah_fs_tree *t, ah_slice path)
{
    const ah_fs_change *c = ah_fs_tree_find(t, path);

    return c && c->act != AH_FS_SEEN;
}

static bool is_shown(const window *w, ah_slice path)
{
    const ah_fs_tree *layer[MAX_LAYERS];
    size_t n = layers_of(w, layer), i = 0;

    while (i < n && !decides(layer[i], path))
        i++;
    return i < n;
}

bool ah_fs_view_put_below(const ah_fs_tree *view, ah_slice path)
{
    const window *w = window_of(view->fs.below);
    const ah_fs_tree *base;

    while (w && !is_shown(w, path)) {
        base = (const ah_fs_tree *)w->fs.below;
        if (decides(base, path))
            return true;
        w = window_of(base->fs.below);
    }
    return false;
}

ah_fs *ah_fs_view_base(const ah_fs_tree *view)
{
    const window *w = window_of(view->fs.below);

    return w ? w->fs.below : view->fs.below;
}

bool ah_fs_view_emptied(const ah_fs_tree *view)
{
    const window *w = window_of(view->fs.below);

    return w && w->hidden;
}

ah_fs *ah_fs_view_saw(const ah_fs_tree *view, ah_slice path, const ah_fs_info *was)
{
    const window *w = window_of(view->fs.below);

    while (w) {
        ah_fs_tree *base = (ah_fs_tree *)w->fs.below;
        ah_fs_info put;
        ah_err ignored; /* a listed entry is always present */

        if (decides(base, path) && base->fs.store->stat(&base->fs, path, &put, &ignored) == AH_OK &&
            put.kind == was->kind && memcmp(&put.version, &was->version, sizeof put.version) == 0)
            return base->into ? base->into : base->fs.below;
        w = window_of(base->fs.below);
    }
    return NULL;
}

bool ah_fs_view_shows(const ah_fs_tree *view, ah_slice path)
{
    return is_shown(window_of(view->fs.below), path);
}

bool ah_fs_view_is_below(const ah_fs_tree *view, ah_slice path)
{
    const window *w = window_of(view->fs.below);

    return edits_of(w) == view->made_at && !is_shown(w, path);
}

/* -- life ---------------------------------------------------------------------------------- */

static ah_fs *window_new(ah_fs *of, ah_fs *base)
{
    window *w = ah_alloc(of->mem, sizeof *w);

    if (!w)
        return NULL;
    ah_fs_init(&w->fs, &window_store, of->mem, &of->o);
    w->fs.guarded = of->guarded;
    w->fs.below = ah_fs_ref(base);
    w->of = ah_fs_ref(of);
    return &w->fs;
}

ah_status ah_fs_view_new(ah_fs *of, ah_fs *base, ah_fs **out, ah_err *err)
{
    ah_fs *w = window_new(of, base);
    const ah_fs_tree *layer[MAX_LAYERS];
    ah_status st = w ? AH_OK : ah_err_nomem(err);

    if (st == AH_OK && layers_of((window *)w, layer) == MAX_LAYERS)
        st = ah_fs_err(err, AH_FS_TOO_MANY, "more than %d nested calls use one overlay",
                       MAX_LAYERS - 1);
    if (st == AH_OK)
        st = ah_fs_overlay_new(w, out, err);
    if (st == AH_OK) {
        ((ah_fs_tree *)*out)->into = ah_fs_ref(of);
        ((ah_fs_tree *)*out)->made_at = edits_of((window *)w);
    }
    ah_fs_unref(w); /* the overlay holds its own reference */
    return st;
}

/* -- committing and dropping in a call ------------------------------------------------------- */

static void hide(ah_fs_tree *view, bool took, uint64_t edits)
{
    window *w = window_of(view->fs.below);

    if (w->hidden)
        return;
    view->took = took;
    view->took_at = edits;
    w->hidden = true;
}

static ah_status copy_change(ah_fs_changes *to, const ah_fs_change *c, ah_err *err)
{
    ah_fs_change *copy = ah_fs_changes_add(to, ah_text_slice(c->path), c->act);

    if (!copy)
        return ah_err_nomem(err);
    copy->content = ah_text_ref(c->content);
    copy->mode = c->mode;
    copy->was = c->was;
    copy->pinned = c->pinned;
    copy->anew = c->anew;
    return ah_fs_change_redo(to->mem, copy, c->op, c->n_ops) ? AH_OK : ah_err_nomem(err);
}

static ah_status copy_layer(ah_fs *to, const ah_fs_tree *layer, ah_err *err)
{
    ah_fs_changes list = {.mem = to->mem};
    ah_status st = AH_OK;

    for (size_t i = 0; i < layer->n && st == AH_OK; i++)
        st = copy_change(&list, layer->node[i], err);
    if (st == AH_OK && list.n)
        return ah_fs_change_now(to, &list, err);
    ah_fs_changes_clear(&list);
    return st;
}

/* Copies everything that the view shows, except its base, into an overlay of the base. */
static ah_status copy_all(const ah_fs_tree *view, ah_fs *to, ah_err *err)
{
    const ah_fs_tree *layer[MAX_LAYERS];
    ah_status st = AH_OK;

    for (size_t i = layers_of(window_of(view->fs.below), layer); i > 0 && st == AH_OK; i--)
        st = copy_layer(to, layer[i - 1], err);
    return st == AH_OK ? copy_layer(to, view, err) : st;
}

/* Reads are reported only to an overlay, as outside of calls. */
ah_status ah_fs_view_commit(ah_fs *fs, ah_err *err)
{
    ah_fs_tree *view = (ah_fs_tree *)fs;
    ah_fs *base = fs->below->below, *all = NULL;
    ah_status st = ah_fs_overlay_new(base, &all, err);

    if (st == AH_OK)
        st = copy_all(view, all, err);
    if (st == AH_OK)
        ((ah_fs_tree *)all)->quiet = !((ah_fs_tree *)base)->into;
    if (st == AH_OK)
        st = ah_fs_prepare(all, err);
    if (st == AH_OK)
        st = ah_fs_commit(all, err);
    ah_fs_unref(all);
    if (st != AH_OK)
        return st;
    ah_fs_tree_clear(view);
    hide(view, true, edits_of(window_of(fs->below)));
    return AH_OK;
}

void ah_fs_view_drop(ah_fs *fs)
{
    ah_fs_tree_clear((ah_fs_tree *)fs);
    hide((ah_fs_tree *)fs, false, 0);
}

/* -- the end of the call ---------------------------------------------------------------------- */

ah_status ah_fs_view_check(const ah_fs_tree *view, ah_err *err)
{
    window shown = *window_of(view->fs.below);

    shown.hidden = false;
    if (view->took && edits_of(&shown) != view->took_at)
        return ah_fs_err(
            err, AH_FS_CONFLICT,
            "the overlay that was committed was changed meanwhile by another call: look "
            "at it again and repeat");
    return AH_OK;
}

void ah_fs_view_replace(ah_fs_tree *view)
{
    ah_fs_tree *into = (ah_fs_tree *)view->into;
    ah_fs_change **node = into->node;
    size_t cap = into->cap;

    ah_fs_tree_clear(into);
    into->edits += view->n > 0;
    into->node = view->node;
    into->n = view->n;
    into->cap = view->cap;
    into->bytes = view->bytes;
    view->node = node;
    view->cap = cap;
    view->n = view->bytes = 0;
    if (window_of(into->fs.below)) /* overlay of a call around this one: continue upwards */
        hide(into, view->took, edits_of(window_of(into->fs.below)));
}
