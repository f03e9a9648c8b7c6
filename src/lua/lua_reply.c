/* The reply object: text, messages, counts, usage. It prints as its text. */
#include "lua/lua_reply.h"

#include "lua/lua_value.h"

static const char REPLY[] = "agenthost.reply";

enum { MAX_PRINT = 1 << 30 };

typedef struct reply {
    ah_transcript *transcript;
    size_t first, last; /* the run's entries */
    ah_text *text;
    ah_stop stop;
    int iterations, rounds;
    size_t tool_calls;
    ah_usage usage;
} reply;

void ah_lua_push_reply(lua_State *L, const ah_run *run, ah_transcript *t, size_t first)
{
    reply *r = lua_newuserdatauv(L, sizeof *r, 1);
    ah_run_result res;

    ah_run_result_of(run, &res);
    *r = (reply){.first = first,
                 .last = t->n,
                 .stop = res.stop,
                 .iterations = res.iterations,
                 .rounds = res.rounds,
                 .tool_calls = res.tool_calls,
                 .usage = res.usage};
    luaL_setmetatable(L, REPLY);
    r->transcript = ah_transcript_ref(t);
    if (!(r->text = ah_text_new(t->mem, res.text)))
        ah_lua_raise_nomem(L);
}

static int reply_gc(lua_State *L)
{
    reply *r = luaL_checkudata(L, 1, REPLY);

    ah_transcript_unref(r->transcript);
    r->transcript = NULL;
    ah_text_set(&r->text, NULL);
    return 0;
}

static int reply_tostring(lua_State *L)
{
    reply *r = luaL_checkudata(L, 1, REPLY);

    lua_pushlstring(L, r->text->data, r->text->len);
    return 1;
}

void ah_lua_push_transcript(lua_State *L, const ah_transcript *t)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PRINT);

    ah_transcript_print(t, b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    lua_pushlstring(L, b->data, b->len);
    ah_buf_clear(b);
    lua_remove(L, -2);
}

/* The whole conversation up to this reply, as messages. Made once. */
static int push_messages(lua_State *L, const reply *r)
{
    ah_err err;

    if (lua_getiuservalue(L, 1, 1) != LUA_TNIL)
        return 1;
    if (ah_lua_module(L, "agenthost.messages", &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_getfield(L, -1, "from_entries");
    lua_createtable(L, (int)r->last, 0);
    for (size_t i = 0; i < r->last; i++) {
        ah_lua_push_json(L, ah_text_slice(r->transcript->entry[i].json));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, 1);
    return 1;
}

static int push_usage(lua_State *L, const ah_usage *u)
{
    lua_createtable(L, 0, 6);
    lua_pushinteger(L, u->input);
    lua_setfield(L, -2, "input");
    lua_pushinteger(L, u->cached_read);
    lua_setfield(L, -2, "cached_read");
    lua_pushinteger(L, u->cached_write);
    lua_setfield(L, -2, "cached_write");
    lua_pushinteger(L, u->output);
    lua_setfield(L, -2, "output");
    lua_pushinteger(L, u->reasoning);
    lua_setfield(L, -2, "reasoning");
    lua_pushboolean(L, u->known);
    lua_setfield(L, -2, "known");
    return 1;
}

static int reply_transcript(lua_State *L)
{
    ah_lua_push_transcript(L, ((reply *)luaL_checkudata(L, 1, REPLY))->transcript);
    return 1;
}

static int reply_index(lua_State *L)
{
    const reply *r = luaL_checkudata(L, 1, REPLY);
    const char *key = luaL_checkstring(L, 2);

    if (strcmp(key, "text") == 0)
        lua_pushlstring(L, r->text->data, r->text->len);
    else if (strcmp(key, "messages") == 0)
        return push_messages(L, r);
    else if (strcmp(key, "usage") == 0)
        return push_usage(L, &r->usage);
    else if (strcmp(key, "stop") == 0)
        lua_pushstring(L, ah_stop_name(r->stop));
    else if (strcmp(key, "iterations") == 0)
        lua_pushinteger(L, r->iterations);
    else if (strcmp(key, "rounds") == 0)
        lua_pushinteger(L, r->rounds);
    else if (strcmp(key, "tool_calls") == 0)
        lua_pushinteger(L, (lua_Integer)r->tool_calls);
    else if (strcmp(key, "transcript") == 0)
        lua_pushcfunction(L, reply_transcript);
    else
        return ah_lua_raise(L, AH_USAGE, "reply: unknown field '%s'", key);
    return 1;
}

void ah_lua_open_reply(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", reply_gc}, {"__tostring", reply_tostring}, {"__index", reply_index}, {NULL, NULL}};

    luaL_newmetatable(L, REPLY);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
}
