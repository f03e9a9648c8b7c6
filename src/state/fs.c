/* Operations on files, each made once from a store's functions: read, and take a list of
 * changes. It knows nothing of disks; of overlays it knows only that reads in one are recorded. */
#include "state/fs.h"

#include "state/fs_store.h"

/* -- life --------------------------------------------------------------------------------- */

ah_fs *ah_fs_ref(ah_fs *fs)
{
    if (fs)
        fs->refs++;
    return fs;
}

void ah_fs_unref(ah_fs *fs)
{
    if (!fs || --fs->refs)
        return;
    ah_text_unref(fs->o.allow);
    ah_text_unref(fs->folder[0]);
    ah_text_unref(fs->folder[1]);
    ah_text_unref(fs->name);
    fs->store->free(fs);
}

ah_fs *ah_fs_below(ah_fs *fs)
{
    return fs->below;
}

void ah_fs_seal(ah_fs *fs)
{
    fs->o.read_only = true;
}

/* -- checks --------------------------------------------------------------------------------- */

ah_status ah_fs_absent(ah_fs *fs, ah_slice path, ah_err *err)
{
    return ah_fs_advise(fs, path, ah_fs_need_file(path, &(ah_fs_info){.kind = AH_FS_ABSENT}, err),
                        err);
}

ah_status ah_fs_need_place(ah_slice path, const ah_fs_info *info, ah_err *err)
{
    if (info->kind == AH_FS_FILE && info->mode.known && !(info->mode.bits & 0222))
        return ah_fs_err(err, AH_FS_REFUSED, "'%.*s' is write-protected (mode %04o)", AH_FMT(path),
                         info->mode.bits);
    return info->kind == AH_FS_ABSENT ? AH_OK : ah_fs_need_file(path, info, err);
}

static ah_status too_large(const ah_fs *fs, ah_slice path, uint64_t size, const char *advice,
                           ah_err *err)
{
    return ah_fs_err(err, AH_FS_TOO_LARGE, "'%.*s' has %llu bytes; at most %zu are allowed%s",
                     AH_FMT(path), (unsigned long long)size, fs->o.max_file, advice);
}

/* -- reading ---------------------------------------------------------------------------------- */

ah_status ah_fs_note(ah_fs *fs, ah_slice path, const ah_fs_info *was, ah_err *err)
{
    ah_fs_changes list = {.mem = fs->mem};
    ah_fs_change *c;

    if (!fs->below)
        return AH_OK;
    if (!(c = ah_fs_changes_add(&list, path, AH_FS_SEEN))) {
        ah_fs_changes_clear(&list);
        return ah_err_nomem(err);
    }
    c->was = *was;
    c->pinned = true;
    return ah_fs_change_now(fs, &list, err);
}

ah_status ah_fs_stat(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err)
{
    ah_fs_path p;
    ah_status st = ah_fs_path_check(fs, path, &p, err);

    if (st == AH_OK)
        st = fs->store->stat(fs, ah_fs_path_slice(&p), out, err);
    if (st == AH_OK && p.n)
        st = ah_fs_note(fs, ah_fs_path_slice(&p), out, err);
    return st;
}

/* No part ends inside a character, unless the part is shorter than one. */
static void cut_part(ah_buf *out, size_t from)
{
    size_t n = ah_utf8_cut(out->data + from, out->len - from);

    if (n)
        ah_buf_reset(out, from + n);
}

static ah_status buf_error(const ah_buf *b, ah_slice path, ah_err *err)
{
    if (b->status == AH_NOMEM)
        return ah_err_nomem(err);
    return ah_fs_err(err, AH_FS_TOO_LARGE, "'%.*s' does not fit into %zu bytes", AH_FMT(path),
                     b->max);
}

static ah_status read_part(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                           ah_fs_info *info, ah_err *err)
{
    size_t from = out->len, most = fs->o.max_file;
    ah_status st;

    if (limit && limit < most)
        most = limit;
    st = fs->store->read(fs, path, offset, most, out, info, err);
    if (st != AH_OK)
        return st;
    if (!ah_buf_ok(out))
        return buf_error(out, path, err);
    if (limit == AH_FS_WHOLE && info->size > offset && info->size - offset > out->len - from)
        return too_large(fs, path, info->size, ": read it in parts", err);
    if (limit && out->len > from && info->size > offset + (out->len - from))
        cut_part(out, from);
    return AH_OK;
}

ah_status ah_fs_read(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                     ah_fs_info *info, ah_err *err)
{
    ah_fs_path p;
    ah_fs_info own = {0};
    ah_status st = ah_fs_path_check(fs, path, &p, err);
    ah_slice at = ah_fs_path_slice(&p);

    info = info ? info : &own;
    if (st == AH_OK)
        st = fs->store->stat(fs, at, info, err);
    if (st == AH_OK && info->kind == AH_FS_ABSENT)
        st = ah_fs_note(fs, at, info, err);
    if (st == AH_OK)
        st = ah_fs_need_file(at, info, err);
    if (st == AH_OK)
        st = read_part(fs, at, offset, limit, out, info, err);
    if (st == AH_OK)
        st = ah_fs_note(fs, at, info, err);
    return ah_fs_advise(fs, path, st, err);
}

ah_status ah_fs_content(ah_fs *fs, ah_slice path, ah_text **out, ah_fs_info *info, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, fs->mem, fs->o.max_file);
    st = fs->store->stat(fs, path, info, err);
    if (st == AH_OK)
        st = ah_fs_need_file(path, info, err);
    if (st == AH_OK)
        st = read_part(fs, path, 0, AH_FS_WHOLE, &b, info, err);
    if (st == AH_OK)
        st = ah_text_from_buf(&b, "the file", out, err);
    ah_buf_clear(&b);
    return st;
}

/* -- planning changes -------------------------------------------------------------------------- */

ah_status ah_fs_change_now(ah_fs *fs, ah_fs_changes *list, ah_err *err)
{
    void *ticket = NULL;
    ah_status st = fs->store->prepare(fs, list, &ticket, err);

    if (st == AH_OK && list->n && list->item[0].act != AH_FS_SEEN)
        fs->commits++;
    if (st == AH_OK)
        st = fs->store->commit(fs, ticket, err);
    ah_fs_changes_clear(list);
    return st;
}

/* Plans a missing folder and its missing parents, the outermost first; the recursion is as deep
 * as paths are. */
static ah_status plan_folder(ah_fs *fs, ah_fs_changes *list, ah_slice folder, ah_err *err)
{
    ah_fs_info info;
    ah_status st;

    if (folder.n == 0 || ah_fs_changes_have(list, folder))
        return AH_OK;
    st = fs->store->stat(fs, folder, &info, err);
    if (st != AH_OK || info.kind == AH_FS_FOLDER)
        return st;
    if (info.kind != AH_FS_ABSENT)
        return ah_fs_err(err, AH_FS_NOT_A_FOLDER, "'%.*s' is a %s, not a folder", AH_FMT(folder),
                         ah_fs_kind_name(info.kind));
    st = plan_folder(fs, list, ah_fs_parent(folder), err);
    if (st == AH_OK && !ah_fs_changes_add(list, folder, AH_FS_MAKE_FOLDER))
        st = ah_err_nomem(err);
    return st;
}

ah_fs_change *ah_fs_plan(ah_fs *fs, ah_fs_changes *list, ah_slice path, ah_fs_act act,
                         const ah_fs_info *was, ah_err *err)
{
    ah_fs_change *c;

    if (act != AH_FS_REMOVE && plan_folder(fs, list, ah_fs_parent(path), err) != AH_OK)
        return NULL;
    if (!(c = ah_fs_changes_add(list, path, act))) {
        ah_err_nomem(err);
        return NULL;
    }
    c->was = *was;
    c->mode = was->mode;
    return c;
}

/* Carries out the list if st is AH_OK. */
static ah_status finish(ah_fs *fs, ah_fs_changes *list, ah_status st, ah_err *err)
{
    if (st == AH_OK)
        return ah_fs_change_now(fs, list, err);
    ah_fs_changes_clear(list);
    return st;
}

/* -- writing ---------------------------------------------------------------------------------- */

/* Takes `content`. */
static ah_status put(ah_fs *fs, ah_slice path, ah_text *content, const ah_fs_info *was,
                     const ah_fs_op *op, ah_err *err)
{
    ah_fs_changes list = {.mem = fs->mem};
    ah_fs_change *c = ah_fs_plan(fs, &list, path, AH_FS_PUT, was, err);
    ah_status st = AH_OK;

    if (!c) {
        ah_text_unref(content);
        ah_fs_changes_clear(&list);
        return err->status;
    }
    c->content = content;
    if (op && !ah_fs_change_redo(fs->mem, c, op, 1))
        st = ah_err_nomem(err);
    return finish(fs, &list, st, err);
}

ah_status ah_fs_write(ah_fs *fs, ah_slice path, ah_slice bytes, ah_err *err)
{
    ah_fs_path p;
    ah_fs_info was;
    ah_text *content;
    ah_status st = ah_fs_path_writable(fs, path, &p, err);
    ah_slice at = ah_fs_path_slice(&p);

    if (st == AH_OK && bytes.n > fs->o.max_file)
        st = too_large(fs, at, bytes.n, "", err);
    if (st == AH_OK)
        st = fs->store->stat(fs, at, &was, err);
    if (st == AH_OK)
        st = ah_fs_need_place(at, &was, err);
    if (st != AH_OK)
        return st;
    if (!(content = ah_text_new(fs->mem, bytes)))
        return ah_err_nomem(err);
    return put(fs, at, content, &was, NULL, err);
}

/* Applies the operation to the present content; appending to a missing file starts with an empty
 * one. */
static ah_status change_content(ah_fs *fs, ah_slice path, const ah_fs_op *op, size_t *count,
                                ah_err *err)
{
    ah_text *before = NULL, *after = NULL;
    ah_fs_info was;
    ah_status st = fs->store->stat(fs, path, &was, err);

    if (st == AH_OK)
        st = ah_fs_need_place(path, &was, err);
    if (st == AH_OK && (was.kind != AH_FS_ABSENT || op->old))
        st = ah_fs_content(fs, path, &before, &was, err);
    if (st == AH_OK)
        st = ah_fs_op_apply(fs, path, ah_text_slice(before), op, &after, count, err);
    ah_text_unref(before);
    return st == AH_OK ? put(fs, path, after, &was, op, err) : st;
}

ah_status ah_fs_append(ah_fs *fs, ah_slice path, ah_slice bytes, ah_err *err)
{
    ah_fs_path p;
    ah_fs_op op = {0};
    size_t count;
    ah_status st = ah_fs_path_writable(fs, path, &p, err);

    if (st != AH_OK)
        return st;
    if (!(op.with = ah_text_new(fs->mem, bytes)))
        return ah_err_nomem(err);
    st = change_content(fs, ah_fs_path_slice(&p), &op, &count, err);
    ah_text_unref(op.with);
    return st;
}

static ah_status check_edit(const ah_fs_edit *edit, ah_err *err)
{
    if (edit->old.n == 0)
        return ah_fs_err(err, AH_FS_NO_MATCH,
                         "the text to replace is empty; to make a file, write it");
    if (ah_slice_eq(edit->old, edit->with))
        return ah_fs_err(
            err, AH_FS_NO_MATCH,
            "the text to replace and its replacement are the same: nothing would change");
    return AH_OK;
}

ah_status ah_fs_replace(ah_fs *fs, ah_slice path, const ah_fs_edit *edit, size_t *count,
                        ah_err *err)
{
    ah_fs_path p;
    ah_fs_op op = {.all = edit->all};
    ah_status st = ah_fs_path_writable(fs, path, &p, err);

    if (st == AH_OK)
        st = check_edit(edit, err);
    if (st != AH_OK)
        return st;
    op.old = ah_text_new(fs->mem, edit->old);
    op.with = ah_text_new(fs->mem, edit->with);
    st = op.old && op.with ? change_content(fs, ah_fs_path_slice(&p), &op, count, err)
                           : ah_err_nomem(err);
    ah_text_unref(op.old);
    ah_text_unref(op.with);
    return ah_fs_advise(fs, path, st, err);
}

ah_status ah_fs_mkdir(ah_fs *fs, ah_slice path, ah_err *err)
{
    ah_fs_changes list = {.mem = fs->mem};
    ah_fs_path p;
    ah_fs_info was;
    ah_status st = ah_fs_path_writable(fs, path, &p, err);
    ah_slice at = ah_fs_path_slice(&p);

    if (st == AH_OK)
        st = fs->store->stat(fs, at, &was, err);
    if (st != AH_OK || was.kind == AH_FS_FOLDER)
        return st;
    if (was.kind != AH_FS_ABSENT)
        return ah_fs_err(err, AH_FS_EXISTS, "'%.*s' already exists and is a %s", AH_FMT(at),
                         ah_fs_kind_name(was.kind));
    if (!ah_fs_plan(fs, &list, at, AH_FS_MAKE_FOLDER, &was, err))
        st = err->status;
    return finish(fs, &list, st, err);
}
