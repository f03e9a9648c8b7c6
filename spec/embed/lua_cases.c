/* Cases of a program that has a Lua state of its own (agenthost_lua.h). */
#include <agenthost_lua.h>
#include <lauxlib.h>
#include <lualib.h>

#include "cases.h"

static lua_State *new_state(void)
{
    lua_State *L = luaL_newstate();

    CHECK(L != NULL);
    luaL_openlibs(L);
    return L;
}

static void do_string(lua_State *L, const char *text)
{
    if (luaL_dostring(L, text) != LUA_OK)
        fail(__FILE__, __LINE__, text, lua_tostring(L, -1));
}

static void is_attached(void)
{
    lua_State *L = new_state();
    ah_config cfg = {.size = sizeof cfg, .user = L};
    ah_host *host = NULL, *again = NULL;
    const char *got = NULL, *why = NULL;

    STATUS(NULL, ah_attach(L, &cfg, &host, &why), AH_OK);
    CHECK(ah_user(host) == L && lua_gettop(L) == 0);
    do_string(L, "x = 5 ah = require 'agenthost' assert(ah.run { model = 'demo/echo', 'hi' })");
    load(host,
         "return ah.tool { name = 't', description = 'A.', handler = function() return x end }");
    STATUS(host, ah_call_tool(host, "t", NULL, &got), AH_OK);
    CHECK(strcmp(got, "5") == 0);
    STATUS(NULL, ah_attach(L, NULL, &again, NULL), AH_OK);
    CHECK(again == host);
    STATUS(NULL, ah_attach(L, &cfg, &again, &why), AH_USAGE);
    HAS(why, "already");
    STATUS(host, ah_agent_start(agent_of(host, "{\"model\":\"demo/echo\"}"), "hi"), AH_OK);
    ah_close(host);
    do_string(L, "assert(ah.run { model = 'demo/echo', 'hi' })");
    lua_close(L);
}

static void ends_with_its_state(void)
{
    lua_State *L = new_state();
    ah_host *host = NULL;
    ah_agent *agent;

    do_string(L, "y = 1");
    STATUS(NULL, ah_attach(L, NULL, &host, NULL), AH_OK);
    agent = agent_of(host, "{\"model\":\"demo/echo\"}");
    STATUS(host, ah_agent_run(agent, "hi"), AH_OK);
    STATUS(host, ah_agent_start(agent, "hi"), AH_OK);
    ah_step(host, 0);
    lua_close(L); /* at work, and never closed */
}

static void another(void) {}

static void of_another_copy(void)
{
    lua_State *L = new_state();
    ah_config cfg = {.size = sizeof cfg, .max_memory = 1};
    ah_host *host = NULL;
    const char *why = NULL;
    ah_lua_copy other = {LUA_VERSION_NUM, another}, old = {503, (void (*)(void))lua_newstate};

    STATUS(NULL, ah_attach_copy(NULL, &other, NULL, &host, &why), AH_USAGE); /* L is not touched */
    HAS(why, "a Lua of its own");
    STATUS(NULL, ah_attach_copy(NULL, &old, NULL, &host, &why), AH_USAGE);
    HAS(why, "another version of Lua");
    STATUS(NULL, ah_attach(L, &cfg, &host, &why), AH_USAGE);
    HAS(why, "max_memory");
    cfg.size = 3;
    STATUS(NULL, ah_attach(L, &cfg, &host, &why), AH_USAGE);
    HAS(why, "size");
    cfg = (ah_config){.size = sizeof cfg, .record = "r.jsonl", .replay = "r.jsonl"};
    STATUS(NULL, ah_attach(L, &cfg, &host, &why), AH_USAGE);
    HAS(why, "record and replay");
    CHECK(host == NULL);
    lua_close(L);
}

/* Beside the mark of another copy of the library, neither way to open this copy works. */
static void beside_another_agenthost(void)
{
    lua_State *L = new_state();
    ah_host *host = NULL;
    const char *why = NULL;

    lua_pushlightuserdata(L, L);
    lua_setfield(L, LUA_REGISTRYINDEX, "agenthost.copy");
    STATUS(NULL, ah_attach(L, NULL, &host, &why), AH_USAGE);
    HAS(why, "another copy of agenthost");
    lua_pushcfunction(L, luaopen_agenthost);
    CHECK(lua_pcall(L, 0, 1, 0) != LUA_OK);
    HAS(lua_tostring(L, -1), "another copy of agenthost");
    lua_close(L);
}

/* From a function that Lua has called, inside a run of the host. */
static int call_from_lua(lua_State *L)
{
    ah_host *host = lua_touserdata(L, lua_upvalueindex(1));
    ah_agent *agent = lua_touserdata(L, lua_upvalueindex(2));

    CHECK(ah_step(host, 0) == AH_USAGE);
    ah_agent_close(agent);
    ah_close(host);
    STATUS(host, ah_load(host, "inner", "return 'inner'", 14, 0, NULL), AH_OK);
    CHECK(strcmp(ah_returned(host), "inner") == 0);
    STATUS(host, ah_agent_run(agent, "nested"), AH_OK);
    lua_pushstring(L, ah_agent_reply(agent)->text);
    return 1;
}

/* From an observer of a script, which cannot wait: what begins and reads is allowed. */
static int observe(lua_State *L)
{
    ah_host *host = lua_touserdata(L, lua_upvalueindex(1));
    ah_agent *agent = lua_touserdata(L, lua_upvalueindex(2)), *other = NULL;

    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\"}", &other), AH_USAGE);
    HAS(ah_errmsg(host), "ah_agent_open: it cannot be called from an observer");
    STATUS(host, ah_load(host, "x", "", 0, 0, NULL), AH_USAGE);
    STATUS(host, ah_agent_run(agent, "x"), AH_USAGE);
    STATUS(host, ah_agent_send(agent, "x"), AH_OK);
    CHECK(!other && ah_agent_messages(agent));
    return 0;
}

static void is_called_from_a_handler(void)
{
    lua_State *L = new_state();
    ah_host *host = NULL;

    STATUS(NULL, ah_attach(L, NULL, &host, NULL), AH_OK);
    lua_pushlightuserdata(L, host);
    lua_pushlightuserdata(L, agent_of(host, "{\"model\":\"demo/echo\"}"));
    lua_pushcclosure(L, call_from_lua, 2);
    lua_setglobal(L, "nested");
    lua_pushlightuserdata(L, host);
    lua_pushlightuserdata(L, agent_of(host, "{\"model\":\"demo/echo\"}"));
    lua_pushcclosure(L, observe, 2);
    lua_setglobal(L, "observe");
    do_string(L, "local seen = 0\n"
                 "assert(require('agenthost').run { model = 'demo/echo', 'x', on = function()\n"
                 "  observe() seen = seen + 1 end })\n"
                 "assert(seen > 0)");
    do_string(L, "local ah = require 'agenthost'\n"
                 "local t = ah.tool { name = 't', description = 'A.', handler = function() "
                 "return nested() end }\n"
                 "local reply = assert(ah.run { model = 'demo/tools', tools = { t }, 'go' })\n"
                 "assert(reply.text:find('t: nested', 1, true), reply.text)");
    lua_close(L);
}

/* Places for references in the registry, those that are free again among them. */
static size_t references(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCCOLLECT);
    return lua_rawlen(L, LUA_REGISTRYINDEX);
}

static void leaves_no_references(void)
{
    lua_State *L = new_state();
    ah_host *host = NULL;
    size_t first = 0, last = 0;

    STATUS(NULL, ah_attach(L, NULL, &host, NULL), AH_OK);
    for (int i = 0; i < 20; i++) {
        ah_agent *agent = agent_of(host, "{\"model\":\"demo/echo\"}");

        STATUS(host, ah_agent_run(agent, "one"), AH_OK);
        STATUS(host, ah_agent_run(agent, "two"), AH_OK);
        STATUS(host, ah_agent_start(agent, "three"), AH_OK);
        ah_agent_close(agent);
        last = references(L);
        if (i == 5)
            first = last;
    }
    CHECK(last == first);
    lua_close(L);
}

const a_case lua_cases[] = {
    {"a host is attached to a Lua state", is_attached},
    {"a host that is attached ends with its state", ends_with_its_state},
    {"a state of another copy of Lua is refused", of_another_copy},
    {"a state with another copy of agenthost is refused", beside_another_agenthost},
    {"a host is called from a handler", is_called_from_a_handler},
    {"agents that are closed leave no references", leaves_no_references},
    {NULL, NULL},
};
