/* libcurl under its own names, for the command: the library and the 30 others that it needs are
 * opened at the first request, as loading them would take most of each start. The command is linked
 * with this file in place of libcurl, except in static programs. Without the library
 * curl_global_init fails, and the other functions are not called. */
#include <curl/curl.h>

#ifndef AH_CURL_LINKED

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* curl.h has macros of these names, which check types. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#if LIBCURL_VERSION_NUM >= 0x080000
#define CONST_8 const
#else
#define CONST_8
#endif

#define FUNCTIONS(F)                                                                               \
    F(easy_cleanup)                                                                                \
    F(easy_getinfo)                                                                                \
    F(easy_init)                                                                                   \
    F(easy_pause)                                                                                  \
    F(easy_setopt)                                                                                 \
    F(easy_strerror)                                                                               \
    F(free)                                                                                        \
    F(global_init)                                                                                 \
    F(multi_add_handle)                                                                            \
    F(multi_cleanup)                                                                               \
    F(multi_info_read)                                                                             \
    F(multi_init)                                                                                  \
    F(multi_remove_handle)                                                                         \
    F(multi_setopt)                                                                                \
    F(multi_socket_action)                                                                         \
    F(multi_timeout)                                                                               \
    F(url)                                                                                         \
    F(url_cleanup)                                                                                 \
    F(url_get)                                                                                     \
    F(url_set)                                                                                     \
    F(url_strerror)                                                                                \
    F(version_info)

#define MEMBER(name) __typeof__(curl_##name) *name;
static struct {
    FUNCTIONS(MEMBER)
} lib;

static bool loaded;
static char missing[300] = "libcurl cannot be opened";

/* -- opening --------------------------------------------------------------------------------- */

static void *open_library(void)
{
#ifdef __APPLE__
    static const char *const names[] = {"libcurl.4.dylib", NULL};
#else
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};
#endif
    void *library = NULL;

    for (int i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

/* ISO C has no conversion from an object pointer to a function pointer. */
static bool find(void *library, const char *name, void *out)
{
    void *p = library ? dlsym(library, name) : NULL;

    memcpy(out, &p, sizeof p);
    return p != NULL;
}

static void load(void)
{
    void *library = open_library();
    const char *why;

    loaded = library != NULL;
#define TAKE(name) loaded = loaded && find(library, "curl_" #name, &lib.name);
    FUNCTIONS(TAKE)
    if (!loaded && (why = dlerror()))
        snprintf(missing, sizeof missing,
                 "libcurl cannot be opened (Debian: apt-get install libcurl4): %.200s", why);
}

static bool is_there(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return loaded;
}

/* -- functions that may be called first -------------------------------------------------------- */

CURLcode curl_global_init(long flags)
{
    return is_there() ? lib.global_init(flags) : CURLE_FAILED_INIT;
}

const char *curl_easy_strerror(CURLcode code)
{
    return is_there() ? lib.easy_strerror(code) : missing;
}

curl_version_info_data *curl_version_info(CURLversion version)
{
    static curl_version_info_data none = {.version = "none"};

    return is_there() ? lib.version_info(version) : &none;
}

/* -- functions whose argument depends on the option, as in libcurl ----------------------------- */

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    CURLcode code;
    va_list ap;

    va_start(ap, option);
    if (option < CURLOPTTYPE_OBJECTPOINT)
        code = lib.easy_setopt(easy, option, va_arg(ap, long));
    else if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_OFF_T + 10000)
        code = lib.easy_setopt(easy, option, va_arg(ap, curl_off_t));
    else
        code = lib.easy_setopt(easy, option, va_arg(ap, void *));
    va_end(ap);
    return code;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    CURLMcode code;
    va_list ap;

    va_start(ap, option);
    if ((int)option < CURLOPTTYPE_OBJECTPOINT)
        code = lib.multi_setopt(multi, option, va_arg(ap, long));
    else
        code = lib.multi_setopt(multi, option, va_arg(ap, void *));
    va_end(ap);
    return code;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    CURLcode code;
    va_list ap;

    va_start(ap, info);
    code = lib.easy_getinfo(easy, info, va_arg(ap, void *));
    va_end(ap);
    return code;
}

/* -- the others -------------------------------------------------------------------------------- */

CURL *curl_easy_init(void)
{
    return lib.easy_init();
}

void curl_easy_cleanup(CURL *easy)
{
    lib.easy_cleanup(easy);
}

CURLcode curl_easy_pause(CURL *easy, int bits)
{
    return lib.easy_pause(easy, bits);
}

void curl_free(void *p)
{
    lib.free(p);
}

CURLM *curl_multi_init(void)
{
    return lib.multi_init();
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
    return lib.multi_cleanup(multi);
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
    return lib.multi_add_handle(multi, easy);
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
    return lib.multi_remove_handle(multi, easy);
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
    return lib.multi_info_read(multi, left);
}

CURLMcode curl_multi_socket_action(CURLM *multi, curl_socket_t fd, int bits, int *running)
{
    return lib.multi_socket_action(multi, fd, bits, running);
}

CURLMcode curl_multi_timeout(CURLM *multi, long *ms)
{
    return lib.multi_timeout(multi, ms);
}

CURLU *curl_url(void)
{
    return lib.url();
}

void curl_url_cleanup(CURLU *url)
{
    lib.url_cleanup(url);
}

CURLUcode curl_url_get(CONST_8 CURLU *url, CURLUPart what, char **part, unsigned int flags)
{
    return lib.url_get(url, what, part, flags);
}

CURLUcode curl_url_set(CURLU *url, CURLUPart what, const char *part, unsigned int flags)
{
    return lib.url_set(url, what, part, flags);
}

const char *curl_url_strerror(CURLUcode code)
{
    return lib.url_strerror(code);
}

#endif
