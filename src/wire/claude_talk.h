/* The calls that wait for their results, and the results that wait until the command asks for them,
 * for claude.c and claude_read.c alone. */
#ifndef AH_WIRE_CLAUDE_TALK_H
#define AH_WIRE_CLAUDE_TALK_H

#include "wire/claude.h"
#include "wire/provider.h"

#define AH_CLAUDE_SERVER "host"
#define AH_CLAUDE_PREFIX "mcp__" AH_CLAUDE_SERVER "__"

/* The command asks for a call: `id` of the call, of its request, and of the JSON-RPC request. */
ah_status ah_claude_asked(ah_claude *c, ah_slice id, ah_slice ask, ah_slice rpc, ah_err *err);
/* It withdraws that request. */
void ah_claude_withdrawn(ah_claude *c, ah_slice ask);
/* The result of a call, as JSON. */
ah_status ah_claude_give(ah_claude *c, ah_slice id, ah_slice result, ah_err *err);
/* Writes the results that are there and asked for, unless the new list is waited for. */
void ah_claude_flush(ah_claude *c);
void ah_claude_forget(ah_claude *c); /* all calls */

#endif
