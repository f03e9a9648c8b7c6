/* Addresses, keys and header lines; see endpoint.h. The order in which a key and an address
 * are looked for is LiteLLM's: what the call says, then the environment, then the default. */
#include "wire/endpoint.h"

#include <assert.h>

enum { MAX_VARIABLE = 128, MOST_HEADERS = 8 };

static ah_slice from_env(const ah_provider_options *o, const char *name)
{
    const char *v = name && o->getenv ? o->getenv(o->ud, name) : NULL;

    return ah_slice_of(v && *v ? v : NULL);
}

ah_slice ah_service_env(const ah_provider_options *o, const char *const names[AH_SERVICE_NAMES])
{
    ah_slice v = {NULL, 0};

    for (size_t i = 0; i < AH_SERVICE_NAMES && !v.p; i++)
        v = from_env(o, names[i]);
    return v;
}

/* LiteLLM's way of naming a variable where a value is expected. */
static bool names_variable(ah_slice s, char name[MAX_VARIABLE])
{
    static const char PREFIX[] = "os.environ/";
    size_t n = sizeof PREFIX - 1;

    if (s.n <= n || s.n - n >= MAX_VARIABLE || memcmp(s.p, PREFIX, n) != 0)
        return false;
    memcpy(name, s.p + n, s.n - n);
    name[s.n - n] = '\0';
    return true;
}

static ah_status find_key(const ah_service *s, const ah_provider_options *o, ah_slice *key, ah_err *err)
{
    char name[MAX_VARIABLE];

    *key = o->api_key.p ? o->api_key : ah_service_env(o, s->key_env);
    if (!names_variable(*key, name))
        return AH_OK;
    *key = from_env(o, name);
    if (key->p)
        return AH_OK;
    return ah_err_set(err, AH_PROVIDER, "%s: api_key is os.environ/%s, which is not set", s->name, name);
}

static ah_slice find_url(const ah_service *s, const ah_provider_options *o)
{
    ah_slice url = o->base_url.p ? o->base_url : ah_service_env(o, s->url_env);

    if (!url.p)
        url = ah_slice_of(s->url);
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    return url;
}

ah_status ah_service_fill(const ah_service *s, ah_slice model, const ah_provider_options *o,
                          ah_adapter *a, const ah_secret **key, ah_err *err)
{
    ah_slice url = find_url(s, o), text;
    ah_status st = find_key(s, o, &text, err);

    if (st != AH_OK)
        return st;
    if (!url.n)
        return ah_err_set(err, AH_USAGE, "%s: no address: set base_url or %s", s->name, s->url_env[0]);
    if (!text.p && !s->keyless && s->url && ah_slice_is(url, s->url))
        return ah_err_set(err, AH_PROVIDER,
                          "%s: no key: set %s or api_key (without a key and a network: demo/...)",
                          s->name, s->key_env[0]);
    if ((text.p && !(*key = ah_secrets_keep(o->secrets, text))) ||
        !(a->provider = ah_text_new(o->mem, ah_slice_of(s->name))) ||
        !(a->model = ah_text_new(o->mem, model)) || !(a->endpoint = ah_text_new(o->mem, url)))
        return ah_err_nomem(err);
    return AH_OK;
}

/* -- the texts of a request --------------------------------------------------------- */

/* The array of lines comes first in scratch, then what it points to; slices are made at
 * the end, since scratch may still move. */
void ah_request_begin(ah_request_texts *t, ah_buf *scratch)
{
    *t = (ah_request_texts){.scratch = scratch};
    if (ah_buf_room(scratch, MOST_HEADERS * sizeof(ah_slice)))
        scratch->len += MOST_HEADERS * sizeof(ah_slice);
}

void ah_request_headers(ah_request_texts *t, const char *accept)
{
    ah_buf_char(t->scratch, '\0'); /* of the URL */
    t->from = t->scratch->len;
    ah_request_header(t, "Content-Type: ", ah_slice_of("application/json"));
    ah_request_header(t, "Accept: ", ah_slice_of(accept));
}

void ah_request_header(ah_request_texts *t, const char *name, ah_slice value)
{
    assert(t->n < MOST_HEADERS);
    ah_buf_str(t->scratch, name);
    ah_buf_put(t->scratch, value);
    t->end[t->n++] = t->scratch->len;
}

ah_status ah_request_end(const ah_request_texts *t, ah_http_request *req, ah_err *err)
{
    ah_slice *lines = (ah_slice *)(void *)t->scratch->data;
    size_t at = t->from;

    if (!ah_buf_ok(t->scratch))
        return ah_buf_error(t->scratch, "the request's headers", err);
    for (size_t i = 0; i < t->n; at = t->end[i++])
        lines[i] = (ah_slice){t->scratch->data + at, t->end[i] - at};
    req->method = "POST";
    req->url = t->scratch->data + MOST_HEADERS * sizeof(ah_slice);
    req->headers = lines;
    req->n_headers = t->n;
    return AH_OK;
}
