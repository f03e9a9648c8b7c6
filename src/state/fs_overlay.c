/* Overlays: changes of fs_tree.c over another file system, and how they are handed down:
 * completely, after a check of its present state. fs.h states what happens to files that others
 * changed meanwhile. */
#include "state/fs_view.h"

typedef struct settling {
    ah_fs_tree *t;
    ah_fs *below;       /* the file system under the changes */
    ah_fs *into;        /* the receiver; the same, unless t is a view */
    ah_fs_changes list; /* changes for `into` */
} settling;

static ah_status conflict(ah_slice path, const char *what, ah_err *err)
{
    return ah_fs_err(err, AH_FS_CONFLICT,
                     "'%.*s' %s meanwhile by another call: look at it again and repeat",
                     AH_FMT(path), what);
}

static bool is_same(const ah_fs_info *a, const ah_fs_info *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == AH_FS_FOLDER || memcmp(&a->version, &b->version, sizeof a->version) == 0;
}

static bool is_same_mode(const ah_fs_mode *a, const ah_fs_mode *b)
{
    return a->known == b->known && a->bits == b->bits;
}

/* Repeats the operations on the present content below. */
static ah_status redo(settling *s, const ah_fs_change *c, ah_text **out, ah_err *err)
{
    ah_slice path = ah_text_slice(c->path);
    ah_fs_info info;
    ah_text *next;
    size_t count;
    ah_status st = s->below->store->stat(s->below, path, &info, err);

    *out = NULL;
    if (st == AH_OK && (info.kind != AH_FS_ABSENT || c->op[0].old))
        st = ah_fs_content(s->below, path, out, &info, err);
    for (size_t i = 0; st == AH_OK && i < c->n_ops; i++) {
        st = ah_fs_op_apply(&s->t->fs, path, ah_text_slice(*out), &c->op[i], &next, &count, err);
        if (st == AH_OK)
            ah_text_set(out, next);
    }
    if (st == AH_TOOL_VALIDATION)
        return conflict(path, "was changed", err);
    return st;
}

/* -- one change ------------------------------------------------------------------------- */

/* Adds the change for the file system below, whose present entry is `now`. */
static ah_status hand_down(settling *s, const ah_fs_change *c, const ah_fs_info *now, ah_err *err)
{
    ah_fs_change *to = ah_fs_changes_add(&s->list, ah_text_slice(c->path), c->act);

    if (!to)
        return ah_err_nomem(err);
    to->content = ah_text_ref(c->content);
    to->mode = c->mode;
    to->was = *now;
    to->pinned = c->pinned;
    to->anew = c->anew;
    if (s->into->below && !ah_fs_change_redo(s->t->fs.mem, to, c->op, c->n_ops))
        return ah_err_nomem(err);
    return AH_OK;
}

/* Reads the present entry below. A path through a file is missing: the changes above it in the
 * list decide whether that is a conflict. */
static ah_status look_below(settling *s, ah_slice path, ah_fs_info *now, ah_err *err)
{
    ah_status st = s->below->store->stat(s->below, path, now, err);

    if (st != AH_TOOL_VALIDATION)
        return st;
    *now = (ah_fs_info){.modified_ms = AH_FS_NO_TIME};
    return AH_OK;
}

/* Fails with a conflict if the parent folder was deleted. For a view, the overlay's commit
 * checks this. */
static ah_status check_parent(settling *s, ah_slice path, ah_err *err)
{
    ah_slice folder = ah_fs_parent(path);
    ah_fs_info info;
    ah_status st;

    if (folder.n == 0 || s->into != s->below || ah_fs_changes_have(&s->list, folder))
        return AH_OK;
    st = look_below(s, folder, &info, err);
    return st == AH_OK && info.kind != AH_FS_FOLDER ? conflict(folder, "was deleted", err) : st;
}

/* Fails with a conflict if a folder to be deleted got new entries. For a view, the overlay
 * checks this. */
static ah_status check_emptied(settling *s, ah_slice folder, ah_err *err)
{
    ah_fs_items in;
    ah_status st;

    if (s->into != s->below)
        return AH_OK;
    ah_fs_items_init(&in, s->t->fs.mem, s->below->o.max_files);
    st = s->below->store->list(s->below, folder, &in, err);
    if (st == AH_OK && in.left_out)
        st = conflict(folder, "was added to", err);
    for (size_t i = 0; st == AH_OK && i < in.n; i++) {
        ah_fs_change *c = NULL;
        ah_fs_path p;

        if (ah_fs_join(folder, ah_text_slice(in.item[i].name), &p))
            c = ah_fs_tree_find(s->t, ah_fs_path_slice(&p));
        if (!c || c->act != AH_FS_REMOVE)
            st = conflict(folder, "was added to", err);
    }
    ah_fs_items_clear(&in);
    return st;
}

/* Returns AH_OK if the change may replace the present entry: an entry removed here to make room
 * must be unchanged below, and a folder may contain only entries that were removed as well. */
static ah_status check_room(settling *s, const ah_fs_change *c, ah_fs_kind own,
                            const ah_fs_info *now, ah_err *err)
{
    ah_slice path = ah_text_slice(c->path);

    if (now->kind == AH_FS_ABSENT || now->kind == own)
        return AH_OK;
    if (!c->anew || now->kind != c->was.kind)
        return conflict(path, "was replaced", err);
    return now->kind == AH_FS_FOLDER ? check_emptied(s, path, err) : AH_OK;
}

static ah_status settle_put(settling *s, const ah_fs_change *c, const ah_fs_info *now, ah_err *err)
{
    ah_slice path = ah_text_slice(c->path);
    ah_text *content = NULL;
    ah_fs_change *to;
    ah_status st;

    st = check_room(s, c, AH_FS_FILE, now, err);
    if (st == AH_OK)
        st = check_parent(s, path, err);
    if (st == AH_OK && !c->anew)
        st = ah_fs_need_place(path, now, err);
    if (st == AH_OK && c->n_ops && !is_same(now, &c->was))
        st = redo(s, c, &content, err);
    if (st == AH_OK)
        st = hand_down(s, c, now, err);
    if (st == AH_OK) {
        to = &s->list.item[s->list.n - 1];
        if (content)
            ah_text_set(&to->content, ah_text_ref(content));
        if (content ||
            (now->kind == AH_FS_FILE && !c->anew && is_same_mode(&c->mode, &c->was.mode)))
            to->mode = now->mode; /* the present mode stays, even if it was changed meanwhile */
    }
    ah_text_unref(content);
    return st;
}

static ah_status settle_folder(settling *s, const ah_fs_change *c, const ah_fs_info *now,
                               ah_err *err)
{
    ah_slice path = ah_text_slice(c->path);
    ah_status st;

    if (now->kind == AH_FS_FOLDER)
        return AH_OK;
    st = check_room(s, c, AH_FS_FOLDER, now, err);
    if (st == AH_OK)
        st = check_parent(s, path, err);
    return st == AH_OK ? hand_down(s, c, now, err) : st;
}

static ah_status settle_removal(settling *s, const ah_fs_change *c, const ah_fs_info *now,
                                ah_err *err)
{
    ah_slice path = ah_text_slice(c->path);
    ah_status st = AH_OK;

    if (now->kind == AH_FS_ABSENT && c->was.kind == AH_FS_ABSENT && s->into == s->below)
        return AH_OK; /* made and deleted here */
    if (now->kind != c->was.kind)
        return conflict(path, now->kind == AH_FS_ABSENT ? "was deleted" : "was replaced", err);
    if (now->kind == AH_FS_FOLDER)
        st = check_emptied(s, path, err);
    return st == AH_OK ? hand_down(s, c, now, err) : st;
}

/* Entries below an overlay may change without a conflict until the overlay is committed. The
 * same holds for a view if the changed entry is not in the overlay itself; *own is then true. An
 * entry that the call itself put below gets its version there with the commit (`fresh`: its file
 * system). */
static void settle_view(const settling *s, ah_fs_change *c, bool *own)
{
    ah_slice path = ah_text_slice(c->path);

    c->fresh = NULL;
    *own = false;
    if (s->into == s->below)
        return;
    c->fresh = ah_fs_view_saw(s->t, path, &c->was);
    *own = ah_fs_view_put_below(s->t, path) || ah_fs_view_is_below(s->t, path);
}

/* True if an overlay that is committed in a call into another one has read an entry of that one
 * itself: the change then depends on nothing below. */
static bool is_of_overlay(const settling *s, const ah_fs_change *c)
{
    const ah_fs_tree *into = (const ah_fs_tree *)s->into;

    return c->act == AH_FS_SEEN && !s->t->into && s->into->below && into->into &&
           ah_fs_view_shows(into, ah_text_slice(c->path));
}

static ah_status settle(settling *s, ah_fs_change *c, ah_err *err)
{
    ah_fs_info now;
    bool own;
    ah_status st;

    if (c->act == AH_FS_SEEN && (s->t->quiet || !s->into->below))
        return AH_OK;
    if ((st = look_below(s, ah_text_slice(c->path), &now, err)) != AH_OK)
        return st;
    settle_view(s, c, &own);
    if (own || c->act == AH_FS_SEEN) /* an overlay must know what its own writes depend on */
        return hand_down(s, c, is_of_overlay(s, c) ? &now : &c->was, err);
    if (c->pinned && !is_same(&now, &c->was))
        return conflict(ah_text_slice(c->path), "was changed", err);
    switch (c->act) {
    case AH_FS_SEEN:
        break;
    case AH_FS_PUT:
        return settle_put(s, c, &now, err);
    case AH_FS_MAKE_FOLDER:
        return settle_folder(s, c, &now, err);
    case AH_FS_REMOVE:
        return settle_removal(s, c, &now, err);
    }
    return AH_OK;
}

/* -- transactions ------------------------------------------------------------------------- */

static ah_fs *into_of(const ah_fs_tree *t)
{
    return t->into ? t->into : t->fs.below;
}

static ah_status settle_all(settling *s, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && i < s->t->n; i++)
        st = settle(s, s->t->node[i], err);
    if (st == AH_OK && s->list.n)
        st = s->into->store->prepare(s->into, &s->list, &s->t->ready, err);
    if (st == AH_OK && s->into->machine) {
        s->t->due = s->list;
        s->list = (ah_fs_changes){.mem = s->list.mem};
    }
    ah_fs_changes_clear(&s->list);
    return st;
}

/* Hands down no single change: the whole content of the view replaces everything below. */
static ah_status settle_emptied(const settling *s, ah_err *err)
{
    bool own;

    for (size_t i = 0; i < s->t->n; i++)
        settle_view(s, s->t->node[i], &own);
    return ah_fs_view_check(s->t, err);
}

void ah_fs_pin(ah_fs *overlay)
{
    const ah_fs_tree *t = (const ah_fs_tree *)overlay;

    for (size_t i = 0; i < t->n; i++)
        if (t->node[i]->act != AH_FS_SEEN)
            t->node[i]->pinned = true;
}

ah_status ah_fs_prepare(ah_fs *overlay, ah_err *err)
{
    ah_fs_tree *t = (ah_fs_tree *)overlay;
    settling s = {.t = t, .below = overlay->below, .into = into_of(t), .list.mem = overlay->mem};
    ah_status st = AH_OK;

    if (t->prepared)
        return ah_fs_err(err, AH_FS_CONFLICT, "the overlay is prepared already: commit or drop it");
    if (s.into->over)
        return ah_fs_err(err, AH_FS_CONFLICT, "the call in which this overlay was made is over");
    st = ah_fs_view_emptied(t) ? settle_emptied(&s, err) : settle_all(&s, err);
    t->prepared = st == AH_OK;
    t->ready_at = s.into->commits;
    return st;
}

static void forget_ready(ah_fs_tree *t)
{
    t->prepared = false;
    t->ready = NULL;
    if (t->due.mem)
        ah_fs_changes_clear(&t->due);
}

static void drop_ready(ah_fs_tree *t)
{
    if (t->ready)
        into_of(t)->store->drop(into_of(t), t->ready);
    forget_ready(t);
}

ah_status ah_fs_prepare_again(ah_fs *overlay, ah_err *err)
{
    ah_fs_tree *t = (ah_fs_tree *)overlay;

    if (t->prepared && (!t->ready || into_of(t)->commits == t->ready_at))
        return AH_OK;
    drop_ready(t);
    return ah_fs_prepare(overlay, err);
}

/* Updates entries that were read below before they had a version there. If one cannot be read,
 * the overlay's own commit ends in a conflict. `t` has the changes, or is `into` itself. */
static void refresh(const ah_fs_tree *t, ah_fs *into)
{
    ah_fs_info now;
    ah_err ignored;

    for (size_t i = 0; i < t->n; i++) {
        ah_fs_change *c = t->node[i], *to;
        ah_slice path = ah_text_slice(c->path);
        ah_fs *in = c->fresh;

        to = in ? ah_fs_tree_find((ah_fs_tree *)into, path) : NULL;
        c->fresh = NULL;
        if (to && is_same(&to->was, &c->was) && in->store->stat(in, path, &now, &ignored) == AH_OK)
            to->was = now;
    }
}

static ah_status take_over(ah_fs_tree *t, ah_fs *into, void *ready, ah_err *err)
{
    ah_status st;

    if (ah_fs_view_emptied(t)) {
        ah_fs_view_replace(t);
        refresh((ah_fs_tree *)into, into);
        return AH_OK;
    }
    if (!ready)
        return AH_OK;
    into->commits++;
    st = into->store->commit(into, ready, err);
    if (t->into)
        refresh(t, into);
    return st;
}

ah_status ah_fs_commit(ah_fs *overlay, ah_err *err)
{
    ah_fs_tree *t = (ah_fs_tree *)overlay;
    ah_fs *into = into_of(t);
    void *ready = t->ready;
    ah_status st;

    if (!t->prepared)
        return ah_fs_err(err, AH_FS_CONFLICT, "the overlay is not prepared: nothing was committed");
    forget_ready(t);
    if (ready && into->commits != t->ready_at) {
        into->store->drop(into, ready);
        return ah_fs_err(err, AH_FS_CONFLICT,
                         "another call's files were committed after this one's "
                         "were prepared: prepare again");
    }
    st = take_over(t, into, ready, err);
    ah_fs_tree_clear(t);
    return st;
}

void ah_fs_drop(ah_fs *overlay)
{
    drop_ready((ah_fs_tree *)overlay);
    ah_fs_tree_clear((ah_fs_tree *)overlay);
}

void ah_fs_end(ah_fs *overlay)
{
    ah_fs_drop(overlay);
    overlay->over = true;
}

ah_status ah_fs_overlay_new(ah_fs *below, ah_fs **out, ah_err *err)
{
    ah_fs_tree *t = ah_alloc(below->mem, sizeof *t);

    if (!t)
        return ah_err_nomem(err);
    ah_fs_init(&t->fs, &ah_fs_tree_store, below->mem, &below->o);
    t->fs.guarded = below->guarded;
    t->fs.below = ah_fs_ref(below);
    *out = &t->fs;
    return AH_OK;
}
