/* The embedding interface from a C program: each function and each of its failures, a case
 * a name. `cases` lists them, `cases NAME` runs one: silent and 0 where all is well.
 * embed_spec.lua runs each in a process of its own. */
#include "cases.h"

#include <unistd.h>

enum { LIMIT_S = 300 }; /* of a case: one that hangs is ended by SIGALRM */

static long blocks;

void fail(const char *file, int line, const char *what, const char *found)
{
    printf("%s:%d: %s%s%s\n", file, line, what, found ? "\n  not in: " : "", found ? found : "");
    exit(1);
}

void fail_status(const char *file, int line, const char *what, ah_status st, ah_host *host)
{
    printf("%s:%d: %s gave %d (%s): %s\n", file, line, what, st, ah_status_name(st),
           host ? ah_errmsg(host) : "");
    exit(1);
}

static void *counted(void *ud, void *ptr, size_t size)
{
    void *p;

    (void)ud;
    if (size == 0) {
        blocks -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    p = realloc(ptr, size);
    blocks += p && !ptr;
    return p;
}

ah_host *open_host(ah_config cfg)
{
    ah_host *host = NULL;

    cfg.size = sizeof cfg;
    cfg.alloc = counted;
    STATUS(NULL, ah_open(&cfg, &host), AH_OK);
    return host;
}

ah_host *open_plain(void)
{
    return open_host((ah_config){0});
}

void shut(ah_host *host)
{
    ah_close(host);
    CHECK(blocks == 0);
}

void load(ah_host *host, const char *text)
{
    STATUS(host, ah_load(host, "case.lua", text, strlen(text), 0, NULL), AH_OK);
}

ah_agent *agent_of(ah_host *host, const char *config)
{
    ah_agent *agent = NULL;

    STATUS(host, ah_agent_open(host, config, &agent), AH_OK);
    return agent;
}

void step_until_done(ah_host *host)
{
    for (int i = 0; ah_step(host, 1000) > 0; i++)
        CHECK(i < 10000);
}

int main(int argc, char **argv)
{
    const a_case *const all[] = {host_cases,  tool_cases,     agent_cases, http_cases,
                                 lua_cases,   callback_cases, ask_cases,   process_cases,
                                 store_cases, task_cases,     tty_cases,   engine_cases};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (const a_case *c = all[i]; c->name; c++) {
            if (argc < 2)
                puts(c->name);
            else if (strcmp(argv[1], c->name) == 0) {
                alarm(LIMIT_S);
                c->run();
                return 0;
            }
        }
    return argc < 2 ? 0 : 2;
}
