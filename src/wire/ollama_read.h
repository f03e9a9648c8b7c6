/* Opens the reader of Ollama's /api/chat, for ollama.c only: the slot `open` of its vtable;
 * reader.h has the others. The reader owns its buffers and borrows adapter and assembly.
 * Callers: its floor. */
#ifndef AH_WIRE_OLLAMA_READ_H
#define AH_WIRE_OLLAMA_READ_H

#include "wire/adapter.h"

ah_status ah_ollama_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);

#endif
