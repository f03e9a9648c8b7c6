/* What OpenAI's two wires share: the address, the keys, the headers. */
#ifndef AH_WIRE_OPENAI_H
#define AH_WIRE_OPENAI_H

#include "wire/provider.h"

#define AH_OPENAI_OFFICIAL "https://api.openai.com/v1"

typedef struct ah_openai {
    ah_native native;
    ah_text *organization, *project; /* NULL: not said */
} ah_openai;

/* An adapter of this struct; its vtable's `free` is ah_openai_free. */
ah_status ah_openai_make(const ah_adapter_vt *vt, ah_slice model, ah_tool_change_mode mode,
                         const ah_provider_options *o, ah_adapter **out, ah_err *err);
void ah_openai_free(ah_adapter *a);
ah_status ah_openai_post(const ah_adapter *a, const char *path, ah_buf *scratch, ah_http_request *req,
                         ah_err *err);

#endif
