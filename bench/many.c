/* many: CONVERSATIONS of TURNS tool calls at once, each an ah.run of many.lua in a task of
 * its own, in one thread. It stands on the library's own floors, not on the public header:
 * it makes the tasks and steps the host itself, as a program with a loop of its own does.
 *
 *   many SCRIPT BASE CONVERSATIONS TURNS   prints its figures as JSON; the n-th has its model
 *                                          at BASE/n
 *
 * The first conversation, alone, is not counted; memory is how far the peak has risen
 * after it. */
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "lua/lua_task.h"

typedef struct bench {
    const char *script, *base;
    long from, n, turns; /* of this round */
    long left;
} bench;

static void fail(const char *what)
{
    fprintf(stderr, "many: %s\n", what);
    exit(1);
}

static void many_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

static void settled(ah_task *t, int nresults)
{
    (void)nresults;
    ((bench *)t->ud)->left--;
}

static void failed(ah_task *t, const ah_err *err)
{
    (void)t;
    fail(err->message);
}

/* (bench, function) */
static int begin_all(lua_State *L)
{
    bench *b = lua_touserdata(L, 1);

    for (long i = 0; i < b->n; i++) {
        ah_lua *h = ah_lua_of(L);
        ah_task *t;

        lua_pushvalue(L, 2);
        lua_pushfstring(L, "%s/%d", b->base, (int)(b->from + i));
        lua_pushinteger(L, b->turns);
        t = ah_task_new(h, L, 2, NULL);
        t->settled = settled;
        t->failed = failed;
        t->ud = b;
        ah_job_post(h->host, &t->job);
    }
    b->left = b->n;
    return 0;
}

static void run_all(ah_lua *h, bench *b, long from, long n)
{
    ah_err err = {0};

    b->from = from;
    b->n = n;
    lua_pushcfunction(h->main, begin_all);
    lua_pushlightuserdata(h->main, b);
    lua_pushvalue(h->main, 1);
    if (ah_lua_call(h, h->main, 2, 0, &err) != AH_OK)
        fail(err.message);
    while (b->left > 0)
        ah_host_step(h->host, NULL, -1);
}

static double now_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static long peak_kb(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss;
}

static void measure(ah_lua *h, bench *b, long n)
{
    double wall, cpu;
    long before;

    run_all(h, b, 0, 1);
    before = peak_kb();
    wall = now_ms(CLOCK_MONOTONIC);
    cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    run_all(h, b, 1, n);
    printf("{\"wall_ms\":%.3f,\"cpu_ms\":%.3f,\"kb_each\":%.3f}\n", now_ms(CLOCK_MONOTONIC) - wall,
           now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu, (double)(peak_kb() - before) / (double)n);
}

int main(int argc, char **argv)
{
    bench b = {0};
    ah_host *host = NULL;
    ah_lua *h;

    if (argc != 5)
        fail("usage: many SCRIPT BASE CONVERSATIONS TURNS");
    b.script = argv[1];
    b.base = argv[2];
    b.turns = atol(argv[4]);
    many_files();
    if (ah_open(NULL, &host) != AH_OK)
        fail("cannot open a host");
    h = host->owner;
    if (luaL_loadfile(h->main, b.script) != LUA_OK || lua_pcall(h->main, 0, 1, 0) != LUA_OK)
        fail(lua_tostring(h->main, -1));
    measure(h, &b, atol(argv[3]));
    ah_close(host);
    return 0;
}
