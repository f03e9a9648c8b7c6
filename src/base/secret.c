/* The list of keys, and replacing them in texts in place. A text that comes in pieces is the
 * caller's, who asks ah_secrets_held how much of it must wait. */
#include "base/secret.h"

static const char MARK[] = "[secret]"; /* AH_SECRET_MIN characters: redaction never lengthens */

struct ah_secret {
    size_t n;
    char key[];
};

static ah_secret *find(const ah_secrets *s, ah_slice key)
{
    for (size_t i = 0; i < s->n; i++)
        if (ah_slice_eq(key, ah_secret_reveal(s->item[i])))
            return s->item[i];
    return NULL;
}

const ah_secret *ah_secrets_keep(ah_secrets *s, ah_slice key)
{
    ah_secret *secret = find(s, key);
    ah_secret **grown;

    if (secret)
        return secret;
    if (!(grown = ah_grow(s->mem, s->item, &s->cap, s->n + 1, sizeof *grown)))
        return NULL;
    s->item = grown;
    if (!(secret = ah_alloc(s->mem, sizeof *secret + key.n + 1)))
        return NULL;
    secret->n = key.n;
    if (key.n)
        memcpy(secret->key, key.p, key.n);
    return s->item[s->n++] = secret;
}

void ah_secrets_clear(ah_secrets *s)
{
    for (size_t i = 0; i < s->n; i++) {
        volatile char *p = s->item[i]->key;

        for (size_t k = s->item[i]->n; k > 0; k--)
            *p++ = 0;
        ah_free(s->mem, s->item[i]);
    }
    ah_free(s->mem, s->item);
    *s = (ah_secrets){.mem = s->mem};
}

ah_slice ah_secret_reveal(const ah_secret *secret)
{
    return secret ? (ah_slice){secret->key, secret->n} : (ah_slice){NULL, 0};
}

bool ah_secrets_in(const ah_secrets *s, ah_slice text)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (s->item[i]->n >= AH_SECRET_MIN && ah_slice_find(text, ah_secret_reveal(s->item[i])))
            return true;
    return false;
}

static size_t redact_one(ah_slice key, char *text, size_t n)
{
    size_t from = 0;
    const char *hit;

    while ((hit = ah_slice_find((ah_slice){text + from, n - from}, key))) {
        size_t at = (size_t)(hit - text), mark = sizeof MARK - 1;

        memcpy(text + at, MARK, mark);
        memmove(text + at + mark, text + at + key.n, n - at - key.n);
        n -= key.n - mark;
        from = at + mark;
    }
    return n;
}

size_t ah_secrets_redact(const ah_secrets *s, char *text, size_t n)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (s->item[i]->n >= AH_SECRET_MIN)
            n = redact_one(ah_secret_reveal(s->item[i]), text, n);
    return n;
}

void ah_secrets_redact_err(const ah_secrets *s, ah_err *err)
{
    err->message[ah_secrets_redact(s, err->message, strlen(err->message))] = '\0';
    err->details[ah_secrets_redact(s, err->details, strlen(err->details))] = '\0';
}

size_t ah_secrets_held(const ah_secrets *s, ah_slice text)
{
    size_t held = 0;

    for (size_t i = 0; s && i < s->n; i++) {
        size_t most = s->item[i]->n - (s->item[i]->n > 0);

        if (s->item[i]->n < AH_SECRET_MIN)
            continue;
        if (most > text.n)
            most = text.n;
        for (size_t k = most; k > held; k--)
            if (memcmp(text.p + text.n - k, s->item[i]->key, k) == 0)
                held = k;
    }
    return held;
}
