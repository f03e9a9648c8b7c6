/* The reader of Gemini's generateContent, for gemini.c alone: the slot `open` of its vtable; the
 * others are in reading.h. */
#ifndef AH_WIRE_GEMINI_READ_H
#define AH_WIRE_GEMINI_READ_H

#include "wire/adapter.h"

ah_status ah_gemini_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);

#endif
