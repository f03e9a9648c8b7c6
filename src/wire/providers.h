/* The list of providers, and opening one by its name. A provider is its own .c (or NAME.c and
 * NAME_read.c) and one row in providers.c. Only code above src/wire calls this. The names and
 * services are static. Callers: its floor, lua. */
#ifndef AH_WIRE_PROVIDERS_H
#define AH_WIRE_PROVIDERS_H

#include "wire/provider.h"

/* A provider that is a program, in the Lua half (docs/reference/claude.md). */
#define AH_CLAUDE "claude_agent_sdk"

/* Returns AH_USAGE for an unknown provider, with the known ones; AH_PROVIDER if the key is
 * missing. */
ah_status ah_provider_open(ah_slice provider, ah_slice model, const ah_provider_options *o,
                           ah_adapter **out, ah_err *err);

/* The i-th provider name and its service; NULL after the last. Two names may share a service. */
const char *ah_provider_at(size_t i, const ah_service **service);

#endif
