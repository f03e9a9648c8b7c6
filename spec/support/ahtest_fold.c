/* The fold for the specs:
 *   fold(records, options) -> state, or nil, code, message
 *       records: a list of { kind, said, kept, number, time }, texts and integers; kept may be
 *       nil, the number defaults to the place, the time to 1000 and the number. state: { transcript
 * (with its pending turn), session, states, history, asks, ended, runs, ..., checkpoint (if one may
 *       follow), sound (after all slots were settled) }. options.fail: the number of the
 *       allocation from which on all fail; options.from: how many records one number more than
 *       the place the first has; options.stream: AH_STREAM_FILES, if it is "files"
 *   build(steps) -> transcript: the same by the functions of the transcript; a step is
 *       { what = "add" | "begin" | "fill" | "stage" | "commit", json, slot }
 *   fold_cost(records) -> seconds of CPU of their fold
 *   record_kinds() -> { name = needed }
 *   record_members() -> { kind = { { name, type, needed }, ... } } */
#include <time.h>

#include "journal/fold.h"
#include "journal/fold_members.h"
#include "support/ahtest.h"

/* -- records from Lua -- */

static ah_slice text_field(lua_State *L, int row, const char *name)
{
    ah_slice s = {NULL, 0};

    if (lua_getfield(L, row, name) == LUA_TSTRING)
        s.p = lua_tolstring(L, -1, &s.n); /* stays in the table */
    lua_pop(L, 1);
    return s;
}

static int64_t int_field(lua_State *L, int row, const char *name, int64_t missing)
{
    int64_t n = lua_getfield(L, row, name) == LUA_TNIL ? missing : lua_tointeger(L, -1);

    lua_pop(L, 1);
    return n;
}

/* Returns the record of the table on top; its texts are borrowed. */
static ah_store_record row(lua_State *L, int64_t number)
{
    int top = lua_gettop(L);

    return (ah_store_record){.number = int_field(L, top, "number", number),
                             .time = int_field(L, top, "time", 1000 + number),
                             .kind = text_field(L, top, "kind"),
                             .said = text_field(L, top, "said"),
                             .kept = text_field(L, top, "kept")};
}

/* -- the state for Lua -- */

static void push_buf(lua_State *L, ah_buf *b, const char *name)
{
    if (ah_buf_ok(b))
        lua_pushlstring(L, b->data ? b->data : "", b->len);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, name);
    ah_buf_clear(b);
}

static void set_text(lua_State *L, const ah_text *t, const char *name)
{
    if (!t)
        return;
    lua_pushlstring(L, t->data, t->len);
    lua_setfield(L, -2, name);
}

static void set_int(lua_State *L, int64_t n, const char *name)
{
    lua_pushinteger(L, (lua_Integer)n);
    lua_setfield(L, -2, name);
}

static void set_flag(lua_State *L, bool is, const char *name)
{
    lua_pushboolean(L, is);
    lua_setfield(L, -2, name);
}

static void push_steps(lua_State *L, const ah_call_history *c)
{
    lua_newtable(L);
    for (size_t i = 0; i < c->n_steps; i++) {
        lua_newtable(L);
        set_text(L, c->step[i].key, "key");
        set_text(L, c->step[i].said, "said");
        set_text(L, c->step[i].kept, "kept");
        set_text(L, c->step[i].start, "start");
        set_flag(L, ah_call_history_step(c, ah_text_slice(c->step[i].key)) == &c->step[i], "found");
        lua_seti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "steps");
}

static void push_history(lua_State *L, const ah_run_history *h)
{
    ah_buf b;

    lua_newtable(L);
    set_int(L, h->run, "run");
    set_int(L, (int64_t)h->first, "first");
    set_int(L, h->started, "started");
    set_int(L, h->deadline, "deadline");
    set_int(L, (int64_t)h->lost_requests, "lost");
    set_flag(L, h->parked, "parked");
    set_flag(L, h->cancelled, "cancelled");
    ah_buf_init(&b, &ah_mem_libc, SIZE_MAX);
    ah_run_progress_print(&h->progress, &b);
    push_buf(L, &b, "progress");
    for (size_t i = 0; i < h->n; i++) {
        const ah_call_history *c = &h->call[i];

        lua_newtable(L);
        set_text(L, c->started, "started");
        set_text(L, c->arguments, "arguments");
        set_text(L, c->finished, "finished");
        set_text(L, c->staged, "staged");
        set_text(L, c->settled, "settled");
        set_text(L, c->ask, "ask");
        set_text(L, c->response, "response");
        push_steps(L, c);
        lua_seti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "history");
}

static void push_asks(lua_State *L, const ah_fold *f)
{
    lua_newtable(L);
    for (size_t i = 0; i < f->n_asks; i++) {
        lua_newtable(L);
        set_text(L, f->ask[i].id, "id");
        set_text(L, f->ask[i].ask, "ask");
        set_text(L, f->ask[i].closed, "closed");
        set_int(L, (int64_t)f->ask[i].call, "call");
        set_flag(L, ah_fold_is_open(f, &f->ask[i]), "open");
        set_flag(L, ah_fold_find_ask(f, ah_text_slice(f->ask[i].id)) == &f->ask[i], "found");
        lua_seti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "asks");
}

static void push_states(lua_State *L, const ah_fold *f)
{
    lua_newtable(L);
    for (size_t i = 0; i < f->n_states; i++) {
        lua_newtable(L);
        set_text(L, f->state[i].class_name, "class");
        set_text(L, f->state[i].id, "id");
        set_text(L, f->state[i].state, "state");
        lua_seti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "states");
}

/* Settles what is open, as the end of a run does, and checks the whole. */
static void settle(lua_State *L, const ah_fold *f)
{
    ah_err err = {0};

    for (size_t i = 0; i < f->transcript->n_slots; i++)
        ah_transcript_settle(f->transcript, i, "settled", 0);
    ah_transcript_commit(f->transcript);
    set_flag(L, ah_transcript_sound(f->transcript, &err) == AH_OK, "sound");
}

static void push_state(lua_State *L, const ah_fold *f)
{
    ah_buf b;

    lua_newtable(L);
    set_int(L, f->last, "last");
    set_int(L, f->time, "time");
    set_int(L, f->runs, "runs");
    set_int(L, f->asks, "asked");
    set_int(L, (int64_t)f->since, "since");
    set_int(L, (int64_t)f->bytes, "bytes");
    set_int(L, f->checkpoint, "at_checkpoint");
    set_int(L, (int64_t)f->ended_first, "ended_first");
    set_int(L, (int64_t)f->transcript->n_staged, "waiting");
    set_text(L, f->opened, "opened");
    set_text(L, f->version, "version");
    set_text(L, f->ended, "ended");
    push_history(L, &f->history);
    push_asks(L, f);
    push_states(L, f);
    ah_buf_init(&b, &ah_mem_libc, SIZE_MAX);
    ah_transcript_print(f->transcript, &b);
    push_buf(L, &b, "transcript");
    ah_fold_print_session(f, &b);
    push_buf(L, &b, "session");
    if (f->files) {
        ah_fs_print_all(f->files, &b);
        push_buf(L, &b, "files");
    }
    if (!f->transcript->assistant && !f->transcript->n_staged && f->opened) {
        ah_fold_print_checkpoint(f, false, &b);
        push_buf(L, &b, "checkpoint");
    }
    settle(L, f);
}

/* -- memory that ends -- */

typedef struct memory {
    lua_Integer left;   /* allocations that succeed; -1: all */
    lua_Integer blocks; /* not freed */
} memory;

static void *allocate(void *ud, void *ptr, size_t size)
{
    memory *m = ud;
    void *made;

    if (size == 0) {
        m->blocks -= ptr != NULL;
        return ah_mem_libc.fn(ah_mem_libc.ud, ptr, 0);
    }
    if (m->left == 0)
        return NULL;
    m->left -= m->left > 0;
    made = ah_mem_libc.fn(ah_mem_libc.ud, ptr, size);
    m->blocks += made && !ptr;
    return made;
}

static int fold(lua_State *L)
{
    memory m = {.left = -1};
    ah_mem mem = {.fn = allocate, .ud = &m};
    ah_err err = {0};
    ah_fold f, moved;
    ah_status st;
    int64_t from = 0;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (lua_istable(L, 2)) {
        m.left = (lua_Integer)int_field(L, 2, "fail", -1);
        from = int_field(L, 2, "from", 0);
    }
    st = ah_fold_init(&f, &mem, &err);
    if (lua_istable(L, 2) && text_field(L, 2, "stream").p)
        f.stream = AH_STREAM_FILES;
    for (lua_Integer i = 1; st == AH_OK && lua_geti(L, 1, i) == LUA_TTABLE; i++) {
        ah_store_record r = row(L, i + from);

        st = ah_fold_add(&f, &r, &err);
        lua_settop(L, 2);
    }
    lua_settop(L, 2);
    moved = f; /* a fold may be moved */
    memset(&f, 0, sizeof f);
    m.left = -1;
    if (st == AH_OK) {
        push_state(L, &moved);
    } else {
        lua_pushnil(L);
        lua_pushinteger(L, st);
        lua_pushstring(L, err.message);
    }
    ah_fold_clear(&moved);
    if (m.blocks != 0)
        return luaL_error(L, "%d blocks are not freed", (int)m.blocks);
    return lua_gettop(L) - 2;
}

/* -- the same by the transcript -- */

static ah_entry_kind kind_of(ah_slice json)
{
    int k = 0;

    while (k < AH_ENTRY_KINDS &&
           !ah_json_string_is(ah_json_member(json, "type"), ah_entry_name((ah_entry_kind)k)))
        k++;
    return (ah_entry_kind)k;
}

static ah_status build_one(lua_State *L, ah_transcript *t, ah_err *err)
{
    int row = lua_gettop(L);
    ah_slice what = text_field(L, row, "what"), json = text_field(L, row, "json");
    ah_text *text = json.p ? ah_text_new(t->mem, json) : NULL;

    if (ah_slice_is(what, "add"))
        return ah_transcript_add(t, kind_of(json), text, err);
    if (ah_slice_is(what, "stage"))
        return ah_transcript_stage(t, kind_of(json), text, err);
    if (ah_slice_is(what, "begin"))
        return ah_transcript_begin(t, text, err);
    if (ah_slice_is(what, "fill"))
        ah_transcript_fill(t, (size_t)int_field(L, row, "slot", 0), text);
    else
        ah_transcript_commit(t);
    return AH_OK;
}

static int build(lua_State *L)
{
    ah_transcript *t = ah_transcript_new(&ah_mem_libc);
    ah_status st = AH_OK;
    ah_err err = {0};
    ah_buf b;

    for (lua_Integer i = 1; st == AH_OK && lua_geti(L, 1, i) == LUA_TTABLE; i++) {
        st = build_one(L, t, &err);
        lua_settop(L, 1);
    }
    ah_buf_init(&b, &ah_mem_libc, SIZE_MAX);
    ah_transcript_print(t, &b);
    lua_pushlstring(L, b.data ? b.data : "", ah_buf_ok(&b) ? b.len : 0);
    ah_buf_clear(&b);
    ah_transcript_unref(t);
    return st == AH_OK ? 1 : luaL_error(L, "%s", err.message);
}

/* -- the cost -- */

/* Returns the seconds that the thread has worked. */
static double worked(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fold_cost(lua_State *L)
{
    size_t n = (size_t)lua_rawlen(L, 1);
    ah_store_record *r = lua_newuserdatauv(L, (n + 1) * sizeof *r, 0);
    ah_err err = {0};
    ah_status st;
    double from;
    ah_fold f;

    for (size_t i = 0; i < n; i++) {
        lua_geti(L, 1, (lua_Integer)i + 1);
        r[i] = row(L, (int64_t)i + 1);
        lua_pop(L, 1);
    }
    from = worked();
    st = ah_fold_init(&f, &ah_mem_libc, &err);
    for (size_t i = 0; st == AH_OK && i < n; i++)
        st = ah_fold_add(&f, &r[i], &err);
    lua_pushnumber(L, worked() - from);
    ah_fold_clear(&f);
    return st == AH_OK ? 1 : luaL_error(L, "%s", err.message);
}

/* -- tables -- */

static int record_kinds(lua_State *L)
{
    lua_newtable(L);
    for (int k = 0; k < AH_RECORD_KINDS; k++) {
        lua_pushboolean(L, ah_record_needed((ah_record_kind)k));
        lua_setfield(L, -2, ah_record_name((ah_record_kind)k));
    }
    return 1;
}

static int record_members(lua_State *L)
{
    lua_newtable(L);
    for (int k = 0; k < AH_RECORD_KINDS; k++) {
        const ah_member *m = ah_members_of((ah_record_kind)k);

        lua_newtable(L);
        for (lua_Integer i = 1; m->name; i++, m++) {
            lua_newtable(L);
            lua_pushstring(L, m->name);
            lua_setfield(L, -2, "name");
            lua_pushstring(L, ah_member_type_name(m->type));
            lua_setfield(L, -2, "type");
            set_flag(L, m->needed, "needed");
            lua_seti(L, -2, i);
        }
        lua_setfield(L, -2, ah_record_name((ah_record_kind)k));
    }
    return 1;
}

void ahtest_open_fold(lua_State *L)
{
    static const luaL_Reg functions[] = {{"fold", fold},
                                         {"build", build},
                                         {"fold_cost", fold_cost},
                                         {"record_kinds", record_kinds},
                                         {"record_members", record_members},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
