/* Keys. One type holds a secret; only ah_secret_reveal shows it, for the headers of a request.
 * It is removed from every text that leaves the host: errors, events, logs, responses of
 * servers. It is found in plain text and with JSON's escapes, in no other encoding. ah_secrets
 * owns all of them until the host ends. Callers: its floor, wire, run, host. */
#ifndef AH_BASE_SECRET_H
#define AH_BASE_SECRET_H

#include "base/text.h"

typedef struct ah_secret ah_secret;

/* All secrets of a host. With only `mem` set, it is empty. */
typedef struct ah_secrets {
    const ah_mem *mem;
    ah_secret **item;
    size_t n, cap;
} ah_secrets;

enum { AH_SECRET_MIN = 8 }; /* shorter keys are used, but not removed from texts */

/* Keeps a secret until the host ends; equal texts are one secret. NULL: out of memory. */
const ah_secret *ah_secrets_keep(ah_secrets *s, ah_slice key);
void ah_secrets_clear(ah_secrets *s);

ah_slice ah_secret_reveal(const ah_secret *secret);

bool ah_secrets_in(const ah_secrets *s, ah_slice text);
/* Finds the first secret in the text: its offset and its length there. False: none. */
bool ah_secrets_find(const ah_secrets *s, ah_slice text, size_t *at, size_t *n);
/* Overwrites every secret in the text with "[secret]", which is not longer. Returns the new
 * length. */
size_t ah_secrets_redact(const ah_secrets *s, char *text, size_t n);
/* The same for a text of JSON, which remains one: a number that has a secret becomes 0. What is no
 * part of one string or number is left. */
size_t ah_secrets_redact_json(const ah_secrets *s, char *json, size_t n);
void ah_secrets_redact_err(const ah_secrets *s, ah_err *err);
/* Returns the length of the longest end of the text that may be the start of a secret. A stream
 * holds it back. */
size_t ah_secrets_held(const ah_secrets *s, ah_slice text);

#endif
