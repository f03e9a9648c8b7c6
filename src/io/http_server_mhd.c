/* Finds libmicrohttpd: linked in, else opened at run time and never closed. */
#include "io/http_server_mhd.h"

#ifdef AH_WITH_MICROHTTPD

#include <dlfcn.h>
#include <string.h>

/* Weak, so that our libraries can be linked without libmicrohttpd. */
#pragma weak MHD_start_daemon
#pragma weak MHD_stop_daemon
#pragma weak MHD_run
#pragma weak MHD_get_timeout
#pragma weak MHD_get_daemon_info
#pragma weak MHD_add_connection
#pragma weak MHD_suspend_connection
#pragma weak MHD_resume_connection
#pragma weak MHD_get_connection_info
#pragma weak MHD_get_connection_values
#pragma weak MHD_create_response_from_callback
#pragma weak MHD_add_response_header
#pragma weak MHD_queue_response
#pragma weak MHD_destroy_response
#pragma weak MHD_is_feature_supported
#pragma weak MHD_get_reason_phrase_for
#pragma weak MHD_get_version

static void *open_library(void)
{
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so", NULL};
    void *library = NULL;

    for (int i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* ISO C has no conversion from an object pointer to a function pointer. */
static bool find(void *library, const char *name, void *out)
{
    void *p = library ? dlsym(library, name) : NULL;

    memcpy(out, &p, sizeof p);
    return p != NULL;
}

bool ah_mhd_load(ah_mhd *out)
{
    void *library = MHD_start_daemon ? NULL : open_library();
    bool ok = true;

#define TAKE(name)                                                                                 \
    out->name = MHD_##name;                                                                        \
    ok = (out->name || find(library, "MHD_" #name, &out->name)) && ok;
    AH_MHD_FUNCTIONS(TAKE)
#undef TAKE
    return ok;
}

#endif
