/* Changes of an overlay as data: each path that it or, of a view, the overlay below it has touched,
 * compared with what is below. */
#include <stdlib.h>

#include "base/json.h"
#include "base/sha256.h"
#include "state/fs_view.h"

enum { MAX_CONTENT = 8 << 20 /* bytes of a file that is compared by lines */ };

/* An entry with its content, as far as that is not too long. */
typedef struct look {
    ah_fs_info info;
    char hash[AH_SHA256_HEX];
    ah_buf content;
} look;

static bool look_at(ah_fs *fs, ah_slice path, look *at, ah_change_list *l)
{
    ah_err ignored;
    ah_status st;

    ah_buf_init(&at->content, l->mem, MAX_CONTENT);
    st = ah_fs_look(fs, path, &at->info, at->hash, &at->content, &ignored);
    if (st == AH_NOMEM || at->content.status == AH_NOMEM)
        l->out->status = AH_NOMEM;
    return st == AH_OK;
}

static ah_file_side side_of(look *at)
{
    ah_file_side s = {0};

    if (at->info.kind != AH_FS_ABSENT)
        s.type = ah_fs_kind_name(at->info.kind);
    if (at->info.kind != AH_FS_FILE)
        return s;
    s.hash = (ah_slice){at->hash, sizeof at->hash};
    s.sized = true;
    s.size = at->info.size;
    if (ah_buf_ok(&at->content))
        s.content = ah_buf_slice(&at->content);
    return s;
}

/* A root that is no text is left out. */
static void name_place(const ah_fs *root, ah_changed_file *f)
{
    ah_slice folder = ah_text_slice(root->folder[1] ? root->folder[1] : root->folder[0]);

    if (!root->machine)
        f->filesystem = ah_text_slice(root->name);
    else if (folder.p && ah_utf8_valid(folder))
        f->root = folder;
}

static void show(ah_fs *fs, ah_fs *base, ah_slice path, ah_change_list *l)
{
    const ah_fs *root = base;
    ah_changed_file f = {.path = path};
    look before = {0}, after = {0};
    bool ok;

    while (root->below)
        root = root->below;
    name_place(root, &f);
    ok = look_at(base, path, &before, l);
    ok = look_at(fs, path, &after, l) && ok;
    f.before = side_of(&before);
    f.after = side_of(&after);
    if (ok)
        ah_change_list_file(l, &f);
    ah_buf_clear(&before.content);
    ah_buf_clear(&after.content);
}

/* -- paths ------------------------------------------------------------------------------------- */

typedef struct paths {
    const ah_mem *mem;
    const ah_text **item; /* borrowed */
    size_t n, cap;
} paths;

static bool add_paths(paths *p, const ah_fs_tree *t)
{
    const ah_text **item = ah_grow(p->mem, p->item, &p->cap, p->n + t->n, sizeof *item);

    if (t->n && !item)
        return false;
    p->item = item ? item : p->item;
    for (size_t i = 0; i < t->n; i++)
        if (t->node[i]->act != AH_FS_SEEN)
            p->item[p->n++] = t->node[i]->path;
    return true;
}

static int compare(const void *a, const void *b)
{
    const ah_text *const *x = a, *const *y = b;

    return ah_slice_cmp(ah_text_slice(*x), ah_text_slice(*y));
}

static bool is_again(const paths *p, size_t i)
{
    return i && ah_slice_eq(ah_text_slice(p->item[i - 1]), ah_text_slice(p->item[i]));
}

void ah_fs_show(ah_fs *overlay, bool whole, ah_change_list *l)
{
    const ah_fs_tree *t = (const ah_fs_tree *)overlay;
    ah_fs *base = whole ? ah_fs_view_base(t) : overlay->below;
    paths p = {.mem = l->mem};
    bool ok = add_paths(&p, t);

    while (ok && whole && t->into && !ah_fs_view_emptied(t)) {
        t = (const ah_fs_tree *)t->into;
        ok = add_paths(&p, t);
    }
    if (!ok)
        l->out->status = AH_NOMEM;
    if (p.n)
        qsort(p.item, p.n, sizeof *p.item, compare);
    for (size_t i = 0; ok && i < p.n; i++)
        if (!is_again(&p, i))
            show(overlay, base, ah_text_slice(p.item[i]), l);
    ah_free(l->mem, p.item);
}
