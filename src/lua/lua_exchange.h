/* Exchanges of adapters written in Lua: runs the adapter's function as a task that writes the
 * answer into an exchange object. The function may end a message with calls and wait for their
 * results; the next exchange of the same run then belongs to the same task. The adapter lists the
 * paused exchanges, and ends them when it is released. Callers: its module. */
#ifndef AH_LUA_EXCHANGE_H
#define AH_LUA_EXCHANGE_H

#include "lua/lua_state.h"
#include "wire/scripted.h"

typedef struct ah_lua_exchange ah_lua_exchange;

typedef struct ah_lua_adapter {
    ah_scripted scripted;
    ah_lua *lua;
    bool reads;    /* its answers are lines of a provider's wire */
    int ref;       /* function(exchange) */
    int asks;      /* function(name, arguments, call_id): true: call `runs`; LUA_NOREF: none */
    ah_tool *runs; /* for doubles: a tool that takes any arguments */
    int told;      /* function(what, conversation): see lua_exchange.c; LUA_NOREF: none */
    ah_lua_exchange *paused; /* exchanges that wait for results */
} ah_lua_adapter;

/* Functions of ah_scripted. */
void ah_lua_exchange_start(ah_scripted *s, struct ah_exchange *x);
void ah_lua_exchange_stop(ah_scripted *s, struct ah_exchange *x);
void ah_lua_exchange_rest(ah_scripted *s, const ah_wire *w);
/* Called when the conversation is over. */
void ah_lua_exchange_leave(ah_scripted *s, const ah_wire *w);
/* Called before the adapter is freed. Ends all tasks that wait and calls `told` for all
 * conversations. */
void ah_lua_exchange_release(ah_lua_adapter *a);

void ah_lua_open_exchange(lua_State *L);

#endif
