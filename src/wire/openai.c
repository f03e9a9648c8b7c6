/* OpenAI Chat Completions, and every server that speaks it: the requests, from the
 * transcript (POST {base}/chat/completions), and the adapter itself. What comes back is
 * read in openai_read.c. */
#include "wire/dialect.h"
#include "wire/openai_read.h"

enum { SHORT_ID = 9 };

typedef struct openai {
    ah_openai base;
    const ah_secret *key; /* NULL: none sent */
    ah_text *organization, *project, *api_version, *site, *app;
    ah_http_limits limits;
} openai;

static bool is(const ah_adapter *a, unsigned quirk)
{
    return (((const ah_openai *)a)->server->quirks & quirk) != 0;
}

/* Is it asked where it lives, not through another server that speaks as it does? */
static bool official(const ah_adapter *a)
{
    const char *own = ((const ah_openai *)a)->server->at.url;

    return !own || ah_slice_is(ah_text_slice(a->endpoint), own);
}

/* -- lowering ---------------------------------------------------------------- */

static void put_option(ah_buf *b, ah_slice options, const char *ours, const char *theirs)
{
    ah_slice v = ah_json_member(options, ours);

    if (v.p)
        ah_buf_fmt(b, ",\"%s\":%.*s", theirs, AH_FMT(v));
}

static void put_tool_choice(const ah_adapter *a, ah_buf *b, ah_slice options)
{
    ah_slice v = ah_json_member(options, "tool_choice");
    ah_slice name = ah_json_member(v, "name");

    if (name.p)
        ah_buf_fmt(b, ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":%.*s}}",
                   AH_FMT(name));
    else if (is(a, AH_SERVER_ANY) && ah_json_string_is(v, "required"))
        ah_buf_str(b, ",\"tool_choice\":\"any\"");
    else if (v.p)
        ah_buf_fmt(b, ",\"tool_choice\":%.*s", AH_FMT(v));
}

static void put_reasoning(const ah_adapter *a, ah_buf *b, ah_slice options)
{
    ah_slice effort = ah_json_member(options, "reasoning");

    if (effort.p && is(a, AH_SERVER_REASONING_OBJECT))
        ah_buf_fmt(b, ",\"reasoning\":{\"effort\":%.*s}", AH_FMT(effort));
    else
        put_option(b, options, "reasoning", "reasoning_effort");
}

static void put_options(const ah_adapter *a, ah_lowered *w)
{
    ah_slice options = ah_json_member(w->settings, "options");
    bool completion = is(a, AH_SERVER_COMPLETION_TOKENS) && official(a);
    ah_buf *b = &w->head;

    put_option(b, options, "max_tokens", completion ? "max_completion_tokens" : "max_tokens");
    put_reasoning(a, b, options);
    put_option(b, options, "seed", "seed");
    put_option(b, options, "stop", "stop");
    put_option(b, options, "temperature", "temperature");
    put_option(b, options, "top_p", "top_p");
    if (ah_lowered_has_tools(w)) /* tool_choice without tools is refused */
        put_tool_choice(a, b, options);
}

/* The tool as it is, or with its parameters wrapped. */
static void put_function(ah_buf *b, ah_slice spec)
{
    ah_slice name, description, parameters;
    const ah_json_wanted want[] = {
        {"name", &name}, {"description", &description}, {"parameters", &parameters}};

    ah_json_members(spec, want, 3);
    if (!ah_dialect_wraps(parameters)) {
        ah_buf_put(b, spec);
        return;
    }
    ah_buf_fmt(b, "{\"description\":%.*s,\"name\":%.*s,\"parameters\":", AH_FMT(description),
               AH_FMT(name));
    ah_dialect_put(AH_DIALECT_JSON_SCHEMA, parameters, b);
    ah_buf_char(b, '}');
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
        put_function(b, spec);
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
    if (a->stream)
        ah_buf_str(b, ",\"stream\":true");
    if (a->stream && is(a, AH_SERVER_STREAM_USAGE))
        ah_buf_str(b, ",\"stream_options\":{\"include_usage\":true}");
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

/* An id as the wire takes it: where only nine letters and digits fit, others give nine that
 * follow from them alone, so that call and result agree. */
static void put_id(const ah_adapter *a, ah_buf *b, ah_slice id)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    bool fits = id.n == SHORT_ID + 2;

    for (size_t i = 1; i + 1 < id.n; i++) {
        fits = fits && memchr(digits, id.p[i], sizeof digits - 1);
        hash = (hash ^ (unsigned char)id.p[i]) * 1099511628211u;
    }
    if (fits || !is(a, AH_SERVER_SHORT_IDS)) {
        ah_buf_put(b, id);
        return;
    }
    ah_buf_char(b, '"');
    for (int i = 0; i < SHORT_ID; i++, hash /= 62)
        ah_buf_char(b, digits[hash % 62]);
    ah_buf_char(b, '"');
}

/* The arguments are a string with JSON in it, sent as the model wrote it. */
static void put_arguments(const ah_lowered *w, ah_buf *b, ah_slice name, ah_slice arguments)
{
    bool wrapped = ah_dialect_wrapped(w, name);

    ah_buf_str(b, wrapped ? "\"{\\\"" AH_WRAPPED "\\\":" : "\"");
    if (arguments.n <= 2)
        ah_buf_str(b, "{}");
    else
        ah_buf_put(b, ah_json_inside(arguments));
    ah_buf_str(b, wrapped ? "}\"" : "\"");
}

static void put_call(const ah_adapter *a, const ah_lowered *w, ah_buf *b, ah_slice call)
{
    ah_slice id, name, arguments;
    const ah_json_wanted want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    ah_json_members(call, want, 3);
    ah_buf_str(b, "{\"id\":");
    put_id(a, b, id);
    ah_buf_str(b, ",\"type\":\"function\",\"function\":{\"name\":");
    ah_wire_name_put(b, name);
    ah_buf_str(b, ",\"arguments\":");
    put_arguments(w, b, name, arguments);
    ah_buf_str(b, "}}");
}

static void put_assistant(const ah_adapter *a, const ah_lowered *w, ah_buf *b, ah_slice json)
{
    ah_slice calls = ah_json_member(json, "tool_calls"), content = ah_json_member(json, "content");
    ah_slice thoughts = ah_opaque_of(a, json);
    ah_json_reader r = ah_json_read(calls);
    ah_json_token t = ah_json_next(&r);
    bool first = true;

    ah_buf_str(b, ",{\"role\":\"assistant\",\"content\":");
    if (calls.p && !ah_content_says(content))
        ah_buf_str(b, "null");
    else
        put_content(b, content);
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r), first = false) {
        ah_buf_str(b, first ? ",\"tool_calls\":[" : ",");
        put_call(a, w, b, ah_json_skip(&r, t));
    }
    ah_buf_str(b, first ? "" : "]");
    if (ah_json_kind_of(thoughts) == AH_JSON_OBJECT && thoughts.n > 2) { /* members of the message */
        ah_buf_char(b, ',');
        ah_buf_add(b, thoughts.p + 1, thoughts.n - 2);
    }
    ah_buf_char(b, '}');
}

/* This wire has no error flag: a failure says so in its text. */
static void put_result(const ah_adapter *a, ah_buf *b, ah_slice json)
{
    ah_slice id, content, success;
    const ah_json_wanted want[] = {{"id", &id}, {"content", &content}, {"success", &success}};

    ah_json_members(json, want, 3);
    ah_buf_str(b, ",{\"role\":\"tool\",\"tool_call_id\":");
    put_id(a, b, id);
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

    if (e->kind == AH_ENTRY_ASSISTANT)
        put_assistant(a, w, b, json);
    else if (e->kind == AH_ENTRY_TOOL_RESULT)
        put_result(a, b, json);
    else if (e->kind == AH_ENTRY_USER)
        put_message(b, "user", ah_json_member(json, "content"));
    else
        put_message(b, "system", ah_json_member(json, "text"));
    ah_segment_end(w, AH_SEGMENT_ENTRY, w->done, b, at);
}

/* -- the request around the body ---------------------------------------------- */

/* Azure has OpenAI's paths below /openai/v1, and older ones by deployment and version. */
static void put_url(const openai *o, ah_buf *b)
{
    const ah_adapter *a = &o->base.base;
    ah_slice url = ah_text_slice(a->endpoint);
    bool azure = is(a, AH_SERVER_AZURE) && !ah_slice_find(url, (ah_slice)AH_LIT("/openai"));

    ah_buf_put(b, url);
    if (is(a, AH_SERVER_AZURE) && o->api_version)
        ah_buf_fmt(b, "%s/deployments/%s/chat/completions?api-version=%s", azure ? "/openai" : "",
                   a->model->data, o->api_version->data);
    else
        ah_buf_fmt(b, "%s/chat/completions", azure ? "/openai/v1" : "");
}

static void put_text(ah_request_texts *t, const char *name, const ah_text *value)
{
    if (value)
        ah_request_header(t, name, ah_text_slice(value));
}

static ah_status request(const ah_adapter *a, ah_buf *scratch, ah_http_request *req, ah_err *err)
{
    const openai *o = (const openai *)a;
    ah_request_texts t;

    ah_request_begin(&t, scratch);
    put_url(o, scratch);
    ah_request_headers(&t, a->stream ? "text/event-stream, application/json" : "application/json");
    if (o->key)
        ah_request_header(&t, is(a, AH_SERVER_AZURE) ? "api-key: " : "Authorization: Bearer ",
                          ah_secret_reveal(o->key));
    put_text(&t, "OpenAI-Organization: ", o->organization);
    put_text(&t, "OpenAI-Project: ", o->project);
    put_text(&t, "HTTP-Referer: ", o->site);
    put_text(&t, "X-Title: ", o->app);
    req->limits = o->limits;
    return ah_request_end(&t, req, err);
}

/* -- making one ------------------------------------------------------------------- */

static void free_openai(ah_adapter *a)
{
    openai *o = (openai *)a;

    ah_text_unref(o->organization);
    ah_text_unref(o->project);
    ah_text_unref(o->api_version);
    ah_text_unref(o->site);
    ah_text_unref(o->app);
    ah_free(a->mem, o);
}

static const ah_adapter_vt vt = {
    .name = "openai",
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

/* What the environment says under a name, where it says something. */
static bool from_env(const openai *a, const ah_provider_options *o, const char *name, ah_text **out)
{
    const char *const names[AH_SERVICE_NAMES] = {name};
    ah_slice v = ah_service_env(o, names);

    return !v.p || (*out = ah_text_new(a->base.base.mem, v)) != NULL;
}

/* What the server asks for beside key and address. */
static bool fill(openai *a, const ah_provider_options *o)
{
    const ah_server *s = a->base.server;

    if (s->quirks & AH_SERVER_AZURE)
        return from_env(a, o, "AZURE_API_VERSION", &a->api_version);
    if (s->quirks & AH_SERVER_SITE)
        return from_env(a, o, "OR_SITE_URL", &a->site) && from_env(a, o, "OR_APP_NAME", &a->app);
    if (strcmp(s->at.name, "openai") != 0)
        return true;
    return from_env(a, o, "OPENAI_ORG_ID", &a->organization) &&
           from_env(a, o, "OPENAI_PROJECT_ID", &a->project);
}

ah_status ah_openai_new(const ah_server *server, ah_slice model, const ah_provider_options *o,
                        ah_adapter **out, ah_err *err)
{
    openai *a = ah_alloc(o->mem, sizeof *a);
    ah_adapter *base = (ah_adapter *)a;
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    a->base = (ah_openai){.server = server,
                          .base = {.vt = &vt,
                                   .mem = o->mem,
                                   .refs = 1,
                                   .stream = o->stream,
                                   .tool_change_mode = AH_TOOLS_APPEND}};
    a->limits = o->limits;
    st = ah_service_fill(&server->at, model, o, base, &a->key, err);
    if (st == AH_OK && !fill(a, o))
        st = ah_err_nomem(err);
    if (st == AH_OK)
        *out = base;
    else
        ah_adapter_unref(base);
    return st;
}
