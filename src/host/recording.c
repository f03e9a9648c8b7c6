/* Writes exchanges to a file, one line of JSON each when the exchange is over
 * (docs/reference/recording.md has the form). Keys and other secrets are removed before anything is
 * written. replay.c reads the file; nothing is compared here. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "host/recording.h"
#include "io/file.h"

enum { MAX_LINE = 512 << 20 };

struct ah_recording {
    const ah_mem *mem;
    const ah_secrets *secrets;
    int fd;
    ah_err fault; /* error of the first line that could not be written; AH_OK: none */
    char path[];
};

/* One exchange in progress. */
typedef struct exchange {
    ah_recording *recording;
    ah_buf request; /* the JSON object of the request */
    ah_buf body;    /* the received bytes */
} exchange;

ah_status ah_recording_open(const ah_mem *mem, const char *path, const ah_secrets *secrets,
                            ah_recording **out, ah_err *err)
{
    size_t n = strlen(path) + 1;
    ah_recording *r = ah_alloc(mem, sizeof *r + n);

    if (!r)
        return ah_err_nomem(err);
    r->mem = mem;
    r->secrets = secrets;
    memcpy(r->path, path, n);
    if (ah_file_private(r->mem, "record to", path, AH_FILE_ANEW, &r->fd, err) != AH_OK) {
        ah_free(r->mem, r);
        return err->status;
    }
    *out = r;
    return AH_OK;
}

void ah_recording_free(ah_recording *r)
{
    if (!r)
        return;
    close(r->fd);
    ah_free(r->mem, r);
}

/* -- the request ------------------------------------------------------------------------------ */

/* Headers that carry credentials or identify the account. */
static bool is_private(ah_slice name)
{
    static const char *const names[] = {"Authorization",
                                        "Proxy-Authorization",
                                        "Cookie",
                                        "Set-Cookie",
                                        "X-Api-Key",
                                        "Api-Key",
                                        "X-Goog-Api-Key",
                                        "X-Auth-Token",
                                        "OpenAI-Organization",
                                        "OpenAI-Project",
                                        "Anthropic-Organization-Id"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ah_slice_is_word(name, names[i]))
            return true;
    return false;
}

/* Appends bytes as a string; those that are not UTF-8 as the characters U+0000 to U+00FF. */
static void put_bytes(ah_buf *b, const char *text, const char *latin1, ah_slice bytes)
{
    bool fine = ah_utf8_valid(bytes);
    char two[2];

    ah_buf_fmt(b, ",\"%s\":", fine ? text : latin1);
    if (fine) {
        ah_json_put_string(b, bytes);
        return;
    }
    ah_buf_char(b, '"');
    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char c = (unsigned char)bytes.p[i];

        two[0] = (char)(0xc0 | c >> 6);
        two[1] = (char)(0x80 | (c & 0x3f));
        if (c >= 0x80)
            ah_buf_add(b, two, 2);
        else if (c < 0x20 || c == '"' || c == '\\')
            ah_buf_fmt(b, "\\u%04x", c);
        else
            ah_buf_char(b, (char)c);
    }
    ah_buf_char(b, '"');
}

static void put_header(ah_buf *b, size_t i, ah_slice name, ah_slice value)
{
    ah_buf line;

    ah_buf_init(&line, b->mem, MAX_LINE);
    ah_buf_fmt(&line, "%.*s: ", AH_FMT(name));
    ah_buf_put(&line, is_private(name) ? ah_slice_of("[secret]") : value);
    if (i)
        ah_buf_char(b, ',');
    if (ah_utf8_valid(ah_buf_slice(&line)))
        ah_json_put_string(b, ah_buf_slice(&line));
    else
        ah_buf_str(b, "\"\"");
    if (!ah_buf_ok(&line))
        b->status = line.status;
    ah_buf_clear(&line);
}

static void put_request_headers(ah_buf *b, const ah_http_request *req)
{
    ah_buf_str(b, ",\"headers\":[");
    for (size_t i = 0; i < req->n_headers; i++) {
        ah_slice line = req->headers[i];
        const char *colon = memchr(line.p, ':', line.n);
        size_t n = colon ? (size_t)(colon - line.p) : line.n;

        put_header(b, i, (ah_slice){line.p, n},
                   ah_slice_trim((ah_slice){line.p + n + 1, line.n - n - 1}));
    }
    ah_buf_char(b, ']');
}

/* Appends JSON verbatim, so that a person can read it; anything else as a string. */
static void put_request_body(ah_buf *b, const ah_http_request *req)
{
    ah_buf all;

    ah_buf_init(&all, b->mem, MAX_LINE);
    for (size_t i = 0; i < req->n_body; i++)
        ah_buf_put(&all, req->body[i]);
    if (ah_json_check(b->mem, ah_buf_slice(&all), AH_JSON_MAX_DEPTH, NULL) == AH_OK) {
        ah_buf_str(b, ",\"json\":");
        ah_buf_put(b, ah_buf_slice(&all));
    } else {
        put_bytes(b, "body", "latin1", ah_buf_slice(&all));
    }
    if (!ah_buf_ok(&all))
        b->status = all.status;
    ah_buf_clear(&all);
}

static void forget(exchange *x)
{
    ah_buf_clear(&x->request);
    ah_buf_clear(&x->body);
    ah_free(x->recording->mem, x);
}

static ah_status begin(void *ud, const ah_http_request *req, void **out, ah_err *err)
{
    ah_recording *r = ud;
    exchange *x;
    ah_buf *b;

    if (r->fault.status != AH_OK) {
        *err = r->fault;
        return err->status;
    }
    if (!(x = ah_alloc(r->mem, sizeof *x)))
        return ah_err_nomem(err);
    x->recording = r;
    b = &x->request;
    ah_buf_init(b, r->mem, MAX_LINE);
    ah_buf_init(&x->body, r->mem, MAX_LINE);
    ah_buf_fmt(b, "{\"method\":\"%s\",\"url\":", req->method);
    ah_json_put_string(b, ah_slice_of(req->url));
    put_request_headers(b, req);
    put_request_body(b, req);
    ah_buf_char(b, '}');
    if (ah_buf_ok(b)) {
        *out = x;
        return AH_OK;
    }
    ah_buf_error(b, "a request to be recorded", err);
    forget(x);
    return err->status;
}

/* -- the response ----------------------------------------------------------------------------- */

static void add_body(void *x, ah_slice bytes)
{
    ah_buf_put(&((exchange *)x)->body, bytes);
}

static void put_response(ah_buf *b, const exchange *x, const ah_transfer *t)
{
    ah_slice name, value;

    ah_buf_fmt(b, ",\"response\":{\"status\":%d,\"headers\":[", ah_transfer_status(t));
    for (size_t i = 0; ah_transfer_header_at(t, i, &name, &value); i++)
        put_header(b, i, name, value);
    ah_buf_char(b, ']');
    put_bytes(b, "body", "latin1", ah_buf_slice(&x->body));
    ah_buf_char(b, '}');
}

static void put_error(ah_buf *b, const ah_transfer *t)
{
    ah_err err = {.status = AH_OK};
    ah_slice reason;

    if (!ah_transfer_ended(t, &err))
        ah_err_set(&err, AH_CANCELLED, "the client read no further");
    if (err.status == AH_OK)
        return;
    reason = ah_json_detail_of(&err, "reason");
    ah_buf_str(b, ",\"error\":");
    ah_json_put_string(b, ah_slice_of(err.message));
    if (reason.p)
        ah_buf_fmt(b, ",\"reason\":\"%.*s\"", AH_FMT(reason));
    if (err.status == AH_HTTP && !err.retryable)
        ah_buf_str(b, ",\"final\":true");
}

static void write_line(ah_recording *r, ah_buf *line)
{
    size_t at = 0;
    ssize_t n = 0;

    line->len = ah_secrets_redact_json(r->secrets, line->data, line->len);
    while (at < line->len && n >= 0) {
        n = write(r->fd, line->data + at, line->len - at);
        if (n < 0 && errno == EINTR)
            n = 0;
        at += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        ah_err_set(&r->fault, AH_USAGE, "cannot record to '%.300s': %s", r->path, strerror(errno));
}

static void end(void *ud, const ah_transfer *t)
{
    exchange *x = ud;
    ah_recording *r = x->recording;
    ah_buf line;

    ah_buf_init(&line, r->mem, MAX_LINE);
    if (!ah_recording_clean(r->mem, r->secrets, &x->body))
        line.status = AH_NOMEM;
    ah_buf_fmt(&line, "{\"request\":");
    ah_buf_put(&line, ah_buf_slice(&x->request));
    if (ah_transfer_status(t))
        put_response(&line, x, t);
    put_error(&line, t);
    ah_buf_str(&line, "}\n");
    if (!ah_buf_ok(&line) || !ah_buf_ok(&x->body))
        ah_buf_error(ah_buf_ok(&line) ? &x->body : &line, "an exchange to be recorded", &r->fault);
    else
        write_line(r, &line);
    ah_buf_clear(&line);
    forget(x);
}

ah_http_tap ah_recording_tap(ah_recording *r)
{
    return (ah_http_tap){begin, add_body, end, r};
}
