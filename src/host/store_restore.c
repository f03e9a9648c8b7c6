/* See store_restore.h. state/fs.h (ah_fs_restore) decides what is done with each file. */
#include "host/store_restore.h"

#include "io/clock.h"
#include "io/disk.h"

enum { MAX_NAMED = 3 /* files in an error */ };

/* -- the plan ---------------------------------------------------------------------------------- */

static bool is_open(const ah_restore *r, ah_slice root)
{
    return r->folders && ah_slice_eq(r->folder[r->folders - 1].root, root);
}

/* Opens the folder, unless it cannot be. */
static ah_status open_folder(ah_restore *r, const ah_text *root, ah_err *err)
{
    const ah_fs_options o = {
        .hidden = &r->host->hidden, .clock_ns = ah_clock_ns, .max_depth = AH_FS_MAX_DEPTH};
    ah_restore_folder *f = &r->folder[r->folders];
    ah_fs *fs = NULL;
    ah_status st = AH_OK;

    *f = (ah_restore_folder){.root = ah_text_slice(root), .first = r->n, .end = r->n};
    r->folders++;
    if (!memchr(root->data, '\0', root->len))
        st = ah_fs_host_new(r->host->mem, root->data, &o, &fs, err);
    if (st == AH_OK && fs)
        st = ah_fs_overlay_new(fs, &f->overlay, err);
    ah_fs_unref(fs);
    return st == AH_NOMEM ? st : AH_OK;
}

static ah_status add_file(ah_restore *r, const ah_turn_change *c, bool forward, ah_err *err)
{
    ah_status st = AH_OK;

    if (!is_open(r, ah_text_slice(c->place)))
        st = open_folder(r, c->place, err);
    if (st != AH_OK)
        return st;
    r->item[r->n++] = (ah_fs_restored){.path = ah_text_slice(c->name),
                                       .now = ah_turn_change_side(&c->file[!forward]),
                                       .then = ah_turn_change_side(&c->file[forward]),
                                       .mode = c->file[forward].mode,
                                       .found = AH_FS_NOT_ALLOWED};
    r->folder[r->folders - 1].end = r->n;
    return AH_OK;
}

static ah_status stage(ah_restore *r, bool force, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && i < r->folders; i++) {
        ah_restore_folder *f = &r->folder[i];

        if (f->overlay)
            st = ah_fs_restore(f->overlay, r->item + f->first, f->end - f->first, force, err);
    }
    return st;
}

ah_status ah_restore_init(ah_restore *r, ah_host *h, const ah_turn_changes *c, bool forward,
                          bool force, ah_err *err)
{
    size_t n = c->files.n;
    ah_status st = AH_OK;

    *r = (ah_restore){.host = h};
    r->item = ah_alloc(h->mem, (n + 1) * sizeof *r->item);
    r->folder = ah_alloc(h->mem, (n + 1) * sizeof *r->folder);
    if (!r->item || !r->folder)
        return ah_err_nomem(err);
    for (size_t i = 0; st == AH_OK && i < n; i++)
        if (ah_turn_change_is_outside(&c->files.item[i]) &&
            !ah_turn_change_is_none(&c->files.item[i]))
            st = add_file(r, &c->files.item[i], forward, err);
    return st == AH_OK ? stage(r, force, err) : st;
}

void ah_restore_clear(ah_restore *r)
{
    if (!r->host)
        return;
    for (size_t i = 0; i < r->folders; i++)
        ah_fs_unref(r->folder[i].overlay);
    ah_free(r->host->mem, r->folder);
    ah_free(r->host->mem, r->item);
    *r = (ah_restore){0};
}

/* -- words ------------------------------------------------------------------------------------- */

static const char *const whys[] = {
    [AH_FS_CHANGED] = "another program has changed it since",
    [AH_FS_NOT_KEPT] = "its content is not in the records",
    [AH_FS_NOT_ALLOWED] = "its name or folder may not be written",
    [AH_FS_IN_USE] = "other entries are in it",
};

/* Folders that others use stay, and stop nothing. */
static bool stops(const ah_fs_restored *it)
{
    return whys[it->found] && it->found != AH_FS_IN_USE;
}

ah_status ah_restore_check(const ah_restore *r, ah_err *err)
{
    ah_status st = AH_OK;
    size_t n = 0;
    ah_buf b;

    ah_buf_init(&b, r->host->mem, sizeof err->message);
    for (size_t f = 0; f < r->folders; f++)
        for (size_t i = r->folder[f].first; i < r->folder[f].end; i++)
            if (stops(&r->item[i]) && n++ < MAX_NAMED)
                ah_buf_fmt(&b, "%s%.*s/%.*s: %s", b.len ? "; " : "", AH_FMT(r->folder[f].root),
                           AH_FMT(r->item[i].path), whys[r->item[i].found]);
    if (n)
        st =
            ah_err_set(err, AH_CONFLICT,
                       "%zu file%s cannot be put back, and nothing was changed: %.*s; with `force` "
                       "the changes of others are overwritten, and what is not known stays",
                       n, n == 1 ? "" : "s", AH_FMT(ah_buf_slice(&b)));
    ah_buf_clear(&b);
    return st;
}

void ah_restore_show(const ah_restore *r, ah_change_list *l)
{
    for (size_t i = 0; i < r->folders; i++)
        if (r->folder[i].overlay)
            ah_fs_show(r->folder[i].overlay, false, l);
}

void ah_restore_print_left(const ah_restore *r, size_t *n, ah_buf *out)
{
    for (size_t f = 0; f < r->folders; f++)
        for (size_t i = r->folder[f].first; i < r->folder[f].end; i++) {
            const ah_fs_restored *it = &r->item[i];

            if (!whys[it->found])
                continue;
            ah_buf_fmt(out, "%s{\"kind\":\"file\",\"root\":", (*n)++ ? "," : "");
            ah_json_put_string(out, r->folder[f].root);
            ah_buf_str(out, ",\"path\":");
            ah_json_put_string(out, it->path);
            ah_buf_fmt(out, ",\"why\":\"%s\"}", whys[it->found]);
        }
}

/* -- putting back ------------------------------------------------------------------------------ */

/* Adds to the error of a folder what it means for the rewind. Refusals are AH_CONFLICT. */
static ah_status refused(const ah_restore_folder *f, const char *what, ah_err *err)
{
    ah_err of = *err;

    if (of.status == AH_NOMEM)
        return AH_NOMEM;
    return ah_err_set(err, of.status == AH_TOOL_VALIDATION ? AH_CONFLICT : of.status,
                      "the files in %.*s %s: %s", AH_FMT(f->root), what, of.message);
}

static const char unchanged[] = "cannot be put back, and nothing was changed";
static const char waiting[] =
    "are not put back yet, and wait until the conversation is opened next";

/* Appends a separator after earlier items. */
static void separate(ah_buf *b)
{
    if (b->len > 0 && b->data[b->len - 1] == '}')
        ah_buf_char(b, ',');
}

ah_status ah_restore_prepare(ah_restore *r, ah_buf *said, ah_buf *kept, ah_err *err)
{
    size_t none;

    ah_buf_str(said, "{\"files\":[");
    ah_buf_char(kept, '[');
    none = said->len;
    for (size_t i = 0; i < r->folders; i++) {
        ah_fs *overlay = r->folder[i].overlay;
        size_t at, kept_at;

        if (!overlay)
            continue;
        if (ah_fs_prepare(overlay, err) != AH_OK)
            return refused(&r->folder[i], unchanged, err);
        separate(said);
        separate(kept);
        at = said->len;
        kept_at = kept->len;
        ah_fs_print_due(overlay, true, said, kept);
        if (said->len == at && at > none) { /* nothing of this folder: no separator */
            said->len--;
            kept->len = kept_at - 1;
        }
    }
    if (said->len == none) {
        ah_buf_reset(said, 0);
        ah_buf_reset(kept, 0);
        return AH_OK;
    }
    ah_buf_str(said, "]}");
    ah_buf_char(kept, ']');
    if (!ah_buf_ok(said))
        return ah_buf_error(said, "the list of files", err);
    return ah_buf_ok(kept) ? AH_OK : ah_buf_error(kept, "the contents of files", err);
}

ah_status ah_restore_commit(ah_restore *r, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && i < r->folders; i++)
        if (r->folder[i].overlay && ah_fs_commit(r->folder[i].overlay, err) != AH_OK)
            st = refused(&r->folder[i], waiting, err);
    return st;
}

/* -- after a crash ------------------------------------------------------------------------------
 */

static ah_status put_in_place(ah_restore *r, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && i < r->folders; i++)
        if (r->folder[i].overlay && ah_fs_prepare(r->folder[i].overlay, err) != AH_OK)
            st = refused(&r->folder[i], waiting, err);
    return st == AH_OK ? ah_restore_commit(r, err) : st;
}

ah_status ah_restore_finish(ah_host *h, const ah_record_sink *to, const ah_fold *f, ah_err *err)
{
    ah_turn_changes c;
    ah_restore r = {0};
    ah_status st = ah_turn_changes_init_after(&c, h->mem, 0, err);

    if (st == AH_OK)
        st = ah_turn_changes_restoring(&c, ah_text_slice(f->restoring),
                                       ah_text_slice(f->restoring_kept), err);
    if (st == AH_OK)
        st = ah_turn_changes_end(&c, err);
    if (st == AH_OK)
        st = ah_restore_init(&r, h, &c, true, false, err);
    if (st == AH_OK)
        st = put_in_place(&r, err);
    if (st == AH_OK)
        to->put(to->ud, AH_RECORD_RESTORED, ah_slice_of("{}"), (ah_slice){NULL, 0});
    ah_restore_clear(&r);
    ah_turn_changes_clear(&c);
    return st;
}
