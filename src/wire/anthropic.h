/* Anthropic Messages: the reader, which reads its events from adapters in Lua, too. The provider
 * itself is in wire/providers.c. */
#ifndef AH_WIRE_ANTHROPIC_H
#define AH_WIRE_ANTHROPIC_H

#include "wire/adapter.h"

/* The slot `open` of a vtable; the others are in reading.h. */
ah_status ah_anthropic_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);

#endif
