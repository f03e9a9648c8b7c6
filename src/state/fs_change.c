/* Changes of files as values: lists of them, and operations (append, replace) that can be
 * repeated on other content. Independent of where files are kept. */
#include "state/fs_store.h"

/* -- lists ------------------------------------------------------------------------------ */

void ah_fs_change_clear(const ah_mem *mem, ah_fs_change *c)
{
    for (size_t i = 0; i < c->n_ops; i++) {
        ah_text_unref(c->op[i].old);
        ah_text_unref(c->op[i].with);
    }
    ah_free(mem, c->op);
    ah_text_unref(c->path);
    ah_text_unref(c->content);
    *c = (ah_fs_change){0};
}

ah_fs_change *ah_fs_changes_add(ah_fs_changes *list, ah_slice path, ah_fs_act act)
{
    ah_fs_change *c = ah_grow(list->mem, list->item, &list->cap, list->n + 1, sizeof *c);

    if (!c)
        return NULL;
    list->item = c;
    c += list->n;
    *c = (ah_fs_change){.path = ah_text_new(list->mem, path), .act = act};
    if (!c->path)
        return NULL;
    list->n++;
    return c;
}

/* From the end, because the requested path was mostly added last. */
bool ah_fs_changes_have(const ah_fs_changes *list, ah_slice path)
{
    for (size_t i = list->n; i-- > 0;)
        if (ah_slice_eq(ah_text_slice(list->item[i].path), path))
            return true;
    return false;
}

void ah_fs_changes_clear(ah_fs_changes *list)
{
    for (size_t i = 0; i < list->n; i++)
        ah_fs_change_clear(list->mem, &list->item[i]);
    ah_free(list->mem, list->item);
    *list = (ah_fs_changes){.mem = list->mem};
}

void ah_fs_change_copy(ah_fs_change *to, const ah_fs_change *from)
{
    *to = *from;
    to->op = NULL;
    to->n_ops = 0;
    ah_text_ref(to->path);
    ah_text_ref(to->content);
}

/* -- operations -------------------------------------------------------------------------- */

bool ah_fs_change_redo(const ah_mem *mem, ah_fs_change *c, const ah_fs_op *op, size_t n)
{
    size_t size = (c->n_ops + n) * sizeof *op;
    ah_fs_op *grown;

    if (n == 0)
        return true;
    if (c->n_ops + n > AH_FS_MAX_OPS) {
        c->pinned = true;
        return true;
    }
    if (!(grown = ah_resize(mem, c->op, size)))
        return false;
    c->op = grown;
    for (size_t i = 0; i < n; i++) {
        ah_text_ref(op[i].old);
        ah_text_ref(op[i].with);
        grown[c->n_ops++] = op[i];
    }
    return true;
}

static size_t count_matches(ah_slice in, ah_slice what)
{
    const char *at, *end = in.p + in.n;
    size_t n = 0;

    while ((at = ah_slice_find(in, what))) {
        n++;
        in.p = at + what.n;
        in.n = (size_t)(end - in.p);
    }
    return n;
}

/* Returns "3, 17, 90 ...": lines in which the first matches begin. */
static const char *say_lines(ah_slice in, ah_slice what, char *out, size_t size)
{
    const char *at, *from = in.p, *end = in.p + in.n;
    size_t line = 1, used = 0;

    out[0] = '\0';
    while ((at = ah_slice_find((ah_slice){from, (size_t)(end - from)}, what))) {
        for (const char *p = in.p; p < at; line++, p++)
            if (!(p = memchr(p, '\n', (size_t)(at - p))))
                break;
        if (used + 32 > size) {
            ah_print(out + used, size - used, " ...");
            break;
        }
        used += ah_print(out + used, size - used, "%s%zu", used ? ", " : "", line);
        in.p = at;
        from = at + what.n;
    }
    return out;
}

static ah_status check_count(ah_slice path, ah_slice content, const ah_fs_op *op, size_t count,
                             ah_err *err)
{
    char lines[120];

    if (count == 0)
        return ah_fs_err(err, AH_FS_NO_MATCH,
                         "the text to replace is not in '%.*s'; it must match exactly, with white "
                         "space and line ends: read the file and copy the text from it",
                         AH_FMT(path));
    if (count > 1 && !op->all)
        return ah_fs_err(err, AH_FS_SEVERAL_MATCHES,
                         "the text to replace is in '%.*s' %zu times, in lines %s; add the text "
                         "around the place, or ask to replace all of them",
                         AH_FMT(path), count,
                         say_lines(content, ah_text_slice(op->old), lines, sizeof lines));
    return AH_OK;
}

static ah_text *replaced(const ah_mem *mem, ah_slice in, const ah_fs_op *op, size_t size)
{
    ah_slice old = ah_text_slice(op->old), with = ah_text_slice(op->with);
    ah_text *t = ah_resize(mem, NULL, sizeof *t + size + 1);
    const char *at, *end = in.p + in.n;
    char *to;

    if (!t)
        return NULL;
    *t = (ah_text){.mem = mem, .refs = 1, .len = size};
    to = t->data;
    while ((at = ah_slice_find(in, old))) {
        memcpy(to, in.p, (size_t)(at - in.p));
        to += at - in.p;
        memcpy(to, with.p, with.n);
        to += with.n;
        in.p = at + old.n;
        in.n = (size_t)(end - in.p);
    }
    memcpy(to, in.p, in.n);
    to[in.n] = '\0';
    return t;
}

static ah_text *appended(const ah_mem *mem, ah_slice in, ah_slice more)
{
    ah_text *t = ah_resize(mem, NULL, sizeof *t + in.n + more.n + 1);

    if (!t)
        return NULL;
    *t = (ah_text){.mem = mem, .refs = 1, .len = in.n + more.n};
    if (in.n)
        memcpy(t->data, in.p, in.n);
    memcpy(t->data + in.n, more.p, more.n);
    t->data[t->len] = '\0';
    return t;
}

ah_status ah_fs_op_apply(const ah_fs *fs, ah_slice path, ah_slice content, const ah_fs_op *op,
                         ah_text **out, size_t *count, ah_err *err)
{
    size_t gained = op->with->len, lost = 0;
    ah_status st;

    *count = 1;
    if (op->old) {
        *count = count_matches(content, ah_text_slice(op->old));
        if ((st = check_count(path, content, op, *count, err)) != AH_OK)
            return st;
        lost = op->old->len * *count;
        if (gained && *count > fs->o.max_file / gained)
            gained = fs->o.max_file + 1;
        else
            gained *= *count;
    }
    if (gained > fs->o.max_file || content.n - lost > fs->o.max_file - gained)
        return ah_fs_err(err, AH_FS_TOO_LARGE, "'%.*s' would become larger than %zu bytes",
                         AH_FMT(path), fs->o.max_file);
    *out = op->old ? replaced(fs->mem, content, op, content.n - lost + gained)
                   : appended(fs->mem, content, ah_text_slice(op->with));
    return *out ? AH_OK : ah_err_nomem(err);
}
