/* The reader of Chat Completions: slots of ah_adapter_vt. */
#ifndef AH_WIRE_OPENAI_READ_H
#define AH_WIRE_OPENAI_READ_H

#include "wire/servers.h"

/* What an adapter for one of the servers begins with. */
typedef struct ah_openai {
    ah_adapter base;
    const ah_server *server;
} ah_openai;

ah_status ah_openai_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);
ah_status ah_openai_head_came(ah_reader *r, const ah_response_head *head, ah_err *err);
ah_status ah_openai_feed(ah_reader *r, ah_slice bytes, ah_err *err);
ah_status ah_openai_end(ah_reader *r, ah_err *err);
void ah_openai_close(ah_reader *r);

#endif
