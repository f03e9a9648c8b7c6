/* Planted faults that base/lent.h must find: lent bytes are used after a call out. `lent-faults
 * NAME` commits one; `lent-faults NAME kept` does the same correctly, with a copy. Without
 * arguments it prints the names, a line each, with "lent" behind them if the build poisons lent
 * copies. Run by lent_spec.lua. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agenthost.h"
#include "base/lent.h"
#include "io/http.h"
#include "io/process.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_task.h"
#include "run/run.h"

static bool kept; /* true: without the fault */
static char own[256];
static volatile char seen;

/* Returns the bytes to use after the call out: a copy if `kept`, else the lent bytes. */
static ah_slice take(ah_slice lent)
{
    if (!kept)
        return lent;
    memcpy(own, lent.p, lent.n);
    return (ah_slice){own, lent.n};
}

static void use(ah_slice bytes)
{
    for (size_t i = 0; i < bytes.n; i++)
        seen = bytes.p[i];
}

static ah_host *open_with(const ah_config *cfg)
{
    ah_host *host = NULL;

    if (ah_open(cfg, &host) != AH_OK)
        exit(3);
    return host;
}

static ah_lua *lua_of(ah_host *host)
{
    return host->owner;
}

static void load(ah_host *host, const char *text)
{
    if (ah_load(host, "lent", text, strlen(text), 0, NULL) == AH_OK)
        return;
    fprintf(stderr, "%s\n", ah_errmsg(host));
    exit(3);
}

/* Runs some code of a script. */
static void call_out(ah_lua *h)
{
    luaL_loadstring(h->caller, "collectgarbage()");
    ah_lua_call(h, h->caller, 0, 0, NULL);
}

/* -- into Lua -------------------------------------------------------------------------------- */

static void across_a_call(void)
{
    ah_host *host = open_with(NULL);
    ah_slice bytes = take(ah_lend(ah_slice_of("lent")));

    call_out(lua_of(host));
    use(bytes);
    ah_close(host);
}

static void field_of_a_table(void)
{
    ah_host *host = open_with(NULL);
    ah_lua *h = lua_of(host);
    ah_slice name;

    lua_newtable(h->main);
    lua_pushfstring(h->main, "%s of a field", "the text");
    lua_setfield(h->main, -2, "name");
    ah_lua_field_string(h->main, -1, "spec", "name", &name);
    name = take(name);
    lua_pushnil(h->main);
    lua_setfield(h->main, -2, "name");
    call_out(h);
    use(name);
    ah_close(host);
}

typedef struct sleeper {
    ah_task_waiter waiter;
    ah_timer timer;
    ah_slice bytes;
} sleeper;

static void woke(ah_timer *t)
{
    ah_task_waiter_done(&((sleeper *)(void *)((char *)t - offsetof(sleeper, timer)))->waiter);
}

static void left(ah_task_waiter *w)
{
    ah_timer_unset(&((sleeper *)(void *)w)->timer);
}

static int after_wait(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    use(((sleeper *)lua_touserdata(L, (int)ctx))->bytes);
    return 0;
}

static int wait_with(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    sleeper *s;

    ah_lua_can_await(L);
    s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (sleeper){.waiter.leave = left, .timer.fn = woke};
    s->bytes = take(ah_lend(ah_slice_of("lent")));
    ah_task_waiter_keep(L, &s->waiter);
    ah_timer_set(h->host->loop, &s->timer, ah_host_now(h->host) + 1);
    return ah_lua_await(L, &s->waiter, lua_gettop(L), after_wait);
}

static ah_host *open_waiting(void)
{
    ah_host *host = open_with(NULL);

    lua_pushcfunction(lua_of(host)->main, wait_with);
    lua_setglobal(lua_of(host)->main, "wait_with");
    return host;
}

static void across_a_drive(void)
{
    ah_host *host = open_waiting();

    load(host, "require 'agenthost' wait_with()");
    ah_close(host);
}

static const char in_handler[] =
    "local ah = require 'agenthost'\n"
    "local t = ah.tool { name = 't', description = 'T.', handler = function() wait_with() end }\n"
    "assert(ah.run { model = ah.scripted { { calls = { { name = 't' } } }, 'ok' }, tools = { t }, "
    "'go' })";

static void across_a_yield(void)
{
    ah_host *host = open_waiting();

    load(host, in_handler);
    ah_close(host);
}

/* -- into the program ------------------------------------------------------------------------- */

static ah_slice remembered;

static void on_event(void *ud, const ah_event *e)
{
    (void)ud;
    if (strcmp(e->type, "content") == 0)
        remembered = take((ah_slice){e->text, e->text_len});
}

static void event_of_a_watcher(void)
{
    ah_config cfg = {.size = sizeof cfg, .watcher = {.event = on_event, .content = true}};
    ah_host *host = open_with(&cfg);

    load(host, "local ah = require 'agenthost'\n"
               "assert(ah.run { model = 'demo/echo', 'Some words.' })");
    use(remembered);
    ah_close(host);
}

static void on_call(void *ud, ah_host *host, const ah_tool_call *call)
{
    (void)ud;
    remembered = take((ah_slice){call->args, call->args_len});
    ah_tool_done(host, call->id, "1");
}

static void arguments_of_a_tool(void)
{
    static const ah_tool_config tool = {
        .size = sizeof tool, .name = "t", .description = "T.", .call = on_call};
    ah_host *host = open_with(NULL);

    if (ah_add_tool(host, &tool) != AH_OK || ah_call_tool(host, "t", "{}", NULL) != AH_OK)
        exit(3);
    use(remembered);
    ah_close(host);
}

/* The program may free its text while one of its functions is called. */
static void text_of_the_program(void)
{
    ah_host *host = open_with(NULL);
    ah_slice text = take(ah_slice_of(ah_lend_text("a text")));

    ah_host_call_out(host, false);
    ah_host_came_back(host, false);
    use(text);
    ah_close(host);
}

/* -- notices ----------------------------------------------------------------------------------- */

static void change(void *ud, const ah_notice *e)
{
    (void)e;
    *(char *)ud = kept ? 'a' : 'z';
}

static void event_changed_meanwhile(void)
{
    char text[] = "abc";
    ah_field field = AH_F_STR("text", ah_slice_of(text));

    ah_event_tell(change, text, &(ah_notice){.type = AH_EVENT_CONTENT, .field = &field, .n = 1});
}

static void keep_shown(void *ud, const ah_notice *e)
{
    *(ah_slice *)ud = take(e->field[0].s);
}

static void event_kept(void)
{
    ah_field field = AH_F_STR("text", ah_slice_of("abc"));
    ah_slice shown;

    ah_event_tell(keep_shown, &shown,
                  &(ah_notice){.type = AH_EVENT_CONTENT, .field = &field, .n = 1});
    use(shown);
}

/* -- bytes from outside ------------------------------------------------------------------------ */

static void nothing(void *ud, ah_process *p)
{
    (void)ud;
    (void)p;
}

static void line_of_a_process(void)
{
    const char *const argv[] = {"/bin/echo", "a line", NULL}, *const env[] = {NULL};
    ah_process_config cfg = {.argv = argv, .env = env, .news = nothing};
    ah_host *host = open_with(NULL);
    ah_process *p = NULL;
    ah_slice line = {NULL, 0};
    ah_err err;

    if (ah_process_start(host->mem, host->loop, &cfg, &p, &err) != AH_OK)
        exit(3);
    for (int i = 0; i < 1000 && !(line = ah_process_output(p, AH_STDOUT)).n; i++)
        ah_loop_wait(host->loop, 100);
    line = take(line);
    call_out(lua_of(host));
    use(line);
    ah_process_free(p);
    ah_close(host);
}

/* A buffer that was taken and given back must not be read any more. */
static void bytes_given_back(void)
{
    ah_buf b, taken;
    ah_slice bytes;

    ah_buf_init(&b, &ah_mem_libc, 100);
    ah_buf_str(&b, "fed bytes");
    taken = ah_buf_take(&b);
    bytes = take(ah_buf_slice(&taken));
    ah_buf_give_back(&b, &taken);
    use(bytes);
    ah_buf_clear(&b);
}

static const struct fault {
    const char *name;
    void (*commit)(void);
} faults[] = {
    {"across a call", across_a_call},
    {"a field of a table", field_of_a_table},
    {"across a drive", across_a_drive},
    {"across a yield", across_a_yield},
    {"an event of a watcher", event_of_a_watcher},
    {"arguments of a tool", arguments_of_a_tool},
    {"a text of the program", text_of_the_program},
    {"an event that is changed meanwhile", event_changed_meanwhile},
    {"an event that is kept", event_kept},
    {"a line of a process", line_of_a_process},
    {"bytes given back", bytes_given_back},
    {NULL, NULL},
};

static int list(void)
{
    for (const struct fault *f = faults; f->name; f++)
        puts(f->name);
#ifdef AH_LENT
    puts("lent");
#endif
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return list();
    kept = argc > 2;
    for (const struct fault *f = faults; f->name; f++)
        if (strcmp(f->name, argv[1]) == 0) {
            f->commit();
            puts("done");
            return 0;
        }
    return 2;
}
