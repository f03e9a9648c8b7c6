/* Reads lines of a text with their numbers, and counts them. It reads the file in pieces, so the
 * file may be larger than memory. Lines end with \n or \r\n, which is not part of them; a
 * non-empty rest is a line. A file with NUL at its beginning is only reported as binary. */
#include "base/json.h" /* UTF-8 */
#include "state/fs_store.h"

enum { PIECE = 64 << 10, BINARY_LOOK = 8192 };

typedef struct scan {
    ah_fs *fs;
    ah_slice path;
    ah_fs_lines *want;
    ah_fs_items *out;
    ah_buf line;     /* the current line, as far as it is shown */
    uint64_t length; /* of the current line so far */
    bool cr;         /* its last byte is \r */
    size_t shown;    /* bytes in `out` */
} scan;

/* True if the current line is kept. */
static bool is_kept(const scan *s)
{
    return s->want->total + 1 >= s->want->first && s->out->n < s->out->max &&
           s->shown < s->want->max_bytes;
}

static void take_bytes(scan *s, ah_slice bytes)
{
    size_t room = s->want->width - s->line.len;

    if (bytes.n == 0)
        return;
    s->length += bytes.n;
    s->cr = bytes.p[bytes.n - 1] == '\r';
    if (is_kept(s))
        ah_buf_add(&s->line, bytes.p, bytes.n < room ? bytes.n : room);
}

/* Makes the shown bytes UTF-8. */
static ah_status repair(scan *s, ah_slice *line, ah_buf *fixed, ah_err *err)
{
    if (ah_utf8_valid(*line))
        return AH_OK;
    s->want->malformed = true;
    ah_buf_init(fixed, s->fs->mem, 3 * s->want->width); /* U+FFFD has three bytes */
    ah_utf8_repair(*line, fixed);
    *line = ah_buf_slice(fixed);
    return ah_buf_ok(fixed) ? AH_OK : ah_err_nomem(err);
}

static ah_status keep_line(scan *s, ah_err *err)
{
    ah_fs_item item = {.kind = AH_FS_FILE, .size = s->length, .line = (size_t)s->want->total};
    ah_slice line = ah_buf_slice(&s->line);
    ah_buf fixed = {.mem = s->fs->mem};
    ah_status st;

    if (!ah_buf_ok(&s->line))
        return ah_err_nomem(err);
    if (s->length < line.n) /* the \r is not part of the line */
        line.n = (size_t)s->length;
    if (s->length > line.n)
        line.n = ah_utf8_cut(line.p, line.n);
    st = repair(s, &line, &fixed, err);
    s->shown += line.n + 1;
    if (st == AH_OK && !(item.text = ah_text_new(s->fs->mem, line)))
        st = ah_err_nomem(err);
    if (st == AH_OK && ah_fs_items_add(s->out, ah_slice_of(""), &item) != AH_OK)
        st = ah_err_nomem(err);
    ah_text_unref(item.text);
    ah_buf_clear(&fixed);
    return st;
}

static ah_status end_line(scan *s, bool ended, ah_err *err)
{
    bool kept = is_kept(s);
    ah_status st = AH_OK;

    s->want->total++;
    if (ended && s->cr) {
        s->want->crlf = true;
        s->length--;
    }
    if (kept)
        st = keep_line(s, err);
    ah_buf_reset(&s->line, 0);
    s->length = 0;
    s->cr = false;
    return st;
}

static ah_status take_piece(scan *s, ah_slice piece, ah_err *err)
{
    ah_status st = AH_OK;

    while (st == AH_OK && piece.n) {
        const char *end = memchr(piece.p, '\n', piece.n);
        size_t n = end ? (size_t)(end - piece.p) : piece.n;

        take_bytes(s, (ah_slice){piece.p, n});
        if (end)
            st = end_line(s, true, err);
        n += end != NULL;
        piece = (ah_slice){piece.p + n, piece.n - n};
    }
    return st;
}

static bool is_binary(ah_slice start)
{
    return start.n && memchr(start.p, '\0', start.n < BINARY_LOOK ? start.n : BINARY_LOOK);
}

static ah_status read_piece(scan *s, uint64_t offset, ah_buf *b, ah_fs_info *first, ah_err *err)
{
    ah_fs_info info;
    ah_status st;

    ah_buf_reset(b, 0);
    st = s->fs->store->read(s->fs, s->path, offset, PIECE, b, &info, err);
    if (st != AH_OK)
        return st;
    if (!ah_buf_ok(b))
        return ah_err_nomem(err);
    if (offset == 0)
        *first = info;
    if (memcmp(&first->version, &info.version, sizeof info.version) != 0)
        return ah_fs_err(err, AH_FS_CONFLICT, "'%.*s' was changed while it was read: read it again",
                         AH_FMT(s->path));
    return AH_OK;
}

/* Reads the file once. */
static ah_status scan_file(scan *s, ah_fs_info *info, ah_err *err)
{
    int64_t until = ah_fs_until(s->fs);
    ah_status st = AH_OK;
    uint64_t offset = 0;
    ah_buf b;

    s->want->total = 0;
    ah_buf_init(&b, s->fs->mem, PIECE);
    while (st == AH_OK && !s->want->binary && !s->want->stopped) {
        st = read_piece(s, offset, &b, info, err);
        if (st != AH_OK || b.len == 0)
            break;
        s->want->binary = offset == 0 && is_binary(ah_buf_slice(&b));
        if (!s->want->binary)
            st = take_piece(s, ah_buf_slice(&b), err);
        offset += b.len;
        s->want->stopped = ah_fs_is_late(s->fs, until);
        if (ah_interrupted(s->fs->o.interrupt))
            st = ah_fs_stopped(err);
    }
    if (st == AH_OK && s->length)
        st = end_line(s, false, err);
    ah_buf_clear(&b);
    return st;
}

/* Counts the lines first, in order to find the last ones. */
static ah_status find_first(scan *s, ah_fs_info *info, ah_err *err)
{
    ah_status st;

    s->want->first = UINT64_MAX;
    st = scan_file(s, info, err);
    s->want->first = s->want->total > s->out->max ? s->want->total - s->out->max + 1 : 1;
    return st;
}

ah_status ah_fs_read_lines(ah_fs *fs, ah_slice path, ah_fs_lines *want, ah_fs_items *out,
                           ah_err *err)
{
    scan s = {.fs = fs, .want = want, .out = out};
    ah_fs_info info = {0};
    ah_fs_path p;
    ah_status st = ah_fs_path_check(fs, path, &p, err);

    if (st != AH_OK)
        return st;
    s.path = ah_fs_path_slice(&p);
    ah_buf_init(&s.line, fs->mem, want->width);
    st = fs->store->stat(fs, s.path, &info, err);
    if (st == AH_OK)
        st = ah_fs_need_file(s.path, &info, err);
    if (st == AH_OK && want->first == 0)
        st = find_first(&s, &info, err);
    if (st == AH_OK)
        st = scan_file(&s, &info, err);
    want->size = info.size;
    ah_buf_clear(&s.line);
    if (st == AH_OK)
        st = ah_fs_note(fs, s.path, &info, err);
    return ah_fs_advise(fs, path, st, err);
}
