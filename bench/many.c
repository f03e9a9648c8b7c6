/* many: CONVERSATIONS of TURNS tool calls at once, each an agent with the tools of many.lua, in
 * one thread and only through agenthost.h: started with ah_agent_start, driven by ah_step, as in
 * a program with its own loop.
 *
 *   many SCRIPT BASE CONVERSATIONS TURNS   prints its figures as JSON; the n-th has its model
 *                                          at BASE/n
 *
 * A first conversation runs alone and does not count; memory is the growth of the peak after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "agenthost.h"

typedef struct bench {
    ah_host *host;
    const char *base;
    size_t turns;
} bench;

static void fail(const char *what)
{
    fprintf(stderr, "many: %s\n", what);
    exit(1);
}

static void need(ah_host *host, ah_status st)
{
    if (st != AH_OK)
        fail(host ? ah_errmsg(host) : ah_status_name(st));
}

static void many_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

static void begin(const bench *b, long i)
{
    char config[500];
    ah_agent *agent;

    snprintf(config, sizeof config,
             "{\"model\":\"openai/bench\",\"base_url\":\"%s/%ld\",\"api_key\":\"bench\","
             "\"tools\":[\"add\",\"note\"],\"max_iterations\":%zu,\"retries\":0}",
             b->base, i, b->turns + 2);
    need(b->host, ah_agent_open(b->host, config, &agent));
    need(b->host, ah_agent_start(agent, "go"));
}

/* Closes the agents that are done, after a check of their replies. */
static void take_events(const bench *b)
{
    const ah_event *e;

    while ((e = ah_next_event(b->host))) {
        ah_agent *agent = e->agent;

        if (strcmp(e->type, "done") != 0)
            continue;
        if (ah_agent_reply(agent)->status != AH_OK)
            fail(ah_agent_reply(agent)->error.message);
        if (ah_agent_reply(agent)->tool_calls != b->turns)
            fail("the server's --turns is another than TURNS");
        ah_agent_close(agent);
    }
}

static void run_all(const bench *b, long from, long n)
{
    for (long i = from; i < from + n; i++)
        begin(b, i);
    while (ah_step(b->host, -1) > 0)
        take_events(b);
    take_events(b);
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

static void measure(const bench *b, long n)
{
    double wall, cpu;
    long before;

    run_all(b, 0, 1);
    before = peak_kb();
    wall = now_ms(CLOCK_MONOTONIC);
    cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    run_all(b, 1, n);
    printf("{\"wall_ms\":%.3f,\"cpu_ms\":%.3f,\"kb_each\":%.3f}\n", now_ms(CLOCK_MONOTONIC) - wall,
           now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu, (double)(peak_kb() - before) / (double)n);
}

int main(int argc, char **argv)
{
    bench b = {0};

    if (argc != 5)
        fail("usage: many SCRIPT BASE CONVERSATIONS TURNS");
    b.base = argv[2];
    b.turns = (size_t)atol(argv[4]);
    many_files();
    need(NULL, ah_open(NULL, &b.host));
    need(b.host, ah_script(b.host, argv[1], 0, NULL));
    measure(&b, atol(argv[3]));
    ah_close(b.host);
    return 0;
}
