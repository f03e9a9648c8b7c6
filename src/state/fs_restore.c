/* Files that are put back to what they were. All changes depend on what is there now, so the
 * preparation of the overlay finds what another program does meanwhile. */
#include "state/fs_tree.h"

typedef struct restoring {
    ah_fs *overlay;
    ah_fs_restored *item;
    ah_fs_info *was; /* of each item, as it is now */
    size_t n;
    ah_fs_changes list;
} restoring;

/* True if the entry is as this side says. */
static bool is_side(const ah_fs_info *info, const char hash[AH_SHA256_HEX], const ah_file_side *s)
{
    if (info->kind == AH_FS_ABSENT || !s->type)
        return info->kind == AH_FS_ABSENT && !s->type;
    if (strcmp(ah_fs_kind_name(info->kind), s->type) != 0)
        return false;
    return info->kind != AH_FS_FILE || ah_slice_eq(s->hash, (ah_slice){hash, AH_SHA256_HEX});
}

static bool is_type(const ah_file_side *s, ah_fs_kind kind)
{
    return s->type && strcmp(s->type, ah_fs_kind_name(kind)) == 0;
}

/* True if the records know how to make it so. */
static bool is_known(const ah_file_side *s)
{
    return !s->type || is_type(s, AH_FS_FOLDER) || (is_type(s, AH_FS_FILE) && s->content.p);
}

static bool may_overwrite(const ah_fs_info *was)
{
    return was->kind == AH_FS_ABSENT || was->kind == AH_FS_FILE;
}

/* Compares an entry with both of its sides. */
static ah_status look(restoring *r, size_t i, bool force, ah_err *err)
{
    ah_fs_restored *it = &r->item[i];
    char hash[AH_SHA256_HEX];
    ah_fs_path path;
    ah_status st = ah_fs_path_writable(r->overlay, it->path, &path, err);

    it->found = AH_FS_NOT_ALLOWED;
    if (st == AH_OK && ah_slice_eq(ah_fs_path_slice(&path), it->path))
        st = ah_fs_look(r->overlay->below, it->path, &r->was[i], hash, NULL, err);
    else
        return st == AH_NOMEM ? st : AH_OK;
    if (st == AH_NOMEM)
        return st;
    if (st == AH_OK && is_side(&r->was[i], hash, &it->then))
        it->found = AH_FS_AS_WANTED;
    else if (!is_known(&it->then))
        it->found = AH_FS_NOT_KEPT;
    else if (st == AH_OK &&
             (is_side(&r->was[i], hash, &it->now) || (force && may_overwrite(&r->was[i]))))
        it->found = AH_FS_AS_EXPECTED;
    else
        it->found = AH_FS_CHANGED;
    return AH_OK;
}

/* Returns the item of the path; NULL: none. */
static const ah_fs_restored *find(const restoring *r, ah_slice path)
{
    size_t low = 0, high = r->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = ah_slice_cmp(r->item[mid].path, path);

        if (order == 0)
            return &r->item[mid];
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return NULL;
}

/* A folder goes only if all that is in it goes, too. */
static ah_status check_folder(restoring *r, ah_fs_restored *it, ah_err *err)
{
    ah_fs *below = r->overlay->below;
    ah_status st;
    ah_fs_items in;
    ah_fs_path p;

    ah_fs_items_init(&in, below->mem, below->o.max_files);
    st = below->store->list(below, it->path, &in, err);
    if (st != AH_OK || in.left_out || in.truncated)
        it->found = AH_FS_IN_USE;
    for (size_t i = 0; i < in.n && it->found != AH_FS_IN_USE; i++) {
        const ah_fs_restored *of = ah_fs_join(it->path, ah_text_slice(in.item[i].name), &p)
                                       ? find(r, ah_fs_path_slice(&p))
                                       : NULL;
        if (!of || of->found != AH_FS_AS_EXPECTED || of->then.type)
            it->found = AH_FS_IN_USE;
    }
    ah_fs_items_clear(&in);
    return st == AH_NOMEM ? st : AH_OK;
}

/* True if an entry of the folder, or of one in it, is to be there. */
static bool is_needed(const restoring *r, size_t folder)
{
    for (size_t i = folder + 1; i < r->n; i++)
        if (ah_fs_within(r->item[i].path, r->item[folder].path) && r->item[i].then.type)
            return true;
    return false;
}

/* Entries of a folder come behind it, so they are decided first. */
static ah_status check_folders(restoring *r, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = r->n; st == AH_OK && i-- > 0;)
        if (r->item[i].found == AH_FS_AS_EXPECTED && r->was[i].kind == AH_FS_FOLDER) {
            if (!r->item[i].then.type && is_needed(r, i))
                r->item[i].found = AH_FS_AS_WANTED;
            else
                st = check_folder(r, &r->item[i], err);
        }
    return st;
}

static ah_status stage(restoring *r, size_t i, ah_err *err)
{
    ah_fs_restored *it = &r->item[i];
    ah_fs_act act = !it->then.type                     ? AH_FS_REMOVE
                    : is_type(&it->then, AH_FS_FOLDER) ? AH_FS_MAKE_FOLDER
                                                       : AH_FS_PUT;
    ah_fs_change *c = ah_fs_plan(r->overlay, &r->list, it->path, act, &r->was[i], err);

    if (!c && err->status == AH_TOOL_VALIDATION) {
        it->found = AH_FS_CHANGED; /* its folder is none any more */
        return AH_OK;
    }
    if (!c)
        return err->status;
    c->pinned = true;
    c->anew = it->then.type && r->was[i].kind != AH_FS_ABSENT &&
              strcmp(it->then.type, ah_fs_kind_name(r->was[i].kind)) != 0;
    if (act != AH_FS_PUT)
        return AH_OK;
    if (it->mode.known)
        c->mode = it->mode;
    c->content = ah_text_new(r->list.mem, it->then.content);
    return c->content ? AH_OK : ah_err_nomem(err);
}

ah_status ah_fs_restore(ah_fs *overlay, ah_fs_restored *item, size_t n, bool force, ah_err *err)
{
    restoring r = {.overlay = overlay, .item = item, .n = n, .list.mem = overlay->mem};
    ah_status st = AH_OK;

    r.was = ah_alloc(overlay->mem, (n + 1) * sizeof *r.was);
    if (!r.was)
        return ah_err_nomem(err);
    memset(r.was, 0, (n + 1) * sizeof *r.was);
    for (size_t i = 0; st == AH_OK && i < n; i++)
        st = look(&r, i, force, err);
    if (st == AH_OK)
        st = check_folders(&r, err);
    for (size_t i = 0; st == AH_OK && i < n; i++)
        if (item[i].found == AH_FS_AS_EXPECTED)
            st = stage(&r, i, err);
    if (st == AH_OK && r.list.n)
        st = ah_fs_change_now(overlay, &r.list, err);
    else
        ah_fs_changes_clear(&r.list);
    ah_free(overlay->mem, r.was);
    return st;
}
