/* The providers that there are, and what opens one by its name. A provider is its own .c (or its
 * family, NAME.c and NAME_read.c) and one row in providers.c, which stands above all of them. For
 * the floors above: nobody in src/wire calls it. */
#ifndef AH_WIRE_PROVIDERS_H
#define AH_WIRE_PROVIDERS_H

#include "wire/provider.h"

/* AH_USAGE for an unknown provider (with the known ones), AH_PROVIDER where the key is missing. */
/* A provider that is a program of the Lua half (docs/reference/claude.md). */
#define AH_CLAUDE "claude_agent_sdk"

ah_status ah_provider_open(ah_slice provider, ah_slice model, const ah_provider_options *o,
                           ah_adapter **out, ah_err *err);

/* The i-th name of a provider and what stands behind it; NULL behind the last. Two names may
 * share a service. */
const char *ah_provider_at(size_t i, const ah_service **service);

#endif
