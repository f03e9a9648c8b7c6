/* Deletes and renames files and whole folders. A rename is a copy of contents and a removal in
 * one list of changes, so it is staged, checked and undone like other changes. */
#include "state/fs_store.h"

/* A removal or rename in progress; for a removal `to` is empty. */
typedef struct mover {
    ah_fs *fs;
    ah_fs_changes list;
    ah_slice from, to;
} mover;

static ah_status add_removal(mover *m, ah_slice path, const ah_fs_info *was, ah_err *err)
{
    ah_fs_path p;
    ah_status st = ah_fs_path_writable(m->fs, path, &p, err);

    if (st == AH_OK && !ah_fs_plan(m->fs, &m->list, path, AH_FS_REMOVE, was, err))
        st = err->status;
    return st;
}

/* Returns the new path of `path`, which is `from` or below it. */
static ah_status new_path(const mover *m, ah_slice path, ah_fs_path *out, ah_err *err)
{
    char joined[2 * AH_FS_MAX_PATH + 1];
    size_t tail = path.n - m->from.n;

    memcpy(joined, m->to.p, m->to.n);
    memcpy(joined + m->to.n, path.p + m->from.n, tail);
    return ah_fs_path_writable(m->fs, (ah_slice){joined, m->to.n + tail}, out, err);
}

static ah_status add_copy(mover *m, ah_slice path, ah_err *err)
{
    ah_fs_path to;
    ah_fs_info from, was;
    ah_fs_change *c;
    ah_text *content = NULL;
    ah_status st = new_path(m, path, &to, err);

    if (st == AH_OK)
        st = m->fs->store->stat(m->fs, ah_fs_path_slice(&to), &was, err);
    if (st == AH_OK)
        st = ah_fs_content(m->fs, path, &content, &from, err);
    if (st != AH_OK)
        return st;
    if (!(c = ah_fs_plan(m->fs, &m->list, ah_fs_path_slice(&to), AH_FS_PUT, &was, err))) {
        ah_text_unref(content);
        return err->status;
    }
    c->content = content;
    c->mode = from.mode;
    st = add_removal(m, path, &from, err);
    m->list.item[m->list.n - 1].pinned = st == AH_OK; /* its content was copied elsewhere */
    return st;
}

static ah_status add_folder(mover *m, ah_slice path, ah_err *err)
{
    static const ah_fs_info absent = {.kind = AH_FS_ABSENT};
    ah_fs_path to;
    ah_status st = new_path(m, path, &to, err);

    if (st == AH_OK &&
        !ah_fs_plan(m->fs, &m->list, ah_fs_path_slice(&to), AH_FS_MAKE_FOLDER, &absent, err))
        st = err->status;
    return st;
}

static ah_status add_one(mover *m, ah_slice path, const ah_fs_info *was, ah_err *err)
{
    ah_status st = AH_OK;

    if (m->to.n && was->kind == AH_FS_FOLDER)
        st = add_folder(m, path, err);
    else if (m->to.n) /* a link or a device cannot be copied */
        return was->kind == AH_FS_FILE ? add_copy(m, path, err) : ah_fs_need_file(path, was, err);
    return st == AH_OK ? add_removal(m, path, was, err) : st;
}

static ah_status visit(ah_fs_walk *w, ah_slice path, const ah_fs_item *item, bool *into,
                       ah_err *err)
{
    mover *m = w->ud;
    ah_fs_info was;
    ah_status st = m->fs->store->stat(m->fs, path, &was, err);

    (void)item;
    (void)into;
    return st == AH_OK ? add_one(m, path, &was, err) : st;
}

/* Adds `from` itself and everything under it. */
static ah_status add_all(mover *m, const ah_fs_info *was, ah_err *err)
{
    ah_fs_walk w = {.visit = visit, .ud = m, .strict = true};
    ah_status st = add_one(m, m->from, was, err);

    if (st != AH_OK || was->kind != AH_FS_FOLDER)
        return st;
    st = ah_fs_walk_run(m->fs, m->from, &w, err);
    if (st == AH_OK && w.truncated)
        return ah_fs_err(err, AH_FS_TOO_MANY, "'%.*s' holds more than %zu files, or is too deep",
                         AH_FMT(m->from), m->fs->o.max_files);
    if (st == AH_OK && w.left_out)
        return ah_fs_err(err, AH_FS_TOO_MANY,
                         "'%.*s' holds %zu entries that no path can name (too long, or no UTF-8): "
                         "nothing was changed",
                         AH_FMT(m->from), w.left_out);
    return st;
}

static ah_status check_empty(ah_fs *fs, ah_slice path, ah_err *err)
{
    ah_fs_items in;
    ah_status st;

    ah_fs_items_init(&in, fs->mem, fs->o.max_files);
    st = fs->store->list(fs, path, &in, err);
    if (st == AH_OK && in.n + in.left_out)
        st = ah_fs_err(err, AH_FS_EXISTS,
                       "the folder '%.*s' is not empty: ask for all of it to be deleted",
                       AH_FMT(path));
    ah_fs_items_clear(&in);
    return st;
}

ah_status ah_fs_delete(ah_fs *fs, ah_slice path, bool tree, ah_err *err)
{
    mover m = {.fs = fs, .list.mem = fs->mem};
    ah_fs_path p;
    ah_fs_info was;
    ah_status st = ah_fs_path_writable(fs, path, &p, err);

    m.from = ah_fs_path_slice(&p);
    if (st == AH_OK)
        st = fs->store->stat(fs, m.from, &was, err);
    if (st == AH_OK && was.kind == AH_FS_ABSENT)
        st = ah_fs_need_file(m.from, &was, err);
    if (st == AH_OK && was.kind == AH_FS_FOLDER && !tree)
        st = check_empty(fs, m.from, err);
    if (st == AH_OK)
        st = add_all(&m, &was, err);
    if (st == AH_OK)
        return ah_fs_change_now(fs, &m.list, err);
    ah_fs_changes_clear(&m.list);
    return st;
}

static ah_status check_target(const mover *m, const ah_fs_info *was, bool over, ah_err *err)
{
    ah_fs_info to;
    ah_status st;

    if (was->kind != AH_FS_FOLDER && was->kind != AH_FS_FILE)
        return ah_fs_need_file(m->from, was, err);
    if (ah_slice_eq(m->from, m->to) || ah_fs_within(m->to, m->from))
        return ah_fs_err(err, AH_FS_EXISTS, "cannot move '%.*s' into itself", AH_FMT(m->from));
    if ((st = m->fs->store->stat(m->fs, m->to, &to, err)) != AH_OK || to.kind == AH_FS_ABSENT)
        return st;
    if (over && was->kind == AH_FS_FILE)
        return ah_fs_need_place(m->to, &to, err);
    return ah_fs_err(err, AH_FS_EXISTS, "'%.*s' already exists and is a %s", AH_FMT(m->to),
                     ah_fs_kind_name(to.kind));
}

ah_status ah_fs_rename(ah_fs *fs, ah_slice from, ah_slice to, bool over, ah_err *err)
{
    mover m = {.fs = fs, .list.mem = fs->mem};
    ah_fs_path p, q;
    ah_fs_info was;
    ah_status st = ah_fs_path_writable(fs, from, &p, err);

    if (st == AH_OK)
        st = ah_fs_path_writable(fs, to, &q, err);
    m.from = ah_fs_path_slice(&p);
    m.to = ah_fs_path_slice(&q);
    if (st == AH_OK)
        st = fs->store->stat(fs, m.from, &was, err);
    if (st == AH_OK)
        st = check_target(&m, &was, over, err);
    if (st == AH_OK)
        st = add_all(&m, &was, err);
    if (st == AH_OK)
        return ah_fs_change_now(fs, &m.list, err);
    ah_fs_changes_clear(&m.list);
    return st;
}
