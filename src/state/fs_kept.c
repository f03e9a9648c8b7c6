/* A change of an entry gives it another serial, so two sorted lists of paths and serials show what
 * has changed. */
#include "state/fs_kept.h"

#include "base/json.h"
#include "state/fs_tree.h"

static void free_entries(const ah_mem *mem, ah_fs_kept_entry *entry, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ah_text_unref(entry[i].path);
    ah_free(mem, entry);
}

void ah_fs_kept_clear(ah_fs_kept *k, const ah_mem *mem)
{
    free_entries(mem, k->entry, k->n);
    *k = (ah_fs_kept){0};
}

static void put(ah_buf *paths, ah_buf *changes, size_t before, const ah_fs_change *c)
{
    ah_buf_str(paths, before ? "," : "");
    ah_json_put_string(paths, ah_text_slice(c->path));
    ah_buf_str(changes, before ? "," : "");
    ah_fs_put_change(NULL, c, changes);
}

/* Appends what differs between the tree and the list. Returns the number of changes. */
static size_t compare(const ah_fs_kept *k, const ah_fs_tree *t, ah_buf *paths, ah_buf *changes)
{
    size_t i = 0, at = 0, n = 0;

    while (i < k->n || at < t->n) {
        int order = i == k->n    ? 1
                    : at == t->n ? -1
                                 : ah_slice_cmp(ah_text_slice(k->entry[i].path),
                                                ah_text_slice(t->node[at]->path));
        if (order < 0)
            put(paths, changes, n++,
                &(ah_fs_change){.path = k->entry[i].path, .act = AH_FS_REMOVE});
        else if (order > 0 || k->entry[i].serial != t->node[at]->serial)
            put(paths, changes, n++, t->node[at]);
        i += order <= 0;
        at += order >= 0;
    }
    return n;
}

size_t ah_fs_kept_note(ah_fs_kept *k, ah_fs *fs, ah_buf *paths, ah_buf *changes)
{
    const ah_fs_tree *t = (const ah_fs_tree *)fs;
    ah_fs_kept_entry *entry = ah_alloc(fs->mem, (t->n + 1) * sizeof *entry);
    size_t n;

    if (!entry) {
        paths->status = AH_NOMEM;
        return 0;
    }
    ah_buf_char(paths, '[');
    ah_buf_char(changes, '[');
    n = compare(k, t, paths, changes);
    ah_buf_char(paths, ']');
    ah_buf_char(changes, ']');
    if (!ah_buf_ok(paths) || !ah_buf_ok(changes)) {
        ah_free(fs->mem, entry);
        return 0;
    }
    for (size_t i = 0; i < t->n; i++)
        entry[i] = (ah_fs_kept_entry){ah_text_ref(t->node[i]->path), t->node[i]->serial};
    free_entries(fs->mem, k->entry, k->n);
    *k = (ah_fs_kept){.entry = entry, .n = t->n, .commits = fs->commits};
    return n;
}

void ah_fs_print_all(ah_fs *fs, ah_buf *out)
{
    const ah_fs_tree *t = (const ah_fs_tree *)fs;

    ah_buf_char(out, '[');
    for (size_t i = 0; i < t->n; i++) {
        ah_buf_str(out, i ? "," : "");
        ah_fs_put_change(NULL, t->node[i], out);
    }
    ah_buf_char(out, ']');
}

void ah_fs_clear_memory(ah_fs *fs)
{
    fs->commits++;
    ah_fs_tree_clear((ah_fs_tree *)fs);
}
