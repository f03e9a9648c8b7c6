/* claude_agent_sdk/MODEL: an adapter that has the `claude` command ask the model. It owns the
 * processes, one a conversation; what is said to them is in wire/claude.h. docs/claude.md. */
#ifndef AH_HOST_CLAUDE_PROCESS_H
#define AH_HOST_CLAUDE_PROCESS_H

#include "host/host.h"
#include "wire/claude.h"

/* The host is borrowed and must outlive the adapter. No process is started before the first
 * exchange. AH_USAGE for a tool_change_mode that it does not have. */
ah_status ah_claude_new(ah_host *h, ah_slice model, const ah_provider_options *o, ah_adapter **out,
                        ah_err *err);

#endif
