/* Keys. A secret is kept in one type, shown only by ah_secret_reveal (called
 * where a request's headers are written), and taken out of every text that
 * leaves the host: errors, events, logs, what a server sent. It is found as it is
 * and as JSON may spell it, with escapes; other codings of it are not looked for. */
#ifndef AH_BASE_SECRET_H
#define AH_BASE_SECRET_H

#include "base/text.h"

typedef struct ah_secret ah_secret;

/* All secrets of a host. Zero plus `mem` is an empty one. */
typedef struct ah_secrets {
    const ah_mem *mem;
    ah_secret **item;
    size_t n, cap;
} ah_secrets;

enum { AH_SECRET_MIN = 8 }; /* shorter keys are used but not looked for in texts */

/* Keeps a secret until the host ends; the same text twice is the same secret.
 * NULL when out of memory. */
const ah_secret *ah_secrets_keep(ah_secrets *s, ah_slice key);
void ah_secrets_clear(ah_secrets *s);

ah_slice ah_secret_reveal(const ah_secret *secret);

bool ah_secrets_in(const ah_secrets *s, ah_slice text);
/* The first secret in the text: where it begins, and how many bytes it has there. False: none. */
bool ah_secrets_find(const ah_secrets *s, ah_slice text, size_t *at, size_t *n);
/* Overwrites every secret in the text by "[secret]" (shorter or equal); returns the new length. */
size_t ah_secrets_redact(const ah_secrets *s, char *text, size_t n);
void ah_secrets_redact_err(const ah_secrets *s, ah_err *err);
/* Length of the longest end of text that may be the beginning of a secret: what a
 * stream must hold back before it is shown. */
size_t ah_secrets_held(const ah_secrets *s, ah_slice text);

#endif
