/* OpenAI Chat Completions, and every server that uses it: requests from the transcript (POST
 * {base}/chat/completions), and the adapter. openai_read.c reads the responses. */
#include "wire/openai.h"

#include "model/tool_spec.h"
#include "wire/dialect.h"
#include "wire/openai_read.h"
#include "wire/reader.h"
#include "wire/strict.h"

enum { SHORT_ID = 9, MAX_PATH = 4 << 10 };

static bool is(const ah_adapter *a, unsigned quirk)
{
    return (((const ah_openai *)a)->server->quirks & quirk) != 0;
}

/* True for the provider's own endpoint, false behind a compatible server. */
static bool official(const ah_adapter *a)
{
    const char *own = ((const ah_openai *)a)->server->at.url;

    return !own || ah_slice_is(ah_text_slice(a->endpoint), own);
}

/* -- lowering ---------------------------------------------------------------- */

/* If no tool is allowed, the choice is "none", since an empty list is refused. */
static void put_allowed(const ah_wire *w, const char *mode, const ah_choice_words *words, ah_buf *b)
{
    size_t at = 0;
    ah_slice name = ah_wire_allowed(w, &at);

    if (!name.p) {
        ah_buf_str(b, ",\"tool_choice\":\"none\"");
        return;
    }
    ah_buf_fmt(b, ",\"tool_choice\":{\"type\":\"allowed_tools\",%s\"mode\":\"%s\",\"tools\":[",
               words->list, mode);
    for (const char *comma = ""; name.p; comma = ",", name = ah_wire_allowed(w, &at))
        ah_buf_fmt(b, "%s%s%.*s%s", comma, words->tool, AH_FMT(name), words->tool_end);
    ah_buf_fmt(b, "]%s}", words->list_end);
}

void ah_openai_put_choice(const ah_adapter *a, ah_wire *w, const ah_choice_words *words)
{
    ah_slice v = w->settings.options.tool_choice;
    ah_slice name = ah_json_member(v, "name");
    ah_buf *b = &w->head;

    if (!ah_wire_has_tools(w)) /* tool_choice without tools is refused */
        return;
    if (name.p)
        ah_buf_fmt(b, ",\"tool_choice\":%s%.*s%s", words->tool, AH_FMT(name), words->tool_end);
    else if (ah_wire_hides(w) && !ah_json_string_is(v, "none"))
        put_allowed(w, ah_json_string_is(v, "required") ? "required" : "auto", words, b);
    else if (is(a, AH_SERVER_ANY) && ah_json_string_is(v, "required"))
        ah_buf_str(b, ",\"tool_choice\":\"any\"");
    else if (v.p)
        ah_buf_fmt(b, ",\"tool_choice\":%.*s", AH_FMT(v));
}

static void put_reasoning(const ah_adapter *a, const ah_wire *w, ah_buf *b, ah_slice effort)
{
    if (!effort.p || ah_wire_lacks(w, AH_MODEL_THINKS))
        return;
    ah_buf_fmt(b,
               is(a, AH_SERVER_REASONING_OBJECT) ? ",\"reasoning\":{\"effort\":%.*s}"
                                                 : ",\"reasoning_effort\":%.*s",
               AH_FMT(ah_model_effort(&a->known, effort)));
}

static void put_options(const ah_adapter *a, ah_wire *w)
{
    static const ah_choice_words words = {"{\"type\":\"function\",\"function\":{\"name\":", "}}",
                                          "\"allowed_tools\":{", "}"};
    const ah_model_options *o = &w->settings.options;
    bool completion = is(a, AH_SERVER_COMPLETION_TOKENS) && official(a);
    ah_buf *b = &w->head;

    if (is(a, AH_SERVER_CACHE_KEY))
        ah_wire_put_option(b, "prompt_cache_key", o->cache_key);
    ah_wire_put_option(b, completion ? "max_completion_tokens" : "max_tokens", o->max_tokens);
    put_reasoning(a, w, b, o->reasoning);
    ah_wire_put_option(b, "seed", o->seed);
    ah_wire_put_option(b, "stop", o->stop);
    ah_wire_put_option(b, "temperature", o->temperature);
    ah_wire_put_option(b, "top_p", o->top_p);
    ah_openai_put_choice(a, w, &words);
}

/* Strict only if the schema fits the strict rules; else it is a hint, and checked by us. */
static void put_output(ah_wire *w)
{
    ah_slice schema = ah_wire_output(w);

    if (!schema.p)
        return;
    ah_buf_str(&w->head, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":"
                         "\"output\",\"schema\":");
    ah_buf_put(&w->head, schema);
    ah_buf_fmt(&w->head, ",\"strict\":%s}}",
               ah_strict_fits(AH_STRICT_OPENAI, schema, NULL) ? "true" : "false");
}

static void put_tool(const ah_wire *w, ah_slice spec, ah_buf *b)
{
    ah_strictness strict;

    ah_buf_str(b, "{\"type\":\"function\",\"function\":{");
    if (ah_spec_put_description("\"description\":", spec, b))
        ah_buf_char(b, ',');
    ah_buf_fmt(b, "\"name\":%.*s,\"parameters\":", AH_FMT(ah_json_member(spec, "name")));
    strict = ah_strict_put_parameters(w, spec, b);
    if (strict != AH_STRICT_UNASKED) /* false is the default, and not all servers know the member */
        ah_buf_fmt(b, ",\"strict\":%s", strict == AH_STRICT_ON ? "true" : "false");
    ah_buf_str(b, "}}");
}

static void head(const ah_adapter *a, ah_wire *w)
{
    ah_buf *b = &w->head;

    ah_buf_str(b, "{\"model\":");
    ah_json_put_string(b, ah_text_slice(a->model));
    put_options(a, w);
    put_output(w);
    if (a->stream)
        ah_buf_str(b, ",\"stream\":true");
    if (a->stream && is(a, AH_SERVER_STREAM_USAGE))
        ah_buf_str(b, ",\"stream_options\":{\"include_usage\":true}");
    if (ah_wire_put_tools(w, ",\"tools\":[", put_tool)) /* an empty list is refused */
        ah_buf_char(b, ']');
    ah_buf_str(b, ",\"messages\":[");
    ah_wire_put_system(w, "{\"role\":\"system\",\"content\":", "}");
}

/* Appends an id in the wire's form. If only nine letters and digits fit, other ids become nine that
 * depend on them alone, so that call and result agree. */
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

static void put_call(const ah_adapter *a, const ah_wire *w, ah_buf *b, ah_slice call)
{
    ah_slice id, name, arguments;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    ah_json_members(call, want, 3);
    ah_buf_str(b, "{\"id\":");
    put_id(a, b, id);
    ah_buf_str(b, ",\"type\":\"function\",\"function\":{\"name\":");
    ah_wire_put_name(b, name);
    ah_buf_str(b, ",\"arguments\":");
    ah_dialect_put_text(w, name, arguments, b);
    ah_buf_str(b, "}}");
}

static void put_assistant(const ah_adapter *a, const ah_wire *w, ah_buf *b, ah_slice json)
{
    ah_slice calls = ah_json_member(json, "tool_calls"), content = ah_json_member(json, "content");
    ah_slice thoughts = ah_wire_opaque_of_ours(a, content);
    ah_json_reader r = ah_json_read(calls);
    ah_json_token t = ah_json_next(&r);
    bool first = true;

    ah_buf_str(b, ",{\"role\":\"assistant\",\"content\":");
    if (calls.p && !ah_wire_parts_say(content))
        ah_buf_str(b, "null");
    else
        ah_wire_put_joined_text(b, content);
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r), first = false) {
        ah_buf_str(b, first ? ",\"tool_calls\":[" : ",");
        put_call(a, w, b, ah_json_skip(&r, t));
    }
    ah_buf_str(b, first ? "" : "]");
    if (thoughts.n > 2) { /* they are members of the message */
        ah_buf_char(b, ',');
        ah_buf_add(b, thoughts.p + 1, thoughts.n - 2);
    }
    ah_buf_char(b, '}');
}

/* This wire has no error flag: the text marks a failure. */
static const char *lead_of(ah_slice json)
{
    return ah_json_kind_of(ah_json_member(json, "success")) == AH_JSON_FALSE ? "Error: " : "";
}

static void put_result(const ah_adapter *a, ah_buf *b, ah_slice json)
{
    ah_buf_str(b, ",{\"role\":\"tool\",\"tool_call_id\":");
    put_id(a, b, ah_json_member(json, "id"));
    ah_buf_str(b, ",\"content\":");
    ah_wire_put_result_text(a, b, lead_of(json), json);
    ah_buf_char(b, '}');
}

/* Declares new tools in their place, in a system message with nothing else. */
static void put_added(ah_wire *w, ah_slice json)
{
    ah_buf_str(&w->body, ",{\"role\":\"system\",\"tools\":[");
    ah_wire_put_added(w, json, w->done, &w->body, put_tool);
    ah_buf_str(&w->body, "]}");
}

static void entry(const ah_adapter *a, ah_wire *w, const ah_entry *e)
{
    static const ah_part_words words = {
        "{\"type\":\"text\",\"text\":", "{\"type\":\"image_url\",\"image_url\":{\"url\":", "}}"};
    ah_slice json = ah_text_slice(e->json);
    ah_buf *b = &w->body;
    size_t at = ah_segment_begin(b);

    if (e->kind == AH_ENTRY_ASSISTANT)
        put_assistant(a, w, b, json);
    else if (e->kind == AH_ENTRY_TOOL_RESULT)
        put_result(a, b, json);
    else if (e->kind == AH_ENTRY_USER)
        ah_wire_put_user(b, &words, ah_json_member(json, "content"));
    else if (e->kind == AH_ENTRY_TOOLS_ADDED)
        put_added(w, json);
    else
        ah_wire_put_message(b, "system", ah_json_member(json, "text"));
    ah_segment_end(w, AH_SEGMENT_ENTRY, w->done, b, at);
}

/* -- the request around the body ---------------------------------------------- */

/* Azure has OpenAI's paths below /openai/v1, and older paths with deployment and version. */
static void put_path(const ah_openai *o, ah_slice version, ah_buf *b)
{
    const ah_adapter *a = &o->native.base;
    bool azure = is(a, AH_SERVER_AZURE) &&
                 !ah_slice_find(ah_text_slice(a->endpoint), (ah_slice)AH_LIT("/openai"));

    if (is(a, AH_SERVER_AZURE) && version.p)
        ah_buf_fmt(b, "%s/deployments/%s/chat/completions?api-version=%.*s", azure ? "/openai" : "",
                   a->model->data, AH_FMT(version));
    else
        ah_buf_fmt(b, "%s/chat/completions", azure ? "/openai/v1" : "");
}

ah_status ah_openai_post(const ah_adapter *a, const ah_wire *w, ah_buf *scratch,
                         ah_http_request *req, ah_err *err)
{
    const ah_openai *o = (const ah_openai *)a;
    const ah_header headers[] = {
        {is(a, AH_SERVER_AZURE) ? "api-key: " : "Authorization: Bearer ",
         ah_secret_reveal(o->native.key)},
        {"OpenAI-Organization: ", ah_text_slice(o->organization)},
        {"OpenAI-Project: ", ah_text_slice(o->project)},
        {"HTTP-Referer: ", ah_text_slice(o->site)},
        {"X-Title: ", ah_text_slice(o->app)},
    };

    (void)w;
    return ah_wire_native_post(&o->native, o->path->data, headers, sizeof headers / sizeof *headers,
                               scratch, req, err);
}

/* -- making an adapter ------------------------------------------------------------ */

void ah_openai_free(ah_adapter *a)
{
    ah_openai *o = (ah_openai *)a;

    ah_text_unref(o->path);
    ah_text_unref(o->organization);
    ah_text_unref(o->project);
    ah_text_unref(o->site);
    ah_text_unref(o->app);
    ah_free(a->mem, o);
}

/* Sets *out to the value of an environment variable, if it is set. False: out of memory. */
static bool from_env(const ah_openai *a, const ah_provider_options *o, const char *name,
                     ah_text **out)
{
    ah_slice v = ah_provider_env(o, name);

    return !v.p || (*out = ah_text_new(a->native.base.mem, v)) != NULL;
}

/* Fills in the headers that the server wants beside the key. */
static bool fill_headers(ah_openai *a, const ah_provider_options *o)
{
    const ah_server *s = a->server;

    if (s->quirks & AH_SERVER_SITE)
        return from_env(a, o, "OR_SITE_URL", &a->site) && from_env(a, o, "OR_APP_NAME", &a->app);
    if (strcmp(s->at.name, "openai") != 0)
        return true;
    return from_env(a, o, "OPENAI_ORG_ID", &a->organization) &&
           from_env(a, o, "OPENAI_PROJECT_ID", &a->project);
}

static ah_status fill_path(ah_openai *a, const ah_provider_options *o, const char *path,
                           ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, o->mem, MAX_PATH);
    if (path)
        ah_buf_str(&b, path);
    else
        put_path(a, ah_provider_env(o, "AZURE_API_VERSION"), &b);
    st = ah_text_from_buf(&b, "the address", &a->path, err);
    ah_buf_clear(&b);
    return st;
}

ah_status ah_openai_make(const ah_openai_wire *wire, const ah_server *server, ah_slice model,
                         ah_tool_change_mode mode, const ah_provider_options *o, ah_adapter **out,
                         ah_err *err)
{
    bool alone = (server->quirks & AH_SERVER_OUTPUT_ALONE) != 0;
    bool strict =
        server->quirks & AH_SERVER_STRICT && ah_model_can(&wire->known, AH_MODEL_STRICT, true);
    ah_openai *a = ah_alloc(o->mem, sizeof *a);
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    a->server = server;
    a->native.base = (ah_adapter){
        .vt = wire->vt,
        .mem = o->mem,
        .refs = 1,
        .stream = o->stream,
        .known = wire->known,
        .asks = AH_MODEL_THINKS | wire->asks,
        .native_output = wire->native_output && ah_model_can(&wire->known, AH_MODEL_OUTPUT, true),
        .output_rules = alone ? AH_STRICT_ANTHROPIC : AH_STRICT_NONE,
        .output_unseen = alone,
        .reasoning_back = wire->reasoning_back,
        .cost_told = wire->cost_told,
        .images = wire->images,
        .strict_tools = strict ? AH_STRICT_OPENAI : AH_STRICT_NONE,
        .tool_change_mode = mode};
    st = ah_wire_native_fill(&a->native, &server->at, model, o, err);
    a->native.base.lists_allowed =
        st == AH_OK && server->quirks & AH_SERVER_ALLOWED && official(&a->native.base);
    if (st == AH_OK)
        st = fill_headers(a, o) ? fill_path(a, o, wire->path, err) : ah_err_nomem(err);
    if (st == AH_OK)
        *out = &a->native.base;
    else
        ah_adapter_unref(&a->native.base);
    return st;
}

static const ah_adapter_vt vt = {
    .name = "openai",
    .revision = 1,
    .head = head,
    .entry = entry,
    .stands = ah_wire_thoughts_alone,
    .tail = "]}",
    .request = ah_openai_post,
    .open = ah_openai_open,
    .head_came = ah_wire_reader_head_came,
    .feed = ah_wire_reader_feed,
    .end = ah_wire_reader_end,
    .close = ah_wire_reader_close,
    .free = ah_openai_free,
};

static bool asks_responses(const ah_server *s, ah_slice model)
{
    static const char prefix[] = "responses/";

    return s->quirks & AH_SERVER_RESPONSES && model.n >= sizeof prefix &&
           memcmp(model.p, prefix, sizeof prefix - 1) == 0;
}

/* Both must support them: the server passes them on, or the program says so of the model. */
static bool takes_tool_messages(const ah_server *s, const ah_model *known)
{
    return ah_model_can(known, AH_MODEL_TOOL_MESSAGES, false) &&
           (s->quirks & AH_SERVER_TOOL_MESSAGES || known->from >= AH_MODEL_SCRIPT);
}

ah_status ah_openai_new(const ah_server *server, ah_slice model, const ah_provider_options *o,
                        ah_adapter **out, ah_err *err)
{
    enum {
        THOUGHTS =
            AH_SERVER_REASONING_CONTENT | AH_SERVER_REASONING_DETAILS | AH_SERVER_THINKING_BLOCKS,
        OUTPUT = AH_SERVER_OUTPUT | AH_SERVER_OUTPUT_ALONE
    };
    ah_openai_wire chat = {.vt = &vt,
                           .native_output = (server->quirks & OUTPUT) != 0,
                           .reasoning_back = (server->quirks & THOUGHTS) != 0,
                           .images = AH_IMAGES_USER,
                           .cost_told =
                               server->quirks & AH_SERVER_COST ? AH_COST_EACH : AH_COST_NEVER};
    ah_tool_change_mode mode;
    ah_status st;
    bool messages;

    if (asks_responses(server, model))
        return ah_responses_new(server, model, o, out, err);
    ah_model_find(o->models, ah_slice_of(server->at.name), model, &chat.known);
    messages = takes_tool_messages(server, &chat.known);
    st = ah_provider_mode(o, server->at.name,
                          AH_TOOLS_ANYWHERE | (messages ? 1u << AH_TOOLS_ADDITIONAL : 0u),
                          messages ? AH_TOOLS_ADDITIONAL : AH_TOOLS_APPEND, &mode, err);
    return st == AH_OK ? ah_openai_make(&chat, server, model, mode, o, out, err) : st;
}
