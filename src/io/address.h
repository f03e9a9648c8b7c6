/* Decides to which network addresses connections are allowed: public ones, and those in named
 * networks. It judges the address passed to the socket, so that neither a spelling nor a name
 * server can change the decision. Resolves nothing, ignores ports, and allocates nothing; lists are
 * borrowed. Callers: its floor, lua. */
#ifndef AH_IO_ADDRESS_H
#define AH_IO_ADDRESS_H

#include "base/slice.h"

struct sockaddr;

enum { AH_ADDRESS_TEXT = 64 }; /* size of an address as text, in bytes */

/* A network; IPv4 addresses are stored as ::ffff:a.b.c.d. */
typedef struct ah_network {
    unsigned char address[16];
    unsigned bits; /* number of leading bits that count */
} ah_network;

typedef struct ah_addresses {
    bool public; /* all public addresses are allowed */
    const ah_network *network;
    size_t n;
} ah_addresses;

/* Parses "10.0.0.0/8", "192.168.1.7", "fd00::/8", "::1"; false: it is none. */
bool ah_network_parse(ah_slice text, ah_network *out);
/* True if `within` is a part of n. */
bool ah_network_holds(const ah_network *n, const ah_network *within);
/* True for an address that is assigned to one host and reachable on the internet. False for (RFC
 * 6890 and IANA's registries) private, loopback, link-local, unique-local, shared (CGNAT),
 * multicast, unspecified, reserved, documentation and benchmark addresses, those of AS112 and AMT,
 * those that contain another address (IPv4-mapped and -compatible ones, NAT64, 6to4, Teredo), and
 * those at which clouds answer their own machines. */
bool ah_address_is_public(const struct sockaddr *a);
/* True if the address is in one of the networks, or public if that is allowed. */
bool ah_address_allowed(const ah_addresses *only, const struct sockaddr *a);
/* Writes for example "10.0.0.1" to out, and returns it; "?" for any other kind of address. */
const char *ah_address_words(const struct sockaddr *a, char out[AH_ADDRESS_TEXT]);

#endif
