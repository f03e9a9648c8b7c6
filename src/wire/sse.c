/* Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html, section
 * 9.2.6), for the response bodies of providers. Bytes may be cut anywhere. Only an unfinished line
 * is kept; a line that is complete in the fed bytes is read in place. Adapters interpret the data
 * and decide if the stream ended correctly. Reconnecting is up to owners, which use `id` and
 * `retry`. */
#include "wire/sse.h"

#include "base/json.h"

enum { MAX_RETRY = 1000 * 1000 * 1000 }; /* ms */

/* The receiver of the events, passed down as one argument. */
typedef struct sink {
    ah_sse_fn fn;
    void *ud;
    ah_err *err;
} sink;

static ah_slice from(ah_slice s, size_t n)
{
    return (ah_slice){.p = s.p + n, .n = s.n - n};
}

static ah_slice skip_mark(ah_slice line)
{
    return line.n >= 3 && memcmp(line.p, "\xEF\xBB\xBF", 3) == 0 ? from(line, 3) : line;
}

/* One provider's recording has a blank before `data:`. */
static ah_slice skip_blanks(ah_slice line)
{
    while (line.n && (*line.p == ' ' || *line.p == '\t'))
        line = from(line, 1);
    return line;
}

/* AH_OK if a line of n bytes may be added to the pending event. Event and data are never longer
 * than the lines they came from, so this limits them too, with the same result however the bytes
 * were cut. */
static ah_status check_size(const ah_sse *s, size_t n, ah_err *err)
{
    if (n <= s->data.max - s->data.len - s->event.len)
        return AH_OK;
    ah_err_set(err, AH_HTTP, "an event of the stream is larger than the limit of %zu bytes",
               s->data.max);
    ah_json_detail(err, "reason", ah_slice_of("too_large"));
    return AH_HTTP;
}

static ah_status dispatch(ah_sse *s, const sink *to)
{
    ah_status st = AH_OK;

    if (s->has_data)
        st = to->fn(to->ud, ah_buf_slice(&s->event), ah_buf_slice(&s->data), to->err);
    s->has_data = false;
    ah_buf_reset(&s->event, 0);
    ah_buf_reset(&s->data, 0);
    return st;
}

static ah_status add_data(ah_sse *s, ah_slice value, ah_err *err)
{
    if (s->has_data)
        ah_buf_char(&s->data, '\n');
    s->has_data = true;
    ah_buf_put(&s->data, value);
    return ah_buf_ok(&s->data) ? AH_OK : ah_buf_error(&s->data, "the data of an event", err);
}

static ah_status set_event(ah_sse *s, ah_slice value, ah_err *err)
{
    ah_buf_reset(&s->event, 0);
    ah_buf_put(&s->event, value);
    return ah_buf_ok(&s->event) ? AH_OK : ah_buf_error(&s->event, "the name of an event", err);
}

/* An id that contains a NUL is ignored. */
static ah_status set_id(ah_sse *s, ah_slice value, ah_err *err)
{
    if (!s->resumable || (value.n && memchr(value.p, '\0', value.n)))
        return AH_OK;
    ah_buf_reset(&s->id, 0);
    ah_buf_put(&s->id, value);
    return ah_buf_ok(&s->id) ? AH_OK : ah_buf_error(&s->id, "the id of an event", err);
}

/* Only digits are a time. */
static void set_retry(ah_sse *s, ah_slice value)
{
    int64_t ms = 0;

    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return;
        if (ms < MAX_RETRY)
            ms = ms * 10 + (value.p[i] - '0');
    }
    if (value.n)
        s->retry = ms < MAX_RETRY ? ms : MAX_RETRY;
}

/* Splits `name: value`, without one space; a line without a colon is all name. A comment has an
 * empty name, and is ignored as an unknown field. */
static ah_status take_field(ah_sse *s, ah_slice line, ah_err *err)
{
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
    ah_slice name = line, value = {.p = "", .n = 0};

    if (colon) {
        name.n = (size_t)(colon - line.p);
        value = from(line, name.n + 1);
        if (value.n && *value.p == ' ')
            value = from(value, 1);
    }
    if (ah_slice_is(name, "data"))
        return add_data(s, value, err);
    if (ah_slice_is(name, "event"))
        return set_event(s, value, err);
    if (ah_slice_is(name, "id"))
        return set_id(s, value, err);
    if (ah_slice_is(name, "retry"))
        set_retry(s, value);
    return AH_OK;
}

static ah_status take_line(ah_sse *s, ah_slice line, const sink *to)
{
    ah_status st = check_size(s, line.n, to->err);

    if (st != AH_OK)
        return st;
    if (!s->started)
        line = skip_mark(line);
    s->started = true;
    return line.n ? take_field(s, skip_blanks(line), to->err) : dispatch(s, to);
}

static ah_status keep(ah_sse *s, ah_slice part, ah_err *err)
{
    ah_status st = check_size(s, s->line.len + part.n, err);

    if (st != AH_OK)
        return st;
    ah_buf_put(&s->line, part);
    return ah_buf_ok(&s->line) ? AH_OK : ah_buf_error(&s->line, "a line of the stream", err);
}

/* Completes a line with its end, or takes the end alone if nothing was kept. */
static ah_status finish_line(ah_sse *s, ah_slice end, const sink *to)
{
    ah_status st;

    if (s->line.len == 0)
        return take_line(s, end, to);
    if ((st = keep(s, end, to->err)) == AH_OK)
        st = take_line(s, ah_buf_slice(&s->line), to);
    ah_buf_reset(&s->line, 0);
    return st;
}

/* The next c, or the end. */
static const char *find(const char *p, const char *end, char c)
{
    const char *at = memchr(p, c, (size_t)(end - p));

    return at ? at : end;
}

void ah_sse_init(ah_sse *s, const ah_mem *mem, size_t max_event)
{
    *s = (ah_sse){.retry = -1};
    ah_buf_init(&s->line, mem, max_event);
    ah_buf_init(&s->event, mem, max_event);
    ah_buf_init(&s->data, mem, max_event);
    ah_buf_init(&s->id, mem, max_event);
}

void ah_sse_clear(ah_sse *s)
{
    ah_buf_clear(&s->line);
    ah_buf_clear(&s->event);
    ah_buf_clear(&s->data);
    ah_buf_clear(&s->id);
    s->started = s->cr = s->has_data = false;
}

/* lf is the next \n, kept so that a stream with other line ends is not searched to its end for
 * every line. */
static ah_status feed(ah_sse *s, const char *p, const char *end, const sink *to)
{
    const char *lf = find(p, end, '\n'), *eol;
    ah_status st = AH_OK;

    while (st == AH_OK && p < end) {
        if (s->cr && *p == '\n') {
            p++;
            s->cr = false;
            continue;
        }
        if (lf < p)
            lf = find(p, end, '\n');
        eol = find(p, lf, '\r');
        s->cr = eol < lf;
        if (eol == end)
            return keep(s, (ah_slice){p, (size_t)(eol - p)}, to->err);
        st = finish_line(s, (ah_slice){p, (size_t)(eol - p)}, to);
        p = eol + 1;
    }
    return st;
}

ah_status ah_sse_feed(ah_sse *s, ah_slice bytes, ah_sse_fn fn, void *ud, ah_err *err)
{
    const sink to = {.fn = fn, .ud = ud, .err = err};

    return bytes.n ? feed(s, bytes.p, bytes.p + bytes.n, &to) : AH_OK;
}

ah_status ah_sse_end(ah_sse *s, ah_sse_fn fn, void *ud, ah_err *err)
{
    const sink to = {.fn = fn, .ud = ud, .err = err};
    ah_status st = AH_OK;

    if (s->line.len)
        st = finish_line(s, (ah_slice){"", 0}, &to);
    return st == AH_OK ? dispatch(s, &to) : st;
}
