/* Reading Chat Completions: a stream of events or one document, into an assembly. What
 * servers send that is not quite OpenAI's form is taken where its meaning is plain. */
#include "wire/openai_read.h"

#include <stdio.h>
#include <strings.h>

#include "wire/sse.h"
#include "wire/thoughts.h"

enum {
    MAX_EVENT = 16 << 20,
    MAX_WHOLE = 64 << 20,
    MAX_ERROR_BODY = 64 << 10,
    MOST_QUOTED = 400,
    MAX_CALL_ID = 128,
    LINGER_MS = 5000,    /* after finish_reason, for usage and [DONE] */
    LINGER_DONE_MS = 250 /* after [DONE], for the end of the response */
};

typedef struct reader {
    ah_reader base;
    bool events;   /* an event stream, else one document */
    bool chosen;   /* a choice was seen */
    bool finished; /* finish_reason or [DONE] was seen */
    bool done;     /* [DONE] was seen: what follows is not ours */
    ah_sse sse;
    ah_buf body;
    ah_buf call_id;       /* what a LiteLLM proxy calls the request in its logs */
    bool retried;         /* it has tried again by itself */
    ah_thoughts thoughts; /* to be sent back */
} reader;

static const ah_server *server_of(const reader *r)
{
    return ((const ah_openai *)r->base.adapter)->server;
}

static const char *name_of(const reader *r)
{
    return server_of(r)->at.name;
}

ah_status ah_openai_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    reader *r = ah_alloc(a->mem, sizeof *r);

    if (!r)
        return ah_err_nomem(err);
    r->base =
        (ah_reader){.adapter = a, .msg = msg, .retry_after_ms = -1, .should_retry = -1, .linger_ms = -1};
    ah_sse_init(&r->sse, a->mem, MAX_EVENT);
    ah_buf_init(&r->body, a->mem, MAX_WHOLE);
    ah_buf_init(&r->call_id, a->mem, MAX_CALL_ID);
    ah_thoughts_init(&r->thoughts, a->mem, server_of(r)->quirks);
    *out = &r->base;
    return AH_OK;
}

void ah_openai_close(ah_reader *base)
{
    reader *r = (reader *)base;

    ah_sse_clear(&r->sse);
    ah_buf_clear(&r->body);
    ah_buf_clear(&r->call_id);
    ah_thoughts_clear(&r->thoughts);
    ah_free(base->adapter->mem, r);
}

static bool begins(ah_slice s, const char *with)
{
    size_t n = strlen(with);

    return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* A media type without its parameters; case does not count (RFC 9110, 8.3.1). */
static bool is_media(ah_slice s, const char *type)
{
    size_t n = strlen(type);

    return s.n >= n && strncasecmp(s.p, type, n) == 0 && (s.n == n || strchr("; \t", s.p[n]));
}

/* What a proxy says of the request: how it is called, and whether it was tried again there. */
static void note_proxy(reader *r, const ah_response_head *h)
{
    ah_slice id = h->header(h->ud, "x-litellm-call-id");
    ah_slice retries = h->header(h->ud, "x-litellm-attempted-retries");

    if (!(server_of(r)->quirks & AH_SERVER_PROXY))
        return;
    if (id.n <= MAX_CALL_ID)
        ah_utf8_repair(id, &r->call_id);
    r->retried = retries.n && !ah_slice_is(retries, "0");
}

ah_status ah_openai_head_came(ah_reader *base, const ah_response_head *h, ah_err *err)
{
    reader *r = (reader *)base;

    (void)err;
    ah_reader_note_head(base, h);
    r->events = h->status >= 200 && h->status < 300 &&
                is_media(h->header(h->ud, "content-type"), "text/event-stream");
    if (h->status >= 300)
        r->body.max = MAX_ERROR_BODY;
    note_proxy(r, h);
    return AH_OK;
}

/* A string for people out of foreign JSON: unescaped, made valid, cut; the keys are
 * taken out before the cut could halve one. */
static void put_excerpt(const reader *r, ah_buf *out, ah_slice value, ah_slice fallback)
{
    if (!ah_json_string(value, out))
        ah_utf8_repair(fallback, out);
    if (out->len)
        out->len = ah_secrets_redact(r->base.msg->secrets, out->data, out->len);
    if (out->len > MOST_QUOTED)
        out->len = ah_utf8_cut(out->data, MOST_QUOTED);
}

static bool never_retry(ah_slice code)
{
    static const char *const never[] = {"insufficient_quota", "budget_exceeded",
                                        "context_length_exceeded", "invalid_api_key"};

    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (ah_json_string_is(code, never[i]))
            return true;
    return false;
}

static int64_t count(ah_slice object, const char *key)
{
    ah_json_num n;

    return ah_json_number(ah_json_member(object, key), &n) && n.is_int && n.i > 0 ? n.i : 0;
}

/* An error that comes after a 200 may say itself what status it would have had. */
static int named_status(ah_slice error)
{
    int64_t named = count(error, "status_code");

    if (!named)
        named = count(error, "code");
    return named >= 400 && named < 600 ? (int)named : 0;
}

/* A proxy without a database answers a wrong key with 400. */
static bool is_about_key(int status, ah_slice type)
{
    return status == 401 || ah_json_string_is(type, "no_db_connection");
}

/* What to do about it, and where to look for it. */
static void put_hints(const reader *r, bool key, ah_buf *b)
{
    if (r->base.status >= 300 && r->base.status < 400)
        ah_buf_str(b, "; redirects are not followed, check base_url");
    else if (key)
        ah_buf_fmt(b, "; check api_key or %s", server_of(r)->at.key_env[0]);
    if (r->call_id.len)
        ah_buf_fmt(b, "; litellm call %.*s", AH_FMT(ah_buf_slice(&r->call_id)));
}

/* Groq reads calls itself and refuses those the model wrote wrongly: asked again, it mostly
 * writes them well, and nothing was shown of the first. */
static bool worth_another(ah_slice code)
{
    return ah_json_string_is(code, "tool_use_failed");
}

/* `error` is the provider's error object (or a string), or absent: then the body is quoted. */
static ah_status provider_error(reader *r, ah_slice error, ah_err *err)
{
    ah_slice message =
        ah_json_kind_of(error) == AH_JSON_STRING ? error : ah_json_member(error, "message");
    ah_slice code = ah_json_member(error, "code"), type = ah_json_member(error, "type");
    ah_slice word = ah_json_kind_of(code) == AH_JSON_STRING ? code : type;
    ah_buf b, w;

    if (r->base.status < 300 && named_status(error))
        r->base.status = named_status(error);
    ah_buf_init(&b, r->base.adapter->mem, MAX_WHOLE);
    ah_buf_init(&w, r->base.adapter->mem, MAX_WHOLE);
    put_excerpt(r, &b, message.p ? message : ah_json_member(error, "detail"),
                error.p ? error : ah_buf_slice(&r->body));
    put_excerpt(r, &w, word, (ah_slice){"", 0});
    if (!b.len)
        ah_buf_str(&b, "(no message)");
    if (w.len)
        ah_buf_fmt(&b, " (%.*s)", AH_FMT(ah_buf_slice(&w)));
    put_hints(r, is_about_key(r->base.status, type), &b);
    ah_err_set(err, AH_PROVIDER, "%s: HTTP %d: %.*s", name_of(r), r->base.status,
               AH_FMT(ah_buf_slice(&b)));
    ah_reader_judge(&r->base, err, r->retried || never_retry(code) || never_retry(type));
    err->retryable = err->retryable || worth_another(code);
    ah_buf_clear(&b);
    ah_buf_clear(&w);
    return AH_PROVIDER;
}

static ah_status bad_response(reader *r, ah_err *err, const char *what)
{
    ah_err_set(err, AH_PROVIDER, "%s: %s", name_of(r), what);
    ah_reader_judge(&r->base, err, false);
    return AH_PROVIDER;
}

static void read_usage(ah_assembly *msg, ah_slice usage)
{
    ah_slice of_input, of_output;
    const ah_json_wanted want[] = {{"prompt_tokens_details", &of_input},
                                   {"completion_tokens_details", &of_output}};

    ah_json_members(usage, want, 2);
    msg->usage = (ah_usage){
        .input = count(usage, "prompt_tokens"),
        .cached_read = count(of_input, "cached_tokens"),
        .cached_write = count(of_input, "cache_write_tokens"),
        .output = count(usage, "completion_tokens"),
        .reasoning = count(of_output, "reasoning_tokens"),
        .known = true,
    };
}

static ah_stop stop_of(ah_slice reason)
{
    static const struct {
        const char *word;
        ah_stop stop;
    } words[] = {{"stop", AH_STOP_END},
                 {"length", AH_STOP_LENGTH},
                 {"tool_calls", AH_STOP_TOOL_CALLS},
                 {"function_call", AH_STOP_TOOL_CALLS},
                 {"content_filter", AH_STOP_FILTER}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ah_json_string_is(reason, words[i].word))
            return words[i].stop;
    return AH_STOP_END;
}

/* A string with something in it. */
static bool says(ah_slice value)
{
    return ah_json_kind_of(value) == AH_JSON_STRING && value.n > 2;
}

static ah_status read_function(ah_draft_call *c, ah_slice function, ah_err *err)
{
    ah_slice name, arguments;
    const ah_json_wanted want[] = {{"name", &name}, {"arguments", &arguments}};
    ah_json_kind kind;
    ah_status st = AH_OK;

    ah_json_members(function, want, 2);
    kind = ah_json_kind_of(arguments);
    if (says(name))
        st = ah_assembly_call_name(c, ah_json_inside(name), err);
    if (st == AH_OK && kind == AH_JSON_STRING)
        st = ah_assembly_call_arguments(c, ah_json_inside(arguments), err);
    else if (st == AH_OK && kind != AH_JSON_END && kind != AH_JSON_NULL)
        st = ah_assembly_call_value(c, arguments, err); /* some servers send the object itself */
    return st;
}

/* Does a fragment that goes by the number of `c` begin another call? Some servers number
 * none of their calls, some give all of a message the same number. */
static bool begins_another(const ah_draft_call *c, ah_slice id, ah_slice name, bool numbered)
{
    if (!says(name) || !c->name.len)
        return false;
    if (!says(id))
        return !numbered;
    return c->id.len && !memchr(id.p, '\\', id.n) &&
           !ah_slice_eq(ah_json_inside(id), ah_buf_slice(&c->id));
}

/* The call a fragment of a stream belongs to. */
static ah_status find_call(ah_assembly *msg, ah_slice call, ah_draft_call **out, ah_err *err)
{
    ah_slice name = ah_json_path(call, "function.name");
    ah_json_num index = {0};
    bool numbered = ah_json_number(ah_json_member(call, "index"), &index) && index.is_int;
    int64_t number = numbered || !msg->n ? index.i : msg->call[msg->n - 1].index;
    ah_status st = ah_assembly_call(msg, number, out, err);

    if (st == AH_OK && begins_another(*out, ah_json_member(call, "id"), name, numbered))
        st = ah_assembly_add_call(msg, number, out, err);
    return st;
}

static ah_status read_call(reader *r, ah_slice call, ah_err *err)
{
    ah_slice id = ah_json_member(call, "id");
    ah_draft_call *c;
    ah_status st;

    if (r->events)
        st = find_call(r->base.msg, call, &c, err);
    else /* each is whole, whatever number it bears */
        st = ah_assembly_add_call(r->base.msg, (int64_t)r->base.msg->n, &c, err);
    if (st == AH_OK && says(id))
        st = ah_assembly_call_id(c, ah_json_inside(id), err);
    if (st == AH_OK)
        st = read_function(c, ah_json_member(call, "function"), err);
    return st;
}

static ah_status read_calls(reader *r, ah_slice calls, ah_err *err)
{
    ah_json_reader it = ah_json_read(calls);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY)
        return AH_OK;
    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = read_call(r, ah_json_skip(&it, t), err);
    return st;
}

/* Some servers send a list of parts where OpenAI sends a string. */
static ah_status read_parts(reader *r, ah_slice parts, ah_err *err)
{
    ah_json_reader it = ah_json_read(parts);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        ah_slice text = ah_json_member(ah_json_skip(&it, t), "text");

        if (ah_json_kind_of(text) == AH_JSON_STRING)
            st = ah_assembly_text(r->base.msg, ah_json_inside(text), err);
    }
    return st;
}

/* A delta of a stream or the message of a whole answer: the same members. */
static ah_status read_message(reader *r, ah_slice message, ah_err *err)
{
    ah_json_reader it = ah_json_read(message);
    ah_json_token key = ah_json_next(&it);
    ah_status st = AH_OK;

    if (key.kind != AH_JSON_OBJECT)
        return AH_OK;
    for (key = ah_json_next(&it); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        ah_json_token t = ah_json_next(&it);
        ah_slice v = ah_json_skip(&it, t);

        if (t.kind == AH_JSON_STRING && ah_json_token_is(key, "content"))
            st = ah_assembly_text(r->base.msg, t.raw, err);
        else if (t.kind == AH_JSON_ARRAY && ah_json_token_is(key, "content"))
            st = read_parts(r, v, err);
        else if (t.kind == AH_JSON_STRING && ah_json_token_is(key, "refusal"))
            st = ah_assembly_refusal(r->base.msg, t.raw, err);
        else if (t.kind == AH_JSON_ARRAY && ah_json_token_is(key, "tool_calls"))
            st = read_calls(r, v, err);
        else
            st = ah_thoughts_take(&r->thoughts, key, v, err);
    }
    return st;
}

/* One of possibly several choices: only the first answer (index 0) is ours. */
static ah_status read_choice(reader *r, ah_slice choice, ah_err *err)
{
    ah_slice reason, native, message, number;
    const ah_json_wanted want[] = {{"finish_reason", &reason},
                                   {"native_finish_reason", &native},
                                   {r->events ? "delta" : "message", &message},
                                   {"index", &number}};
    ah_json_num index;
    ah_status st;

    ah_json_members(choice, want, 4);
    if (ah_json_number(number, &index) && index.d != 0)
        return AH_OK;
    r->chosen = true;
    st = read_message(r, message, err);
    if (st != AH_OK || !says(reason))
        return st;
    r->finished = true;
    return ah_assembly_stop(r->base.msg, stop_of(reason), ah_json_inside(says(native) ? native : reason),
                            err);
}

static ah_status read_choices(reader *r, ah_slice choices, ah_err *err)
{
    ah_json_reader it = ah_json_read(choices);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = read_choice(r, ah_json_skip(&it, t), err);
    return st;
}

static ah_status read_document(reader *r, ah_slice doc, ah_err *err)
{
    ah_json_reader it = ah_json_read(doc);
    ah_json_token key = ah_json_next(&it);
    ah_status st = AH_OK;

    if (key.kind != AH_JSON_OBJECT)
        return bad_response(r, err, "expected a JSON object as answer");
    for (key = ah_json_next(&it); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        ah_json_token t = ah_json_next(&it);
        ah_slice v = ah_json_skip(&it, t);

        if (t.kind != AH_JSON_NULL && ah_json_token_is(key, "error"))
            st = provider_error(r, v, err);
        else if (t.kind == AH_JSON_ARRAY && ah_json_token_is(key, "choices"))
            st = read_choices(r, v, err);
        else if (t.kind == AH_JSON_OBJECT && ah_json_token_is(key, "usage"))
            read_usage(r->base.msg, v);
        else if (ah_json_kind_of(ah_json_member(v, "usage")) == AH_JSON_OBJECT &&
                 ah_json_token_is(key, "x_groq"))
            read_usage(r->base.msg, ah_json_member(v, "usage"));
    }
    return st;
}

static ah_status check(reader *r, ah_slice text, const char *what, ah_err *err)
{
    char said[80];
    ah_status st;

    snprintf(said, sizeof said, "%s: %s", name_of(r), what);
    st = ah_json_check_err(r->base.adapter->mem, text, said, err);
    if (st == AH_OK || st == AH_NOMEM)
        return st;
    if (ah_secrets_in(r->base.msg->secrets, text)) /* what is quoted of it might be half a key */
        ah_err_set(err, AH_PROVIDER, "%s is not JSON (not quoted: a key is in it)", said);
    err->status = AH_PROVIDER;
    ah_reader_judge(&r->base, err, false);
    return AH_PROVIDER;
}

static ah_status on_event(void *ud, ah_slice event, ah_slice data, ah_err *err)
{
    reader *r = ud;
    ah_status st;

    (void)event;
    r->done = r->done || begins(data, "[DONE]");
    r->finished = r->finished || r->done;
    if (r->done || data.n == 0)
        return AH_OK;
    st = check(r, data, "an event of the stream", err);
    return st == AH_OK ? read_document(r, data, err) : st;
}

ah_status ah_openai_feed(ah_reader *base, ah_slice bytes, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st;

    if (r->events) {
        st = ah_sse_feed(&r->sse, bytes, on_event, r, err);
        if (st != AH_OK && st != AH_NOMEM)
            err->phase = AH_PHASE_RESPONSE;
        if (r->finished && r->chosen)
            base->linger_ms = r->done ? LINGER_DONE_MS : LINGER_MS;
        return st;
    }
    if (base->status >= 300 && bytes.n > r->body.max - r->body.len)
        bytes.n = r->body.max - r->body.len; /* the beginning of an error page is enough */
    ah_buf_put(&r->body, bytes);
    if (ah_buf_ok(&r->body))
        return AH_OK;
    st = ah_buf_error(&r->body, "the model's answer", err);
    if (st != AH_NOMEM)
        st = err->status = AH_PROVIDER;
    return st;
}

static ah_status no_choices(reader *r, ah_err *err)
{
    return bad_response(r, err, "the answer holds no choices");
}

static ah_status end_events(reader *r, ah_err *err)
{
    ah_status st = ah_sse_end(&r->sse, on_event, r, err);

    if (st == AH_OK && r->finished && !r->chosen)
        return no_choices(r, err);
    if (st != AH_OK || r->finished)
        return st;
    ah_err_set(err, AH_HTTP, "%s: the stream ended before the answer was complete", name_of(r));
    ah_reader_judge(&r->base, err, false);
    return AH_HTTP;
}

static ah_status end_error(reader *r, ah_err *err)
{
    ah_slice body = ah_buf_slice(&r->body), error = {NULL, 0};

    if (ah_json_check(r->base.adapter->mem, body, AH_JSON_MAX_DEPTH, NULL) == AH_OK) {
        error = ah_json_member(body, "error");
        if (ah_json_kind_of(error) == AH_JSON_END || ah_json_kind_of(error) == AH_JSON_NULL)
            error = body; /* Mistral, vLLM: the members stand alone */
    }
    return provider_error(r, error, err);
}

static ah_status end_document(reader *r, ah_err *err)
{
    ah_status st;

    if (r->base.status >= 300 || r->base.status < 200)
        return end_error(r, err);
    if (!r->body.len)
        return bad_response(r, err, "the answer is empty");
    if (r->body.data[0] == '<') {
        bad_response(r, err, "the answer is a web page, no JSON; check base_url");
        err->retryable = false;
        return AH_PROVIDER;
    }
    st = check(r, ah_buf_slice(&r->body), "the answer", err);
    if (st == AH_OK)
        st = read_document(r, ah_buf_slice(&r->body), err);
    return st == AH_OK && !r->chosen ? no_choices(r, err) : st;
}

ah_status ah_openai_end(ah_reader *base, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st = r->events ? end_events(r, err) : end_document(r, err);

    return st == AH_OK ? ah_thoughts_give(&r->thoughts, base->msg, err) : st;
}
