/* Decides under which names a server may be asked, and from which origins. A web page that points
 * its own name at this machine (DNS rebinding) asks under that name and is refused; a page of
 * another server is known by its Origin. Owns nothing; all texts are borrowed. Callers: lua. */
#ifndef AH_IO_HTTP_NAMES_H
#define AH_IO_HTTP_NAMES_H

#include "base/slice.h"

typedef struct ah_server_names {
    const ah_slice *host; /* without a port, lower case; "*": any */
    size_t n_hosts;
    const ah_slice *origin; /* "https://example.com:8443"; "*": any */
    size_t n_origins;
    const char *address; /* the address that is listened on */
    /* It listens on all addresses: a Host header with any IP address is accepted. */
    bool is_any;
} ah_server_names;

/* host: the value of the Host header, a name with or without a port. */
bool ah_server_is_named(const ah_server_names *names, ah_slice host);
/* origin: the value of the Origin header. The server's own pages have the origin of `host`. */
bool ah_server_takes(const ah_server_names *names, ah_slice origin, ah_slice host);

#endif
