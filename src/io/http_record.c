/* Exchanges kept in a file, a line of JSON each, written when the exchange is over
 * (docs/recording.md has the form). Keys and other secrets are taken out before a byte is
 * written. What http_replay.c reads; nothing is compared or judged here. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "io/file.h"
#include "io/http_transfer.h"

enum { MAX_LINE = 512 << 20 };

struct ah_recorder {
    const ah_mem *mem;
    const ah_secrets *secrets;
    int fd;
    ah_err fault; /* of the first line that could not be written; AH_OK: none */
    char path[];
};

/* One exchange at work. */
struct ah_recorded {
    ah_buf request; /* its object */
    ah_buf body;    /* what came */
};

ah_status ah_http_record(ah_http *http, const char *path, const ah_secrets *secrets, ah_err *err)
{
    size_t n = strlen(path) + 1;
    ah_recorder *r = ah_alloc(http->mem, sizeof *r + n);

    if (!r)
        return ah_err_nomem(err);
    r->mem = http->mem;
    r->secrets = secrets;
    memcpy(r->path, path, n);
    if (ah_file_private(r->mem, "record to", path, AH_FILE_ANEW, &r->fd, err) != AH_OK) {
        ah_free(r->mem, r);
        return err->status;
    }
    http->recorder = r;
    return AH_OK;
}

void ah_recorder_free(ah_recorder *r)
{
    if (!r)
        return;
    close(r->fd);
    ah_free(r->mem, r);
}

/* -- the request ------------------------------------------------------------------------------ */

/* Of those who may do what the key's owner may, and of the owner. */
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
        if (same_word(name, names[i]))
            return true;
    return false;
}

/* Bytes that are no UTF-8 as the characters U+0000 to U+00FF. */
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

        put_header(b, i, (ah_slice){line.p, n}, trim((ah_slice){line.p + n + 1, line.n - n - 1}));
    }
    ah_buf_char(b, ']');
}

/* JSON as it is, so that a person can read it; anything else as a string. */
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

static void forget(ah_transfer *t)
{
    if (!t->recorded)
        return;
    ah_buf_clear(&t->recorded->request);
    ah_buf_clear(&t->recorded->body);
    ah_free(t->http->mem, t->recorded);
    t->recorded = NULL;
}

/* The request is checked. */
ah_status ah_record_begin(ah_transfer *t, const ah_http_request *req, ah_err *err)
{
    ah_recorder *r = t->http->recorder;
    ah_buf *b;

    if (!r || r->fault.status != AH_OK) {
        if (r)
            *err = r->fault;
        return r ? err->status : AH_OK;
    }
    if (!(t->recorded = ah_alloc(r->mem, sizeof *t->recorded)))
        return ah_err_nomem(err);
    b = &t->recorded->request;
    ah_buf_init(b, r->mem, MAX_LINE);
    ah_buf_init(&t->recorded->body, r->mem, MAX_LINE);
    ah_buf_fmt(b, "{\"method\":\"%s\",\"url\":", req->method);
    ah_json_put_string(b, ah_slice_of(req->url));
    put_request_headers(b, req);
    put_request_body(b, req);
    ah_buf_char(b, '}');
    if (ah_buf_ok(b))
        return AH_OK;
    ah_buf_error(b, "a request to be recorded", err);
    forget(t);
    return err->status;
}

/* -- the response ----------------------------------------------------------------------------- */

void ah_record_body(ah_transfer *t, ah_slice bytes)
{
    if (t->recorded)
        ah_buf_put(&t->recorded->body, bytes);
}

static void put_response(ah_buf *b, const ah_transfer *t)
{
    ah_slice name, value;

    ah_buf_fmt(b, ",\"response\":{\"status\":%d,\"headers\":[", t->status);
    for (size_t i = 0; ah_transfer_header_at(t, i, &name, &value); i++)
        put_header(b, i, name, value);
    ah_buf_char(b, ']');
    put_bytes(b, "body", "latin1", ah_buf_slice(&t->recorded->body));
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

static void write_line(ah_recorder *r, ah_buf *line)
{
    size_t at = 0;
    ssize_t n = 0;

    line->len = ah_secrets_redact(r->secrets, line->data, line->len);
    while (at < line->len && n >= 0) {
        n = write(r->fd, line->data + at, line->len - at);
        if (n < 0 && errno == EINTR)
            n = 0;
        at += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        ah_err_set(&r->fault, AH_USAGE, "cannot record to '%.300s': %s", r->path, strerror(errno));
}

void ah_record_end(ah_transfer *t)
{
    ah_recorder *r = t->http->recorder;
    ah_buf line;

    if (!t->recorded)
        return;
    ah_buf_init(&line, r->mem, MAX_LINE);
    if (!ah_record_clean(r->mem, r->secrets, &t->recorded->body))
        line.status = AH_NOMEM;
    ah_buf_fmt(&line, "{\"request\":");
    ah_buf_put(&line, ah_buf_slice(&t->recorded->request));
    if (t->head_done)
        put_response(&line, t);
    put_error(&line, t);
    ah_buf_str(&line, "}\n");
    if (!ah_buf_ok(&line) || !ah_buf_ok(&t->recorded->body))
        ah_buf_error(ah_buf_ok(&line) ? &t->recorded->body : &line, "an exchange to be recorded",
                     &r->fault);
    else
        write_line(r, &line);
    ah_buf_clear(&line);
    forget(t);
}
