/* Addresses as 16 bytes, compared with networks. address.h says which are public, and why. No
 * state, no memory. */
#include "io/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

/* Sets the address as 16 bytes; false: no internet address. */
static bool bytes_of(const struct sockaddr *a, unsigned char out[16])
{
    if (a->sa_family == AF_INET6) {
        struct sockaddr_in6 six;

        memcpy(&six, a, sizeof six);
        memcpy(out, &six.sin6_addr, 16);
        return true;
    }
    if (a->sa_family == AF_INET) {
        struct sockaddr_in four;

        memcpy(&four, a, sizeof four);
        memcpy(out, mapped, sizeof mapped);
        memcpy(out + sizeof mapped, &four.sin_addr, 4);
        return true;
    }
    return false;
}

static bool is_within(const unsigned char a[16], const ah_network *n)
{
    unsigned whole = n->bits / 8, rest = n->bits % 8;
    unsigned mask = 0xffu << (8 - rest) & 0xffu;

    return memcmp(a, n->address, whole) == 0 &&
           (rest == 0 || ((a[whole] ^ n->address[whole]) & mask) == 0);
}

static unsigned read_bits(const char *s, unsigned most, bool *ok)
{
    unsigned n = 0, digits = 0;

    for (; *s >= '0' && *s <= '9' && digits < 4; s++, digits++)
        n = n * 10 + (unsigned)(*s - '0');
    *ok = digits > 0 && *s == '\0' && n <= most;
    return n;
}

bool ah_network_parse(ah_slice text, ah_network *out)
{
    char copy[AH_ADDRESS_TEXT], *slash;
    bool four, ok = true;

    if (text.n == 0 || text.n >= sizeof copy || memchr(text.p, '\0', text.n))
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if ((slash = strchr(copy, '/')))
        *slash = '\0';
    memcpy(out->address, mapped, sizeof mapped);
    four = inet_pton(AF_INET, copy, out->address + sizeof mapped) == 1;
    if (!four && inet_pton(AF_INET6, copy, out->address) != 1)
        return false;
    out->bits = slash ? read_bits(slash + 1, four ? 32 : 128, &ok) : four ? 32 : 128;
    out->bits += four ? 96 : 0;
    return ok;
}

bool ah_network_holds(const ah_network *n, const ah_network *within)
{
    return within->bits >= n->bits && is_within(within->address, n);
}

static bool is_one_of(const unsigned char a[16], const char *const *list)
{
    ah_network n;

    for (; *list; list++)
        if (ah_network_parse(ah_slice_of(*list), &n) && is_within(a, &n))
            return true;
    return false;
}

bool ah_address_is_public(const struct sockaddr *a)
{
    static const char *const not4[] = {
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        /* assigned as public, but answered by the cloud of the machine: its metadata and internal
         * services (Azure, IBM) */
        "168.63.129.16/32", "161.26.0.0/16", "166.8.0.0/14", NULL};
    static const char *const is6[] = {"2000::/3", NULL};
    static const char *const not6[] = {
        "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48",
        "3ffe::/16", "3fff::/20",     NULL};
    unsigned char b[16];

    if (!bytes_of(a, b))
        return false;
    return a->sa_family == AF_INET ? !is_one_of(b, not4) : is_one_of(b, is6) && !is_one_of(b, not6);
}

bool ah_address_allowed(const ah_addresses *only, const struct sockaddr *a)
{
    unsigned char b[16];

    if (only->public && ah_address_is_public(a))
        return true;
    if (!bytes_of(a, b))
        return false;
    for (size_t i = 0; i < only->n; i++)
        if (is_within(b, &only->network[i]))
            return true;
    return false;
}

const char *ah_address_words(const struct sockaddr *a, char out[AH_ADDRESS_TEXT])
{
    unsigned char b[16];
    const void *from = a->sa_family == AF_INET ? b + sizeof mapped : b;

    if (!bytes_of(a, b) || !inet_ntop(a->sa_family, from, out, AH_ADDRESS_TEXT))
        snprintf(out, AH_ADDRESS_TEXT, "?");
    return out;
}
