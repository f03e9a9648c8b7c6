/* Eight independent hosts in eight threads, and a ninth thread that cancels one of them: other
 * threads may call only ah_cancel and ah_wake. */
#include <agenthost.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { HOSTS = 8, RUNS = 20 };

typedef struct worker {
    pthread_t thread;
    int number;
    _Atomic(ah_host *) host; /* set while it exists and its last run is at work */
    atomic_bool ended;       /* it failed before, or has ended */
    int answers;
    ah_status last; /* status of the cancelled run */
} worker;

static const char script[] = "local ah = require 'agenthost'\n"
                             "local square = ah.tool { name = 'square', description = 'Squares.',\n"
                             "  params = { n = 'integer' },\n"
                             "  handler = function(args) return args.n * args.n end }\n"
                             "local wait = ah.tool { name = 'wait', description = 'Waits long.',\n"
                             "  handler = function() ah.sleep(60) end }\n"
                             "return { square, wait }\n";

static ah_status ask(ah_host *host, worker *w)
{
    ah_agent *agent = NULL;
    ah_status st = ah_agent_open(host, "{\"model\":\"demo/tools\",\"tools\":[\"square\"]}", &agent);

    for (int i = 0; st == AH_OK && i < RUNS; i++) {
        st = ah_agent_run(agent, "What is the square?");
        w->answers += st == AH_OK && strstr(ah_agent_reply(agent)->text, "square") != NULL;
    }
    return st;
}

/* Takes one minute if it is not cancelled. */
static ah_status wait_long(ah_host *host, worker *w)
{
    ah_agent *agent = NULL;
    ah_status st = ah_agent_open(host, "{\"model\":\"demo/tools\",\"tools\":[\"wait\"]}", &agent);

    if (st == AH_OK)
        st = ah_agent_start(agent, "Wait.");
    if (st != AH_OK)
        return st;
    w->host = host;
    while (ah_step(host, -1) > 0)
        ;
    w->last = ah_agent_reply(agent)->status;
    return AH_OK;
}

static void *work(void *ud)
{
    worker *w = ud;
    ah_host *host = NULL;
    ah_status st = ah_open(NULL, &host);

    if (st == AH_OK && (st = ah_load(host, "tools.lua", script, strlen(script), 0, NULL)) == AH_OK)
        st = ask(host, w);
    if (st == AH_OK && w->number == 0)
        st = wait_long(host, w);
    if (st != AH_OK && host)
        fprintf(stderr, "%d: %s: %s\n", w->number, ah_status_name(st), ah_errmsg(host));
    ah_close(w->number == 0 ? NULL : host); /* main closes the first one, after the canceller */
    w->ended = true;
    return w->number == 0 ? host : NULL;
}

static void *cancel(void *ud)
{
    worker *w = ud;

    while (!w->host && !w->ended)
        sched_yield();
    if (w->host)
        ah_cancel(w->host);
    return NULL;
}

int main(void)
{
    worker w[HOSTS] = {0};
    pthread_t canceller;
    void *first = NULL;
    int answers = 0;

    for (int i = 0; i < HOSTS; i++) {
        w[i].number = i;
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
            return 1;
    }
    if (pthread_create(&canceller, NULL, cancel, &w[0]) != 0)
        return 1;
    for (int i = HOSTS - 1; i >= 0; i--) {
        pthread_join(w[i].thread, &first);
        answers += w[i].answers;
    }
    pthread_join(canceller, NULL);
    ah_close(first);
    printf("%d answers from %d hosts, the long one: %s\n", answers, HOSTS,
           ah_status_name(w[0].last));
    return answers != HOSTS * RUNS || w[0].last != AH_CANCELLED;
}
