/* Sets of changes that survive their process. Before a commit of several steps makes anything, it
 * writes the steps to a hidden file of the root folder; when all new content is on the disk, it
 * adds a last line, and only then begins to rename. The next process that opens the root finds the
 * record of a dead process (its lock is free): it completes a complete set, or takes it back if
 * that is impossible, and removes the temporaries of an incomplete one.
 *
 * A model may be able to write to that folder by other means (a shell), so a forged record must not
 * do anything that the file tools could not do in that root. Each path is checked like a tool's,
 * refused names included, and opened below the root without links. Only hidden files of ours beside
 * their place, with the recorded content, are renamed. Only entries with the recorded inode and
 * times are removed. The record must be a private file of our user with one name and name this root
 * folder, so that another user cannot plant one and none works elsewhere. A record that fails these
 * checks is removed if it is ours, and left alone otherwise.
 *
 * Nothing here blocks: the record of a running process is skipped. */
#define _GNU_SOURCE /* flock */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/json.h"
#include "io/disk_store.h"

enum { SLOTS = 4, NAME = 40, END_LINE = 40 };
static const size_t MAX_RECORD = (size_t)64 << 20;
static const char END[] = "commit "; /* the last line, with a hash and a line end */

static const char *const acts[] = {
    [AH_FS_PUT] = "put", [AH_FS_MAKE_FOLDER] = "folder", [AH_FS_REMOVE] = "remove"};

static void slot_name(int slot, char out[NAME])
{
    snprintf(out, NAME, ".agenthost-commit-%d.tmp", slot);
}

bool ah_fs_is_record(const char *name)
{
    char own[NAME];

    for (int i = 0; i < SLOTS; i++) {
        slot_name(i, own);
        if (strcmp(name, own) == 0)
            return true;
    }
    return false;
}

/* -- writing ----------------------------------------------------------------------------------- */

static void put_hex(ah_buf *b, const char *name, uint64_t v)
{
    ah_buf_fmt(b, ",\"%s\":\"%llx\"", name, (unsigned long long)v);
}

static void put_step(ah_buf *b, const ah_fs_step *s)
{
    ah_buf_fmt(b, "{\"act\":\"%s\",\"path\":", acts[s->act]);
    ah_json_put_string(b, ah_text_slice(s->path));
    ah_buf_fmt(b, ",\"was\":\"%s\"", ah_fs_kind_name(s->was.kind));
    if (s->temp[0])
        ah_buf_fmt(b, ",\"temp\":\"%s\"", s->temp);
    if (s->act == AH_FS_PUT)
        put_hex(b, "hash", s->hash);
    if (s->was.kind != AH_FS_ABSENT) { /* without the time of change, which a rename modifies */
        put_hex(b, "inode", s->was.version.part[0]);
        put_hex(b, "size", s->was.version.part[1]);
        put_hex(b, "modified", s->was.version.part[2]);
    }
    ah_buf_char(b, '}');
}

static void put_record(const ah_fs_host *h, const ah_fs_ticket *t, ah_buf *b)
{
    ah_buf_fmt(b, "{\"agenthost_commit\":1,\"root\":\"%llx\",\"steps\":[",
               (unsigned long long)h->id);
    for (size_t i = 0; i < t->n; i++) {
        if (i)
            ah_buf_char(b, ',');
        put_step(b, &t->item[i]);
    }
    ah_buf_str(b, "]}\n");
}

static bool write_all(int fd, ah_slice s)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);

        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            s = (ah_slice){s.p + n, s.n - (size_t)n};
    }
    return true;
}

static bool is_locked_and_there(int fd)
{
    struct stat s;

    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &s) == 0 && s.st_nlink == 1;
}

/* Creates an empty, locked record. -1 with errno; EEXIST: all slots are in use. */
static int new_record(ah_fs_host *h, int *slot)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    char name[NAME];
    int fd = -1;

    errno = EEXIST;
    for (*slot = 0; *slot < SLOTS; ++*slot) {
        slot_name(*slot, name);
        fd = openat(h->root.root, name, flags, 0600);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd < 0)
            continue;
        if (is_locked_and_there(fd)) /* another process took it for a leftover */
            return fd;
        close(fd);
        errno = EEXIST;
    }
    return -1;
}

/* These errors concern the root folder, not the disk: the set then has no record, and no protection
 * from the end of the process. */
static bool can_do_without(int e)
{
    return e == EEXIST || e == EACCES || e == EPERM || e == EROFS;
}

ah_status ah_fs_record_begin(ah_fs_host *h, ah_fs_ticket *t, ah_err *err)
{
    ah_status st = AH_OK;
    ah_buf b;
    int fd = new_record(h, &t->slot);

    if (fd < 0 && errno == EEXIST) {
        ah_fs_recover(h);
        fd = new_record(h, &t->slot);
    }
    if (fd < 0)
        return can_do_without(errno)
                   ? AH_OK
                   : ah_fs_host_err(errno, "begin to change", (ah_slice)AH_LIT("."), err);
    t->record = fd;
    ah_buf_init(&b, h->fs.mem, MAX_RECORD);
    put_record(h, t, &b);
    t->body = ah_slice_hash(ah_buf_slice(&b));
    if (!ah_buf_ok(&b))
        st = ah_err_nomem(err);
    else if (!write_all(fd, ah_buf_slice(&b)))
        st = ah_fs_host_err(errno, "begin to change", (ah_slice)AH_LIT("."), err);
    ah_buf_clear(&b);
    return st;
}

ah_status ah_fs_record_seal(ah_fs_host *h, ah_fs_ticket *t, ah_err *err)
{
    char line[END_LINE];
    int n;

    if (t->record < 0)
        return AH_OK;
    n = snprintf(line, sizeof line, "%s%016llx\n", END, (unsigned long long)t->body);
    if (!write_all(t->record, (ah_slice){line, (size_t)n}) ||
        (!h->fs.o.no_sync && (fsync(t->record) != 0 || fsync(h->root.root) != 0)))
        return ah_fs_host_err(errno, "change", (ah_slice)AH_LIT("."), err);
    return AH_OK;
}

/* Removes the record, and syncs that too: otherwise the set would be carried out again. */
void ah_fs_record_end(ah_fs_host *h, ah_fs_ticket *t)
{
    char name[NAME];

    if (t->record < 0)
        return;
    slot_name(t->slot, name);
    (void)unlinkat(h->root.root, name, 0);
    if (!h->fs.o.no_sync)
        (void)fsync(h->root.root);
    close(t->record);
    t->record = -1;
}

/* -- reading ----------------------------------------------------------------------------------- */

static uint64_t hex_member(ah_slice object, const char *name)
{
    ah_slice v = ah_json_member(object, name);
    char digits[24] = "";

    v = v.p && v.n >= 2 ? ah_json_inside(v) : (ah_slice){"", 0};
    if (v.n >= sizeof digits)
        return 0;
    memcpy(digits, v.p, v.n);
    return strtoull(digits, NULL, 16);
}

static bool read_act(ah_slice object, ah_fs_act *out)
{
    ah_slice v = ah_json_member(object, "act");

    for (ah_fs_act a = AH_FS_PUT; a <= AH_FS_REMOVE; a++)
        if (v.p && ah_json_string_is(v, acts[a])) {
            *out = a;
            return true;
        }
    return false;
}

static void read_was(ah_slice object, ah_fs_info *was)
{
    ah_slice v = ah_json_member(object, "was");

    for (ah_fs_kind k = AH_FS_ABSENT; v.p && k <= AH_FS_OTHER; k++)
        if (ah_json_string_is(v, ah_fs_kind_name(k)))
            was->kind = k;
    was->version.part[0] = hex_member(object, "inode");
    was->version.part[1] = hex_member(object, "size");
    was->version.part[2] = hex_member(object, "modified");
}

/* Reads a step. The path must be one that a tool may write, in normal form; the name must be one of
 * our temporaries. */
static bool read_step(ah_fs_host *h, ah_slice object, ah_buf *text, ah_fs_step *s)
{
    ah_slice path = ah_json_member(object, "path"), temp = ah_json_member(object, "temp");
    ah_fs_path checked;
    ah_err ignored;

    ah_buf_reset(text, 0);
    if (!read_act(object, &s->act) || !path.p || !ah_json_string(path, text) || !ah_buf_ok(text) ||
        ah_fs_path_writable(&h->fs, ah_buf_slice(text), &checked, &ignored) != AH_OK ||
        !ah_slice_eq(ah_fs_path_slice(&checked), ah_buf_slice(text)))
        return false;
    if (!(s->path = ah_text_new(h->fs.mem, ah_buf_slice(text))))
        return false;
    s->hash = hex_member(object, "hash");
    read_was(object, &s->was);
    if (!temp.p)
        return true;
    temp = temp.n >= 2 ? ah_json_inside(temp) : temp;
    if (!ah_fs_temp_of_set(temp))
        return false;
    memcpy(s->temp, temp.p, temp.n);
    return true;
}

static size_t count_steps(ah_slice list)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    size_t n = 0;

    for (t = ah_json_next(&it); t.kind == AH_JSON_OBJECT; t = ah_json_next(&it), n++)
        ah_json_skip(&it, t);
    return n;
}

static bool read_steps(ah_fs_host *h, ah_slice list, ah_fs_ticket *t)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token token = ah_json_next(&it);
    bool ok = true;
    ah_buf text;

    ah_buf_init(&text, h->fs.mem, AH_FS_MAX_PATH);
    for (token = ah_json_next(&it); ok && token.kind == AH_JSON_OBJECT; token = ah_json_next(&it))
        ok = read_step(h, ah_json_skip(&it, token), &text, &t->item[t->n++]);
    ah_buf_clear(&text);
    return ok && ah_fs_ticket_plan(h, t);
}

/* True if exactly the tops have names of temporaries. */
static bool has_names(const ah_fs_ticket *t)
{
    for (size_t i = 0; i < t->n; i++)
        if ((t->item[i].top == i) != (t->item[i].temp[0] != '\0'))
            return false;
    return true;
}

/* The set in the record, for this root; NULL: invalid. */
static ah_fs_ticket *read_record(ah_fs_host *h, ah_slice body)
{
    ah_slice list, root;
    ah_fs_ticket *t;
    ah_err ignored;

    if (ah_json_check(h->fs.mem, body, AH_JSON_MAX_DEPTH, NULL) != AH_OK ||
        ah_json_kind_of(body) != AH_JSON_OBJECT)
        return NULL;
    list = ah_json_member(body, "steps");
    root = ah_json_member(body, "root");
    if (!list.p || ah_json_kind_of(list) != AH_JSON_ARRAY || !root.p ||
        hex_member(body, "root") != h->id)
        return NULL;
    if (!(t = ah_fs_ticket_new(h->fs.mem, count_steps(list))))
        return NULL;
    if (read_steps(h, list, t) && has_names(t) && ah_fs_check_repository(h, t, &ignored) == AH_OK) {
        t->set = true;
        return t;
    }
    ah_fs_ticket_free(h->fs.mem, t);
    return NULL;
}

/* -- the state of a set ------------------------------------------------------------------------ */

typedef struct found {
    ah_fs_info info;
    uint64_t hash; /* of the file's content */
} found;

static uint64_t hash_file(int fd)
{
    char piece[1 << 14];
    uint64_t hash = AH_HASH_BEGIN;
    ssize_t n;

    while ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            hash = ah_slice_hash_on(hash, (ah_slice){piece, (size_t)n});
    return hash;
}

static found look_at(int folder, const char *name, bool content)
{
    found f = {.info.kind = AH_FS_ABSENT};
    struct stat s;
    int fd;

    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return f;
    ah_fs_host_info(&s, &f.info);
    if (f.info.kind != AH_FS_FILE || !content)
        return f;
    fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return f;
    f.hash = hash_file(fd);
    close(fd);
    return f;
}

static bool is_what_was(const ah_fs_step *s, const ah_fs_info *now)
{
    if (now->kind != s->was.kind)
        return false;
    if (now->kind == AH_FS_ABSENT)
        return true;
    return memcmp(now->version.part, s->was.version.part, 3 * sizeof *now->version.part) == 0 ||
           (now->kind == AH_FS_FOLDER && now->version.part[0] == s->was.version.part[0]);
}

/* Sets the step's state: if it is waiting or placed, and where the replaced entry is. False: it is
 * waiting, but another process has changed its place. */
static bool judge_put(int folder, const char *name, ah_fs_step *s)
{
    char beside[AH_FS_TEMP];
    bool file = s->act == AH_FS_PUT;
    found temp = look_at(folder, s->temp, file), now = look_at(folder, name, false);

    ah_fs_temp_old(s->temp, beside);
    s->ready = file ? temp.info.kind == AH_FS_FILE && temp.hash == s->hash
                    : temp.info.kind == AH_FS_FOLDER;
    if (look_at(folder, beside, false).info.kind != AH_FS_ABSENT)
        s->old = AH_FS_OLD_BESIDE;
    if (s->ready) /* replaced by parts: the old entry may be aside already */
        return is_what_was(s, &now.info) ||
               (s->old == AH_FS_OLD_BESIDE && now.info.kind == AH_FS_ABSENT);
    s->placed = true;
    if (temp.info.kind != AH_FS_ABSENT)
        s->old = AH_FS_OLD_TEMP;
    /* Settled if another process has changed it since. */
    s->settled = !file || look_at(folder, name, true).hash != s->hash;
    return true;
}

static bool judge_removal(int folder, const char *name, ah_fs_step *s)
{
    found now = look_at(folder, name, false);

    if (look_at(folder, s->temp, false).info.kind != AH_FS_ABSENT) {
        s->placed = true;
        s->old = AH_FS_OLD_TEMP;
        return true;
    }
    s->placed = s->settled = now.info.kind == AH_FS_ABSENT;
    return s->placed || is_what_was(s, &now.info);
}

static bool judge(ah_fs_host *h, ah_fs_step *s)
{
    ah_fs_place at;
    ah_err ignored;
    bool fits;

    if (ah_fs_host_enter(h, ah_text_slice(s->path), false, &at, &ignored) != AH_OK)
        return s->placed = s->settled = s->act == AH_FS_REMOVE; /* already gone, with its folder */
    fits = (s->act == AH_FS_REMOVE ? judge_removal : judge_put)(at.fd, at.name, s);
    ah_fs_host_leave(&at);
    return fits;
}

/* -- ending a set ------------------------------------------------------------------------------ */

/* Completes the set if every step fits, else takes it back. */
static void carry_out(ah_fs_host *h, ah_fs_ticket *t)
{
    bool fits = true;
    ah_err ignored;

    for (size_t i = 0; i < t->n; i++)
        if (t->item[i].top == i)
            fits = judge(h, &t->item[i]) && fits;
    if (!fits || ah_fs_apply(h, t, &ignored) != AH_OK)
        (void)ah_fs_undo(h, t);
    ah_fs_finish(h, t);
    ah_fs_forget(h, t);
}

/* Removes the temporaries of an incomplete set. */
static void drop(ah_fs_host *h, ah_fs_ticket *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->item[i].ready = t->item[i].act != AH_FS_REMOVE;
    ah_fs_forget(h, t);
}

/* Cuts the last line off the record's text; true if it marks a complete record. */
static bool take_end(ah_slice *text)
{
    char line[END_LINE];
    const char *end = text->n ? memchr(text->p, '\n', text->n) : NULL;
    ah_slice body = {text->p, end ? (size_t)(end - text->p) + 1 : text->n};
    ah_slice rest = {text->p + body.n, text->n - body.n};

    snprintf(line, sizeof line, "%s%016llx\n", END, (unsigned long long)ah_slice_hash(body));
    *text = body;
    return ah_slice_is(rest, line);
}

static bool read_all(int fd, ah_buf *b)
{
    char *to;
    ssize_t n = 1;

    while (n > 0 && (to = ah_buf_room(b, BUFSIZ))) {
        do
            n = pread(fd, to, BUFSIZ, (off_t)b->len);
        while (n < 0 && errno == EINTR);
        b->len += n > 0 ? (size_t)n : 0;
    }
    return n == 0 && ah_buf_ok(b);
}

/* Ends the set of a record. True if the record is to be removed. */
static bool end_set(ah_fs_host *h, int fd)
{
    ah_fs_ticket *t = NULL;
    bool read, complete;
    ah_slice body;
    ah_buf b;

    ah_buf_init(&b, h->fs.mem, MAX_RECORD);
    if ((read = read_all(fd, &b))) {
        body = ah_buf_slice(&b);
        complete = take_end(&body);
        t = read_record(h, body);
        if (t && complete)
            carry_out(h, t);
        else if (t)
            drop(h, t);
    }
    if (t)
        ah_fs_ticket_free(h->fs.mem, t);
    ah_buf_clear(&b);
    return read;
}

/* True for a private file of our user with one name; any other file is not our record. */
static bool is_ours(int fd)
{
    struct stat s;

    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && s.st_nlink == 1 &&
           (s.st_mode & 077) == 0;
}

static bool recover_slot(ah_fs_host *h, int slot)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    bool busy = false;
    char name[NAME];
    int fd;

    slot_name(slot, name);
    fd = openat(h->root.root, name, flags);
    if (fd < 0)
        return false;
    if (is_ours(fd) && flock(fd, LOCK_EX | LOCK_NB) != 0)
        busy = errno == EWOULDBLOCK;
    else if (is_ours(fd) && end_set(h, fd)) /* checked again: it may have been ended in between */
        (void)unlinkat(h->root.root, name, 0);
    close(fd);
    return busy;
}

bool ah_fs_recover(ah_fs_host *h)
{
    bool busy = false;

    for (int i = 0; i < SLOTS && !h->fs.o.read_only; i++)
        busy = recover_slot(h, i) || busy;
    return busy;
}
