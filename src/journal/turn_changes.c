/* The fold gives slices and states at both ends. Files are collected on the way: those of the
 * machine from `settled`, whose kept part has the contents before, and contents after from what
 * the call staged; those in memory from what the call staged. */
#include "journal/turn_changes.h"

#include <stdlib.h>

#include "base/sha256.h"
#include "journal/fold_members.h"

/* -- tables ------------------------------------------------------------------------------------ */

static ah_slice key_of(const void *owner, size_t at)
{
    return ah_text_slice(((const ah_turn_table *)owner)->item[at].key);
}

/* Returns the position of the key; AH_INDEX_NONE: there is none. */
static uint32_t position_of(const ah_mem *mem, ah_turn_table *t, const ah_text *key)
{
    t->index = (ah_index){mem, key_of, t, t->index.cell, t->index.n, t->index.used};
    return ah_index_find(&t->index, ah_text_slice(key));
}

/* Returns the item of this key (taken), which is added, zero, if there is none. NULL: no memory. */
static ah_turn_change *find(const ah_mem *mem, ah_turn_table *t, ah_text *key, bool *added)
{
    ah_turn_change *item = NULL;
    uint32_t at = key ? position_of(mem, t, key) : AH_INDEX_NONE;

    *added = at == AH_INDEX_NONE;
    if (!*added) {
        ah_text_unref(key);
        return &t->item[at];
    }
    if (key && (item = ah_grow(mem, t->item, &t->cap, t->n + 1, sizeof *item)))
        t->item = item;
    if (!item || !ah_index_reserve(&t->index, 1, t->n)) {
        ah_text_unref(key);
        return NULL;
    }
    t->item[t->n] = (ah_turn_change){.key = key};
    ah_index_put(&t->index, ah_text_slice(key), t->n);
    return &t->item[t->n++];
}

static void clear_file(ah_file_state *s)
{
    ah_text_unref(s->hash);
    ah_text_unref(s->content);
    *s = (ah_file_state){0};
}

static void clear_table(const ah_mem *mem, ah_turn_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        ah_turn_change *c = &t->item[i];

        ah_text_unref(c->key);
        ah_text_unref(c->place);
        ah_text_unref(c->name);
        ah_text_unref(c->id);
        for (int end = 0; end < 2; end++) {
            clear_file(&c->file[end]);
            ah_cell_unref(mem, c->list[end]);
            ah_text_unref(c->state[end]);
        }
    }
    ah_free(mem, t->item);
    if (t->index.mem)
        ah_index_clear(&t->index);
}

/* -- slices and states --------------------------------------------------------------------------
 */

/* Takes what the fold has as one end. */
static ah_status note_end(ah_turn_changes *c, int end, ah_err *err)
{
    const ah_fold *f = &c->fold;
    ah_turn_change *item;
    bool added;

    for (size_t i = 0; i < f->n_slices; i++) {
        if (!(item = find(c->mem, &c->slices, ah_text_ref(f->slice[i].name), &added)))
            return ah_err_nomem(err);
        if (added)
            item->name = ah_text_ref(f->slice[i].name);
        item->list[end] = ah_cell_ref(f->slice[i].list.head);
    }
    for (size_t i = 0; i < f->n_states; i++) {
        if (!(item = find(c->mem, &c->entities, ah_text_ref(f->state[i].key), &added)))
            return ah_err_nomem(err);
        if (added) {
            item->name = ah_text_ref(f->state[i].class_name);
            item->id = ah_text_ref(f->state[i].id);
        }
        item->state[end] = ah_text_ref(f->state[i].state);
    }
    return AH_OK;
}

/* -- files ------------------------------------------------------------------------------------- */

/* Returns the text of a string; NULL: it is none, or without memory. */
static ah_text *text_of(const ah_mem *mem, ah_slice json, ah_err *err)
{
    ah_text *t = NULL;

    if (ah_json_kind_of(json) == AH_JSON_STRING)
        (void)ah_member_text(mem, json, &t, err);
    else
        ah_err_set(err, AH_STORE, "a file of a call has no name");
    return t;
}

/* True if it is a folder of the machine. */
static bool is_outside(const ah_text *place)
{
    return place->len && place->data[0] == '/';
}

static ah_status make_key(const ah_turn_changes *c, const ah_text *place, const ah_text *path,
                          ah_text **key, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, c->mem, AH_STORE_MAX_RECORD);
    ah_buf_put(&b, ah_text_slice(place));
    ah_buf_char(&b, '\n'); /* no path has one */
    ah_buf_put(&b, ah_text_slice(path));
    st = ah_text_from_buf(&b, "the name of a file", key, err);
    ah_buf_clear(&b);
    return st;
}

/* Returns the item of a file, with its texts. NULL: failed, with *err set. Takes both texts. */
static ah_turn_change *file_at(ah_turn_changes *c, ah_text *place, ah_text *path, bool *added,
                               ah_err *err)
{
    ah_turn_change *item = NULL;
    ah_text *key = NULL;

    if (place && path && make_key(c, place, path, &key, err) == AH_OK &&
        !(item = find(c->mem, &c->files, key, added)))
        ah_err_nomem(err);
    if (item && *added) {
        item->place = ah_text_ref(place);
        item->name = ah_text_ref(path);
    }
    ah_text_unref(place);
    ah_text_unref(path);
    return item;
}

static const char *kind_named(ah_slice json)
{
    for (ah_fs_kind k = AH_FS_FILE; k < AH_FS_OTHER; k++)
        if (ah_json_string_is(json, ah_fs_kind_name(k)))
            return ah_fs_kind_name(k);
    return ah_fs_kind_name(AH_FS_OTHER);
}

/* Reads `before` or `after` of a file: a hash, a kind, or nothing. */
static ah_status read_mark(const ah_mem *mem, ah_slice mark, ah_file_state *s, ah_err *err)
{
    if (!mark.p)
        return AH_OK;
    s->type = kind_named(mark);
    if (mark.n != AH_SHA256_HEX + 2)
        return AH_OK;
    s->type = ah_fs_kind_name(AH_FS_FILE);
    s->hash = ah_text_new(mem, ah_json_inside(mark));
    return s->hash ? AH_OK : ah_err_nomem(err);
}

/* Sets the content, if the value is one, and it has the hash of the file, or the file has none. */
static ah_status read_content(const ah_mem *mem, ah_slice json, ah_file_state *s, ah_err *err)
{
    char hash[AH_SHA256_HEX];
    ah_status st = AH_OK;
    ah_sha256 sum;
    ah_buf b;

    ah_buf_init(&b, mem, AH_STORE_MAX_RECORD);
    if (ah_fs_read_bytes(json, &b) && ah_buf_ok(&b)) {
        ah_sha256_begin(&sum);
        ah_sha256_add(&sum, ah_buf_slice(&b));
        ah_sha256_end_hex(&sum, hash);
        if (!s->hash && !(s->hash = ah_text_new(mem, (ah_slice){hash, sizeof hash})))
            st = ah_err_nomem(err);
        else if (ah_slice_eq(ah_text_slice(s->hash), (ah_slice){hash, sizeof hash}))
            st = ah_text_from_buf(&b, "the content of a file", &s->content, err);
    } else if (!ah_buf_ok(&b)) {
        st = ah_buf_error(&b, "the content of a file", err);
    }
    ah_buf_clear(&b);
    return st;
}

static ah_fs_mode mode_of(ah_slice json)
{
    ah_json_num n;

    if (!ah_json_number(json, &n) || !n.is_int || n.i < 0 || n.i > 07777)
        return (ah_fs_mode){0};
    return (ah_fs_mode){.known = true, .bits = (unsigned)n.i};
}

/* Puts both states of a file into its item, whose first state stays. Takes the states. */
static ah_status join(ah_turn_changes *c, ah_text *place, ah_text *path, ah_file_state state[2],
                      ah_err *err)
{
    bool added = false;
    ah_turn_change *item = file_at(c, place, path, &added, err);

    if (!item) {
        clear_file(&state[0]);
        clear_file(&state[1]);
        return err->status;
    }
    if (added) {
        item->file[0] = state[0];
    } else {
        clear_file(&item->file[1]);
        clear_file(&state[0]);
    }
    item->file[1] = state[1];
    return AH_OK;
}

/* Takes an item of `files` of a `settled`, with its item of the kept part. */
static ah_status add_settled(ah_turn_changes *c, ah_slice file, ah_slice kept, ah_err *err)
{
    ah_file_state state[2] = {{0}};
    ah_status st = read_mark(c->mem, ah_json_member(file, "before"), &state[0], err);
    ah_text *root, *path;

    state[0].mode = mode_of(ah_json_member(kept, "mode"));
    if (st == AH_OK)
        st = read_mark(c->mem, ah_json_member(file, "after"), &state[1], err);
    if (st == AH_OK && state[0].hash)
        st = read_content(c->mem, ah_json_member(kept, "content"), &state[0], err);
    state[1].mode = mode_of(ah_json_member(kept, "after_mode"));
    if (st == AH_OK && state[1].hash)
        st = read_content(c->mem, ah_json_member(kept, "after"), &state[1], err);
    if (st != AH_OK) {
        clear_file(&state[0]);
        clear_file(&state[1]);
        return st;
    }
    root = text_of(c->mem, ah_json_member(file, "root"), err);
    path = text_of(c->mem, ah_json_member(file, "path"), err);
    return join(c, root, path, state, err);
}

static ah_status add_all_settled(ah_turn_changes *c, ah_slice files, ah_slice kept, ah_err *err)
{
    ah_items it = ah_items_of(files), was = ah_items_of(kept);
    ah_status st = AH_OK;

    while (st == AH_OK && ah_items_next(&it)) {
        bool known = ah_items_next(&was);

        st = add_settled(c, it.value, known ? was.value : (ah_slice){NULL, 0}, err);
    }
    return st;
}

/* -- what a call staged ------------------------------------------------------------------------ */

/* A content that the call staged for a file of the machine: used if it is what was made. What was
 * staged and changed nothing, such as a folder that was there, is no change. */
static ah_status complete(ah_turn_changes *c, const ah_text *place, const ah_text *path,
                          ah_slice content, ah_err *err)
{
    ah_file_state *made;
    ah_text *key = NULL;
    ah_status st = make_key(c, place, path, &key, err);
    uint32_t at;

    if (st != AH_OK)
        return st;
    at = position_of(c->mem, &c->files, key);
    ah_text_unref(key);
    if (at == AH_INDEX_NONE)
        return AH_OK;
    made = &c->files.item[at].file[1];
    return made->hash && !made->content ? read_content(c->mem, content, made, err) : AH_OK;
}

/* A change of a file in memory. */
static ah_status add_in_memory(ah_turn_changes *c, ah_text *place, ah_text *path, ah_slice change,
                               ah_err *err)
{
    ah_slice act = ah_json_member(change, "act"), was = ah_json_member(change, "was"),
             kind = ah_json_member(was, "kind"), hash = ah_json_member(was, "hash");
    ah_file_state state[2] = {{0}};
    ah_status st = AH_OK;

    if (kind.p && !ah_json_string_is(kind, ah_fs_kind_name(AH_FS_ABSENT)))
        state[0].type = kind_named(kind);
    if (hash.p && ah_json_kind_of(hash) == AH_JSON_STRING)
        st = read_mark(c->mem, hash, &state[0], err);
    if (ah_json_string_is(act, "folder"))
        state[1].type = ah_fs_kind_name(AH_FS_FOLDER);
    else if (ah_json_string_is(act, "put"))
        state[1].type = ah_fs_kind_name(AH_FS_FILE);
    if (st == AH_OK && ah_json_string_is(act, "put"))
        st = read_content(c->mem, ah_json_member(change, "content"), &state[1], err);
    if (st == AH_OK)
        return join(c, place, path, state, err);
    ah_text_unref(place);
    ah_text_unref(path);
    clear_file(&state[0]);
    clear_file(&state[1]);
    return st;
}

static ah_status add_staged_change(ah_turn_changes *c, ah_slice name, ah_slice change, ah_err *err)
{
    ah_text *place = text_of(c->mem, name, err);
    ah_text *path = text_of(c->mem, ah_json_member(change, "path"), err);
    ah_status st;

    if (place && path && !is_outside(place))
        return add_in_memory(c, place, path, change, err);
    st = place && path ? complete(c, place, path, ah_json_member(change, "content"), err)
                       : err->status;
    ah_text_unref(place);
    ah_text_unref(path);
    return st;
}

static ah_status add_staged(ah_turn_changes *c, ah_slice staged, ah_err *err)
{
    ah_items systems = ah_items_of(ah_json_member(staged, "files"));
    ah_status st = AH_OK;

    while (st == AH_OK && ah_items_next(&systems)) {
        ah_slice name = ah_json_member(systems.value, "name");
        ah_items it = ah_items_of(ah_json_member(systems.value, "changes"));

        while (st == AH_OK && ah_items_next(&it))
            st = add_staged_change(c, name, it.value, err);
    }
    return st;
}

/* -- records ----------------------------------------------------------------------------------- */

static void forget_settled(ah_turn_changes *c)
{
    ah_text_set(&c->settled, NULL);
    ah_text_set(&c->kept, NULL);
}

/* Takes the files of a call whose changes are final. */
static ah_status add_call(ah_turn_changes *c, ah_slice settled, ah_slice kept, ah_err *err)
{
    int64_t call = ah_member_count(ah_json_member(settled, "call"));
    ah_slice result = ah_json_member(settled, "result");
    ah_status st = add_all_settled(c, ah_json_member(settled, "files"), kept, err);

    if (st != AH_OK || call < 0 || call >= (int64_t)c->fold.history.n ||
        !ah_slice_is(ah_json_member(result, "success"), "true") ||
        !c->fold.history.call[call].staged)
        return st;
    return add_staged(c, ah_text_slice(c->fold.history.call[call].staged), err);
}

/* Keeps the record until its files are in place. */
static ah_status keep_settled(ah_turn_changes *c, const ah_store_record *r, ah_err *err)
{
    forget_settled(c);
    c->settled = ah_text_new(c->mem, r->said);
    if (r->kept.p)
        c->kept = ah_text_new(c->mem, r->kept);
    return c->settled && (c->kept || !r->kept.p) ? AH_OK : ah_err_nomem(err);
}

/* The files of a `settled` count with `applied`. Those that a process found in place when it
 * settled the call once more count, too. */
static ah_status take_settled(ah_turn_changes *c, const ah_store_record *r, ah_err *err)
{
    if (!c->fold.applying)
        return add_call(c, r->said, r->kept, err);
    return keep_settled(c, r, err);
}

static ah_status end_applying(ah_turn_changes *c, bool made, ah_err *err)
{
    ah_status st = AH_OK;

    if (made && c->settled)
        st = add_call(c, ah_text_slice(c->settled), ah_text_slice(c->kept), err);
    forget_settled(c);
    return st;
}

static ah_status end_turn(ah_turn_changes *c, ah_err *err)
{
    c->turns++;
    if (c->turns == c->first - 1)
        return note_end(c, 0, err);
    return c->turns == c->last ? AH_CANCELLED : AH_OK;
}

ah_status ah_turn_changes_restoring(ah_turn_changes *c, ah_slice said, ah_slice kept, ah_err *err)
{
    return add_all_settled(c, ah_json_member(said, "files"), kept, err);
}

static ah_status end_restoring(ah_turn_changes *c, ah_err *err)
{
    ah_status st = AH_OK;

    if (c->settled)
        st = ah_turn_changes_restoring(c, ah_text_slice(c->settled), ah_text_slice(c->kept), err);
    forget_settled(c);
    return st;
}

static ah_status take(ah_turn_changes *c, const ah_store_record *r, ah_err *err)
{
    switch (ah_record_kind_of(r->kind)) {
    case AH_RECORD_SETTLED:
        return take_settled(c, r, err);
    case AH_RECORD_APPLIED:
        return end_applying(c, true, err);
    case AH_RECORD_APPLY_FAILED:
        return end_applying(c, !ah_json_member(r->said, "result").p, err);
    case AH_RECORD_RESTORING:
        return keep_settled(c, r, err);
    case AH_RECORD_RESTORED:
        return end_restoring(c, err);
    default:
        return AH_OK;
    }
}

/* True if the record belongs to what is before the changes. */
static bool is_before(const ah_turn_changes *c, const ah_store_record *r)
{
    return c->after ? r->number <= c->after : c->turns < c->first - 1;
}

/* True if the changes begin with the state after the record: that of `after`, or for turn 1 the
 * checkpoint that a fork, or a conversation from a file, begins with. */
static bool begins_after(const ah_turn_changes *c, const ah_store_record *r)
{
    if (c->after)
        return r->number == c->after;
    return c->first == 1 && r->number == 2 &&
           ah_slice_is(r->kind, ah_record_name(AH_RECORD_CHECKPOINT));
}

ah_status ah_turn_changes_add(void *changes, const ah_store_record *r, ah_err *err)
{
    ah_turn_changes *c = changes;
    ah_status st = ah_fold_add(&c->fold, r, err);

    if (st != AH_OK)
        return st;
    if (begins_after(c, r))
        return note_end(c, 0, err);
    if (!c->after && ah_slice_is(r->kind, ah_record_name(AH_RECORD_TURN)))
        return end_turn(c, err);
    return is_before(c, r) ? AH_OK : take(c, r, err);
}

ah_status ah_turn_changes_init(ah_turn_changes *c, const ah_mem *mem, int64_t first, int64_t last,
                               ah_err *err)
{
    *c = (ah_turn_changes){.mem = mem, .first = first, .last = last};
    return ah_fold_init(&c->fold, mem, err);
}

ah_status ah_turn_changes_init_after(ah_turn_changes *c, const ah_mem *mem, int64_t number,
                                     ah_err *err)
{
    ah_status st = ah_turn_changes_init(c, mem, 0, 0, err);

    c->after = number;
    return st;
}

void ah_turn_changes_clear(ah_turn_changes *c)
{
    clear_table(c->mem, &c->files);
    clear_table(c->mem, &c->slices);
    clear_table(c->mem, &c->entities);
    forget_settled(c);
    ah_fold_clear(&c->fold);
}

/* -- the list -----------------------------------------------------------------------------------
 */

bool ah_turn_change_is_none(const ah_turn_change *file)
{
    const ah_file_state *a = &file->file[0], *b = &file->file[1];

    if (!a->type || !b->type)
        return a->type == b->type;
    if (strcmp(a->type, b->type) != 0)
        return false;
    return !a->hash || !b->hash ? a->hash == b->hash
                                : ah_slice_eq(ah_text_slice(a->hash), ah_text_slice(b->hash));
}

bool ah_turn_change_is_outside(const ah_turn_change *file)
{
    return is_outside(file->place);
}

static int compare(const void *a, const void *b)
{
    const ah_turn_change *x = a, *y = b;

    return ah_slice_cmp(ah_text_slice(x->key), ah_text_slice(y->key));
}

static void sort(ah_turn_table *t)
{
    if (t->n)
        qsort(t->item, t->n, sizeof *t->item, compare);
}

static ah_slice slice_of(const ah_text *t)
{
    return t ? ah_text_slice(t) : (ah_slice){NULL, 0};
}

ah_file_side ah_turn_change_side(const ah_file_state *s)
{
    return (ah_file_side){
        .type = s->type, .hash = slice_of(s->hash), .content = slice_of(s->content)};
}

static void put_file(const ah_turn_change *f, ah_change_list *l)
{
    bool outside = ah_turn_change_is_outside(f);

    ah_change_list_file(
        l, &(ah_changed_file){.root = outside ? slice_of(f->place) : (ah_slice){NULL, 0},
                              .filesystem = outside ? (ah_slice){NULL, 0} : slice_of(f->place),
                              .path = slice_of(f->name),
                              .before = ah_turn_change_side(&f->file[0]),
                              .after = ah_turn_change_side(&f->file[1])});
}

static ah_status check_turns(const ah_turn_changes *c, ah_err *err)
{
    if (c->turns >= c->last)
        return AH_OK;
    return ah_err_set(err, AH_USAGE, "there is no turn %lld: the conversation has %lld so far",
                      (long long)c->last, (long long)c->turns);
}

ah_status ah_turn_changes_end(ah_turn_changes *c, ah_err *err)
{
    ah_status st = note_end(c, 1, err);

    sort(&c->files);
    sort(&c->slices);
    sort(&c->entities);
    return st;
}

ah_status ah_turn_changes_print(ah_turn_changes *c, ah_buf *out, ah_err *err)
{
    ah_change_list l;
    ah_status st = check_turns(c, err);

    if (st == AH_OK)
        st = ah_turn_changes_end(c, err);
    if (st != AH_OK)
        return st;
    ah_change_list_begin(&l, c->mem, out);
    for (size_t i = 0; i < c->files.n; i++)
        put_file(&c->files.item[i], &l);
    for (size_t i = 0; i < c->slices.n; i++)
        ah_change_list_slice(&l, slice_of(c->slices.item[i].name), c->slices.item[i].list[0],
                             c->slices.item[i].list[1]);
    for (size_t i = 0; i < c->entities.n; i++)
        ah_change_list_entity(
            &l, slice_of(c->entities.item[i].name), slice_of(c->entities.item[i].id),
            slice_of(c->entities.item[i].state[0]), slice_of(c->entities.item[i].state[1]));
    ah_change_list_end(&l);
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "the list of changes", err);
}

void ah_turn_changes_print_back(const ah_turn_changes *c, ah_change_list *l)
{
    for (size_t i = 0; i < c->slices.n; i++)
        ah_change_list_slice(l, slice_of(c->slices.item[i].name), c->slices.item[i].list[1],
                             c->slices.item[i].list[0]);
    for (size_t i = 0; i < c->entities.n; i++)
        ah_change_list_entity(
            l, slice_of(c->entities.item[i].name), slice_of(c->entities.item[i].id),
            slice_of(c->entities.item[i].state[1]), slice_of(c->entities.item[i].state[0]));
}
