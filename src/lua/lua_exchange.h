/* The exchanges of adapters written in Lua: a function is given an object to write the answer into.
 * It may end a message with calls and wait for their results; then the run's next exchange is its
 * own. */
#ifndef AH_LUA_EXCHANGE_H
#define AH_LUA_EXCHANGE_H

#include "lua/lua_state.h"
#include "wire/scripted.h"

typedef struct ah_lua_exchange ah_lua_exchange;

typedef struct ah_lua_adapter {
    ah_scripted scripted;
    ah_lua *lua;
    bool reads; /* its answers are lines of a provider's wire */
    int ref;    /* function(exchange) */
    int asks;   /* function(name, arguments, call_id): true if `runs` stands in; LUA_NOREF: never */
    ah_tool *runs; /* doubles: a tool of any arguments */
    int told;      /* function(what, conversation): see tell in lua_exchange.c; LUA_NOREF: none */
    ah_lua_exchange *paused; /* exchanges that wait for results */
} ah_lua_adapter;

/* Slots of ah_scripted. */
void ah_lua_exchange_start(ah_scripted *s, struct ah_exchange *x);
void ah_lua_exchange_stop(ah_scripted *s, struct ah_exchange *x);
void ah_lua_exchange_rest(ah_scripted *s, const ah_wire *w);
/* The conversation is over. */
void ah_lua_exchange_leave(ah_scripted *s, const ah_wire *w);
/* Ends all tasks that wait and calls `told` for all conversations, before the adapter is freed. */
void ah_lua_exchange_release(ah_lua_adapter *a);

void ah_lua_open_exchange(lua_State *L);

#endif
