/* Finds files: listing, walking, globs, and searching contents. Everything uses a store's `list`
 * and `read`, so overlays are searched like other stores. */
#include <stdlib.h>

#include "base/json.h" /* UTF-8 */
#include "base/pattern.h"
#include "state/fs_store.h"

enum {
    LINE_SHOWN = 500,
    BINARY_LOOK = 8192,
    MAX_WHY = 1024,
    ENTRY_STEPS = 20, /* for an entry of a folder */
    LINE_BYTES = 64   /* bytes of a line searched in a step */
};

ah_status ah_fs_stopped(ah_err *err)
{
    return ah_err_set(err, AH_CANCELLED, "stopped: the time for this call is over");
}

/* -- listing ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const ah_fs_item *x = a, *y = b;

    return ah_slice_cmp(ah_text_slice(x->name), ah_text_slice(y->name));
}

static void sort_found(ah_fs_items *f)
{
    if (f->n)
        qsort(f->item, f->n, sizeof *f->item, by_name);
}

/* -- listing and walking -------------------------------------------------------------------- */

/* Lists all entries of a folder, sorted. */
static ah_status list_sorted(ah_fs *fs, ah_slice folder, ah_fs_items *out, ah_err *err)
{
    ah_status st;

    ah_fs_items_init(out, fs->mem, fs->o.max_files);
    st = fs->store->list(fs, folder, out, err);
    if (st == AH_OK)
        sort_found(out);
    return st;
}

/* Adds an entry of the folder to the list, unless it is ignored. */
static ah_status list_entry(ah_fs_ignore *ignore, ah_slice folder, const ah_fs_item *item,
                            ah_work *work, ah_fs_items *out, ah_err *err)
{
    ah_slice name = ah_text_slice(item->name);
    bool ignored = false;
    ah_fs_path p;
    ah_status st = AH_OK;

    if (ah_fs_join(folder, name, &p))
        st = ah_fs_ignore_ask(ignore, ah_fs_path_slice(&p), item->kind == AH_FS_FOLDER, work,
                              &ignored, err);
    if (st == AH_OK && work->end == AH_WORK_STOPPED)
        return ah_fs_stopped(err);
    out->truncated = out->truncated || work->end == AH_WORK_SPENT;
    if (st != AH_OK || ignored)
        return st;
    return ah_fs_items_add(out, name, item) == AH_OK ? AH_OK : ah_err_nomem(err);
}

ah_status ah_fs_list(ah_fs *fs, ah_slice folder, ah_fs_items *ignored, ah_fs_items *out,
                     ah_err *err)
{
    ah_fs_path p;
    ah_fs_items all = {.mem = fs->mem};
    ah_fs_ignore ignore = {.fs = fs, .ignored = ignored};
    ah_work work = ah_work_of(AH_FS_STEPS, fs->o.interrupt);
    ah_status st = ah_fs_path_check(fs, folder, &p, err);

    if (st == AH_OK)
        st = list_sorted(fs, ah_fs_path_slice(&p), &all, err);
    for (size_t i = 0; st == AH_OK && i < all.n && !out->truncated; i++)
        st = list_entry(&ignore, ah_fs_path_slice(&p), &all.item[i], &work, out, err);
    out->truncated = out->truncated || all.truncated;
    out->left_out = all.left_out;
    ah_fs_ignore_clear(&ignore);
    ah_fs_items_clear(&all);
    return ah_fs_advise(fs, folder, st, err);
}

/* Ends the walk, because its work has ended. */
static ah_status stop_walk(ah_fs_walk *w, ah_err *err)
{
    w->stop = w->truncated = true;
    return w->work.end == AH_WORK_STOPPED ? ah_fs_stopped(err) : AH_OK;
}

static void set_length(ah_fs_path *p, size_t n)
{
    p->n = n;
    p->s[n] = '\0';
}

/* Lists a folder. One that cannot be listed may be gone: it is left out, unless `strict`. */
static ah_status list_next(ah_fs *fs, ah_fs_walk *w, ah_fs_items *in, ah_err *err)
{
    ah_status st = list_sorted(fs, ah_fs_path_slice(&w->at), in, err);

    w->truncated = w->truncated || in->truncated;
    w->left_out += in->left_out;
    w->seen += in->left_out;
    if (st == AH_OK || st == AH_NOMEM || w->strict || w->at.n == w->root)
        return st;
    w->left_out++;
    return AH_OK;
}

static ah_status walk(ah_fs *fs, int depth, ah_fs_walk *w, ah_err *err);

static ah_status walk_entry(ah_fs *fs, int depth, ah_fs_walk *w, const ah_fs_item *item,
                            ah_err *err)
{
    bool into = true;
    ah_status st;

    if (!ah_work_do(&w->work, ENTRY_STEPS))
        return stop_walk(w, err);
    if (w->seen++ >= fs->o.max_files || ah_fs_is_late(fs, w->until)) {
        w->stop = w->truncated = true;
        return AH_OK;
    }
    if (!ah_fs_join(ah_fs_path_slice(&w->at), ah_text_slice(item->name), &w->at)) {
        w->left_out++;
        return AH_OK;
    }
    st = w->visit(w, ah_fs_path_slice(&w->at), item, &into, err);
    if (st != AH_OK || w->stop || item->kind != AH_FS_FOLDER || !into)
        return st;
    if (depth > 1)
        return walk(fs, depth - 1, w, err);
    w->truncated = true;
    return AH_OK;
}

/* Recursive, at most `depth` names deep. All levels share one path, so a level's stack is only
 * its list. */
static ah_status walk(ah_fs *fs, int depth, ah_fs_walk *w, ah_err *err)
{
    size_t here = w->at.n;
    ah_fs_items in;
    ah_status st = list_next(fs, w, &in, err);

    for (size_t i = 0; st == AH_OK && !w->stop && i < in.n; i++) {
        st = walk_entry(fs, depth, w, &in.item[i], err);
        set_length(&w->at, here);
    }
    ah_fs_items_clear(&in);
    return st;
}

static int depth_of(ah_slice path)
{
    int n = path.n > 0;

    for (size_t i = 0; i < path.n; i++)
        n += path.p[i] == '/';
    return n;
}

ah_status ah_fs_walk_run(ah_fs *fs, ah_slice folder, ah_fs_walk *w, ah_err *err)
{
    int left = fs->o.max_depth - depth_of(folder);

    w->until = ah_fs_until(fs);
    w->work = ah_work_of(AH_FS_STEPS, fs->o.interrupt);
    w->root = folder.n;
    if (left > 0 && ah_fs_join(ah_slice_of(""), folder, &w->at))
        return walk(fs, left, w, err);
    w->truncated = true;
    return AH_OK;
}

/* -- globs ------------------------------------------------------------------------------------ */

typedef struct hunt {
    ah_fs *fs;
    ah_slice from; /* folder that paths are relative to */
    ah_fs_glob_set glob;
    ah_fs_ignore ignore;
    bool name_only; /* the glob applies to names */
    bool any;       /* no glob: all names except those that begin with `.` */
    ah_fs_items *out;
    const ah_fs_grep *what;
    ah_pattern *pattern; /* NULL: searches `plain` */
    ah_slice plain;
    char folded[AH_FS_MAX_PATTERN];     /* folded `plain`, if case is ignored */
    ah_slice before[AH_FS_MAX_CONTEXT]; /* lines before the current one, not yet kept */
    size_t n_before, after;             /* number of these; number of lines to keep after a match */
    size_t counted;                     /* matches in the current file */
    int64_t until;
    ah_work work; /* of the matching, in all files */
    ah_buf line;  /* repaired, if it is not UTF-8 */
} hunt;

static ah_slice below_folder(ah_slice path, ah_slice folder)
{
    size_t skip = folder.n ? folder.n + 1 : 0;

    return (ah_slice){path.p + skip, path.n - skip};
}

/* Sets *into to whether to enter a folder, where it is wanted unless it is ignored. */
static ah_status enter_folder(hunt *h, ah_fs_walk *w, ah_slice path, bool wanted, bool *into,
                              ah_err *err)
{
    bool ignored = false;
    ah_status st = AH_OK;

    if (wanted)
        st = ah_fs_ignore_ask(&h->ignore, path, true, &w->work, &ignored, err);
    *into = wanted && !ignored;
    return st;
}

static ah_status visit_glob(ah_fs_walk *w, ah_slice path, const ah_fs_item *item, bool *into,
                            ah_err *err)
{
    hunt *h = w->ud;
    ah_slice rest = below_folder(path, h->from);
    bool ignored;
    ah_status st;

    ah_work_do(&w->work, ah_fs_glob_steps(&h->glob, rest));
    if (item->kind == AH_FS_FOLDER)
        return enter_folder(h, w, path, ah_fs_glob_leads(&h->glob, rest), into, err);
    if (item->kind != AH_FS_FILE || !ah_fs_glob_match(&h->glob, rest))
        return AH_OK;
    st = ah_fs_ignore_ask(&h->ignore, path, false, &w->work, &ignored, err);
    if (st != AH_OK || ignored)
        return st;
    if (ah_fs_items_add(h->out, path, item) != AH_OK)
        return ah_err_nomem(err);
    w->stop = h->out->truncated;
    return AH_OK;
}

ah_status ah_fs_glob(ah_fs *fs, ah_slice folder, ah_slice pattern, ah_fs_items *ignored,
                     ah_fs_items *out, ah_err *err)
{
    ah_fs_path p;
    hunt h = {.fs = fs, .out = out, .ignore = {.fs = fs, .ignored = ignored}};
    ah_fs_walk w = {.visit = visit_glob, .ud = &h};
    ah_status st = ah_fs_path_check(fs, folder, &p, err);

    if (st != AH_OK)
        return st;
    h.from = ah_fs_path_slice(&p);
    if ((st = ah_fs_glob_init(&h.glob, fs->mem, pattern, err)) == AH_OK)
        st = ah_fs_walk_run(fs, h.from, &w, err);
    out->truncated = out->truncated || w.truncated;
    out->left_out = w.left_out;
    ah_fs_ignore_clear(&h.ignore);
    ah_fs_glob_clear(&h.glob);
    return ah_fs_advise(fs, folder, st, err);
}

/* -- searching -------------------------------------------------------------------------------- */

int64_t ah_fs_until(const ah_fs *fs)
{
    return fs->o.clock_ns ? fs->o.clock_ns() + AH_FS_SECONDS * (int64_t)1000000000 : INT64_MAX;
}

bool ah_fs_is_late(const ah_fs *fs, int64_t until)
{
    return fs->o.clock_ns && fs->o.clock_ns() >= until;
}

static bool is_special(char c)
{
    return strchr("\\^$.|?*+()[]{}", c) != NULL;
}

/* A pattern without special characters is plain text, in every build. */
static bool is_plain(ah_slice pattern)
{
    for (size_t i = 0; i < pattern.n; i++)
        if (is_special(pattern.p[i]))
            return false;
    return true;
}

/* Appends an expression that matches the text only. */
static void quote(ah_slice text, ah_buf *out)
{
    for (size_t i = 0; i < text.n; i++) {
        if (is_special(text.p[i]))
            ah_buf_char(out, '\\');
        ah_buf_char(out, text.p[i]);
    }
}

/* ASCII letters only, for a build without regular expressions. */
static ah_slice fold(char *to, ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        to[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + 32 : s.p[i]);
    return (ah_slice){to, s.n};
}

/* The reason is kept; a long pattern is cut. */
static ah_status refuse_pattern(ah_slice pattern, ah_buf *why, ah_err *err)
{
    ah_status st;
    ah_buf shown;

    ah_buf_init(&shown, why->mem, LINE_SHOWN * 2);
    ah_buf_put_most(&shown, pattern, LINE_SHOWN);
    if (ah_buf_ok(&shown) && ah_buf_cut_short(why))
        st = ah_fs_err(err, AH_FS_BAD_PATTERN, "the regular expression '%.*s' is wrong: %.*s",
                       AH_FMT(ah_buf_slice(&shown)), AH_FMT(ah_buf_slice(why)));
    else
        st = ah_err_nomem(err);
    ah_buf_clear(&shown);
    return st;
}

/* Compiles a regular expression. */
static ah_status compile_pattern(hunt *h, ah_slice pattern, ah_err *err)
{
    ah_status st;
    ah_buf why;

    ah_buf_init(&why, h->fs->mem, MAX_WHY);
    st = ah_pattern_new(h->fs->mem, pattern,
                        AH_PATTERN_LENIENT | (h->what->ignore_case ? AH_PATTERN_ANY_CASE : 0),
                        &h->pattern, &why);
    if (st == AH_NOMEM)
        ah_err_nomem(err);
    else if (st != AH_OK)
        st = refuse_pattern(pattern, &why, err);
    ah_buf_clear(&why);
    return st;
}

/* Case is ignored for the same letters as in a regular expression, which therefore searches the
 * text, where there are any. */
static ah_status compile_any_case(hunt *h, ah_slice plain, ah_err *err)
{
    ah_status st;
    ah_buf quoted;

    if (!ah_pattern_supported()) {
        h->plain = fold(h->folded, plain);
        return AH_OK;
    }
    ah_buf_init(&quoted, h->fs->mem, 2 * AH_FS_MAX_PATTERN);
    quote(plain, &quoted);
    st = ah_buf_ok(&quoted) ? compile_pattern(h, ah_buf_slice(&quoted), err) : ah_err_nomem(err);
    ah_buf_clear(&quoted);
    return st;
}

static ah_status compile(hunt *h, const ah_fs_grep *what, ah_err *err)
{
    if (what->pattern.n == 0 || what->pattern.n > AH_FS_MAX_PATTERN ||
        !ah_utf8_valid(what->pattern) || memchr(what->pattern.p, '\0', what->pattern.n))
        return ah_fs_err(err, AH_FS_BAD_PATTERN,
                         "the pattern must be UTF-8 text of 1 to %d bytes without NUL",
                         AH_FS_MAX_PATTERN);
    if (!what->plain && !is_plain(what->pattern))
        return compile_pattern(h, what->pattern, err);
    if (what->ignore_case)
        return compile_any_case(h, what->pattern, err);
    h->plain = what->pattern;
    return AH_OK;
}

/* Makes the line UTF-8. */
static ah_status as_text(hunt *h, ah_slice *line, ah_err *err)
{
    if (ah_utf8_valid(*line))
        return AH_OK;
    ah_buf_reset(&h->line, 0);
    ah_utf8_repair(*line, &h->line);
    if (!ah_buf_ok(&h->line))
        return ah_err_nomem(err);
    *line = ah_buf_slice(&h->line);
    return AH_OK;
}

static ah_status find_plain(hunt *h, ah_slice line, bool *yes, ah_err *err)
{
    char *room;

    if (h->what->ignore_case) {
        ah_buf_reset(&h->line, 0);
        if (!(room = ah_buf_room(&h->line, line.n)))
            return ah_err_nomem(err);
        line = fold(room, line);
    }
    *yes = ah_slice_find(line, h->plain) != NULL;
    return AH_OK;
}

static ah_status end_work(hunt *h, ah_err *err)
{
    h->out->truncated = true;
    return h->work.end == AH_WORK_STOPPED ? ah_fs_stopped(err) : AH_OK;
}

static ah_status match_line(hunt *h, ah_slice path, size_t n, ah_slice line, bool *yes, ah_err *err)
{
    ah_status st;

    *yes = false;
    if (!h->pattern)
        return find_plain(h, line, yes, err);
    if ((st = as_text(h, &line, err)) != AH_OK)
        return st;
    switch (ah_pattern_match(h->pattern, line, &h->work)) {
    case AH_MATCH_YES:
        *yes = true;
        return AH_OK;
    case AH_MATCH_NO:
        return AH_OK;
    case AH_MATCH_NOMEM:
        return ah_err_nomem(err);
    case AH_MATCH_ENDED:
        return end_work(h, err);
    case AH_MATCH_LIMIT:
        break;
    }
    return ah_fs_err(
        err, AH_FS_BAD_PATTERN,
        "the regular expression takes too many steps on line %zu of '%.*s': make it simpler", n,
        AH_FMT(path));
}

static ah_status keep_line(hunt *h, ah_slice path, size_t n, ah_slice line, bool beside,
                           ah_err *err)
{
    ah_fs_item item = {.kind = AH_FS_FILE, .line = n, .beside = beside};
    ah_status st = as_text(h, &line, err);

    if (st != AH_OK)
        return st;
    if (line.n > LINE_SHOWN)
        line.n = ah_utf8_cut(line.p, LINE_SHOWN);
    if (!(item.text = ah_text_new(h->fs->mem, line)))
        return ah_err_nomem(err);
    st = ah_fs_items_add(h->out, path, &item);
    ah_text_unref(item.text);
    return st == AH_OK ? AH_OK : ah_err_nomem(err);
}

static ah_slice take_line(ah_slice *rest)
{
    const char *end = memchr(rest->p, '\n', rest->n);
    ah_slice line = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    size_t used = line.n + (end != NULL);

    rest->p += used;
    rest->n -= used;
    line.n -= line.n && line.p[line.n - 1] == '\r';
    return line;
}

static void remember(hunt *h, ah_slice line)
{
    if (h->what->context == 0)
        return;
    if (h->n_before == h->what->context)
        memmove(h->before, h->before + 1, --h->n_before * sizeof line);
    h->before[h->n_before++] = line;
}

/* Keeps a matching line, with the lines before it. */
static ah_status keep_match(hunt *h, ah_slice path, size_t n, ah_slice line, ah_err *err)
{
    size_t first = n - h->n_before;
    ah_status st = AH_OK;

    h->counted++;
    if (h->what->count)
        return AH_OK;
    for (size_t i = 0; st == AH_OK && i < h->n_before; i++)
        st = keep_line(h, path, first + i, h->before[i], true, err);
    h->n_before = 0;
    h->after = h->what->context;
    return st == AH_OK ? keep_line(h, path, n, line, false, err) : st;
}

static ah_status search_line(hunt *h, ah_slice path, size_t n, ah_slice line, ah_err *err)
{
    bool yes;
    ah_status st = match_line(h, path, n, line, &yes, err);

    if (st != AH_OK)
        return st;
    if (yes)
        return keep_match(h, path, n, line, err);
    if (h->after == 0) {
        remember(h, line);
        return AH_OK;
    }
    h->after--;
    return keep_line(h, path, n, line, true, err);
}

static ah_status search_text(hunt *h, ah_slice path, ah_slice text, ah_err *err)
{
    ah_fs_item counted = {.kind = AH_FS_FILE};
    ah_status st = AH_OK;

    h->n_before = h->after = h->counted = 0;
    for (size_t n = 1; text.n && st == AH_OK && !h->out->truncated; n++) {
        ah_slice line = take_line(&text);

        st = ah_work_do(&h->work, 1 + line.n / LINE_BYTES) ? search_line(h, path, n, line, err)
                                                           : end_work(h, err);
        if (ah_fs_is_late(h->fs, h->until))
            h->out->truncated = true;
    }
    if (st != AH_OK || !h->what->count || h->counted == 0)
        return st;
    counted.line = h->counted;
    return ah_fs_items_add(h->out, path, &counted) == AH_OK ? AH_OK : ah_err_nomem(err);
}

static bool is_binary(const ah_buf *b)
{
    return b->len && memchr(b->data, '\0', b->len < BINARY_LOOK ? b->len : BINARY_LOOK);
}

/* Searches a file. One that cannot be read may be gone: it is left out, as one that is too
 * large. */
static ah_status search_file(hunt *h, ah_slice path, uint64_t size, ah_err *err)
{
    ah_fs_info info;
    ah_status st;
    ah_buf b;

    if (size > h->fs->o.max_file) {
        h->out->skipped++;
        return AH_OK;
    }
    ah_buf_init(&b, h->fs->mem, h->fs->o.max_file);
    st = h->fs->store->read(h->fs, path, 0, h->fs->o.max_file, &b, &info, err);
    if (st == AH_OK && b.status == AH_NOMEM)
        st = ah_err_nomem(err);
    if (st == AH_TOOL_VALIDATION || st == AH_INTERNAL ||
        (st == AH_OK && (info.size > b.len || is_binary(&b)))) {
        h->out->skipped++;
        st = AH_OK;
    } else if (st == AH_OK) {
        st = search_text(h, path, ah_buf_slice(&b), err);
    }
    ah_buf_clear(&b);
    return st;
}

static bool is_wanted(const hunt *h, ah_slice path)
{
    if (h->any)
        return ah_fs_name(path).p[0] != '.';
    return ah_fs_glob_match(&h->glob,
                            h->name_only ? ah_fs_name(path) : below_folder(path, h->from));
}

static ah_status visit_search(ah_fs_walk *w, ah_slice path, const ah_fs_item *item, bool *into,
                              ah_err *err)
{
    hunt *h = w->ud;
    bool wanted, ignored = false;
    ah_status st = AH_OK;

    ah_work_do(&w->work, h->any ? 0 : ah_fs_glob_steps(&h->glob, path));
    if (item->kind == AH_FS_FOLDER) {
        wanted = h->any || h->name_only ? ah_fs_name(path).p[0] != '.'
                                        : ah_fs_glob_leads(&h->glob, below_folder(path, h->from));
        return enter_folder(h, w, path, wanted, into, err);
    }
    if (item->kind == AH_FS_FILE && is_wanted(h, path)) {
        st = ah_fs_ignore_ask(&h->ignore, path, false, &w->work, &ignored, err);
        if (st == AH_OK && !ignored)
            st = search_file(h, path, item->size, err);
    }
    w->stop = h->out->truncated;
    return st;
}

static ah_status search_under(hunt *h, ah_slice in, ah_err *err)
{
    ah_fs_walk w = {.visit = visit_search, .ud = h};
    ah_fs_info info;
    ah_status st = h->fs->store->stat(h->fs, in, &info, err);

    if (st != AH_OK)
        return st;
    if (info.kind != AH_FS_FOLDER) {
        st = ah_fs_need_file(in, &info, err);
        return st == AH_OK ? search_file(h, in, info.size, err) : st;
    }
    h->from = in;
    st = ah_fs_walk_run(h->fs, in, &w, err);
    h->out->truncated = h->out->truncated || w.truncated;
    h->out->left_out = w.left_out;
    return st;
}

ah_status ah_fs_search(ah_fs *fs, const ah_fs_grep *what, ah_fs_items *ignored, ah_fs_items *out,
                       ah_err *err)
{
    hunt h = {.fs = fs,
              .ignore = {.fs = fs, .ignored = ignored},
              .out = out,
              .what = what,
              .any = !what->glob.p,
              .work = ah_work_of(AH_FS_STEPS, fs->o.interrupt),
              .until = ah_fs_until(fs)};
    ah_fs_path p;
    ah_status st = ah_fs_path_check(fs, what->in, &p, err);

    if (st != AH_OK)
        return st;
    ah_buf_init(&h.line, fs->mem, 3 * fs->o.max_file); /* U+FFFD has three bytes */
    st = compile(&h, what, err);
    if (st == AH_OK && !h.any) {
        h.name_only = !memchr(what->glob.p, '/', what->glob.n);
        st = ah_fs_glob_init(&h.glob, fs->mem, what->glob, err);
    }
    if (st == AH_OK)
        st = search_under(&h, ah_fs_path_slice(&p), err);
    ah_pattern_free(h.pattern);
    ah_fs_ignore_clear(&h.ignore);
    ah_fs_glob_clear(&h.glob);
    ah_buf_clear(&h.line);
    return ah_fs_advise(fs, what->in, st, err);
}
