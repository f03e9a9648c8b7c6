/* OpenAI Chat Completions, and every server that speaks it: the requests, from the
 * transcript (POST {base}/chat/completions), and the adapter itself. What comes back is
 * read in openai_read.c. */
#include "wire/lower.h"
#include "wire/openai_read.h"
#include "wire/openai_strict.h"

enum { MAX_WIRE_NAME = 64 };

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
    if (ah_lowered_has_tools(w)) /* tool_choice without tools is refused */
        put_tool_choice(b, options);
}

/* Strict only where the schema is what strict takes; else it is a hint, and checked by us. */
static void put_output(ah_lowered *w)
{
    ah_slice schema = ah_json_member(w->settings, "output");
    ah_slice type = ah_json_member(schema, "type");

    if (!type.p || !ah_json_string_is(type, "object"))
        return;
    ah_buf_str(&w->head, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":"
                         "\"output\",\"schema\":");
    ah_buf_put(&w->head, schema);
    ah_buf_fmt(&w->head, ",\"strict\":%s}}", ah_openai_fits_strict(schema) ? "true" : "false");
}

static void put_tools(ah_lowered *w)
{
    ah_buf *b = &w->head;
    ah_segment_kind kind;
    size_t at = 0, entry, n = 0;
    ah_slice spec;

    while ((spec = ah_lowered_tool(w, &at, &kind, &entry)).p) { /* an empty list is refused, too */
        size_t start;

        ah_buf_str(b, n++ ? "," : ",\"tools\":[");
        start = ah_segment_begin(b);
        ah_buf_str(b, "{\"type\":\"function\",\"function\":");
        ah_buf_put(b, spec);
        ah_buf_char(b, '}');
        ah_segment_end(w, kind, entry, b, start);
    }
    if (n)
        ah_buf_char(b, ']');
}

static void head(const ah_adapter *a, ah_lowered *w)
{
    ah_buf *b = &w->head;
    size_t at;

    ah_buf_str(b, "{\"model\":");
    ah_json_put_string(b, ah_text_slice(a->model));
    put_options(a, w);
    put_output(w);
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
    .native_output = true,
    .head = head,
    .entry = entry,
    .tail = "]}",
    .request = request,
    .open = ah_openai_open,
    .head_came = ah_openai_head_came,
    .feed = ah_openai_feed,
    .end = ah_openai_end,
    .close = ah_openai_close,
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
    a->base = (ah_adapter){
        .vt = &vt, .mem = o->mem, .refs = 1, .stream = o->stream, .tool_change_mode = AH_TOOLS_APPEND};
    a->limits = o->limits;
    if ((st = fill(a, model, base_url(o), o, err)) == AH_OK)
        *out = &a->base;
    else
        ah_adapter_unref(&a->base);
    return st;
}
