/* The reader of Ollama's /api/chat: slots of ah_adapter_vt. */
#ifndef AH_WIRE_OLLAMA_H
#define AH_WIRE_OLLAMA_H

#include "wire/answer.h"

extern const ah_service ah_ollama_service;

ah_status ah_ollama_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);
ah_status ah_ollama_head_came(ah_reader *r, const ah_response_head *head, ah_err *err);
ah_status ah_ollama_feed(ah_reader *r, ah_slice bytes, ah_err *err);
ah_status ah_ollama_end(ah_reader *r, ah_err *err);
void ah_ollama_close(ah_reader *r);

#endif
