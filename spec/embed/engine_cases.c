/* Cases of stores: conversations that a program opens again, engines of its own, and asks that wait
 * in a store. */
#include "engine.h"

#define ANN "{\"model\":\"demo/echo\",\"store\":{\"name\":\"mine\"},\"id\":\"ann\"}"

static engine *new_engine(void)
{
    engine *e = calloc(1, sizeof *e);

    CHECK(e);
    return e;
}

static void of_the_fields_of_ah_store(void)
{
    ah_host *host = open_plain();
    ah_store *store = NULL, *same = NULL;
    ah_agent *agent;

    STATUS(host, ah_store_open(host, "{\"engine\":\"memory\",\"name\":\"mine\"}", &store), AH_OK);
    STATUS(host, ah_store_open(host, "{\"name\":\"mine\"}", &same), AH_OK);
    CHECK(store == same);
    agent = agent_of(host, ANN);
    CHECK(strcmp(ah_agent_id(agent), "ann") == 0);
    STATUS(host, ah_agent_run(agent, "My name is Ann."), AH_OK);
    ah_agent_close(agent);
    ah_store_close(same);
    agent = agent_of(host, ANN);
    HAS(ah_agent_messages(agent), "My name is Ann.");
    ah_store_close(store);
    ah_store_close(NULL);
    STATUS(host, ah_agent_run(agent, "Who am I?"), AH_OK);
    ah_agent_close(agent); /* it was the last use of the store */
    STATUS(host, ah_store_open(host, "{\"name\":\"mine\"}", &store), AH_USAGE);
    HAS(ah_errmsg(host), "no open store with the name \"mine\"");
    shut(host);
}

static void in_a_file(void)
{
    char folder[] = "/tmp/agenthost-case-XXXXXX", path[64], config[200], line[100];
    ah_host *host = open_plain();
    ah_store *store = NULL;
    ah_agent *agent;

    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(config, sizeof config, "{\"model\":\"demo/echo\",\"store\":\"%s\",\"id\":\"ann\"}",
             path);
    for (int i = 0; i < 2; i++) {
        STATUS(host, ah_store_open(host, path, &store), AH_OK);
        agent = agent_of(host, config);
        STATUS(host, ah_agent_run(agent, "Hello."), AH_OK);
        shut(host); /* closes the store */
        host = open_plain();
    }
    agent = agent_of(host, config);
    HAS(strstr(ah_agent_messages(agent), "Hello.") + 1, "Hello.");
    shut(host);
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    CHECK(system(line) == 0);
}

static void of_an_engine(ending ending)
{
    engine *e = new_engine();
    ah_host *host;
    ah_agent *agent;

    e->ending = ending;
    for (int i = 1; i <= 3; i++) {
        host = open_plain();
        open_engine(host, e, "mine");
        agent = agent_of(host, ANN);
        STATUS(host, ah_agent_run(agent, "again"), AH_OK);
        CHECK(count_records(e, "ann", "run_ended") == (size_t)i);
        CHECK(ah_agent_reply(agent)->iterations == 1);
        shut(host);
        CHECK(e->closes == i && !e->stream[0].held);
    }
    CHECK(count_records(e, "ann", "opened") == 1);
    free_engine(e);
}

static void of_an_engine_that_ends_appends_at_once(void)
{
    of_an_engine(AT_ONCE);
}

static void of_an_engine_that_ends_appends_when_it_must(void)
{
    engine *e = new_engine();
    ah_host *host = open_plain();
    ah_agent *agent;

    e->ending = BY_WAIT;
    open_engine(host, e, "mine");
    agent = agent_of(host, ANN);
    STATUS(host, ah_agent_start(agent, "x"), AH_OK);
    for (int i = 0; i < 100 && ah_step(host, 1) > 0; i++)
        if (e->id)
            ah_store_appended(host, e->id, AH_OK, NULL);
    STATUS(host, ah_agent_reply(agent)->status, AH_OK);
    shut(host);
    CHECK(count_records(e, "ann", "run_ended") == 1);
    free_engine(e);
}

static void of_an_engine_that_ends_appends_on_a_thread(void)
{
    of_an_engine(BY_A_THREAD);
}

static void of_an_engine_that_ends_appends_twice(void)
{
    of_an_engine(TWICE);
}

static void has_one_holder_in_two_hosts(void)
{
    engine *e = new_engine();
    ah_host *one = open_plain(), *two = open_plain();
    ah_config taking = {.take = true};
    ah_host *third;
    ah_agent *agent, *other = NULL;

    open_engine(one, e, "mine");
    open_engine(two, e, "mine");
    agent = agent_of(one, ANN);
    STATUS(one, ah_agent_run(agent, "first"), AH_OK);
    STATUS(two, ah_agent_open(two, ANN, &other), AH_CONFLICT);
    HAS(ah_errmsg(two), "another host holds it");
    ah_agent_close(agent);
    other = agent_of(two, ANN);
    HAS(ah_agent_messages(other), "first");
    third = open_host(taking);
    open_engine(third, e, "mine");
    agent = agent_of(third, ANN);
    STATUS(two, ah_agent_run(other, "no longer"), AH_STORE);
    STATUS(third, ah_agent_run(agent, "second"), AH_OK);
    CHECK(!strstr(ah_agent_messages(agent), "no longer"));
    ah_close(third);
    ah_close(two);
    shut(one);
    free_engine(e);
}

/* Two agents that pay: the clerk asks first. */
static const char clerk[] =
    "local ah = require 'agenthost'\n"
    "local function payer(id, more)\n"
    "  local fields = { store = { name = 'mine' }, id = id, log = function() end,\n"
    "    model = ah.scripted { resumes = true,\n"
    "      { calls = { { name = 'pay', id = 'p1', arguments = { euros = 12 } } } }, 'Paid.' },\n"
    "    tools = { ah.tool { name = 'pay', description = 'Pays.', params = { euros = 'integer' },\n"
    "      handler = function(args) return 'paid ' .. args.euros end } } }\n"
    "  fields.policies = more\n"
    "  return ah.agent(fields)\n"
    "end\n"
    "return { payer = payer 'paid',\n"
    "  clerk = payer('bill', { function() return 'ask', 'it costs money' end }) }\n";

static ah_agent *find_agent(ah_host *host, const char *name)
{
    ah_agent *agent = NULL;

    load(host, clerk);
    STATUS(host, ah_agent_find(host, name, &agent), AH_OK);
    return agent;
}

/* Runs the payer once. Returns true if the engine has failed; the agent then refuses runs. */
static bool fails_after(engine *e, int after)
{
    ah_host *host = open_plain();
    ah_agent *agent;
    ah_status st;

    open_engine(host, e, "mine");
    e->fail = after % 2 ? AH_STORE : (ah_status)77;
    e->fail_after = after;
    e->why = "the disk of the program is full";
    agent = find_agent(host, "payer");
    st = ah_agent_run(agent, "Pay the bill.");
    if (st != AH_OK) {
        STATUS(host, st, AH_STORE);
        HAS(ah_errmsg(host), e->why);
        STATUS(host, ah_agent_run(agent, "more"), AH_STORE);
    }
    shut(host);
    e->fail = AH_OK;
    return st != AH_OK;
}

/* The run goes on in another host, and its call is settled once. */
static void fails_at_any_append(void)
{
    int after = 0;

    for (bool failed = true; failed; after++) {
        engine *e = new_engine();
        ah_host *host;
        ah_agent *agent;

        CHECK(after < 20);
        failed = fails_after(e, after);
        host = open_plain();
        open_engine(host, e, "mine");
        agent = find_agent(host, "payer");
        if (failed)
            STATUS(host,
                   ah_agent_run(agent,
                                count_records(e, "paid", "run_started") ? NULL : "Pay the bill."),
                   AH_OK);
        HAS(ah_agent_messages(agent), "Paid.");
        CHECK(count_records(e, "paid", "opened") == 1);
        CHECK(count_records(e, "paid", "run_started") == 1);
        CHECK(count_records(e, "paid", "settled") == 1);
        CHECK(count_records(e, "paid", "run_ended") == 1);
        shut(host);
        free_engine(e);
    }
    CHECK(after > 2);
}

static void refuse_to_open(engine *e, const char *text)
{
    ah_host *host = open_plain();
    ah_agent *agent = NULL;

    open_engine(host, e, "mine");
    STATUS(host, ah_agent_open(host, ANN, &agent), AH_STORE);
    HAS(ah_errmsg(host), text);
    shut(host);
    for (size_t i = 0; i < e->n; i++)
        CHECK(!e->stream[i].held);
}

static void of_engines_that_lie(void)
{
    static const char bad[] = "the program's engine of the store is wrong";
    engine *e = new_engine();
    ah_host *host = open_plain();
    ah_store *store;
    const char *json = "unset";

    open_engine(host, e, "mine");
    STATUS(host, ah_agent_run(agent_of(host, ANN), "Hello."), AH_OK);
    shut(host);
    e->low_fence = true;
    refuse_to_open(e, bad);
    e->low_fence = false;
    e->out_of_order = true;
    refuse_to_open(e, "record 2 came where 1 was expected");
    e->out_of_order = false;
    e->no_kind = true;
    refuse_to_open(e, bad);
    e->no_kind = false;
    e->huge = true;
    refuse_to_open(e, bad);
    e->huge = false;
    e->fail_reads = AH_STORE;
    e->why = "\xff";
    refuse_to_open(e, "gives no reason");
    e->why = "the database is down";
    refuse_to_open(e, "the database is down");
    host = open_plain();
    store = open_engine(host, e, "mine");
    STATUS(host, ah_store_asks(store, NULL, &json), AH_STORE);
    e->fail_reads = AH_OK;
    e->no_name = true;
    STATUS(host, ah_store_asks(store, NULL, &json), AH_STORE);
    HAS(ah_errmsg(host), bad);
    CHECK(strcmp(json, "unset") == 0);
    shut(host);
    free_engine(e);
}

static void of_an_engine_that_loses_appends(void)
{
    engine *e = new_engine();
    ah_host *host = open_plain();
    ah_agent *agent;

    open_engine(host, e, "mine");
    e->ending = NEVER;
    agent = agent_of(host, ANN);
    STATUS(host, ah_agent_start(agent, "Hello."), AH_OK);
    for (int i = 0; i < 5; i++)
        CHECK(ah_step(host, 0) == 1 || i == 0);
    CHECK(e->appends == 1);
    ah_agent_close(agent);
    STATUS(host, ah_store_appended(host, e->id, AH_OK, NULL), AH_USAGE);
    STATUS(host, ah_store_appended(host, 12345, AH_OK, NULL), AH_USAGE);
    STATUS(host, ah_store_appended(host, 0, AH_OK, NULL), AH_USAGE);
    shut(host);
    free_engine(e);
}

static void refuse(ah_host *host, const ah_store_engine *config, const char *text)
{
    ah_store *store = NULL;

    STATUS(host, ah_store_open_with(host, config, &store), AH_USAGE);
    HAS(ah_errmsg(host), text);
    CHECK(!store);
}

static void of_engines_that_are_incomplete(void)
{
    engine *e = new_engine();
    ah_host *host = open_plain();
    ah_store_engine good = engine_config(e, "mine"), bad = good;
    ah_store *store = NULL;
    char name[130];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    refuse(host, NULL, "must not be NULL");
    STATUS(host, ah_store_open_with(host, &good, NULL), AH_USAGE);
    bad.size = 8;
    refuse(host, &bad, "sizeof(ah_store_engine)");
    bad = good;
    bad.name = NULL;
    refuse(host, &bad, "name must not be NULL");
    bad.name = "";
    refuse(host, &bad, "1 to 128 bytes");
    bad.name = name;
    refuse(host, &bad, "1 to 128 bytes");
    bad.name = "\xff";
    refuse(host, &bad, "1 to 128 bytes");
    bad = good;
    bad.read = NULL;
    refuse(host, &bad, "`read` is missing");
    bad = good;
    bad.inbox = NULL;
    refuse(host, &bad, "`inbox` is missing");
    STATUS(host, ah_store_open_with(host, &good, &store), AH_OK);
    refuse(host, &good, "another open store with the name \"mine\"");
    CHECK(e->closes == 0);
    ah_store_close(store);
    CHECK(e->closes == 1);
    STATUS(host, ah_store_open_with(host, &good, &store), AH_OK);
    shut(host);
    CHECK(e->closes == 2);
    free_engine(e);
}

static void with_wrong_arguments(void)
{
    ah_host *host = open_plain();
    ah_store *store = NULL;
    const char *json = NULL;

    STATUS(host, ah_store_open(host, "{\"engine\":\"memory\"}", NULL), AH_USAGE);
    STATUS(host, ah_store_open(host, "{\"engine\":", &store), AH_USAGE);
    STATUS(host, ah_store_open(host, "{}", &store), AH_USAGE);
    STATUS(host, ah_store_open(host, "{\"path\":\"x.db\",\"name\":\"y\"}", &store), AH_USAGE);
    CHECK(!store);
    STATUS(host, ah_store_open(host, "{\"engine\":\"memory\"}", &store), AH_OK);
    STATUS(host, ah_store_asks(store, NULL, NULL), AH_USAGE);
    STATUS(host, ah_store_asks(store, "\xff", &json), AH_USAGE);
    STATUS(host, ah_store_respond(store, NULL, "1", "true", NULL), AH_USAGE);
    STATUS(host, ah_store_respond(store, "x", NULL, "true", NULL), AH_USAGE);
    STATUS(host, ah_store_respond(store, "x", "1", NULL, NULL), AH_USAGE);
    STATUS(host, ah_store_respond(store, "x", "1", "{", NULL), AH_TOOL_VALIDATION);
    STATUS(host, ah_store_respond(store, "x", "1", "true", ""), AH_USAGE);
    HAS(ah_errmsg(host), "ah_store_respond: the principal");
    STATUS(host, ah_store_respond(store, "x", "1", "true", NULL), AH_USAGE);
    STATUS(host, ah_store_asks(store, NULL, &json), AH_OK);
    CHECK(strcmp(json, "[]") == 0);
    shut(host);
}

/* -- memory ---------------------------------------------------------------------------------- */

static long blocks_left, until_failure; /* until_failure 0: none is to come */

static void *failing(void *ud, void *ptr, size_t size)
{
    void *p;

    (void)ud;
    if (size == 0) {
        blocks_left -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (until_failure > 0 && --until_failure == 0)
        return NULL;
    p = realloc(ptr, size);
    blocks_left += p && !ptr;
    return p;
}

static ah_status use_all(ah_host *host, engine *e)
{
    ah_store_engine config = engine_config(e, "mine");
    ah_store *store = NULL;
    ah_agent *agent = NULL;
    const char *json = NULL;
    ah_status st;

    if ((st = ah_store_open_with(host, &config, &store)) != AH_OK ||
        (st = ah_agent_open(host, ANN, &agent)) != AH_OK)
        return st;
    if ((st = ah_agent_run(agent, "Hello.")) == AH_USAGE)
        st = ah_agent_run(agent, NULL); /* the unfinished run */
    if (st != AH_OK || (st = ah_store_asks(store, NULL, &json)) != AH_OK)
        return st;
    st = ah_store_respond(store, "ann", "1", "true", NULL);
    return st == AH_USAGE ? AH_OK : st;
}

/* The n-th allocation fails, for every third n. Afterwards the conversation goes on in another
 * host. */
static void whose_memory_fails(void)
{
    int failed = 0;
    bool reached = true;

    for (long n = 1; reached; n += 3) {
        ah_config cfg = {.size = sizeof cfg, .alloc = failing};
        engine *e = new_engine();
        ah_host *host = NULL;
        ah_status st;

        STATUS(NULL, ah_open(&cfg, &host), AH_OK);
        until_failure = n;
        st = use_all(host, e);
        reached = until_failure == 0;
        until_failure = 0;
        failed += st != AH_OK;
        if (st != AH_OK && st != AH_NOMEM)
            HAS(ah_errmsg(host), "memory");
        ah_close(host);
        CHECK(blocks_left == 0);
        STATUS(NULL, ah_open(&cfg, &host), AH_OK);
        STATUS(host, use_all(host, e), AH_OK);
        ah_close(host);
        CHECK(e->closes >= 1 && count_records(e, "ann", "opened") == 1);
        free_engine(e);
    }
    CHECK(failed > 30);
}

/* -- asks ------------------------------------------------------------------------------------ */

static void waits_for_a_response_of_another_host(void)
{
    engine *e = new_engine();
    ah_host *host = open_plain(), *desk;
    ah_store *store;
    ah_agent *agent;
    const char *json = NULL;
    bool told = false;

    open_engine(host, e, "mine");
    agent = find_agent(host, "clerk");
    STATUS(host, ah_agent_run(agent, "Pay the bill."), AH_WAITING);
    CHECK(ah_agent_reply(agent)->status == AH_WAITING);
    STATUS(host, ah_agent_run(agent, NULL), AH_WAITING);
    shut(host);
    desk = open_plain();
    store = open_engine(desk, e, "desk");
    STATUS(desk, ah_store_asks(store, "other", &json), AH_OK);
    CHECK(strcmp(json, "[]") == 0);
    STATUS(desk, ah_store_asks(store, "bi", &json), AH_OK);
    HAS(json, "\"conversation\":\"bill\"");
    HAS(json, "\"question\":\"it costs money\"");
    HAS(json, "\"arguments\":{\"euros\":12}");
    STATUS(desk, ah_store_respond(store, "bill", "1", "7", "ann"), AH_TOOL_VALIDATION);
    STATUS(desk, ah_store_respond(store, "bill", "9", "true", "ann"), AH_USAGE);
    STATUS(desk, ah_store_respond(store, "bill", "1", "true", "ann"), AH_OK);
    STATUS(desk, ah_store_respond(store, "bill", "1", "false", "bob"), AH_CONFLICT);
    shut(desk);
    host = open_plain();
    open_engine(host, e, "mine");
    agent = find_agent(host, "clerk");
    STATUS(host, ah_agent_start(agent, NULL), AH_OK);
    step_until_done(host);
    for (const ah_event *event; (event = ah_next_event(host));)
        told |= strcmp(event->type, "resumed") == 0;
    CHECK(told && ah_agent_reply(agent)->status == AH_OK);
    CHECK(strcmp(ah_agent_reply(agent)->text, "Paid.") == 0);
    HAS(ah_agent_messages(agent), "paid 12");
    shut(host);
    free_engine(e);
}

static void is_open_for_the_program_and_the_store(void)
{
    engine *e = new_engine();
    ah_host *host = open_host((ah_config){.asks = true});
    ah_store *store = open_engine(host, e, "mine");
    ah_agent *agent = find_agent(host, "clerk");
    const ah_ask *ask = NULL;
    const char *json = NULL;
    char id[32];

    STATUS(host, ah_agent_start(agent, "Pay the bill."), AH_OK);
    for (int i = 0; !(ask = ah_ask_next(host)) && i < 1000; i++)
        CHECK(ah_step(host, 1) > 0);
    CHECK(ask);
    snprintf(id, sizeof id, "%s", ask->id);
    STATUS(host, ah_store_asks(store, NULL, &json), AH_OK);
    HAS(json, "\"ask\":\"1\"");
    STATUS(host, ah_ask_close(host, id, "true", "ann"), AH_OK);
    step_until_done(host);
    CHECK(strcmp(ah_agent_reply(agent)->text, "Paid.") == 0);
    STATUS(host, ah_store_asks(store, NULL, &json), AH_OK);
    CHECK(strcmp(json, "[]") == 0);
    CHECK(count_records(e, "bill", "ask_closed") == 1);
    shut(host);
    free_engine(e);
}

static void is_answered_in_the_store_while_the_run_waits(void)
{
    engine *e = new_engine();
    ah_host *host = open_host((ah_config){.asks = true});
    ah_store *store = open_engine(host, e, "mine");
    ah_agent *agent = find_agent(host, "clerk");

    STATUS(host, ah_agent_start(agent, "Pay the bill."), AH_OK);
    for (int i = 0; !ah_ask_next(host) && i < 1000; i++)
        CHECK(ah_step(host, 1) > 0);
    STATUS(host, ah_store_respond(store, "bill", "1", "true", NULL), AH_OK);
    step_until_done(host);
    CHECK(strcmp(ah_agent_reply(agent)->text, "Paid.") == 0);
    shut(host);
    free_engine(e);
}

const a_case engine_cases[] = {
    {"a store of the fields of ah.store, by its name", of_the_fields_of_ah_store},
    {"a store in a file", in_a_file},
    {"a store of an engine that ends appends at once", of_an_engine_that_ends_appends_at_once},
    {"a store of an engine that ends appends later", of_an_engine_that_ends_appends_when_it_must},
    {"a store of an engine that ends appends on a thread",
     of_an_engine_that_ends_appends_on_a_thread},
    {"a store of an engine that ends appends twice", of_an_engine_that_ends_appends_twice},
    {"a conversation has one holder in two hosts", has_one_holder_in_two_hosts},
    {"a store that fails at any append", fails_at_any_append},
    {"a store of engines that lie", of_engines_that_lie},
    {"a store of an engine that loses appends", of_an_engine_that_loses_appends},
    {"a store of engines that are incomplete", of_engines_that_are_incomplete},
    {"a store with wrong arguments", with_wrong_arguments},
    {"a store of an engine whose host has no memory", whose_memory_fails},
    {"an ask waits in the store for a response of another host",
     waits_for_a_response_of_another_host},
    {"an ask is open for the program and in the store", is_open_for_the_program_and_the_store},
    {"an ask is answered in the store while the run waits",
     is_answered_in_the_store_while_the_run_waits},
    {NULL, NULL},
};
