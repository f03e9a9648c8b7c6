/* Error texts for failed transfers: which host, what happened, and which limit or variable is
 * involved; the reason in one word for programs; and whether another try may succeed. curl's own
 * text is used only if nothing better is known. A proxy is named by name and port (http_proxy.c),
 * never with the credentials before them. */
#include "base/json.h"
#include "io/http_transfer.h"

#include <errno.h>
#include <stdio.h>

enum {
    CURL_LINE_BYTES = 100 * 1024, /* libcurl's own limit of a header line */
    CURL_TOO_LARGE = 100          /* CURLE_TOO_LARGE, missing in headers before 8.6 */
};

static const char *words_for_size(size_t n, char *out, size_t size)
{
    if (n >= 1 << 20 && n % (1 << 20) == 0)
        snprintf(out, size, "%zu MiB", n >> 20);
    else if (n >= 1 << 10 && n % (1 << 10) == 0)
        snprintf(out, size, "%zu KiB", n >> 10);
    else
        snprintf(out, size, "%zu bytes", n);
    return out;
}

static const char *words_for_ms(int64_t ms, char *out, size_t size)
{
    if (ms < 1000)
        snprintf(out, size, "%d ms", (int)ms);
    else
        snprintf(out, size, "%lld.%d s", (long long)(ms / 1000), (int)(ms % 1000 / 100));
    return out;
}

static ah_status say_size(const ah_transfer *t, const char *what, size_t limit, const char *name,
                          ah_err *err)
{
    char words[32];

    return ah_err_set(err, AH_HTTP, "%s: %s larger than %s (limit %s)", t->host, what,
                      words_for_size(limit, words, sizeof words), name);
}

static ah_status say_time(const ah_transfer *t, const char *what, int64_t limit, const char *name,
                          ah_err *err)
{
    char words[32];
    ah_status st = ah_err_set(err, AH_HTTP, "%s: %s %s (limit %s)", t->host, what,
                              words_for_ms(limit, words, sizeof words), name);

    if (err)
        err->retryable = true;
    return st;
}

/* Reported by us or, for a transfer encoding, by libcurl from 8.7 on. */
static ah_status say_coding(const ah_transfer *t, ah_err *err)
{
    return ah_err_set(err, AH_HTTP, "%s: the response is compressed, though that was not asked for",
                      t->host);
}

static ah_status say_fault(const ah_transfer *t, ah_err *err)
{
    switch (t->fault) {
    case FAULT_NONE:
        return AH_OK;
    case FAULT_NOMEM:
        return ah_err_nomem(err);
    case FAULT_WATCH:
        return ah_err_set(err, AH_HTTP, "%s: the socket cannot be watched", t->host);
    case FAULT_HEADER:
        return say_size(t, "response header", t->limits.header_bytes, "http.max_header", err);
    case FAULT_BODY:
        return say_size(t, "response body", t->limits.body_bytes, "http.max_body", err);
    case FAULT_CODING:
        return say_coding(t, err);
    case FAULT_IDLE:
        return say_time(t, "no data for", t->limits.idle_ms, "http.idle_timeout", err);
    case FAULT_TOTAL:
        return say_time(t, "not done within", t->limits.total_ms, "http.total_timeout", err);
    }
    return AH_INTERNAL;
}

/* Returns the C library's text for an errno, in the buffer; strerror is not thread-safe. */
static const char *words_for_errno(int e, char *out, size_t size)
{
    if (e == EMFILE || e == ENFILE)
        snprintf(out, size, "too many open files (raise ulimit -n)");
    else if (e == 0 || strerror_r(e, out, size) != 0)
        snprintf(out, size, "no reason given");
    return out;
}

/* Copies curl's text as printable ASCII, since parts come from certificates, proxies and the
 * like. */
static const char *words_of_curl(const ah_transfer *t, char out[CURL_ERROR_SIZE])
{
    const char *from = *t->curl_says ? t->curl_says : curl_easy_strerror(t->result);
    size_t n = 0;

    for (; from[n] && n < CURL_ERROR_SIZE - 1; n++)
        out[n] = from[n];
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (out[i] < ' ' || out[i] > '~')
            out[i] = '?';
    return out;
}

/* -- TLS ------------------------------------------------------------------------------------ */

typedef enum distrust {
    DISTRUST_OTHER,
    DISTRUST_ISSUER,
    DISTRUST_EXPIRED,
    DISTRUST_EARLY,
    DISTRUST_NAME,
    DISTRUST_REVOKED
} distrust;

/* Interprets the result of OpenSSL and its forks, an X509_V_ERR_ number (they never change). A
 * wrong host name is found after all these, and leaves no number or the first one. */
static distrust by_openssl(long found)
{
    static const struct {
        long number;
        distrust why;
    } known[] = {{0, DISTRUST_NAME},    {1, DISTRUST_NAME},    {62, DISTRUST_NAME},
                 {64, DISTRUST_NAME},   {2, DISTRUST_ISSUER},  {18, DISTRUST_ISSUER},
                 {19, DISTRUST_ISSUER}, {20, DISTRUST_ISSUER}, {21, DISTRUST_ISSUER},
                 {27, DISTRUST_ISSUER}, {9, DISTRUST_EARLY},   {10, DISTRUST_EXPIRED},
                 {23, DISTRUST_REVOKED}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == found)
            return known[i].why;
    return DISTRUST_OTHER;
}

/* Interprets the result of GnuTLS, the bits of gnutls_certificate_status_t. */
static distrust by_gnutls(long found)
{
    if (found & 1 << 5)
        return DISTRUST_REVOKED;
    if (found & (1 << 6 | 1 << 7))
        return DISTRUST_ISSUER;
    if (found & 1 << 9)
        return DISTRUST_EARLY;
    if (found & 1 << 10)
        return DISTRUST_EXPIRED;
    return found <= 1 ? DISTRUST_NAME : DISTRUST_OTHER;
}

/* curl reports the reason as a number of its TLS library. */
static distrust distrust_of(const ah_transfer *t, bool of_proxy)
{
    const char *library = curl_version_info(CURLVERSION_NOW)->ssl_version;
    long found = 0;

    if (t->result != CURLE_PEER_FAILED_VERIFICATION || !library ||
        curl_easy_getinfo(t->easy,
                          of_proxy ? CURLINFO_PROXY_SSL_VERIFYRESULT : CURLINFO_SSL_VERIFYRESULT,
                          &found) != CURLE_OK)
        return DISTRUST_OTHER;
    if (strstr(library, "OpenSSL") || strstr(library, "LibreSSL") || strstr(library, "BoringSSL"))
        return by_openssl(found);
    return strstr(library, "GnuTLS") ? by_gnutls(found) : DISTRUST_OTHER;
}

static const char *authorities(const ah_http *http)
{
    return http->ca_file ? http->ca_file : http->ca_dir;
}

/* Names the file or folder of trusted issuers, for a user that must add one. */
static const char *words_for_authorities(const ah_http *http, char *out, size_t size)
{
    if (!http->ca_from)
        return "are ca-certificates installed? SSL_CERT_FILE names others";
    ah_print(out, size, "known are those in '%.300s', which %s names%s", authorities(http),
             http->ca_from,
             http->ca_passed_over ? "; SSL_CERT_FILE and SSL_CERT_DIR do not count beside it" : "");
    return out;
}

static ah_status say_bad_file(const ah_transfer *t, ah_err *err)
{
    const ah_http *http = t->http;

    if (!http->ca_from)
        return ah_err_set(err, AH_HTTP,
                          "TLS with %s failed: there are no certificates of issuers here (are "
                          "ca-certificates installed? SSL_CERT_FILE names others)",
                          t->host);
    return ah_err_set(
        err, AH_HTTP,
        "TLS with %s failed: '%.300s', which %s names, holds no certificates of issuers "
        "or cannot be read",
        t->host, authorities(http), http->ca_from);
}

/* `with` is the server or a proxy. Each cause has its own text: only an unknown issuer concerns the
 * certificates of this machine. */
static ah_status say_tls_with(const ah_transfer *t, const char *with, bool of_proxy, ah_err *err)
{
    char words[CURL_ERROR_SIZE + 400];

    if (t->result == CURLE_SSL_CACERT_BADFILE)
        return say_bad_file(t, err);
    switch (distrust_of(t, of_proxy)) {
    case DISTRUST_ISSUER:
        return ah_err_set(err, AH_HTTP,
                          "TLS with %s failed: the issuer of its certificate is not known (%s)",
                          with, words_for_authorities(t->http, words, sizeof words));
    case DISTRUST_EXPIRED:
        return ah_err_set(
            err, AH_HTTP,
            "TLS with %s failed: its certificate has expired, or this machine's clock is wrong",
            with);
    case DISTRUST_EARLY:
        return ah_err_set(err, AH_HTTP,
                          "TLS with %s failed: its certificate is not valid yet, or this machine's "
                          "clock is wrong",
                          with);
    case DISTRUST_NAME:
        return ah_err_set(err, AH_HTTP, "TLS with %s failed: its certificate is for another name",
                          with);
    case DISTRUST_REVOKED:
        return ah_err_set(err, AH_HTTP, "TLS with %s failed: its certificate was revoked", with);
    case DISTRUST_OTHER:
        break;
    }
    return ah_err_set(err, AH_HTTP, "TLS with %s failed: %s", with, words_of_curl(t, words));
}

static ah_status say_tls(const ah_transfer *t, ah_err *err)
{
    return say_tls_with(t, t->host, false, err);
}

/* -- proxies -------------------------------------------------------------------------------- */

/* True if the request failed on the way to the proxy, or at the proxy, before the server was
 * reached. */
static bool is_of_proxy(const ah_transfer *t)
{
    if (t->result == CURLE_COULDNT_RESOLVE_PROXY || (t->tunnel >= 300 && t->result != CURLE_OK))
        return true;
#if LIBCURL_VERSION_NUM >= 0x074900
    if (t->result == CURLE_PROXY)
        return true;
#endif
    if (!*t->proxy || t->tunnel || *t->refused)
        return false;
    switch ((int)t->result) {
    case CURLE_COULDNT_CONNECT:
        return true;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return t->tls; /* the tunnel was never established */
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return true; /* there was no TLS beyond the proxy either */
    default:
        return false;
    }
}

static const char *advice_of_tunnel(int status)
{
    return status == 407 || status == 401 ? "; it asks for a name and a password" : "";
}

static ah_status say_proxy(const ah_transfer *t, ah_err *err)
{
    static const char hint[] = "(a proxy is set in the environment)";
    char words[CURL_ERROR_SIZE], with[HOST_SIZE + 16];

    if (t->tunnel >= 300)
        return ah_err_set(err, AH_HTTP, "the proxy %s does not connect to %s: HTTP %d%s %s",
                          t->proxy, t->host, t->tunnel, advice_of_tunnel(t->tunnel), hint);
    if (t->result == CURLE_COULDNT_RESOLVE_PROXY)
        return ah_err_set(err, AH_HTTP, "no such host: the proxy %s for %s %s", t->proxy, t->host,
                          hint);
    if (t->result == CURLE_COULDNT_CONNECT && t->os_error == ECONNREFUSED)
        return ah_err_set(err, AH_HTTP, "connection refused by the proxy %s for %s %s", t->proxy,
                          t->host, hint);
    if (t->result == CURLE_PEER_FAILED_VERIFICATION) {
        snprintf(with, sizeof with, "the proxy %s", t->proxy);
        return say_tls_with(t, with, true, err);
    }
    return ah_err_set(err, AH_HTTP, "no connection to %s through the proxy %s: %s %s", t->host,
                      t->proxy, words_of_curl(t, words), hint);
}

static ah_status say_connect(const ah_transfer *t, ah_err *err)
{
    char words[128];

    if (t->os_error == ECONNREFUSED)
        return ah_err_set(err, AH_HTTP, "connection refused by %s", t->host);
    return ah_err_set(err, AH_HTTP, "cannot connect to %s: %s", t->host,
                      words_for_errno(t->os_error, words, sizeof words));
}

static ah_status say_broken(const ah_transfer *t, ah_err *err)
{
    if (strstr(t->curl_says, "chunk"))
        return ah_err_set(err, AH_HTTP, "malformed chunk in the response of %s", t->host);
    if (t->os_error == ECONNRESET || t->os_error == EPIPE)
        return ah_err_set(err, AH_HTTP, "connection reset by %s", t->host);
    return ah_err_set(err, AH_HTTP, "connection to %s broke%s", t->host,
                      t->answered ? " in the middle of the response" : "");
}

/* curl keeps a header line in its own buffer; a line that exceeds it is reported as too large or,
 * before 8.6, as out of memory. */
static ah_status say_line(const ah_transfer *t, ah_err *err)
{
    if (t->result == CURLE_OUT_OF_MEMORY && (!t->answered || t->head_done))
        return ah_err_nomem(err);
    if (t->limits.header_bytes <= CURL_LINE_BYTES)
        return say_size(t, "response header", t->limits.header_bytes, "http.max_header", err);
    return say_size(t, "response header line", CURL_LINE_BYTES, "of libcurl", err);
}

/* True for a proxy's refusal that may pass: it, or what is behind it, is overloaded. */
static bool is_passing(int status)
{
    return status == 408 || status == 429 || status >= 500;
}

static bool is_retryable(const ah_transfer *t)
{
    if (t->tunnel >= 300)
        return is_passing(t->tunnel);
    switch ((int)t->result) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

static ah_status say_refused(const ah_transfer *t, ah_err *err)
{
    return ah_err_set(err, AH_HTTP, "%s: the address %s may not be connected to%s", t->host,
                      t->refused, t->only->public ? ": it is not a public one" : "");
}

static ah_status say_code(const ah_transfer *t, ah_err *err)
{
    if (is_of_proxy(t))
        return say_proxy(t, err);
    switch ((int)t->result) {
    case CURLE_OUT_OF_MEMORY:
    case CURL_TOO_LARGE:
        return say_line(t, err);
    case CURLE_BAD_CONTENT_ENCODING:
        return say_coding(t, err);
    case CURLE_COULDNT_RESOLVE_HOST:
        return ah_err_set(err, AH_HTTP, "no such host: %s", t->host);
    case CURLE_COULDNT_CONNECT:
        return *t->refused ? say_refused(t, err) : say_connect(t, err);
    case CURLE_OPERATION_TIMEDOUT:
        return say_time(t, "no connection within", t->limits.connect_ms, "http.connect_timeout",
                        err);
    case CURLE_GOT_NOTHING:
        return ah_err_set(err, AH_HTTP, "connection closed by %s without a response", t->host);
    case CURLE_PARTIAL_FILE:
        return ah_err_set(err, AH_HTTP, "connection closed in the middle of the response by %s",
                          t->host);
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return say_broken(t, err);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return ah_err_set(err, AH_HTTP, "%s does not answer in HTTP", t->host);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return say_tls(t, err);
    default:
        return ah_err_set(err, AH_HTTP, "transfer with %s failed: %s", t->host,
                          curl_easy_strerror(t->result));
    }
}

/* -- reasons in one word ---------------------------------------------------------------------- */

static const char *reason_of_fault(fault f)
{
    switch (f) {
    case FAULT_HEADER:
    case FAULT_BODY:
        return "too_large";
    case FAULT_IDLE:
        return "timeout_idle";
    case FAULT_TOTAL:
        return "timeout_total";
    case FAULT_NONE:
    case FAULT_NOMEM:
    case FAULT_WATCH:
    case FAULT_CODING:
        break;
    }
    return "broken";
}

/* docs/reference/errors.md lists them. */
static const char *reason_of(const ah_transfer *t)
{
    if (t->fault != FAULT_NONE)
        return reason_of_fault(t->fault);
    if (!t->easy)
        return *t->reason ? t->reason : "broken";
    if (is_of_proxy(t))
        return "proxy";
    switch ((int)t->result) {
    case CURLE_OUT_OF_MEMORY: /* for a header line, see say_line */
    case CURL_TOO_LARGE:
        return "too_large";
    case CURLE_COULDNT_RESOLVE_HOST:
        return "dns";
    case CURLE_COULDNT_CONNECT:
        return "refused";
    case CURLE_OPERATION_TIMEDOUT:
        return "timeout_connect";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return "tls";
    default:
        return "broken";
    }
}

void ah_transfer_reason(ah_transfer *t, ah_slice word)
{
    static const char *const words[] = {"refused",         "dns",          "tls",
                                        "timeout_connect", "timeout_idle", "timeout_total",
                                        "too_large",       "broken",       "proxy"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ah_slice_is(word, words[i]))
            snprintf(t->reason, sizeof t->reason, "%s", words[i]);
}

/* The transport's own text. A retry may succeed after a broken connection. */
static void say_foreign(const ah_transfer *t, ah_err *err)
{
    ah_err_set(err, AH_HTTP, "%s: %s", t->host, t->broke ? t->broke : "the transfer failed");
    err->retryable = !t->final;
}

bool ah_transfer_ended(const ah_transfer *t, ah_err *err)
{
    if (!t->ended || !err)
        return t->ended;
    ah_err_clear(err);
    if (t->fault != FAULT_NONE)
        say_fault(t, err);
    else if (t->result != CURLE_OK && !t->easy)
        say_foreign(t, err);
    else if (t->result != CURLE_OK) {
        say_code(t, err);
        err->retryable = err->status == AH_HTTP && !*t->refused && is_retryable(t);
    }
    if (err->status == AH_HTTP)
        ah_json_detail(err, "reason", ah_slice_of(reason_of(t)));
    err->http_status = t->tunnel >= 300 ? t->tunnel : t->status;
    return true;
}
