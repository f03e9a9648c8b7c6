/* Decides which addresses of the network may be connected to: the public ones, and networks that
 * are named. It judges the address itself, as it is handed to the socket, so that neither a
 * spelling nor a name server can change the decision. Resolves nothing, and knows neither ports nor
 * HTTP. */
#ifndef AH_IO_ADDRESS_H
#define AH_IO_ADDRESS_H

#include "base/slice.h"

struct sockaddr;

enum { AH_ADDRESS_TEXT = 64 }; /* bytes that an address in words takes */

/* IPv4 as ::ffff:a.b.c.d. */
typedef struct ah_network {
    unsigned char address[16];
    unsigned bits; /* of it that count */
} ah_network;

typedef struct ah_addresses {
    bool public; /* all that the internet reaches */
    const ah_network *network;
    size_t n;
} ah_addresses;

/* "10.0.0.0/8", "192.168.1.7", "fd00::/8", "::1"; false: it is none. */
bool ah_network_parse(ah_slice text, ah_network *out);
bool ah_network_holds(const ah_network *n, const ah_network *within);
/* Assigned to one host that the internet reaches. Not so are (RFC 6890 and IANA's registries)
 * private, loopback, link-local, unique-local, shared (CGNAT), multicast, unspecified, reserved,
 * documentation and benchmark addresses, those of AS112 and AMT, those that hold another address
 * (IPv4-mapped and -compatible ones, NAT64, 6to4, Teredo), and those by which clouds answer the
 * machines in them. */
bool ah_address_is_public(const struct sockaddr *a);
bool ah_address_allowed(const ah_addresses *only, const struct sockaddr *a);
/* "10.0.0.1"; "?" for what is no internet address. */
const char *ah_address_words(const struct sockaddr *a, char out[AH_ADDRESS_TEXT]);

#endif
