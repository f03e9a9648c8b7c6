/* Opens the reader of Anthropic Messages, which adapters in Lua use too. The reader owns its
 * buffers and borrows adapter and assembly. The provider itself is in wire/anthropic.c.
 * Callers: its floor. */
#ifndef AH_WIRE_ANTHROPIC_H
#define AH_WIRE_ANTHROPIC_H

#include "wire/adapter.h"

/* The slot `open` of a vtable; reader.h has the others. */
ah_status ah_anthropic_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);

#endif
