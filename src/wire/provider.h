/* What the adapters of HTTP providers share in making requests: where address, key and mode
 * come from, the request around the body, and the small parts of lowering. */
#ifndef AH_WIRE_PROVIDER_H
#define AH_WIRE_PROVIDER_H

#include "wire/lower.h"

/* An adapter of a provider with one key begins with this. */
typedef struct ah_native {
    ah_adapter base;
    const ah_secret *key; /* NULL: none sent */
    ah_http_limits limits;
} ah_native;

/* A variable of the environment; .p NULL where it is absent or empty. */
ah_slice ah_provider_env(const ah_provider_options *o, const char *name);
/* The server's address without slashes at its end: of the options, the variable, or the official one. */
ah_slice ah_provider_url(const ah_provider_options *o, const char *variable, const char *official);

/* Fills what ah_adapter and ah_native hold; `key` with .p NULL is none. */
ah_status ah_native_fill(ah_native *a, const char *provider, ah_slice model, ah_slice url, ah_slice key,
                         const ah_provider_options *o, ah_err *err);

/* The mode in which tools change: `own` unless the options name another one of `spoken` (bits
 * 1 << mode); AH_USAGE where they name one that is not. */
ah_status ah_provider_mode(const ah_provider_options *o, const char *provider, unsigned spoken,
                           ah_tool_change_mode own, ah_tool_change_mode *out, ah_err *err);

/* A header's value may be left out: .p NULL. */
typedef struct ah_header {
    const char *name; /* "Authorization: Bearer " */
    ah_slice value;
} ah_header;

enum { AH_MAX_HEADERS = 8 };

/* POST endpoint + path with JSON; a slot of ah_adapter_vt fills the rest. */
ah_status ah_native_post(const ah_native *a, const char *path, const ah_header *h, size_t n,
                         ah_buf *scratch, ah_http_request *req, ah_err *err);

/* -- lowering ------------------------------------------------------------------------ */

/* ,"theirs":value of an option; nothing where it is absent. */
void ah_put_option(ah_buf *b, ah_slice options, const char *ours, const char *theirs);
/* All text of a message's parts as one JSON string; values are copied as they stand. */
void ah_put_joined_text(ah_buf *b, ah_slice parts);
/* A name the model made up may hold anything; wires take [A-Za-z0-9_-]{1,64}. */
void ah_put_wire_name(ah_buf *b, ah_slice value);
/* A call's id as [A-Za-z0-9_-]{1,64}: as it is where it fits, else with a hash that keeps it unique. */
void ah_put_wire_id(ah_buf *b, ah_slice value);
/* Is there more than white space between the quotes of a string value? */
bool ah_has_text(ah_slice value);
/* Is the part an opaque one that came from this very adapter? Then *data is what it holds, and
 * *calls how many of the message's calls stand before it. */
bool ah_part_of_ours(const ah_adapter *a, ah_slice part, ah_slice *data, size_t *calls);

#endif
