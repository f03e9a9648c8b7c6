/* Changes of an overlay as JSON, for the records of a call: what a finished call staged, and what a
 * settled one is about to change in a folder of the machine. A version of a file (ah_fs_version)
 * means nothing to another process, so records have the SHA-256 of the content in its place. */
#include "base/base64.h"
#include "base/json.h"
#include "base/sha256.h"
#include "state/fs_kept.h"
#include "state/fs_tree.h"

enum {
    HEX = AH_SHA256_HEX,
    PIECE = 256 << 10,
    MAX_BEFORE = 8 << 20, /* bytes of a content before that is kept */
    MAX_KEPT = 64 << 20   /* bytes of the list of them; with the last one far below a record's */
};

static const char *const acts[] = {[AH_FS_SEEN] = "seen",
                                   [AH_FS_PUT] = "put",
                                   [AH_FS_MAKE_FOLDER] = "folder",
                                   [AH_FS_REMOVE] = "remove"};

/* -- hashes -------------------------------------------------------------------------------- */

static void hash_text(const ah_text *t, char out[HEX])
{
    ah_sha256 s;

    ah_sha256_begin(&s);
    ah_sha256_add(&s, ah_text_slice(t));
    ah_sha256_end_hex(&s, out);
}

/* Hashes a file in pieces, so that its size does not matter. *info: the file that was read.
 * content: gets the bytes, as far as there is room; NULL: not wanted. */
static ah_status hash_file(ah_fs *fs, ah_slice path, ah_fs_info *info, char out[HEX],
                           ah_buf *content, ah_err *err)
{
    ah_status st = AH_OK;
    uint64_t at = 0;
    ah_sha256 s;
    ah_buf b;

    ah_sha256_begin(&s);
    ah_buf_init(&b, fs->mem, PIECE);
    do {
        ah_buf_reset(&b, 0);
        st = fs->store->read(fs, path, at, PIECE, &b, info, err);
        if (st == AH_OK && !ah_buf_ok(&b))
            st = ah_buf_error(&b, "a piece of a file", err);
        if (st == AH_OK)
            ah_sha256_add(&s, ah_buf_slice(&b));
        if (st == AH_OK && content)
            ah_buf_put(content, ah_buf_slice(&b));
        at += b.len;
    } while (st == AH_OK && b.len);
    ah_buf_clear(&b);
    ah_sha256_end_hex(&s, out);
    return st;
}

/* The entry as records have it. */
typedef struct mark {
    ah_fs_info info;
    char hash[HEX]; /* of a file */
} mark;

ah_status ah_fs_look(ah_fs *fs, ah_slice path, ah_fs_info *info, char hash[AH_SHA256_HEX],
                     ah_buf *content, ah_err *err)
{
    ah_status st = fs->store->stat(fs, path, info, err);

    if (st == AH_TOOL_VALIDATION) {
        *info = (ah_fs_info){.modified_ms = AH_FS_NO_TIME};
        return AH_OK;
    }
    if (st == AH_OK && info->kind == AH_FS_FILE)
        st = hash_file(fs, path, info, hash, content, err);
    return st;
}

static ah_status look(ah_fs *fs, ah_slice path, mark *m, ah_err *err)
{
    return ah_fs_look(fs, path, &m->info, m->hash, NULL, err);
}

/* Appends the member; nothing for a missing entry. */
static void put_mark(ah_buf *out, const char *member, ah_fs_kind kind, const char hash[HEX])
{
    if (kind == AH_FS_ABSENT)
        return;
    ah_buf_fmt(out, ",\"%s\":\"", member);
    if (kind == AH_FS_FILE)
        ah_buf_add(out, hash, HEX);
    else
        ah_buf_str(out, ah_fs_kind_name(kind));
    ah_buf_char(out, '"');
}

/* True if the entry is the one that the record has: a hash, a kind, or nothing. */
static bool is_marked(const mark *m, ah_slice json)
{
    if (m->info.kind == AH_FS_ABSENT)
        return !json.p;
    if (!json.p)
        return false;
    if (m->info.kind != AH_FS_FILE)
        return ah_json_string_is(json, ah_fs_kind_name(m->info.kind));
    return json.n == HEX + 2 && json.p[0] == '"' && memcmp(json.p + 1, m->hash, HEX) == 0;
}

/* -- printing changes ------------------------------------------------------------------------ */

/* Text as a string, other bytes as {"base64":".."}. */
static void put_bytes(ah_buf *out, ah_slice bytes)
{
    if (ah_utf8_valid(bytes)) {
        ah_json_put_string(out, bytes);
        return;
    }
    ah_buf_str(out, "{\"base64\":\"");
    ah_base64_put(out, bytes);
    ah_buf_str(out, "\"}");
}

static void put_ops(ah_buf *out, const ah_fs_change *c)
{
    for (size_t i = 0; i < c->n_ops; i++) {
        const ah_fs_op *op = &c->op[i];

        ah_buf_str(out, i ? ",{" : ",\"ops\":[{");
        if (op->old) {
            ah_buf_str(out, "\"old\":");
            put_bytes(out, ah_text_slice(op->old));
            ah_buf_str(out, op->all ? ",\"all\":true," : ",");
        }
        ah_buf_str(out, "\"with\":");
        put_bytes(out, ah_text_slice(op->with));
        ah_buf_char(out, '}');
    }
    if (c->n_ops)
        ah_buf_char(out, ']');
}

static bool is_version(const ah_fs_info *a, const ah_fs_info *b)
{
    return a->kind == b->kind && memcmp(&a->version, &b->version, sizeof a->version) == 0;
}

/* The hash matters only where the change depends on the content. It is left out if the file has
 * changed since: then no later content is the one that was read. */
static void put_was(ah_fs *below, const ah_fs_change *c, ah_buf *out)
{
    mark now;
    ah_err err;
    ah_status st;

    ah_buf_fmt(out, ",\"was\":{\"kind\":\"%s\"", ah_fs_kind_name(c->was.kind));
    if (c->was.mode.known)
        ah_buf_fmt(out, ",\"mode\":%u", c->was.mode.bits);
    if (c->was.kind == AH_FS_FILE && (c->pinned || c->n_ops)) {
        st = look(below, ah_text_slice(c->path), &now, &err);
        if (st == AH_NOMEM)
            out->status = AH_NOMEM;
        if (st == AH_OK && is_version(&now.info, &c->was))
            put_mark(out, "hash", AH_FS_FILE, now.hash);
    }
    ah_buf_char(out, '}');
}

void ah_fs_put_change(ah_fs *below, const ah_fs_change *c, ah_buf *out)
{
    ah_buf_fmt(out, "{\"act\":\"%s\",\"path\":", acts[c->act]);
    ah_json_put_string(out, ah_text_slice(c->path));
    if (below)
        put_was(below, c, out);
    if (c->pinned)
        ah_buf_str(out, ",\"pinned\":true");
    if (c->anew)
        ah_buf_str(out, ",\"anew\":true");
    if (c->act == AH_FS_PUT) {
        if (c->mode.known)
            ah_buf_fmt(out, ",\"mode\":%u", c->mode.bits);
        ah_buf_str(out, ",\"content\":");
        put_bytes(out, ah_text_slice(c->content));
        put_ops(out, c);
    }
    ah_buf_char(out, '}');
}

/* True for an overlay whose changes depend on no other overlay. */
static bool stands_alone(const ah_fs *overlay)
{
    return !((const ah_fs_tree *)overlay)->into && !overlay->below->below;
}

bool ah_fs_print(ah_fs *overlay, ah_buf *out)
{
    const ah_fs_tree *t = (const ah_fs_tree *)overlay;
    size_t n = 0;

    if (!stands_alone(overlay))
        return false;
    ah_buf_char(out, '[');
    for (size_t i = 0; i < t->n; i++) {
        if (t->node[i]->act == AH_FS_SEEN)
            continue; /* nothing below an overlay depends on what was only read */
        if (n++)
            ah_buf_char(out, ',');
        ah_fs_put_change(overlay->below, t->node[i], out);
    }
    ah_buf_char(out, ']');
    return true;
}

/* -- reading changes --------------------------------------------------------------------------- */

/* A change as it is written. Slices with .p NULL are missing. */
typedef struct members {
    ah_slice act, path, was, pinned, anew, mode, content, ops;
} members;

typedef struct restaging {
    ah_fs *fs;
    ah_fs_changes list;
    ah_buf text; /* for unescaped texts */
} restaging;

static ah_status damaged(ah_err *err, const char *what)
{
    return ah_err_set(err, AH_STORE,
                      "the record of the files that a call changed is damaged: %s is wrong or "
                      "missing; open another conversation, or rewind to before this call",
                      what);
}

static bool is_true(ah_slice json)
{
    return ah_json_kind_of(json) == AH_JSON_TRUE;
}

static bool read_mode(ah_slice json, ah_fs_mode *out)
{
    ah_json_num n;

    *out = (ah_fs_mode){0};
    if (!json.p)
        return true;
    if (ah_json_kind_of(json) != AH_JSON_NUMBER || !ah_json_number(json, &n) || !n.is_int ||
        n.i < 0 || n.i > 07777)
        return false;
    *out = (ah_fs_mode){.known = true, .bits = (unsigned)n.i};
    return true;
}

bool ah_fs_read_bytes(ah_slice json, ah_buf *out)
{
    ah_slice base64 = ah_json_member(json, "base64");

    if (!base64.p || ah_json_kind_of(base64) != AH_JSON_STRING ||
        !ah_base64_valid(ah_json_inside(base64)))
        return json.p && ah_json_string(json, out);
    ah_base64_take(ah_json_inside(base64), out);
    return true;
}

static ah_status read_bytes(restaging *r, ah_slice json, ah_text **out, ah_err *err)
{
    ah_buf_reset(&r->text, 0);
    if (!ah_fs_read_bytes(json, &r->text))
        return damaged(err, "a content");
    return ah_text_from_buf(&r->text, "the content of a file", out, err);
}

static ah_status read_op(restaging *r, ah_slice json, ah_fs_change *c, ah_err *err)
{
    ah_slice old = ah_json_member(json, "old");
    ah_fs_op op = {.all = is_true(ah_json_member(json, "all"))};
    ah_status st = read_bytes(r, ah_json_member(json, "with"), &op.with, err);

    if (st == AH_OK && old.p)
        st = read_bytes(r, old, &op.old, err);
    if (st == AH_OK && op.old && op.old->len == 0)
        st = damaged(err, "a text to replace");
    if (st == AH_OK && !ah_fs_change_redo(r->fs->mem, c, &op, 1))
        st = ah_err_nomem(err);
    ah_text_unref(op.with);
    ah_text_unref(op.old);
    return st;
}

static ah_status read_ops(restaging *r, ah_slice json, ah_fs_change *c, ah_err *err)
{
    ah_json_reader it = ah_json_read(json);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    if (!json.p)
        return AH_OK;
    if (t.kind != AH_JSON_ARRAY)
        return damaged(err, "`ops`");
    for (t = ah_json_next(&it); st == AH_OK && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&it))
        st = c->n_ops < AH_FS_MAX_OPS ? read_op(r, ah_json_skip(&it, t), c, err)
                                      : damaged(err, "`ops`");
    return st;
}

/* Sets c->was to the present entry below if it is the recorded one; else to one that is equal to
 * none. */
static ah_status read_was(restaging *r, ah_slice json, ah_fs_change *c, ah_err *err)
{
    ah_slice kind = ah_json_member(json, "kind"), hash = ah_json_member(json, "hash");
    ah_fs_kind k = AH_FS_ABSENT;
    ah_fs_mode mode;
    ah_status st = AH_OK;
    mark now;

    while (kind.p && k <= AH_FS_OTHER && !ah_json_string_is(kind, ah_fs_kind_name(k)))
        k++;
    if (!kind.p || k > AH_FS_OTHER || !read_mode(ah_json_member(json, "mode"), &mode))
        return damaged(err, "`was`");
    c->was = (ah_fs_info){.kind = k, .modified_ms = AH_FS_NO_TIME};
    memset(&c->was.version, 0xff, sizeof c->was.version);
    if (k == AH_FS_FILE && hash.p &&
        (st = look(r->fs->below, ah_text_slice(c->path), &now, err)) == AH_OK &&
        now.info.kind == k && is_marked(&now, hash))
        c->was = now.info;
    c->was.mode = mode;
    if (k == AH_FS_ABSENT)
        c->was.version = (ah_fs_version){0};
    return st;
}

/* Only folders have entries, and a list has each path once, in order. */
static bool fits_list(const restaging *r, ah_slice path, ah_fs_act act)
{
    const ah_fs_changes *list = &r->list;
    ah_slice folder = ah_fs_parent(path);

    if (list->n && ah_slice_cmp(ah_text_slice(list->item[list->n - 1].path), path) >= 0)
        return false;
    for (size_t i = list->n; folder.n && i-- > 0;)
        if (ah_slice_eq(ah_text_slice(list->item[i].path), folder))
            return act == AH_FS_REMOVE || list->item[i].act == AH_FS_MAKE_FOLDER;
    return true;
}

static ah_status read_path(restaging *r, const members *m, ah_fs_act *act, ah_fs_path *out,
                           ah_err *err)
{
    ah_status st;

    *act = AH_FS_PUT;
    while (m->act.p && *act <= AH_FS_REMOVE && !ah_json_string_is(m->act, acts[*act]))
        ++*act;
    ah_buf_reset(&r->text, 0);
    if (!m->act.p || *act > AH_FS_REMOVE)
        return damaged(err, "`act`");
    if (!m->path.p || !ah_json_string(m->path, &r->text))
        return damaged(err, "`path`");
    if (!ah_buf_ok(&r->text))
        return ah_buf_error(&r->text, "a path", err);
    st = r->fs->below ? ah_fs_path_writable(r->fs, ah_buf_slice(&r->text), out, err)
                      : ah_fs_path_check(r->fs, ah_buf_slice(&r->text), out, err);
    if (st != AH_OK)
        return st;
    if (!ah_fs_path_slice(out).n || !ah_slice_eq(ah_fs_path_slice(out), ah_buf_slice(&r->text)) ||
        !fits_list(r, ah_fs_path_slice(out), *act))
        return damaged(err, "`path`");
    return AH_OK;
}

static ah_status read_change(restaging *r, ah_slice json, ah_err *err)
{
    members m = {0};
    const ah_json_slot want[] = {{"act", &m.act},         {"path", &m.path}, {"was", &m.was},
                                 {"pinned", &m.pinned},   {"anew", &m.anew}, {"mode", &m.mode},
                                 {"content", &m.content}, {"ops", &m.ops}};
    ah_fs_change *c;
    ah_fs_path path;
    ah_fs_act act;
    ah_status st;

    if (!ah_json_members(json, want, sizeof want / sizeof *want))
        return damaged(err, "a change");
    if ((st = read_path(r, &m, &act, &path, err)) != AH_OK)
        return st;
    if (!(c = ah_fs_changes_add(&r->list, ah_fs_path_slice(&path), act)))
        return ah_err_nomem(err);
    c->pinned = is_true(m.pinned);
    c->anew = is_true(m.anew);
    if (!read_mode(m.mode, &c->mode))
        return damaged(err, "`mode`");
    st = r->fs->below ? read_was(r, m.was, c, err) : AH_OK;
    if (st == AH_OK && act == AH_FS_PUT)
        st = read_bytes(r, m.content, &c->content, err);
    if (st == AH_OK && act == AH_FS_PUT && c->content->len > r->fs->o.max_file)
        st = damaged(err, "a content");
    return st == AH_OK && act == AH_FS_PUT ? read_ops(r, m.ops, c, err) : st;
}

static ah_status read_changes(ah_fs *fs, ah_slice list, ah_err *err)
{
    restaging r = {.fs = fs, .list.mem = fs->mem};
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    ah_status st = t.kind == AH_JSON_ARRAY ? AH_OK : damaged(err, "`changes`");

    ah_buf_init(&r.text, fs->mem, list.n + 1);
    t = ah_json_next(&it);
    for (; st == AH_OK && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&it))
        st = read_change(&r, ah_json_skip(&it, t), err);
    ah_buf_clear(&r.text);
    if (st == AH_OK)
        st = ah_fs_change_now(fs, &r.list, err);
    else
        ah_fs_changes_clear(&r.list);
    if (st == AH_TOOL_VALIDATION) /* a refusal of the file system, whose text says why */
        err->status = st = AH_CONFLICT;
    return st;
}

ah_status ah_fs_restage(ah_fs *overlay, ah_slice list, ah_err *err)
{
    if (!stands_alone(overlay))
        return ah_err_set(err, AH_CONFLICT,
                          "the files of a call cannot be put back into an overlay of the script");
    if (((ah_fs_tree *)overlay)->n)
        return ah_err_set(err, AH_CONFLICT, "the call has changed files already");
    return read_changes(overlay, list, err);
}

/* -- the contents of memory ----------------------------------------------------------------- */

/* True if each entry is in a folder of the tree. */
static bool is_whole(const ah_fs_tree *t)
{
    for (size_t i = 0; i < t->n; i++) {
        ah_slice folder = ah_fs_parent(ah_text_slice(t->node[i]->path));
        const ah_fs_change *in = folder.n ? ah_fs_tree_find(t, folder) : NULL;

        if (folder.n && (!in || in->act != AH_FS_MAKE_FOLDER))
            return false;
    }
    return true;
}

ah_status ah_fs_take(ah_fs *fs, ah_slice list, ah_err *err)
{
    ah_status st = read_changes(fs, list, err);

    if (st == AH_STORE || (st == AH_OK && !is_whole((const ah_fs_tree *)fs)))
        return ah_err_set(err, AH_STORE, "its list of files is damaged");
    return st;
}

/* -- before and after ----------------------------------------------------------------------------
 */

/* Returns the root as records have it, in `room` if it is not UTF-8; .n 0: not known. */
static ah_slice root_of(const ah_fs *fs, ah_buf *room)
{
    ah_slice root = ah_text_slice(fs->folder[1] ? fs->folder[1] : fs->folder[0]);

    if (!root.p || ah_utf8_valid(root))
        return root;
    ah_utf8_repair(root, room);
    return ah_buf_ok(room) ? ah_buf_slice(room) : (ah_slice){NULL, 0};
}

static void add_bytes(ah_buf *object, const char *name, ah_slice bytes)
{
    ah_json_add_name(object, name);
    put_bytes(object, bytes);
}

/* Returns the change if its content is to be kept, because what the call staged does not have it;
 * NULL: it is not. */
static const ah_fs_change *keep_after(const ah_fs_tree *t, const ah_fs_change *c, bool whole)
{
    const ah_fs_change *staged = ah_fs_tree_find(t, ah_text_slice(c->path));
    bool other = whole || !staged || staged->content != c->content; /* edits that were repeated */

    return c->act == AH_FS_PUT && other && c->content->len <= MAX_BEFORE ? c : NULL;
}

/* Appends { mode, content, large, after, after_mode } for the kept part of the record. after: the
 * change whose content is kept; NULL: none. */
static void keep_due(const ah_fs_change *after, const mark *was, ah_buf *content, ah_buf *kept)
{
    bool whole = ah_buf_ok(content) && kept->len + content->len <= MAX_KEPT;

    ah_buf_char(kept, '{');
    if (was->info.mode.known)
        ah_json_add_int(kept, "mode", was->info.mode.bits);
    if (was->info.kind == AH_FS_FILE && !whole)
        ah_json_add(kept, "large", ah_slice_of("true"));
    else if (was->info.kind == AH_FS_FILE)
        add_bytes(kept, "content", ah_buf_slice(content));
    if (after && kept->len + after->content->len <= MAX_KEPT) {
        add_bytes(kept, "after", ah_text_slice(after->content));
        if (after->mode.known && !(was->info.mode.known && after->mode.bits == was->info.mode.bits))
            ah_json_add_int(kept, "after_mode", after->mode.bits);
    }
    ah_buf_char(kept, '}');
}

static void put_before(const mark *now, ah_status st, ah_buf *out)
{
    if (st == AH_NOMEM)
        out->status = AH_NOMEM;
    if (st == AH_OK)
        put_mark(out, "before", now->info.kind, now->hash);
    else
        ah_buf_str(out, ",\"before\":\"unreadable\"");
}

static void put_after(const ah_fs_change *c, ah_buf *out)
{
    char hash[HEX];

    if (c->act == AH_FS_PUT)
        hash_text(c->content, hash);
    put_mark(out, "after",
             c->act == AH_FS_PUT           ? AH_FS_FILE
             : c->act == AH_FS_MAKE_FOLDER ? AH_FS_FOLDER
                                           : AH_FS_ABSENT,
             hash);
}

static void put_due(const ah_fs_tree *t, ah_slice root, const ah_fs_change *c, bool whole,
                    ah_buf *out, ah_buf *kept)
{
    ah_slice path = ah_text_slice(c->path);
    ah_err ignored;
    ah_buf content;
    ah_status st;
    mark now = {0};

    ah_buf_init(&content, out->mem, MAX_BEFORE);
    ah_buf_str(out, "{\"root\":");
    ah_json_put_string(out, root);
    ah_buf_str(out, ",\"path\":");
    ah_json_put_string(out, path);
    st = ah_fs_look(t->fs.below, path, &now.info, now.hash, &content, &ignored);
    put_before(&now, st, out);
    put_after(c, out);
    ah_buf_char(out, '}');
    if (content.status == AH_NOMEM)
        kept->status = AH_NOMEM;
    if (st != AH_OK)
        now.info = (ah_fs_info){0};
    keep_due(keep_after(t, c, whole), &now, &content, kept);
    ah_buf_clear(&content);
}

void ah_fs_print_due(ah_fs *overlay, bool whole, ah_buf *out, ah_buf *kept)
{
    const ah_fs_tree *t = (const ah_fs_tree *)overlay;
    ah_slice root;
    ah_buf room;

    if (!t->due.n)
        return;
    ah_buf_init(&room, overlay->mem, 4 * AH_FS_MAX_PATH);
    root = root_of(overlay->below, &room);
    if (!root.p)
        out->status = AH_NOMEM;
    for (size_t i = 0; root.p && i < t->due.n; i++) {
        ah_buf_str(out, i ? "," : "");
        ah_buf_str(kept, i ? "," : "");
        put_due(t, root, &t->due.item[i], whole, out, kept);
    }
    ah_buf_clear(&room);
}

static ah_status damaged_due(ah_err *err)
{
    return ah_err_set(err, AH_STORE,
                      "the record `settled` of a call is damaged: its files are no list of "
                      "{ root, path, before, after }");
}

typedef struct counts {
    size_t before, after; /* entries that differ before and after, and are so */
    bool other;
} counts;

static ah_status check_due(ah_fs *fs, ah_slice path, ah_slice before, ah_slice after, counts *n,
                           ah_fs_outcome *out, ah_err *err)
{
    bool is_before, is_after;
    ah_fs_path p;
    mark now;
    ah_status st = ah_fs_path_check(fs, path, &p, err);

    if (st == AH_TOOL_VALIDATION)
        return damaged_due(err);
    if (st == AH_OK)
        st = look(fs, ah_fs_path_slice(&p), &now, err);
    if (st != AH_OK)
        return st;
    out->n++;
    is_before = is_marked(&now, before);
    is_after = is_marked(&now, after);
    n->before += is_before && !is_after;
    n->after += is_after && !is_before;
    n->other = n->other || (!is_before && !is_after);
    if (!is_after && !out->path.n)
        out->path = p;
    return AH_OK;
}

static ah_status read_due(ah_fs *fs, ah_slice json, ah_buf *text, counts *n, ah_fs_outcome *out,
                          ah_err *err)
{
    ah_slice root, path, before, after;
    const ah_json_slot want[] = {
        {"root", &root}, {"path", &path}, {"before", &before}, {"after", &after}};
    size_t at;
    bool ours;
    ah_buf room;

    if (!ah_json_members(json, want, 4) || !root.p || !path.p)
        return damaged_due(err);
    ah_buf_reset(text, 0);
    if (!ah_json_string(root, text) || !ah_buf_ok(text))
        return ah_buf_ok(text) ? damaged_due(err) : ah_buf_error(text, "a path", err);
    at = text->len;
    ah_buf_init(&room, fs->mem, 4 * AH_FS_MAX_PATH);
    ours = ah_slice_eq(ah_buf_slice(text), root_of(fs, &room));
    ah_buf_clear(&room);
    if (!ours)
        return AH_OK;
    if (!ah_json_string(path, text) || !ah_buf_ok(text))
        return ah_buf_ok(text) ? damaged_due(err) : ah_buf_error(text, "a path", err);
    return check_due(fs, (ah_slice){text->data + at, text->len - at}, before, after, n, out, err);
}

ah_status ah_fs_settled(ah_fs *fs, ah_slice files, ah_fs_outcome *out, ah_err *err)
{
    ah_json_reader it = ah_json_read(files);
    ah_json_token t = ah_json_next(&it);
    ah_status st = !files.p || t.kind == AH_JSON_ARRAY ? AH_OK : damaged_due(err);
    counts n = {0};
    ah_buf text;

    *out = (ah_fs_outcome){.fate = AH_FS_MIXED};
    ah_buf_init(&text, fs->mem, files.n + 1);
    t = ah_json_next(&it);
    for (; files.p && st == AH_OK && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&it))
        st = read_due(fs, ah_json_skip(&it, t), &text, &n, out, err);
    ah_buf_clear(&text);
    if (!n.other && !n.before)
        out->fate = AH_FS_APPLIED;
    else if (!n.other && !n.after)
        out->fate = AH_FS_NOT_APPLIED;
    return st;
}

void ah_fs_say_fate(const ah_fs_outcome *o, ah_buf *out)
{
    if (o->fate == AH_FS_NOT_APPLIED)
        ah_buf_str(out, "The files of this call were not changed: the program ended before they "
                        "were in place.");
    if (o->fate != AH_FS_MIXED)
        return;
    ah_buf_str(out, "It is not known whether the files of this call were changed: the program "
                    "ended, and ");
    if (o->path.n)
        ah_buf_fmt(out, "'%.*s' is neither as before nor as intended",
                   AH_FMT(ah_fs_path_slice(&o->path)));
    else
        ah_buf_str(out, "not all of their folders are open now");
    ah_buf_str(out, ": read the files again.");
}
