/* Slices and states of entities: changes, whole lists, and their text. */
#include "journal/fold_parts.h"

/* -- slices ---------------------------------------------------------------------------------- */

static ah_slice slice_name(const void *owner, size_t at)
{
    return ah_text_slice(((const ah_fold *)owner)->slice[at].name);
}

/* The fold may have moved since the index was made. */
static ah_index *slices_of(ah_fold *f)
{
    f->slices.mem = f->mem;
    f->slices.name = slice_name;
    f->slices.owner = f;
    return &f->slices;
}

/* Takes name. */
static ah_fold_slice *add_slice(ah_fold *f, ah_text *name)
{
    ah_fold_slice *s = ah_grow(f->mem, f->slice, &f->cap_slices, f->n_slices + 1, sizeof *s);

    if (s)
        f->slice = s;
    if (!s || !ah_index_reserve(slices_of(f), 1, f->n_slices)) {
        ah_text_unref(name);
        return NULL;
    }
    s += f->n_slices++;
    *s = (ah_fold_slice){.name = name, .list = {.mem = f->mem}};
    ah_index_put(slices_of(f), ah_text_slice(name), f->n_slices - 1);
    return s;
}

/* Returns the slice of this name (with quotes). *out NULL: there is none, and none is added. */
static ah_status find_slice(ah_fold *f, ah_slice key, bool add, ah_fold_slice **out, ah_err *err)
{
    ah_text *name = NULL;
    ah_status st = ah_member_text(f->mem, key, &name, err);
    uint32_t at;

    if (st != AH_OK)
        return st;
    at = ah_index_find(slices_of(f), ah_text_slice(name));
    *out = at == AH_INDEX_NONE ? NULL : &f->slice[at];
    if (*out || !add)
        ah_text_unref(name);
    else if (!(*out = add_slice(f, name)))
        return ah_err_nomem(err);
    return AH_OK;
}

static ah_status append_all(ah_fold *f, ah_list *list, ah_slice values, ah_err *err)
{
    ah_items it = ah_items_of(values);
    bool ok = true;

    while (ok && ah_items_next(&it)) {
        ah_text *value = ah_text_new(f->mem, it.value);

        ok = value && ah_list_append(list, value);
        ah_text_unref(value);
    }
    return ok ? AH_OK : ah_err_nomem(err);
}

static void keep_oldest(ah_list *list, size_t keep)
{
    ah_cell *c = list->head;

    while (c && c->n > keep)
        c = c->below;
    ah_list_set(list, ah_cell_ref(c));
}

static ah_status change_slice(ah_fold *f, ah_slice key, ah_slice change, bool look, ah_err *err)
{
    static const ah_member members[] = {{"keep", AH_MEMBER_COUNT, true},
                                        {"add", AH_MEMBER_LIST, true},
                                        {NULL, AH_MEMBER_ANY, false}};
    enum { KEEP, ADD, N };
    ah_fold_slice *s = NULL;
    ah_slice v[N];
    ah_status st = ah_members_read(change, members, v, err);
    size_t n;

    if (st == AH_OK)
        st = find_slice(f, key, !look, &s, err);
    if (st != AH_OK)
        return st;
    n = s ? ah_list_length(s->list.head) : 0;
    if (ah_member_count(v[KEEP]) > (int64_t)n)
        return ah_err_set(err, AH_STORE, "a slice of %zu values cannot keep %lld", n,
                          (long long)ah_member_count(v[KEEP]));
    if (look)
        return AH_OK;
    keep_oldest(&s->list, (size_t)ah_member_count(v[KEEP]));
    return append_all(f, &s->list, v[ADD], err);
}

ah_status ah_fold_whole_slices(ah_fold *f, ah_slice slices, ah_err *err)
{
    ah_items it = ah_items_of(slices);
    ah_fold_slice *s;
    ah_status st = AH_OK;

    while (st == AH_OK && ah_items_next(&it)) {
        if (ah_json_kind_of(it.value) != AH_JSON_ARRAY)
            return ah_err_set(err, AH_STORE, "a slice must be a list");
        st = find_slice(f, it.key, true, &s, err);
        if (st == AH_OK)
            st = append_all(f, &s->list, it.value, err);
    }
    return st;
}

/* -- states of entities ------------------------------------------------------------------------ */

static ah_slice state_name(const void *owner, size_t at)
{
    return ah_text_slice(((const ah_fold *)owner)->state[at].key);
}

static ah_index *states_of(ah_fold *f)
{
    f->states.mem = f->mem;
    f->states.name = state_name;
    f->states.owner = f;
    return &f->states;
}

static void clear_one(ah_fold_state *s)
{
    ah_text_unref(s->class_name);
    ah_text_unref(s->id);
    ah_text_unref(s->state);
    ah_text_unref(s->key);
}

/* Both names as JSON, so that no two entities share a key. */
static ah_status make_key(const ah_fold *f, const ah_fold_state *s, ah_text **out, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, f->mem, AH_STORE_MAX_RECORD);
    ah_json_put_string(&b, ah_text_slice(s->class_name));
    ah_json_put_string(&b, ah_text_slice(s->id));
    st = ah_text_from_buf(&b, "the name of an entity", out, err);
    ah_buf_clear(&b);
    return st;
}

/* Puts the state in place of the one before; takes what it owns. */
static ah_status put_state(ah_fold *f, ah_fold_state *new, ah_err *err)
{
    uint32_t at = ah_index_find(states_of(f), ah_text_slice(new->key));
    ah_fold_state *s;

    if (at != AH_INDEX_NONE) {
        ah_text_set(&f->state[at].state, ah_text_ref(new->state));
        clear_one(new);
        return AH_OK;
    }
    if ((s = ah_grow(f->mem, f->state, &f->cap_states, f->n_states + 1, sizeof *s)))
        f->state = s;
    if (!s || !ah_index_reserve(states_of(f), 1, f->n_states)) {
        clear_one(new);
        return ah_err_nomem(err);
    }
    f->state[f->n_states++] = *new;
    ah_index_put(states_of(f), ah_text_slice(new->key), f->n_states - 1);
    return AH_OK;
}

static ah_status change_state(ah_fold *f, ah_slice item, bool look, ah_err *err)
{
    static const ah_member members[] = {{"class", AH_MEMBER_STRING, true},
                                        {"id", AH_MEMBER_STRING, true},
                                        {"state", AH_MEMBER_ANY, false},
                                        {"find", AH_MEMBER_BOOLEAN, false},
                                        {NULL, AH_MEMBER_ANY, false}};
    enum { CLASS, ID, STATE, FIND, N };
    ah_fold_state new = {0};
    ah_slice v[N];
    ah_status st = ah_members_read(item, members, v, err);

    if (st != AH_OK || look)
        return st;
    st = ah_member_text(f->mem, v[CLASS], &new.class_name, err);
    if (st == AH_OK)
        st = ah_member_text(f->mem, v[ID], &new.id, err);
    if (st == AH_OK)
        st = make_key(f, &new, &new.key, err);
    if (st == AH_OK && v[STATE].p && !(new.state = ah_text_new(f->mem, v[STATE])))
        st = ah_err_nomem(err);
    if (st == AH_OK)
        return put_state(f, &new, err);
    clear_one(&new);
    return st;
}

/* -- both ------------------------------------------------------------------------------------ */

ah_status ah_fold_change(ah_fold *f, ah_slice slices, ah_slice entities, bool look, ah_err *err)
{
    ah_items it = ah_items_of(slices);
    ah_status st = AH_OK;

    while (st == AH_OK && ah_items_next(&it))
        st = change_slice(f, it.key, it.value, look, err);
    it = ah_items_of(entities);
    while (st == AH_OK && ah_items_next(&it))
        st = change_state(f, it.value, look, err);
    return st;
}

ah_status ah_fold_session(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_status st = ah_fold_at_rest(f, err);

    (void)r;
    return st == AH_OK
               ? ah_fold_change(f, v[AH_AT_SESSION_slices], v[AH_AT_SESSION_entities], false, err)
               : st;
}

void ah_fold_clear_state(ah_fold *f)
{
    for (size_t i = 0; i < f->n_slices; i++) {
        ah_text_unref(f->slice[i].name);
        ah_list_set(&f->slice[i].list, NULL);
    }
    for (size_t i = 0; i < f->n_states; i++)
        clear_one(&f->state[i]);
    ah_free(f->mem, f->slice);
    ah_free(f->mem, f->state);
    ah_index_clear(&f->slices);
    ah_index_clear(&f->states);
    f->slice = NULL;
    f->state = NULL;
    f->n_slices = f->cap_slices = f->n_states = f->cap_states = 0;
}

/* -- text ------------------------------------------------------------------------------------ */

void ah_fold_print_slices(const ah_fold *f, ah_buf *out)
{
    bool some = false;

    ah_buf_char(out, '{');
    for (size_t i = 0; i < f->n_slices; i++) {
        if (!f->slice[i].list.head)
            continue;
        if (some)
            ah_buf_char(out, ',');
        ah_json_put_string(out, ah_text_slice(f->slice[i].name));
        ah_buf_char(out, ':');
        ah_list_print(f->mem, f->slice[i].list.head, out);
        some = true;
    }
    ah_buf_char(out, '}');
}

void ah_fold_print_session(const ah_fold *f, ah_buf *out)
{
    ah_buf_str(out, "{\"agenthost_session\":1,\"slices\":");
    ah_fold_print_slices(f, out);
    ah_buf_char(out, '}');
}

void ah_fold_print_states(const ah_fold *f, ah_buf *out)
{
    bool some = false;

    ah_buf_char(out, '[');
    for (size_t i = 0; i < f->n_states; i++) {
        if (!f->state[i].state)
            continue;
        ah_buf_str(out, some ? ",{\"class\":" : "{\"class\":");
        ah_json_put_string(out, ah_text_slice(f->state[i].class_name));
        ah_buf_str(out, ",\"id\":");
        ah_json_put_string(out, ah_text_slice(f->state[i].id));
        ah_buf_str(out, ",\"state\":");
        ah_buf_put(out, ah_text_slice(f->state[i].state));
        ah_buf_char(out, '}');
        some = true;
    }
    ah_buf_char(out, ']');
}
