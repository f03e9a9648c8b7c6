/* Flows of the embedding interface for torture.c: programs whose memory fails. Each does its
 * work through agenthost.h, whatever the calls before gave, and returns what was odd, or
 * NULL. exact: nothing fails, so nothing may be missing. */
#ifndef SPEC_TORTURE_EMBED_H
#define SPEC_TORTURE_EMBED_H

#include "agenthost.h"

typedef const char *(*embed_flow)(ah_host *host, bool exact);

/* By its name in torture.c; NULL: it is one of flows.lua. */
embed_flow embed_flow_of(const char *name);

/* In torture.c: ah_config.alloc; from here on memory is sound; Lua's warnings are watched. */
void *embed_memory(void *ud, void *p, size_t size);
void embed_disarm(void);
struct lua_State;
void embed_watch(struct lua_State *L);
void embed_watch_host(ah_host *host);

/* With sound memory afterwards: the host does what hosts do. */
const char *embed_works_on(ah_host *host);

#endif
