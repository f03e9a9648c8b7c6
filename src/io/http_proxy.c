/* Finds the proxy of a request, for the error text: curl chooses it from the environment and does
 * not report it (before 8.7). Reads the same variables by the same rules: http_proxy in lower case
 * only, https_proxy and all_proxy in both; no_proxy with names, their subdomains, networks and "*".
 * User name and password before the host are never copied. */
#include <stdio.h>
#include <stdlib.h>

#include "io/http_transfer.h"

static const char *first_set(const char *const *names)
{
    const char *value = NULL;

    for (; *names && !(value && *value); names++)
        value = getenv(*names);
    return value && *value ? value : NULL;
}

static const char *variable_of(const ah_transfer *t)
{
    static const char *const plain[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const tls[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL};

    return first_set(t->tls ? tls : plain);
}

/* The host in "name:port", an IPv6 address without brackets. */
static ah_slice name_of(const ah_transfer *t)
{
    ah_slice s = ah_slice_of(t->host);

    while (s.n && s.p[s.n - 1] != ':')
        s.n--;
    s.n -= s.n > 0;
    if (s.n > 2 && *s.p == '[')
        s = (ah_slice){s.p + 1, s.n - 2};
    return s;
}

static bool ends_with(ah_slice name, ah_slice end)
{
    return name.n >= end.n && strncasecmp(name.p + name.n - end.n, end.p, end.n) == 0;
}

/* True if the name equals the entry of no_proxy or is a subdomain of it; for an address: if the
 * entry is a network that contains it. */
static bool is_excepted(ah_slice name, ah_slice word)
{
    ah_network network, address;

    if (word.n && *word.p == '.')
        word = (ah_slice){word.p + 1, word.n - 1};
    if (!word.n)
        return false;
    if (ah_network_parse(name, &address))
        return ah_network_parse(word, &network) && ah_network_holds(&network, &address);
    return ends_with(name, word) && (name.n == word.n || name.p[name.n - word.n - 1] == '.');
}

static bool has_exception(const ah_transfer *t)
{
    static const char *const names[] = {"no_proxy", "NO_PROXY", NULL};
    const char *p = first_set(names);
    ah_slice name = name_of(t);

    if (p && strcmp(p, "*") == 0)
        return true;
    while (p && *p) {
        size_t n = strcspn(p, ", ");

        if (is_excepted(name, (ah_slice){p, n}))
            return true;
        p += n + strspn(p + n, ", ");
    }
    return false;
}

/* Without a port curl uses 443 for a proxy with TLS, else 1080. */
static void put_place(CURLU *u, char out[HOST_SIZE])
{
    char *host = NULL, *port = NULL, *scheme = NULL;

    if (curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK) {
        curl_url_get(u, CURLUPART_PORT, &port, 0);
        snprintf(out, HOST_SIZE, "%.*s:%s", HOST_SIZE - 10, host,
                 port                                   ? port
                 : strncasecmp(scheme, "https", 5) == 0 ? "443"
                                                        : "1080");
    }
    curl_free(host);
    curl_free(port);
    curl_free(scheme);
}

void ah_proxy_of(const ah_transfer *t, char out[HOST_SIZE])
{
    const char *value = t->only ? NULL : variable_of(t);
    CURLU *u;

    out[0] = '\0';
    if (!value || has_exception(t) || !(u = curl_url()))
        return;
    if (curl_url_set(u, CURLUPART_URL, value,
                     CURLU_DEFAULT_SCHEME | CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME) ==
        CURLUE_OK)
        put_place(u, out);
    curl_url_cleanup(u);
}
