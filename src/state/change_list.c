/* Items are compared before they are written, so what was changed back is no change. */
#include "state/change_list.h"

#include <string.h>

#include "base/diff.h"
#include "base/json.h"

enum {
    MAX_DIFF = 64 << 10,  /* bytes of one diff */
    MAX_DIFFS = 4 << 20,  /* of all diffs of a list */
    MAX_FIELDS = 1000,    /* of an entity; a larger state is shown as a whole */
    MAX_STATE = 256 << 10 /* likewise, in bytes */
};

void ah_change_list_begin(ah_change_list *l, const ah_mem *mem, ah_buf *out)
{
    *l = (ah_change_list){.mem = mem, .out = out, .room = MAX_DIFFS};
    ah_buf_char(out, '[');
}

void ah_change_list_end(ah_change_list *l)
{
    ah_buf_char(l->out, ']');
}

static void begin_item(ah_change_list *l, const char *kind)
{
    ah_buf_fmt(l->out, "%s{\"kind\":\"%s\"", l->n++ ? "," : "", kind);
}

/* -- files ------------------------------------------------------------------------------------- */

static bool is_file(const ah_file_side *s)
{
    return s->type && strcmp(s->type, "file") == 0;
}

static bool is_same_side(const ah_file_side *a, const ah_file_side *b)
{
    if (!a->type || !b->type)
        return a->type == b->type;
    if (strcmp(a->type, b->type) != 0)
        return false;
    return !is_file(a) || (a->hash.p && b->hash.p && ah_slice_eq(a->hash, b->hash));
}

static void put_side(ah_change_list *l, const char *member, const ah_file_side *s)
{
    if (!s->type)
        return;
    ah_buf_fmt(l->out, ",\"%s\":{\"type\":\"%s\"", member, s->type);
    ah_json_add_string(l->out, "hash", s->hash);
    if (s->content.p || s->sized)
        ah_buf_fmt(l->out, ",\"size\":%llu",
                   (unsigned long long)(s->content.p ? s->content.n : s->size));
    ah_buf_char(l->out, '}');
}

static bool is_text(ah_slice s)
{
    return !s.n || (!memchr(s.p, '\0', s.n) && ah_utf8_valid(s));
}

static void put_header(ah_buf *b, const char *sign, const char *folder, const ah_file_side *s,
                       ah_slice path)
{
    if (is_file(s))
        ah_buf_fmt(b, "%s %s/%.*s\n", sign, folder, AH_FMT(path));
    else
        ah_buf_fmt(b, "%s /dev/null\n", sign);
}

/* The text of a side that is no file is empty. */
static void put_diff(ah_change_list *l, const ah_changed_file *f)
{
    ah_slice a = f->before.content, b = f->after.content;
    size_t most = l->room < MAX_DIFF ? l->room : MAX_DIFF;
    bool cut;
    ah_buf text;

    ah_buf_init(&text, l->mem, 2 * MAX_DIFF);
    put_header(&text, "---", "a", &f->before, f->path);
    put_header(&text, "+++", "b", &f->after, f->path);
    cut = ah_diff(l->mem, a, b, most, &text);
    if (ah_buf_ok(&text))
        ah_json_add_string(l->out, "diff", ah_buf_slice(&text));
    else
        l->out->status = text.status;
    l->room -= text.len < l->room ? text.len : l->room;
    if (cut)
        ah_buf_str(l->out, ",\"cut\":true");
    ah_buf_clear(&text);
}

static void describe(ah_change_list *l, const ah_changed_file *f)
{
    bool known = (!is_file(&f->before) || f->before.content.p) &&
                 (!is_file(&f->after) || f->after.content.p);

    if (!known || (!is_file(&f->before) && !is_file(&f->after)))
        return;
    if (is_text(f->before.content) && is_text(f->after.content))
        put_diff(l, f);
    else
        ah_buf_str(l->out, ",\"binary\":true");
}

void ah_change_list_file(ah_change_list *l, const ah_changed_file *f)
{
    if (is_same_side(&f->before, &f->after))
        return;
    begin_item(l, "file");
    ah_json_add_string(l->out, "path", f->path);
    ah_json_add_string(l->out, "root", f->root);
    ah_json_add_string(l->out, "filesystem", f->filesystem);
    ah_buf_fmt(l->out, ",\"op\":\"%s\"",
               !f->before.type  ? "add"
               : !f->after.type ? "remove"
                                : "change");
    put_side(l, "before", &f->before);
    put_side(l, "after", &f->after);
    describe(l, f);
    ah_buf_char(l->out, '}');
}

/* -- slices ------------------------------------------------------------------------------------ */

/* Returns the number of the oldest values that are equal in both lists. */
static size_t common(const ah_cell *a, const ah_cell *b)
{
    size_t n;

    while (a && b && a->n != b->n) {
        if (a->n > b->n)
            a = a->below;
        else
            b = b->below;
    }
    for (n = a && b ? a->n : 0; a && b && a != b; a = a->below, b = b->below)
        if (!ah_slice_eq(ah_text_slice(a->value), ah_text_slice(b->value)))
            n = a->n - 1;
    return n;
}

static void put_values(ah_change_list *l, const char *member, size_t keep, const ah_cell *head)
{
    ah_buf_fmt(l->out, ",\"%s\":[", member);
    ah_list_print_newest(l->mem, head, keep, l->out);
    ah_buf_char(l->out, ']');
}

void ah_change_list_slice(ah_change_list *l, ah_slice name, const ah_cell *before,
                          const ah_cell *after)
{
    size_t keep = common(before, after);

    if (keep == ah_list_length(before) && keep == ah_list_length(after))
        return;
    begin_item(l, "slice");
    ah_json_add_string(l->out, "name", name);
    ah_buf_fmt(l->out, ",\"kept\":%zu", keep);
    put_values(l, "removed", keep, before);
    put_values(l, "added", keep, after);
    ah_buf_char(l->out, '}');
}

/* -- entities ---------------------------------------------------------------------------------- */

/* Returns the value of a member by its key as it is written; .p NULL: there is none. */
static ah_slice value_of(ah_slice object, ah_slice key)
{
    ah_json_reader r = ah_json_read(object);
    ah_json_token t = ah_json_next(&r);
    ah_slice value;

    if (t.kind != AH_JSON_OBJECT)
        return (ah_slice){NULL, 0};
    for (t = ah_json_next(&r); t.kind == AH_JSON_KEY; t = ah_json_next(&r)) {
        bool is = ah_slice_eq(t.raw, key);

        value = ah_json_skip(&r, ah_json_next(&r));
        if (is)
            return value;
    }
    return (ah_slice){NULL, 0};
}

static size_t count_fields(ah_slice object)
{
    ah_json_reader r = ah_json_read(object);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    for (t = ah_json_next(&r); t.kind == AH_JSON_KEY; t = ah_json_next(&r), n++)
        ah_json_skip(&r, ah_json_next(&r));
    return n;
}

/* True if the state can be shown by fields. */
static bool has_fields(ah_slice state)
{
    return !state.p || (ah_json_kind_of(state) == AH_JSON_OBJECT && state.n <= MAX_STATE &&
                        count_fields(state) <= MAX_FIELDS);
}

static void put_field(ah_change_list *l, ah_slice key, ah_slice before, ah_slice after, size_t *n)
{
    ah_buf_fmt(l->out, "%s\"%.*s\":{", (*n)++ ? "," : "", AH_FMT(key));
    ah_json_add(l->out, "before", before);
    ah_json_add(l->out, "after", after);
    ah_buf_char(l->out, '}');
}

/* Puts the fields of `of` that the other state does not have, or has with another value. `added`:
 * `of` is the state after, and only fields that the other one does not have are left. */
static void put_fields(ah_change_list *l, ah_slice of, ah_slice other, bool added, size_t *n)
{
    ah_json_reader r = ah_json_read(of);
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_KEY; t = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r)), there = value_of(other, t.raw);

        if (added && !there.p)
            put_field(l, t.raw, there, value, n);
        else if (!added && !ah_slice_eq(value, there))
            put_field(l, t.raw, value, there, n);
    }
}

void ah_change_list_entity(ah_change_list *l, ah_slice class_name, ah_slice id, ah_slice before,
                           ah_slice after)
{
    size_t n = 0;

    if (ah_slice_eq(before, after))
        return;
    begin_item(l, "entity");
    ah_json_add_string(l->out, "class", class_name);
    ah_json_add_string(l->out, "id", id);
    if (!has_fields(before) || !has_fields(after)) {
        ah_json_add(l->out, "before", before);
        ah_json_add(l->out, "after", after);
    } else {
        ah_buf_str(l->out, ",\"fields\":{");
        put_fields(l, before, after, false, &n);
        put_fields(l, after, before, true, &n);
        ah_buf_char(l->out, '}');
    }
    ah_buf_char(l->out, '}');
}
