/* OpenAI Chat Completions, and every server that speaks it: requests from the
 * transcript, responses streamed or whole. Format: POST {base}/chat/completions. */
#include "wire/adapter.h"
#include "wire/lower.h"
#include "wire/sse.h"

#include <strings.h>

enum {
    MAX_EVENT = 16 << 20,
    MAX_WHOLE = 64 << 20,
    MAX_ERROR_BODY = 64 << 10,
    MAX_WIRE_NAME = 64,
    MOST_QUOTED = 400,
    LINGER_MS = 5000,    /* after finish_reason, for usage and [DONE] */
    LINGER_DONE_MS = 250 /* after [DONE], for the end of the response */
};

static const char OFFICIAL[] = "https://api.openai.com/v1";

typedef struct openai {
    ah_adapter base;
    const ah_secret *key; /* NULL: none sent */
    ah_text *organization, *project;
    ah_http_limits limits;
} openai;

/* -- lowering ---------------------------------------------------------------- */

static void put_option(ah_buf *b, ah_slice options, const char *ours, const char *theirs)
{
    ah_slice v = ah_json_member(options, ours);

    if (v.p)
        ah_buf_fmt(b, ",\"%s\":%.*s", theirs, AH_FMT(v));
}

static void put_tool_choice(ah_buf *b, ah_slice options)
{
    ah_slice v = ah_json_member(options, "tool_choice");
    ah_slice name = ah_json_member(v, "name");

    if (name.p)
        ah_buf_fmt(b, ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":%.*s}}",
                   AH_FMT(name));
    else if (v.p)
        ah_buf_fmt(b, ",\"tool_choice\":%.*s", AH_FMT(v));
}

static void put_options(const ah_adapter *a, ah_lowered *w)
{
    ah_slice options = ah_json_member(w->settings, "options");
    bool official = ah_slice_is(ah_text_slice(a->endpoint), OFFICIAL);
    ah_buf *b = &w->head;

    put_option(b, options, "max_tokens", official ? "max_completion_tokens" : "max_tokens");
    put_option(b, options, "reasoning", "reasoning_effort");
    put_option(b, options, "seed", "seed");
    put_option(b, options, "stop", "stop");
    put_option(b, options, "temperature", "temperature");
    put_option(b, options, "top_p", "top_p");
    if (w->n_tools) /* tool_choice without tools is refused */
        put_tool_choice(b, options);
}

static void put_tools(ah_lowered *w)
{
    ah_buf *b = &w->head;

    if (!w->n_tools) /* so is an empty list */
        return;
    ah_buf_str(b, ",\"tools\":[");
    for (size_t i = 0; i < w->n_tools; i++) {
        size_t at;

        if (i)
            ah_buf_char(b, ',');
        at = ah_segment_begin(b);
        ah_buf_str(b, "{\"type\":\"function\",\"function\":");
        ah_buf_put(b, w->tool[i].spec);
        ah_buf_char(b, '}');
        ah_segment_end(w, AH_SEGMENT_TOOL, w->tool[i].entry, b, at);
    }
    ah_buf_char(b, ']');
}

static void head(const ah_adapter *a, ah_lowered *w)
{
    ah_buf *b = &w->head;
    size_t at;

    ah_buf_str(b, "{\"model\":");
    ah_json_put_string(b, ah_text_slice(a->model));
    put_options(a, w);
    if (a->stream)
        ah_buf_str(b, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    put_tools(w);
    ah_buf_str(b, ",\"messages\":[");
    if (!w->system.p)
        return;
    at = ah_segment_begin(b);
    ah_buf_str(b, "{\"role\":\"system\",\"content\":");
    ah_buf_put(b, w->system);
    ah_buf_char(b, '}');
    ah_segment_end(w, AH_SEGMENT_SYSTEM, w->system_entry, b, at);
}

/* All text of a message's parts as one JSON string; values are copied as they stand. */
static void put_content(ah_buf *b, ah_slice parts)
{
    ah_json_reader r = ah_json_read(parts);
    ah_json_token t = ah_json_next(&r);

    ah_buf_char(b, '"');
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice text = ah_json_member(ah_json_skip(&r, t), "text");

        if (ah_json_kind_of(text) == AH_JSON_STRING)
            ah_buf_add(b, text.p + 1, text.n - 2);
    }
    ah_buf_char(b, '"');
}

/* A name the model made up may hold anything; the wire takes [A-Za-z0-9_-]{1,64}. */
static void put_wire_name(ah_buf *b, ah_slice value)
{
    size_t n = value.n >= 2 ? value.n - 2 : 0;

    ah_buf_char(b, '"');
    for (size_t i = 0; i < n && i < MAX_WIRE_NAME; i++) {
        char c = value.p[i + 1];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-';

        ah_buf_char(b, fits ? c : '_');
    }
    ah_buf_str(b, n ? "\"" : "unnamed\"");
}

static void put_call(ah_buf *b, ah_slice call)
{
    ah_slice id, name, arguments;
    const ah_json_wanted want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    ah_json_members(call, want, 3);
    ah_buf_str(b, "{\"id\":");
    ah_buf_put(b, id);
    ah_buf_str(b, ",\"type\":\"function\",\"function\":{\"name\":");
    put_wire_name(b, name);
    ah_buf_str(b, ",\"arguments\":");
    if (arguments.n <= 2)
        ah_buf_str(b, "\"{}\"");
    else
        ah_buf_put(b, arguments);
    ah_buf_str(b, "}}");
}

static void put_assistant(ah_buf *b, ah_slice json)
{
    ah_slice calls = ah_json_member(json, "tool_calls"), content = ah_json_member(json, "content");
    ah_json_reader r = ah_json_read(calls);
    ah_json_token t = ah_json_next(&r);
    bool first = true;

    ah_buf_str(b, ",{\"role\":\"assistant\",\"content\":");
    if (calls.p && content.n <= 2)
        ah_buf_str(b, "null");
    else
        put_content(b, content);
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r), first = false) {
        ah_buf_str(b, first ? ",\"tool_calls\":[" : ",");
        put_call(b, ah_json_skip(&r, t));
    }
    ah_buf_str(b, first ? "}" : "]}");
}

/* This wire has no error flag: a failure says so in its text. */
static void put_result(ah_buf *b, ah_slice json)
{
    ah_slice id, content, success;
    const ah_json_wanted want[] = {{"id", &id}, {"content", &content}, {"success", &success}};

    ah_json_members(json, want, 3);
    ah_buf_str(b, ",{\"role\":\"tool\",\"tool_call_id\":");
    ah_buf_put(b, id);
    ah_buf_str(b,
               ah_json_kind_of(success) == AH_JSON_FALSE ? ",\"content\":\"Error: " : ",\"content\":\"");
    if (content.n >= 2)
        ah_buf_add(b, content.p + 1, content.n - 1);
    ah_buf_char(b, '}');
}

static void put_message(ah_buf *b, const char *role, ah_slice value)
{
    ah_buf_fmt(b, ",{\"role\":\"%s\",\"content\":", role);
    if (ah_json_kind_of(value) == AH_JSON_ARRAY)
        put_content(b, value);
    else
        ah_buf_put(b, value);
    ah_buf_char(b, '}');
}

static void entry(const ah_adapter *a, ah_lowered *w, const ah_entry *e)
{
    ah_slice json = ah_text_slice(e->json);
    ah_buf *b = &w->body;
    size_t at = ah_segment_begin(b);

    (void)a;
    if (e->kind == AH_ENTRY_ASSISTANT)
        put_assistant(b, json);
    else if (e->kind == AH_ENTRY_TOOL_RESULT)
        put_result(b, json);
    else if (e->kind == AH_ENTRY_USER)
        put_message(b, "user", ah_json_member(json, "content"));
    else
        put_message(b, "system", ah_json_member(json, "text"));
    ah_segment_end(w, AH_SEGMENT_ENTRY, w->done, b, at);
}

/* -- the request around the body ---------------------------------------------- */

/* One header line at the end of scratch; its place, since scratch may still move. */
static size_t put_header(ah_buf *scratch, const char *name, ah_slice value)
{
    ah_buf_str(scratch, name);
    ah_buf_put(scratch, value);
    return scratch->len;
}

static ah_status request(const ah_adapter *a, ah_buf *scratch, ah_http_request *req, ah_err *err)
{
    const openai *o = (const openai *)a;
    enum { MOST = 5 };
    size_t end[MOST], n = 0, from;
    ah_slice *lines;

    /* the array first, then what it points to */
    ah_buf_room(scratch, MOST * sizeof(ah_slice));
    if (ah_buf_ok(scratch))
        scratch->len += MOST * sizeof(ah_slice);
    ah_buf_put(scratch, ah_text_slice(a->endpoint));
    ah_buf_add(scratch, "/chat/completions", sizeof "/chat/completions");
    from = scratch->len;
    end[n++] = put_header(scratch, "Content-Type: ", ah_slice_of("application/json"));
    end[n++] = put_header(
        scratch,
        "Accept: ", ah_slice_of(a->stream ? "text/event-stream, application/json" : "application/json"));
    if (o->key)
        end[n++] = put_header(scratch, "Authorization: Bearer ", ah_secret_reveal(o->key));
    if (o->organization)
        end[n++] = put_header(scratch, "OpenAI-Organization: ", ah_text_slice(o->organization));
    if (o->project)
        end[n++] = put_header(scratch, "OpenAI-Project: ", ah_text_slice(o->project));
    if (!ah_buf_ok(scratch))
        return ah_buf_error(scratch, "the request's headers", err);
    lines = (ah_slice *)(void *)scratch->data;
    for (size_t i = 0, at = from; i < n; at = end[i++])
        lines[i] = (ah_slice){scratch->data + at, end[i] - at};
    req->method = "POST";
    req->url = scratch->data + MOST * sizeof(ah_slice);
    req->headers = lines;
    req->n_headers = n;
    req->limits = o->limits;
    return AH_OK;
}

/* -- reading -------------------------------------------------------------------- */

typedef struct reader {
    ah_reader base;
    bool events;   /* an event stream, else one document */
    bool chosen;   /* a choice was seen */
    bool finished; /* finish_reason or [DONE] was seen */
    bool done;     /* [DONE] was seen: what follows is not ours */
    ah_sse sse;
    ah_buf body;
} reader;

static ah_status open_reader(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    reader *r = ah_alloc(a->mem, sizeof *r);

    if (!r)
        return ah_err_nomem(err);
    r->base =
        (ah_reader){.adapter = a, .msg = msg, .retry_after_ms = -1, .should_retry = -1, .linger_ms = -1};
    ah_sse_init(&r->sse, a->mem, MAX_EVENT);
    ah_buf_init(&r->body, a->mem, MAX_WHOLE);
    *out = &r->base;
    return AH_OK;
}

static void close_reader(ah_reader *base)
{
    reader *r = (reader *)base;

    ah_sse_clear(&r->sse);
    ah_buf_clear(&r->body);
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

static ah_status head_came(ah_reader *base, const ah_response_head *h, ah_err *err)
{
    reader *r = (reader *)base;

    (void)err;
    ah_reader_note_head(base, h);
    r->events = h->status >= 200 && h->status < 300 &&
                is_media(h->header(h->ud, "content-type"), "text/event-stream");
    if (h->status >= 300)
        r->body.max = MAX_ERROR_BODY;
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

static const char *hint_of(int status)
{
    if (status >= 300 && status < 400)
        return "; redirects are not followed, check base_url";
    return status == 401 ? "; check api_key or OPENAI_API_KEY" : "";
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
    ah_err_set(err, AH_PROVIDER, "openai: HTTP %d: %.*s%s%.*s%s%s", r->base.status,
               AH_FMT(ah_buf_slice(&b)), w.len ? " (" : "", AH_FMT(ah_buf_slice(&w)), w.len ? ")" : "",
               hint_of(r->base.status));
    ah_reader_judge(&r->base, err, never_retry(code) || never_retry(type));
    ah_buf_clear(&b);
    ah_buf_clear(&w);
    return AH_PROVIDER;
}

static ah_status bad_response(reader *r, ah_err *err, const char *what)
{
    ah_err_set(err, AH_PROVIDER, "openai: %s", what);
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

static ah_slice inside(ah_slice string)
{
    return (ah_slice){string.p + 1, string.n - 2};
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
        st = ah_assembly_call_name(c, inside(name), err);
    if (st == AH_OK && kind == AH_JSON_STRING)
        st = ah_assembly_call_arguments(c, inside(arguments), err);
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
    return c->id.len && !memchr(id.p, '\\', id.n) && !ah_slice_eq(inside(id), ah_buf_slice(&c->id));
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
        st = ah_assembly_call_id(c, inside(id), err);
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
            st = ah_assembly_text(r->base.msg, inside(text), err);
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
    }
    return st;
}

/* One of possibly several choices: only the first answer (index 0) is ours. */
static ah_status read_choice(reader *r, ah_slice choice, ah_err *err)
{
    ah_slice reason, message, number;
    const ah_json_wanted want[] = {
        {"finish_reason", &reason}, {r->events ? "delta" : "message", &message}, {"index", &number}};
    ah_json_num index;
    ah_status st;

    ah_json_members(choice, want, 3);
    if (ah_json_number(number, &index) && index.d != 0)
        return AH_OK;
    r->chosen = true;
    st = read_message(r, message, err);
    if (says(reason)) {
        r->base.msg->stop = stop_of(reason);
        r->finished = true;
    }
    return st;
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
    ah_status st = ah_json_check_err(r->base.adapter->mem, text, what, err);

    if (st == AH_OK || st == AH_NOMEM)
        return st;
    if (ah_secrets_in(r->base.msg->secrets, text)) /* what is quoted of it might be half a key */
        ah_err_set(err, AH_PROVIDER, "%s is not JSON (not quoted: a key is in it)", what);
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
    st = check(r, data, "openai: an event of the stream", err);
    return st == AH_OK ? read_document(r, data, err) : st;
}

static ah_status feed(ah_reader *base, ah_slice bytes, ah_err *err)
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
    st = ah_buf_error(&r->body, "openai: the answer", err);
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
    ah_err_set(err, AH_HTTP, "openai: the stream ended before the answer was complete");
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

static ah_status end(ah_reader *base, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st;

    if (r->events)
        return end_events(r, err);
    if (base->status >= 300 || base->status < 200)
        return end_error(r, err);
    if (!r->body.len)
        return bad_response(r, err, "the answer is empty");
    if (r->body.data[0] == '<') {
        bad_response(r, err, "the answer is a web page, no JSON; check base_url");
        err->retryable = false;
        return AH_PROVIDER;
    }
    st = check(r, ah_buf_slice(&r->body), "openai: the answer", err);
    if (st == AH_OK)
        st = read_document(r, ah_buf_slice(&r->body), err);
    return st == AH_OK && !r->chosen ? no_choices(r, err) : st;
}

/* -- making one ------------------------------------------------------------------- */

static void free_openai(ah_adapter *a)
{
    openai *o = (openai *)a;

    ah_text_unref(o->organization);
    ah_text_unref(o->project);
    ah_free(a->mem, o);
}

static const ah_adapter_vt vt = {
    .name = "openai",
    .tool_change_mode = AH_TOOLS_APPEND,
    .head = head,
    .entry = entry,
    .tail = "]}",
    .request = request,
    .open = open_reader,
    .head_came = head_came,
    .feed = feed,
    .end = end,
    .close = close_reader,
    .free = free_openai,
};

static ah_slice from_env(const ah_provider_options *o, const char *name)
{
    const char *v = o->getenv ? o->getenv(o->ud, name) : NULL;

    return ah_slice_of(v && *v ? v : NULL);
}

static ah_slice base_url(const ah_provider_options *o)
{
    ah_slice url = o->base_url.p ? o->base_url : from_env(o, "OPENAI_BASE_URL");

    if (!url.p)
        url = ah_slice_of(OFFICIAL);
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    return url;
}

static bool optional_text(openai *o, ah_slice s, ah_text **out)
{
    return !s.p || (*out = ah_text_new(o->base.mem, s)) != NULL;
}

static ah_status fill(openai *a, ah_slice model, ah_slice url, const ah_provider_options *o, ah_err *err)
{
    ah_slice key = o->api_key.p ? o->api_key : from_env(o, "OPENAI_API_KEY");

    if (!key.p && ah_slice_is(url, OFFICIAL))
        return ah_err_set(
            err, AH_PROVIDER,
            "openai: no key: set OPENAI_API_KEY or api_key (without a key and a network: demo/...)");
    if (key.p && !(a->key = ah_secrets_keep(o->secrets, key)))
        return ah_err_nomem(err);
    if (!(a->base.provider = ah_text_new(o->mem, ah_slice_of("openai"))) ||
        !(a->base.model = ah_text_new(o->mem, model)) ||
        !(a->base.endpoint = ah_text_new(o->mem, url)) ||
        !optional_text(a, from_env(o, "OPENAI_ORG_ID"), &a->organization) ||
        !optional_text(a, from_env(o, "OPENAI_PROJECT_ID"), &a->project))
        return ah_err_nomem(err);
    return AH_OK;
}

ah_status ah_openai_new(ah_slice model, const ah_provider_options *o, ah_adapter **out, ah_err *err)
{
    openai *a = ah_alloc(o->mem, sizeof *a);
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    a->base = (ah_adapter){.vt = &vt, .mem = o->mem, .refs = 1, .stream = o->stream};
    a->limits = o->limits;
    if ((st = fill(a, model, base_url(o), o, err)) == AH_OK)
        *out = &a->base;
    else
        ah_adapter_unref(&a->base);
    return st;
}
