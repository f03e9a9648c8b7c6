/* File systems take part in a call's transaction (seed 002, Runtime Dispatch). A participant holds
 * the call's own file system, made on first use, and commits it in the order of the request. For a
 * file system this is an overlay. For an overlay of a script it is a view, and the file system
 * below takes part first. File systems of nested calls are on top of those of the calls around
 * them. state/fs.h describes conflicts with changes by others. */
#include "state/fs_staged.h"

#include "state/fs_tree.h"

typedef struct staged {
    ah_participant part; /* key: the file system */
    const ah_mem *mem;
    ah_fs *fs; /* the call's own */
} staged;

static void free_staged(staged *s)
{
    ah_fs_end(s->fs);
    ah_fs_unref(s->fs);
    ah_free(s->mem, s);
}

/* -- its end ------------------------------------------------------------------------------ */

static ah_status prepare(ah_participant *p, ah_overlay *below, ah_err *err)
{
    (void)below; /* its file system exists already, below this one */
    return ah_fs_prepare(((staged *)(void *)p)->fs, err);
}

static bool is_of_host(const staged *s)
{
    return ah_fs_below(s->fs)->machine;
}

/* Files of the machine are looked at again when they are put into place. */
static ah_status prepare_again(ah_participant *p, ah_overlay *below, ah_err *err)
{
    const staged *s = (const staged *)(const void *)p;

    (void)below;
    return is_of_host(s) ? AH_OK : ah_fs_prepare_again(s->fs, err);
}

/* False if the call has only read. */
static bool has_changes(const staged *s)
{
    const ah_fs_tree *t = (const ah_fs_tree *)s->fs;

    return t->edits > 0 || t->took;
}

static bool is_outside(const ah_participant *p)
{
    const staged *s = (const staged *)(const void *)p;

    return is_of_host(s) && has_changes(s);
}

/* Puts files of a folder of the machine into place before other changes are made, since a failure
 * here fails the call. */
static ah_status finish(ah_participant *p, ah_overlay *below, ah_err *err)
{
    staged *s = (staged *)(void *)p;

    (void)below;
    return is_of_host(s) ? ah_fs_commit(s->fs, err) : AH_OK;
}

/* Nothing runs between prepare, or again, and commit, so that committing to memory and overlays
 * cannot fail. */
static void commit(ah_participant *p, ah_overlay *below)
{
    staged *s = (staged *)(void *)p;
    ah_err ignored;

    (void)below;
    if (!is_of_host(s))
        (void)ah_fs_commit(s->fs, &ignored);
    free_staged(s);
}

static void drop(ah_participant *p)
{
    free_staged((staged *)(void *)p);
}

/* -- for records ---------------------------------------------------------------------------- */

/* Returns the name of a file system; .p NULL: it has none. A closed one is in no list, but has its
 * own name. */
static ah_slice name_of(const ah_staged_names *names, const ah_fs *fs)
{
    for (size_t i = 0; i < names->n; i++)
        if (names->item[i].object == fs && strcmp(names->item[i].list, AH_STAGED_FILES) == 0)
            return names->item[i].name;
    return ah_text_slice(fs->name);
}

static bool print(ah_participant *p, const ah_staged_names *names, ah_buf *out)
{
    ah_slice name = name_of(names, p->key);
    bool ok;

    if (!has_changes((const staged *)(const void *)p))
        return true;
    if (!name.p)
        return false;
    ah_buf_str(out, "{\"name\":");
    ah_json_put_string(out, name);
    ah_buf_str(out, ",\"changes\":");
    ok = ah_fs_print(((staged *)(void *)p)->fs, out);
    ah_buf_char(out, '}');
    return ok;
}

static void settle(ah_participant *p, ah_buf *out, ah_buf *kept)
{
    ah_fs_print_due(((staged *)(void *)p)->fs, false, out, kept);
}

static void show(ah_participant *p, ah_change_list *l)
{
    ah_fs_show(((staged *)(void *)p)->fs, false, l);
}

static void pin(ah_participant *p)
{
    ah_fs_pin(((staged *)(void *)p)->fs);
}

static const ah_participant_vt staged_vt = {.prepare = prepare,
                                            .again = prepare_again,
                                            .outside = is_outside,
                                            .finish = finish,
                                            .commit = commit,
                                            .drop = drop,
                                            .list = AH_STAGED_FILES,
                                            .print = print,
                                            .settle = settle,
                                            .show = show,
                                            .pin = pin};

/* -- its beginning -------------------------------------------------------------------------- */

/* Takes `over`; returns NULL with *err filled on failure. */
static staged *join(const ah_mem *mem, ah_overlay *o, ah_fs *fs, ah_fs *over, ah_err *err)
{
    staged *s = ah_alloc(mem, sizeof *s);

    if (!s) {
        ah_fs_unref(over);
        ah_err_nomem(err);
        return NULL;
    }
    *s = (staged){.part = {.vt = &staged_vt, .key = fs}, .mem = mem, .fs = over};
    if (ah_overlay_join(o, &s->part, err) == AH_OK)
        return s;
    free_staged(s);
    return NULL;
}

/* The recursion is as deep as the nesting of runs and of overlays. o NULL: the file system
 * itself. */
ah_fs *ah_fs_staged_in(const ah_mem *mem, ah_overlay *o, ah_fs *fs, ah_err *err)
{
    staged *s = (staged *)(void *)ah_overlay_find(o, fs);
    ah_fs *around, *base = NULL, *over;
    ah_status st;

    if (!o || s)
        return s ? s->fs : fs;
    if (!(around = ah_fs_staged_in(mem, ah_overlay_below(o), fs, err)) ||
        (ah_fs_below(fs) && !(base = ah_fs_staged_in(mem, o, ah_fs_below(fs), err))))
        return NULL;
    st = base ? ah_fs_view_new(around, base, &over, err) : ah_fs_overlay_new(around, &over, err);
    s = st == AH_OK ? join(mem, o, fs, over, err) : NULL;
    return s ? s->fs : NULL;
}

bool ah_fs_staged_changes(const ah_overlay *o, const ah_fs *fs)
{
    const staged *s = (const staged *)(const void *)ah_overlay_find(o, fs);

    return s && has_changes(s);
}

/* -- after a restart -------------------------------------------------------------------------- */

static size_t count_items(ah_slice list)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    size_t n = 0;

    if (t.kind != AH_JSON_ARRAY)
        return 0;
    for (t = ah_json_next(&it); t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&it), n++)
        ah_json_skip(&it, t);
    return n;
}

/* Returns the i-th folder of the machine; NULL: it is none, or one before it has the same root. */
static ah_fs *folder_at(const ah_staged_names *names, size_t i)
{
    ah_fs *fs = names->item[i].object, *other;

    if (strcmp(names->item[i].list, AH_STAGED_FILES) != 0 || !fs->machine)
        return NULL;
    for (size_t k = 0; k < i; k++) {
        other = names->item[k].object;
        if (strcmp(names->item[k].list, AH_STAGED_FILES) == 0 && other->machine &&
            ah_slice_eq(ah_text_slice(other->folder[1]), ah_text_slice(fs->folder[1])))
            return NULL;
    }
    return fs;
}

static void join_fates(const ah_fs_outcome *one, ah_fs_outcome *out)
{
    out->by_folder = out->by_folder && one->fate != AH_FS_MIXED;
    if (one->fate == AH_FS_MIXED || (out->n && one->fate != out->fate))
        out->fate = AH_FS_MIXED;
    else
        out->fate = one->fate;
    if (!out->path.n)
        out->path = one->path;
    out->n += one->n;
}

ah_status ah_fs_settled_all(const ah_staged_names *names, ah_slice files, ah_fs_outcome *out,
                            ah_err *err)
{
    ah_status st = AH_OK;

    *out = (ah_fs_outcome){.fate = AH_FS_APPLIED, .by_folder = true};
    for (size_t i = 0; st == AH_OK && i < names->n; i++) {
        ah_fs *fs = folder_at(names, i);
        ah_fs_outcome one = {0};

        if (fs && (st = ah_fs_settled(fs, files, &one, err)) == AH_OK && one.n)
            join_fates(&one, out);
    }
    if (out->n != count_items(files)) {
        out->fate = AH_FS_MIXED;
        out->by_folder = false;
    }
    return st;
}
