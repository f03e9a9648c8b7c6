/* The mode `dispatcher`: one fixed tool, declared from the start, calls tools that came in
 * mid-conversation by their names, so that the declarations never change. The transcript
 * knows nothing of it: calls are unwrapped when they come (assemble.c) and wrapped again when
 * lowered (lower.c); run/call.c answers those that say no tool. */
#ifndef AH_WIRE_DISPATCHER_H
#define AH_WIRE_DISPATCHER_H

#include "wire/offers.h"

#define AH_DISPATCHER "call_tool"

extern const char ah_dispatcher_spec[]; /* its declaration */

/* The note that tells the model of new tools, from their tools_added entry; of removed
 * ones from theirs. */
void ah_dispatcher_note(ah_slice json, ah_buf *out);

/* True if the assistant or tool_result entry is one about late tools; *out is it then as the wire
 * is to show it. */
bool ah_dispatcher_wrap(const ah_offers *o, const ah_entry *e, ah_buf *out);

/* The call a model made through the dispatcher: name and arguments become the inner ones.
 * Left alone where it is no such call or its arguments do not say which. */
void ah_dispatcher_unwrap(const ah_mem *mem, ah_buf *name, ah_buf *arguments);

#endif
