/* The inbox of a conversation with a store: responses, texts and cancellations that other processes
 * have posted. A run at work takes them when they come, a run that goes on before its first step.
 * What is taken is recorded, and leaves the inbox with that record. Callers: its module. */
#ifndef AH_LUA_INBOX_H
#define AH_LUA_INBOX_H

#include "base/err.h"

struct ah_lua_agent; /* lua_agent.h */
struct ah_driver_run;

/* Takes the messages for an agent whose run is not at work: responses go into the history of the
 * unfinished run, texts behind its turn. *cancelled: the run is to be cancelled. */
ah_status ah_lua_inbox_take(struct ah_lua_agent *a, bool *cancelled, ah_err *err);
/* Closes the open asks of the unfinished run without a response: approvals are refused. */
ah_status ah_lua_inbox_decline(struct ah_lua_agent *a, ah_err *err);
/* Takes messages as they come, from now on until the unwatch, for the run at work. */
void ah_lua_inbox_watch(struct ah_lua_agent *a);
void ah_lua_inbox_unwatch(struct ah_lua_agent *a);

#endif
