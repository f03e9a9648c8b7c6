/* Where an adapter's requests go, and with which lines around the body: the address and
 * the key, from what a script says, else from the environment, else the service's own.
 * Which services there are is for the adapters to know; nothing is sent here. */
#ifndef AH_WIRE_ENDPOINT_H
#define AH_WIRE_ENDPOINT_H

#include "wire/adapter.h"

enum { AH_SERVICE_NAMES = 3 };

typedef struct ah_service {
    const char *name; /* of the provider: models are "name/model" */
    const char *url;  /* its own address; NULL: one must be given */
    /* In the environment, the first that is set counts; unused ones are NULL. */
    const char *url_env[AH_SERVICE_NAMES], *key_env[AH_SERVICE_NAMES];
    bool keyless; /* its own address asks for no key */
} ah_service;

/* What the environment says under the first of the names that is set and not empty, or .p NULL. */
ah_slice ah_service_env(const ah_provider_options *o, const char *const names[AH_SERVICE_NAMES]);

/* Fills provider, model and endpoint of a new adapter and keeps the key (*key stays NULL
 * where there is none). A key "os.environ/NAME" is what the environment has under NAME. AH_USAGE
 * where no address is known, AH_PROVIDER where the service's own address needs a key. */
ah_status ah_service_fill(const ah_service *s, ah_slice model, const ah_provider_options *o,
                          ah_adapter *a, const ah_secret **key, ah_err *err);

/* The texts of a request, in ah_adapter_vt.request:
 *     ah_request_begin(&t, scratch);   then the URL is put to scratch
 *     ah_request_headers(&t, stream);  Content-Type and Accept
 *     ah_request_header(&t, "X-Key: ", value);
 *     return ah_request_end(&t, req, err); */
typedef struct ah_request_texts {
    ah_buf *scratch;
    size_t from, n;
    size_t end[8];
} ah_request_texts;

void ah_request_begin(ah_request_texts *t, ah_buf *scratch);
void ah_request_headers(ah_request_texts *t, const char *accept);
void ah_request_header(ah_request_texts *t, const char *name, ah_slice value);
ah_status ah_request_end(const ah_request_texts *t, ah_http_request *req, ah_err *err);

#endif
