/* The reader of Ollama's /api/chat, for ollama.c alone: the slot `open` of its vtable; the others
 * are in reading.h. */
#ifndef AH_WIRE_OLLAMA_READ_H
#define AH_WIRE_OLLAMA_READ_H

#include "wire/adapter.h"

ah_status ah_ollama_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);

#endif
