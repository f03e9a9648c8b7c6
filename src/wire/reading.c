/* Reading responses: events and documents, whole or cut anywhere; errors and what may be
 * tried again (wire/NOTES.md 0.1, 0.3). What an answer's documents mean is said elsewhere. */
#include "wire/reading.h"

#include <stdio.h>
#include <strings.h>

enum {
    MAX_EVENT = 16 << 20,
    MAX_WHOLE = 64 << 20,
    MAX_ERROR_BODY = 64 << 10,
    MOST_QUOTED = 400,
    LINGER_MS = 5000,    /* after the answer, for usage and the end of the stream */
    LINGER_DONE_MS = 250 /* after the end of the stream, for the end of the response */
};

ah_status ah_reading_open(const ah_dialect *d, const ah_adapter *a, ah_assembly *msg, ah_reader **out,
                          ah_err *err)
{
    ah_reading *r = ah_alloc(a->mem, d->size);

    if (!r)
        return ah_err_nomem(err);
    r->base =
        (ah_reader){.adapter = a, .msg = msg, .retry_after_ms = -1, .should_retry = -1, .linger_ms = -1};
    r->dialect = d;
    ah_sse_init(&r->sse, a->mem, MAX_EVENT);
    ah_buf_init(&r->body, a->mem, MAX_WHOLE);
    *out = &r->base;
    return AH_OK;
}

void ah_reading_close(ah_reader *base)
{
    ah_reading *r = (ah_reading *)base;

    if (r->dialect->clear)
        r->dialect->clear(r);
    ah_sse_clear(&r->sse);
    ah_buf_clear(&r->body);
    ah_free(base->adapter->mem, r);
}

/* A media type without its parameters; case does not count (RFC 9110, 8.3.1). */
static bool is_media(ah_slice s, const char *type)
{
    size_t n = strlen(type);

    return s.n >= n && strncasecmp(s.p, type, n) == 0 && (s.n == n || strchr("; \t", s.p[n]));
}

ah_status ah_reading_head_came(ah_reader *base, const ah_response_head *h, ah_err *err)
{
    ah_reading *r = (ah_reading *)base;

    (void)err;
    ah_reader_note_head(base, h);
    r->events = h->status >= 200 && h->status < 300 &&
                is_media(h->header(h->ud, "content-type"), "text/event-stream");
    if (h->status >= 300)
        r->body.max = MAX_ERROR_BODY;
    return AH_OK;
}

int64_t ah_reading_count(ah_slice literal)
{
    ah_json_num n;

    return literal.p && ah_json_number(literal, &n) && n.is_int && n.i > 0 ? n.i : 0;
}

bool ah_reading_says(ah_slice value)
{
    return ah_json_kind_of(value) == AH_JSON_STRING && value.n > 2;
}

/* -- errors ------------------------------------------------------------------------ */

/* A string for people out of foreign JSON: unescaped, made valid, cut; the keys are
 * taken out before the cut could halve one. */
static void put_excerpt(const ah_reading *r, ah_buf *out, ah_slice value, ah_slice fallback)
{
    if (!ah_json_string(value, out))
        ah_utf8_repair(fallback, out);
    if (out->len)
        out->len = ah_secrets_redact(r->base.msg->secrets, out->data, out->len);
    if (out->len > MOST_QUOTED)
        out->len = ah_utf8_cut(out->data, MOST_QUOTED);
}

static const ah_error_word shared_words[] = {
    {"insufficient_quota", 0},
    {"budget_exceeded", 0},
    {"context_length_exceeded", 0},
    {"invalid_api_key", 0},
    {NULL, 0},
};

static const ah_error_word *find_word(const ah_error_word *list, ah_slice word)
{
    for (; list && list->word; list++)
        if (ah_json_string_is(word, list->word))
            return list;
    return NULL;
}

static const ah_error_word *known_word(const ah_reading *r, ah_slice word)
{
    const ah_error_word *w = find_word(shared_words, word);

    return w ? w : find_word(r->dialect->words, word);
}

static bool is_never(const ah_reading *r, ah_slice word)
{
    const ah_error_word *w = known_word(r, word);

    return w && w->status == 0;
}

/* An error that comes after a 200 may say itself what status it would have had. */
static int named_status(const ah_reading *r, ah_slice error, ah_slice word)
{
    const ah_error_word *w = known_word(r, word);
    int64_t named = ah_reading_count(ah_json_member(error, "status_code"));

    if (!named)
        named = ah_reading_count(ah_json_member(error, "code"));
    if (named >= 400 && named < 600)
        return (int)named;
    return w ? w->status : 0;
}

static bool is_spent(const ah_reading *r)
{
    const char *advising = r->dialect->advising;

    return advising && r->base.status == 429 && r->base.retry_after_ms == -1 && !r->events &&
           ah_slice_is(ah_text_slice(r->base.adapter->endpoint), advising);
}

static const char *hint_of(const ah_reading *r)
{
    int status = r->base.status;

    if (status >= 300 && status < 400)
        return "; redirects are not followed, check base_url";
    return status == 401 ? r->dialect->key_hint : "";
}

ah_status ah_reading_error(ah_reading *r, ah_slice error, ah_err *err)
{
    ah_slice message =
        ah_json_kind_of(error) == AH_JSON_STRING ? error : ah_json_member(error, "message");
    ah_slice code = ah_json_member(error, "code"), type = ah_json_member(error, "type");
    ah_slice word = ah_json_kind_of(code) == AH_JSON_STRING ? code : type;
    ah_buf b, w;

    if (r->base.status < 300 && named_status(r, error, word))
        r->base.status = named_status(r, error, word);
    ah_buf_init(&b, r->base.adapter->mem, MAX_WHOLE);
    ah_buf_init(&w, r->base.adapter->mem, MAX_WHOLE);
    put_excerpt(r, &b, message.p ? message : ah_json_member(error, "detail"),
                error.p ? error : ah_buf_slice(&r->body));
    put_excerpt(r, &w, word, (ah_slice){"", 0});
    if (!b.len)
        ah_buf_str(&b, "(no message)");
    ah_err_set(err, AH_PROVIDER, "%s: HTTP %d: %.*s%s%.*s%s%s", r->dialect->name, r->base.status,
               AH_FMT(ah_buf_slice(&b)), w.len ? " (" : "", AH_FMT(ah_buf_slice(&w)), w.len ? ")" : "",
               hint_of(r));
    ah_reader_judge(&r->base, err, is_never(r, code) || is_never(r, type) || is_spent(r));
    ah_buf_clear(&b);
    ah_buf_clear(&w);
    return AH_PROVIDER;
}

ah_status ah_reading_bad(ah_reading *r, ah_err *err, const char *what)
{
    ah_err_set(err, AH_PROVIDER, "%s: %s", r->dialect->name, what);
    ah_reader_judge(&r->base, err, false);
    return AH_PROVIDER;
}

/* -- documents --------------------------------------------------------------------- */

static ah_status check(ah_reading *r, ah_slice text, const char *what, ah_err *err)
{
    char named[64];
    ah_status st;

    snprintf(named, sizeof named, "%s: %s", r->dialect->name, what);
    st = ah_json_check_err(r->base.adapter->mem, text, named, err);
    if (st == AH_OK || st == AH_NOMEM)
        return st;
    if (ah_secrets_in(r->base.msg->secrets, text)) /* what is quoted of it might be half a key */
        ah_err_set(err, AH_PROVIDER, "%s is not JSON (not quoted: a key is in it)", named);
    err->status = AH_PROVIDER;
    ah_reader_judge(&r->base, err, false);
    return AH_PROVIDER;
}

static ah_status read_document(ah_reading *r, ah_slice doc, const char *what, ah_err *err)
{
    ah_status st = check(r, doc, what, err);

    if (st != AH_OK)
        return st;
    if (ah_json_kind_of(doc) != AH_JSON_OBJECT)
        return ah_reading_bad(r, err, "expected a JSON object as answer");
    return r->dialect->document(r, doc, err);
}

static ah_status on_event(void *ud, ah_slice event, ah_slice data, ah_err *err)
{
    static const char DONE[] = "[DONE]";
    ah_reading *r = ud;

    (void)event;
    if (data.n >= sizeof DONE - 1 && memcmp(data.p, DONE, sizeof DONE - 1) == 0)
        r->done = r->finished = true;
    if (r->done || data.n == 0)
        return AH_OK;
    return read_document(r, data, "an event of the stream", err);
}

static ah_status feed_events(ah_reading *r, ah_slice bytes, ah_err *err)
{
    ah_status st = ah_sse_feed(&r->sse, bytes, on_event, r, err);

    if (st != AH_OK && st != AH_NOMEM)
        err->phase = AH_PHASE_RESPONSE;
    if (r->finished && r->begun)
        r->base.linger_ms = r->done ? LINGER_DONE_MS : LINGER_MS;
    return st;
}

ah_status ah_reading_feed(ah_reader *base, ah_slice bytes, ah_err *err)
{
    ah_reading *r = (ah_reading *)base;
    char named[64];
    ah_status st;

    if (r->events)
        return feed_events(r, bytes, err);
    if (base->status >= 300 && bytes.n > r->body.max - r->body.len)
        bytes.n = r->body.max - r->body.len; /* the beginning of an error page is enough */
    ah_buf_put(&r->body, bytes);
    if (ah_buf_ok(&r->body))
        return AH_OK;
    snprintf(named, sizeof named, "%s: the answer", r->dialect->name);
    st = ah_buf_error(&r->body, named, err);
    if (st != AH_NOMEM)
        st = err->status = AH_PROVIDER;
    return st;
}

/* -- the end ------------------------------------------------------------------------- */

static ah_status complete(ah_reading *r, ah_err *err)
{
    if (!r->begun)
        return ah_reading_bad(r, err, r->dialect->no_answer);
    return r->dialect->complete ? r->dialect->complete(r, err) : AH_OK;
}

static ah_status end_events(ah_reading *r, ah_err *err)
{
    ah_status st = ah_sse_end(&r->sse, on_event, r, err);

    if (st != AH_OK)
        return st;
    if (r->finished)
        return complete(r, err);
    ah_err_set(err, AH_HTTP, "%s: the stream ended before the answer was complete", r->dialect->name);
    ah_reader_judge(&r->base, err, false);
    return AH_HTTP;
}

static ah_status end_error(ah_reading *r, ah_err *err)
{
    ah_slice body = ah_buf_slice(&r->body), error = {NULL, 0};

    if (ah_json_check(r->base.adapter->mem, body, AH_JSON_MAX_DEPTH, NULL) == AH_OK) {
        error = ah_json_member(body, "error");
        if (ah_json_kind_of(error) == AH_JSON_END || ah_json_kind_of(error) == AH_JSON_NULL)
            error = body; /* Mistral, vLLM: the members stand alone */
    }
    return ah_reading_error(r, error, err);
}

ah_status ah_reading_end(ah_reader *base, ah_err *err)
{
    ah_reading *r = (ah_reading *)base;
    ah_status st;

    if (r->events)
        return end_events(r, err);
    if (base->status >= 300 || base->status < 200)
        return end_error(r, err);
    if (!r->body.len)
        return ah_reading_bad(r, err, "the answer is empty");
    if (r->body.data[0] == '<') {
        ah_reading_bad(r, err, "the answer is a web page, no JSON; check base_url");
        err->retryable = false;
        return AH_PROVIDER;
    }
    st = read_document(r, ah_buf_slice(&r->body), "the answer", err);
    return st == AH_OK ? complete(r, err) : st;
}
