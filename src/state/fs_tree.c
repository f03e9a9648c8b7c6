/* Files as a sorted list of changes in memory: alone (a file system in memory), or over another
 * one (an overlay, whose transactions are in fs_overlay.c). A path without a change is read
 * below; alone, it is missing. */
#include "state/fs_tree.h"

/* -- finding ------------------------------------------------------------------------------- */

/* Returns the index of the path's node, or the one for its insertion. */
static size_t place_of(const ah_fs_tree *t, ah_slice path)
{
    size_t low = 0, high = t->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (ah_slice_cmp(ah_text_slice(t->node[mid]->path), path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

ah_fs_change *ah_fs_tree_find(const ah_fs_tree *t, ah_slice path)
{
    size_t i = place_of(t, path);

    return i < t->n && ah_slice_eq(ah_text_slice(t->node[i]->path), path) ? t->node[i] : NULL;
}

static ah_fs_info info_of(const ah_fs_change *c)
{
    ah_fs_info info = {.modified_ms = AH_FS_NO_TIME};

    if (c->act == AH_FS_REMOVE)
        return info;
    info.kind = c->act == AH_FS_PUT ? AH_FS_FILE : AH_FS_FOLDER;
    info.mode = c->mode;
    info.size = c->content ? c->content->len : 0;
    info.version.part[3] = c->serial;
    return info;
}

static ah_status below_file(ah_slice path, ah_err *err)
{
    return ah_fs_err(err, AH_FS_NOT_A_FOLDER,
                     "cannot reach '%.*s': a part of the path is a file, not a folder",
                     AH_FMT(path));
}

/* WITHIN: below, in a folder made here; missing if a file is in the way there. */
typedef enum whose { OURS, BELOW, WITHIN, NOBODYS } whose;

/* Finds the owner of the path. A change here, of the path or of a folder above it, decides
 * before the file system below is read, because that may have another kind of entry.
 * AH_FS_NOT_A_FOLDER if one of the folders is a file here, as on a disk. *c: the change of the
 * path itself, or NULL. */
static ah_status find_owner(ah_fs_tree *t, ah_slice path, ah_fs_change **c, whose *out, ah_err *err)
{
    *out = t->fs.below ? BELOW : NOBODYS;
    for (size_t i = 1; i < path.n; i++) {
        const ah_fs_change *up =
            path.p[i] == '/' ? ah_fs_tree_find(t, (ah_slice){path.p, i}) : NULL;

        if (!up || up->act == AH_FS_SEEN)
            continue;
        if (up->act == AH_FS_PUT)
            return below_file(path, err);
        if (up->act == AH_FS_REMOVE)
            *out = NOBODYS;
        else if (up->was.kind != AH_FS_FOLDER && *out == BELOW)
            *out = WITHIN;
    }
    *c = ah_fs_tree_find(t, path);
    if (*c && (*c)->act != AH_FS_SEEN)
        *out = OURS;
    return AH_OK;
}

static ah_status stat_within(ah_fs *below, ah_slice path, ah_fs_info *out, ah_err *err)
{
    ah_status st = below->store->stat(below, path, out, err);

    if (st != AH_TOOL_VALIDATION)
        return st;
    *out = (ah_fs_info){.modified_ms = AH_FS_NO_TIME};
    return AH_OK;
}

static ah_status tree_stat(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err)
{
    ah_fs_change *c;
    whose w;
    ah_status st = find_owner((ah_fs_tree *)fs, path, &c, &w, err);

    *out = (ah_fs_info){.modified_ms = AH_FS_NO_TIME};
    if (st != AH_OK)
        return st;
    if (w == OURS)
        *out = info_of(c);
    else if (w == BELOW)
        return fs->below->store->stat(fs->below, path, out, err);
    else if (w == WITHIN)
        return stat_within(fs->below, path, out, err);
    else if (path.n == 0)
        out->kind = AH_FS_FOLDER;
    return AH_OK;
}

static ah_status tree_read(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                           ah_fs_info *info, ah_err *err)
{
    ah_fs_change *c;
    whose w;
    ah_status st = find_owner((ah_fs_tree *)fs, path, &c, &w, err);
    size_t n;

    if (st != AH_OK)
        return st;
    *info = w == OURS ? info_of(c) : (ah_fs_info){.modified_ms = AH_FS_NO_TIME};
    if (w == WITHIN && (st = stat_within(fs->below, path, info, err)) != AH_OK)
        return st;
    if (w == BELOW || (w == WITHIN && info->kind != AH_FS_ABSENT))
        return fs->below->store->read(fs->below, path, offset, limit, out, info, err);
    if (info->kind != AH_FS_FILE)
        return ah_fs_need_file(path, info, err);
    if (offset >= info->size)
        return AH_OK;
    n = c->content->len - (size_t)offset;
    ah_buf_add(out, c->content->data + offset, n < limit ? n : limit);
    return AH_OK;
}

/* -- listing -------------------------------------------------------------------------------- */

/* Adds the folder's entries of this list. */
static ah_status list_own(ah_fs_tree *t, ah_slice folder, ah_fs_items *out)
{
    for (size_t i = folder.n ? place_of(t, folder) : 0; i < t->n; i++) {
        ah_slice path = ah_text_slice(t->node[i]->path);
        ah_fs_info info = info_of(t->node[i]);
        ah_fs_item item = {.kind = info.kind, .size = info.size};

        if (path.n > folder.n && memcmp(path.p, folder.p, folder.n) != 0)
            break;
        if (t->node[i]->act == AH_FS_SEEN || info.kind == AH_FS_ABSENT ||
            !ah_fs_within(path, folder) || ah_fs_parent(path).n != folder.n)
            continue;
        if (ah_fs_items_add(out, ah_fs_name(path), &item) != AH_OK)
            return AH_NOMEM;
    }
    return AH_OK;
}

/* Adds the folder's entries below that were not changed here. */
static ah_status list_below(ah_fs_tree *t, ah_slice folder, ah_fs_items *out, ah_err *err)
{
    ah_fs *below = t->fs.below;
    ah_fs_items in;
    ah_status st;

    ah_fs_items_init(&in, t->fs.mem, t->fs.o.max_files);
    st = below->store->list(below, folder, &in, err);
    out->truncated = out->truncated || in.truncated;
    out->left_out += in.left_out;
    for (size_t i = 0; st == AH_OK && i < in.n; i++) {
        ah_slice name = ah_text_slice(in.item[i].name);
        ah_fs_change *c;
        ah_fs_path p;

        c = ah_fs_join(folder, name, &p) ? ah_fs_tree_find(t, ah_fs_path_slice(&p)) : NULL;
        if ((!c || c->act == AH_FS_SEEN) && ah_fs_items_add(out, name, &in.item[i]) != AH_OK)
            st = ah_err_nomem(err);
    }
    ah_fs_items_clear(&in);
    return st;
}

static ah_status tree_list(ah_fs *fs, ah_slice folder, ah_fs_items *out, ah_err *err)
{
    ah_fs_tree *t = (ah_fs_tree *)fs;
    ah_fs_change *c;
    ah_fs_info info;
    whose w;
    ah_status st = find_owner(t, folder, &c, &w, err);

    if (st == AH_OK)
        st = tree_stat(fs, folder, &info, err);
    if (st != AH_OK)
        return st;
    if (info.kind == AH_FS_ABSENT)
        return ah_fs_err(err, AH_FS_NOT_FOUND, "there is no folder '%.*s'", AH_FMT(folder));
    if (info.kind != AH_FS_FOLDER)
        return ah_fs_err(err, AH_FS_NOT_A_FOLDER, "'%.*s' is a %s, not a folder", AH_FMT(folder),
                         ah_fs_kind_name(info.kind));
    if (list_own(t, folder, out) != AH_OK)
        return ah_err_nomem(err);
    if (!fs->below || w == NOBODYS)
        return AH_OK;
    if (w == OURS) { /* an entry below may have appeared or disappeared */
        st = stat_within(fs->below, folder, &info, err);
        if (st != AH_OK || info.kind != AH_FS_FOLDER)
            return st;
    }
    return list_below(t, folder, out, err);
}

/* -- changing --------------------------------------------------------------------------------- */

/* Made by prepare: the changes in their future form. */
typedef struct plan {
    size_t n;
    size_t most; /* places reserved for it */
    ah_fs_change *node[];
} plan;

static void free_node(const ah_mem *mem, ah_fs_change *c)
{
    if (c)
        ah_fs_change_clear(mem, c);
    ah_free(mem, c);
}

static void tree_drop(ah_fs *fs, void *ticket)
{
    plan *p = ticket;

    ((ah_fs_tree *)fs)->promised -= p->most;
    for (size_t i = 0; i < p->n; i++)
        free_node(fs->mem, p->node[i]);
    ah_free(fs->mem, p);
}

/* True if the entry after the change is independent of the one below. */
static bool stands_alone(const ah_fs_change *c)
{
    return c && c->act != AH_FS_SEEN && c->n_ops == 0;
}

/* Sets *to, zero before, to `c` over `old`, which may be NULL. False: out of memory. */
static bool merge(const ah_fs_tree *t, const ah_fs_change *old, const ah_fs_change *c,
                  ah_fs_change *to)
{
    const ah_mem *mem = t->fs.mem;
    bool keeps = old && c->act == AH_FS_SEEN; /* the change only adds knowledge of the entry */

    ah_fs_change_copy(to, keeps ? old : c);
    to->serial = keeps ? old->serial : 0;
    if (!t->fs.below) {
        to->pinned = false;
        return true;
    }
    to->was = old ? old->was : c->was;
    to->anew = c->anew || (old && (old->anew || old->act == AH_FS_REMOVE));
    to->pinned = (old && old->pinned) || (c->pinned && !stands_alone(old));
    if (stands_alone(old))
        return true;
    if (old && (keeps || c->n_ops) && !ah_fs_change_redo(mem, to, old->op, old->n_ops))
        return false;
    return keeps || ah_fs_change_redo(mem, to, c->op, c->n_ops);
}

bool ah_fs_is_own(ah_fs *overlay, ah_slice path)
{
    ah_fs_change *c;
    ah_fs_path p;
    ah_err ignored;
    whose w;

    if (!overlay->below || ah_fs_path_check(overlay, path, &p, &ignored) != AH_OK)
        return false;
    if (find_owner((ah_fs_tree *)overlay, ah_fs_path_slice(&p), &c, &w, &ignored) != AH_OK)
        return true; /* the path leads through a file that is put here */
    return w == NOBODYS || (w == OURS && stands_alone(c));
}

static size_t bytes_of(const ah_fs_change *c)
{
    return c && c->content ? c->content->len : 0;
}

static ah_status check_limits(const ah_fs_tree *t, size_t bytes, size_t added, ah_err *err)
{
    const ah_fs_options *o = &t->fs.o;
    const char *where = t->fs.below ? "staged" : "kept in memory";

    if (bytes > o->max_total)
        return ah_fs_err(err, AH_FS_TOO_LARGE, "more than %zu bytes would be %s", o->max_total,
                         where);
    if (t->n + added > o->max_files)
        return ah_fs_err(err, AH_FS_TOO_MANY, "more than %zu files and folders would be %s",
                         o->max_files, where);
    return AH_OK;
}

static ah_status plan_node(ah_fs_tree *t, plan *p, const ah_fs_change *c, ah_err *err)
{
    const ah_fs_change *old = ah_fs_tree_find(t, ah_text_slice(c->path));
    ah_fs_change *to = ah_alloc(t->fs.mem, sizeof *to);

    if (!to)
        return ah_err_nomem(err);
    p->node[p->n++] = to;
    return merge(t, old, c, to) ? AH_OK : ah_err_nomem(err);
}

/* Reserves room for the plan until it is committed or dropped, independent of other plans. */
static bool promise(ah_fs_tree *t, plan *p, size_t n)
{
    ah_fs_change **room =
        ah_grow(t->fs.mem, t->node, &t->cap, t->n + t->promised + n, sizeof *room);

    if (!room && n)
        return false;
    t->node = room;
    p->most = n;
    t->promised += n;
    return true;
}

static ah_status tree_prepare(ah_fs *fs, const ah_fs_changes *list, void **ticket, ah_err *err)
{
    ah_fs_tree *t = (ah_fs_tree *)fs;
    plan *p = ah_alloc(fs->mem, sizeof *p + list->n * sizeof *p->node);
    size_t bytes = t->bytes, added = 0;
    ah_status st = p && promise(t, p, list->n) ? AH_OK : ah_err_nomem(err);

    if (st == AH_OK && t->prepared)
        st = ah_fs_err(err, AH_FS_CONFLICT, "the overlay is prepared: commit or drop it first");
    for (size_t i = 0; st == AH_OK && i < list->n; i++) {
        const ah_fs_change *old = ah_fs_tree_find(t, ah_text_slice(list->item[i].path));

        if ((st = plan_node(t, p, &list->item[i], err)) != AH_OK)
            break;
        bytes += bytes_of(p->node[i]) - bytes_of(old);
        added += !old;
    }
    if (st == AH_OK)
        st = check_limits(t, bytes, added, err);
    if (st == AH_OK)
        *ticket = p;
    else if (p)
        tree_drop(fs, p);
    return st;
}

static void remove_at(ah_fs_tree *t, size_t i)
{
    t->edits += t->node[i]->act != AH_FS_SEEN;
    t->bytes -= bytes_of(t->node[i]);
    free_node(t->fs.mem, t->node[i]);
    t->n--;
    memmove(t->node + i, t->node + i + 1, (t->n - i) * sizeof *t->node);
}

/* Takes the change. */
static void place(ah_fs_tree *t, ah_fs_change *c)
{
    size_t i = place_of(t, ah_text_slice(c->path));

    if (i < t->n && ah_slice_eq(ah_text_slice(t->node[i]->path), ah_text_slice(c->path)))
        remove_at(t, i);
    if (!t->fs.below && c->act == AH_FS_REMOVE) {
        free_node(t->fs.mem, c);
        return;
    }
    memmove(t->node + i + 1, t->node + i, (t->n - i) * sizeof *t->node);
    t->node[i] = c;
    t->n++;
    t->edits += c->act != AH_FS_SEEN;
    t->bytes += bytes_of(c);
}

static uint64_t next_serial(ah_fs *fs)
{
    while (fs->below)
        fs = fs->below;
    return ++fs->serial;
}

static ah_status tree_commit(ah_fs *fs, void *ticket, ah_err *err)
{
    plan *p = ticket;

    (void)err;
    ((ah_fs_tree *)fs)->promised -= p->most;
    for (size_t i = 0; i < p->n; i++) {
        if (!p->node[i]->serial)
            p->node[i]->serial = next_serial(fs);
        place((ah_fs_tree *)fs, p->node[i]);
    }
    ah_free(fs->mem, p);
    return AH_OK;
}

void ah_fs_tree_clear(ah_fs_tree *t)
{
    while (t->n)
        remove_at(t, t->n - 1);
}

/* -- life -------------------------------------------------------------------------------------- */

static void tree_free(ah_fs *fs)
{
    ah_fs_tree *t = (ah_fs_tree *)fs;
    ah_fs *below = fs->below;

    ah_fs_drop(fs);
    ah_fs_tree_clear(t);
    ah_free(fs->mem, t->node);
    ah_fs_unref(t->into);
    ah_free(fs->mem, t);
    ah_fs_unref(below);
}

const ah_fs_store ah_fs_tree_store = {
    .stat = tree_stat,
    .read = tree_read,
    .list = tree_list,
    .prepare = tree_prepare,
    .commit = tree_commit,
    .drop = tree_drop,
    .free = tree_free,
};

ah_status ah_fs_memory_new(const ah_mem *mem, const ah_fs_options *o, ah_fs **out, ah_err *err)
{
    ah_fs_tree *t = ah_alloc(mem, sizeof *t);

    if (!t)
        return ah_err_nomem(err);
    ah_fs_init(&t->fs, &ah_fs_tree_store, mem, o);
    *out = &t->fs;
    return AH_OK;
}
