/* Keepers for the specs: a host with simulated clocks, a store in memory whose answers can fail, be
 * lost, be late or come from another thread, and runs that only note what
 * is recorded. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "host/driver.h"
#include "host/open_store.h"
#include "io/stores.h"
#include "support/ahtest.h"

static const char BENCH[] = "ahtest.keeper";

enum { RUNS = 16, KEEPERS = 64, TOLD = 4096, LOGGED = 4096 };

/* -- runs ------------------------------------------------------------------------------------ */

typedef struct told {
    int run, call, status;
    uint32_t id;
    char message[160];
} told;

static char runs[RUNS], calls[RUNS]; /* their addresses are runs and calls */
static told heard[TOLD];
static size_t n_heard;
static void (*on_told)(void *ud);
static void *on_told_ud;

static bool is_ours(const void *p)
{
    return (uintptr_t)p >= (uintptr_t)runs && (uintptr_t)p < (uintptr_t)(runs + RUNS);
}

void __real_ah_run_recorded(ah_run *run, ah_call *call, uint32_t id, const ah_err *err);
void __wrap_ah_run_recorded(ah_run *run, ah_call *call, uint32_t id, const ah_err *err);
void __wrap_ah_run_recorded(ah_run *run, ah_call *call, uint32_t id, const ah_err *err)
{
    told *t = &heard[n_heard % TOLD];

    if (!is_ours(run)) {
        __real_ah_run_recorded(run, call, id, err);
        return;
    }
    n_heard++;
    *t = (told){.run = (int)((char *)(void *)run - runs),
                .call = call ? (int)((char *)(void *)call - calls) : -1,
                .status = err->status,
                .id = id};
    ah_print(t->message, sizeof t->message, "%s", err->message);
    if (on_told)
        on_told(on_told_ud);
}

/* -- a store with faults --------------------------------------------------------------------- */

typedef struct late {
    ah_store_append mine, *outer;
    struct late *next;
    bool over;
    ah_err err;
} late;

typedef struct logged {
    char stream[32];
    int64_t after;
    size_t n, taken;
    bool sync, with; /* with: of the same append as the one before */
} logged;

/* Decorates another engine. */
typedef struct faulty {
    ah_store store;
    ah_store *inner;
    late *first, **last;
    bool delay, go, threaded;
    int64_t fail, lose; /* number of the append, from now; 0: none */
    logged log[LOGGED];
    size_t n;
    pthread_t thread;
    bool started;
} faulty;

#define FAULTY(s)    ((faulty *)(void *)(s))
#define INNER(s, fn) FAULTY(s)->inner->vt->fn

static void on_carried_out(ah_store_append *a, const ah_err *err)
{
    late *l = (late *)(void *)a;

    l->over = true;
    if (l->err.status == AH_OK)
        l->err = *err;
}

static void *wake_later(void *ud)
{
    const struct timespec t = {.tv_nsec = 2000000};
    faulty *f = ud;

    nanosleep(&t, NULL);
    f->store.wake(f->store.wake_ud);
    return NULL;
}

static void join_thread(faulty *f)
{
    if (f->started)
        pthread_join(f->thread, NULL);
    f->started = false;
}

static void note(faulty *f, const ah_store_append *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const ah_store_batch *b = &a->batch[i];
        logged *l = &f->log[f->n++ % LOGGED];

        *l = (logged){
            .after = b->after, .n = b->n, .taken = b->n_taken, .sync = a->sync, .with = i > 0};
        ah_print(l->stream, sizeof l->stream, "%.*s", AH_FMT(b->stream));
    }
}

static void append(ah_store *s, ah_store_append *a)
{
    faulty *f = FAULTY(s);
    late *l = calloc(1, sizeof *l);

    note(f, a);
    l->outer = a;
    l->mine = (ah_store_append){.batch = a->batch, .n = a->n, .done = on_carried_out};
    *f->last = l;
    f->last = &l->next;
    if (f->fail && --f->fail == 0) {
        ah_err_set(&l->err, AH_STORE, "the disk is full");
        l->over = true;
    } else {
        if (f->lose && --f->lose == 0)
            ah_err_set(&l->err, AH_STORE, "the connection broke");
        f->inner->vt->append(f->inner, &l->mine);
    }
    if (f->threaded) {
        join_thread(f);
        f->started = pthread_create(&f->thread, NULL, wake_later, f) == 0;
    } else if (!f->delay) {
        s->wake(s->wake_ud);
    }
}

static void poll_late(ah_store *s)
{
    faulty *f = FAULTY(s);

    f->inner->vt->poll(f->inner);
    while (f->first && f->first->over && (!f->delay || f->go)) {
        late *l = f->first;

        f->first = l->next;
        if (!f->first)
            f->last = &f->first;
        l->outer->done(l->outer, &l->err);
        free(l);
    }
    f->go = false;
}

static void wait_late(ah_store *s)
{
    FAULTY(s)->go = true;
}

static ah_status hold(ah_store *s, ah_slice stream, bool take, int64_t *fence, ah_err *err)
{
    return INNER(s, hold)(FAULTY(s)->inner, stream, take, fence, err);
}

static void release(ah_store *s, ah_slice stream)
{
    INNER(s, release)(FAULTY(s)->inner, stream);
}

static ah_status read_all(ah_store *s, ah_slice stream, int64_t from, ah_store_record_fn fn,
                          void *ud, ah_err *err)
{
    return INNER(s, read)(FAULTY(s)->inner, stream, from, fn, ud, err);
}

static ah_status find_last(ah_store *s, ah_slice stream, ah_slice kind, int64_t *number,
                           ah_err *err)
{
    return INNER(s, find_last)(FAULTY(s)->inner, stream, kind, number, err);
}

static ah_status list(ah_store *s, ah_slice prefix, bool labelled, ah_store_stream_fn fn, void *ud,
                      ah_err *err)
{
    return INNER(s, list)(FAULTY(s)->inner, prefix, labelled, fn, ud, err);
}

static ah_status label(ah_store *s, ah_slice stream, ah_slice text, ah_err *err)
{
    return INNER(s, label)(FAULTY(s)->inner, stream, text, err);
}

static ah_status post(ah_store *s, ah_slice stream, const ah_store_message *m, ah_err *err)
{
    return INNER(s, post)(FAULTY(s)->inner, stream, m, err);
}

static ah_status inbox(ah_store *s, ah_slice stream, ah_store_message_fn fn, void *ud, ah_err *err)
{
    return INNER(s, inbox)(FAULTY(s)->inner, stream, fn, ud, err);
}

static bool news(ah_store *s)
{
    return INNER(s, news)(FAULTY(s)->inner);
}

static void close_faulty(ah_store *s)
{
    faulty *f = FAULTY(s);

    join_thread(f);
    f->go = true;
    poll_late(s);
    f->inner->vt->close(f->inner);
    free(f);
}

static const ah_store_vt faulty_vt = {.append = append,
                                      .poll = poll_late,
                                      .wait = wait_late,
                                      .hold = hold,
                                      .release = release,
                                      .read = read_all,
                                      .find_last = find_last,
                                      .list = list,
                                      .label = label,
                                      .post = post,
                                      .inbox = inbox,
                                      .news = news,
                                      .close = close_faulty};

/* -- the bench ------------------------------------------------------------------------------- */

typedef struct bench {
    ah_mem mem;
    size_t live, starve; /* starve: number of the allocation that fails, from now */
    int64_t wall, clock;
    ah_host *host;
    ah_open_store *store;
    ah_keeper *keeper[KEEPERS + 1];
    ah_fold fold[KEEPERS + 1];
    faulty *faulty;
    ah_store_watcher watcher;
    int64_t seen;
    int close; /* the keeper to be closed by the next flush that is completed; 0: none */
} bench;

/* Counts the bytes that are in use, the headers of this allocator left out. */
static void *counted(void *ud, void *ptr, size_t size)
{
    bench *b = ud;
    size_t *block = ptr ? (size_t *)ptr - 2 : NULL, old = block ? *block : 0;

    if (size && b->starve && --b->starve == 0)
        return NULL;
    b->live += size - old;
    if (!size) {
        free(block);
        return NULL;
    }
    block = realloc(block, size + 2 * sizeof *block);
    *block = size;
    return block + 2;
}

static int64_t wall_of(void *ud)
{
    return ((bench *)ud)->wall;
}

static int64_t clock_of(void *ud)
{
    return ((bench *)ud)->clock;
}

static int fail(lua_State *L, const ah_err *err)
{
    lua_pushnil(L);
    lua_pushinteger(L, err->status);
    lua_pushstring(L, err->message);
    return 3;
}

static int result(lua_State *L, ah_status st, const ah_err *err)
{
    if (st != AH_OK)
        return fail(L, err);
    lua_pushboolean(L, true);
    return 1;
}

static bench *of(lua_State *L)
{
    return luaL_checkudata(L, 1, BENCH);
}

static ah_slice text_at(lua_State *L, int at)
{
    ah_slice s = {NULL, 0};

    if (!lua_isnoneornil(L, at))
        s.p = luaL_checklstring(L, at, &s.n);
    return s;
}

static ah_keeper *keeper_at(lua_State *L, int at)
{
    lua_Integer i = luaL_checkinteger(L, at);
    ah_keeper *k = i > 0 && i <= KEEPERS ? of(L)->keeper[i] : NULL;

    if (!k)
        luaL_error(L, "keeper %d is not open", (int)i);
    return k;
}

static void close_at(bench *b, int i)
{
    ah_keeper_close(b->keeper[i]);
    if (b->keeper[i])
        ah_fold_clear(&b->fold[i]);
    b->keeper[i] = NULL;
}

static void close_when_told(void *ud)
{
    bench *b = ud;

    if (b->close)
        close_at(b, b->close);
}

static void on_news(ah_store_watcher *w)
{
    bench *b = (bench *)(void *)((char *)w - offsetof(bench, watcher));

    b->seen++;
}

static int free_bench(lua_State *L)
{
    bench *b = of(L);

    if (b->host) {
        for (int i = 1; i <= KEEPERS; i++)
            close_at(b, i);
        ah_open_store_unwatch(&b->watcher);
        ah_open_store_unref(b->store);
        ah_host_free(b->host);
    }
    b->host = NULL;
    on_told = NULL;
    lua_pushinteger(L, (lua_Integer)b->live);
    return 1;
}

static ah_status new_faulty(bench *b, bool threaded, ah_store_sync sync, ah_err *err)
{
    faulty *f = calloc(1, sizeof *f);

    f->store.vt = &faulty_vt;
    f->last = &f->first;
    f->threaded = threaded;
    b->faulty = f;
    if (ah_store_memory_new(&b->mem, NULL, NULL, &f->inner, err) != AH_OK) {
        free(f);
        return err->status;
    }
    return ah_open_store_with(b->host, &f->store, sync, &b->store, err);
}

/* keeper(sync, plain, threaded): a bench; plain: the engine in memory without the decorator, or the
 * path of SQLite's file */
static int new_bench(lua_State *L)
{
    static const char *const names[] = {"process", "effects", "full", NULL};
    ah_store_sync sync = (ah_store_sync)luaL_checkoption(L, 1, "process", names);
    bool plain = lua_toboolean(L, 2), threaded = lua_toboolean(L, 3);
    ah_store_options options = {.sync = sync, .create = true};
    bench *b = lua_newuserdatauv(L, sizeof *b, 0);
    ah_config cfg = {.clock = clock_of, .wall = wall_of, .clock_ud = b};
    ah_status st;
    ah_err err;

    if (lua_type(L, 2) == LUA_TSTRING)
        options.path = text_at(L, 2);
    *b = (bench){.mem = {counted, b}, .wall = 1000, .watcher = {.fn = on_news}};
    luaL_setmetatable(L, BENCH);
    st = ah_host_new(&b->mem, &cfg, &b->host, &err);
    if (st == AH_OK)
        st = plain ? ah_open_store_new(b->host, &options, &b->store, &err)
                   : new_faulty(b, threaded, sync, &err);
    if (st != AH_OK)
        return luaL_error(L, "%s", err.message);
    n_heard = 0;
    on_told = close_when_told;
    on_told_ud = b;
    return 1;
}

/* open(stream, take, opened, kind): number of the keeper, and of the last record */
static int open_keeper(lua_State *L)
{
    bench *b = of(L);
    const ah_stream_name stream = {.name = text_at(L, 2),
                                   .kind = (ah_stream_kind)luaL_optinteger(L, 5, 0),
                                   .opened = text_at(L, 4)};
    int i = 1;
    ah_err err;

    while (b->keeper[i])
        i++;
    if (ah_keeper_open(b->store, &stream, lua_toboolean(L, 3), &b->fold[i], &b->keeper[i], &err) !=
        AH_OK) {
        b->keeper[i] = NULL;
        return fail(L, &err);
    }
    lua_pushinteger(L, i);
    lua_pushinteger(L, b->fold[i].last);
    return 2;
}

/* keepers are freed with their folds; drop_fold(k) frees the fold before */
static int drop_fold(lua_State *L)
{
    bench *b = of(L);
    lua_Integer i = luaL_checkinteger(L, 2);

    keeper_at(L, 2);
    ah_fold_clear(&b->fold[i]);
    if (ah_fold_init(&b->fold[i], &ah_mem_libc, NULL) != AH_OK)
        return luaL_error(L, "out of memory");
    return 0;
}

static int close_keeper(lua_State *L)
{
    keeper_at(L, 2);
    close_at(of(L), (int)luaL_checkinteger(L, 2));
    return 0;
}

/* bind(k, with) */
static int bind(lua_State *L)
{
    ah_keeper_bind(keeper_at(L, 2), keeper_at(L, 3));
    return 0;
}

static int close_on_told(lua_State *L)
{
    of(L)->close = (int)luaL_checkinteger(L, 2);
    return 0;
}

/* put(k, kind, said, kept) */
static int put(lua_State *L)
{
    ah_record_sink sink = ah_keeper_sink(keeper_at(L, 2));

    sink.put(sink.ud, ah_record_kind_of(text_at(L, 3)), text_at(L, 4), text_at(L, 5));
    return 0;
}

/* checkpoint(k): puts the state in which the keeper was opened */
static int checkpoint(lua_State *L)
{
    ah_record_sink sink = ah_keeper_sink(keeper_at(L, 2));
    bench *b = of(L);
    ah_buf text;

    ah_buf_init(&text, &b->mem, 1 << 20);
    ah_fold_print_checkpoint(&b->fold[luaL_checkinteger(L, 2)], false, &text);
    if (ah_buf_ok(&text))
        sink.put(sink.ud, AH_RECORD_CHECKPOINT, ah_buf_slice(&text), (ah_slice){NULL, 0});
    ah_buf_clear(&text);
    return 0;
}

/* checkpoint_at(k): number of the checkpoint from which it was opened */
static int checkpoint_at(lua_State *L)
{
    keeper_at(L, 2);
    lua_pushinteger(L, of(L)->fold[luaL_checkinteger(L, 2)].checkpoint);
    return 1;
}

/* is_same(path): the host's open store is the one of this path */
static int is_same(lua_State *L)
{
    const ah_store_options options = {.path = text_at(L, 2)};
    ah_open_store *s = NULL;
    ah_err err;

    if (ah_open_store_new(of(L)->host, &options, &s, &err) != AH_OK)
        return fail(L, &err);
    lua_pushboolean(L, s == of(L)->store);
    ah_open_store_unref(s);
    return 1;
}

static ah_run *run_at(lua_State *L, int at)
{
    return (ah_run *)(void *)(runs + luaL_checkinteger(L, at));
}

static ah_call *call_at(lua_State *L, int at)
{
    return lua_isnoneornil(L, at) ? NULL : (ah_call *)(void *)(calls + luaL_checkinteger(L, at));
}

/* flush(k, run, call, id, effect) */
static int flush(lua_State *L)
{
    ah_record_sink sink = ah_keeper_sink(keeper_at(L, 2));

    sink.flush(sink.ud, run_at(L, 3), call_at(L, 4), (uint32_t)luaL_checkinteger(L, 5),
               lua_toboolean(L, 6));
    return 0;
}

/* forget(k, run, call) */
static int forget(lua_State *L)
{
    ah_record_sink sink = ah_keeper_sink(keeper_at(L, 2));

    sink.forget(sink.ud, run_at(L, 3), call_at(L, 4));
    return 0;
}

/* step(timeout_ms) */
static int step(lua_State *L)
{
    ah_host_step(of(L)->host, NULL, (int)luaL_optinteger(L, 2, 0));
    return 0;
}

static int settle(lua_State *L)
{
    ah_err err;

    return result(L, ah_keeper_settle(keeper_at(L, 2), &err), &err);
}

static int state(lua_State *L)
{
    ah_err err;

    return result(L, ah_keeper_state(keeper_at(L, 2), &err), &err);
}

static int take(lua_State *L)
{
    ah_err err;

    return result(L, ah_keeper_take(keeper_at(L, 2), text_at(L, 3), &err), &err);
}

static int set_label(lua_State *L)
{
    ah_err err;

    return result(L, ah_keeper_label(keeper_at(L, 2), text_at(L, 3), &err), &err);
}

static int wants(lua_State *L)
{
    lua_pushboolean(L, ah_keeper_wants_checkpoint(keeper_at(L, 2)));
    return 1;
}

/* recorded(): a line "run call id" for each flush completed since the last call, with its error */
static int list_told(lua_State *L)
{
    lua_newtable(L);
    for (size_t i = 0; i < n_heard; i++) {
        const told *t = &heard[i];

        if (t->status == AH_OK)
            lua_pushfstring(L, "%d %d %d", t->run, t->call, (int)t->id);
        else
            lua_pushfstring(L, "%d %d %d: %d %s", t->run, t->call, (int)t->id, t->status,
                            t->message);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    n_heard = 0;
    return 1;
}

/* appends(): a line "stream after+n" for each, with " sync" and " takes n"; after "with ", it is of
 * the same append as the line before */
static int list_appends(lua_State *L)
{
    faulty *f = of(L)->faulty;

    lua_newtable(L);
    for (size_t i = 0; i < f->n; i++) {
        const logged *l = &f->log[i];
        char line[96];

        ah_print(line, sizeof line, "%s%s %d+%zu%s", l->with ? "with " : "", l->stream,
                 (int)l->after, l->n, l->sync ? " sync" : "");
        if (l->taken)
            ah_print(line + strlen(line), sizeof line - strlen(line), " takes %zu", l->taken);
        lua_pushstring(L, line);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    f->n = 0;
    return 1;
}

static void set_slice(lua_State *L, const char *name, ah_slice s)
{
    if (s.p)
        lua_pushlstring(L, s.p, s.n);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, int64_t n)
{
    lua_pushinteger(L, n);
    lua_setfield(L, -2, name);
}

static ah_status push_record(void *ud, const ah_store_record *r, ah_err *err)
{
    lua_State *L = ud;

    (void)err;
    lua_newtable(L);
    set_number(L, "number", r->number);
    set_number(L, "time", r->time);
    set_slice(L, "kind", r->kind);
    set_slice(L, "said", r->said);
    set_slice(L, "kept", r->kept);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    return AH_OK;
}

static ah_store *engine_of(lua_State *L)
{
    return ah_open_store_engine(of(L)->store);
}

/* read(stream, from) */
static int read_stream(lua_State *L)
{
    ah_store *e = engine_of(L);
    ah_err err;
    ah_status st;

    lua_settop(L, 3);
    lua_newtable(L);
    st = e->vt->read(e, text_at(L, 2), luaL_optinteger(L, 3, 1), push_record, L, &err);
    return st == AH_OK ? 1 : fail(L, &err);
}

static ah_status push_message(void *ud, const ah_store_message *m, ah_err *err)
{
    lua_State *L = ud;

    (void)err;
    lua_pushfstring(L, "%s %s %s", lua_pushlstring(L, m->key.p, m->key.n),
                    lua_pushlstring(L, m->kind.p, m->kind.n),
                    lua_pushlstring(L, m->body.p, m->body.n));
    lua_rawseti(L, -5, (lua_Integer)lua_rawlen(L, -5) + 1);
    lua_pop(L, 3);
    return AH_OK;
}

static int read_inbox(lua_State *L)
{
    ah_store *e = engine_of(L);
    ah_err err;
    ah_status st;

    lua_newtable(L);
    st = e->vt->inbox(e, text_at(L, 2), push_message, L, &err);
    return st == AH_OK ? 1 : fail(L, &err);
}

static ah_status push_stream(void *ud, const ah_store_stream *s, ah_err *err)
{
    lua_State *L = ud;

    (void)err;
    lua_newtable(L);
    set_slice(L, "name", s->name);
    set_slice(L, "label", s->label);
    set_number(L, "last", s->last);
    set_number(L, "time", s->time);
    set_number(L, "messages", (int64_t)s->messages);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    return AH_OK;
}

/* list(prefix, labelled) */
static int list_streams(lua_State *L)
{
    ah_store *e = engine_of(L);
    ah_err err;
    ah_status st;

    lua_settop(L, 3);
    lua_newtable(L);
    st = e->vt->list(e, text_at(L, 2), lua_toboolean(L, 3), push_stream, L, &err);
    return st == AH_OK ? 1 : fail(L, &err);
}

/* post(stream, key, kind, body) */
static int post_message(lua_State *L)
{
    const ah_store_message m = {
        .key = text_at(L, 3), .kind = text_at(L, 4), .body = text_at(L, 5), .time = of(L)->wall};
    ah_err err;

    return result(L, ah_open_store_post(of(L)->store, text_at(L, 2), &m, &err), &err);
}

/* hold(stream, take): what another holder does */
static int hold_stream(lua_State *L)
{
    ah_store *e = engine_of(L);
    int64_t fence = 0;
    ah_err err;

    if (e->vt->hold(e, text_at(L, 2), lua_toboolean(L, 3), &fence, &err) != AH_OK)
        return fail(L, &err);
    lua_pushinteger(L, fence);
    return 1;
}

static int set_fail(lua_State *L)
{
    of(L)->faulty->fail = luaL_checkinteger(L, 2);
    return 0;
}

static int set_lose(lua_State *L)
{
    of(L)->faulty->lose = luaL_checkinteger(L, 2);
    return 0;
}

/* delay(yes): acknowledgements wait for delay(false), or for a wait */
static int set_delay(lua_State *L)
{
    faulty *f = of(L)->faulty;

    f->delay = lua_toboolean(L, 2);
    if (!f->delay)
        f->store.wake(f->store.wake_ud);
    return 0;
}

/* go(): lets the appends so far be acknowledged */
static int go(lua_State *L)
{
    faulty *f = of(L)->faulty;

    f->go = true;
    f->store.wake(f->store.wake_ud);
    return 0;
}

static int set_wall(lua_State *L)
{
    of(L)->wall = luaL_checkinteger(L, 2);
    return 0;
}

static int set_clock(lua_State *L)
{
    of(L)->clock = luaL_checkinteger(L, 2);
    return 0;
}

static int starve(lua_State *L)
{
    of(L)->starve = (size_t)luaL_checkinteger(L, 2);
    return 0;
}

static int starving(lua_State *L)
{
    lua_pushboolean(L, of(L)->starve > 0);
    return 1;
}

static int live(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)of(L)->live);
    return 1;
}

static int watch(lua_State *L)
{
    ah_open_store_watch(of(L)->store, &of(L)->watcher);
    return 0;
}

static int unwatch(lua_State *L)
{
    ah_open_store_unwatch(&of(L)->watcher);
    return 0;
}

static int seen(lua_State *L)
{
    lua_pushinteger(L, of(L)->seen);
    return 1;
}

static int idle(lua_State *L)
{
    lua_pushboolean(L, ah_host_idle(of(L)->host));
    return 1;
}

/* cost(k, turns, bytes): us of CPU for a turn of 4 records in two appends */
static int cost(lua_State *L)
{
    ah_host *host = of(L)->host;
    ah_record_sink sink = ah_keeper_sink(keeper_at(L, 2));
    lua_Integer turns = luaL_checkinteger(L, 3);
    size_t n = (size_t)luaL_checkinteger(L, 4);
    ah_slice said = {memset(lua_newuserdatauv(L, n, 0), 'x', n), n}, none = {NULL, 0};
    struct timespec from, to;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (lua_Integer i = 0; i < turns; i++) {
        sink.put(sink.ud, AH_RECORD_ANSWER, said, none);
        sink.put(sink.ud, AH_RECORD_CALL_STARTED, said, none);
        sink.flush(sink.ud, (ah_run *)(void *)runs, (ah_call *)(void *)calls, 1, true);
        ah_host_step(host, NULL, 0);
        sink.put(sink.ud, AH_RECORD_CALL_FINISHED, said, none);
        sink.put(sink.ud, AH_RECORD_TURN, said, none);
        ah_host_step(host, NULL, 0);
        n_heard = 0;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    lua_pushnumber(L,
                   ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
                       1e3 / (double)turns);
    return 1;
}

void ahtest_open_keeper(lua_State *L)
{
    static const luaL_Reg methods[] = {{"open", open_keeper},
                                       {"close", close_keeper},
                                       {"bind", bind},
                                       {"drop_fold", drop_fold},
                                       {"close_on_told", close_on_told},
                                       {"put", put},
                                       {"flush", flush},
                                       {"forget", forget},
                                       {"step", step},
                                       {"settle", settle},
                                       {"state", state},
                                       {"take", take},
                                       {"label", set_label},
                                       {"wants", wants},
                                       {"checkpoint", checkpoint},
                                       {"checkpoint_at", checkpoint_at},
                                       {"is_same", is_same},
                                       {"recorded", list_told},
                                       {"appends", list_appends},
                                       {"read", read_stream},
                                       {"inbox", read_inbox},
                                       {"list", list_streams},
                                       {"post", post_message},
                                       {"hold", hold_stream},
                                       {"fail", set_fail},
                                       {"lose", set_lose},
                                       {"delay", set_delay},
                                       {"go", go},
                                       {"wall", set_wall},
                                       {"clock", set_clock},
                                       {"starve", starve},
                                       {"starving", starving},
                                       {"live", live},
                                       {"watch", watch},
                                       {"unwatch", unwatch},
                                       {"seen", seen},
                                       {"idle", idle},
                                       {"cost", cost},
                                       {"free", free_bench},
                                       {NULL, NULL}};

    luaL_newmetatable(L, BENCH);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, free_bench);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_bench);
    lua_setfield(L, -2, "keeper");
}
