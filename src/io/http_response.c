/* The response of a transfer: curl's header lines and body bytes are copied, counted against the
 * limits and kept until the transfer's owner takes them. No code of the caller runs here; news is
 * only noted. Ends and errors are handled elsewhere. */
#include <assert.h>

#include "base/lent.h"
#include "io/http_transfer.h"

static bool refuse(ah_transfer *t, fault f)
{
    ah_transfer_set_fault(t, f);
    return false;
}

static ah_slice head_part(const ah_transfer *t, uint32_t off, uint32_t n)
{
    return (ah_slice){t->head.data + off, n};
}

/* True if the response is uncompressed. We ask for no compression, and curl's decoder does not
 * report a broken end. */
static bool is_uncoded(const ah_transfer *t)
{
    for (size_t i = 0; i < t->n_lines; i++) {
        const header_line *l = &t->lines[i];
        ah_slice name = head_part(t, l->name, l->name_n),
                 value = head_part(t, l->value, l->value_n);

        if (ah_slice_is_word(name, "Content-Encoding") && value.n &&
            !ah_slice_is_word(value, "identity"))
            return false;
        if (ah_slice_is_word(name, "Transfer-Encoding") && !ah_slice_is_word(value, "chunked") &&
            !ah_slice_is_word(value, "identity"))
            return false;
    }
    return true;
}

/* Keeps a header line. Lines that are no "name: value" (including folded ones, obsolete since RFC
 * 9112 5.2) are counted, but not kept. */
static bool keep_line(ah_transfer *t, ah_slice line)
{
    const char *colon = memchr(line.p, ':', line.n);
    size_t start = t->head.len;
    ah_slice value;
    header_line *lines;

    if (!colon || colon == line.p || *line.p == ' ' || *line.p == '\t')
        return true;
    lines = ah_grow(t->http->mem, t->lines, &t->cap_lines, t->n_lines + 1, sizeof *lines);
    if (!lines)
        return false;
    t->lines = lines;
    ah_buf_put(&t->head, line);
    value = ah_slice_trim((ah_slice){colon + 1, line.n - (size_t)(colon + 1 - line.p)});
    lines[t->n_lines++] = (header_line){
        .name = (uint32_t)start,
        .name_n = (uint32_t)ah_slice_trim((ah_slice){line.p, (size_t)(colon - line.p)}).n,
        .value = (uint32_t)(start + (size_t)(value.p - line.p)),
        .value_n = (uint32_t)value.n,
    };
    return ah_buf_ok(&t->head);
}

static void forget_lines(ah_transfer *t)
{
    ah_buf_reset(&t->head, 0);
    t->n_lines = 0;
}

/* A head with a status below 200 is interim: another head follows. */
bool ah_transfer_response_head(ah_transfer *t, int status)
{
    if (status < 200)
        return true;
    if (!is_uncoded(t))
        return refuse(t, FAULT_CODING);
    t->status = status;
    t->head_done = true;
    ah_transfer_note_news(t);
    return true;
}

static bool count_line(ah_transfer *t, ah_slice line)
{
    t->head_bytes += line.n;
    return t->head_bytes <= t->limits.header_bytes || refuse(t, FAULT_HEADER);
}

bool ah_transfer_response_line(ah_transfer *t, ah_slice line)
{
    if (!count_line(t, line))
        return false;
    if (t->head_done)
        return true; /* a trailer */
    return keep_line(t, line) || refuse(t, FAULT_NOMEM);
}

static bool take_line(ah_transfer *t, ah_slice line)
{
    bool first = line.n >= 5 && memcmp(line.p, "HTTP/", 5) == 0;
    long status = 0;

    if (t->head_done || (!first && ah_slice_trim(line).n > 0))
        return ah_transfer_response_line(t, line);
    if (!count_line(t, line))
        return false;
    if (first) {
        forget_lines(t);
        return true;
    }
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    return ah_transfer_response_head(t, (int)status);
}

/* Returning less than curl gave ends the transfer. */
static size_t write_header(char *p, size_t size, size_t n, void *ud)
{
    ah_transfer *t = ud;

    t->touched = t->http->now;
    return take_line(t, (ah_slice){p, size * n}) ? size * n : 0;
}

static void drop_taken(ah_transfer *t)
{
    if (t->taken == 0 || t->taken < t->body.len / 2)
        return;
    ah_buf_drop(&t->body, t->taken);
    t->taken = 0;
}

static size_t untaken(const ah_transfer *t)
{
    return t->body.len - t->taken;
}

/* True if the body is over its limit. With a window, curl is paused; a carrier cannot be, so its
 * untaken bytes are limited. */
static bool too_much(const ah_transfer *t, size_t n)
{
    if (t->received > t->limits.body_bytes)
        return true;
    return t->limits.window_bytes && !t->easy && untaken(t) + n > ah_http_limits_default.body_bytes;
}

bool ah_transfer_response_body(ah_transfer *t, ah_slice bytes)
{
    t->received += bytes.n;
    if (too_much(t, bytes.n))
        return refuse(t, FAULT_BODY);
    drop_taken(t);
    if (t->tapped)
        t->http->tap.body(t->tapped, bytes);
    ah_buf_put(&t->body, bytes);
    if (!ah_buf_ok(&t->body))
        return refuse(t, FAULT_NOMEM);
    ah_transfer_note_news(t);
    return true;
}

static size_t write_body(char *p, size_t size, size_t n, void *ud)
{
    ah_transfer *t = ud;

    t->touched = t->http->now;
    if (t->limits.window_bytes && untaken(t) >= t->limits.window_bytes) {
        t->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    return ah_transfer_response_body(t, (ah_slice){p, size * n}) ? size * n : 0;
}

void ah_transfer_response_attach(ah_transfer *t)
{
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, write_body);
    curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, write_header);
    curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
}

void ah_transfer_response_forget(ah_transfer *t)
{
    forget_lines(t);
    ah_buf_reset(&t->body, 0);
    t->head_bytes = t->taken = 0;
    t->received = 0;
    t->status = 0;
    t->head_done = t->paused = false;
}

int ah_transfer_status(const ah_transfer *t)
{
    return t->status;
}

bool ah_transfer_header_at(const ah_transfer *t, size_t i, ah_slice *name, ah_slice *value)
{
    if (!t->head_done || i >= t->n_lines)
        return false;
    *name = head_part(t, t->lines[i].name, t->lines[i].name_n);
    *value = head_part(t, t->lines[i].value, t->lines[i].value_n);
    return true;
}

ah_slice ah_transfer_header(const ah_transfer *t, const char *name)
{
    ah_slice found = {NULL, 0}, n, v;

    for (size_t i = 0; ah_transfer_header_at(t, i, &n, &v); i++)
        if (ah_slice_is_word(n, name))
            found = v;
    return found;
}

ah_slice ah_transfer_body(const ah_transfer *t)
{
    ah_slice all = ah_buf_slice(&t->body);

    return ah_lend((ah_slice){all.p + t->taken, all.n - t->taken});
}

ah_buf ah_transfer_take(ah_transfer *t)
{
    ah_buf_drop(&t->body, t->taken);
    t->taken = 0;
    return ah_buf_take(&t->body);
}

void ah_transfer_give_back(ah_transfer *t, ah_buf *b)
{
    ah_buf_give_back(&t->body, b);
}

void ah_transfer_took(ah_transfer *t, size_t n)
{
    assert(n <= t->body.len - t->taken);
    t->taken += n;
    if (t->taken == t->body.len) {
        ah_buf_reset(&t->body, 0);
        t->taken = 0;
    }
    if (t->paused && untaken(t) <= t->limits.window_bytes / 2)
        ah_transfer_thaw(t);
}
