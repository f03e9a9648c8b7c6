/* Cases of tasks that scripts start in a program: ah_join, steps, cancels, closes, several hosts.
 */
#include <agenthost_lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <poll.h>
#include <pthread.h>

#include "cases.h"

/* Scripts write to the log; each line is kept, with a space behind it. */
typedef struct heard {
    char text[2000];
    ah_host *host;
    ah_status got;
} heard;

static void on_log(void *ud, ah_log_level level, const char *line)
{
    heard *h = ud;
    size_t n = strlen(h->text);
    const char *word = strrchr(line, ' ');

    (void)level;
    snprintf(h->text + n, sizeof h->text - n, "%s ", word ? word + 1 : line);
}

static ah_host *listening(heard *h)
{
    *h = (heard){.got = AH_OK};
    h->host = open_host((ah_config){.log = on_log, .log_ud = h, .log_level = AH_LOG_INFO});
    load(h->host, "ah = require 'agenthost'\n"
                  "function say(w) ah.log('info', w) end\n"
                  "function held(w, f, ...)\n"
                  "  local _ <close> = setmetatable({}, { __close = function() say(w) end })\n"
                  "  return f(...)\n"
                  "end");
    return h->host;
}

static void are_joined(void)
{
    heard h;
    ah_host *host = listening(&h);

    STATUS(host, ah_join(host), AH_OK);
    load(host, "ah.spawn(function() ah.sleep(0.3) say 'two' end)\n"
               "ah.spawn(function() ah.sleep(0.01) ah.spawn(say, 'one') end)");
    CHECK(strcmp(h.text, "") == 0);
    STATUS(host, ah_join(host), AH_OK);
    CHECK(strcmp(h.text, "one two ") == 0);
    STATUS(host, ah_join(host), AH_OK);
    shut(host);
}

/* Waits as a program with a loop of its own does, at most 10 s. */
static void wait_for(heard *h, const char *word)
{
    for (int i = 0; i < 10000 && !strstr(h->text, word); i++) {
        struct pollfd fd = {.fd = ah_pollfd(h->host), .events = POLLIN};
        int ms = ah_timeout(h->host);

        CHECK(ms >= 0);
        poll(&fd, 1, ms > 0 ? ms : 1);
        ah_step(h->host, 0);
    }
    HAS(h->text, word);
}

static void go_on_in_steps(void)
{
    heard h;
    ah_host *host = listening(&h);

    load(host, "ah.spawn(function() ah.sleep(0.01) say 'one' ah.sleep(0.01) say 'two' end)");
    CHECK(ah_step(host, 0) == 0 && strcmp(h.text, "") == 0); /* no run was started */
    wait_for(&h, "two");
    CHECK(strcmp(h.text, "one two ") == 0);
    shut(host);
}

static void go_on_in_calls_that_wait(void)
{
    heard h;
    ah_host *host = listening(&h);
    ah_agent *agent;

    load(host, "local m = ah.scripted(function() ah.sleep(0.02) return 'x' end)\n"
               "ah.spawn(function() ah.sleep(0.005) say 'task' end)\n"
               "return { m = m, ah.tool { name = 'nap', description = 'Naps.',\n"
               "  handler = function()\n"
               "    ah.spawn(function() ah.sleep(0.01) say 'part' end)\n"
               "    ah.spawn(ah.sleep, 0.02)\n"
               "  end } }");
    agent = agent_of(host, "{\"model\":\"m\"}");
    STATUS(host, ah_agent_run(agent, "hi"), AH_OK);
    HAS(h.text, "task ");
    STATUS(host, ah_call_tool(host, "nap", NULL, NULL), AH_OK);
    HAS(h.text, "part ");
    shut(host);
}

static void give_the_loop_their_times(void)
{
    heard h;
    ah_host *host = listening(&h);
    int ms;

    load(host, "ah.spawn(function() ah.sleep(1000) end)");
    ah_step(host, 0);
    ms = ah_timeout(host);
    CHECK(ms > 900000 && ms <= 1000000);
    load(host, "ah.spawn(function() ah.sleep(0.01) say 'woken' end)");
    CHECK(ah_timeout(host) == 0); /* it has not begun */
    ah_step(host, 0);
    ms = ah_timeout(host);
    CHECK(ms >= 0 && ms <= 10);
    wait_for(&h, "woken");
    shut(host);
}

static void report_what_nothing_awaited(void)
{
    heard h;
    ah_host *host = listening(&h);

    load(host, "ah.spawn(function()\n"
               "  ah.sleep(0.01)\n"
               "  error(ah.error { code = 'http', message = 'gone', status = 503 })\n"
               "end)\n"
               "ah.spawn(function() ah.sleep(0.02) error('further', 0) end)\n"
               "ah.spawn(function() ah.sleep(0.03) say 'lived' end)");
    STATUS(host, ah_join(host), AH_HTTP);
    CHECK(ah_last_error(host)->http_status == 503);
    HAS(h.text, "lived");
    STATUS(host, ah_join(host), AH_OK);
    load(host, "ah.spawn(function() error('plain') end)");
    for (int i = 0; i < 10; i++)
        ah_step(host, 0); /* it has ended long before the program waits for it */
    STATUS(host, ah_join(host), AH_INTERNAL);
    HAS(ah_errmsg(host), "case.lua:1: plain");
    shut(host);
}

static void report_a_deadlock(void)
{
    heard h;
    ah_host *host = listening(&h);

    load(host, "local c = ah.channel()\nah.spawn(function() held('closed', c.receive, c) end)");
    STATUS(host, ah_join(host), AH_INTERNAL);
    HAS(ah_errmsg(host), "deadlock");
    HAS(ah_errmsg(host), "case.lua:2");
    load(host, "ah.spawn(say, 'still')"); /* the host goes on */
    for (int i = 0; i < 5; i++)
        ah_step(host, 0);
    HAS(h.text, "still");
    CHECK(!strstr(h.text, "closed"));
    ah_close(host);
    HAS(h.text, "closed");
}

static void are_stopped_and_closed_with_their_host(void)
{
    heard h;
    ah_host *host = listening(&h);

    load(host,
         "local c = ah.channel()\n"
         "ah.spawn(function() held('sleeper', ah.sleep, 1000) say 'wrong' end)\n"
         "ah.spawn(function() held('receiver', c.receive, c) say 'wrong' end)\n"
         "ah.spawn(function()\n"
         "  held('outer', function()\n"
         "    ah.scope(function(s) s:spawn(held, 'inner', ah.sleep, 1000) end)\n"
         "  end)\n"
         "end)\n"
         "local m = ah.scripted { { calls = { { name = 'nap' } } }, 'never' }\n"
         "local nap = ah.tool { name = 'nap', description = 'Naps.',\n"
         "  handler = function()\n"
         "    ah.spawn(held, 'below', ah.sleep, 1000)\n"
         "    held('handler', ah.sleep, 1000)\n"
         "  end }\n"
         "ah.spawn(function() held('runner', ah.run, { model = m, tools = { nap }, 'go' }) end)\n"
         "ah.spawn(function() say 'never begun' end)\n");
    for (int i = 0; i < 20; i++)
        ah_step(host, 0);
    CHECK(!strstr(h.text, "sleeper"));
    load(host, "ah.spawn(held, 'not begun', print)");
    ah_close(host);
    HAS(h.text, "sleeper ");
    HAS(h.text, "receiver ");
    HAS(h.text, "outer ");
    HAS(h.text, "inner ");
    HAS(h.text, "below ");
    HAS(h.text, "handler ");
    HAS(h.text, "runner ");
    CHECK(!strstr(h.text, "wrong"));
}

static void *cancel_it(void *host)
{
    ah_cancel(host);
    return NULL;
}

static void are_cancelled_from_a_thread(void)
{
    heard h;
    ah_host *host = listening(&h);
    pthread_t thread;

    load(host, "ah.spawn(function()\n"
               "  ah.sleep(0.05)\n"
               "  say 'lived'\n"
               "end)\n");
    CHECK(pthread_create(&thread, NULL, cancel_it, host) == 0);
    pthread_join(thread, NULL);
    STATUS(host, ah_join(host), AH_OK); /* nothing was at work: it is forgotten */
    HAS(h.text, "lived");
    shut(host);
}

static int cancel(lua_State *L)
{
    ah_cancel(lua_touserdata(L, lua_upvalueindex(1)));
    return 0;
}

static lua_State *attached(ah_host **host)
{
    lua_State *L = luaL_newstate();

    CHECK(L != NULL);
    luaL_openlibs(L);
    STATUS(NULL, ah_attach(L, NULL, host, NULL), AH_OK);
    lua_pushlightuserdata(L, *host);
    lua_pushcclosure(L, cancel, 1);
    lua_setglobal(L, "cancel");
    if (luaL_dostring(L, "ah = require 'agenthost' seen = ''") != LUA_OK)
        fail(__FILE__, __LINE__, "dostring", lua_tostring(L, -1));
    return L;
}

static void seen(lua_State *L, const char *what)
{
    lua_getglobal(L, "seen");
    HAS(lua_tostring(L, -1), what);
    lua_pop(L, 1);
}

static void end_the_wait_for_them_by_a_cancel(void)
{
    ah_host *host = NULL;
    lua_State *L = attached(&host);

    load(host, "stay = ah.spawn(function() ah.sleep(0.1) seen = seen .. 'stayed ' end)\n"
               "ah.spawn(function() ah.sleep(0.01) cancel() end)");
    STATUS(host, ah_join(host), AH_CANCELLED);
    load(host, "assert(stay:status() == 'running')"); /* a cancel ends the wait, not the tasks */
    STATUS(host, ah_join(host), AH_OK);
    seen(L, "stayed");
    ah_close(host);
    lua_close(L);
}

static void end_with_the_state_of_the_program(void)
{
    ah_host *host = NULL;
    lua_State *L = attached(&host);

    load(host,
         "ah.spawn(function()\n"
         "  local _ <close> = setmetatable({}, { __close = function() seen = 'closed' end })\n"
         "  ah.sleep(1000)\n"
         "end)\n"
         "ah.yield()");
    ah_close(host);
    if (luaL_dostring(L, "local t = ah.spawn(function() ah.sleep(0.01) return 7 end)\n"
                         "assert(t:await() == 7)\n"
                         "ah.spawn(function() ah.sleep(1000) end) ah.yield()") != LUA_OK)
        fail(__FILE__, __LINE__, "dostring", lua_tostring(L, -1));
    lua_close(L); /* a task is at work */
}

static void are_ended_by_terminate(void)
{
    heard h;
    ah_host *host = listening(&h);

    load(host, "ah.spawn(function() held('closed', ah.sleep, 1000) end) ah.yield()");
    ah_terminate(host);
    CHECK(ah_join(host) != AH_OK);
    ah_close(host);
    HAS(h.text, "closed");
}

static void of_two_hosts_do_not_meet(void)
{
    heard a, b;
    ah_host *one = listening(&a), *two = listening(&b);

    load(one, "ah.spawn(function() ah.yield() say 'one' end)");
    load(two, "ah.spawn(function() ah.yield() say 'two' end)");
    STATUS(one, ah_join(one), AH_OK);
    CHECK(strcmp(a.text, "one ") == 0 && strcmp(b.text, "") == 0);
    load(two, "ah.spawn(function() held('closed', ah.sleep, 1000) end)");
    ah_close(one);
    for (int i = 0; i < 5; i++)
        ah_step(two, 0);
    CHECK(strcmp(b.text, "two ") == 0);
    ah_close(two);
    CHECK(strcmp(b.text, "two closed ") == 0);
}

static void *in_a_thread(void *ud)
{
    heard h = {.got = AH_OK};
    ah_config cfg = {.size = sizeof cfg, .log = on_log, .log_ud = &h, .log_level = AH_LOG_INFO};
    ah_host *host = NULL;

    (void)ud;
    STATUS(NULL, ah_open(&cfg, &host), AH_OK);
    load(host, "ah = require 'agenthost' function say(w) ah.log('info', w) end");
    load(host, "local n = 0\n"
               "local c = ah.channel(3)\n"
               "ah.spawn(function() for v in c do n = n + v end say('sum=' .. n) end)\n"
               "ah.spawn(function()\n"
               "  ah.map({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, function(i)\n"
               "    assert(ah.run { model = 'demo/echo', 'hi' })\n"
               "    c:send(i)\n"
               "  end)\n"
               "  c:close()\n"
               "end)");
    STATUS(host, ah_join(host), AH_OK);
    HAS(h.text, "sum=55");
    load(host, "ah.spawn(ah.sleep, 1000)");
    ah_step(host, 0);
    ah_close(host);
    return NULL;
}

static void each_thread_has_its_own(void)
{
    enum { N = 4 };
    pthread_t threads[N];

    for (int i = 0; i < N; i++)
        CHECK(pthread_create(&threads[i], NULL, in_a_thread, NULL) == 0);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
}

/* -- callbacks ------------------------------------------------------------------------------- */

static void watch(void *ud, const ah_event *e)
{
    heard *h = ud;

    if (strcmp(e->type, "start") != 0)
        return;
    h->got = ah_join(h->host);
    ah_close(h->host); /* is refused */
}

static void are_not_joined_in_callbacks(void)
{
    heard h = {.got = AH_OK};
    ah_host *host = open_host((ah_config){.watcher = {.event = watch, .ud = &h},
                                          .log = on_log,
                                          .log_ud = &h,
                                          .log_level = AH_LOG_INFO});

    h.host = host;
    load(host, "local ah = require 'agenthost'\n"
               "ah.spawn(function() ah.sleep(0.01)\n"
               "  ah.log('info', assert(ah.run { model = 'demo/echo', 'done' }).text) end)");
    STATUS(host, ah_join(host), AH_OK);
    CHECK(h.got == AH_USAGE);
    HAS(h.text, "done ");
    shut(host);
}

/* -- memory ---------------------------------------------------------------------------------- */

static void beyond_the_memory_fails_alone(void)
{
    ah_host *host = open_host((ah_config){.max_memory = 12 << 20});

    load(host, "ah = require 'agenthost'\n"
               "other = ah.spawn(function() ah.sleep(0.05) return 'lived' end)\n"
               "greedy = ah.spawn(function()\n"
               "  local t = {}\n"
               "  while true do t[#t + 1] = ('x'):rep(10000) .. #t end\n"
               "end)\n");
    STATUS(host, ah_join(host), AH_INTERNAL);
    HAS(ah_errmsg(host), "out of memory");
    load(host, "assert(other:await() == 'lived' and greedy:status() == 'failed')");
    shut(host);
}

const a_case task_cases[] = {
    {"tasks are joined", are_joined},
    {"tasks go on in steps", go_on_in_steps},
    {"tasks go on in calls that wait", go_on_in_calls_that_wait},
    {"tasks give the loop of the program their times", give_the_loop_their_times},
    {"tasks report by ah_join what nothing awaited", report_what_nothing_awaited},
    {"tasks report a deadlock by ah_join", report_a_deadlock},
    {"tasks are stopped and closed with their host", are_stopped_and_closed_with_their_host},
    {"tasks are not ended by a cancel of a thread", are_cancelled_from_a_thread},
    {"tasks go on when the wait for them is cancelled", end_the_wait_for_them_by_a_cancel},
    {"tasks end with the state of the program", end_with_the_state_of_the_program},
    {"tasks are ended by ah_terminate", are_ended_by_terminate},
    {"tasks of two hosts do not meet", of_two_hosts_do_not_meet},
    {"tasks of hosts in threads", each_thread_has_its_own},
    {"tasks are not joined in callbacks, nor is the host closed", are_not_joined_in_callbacks},
    {"a task beyond the memory of the host fails alone", beyond_the_memory_fails_alone},
    {NULL, NULL}};
