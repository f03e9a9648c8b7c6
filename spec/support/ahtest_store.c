/* ahtest: stores, one after the other of each engine. Each call that fails returns nil, the code's
 * number and the message.
 *
 *   s = store("sqlite", { path, sync = "process", create = true, force })  | nil, status, message
 *   store("memory")                 the engine in memory, if it is there
 *   store("given"), store("given threaded")   an engine of a program (ahtest_given.c)
 *   s:append(batches[, sync[, alone]]) -> ticket
 *                                   batches: { { stream, after, fence, taken = { key },
 *                                   { time, kind, said, kept }, ... }, ... }; alone: nothing else
 *                                   is about to come; without it, that holds for every second one
 *   s:wait() -> { { ticket, status, message }, ... }   those that were done, in their order
 *   s:poll() -> likewise, without a wait
 *   s:hold(stream[, take]) -> fence           s:release(stream)
 *   s:read(stream[, from[, stop_after]]) -> { { number, time, kind, said, kept }, ... }
 *   s:find_last(stream, kind) -> number
 *   s:list(prefix[, labelled]) -> { { name, label, last, time, messages }, ... }
 *   s:label(stream, text)    s:post(stream, key, kind, body, time)    s:inbox(stream) -> list
 *   s:search(words[, best[, most[, within]]]) -> { { stream, number, time, role, snippet }, ... }
 *                                   within: only of this stream
 *   s:clean()                       removes words of records that are gone from the search index
 *   s:write_index(on)               begins a transaction of the search index, or ends it
 *   s:without_fts5()                the library of this store has no FTS5 from now on
 *   s:news() -> boolean    s:woken() -> number of wake-ups    s:close()
 *
 *   store_engines() -> { name = true, ... }    those of this build
 *   store_kind(number)      the filesystem of each folder has this number (statfs); nil: its own
 *   store_fault(call, n)    the n-th call of SQLite to the system ("write", "fsync") and all later
 *                           ones fail with EIO; nil: none does
 *   store_forked(s) -> status, message    of s:hold in a forked child
 *   store_limit(bytes)      of the files of this process (RLIMIT_FSIZE); nil: none
 *   store_user(n)           the effective user of this process, which is root's
 *   cpu_us() -> microseconds of CPU time of this process, all threads */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/disk_kind.h"
#include "io/store_sqlite_index.h"
#include "io/stores.h"
#include "support/ahtest.h"
#include "support/ahtest_given.h"

#ifdef AH_WITH_SQLITE
#include <dlfcn.h>
#include <sqlite3.h>
#endif

#define STORE "ahtest.store"

/* Engines are linked if they are there. */
#pragma weak ah_store_memory_new

typedef struct box {
    ah_store *s;
    lua_State *L; /* of the current poll */
    atomic_int woken;
    ah_host *host;                 /* of an engine that is given; NULL: none */
    struct ah_sqlite_index *index; /* with a transaction; NULL: none */
    lua_Integer tickets;
} box;

/* An append with all that it refers to, in one block. */
typedef struct ticket {
    ah_store_append a;
    box *of;
    lua_Integer number;
    char *texts;
} ticket;

static int fails(lua_State *L, ah_status st, const ah_err *err)
{
    lua_pushnil(L);
    lua_pushinteger(L, st);
    lua_pushstring(L, err->message);
    return 3;
}

static int gives(lua_State *L, ah_status st, const ah_err *err)
{
    if (st != AH_OK)
        return fails(L, st, err);
    lua_pushboolean(L, 1);
    return 1;
}

static box *check_box(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, STORE);

    luaL_argcheck(L, b->s, 1, "closed");
    return b;
}

static ah_slice check_slice(lua_State *L, int idx)
{
    ah_slice s;

    s.p = luaL_optlstring(L, idx, NULL, &s.n);
    return s;
}

static void set_text(lua_State *L, const char *name, ah_slice s)
{
    if (!s.p)
        return;
    lua_pushlstring(L, s.p, s.n);
    lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, int64_t v)
{
    lua_pushinteger(L, v);
    lua_setfield(L, -2, name);
}

/* -- appends ---------------------------------------------------------------------------------- */

static void on_wake(void *ud)
{
    atomic_fetch_add(&((box *)ud)->woken, 1);
}

static void free_ticket(ticket *t)
{
    for (size_t i = 0; i < t->a.n; i++) {
        free((void *)(uintptr_t)t->a.batch[i].record);
        free((void *)(uintptr_t)t->a.batch[i].taken);
    }
    free((void *)(uintptr_t)t->a.batch);
    free(t);
}

/* Puts { ticket, status, message } into the list on top of the stack. */
static void on_done(ah_store_append *a, const ah_err *err)
{
    ticket *t = (ticket *)(void *)a;
    lua_State *L = t->of->L;

    if (L) {
        lua_createtable(L, 3, 0);
        lua_pushinteger(L, t->number);
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, err->status);
        lua_rawseti(L, -2, 2);
        lua_pushstring(L, err->message);
        lua_rawseti(L, -2, 3);
        lua_rawseti(L, -2, luaL_len(L, -2) + 1);
        lua_pushnil(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, t);
    }
    free_ticket(t);
}

/* The text of item `at` of the table on top; the table keeps it alive. */
static ah_slice text_at(lua_State *L, lua_Integer at)
{
    ah_slice s;

    lua_geti(L, -1, at);
    s.p = lua_tolstring(L, -1, &s.n);
    lua_pop(L, 1);
    return s;
}

static int64_t number_at(lua_State *L, lua_Integer at)
{
    int64_t v;

    lua_geti(L, -1, at);
    v = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return v;
}

static const ah_slice *read_taken(lua_State *L, size_t *n)
{
    ah_slice *list = NULL;

    *n = 0;
    if (lua_getfield(L, -1, "taken") == LUA_TTABLE) {
        *n = (size_t)luaL_len(L, -1);
        list = calloc(*n + 1, sizeof *list);
        for (size_t i = 0; i < *n; i++)
            list[i] = text_at(L, (lua_Integer)i + 1);
    }
    lua_pop(L, 1);
    return list;
}

/* Reads { stream, after, fence, record... } on top. */
static void read_batch(lua_State *L, ah_store_batch *b)
{
    enum { HEAD = 3 };
    lua_Integer n = luaL_len(L, -1);
    ah_store_record *r = calloc((size_t)n + 1, sizeof *r);

    b->stream = text_at(L, 1);
    b->after = number_at(L, 2);
    b->fence = number_at(L, HEAD);
    b->n = n > HEAD ? (size_t)(n - HEAD) : 0;
    b->record = r;
    for (size_t i = 0; i < b->n; i++) {
        lua_geti(L, -1, (lua_Integer)i + HEAD + 1);
        r[i] = (ah_store_record){.time = number_at(L, 1),
                                 .kind = text_at(L, 2),
                                 .said = text_at(L, 3),
                                 .kept = text_at(L, 4)};
        lua_pop(L, 1);
    }
    b->taken = read_taken(L, &b->n_taken);
}

static int store_append(lua_State *L)
{
    box *b = check_box(L);
    size_t n = (size_t)luaL_len(L, 2);
    ah_store_batch *batch = calloc(n + 1, sizeof *batch);
    ticket *t = calloc(1, sizeof *t);

    lua_settop(L, 4);
    lua_pushvalue(L, 2);
    for (size_t i = 0; i < n; i++) {
        lua_geti(L, 2, (lua_Integer)i + 1);
        read_batch(L, &batch[i]);
        lua_pop(L, 1);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, t); /* keeps the texts alive until it is done */
    t->a = (ah_store_append){.batch = batch,
                             .n = n,
                             .sync = lua_toboolean(L, 3),
                             .alone = lua_isnil(L, 4) ? b->tickets % 2 == 0 : lua_toboolean(L, 4),
                             .done = on_done};
    t->of = b;
    t->number = ++b->tickets;
    b->s->vt->append(b->s, &t->a);
    lua_pushinteger(L, b->tickets);
    return 1;
}

static int poll_box(lua_State *L, box *b)
{
    lua_newtable(L);
    b->L = L;
    b->s->vt->poll(b->s);
    b->L = NULL;
    return 1;
}

static int store_poll(lua_State *L)
{
    return poll_box(L, check_box(L));
}

static int store_wait(lua_State *L)
{
    box *b = check_box(L);

    b->s->vt->wait(b->s);
    return poll_box(L, b);
}

/* -- the others ------------------------------------------------------------------------------- */

static int store_hold(lua_State *L)
{
    box *b = check_box(L);
    int64_t fence;
    ah_err err;
    ah_status st = b->s->vt->hold(b->s, check_slice(L, 2), lua_toboolean(L, 3), &fence, &err);

    if (st != AH_OK)
        return fails(L, st, &err);
    lua_pushinteger(L, fence);
    return 1;
}

static int store_release(lua_State *L)
{
    box *b = check_box(L);

    b->s->vt->release(b->s, check_slice(L, 2));
    return 0;
}

typedef struct reading {
    lua_State *L;
    lua_Integer most; /* rows, before the reader stops */
} reading;

static ah_status add_row(reading *r, ah_err *err)
{
    lua_Integer n = luaL_len(r->L, -2) + 1;

    lua_rawseti(r->L, -2, n);
    return n == r->most ? ah_err_set(err, AH_CANCELLED, "enough") : AH_OK;
}

static ah_status on_record(void *ud, const ah_store_record *r, ah_err *err)
{
    lua_State *L = ((reading *)ud)->L;

    lua_newtable(L);
    set_number(L, "number", r->number);
    set_number(L, "time", r->time);
    set_text(L, "kind", r->kind);
    set_text(L, "said", r->said);
    set_text(L, "kept", r->kept);
    return add_row(ud, err);
}

static ah_status on_stream(void *ud, const ah_store_stream *s, ah_err *err)
{
    lua_State *L = ((reading *)ud)->L;

    lua_newtable(L);
    set_text(L, "name", s->name);
    set_text(L, "label", s->label);
    set_number(L, "last", s->last);
    set_number(L, "time", s->time);
    set_number(L, "messages", (int64_t)s->messages);
    return add_row(ud, err);
}

static ah_status on_message(void *ud, const ah_store_message *m, ah_err *err)
{
    lua_State *L = ((reading *)ud)->L;

    lua_newtable(L);
    set_text(L, "key", m->key);
    set_text(L, "kind", m->kind);
    set_text(L, "body", m->body);
    set_number(L, "time", m->time);
    return add_row(ud, err);
}

/* Expects the list on top. */
static int give_list(lua_State *L, ah_status st, const ah_err *err)
{
    return st == AH_OK || st == AH_CANCELLED ? 1 : fails(L, st, err);
}

static int store_read(lua_State *L)
{
    box *b = check_box(L);
    reading r = {L, luaL_optinteger(L, 4, -1)};
    ah_err err;

    lua_settop(L, 3);
    lua_newtable(L);
    return give_list(
        L, b->s->vt->read(b->s, check_slice(L, 2), luaL_optinteger(L, 3, 1), on_record, &r, &err),
        &err);
}

static int store_find_last(lua_State *L)
{
    box *b = check_box(L);
    int64_t n;
    ah_err err;
    ah_status st = b->s->vt->find_last(b->s, check_slice(L, 2), check_slice(L, 3), &n, &err);

    if (st != AH_OK)
        return fails(L, st, &err);
    lua_pushinteger(L, n);
    return 1;
}

static int store_list(lua_State *L)
{
    box *b = check_box(L);
    reading r = {L, -1};
    ah_err err;

    lua_settop(L, 3);
    lua_newtable(L);
    return give_list(
        L, b->s->vt->list(b->s, check_slice(L, 2), lua_toboolean(L, 3), on_stream, &r, &err), &err);
}

static int store_label(lua_State *L)
{
    box *b = check_box(L);
    ah_err err;

    return gives(L, b->s->vt->label(b->s, check_slice(L, 2), check_slice(L, 3), &err), &err);
}

static int store_post(lua_State *L)
{
    box *b = check_box(L);
    ah_store_message m = {.key = check_slice(L, 3),
                          .kind = check_slice(L, 4),
                          .body = check_slice(L, 5),
                          .time = luaL_optinteger(L, 6, 0)};
    ah_err err;

    return gives(L, b->s->vt->post(b->s, check_slice(L, 2), &m, &err), &err);
}

static int store_inbox(lua_State *L)
{
    box *b = check_box(L);
    reading r = {L, -1};
    ah_err err;

    lua_settop(L, 2);
    lua_newtable(L);
    return give_list(L, b->s->vt->inbox(b->s, check_slice(L, 2), on_message, &r, &err), &err);
}

/* -- the search ------------------------------------------------------------------------------ */

typedef struct finding {
    reading r;
    ah_slice within;
} finding;

static bool wants(void *ud, ah_slice stream, ah_slice label)
{
    (void)label;
    return ah_slice_eq(stream, ((finding *)ud)->within);
}

static ah_status on_hit(void *ud, const ah_store_hit *hit, ah_err *err)
{
    finding *f = ud;
    lua_State *L = f->r.L;

    lua_newtable(L);
    set_text(L, "stream", hit->stream);
    set_text(L, "role", hit->role);
    set_text(L, "snippet", hit->snippet);
    set_number(L, "number", hit->number);
    set_number(L, "time", hit->time);
    return add_row(&f->r, err);
}

static int store_search(lua_State *L)
{
    box *b = check_box(L);
    finding f = {.r = {L, luaL_optinteger(L, 4, -1)}};
    ah_store_search q = {
        .words = check_slice(L, 2), .best = lua_toboolean(L, 3), .found = on_hit, .ud = &f};
    ah_err err;

    if (!b->s->vt->search)
        return luaL_error(L, "the engine has no search");
    lua_settop(L, 5);
    if (!lua_isnil(L, 5)) {
        f.within = check_slice(L, 5);
        q.wants = wants;
    }
    lua_newtable(L);
    return give_list(L, b->s->vt->search(b->s, &q, &err), &err);
}

static int store_clean(lua_State *L)
{
#ifdef AH_WITH_SQLITE
    ah_err err;

    return gives(L, ah_sqlite_index_clean(((ah_sqlite_handle *)check_box(L)->s)->core, &err), &err);
#else
    return luaL_error(L, "no SQLite");
#endif
}

#ifdef AH_WITH_SQLITE
static ah_sqlite_core *core_of(const box *b)
{
    return ((ah_sqlite_handle *)b->s)->core;
}

static void end_index(box *b)
{
    if (!b->index)
        return;
    ah_sqlite_index_close(b->index);
    pthread_mutex_unlock(&core_of(b)->index);
    free(b->index);
    b->index = NULL;
}

static int store_write_index(lua_State *L)
{
    box *b = check_box(L);
    ah_status st;
    ah_err err;

    end_index(b);
    if (!lua_toboolean(L, 2))
        return 0;
    b->index = malloc(sizeof *b->index);
    pthread_mutex_lock(&core_of(b)->index);
    st = ah_sqlite_index_open(b->index, core_of(b), 0, &err);
    if (st == AH_OK && ah_sqlite_index_step(b->index, AH_SQLITE_INDEX_BEGIN) != SQLITE_DONE)
        st = ah_sqlite_index_fails(b->index, &err);
    return gives(L, st, &err);
}

static int no_option(const char *name)
{
    (void)name;
    return 0;
}

static int store_without_fts5(lua_State *L)
{
    core_of(check_box(L))->lib.compileoption_used = no_option;
    return 0;
}
#else
static void end_index(box *b)
{
    (void)b;
}

static int store_write_index(lua_State *L)
{
    return luaL_error(L, "no SQLite");
}

static int store_without_fts5(lua_State *L)
{
    return luaL_error(L, "no SQLite");
}
#endif

static int store_news(lua_State *L)
{
    box *b = check_box(L);

    lua_pushboolean(L, b->s->vt->news(b->s));
    return 1;
}

static int store_woken(lua_State *L)
{
    lua_pushinteger(L, atomic_load(&check_box(L)->woken));
    return 1;
}

static int store_close(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, STORE);

    end_index(b);
    if (b->s)
        b->s->vt->close(b->s);
    ah_host_free(b->host);
    b->s = NULL;
    b->host = NULL;
    return 0;
}

/* -- opening ---------------------------------------------------------------------------------- */

static bool option(lua_State *L, const char *name, bool otherwise)
{
    bool on;

    on = lua_getfield(L, 2, name) == LUA_TNIL ? otherwise : lua_toboolean(L, -1);
    lua_pop(L, 1);
    return on;
}

static ah_status open_sqlite(lua_State *L, box *b, ah_err *err)
{
    static const char *const names[] = {"process", "effects", "full", NULL};
    bool create = option(L, "create", true), force = option(L, "force", false);
    int sync;

    lua_getfield(L, 2, "sync");
    sync = luaL_checkoption(L, -1, "process", names);
    lua_getfield(L, 2, "path");
    return ah_store_sqlite_open(&ah_mem_libc, check_slice(L, -1), (ah_store_sync)sync, create,
                                force, on_wake, b, &b->s, err);
}

static ah_status open_given(box *b, bool threaded, ah_err *err)
{
    ah_status st = ahtest_given_store(threaded, &b->host, &b->s, err);

    if (st == AH_OK) {
        b->s->wake = on_wake;
        b->s->wake_ud = b;
    }
    return st;
}

static int store_open(lua_State *L)
{
    const char *engine = luaL_checkstring(L, 1);
    box *b;
    ah_err err;
    ah_status st;

    lua_settop(L, 2);
    b = lua_newuserdatauv(L, sizeof *b, 0);
    memset(b, 0, sizeof *b);
    luaL_setmetatable(L, STORE);
    if (strcmp(engine, "memory") == 0)
        st = ah_store_memory_new(&ah_mem_libc, on_wake, b, &b->s, &err);
    else if (strncmp(engine, "given", 5) == 0)
        st = open_given(b, strcmp(engine, "given") != 0, &err);
    else
        st = open_sqlite(L, b, &err);
    if (st != AH_OK)
        return fails(L, st, &err);
    lua_settop(L, 3);
    return 1;
}

static int store_engines(lua_State *L)
{
    lua_newtable(L);
    lua_pushboolean(L, ah_store_sqlite_available());
    lua_setfield(L, -2, "sqlite");
    lua_pushboolean(L, &ah_store_memory_new != NULL);
    lua_setfield(L, -2, "memory");
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "given");
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "given threaded");
    return 1;
}

/* -- faults ----------------------------------------------------------------------------------- */

static uint32_t kind; /* 0: the real one */

uint32_t __real_ah_disk_kind(const char *path);
uint32_t __wrap_ah_disk_kind(const char *path);

uint32_t __wrap_ah_disk_kind(const char *path)
{
    return kind ? kind : __real_ah_disk_kind(path);
}

static int store_kind(lua_State *L)
{
    kind = (uint32_t)luaL_optinteger(L, 1, 0);
    return 0;
}

#ifdef AH_WITH_SQLITE

static atomic_int writes_left, syncs_left;
enum { NEVER = 1 << 30 };

static bool counts_down(atomic_int *left)
{
    int n = atomic_load(left);

    if (n < NEVER && n > 0)
        n = atomic_fetch_sub(left, 1);
    if (n > 0)
        return false;
    errno = EIO;
    return true;
}

static ssize_t faulty_write(int fd, const void *p, size_t n)
{
    return counts_down(&writes_left) ? -1 : write(fd, p, n);
}

static ssize_t faulty_pwrite(int fd, const void *p, size_t n, off_t at)
{
    return counts_down(&writes_left) ? -1 : pwrite(fd, p, n, at);
}

static int faulty_fsync(int fd)
{
    return counts_down(&syncs_left) ? -1 : fsync(fd);
}

static void replace(sqlite3_vfs *vfs, const char *name, void *function)
{
    sqlite3_syscall_ptr f;

    memcpy(&f, &function, sizeof f);
    vfs->xSetSystemCall(vfs, name, f);
}

/* Replaces the calls of SQLite's own layer (xSetSystemCall). */
static void arm(void)
{
    void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL), *p;
    sqlite3_vfs *(*find)(const char *);
    sqlite3_vfs *vfs;
    ssize_t (*w)(int, const void *, size_t) = faulty_write;
    ssize_t (*pw)(int, const void *, size_t, off_t) = faulty_pwrite;
    int (*sync)(int) = faulty_fsync;

    p = dlsym(library, "sqlite3_vfs_find");
    memcpy(&find, &p, sizeof p);
    vfs = find(NULL);
    memcpy(&p, &w, sizeof p);
    replace(vfs, "write", p);
    memcpy(&p, &pw, sizeof p);
    replace(vfs, "pwrite", p);
    replace(vfs, "pwrite64", p);
    memcpy(&p, &sync, sizeof p);
    replace(vfs, "fsync", p);
}

static int store_fault(lua_State *L)
{
    const char *call = luaL_optstring(L, 1, "");
    int n = (int)luaL_optinteger(L, 2, 1) - 1;

    atomic_store(&writes_left, strcmp(call, "write") == 0 ? n : NEVER);
    atomic_store(&syncs_left, strcmp(call, "fsync") == 0 ? n : NEVER);
    arm();
    return 0;
}

#else

static int store_fault(lua_State *L)
{
    return luaL_error(L, "no SQLite");
}

#endif

static int store_limit(lua_State *L)
{
    struct rlimit l;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &l);
    l.rlim_cur = lua_isnoneornil(L, 1) ? l.rlim_max : (rlim_t)luaL_checkinteger(L, 1);
    setrlimit(RLIMIT_FSIZE, &l);
    return 0;
}

/* The child writes { status, message } to a pipe, and ends. */
static int store_forked(lua_State *L)
{
    box *b = check_box(L);
    ah_err err = {0};
    int64_t fence;
    int ends[2], status;
    pid_t child;

    if (pipe(ends) != 0 || (child = fork()) < 0)
        return luaL_error(L, "no child");
    if (child == 0) {
        b->s->vt->hold(b->s, (ah_slice)AH_LIT("in a child"), false, &fence, &err);
        b->s->vt->close(b->s);
        _exit(write(ends[1], &err, sizeof err) == (ssize_t)sizeof err ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &err, sizeof err) != (ssize_t)sizeof err)
        err.message[0] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    lua_pushinteger(L, err.status);
    lua_pushstring(L, err.message);
    return 2;
}

static int store_user(lua_State *L)
{
    if (seteuid((uid_t)luaL_checkinteger(L, 1)) != 0)
        return luaL_error(L, "not the right to be another user");
    return 0;
}

static int cpu_us(lua_State *L)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    lua_pushinteger(L, (lua_Integer)t.tv_sec * 1000000 + t.tv_nsec / 1000);
    return 1;
}

void ahtest_open_store(lua_State *L)
{
    static const luaL_Reg methods[] = {{"append", store_append},
                                       {"poll", store_poll},
                                       {"wait", store_wait},
                                       {"hold", store_hold},
                                       {"release", store_release},
                                       {"read", store_read},
                                       {"find_last", store_find_last},
                                       {"list", store_list},
                                       {"label", store_label},
                                       {"post", store_post},
                                       {"inbox", store_inbox},
                                       {"search", store_search},
                                       {"clean", store_clean},
                                       {"write_index", store_write_index},
                                       {"without_fts5", store_without_fts5},
                                       {"news", store_news},
                                       {"woken", store_woken},
                                       {"close", store_close},
                                       {"__gc", store_close},
                                       {"__close", store_close},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {{"store", store_open},
                                         {"store_engines", store_engines},
                                         {"store_kind", store_kind},
                                         {"store_fault", store_fault},
                                         {"store_limit", store_limit},
                                         {"store_forked", store_forked},
                                         {"store_user", store_user},
                                         {"cpu_us", cpu_us},
                                         {NULL, NULL}};

    luaL_newmetatable(L, STORE);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
