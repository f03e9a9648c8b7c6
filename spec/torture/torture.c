/* The torture of agenthost: every allocation fails, once, and from there on.
 *
 * One counting allocator is under everything: the host, Lua, cJSON and libcurl. For each
 * flow of flows.lua and n = 1, 2, 3 ... the n-th allocation fails; after each there must be
 * no crash, no leak, a clean error or none, a sound conversation, and a host that works on.
 * Time is simulated where no network is in the flow, so that waiting costs nothing.
 *
 *     torture [--all] [--jobs N] [--flow NAME] [--mode once|from|none] [--at N]
 *
 * Lua's hash seed differs from host to host, so counts differ by a few and --at N may
 * need its neighbours. The allocator's numbers are file-scope since the hooks of cJSON and
 * libcurl carry no pointer; only this program may call those. Run from the repository's root. */
#define _DEFAULT_SOURCE

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cjson/cJSON.h>
#include <curl/curl.h>

#include "embed.h"
#include "lua/lua_state.h"
#include "server.h"

enum {
    SAMPLED = 3000,
    QUIET = 5, /* points in a row without a failure: counts differ by a few */
    HANG_SECONDS = 30,
    MOST_JOBS = 8,
    WORDS = 2048
};

/* Fails once; from there on; never (for other tools, such as valgrind); first and second. */
typedef enum mode { ONCE, FROM, NONE, BOTH } mode;

/* The phases in which memory fails. */
enum { IN_OPEN = 1, IN_SCRIPT = 2, IN_CLOSE = 4 };

typedef struct flow {
    const char *name;
    int where;
    bool network;
} flow;

static const flow flows[] = {
    {"host", IN_OPEN | IN_SCRIPT | IN_CLOSE, false},
    {"background calls", IN_SCRIPT | IN_CLOSE, false},
    {"background calls of runs", IN_SCRIPT | IN_CLOSE, false},
    {"text answer", IN_SCRIPT, false},
    {"tool call", IN_SCRIPT, false},
    {"watched", IN_SCRIPT, false},
    {"coerced arguments", IN_SCRIPT, false},
    {"null for absent", IN_SCRIPT, false},
    {"images", IN_SCRIPT, false},
    {"streamed text", IN_SCRIPT, false},
    {"retry", IN_SCRIPT, false},
    {"cancel in a turn", IN_SCRIPT, false},
    {"deadline in a turn", IN_SCRIPT, false},
    {"deadline in a coroutine", IN_SCRIPT, false},
    {"parallel tools", IN_SCRIPT, false},
    {"a conversation in a store", IN_SCRIPT, false},
    {"a fork at a turn, and a rewind", IN_SCRIPT, false},
    {"a replay of requests and handlers", IN_SCRIPT, false},
    {"a conversation that is exported, imported and deleted", IN_SCRIPT, false},
    {"a rewind in place", IN_SCRIPT, false},
    {"a rewind with files", IN_SCRIPT, false},
    {"a reload", IN_SCRIPT, false},
    {"a reload with a store", IN_SCRIPT, false},
    {"files in memory in a store", IN_SCRIPT, false},
    {"asks that wait", IN_SCRIPT, false},
    {"a durable handler", IN_SCRIPT, false},
    {"a durable handler that reads files", IN_SCRIPT, false},
    {"queue of events", IN_SCRIPT, false},
    {"tasks, scopes and channels", IN_SCRIPT | IN_CLOSE, false},
    {"progress of a map", IN_SCRIPT, false},
    {"tasks", IN_SCRIPT, false},
    {"a failure that is not awaited", IN_SCRIPT, false},
    {"a scope that fails", IN_SCRIPT, false},
    {"a race and a time", IN_SCRIPT, false},
    {"a map", IN_SCRIPT, false},
    {"a channel", IN_SCRIPT, false},
    {"a channel without room", IN_SCRIPT, false},
    {"a semaphore", IN_SCRIPT, false},
    {"a lane", IN_SCRIPT, false},
    {"a run in a handler", IN_SCRIPT, false},
    {"cancel around a run in a handler", IN_SCRIPT, false},
    {"two turns", IN_SCRIPT, false},
    {"failing tools", IN_SCRIPT, false},
    {"a loop", IN_SCRIPT, false},
    {"fenced in", IN_SCRIPT, false},
    {"last answer", IN_SCRIPT, false},
    {"long results", IN_SCRIPT, false},
    {"direct answers", IN_SCRIPT, false},
    {"messages", IN_SCRIPT, false},
    {"demo models", IN_SCRIPT, false},
    {"declarations", IN_SCRIPT, false},
    {"tools that come and go", IN_SCRIPT, false},
    {"strategies", IN_SCRIPT, false},
    {"tools to be found", IN_SCRIPT, false},
    {"entities", IN_SCRIPT, false},
    {"a registry", IN_SCRIPT, false},
    {"what calls leave behind", IN_SCRIPT, false},
    {"tools in brief", IN_SCRIPT, false},
    {"doubles of tools", IN_SCRIPT, false},
    {"a section is read", IN_SCRIPT, false},
    {"agents of agents", IN_SCRIPT, false},
    {"conversations of one agent", IN_SCRIPT, false},
    {"a handler that asks for sections", IN_SCRIPT, false},
    {"a conversation that lasts", IN_SCRIPT, false},
    {"a tool that has changed", IN_SCRIPT, false},
    {"a conversation and its session", IN_SCRIPT, false},
    {"a conversation and its entities", IN_SCRIPT, false},
    {"hooks and a budget", IN_SCRIPT, false},
    {"a budget in which requests wait", IN_SCRIPT, false},
    {"the gate", IN_SCRIPT, false},
    {"arguments with a key", IN_SCRIPT, false},
    {"changes that are approved", IN_SCRIPT, false},
    {"asks", IN_SCRIPT, false},
    {"schemas", IN_SCRIPT, false},
    {"observers", IN_SCRIPT, false},
    {"prompts", IN_SCRIPT, false},
    {"sections and output in a run", IN_SCRIPT, false},
    {"types and sessions", IN_SCRIPT, false},
    {"transactions", IN_SCRIPT, false},
    {"resources", IN_SCRIPT, false},
    {"json", IN_SCRIPT, false},
    {"bytes", IN_SCRIPT, false},
    {"yaml", IN_SCRIPT, false},
    {"watching files", IN_SCRIPT, true},
    {"files in memory", IN_SCRIPT, false},
    {"files on the disk", IN_SCRIPT, false},
    {"a command", IN_SCRIPT, true},
    {"a command in a stopped call", IN_SCRIPT, true},
    {"a process", IN_SCRIPT, true},
    {"a process in a sandbox, forgotten", IN_SCRIPT, true},
    {"looking at files", IN_SCRIPT, false},
    {"built-in tools for files", IN_SCRIPT, false},
    {"http_fetch", IN_SCRIPT, true},
    {"a fallback", IN_SCRIPT, false},
    {"openai over HTTP", IN_SCRIPT, true},
    {"gemini over HTTP", IN_SCRIPT, true},
    {"ollama over HTTP", IN_SCRIPT, true},
    {"thoughts over HTTP", IN_SCRIPT, true},
    {"anthropic over HTTP", IN_SCRIPT, true},
    {"strict tools over HTTP", IN_SCRIPT, true},
    {"responses over HTTP", IN_SCRIPT, true},
    {"a learned verdict over HTTP", IN_SCRIPT, true},
    {"a rate limit over HTTP", IN_SCRIPT, true},
    {"http", IN_SCRIPT, true},
    {"streams of http", IN_SCRIPT, true},
    {"a server", IN_SCRIPT, true},
    {"claude", IN_SCRIPT, true},
    {"an adapter that keeps a state", IN_SCRIPT, false},
    {"http in a stopped call", IN_SCRIPT, true},
    {"embed: tools", IN_SCRIPT, false},
    {"embed: an agent", IN_SCRIPT, false},
    {"embed: events", IN_SCRIPT, false},
    {"embed: cancel and close", IN_SCRIPT | IN_CLOSE, false},
    {"embed: transport", IN_SCRIPT, false},
    {"embed: asks", IN_SCRIPT, false},
    {"embed: a terminal", IN_SCRIPT, false},
    {"embed: recording", IN_SCRIPT, false},
    {"embed: replay", IN_SCRIPT, false},
    {"embed: attach", IN_OPEN | IN_SCRIPT, false},
};

enum { N_FLOWS = sizeof flows / sizeof *flows };

/* -- memory --------------------------------------------------------------------------- */

static struct {
    atomic_bool armed;
    atomic_long seen, failed, live;
    long at;   /* this allocation fails, counted from 1 */
    mode mode; /* FROM: and all after it */
    bool show; /* where it was asked for, once */
} memory;

/* Of the sanitizers, where they are linked. */
void __sanitizer_print_stack_trace(void) __attribute__((weak));
void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void);

static bool must_fail(void)
{
    long n;

    if (!memory.armed)
        return false;
    n = ++memory.seen;
    if (n != memory.at && (n < memory.at || memory.mode != FROM))
        return false;
    if (memory.show && ++memory.failed == 1 && __sanitizer_print_stack_trace)
        __sanitizer_print_stack_trace();
    else if (!memory.show)
        memory.failed++;
    return true;
}

static void *change(void *p, size_t size)
{
    void *to = must_fail() ? NULL : realloc(p, size ? size : 1);

    if (to && !p)
        memory.live++;
    return to;
}

static void give_back(void *p)
{
    if (p)
        memory.live--;
    free(p);
}

/* ah_config.alloc */
void *embed_memory(void *ud, void *p, size_t size)
{
    (void)ud;
    if (size)
        return change(p, size);
    give_back(p);
    return NULL;
}

static void *take(size_t size)
{
    return change(NULL, size);
}

static void *take_zeroed(size_t n, size_t size)
{
    void *p = size && n > SIZE_MAX / size ? NULL : take(n * size);

    return p ? memset(p, 0, n * size) : NULL;
}

static char *take_copy(const char *s)
{
    char *p = take(strlen(s) + 1);

    return p ? strcpy(p, s) : NULL;
}

/* -- time ------------------------------------------------------------------------------- */

/* The two calls below stand before those of the C library. */
static struct {
    bool simulated;
    atomic_llong ms;
} now;

static const char *doing = "nothing"; /* the point at work, for the report of a crash */

static void say_doing(const char *how)
{
    if (write(STDERR_FILENO, doing, strlen(doing)) < 0 ||
        write(STDERR_FILENO, how, strlen(how)) < 0)
        _exit(2);
}

static void crashed(void)
{
    say_doing(": crashed, as said above\n");
}

/* The sanitizer's own search for leaks cannot know why a finalizer was not called. */
static bool losses;

int __lsan_is_turned_off(void)
{
    return losses;
}

/* Half of the time is the sanitizer's; give ASAN_OPTIONS=malloc_context_size=30 for whole
 * stacks. */
const char *__asan_default_options(void)
{
    return "malloc_context_size=3:quarantine_size_mb=16";
}

static void hangs(int sig)
{
    (void)sig;
    say_doing(": hangs\n");
    _exit(1);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (!now.simulated || id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, t);
    *t = (struct timespec){(time_t)(now.ms / 1000), (long)(now.ms % 1000) * 1000000};
    return 0;
}

/* Simulated, a wait for nothing but time passes at once, and one without an end hangs. */
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    int n =
        (int)syscall(SYS_epoll_pwait, epoll, events, most, now.simulated ? 0 : timeout, NULL, 0);

    if (n != 0 || !now.simulated)
        return n;
    if (timeout < 0)
        hangs(0);
    now.ms += timeout;
    return 0;
}

/* -- one point ---------------------------------------------------------------------------- */

typedef struct point {
    const flow *flow;
    mode mode;
    long n; /* 0: nothing fails */
} point;

typedef struct torture {
    char *code; /* flows.lua, compiled */
    size_t size;
    server server;
    char warning[200];    /* of Lua, in the making */
    bool lost;            /* a finalizer, in this point */
    long losses;          /* points with one, in this flow */
    char wrong[WORDS];    /* what the last point did wrong, or "" */
    char said[2 * WORDS]; /* of it, and how to see it again */
} torture;

static void wrong(torture *t, const char *what, const char *detail)
{
    if (!t->wrong[0])
        snprintf(t->wrong, sizeof t->wrong, "%s%s%s", what, detail ? ": " : "",
                 detail ? detail : "");
}

static void begin_count(const point *p)
{
    memory.seen = 0;
    memory.failed = 0;
    memory.at = p->n ? p->n : LONG_MAX;
    memory.mode = p->mode;
}

static void arm(const point *p, int where)
{
    memory.armed = (p->flow->where & where) != 0;
}

static void disarm(void)
{
    memory.armed = false;
}

#define TASK_LEFT   "was at work when the program ended"
#define TASK_FAILED "a task failed, and nothing has awaited it"

/* Lua warns of a finalizer that raised, and of one for which it had no memory: that one
 * is never called, and what it would have given back stays for as long as the process. */
static void on_warning(void *ud, const char *words, int more)
{
    torture *t = ud;
    size_t n = strlen(t->warning);

    snprintf(t->warning + n, sizeof t->warning - n, "%s", words);
    if (more)
        return;
    if (strstr(t->warning, "not enough memory"))
        t->lost = true;
    else if (!strstr(t->warning, TASK_LEFT) && /* closing a state stops its tasks */
             !(memory.failed && strstr(t->warning, TASK_FAILED)))
        wrong(t, "a finalizer raised", t->warning);
    t->warning[0] = '\0';
}

static torture *at_work; /* whose warnings those of a flow in C are */

void embed_watch(lua_State *L)
{
    lua_setwarnf(L, on_warning, at_work);
}

void embed_watch_host(ah_host *host)
{
    embed_watch(((ah_lua *)host->owner)->main);
}

void embed_disarm(void)
{
    disarm();
}

/* A record must be a whole line, whatever memory there is. */
static void on_record(void *ud, ah_log_level level, const char *line)
{
    (void)level;
    if (strlen(line) >= 4096 || strchr(line, '\n'))
        wrong(ud, "an odd log record", line);
}

static int push_flows(lua_State *L)
{
    const torture *t = lua_touserdata(L, 1);
    const point *p = lua_touserdata(L, 2);

    if (luaL_loadbufferx(L, t->code, t->size, "flows", "b") != LUA_OK)
        return lua_error(L);
    lua_newtable(L);
    lua_pushfstring(L, "http://127.0.0.1:%d", t->server.port);
    lua_setfield(L, -2, "url");
    lua_call(L, 1, 1); /* -- flows */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "torture");
    lua_getfield(L, -2, "choose");
    lua_pushstring(L, p->flow->name);
    lua_call(L, 1, 0);
    return 0;
}

static int judge(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "torture");
    lua_getfield(L, -1, "judge");
    lua_pushboolean(L, memory.failed == 0);
    lua_call(L, 1, 0);
    return 0;
}

static int with_traceback(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

/* Calls one of the two above with sound memory. */
static bool call(torture *t, const point *p, lua_State *L, lua_CFunction f)
{
    bool ok;

    lua_settop(L, 0);
    lua_pushcfunction(L, with_traceback);
    lua_pushcfunction(L, f);
    lua_pushlightuserdata(L, t);
    lua_pushlightuserdata(L, (void *)(uintptr_t)p);
    ok = lua_pcall(L, 2, 0, 1) == LUA_OK;
    if (!ok)
        wrong(t, "afterwards", lua_tostring(L, -1));
    lua_settop(L, 0);
    return ok;
}

static void check_status(torture *t, const ah_host *host, ah_status st)
{
    const char *words = st == AH_OK ? "" : ah_errmsg(host);

    if (st == AH_OK || (memory.failed && st == AH_NOMEM && strlen(words) > 0))
        return;
    if (!memory.failed || !(strstr(words, "out of memory") || strstr(words, "not enough memory")))
        wrong(t, "the script failed", words);
}

/* Whatever the flow's calls gave, each is a clean one, and the host works on. */
static void use_host_in_c(torture *t, const point *p, ah_host *host, embed_flow attempt)
{
    const char *odd;

    at_work = t;
    arm(p, IN_SCRIPT);
    odd = attempt(host, p->n == 0);
    disarm();
    if (!odd)
        odd = embed_works_on(host);
    if (odd)
        wrong(t, odd, ah_errmsg(host));
}

/* Each event has arrived whole, or not at all. */
static void on_watched(void *ud, const ah_event *event)
{
    size_t n = event->json_len;

    if (n < 2 || event->json[0] != '{' || event->json[n - 1] != '}')
        wrong(ud, "an event was cut", NULL);
}

static bool is_watched(const point *p)
{
    return strcmp(p->flow->name, "watched") == 0;
}

static ah_status run_script(const point *p, ah_host *host)
{
    static const char attempt[] = "require('torture').attempt() return 'a text'";

    if (!is_watched(p))
        return ah_script(host, "spec/torture/attempt.lua", 0, NULL);
    return ah_load(host, "attempt", attempt, sizeof attempt - 1, 0, NULL);
}

static void use_host(torture *t, const point *p, ah_host *host)
{
    ah_lua *h = ((struct ah_host *)host)->owner;
    embed_flow attempt = embed_flow_of(p->flow->name);
    ah_status st;

    lua_setwarnf(h->main, on_warning, t);
    if (attempt) {
        use_host_in_c(t, p, host, attempt);
        return;
    }
    if (!call(t, p, h->main, push_flows))
        return;
    arm(p, IN_SCRIPT);
    st = run_script(p, host);
    disarm();
    check_status(t, host, st);
    call(t, p, h->main, judge);
}

static void live(torture *t, const point *p)
{
    ah_config cfg = {.size = sizeof cfg,
                     .alloc = embed_memory,
                     .log = on_record,
                     .log_ud = t,
                     .log_level = AH_LOG_DEBUG,
                     .watcher = {.ud = t, .event = is_watched(p) ? on_watched : NULL}};
    ah_host *host = NULL;
    ah_status st;

    arm(p, IN_OPEN);
    st = ah_open(&cfg, &host);
    disarm();
    if (st != AH_OK && (st != AH_NOMEM || host || !memory.failed))
        wrong(t, "ah_open failed", ah_status_name(st));
    if (st != AH_OK)
        return;
    use_host(t, p, host);
    arm(p, IN_CLOSE);
    ah_close(host);
    disarm();
}

/* Without memory for an address libcurl asks its resolver's thread for it, which gives back
 * what is its own when it ends, if nothing waits for it any more. */
static long blocks_left(const point *p, long before)
{
    static const struct timespec ms = {0, 1000000};

    for (int i = 0; p->flow->network && memory.live != before && i < 2000; i++)
        nanosleep(&ms, NULL);
    return memory.live - before;
}

static const char *const mode_names[] = {"once", "from", "none"};

/* True: all was well. */
static bool try_point(torture *t, const point *p)
{
    static char words[200];
    long before = memory.live, left;

    snprintf(words, sizeof words, "torture: %s: mode %s n=%ld", p->flow->name, mode_names[p->mode],
             p->n);
    doing = words;
    t->wrong[0] = '\0';
    t->lost = false;
    now.simulated = !p->flow->network;
    alarm(HANG_SECONDS);
    begin_count(p);
    live(t, p);
    alarm(0);
    left = blocks_left(p, before);
    if (t->lost && left) {
        t->losses++;
        losses = true;
    } else if (left && p->n > 0) {
        char n[32];

        snprintf(n, sizeof n, "%ld", left);
        wrong(t, "blocks that were not given back", n);
    }
    if (!t->wrong[0])
        return true;
    snprintf(t->said, sizeof t->said, "%s: %s\n  again: torture --flow \"%s\" --mode %s --at %ld\n",
             words, t->wrong, p->flow->name, mode_names[p->mode], p->n);
    fputs(t->said, stdout);
    return false;
}

/* -- all points ----------------------------------------------------------------------------- */

typedef struct options {
    const char *flow; /* NULL: all */
    mode mode;
    long at;   /* 0: all */
    bool all;  /* no sampling */
    long jobs; /* processes that share the flows */
} options;

/* Each day's sample is another one. */
static long stride_of(const point *p, const options *o, long points)
{
    return p->mode == FROM && !o->all && points > SAMPLED ? points / SAMPLED + 1 : 1;
}

/* Goes on until nothing fails any more. `points`: about how many there are. */
static bool try_mode(torture *t, point p, const options *o, long points, long *tried)
{
    long stride = stride_of(&p, o, points);

    if (o->mode != BOTH && o->mode != p.mode)
        return true;
    p.n = stride > 1 ? (long)(time(NULL) / 86400 % stride) + 1 : 1;
    for (int quiet = 0; quiet < QUIET; p.n += stride) {
        if (!try_point(t, &p))
            return false;
        quiet = memory.failed ? 0 : quiet + 1;
        *tried += memory.failed > 0;
    }
    return true;
}

/* Twice with sound memory: what libcurl keeps for the process is kept after the first. */
static bool warm_up(torture *t, const flow *f, long *points)
{
    point p = {.flow = f, .mode = NONE};
    long before;

    if (!try_point(t, &p))
        return false;
    *points = memory.seen;
    before = memory.live;
    if (!try_point(t, &p))
        return false;
    if (memory.live != before)
        printf("torture: %s: %ld blocks are not given back though memory is sound\n", f->name,
               memory.live - before);
    return memory.live == before;
}

static void report(torture *t, const flow *f, long once, long from, long points, long stride)
{
    printf("torture: %s: %ld points once, %ld from there on", f->name, once, from);
    if (stride > 1)
        printf(" (each %ldth of %ld)", stride, points);
    if (t->losses)
        printf(" (%ld of them with a finalizer that Lua had no memory to call)", t->losses);
    t->losses = 0;
    puts(": ok");
    fflush(stdout);
}

static bool try_flow(torture *t, const flow *f, const options *o)
{
    point p = {f, o->mode == BOTH ? ONCE : o->mode, o->at};
    point all_once = {f, ONCE, 0}, all_from = {f, FROM, 0};
    long points, once = 0, from = 0;

    if (!warm_up(t, f, &points))
        return false;
    memory.show = o->at > 0;
    if (o->mode == NONE || o->at)
        return !o->at || try_point(t, &p);
    if (!try_mode(t, all_once, o, points, &once) || !try_mode(t, all_from, o, points, &from))
        return false;
    report(t, f, once, from, points, stride_of(&all_from, o, points));
    return true;
}

/* Of one flow. A process that ends badly leaves it begun. */
typedef struct outcome {
    enum { NOT_TRIED, BEGUN, FINE, FAILED } state;
    char said[2 * WORDS];
} outcome;

/* Between the processes. */
typedef struct shared {
    atomic_size_t next;
    outcome flow[N_FLOWS];
} shared;

static bool wanted(const options *o, const flow *f)
{
    return !o->flow || strcmp(o->flow, f->name) == 0;
}

static bool try_one(torture *t, const flow *f, const options *o, outcome *out)
{
    out->state = BEGUN;
    t->said[0] = '\0';
    out->state = try_flow(t, f, o) ? FINE : FAILED;
    memcpy(out->said, t->said, sizeof out->said);
    return out->state == FINE;
}

static int work(torture *t, const options *o, shared *sh)
{
    int rc = 0;
    size_t i;

    if (!start_server(&t->server))
        return 2;
    while ((i = sh->next++) < N_FLOWS) { /* the others too, when one fails */
        if (!wanted(o, &flows[i]))
            continue;
        if (!try_one(t, &flows[i], o, &sh->flow[i]))
            rc = 1;
    }
    stop_server(&t->server);
    return rc;
}

/* Forks before there is a thread; the caller is one of them. */
static int share_work(torture *t, const options *o, shared *sh)
{
    pid_t child[MOST_JOBS];
    long n = 0;
    int rc, st;

    while (n + 1 < o->jobs && (child[n] = fork()) > 0)
        n++;
    if (n + 1 < o->jobs && child[n] == 0)
        exit(work(t, o, sh));
    rc = work(t, o, sh);
    while (n-- > 0)
        if (waitpid(child[n], &st, 0) < 0 || st != 0)
            rc = 1;
    return rc;
}

/* The end of the output says all that is wrong. Returns the number of flows that were tried. */
static size_t sum_up(const shared *sh)
{
    size_t tried = 0;

    for (size_t i = 0; i < N_FLOWS; i++) {
        const outcome *out = &sh->flow[i];

        tried += out->state != NOT_TRIED;
        if (out->state == BEGUN || out->state == FAILED)
            printf("torture: %s: %s\n%s", flows[i].name,
                   out->state == BEGUN ? "ended badly, as said above" : "failed", out->said);
    }
    return tried;
}

static int try_all(torture *t, const options *o)
{
    size_t tried;
    shared *sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc;

    if (sh == MAP_FAILED)
        return 2;
    rc = share_work(t, o, sh);
    tried = sum_up(sh);
    if (rc == 0 && tried == 0) {
        fprintf(stderr, "torture: there is no flow \"%s\"\n", o->flow);
        return 2;
    }
    if (rc == 0)
        printf("torture: %zu flows: no crash, no leak, nothing odd\n", tried);
    return rc;
}

/* -- start ------------------------------------------------------------------------------------- */

static int keep_code(lua_State *L, const void *p, size_t n, void *ud)
{
    torture *t = ud;
    char *grown = realloc(t->code, t->size + n);

    (void)L;
    if (!grown)
        return 1;
    memcpy(grown + t->size, p, n);
    t->code = grown;
    t->size += n;
    return 0;
}

/* Compiled once, as a host is made for every point; without lines that is quicker. */
static bool compile_flows(torture *t, bool lines)
{
    lua_State *L = luaL_newstate();
    bool ok = L && luaL_loadfilex(L, "spec/torture/flows.lua", "t") == LUA_OK &&
              lua_dump(L, keep_code, t, !lines) == 0;

    if (!ok)
        fprintf(stderr, "torture: %s\n", L ? lua_tostring(L, -1) : "out of memory");
    if (L)
        lua_close(L);
    return ok;
}

static mode mode_of(const char *name)
{
    int m = ONCE;

    while (m < BOTH && strcmp(mode_names[m], name) != 0)
        m++;
    return (mode)m;
}

static bool read_options(options *o, int argc, char **argv)
{
    *o = (options){.mode = BOTH, .jobs = sysconf(_SC_NPROCESSORS_ONLN) + 1};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--all") == 0)
            o->all = true;
        else if (strcmp(argv[i], "--flow") == 0 && ++i)
            o->flow = value;
        else if (strcmp(argv[i], "--mode") == 0 && ++i && mode_of(value) != BOTH)
            o->mode = mode_of(value);
        else if (strcmp(argv[i], "--at") == 0 && ++i && atol(value) > 0)
            o->at = atol(value);
        else if (strcmp(argv[i], "--jobs") == 0 && ++i && atol(value) > 0)
            o->jobs = atol(value);
        else
            return false;
    }
    if (o->flow || o->jobs < 1)
        o->jobs = 1;
    if (o->jobs > MOST_JOBS)
        o->jobs = MOST_JOBS;
    return !o->at || o->flow;
}

int main(int argc, char **argv)
{
    cJSON_Hooks hooks = {take, give_back};
    static torture t;
    options o;
    int rc;

    curl_global_init_mem(CURL_GLOBAL_DEFAULT, take, give_back, change, take_copy, take_zeroed);
    cJSON_InitHooks(&hooks);
    if (!read_options(&o, argc, argv)) {
        fputs("usage: torture [--all] [--jobs N] [--flow NAME] [--mode once|from|none] [--at N]   "
              "(--at needs --flow)\n",
              stderr);
        return 2;
    }
    setenv("AGENTHOST_CLAUDE", "spec/torture/claude.sh", 1);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, hangs);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(crashed);
    if (!compile_flows(&t, o.at > 0))
        return 2;
    rc = try_all(&t, &o);
    free(t.code);
    return rc;
}
