/* The list of keys, and their replacement in texts, in place. A caller with a stream asks
 * ah_secrets_held how much must wait. */
#include "base/secret.h"

#include "base/json_chars.h"

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

/* -- spellings: in JSON, and in JSON that is a string of JSON, a key may come with escapes -- */

enum {
    MAX_ESCAPES = 15, /* backslashes before a letter: JSON in JSON, four deep */
    LONGEST = MAX_ESCAPES + 5,
    MORE = LONGEST + 1 /* the text ends too early to decide */
};

/* Returns the number of bytes that spell this letter; 0: another letter; or MORE. */
static size_t letter(ah_slice text, char c)
{
    size_t n = 0;

    while (n < text.n && n < MAX_ESCAPES && text.p[n] == '\\')
        n++;
    if (c == '\\' && n > 0)
        return n;
    if (n == text.n)
        return MORE;
    if (n > 0 && text.p[n] == 'u') {
        if (text.n - n < 5)
            return MORE;
        if (ah_json_hex4(text.p + n + 1, text.p + text.n) == (unsigned char)c)
            return n + 5;
    }
    return text.p[n] == c ? n + 1 : 0;
}

/* Returns the length of the key at the beginning of the text, or 0. *cut: the text ends within a
 * possible key. */
static size_t spelled(ah_slice text, ah_slice key, bool *cut)
{
    size_t at = 0;

    *cut = false;
    if (text.n >= key.n && memcmp(text.p, key.p, key.n) == 0)
        return key.n;
    for (size_t i = 0; i < key.n; i++) {
        size_t n = letter((ah_slice){text.p + at, text.n - at}, key.p[i]);

        *cut = n == MORE;
        if (n == 0 || *cut)
            return 0;
        at += n;
    }
    return at;
}

/* Finds the first occurrence of the key, in any spelling if `escaped`; its length in *n. NULL:
 * none. */
static const char *find_key(ah_slice text, ah_slice key, bool escaped, size_t *n)
{
    bool cut;

    *n = key.n;
    if (!escaped)
        return ah_slice_find(text, key);
    for (; text.n >= key.n; text.p++, text.n--)
        if ((*text.p == *key.p || *text.p == '\\') && (*n = spelled(text, key, &cut)))
            return text.p;
    return NULL;
}

static bool has_escapes(ah_slice text)
{
    return text.n && memchr(text.p, '\\', text.n);
}

/* -- finding them ------------------------------------------------------------------------ */

bool ah_secrets_in(const ah_secrets *s, ah_slice text)
{
    bool escaped = has_escapes(text);
    size_t n;

    for (size_t i = 0; s && i < s->n; i++)
        if (s->item[i]->n >= AH_SECRET_MIN &&
            find_key(text, ah_secret_reveal(s->item[i]), escaped, &n))
            return true;
    return false;
}

bool ah_secrets_find(const ah_secrets *s, ah_slice text, size_t *at, size_t *n)
{
    bool escaped = has_escapes(text), found = false;
    const char *hit;
    size_t len;

    for (size_t i = 0; s && i < s->n; i++) {
        if (s->item[i]->n < AH_SECRET_MIN ||
            !(hit = find_key(text, ah_secret_reveal(s->item[i]), escaped, &len)))
            continue;
        if (!found || (size_t)(hit - text.p) < *at) {
            *at = (size_t)(hit - text.p);
            *n = len;
        }
        found = true;
    }
    return found;
}

/* Moves each byte once, however often the key occurs. */
static size_t redact_one(ah_slice key, char *text, size_t n)
{
    bool escaped = has_escapes((ah_slice){text, n});
    size_t from = 0, to = 0, len;
    const char *hit;

    while ((hit = find_key((ah_slice){text + from, n - from}, key, escaped, &len))) {
        size_t kept = (size_t)(hit - text) - from;

        memmove(text + to, text + from, kept);
        from += kept + len;
        to += kept;
        memcpy(text + to, MARK, sizeof MARK - 1);
        to += sizeof MARK - 1;
    }
    memmove(text + to, text + from, n - from);
    return to + n - from;
}

size_t ah_secrets_redact(const ah_secrets *s, char *text, size_t n)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (s->item[i]->n >= AH_SECRET_MIN)
            n = redact_one(ah_secret_reveal(s->item[i]), text, n);
    return n;
}

/* -- in JSON ------------------------------------------------------------------------------- */

/* The place in a text of JSON: in a string, behind a backslash that escapes. */
typedef struct place {
    bool string, escape;
} place;

static place after(place at, const char *p, size_t n)
{
    for (; n > 0; p++, n--) {
        bool escape = at.string && !at.escape && *p == '\\';

        if (*p == '"' && !at.escape)
            at.string = !at.string;
        at.escape = escape;
    }
    return at;
}

static bool is_of_number(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

static bool is_number(ah_slice s)
{
    size_t i = 0;

    while (i < s.n && is_of_number(s.p[i]))
        i++;
    return i == s.n;
}

/* A text in which a key is replaced in place: the bytes up to `to` are done, those from `from` to n
 * are not. */
typedef struct replacing {
    char *text;
    size_t from, to, n;
    place at; /* of `from` */
} replacing;

static void copy(replacing *r, size_t n)
{
    r->at = after(r->at, r->text + r->from, n);
    memmove(r->text + r->to, r->text + r->from, n);
    r->from += n;
    r->to += n;
}

/* Replaces the key at `from`, spelled with n bytes, in a string. An escape of which it has a part
 * is replaced with it. False: it is not within the string. */
static bool replace_in_string(replacing *r, size_t n)
{
    place end = {.string = true};

    for (size_t i = 0; i < n && end.string; i++)
        end = after(end, r->text + r->from + i, 1);
    if (!end.string)
        return false;
    r->to -= r->at.escape;
    r->at.escape = false;
    memcpy(r->text + r->to, MARK, sizeof MARK - 1);
    r->to += sizeof MARK - 1;
    r->from += n + end.escape;
    return true;
}

static void replace_number(replacing *r, size_t n)
{
    while (r->to > 0 && is_of_number(r->text[r->to - 1]))
        r->to--;
    for (r->from += n; r->from < r->n && is_of_number(r->text[r->from]);)
        r->from++;
    r->text[r->to++] = '0';
}

static size_t redact_one_json(ah_slice key, char *text, size_t n)
{
    bool escaped = has_escapes((ah_slice){text, n}), digits = is_number(key);
    replacing r = {.text = text, .n = n};
    const char *hit;
    size_t len;

    while ((hit = find_key((ah_slice){text + r.from, n - r.from}, key, escaped, &len))) {
        copy(&r, (size_t)(hit - text) - r.from);
        if (!r.at.string && digits)
            replace_number(&r, len);
        else if (!r.at.string || !replace_in_string(&r, len))
            copy(&r, 1);
    }
    copy(&r, n - r.from);
    return r.to;
}

size_t ah_secrets_redact_json(const ah_secrets *s, char *json, size_t n)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (s->item[i]->n >= AH_SECRET_MIN)
            n = redact_one_json(ah_secret_reveal(s->item[i]), json, n);
    return n;
}

void ah_secrets_redact_err(const ah_secrets *s, ah_err *err)
{
    err->message[ah_secrets_redact(s, err->message, strlen(err->message))] = '\0';
    err->details[ah_secrets_redact(s, err->details, strlen(err->details))] = '\0';
}

static size_t held_of(ah_slice key, ah_slice text, bool escaped)
{
    size_t most = (key.n - 1) * (escaped ? LONGEST : 1) + (escaped ? LONGEST - 1 : 0);
    bool cut = false;

    for (size_t n = most < text.n ? most : text.n; n > 0; n--) {
        ah_slice end = {text.p + text.n - n, n};

        if (*end.p == *key.p || *end.p == '\\')
            spelled(end, key, &cut);
        if (cut)
            return n;
    }
    return 0;
}

size_t ah_secrets_held(const ah_secrets *s, ah_slice text)
{
    bool escaped = has_escapes(text);
    size_t held = 0;

    for (size_t i = 0; s && i < s->n; i++) {
        size_t n = s->item[i]->n < AH_SECRET_MIN
                       ? 0
                       : held_of(ah_secret_reveal(s->item[i]), text, escaped);

        held = n > held ? n : held;
    }
    return held;
}
