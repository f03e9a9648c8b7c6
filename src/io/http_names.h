/* By which names a server may be asked. A page of the web that leads its own name to this machine
 * (DNS rebinding) asks under that name, and is refused by it; a page of another server tells so in
 * its Origin. */
#ifndef AH_IO_HTTP_NAMES_H
#define AH_IO_HTTP_NAMES_H

#include "base/slice.h"

typedef struct ah_server_names {
    const ah_slice *host; /* without a port, lower case; "*": any */
    size_t n_hosts;
    const ah_slice *origin; /* "https://example.com:8443"; "*": any */
    size_t n_origins;
    const char *address; /* that is listened on */
    bool is_any;         /* on all of the machine: by any address that is one, not by names */
} ah_server_names;

/* host: the value of that header, a name with or without a port. */
bool ah_server_is_named(const ah_server_names *names, ah_slice host);
/* origin: the value of that header. Also the server's own pages are of an origin: that of
 * `host`. */
bool ah_server_takes(const ah_server_names *names, ah_slice origin, ah_slice host);

#endif
