/* Ollama's own interface: requests from the transcript (POST {base}/api/chat), and the adapter.
 * ollama_read.c reads the responses. The server sets a model's context size (its
 * OLLAMA_CONTEXT_LENGTH), and silently cuts longer prompts. */
#include "model/tool_spec.h"
#include "wire/dialect.h"
#include "wire/ollama_read.h"
#include "wire/reader.h"

static const ah_service service = {
    .name = "ollama",
    .url = "http://localhost:11434",
    .url_env = {"OLLAMA_API_BASE", "OLLAMA_HOST"},
    .key_env = {"OLLAMA_API_KEY"},
    .keyless = true,
    .lines = true,
};

/* -- lowering ---------------------------------------------------------------------------- */

/* This wire has no tool_choice. */
static void put_options(ah_buf *b, const ah_model_options *o)
{
    size_t n = 0;

    ah_buf_str(b, ",\"options\":{");
    ah_wire_put_member(b, &n, "num_predict", o->max_tokens);
    ah_wire_put_member(b, &n, "seed", o->seed);
    ah_wire_put_list(b, &n, "stop", o->stop);
    ah_wire_put_member(b, &n, "temperature", o->temperature);
    ah_wire_put_member(b, &n, "top_p", o->top_p);
    ah_buf_char(b, '}');
}

/* Some models take a level, others a boolean: "true" and "none" give the boolean. */
static void put_think(ah_buf *b, ah_slice effort)
{
    if (ah_json_string_is(effort, "none") || ah_json_string_is(effort, "false"))
        ah_buf_str(b, ",\"think\":false");
    else if (ah_json_string_is(effort, "true"))
        ah_buf_str(b, ",\"think\":true");
    else if (effort.p)
        ah_buf_fmt(b, ",\"think\":%.*s", AH_FMT(effort));
}

static void put_function(const ah_wire *w, ah_slice spec, ah_buf *b)
{
    ah_slice name, parameters;
    const ah_json_slot want[] = {{"name", &name}, {"parameters", &parameters}};

    (void)w;
    ah_json_members(spec, want, 2);
    ah_buf_fmt(b, "{\"type\":\"function\",\"function\":{\"name\":%.*s", AH_FMT(name));
    ah_spec_put_description(",\"description\":", spec, b);
    ah_buf_str(b, ",\"parameters\":");
    ah_dialect_put(
        NULL, parameters.p ? parameters : ah_slice_of("{\"properties\":{},\"type\":\"object\"}"),
        b);
    ah_buf_str(b, "}}");
}

static void head(const ah_adapter *a, ah_wire *w)
{
    const ah_model_options *o = &w->settings.options;
    ah_slice output = ah_wire_output(w);
    ah_buf *b = &w->head;

    ah_buf_str(b, "{\"model\":");
    ah_json_put_string(b, ah_text_slice(a->model));
    /* The server's default is true. */
    ah_buf_str(b, a->stream ? ",\"stream\":true" : ",\"stream\":false");
    put_options(b, o);
    if (!ah_wire_lacks(w, AH_MODEL_THINKS))
        put_think(b, o->reasoning);
    if (output.p)
        ah_buf_fmt(b, ",\"format\":%.*s", AH_FMT(output));
    if (ah_wire_put_tools(w, ",\"tools\":[", put_function))
        ah_buf_char(b, ']');
    ah_buf_str(b, ",\"messages\":[");
    ah_wire_put_system(w, "{\"role\":\"system\",\"content\":", "}");
}

/* Ids are new on this wire; older servers ignore them. */
static void put_call(const ah_wire *w, ah_buf *b, ah_slice call)
{
    ah_slice id, name, arguments;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    ah_json_members(call, want, 3);
    ah_buf_fmt(b, "{\"id\":%.*s,\"function\":{\"name\":", AH_FMT(id));
    ah_wire_put_name(b, name);
    ah_buf_str(b, ",\"arguments\":");
    ah_dialect_put_arguments(w, name, arguments, b);
    ah_buf_str(b, "}}");
}

static void put_assistant(const ah_adapter *a, const ah_wire *w, ah_buf *b, ah_slice json)
{
    ah_json_reader r = ah_json_read(ah_json_member(json, "tool_calls"));
    ah_json_token t = ah_json_next(&r);
    ah_slice content = ah_json_member(json, "content");
    ah_slice thinking = ah_json_member(ah_wire_opaque_of_ours(a, content), "thinking");
    size_t n = 0;

    ah_buf_str(b, ",{\"role\":\"assistant\",\"content\":");
    ah_wire_put_joined_text(b, content);
    if (thinking.p)
        ah_buf_fmt(b, ",\"thinking\":%.*s", AH_FMT(thinking));
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_buf_str(b, n++ ? "," : ",\"tool_calls\":[");
        put_call(w, b, ah_json_skip(&r, t));
    }
    ah_buf_str(b, n ? "]}" : "}");
}

/* Adds to the list of base64 images beside the content; the caller ends the list. */
static void put_image(ah_buf *b, size_t *n, const ah_image *image)
{
    ah_buf_str(b, (*n)++ ? "," : ",\"images\":[");
    ah_buf_put(b, image->data);
}

/* This wire has no error flag: the text marks a failure. */
static void put_result(const ah_adapter *a, ah_buf *b, ah_slice json)
{
    ah_slice id, name, success;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"success", &success}};
    ah_json_reader r = ah_wire_result_images(json);
    size_t n = 0;
    ah_image image;

    ah_json_members(json, want, 3);
    ah_buf_str(b, ",{\"role\":\"tool\",\"tool_name\":");
    ah_wire_put_name(b, name);
    ah_buf_fmt(b, ",\"tool_call_id\":%.*s,\"content\":", AH_FMT(id));
    ah_wire_put_result_text(a, b, ah_json_kind_of(success) == AH_JSON_FALSE ? "Error: " : "", json);
    while (ah_wire_next_shown(a, &r, &image))
        put_image(b, &n, &image);
    ah_buf_str(b, n ? "]}" : "}");
}

static void put_user(ah_buf *b, ah_slice content)
{
    ah_json_reader r = ah_json_read(content);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;
    ah_image image;

    ah_wire_put_message(b, "user", content);
    if (t.kind != AH_JSON_ARRAY || !ah_buf_ok(b))
        return;
    b->len--; /* removes the closing brace */
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r))
        if (ah_image_of(ah_json_skip(&r, t), &image))
            put_image(b, &n, &image);
    ah_buf_str(b, n ? "]}" : "}");
}

static void entry(const ah_adapter *a, ah_wire *w, const ah_entry *e)
{
    ah_slice json = ah_text_slice(e->json);
    ah_buf *b = &w->body;
    size_t at = ah_segment_begin(b);

    if (e->kind == AH_ENTRY_ASSISTANT)
        put_assistant(a, w, b, json);
    else if (e->kind == AH_ENTRY_TOOL_RESULT)
        put_result(a, b, json);
    else if (e->kind == AH_ENTRY_USER)
        put_user(b, ah_json_member(json, "content"));
    else
        ah_wire_put_message(b, "system", ah_json_member(json, "text"));
    ah_segment_end(w, AH_SEGMENT_ENTRY, w->done, b, at);
}

/* -- the request around the body ------------------------------------------------------------ */

static ah_status request(const ah_adapter *a, const ah_wire *w, ah_buf *scratch,
                         ah_http_request *req, ah_err *err)
{
    const ah_wire_native *o = (const ah_wire_native *)a;
    const ah_header key = {"Authorization: Bearer ", ah_secret_reveal(o->key)};

    (void)w;
    return ah_wire_native_post(o, "/api/chat", &key, 1, scratch, req, err);
}

static void free_ollama(ah_adapter *a)
{
    ah_free(a->mem, a);
}

static const ah_adapter_vt vt = {
    .name = "ollama",
    .revision = 1,
    .head = head,
    .entry = entry,
    .stands = ah_wire_thoughts_alone,
    .tail = "]}",
    .request = request,
    .open = ah_ollama_open,
    .head_came = ah_wire_reader_head_came,
    .feed = ah_wire_reader_feed,
    .end = ah_wire_reader_end,
    .close = ah_wire_reader_close,
    .free = free_ollama,
};

/* OLLAMA_HOST is the address on which a server listens: it may lack a scheme, or be the address of
 * all interfaces, to which nothing can be sent. */
static bool settle_url(ah_adapter *a)
{
    ah_slice url = ah_text_slice(a->endpoint), all = AH_LIT("0.0.0.0");
    ah_text *text = NULL;
    ah_buf b;

    ah_buf_init(&b, a->mem, url.n + 64);
    if (!ah_slice_begins(url, "http://") && !ah_slice_begins(url, "https://"))
        ah_buf_str(&b, "http://");
    if (ah_slice_begins(url, "0.0.0.0")) {
        ah_buf_str(&b, "127.0.0.1");
        url = (ah_slice){url.p + all.n, url.n - all.n};
    }
    ah_buf_put(&b, url);
    if (b.len > 4 && memcmp(b.data + b.len - 4, "/api", 4) == 0)
        ah_buf_reset(&b, b.len - 4);
    if (ah_text_from_buf(&b, "base_url", &text, NULL) == AH_OK)
        ah_text_set(&a->endpoint, text);
    ah_buf_clear(&b);
    return text != NULL;
}

static ah_status fill(ah_wire_native *a, ah_slice model, const ah_provider_options *o, ah_err *err)
{
    ah_status st = ah_provider_mode(o, service.name, AH_TOOLS_ANYWHERE, AH_TOOLS_APPEND,
                                    &a->base.tool_change_mode, err);

    ah_model_find(o->models, ah_slice_of(service.name), model, &a->base.known);
    if (st == AH_OK)
        st = ah_wire_native_fill(a, &service, model, o, err);
    return st == AH_OK && !settle_url(&a->base) ? ah_err_nomem(err) : st;
}

static ah_status open_ollama(ah_slice model, const ah_provider_options *o, ah_adapter **out,
                             ah_err *err)
{
    ah_wire_native *a = ah_alloc(o->mem, sizeof *a);
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    /* The server makes a grammar of the schema, for everything that the model writes. It refuses
     * schemas that it cannot convert, so only those that any server can are sent (its issues 8095,
     * 11037, 17957). */
    a->base = (ah_adapter){.vt = &vt,
                           .mem = o->mem,
                           .refs = 1,
                           .images = AH_IMAGES_DATA | AH_IMAGES_RESULT_DATA,
                           .asks = AH_MODEL_THINKS,
                           .stream = o->stream,
                           .native_output = true,
                           .output_rules = AH_STRICT_ANTHROPIC,
                           .output_unseen = true,
                           .reasoning_back = true};
    if ((st = fill(a, model, o, err)) == AH_OK)
        *out = &a->base;
    else
        ah_adapter_unref(&a->base);
    return st;
}

const ah_provider ah_ollama = {&service, open_ollama};
