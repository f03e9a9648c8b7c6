/* A program with its own loop: it waits in poll(2) for its own descriptors and for agenthost's
 * at once, while two conversations continue. A tool passes its work to a thread and answers when
 * the thread has ended: the thread wakes the host, which calls `woken`. */
#include <agenthost.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* One call of the tool, which a thread works on. */
typedef struct job {
    ah_host *host;
    uint64_t call;
    pthread_t thread;
    atomic_bool ready;
    bool open; /* not yet answered */
} job;

enum { MOST_JOBS = 4 };

typedef struct app {
    ah_host *host;
    job job[MOST_JOBS];
} app;

static void *measure(void *ud)
{
    static const struct timespec a_while = {0, 20 * 1000 * 1000};
    job *j = ud;

    nanosleep(&a_while, NULL); /* stands for the work */
    j->ready = true;
    ah_wake(j->host);
    return NULL;
}

static void begin(void *ud, ah_host *host, const ah_tool_call *call)
{
    app *a = ud;
    job *j = a->job;

    while (j < a->job + MOST_JOBS && j->open)
        j++;
    if (j == a->job + MOST_JOBS) {
        ah_tool_refuse(host, call->id, "Too much is being measured; try again later.");
        return;
    }
    j->host = host;
    j->call = call->id;
    j->ready = false;
    j->open = pthread_create(&j->thread, NULL, measure, j) == 0;
    if (!j->open)
        ah_tool_refuse(host, call->id, "The measurement cannot be begun.");
}

/* Called after a wake-up, on the host's own thread. Answering a call that has ended meanwhile is
 * harmless. */
static void woken(void *ud)
{
    app *a = ud;

    for (job *j = a->job; j < a->job + MOST_JOBS; j++)
        if (j->open && j->ready) {
            pthread_join(j->thread, NULL);
            j->open = false;
            ah_tool_done(a->host, j->call, "{\"degrees\":21}");
        }
}

static void show(const ah_event *e)
{
    const char *who = ah_agent_user(e->agent);

    if (e->type[0] == 'd') /* done */
        printf("%s: %s\n", who, ah_agent_reply(e->agent)->text);
}

/* Runs until nothing is at work. `other` is any other descriptor of the program. */
static void loop(app *a, int other)
{
    while (ah_step(a->host, 0) > 0) {
        struct pollfd fds[] = {{ah_pollfd(a->host), POLLIN, 0}, {other, POLLIN, 0}};
        const ah_event *e;

        while ((e = ah_next_event(a->host)))
            show(e);
        poll(fds, 2, ah_timeout(a->host));
    }
    for (const ah_event *e; (e = ah_next_event(a->host));)
        show(e);
}

static ah_status work(app *a, int other)
{
    static const char config[] = "{\"model\":\"demo/tools\",\"tools\":[\"measure\"]}";
    static char *const who[] = {"hall", "roof"};
    ah_tool_config tool = {.size = sizeof tool,
                           .name = "measure",
                           .description = "Measures the temperature.",
                           .parallel = true,
                           .call = begin,
                           .ud = a};
    ah_status st = ah_add_tool(a->host, &tool);

    for (int i = 0; st == AH_OK && i < 2; i++) {
        ah_agent *agent = NULL;

        if ((st = ah_agent_open(a->host, config, &agent)) == AH_OK) {
            ah_agent_set_user(agent, who[i]);
            st = ah_agent_start(agent, "How warm is it?");
        }
    }
    if (st == AH_OK)
        loop(a, other);
    return st;
}

int main(void)
{
    app a = {0};
    ah_config cfg = {.size = sizeof cfg, .woken = woken, .woken_ud = &a};
    ah_status st = ah_open(&cfg, &a.host);
    int pipes[2];

    if (st != AH_OK || pipe(pipes) != 0)
        return 1;
    if ((st = work(&a, pipes[0])) != AH_OK)
        fprintf(stderr, "%s: %s\n", ah_status_name(st), ah_errmsg(a.host));
    ah_close(a.host);
    return st != AH_OK;
}
