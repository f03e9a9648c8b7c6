/* Repositories with another name than .git. git treats a folder as a repository if it has HEAD with
 * objects and refs, or with commondir, and runs what its config and hooks say. Such a folder is
 * refused like .git: no step may write a file that git reads in it, or complete such a folder, in
 * any order and by any number of changes in one commit. */
#include "io/disk_store.h"

/* Names, in lower case, that make a folder a repository or lead to code in one. */
static const char *const names[] = {"head",      "objects",         "refs",  "commondir",
                                    "config",    "config.worktree", "hooks", "info",
                                    "worktrees", "modules"};

static bool is_name(ah_slice name, const char *small)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] + 32) : name.p[i];

        if (c != small[i])
            return false;
    }
    return small[name.n] == '\0';
}

static bool is_any(ah_slice name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_name(name, names[i]))
            return true;
    return false;
}

/* Sets *yes if the folder has the entry once the steps are done. */
static ah_status will_have(ah_fs_host *h, const ah_fs_ticket *t, ah_slice folder, const char *name,
                           bool *yes, ah_err *err)
{
    ah_fs_path p;
    ah_fs_info info;
    ah_status st;

    *yes = false;
    if (!ah_fs_join(folder, ah_slice_of(name), &p))
        return AH_OK;
    for (size_t i = 0; i < t->n; i++)
        if (ah_slice_eq(ah_text_slice(t->item[i].path), ah_fs_path_slice(&p))) {
            *yes = t->item[i].act != AH_FS_REMOVE;
            return AH_OK;
        }
    st = h->fs.store->stat(&h->fs, ah_fs_path_slice(&p), &info, err);
    *yes = st == AH_OK && info.kind != AH_FS_ABSENT;
    return st == AH_TOOL_VALIDATION ? AH_OK : st; /* below a file: the folder does not exist yet */
}

static ah_status will_be_one(ah_fs_host *h, const ah_fs_ticket *t, ah_slice folder, bool *yes,
                             ah_err *err)
{
    bool common = false;
    ah_status st = will_have(h, t, folder, "HEAD", yes, err);

    if (st != AH_OK || !*yes)
        return st;
    if ((st = will_have(h, t, folder, "commondir", &common, err)) != AH_OK || common)
        return st;
    if ((st = will_have(h, t, folder, "objects", yes, err)) == AH_OK && *yes)
        st = will_have(h, t, folder, "refs", yes, err);
    return st;
}

typedef struct asked {
    ah_slice folder; /* p NULL: none yet */
    bool yes;
} asked;

static ah_status check_step(ah_fs_host *h, const ah_fs_ticket *t, const ah_fs_step *s, asked *last,
                            ah_err *err)
{
    ah_slice path = ah_text_slice(s->path);
    ah_status st = AH_OK;

    for (size_t at = 0, end; st == AH_OK && at < path.n; at = end + 1) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        ah_slice folder = {path.p, at ? at - 1 : 0};

        end = slash ? (size_t)(slash - path.p) : path.n;
        if (!is_any((ah_slice){path.p + at, end - at}))
            continue;
        if (!last->folder.p || !ah_slice_eq(last->folder, folder))
            st = will_be_one(h, t, folder, &last->yes, err);
        last->folder = folder;
        if (st == AH_OK && last->yes)
            st = ah_fs_err(
                err, AH_FS_REFUSED,
                "cannot change '%.*s': '%.*s' is or would be a git repository, and what is "
                "in it is run or obeyed by git",
                AH_FMT(path), AH_FMT(folder.n ? folder : (ah_slice)AH_LIT(".")));
    }
    return st;
}

ah_status ah_fs_check_repository(ah_fs_host *h, const ah_fs_ticket *t, ah_err *err)
{
    asked last = {.folder = {NULL, 0}};
    ah_status st = AH_OK;

    if (ah_fs_may_write(&h->fs, ".git"))
        return AH_OK;
    for (size_t i = 0; st == AH_OK && i < t->n; i++)
        st = check_step(h, t, &t->item[i], &last, err);
    return st;
}
