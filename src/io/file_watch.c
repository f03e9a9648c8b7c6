/* Each known file has a node, found by its path below the watched folder; "" is that folder. Events
 * change nodes; a batch compares the state of each node before it with its current state.
 *
 * A file is watched through its folder, because saving may replace the file itself. */
#define _GNU_SOURCE /* IN_EXCL_UNLINK, d_type */
#include "io/file_watch.h"

#ifdef __linux__

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/index.h"

enum {
    MASK = IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO |
           IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK | IN_ONLYDIR,
    READ = 16 << 10,
    READS = 64,  /* per call of the loop */
    SPARE = 1000 /* nodes of removed files that are kept */
};

typedef struct node {
    ah_text *path;
    bool folder, exists;
    bool noted;   /* it had an event in this batch: */
    bool before;  /* it existed before */
    bool touched; /* its contents may have changed */
    bool renamed; /* it has a new name since, and is reported as moved */
    bool again;   /* it had an old name, and is reported as the `from` of a move */
    size_t from;  /* index + 1 of the node that was renamed to it; 0: none */
} node;

/* A folder that inotify watches; ordered by their watch numbers, which increase. */
typedef struct folder {
    int wd;
    ah_text *path;
} folder;

struct ah_file_watch {
    const ah_mem *mem;
    ah_loop *loop;
    int fd;
    ah_text *shown; /* the path given at open */
    char *root;     /* the folder's path without links; for a file, that of its folder */
    ah_text *only;  /* the file's name in it; NULL: a folder is watched */
    bool recursive;
    size_t max, alive;
    node *nodes;
    size_t n_nodes, nodes_cap;
    ah_index index; /* of nodes */
    folder *folders;
    size_t n_folders, folders_cap;
    size_t *noted; /* indices of nodes, in the order of their first event */
    size_t n_noted, noted_cap;
    size_t moving;   /* index + 1 of the node renamed last, whose new name may follow */
    uint32_t cookie; /* inotify's cookie of that rename */
    ah_timer timer;
    int64_t quiet_ms, first; /* first: beginning of the batch */
    bool stirred;            /* an event has come since the batch's timer was set */
    bool pending, ready, lost, gone;
    ah_file_change *batch; /* NULL: not made yet */
    size_t n_batch;
    void (*news)(void *ud, ah_file_watch *w);
    void *ud;
};

/* -- nodes ------------------------------------------------------------------------------------ */

static ah_slice name_of_node(const void *owner, size_t at)
{
    return ah_text_slice(((const ah_file_watch *)owner)->nodes[at].path);
}

/* Sets *out to the index of the path's node, adding one for a file that does not exist if there is
 * none. False: out of memory. */
static bool node_of(ah_file_watch *w, ah_slice path, size_t *out)
{
    uint32_t at = ah_index_find(&w->index, path);
    node *list;

    *out = at;
    if (at != AH_INDEX_NONE)
        return true;
    list = ah_grow(w->mem, w->nodes, &w->nodes_cap, w->n_nodes + 1, sizeof *list);
    if (!list)
        return false;
    w->nodes = list;
    if (!ah_index_reserve(&w->index, 1, w->n_nodes))
        return false;
    list[w->n_nodes] = (node){.path = ah_text_new(w->mem, path)};
    if (!list[w->n_nodes].path)
        return false;
    *out = w->n_nodes++;
    ah_index_put(&w->index, path, *out);
    return true;
}

static void set_exists(ah_file_watch *w, size_t i, bool exists)
{
    if (exists && !w->nodes[i].exists)
        w->alive++;
    else if (!exists && w->nodes[i].exists)
        w->alive--;
    w->nodes[i].exists = exists;
}

static void forget_notes(ah_file_watch *w)
{
    for (size_t i = 0; i < w->n_noted; i++) {
        node *n = &w->nodes[w->noted[i]];

        n->noted = n->before = n->touched = n->renamed = n->again = false;
        n->from = 0;
    }
    w->n_noted = 0;
}

/* There are too many changes to report them one by one. */
static void give_up(ah_file_watch *w)
{
    w->lost = w->stirred = true;
    forget_notes(w);
}

/* Notes an event of the node, whose state is compared later. False: out of memory. */
static bool note(ah_file_watch *w, size_t i)
{
    size_t *list;

    w->stirred = true;
    if (w->n_noted >= w->max)
        give_up(w);
    if (w->nodes[i].noted || w->lost)
        return true;
    if (!(list = ah_grow(w->mem, w->noted, &w->noted_cap, w->n_noted + 1, sizeof *list)))
        return false;
    w->noted = list;
    list[w->n_noted++] = i;
    w->nodes[i].noted = true;
    w->nodes[i].before = w->nodes[i].exists;
    return true;
}

static bool is_below(ah_slice path, ah_slice top)
{
    return path.n > top.n && path.p[top.n] == '/' && memcmp(path.p, top.p, top.n) == 0;
}

/* Returns "top/name", or "name" if top is "". NULL: out of memory. */
static ah_text *join(const ah_mem *mem, ah_slice top, ah_slice name)
{
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, mem, SIZE_MAX);
    ah_buf_put(&b, top);
    if (top.n && top.p[top.n - 1] != '/')
        ah_buf_char(&b, '/');
    ah_buf_put(&b, name);
    (void)ah_text_from_buf(&b, "a path", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

/* Drops nodes of removed files if there are many; called between two batches. */
static void tidy(ah_file_watch *w)
{
    size_t n = 0;

    if (w->n_nodes < 2 * w->alive + SPARE)
        return;
    for (size_t i = 0; i < w->n_nodes; i++)
        if (w->nodes[i].exists || i == 0)
            w->nodes[n++] = w->nodes[i];
        else
            ah_text_unref(w->nodes[i].path);
    w->n_nodes = n;
    ah_index_refill(&w->index, n);
}

/* -- folders ---------------------------------------------------------------------------------- */

/* The position of the watch number, or where it would be inserted. */
static size_t place_of(const ah_file_watch *w, int wd)
{
    size_t low = 0, high = w->n_folders;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (w->folders[middle].wd < wd)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static folder *folder_of(const ah_file_watch *w, int wd)
{
    size_t i = place_of(w, wd);

    return i < w->n_folders && w->folders[i].wd == wd ? &w->folders[i] : NULL;
}

static bool add_folder(ah_file_watch *w, int wd, ah_text *path)
{
    folder *known = folder_of(w, wd), *list;
    size_t at = place_of(w, wd);

    if (known) {
        ah_text_set(&known->path, ah_text_ref(path));
        return true;
    }
    if (!(list = ah_grow(w->mem, w->folders, &w->folders_cap, w->n_folders + 1, sizeof *list)))
        return false;
    w->folders = list;
    memmove(list + at + 1, list + at, (w->n_folders++ - at) * sizeof *list);
    list[at] = (folder){wd, ah_text_ref(path)};
    return true;
}

static void drop_folder(ah_file_watch *w, folder *f)
{
    size_t at = (size_t)(f - w->folders);

    ah_text_unref(f->path);
    memmove(f, f + 1, (--w->n_folders - at) * sizeof *f);
}

/* Drops a folder that was moved out, with everything in it. False: out of memory. */
static bool drop_below(ah_file_watch *w, ah_slice path)
{
    for (size_t i = w->n_folders; i-- > 0;) {
        ah_slice p = ah_text_slice(w->folders[i].path);

        if (ah_slice_eq(p, path) || is_below(p, path)) {
            inotify_rm_watch(w->fd, w->folders[i].wd);
            drop_folder(w, &w->folders[i]);
        }
    }
    for (size_t i = 0; i < w->n_nodes; i++) {
        if (!w->nodes[i].exists || !is_below(ah_text_slice(w->nodes[i].path), path))
            continue;
        if (!note(w, i))
            return false;
        set_exists(w, i, false);
    }
    return true;
}

/* Translates the path of an entry below `from` to one below `to`. */
static ah_text *moved_path(const ah_file_watch *w, ah_slice path, ah_slice from, ah_slice to)
{
    return join(w->mem, to, (ah_slice){path.p + from.n + 1, path.n - from.n - 1});
}

/* Sets the origin of a rename, skipping intermediate names. */
static void set_from(ah_file_watch *w, size_t to, size_t from)
{
    const node *f = &w->nodes[from];

    if (!w->nodes[to].noted || !f->noted)
        return;
    w->nodes[to].from = !f->before && f->from ? f->from : from + 1;
    w->nodes[to].touched |= f->touched;
}

static bool rename_folders(ah_file_watch *w, ah_text *from, ah_text *to)
{
    ah_slice old = ah_text_slice(from), now = ah_text_slice(to);

    for (size_t i = 0; i < w->n_folders; i++) {
        ah_slice p = ah_text_slice(w->folders[i].path);
        ah_text *path = ah_slice_eq(p, old) ? ah_text_ref(to)
                        : is_below(p, old)  ? moved_path(w, p, old, now)
                                            : ah_text_ref(w->folders[i].path);

        if (!path)
            return false;
        ah_text_set(&w->folders[i].path, path);
    }
    return true;
}

static bool rename_node(ah_file_watch *w, size_t i, ah_slice old, ah_slice now)
{
    ah_text *path = moved_path(w, ah_text_slice(w->nodes[i].path), old, now);
    size_t at;
    bool ok = path && node_of(w, ah_text_slice(path), &at) && note(w, i) && note(w, at);

    ah_text_unref(path);
    if (!ok)
        return false;
    w->nodes[at].folder = w->nodes[i].folder;
    set_exists(w, at, true);
    set_exists(w, i, false);
    set_from(w, at, i);
    return true;
}

/* Renames everything in a folder that has a new name. */
static bool move_below(ah_file_watch *w, ah_text *from, ah_text *to)
{
    bool ok = rename_folders(w, from, to);

    for (size_t i = 0, n = w->n_nodes; ok && i < n; i++)
        if (w->nodes[i].exists && is_below(ah_text_slice(w->nodes[i].path), ah_text_slice(from)))
            ok = rename_node(w, i, ah_text_slice(from), ah_text_slice(to));
    return ok;
}

/* -- existing files ---------------------------------------------------------------------------- */

typedef enum found { NOTHING, FILE_FOUND, FOLDER_FOUND } found;

static found look_at(int dir, const struct dirent *e)
{
    struct stat info;

    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR ? FOLDER_FOUND : FILE_FOUND;
    if (fstatat(dir, e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return NOTHING;
    return S_ISDIR(info.st_mode) ? FOLDER_FOUND : FILE_FOUND;
}

static ah_status too_many(const ah_file_watch *w, ah_err *err)
{
    return ah_err_set(
        err, AH_USAGE,
        "'%s' holds more than %zu files and folders: watch a folder in it, or set `max`",
        w->shown->data, w->max);
}

/* Adds an existing entry; `told`: it is new, and an event. */
static ah_status learn(ah_file_watch *w, ah_slice path, bool is_folder, bool told, ah_err *err)
{
    size_t i;

    if (!node_of(w, path, &i))
        return ah_err_nomem(err);
    if (told && !w->nodes[i].exists && !note(w, i))
        return ah_err_nomem(err);
    if (!w->nodes[i].exists && w->alive > w->max)
        return too_many(w, err);
    w->nodes[i].folder = is_folder;
    set_exists(w, i, true);
    return AH_OK;
}

static ah_status read_folder(ah_file_watch *w, DIR *dir, ah_slice top, bool told, ah_err *err)
{
    const struct dirent *e;
    ah_status st = AH_OK;

    while (st == AH_OK && (e = readdir(dir))) {
        ah_slice name = ah_slice_of(e->d_name);
        bool passed = ah_slice_is(name, ".") || ah_slice_is(name, "..") ||
                      (w->only && !ah_slice_eq(name, ah_text_slice(w->only)));
        found what = passed ? NOTHING : look_at(dirfd(dir), e);
        ah_text *path;

        if (what == NOTHING)
            continue;
        if (!(path = join(w->mem, top, name)))
            return ah_err_nomem(err);
        st = learn(w, ah_text_slice(path), what == FOLDER_FOUND, told, err);
        ah_text_unref(path);
    }
    return st;
}

/* Folders that vanish meanwhile, or cannot be read, are ignored. */
static ah_status watch_refused(const ah_file_watch *w, int code, bool is_root, ah_err *err)
{
    if (code == ENOSPC)
        return ah_err_set(
            err, AH_USAGE,
            "'%s' cannot be watched: the system allows no more watches of folders (sysctl "
            "fs.inotify.max_user_watches)",
            w->shown->data);
    if (code == ENOMEM)
        return ah_err_nomem(err);
    if (!is_root)
        return AH_OK;
    return ah_err_set(err, AH_USAGE, "'%s' cannot be watched: %s", w->shown->data, strerror(code));
}

/* Watches the node's folder and then lists it: what is created in between is seen twice, not
 * missed. */
static ah_status enter(ah_file_watch *w, size_t i, bool told, ah_err *err)
{
    ah_text *path = ah_text_ref(w->nodes[i].path), *whole;
    ah_status st = AH_OK;
    DIR *dir = NULL;
    int wd;

    if (!(whole = join(w->mem, ah_slice_of(w->root), ah_text_slice(path)))) {
        ah_text_unref(path);
        return ah_err_nomem(err);
    }
    wd = inotify_add_watch(w->fd, whole->data, MASK | IN_DONT_FOLLOW);
    if (wd < 0)
        st = watch_refused(w, errno, i == 0, err);
    else if (!add_folder(w, wd, path))
        st = ah_err_nomem(err);
    else if ((dir = opendir(whole->data)))
        st = read_folder(w, dir, ah_text_slice(path), told, err);
    if (dir)
        closedir(dir);
    ah_text_unref(whole);
    ah_text_unref(path);
    return st;
}

/* Watches the node's folder and, if recursive, all folders below, whose nodes come after it. */
static ah_status enter_all(ah_file_watch *w, size_t i, bool told, ah_err *err)
{
    ah_text *top = ah_text_ref(w->nodes[i].path);
    ah_status st = enter(w, i, told, err);

    for (size_t k = 0; w->recursive && st == AH_OK && k < w->n_nodes; k++)
        if (w->nodes[k].folder && w->nodes[k].exists && k != i && k != 0 &&
            (top->len == 0 || is_below(ah_text_slice(w->nodes[k].path), ah_text_slice(top))))
            st = enter(w, k, told, err);
    ah_text_unref(top);
    return st;
}

/* Reads everything again, after events were lost. */
static void look_anew(ah_file_watch *w)
{
    give_up(w);
    w->moving = 0;
    for (size_t i = 1; i < w->n_nodes; i++)
        set_exists(w, i, false);
    (void)enter_all(w, 0, false, NULL);
}

/* -- events ------------------------------------------------------------------------------------ */

/* The last rename led out of the watched folders, as no new name followed. */
static void settle_move(ah_file_watch *w)
{
    size_t i = w->moving;

    w->moving = 0;
    if (i && w->nodes[i - 1].folder && w->recursive &&
        !drop_below(w, ah_text_slice(w->nodes[i - 1].path)))
        look_anew(w);
}

static bool left(ah_file_watch *w, size_t i, const struct inotify_event *e)
{
    set_exists(w, i, false);
    w->moving = i + 1;
    w->cookie = e->cookie;
    return true;
}

/* Handles a folder that is new or renamed. Changes in it before it was watched are found by
 * listing: events may refer to a time when the path was another folder's. */
static bool folder_came(ah_file_watch *w, size_t i, size_t from)
{
    if (from && !move_below(w, w->nodes[from - 1].path, w->nodes[i].path))
        return false;
    if (enter_all(w, i, true, NULL) != AH_OK)
        give_up(w);
    return true;
}

/* Handles a removed folder. If the path has a watch, it belongs to a later folder, which has its
 * own events. */
static bool folder_went(ah_file_watch *w, size_t i)
{
    ah_slice path = ah_text_slice(w->nodes[i].path);
    size_t k = 0;

    while (k < w->n_folders && !ah_slice_eq(ah_text_slice(w->folders[k].path), path))
        k++;
    return k == w->n_folders || drop_below(w, path);
}

static bool came(ah_file_watch *w, size_t i, const struct inotify_event *e)
{
    bool is_folder = e->mask & IN_ISDIR;
    size_t from = (e->mask & IN_MOVED_TO) && w->moving && w->cookie == e->cookie ? w->moving : 0;

    if (from)
        w->moving = 0;
    if (!w->nodes[i].exists && w->alive > w->max) {
        give_up(w);
        return true;
    }
    w->nodes[i].folder = is_folder;
    set_exists(w, i, true);
    if (from)
        set_from(w, i, from - 1);
    return !is_folder || !w->recursive || folder_came(w, i, from);
}

/* Handles one event. False: it could not be noted. */
static bool happened(ah_file_watch *w, size_t i, const struct inotify_event *e)
{
    if (!note(w, i))
        return false;
    if (e->mask & IN_MOVED_FROM)
        return left(w, i, e);
    if (e->mask & (IN_CREATE | IN_MOVED_TO))
        return came(w, i, e);
    if (e->mask & IN_DELETE) {
        set_exists(w, i, false);
        return !(e->mask & IN_ISDIR) || folder_went(w, i);
    }
    if (!w->nodes[i].exists)
        return came(w, i, e);
    w->nodes[i].touched = w->nodes[i].noted;
    return true;
}

/* Ends the watch: the watched file or folder itself is gone. False: out of memory. */
static bool ends(ah_file_watch *w)
{
    size_t i = 0;

    w->gone = w->stirred = true;
    if (w->only && !node_of(w, ah_text_slice(w->only), &i))
        return false;
    if (w->nodes[i].exists && !note(w, i))
        return false;
    set_exists(w, i, false);
    return true;
}

static bool take_event(ah_file_watch *w, const struct inotify_event *e)
{
    ah_slice name = ah_slice_of(e->len ? e->name : "");
    ah_text *path;
    folder *f;
    size_t i;
    bool ok;

    if (w->moving && !((e->mask & IN_MOVED_TO) && e->cookie == w->cookie))
        settle_move(w);
    f = folder_of(w, e->wd);
    if (e->mask & IN_Q_OVERFLOW)
        return false;
    if (!f || w->gone)
        return true;
    if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
        return f->path->len > 0 || ends(w);
    if (e->mask & IN_IGNORED) {
        drop_folder(w, f);
        return true;
    }
    if (name.n == 0 || (w->only && !ah_slice_eq(name, ah_text_slice(w->only))))
        return true;
    if (!(path = join(w->mem, ah_text_slice(f->path), name)))
        return false;
    ok = node_of(w, ah_text_slice(path), &i) && happened(w, i, e);
    ah_text_unref(path);
    return ok;
}

static void take_events(ah_file_watch *w, const char *p, const char *end)
{
    bool ok = true;

    while (p < end) {
        const struct inotify_event *e = (const void *)p;

        ok = take_event(w, e) && ok;
        p += sizeof *e + e->len;
    }
    if (!ok)
        look_anew(w);
}

static bool has_changes(const ah_file_watch *w)
{
    bool any = w->lost || w->gone;

    for (size_t i = 0; i < w->n_noted && !any; i++)
        any = w->nodes[w->noted[i]].before || w->nodes[w->noted[i]].exists;
    return any;
}

static void begin_batch(ah_file_watch *w)
{
    int64_t now = ah_loop_now(w->loop), at;

    if (!w->pending)
        w->first = now;
    w->pending = true;
    at = w->first + AH_FILE_WATCH_LATEST_MS;
    ah_timer_set(w->loop, &w->timer, now + w->quiet_ms < at ? now + w->quiet_ms : at);
}

static void on_readable(void *ud, int fd, int events)
{
    _Alignas(struct inotify_event) char bytes[READ];
    ah_file_watch *w = ud;
    ssize_t n;

    (void)events;
    for (int i = 0; i < READS && (n = read(fd, bytes, sizeof bytes)) > 0; i++)
        take_events(w, bytes, bytes + n);
    if (w->lost && !w->moving)
        tidy(w);
    if (w->stirred && !w->ready)
        begin_batch(w);
    w->stirred = false;
}

/* -- batches ----------------------------------------------------------------------------------- */

static void forget_batch(ah_file_watch *w)
{
    for (size_t i = 0; i < w->n_batch; i++) {
        ah_text_unref(w->batch[i].path);
        ah_text_unref(w->batch[i].from);
    }
    ah_free(w->mem, w->batch);
    w->batch = NULL;
    w->n_batch = 0;
}

void ah_file_watch_take(ah_file_watch *w)
{
    forget_batch(w);
    forget_notes(w);
    w->pending = w->ready = w->lost = false;
    tidy(w);
}

static void on_quiet(ah_timer *t)
{
    ah_file_watch *w = (ah_file_watch *)(void *)((char *)t - offsetof(ah_file_watch, timer));

    settle_move(w);
    if (!has_changes(w)) {
        ah_file_watch_take(w);
        return;
    }
    w->ready = true;
    w->news(w->ud, w);
}

bool ah_file_watch_ready(const ah_file_watch *w)
{
    return w->ready;
}

bool ah_file_watch_ended(const ah_file_watch *w)
{
    return w->gone;
}

/* The path in a form that the script can open. */
static ah_text *shown_path(const ah_file_watch *w, ah_text *path)
{
    return w->only || path->len == 0 ? ah_text_ref(w->shown)
                                     : join(w->mem, ah_text_slice(w->shown), ah_text_slice(path));
}

/* Returns the folder of the path, and sets *name to the name in it. */
static ah_slice parent_of(ah_slice path, ah_slice *name)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    *name = (ah_slice){path.p + at, path.n - at};
    return (ah_slice){path.p, at ? at - 1 : 0};
}

/* True if the node moved because its folder did. */
static bool is_carried(const ah_file_watch *w, const node *n)
{
    ah_slice name, old_name, top = parent_of(ah_text_slice(n->path), &name),
                             old = parent_of(ah_text_slice(w->nodes[n->from - 1].path), &old_name);
    uint32_t at = ah_index_find(&w->index, top);
    const node *f = at == AH_INDEX_NONE ? NULL : &w->nodes[at];

    return f && f->renamed && ah_slice_eq(name, old_name) &&
           ah_slice_eq(old, ah_text_slice(w->nodes[f->from - 1].path));
}

static bool put_change(ah_file_watch *w, ah_file_change_kind kind, ah_text *path, ah_text *from)
{
    ah_file_change *c = &w->batch[w->n_batch];

    *c = (ah_file_change){.kind = kind, .path = shown_path(w, path)};
    if (!c->path)
        return false;
    w->n_batch++;
    return !from || (c->from = shown_path(w, from)) != NULL;
}

/* True if the node may be the origin of a move. A file of a folder that is reported as removed may
 * not: for a program that follows the changes, they would come in the wrong order. */
static bool may_be_from(const ah_file_watch *w, const node *from)
{
    ah_slice name;
    uint32_t at = ah_index_find(&w->index, parent_of(ah_text_slice(from->path), &name));

    return from->before && !from->exists && !from->again && at != AH_INDEX_NONE &&
           (w->nodes[at].exists || w->nodes[at].again);
}

static bool find_renamed(ah_file_watch *w)
{
    bool any = false;

    for (size_t i = 0; i < w->n_noted; i++) {
        node *n = &w->nodes[w->noted[i]], *from = n->from ? &w->nodes[n->from - 1] : NULL;

        if (!from || n->renamed || n->before || !n->exists || !may_be_from(w, from) ||
            (n->touched && !is_carried(w, n)))
            continue;
        any = n->renamed = from->again = true;
    }
    return any;
}

/* Sets *kind to the change to report. False: none. */
static bool kind_of(const ah_file_watch *w, const node *n, ah_file_change_kind *kind)
{
    bool carried = n->renamed && is_carried(w, n);

    if (n->again || (carried && !n->touched) || (!n->before && !n->exists))
        return false;
    if (n->renamed && !n->touched)
        *kind = AH_FILE_MOVED;
    else if (!n->exists)
        *kind = AH_FILE_REMOVED;
    else
        *kind = n->before || carried ? AH_FILE_CHANGED : AH_FILE_CREATED;
    return true;
}

/* Puts the changes of one kind into the batch; CREATED includes CHANGED. */
static bool put_all(ah_file_watch *w, ah_file_change_kind wanted)
{
    ah_file_change_kind kind;
    bool ok = true;

    for (size_t i = 0; ok && i < w->n_noted; i++) {
        const node *n = &w->nodes[w->noted[i]];

        if (kind_of(w, n, &kind) && (kind == AH_FILE_CHANGED ? AH_FILE_CREATED : kind) == wanted)
            ok = put_change(w, kind, n->path,
                            kind == AH_FILE_MOVED ? w->nodes[n->from - 1].path : NULL);
    }
    return ok;
}

/* Order for qsort: longer old paths first, so that a move out of a folder comes before the move of
 * that folder. */
static int compare_from(const void *a, const void *b)
{
    size_t x = ((const ah_file_change *)a)->from->len, y = ((const ah_file_change *)b)->from->len;

    return (x < y) - (x > y);
}

/* Puts all changes into the batch, in an order in which they can be applied to a copy one by
 * one. */
static bool put_changes(ah_file_watch *w)
{
    size_t moved;

    if (!put_all(w, AH_FILE_REMOVED))
        return false;
    moved = w->n_batch;
    if (!put_all(w, AH_FILE_MOVED))
        return false;
    qsort(w->batch + moved, w->n_batch - moved, sizeof *w->batch, compare_from);
    return put_all(w, AH_FILE_CREATED);
}

static bool make_batch(ah_file_watch *w)
{
    bool ok;

    if (!(w->batch = ah_alloc(w->mem, (w->n_noted + 1) * sizeof *w->batch)))
        return false;
    for (size_t i = 0; i < w->n_noted; i++)
        w->nodes[w->noted[i]].renamed = w->nodes[w->noted[i]].again = false;
    while (find_renamed(w)) /* repeated for each folder inside another that was renamed later */
        ;
    ok = (!w->lost || put_change(w, AH_FILE_OVERFLOW, w->nodes[0].path, NULL)) && put_changes(w);
    if (!ok)
        forget_batch(w);
    return ok;
}

ah_status ah_file_watch_batch(ah_file_watch *w, const ah_file_change **list, size_t *n, ah_err *err)
{
    forget_batch(w); /* left by an earlier call */
    if (!make_batch(w))
        return ah_err_nomem(err);
    *list = w->batch;
    *n = w->n_batch;
    return AH_OK;
}

/* -- opening and closing ----------------------------------------------------------------------- */

/* Finds the folder to watch, and the name in it if the path is a file. */
static ah_status find_root(ah_file_watch *w, ah_err *err)
{
    char real[PATH_MAX];
    struct stat info;
    char *name;

    if (!realpath(w->shown->data, real) || stat(real, &info) != 0)
        return ah_err_set(
            err, AH_USAGE, "'%s' cannot be watched: %s%s", w->shown->data, strerror(errno),
            errno == ENOENT ? " (a watch of its folder reports it once it exists)" : "");
    if (!S_ISDIR(info.st_mode)) {
        name = strrchr(real, '/');
        if (!(w->only = ah_text_new(w->mem, ah_slice_of(name + 1))))
            return ah_err_nomem(err);
        name[name == real] = '\0';
        w->recursive = false;
    }
    if (!(w->root = ah_alloc(w->mem, strlen(real) + 1)))
        return ah_err_nomem(err);
    memcpy(w->root, real, strlen(real));
    return AH_OK;
}

static ah_status open_inotify(ah_file_watch *w, ah_err *err)
{
    if ((w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) >= 0)
        return AH_OK;
    if (errno == EMFILE)
        return ah_err_set(err, AH_USAGE,
                          "'%s' cannot be watched: the system allows no more watches (sysctl "
                          "fs.inotify.max_user_instances), or no more open files",
                          w->shown->data);
    return ah_err_set(err, AH_USAGE, "'%s' cannot be watched: %s", w->shown->data, strerror(errno));
}

static ah_status begin(ah_file_watch *w, ah_err *err)
{
    size_t root;
    ah_status st = find_root(w, err);

    if (st == AH_OK)
        st = open_inotify(w, err);
    if (st == AH_OK && !node_of(w, ah_slice_of(""), &root))
        st = ah_err_nomem(err);
    if (st != AH_OK)
        return st;
    w->nodes[0].folder = true;
    set_exists(w, 0, true);
    if ((st = enter_all(w, 0, false, err)) != AH_OK)
        return st;
    return ah_loop_watch(w->loop, w->fd, AH_IN, on_readable, w, err);
}

ah_status ah_file_watch_open(const ah_mem *mem, ah_loop *loop, const ah_file_watch_config *cfg,
                             ah_file_watch **out, ah_err *err)
{
    ah_file_watch *w = ah_alloc(mem, sizeof *w);
    ah_status st;

    *out = NULL;
    if (!w)
        return ah_err_nomem(err);
    *w = (ah_file_watch){.mem = mem,
                         .loop = loop,
                         .fd = -1,
                         .shown = ah_text_new(mem, ah_slice_of(cfg->path)),
                         .recursive = cfg->recursive,
                         .max = cfg->max,
                         .quiet_ms = cfg->quiet_ms,
                         .index = {.mem = mem, .name = name_of_node, .owner = w},
                         .timer.fn = on_quiet,
                         .news = cfg->news,
                         .ud = cfg->ud};
    st = w->shown ? begin(w, err) : ah_err_nomem(err);
    if (st == AH_OK)
        *out = w;
    else
        ah_file_watch_free(w);
    return st;
}

void ah_file_watch_free(ah_file_watch *w)
{
    if (!w)
        return;
    ah_timer_unset(&w->timer);
    if (w->fd >= 0) {
        (void)ah_loop_watch(w->loop, w->fd, 0, NULL, NULL, NULL);
        close(w->fd);
    }
    forget_batch(w);
    for (size_t i = 0; i < w->n_nodes; i++)
        ah_text_unref(w->nodes[i].path);
    for (size_t i = 0; i < w->n_folders; i++)
        ah_text_unref(w->folders[i].path);
    ah_index_clear(&w->index);
    ah_free(w->mem, w->nodes);
    ah_free(w->mem, w->folders);
    ah_free(w->mem, w->noted);
    ah_free(w->mem, w->root);
    ah_text_unref(w->only);
    ah_text_unref(w->shown);
    ah_free(w->mem, w);
}

#else

ah_status ah_file_watch_open(const ah_mem *mem, ah_loop *loop, const ah_file_watch_config *cfg,
                             ah_file_watch **out, ah_err *err)
{
    (void)mem, (void)loop;
    *out = NULL;
    return ah_err_set(err, AH_USAGE,
                      "'%s' cannot be watched: that needs inotify, which only Linux has",
                      cfg->path);
}

void ah_file_watch_free(ah_file_watch *w)
{
    (void)w;
}

bool ah_file_watch_ready(const ah_file_watch *w)
{
    (void)w;
    return false;
}

bool ah_file_watch_ended(const ah_file_watch *w)
{
    (void)w;
    return true;
}

ah_status ah_file_watch_batch(ah_file_watch *w, const ah_file_change **list, size_t *n, ah_err *err)
{
    (void)w, (void)list, (void)n;
    return ah_err_nomem(err);
}

void ah_file_watch_take(ah_file_watch *w)
{
    (void)w;
}

#endif
