/* OpenAI Chat Completions, and every server that speaks it: the requests, from the
 * transcript (POST {base}/chat/completions), and the adapter itself. What comes back is
 * read in openai_read.c. */
#include "wire/openai.h"

#include "wire/openai_read.h"
#include "wire/openai_strict.h"
#include "wire/reading.h"

/* -- lowering ---------------------------------------------------------------- */

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
    bool official = ah_slice_is(ah_text_slice(a->endpoint), AH_OPENAI_OFFICIAL);
    ah_buf *b = &w->head;

    ah_put_option(b, options, "cache_key", "prompt_cache_key");
    ah_put_option(b, options, "max_tokens", official ? "max_completion_tokens" : "max_tokens");
    ah_put_option(b, options, "reasoning", "reasoning_effort");
    ah_put_option(b, options, "seed", "seed");
    ah_put_option(b, options, "stop", "stop");
    ah_put_option(b, options, "temperature", "temperature");
    ah_put_option(b, options, "top_p", "top_p");
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

static void put_call(ah_buf *b, ah_slice call)
{
    ah_slice id, name, arguments;
    const ah_json_wanted want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    ah_json_members(call, want, 3);
    ah_buf_str(b, "{\"id\":");
    ah_buf_put(b, id);
    ah_buf_str(b, ",\"type\":\"function\",\"function\":{\"name\":");
    ah_put_wire_name(b, name);
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
        ah_put_joined_text(b, content);
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
        ah_put_joined_text(b, value);
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

ah_status ah_openai_post(const ah_adapter *a, const char *path, ah_buf *scratch, ah_http_request *req,
                         ah_err *err)
{
    const ah_openai *o = (const ah_openai *)a;
    const ah_header headers[] = {
        {"Authorization: Bearer ", ah_secret_reveal(o->native.key)},
        {"OpenAI-Organization: ", ah_text_slice(o->organization)},
        {"OpenAI-Project: ", ah_text_slice(o->project)},
    };

    return ah_native_post(&o->native, path, headers, 3, scratch, req, err);
}

static ah_status request(const ah_adapter *a, const ah_lowered *w, ah_buf *scratch, ah_http_request *req,
                         ah_err *err)
{
    (void)w;
    return ah_openai_post(a, "/chat/completions", scratch, req, err);
}

/* -- making one ------------------------------------------------------------------- */

void ah_openai_free(ah_adapter *a)
{
    ah_openai *o = (ah_openai *)a;

    ah_text_unref(o->organization);
    ah_text_unref(o->project);
    ah_free(a->mem, o);
}

static bool optional_text(ah_openai *a, ah_slice s, ah_text **out)
{
    return !s.p || (*out = ah_text_new(a->native.base.mem, s)) != NULL;
}

static ah_status fill(ah_openai *a, ah_slice model, const ah_provider_options *o, ah_err *err)
{
    ah_slice url = ah_provider_url(o, "OPENAI_BASE_URL", AH_OPENAI_OFFICIAL);
    ah_slice key = o->api_key.p ? o->api_key : ah_provider_env(o, "OPENAI_API_KEY");
    ah_status st;

    if (!key.p && ah_slice_is(url, AH_OPENAI_OFFICIAL))
        return ah_err_set(
            err, AH_PROVIDER,
            "openai: no key: set OPENAI_API_KEY or api_key (without a key and a network: demo/...)");
    if ((st = ah_native_fill(&a->native, "openai", model, url, key, o, err)) != AH_OK)
        return st;
    if (!optional_text(a, ah_provider_env(o, "OPENAI_ORG_ID"), &a->organization) ||
        !optional_text(a, ah_provider_env(o, "OPENAI_PROJECT_ID"), &a->project))
        return ah_err_nomem(err);
    return AH_OK;
}

ah_status ah_openai_make(const ah_adapter_vt *vt, ah_slice model, ah_tool_change_mode mode,
                         const ah_provider_options *o, ah_adapter **out, ah_err *err)
{
    ah_openai *a = ah_alloc(o->mem, sizeof *a);
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    a->native.base =
        (ah_adapter){.vt = vt, .mem = o->mem, .refs = 1, .stream = o->stream, .tool_change_mode = mode};
    st = fill(a, model, o, err);
    if (st == AH_OK)
        *out = &a->native.base;
    else
        ah_adapter_unref(&a->native.base);
    return st;
}

static const ah_adapter_vt vt = {
    .name = "openai",
    .native_output = true,
    .head = head,
    .entry = entry,
    .tail = "]}",
    .request = request,
    .open = ah_openai_open,
    .head_came = ah_reading_head_came,
    .feed = ah_reading_feed,
    .end = ah_reading_end,
    .close = ah_reading_close,
    .free = ah_openai_free,
};

ah_status ah_openai_new(ah_slice model, const ah_provider_options *o, ah_adapter **out, ah_err *err)
{
    enum { SPOKEN = 1 << AH_TOOLS_APPEND | 1 << AH_TOOLS_DISPATCHER | 1 << AH_TOOLS_RESTART };
    ah_tool_change_mode mode;
    ah_status st = ah_provider_mode(o, "openai", SPOKEN, AH_TOOLS_APPEND, &mode, err);

    return st == AH_OK ? ah_openai_make(&vt, model, mode, o, out, err) : st;
}
