/* The recorder of a named session compares its slices; that of a budget compares amounts, and that
 * of files the serials of entries. All are recorders of a conversation without entries, so that
 * checkpoints and the fold are the same. */
#include "lua/lua_named.h"

#include "lua/lua_error.h"
#include "lua/lua_now.h"
#include "lua/lua_store.h"
#include "state/fs_kept.h"
#include "state/fs_staged.h"

enum { MAX_RECORD = 1 << 30, MAX_NAME = AH_STORE_MAX_STREAM - 8 /* "session/" */ };

struct ah_lua_named {
    ah_lua_object object; /* first member */
    ah_lua *lua;
    ah_lua_named *next, **link; /* of the host */
    ah_stream_kind kind;
    ah_text *stream;     /* its name: kind, '/', name */
    ah_session *session; /* borrowed, as the other two; one of them is not NULL */
    ah_budget *budget;
    ah_fs *files;
    ah_keeper *keeper; /* NULL: it has no store yet; the rest is empty then */
    ah_recorder recorder;
    ah_text *opened; /* the first record */
    ah_text *kept;   /* slices as a snapshot, for types that come later; NULL: none */
    ah_text *spent;  /* the last amounts that were recorded; NULL: none */
    ah_keeper *by;   /* while it is noted: of the conversation that has changed it; NULL: none */
    ah_fs_kept held; /* the files that are recorded */
};

static const ah_slice nothing = {NULL, 0};

/* -- life ------------------------------------------------------------------------------------ */

static void drop(ah_lua_object *o)
{
    ah_lua_named_close((ah_lua_named *)(void *)o);
}

/* Called when the budget is freed. */
static void budget_freed(void *ud)
{
    ah_lua_named_close(ud);
}

static void check_name(lua_State *L, const char *what, ah_slice name)
{
    bool printable = ah_utf8_valid(name);

    if (!name.n || name.n > MAX_NAME)
        ah_lua_raise(L, AH_USAGE, "%s: name must be a text of 1 to %d bytes, found %d", what,
                     MAX_NAME, (int)name.n);
    for (size_t i = 0; i < name.n; i++)
        printable = printable && (unsigned char)name.p[i] >= ' ' && name.p[i] != 0x7f;
    if (!printable || memchr(name.p, '/', name.n))
        ah_lua_raise(L, AH_USAGE, "%s: name must be printable text without '/'", what);
}

static ah_text *stream_name(const ah_lua *h, ah_stream_kind kind, ah_slice name)
{
    ah_text *text;
    ah_buf b;

    ah_buf_init(&b, &h->mem, AH_STORE_MAX_STREAM);
    ah_buf_fmt(&b, "%s/%.*s", ah_stream_kind_name(kind), AH_FMT(name));
    text = ah_buf_ok(&b) ? ah_text_new(&h->mem, ah_buf_slice(&b)) : NULL;
    ah_buf_clear(&b);
    return text;
}

static ah_lua_named *new_named(lua_State *L, ah_stream_kind kind, const char *what, ah_slice name)
{
    ah_lua *h = ah_lua_of(L);
    ah_lua_named *n;

    check_name(L, what, name);
    if (!(n = ah_alloc(&h->mem, sizeof *n)))
        ah_lua_raise_nomem(L);
    n->kind = kind;
    if (!(n->stream = stream_name(h, n->kind, name))) {
        ah_free(&h->mem, n);
        ah_lua_raise_nomem(L);
    }
    n->lua = h;
    n->next = h->named;
    n->link = &h->named;
    if (n->next)
        n->next->link = &n->next;
    h->named = n;
    n->object.drop = drop;
    ah_lua_hold(h, &n->object);
    return n;
}

ah_lua_named *ah_lua_named_new(lua_State *L, const char *what, ah_slice name, ah_session *s,
                               ah_budget *b)
{
    ah_lua_named *n = new_named(L, s ? AH_STREAM_SESSION : AH_STREAM_BUDGET, what, name);

    n->session = s;
    n->budget = b;
    if (b) {
        b->freed = budget_freed;
        b->freed_ud = n;
    }
    return n;
}

ah_lua_named *ah_lua_named_new_files(lua_State *L, ah_slice name, ah_fs *fs)
{
    ah_lua_named *n = new_named(L, AH_STREAM_FILES, "ah.filesystem", name);

    n->files = fs;
    return n;
}

static void note(ah_lua_named *n);

/* Lists the session for the records of calls that change it without being its agent's. */
static ah_status add_name(const ah_lua_named *n, ah_err *err)
{
    ah_lua *h = n->lua;
    ah_staged_name *list = ah_grow(&h->mem, h->name, &h->cap_names, h->names.n + 1, sizeof *list);

    if (!list)
        return ah_err_nomem(err);
    h->name = list;
    h->names.item = list;
    list[h->names.n++] = (ah_staged_name){AH_STAGED_SESSION, ah_text_slice(n->stream), n->session};
    return AH_OK;
}

static void remove_name(const ah_lua_named *n)
{
    ah_lua *h = n->lua;
    size_t i = 0;

    while (i < h->names.n && (!n->session || h->name[i].object != n->session))
        i++;
    if (i < h->names.n)
        memmove(h->name + i, h->name + i + 1, (--h->names.n - i) * sizeof *h->name);
}

static void detach(ah_lua_named *n)
{
    remove_name(n);
    ah_keeper_close(n->keeper);
    n->keeper = NULL;
    ah_recorder_clear(&n->recorder);
    ah_text_set(&n->opened, NULL);
    ah_text_set(&n->kept, NULL);
    ah_text_set(&n->spent, NULL);
    ah_fs_kept_clear(&n->held, &n->lua->mem);
}

void ah_lua_named_close(ah_lua_named *n)
{
    if (!n)
        return;
    if (n->keeper)
        note(n);
    detach(n);
    if (n->budget)
        n->budget->freed = NULL;
    ah_lua_let_go(&n->object);
    *n->link = n->next;
    if (n->next)
        n->next->link = n->link;
    ah_text_unref(n->stream);
    ah_free(&n->lua->mem, n);
}

ah_lua_named *ah_lua_named_session(const ah_lua *h, const ah_session *s)
{
    ah_lua_named *n = h->named;

    while (n && n->session != s)
        n = n->next;
    return s ? n : NULL;
}

ah_lua_named *ah_lua_named_budget(const ah_lua *h, const ah_budget *b)
{
    ah_lua_named *n = h->named;

    while (n && n->budget != b)
        n = n->next;
    return b ? n : NULL;
}

ah_lua_named *ah_lua_named_files(const ah_lua *h, const ah_fs *fs)
{
    ah_lua_named *n = h->named;

    while (n && n->files != fs)
        n = n->next;
    return fs ? n : NULL;
}

/* -- slices from the stream ------------------------------------------------------------------ */

/* Sets the slice to the values that were kept for it. */
static ah_status fill(const ah_lua_named *n, int slice, ah_err *err)
{
    ah_slice slices = ah_json_member(ah_text_slice(n->kept), "slices");
    ah_slice values = ah_json_member(slices, ah_session_name(n->session, slice).p);
    ah_list list = {.mem = &n->lua->mem};
    ah_status st;

    if (!values.p)
        return AH_OK;
    st = ah_session_read_values(n->session, slice, values, &list, err);
    if (st == AH_OK)
        return ah_session_set(n->session, NULL, slice, list.head, err);
    ah_list_set(&list, NULL);
    return st;
}

/* The present state of the session is what is recorded. */
static ah_status bind(ah_lua_named *n, ah_err *err)
{
    ah_transcript *t = ah_transcript_new(&n->lua->mem);
    ah_status st;

    if (!t)
        return ah_err_nomem(err);
    st = ah_recorder_bind(&n->recorder, t, n->session, true, err);
    ah_transcript_unref(t);
    return st;
}

ah_status ah_lua_named_fill(lua_State *L, const ah_session *s, int slice, ah_err *err)
{
    ah_lua_named *n = ah_lua_named_session(ah_lua_of(L), s);
    ah_status st;

    if (!n || !n->kept)
        return AH_OK;
    note(n);
    st = fill(n, slice, err);
    return st == AH_OK ? bind(n, err) : st;
}

/* -- opening ----------------------------------------------------------------------------------- */

static ah_status check_empty(const ah_lua_named *n, ah_err *err)
{
    for (int i = 0; n->session && i < ah_session_types(n->session); i++)
        if (ah_session_has_slice(n->session, i) && ah_session_head(n->session, NULL, i))
            return ah_err_set(err, AH_USAGE,
                              "\"%s\" has values before it has its store: give ah.session the "
                              "field store, or change it after an agent has it",
                              n->stream->data);
    return AH_OK;
}

static ah_status take_session(ah_lua_named *n, const ah_fold *f, ah_err *err)
{
    ah_status st;
    ah_buf b;

    if (!f->n_slices)
        return AH_OK;
    ah_buf_init(&b, &n->lua->mem, MAX_RECORD);
    ah_fold_print_session(f, &b);
    st = ah_text_from_buf(&b, "session", &n->kept, err);
    ah_buf_clear(&b);
    for (int i = 0; st == AH_OK && i < ah_session_types(n->session); i++)
        if (ah_session_has_slice(n->session, i))
            st = fill(n, i, err);
    return st;
}

static void put_whole(void *ud, ah_buf *out)
{
    const ah_lua_named *n = ud;

    ah_buf_str(out, ",\"opened\":");
    ah_buf_put(out, ah_text_slice(n->opened));
    ah_buf_str(out, ",\"asks\":0,\"entities\":[]");
    if (n->spent) {
        ah_buf_str(out, ",\"spent\":");
        ah_buf_put(out, ah_text_slice(n->spent));
    }
}

/* `changed` of the recorder of a session: appends, to members of a record, the conversation that
 * has made it, and the number of that one's last record. */
static void put_by(void *ud, ah_buf *out)
{
    const ah_lua_named *n = ud;

    if (!n->by || !out->len)
        return;
    ah_json_add_string(out, "by", ah_keeper_stream(n->by));
    ah_json_add_int(out, "at", ah_keeper_number(n->by));
}

/* Returns the amounts of the budget as a record; NULL: no memory. */
static ah_text *print_spent(const ah_lua_named *n)
{
    ah_text *spent = NULL;
    ah_err ignored;
    ah_buf b;

    ah_buf_init(&b, &n->lua->mem, MAX_RECORD);
    ah_budget_print_spent(n->budget, &b);
    (void)ah_text_from_buf(&b, "the amounts", &spent, &ignored);
    ah_buf_clear(&b);
    return spent;
}

static void put_contents(void *ud, ah_buf *out)
{
    const ah_lua_named *n = ud;

    ah_fs_print_all(n->files, out);
}

/* Sets the files to those of the stream, if it has any record of them. */
static ah_status take_files(ah_lua_named *n, const ah_fold *f, ah_err *err)
{
    ah_status st = AH_OK;
    ah_buf list, ignored;

    n->recorder.contents = put_contents;
    if (!f->files)
        return AH_OK;
    ah_fs_clear_memory(n->files);
    ah_buf_init(&list, &n->lua->mem, MAX_RECORD);
    ah_buf_init(&ignored, &n->lua->mem, MAX_RECORD);
    ah_fs_print_all(f->files, &list);
    st = ah_buf_ok(&list) ? ah_fs_take(n->files, ah_buf_slice(&list), err)
                          : ah_buf_error(&list, "the files of a store", err);
    ah_buf_reset(&list, 0);
    if (st == AH_OK)
        ah_fs_kept_note(&n->held, n->files, &ignored, &list);
    if (st == AH_OK && (!ah_buf_ok(&list) || !ah_buf_ok(&ignored)))
        st = ah_err_nomem(err);
    ah_buf_clear(&ignored);
    ah_buf_clear(&list);
    return st;
}

static ah_status take(ah_lua_named *n, ah_fold *f, ah_err *err)
{
    ah_status st = AH_OK;

    ah_recorder_init(&n->recorder, &n->lua->mem, &n->lua->host->secrets);
    n->recorder.sink = ah_keeper_sink(n->keeper);
    n->recorder.whole = put_whole;
    n->recorder.changed_ud = n;
    n->opened = ah_text_ref(f->opened);
    n->recorder.changed = put_by;
    if (n->budget && f->spent) {
        ah_budget_take_spent(n->budget, ah_text_slice(f->spent));
        if (!(n->spent = print_spent(n)))
            return ah_err_nomem(err);
    }
    if (n->files)
        st = take_files(n, f, err);
    if (n->session && (st = take_session(n, f, err)) == AH_OK)
        st = add_name(n, err);
    return st == AH_OK ? bind(n, err) : st;
}

static void put_script(lua_State *L, ah_buf *b)
{
    int top = lua_gettop(L);

    if (lua_getglobal(L, "arg") == LUA_TTABLE && lua_rawgeti(L, -1, 0) == LUA_TSTRING &&
        ah_utf8_valid(ah_slice_of(lua_tostring(L, -1)))) {
        ah_buf_str(b, "\"script\":");
        ah_json_put_string(b, ah_slice_of(lua_tostring(L, -1)));
    }
    lua_settop(L, top);
}

/* An object that holds the stream and is garbage is collected first. */
static ah_status open_keeper(lua_State *L, ah_lua_named *n, ah_open_store *store, ah_fold *f,
                             ah_err *err)
{
    ah_stream_name stream = {.name = ah_text_slice(n->stream), .kind = n->kind};
    bool take = n->lua->host->take;
    ah_status st = AH_OK;
    ah_buf b;

    ah_buf_init(&b, &n->lua->mem, MAX_RECORD);
    put_script(L, &b);
    if (!ah_buf_ok(&b))
        st = ah_err_nomem(err);
    stream.opened = ah_buf_slice(&b);
    if (st == AH_OK)
        st = ah_keeper_open(store, &stream, take, f, &n->keeper, err);
    if (st == AH_CONFLICT) {
        lua_gc(L, LUA_GCCOLLECT);
        st = ah_keeper_open(store, &stream, take, f, &n->keeper, err);
    }
    ah_buf_clear(&b);
    return st;
}

ah_status ah_lua_named_attach(lua_State *L, ah_lua_named *n, ah_open_store *store, ah_err *err)
{
    ah_status st = AH_OK;
    ah_fold f;

    if (n->keeper)
        return AH_OK;
    if ((st = check_empty(n, err)) != AH_OK)
        return st;
    if ((st = open_keeper(L, n, store, &f, err)) != AH_OK)
        return st;
    st = take(n, &f, err);
    ah_fold_clear(&f);
    if (st != AH_OK)
        detach(n);
    return st;
}

ah_status ah_lua_named_read(lua_State *L, ah_lua_named *n, int idx, ah_err *err)
{
    int top = lua_gettop(L);
    ah_open_store **held;
    ah_status st;

    idx = lua_absindex(L, idx);
    if (n->keeper || n->lua->unnamed || (ah_lua_overlay(L) && lua_isnil(L, idx)))
        return AH_OK;
    if (ah_lua_overlay(L))
        ah_lua_raise(L, AH_USAGE,
                     "a handler cannot open \"%s\" with a store, because its call may fail: open "
                     "it before the run",
                     n->stream->data);
    held = ah_lua_push_held_store(L);
    st = ah_lua_to_store(L, idx, held, err);
    if (st == AH_OK && *held)
        st = ah_lua_named_attach(L, n, *held, err);
    ah_open_store_unref(*held);
    *held = NULL;
    lua_settop(L, top);
    return st;
}

ah_status ah_lua_named_use(lua_State *L, ah_lua_named *n, ah_open_store *store, ah_err *err)
{
    ah_status st;

    if (!n)
        return AH_OK;
    if (store && ah_open_store_replays(store))
        return AH_OK;
    if (!n->keeper && store)
        return ah_lua_named_attach(L, n, store, err);
    if (n->keeper && (st = ah_keeper_state(n->keeper, err)) != AH_OK)
        return st;
    if (n->session && n->keeper && store && ah_keeper_store(n->keeper) != store)
        return ah_err_set(err, AH_USAGE,
                          "\"%s\" and the conversation are in two stores: give both the same one, "
                          "since their records are written together",
                          n->stream->data);
    lua_pushnil(L);
    st = ah_lua_named_read(L, n, -1, err);
    lua_pop(L, 1);
    return st;
}

ah_status ah_lua_named_state(const ah_lua *h, const ah_session *s, ah_err *err)
{
    return ah_lua_named_check(ah_lua_named_session(h, s), err);
}

ah_status ah_lua_named_check(const ah_lua_named *n, ah_err *err)
{
    if (!n || !n->keeper)
        return AH_OK;
    if (ah_recorder_state(&n->recorder, NULL) == AH_NOMEM)
        return ah_err_nomem(err);
    return ah_keeper_state(n->keeper, err);
}

/* -- recording --------------------------------------------------------------------------------- */

/* Records the amounts, if they are others than the last ones. */
static void note_budget(ah_lua_named *n)
{
    ah_text *spent = print_spent(n);
    ah_buf b;

    ah_buf_init(&b, &n->lua->mem, MAX_RECORD);
    if (spent)
        ah_buf_add(&b, spent->data, spent->len - 1);
    else
        b.status = AH_NOMEM;
    put_by(n, &b);
    ah_buf_char(&b, '}');
    if (!spent || !n->spent || !ah_slice_eq(ah_text_slice(spent), ah_text_slice(n->spent)))
        ah_recorder_put(&n->recorder, AH_RECORD_SPENT, &b, nothing);
    ah_text_set(&n->spent, spent);
    ah_buf_clear(&b);
}

/* Records what has changed in the files. */
static void note_files(ah_lua_named *n)
{
    ah_buf b, kept;
    size_t changed;

    if (n->files->commits == n->held.commits && n->held.entry)
        return;
    ah_buf_init(&kept, &n->lua->mem, MAX_RECORD);
    ah_buf_init(&b, &n->lua->mem, MAX_RECORD);
    ah_buf_str(&b, "{\"paths\":");
    changed = ah_fs_kept_note(&n->held, n->files, &b, &kept);
    put_by(n, &b);
    ah_buf_char(&b, '}');
    if (!ah_buf_ok(&kept))
        b.status = kept.status;
    if (changed || !ah_buf_ok(&b))
        ah_recorder_put(&n->recorder, AH_RECORD_WRITTEN, &b, ah_buf_slice(&kept));
    ah_buf_clear(&b);
    ah_buf_clear(&kept);
}

static void note(ah_lua_named *n)
{
    if (n->budget)
        note_budget(n);
    else if (n->files)
        note_files(n);
    else
        ah_recorder_note(&n->recorder);
    if (ah_keeper_wants_checkpoint(n->keeper))
        ah_recorder_checkpoint(&n->recorder, ah_text_slice(n->kept));
}

void ah_lua_named_note(const ah_lua *h, ah_keeper *by, bool with)
{
    for (ah_lua_named *n = h->named; n; n = n->next) {
        if (!n->keeper)
            continue;
        n->by = by;
        note(n);
        n->by = NULL;
        if (with)
            ah_keeper_bind(by, n->keeper);
    }
}

bool ah_lua_named_changes(const ah_lua *h, const ah_overlay *o)
{
    for (const ah_lua_named *n = h->named; n; n = n->next) {
        if (n->files && n->keeper && ah_fs_staged_changes(o, n->files))
            return true;
        for (int i = 0; n->session && n->keeper && i < ah_session_types(n->session); i++)
            if (ah_session_head(n->session, o, i) != ah_session_head(n->session, NULL, i))
                return true;
    }
    return false;
}

/* -- for the programs of the command ------------------------------------------------------------
 */

/* _unnamed(): sessions and budgets get no store from here on. */
static int set_unnamed(lua_State *L)
{
    ah_lua_of(L)->unnamed = true;
    return 0;
}

void ah_lua_open_named(lua_State *L)
{
    lua_pushcfunction(L, set_unnamed);
    lua_setfield(L, -2, "_unnamed");
}
