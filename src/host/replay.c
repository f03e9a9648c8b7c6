/* Recorded exchanges (record.c) in place of a network. A request gets the response of the first
 * unused recorded exchange with the same method, URL and body. If there is none, the error shows
 * the difference from the next recorded one. Header lines are not compared. */
#include <stdio.h>

#include "base/differ.h"
#include "host/recording.h"
#include "io/file.h"

enum {
    MAX_FILE = 1 << 30,
    MAX_BODY = 512 << 20,
    MAX_POINTER = 4 << 10,
    MAX_REASON = 100,
    SHOWN = 160
};

/* A line of the file; all slices point into it. */
typedef struct exchange {
    size_t line; /* from 1 */
    ah_slice request, method, url, json;
    ah_slice response, error; /* .p NULL: none was recorded */
    ah_slice reason;          /* reason of the error */
    bool final;               /* another try will not succeed */
    bool used;
} exchange;

struct ah_replay {
    const ah_mem *mem;
    ah_buf file;
    exchange *item;
    size_t n, cap;
    char path[];
};

void ah_replay_free(ah_replay *r)
{
    if (!r)
        return;
    ah_buf_clear(&r->file);
    ah_free(r->mem, r->item);
    ah_free(r->mem, r);
}

/* -- reading the file -------------------------------------------------------------------------- */

static ah_status refuse(const ah_replay *r, size_t line, const char *why, ah_err *err)
{
    return ah_err_set(err, AH_USAGE, "'%.300s' line %zu is no recorded exchange: %s", r->path, line,
                      why);
}

static bool is_list_of_strings(ah_slice list)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);

    if (t.kind != AH_JSON_ARRAY)
        return false;
    while ((t = ah_json_next(&r)).kind == AH_JSON_STRING)
        ;
    return t.kind == AH_JSON_ARRAY_END;
}

static bool is_response(ah_slice response)
{
    ah_json_num status;
    ah_slice body = ah_json_member(response, "body"), latin1 = ah_json_member(response, "latin1");

    return ah_json_kind_of(ah_json_member(response, "status")) == AH_JSON_NUMBER &&
           ah_json_number(ah_json_member(response, "status"), &status) && status.is_int &&
           status.i >= 200 && status.i <= 999 &&
           is_list_of_strings(ah_json_member(response, "headers")) &&
           ah_json_kind_of(body.p ? body : latin1) == AH_JSON_STRING;
}

static ah_status check(const ah_replay *r, const exchange *e, ah_err *err)
{
    if (ah_json_kind_of(e->method) != AH_JSON_STRING || ah_json_kind_of(e->url) != AH_JSON_STRING)
        return refuse(r, e->line, "it has no request with method and url", err);
    if (!e->response.p && ah_json_kind_of(e->error) != AH_JSON_STRING)
        return refuse(r, e->line, "it has no response and no error", err);
    if (e->response.p && !is_response(e->response))
        return refuse(r, e->line, "its response has no status, headers and body", err);
    return AH_OK;
}

static ah_status read_line(ah_replay *r, ah_slice text, size_t line, ah_err *err)
{
    exchange *item = ah_grow(r->mem, r->item, &r->cap, r->n + 1, sizeof *item), *e;
    ah_json_fault why;
    ah_status st;

    if (!item)
        return ah_err_nomem(err);
    r->item = item;
    st = ah_json_check(r->mem, text, AH_JSON_MAX_DEPTH, &why);
    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    if (st != AH_OK)
        return refuse(r, line, why.what, err);
    e = &r->item[r->n++];
    *e = (exchange){.line = line,
                    .request = ah_json_member(text, "request"),
                    .response = ah_json_member(text, "response"),
                    .error = ah_json_member(text, "error"),
                    .reason = ah_json_member(text, "reason"),
                    .final = ah_json_kind_of(ah_json_member(text, "final")) == AH_JSON_TRUE};
    e->method = ah_json_member(e->request, "method");
    e->url = ah_json_member(e->request, "url");
    e->json = ah_json_member(e->request, "json");
    return check(r, e, err);
}

static ah_status read_all(ah_replay *r, ah_err *err)
{
    ah_slice left = ah_buf_slice(&r->file);
    ah_status st = AH_OK;

    for (size_t line = 1; left.n && st == AH_OK; line++) {
        const char *end = memchr(left.p, '\n', left.n);
        size_t n = end ? (size_t)(end - left.p) : left.n;
        ah_slice text = ah_slice_trim((ah_slice){left.p, n});

        if (text.n)
            st = read_line(r, text, line, err);
        n += end != NULL;
        left = (ah_slice){left.p + n, left.n - n};
    }
    return st;
}

ah_status ah_replay_open(const ah_mem *mem, const char *path, ah_replay **out, ah_err *err)
{
    size_t n = strlen(path) + 1;
    ah_replay *r = ah_alloc(mem, sizeof *r + n);
    ah_status st;

    if (!r)
        return ah_err_nomem(err);
    r->mem = mem;
    memcpy(r->path, path, n);
    ah_buf_init(&r->file, mem, MAX_FILE);
    st = ah_file_read(path, &r->file, err);
    if (st == AH_OK)
        st = read_all(r, err);
    if (st == AH_OK)
        *out = r;
    else
        ah_replay_free(r);
    return st;
}

/* -- finding the exchange ---------------------------------------------------------------------- */

static bool same_place(const exchange *e, const ah_transport_request *req)
{
    return ah_json_string_is(e->method, req->method) && ah_json_string_is(e->url, req->url);
}

static bool same_body(const ah_replay *r, const exchange *e, ah_slice body)
{
    ah_slice text = ah_json_member(e->request, "body");
    ah_buf b;
    bool same;

    if (e->json.p || !text.p)
        return ah_slice_eq(e->json, body);
    ah_buf_init(&b, r->mem, MAX_BODY);
    same = ah_json_string(text, &b) && ah_buf_ok(&b) && ah_slice_eq(ah_buf_slice(&b), body);
    ah_buf_clear(&b);
    return same;
}

static exchange *next_unused(const ah_replay *r, const ah_transport_request *req)
{
    for (size_t i = 0; i < r->n; i++)
        if (!r->item[i].used && (!req || same_place(&r->item[i], req)))
            return &r->item[i];
    return NULL;
}

static void put_shown(ah_buf *b, const char *word, ah_slice value)
{
    size_t n = value.n > SHOWN ? ah_utf8_cut(value.p, SHOWN) : value.n;

    ah_buf_fmt(b, "%s ", word);
    if (value.p)
        ah_buf_fmt(b, "%.*s%s", (int)n, value.p, n < value.n ? "..." : "");
    else
        ah_buf_str(b, "nothing");
}

/* Writes for example: at /messages/1/content: recorded "Hello", now "Hallo". */
static void put_difference(ah_buf *b, ah_slice path, const ah_difference *d)
{
    ah_buf_fmt(b, "at %.*s: ", AH_FMT(path.n ? path : ah_slice_of("its top")));
    put_shown(b, "recorded", d->a);
    put_shown(b, ", now", d->b);
}

/* Compares the bodies. AH_OK: equal JSON in different bytes. */
static ah_status compare(const ah_replay *r, const exchange *e, ah_slice body, ah_err *err)
{
    ah_buf a, b, path, words;
    ah_difference d;
    ah_status st = AH_OK;

    ah_buf_init(&a, r->mem, MAX_BODY);
    ah_buf_init(&b, r->mem, MAX_BODY);
    ah_buf_init(&path, r->mem, MAX_POINTER);
    ah_buf_init(&words, r->mem, MAX_POINTER);
    if (ah_json_canon(r->mem, e->json, &a) != AH_OK || ah_json_canon(r->mem, body, &b) != AH_OK)
        st = ah_err_nomem(err);
    if (st == AH_OK && ah_json_differ(ah_buf_slice(&a), ah_buf_slice(&b), &path, &d)) {
        put_difference(&words, ah_buf_slice(&path), &d);
        st = ah_err_set(err, AH_HTTP, "replay: the request differs from '%.200s' line %zu %.*s",
                        r->path, e->line, AH_FMT(ah_buf_slice(&words)));
    }
    ah_buf_clear(&a);
    ah_buf_clear(&b);
    ah_buf_clear(&path);
    ah_buf_clear(&words);
    return st;
}

static ah_status explain(const ah_replay *r, const ah_transport_request *req, ah_slice body,
                         exchange **out, ah_err *err)
{
    exchange *e = next_unused(r, req);
    bool json = ah_json_check(r->mem, body, AH_JSON_MAX_DEPTH, NULL) == AH_OK;
    ah_status st;

    if (!e && (e = next_unused(r, NULL)))
        return ah_err_set(
            err, AH_HTTP,
            "replay: %s %.200s is not what was recorded; '%.200s' line %zu has %.*s %.*s",
            req->method, req->url, r->path, e->line, AH_FMT(ah_json_inside(e->method)),
            AH_FMT(ah_json_inside(e->url)));
    if (!e)
        return ah_err_set(
            err, AH_HTTP,
            "replay: all %zu exchanges of '%.200s' were used, and one more is requested: %s %.200s",
            r->n, r->path, req->method, req->url);
    if (!e->json.p || !json)
        return ah_err_set(err, AH_HTTP,
                          "replay: the request's body is not that of '%.200s' line %zu", r->path,
                          e->line);
    if ((st = compare(r, e, body, err)) == AH_OK)
        *out = e;
    return st;
}

static ah_status find(const ah_replay *r, const ah_transport_request *req, ah_slice body,
                      exchange **out, ah_err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        exchange *e = &r->item[i];

        if (!e->used && same_place(e, req) && same_body(r, e, body)) {
            *out = e;
            return AH_OK;
        }
    }
    return explain(r, req, body, out, err);
}

size_t ah_replay_unused(const ah_replay *r, const char **path, size_t *line)
{
    size_t n = 0;

    for (size_t i = r ? r->n : 0; i-- > 0;) {
        if (r->item[i].used)
            continue;
        *path = r->path;
        *line = r->item[i].line;
        n++;
    }
    return n;
}

/* -- the response ------------------------------------------------------------------------------ */

/* Converts U+0000 to U+00FF back to bytes, in place. */
static void narrow(ah_buf *b)
{
    size_t to = 0;

    for (size_t i = 0; i < b->len; i++) {
        unsigned char c = (unsigned char)b->data[i];

        if (c >= 0xc0 && i + 1 < b->len)
            c = (unsigned char)((c & 3) << 6 | ((unsigned char)b->data[++i] & 0x3f));
        b->data[to++] = (char)c;
    }
    b->len = to;
}

/* Writes the lines into `text`, each with a NUL, and sets *lines to an array of pointers to them,
 * which the caller frees. */
static bool read_headers(const ah_replay *r, ah_slice list, ah_buf *text, const char ***lines,
                         size_t *n)
{
    ah_json_reader reader = ah_json_read(list);
    const char *line;

    ah_json_next(&reader);
    for (ah_json_token t; (t = ah_json_next(&reader)).kind == AH_JSON_STRING; ++*n) {
        ah_json_unescape(t.raw, text);
        ah_buf_char(text, '\0');
    }
    *lines = ah_buf_ok(text) ? ah_resize(r->mem, NULL, (*n + 1) * sizeof **lines) : NULL;
    if (!*lines)
        return false;
    line = text->data;
    for (size_t i = 0; i < *n; line += strlen(line) + 1)
        (*lines)[i++] = line;
    return true;
}

static bool feed_head(const ah_replay *r, ah_http *http, uint64_t id, ah_slice response,
                      ah_buf *scratch)
{
    const char **lines = NULL;
    ah_json_num status = {0};
    size_t n = 0;
    bool ok = read_headers(r, ah_json_member(response, "headers"), scratch, &lines, &n);

    ah_json_number(ah_json_member(response, "status"), &status);
    if (ok)
        ah_http_head(http, id, (int)status.i, lines, n);
    ah_free(r->mem, lines);
    return ok;
}

static bool feed_body(ah_http *http, uint64_t id, ah_slice response, ah_buf *scratch)
{
    ah_slice text = ah_json_member(response, "body");

    ah_buf_reset(scratch, 0);
    ah_json_string(text.p ? text : ah_json_member(response, "latin1"), scratch);
    if (!text.p)
        narrow(scratch);
    if (ah_buf_ok(scratch))
        ah_http_body(http, id, ah_buf_slice(scratch));
    return ah_buf_ok(scratch);
}

/* The recorded error text has no host name: the transfer adds it. */
static bool feed_end(ah_http *http, uint64_t id, const exchange *e, ah_buf *scratch)
{
    char reason[MAX_REASON] = "";
    bool why = ah_json_kind_of(e->reason) == AH_JSON_STRING;

    ah_buf_reset(scratch, 0);
    if (e->error.p)
        ah_json_string(e->error, scratch);
    ah_buf_char(scratch, '\0');
    if (!ah_buf_ok(scratch))
        return false;
    if (why)
        ah_print(reason, sizeof reason, "%.*s", AH_FMT(ah_json_inside(e->reason)));
    ah_http_end(http, id, e->error.p ? scratch->data : NULL, why ? reason : NULL, e->final);
    return true;
}

static ah_status start(void *ud, ah_http *http, const ah_transport_request *req, ah_err *err)
{
    ah_replay *r = ud;
    exchange *e = NULL;
    ah_buf scratch;
    bool ok;

    if (find(r, req, (ah_slice){req->body, req->body_len}, &e, err) != AH_OK)
        return err->status;
    e->used = true;
    ah_buf_init(&scratch, r->mem, MAX_BODY);
    ok = !e->response.p || (feed_head(r, http, req->id, e->response, &scratch) &&
                            feed_body(http, req->id, e->response, &scratch));
    ok = ok && feed_end(http, req->id, e, &scratch);
    ah_buf_clear(&scratch);
    return ok ? AH_OK : ah_err_nomem(err);
}

/* Cancels nothing: `start` feeds the whole response, or fails. */
static void cancel(void *ud, uint64_t id)
{
    (void)ud;
    (void)id;
}

ah_http_carrier ah_replay_carrier(ah_replay *r)
{
    return (ah_http_carrier){.start = start, .cancel = cancel, .ud = r};
}
