/* The mode `dispatcher`: one fixed tool, declared from the start, calls tools that were added in
 * mid-conversation by their names, so that the declarations never change. The transcript contains
 * plain calls: assemble.c unwraps them when they come, lower.c wraps them again, and run/call.c
 * answers those that name no tool. Results are appended to the caller's buffers.
 * Callers: its module, run. */
#ifndef AH_WIRE_DISPATCHER_H
#define AH_WIRE_DISPATCHER_H

#include "wire/offers.h"

#define AH_DISPATCHER "call_tool"

extern const char ah_dispatcher_spec[]; /* its declaration */

/* Appends the note that describes new tools, from a tools_added entry, or removed ones, from a
 * tools_removed entry. */
void ah_dispatcher_note(ah_slice json, ah_buf *out);

/* True if the assistant or tool_result entry concerns a late tool; *out is then the entry as the
 * wire shows it. */
bool ah_dispatcher_wrap(const ah_offers *o, const ah_entry *e, ah_buf *out);

/* Replaces name and arguments of a call through the dispatcher by the inner ones. Leaves other
 * calls, and those whose arguments name no tool, unchanged. */
void ah_dispatcher_unwrap(const ah_mem *mem, ah_buf *name, ah_buf *arguments);

#endif
