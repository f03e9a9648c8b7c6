/* Stores of a program: conversations that are opened again, and an unfinished run that goes on. */
#include "cases.h"

#include <unistd.h>

/* A folder for one case. */
typedef struct place {
    char folder[40], file[60], config[200];
} place;

static void make_place(place *p)
{
    snprintf(p->folder, sizeof p->folder, "/tmp/agenthost-case-XXXXXX");
    CHECK(mkdtemp(p->folder) != NULL);
    snprintf(p->file, sizeof p->file, "%s/s.db", p->folder);
    snprintf(p->config, sizeof p->config,
             "{\"model\":\"demo/echo\",\"store\":\"%s\",\"id\":\"one\"}", p->file);
}

static void remove_place(const place *p)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-locks"};
    char path[80];

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", p->file, ends[i]);
        unlink(path);
    }
    CHECK(rmdir(p->folder) == 0);
}

static void goes_on(void)
{
    ah_host *host = open_plain();
    ah_store *store = NULL;
    ah_agent *agent, *other = NULL;
    place p;

    make_place(&p);
    STATUS(host, ah_store_open(host, p.file, &store), AH_OK);
    agent = agent_of(host, p.config);
    HAS(ah_agent_id(agent), "one");
    STATUS(host, ah_agent_run(agent, "First"), AH_OK);
    STATUS(host, ah_agent_open(host, p.config, &other), AH_CONFLICT);
    ah_agent_close(agent);
    agent = agent_of(host, p.config);
    STATUS(host, ah_agent_run(agent, "Second"), AH_OK);
    HAS(ah_agent_messages(agent), "First");
    CHECK(strchr(ah_agent_head(agent), ':') && strlen(ah_agent_head(agent)) > 64);
    ah_agent_close(agent);
    ah_store_close(store);
    shut(host);

    host = open_plain(); /* as a later program */
    agent = agent_of(host, p.config);
    STATUS(host, ah_agent_run(agent, "Third"), AH_OK);
    HAS(ah_agent_messages(agent), "Second");
    ah_agent_close(agent);
    shut(host);
    remove_place(&p);
}

static void goes_on_with_an_unfinished_run(void)
{
    static const char script[] =
        "local ah = require 'agenthost'\n"
        "local times = 0\n"
        "local tool = ah.tool { name = 'wait', description = 'Waits.', on_lost = 'retry',\n"
        "  handler = function() times = times + 1; ah.sleep(LONG); return 'waited' end }\n"
        "return { agent = ah.agent { store = STORE, id = 'two', tools = { tool },\n"
        "  model = ah.scripted { resumes = true, { calls = { { name = 'wait' } } }, 'The end.' } } "
        "}\n";
    ah_host *host = open_plain();
    ah_agent *agent = NULL;
    char text[1000];
    place p;

    make_place(&p);
    snprintf(text, sizeof text, "STORE, LONG = '%s', 60\n%s", p.file, script);
    load(host, text);
    STATUS(host, ah_agent_find(host, "agent", &agent), AH_OK);
    STATUS(host, ah_agent_start(agent, "Go."), AH_OK);
    for (int i = 0; i < 50 && ah_counter(host, "agenthost.requests") < 1; i++)
        ah_step(host, 10);
    for (int i = 0; i < 5; i++)
        ah_step(host, 10);
    shut(host); /* the handler is at work */

    host = open_plain();
    agent = NULL;
    snprintf(text, sizeof text, "STORE, LONG = '%s', 0\n%s", p.file, script);
    load(host, text);
    STATUS(host, ah_agent_find(host, "agent", &agent), AH_OK);
    STATUS(host, ah_agent_run(agent, "Another."), AH_USAGE);
    HAS(ah_errmsg(host), "'Go.'");
    STATUS(host, ah_agent_run(agent, NULL), AH_OK);
    HAS(ah_agent_reply(agent)->text, "The end.");
    HAS(ah_agent_messages(agent), "waited");
    ah_agent_close(agent);
    shut(host);
    remove_place(&p);
}

static void is_refused(void)
{
    static const char *const wrong[] = {"", "{\"engine\":\"tape\"}", "{\"path\":7}", "{"};
    ah_host *host = open_plain();
    ah_store *store = NULL;
    ah_agent *agent;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        STATUS(host, ah_store_open(host, wrong[i], &store), AH_USAGE);
    STATUS(host, ah_store_open(host, "/proc/none/s.db", &store), AH_STORE);
    STATUS(host, ah_store_open(host, "x", NULL), AH_USAGE);
    CHECK(store == NULL);
    ah_store_close(store);
    agent = agent_of(host, "{\"model\":\"demo/echo\"}");
    CHECK(ah_agent_id(agent) == NULL && ah_agent_head(agent) == NULL);
    ah_agent_close(agent);
    shut(host);
}

const a_case store_cases[] = {
    {"a conversation in a store goes on", goes_on},
    {"an unfinished run in a store goes on", goes_on_with_an_unfinished_run},
    {"a store that cannot be opened is refused", is_refused},
    {NULL, NULL},
};
