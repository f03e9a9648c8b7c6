/* Types of a session: schemas, slices, and the reducers of each type of event, built-in ones
 * included. */
#include "state/session_state.h"

enum { MAX_VALUE = 64 << 20 }; /* bytes of one value with its defaults */

static void clear_kind(const ah_mem *mem, kind *k)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->rule[i].ud.vt)
            k->rule[i].ud.vt->release(k->rule[i].ud.p);
    ah_free(mem, k->rule);
    ah_text_unref(k->name);
    ah_schema_unref(k->schema);
}

catalog *ah_catalog_new(const ah_mem *mem)
{
    catalog *c = ah_alloc(mem, sizeof *c);

    if (c)
        *c = (catalog){.mem = mem, .refs = 1};
    return c;
}

void ah_catalog_unref(catalog *c)
{
    if (!c || --c->refs > 0)
        return;
    for (size_t i = 0; i < c->n; i++)
        clear_kind(c->mem, &c->kind[i]);
    ah_free(c->mem, c->kind);
    ah_free(c->mem, c);
}

/* -- types ----------------------------------------------------------------------------- */

int ah_session_find(const ah_session *s, ah_slice name)
{
    const catalog *c = s->types;

    for (size_t i = 0; i < c->n; i++)
        if (ah_slice_eq(name, ah_text_slice(c->kind[i].name)))
            return (int)i;
    return -1;
}

int ah_session_types(const ah_session *s)
{
    return (int)s->types->n;
}

ah_slice ah_session_name(const ah_session *s, int id)
{
    return ah_text_slice(s->types->kind[id].name);
}

bool ah_session_has_slice(const ah_session *s, int id)
{
    return s->types->kind[id].slice;
}

bool ah_session_is_log(const ah_session *s, int id)
{
    return s->types->kind[id].policy == AH_POLICY_LOG;
}

static ah_status add_kind(catalog *c, ah_slice name, ah_schema *schema, ah_err *err)
{
    kind *grown;
    ah_text *text;

    if (c->n >= AH_MAX_TYPES)
        return ah_err_set(err, AH_USAGE, "session: more than %d types", AH_MAX_TYPES);
    if (!(grown = ah_grow(c->mem, c->kind, &c->cap, c->n + 1, sizeof *grown)))
        return ah_err_nomem(err);
    c->kind = grown;
    if (!(text = ah_text_new(c->mem, name)))
        return ah_err_nomem(err);
    c->kind[c->n++] = (kind){.name = text, .schema = schema ? ah_schema_ref(schema) : NULL};
    return AH_OK;
}

static bool same_schema(const ah_schema *a, const ah_schema *b)
{
    if (!a || !b)
        return a == b;
    return ah_slice_eq(ah_text_slice(ah_schema_text(a)), ah_text_slice(ah_schema_text(b)));
}

ah_status ah_session_type(ah_session *s, ah_slice name, ah_schema *schema, int *id, ah_err *err)
{
    ah_status st = AH_OK;

    if ((*id = ah_session_find(s, name)) < 0) {
        st = add_kind(s->types, name, schema, err);
        *id = (int)s->types->n - 1;
    } else if (!same_schema(schema, s->types->kind[*id].schema)) {
        st = ah_err_set(err, AH_USAGE, "session: there is another type '%.*s' in this session",
                        AH_FMT(name));
    }
    return st;
}

static ah_status refuse_value(const kind *k, const ah_faults *faults, const ah_mem *mem,
                              ah_err *err)
{
    ah_buf words;

    ah_buf_init(&words, mem, sizeof err->message);
    ah_faults_print(faults, &words);
    ah_err_set(err, AH_TOOL_VALIDATION, "%s: %.*s", k->name->data, AH_FMT(ah_buf_slice(&words)));
    ah_buf_clear(&words);
    return err->status;
}

/* Makes a new text with sorted keys, because defaults were added at the end. */
static ah_status sort_keys(const kind *k, const ah_buf *full, ah_text **out, ah_err *err)
{
    ah_buf canon;
    ah_status st;

    ah_buf_init(&canon, full->mem, MAX_VALUE);
    if ((st = ah_json_canon(full->mem, ah_buf_slice(full), &canon)) == AH_NOMEM)
        ah_err_nomem(err);
    else
        st = ah_text_from_buf(&canon, k->name->data, out, err);
    ah_buf_clear(&canon);
    return st;
}

ah_status ah_session_check(const ah_session *s, int id, ah_slice json, ah_text **out, ah_err *err)
{
    static const ah_check_options from_lua = {.extra = AH_EXTRA_FORBID, .empty_lists = true};
    const kind *k = &s->types->kind[id];
    ah_faults faults;
    ah_buf full;
    ah_status st = AH_OK;

    ah_faults_init(&faults, s->mem);
    ah_buf_init(&full, s->mem, MAX_VALUE);
    if (!k->schema)
        ah_buf_put(&full, json);
    else
        st = ah_schema_check_with(k->schema, json, &from_lua, &faults, &full);
    if (st == AH_NOMEM)
        ah_err_nomem(err);
    else if (st != AH_OK)
        ah_err_set(err, st, "%s: larger than %d bytes with its defaults", k->name->data, MAX_VALUE);
    else if (faults.n)
        st = refuse_value(k, &faults, s->mem, err);
    else if (full.len != json.n)
        st = sort_keys(k, &full, out, err);
    else
        st = ah_text_from_buf(&full, k->name->data, out, err);
    ah_buf_clear(&full);
    ah_faults_clear(&faults);
    return st;
}

/* -- reducers ---------------------------------------------------------------------------- */

ah_status ah_session_reduce(ah_session *s, int slice, int event, ah_reduce_fn fn, ah_value ud,
                            ah_err *err)
{
    kind *k = &s->types->kind[event];
    rule *grown;

    for (size_t i = 0; i < k->n; i++)
        if (k->rule[i].slice == slice) {
            if (k->rule[i].ud.vt)
                k->rule[i].ud.vt->release(k->rule[i].ud.p);
            k->rule[i] = (rule){slice, fn, ud};
            return AH_OK;
        }
    if (!(grown = ah_grow(s->mem, k->rule, &k->cap, k->n + 1, sizeof *grown)))
        return ah_err_nomem(err);
    k->rule = grown;
    k->rule[k->n++] = (rule){slice, fn, ud};
    return AH_OK;
}

static ah_status reduce_append(void *ud, ah_slice slice, const ah_session_event *e, ah_list *list,
                               ah_err *err)
{
    (void)ud;
    (void)slice;
    return !e->value || ah_list_append(list, e->value) ? AH_OK : ah_err_nomem(err);
}

static ah_status reduce_latest(void *ud, ah_slice slice, const ah_session_event *e, ah_list *list,
                               ah_err *err)
{
    if (e->value)
        ah_list_set(list, NULL);
    return reduce_append(ud, slice, e, list, err);
}

/* Returns the index of the value with an equal member; -1: none. */
static long same_member(const ah_list *list, const char *name, ah_slice member)
{
    for (const ah_cell *c = list->head; c; c = c->below)
        if (ah_slice_eq(member, ah_json_member(ah_text_slice(c->value), name)))
            return (long)c->n - 1;
    return -1;
}

static ah_status reduce_by_key(void *ud, ah_slice slice, const ah_session_event *e, ah_list *list,
                               ah_err *err)
{
    const ah_text *key = ud;
    ah_slice member =
        e->value ? ah_json_member(ah_text_slice(e->value), key->data) : (ah_slice){NULL, 0};
    long at = member.p ? same_member(list, key->data, member) : -1;

    if (at < 0)
        return reduce_append(ud, slice, e, list, err);
    return ah_list_replace(list, (size_t)at, e->value) ? AH_OK : ah_err_nomem(err);
}

static void release_key(void *p)
{
    ah_text_unref(p);
}

ah_status ah_session_reduce_by_key(ah_session *s, int slice, int event, ah_slice key, ah_err *err)
{
    static const struct ah_value_vt key_vt = {.release = release_key};
    ah_value ud = {&key_vt, ah_text_new(s->mem, key)};
    ah_status st;

    if (!ud.p)
        return ah_err_nomem(err);
    if ((st = ah_session_reduce(s, slice, event, reduce_by_key, ud, err)) != AH_OK)
        release_key(ud.p);
    return st;
}

static ah_status set_own_reducer(ah_session *s, int id, const ah_slice_options *o, ah_err *err)
{
    ah_value ud = {NULL, NULL};

    switch (o->keep) {
    case AH_KEEP_APPEND:
        return ah_session_reduce(s, id, id, reduce_append, ud, err);
    case AH_KEEP_LATEST:
        return ah_session_reduce(s, id, id, reduce_latest, ud, err);
    case AH_KEEP_BY_KEY:
        return ah_session_reduce_by_key(s, id, id, o->key, err);
    }
    return AH_OK;
}

ah_status ah_session_keep(ah_session *s, int id, const ah_slice_options *options, ah_err *err)
{
    static const ah_slice_options defaults = {0};
    kind *k = &s->types->kind[id];
    const ah_slice_options *o = options ? options : &defaults;
    ah_status st;

    if (k->slice && !options)
        return AH_OK;
    if (k->slice && o->policy != k->policy)
        return ah_err_set(err, AH_USAGE, "session: the policy of slice '%s' cannot change",
                          k->name->data);
    if ((st = set_own_reducer(s, id, o, err)) != AH_OK)
        return st;
    k->slice = true;
    k->policy = o->policy;
    return AH_OK;
}
