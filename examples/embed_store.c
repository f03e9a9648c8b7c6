/* A program whose conversation outlives it: it keeps the conversation in a store, is killed while a
 * tool is at work, and goes on in another process. The model is a substitute that needs no key and
 * no network. docs/reference/embedding.md explains it.
 *
 *     cc embed_store.c $(pkg-config --cflags --libs agenthost) -o embed_store && ./embed_store */
#define _POSIX_C_SOURCE 200809L
#include <agenthost.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void count(void *ud, ah_host *host, const ah_tool_call *call)
{
    (void)ud;
    printf("counting\n");
    ah_tool_done(host, call->id, "12");
}

/* Called in the first process only: this outcome is never known. */
static void ship(void *ud, ah_host *host, const ah_tool_call *call)
{
    (void)ud;
    (void)host;
    (void)call;
    printf("shipping, and killed\n");
    fflush(stdout);
    raise(SIGKILL);
}

static const ah_tool_config tools[] = {
    {.size = sizeof *tools, .name = "count", .description = "Counts lamps.", .call = count},
    {.size = sizeof *tools, .name = "ship", .description = "Ships lamps.", .call = ship},
};

/* Runs the agent. NULL as the text goes on with what another process has begun. */
static ah_status work(ah_host *host, const char *path, const char *text)
{
    ah_agent *agent = NULL;
    char config[200];
    ah_status st = AH_OK;

    snprintf(config, sizeof config,
             "{\"model\":\"demo/tools\",\"tools\":[\"count\",\"ship\"],"
             "\"store\":\"%s\",\"id\":\"lamps\"}",
             path);
    for (size_t i = 0; i < sizeof tools / sizeof *tools && st == AH_OK; i++)
        st = ah_add_tool(host, &tools[i]);
    if (st == AH_OK && (st = ah_agent_open(host, config, &agent)) == AH_OK &&
        (st = ah_agent_run(agent, text)) == AH_OK)
        printf("%s: %s\n", ah_agent_id(agent), ah_agent_reply(agent)->text);
    return st;
}

static int run(const char *path, const char *text)
{
    ah_host *host = NULL;
    ah_status st = ah_open(NULL, &host);

    if (st == AH_OK && (st = work(host, path, text)) != AH_OK)
        fprintf(stderr, "%s: %s\n", ah_status_name(st), ah_errmsg(host));
    ah_close(host);
    return st != AH_OK;
}

int main(void)
{
    char folder[] = "/tmp/lamps-XXXXXX", path[64], line[64];
    int status = 0;
    pid_t child;

    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/store.db", folder);
    child = fork(); /* before any host is open */
    if (child == 0)
        return run(path, "Count the lamps, then ship them.");
    waitpid(child, &status, 0);
    printf("the first process has ended by signal %d\n", WTERMSIG(status));
    status = run(path, NULL);
    snprintf(line, sizeof line, "rm -r %s", folder);
    return system(line) != 0 || status;
}
