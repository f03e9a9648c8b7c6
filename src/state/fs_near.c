/* Suggests what was meant by a missing path: the nearest names on its way, or a file of the same
 * name elsewhere. It only adds text to an error. It reads names, never files, and no names that
 * begin with `.` unless the path does. */
#include "base/near.h"
#include "state/fs_store.h"

/* Appends to `at` the nearest name in that folder; *yes: there is one. */
static ah_status step_near(ah_fs *fs, ah_fs_path *at, ah_slice name, bool last, bool *yes,
                           ah_err *err)
{
    ah_fs_items in;
    ah_near near = {.to = name};
    ah_fs_path next;
    ah_status st;

    ah_fs_items_init(&in, fs->mem, fs->o.max_files);
    st = fs->store->list(fs, ah_fs_path_slice(at), &in, err);
    for (size_t i = 0; st == AH_OK && i < in.n; i++)
        if (last || in.item[i].kind == AH_FS_FOLDER)
            ah_near_offer(&near, ah_text_slice(in.item[i].name));
    *yes = near.best.p && ah_fs_join(ah_fs_path_slice(at), near.best, &next);
    if (*yes)
        *at = next;
    ah_fs_items_clear(&in);
    return st;
}

/* Sets *at to `path` with each missing name replaced by the nearest one; *yes: all were found. */
static ah_status near_path(ah_fs *fs, ah_slice path, ah_fs_path *at, bool *yes, ah_err *err)
{
    ah_status st = AH_OK;

    at->n = 0;
    *yes = true;
    for (size_t i = 0, end; st == AH_OK && *yes && i < path.n; i = end + 1) {
        const char *slash = memchr(path.p + i, '/', path.n - i);
        ah_fs_path next;
        ah_fs_info info;
        ah_slice name;

        end = slash ? (size_t)(slash - path.p) : path.n;
        name = (ah_slice){path.p + i, end - i};
        if (!(*yes = ah_fs_join(ah_fs_path_slice(at), name, &next)))
            break;
        st = fs->store->stat(fs, ah_fs_path_slice(&next), &info, err);
        if (st == AH_OK && info.kind == AH_FS_ABSENT)
            st = step_near(fs, at, name, end == path.n, yes, err);
        else
            *at = next;
    }
    return st;
}

typedef struct namesake {
    ah_slice name;
    ah_fs_path at;
} namesake;

static ah_status visit_name(ah_fs_walk *w, ah_slice path, const ah_fs_item *item, bool *into,
                            ah_err *err)
{
    namesake *s = w->ud;
    ah_slice name = ah_fs_name(path);

    (void)err;
    *into = *name.p != '.';
    if (item->kind == AH_FS_FILE && ah_slice_eq(name, s->name)) {
        w->stop = true;
        s->at.n = path.n;
        memcpy(s->at.s, path.p, path.n);
    }
    return AH_OK;
}

static ah_status same_name(ah_fs *fs, ah_slice path, ah_fs_path *at, bool *yes, ah_err *err)
{
    namesake s = {.name = ah_fs_name(path)};
    ah_fs_walk w = {.visit = visit_name, .ud = &s};
    ah_status st = ah_fs_walk_run(fs, ah_slice_of(""), &w, err);

    *at = s.at;
    *yes = s.at.n > 0;
    return st;
}

/* For a name alone a file elsewhere is more likely; for a path, a mistyped name. */
static ah_status what_is_meant(ah_fs *fs, ah_slice path, ah_fs_path *at, bool *yes, ah_err *err)
{
    bool whole = memchr(path.p, '/', path.n) != NULL;
    ah_status st = (whole ? near_path : same_name)(fs, path, at, yes, err);

    if (st == AH_OK && !*yes)
        st = (whole ? same_name : near_path)(fs, path, at, yes, err);
    return st;
}

ah_status ah_fs_advise(ah_fs *fs, ah_slice given, ah_status st, ah_err *err)
{
    ah_fs_path path, at;
    bool yes;
    ah_err why;

    if (st != AH_TOOL_VALIDATION || !strstr(err->details, "\"not_found\"") ||
        ah_fs_path_check(fs, given, &path, &why) != AH_OK)
        return st;
    why.status = what_is_meant(fs, ah_fs_path_slice(&path), &at, &yes, &why);
    if (why.status == AH_NOMEM)
        return ah_err_nomem(err);
    if (why.status != AH_OK || !yes)
        return st;
    why = *err;
    return ah_fs_err(err, AH_FS_NOT_FOUND, "%.600s (did you mean '%.*s'?)", why.message,
                     AH_FMT(ah_fs_path_slice(&at)));
}
