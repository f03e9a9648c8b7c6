/* Subscriptions to a dispatcher (lua_subscribe.c). They are Lua values: the dispatcher's object
 * keeps their list. Callers: its module. */
#ifndef AH_LUA_SUBSCRIBE_H
#define AH_LUA_SUBSCRIBE_H

#include "lua/lua_state.h"

#define AH_DISPATCHER "agenthost.dispatcher"

/* A userdata; its user value 1 is the list of its subscriptions. The list is replaced, never
 * changed, so that a loop over it is safe. */
typedef struct ah_dispatcher {
    lua_Integer subscribers;
} ah_dispatcher;

/* Pushes the function of the subscription on top if it is for the type at idx; else pushes nothing
 * and returns false. */
bool ah_lua_push_subscriber(lua_State *L, int type);
/* dispatcher:subscribe(Type or name or nil, fn): returns a function that ends the subscription. */
int ah_lua_subscribe(lua_State *L);

#endif
