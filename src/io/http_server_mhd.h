/* The functions of libmicrohttpd that the server uses, in a table: from the program if it is linked
 * in, else from the shared library, which is opened at first use and never closed.
 * Callers: its floor. */
#ifndef AH_IO_HTTP_SERVER_MHD_H
#define AH_IO_HTTP_SERVER_MHD_H

#ifdef AH_WITH_MICROHTTPD

#include <microhttpd.h>

#include "base/err.h"

#define AH_MHD_FUNCTIONS(F)                                                                        \
    F(start_daemon)                                                                                \
    F(stop_daemon)                                                                                 \
    F(run)                                                                                         \
    F(get_timeout)                                                                                 \
    F(get_daemon_info)                                                                             \
    F(add_connection)                                                                              \
    F(suspend_connection)                                                                          \
    F(resume_connection)                                                                           \
    F(get_connection_info)                                                                         \
    F(get_connection_values)                                                                       \
    F(create_response_from_callback)                                                               \
    F(add_response_header)                                                                         \
    F(queue_response)                                                                              \
    F(destroy_response)                                                                            \
    F(is_feature_supported)                                                                        \
    F(get_reason_phrase_for)                                                                       \
    F(get_version)

#define AH_MHD_MEMBER(name) __typeof__(&MHD_##name) name;
typedef struct ah_mhd {
    AH_MHD_FUNCTIONS(AH_MHD_MEMBER)
} ah_mhd;

/* False: libmicrohttpd is not on this machine. */
bool ah_mhd_load(ah_mhd *out);

#endif
#endif
