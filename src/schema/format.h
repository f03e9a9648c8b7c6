/* Functions shared by the formats: format.c, format_host.c (names and addresses of hosts, email)
 * and format_web.c. Their texts are checked UTF-8. They look nothing up. Callers: its floor. */
#ifndef AH_SCHEMA_FORMAT_H
#define AH_SCHEMA_FORMAT_H

#include "schema/program.h"

static inline bool schema_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool schema_is_alpha(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static inline bool schema_is_hex(char c)
{
    return schema_is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

static inline bool schema_is_in(char c, const char *set)
{
    return c && strchr(set, c);
}

static inline ah_slice schema_from(ah_slice s, size_t n)
{
    return (ah_slice){s.p + n, s.n - n};
}

/* Return the bytes of the character that begins at i, and the character. */
static inline size_t schema_char_length(ah_slice s, size_t i)
{
    unsigned char c = (unsigned char)s.p[i];

    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

static inline uint32_t schema_char_at(ah_slice s, size_t i)
{
    size_t n = schema_char_length(s, i);
    uint32_t c = (unsigned char)s.p[i];

    if (n > 1)
        c &= 0x7fu >> n;
    for (size_t k = 1; k < n && i + k < s.n; k++)
        c = c << 6 | ((unsigned char)s.p[i + k] & 0x3f);
    return c;
}

bool schema_is_ipv4(ah_slice s);
bool schema_is_ipv6(ah_slice s);
bool schema_is_uri(ah_slice s);
bool schema_is_uri_reference(ah_slice s);
bool schema_is_iri(ah_slice s);
bool schema_is_iri_reference(ah_slice s);
bool schema_is_uri_template(ah_slice s);

/* The resources of formats that need memory and steps: an expression for host names in other
 * scripts. */
typedef struct format_asker {
    const ah_mem *mem;
    ah_work *work;
    ah_pattern **names; /* the expression, made when first needed; the caller frees it */
} format_asker;

ah_match schema_is_hostname(const format_asker *a, ah_slice s);
ah_match schema_is_idn_hostname(const format_asker *a, ah_slice s);
ah_match schema_is_email(const format_asker *a, ah_slice s);
ah_match schema_is_idn_email(const format_asker *a, ah_slice s);

#endif
