/* The reader of Gemini's generateContent: slots of ah_adapter_vt. */
#ifndef AH_WIRE_GEMINI_H
#define AH_WIRE_GEMINI_H

#include "wire/answer.h"

extern const ah_service ah_gemini_service;

ah_status ah_gemini_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);
ah_status ah_gemini_head_came(ah_reader *r, const ah_response_head *head, ah_err *err);
ah_status ah_gemini_feed(ah_reader *r, ah_slice bytes, ah_err *err);
ah_status ah_gemini_end(ah_reader *r, ah_err *err);
void ah_gemini_close(ah_reader *r);

#endif
