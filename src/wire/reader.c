/* Reads responses: events and documents, whole or cut anywhere; errors, and which may be retried
 * (wire/NOTES.md 0.1, 0.3). The providers' readers interpret the documents. */
#include "wire/reader.h"

#include "base/excerpt.h"
#include "wire/full.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

enum {
    MAX_EVENT = 16 << 20,
    MAX_WHOLE = 64 << 20,
    MAX_ERROR_BODY = 64 << 10,
    MOST_NESTED = 4,     /* objects around an error's message */
    LINGER_MS = 5000,    /* wait after the answer for usage and the end of the stream */
    LINGER_DONE_MS = 250 /* wait after the end of the stream for the end of the response */
};

ah_status ah_wire_reader_open(const ah_wire_reader_vt *vt, const ah_adapter *a, ah_assembly *msg,
                              ah_reader **out, ah_err *err)
{
    ah_wire_reader *r = ah_alloc(a->mem, vt->size);

    if (!r)
        return ah_err_nomem(err);
    r->base = (ah_reader){
        .adapter = a, .msg = msg, .retry_after_ms = -1, .should_retry = -1, .linger_ms = -1};
    r->vt = vt;
    ah_sse_init(&r->sse, a->mem, MAX_EVENT);
    ah_buf_init(&r->body, a->mem, MAX_WHOLE);
    *out = &r->base;
    return AH_OK;
}

void ah_wire_reader_close(ah_reader *base)
{
    ah_wire_reader *r = (ah_wire_reader *)base;

    if (r->vt->clear)
        r->vt->clear(r);
    ah_sse_clear(&r->sse);
    ah_buf_clear(&r->body);
    ah_free(base->adapter->mem, r);
}

static const ah_service *service_of(const ah_wire_reader *r)
{
    return ((const ah_wire_native *)r->base.adapter)->service;
}

static const char *name_of(const ah_wire_reader *r)
{
    return service_of(r)->name;
}

/* Compares a media type without its parameters, ignoring case (RFC 9110, 8.3.1). */
static bool is_media(ah_slice s, const char *type)
{
    size_t n = strlen(type);

    return s.n >= n && strncasecmp(s.p, type, n) == 0 && (s.n == n || strchr("; \t", s.p[n]));
}

/* A LiteLLM proxy reports the cost in this header on each of its wires, if it knows it before the
 * answer ends. */
static void note_cost(ah_wire_reader *r, ah_slice value)
{
    if (value.n && ah_json_check(r->base.adapter->mem, value, 1, NULL) == AH_OK)
        ah_assembly_cost(r->base.msg, value);
}

ah_status ah_wire_reader_head_came(ah_reader *base, const ah_response_head *h, ah_err *err)
{
    ah_wire_reader *r = (ah_wire_reader *)base;
    const char *stream = service_of(r)->lines ? "application/x-ndjson" : "text/event-stream";

    (void)err;
    ah_reader_note_head(base, h);
    r->pieces =
        h->status >= 200 && h->status < 300 && is_media(h->header(h->ud, "content-type"), stream);
    if (h->status >= 300)
        r->body.max = MAX_ERROR_BODY;
    note_cost(r, h->header(h->ud, "x-litellm-response-cost"));
    if (r->vt->head)
        r->vt->head(r, h);
    return AH_OK;
}

int64_t ah_wire_reader_count(ah_slice literal)
{
    ah_json_num n;

    return literal.p && ah_json_number(literal, &n) && n.is_int && n.i > 0 ? n.i : 0;
}

bool ah_wire_reader_says(ah_slice value)
{
    return ah_json_kind_of(value) == AH_JSON_STRING && value.n > 2;
}

/* -- errors ------------------------------------------------------------------------ */

/* Appends a string from foreign JSON, or an excerpt of `fallback` if it is none, as one line. */
static void put_excerpt(const ah_wire_reader *r, ah_buf *out, ah_slice value, ah_slice fallback)
{
    ah_buf b;

    ah_buf_init(&b, out->mem, MAX_WHOLE);
    if (ah_json_string(value, &b))
        fallback = ah_buf_ok(&b) ? ah_buf_slice(&b) : (ah_slice){"", 0};
    if (!ah_buf_ok(&b))
        out->status = b.status;
    else
        ah_excerpt(fallback, r->base.msg->secrets, AH_EXCERPT, out);
    ah_buf_clear(&b);
}

static const ah_error_word shared_words[] = {
    {"insufficient_quota", AH_ERROR_NEVER},
    {"budget_exceeded", AH_ERROR_NEVER},
    {"context_length_exceeded", AH_ERROR_NEVER},
    {"invalid_api_key", AH_ERROR_NEVER},
    {NULL, 0},
};

static const ah_error_word *find_word(const ah_error_word *list, ah_slice word)
{
    for (; list && list->word; list++)
        if (ah_json_string_is(word, list->word))
            return list;
    return NULL;
}

static const ah_error_word *known_word(const ah_wire_reader *r, ah_slice word)
{
    const ah_error_word *w = find_word(shared_words, word);

    return w ? w : find_word(r->vt->words, word);
}

static bool word_says(const ah_wire_reader *r, ah_slice word, int what)
{
    const ah_error_word *w = known_word(r, word);

    return w && w->status == what;
}

/* An error after a 200 may contain the status that it would have had. */
static int named_status(const ah_wire_reader *r, ah_slice error, ah_slice word)
{
    const ah_error_word *w = known_word(r, word);
    int64_t named = ah_wire_reader_count(ah_json_member(error, "status_code"));

    if (!named)
        named = ah_wire_reader_count(ah_json_member(error, "code"));
    if (named >= 400 && named < 600)
        return (int)named;
    return w && w->status > 0 ? w->status : 0;
}

static bool is_spent(const ah_wire_reader *r)
{
    const char *advising = r->vt->advising;

    return advising && r->base.status == 429 && r->base.retry_after_ms == -1 && !r->pieces &&
           ah_slice_is(ah_text_slice(r->base.adapter->endpoint), advising);
}

/* Appends advice on the error. */
static void put_hint(const ah_wire_reader *r, ah_buf *b)
{
    int status = r->base.status;

    if (status >= 300 && status < 400)
        ah_buf_str(b, "; redirects are not followed, check base_url");
    else if (status == 401 || r->wrong_key)
        ah_buf_fmt(b, "; check api_key or %s", service_of(r)->key_env[0]);
}

/* Everything known of a failure: JSON values, and what to quote if there is no message. */
typedef struct failure {
    ah_slice error, message, word, fallback;
    ah_full full;
} failure;

/* "provider: HTTP status: message (word)hints" */
static void put_failure(ah_wire_reader *r, const failure *f, ah_buf *b)
{
    ah_buf w, more;

    ah_buf_init(&w, b->mem, MAX_WHOLE);
    ah_buf_init(&more, b->mem, MAX_WHOLE);
    if (r->vt->fault)
        r->vt->fault(r, f->error, &more);
    put_excerpt(r, b, f->message, f->fallback);
    put_excerpt(r, &w, f->word, (ah_slice){"", 0});
    if (!b->len)
        ah_buf_str(b, "(no message)");
    if (w.len)
        ah_buf_fmt(b, " (%.*s)", AH_FMT(ah_buf_slice(&w)));
    if (f->full.is)
        ah_buf_str(b, AH_FULL_ADVICE);
    else
        put_hint(r, b);
    ah_buf_put(b, ah_buf_slice(&more));
    ah_buf_clear(&w);
    ah_buf_clear(&more);
}

/* Judges plain text too, if there is no message. */
static ah_full judge_full(const ah_wire_reader *r, const failure *f)
{
    ah_wire_error told = {.status = r->base.status,
                          .error = f->error,
                          .message = f->message,
                          .word = f->word,
                          .type = ah_json_member(f->error, "type")};

    if (ah_json_kind_of(f->message) == AH_JSON_STRING || f->error.p)
        return ah_full_judge(r->base.adapter->mem, &told);
    return ah_full_judge_text(r->base.adapter->mem, r->base.status, f->fallback);
}

static ah_status fail(ah_wire_reader *r, failure *f, ah_err *err)
{
    ah_buf b;

    f->full = judge_full(r, f);
    if (f->full.status != AH_OK)
        return ah_err_nomem(err);
    r->never = r->never || word_says(r, f->word, AH_ERROR_NEVER);
    r->wrong_key = r->wrong_key || word_says(r, f->word, AH_ERROR_KEY);
    ah_buf_init(&b, r->base.adapter->mem, MAX_WHOLE);
    put_failure(r, f, &b);
    ah_err_set(err, AH_PROVIDER, "%s: HTTP %d: %.*s", name_of(r), r->base.status,
               AH_FMT(ah_buf_slice(&b)));
    ah_reader_judge(&r->base, err, r->never || r->wrong_key || is_spent(r));
    err->retryable = err->retryable || word_says(r, f->word, AH_ERROR_AGAIN);
    if (f->full.is)
        ah_full_tell(&f->full, err);
    ah_buf_clear(&b);
    return err->status;
}

ah_status ah_wire_reader_fault(ah_wire_reader *r, ah_slice message, ah_slice word, ah_err *err)
{
    failure f = {.message = message, .word = word, .fallback = ah_buf_slice(&r->body)};

    return fail(r, &f, err);
}

/* The short word among an error's members, called code, type or status. */
static ah_slice word_of(ah_slice error)
{
    ah_slice code = ah_json_member(error, "code"), type = ah_json_member(error, "type");

    if (ah_json_kind_of(code) == AH_JSON_STRING)
        return code;
    return type.p ? type : ah_json_member(error, "status");
}

/* The first of a list of errors, which Gemini sends for a stream. */
static ah_slice first_of(ah_slice doc)
{
    ah_json_reader it = ah_json_read(doc);
    ah_json_token t;

    if (ah_json_next(&it).kind != AH_JSON_ARRAY || (t = ah_json_next(&it)).kind != AH_JSON_OBJECT)
        return doc;
    return ah_json_skip(&it, t);
}

/* Finds the message in an error of unknown form, a few objects deep; .p NULL: none. */
static ah_slice message_in(ah_slice doc, int depth)
{
    static const char *const names[] = {"message", "detail", "msg",         "error",
                                        "errors",  "title",  "description", "error_description"};
    ah_slice found = {NULL, 0};

    doc = first_of(doc);
    if (ah_json_kind_of(doc) == AH_JSON_STRING)
        return doc;
    for (size_t i = 0; ah_json_kind_of(doc) == AH_JSON_OBJECT && depth > 0 && !found.p &&
                       i < sizeof names / sizeof *names;
         i++)
        found = message_in(ah_json_member(doc, names[i]), depth - 1);
    return found;
}

ah_status ah_wire_reader_error(ah_wire_reader *r, ah_slice error, ah_err *err)
{
    failure f = {.error = error, .word = word_of(error), .message = message_in(error, MOST_NESTED)};
    ah_slice type = ah_json_member(error, "type");

    f.fallback = error.p ? error : ah_buf_slice(&r->body);
    if (r->base.status < 300 && named_status(r, error, f.word))
        r->base.status = named_status(r, error, f.word);
    r->never = r->never || word_says(r, type, AH_ERROR_NEVER);
    r->wrong_key = r->wrong_key || word_says(r, type, AH_ERROR_KEY);
    return fail(r, &f, err);
}

ah_status ah_wire_reader_bad(ah_wire_reader *r, ah_err *err, const char *what, ...)
{
    char words[800];
    va_list ap;

    va_start(ap, what);
    ah_vprint(words, sizeof words, what, ap);
    va_end(ap);
    ah_err_set(err, AH_PROVIDER, "%s: %s", name_of(r), words);
    ah_reader_judge(&r->base, err, false);
    return AH_PROVIDER;
}

ah_status ah_wire_reader_kept(ah_wire_reader *r, const ah_buf *b, ah_err *err)
{
    char named[64];
    ah_status st;

    if (ah_buf_ok(b))
        return AH_OK;
    snprintf(named, sizeof named, "%s: the answer", name_of(r));
    st = ah_buf_error(b, named, err);
    if (st != AH_NOMEM)
        st = err->status = AH_PROVIDER;
    return st;
}

/* -- documents --------------------------------------------------------------------- */

/* A received document; `what` is its name in messages. */
typedef struct document {
    ah_slice text;
    const char *what;
    size_t halves; /* strings in it that were cut within a character */
} document;

static ah_status say_no_json(ah_wire_reader *r, const document *d, size_t *halves, ah_err *err)
{
    char named[64];
    ah_status st;

    snprintf(named, sizeof named, "%s: %s", name_of(r), d->what);
    st = ah_json_check_piece_err(r->base.adapter->mem, d->text, halves, named, err);
    if (st == AH_OK || st == AH_NOMEM)
        return st;
    /* The quoted excerpt might contain half a key. */
    if (ah_secrets_in(r->base.msg->secrets, d->text))
        ah_err_set(err, AH_PROVIDER, "%s is not JSON (not quoted: a key is in it)", named);
    err->status = AH_PROVIDER;
    ah_reader_judge(&r->base, err, false);
    return AH_PROVIDER;
}

/* The error text is made by a second check, only for invalid JSON, since a stream has a document
 * for every delta. */
static ah_status check(ah_wire_reader *r, document *d, ah_err *err)
{
    const ah_mem *mem = r->base.adapter->mem;
    ah_status st = r->pieces ? ah_json_check_piece(mem, d->text, &d->halves, NULL)
                             : ah_json_check(mem, d->text, AH_JSON_MAX_DEPTH, NULL);

    return st == AH_OK ? AH_OK : say_no_json(r, d, r->pieces ? &d->halves : NULL, err);
}

static ah_status say_misshapen(ah_wire_reader *r, const document *d, const ah_buf *said,
                               ah_err *err)
{
    ah_slice error = ah_json_member(d->text, "error");

    if (!ah_buf_ok(said))
        return ah_err_nomem(err);
    if (error.p && ah_json_kind_of(error) != AH_JSON_NULL)
        return d->halves ? say_no_json(r, d, NULL, err) : ah_wire_reader_error(r, error, err);
    if (!said->len)
        return say_no_json(r, d, NULL, err);
    return ah_wire_reader_bad(r, err, "%s's %.*s", d->what, AH_FMT(ah_buf_slice(said)));
}

/* A document is read only after it fits the provider's shape, which includes that `error` is null.
 * Errors are looked for only in documents that do not fit, so that a valid one is scanned once. */
static ah_status check_shape(ah_wire_reader *r, const document *d, ah_err *err)
{
    ah_status st = AH_OK;
    ah_buf said;

    ah_buf_init(&said, r->base.adapter->mem, MAX_ERROR_BODY);
    if (!ah_shape_fits(r->pieces ? r->vt->piece : r->vt->whole, d->text, d->halves, &r->found,
                       &said))
        st = say_misshapen(r, d, &said, err);
    ah_buf_clear(&said);
    return st;
}

static ah_status read_object(ah_wire_reader *r, const document *d, ah_err *err)
{
    ah_status st;

    if (ah_json_kind_of(d->text) != AH_JSON_OBJECT)
        return ah_wire_reader_bad(r, err, "expected a JSON object as answer");
    st = check_shape(r, d, err);
    return st == AH_OK ? r->vt->document(r, d->text, err) : st;
}

static ah_status read_document(ah_wire_reader *r, ah_slice text, const char *what, ah_err *err)
{
    document d = {.text = text, .what = what};
    ah_status st = check(r, &d, err);

    return st == AH_OK ? read_object(r, &d, err) : st;
}

/* Reads an answer that is a JSON list of the documents that a stream would have: each is read as a
 * piece. */
static ah_status read_list(ah_wire_reader *r, ah_slice list, ah_err *err)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    document d = {.what = "an item of the answer"};
    ah_status st = AH_OK;

    r->pieces = true;
    for (t = ah_json_next(&it); st == AH_OK && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&it)) {
        d.text = ah_json_skip(&it, t);
        st = read_object(r, &d, err);
    }
    return st;
}

static ah_status read_whole(ah_wire_reader *r, ah_err *err)
{
    document d = {.text = ah_buf_slice(&r->body), .what = "the answer"};
    ah_status st = check(r, &d, err);

    if (st != AH_OK)
        return st;
    if (r->vt->listed && ah_json_kind_of(d.text) == AH_JSON_ARRAY)
        return read_list(r, d.text, err);
    return read_object(r, &d, err);
}

static ah_status on_event(void *ud, ah_slice event, ah_slice data, ah_err *err)
{
    static const char DONE[] = "[DONE]";
    ah_wire_reader *r = ud;

    (void)event;
    if (data.n >= sizeof DONE - 1 && memcmp(data.p, DONE, sizeof DONE - 1) == 0)
        r->done = r->finished = true;
    if (r->done || data.n == 0)
        return AH_OK;
    return read_document(r, data, "an event of the stream", err);
}

/* Reads a complete line. Blank lines, and lines after the last document, are ignored. */
static ah_status read_line(ah_wire_reader *r, ah_err *err)
{
    ah_status st = AH_OK;
    size_t n = r->body.len;

    while (n && strchr(" \t\r", r->body.data[n - 1]))
        n--;
    if (n && !r->done)
        st = read_document(r, (ah_slice){r->body.data, n}, "a line of the stream", err);
    ah_buf_reset(&r->body, 0);
    return st;
}

static ah_status keep(ah_wire_reader *r, ah_slice bytes, ah_err *err)
{
    if (r->base.status >= 300 && bytes.n > r->body.max - r->body.len)
        bytes.n = r->body.max - r->body.len; /* the beginning of an error page is enough */
    ah_buf_put(&r->body, bytes);
    return ah_wire_reader_kept(r, &r->body, err);
}

static ah_status feed_lines(ah_wire_reader *r, ah_slice bytes, ah_err *err)
{
    ah_status st = AH_OK;
    const char *end;

    while (st == AH_OK && (end = memchr(bytes.p, '\n', bytes.n)) != NULL) {
        size_t n = (size_t)(end - bytes.p);

        if ((st = keep(r, (ah_slice){bytes.p, n}, err)) == AH_OK)
            st = read_line(r, err);
        bytes = (ah_slice){end + 1, bytes.n - n - 1};
    }
    return st == AH_OK ? keep(r, bytes, err) : st;
}

static ah_status feed_pieces(ah_wire_reader *r, ah_slice bytes, ah_err *err)
{
    ah_status st = service_of(r)->lines ? feed_lines(r, bytes, err)
                                        : ah_sse_feed(&r->sse, bytes, on_event, r, err);

    if (st != AH_OK && st != AH_NOMEM)
        err->phase = AH_PHASE_RESPONSE;
    if (r->finished && r->begun)
        r->base.linger_ms = r->done ? LINGER_DONE_MS : LINGER_MS;
    return st;
}

ah_status ah_wire_reader_feed(ah_reader *base, ah_slice bytes, ah_err *err)
{
    ah_wire_reader *r = (ah_wire_reader *)base;

    return r->pieces ? feed_pieces(r, bytes, err) : keep(r, bytes, err);
}

/* -- the end ------------------------------------------------------------------------- */

static ah_status say_no_call(ah_wire_reader *r, ah_err *err)
{
    ah_buf b;

    ah_buf_init(&b, r->base.adapter->mem, MAX_ERROR_BODY);
    ah_excerpt(ah_buf_slice(&r->base.msg->stop_word), r->base.msg->secrets, AH_EXCERPT, &b);
    if (ah_buf_ok(&b))
        ah_wire_reader_bad(r, err, "the answer's %s is '%.*s', and it holds no call", r->vt->stop,
                           AH_FMT(ah_buf_slice(&b)));
    else
        ah_err_nomem(err);
    ah_buf_clear(&b);
    return err->status;
}

static ah_status complete(ah_wire_reader *r, ah_err *err)
{
    ah_err fault;

    if (!r->begun)
        return ah_wire_reader_bad(r, err, "%s", r->vt->no_answer);
    if (!r->base.msg->n && r->base.msg->stop == AH_STOP_TOOL_CALLS)
        return say_no_call(r, err);
    if (ah_assembly_check(r->base.msg, &fault) != AH_OK)
        return ah_wire_reader_bad(r, err, "%s", fault.message);
    return r->vt->complete ? r->vt->complete(r, err) : AH_OK;
}

static ah_status say_cut(ah_wire_reader *r, ah_err *err)
{
    ah_err_set(err, AH_HTTP, "%s: the stream ended before the answer was complete", name_of(r));
    ah_json_detail(err, "reason", ah_slice_of("broken"));
    ah_reader_judge(&r->base, err, false);
    return AH_HTTP;
}

static ah_status end_pieces(ah_wire_reader *r, ah_err *err)
{
    ah_status st = service_of(r)->lines ? read_line(r, err) : ah_sse_end(&r->sse, on_event, r, err);

    if (st != AH_OK)
        return st;
    return r->finished ? complete(r, err) : say_cut(r, err);
}

static ah_status end_error(ah_wire_reader *r, ah_err *err)
{
    ah_slice body = ah_buf_slice(&r->body), error = {NULL, 0};

    if (ah_json_check(r->base.adapter->mem, body, AH_JSON_MAX_DEPTH, NULL) == AH_OK) {
        body = first_of(body);
        error = ah_json_member(body, "error");
        if (ah_json_kind_of(error) == AH_JSON_END || ah_json_kind_of(error) == AH_JSON_NULL)
            error = body; /* Mistral, vLLM: the members without an `error` around them */
    }
    return ah_wire_reader_error(r, error, err);
}

static ah_status say_page(ah_wire_reader *r, ah_err *err)
{
    ah_buf b;

    ah_buf_init(&b, r->base.adapter->mem, MAX_ERROR_BODY);
    put_excerpt(r, &b, (ah_slice){NULL, 0}, ah_buf_slice(&r->body));
    if (ah_buf_ok(&b))
        ah_wire_reader_bad(r, err, "the answer is a web page, no JSON; check base_url (%.*s)",
                           AH_FMT(ah_buf_slice(&b)));
    else
        ah_err_nomem(err);
    ah_buf_clear(&b);
    err->retryable = false;
    return err->status;
}

ah_status ah_wire_reader_end(ah_reader *base, ah_err *err)
{
    ah_wire_reader *r = (ah_wire_reader *)base;
    ah_status st;

    if (r->pieces)
        return end_pieces(r, err);
    if (base->status >= 300 || base->status < 200)
        return end_error(r, err);
    if (!r->body.len)
        return ah_wire_reader_bad(r, err, "the answer is empty");
    if (ah_begins_page(ah_buf_slice(&r->body)))
        return say_page(r, err);
    st = read_whole(r, err);
    if (st == AH_OK && r->pieces && !r->finished && r->begun)
        return say_cut(r, err);
    return st == AH_OK ? complete(r, err) : st;
}
