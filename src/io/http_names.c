/* Names are compared as received, ignoring case; nothing is resolved. */
#include "io/http_names.h"

#include <string.h>
#include <strings.h>

#include "io/address.h"

static bool same(ah_slice a, ah_slice b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static bool among(ah_slice s, const ah_slice *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ah_slice_is(list[i], "*") || same(s, list[i]))
            return true;
    return false;
}

static bool is_port(ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0 && s.n <= 5;
}

/* The name in "name:port" or "[::1]:port", without brackets; .p NULL: invalid. */
static ah_slice name_of(ah_slice host)
{
    const ah_slice none = {NULL, 0};
    const char *close = host.n && *host.p == '[' ? memchr(host.p, ']', host.n) : NULL;
    const char *colon = close ? close + 1 : host.n ? memchr(host.p, ':', host.n) : NULL;
    size_t n = colon ? (size_t)(colon - host.p) : host.n;

    if (n < host.n && !(host.p[n] == ':' && is_port((ah_slice){host.p + n + 1, host.n - n - 1})))
        return none;
    if (close)
        return n > 2 ? (ah_slice){host.p + 1, n - 2} : none;
    return n ? (ah_slice){host.p, n} : none;
}

static bool is_address(ah_slice name)
{
    ah_network whole;

    return !memchr(name.p, '/', name.n) && ah_network_parse(name, &whole);
}

bool ah_server_is_named(const ah_server_names *names, ah_slice host)
{
    ah_slice name = name_of(host);

    if (!name.p)
        return false;
    return same(name, ah_slice_of(names->address)) || same(name, ah_slice_of("localhost")) ||
           (names->is_any && is_address(name)) || among(name, names->host, names->n_hosts);
}

bool ah_server_takes(const ah_server_names *names, ah_slice origin, ah_slice host)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(schemes[i]);

        if (host.p && origin.n > n && strncasecmp(origin.p, schemes[i], n) == 0 &&
            same((ah_slice){origin.p + n, origin.n - n}, host))
            return true;
    }
    return among(origin, names->origin, names->n_origins);
}
